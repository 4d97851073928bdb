//! Helpers of tests: private servers, started in a directory of their own and always stopped, and processes of our own
//! whose output a test reads.

pub mod faketime;
mod keeper;
pub mod postgres;
mod process;

pub use keeper::StartError;
pub use process::{PATIENCE, Process};
