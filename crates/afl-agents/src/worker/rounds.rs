//! The rounds of a worker: claim as much as there is room for, do it, and wait for more.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::watch::Watch;
use afl_runtime::{Backoff, Millis};
use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::attempt::{AttemptEnd, TaskAttempt};
use super::directory::Directory;
use super::events::{AttemptInfo, WorkerEvent};
use super::http::listen;
use super::item_lock::ItemLockResult;
use super::{Worker, WorkerError, WorkerPhase};
use crate::handler::{Handler, message_of};

/// Between claims, while the store is unavailable.
const CLAIM_BACKOFF: Backoff = Backoff::doubling(Millis(200), Millis(30_000));

impl Worker {
    /// Works until `until` is done; then finishes what it has begun, within the time that the shutdown may take, and
    /// gives the rest back. Drives all runs of the store meanwhile, unless this process does so already.
    pub async fn start(&self, until: impl Future<Output = ()> + Send) -> Result<(), WorkerError> {
        if std::mem::replace(&mut self.live().is_running, true) {
            return Err(WorkerError::Running);
        }
        self.phase.send_replace(WorkerPhase::Idle);
        // The futures of a worker are large, and live once. A bug must not leave a record that says `running`.
        let worked = AssertUnwindSafe(Box::pin(self.work(until))).catch_unwind().await;
        let worked =
            worked.unwrap_or_else(|panic| Err(WorkerError::Panicked(message_of(&*panic).to_owned())));
        self.live().http = None;
        if self.phase() != WorkerPhase::Idle {
            self.disappear(&worked).await;
        }
        self.live().is_running = false;
        worked
    }

    async fn work(&self, until: impl Future<Output = ()> + Send) -> Result<(), WorkerError> {
        self.refresh().await?;
        let listener = listen(&self.config).await?;
        let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        {
            let mut live = self.live();
            (live.http, live.started) = (address, Some(Instant::now()));
        }
        self.appear().await?;
        self.publish(|| WorkerEvent::Ready { names: self.registered_names(), http: self.http_address() });
        let (stop, stopped) = watch::channel(false);
        let driving = async {
            match self.service.health() {
                Some(_) => Ok(()),
                None => self.service.serve(ended(stopped.clone())).await.map_err(WorkerError::from),
            }
        };
        let rounds = async {
            self.rounds(until).await;
            stop.send_replace(true);
        };
        let others = async {
            let presence = self.keep_presence(ended(stopped.clone()));
            let fresh = self.keep_fresh(ended(stopped.clone()));
            let relay = self.keep_relaying(stopped.clone());
            tokio::join!(rounds, presence, fresh, relay, self.answer(listener, stopped.clone()));
            Ok(())
        };
        tokio::try_join!(others, driving).map(|((), ())| ())
    }

    /// One round, each task after the other, without anything in the background; says how many it did.
    pub async fn poll_once(&self) -> Result<usize, WorkerError> {
        self.refresh().await?;
        let mut done = 0;
        for _ in 0..self.config.max_concurrent {
            let Some((claim, ended)) = self.do_next().await? else { break };
            done += usize::from(ended.is_done());
            // The next round does the work that a system task creates.
            if !claim.task.workflow_id.is_run() {
                break;
            }
        }
        self.service.turn().await?;
        Ok(done)
    }

    /// The same for the one task that is the next; says how it ended, if there was one.
    pub async fn poll_one(&self) -> Result<Option<AttemptEnd>, WorkerError> {
        self.refresh().await?;
        let done = self.do_next().await?;
        self.service.turn().await?;
        Ok(done.map(|(_, ended)| ended))
    }

    /// The lease of a waiting task is not extended, so only a task that begins at once is claimed.
    async fn do_next(&self) -> Result<Option<(Claim, AttemptEnd)>, WorkerError> {
        let (_stop, never) = watch::channel(false);
        let granted = Instant::now();
        let Some((claim, handler)) = self.claim(1).await?.pop() else { return Ok(None) };
        let ended = self.attempt(&claim, &*handler, granted, never).await;
        Ok(Some((claim, ended)))
    }

