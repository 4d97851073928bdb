//! The values that an expression can read.

use afl_lang::program::InputSource;

use crate::value::{Map, Value};

/// Answers the references of an expression. The engine's answers come from stored steps, without
/// putting their attributes together first.
pub trait Scope {
    /// One attribute; `None` where there is none of this name. An attribute that is null is there.
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value>;

    /// All attributes, for `$` and for a step named alone.
    fn record(&self, root: Root<'_>) -> Map<String, Value>;
}

/// The start of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root<'r> {
    Input(InputSource),
    Step {
        name: &'r str,
        /// The earlier clause of the owner that holds the step; `None`: this block.
        clause: Option<u32>,
    },
}

/// Where nothing can be read, as in the defaults of a schema.
#[derive(Clone, Copy, Debug)]
pub struct NoScope;

impl Scope for NoScope {
    fn attribute(&self, _: Root<'_>, _: &str) -> Option<&Value> {
        None
    }

    fn record(&self, _: Root<'_>) -> Map<String, Value> {
        Map::new()
    }
}
