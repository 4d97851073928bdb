//! The task machine: the moves M1-M12 of a task (`docs/task-moves.md`), and the changes that each makes.
//!
//! Problem: agents, the janitor, operators and the evaluator all change tasks. A rule that one of them forgets
//! (the token grows with each claim, an ended task stays ended, each change has its history entry) shows up as a
//! corrupt run much later.
//!
//! Approach: `destination` is one match over (state, move) without a catch-all arm: a new state or a new move does
//! not compile until each of its pairs is decided. [`Task::apply`] checks the holder's ticket, asks `destination`,
//! makes the move's changes and writes the history entry; a refused move changes nothing. M1 is [`Task::pending`],
//! the only constructor. [`Task`] gives out its fields by `Deref` without `DerefMut`, so the compiler refuses an
//! assignment anywhere else.
//!
//! Rejected: a Rust type for each state. Records come from the store with the state as data, so every caller would
//! match on it again and could forget a pair. Rejected too: the queue deciding between retry and failure in here;
//! policies choose a move (`afl_store::queue`), the machine only says whether it is legal.
//!
//! The machine is pure: it works in place on a record at hand, reads nothing and copies no payload.

use std::sync::Arc;

use super::{Lease, QuestionId, Task, TaskKind, TaskRecord, TaskState, next_token};
use crate::event::{EventError, WorkEvidence};
use crate::history::{Actor, MoveKind};
use crate::time::Millis;

