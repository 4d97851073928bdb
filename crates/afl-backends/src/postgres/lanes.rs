//! Which commits share a transaction: durable ones wait for the disk together, and relaxed ones do not wait for them.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use afl_store::backend::{Batch, Durability, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::group::Writer;

/// How many commits may wait before callers wait to hand theirs over.
pub(super) const QUEUE: usize = 1_024;
/// What one transaction carries, so that it stays short; a single batch may be larger.
const GROUP_BATCHES: usize = 256;
const GROUP_BYTES: usize = 8 << 20;
/// A group after others of this many batches waits this long at most until it is as large: a transaction costs more than
/// a batch in it, and each durable one takes its turn at the disk.
const BUSY: usize = 4;
const GATHER: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<(), StoreError>>,
}

/// Two lanes. In each, one group is written while the next one gathers.
///
/// Commits of one record keep the order in which they came: they go in one lane while one of them is on its way.
#[derive(Debug)]
pub(super) struct Lanes {
    durable: Lane,
    relaxed: Lane,
    busy: JoinSet<(Side, Writer, Vec<u64>)>,
    held: Held,
    /// What has records in both lanes, and all that came after it, until the lanes are empty.
    late: VecDeque<Request>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Durable,
    Relaxed,
}

#[derive(Debug)]
struct Lane {
    waiting: VecDeque<Request>,
    /// Away while it writes.
    writer: Option<Writer>,
    /// How many batches its last groups had: so many callers come back about now. It falls slowly, else a group that
    /// was cut short would make the next ones small.
    crowd: usize,
    /// Until when a group waits for them.
    gathers_until: Option<Instant>,
}

impl Lane {
    fn new(writer: Writer) -> Self {
        Self { waiting: VecDeque::new(), writer: Some(writer), crowd: 0, gathers_until: None }
    }

    /// The next group and who writes it, if it is time for it.
    fn next(&mut self) -> Option<(Writer, Vec<Request>)> {
        if self.waiting.is_empty() || self.writer.is_none() || self.is_gathering() {
            return None;
        }
        let group = next_group(&mut self.waiting);
        self.crowd = group.len().max(self.crowd * 7 / 8);
        self.gathers_until = None;
        self.writer.take().map(|writer| (writer, group))
    }

    /// Whether more are likely to come in a moment. One caller alone never waits.
    fn is_gathering(&mut self) -> bool {
        if self.crowd < BUSY || self.waiting.len() >= self.crowd {
            return false;
        }
        let now = Instant::now();
        now < *self.gathers_until.get_or_insert(now + GATHER)
    }
}

impl Lanes {
    pub(super) fn new(durable: Writer, relaxed: Writer) -> Self {
        Self {
            durable: Lane::new(durable),
            relaxed: Lane::new(relaxed),
            busy: JoinSet::new(),
            held: Held::default(),
            late: VecDeque::new(),
        }
    }

    /// Until nobody can send any more and all is written.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut arrived = Vec::new();
        let mut is_open = true;
        while is_open || !self.is_empty() {
            let gathers_until = self.gathers_until();
            tokio::select! {
                count = requests.recv_many(&mut arrived, QUEUE), if is_open && self.has_room() => {
                    is_open = count > 0;
                    arrived.drain(..).for_each(|request| self.admit(request));
                }
                Some(ended) = self.busy.join_next() => self.ended(ended),
                () = gathered(gathers_until) => {}
            }
            self.start(Side::Durable);
            self.start(Side::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        self.busy.is_empty() && self.durable.waiting.is_empty() && self.relaxed.waiting.is_empty()
    }

    fn gathers_until(&self) -> Option<Instant> {
        [self.durable.gathers_until, self.relaxed.gathers_until].into_iter().flatten().min()
    }

    fn has_room(&self) -> bool {
        self.durable.waiting.len() + self.relaxed.waiting.len() + self.late.len() < QUEUE
    }

    fn admit(&mut self, request: Request) {
        let side = self.held.side(&request.batch);
        match side {
            Ok(side) if self.late.is_empty() => {
                self.held.add(&request.batch, side);
                self.lane(side).waiting.push_back(request);
            }
            Ok(_) | Err(BothSides) => self.late.push_back(request),
        }
    }

    fn start(&mut self, side: Side) {
        let Some((mut writer, group)) = self.lane(side).next() else { return };
        let keys = self.held.keys(group.iter().map(|request| &request.batch));
        self.busy.spawn(async move {
            writer.serve(group).await;
            (side, writer, keys)
        });
    }

    fn ended(&mut self, ended: Result<(Side, Writer, Vec<u64>), JoinError>) {
        let (side, writer, keys) =
            ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.lane(side).writer = Some(writer);
        self.held.remove(&keys);
        if self.held.is_empty() {
            for request in std::mem::take(&mut self.late) {
                self.admit(request);
            }
        }
    }

    fn lane(&mut self, side: Side) -> &mut Lane {
        match side {
            Side::Durable => &mut self.durable,
            Side::Relaxed => &mut self.relaxed,
        }
    }
}

async fn gathered(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

/// As many of the first requests as one transaction carries, and at least one.
fn next_group(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let mut group = Vec::new();
    let mut bytes = 0;
    while let Some(request) = waiting.front() {
        bytes += request.batch.bytes();
        if !group.is_empty() && (bytes > GROUP_BYTES || group.len() == GROUP_BATCHES) {
            break;
        }
        group.extend(waiting.pop_front());
    }
    group
}

/// In which lane the keys are that wait or are being written, by their hashes: two keys of one hash only wait for
/// each other.
#[derive(Debug, Default)]
struct Held {
    hasher: RandomState,
    sides: HashMap<u64, (Side, usize)>,
}

/// A batch has records in both lanes.
struct BothSides;

impl Held {
    /// Where its records are already, or else where a batch of its durability goes.
    fn side(&self, batch: &Batch) -> Result<Side, BothSides> {
        let mut sides = self.hashes(batch).filter_map(|hash| self.sides.get(&hash)).map(|(side, _)| *side);
        let Some(first) = sides.next() else {
            return Ok(match batch.durability {
                Durability::Durable => Side::Durable,
                Durability::Relaxed => Side::Relaxed,
            });
        };
        if sides.all(|side| side == first) { Ok(first) } else { Err(BothSides) }
    }

    fn add(&mut self, batch: &Batch, side: Side) {
        for write in &batch.writes {
            let hash = self.hasher.hash_one(&write.key);
            self.sides.entry(hash).or_insert((side, 0)).1 += 1;
        }
    }

    fn remove(&mut self, keys: &[u64]) {
        for key in keys {
            if let Some((_, count)) = self.sides.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    self.sides.remove(key);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    fn keys<'a>(&self, batches: impl Iterator<Item = &'a Batch>) -> Vec<u64> {
        batches.flat_map(|batch| self.hashes(batch)).collect()
    }

    fn hashes(&self, batch: &Batch) -> impl Iterator<Item = u64> {
        batch.writes.iter().map(|write| self.hasher.hash_one(&write.key))
    }
}
