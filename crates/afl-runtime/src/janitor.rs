//! The janitor: expires leases, hands out retries that are due, and deletes records past their retention.
//!
//! Every process has one. Each checks for due work by itself, and a named lock decides which of them does it. The lock
//! lasts a few seconds, so another janitor takes over soon after its holder dies. Two at once are safe but cost twice.

use std::time::Duration;

use afl_engine::time::{Backoff, Millis};
use afl_store::lock::Hold;
use afl_store::server::PURGED_AFTER;
use afl_store::store::bucket;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::service::Service;

/// Its holder does the work that is due.
const LOCK: &str = "afl.janitor";
const HELD_FOR: Millis = Millis(5_000);
/// Lock of the maintenance that can wait. It is not released: all processes together do the work once in this time.
const MAINTENANCE_LOCK: &str = "afl.chores";
const MAINTENANCE_EVERY: Millis = Millis(60_000);

/// From one look to the next: at least, when nothing is due, and after something came that may be due soon.
const LEAST: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_secs(15);
const CLAIMED: Duration = Duration::from_secs(1);
/// When something is due, and this process cannot do it or another process does it.
const OVERDUE: Backoff = Backoff::doubling(Millis(250), Millis(15_000));
/// How long to leave a store alone that failed.
const BACKOFF: Duration = Duration::from_millis(500);

pub(crate) struct Janitor {
    service: Service,
    owner: String,
    /// The lock, and until when it is ours by the store's clock.
    hold: Option<(Hold, Millis)>,
    next_maintenance: Millis,
    /// How often in a row something was due that this process could not do.
    overdue: u32,
}

impl Janitor {
    pub(crate) fn new(service: Service) -> Self {
        let owner = service.fresh_id();
        Self { service, owner, hold: None, next_maintenance: Millis(0), overdue: 0 }
    }

    /// A round whenever something may be due. Claims of other processes are found by the slow rounds: they come by the
    /// thousand, and hearing of each would cost more than the claim.
    pub(crate) async fn run(mut self, claimed: &Notify, stop: &Notify) {
        let mut timers = self.service.store.watch(bucket::TIMERS);
        let mut due = Instant::now();
        loop {
            tokio::select! {
                () = stop.notified() => break,
                () = sleep_until(due) => due = Instant::now() + self.round().await.unwrap_or(BACKOFF),
                () = timers.changed() => due = due.min(Instant::now() + LEAST),
                () = claimed.notified() => due = due.min(Instant::now() + CLAIMED),
            }
        }
        // One that is not given back runs out.
        drop(self.release_lock().await);
    }

    /// Does the work that is due unless another process does it; returns the time until the next round.
    async fn round(&mut self) -> Result<Duration, Error> {
        let upkeep = self.service.queue.upkeep().await?;
        let mut next = upkeep.next;
        if upkeep.is_due() {
            if !self.acquire_lock(upkeep.now).await? {
                return Ok(OVERDUE.first.as_duration());
            }
            next = self.service.sweep_once().await?.next;
        }
        let now = self.service.store.now().await?;
        if now >= self.next_maintenance {
            self.next_maintenance = now.plus(MAINTENANCE_EVERY);
            self.do_maintenance(now).await?;
        }
        let wait = next.map(|next| u64::try_from(next.since(now).0));
        if next.is_none_or(|next| next <= now || next > now.plus(HELD_FOR)) {
            self.release_lock().await?;
        }
        self.overdue = if matches!(wait, Some(Err(_))) { self.overdue + 1 } else { 0 };
        Ok(match wait {
            None => IDLE,
            Some(Ok(wait)) => Duration::from_millis(wait).clamp(LEAST, IDLE),
            // It is due and was not done: perhaps another process can, one that reads newer records.
            Some(Err(_)) => OVERDUE.after(self.overdue).as_duration(),
        })
    }

    async fn acquire_lock(&mut self, now: Millis) -> Result<bool, Error> {
        let lasts = |until: &Millis| *until > now.plus(Millis(HELD_FOR.0 / 2));
        if self.hold.as_ref().is_some_and(|(_, until)| lasts(until)) {
            return Ok(true);
        }
        let acquired = self.service.locks().acquire(LOCK, &self.owner, HELD_FOR, Value::Null).await?;
        self.hold = acquired.map(|hold| (hold, now.plus(HELD_FOR)));
        Ok(self.hold.is_some())
    }

    async fn release_lock(&mut self) -> Result<(), Error> {
        if let Some((hold, _)) = self.hold.take() {
            self.service.locks().release(&hold).await?;
        }
        Ok(())
    }

