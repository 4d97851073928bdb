//! What tests need beside them: private servers, found on this machine, started in a directory of their own, always
//! stopped; and processes of our own that are listened to.

mod keeper;
pub mod postgres;
mod process;

pub use keeper::StartError;
pub use process::{PATIENCE, Process};
