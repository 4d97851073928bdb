//! One claimed task: the worker runs its handler, extends the lease, stores the notes and settles the outcome.
//!
//! Problem: a worker must never settle a task, or continue it, once another worker may have its lease, although the
//! store may be slow or unavailable and the clocks of processes differ.
//!
//! Approach: the lease counts from the moment the claim or the extension was requested, by this process's monotonic
//! clock, and ends for the worker so early that its handler can be stopped within it. One `select!` extends the lease first, so that a handler that
//! floods its log cannot cost it. Every call to the store ends with the lease. An outcome is sent again until the store
//! accepts it or the lease is over; a repeated settlement changes nothing.
//!
//! Rejected: the store's clock for the end of the lease. A worker that cannot reach the store cannot read it.

use std::time::Duration;

use afl_runtime::Millis;
use afl_runtime::agent::{
    Claim, Effect, EventError, LogLevel, LogLine, LogStream, Refusal, SettleResult, WorkEvidence,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, sleep_until, timeout_at};

use super::item_lock::ItemLockResult;
use super::{STORE_BACKOFF, Worker};
use crate::handler::{
    Call, CallControl, CancelReason, Context, Facts, Handler, HandlerFailure, Notes, Outcome, perform,
};

/// How a claimed task left the worker's hands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttemptEnd {
    Completed,
    Failed {
        message: String,
        /// When it is tried again, if it is.
        again: Option<Millis>,
    },
    /// Undone, because the worker stops.
    GivenBack,
    /// Its lease is over: another worker may have the task, whatever the handler did.
    Lost,
    /// An operator canceled the task or its run.
    Canceled,
    /// Not begun: another runner has the lock of the item.
    Locked,
}

impl AttemptEnd {
    /// Whether this worker settled the task, so that no other has to do it.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Completed | Self::Failed { .. } | Self::Canceled => true,
            Self::GivenBack | Self::Lost | Self::Locked => false,
        }
    }
}

/// Why an attempt is stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HaltReason {
    Canceled(CancelReason),
    /// The lease is ours, but the lock of the item is not.
    Unlocked,
    /// The time of the attempt or of its step is over.
    TimedOut,
}

/// The end of an attempt's time, however many heartbeats it sends.
struct AttemptLimit {
    at: Instant,
    exceeded: String,
}

impl AttemptLimit {
    /// The attempt counts from `granted`. The step's time is over when the store says so, which is before now plus the rest
    /// of it.
    fn of(claim: &Claim, granted: Instant) -> Option<Self> {
        let policy = &claim.task.policy;
        let attempt = policy.attempt_timeout_ms.map(|timeout| Self {
            at: granted + timeout.min(FURTHEST).as_duration(),
            exceeded: format!("the attempt took more than its AttemptTimeout of {} ms", timeout.0),
        });
        let ends = claim.task.times_out.zip(claim.task.lease.as_ref());
        let step = ends.zip(policy.timeout_ms).map(|((at, lease), timeout)| Self {
            at: Instant::now() + at.since(lease.since).min(FURTHEST).as_duration(),
            exceeded: format!("the Timeout of {} ms of the step is over", timeout.0),
        });
        attempt.into_iter().chain(step).min_by_key(|limit| limit.at)
    }
}

/// Lines are stored when there are so many, or so old.
const LOG_LINES: usize = 100;
const LOG_AGE: Duration = Duration::from_secs(1);
/// The most log bytes that a store keeps of one attempt. Later lines are only counted, so no handler can fill it.
const LOG_MOST_BYTES: usize = 8 << 20;
/// More often than this no lease is extended, however little silence a policy allows.
const EXTEND_LEAST: Duration = Duration::from_millis(10);
/// A longer limit of an attempt is as good as none: its lease has ended long before.
const FURTHEST: Millis = Millis(10 * 365 * 24 * 3_600_000);

pub(super) struct TaskAttempt<'a> {
    worker: &'a Worker,
    claim: &'a Claim,
    handler: &'a dyn Handler,
    control: CallControl,
    /// By this process's monotonic clock, with a margin: after it another worker may have the task.
    ours_until: Instant,
    limit: Option<AttemptLimit>,
    lines: Vec<LogLine>,
    /// When the oldest line came.
    since: Option<Instant>,
    page: u64,
    logged_bytes: usize,
    /// Lines that came when the log was full.
    beyond: u64,
}