/// A move of a task, with the data that it needs.
#[derive(Debug)]
pub enum Move<'a> {
    /// M2: an agent claims the task for a handler, in a store that has crashed so often.
    Claim { lease: Lease, handler: &'a str, crashes: u64 },
    /// M3: the holder is alive and keeps its lease until then.
    Extend { expires: Millis },
    /// M4: the holder asks a question.
    Ask { question: &'a QuestionId, wait: QuestionWait },
    /// M5: the question has its answer, and the holder waits for it.
    Answer { question: &'a QuestionId },
    /// M6: the question has its answer, and the holder has parked the task.
    AnswerParked { question: &'a QuestionId },
    /// M7: the work is done.
    Complete,
    /// M8: the work failed for good.
    Fail { error: &'a EventError, source: FailureSource },
    /// M9: another claim is to do the work.
    Requeue(Requeue<'a>),
    /// M10: the work is not wanted any more. `error` is for the step, which fails with it.
    Cancel { cause: &'a str, error: Option<&'a EventError> },
    /// M11: ended work is to be done again, by `server` if that claims it in time, or by a timer that `fires`.
    Retry { server: Option<Arc<str>>, turn: Option<Millis>, fires: Option<Millis> },
    /// M12: the step continues without the work.
    Ignore,
    /// M7 or M8 on ended work: a person gives it another outcome. It is M11 and the outcome in one move, so that no
    /// agent can claim the task in between.
    Amend(Result<(), &'a EventError>),
}

/// How the holder waits for the answer to its question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuestionWait {
    /// It keeps the lease and extends it.
    Hold,
    /// It ends the lease. The answer goes to a claim of this server first.
    Park { server: Option<Arc<str>> },
}

/// The part that found the failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureSource {
    /// The attempt failed or timed out, and the policy allows no other.
    Attempt,
    /// The lease ended, and the work must not be claimed again.
    LostLease,
    /// The time of the step is over, whatever the holder does.
    Deadline,
    /// An operator says so, whatever the holder does.
    Operator,
}

/// Why a task goes back to its queue.
#[derive(Clone, Copy, Debug)]
pub enum Requeue<'a> {
    /// The holder gives it back undone.
    Release { not_before: Option<Millis> },
    /// The attempt failed or timed out, and the policy allows another.
    NextAttempt { error: &'a str, not_before: Option<Millis> },
    /// The lease ended.
    LostLease { error: &'a str },
    /// The queue takes its own claim back before an agent has seen it.
    Unclaim { cause: &'a str },
}

/// The right by which a move is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Authority<'a> {
    /// The holder's ticket, which must be the current one.
    Holder { token: u64, secret: &'a str },
    /// The queue, the evaluator or a person.
    Actor(&'a Actor),
}

/// The validity of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TicketStatus {
    /// Its holder has the task.
    Current,
    /// Its holder has ended its attempt, and no claim came after it.
    Spent,
    /// Another claim, an operator or the janitor has ended its lease.
    Lost,
}

/// A move that a task may not make. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the task of `{path}` is {state}, so it cannot be {}{reason}", attempted.participle())]
pub struct MoveRefusal {
    pub path: String,
    pub state: TaskState,
    pub attempted: MoveKind,
    pub reason: RefusalReason,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RefusalReason {
    /// No task of that state makes that move.
    #[error("")]
    Illegal,
    /// Only the holder makes that move, or only others do.
    #[error(" by this caller")]
    OtherCaller,
    /// Never [`TicketStatus::Current`].
    #[error(" with a ticket that is not the current one")]
    Ticket(TicketStatus),
    #[error(" for a question that it did not ask")]
    OtherQuestion,
}

impl Task {
    /// Makes a move, with its history entry.
    pub fn apply(&mut self, what: Move<'_>, by: Authority<'_>, now: Millis) -> Result<(), MoveRefusal> {
        let attempted = what.kind();
        let state = self.permitted(&what, by).map_err(|reason| MoveRefusal {
            path: self.path.clone(),
            state: self.state,
            attempted,
            reason,
        })?;
        let actor = match by {
            Authority::Holder { .. } => self.holder().to_string(),
            Authority::Actor(actor) => actor.to_string(),
        };
        let task = &mut self.0;
        let cause = task.change(what, by, now);
        task.state = state;
        task.updated = now;
        if state != TaskState::AwaitingResponse {
            task.question = None;
        }
        task.history.note(attempted, now.since(task.created), actor, cause);
        Ok(())
    }

    /// The time of a retry has come: claims may take it. No move, because it was pending before.
    pub fn make_due(&mut self) {
        self.0.not_before = None;
    }

    pub fn ticket_status(&self, token: u64, secret: &str) -> TicketStatus {
        let is_last = self.token == token && self.lease.as_ref().is_some_and(|lease| lease.secret == secret);
        if !is_last {
            return TicketStatus::Lost;
        }
        match self.state {
            TaskState::Running | TaskState::AwaitingResponse => TicketStatus::Current,
            TaskState::Pending | TaskState::Completed | TaskState::Failed | TaskState::Ignored => {
                TicketStatus::Spent
            }
            TaskState::Canceled => TicketStatus::Lost,
        }
    }

    /// The state that the move leads to.
    fn permitted(&self, what: &Move<'_>, by: Authority<'_>) -> Result<TaskState, RefusalReason> {
        if let Authority::Holder { token, secret } = by
            && let status @ (TicketStatus::Spent | TicketStatus::Lost) = self.ticket_status(token, secret)
        {
            return Err(RefusalReason::Ticket(status));
        }
        if !what.may_be_made(by) {
            return Err(RefusalReason::OtherCaller);
        }
        let to = self.destination(what, by).ok_or(RefusalReason::Illegal)?;
        if let Move::Answer { question } | Move::AnswerParked { question } = what
            && self.question.as_ref() != Some(*question)
        {
            return Err(RefusalReason::OtherQuestion);
        }
        Ok(to)
    }

    /// The table of all pairs.
    #[expect(clippy::match_same_arms, reason = "each arm is one row of the table in docs/task-moves.md")]
    fn destination(&self, what: &Move<'_>, by: Authority<'_>) -> Option<TaskState> {
        use TaskState as S;
        let has_lease = self.lease.is_some();
        let is_holder = matches!(by, Authority::Holder { .. });
        match (self.state, what) {
            (S::Pending, Move::Claim { .. }) => Some(S::Running), // M2
            (S::Running, Move::Extend { .. }) => Some(S::Running), // M3
            (S::AwaitingResponse, Move::Extend { .. }) => Some(S::AwaitingResponse), // M3
            (S::Running, Move::Ask { .. }) => Some(S::AwaitingResponse), // M4
            (S::AwaitingResponse, Move::Answer { .. }) => has_lease.then_some(S::Running), // M5
            (S::AwaitingResponse, Move::AnswerParked { .. }) => (!has_lease).then_some(S::Pending), // M6
            (S::Running, Move::Complete) => Some(S::Completed),   // M7
            (S::Pending | S::AwaitingResponse, Move::Complete) => (!is_holder).then_some(S::Completed), // M7
            (S::Running | S::AwaitingResponse, Move::Fail { .. }) => Some(S::Failed), // M8
            (S::Pending, Move::Fail { source: FailureSource::Deadline | FailureSource::Operator, .. }) => {
                Some(S::Failed) // M8
            }
            (S::Running, Move::Requeue(_)) => Some(S::Pending), // M9
            (S::AwaitingResponse, Move::Requeue(_)) => has_lease.then_some(S::Pending), // M9
            (S::Pending | S::Running | S::AwaitingResponse, Move::Cancel { .. }) => Some(S::Canceled), // M10
            (S::Failed | S::Canceled | S::Ignored, Move::Retry { .. }) => Some(S::Pending), // M11
            // M11: only a step can refuse the result of completed work.
            (S::Completed, Move::Retry { .. }) => (self.kind() == TaskKind::Event).then_some(S::Pending),
            (S::Pending, Move::Ignore) => Some(S::Ignored), // M12
            (S::Completed | S::Failed | S::Ignored | S::Canceled, Move::Amend(Ok(()))) => Some(S::Completed),
            (S::Completed | S::Failed | S::Ignored | S::Canceled, Move::Amend(Err(_))) => Some(S::Failed),
            (
                S::Pending,
                Move::Extend { .. }
                | Move::Ask { .. }
                | Move::Answer { .. }
                | Move::AnswerParked { .. }
                | Move::Fail { source: FailureSource::Attempt | FailureSource::LostLease, .. }
                | Move::Requeue(_)
                | Move::Retry { .. }
                | Move::Amend(_),
            )
            | (
                S::Running,
                Move::Claim { .. }
                | Move::Answer { .. }
                | Move::AnswerParked { .. }
                | Move::Retry { .. }
                | Move::Ignore
                | Move::Amend(_),
            )
            | (
                S::AwaitingResponse,
                Move::Claim { .. } | Move::Ask { .. } | Move::Retry { .. } | Move::Ignore | Move::Amend(_),
            )
            | (
                S::Completed | S::Failed | S::Ignored | S::Canceled,
                Move::Claim { .. }
                | Move::Extend { .. }
                | Move::Ask { .. }
                | Move::Answer { .. }
                | Move::AnswerParked { .. }
                | Move::Complete
                | Move::Fail { .. }
                | Move::Requeue(_)
                | Move::Cancel { .. }
                | Move::Ignore,
            ) => None,
        }
    }
}

impl TaskRecord {
    /// Makes all changes of a move but state and history; returns the cause for the history.
    fn change<'m>(&mut self, what: Move<'m>, by: Authority<'_>, now: Millis) -> &'m str {
        match what {
            Move::Claim { lease, handler, crashes } => {
                self.token = next_token(self.token, crashes);
                // Counted now and not at the end: a worker that dies reports nothing.
                (self.claims, self.deliveries) = (self.claims + 1, self.deliveries + 1);
                self.started = self.started.or(Some(now));
                self.desired_server = None;
                self.lease = Some(lease);
                handler
            }
            Move::Extend { expires } => {
                let lease = self.lease.as_mut().expect("a ticket is current only with a lease");
                (lease.expires, lease.heartbeat) = (expires, now);
                ""
            }
            Move::Ask { question, wait } => {
                if let QuestionWait::Park { server } = wait {
                    self.deliveries = self.deliveries.saturating_sub(1);
                    self.desired_server = server;
                    self.lease = None;
                }
                self.question = Some(question.clone());
                &question.0
            }
            Move::Answer { question } | Move::AnswerParked { question } => &question.0,
            Move::Complete => {
                self.end(now);
                // A holder's lease stays: it names the agent, and recognizes a holder that repeats itself.
                if let Authority::Actor(_) = by {
                    self.lease = None;
                }
                ""
            }
            Move::Fail { error, source } => {
                match source {
                    FailureSource::Attempt => self.attempts += 1,
                    FailureSource::LostLease => {}
                    FailureSource::Deadline | FailureSource::Operator => self.lease = None,
                }
                self.end(now);
                self.blame(error)
            }
            Move::Requeue(requeue) => self.requeue(requeue),
            Move::Cancel { cause, error } => {
                self.end(now);
                self.lease = None;
                if let Some(error) = error {
                    self.blame(error);
                }
                cause
            }
            Move::Retry { server, turn, fires } => {
                self.reset();
                (self.desired_server, self.turn, self.not_before) = (server, turn.or(self.turn), fires);
                self.times_out = self.policy.timeout_ms.map(|timeout| now.plus(timeout));
                ""
            }
            Move::Ignore => {
                self.end(now);
                self.lease = None;
                ""
            }
            Move::Amend(outcome) => {
                self.reset();
                self.end(now);
                outcome.err().map_or("", |error| self.blame(error))
            }
        }
    }

    fn requeue<'m>(&mut self, requeue: Requeue<'m>) -> &'m str {
        match requeue {
            Requeue::Release { not_before } => {
                self.deliveries = self.deliveries.saturating_sub(1);
                self.not_before = not_before;
                "given back"
            }
            Requeue::NextAttempt { error, not_before } => {
                self.attempts += 1;
                // Lost deliveries count for one attempt. The lease stays, to recognize a holder that repeats itself.
                self.deliveries = 0;
                self.not_before = not_before;
                self.error = Some(error.to_owned());
                error
            }
            Requeue::LostLease { error } => {
                self.lease = None;
                self.error = Some(error.to_owned());
                error
            }
            Requeue::Unclaim { cause } => {
                self.deliveries = self.deliveries.saturating_sub(1);
                self.lease = None;
                cause
            }
        }
    }

    fn end(&mut self, now: Millis) {
        self.not_before = None;
        self.ended = Some(now);
    }

    fn blame<'m>(&mut self, error: &'m EventError) -> &'m str {
        self.error = Some(error.message.clone());
        self.error_kind = Some(error.kind.clone());
        self.evidence = error.evidence;
        &error.message
    }

    /// As after its creation; only token and claims continue. It names every field, so a new field does not compile until
    /// a retry resets or keeps it.
    fn reset(&mut self) {
        let Self {
            deliveries,
            attempts,
            not_before,
            desired_server,
            lease,
            error,
            error_kind,
            evidence,
            ended,
            step_id: _,
            workflow_id: _,
            name: _,
            path: _,
            state: _,
            task_list_name: _,
            created: _,
            turn: _,
            updated: _,
            policy: _,
            times_out: _,
            token: _,
            claims: _,
            question: _,
            started: _,
            history: _,
        } = self;
        (*deliveries, *attempts) = (0, 0);
        (*not_before, *ended) = (None, None);
        (*desired_server, *lease) = (None, None);
        (*error, *error_kind, *evidence) = (None, None, WorkEvidence::default());
    }
}

impl Move<'_> {
    pub fn kind(&self) -> MoveKind {
        match self {
            Self::Claim { .. } => MoveKind::Claim,
            Self::Extend { .. } => MoveKind::Extend,
            Self::Ask { .. } => MoveKind::Ask,
            Self::Answer { .. } => MoveKind::Answer,
            Self::AnswerParked { .. } => MoveKind::AnswerParked,
            Self::Complete | Self::Amend(Ok(())) => MoveKind::Complete,
            Self::Fail { .. } | Self::Amend(Err(_)) => MoveKind::Fail,
            Self::Requeue(_) => MoveKind::Requeue,
            Self::Cancel { .. } => MoveKind::Cancel,
            Self::Retry { .. } => MoveKind::Retry,
            Self::Ignore => MoveKind::Ignore,
        }
    }

    fn may_be_made(&self, by: Authority<'_>) -> bool {
        let is_holder = matches!(by, Authority::Holder { .. });
        match self {
            Self::Extend { .. } | Self::Ask { .. } | Self::Requeue(Requeue::Release { .. }) => is_holder,
            Self::Complete
            | Self::Fail { source: FailureSource::Attempt, .. }
            | Self::Requeue(Requeue::NextAttempt { .. })
            | Self::Cancel { .. } => true,
            Self::Claim { .. }
            | Self::Answer { .. }
            | Self::AnswerParked { .. }
            | Self::Fail {
                source: FailureSource::LostLease | FailureSource::Deadline | FailureSource::Operator,
                ..
            }
            | Self::Requeue(Requeue::LostLease { .. } | Requeue::Unclaim { .. })
            | Self::Retry { .. }
            | Self::Ignore
            | Self::Amend(_) => !is_holder,
        }
    }
}

#[cfg(test)]
mod tests;
