//! The stores of AgentFlow: what is kept, the narrow trait that keeps it, and the typed store above.

pub mod backend;
pub mod record;
pub mod watch;

pub use afl_engine::time::Millis;