    async fn do_maintenance(&self, now: Millis) -> Result<(), Error> {
        let locks = self.service.locks();
        if locks.acquire(MAINTENANCE_LOCK, &self.owner, MAINTENANCE_EVERY, Value::Null).await?.is_none() {
            return Ok(());
        }
        // It also returns tasks that were put aside while their run was held.
        self.service.sweep_once().await?;
        self.service.watch_over(now).await?;
        self.service.forget_servers(Millis(now.0.saturating_sub(PURGED_AFTER.0))).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use afl_store::backend::Durability;
    use afl_store::clock::{Clock, SimClock};
    use afl_store::entropy::Entropy;
    use afl_store::fault::{Fault, Faulty};
    use afl_store::memory::Memory;
    use afl_store::record::Tenant;
    use afl_store::server::Server;

    use super::*;
    use crate::StartRequest;
    use crate::agent::{Claim, ClaimRequest, FacetFilter};

    const LEASE: Millis = Millis(60_000);

    struct World {
        clock: SimClock,
        memory: Arc<Memory>,
    }

    impl World {
        fn new() -> Self {
            let clock = SimClock::new(Millis(1_800_000_000_000));
            let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())));
            Self { clock, memory }
        }

        /// The janitor of a process of its own, and its store as that process sees it.
        fn process(&self, seed: u64) -> (Janitor, Arc<Faulty>) {
            let store = Arc::new(Faulty::new(self.memory.clone(), |_| Fault::None));
            let tenant = Tenant::new(Tenant::LOCAL).expect("a good name");
            let service = Service::with_entropy(store.clone(), tenant, Entropy::seeded(seed));
            (Janitor::new(service), store)
        }

        /// A task whose holder says nothing until its lease is over.
        async fn silent(&self, service: &Service) -> Claim {
            let text = "event facet E()\nworkflow W() andThen { e = E() }";
            let program = crate::compile("w.afl", text).expect("it compiles");
            let hash = service.publish(&program).await.expect("it is stored");
            service.start(StartRequest::new(hash)).await.expect("it starts");
            let request = ClaimRequest { lease: LEASE, ..ClaimRequest::new(FacetFilter::All, "gone") };
            let claim = service.claim(&request).await.expect("the store answers").remove(0);
            self.clock.advance(LEASE.plus(Millis(1)));
            claim
        }
    }

    async fn is_free(service: &Service) -> bool {
        let request = ClaimRequest::new(FacetFilter::All, "next");
        !service.claim(&request).await.expect("the store answers").is_empty()
    }

    #[tokio::test]
    async fn one_janitor_sweeps_and_another_takes_over_when_it_dies() {
        let world = World::new();
        let ((mut first, _), (mut second, store)) = (world.process(1), world.process(2));
        world.silent(&first.service).await;
        // It dies right after it was elected.
        let now = world.clock.now();
        assert!(first.acquire_lock(now).await.expect("the store answers"));
        let wait = second.round().await.expect("the store answers");
        assert_eq!(wait, OVERDUE.first.as_duration());
        assert!(!is_free(&second.service).await, "the lock is not its own");
        assert_eq!(store.counts().writes(), 0, "who is not elected writes nothing");
        world.clock.advance(HELD_FOR);
        second.round().await.expect("the store answers");
        assert!(is_free(&second.service).await, "the time of the dead one is over");
        assert!(second.hold.is_none(), "nothing is due soon, so the next one need not wait");
    }

    #[tokio::test]
    async fn an_idle_round_is_two_looks_and_writes_nothing() {
        let world = World::new();
        let (mut janitor, store) = world.process(1);
        janitor.round().await.expect("the store answers");
        let before = store.counts();
        world.clock.advance(Millis(15_000));
        assert_eq!(janitor.round().await.expect("the store answers"), IDLE);
        let after = store.counts();
        // Two looks, and the time before and after.
        assert_eq!((after.writes() - before.writes(), after.calls - before.calls), (0, 4));
    }

    #[tokio::test]
    async fn chores_are_done_by_one_process_in_a_minute() {
        let world = World::new();
        let ((mut first, _), (mut second, store)) = (world.process(1), world.process(2));
        let servers = first.service.collection::<Server>();
        let fields = serde_json::json!({
            "uuid": "old", "server_group": "g", "service_name": "afl-agent", "server_name": "host",
            "ping_time": world.clock.now(),
        });
        let server: Server = serde_json::from_value(fields).expect("a server");
        servers.put("old", &server, None, Durability::Durable).await.expect("it is stored");
        first.round().await.expect("the store answers");
        second.round().await.expect("the store answers");
        assert_eq!(store.counts().writes(), 0, "the other did them");
        world.clock.advance(PURGED_AFTER);
        second.round().await.expect("the store answers");
        assert_eq!(servers.all().await.expect("the store answers").len(), 0);
        let writes = store.counts().writes();
        first.round().await.expect("the store answers");
        assert_eq!(store.counts().writes(), writes);
    }
}
