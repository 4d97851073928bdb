//! The shapes by which surfaces show runs, steps and tasks: JSON, and answers about programs and agents.
//!
//! The command line, the servers and the dashboard show the same facts. Each fact is computed here once and each JSON
//! object is a type here, so that a surface only prints. The names of the fields are a contract with scripts.

mod blocked;
mod channel;
mod needs;
mod online;
mod outcome;
mod run;
mod step;
mod task;

pub use blocked::{BlockedChain, BlockedStep};
pub use channel::ChannelView;
pub use needs::ProgramNeeds;
pub use online::{OnlineServers, ServerView, WhyReport};
pub use outcome::{OutcomeError, OutcomeStatus, RunOutcome};
pub use run::{RunControl, RunDetail, RunSummary};
pub use step::{StepStatus, StepSummary, StepTask};
pub use task::{TaskDetail, TaskLogPage, TaskView};
