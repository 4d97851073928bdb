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
pub struct Changes {
    pub(crate) run: Put<Run>,
    pub(crate) active: Option<Put<Active>>,
    pub(crate) steps: Vec<Put<Step>>,
    pub(crate) events: Vec<Put<Event>>,
    pub(crate) tasks: Vec<Put<Task>>,
    pub(crate) blobs: Vec<Blob>,
}

/// A record to write, and what must be in its place.
#[derive(Clone, Debug)]
pub struct Put<T> {
    pub item: Arc<T>,
    /// The version it was read with; `None` for a new one.
    pub version: Option<Version>,
}

impl Changes {
    pub fn run(&self) -> &Put<Run> {
        &self.run
    }

    /// The list of active steps, where there is one or was one; an empty one is not kept.
    pub fn active(&self) -> Option<&Put<Active>> {
        self.active.as_ref()
    }

    pub fn steps(&self) -> &[Put<Step>] {
        &self.steps
    }

    pub fn events(&self) -> &[Put<Event>] {
        &self.events
    }

    /// New tasks, and those that a retry, a cancel or an answer changes.
    pub fn tasks(&self) -> &[Put<Task>] {
        &self.tasks
    }

    pub fn blobs(&self) -> &[Blob] {
        &self.blobs
    }
}
