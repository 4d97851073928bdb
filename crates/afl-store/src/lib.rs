//! The stores of AgentFlow: records, the narrow trait that keeps them, and the typed store above.

pub mod backend;
pub mod clock;
pub mod collection;
pub mod conflict;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod entropy;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
pub mod lock;
pub mod memory;
pub mod notification;
pub mod outbox;
pub mod paging;
pub mod queue;
pub mod record;
#[cfg(any(test, feature = "testing"))]
pub mod seed;
pub mod server;
pub mod store;
pub mod watch;

pub use afl_engine::time::{Backoff, Millis};
pub use afl_engine::version::{Epoch, Version};
