//! Runs AgentFlow programs over any store.

mod agent;
mod claim_step;
mod control;
mod drive;
mod error;
mod find;
mod fleet;
mod look;
mod pick;
mod plans;
mod query;
mod retry;
mod run_id;
mod serve;
mod service;
mod start;
mod stats;
mod why;

pub use drive::{Arrival, Driven, Standing, Work};
pub use error::Error;
pub use look::{Found, Where};
pub use pick::pick_workflow;
pub use query::{Moved, RunList, RunQuery, StepList, StepView};
pub use retry::Again;
pub use serve::Health;
pub use service::{Service, Traced};
pub use start::{MAX_KEY_BYTES, Origin, StartRequest, Started};
pub use stats::{COUNTED, Stats};
pub use why::{Link, On, Reason, Wait, Why};
