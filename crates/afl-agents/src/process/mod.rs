//! Child processes that cannot outlive their use: groups, their output as log lines, and what they may see.

mod ending;
mod group;
mod guardian;
mod output;

pub(crate) use ending::Ending;
pub(crate) use group::{Group, SpawnError, pass};
pub(crate) use guardian::Guardian;
pub(crate) use output::Output;