/// Whether a store that does not answer makes us wait.
enum StoreReply {
    Accepted,
    /// The task is no longer to be done.
    Stop(CancelReason),
    /// The store is away; the call may be repeated.
    Later,
}

impl<'a> TaskAttempt<'a> {
    /// `granted` is when the claim was asked for: the lease is never older than that.
    pub(super) fn new(
        worker: &'a Worker,
        claim: &'a Claim,
        handler: &'a dyn Handler,
        granted: Instant,
    ) -> (Self, Context) {
        let (context, control) = Context::new(Facts {
            lease_token: claim.ticket.token,
            idempotency_key: claim.idempotency_key(),
            attempt: claim.task.attempts + 1,
            answered: claim.task.claims.saturating_sub(claim.task.deliveries.into()),
            path: claim.task.path.clone(),
        });
        let attempt = Self {
            worker,
            claim,
            handler,
            control,
            ours_until: granted + worker.config.held_for(handler.kill_ladder()),
            limit: AttemptLimit::of(claim, granted),
            lines: Vec::new(),
            since: None,
            page: 0,
            logged_bytes: 0,
            beyond: 0,
        };
        (attempt, context)
    }

    /// Works until the task is settled or lost; `shutdown` turns true when the worker can wait no longer.
    pub(super) async fn run(
        mut self,
        context: Context,
        shutdown: watch::Receiver<bool>,
        lock: &ItemLockResult,
    ) -> AttemptEnd {
        let outcome = self.work(context, shutdown, lock).await;
        let notes = self.control.take_notes();
        self.note(notes).await;
        let ended = match outcome {
            Ok(outcome) => {
                let begun = Instant::now();
                let ended = self.settle(outcome).await;
                self.worker.latencies.settle.observe(begun.elapsed().as_secs_f64());
                ended
            }
            Err(ended) => ended,
        };
        if self.beyond > 0 {
            let limit = LOG_MOST_BYTES >> 20;
            let text = format!("{} more lines dropped: the log of one attempt has {limit} MB", self.beyond);
            self.lines.push(system(LogLevel::Warn, text));
        }
        self.flush().await;
        ended
    }

    /// An end instead of an outcome when the task is no longer ours.
    async fn work(
        &mut self,
        context: Context,
        mut shutdown: watch::Receiver<bool>,
        lock: &ItemLockResult,
    ) -> Result<Outcome, AttemptEnd> {
        let call = Call::new(&*self.claim.task.name, self.claim.payload.clone(), context);
        let call = call.of_run(&self.worker.service, &self.claim.task.workflow_id);
        let silence = self.claim.task.policy.heartbeat_ms.map(Millis::as_duration);
        let mut work = std::pin::pin!(perform(self.handler, call, self.handler.timeout(silence)));
        let mut unlocked = std::pin::pin!(lock.lost());
        let extend_every = extend_within(silence, self.worker.config.extend_every());
        let mut extensions = interval_at(Instant::now() + extend_every, extend_every);
        let control = self.control.clone();
        let ends_at = self.limit.as_ref().map(|limit| limit.at);
        let mut halt = None;
        loop {
            let flush_at = self.since.map(|since| since + LOG_AGE);
            // The lease first: a handler that prints all the time must not cost it.
            let halted = tokio::select! {
                biased;
                _ = extensions.tick() => while_ours(self.ours_until, self.extend()).await.map(HaltReason::Canceled),
                () = sleep_until(self.ours_until), if halt.is_none() => Some(HaltReason::Canceled(CancelReason::LeaseLost)),
                () = sleep_until(ends_at.unwrap_or(self.ours_until)), if halt.is_none() && ends_at.is_some() => Some(HaltReason::TimedOut),
                () = &mut unlocked, if halt.is_none() => Some(HaltReason::Unlocked),
                Ok(()) = shutdown.changed(), if halt.is_none() => Some(HaltReason::Canceled(CancelReason::Shutdown)),
                outcome = &mut work => {
                    return match halt {
                        Some(HaltReason::Canceled(CancelReason::LeaseLost)) => Err(AttemptEnd::Lost),
                        Some(HaltReason::Canceled(CancelReason::Requested)) => Err(AttemptEnd::Canceled),
                        Some(HaltReason::Canceled(CancelReason::Shutdown) | HaltReason::Unlocked) => self.give_back(outcome).await,
                        Some(HaltReason::TimedOut) => Ok(outcome.map_err(|failure| self.too_long(failure))),
                        None => Ok(outcome),
                    };
                }
                notes = control.notes() => {
                    while_ours(self.ours_until, self.note(notes)).await.map(HaltReason::Canceled)
                }
                () = sleep_until(flush_at.unwrap_or(self.ours_until)), if flush_at.is_some() => {
                    // Lines that are not stored by then are those of a lost attempt.
                    drop(timeout_at(self.ours_until, self.flush()).await);
                    None
                }
            };
            if let Some(reason) = halted {
                // The first reason stands.
                match halt.get_or_insert(reason) {
                    HaltReason::TimedOut => control.time_out(),
                    HaltReason::Canceled(reason) => control.cancel(*reason),
                    HaltReason::Unlocked => control.cancel(CancelReason::LeaseLost),
                }
            }
        }
    }

