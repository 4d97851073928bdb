//! Private servers for the tests: found on this machine, started in a directory of their own, always stopped.

mod keeper;
pub mod postgres;

pub use keeper::StartError;
