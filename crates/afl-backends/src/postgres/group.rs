//! Group commit: one task writes, and the batches that arrive while it does share the next transaction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use afl_store::backend::{Batch, Durability, StoreError};
use afl_store::record::Key;
use afl_store::watch::Watchers;
use deadpool_postgres::ClientWrapper;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Error;

use super::failure::{Failure, Outlook, outlook};
use super::listen::Origin;
use super::plan::{Known, Plan};
use super::rows::{Keys, key};
use super::server::{ANSWER, SILENT, Server, Tries};
use super::stats::Counters;
use super::write::{BEGIN, COMMIT, Ending, Rows, WRITE};

/// How many commits may wait for the writer before callers wait to hand theirs over.
pub(super) const QUEUE: usize = 1_024;
/// What one transaction carries, so that it stays short; a single batch may be larger.
const GROUP_BATCHES: usize = 256;
const GROUP_BYTES: usize = 8 << 20;

/// The records of the group that are there, locked until the transaction ends.
const LOCK: &str = "
    SELECT r.tenant, r.scope, r.id, r.version
    FROM unnest($1::text[], $2::text[], $3::text[]) AS k(tenant, scope, id)
    JOIN afl.records r ON r.tenant = k.tenant AND r.scope = k.scope AND r.id = k.id
    ORDER BY r.tenant, r.scope, r.id
    FOR UPDATE OF r";

#[derive(Debug)]
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) server: Server,
    pub(super) origin: Origin,
    pub(super) watchers: Arc<Watchers>,
    pub(super) counters: Arc<Counters>,
    pub(super) client: Option<ClientWrapper>,
}

/// How a group is written.
#[derive(Clone, Copy)]
enum Way {
    /// In one round trip, as if nobody else wrote the same records.
    AtOnce,
    /// After looking, with what is there locked, so that only the batches with a conflict fail.
    Carefully,
}

/// For each batch, the key that was not as expected.
type Verdicts = Vec<Result<(), Key>>;

