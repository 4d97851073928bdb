//! The store's clock: the time since the machine's boot, anchored in the file.
//!
//! Problem: all processes judge leases and durations by one clock. The wall clock can be set, and a step of an hour would
//! end the leases of living holders.
//!
//! Approach: the processes of a machine share the time since its boot (`CLOCK_BOOTTIME`), which counts sleep and which
//! nothing can set. The file holds how far the store's clock is ahead of it. The first process after another boot
//! anchors the clock to the wall clock, but never before the latest time of earlier boots. So the writer notes the
//! latest time once a second, in a transaction that it makes anyway.
//!
//! The same row counts changes of the boot as crashes: only the end of the machine takes relaxed commits back.
//!
//! A time namespace shifts the time since boot, so a process of another one is refused. Where the system tells no boot,
//! the wall clock is the store's clock.
//!
//! Rejected: `CLOCK_MONOTONIC`, which stands still while the machine sleeps. Rejected too: a clock that follows the wall
//! clock slowly, since processes would have to agree on its pace.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use afl_store::Millis;
use afl_store::backend::{ClockStatus, StoreError, TakeMoment};
use afl_store::clock::Clock;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::failure::explain;

/// How often the latest time is noted.
const NOTE_EVERY: Millis = Millis(1_000);

const FIND: &str = "SELECT boot, time_namespace, ahead_ms, latest_ms, crashes FROM clock";
const ANCHOR: &str = "INSERT OR REPLACE INTO clock VALUES (1, ?1, ?2, ?3, ?4, ?5)";
const NOTE: &str = "UPDATE clock SET latest_ms = ?1 WHERE latest_ms < ?1";

#[derive(Clone, Debug)]
pub(super) struct SqliteClock {
    /// For tests, or on a machine that tells no boot.
    other: Option<Clock>,
    ahead: Millis,
    crashes: u64,
}

/// The present boot of this machine, as this process sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct MachineBoot {
    id: String,
    time_namespace: String,
    elapsed: Millis,
}

/// The row of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct StoredClock {
    boot: String,
    time_namespace: String,
    ahead: Millis,
    latest: Millis,
    crashes: u64,
}

impl SqliteClock {
    /// Reads the clock of the file, and anchors it if this is another boot.
    pub(super) fn open(connection: &mut Connection, path: &Path, clock: Clock) -> Result<Self, StoreError> {
        let failed = |error| explain(path, &error);
        let boot = MachineBoot::read();
        let is_current = |stored: &StoredClock| boot.as_ref().is_none_or(|boot| stored.boot == boot.id);
        let stored = match find(connection).map_err(failed)?.filter(is_current) {
            Some(stored) => stored,
            None => anchor(connection, boot.as_ref()).map_err(failed)?,
        };
        if let Some(boot) = &boot
            && stored.time_namespace != boot.time_namespace
        {
            return Err(StoreError::Refused(format!(
                "the store {} is used in the time namespace {} of this machine, and this process is in {}: start it in \
                 the same time namespace",
                path.display(),
                stored.time_namespace,
                boot.time_namespace
            )));
        }
        let other = match clock {
            Clock::System if boot.is_some() => None,
            clock @ (Clock::System | Clock::Simulated(_)) => Some(clock),
        };
        Ok(Self { other, ahead: stored.ahead, crashes: stored.crashes })
    }

    pub(super) fn now(&self) -> Millis {
        match &self.other {
            Some(clock) => clock.now(),
            None => self.ahead.plus(elapsed().expect("the boot was read when the file was opened")),
        }
    }

    pub(super) fn status(&self) -> ClockStatus {
        let wall = self.other.clone().unwrap_or_default().now();
        ClockStatus { now: self.now(), wall, machine: wall, jump: self.other.as_ref().and_then(Clock::jump) }
    }

    pub(super) fn moment(&self) -> TakeMoment {
        TakeMoment { now: self.now(), crashes: self.crashes }
    }
}

/// Notes the latest time within the writer's transaction.
#[derive(Debug, Default)]
pub(super) struct LatestTime(Option<Millis>);

impl LatestTime {
    pub(super) fn note(&mut self, connection: &Connection, now: Millis) -> rusqlite::Result<()> {
        if self.0.is_none_or(|noted| now >= noted.plus(NOTE_EVERY)) {
            connection.prepare_cached(NOTE)?.execute([now.0])?;
            self.0 = Some(now);
        }
        Ok(())
    }
}

fn find(connection: &Connection) -> rusqlite::Result<Option<StoredClock>> {
    let stored = |row: &rusqlite::Row<'_>| {
        Ok(StoredClock {
            boot: row.get(0)?,
            time_namespace: row.get(1)?,
            ahead: Millis(row.get(2)?),
            latest: Millis(row.get(3)?),
            crashes: row.get(4)?,
        })
    };
    connection.query_row(FIND, [], stored).optional()
}

/// Durable before any process relies on it: a later boot must find the count.
fn anchor(connection: &mut Connection, boot: Option<&MachineBoot>) -> rusqlite::Result<StoredClock> {
    connection.pragma_update(None, "synchronous", "full")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let before = find(&transaction)?;
    let anchored = anchored(before.as_ref(), boot, Clock::System.now());
    if before.as_ref() != Some(&anchored) {
        let StoredClock { boot, time_namespace, ahead, latest, crashes } = &anchored;
        transaction.execute(ANCHOR, params![boot, time_namespace, ahead.0, latest.0, crashes])?;
    }
    transaction.commit()?;
    Ok(anchored)
}

fn anchored(before: Option<&StoredClock>, boot: Option<&MachineBoot>, wall: Millis) -> StoredClock {
    let unknown = MachineBoot { id: String::new(), time_namespace: String::new(), elapsed: Millis(0) };
    let boot = boot.unwrap_or(&unknown);
    if let Some(same) = before.filter(|before| before.boot == boot.id) {
        return same.clone();
    }
    let now = before.map_or(wall, |before| wall.max(before.latest.plus(NOTE_EVERY)));
    StoredClock {
        boot: boot.id.clone(),
        time_namespace: boot.time_namespace.clone(),
        ahead: now.since(boot.elapsed),
        latest: now,
        crashes: before.map_or(0, |before| before.crashes + 1),
    }
}

impl MachineBoot {
    /// None where the system does not tell.
    fn read() -> Option<Self> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        // Kernels without time namespaces have no such link.
        let link: io::Result<_> = fs::read_link("/proc/self/ns/time");
        let time_namespace = link.map(|link| link.display().to_string()).unwrap_or_default();
        Some(Self { id, time_namespace, elapsed: elapsed()? })
    }
}

/// The time since boot. The system call is made without the C library, whose clocks a wrapper can replace.
#[cfg(target_os = "linux")]
fn elapsed() -> Option<Millis> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).ok().map(Millis::from)
}

#[cfg(not(target_os = "linux"))]
fn elapsed() -> Option<Millis> {
    None
}
