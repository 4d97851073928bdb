//! The effects of agents outside the store. Each piece of work leaves a line before the agent reports it to the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use afl_engine::history::{Actor, TaskEvent, TaskEventType};
use afl_engine::policy::Effect;
use afl_engine::task::Task;
use afl_runtime::agent::Claim;
use serde::{Deserialize, Serialize};

use crate::programs::{self, Answer};

const WORK: &str = "work";

pub(crate) struct World {
    file: PathBuf,
    /// Which process this is, counted from nothing.
    life: u64,
    done: BTreeMap<Piece, Answer>,
    /// The work that earlier processes did and could not report.
    untold: BTreeSet<Piece>,
}

/// A piece of work: what a step asks for, once for each attempt.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    step: String,
    facet: String,
    /// How many attempts had ended before.
    attempt: usize,
}

/// The record of one process.
pub(crate) type Line = (u64, Piece, Answer);

/// All that was done, in order.
pub(crate) fn lines(directory: &Path) -> Vec<Line> {
    let text = fs::read_to_string(directory.join(WORK)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

impl World {
    /// As a new process finds it. An agent reports its work before it begins another, so the store lacks at most the last
    /// piece of each process that died.
    pub(crate) fn found(directory: &Path, life: u64, tasks: &[Task]) -> Self {
        let lines = lines(directory);
        let last: BTreeMap<u64, Piece> =
            lines.iter().map(|(life, piece, _)| (*life, piece.clone())).collect();
        let done: BTreeMap<Piece, Answer> =
            lines.into_iter().map(|(_, piece, answer)| (piece, answer)).collect();
        let untold: BTreeSet<Piece> = done.keys().filter(|piece| !piece.is_told(tasks)).cloned().collect();
        let may_be: BTreeSet<Piece> = last.into_values().collect();
        assert!(untold.is_subset(&may_be), "the store lost {:?}", untold.difference(&may_be));
        Self { file: directory.join(WORK), life, done, untold }
    }

    /// Does a piece of work. Only an unreported one may be done again, and that once, unless even that is too often.
    pub(crate) fn work(&mut self, claim: &Claim) -> Answer {
        let (piece, answer) = (Piece::of(&claim.task), programs::answer(claim));
        let is_repeated = self.done.insert(piece.clone(), answer.clone()).is_some();
        if is_repeated {
            assert!(self.untold.remove(&piece), "{piece:?} was accepted, and is done again");
            assert_ne!(claim.task.policy.effect, Some(Effect::Once), "{piece:?} is done twice");
        }
        let line = serde_json::to_string(&(self.life, piece, &answer)).expect("it has a JSON form");
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).expect("it is ours");
        writeln!(file, "{line}").expect("there is room");
        answer
    }

    /// The answer to a task, if its work was done.
    pub(crate) fn answered(&self, task: &Task) -> Option<&Answer> {
        self.done.get(&Piece::of(task))
    }

    pub(crate) fn done(&self) -> &BTreeMap<Piece, Answer> {
        &self.done
    }
}

impl Piece {
    fn of(task: &Task) -> Self {
        let (step, facet) = (task.step_id.to_string(), task.name.to_string());
        Self { step, facet, attempt: outcomes(task).len() }
    }

    fn is_told(&self, tasks: &[Task]) -> bool {
        let of_step = |task: &&Task| task.step_id.as_str() == self.step;
        let task = tasks.iter().find(of_step).expect("a task is there before its work");
        // A step's script is followed by its event: what another piece follows was accepted.
        *task.name != self.facet || outcomes(task).len() > self.attempt
    }
}

/// The ends of attempts that the store took from those who did the work, or from a person in their stead.
pub(crate) fn outcomes(task: &Task) -> Vec<TaskEventType> {
    let system = Actor::System.to_string();
    let is_outcome = |event: &TaskEvent| match event.event_type {
        TaskEventType::Completed | TaskEventType::Error | TaskEventType::Requeued => event.actor != system,
        TaskEventType::Created
        | TaskEventType::Queued
        | TaskEventType::Leased
        | TaskEventType::Started
        | TaskEventType::Progress
        | TaskEventType::AwaitingResponse
        | TaskEventType::ResponseReceived
        | TaskEventType::Cancelled
        | TaskEventType::Retried
        | TaskEventType::Ignored => false,
    };
    task.events().into_iter().filter(is_outcome).map(|event| event.event_type).collect()
}