    /// The task is offered to others at once. Work that must happen at most once may have happened if it has begun, so
    /// it ends with the outcome of the stop, and a person decides.
    async fn give_back(&self, outcome: Outcome) -> Result<Outcome, AttemptEnd> {
        let is_undone = outcome.as_ref().is_err_and(|failure| failure.evidence == WorkEvidence::NotDone);
        match self.claim.task.policy.effect {
            Some(Effect::Once) if !is_undone => Ok(outcome),
            Some(Effect::Once | Effect::Idempotent | Effect::Pure) | None => {
                // A lease that is not given back ends by itself.
                drop(self.worker.service.release(&self.claim.ticket).await);
                Err(AttemptEnd::GivenBack)
            }
        }
    }

    fn too_long(&self, failure: HandlerFailure) -> HandlerFailure {
        let path = &self.claim.task.path;
        let message = self.limit.as_ref().map(|limit| {
            format!("{}: make the handler of {path} faster, or allow it more time", limit.exceeded)
        });
        HandlerFailure { message: message.unwrap_or(failure.message), ..failure }
    }

    /// Why to stop, if the task is no longer to be done.
    async fn extend(&mut self) -> Option<CancelReason> {
        let (asked, lease) = (Instant::now(), self.worker.config.lease());
        match reply(&self.worker.service.extend(&self.claim.ticket, lease.into()).await) {
            StoreReply::Accepted => {
                self.ours_until = asked + self.worker.config.held_for(self.handler.kill_ladder());
                None
            }
            StoreReply::Stop(reason) => Some(reason),
            // There are more tries before the lease ends.
            StoreReply::Later => None,
        }
    }

    async fn note(&mut self, notes: Notes) -> Option<CancelReason> {
        for line in notes.lines {
            self.push(line);
        }
        if notes.dropped_lines > 0 {
            let text =
                format!("{} lines dropped: they came faster than they could be stored", notes.dropped_lines);
            self.push(system(LogLevel::Warn, text));
        }
        if let Some(progress) = notes.progress {
            let fraction = progress.fraction.map(|done| format!("{:.0}% ", done * 100.0)).unwrap_or_default();
            self.push(system(LogLevel::Info, format!("{fraction}{}", progress.message)));
        }
        if !self.lines.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
        if self.lines.len() >= LOG_LINES {
            self.flush().await;
        }
        let partial = notes.update?;
        match reply(&self.worker.service.update(&self.claim.ticket, &partial).await) {
            StoreReply::Accepted => None,
            StoreReply::Stop(reason) => Some(reason),
            StoreReply::Later => {
                let text = "a part of the result could not be stored: the store is away".to_owned();
                self.push(system(LogLevel::Warn, text));
                None
            }
        }
    }

    /// A line, unless the log is full.
    fn push(&mut self, line: LogLine) {
        if self.logged_bytes >= LOG_MOST_BYTES {
            self.beyond += 1;
            return;
        }
        self.logged_bytes += line.text.len();
        self.lines.push(line);
    }

