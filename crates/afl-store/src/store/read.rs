//! Reads parts of a run by their names, many at once from one snapshot.

use afl_engine::attribute::BlobHash;
use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_engine::step::Step;
use afl_engine::task::Task;

use super::blob::blob_record;
use super::entity::{self, Entity, Stored, decode};
use super::{Error, Store};
use crate::record::Record;

/// What to read of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted<'a> {
    pub steps: &'a [StepId],
    pub events: &'a [StepId],
    pub tasks: &'a [StepId],
    pub blobs: &'a [BlobHash],
}

/// In the order of what was wanted; `None` for what is not there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Loaded {
    pub steps: Vec<Option<Stored<Step>>>,
    pub events: Vec<Option<Stored<Event>>>,
    pub tasks: Vec<Option<Stored<Task>>>,
    /// The JSON text of each value.
    pub blobs: Vec<Option<String>>,
}

impl Store {
    pub async fn run(&self, run: &RunId) -> Result<Option<Stored<Run>>, Error> {
        self.one(run, entity::RUN.to_owned()).await
    }

    pub async fn step(&self, run: &RunId, step: &StepId) -> Result<Option<Stored<Step>>, Error> {
        self.one(run, entity::step_record(step)).await
    }

    pub async fn event(&self, run: &RunId, step: &StepId) -> Result<Option<Stored<Event>>, Error> {
        self.one(run, entity::event_record(step)).await
    }

    pub async fn task(&self, run: &RunId, step: &StepId) -> Result<Option<Stored<Task>>, Error> {
        self.one(run, entity::task_record(step)).await
    }

    pub async fn load(&self, run: &RunId, wanted: &Wanted<'_>) -> Result<Loaded, Error> {
        let key = |id| self.run_key(run, id);
        let mut keys = Vec::new();
        keys.extend(wanted.steps.iter().map(|id| key(entity::step_record(id))));
        keys.extend(wanted.events.iter().map(|id| key(entity::event_record(id))));
        keys.extend(wanted.tasks.iter().map(|id| key(entity::task_record(id))));
        keys.extend(wanted.blobs.iter().map(|hash| key(blob_record(hash))));
        let mut records = self.backend.get(&keys).await?.into_iter();
        let mut loaded = Loaded {
            steps: decode_all(records.by_ref().take(wanted.steps.len()))?,
            events: decode_all(records.by_ref().take(wanted.events.len()))?,
            tasks: decode_all(records.by_ref().take(wanted.tasks.len()))?,
            blobs: Vec::with_capacity(wanted.blobs.len()),
        };
        for record in records {
            loaded.blobs.push(match record {
                Some(record) => Some(self.blob(run, &record).await?),
                None => None,
            });
        }
        Ok(loaded)
    }

    /// The run, event and task of one step, from one snapshot.
    pub(crate) async fn work(&self, run: &RunId, step: &StepId) -> Result<Work, Error> {
        let ids = [entity::RUN.to_owned(), entity::task_record(step), entity::event_record(step)];
        let keys = ids.map(|id| self.run_key(run, id));
        let mut records = self.backend.get(&keys).await?.into_iter();
        Ok(Work {
            run: records.next().flatten().as_ref().map(decode).transpose()?,
            task: records.next().flatten().as_ref().map(decode).transpose()?,
            event: records.next().flatten().as_ref().map(decode).transpose()?,
        })
    }

    async fn one<T: Entity>(&self, run: &RunId, id: String) -> Result<Option<Stored<T>>, Error> {
        let record = self.backend.get(&[self.run_key(run, id)]).await?.pop().flatten();
        record.as_ref().map(decode).transpose()
    }
}

/// What settling a task touches.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) run: Option<Stored<Run>>,
    pub(crate) task: Option<Stored<Task>>,
    pub(crate) event: Option<Stored<Event>>,
}

fn decode_all<T: Entity>(
    records: impl Iterator<Item = Option<Record>>,
) -> Result<Vec<Option<Stored<T>>>, Error> {
    records.map(|record| record.as_ref().map(decode).transpose()).collect()
}