impl Writer {
    /// Until nobody can send any more.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = Vec::new();
        while requests.recv_many(&mut waiting, GROUP_BATCHES).await > 0 {
            let mut waiting: VecDeque<Request> = waiting.drain(..).collect();
            while !waiting.is_empty() {
                self.serve(next_group(&mut waiting)).await;
            }
        }
    }

    async fn serve(&mut self, group: Vec<Request>) {
        let batches: Vec<&Batch> = group.iter().map(|request| &request.batch).collect();
        let results: Vec<Result<(), StoreError>> = match self.commit(&batches).await {
            Ok(verdicts) => verdicts.into_iter().map(|verdict| verdict.map_err(conflict)).collect(),
            // The other batches must not suffer for it.
            Err(failure) if failure.is_of_a_batch() && batches.len() > 1 => {
                let mut results = Vec::with_capacity(batches.len());
                for batch in &batches {
                    results.push(self.commit_alone(batch).await);
                }
                results
            }
            Err(failure) => batches.iter().map(|_| Err(failure.clone().into())).collect(),
        };
        for (request, result) in group.into_iter().zip(results) {
            // Whoever asked may have stopped waiting; the commit stands all the same.
            drop(request.reply.send(result));
        }
    }

    async fn commit_alone(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut verdicts = self.commit(&[batch]).await?;
        verdicts.pop().expect("one verdict for one batch").map_err(conflict)
    }

    async fn commit(&mut self, batches: &[&Batch]) -> Result<Verdicts, Failure> {
        let mut way = Way::AtOnce;
        let mut tries = Tries::default();
        loop {
            let client = self.connected().await?;
            let written = timeout(ANSWER, self.write(&client, batches, way)).await;
            let Ok((ending, verdicts)) = written else { return Err(self.unknown(SILENT)) };
            let error = match ending {
                Ending::Committed => {
                    self.client = Some(client);
                    return Ok(verdicts);
                }
                Ending::Unknown(error) => return Err(self.unknown(&error.to_string())),
                Ending::Undone(error) => error,
            };
            match (outlook(&error), way) {
                (Outlook::Contended, Way::AtOnce) => {
                    self.client = Some(client);
                    way = Way::Carefully;
                }
                // The connection goes, and with it the transaction.
                (Outlook::Contended, Way::Carefully) | (Outlook::Passing, _) if tries.again().await => {}
                (Outlook::Contended | Outlook::Passing | Outlook::Lasting, _) => {
                    return Err(Failure::of(&self.server, &error));
                }
            }
        }
    }

    async fn write(&self, client: &ClientWrapper, batches: &[&Batch], way: Way) -> (Ending, Verdicts) {
        match way {
            Way::AtOnce => {
                let plan = Plan::new(batches.iter().copied(), Known::Nothing);
                let durability = durability(batches);
                let written = Rows::new(&plan).write(client, durability, &self.origin).await;
                self.ended(Ending::of(written), plan, batches, durability)
            }
            Way::Carefully => match self.write_carefully(client, batches).await {
                Ok((ending, verdicts)) => (ending, verdicts),
                Err(error) => (Ending::Undone(error), Vec::new()),
            },
        }
    }

    /// An error is one before the commit: nothing was written.
    async fn write_carefully(
        &self,
        client: &ClientWrapper,
        batches: &[&Batch],
    ) -> Result<(Ending, Verdicts), Error> {
        let durability = durability(batches);
        let lock = client.prepare_cached(LOCK).await?;
        client.batch_execute(BEGIN).await?;
        let keys: Keys<'_> = batches.iter().flat_map(|batch| &batch.writes).map(|write| &write.key).collect();
        let mut versions = BTreeMap::new();
        for row in client.query(&lock, &keys.params()).await? {
            let version: i64 = row.try_get(3)?;
            versions.insert(key(&row, 0)?, version.cast_unsigned());
        }
        let plan = Plan::new(batches.iter().copied(), Known::Versions(&versions));
        Rows::new(&plan).write(client, durability, &self.origin).await?;
        let ending = Ending::of(client.batch_execute(COMMIT).await);
        Ok(self.ended(ending, plan, batches, durability))
    }

    /// Counts what was committed and wakes those who wait for it.
    fn ended(
        &self,
        ending: Ending,
        plan: Plan<'_>,
        batches: &[&Batch],
        durability: Durability,
    ) -> (Ending, Verdicts) {
        if let Ending::Committed = ending {
            for (tenant, place) in plan.places() {
                self.watchers.wake(tenant, place);
            }
            self.counters.transaction(durability);
            for (batch, verdict) in batches.iter().zip(&plan.verdicts) {
                match verdict {
                    Ok(()) => self.counters.commit(batch),
                    Err(_) => self.counters.conflicts.add(1),
                }
            }
        }
        (ending, plan.verdicts)
    }

    /// The connection of before when it lives, or a new one.
    async fn connected(&mut self) -> Result<ClientWrapper, Failure> {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            return Ok(client);
        }
        let client = self.server.connect().await?;
        client.prepare_cached(WRITE).await.map_err(|error| Failure::of(&self.server, &error))?;
        Ok(client)
    }

    fn unknown(&self, reason: &str) -> Failure {
        // Others hear of it from the server if it did happen, but our own notices we do not listen to.
        self.watchers.wake_all();
        let reason = format!("{reason}; whether the last commit happened is not known");
        Failure::unavailable(&self.server, reason)
    }
}

/// As many of the first requests as one transaction carries, and at least one.
fn next_group(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let mut group = Vec::new();
    let mut bytes = 0;
    while let Some(request) = waiting.front() {
        bytes += request.batch.bytes();
        if !group.is_empty() && bytes > GROUP_BYTES {
            break;
        }
        group.extend(waiting.pop_front());
    }
    group
}

fn durability(batches: &[&Batch]) -> Durability {
    batches.iter().map(|batch| batch.durability).max().unwrap_or(Durability::Relaxed)
}

fn conflict(key: Key) -> StoreError {
    StoreError::Conflict { key }
}
