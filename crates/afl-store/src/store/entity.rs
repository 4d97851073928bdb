//! The parts of a run, and the record of each part.

use std::str::FromStr;

use afl_engine::evaluation::StoredRecord;
use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Active, Run};
use afl_engine::step::Step;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Defect, Error};
use super::{Store, place, seal};
use crate::backend::{Expect, Write};
use crate::record::{Content, Key, QueuePosition, Record};

pub(crate) const RUN: &str = "run";
pub(crate) const ACTIVE: &str = "active";
pub(crate) const STEPS: &str = "s/";
pub(crate) const EVENTS: &str = "e/";
pub(crate) const TASKS: &str = "t/";
pub(crate) const BLOBS: &str = "x/";
pub(crate) const PIECES: &str = "y/";
pub(crate) const LOGS: &str = "l/";

/// A part of a run with its own record.
pub(crate) trait Entity: Serialize + DeserializeOwned {
    /// The record's id.
    fn record_id(&self) -> String;
    /// Takes the name that only the record's id holds; nothing when it cannot be what the key names.
    fn named(self, _key: &Key) -> Option<Self> {
        Some(self)
    }
    /// `now` is when it is written.
    fn place(&self, _now: Millis) -> Option<QueuePosition> {
        None
    }
}

impl Entity for Run {
    fn record_id(&self) -> String {
        RUN.to_owned()
    }

    fn named(self, key: &Key) -> Option<Self> {
        (self.id.0 == key.scope).then_some(self)
    }

    fn place(&self, _: Millis) -> Option<QueuePosition> {
        Some(place::of_run(self))
    }
}

impl Entity for Active {
    fn record_id(&self) -> String {
        ACTIVE.to_owned()
    }
}

impl Entity for Step {
    fn record_id(&self) -> String {
        step_record(&self.id)
    }

    fn named(self, key: &Key) -> Option<Self> {
        Some(Self { id: step_of(&key.id, STEPS)?, ..self })
    }
}

impl Entity for Event {
    fn record_id(&self) -> String {
        event_record(&self.step_id)
    }

    fn named(self, key: &Key) -> Option<Self> {
        Some(Self { step_id: step_of(&key.id, EVENTS)?, ..self })
    }

    fn place(&self, now: Millis) -> Option<QueuePosition> {
        place::of_event(self, now)
    }
}

impl Entity for Task {
    fn record_id(&self) -> String {
        task_record(&self.step_id)
    }

    fn named(self, key: &Key) -> Option<Self> {
        Some(self.of_step(step_of(&key.id, TASKS)?))
    }

    fn place(&self, _: Millis) -> Option<QueuePosition> {
        place::of_task(self)
    }
}

pub fn run_record() -> String {
    RUN.to_owned()
}

pub fn step_record(id: &StepId) -> String {
    format!("{STEPS}{id}")
}

pub(crate) fn event_record(id: &StepId) -> String {
    format!("{EVENTS}{id}")
}

/// The event of a task, by the ids of their records.
pub(crate) fn event_beside(task_record: &str) -> String {
    format!("{EVENTS}{}", task_record.strip_prefix(TASKS).unwrap_or(task_record))
}

pub(crate) fn task_record(id: &StepId) -> String {
    format!("{TASKS}{id}")
}

/// The step that a record's id names, when the record is of that sort.
pub(crate) fn step_of(record_id: &str, prefix: &str) -> Option<StepId> {
    StepId::from_str(record_id.strip_prefix(prefix)?).ok()
}

/// Reads what a record holds.
pub(crate) fn decode<T: Entity>(record: &Record) -> Result<StoredRecord<T>, Error> {
    let item: T = seal::opened_json(record)?;
    let wrong = || Error::unreadable(&record.key, Defect::Body("it is not what its id says".to_owned()));
    let item = item.named(&record.key).ok_or_else(wrong)?;
    Ok(StoredRecord { item, version: record.version })
}

pub(crate) fn encode<T: Entity>(key: &Key, item: &T, now: Millis) -> Content {
    seal::sealed_json(key, item, item.place(now))
}

impl Store {
    pub(crate) fn put<T: Entity>(&self, run: &RunId, item: &T, expect: Expect, now: Millis) -> Write {
        let key = self.run_key(run, item.record_id());
        let content = encode(&key, item, now);
        Write::put(key, expect, content)
    }

    /// Writes an item back over the version it was read with.
    pub(crate) fn update<T: Entity>(&self, run: &RunId, stored: &StoredRecord<T>, now: Millis) -> Write {
        self.put(run, &stored.item, stored.version.into(), now)
    }

    /// Puts a task where no claim finds it, until its run continues.
    pub(crate) fn aside(&self, task: &StoredRecord<Task>, now: Millis) -> Write {
        let run = &task.item.workflow_id;
        let key = self.run_key(run, task.item.record_id());
        let mut content = encode(&key, &task.item, now);
        content.place =
            content.place.map(|place| QueuePosition { bucket: place::bucket::held(run), ..place });
        Write::put(key, task.version, content)
    }
}