    async fn rounds(&self, until: impl Future<Output = ()> + Send) {
        let (abort, aborted) = watch::channel(false);
        let mut attempts = JoinSet::new();
        let mut until = std::pin::pin!(until);
        let lists = self.config.task_lists.iter();
        let mut tasks: Vec<Watch> = lists.map(|list| self.service.watch_tasks(list)).collect();
        let mut room = self.service.watch_room();
        let mut handlers = self.directory.subscribe();
        let mut failures = 0;
        loop {
            while attempts.try_join_next().is_some() {}
            let free = self.config.max_concurrent - attempts.len();
            tokio::select! {
                biased;
                () = &mut until => break,
                Some(_) = attempts.join_next(), if free == 0 => continue,
                () = std::future::ready(()), if free > 0 => {}
            }
            let granted = Instant::now();
            let wait = match self.claim(free).await {
                Ok(claims) if claims.is_empty() => {
                    failures = 0;
                    Duration::from_millis(self.config.poll_interval_ms)
                }
                Ok(claims) => {
                    failures = 0;
                    for (claim, handler) in claims {
                        let (worker, aborted) = (self.clone(), aborted.clone());
                        attempts.spawn(async move {
                            worker.attempt(&claim, &*handler, granted, aborted).await;
                        });
                    }
                    continue;
                }
                // The driver reports an unavailable store.
                Err(_) => {
                    failures += 1;
                    CLAIM_BACKOFF.after(failures).as_duration()
                }
            };
            tokio::select! {
                () = &mut until => break,
                () = any_changed(&mut tasks) => {}
                () = any_changed(&mut room), if self.service.was_turned_away(&self.owner()) => {}
                Ok(()) = handlers.changed() => {}
                () = sleep(wait) => {}
            }
        }
        self.phase.send_replace(WorkerPhase::Draining);
        self.drain(attempts, &abort).await;
    }

    /// Lets the attempts finish, then aborts those that are left; they give their tasks back.
    async fn drain(&self, mut attempts: JoinSet<()>, abort: &watch::Sender<bool>) {
        let all = async { while attempts.join_next().await.is_some() {} };
        if timeout(Duration::from_millis(self.config.shutdown_timeout_ms), all).await.is_err() {
            self.phase.send_replace(WorkerPhase::Stopping);
            abort.send_replace(true);
            while attempts.join_next().await.is_some() {}
        }
    }

    pub(super) async fn attempt(
        &self,
        claim: &Claim,
        handler: &dyn Handler,
        granted: Instant,
        aborted: watch::Receiver<bool>,
    ) -> AttemptEnd {
        let lock = match self.lock_item(claim).await {
            Ok(ItemLockResult::Elsewhere { until }) => {
                // A task that is not given back comes back with the end of its lease.
                drop(self.service.put_off(&claim.ticket, until).await);
                return AttemptEnd::Locked;
            }
            Ok(lock @ (ItemLockResult::NotNeeded | ItemLockResult::Ours(_))) => lock,
            // The store is away, or the lock cannot be read: it is not tried again at once.
            Err(_) => {
                let poll = Millis(i64::try_from(self.config.poll_interval_ms).unwrap_or(i64::MAX));
                drop(self.service.put_off(&claim.ticket, claim.task.updated.plus(poll)).await);
                return AttemptEnd::GivenBack;
            }
        };
        self.publish(|| WorkerEvent::Began(AttemptInfo::of(claim)));
        self.live().counts.began(claim);
        let (attempt, context) = TaskAttempt::new(self, claim, handler, granted);
        let began = Instant::now();
        let ended = attempt.run(context, aborted, &lock).await;
        lock.release().await;
        self.live().counts.ended(claim, &ended);
        let took = began.elapsed();
        self.latencies.work.observe(took.as_secs_f64());
        self.publish(|| WorkerEvent::Ended { work: AttemptInfo::of(claim), ended: ended.clone(), took });
        ended
    }

    /// Claims only what there is a handler for; a task whose handler went meanwhile is given back.
    async fn claim(&self, max: usize) -> Result<Vec<(Claim, Arc<dyn Handler>)>, WorkerError> {
        let directory = Arc::new(self.directory.borrow().clone());
        self.claim_as(&directory, &self.request(directory.clone(), max)).await
    }

    pub(super) async fn claim_as(
        &self,
        directory: &Directory,
        request: &ClaimRequest,
    ) -> Result<Vec<(Claim, Arc<dyn Handler>)>, WorkerError> {
        let mut held = Vec::new();
        for claim in self.service.claim(request).await? {
            match directory.find(&claim.task.name) {
                Ok(handler) => held.push((claim, handler)),
                // A task that is not given back comes back with the end of its lease.
                Err(_) => drop(self.service.release(&claim.ticket).await),
            }
        }
        Ok(held)
    }

    pub(super) fn request(&self, directory: Arc<Directory>, max: usize) -> ClaimRequest {
        ClaimRequest {
            lists: self.config.task_lists.clone(),
            capabilities: self.config.capabilities.clone(),
            server: Some(self.config.server_name.clone()),
            max,
            lease: Millis(i64::try_from(self.config.lock_duration_ms).unwrap_or(i64::MAX)),
            ..ClaimRequest::new(
                FacetFilter::Which(Arc::new(move |name| Some(directory.find(name).ok()?.version()))),
                &self.owner(),
            )
        }
    }

    /// As people see who holds a task.
    fn owner(&self) -> String {
        format!("{}@{}/{}", self.config.service_name, self.config.server_name, &self.server_id[..8])
    }
}

/// A sender that is gone has ended too.
pub(super) async fn ended(mut stopped: watch::Receiver<bool>) {
    stopped.wait_for(|stop| *stop).await.map(drop).unwrap_or_default();
}

async fn any_changed(watches: &mut [Watch]) {
    select_all(watches.iter_mut().map(|watch| Box::pin(watch.changed()))).await;
}
