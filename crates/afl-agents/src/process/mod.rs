//! Child processes that cannot outlive their use: groups, their output as log lines, and what they may see.

mod ending;
mod environment;
mod group;
mod guardian;
mod output;

pub(crate) use ending::Ending;
pub(crate) use environment::pass;
pub(crate) use group::Group;
pub(crate) use guardian::Guardian;
pub(crate) use output::Output;
