//! Looks at the records of a run, or of a scope that all share, one by one, for the doctor: can each be read, and does it
//! wait where it should?

use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Active, Run};
use afl_engine::step::Step;
use afl_engine::task::Task;
use afl_engine::time::Millis;

use super::entity::{self, Entity, decode};
use super::place::bucket;
use super::scope::SHARED;
use super::{Error, Store, seal};
use crate::backend::{Durability, Write};
use crate::conflict::unless_overtaken;
use crate::record::{Content, QueuePosition, Record};

/// A record as it was found.
#[derive(Debug)]
pub struct RecordInspection {
    /// Its id in the run.
    pub record: String,
    pub sort: RecordKind,
    pub state: Result<Placement, Error>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    Run,
    Active,
    Step,
    Event,
    Task,
    Blob,
    Log,
    /// None of ours.
    Unknown,
}

/// The step that a record of a run belongs to.
pub fn step_of_record(record: &str) -> Option<StepId> {
    [entity::STEPS, entity::EVENTS, entity::TASKS].into_iter().find_map(|sort| entity::step_of(record, sort))
}

/// Whether a record is where those look who have to find it.
#[derive(Clone, PartialEq, Debug)]
pub enum Placement {
    Right,
    Wrong(Misplacement),
}

/// A record in the wrong bucket, and its right place.
#[derive(Clone, PartialEq, Debug)]
pub struct Misplacement {
    found: Record,
    right: Option<QueuePosition>,
}

impl Misplacement {
    pub fn is(&self) -> String {
        describe(self.found.content.place.as_ref())
    }

    pub fn should_be(&self) -> String {
        describe(self.right.as_ref())
    }
}

fn describe(place: Option<&QueuePosition>) -> String {
    place
        .map_or_else(|| "in no bucket".to_owned(), |place| format!("in `{}` at {}", place.bucket, place.rank))
}

impl Store {
    /// A page of a run's records in the order of their ids, after one of them.
    pub async fn inspect(
        &self,
        run: &RunId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordInspection>, Error> {
        let records = self.scan_scope(run.0.clone(), "", after.map(str::to_owned), limit).await?;
        Ok(records.into_iter().map(|record| inspected(run, record)).collect())
    }

    /// Runs, system tasks and the scopes that all share, in the order of their names: all that there is.
    pub async fn scopes(&self, after: &str, limit: usize) -> Result<Vec<String>, Error> {
        Ok(self.backend.scopes(&self.tenant, after, limit).await?)
    }

    /// Puts a record where it belongs, unless it was written meanwhile.
    pub async fn put_right(&self, misplaced: Misplacement) -> Result<(), Error> {
        let Misplacement { found, right } = misplaced;
        let content = Content { place: right, ..found.content };
        let write = Write::put(found.key, found.version, content);
        unless_overtaken(self.write(vec![write], Durability::Durable).await)?;
        Ok(())
    }
}

fn inspected(run: &RunId, record: Record) -> RecordInspection {
    let id = record.key.id.clone();
    let readable = |record: &Record| seal::opened(record).map(|_| Placement::Right);
    let (sort, state) = match id.get(..2) {
        // There, ids are names that others chose.
        _ if SHARED.contains(&&*run.0) => (RecordKind::Unknown, readable(&record)),
        Some(entity::STEPS) => (RecordKind::Step, placement::<Step>(run, record)),
        Some(entity::EVENTS) => (RecordKind::Event, placement::<Event>(run, record)),
        Some(entity::TASKS) => (RecordKind::Task, placement::<Task>(run, record)),
        Some(entity::BLOBS | entity::PIECES) => (RecordKind::Blob, readable(&record)),
        Some(entity::LOGS) => (RecordKind::Log, readable(&record)),
        _ if id == entity::RUN => (RecordKind::Run, placement::<Run>(run, record)),
        _ if id == entity::ACTIVE => (RecordKind::Active, placement::<Active>(run, record)),
        _ => (RecordKind::Unknown, Ok(Placement::Right)),
    };
    RecordInspection { record: id, sort, state }
}

fn placement<T: Entity>(run: &RunId, record: Record) -> Result<Placement, Error> {
    let item: T = decode(&record)?.item;
    let found = &record.content.place;
    // An outcome may have come at any time; only the bucket can be wrong.
    let at = Millis(found.as_ref().map_or(0, |place| place.rank));
    let right = item.place(at);
    let is_aside = found.as_ref().is_some_and(|place| place.bucket == bucket::held(run)) && right.is_some();
    if *found == right || is_aside {
        Ok(Placement::Right)
    } else {
        Ok(Placement::Wrong(Misplacement { found: record, right }))
    }
}