    async fn flush(&mut self) {
        self.since = None;
        if self.lines.is_empty() {
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        let answer = self.worker.service.log(&self.claim.ticket, self.page, lines.clone()).await;
        let mut taken = reply(&answer);
        if answer.is_err_and(is_too_large) {
            let text = format!("{} lines dropped: together they are too large to be stored", lines.len());
            lines = vec![system(LogLevel::Warn, text)];
            taken = reply(&self.worker.service.log(&self.claim.ticket, self.page, lines.clone()).await);
        }
        match taken {
            StoreReply::Accepted => self.page += 1,
            // Lines of a lost attempt have no place in the task's log.
            StoreReply::Stop(_) => {}
            StoreReply::Later => {
                self.lines = lines;
                self.since = Some(Instant::now());
            }
        }
    }

    /// Sends the outcome until the store accepts it, or until another worker may have the task.
    async fn settle(&mut self, outcome: Outcome) -> AttemptEnd {
        if let Err(failure) = &outcome {
            self.lines.extend(detail(failure));
        }
        let mut outcome = outcome;
        let mut failures = 0;
        loop {
            let answer = match &outcome {
                Ok(result) => self.worker.service.complete(&self.claim.ticket, result).await,
                Err(failure) => self.worker.service.fail(&self.claim.ticket, &error_of(failure)).await,
            };
            let again = match &answer {
                Err(refusal @ Refusal::TooLarge { .. }) => {
                    outcome = Err(HandlerFailure::invalid_result(refusal.to_string()));
                    continue;
                }
                Ok(SettleResult::Again { not_before }) => Some(*not_before),
                Ok(SettleResult::Arrived(_) | SettleResult::Repeated) | Err(_) => None,
            };
            match (reply(&answer), &outcome) {
                (StoreReply::Accepted, Ok(_)) => return AttemptEnd::Completed,
                (StoreReply::Accepted, Err(failure)) => {
                    return AttemptEnd::Failed { message: failure.message.clone(), again };
                }
                (StoreReply::Stop(CancelReason::Requested), _) => return AttemptEnd::Canceled,
                (StoreReply::Stop(CancelReason::LeaseLost | CancelReason::Shutdown), _) => {
                    return AttemptEnd::Lost;
                }
                (StoreReply::Later, _) => {
                    failures += 1;
                    let next = Instant::now() + STORE_BACKOFF.after(failures).as_duration();
                    if next >= self.ours_until {
                        return AttemptEnd::Lost;
                    }
                    sleep_until(next).await;
                }
            }
        }
    }
}

fn reply<T>(answer: &Result<T, Refusal>) -> StoreReply {
    match answer {
        // Only a handler's notes can be too large, and losing one does no harm.
        Ok(_) | Err(Refusal::TooLarge { .. }) => StoreReply::Accepted,
        Err(
            Refusal::LeaseLost { .. }
            | Refusal::Unknown { .. }
            | Refusal::TooEarly { .. }
            | Refusal::NotOpen { .. },
        ) => StoreReply::Stop(CancelReason::LeaseLost),
        Err(Refusal::Canceled { .. }) => StoreReply::Stop(CancelReason::Requested),
        Err(Refusal::Store(_)) => StoreReply::Later,
    }
}

/// Whether no store takes this page, whenever it is sent.
fn is_too_large(refusal: Refusal) -> bool {
    match refusal {
        Refusal::TooLarge { .. } => true,
        Refusal::Store(error) => {
            let error = afl_runtime::Error::from(error);
            !error.is_of_store() && !error.is_damage()
        }
        Refusal::LeaseLost { .. }
        | Refusal::Canceled { .. }
        | Refusal::Unknown { .. }
        | Refusal::TooEarly { .. }
        | Refusal::NotOpen { .. } => false,
    }
}

/// A store that does not answer must not keep a handler at work whose lease has ended.
async fn while_ours(
    ours_until: Instant,
    call: impl Future<Output = Option<CancelReason>>,
) -> Option<CancelReason> {
    timeout_at(ours_until, call).await.unwrap_or(Some(CancelReason::LeaseLost))
}

/// The janitor counts the silence that a policy allows from the last extension.
fn extend_within(silence: Option<Duration>, every: Duration) -> Duration {
    silence.map_or(every, |silence| every.min(silence / 3)).max(EXTEND_LEAST)
}

/// The failure for the step. The queue decides by its evidence whether the work may be repeated.
fn error_of(failure: &HandlerFailure) -> EventError {
    EventError::new(failure.error_type(), &failure.message).with_evidence(failure.evidence)
}

/// The log lines that lead a person to the cause.
fn detail(failure: &HandlerFailure) -> Vec<LogLine> {
    let text = |name: &str, value: &Value| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    let said = failure.details.iter().filter(|(_, value)| value.as_str() != Some(""));
    let details = said.map(|(name, value)| system(LogLevel::Error, text(name, value)));
    details.collect()
}

fn system(level: LogLevel, text: String) -> LogLine {
    LogLine { stream: LogStream::System, level, text }
}
