//! Does the work of tasks: one interface for handlers, and the hosts that run them.
//!
//! A [`Call`](handler::Call) goes to a [`Handler`](handler::Handler) and comes back as an
//! [`Outcome`](handler::Outcome), whatever the handler does. [`Hosts`] runs what a
//! [`Registration`](registration::Registration) names: Python, programs, HTTP, built-in handlers.

pub mod handler;
pub mod host;
pub mod http;
mod process;
pub mod registration;
mod registry;
mod roots;
pub mod worker;

pub use host::{Hosts, HostsConfig, MAX_RESULT_BYTES, PythonConfig};
pub use registry::{Registry, RegistryError};
pub use roots::{FileError, Roots};
