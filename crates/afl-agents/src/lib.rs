//! Does the work of tasks: one interface for handlers, and the hosts that run them.
//!
//! A [`Call`](handler::Call) goes to a [`Handler`](handler::Handler) and comes back as an
//! [`Outcome`](handler::Outcome), whatever the handler does. [`Hosts`] runs what a
//! [`Registration`](registration::Registration) names: Python, programs, HTTP, built-in handlers.

pub mod builtin;
mod exec;
pub mod handler;
mod hosts;
pub mod http;
mod process;
mod python;
pub mod registration;
mod registry;
mod roots;
pub mod worker;

pub use hosts::{Hosts, HostsConfig, HostsError};
pub use python::{Discovered, MAX_RESULT_BYTES, Marked, PythonConfig, discover};
pub use registry::{Registry, RegistryError};
pub use roots::{FileError, Roots};
