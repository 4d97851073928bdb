//! Reads parts of a run by their names, many at once from one snapshot.

use afl_engine::attribute::BlobHash;
use afl_engine::evaluation::{StoredRecord, SuspendedRun, Wants};
use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Active, Run};
use afl_engine::step::Step;
use afl_engine::task::Task;

use super::blob::blob_record;
use super::entity::{self, Entity, decode};
use super::{Defect, Error, Store};
use crate::record::{Key, Record};

/// The requested parts, by name; `None` for an absent one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunParts {
    pub steps: ByStep<Step>,
    pub events: ByStep<Event>,
    pub tasks: ByStep<Task>,
    /// The JSON text of each value.
    pub blobs: Vec<(BlobHash, Option<String>)>,
}

impl Store {
    pub async fn run(&self, run: &RunId) -> Result<Option<StoredRecord<Run>>, Error> {
        self.one(run, entity::RUN.to_owned()).await
    }

    /// A run with all that an evaluation begins with.
    pub async fn suspended(&self, id: &RunId) -> Result<Option<SuspendedRun>, Error> {
        let keys = [entity::RUN, entity::ACTIVE].map(|record| self.run_key(id, record.to_owned()));
        let mut records = self.records(&keys).await?.into_iter();
        let run: Option<StoredRecord<Run>> = records.next().flatten().as_ref().map(decode).transpose()?;
        let active: Option<StoredRecord<Active>> =
            records.next().flatten().as_ref().map(decode).transpose()?;
        let Some(run) = run else { return Ok(None) };
        let listed = active.as_ref().map_or(0, |active| active.item.0.len());
        if listed != run.item.active {
            let reason = format!("it names {listed} steps, and the run counts {}", run.item.active);
            return Err(Error::unreadable(&keys[1], Defect::Body(reason)));
        }
        Ok(Some(SuspendedRun { run, active }))
    }

    pub async fn step(&self, run: &RunId, step: &StepId) -> Result<Option<StoredRecord<Step>>, Error> {
        self.one(run, entity::step_record(step)).await
    }

    pub async fn event(&self, run: &RunId, step: &StepId) -> Result<Option<StoredRecord<Event>>, Error> {
        self.one(run, entity::event_record(step)).await
    }

    pub async fn task(&self, run: &RunId, step: &StepId) -> Result<Option<StoredRecord<Task>>, Error> {
        self.one(run, entity::task_record(step)).await
    }

    /// All that an evaluation wants, from one snapshot.
    pub async fn load(&self, run: &RunId, wants: &Wants) -> Result<RunParts, Error> {
        let key = |id| self.run_key(run, id);
        let [steps, events, tasks] = [&wants.steps, &wants.events, &wants.tasks].map(in_order);
        let mut keys = Vec::new();
        keys.extend(steps.iter().map(|id| key(entity::step_record(id))));
        keys.extend(events.iter().map(|id| key(entity::event_record(id))));
        keys.extend(tasks.iter().map(|id| key(entity::task_record(id))));
        keys.extend(wants.blobs.iter().map(|hash| key(blob_record(hash))));
        let mut records = self.records(&keys).await?.into_iter();
        let mut loaded = RunParts {
            steps: decode_all(&steps, &mut records)?,
            events: decode_all(&events, &mut records)?,
            tasks: decode_all(&tasks, &mut records)?,
            blobs: Vec::with_capacity(wants.blobs.len()),
        };
        for (hash, record) in wants.blobs.iter().zip(records) {
            let text = match record {
                Some(record) => Some(self.blob(run, &record).await?),
                None => None,
            };
            loaded.blobs.push((hash.clone(), text));
        }
        Ok(loaded)
    }

    /// The run, event and task of one step, from one snapshot.
    pub(crate) async fn work(&self, run: &RunId, step: &StepId) -> Result<TaskRecords, Error> {
        let ids = [entity::RUN.to_owned(), entity::task_record(step), entity::event_record(step)];
        let keys = ids.map(|id| self.run_key(run, id));
        let mut records = self.records(&keys).await?.into_iter();
        Ok(TaskRecords {
            run: records.next().flatten().as_ref().map(decode).transpose()?,
            task: records.next().flatten().as_ref().map(decode).transpose()?,
            event: records.next().flatten().as_ref().map(decode).transpose()?,
        })
    }

    /// The records of these keys. A store with a damaged index may answer with the record of another key.
    async fn records(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, Error> {
        let found = self.backend.get(keys).await?;
        let of_another = |(key, record): &(&Key, &Option<Record>)| {
            record.as_ref().is_some_and(|record| record.key != **key)
        };
        match keys.iter().zip(&found).find(of_another) {
            Some((key, _)) => {
                let defect = Defect::Body("another record stands in its place".to_owned());
                Err(Error::unreadable(key, defect))
            }
            None => Ok(found),
        }
    }

    async fn one<T: Entity>(&self, run: &RunId, id: String) -> Result<Option<StoredRecord<T>>, Error> {
        let record = self.records(&[self.run_key(run, id)]).await?.pop().flatten();
        record.as_ref().map(decode).transpose()
    }
}

/// The records that settling a task touches.
#[derive(Clone, Debug)]
pub(crate) struct TaskRecords {
    pub(crate) run: Option<StoredRecord<Run>>,
    pub(crate) task: Option<StoredRecord<Task>>,
    pub(crate) event: Option<StoredRecord<Event>>,
}

/// Records by the step that they belong to.
pub type ByStep<T> = Vec<(StepId, Option<StoredRecord<T>>)>;

/// As they lie beside each other in the store.
fn in_order<'a>(names: impl IntoIterator<Item = &'a StepId>) -> Vec<&'a StepId> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable();
    names
}

/// Takes as many records as there are names.
fn decode_all<T: Entity>(
    names: &[&StepId],
    records: &mut impl Iterator<Item = Option<Record>>,
) -> Result<ByStep<T>, Error> {
    // A collection of fallible items grows again and again, and a step is large.
    let mut found = Vec::with_capacity(names.len());
    for (id, record) in names.iter().zip(records) {
        found.push(((*id).clone(), record.as_ref().map(decode).transpose()?));
    }
    Ok(found)
}
