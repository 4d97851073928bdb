//! The engine of AgentFlow: what a compiled program means, as pure functions of values.
//!
//! Nothing here reads a file, a clock or a random number: the same program and the same values give the
//! same result on every machine.

pub mod attribute;
pub mod changes;
pub mod children;
pub mod eval;
pub mod evaluation;
pub mod event;
pub mod failure;
pub mod history;
pub mod id;
pub mod object;
pub mod plan;
pub mod policy;
pub mod run;
pub mod state;
pub mod step;
pub mod task;
pub mod time;
pub mod timer;
pub mod trace;
pub mod types;
pub mod value;
pub mod version;
pub mod wire;

pub use eval::{EvalError, Scope, eval};
pub use object::ObjectType;
pub use state::{Path, State, Verdict};
pub use value::Value;
