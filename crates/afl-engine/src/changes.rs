//! All that a stretch of evaluation changed, to be committed at once.

use std::sync::Arc;

use crate::attribute::Blob;
use crate::event::Event;
use crate::run::{Active, Run};
use crate::step::Step;
use crate::task::Task;
use crate::version::Version;

/// `IterationChanges` of document 002, for one iteration or several in a row. Only the evaluator makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Changes {
    pub run: Put<Run>,
    /// The list of active steps, where there is one or was one; an empty one is not kept.
    pub active: Option<Put<Active>>,
    pub steps: Vec<Put<Step>>,
    pub events: Vec<Put<Event>>,
    /// New tasks, and those that a retry, a cancel or an answer changes.
    pub tasks: Vec<Put<Task>>,
    pub blobs: Vec<Blob>,
}

/// A record to write, and the version expected in its place.
#[derive(Clone, Debug)]
pub struct Put<T> {
    pub item: Arc<T>,
    /// The version it was read with; `None` for a new one.
    pub version: Option<Version>,
}
