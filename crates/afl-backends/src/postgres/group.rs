//! Group commit on PostgreSQL: writes the batches of a group in one transaction.
//!
//! Problem: batches of many callers share a transaction, but a conflict of one batch must fail that batch alone.
//!
//! Approach: the first try is optimistic. One statement writes all records, each on condition of its expected version, and
//! commits in the same round trip. If any condition fails, nothing is written and the group is tried again in the locking
//! way: read and lock all records, check each batch against the versions, then write the batches that pass. A group whose
//! transaction fails for another reason of one batch, such as an oversized value, is written batch by batch.
//!
//! A commit whose answer is lost may have happened. It is not tried again: the caller gets an error that says so.
//!
//! Rejected: locking always, which costs every group two more round trips.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_store::Epoch;
use afl_store::backend::{Batch, Durability, StoreError};
use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Error;

use super::commit_queues::CommitRequest;
use super::failure::{Outlook, PostgresFailure, outlook};
use super::plan::{GroupPlan, KnownVersions, Verdicts};
use super::rows::{Keys, key};
use super::server::{ANSWER, Connections, SILENT, Tries};
use super::write::{BEGIN, COMMIT, Rows, TransactionEnd, and_tell, prepare};

/// The records of the group that are there, locked until the transaction ends.
const LOCK: &str = "
    SELECT r.tenant, r.scope, r.id, r.version
    FROM unnest($1::text[], $2::text[], $3::text[]) AS k(tenant, scope, id)
    JOIN afl.records r ON r.tenant = k.tenant AND r.scope = k.scope AND r.id = k.id
    ORDER BY r.tenant, r.scope, r.id
    FOR UPDATE OF r";

#[derive(Debug)]
pub(super) struct GroupWriter {
    connections: Arc<Connections>,
    session: Option<WriteSession>,
}

/// A connection, and the epoch that began with it.
#[derive(Debug)]
struct WriteSession {
    client: ClientWrapper,
    epoch: Epoch,
}

#[derive(Clone, Copy)]
enum WriteStrategy {
    /// In one round trip, which fails if another process wrote one of the records.
    Optimistic,
    /// Reads and locks the records first, so that only the batches with a conflict fail.
    Locking,
}

impl GroupWriter {
    /// Connects at once, so that its epoch begins before the caller's first read.
    pub(super) async fn connect(connections: Arc<Connections>) -> Result<Self, PostgresFailure> {
        let session = Some(WriteSession::open(&connections).await?);
        Ok(Self { connections, session })
    }

    pub(super) async fn serve(&mut self, group: Vec<CommitRequest>) {
        let batches: Vec<&Batch> = group.iter().map(|request| &request.batch).collect();
        let results: Verdicts = match self.commit(&batches).await {
            Ok(verdicts) => verdicts,
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
            // The caller may have stopped waiting; the commit stands all the same.
            drop(request.reply.send(result));
        }
    }

    async fn commit_alone(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut verdicts = self.commit(&[batch]).await?;
        verdicts.pop().expect("one verdict for one batch")
    }

    async fn commit(&mut self, batches: &[&Batch]) -> Result<Verdicts, PostgresFailure> {
        let mut strategy = WriteStrategy::Optimistic;
        let mut tries = Tries::default();
        loop {
            let session = self.connected().await?;
            let written = timeout(ANSWER, self.write(&session, batches, strategy)).await;
            let Ok((ending, verdicts)) = written else { return Err(self.unknown(SILENT)) };
            let error = match ending {
                TransactionEnd::Committed => {
                    self.session = Some(session);
                    return Ok(verdicts);
                }
                TransactionEnd::Unknown(error) => return Err(self.unknown(&error.to_string())),
                TransactionEnd::Undone(error) => error,
            };
            match (outlook(&error), strategy) {
                (Outlook::Contended, WriteStrategy::Optimistic) => {
                    self.session = Some(session);
                    strategy = WriteStrategy::Locking;
                }
                // The connection goes, and with it the transaction.
                (Outlook::Contended, WriteStrategy::Locking) | (Outlook::Passing, _)
                    if tries.again().await => {}
                (Outlook::Contended | Outlook::Passing | Outlook::Lasting, _) => {
                    return Err(PostgresFailure::of(&self.connections.server, &error));
                }
            }
        }
    }

    async fn write(
        &self,
        session: &WriteSession,
        batches: &[&Batch],
        strategy: WriteStrategy,
    ) -> (TransactionEnd, Verdicts) {
        let client = &session.client;
        match strategy {
            WriteStrategy::Optimistic => {
                let plan = GroupPlan::new(batches.iter().copied(), session.epoch, KnownVersions::Nothing);
                let rows = Rows::new(&plan);
                let write = rows.write(client, durability(batches));
                let written = and_tell(write, rows.tell(client, &self.connections.origin)).await;
                self.ended(TransactionEnd::of(written), plan, batches)
            }
            WriteStrategy::Locking => match self.write_locking(session, batches).await {
                Ok((ending, verdicts)) => (ending, verdicts),
                Err(error) => (TransactionEnd::Undone(error), Vec::new()),
            },
        }
    }

    /// An error is one before the commit: nothing was written.
    async fn write_locking(
        &self,
        WriteSession { client, epoch }: &WriteSession,
        batches: &[&Batch],
    ) -> Result<(TransactionEnd, Verdicts), Error> {
        let lock = client.prepare_cached(LOCK).await?;
        client.batch_execute(BEGIN).await?;
        let keys: Keys<'_> = batches.iter().flat_map(|batch| &batch.writes).map(|write| &write.key).collect();
        let mut versions = BTreeMap::new();
        for row in client.query(&lock, &keys.params()).await? {
            let version: i64 = row.try_get(3)?;
            versions.insert(key(&row, 0)?, version.cast_unsigned());
        }
        let plan = GroupPlan::new(batches.iter().copied(), *epoch, KnownVersions::Versions(&versions));
        let rows = Rows::new(&plan);
        rows.write(client, durability(batches)).await?;
        let commit = client.batch_execute(COMMIT);
        let ending = TransactionEnd::of(and_tell(commit, rows.tell(client, &self.connections.origin)).await);
        Ok(self.ended(ending, plan, batches))
    }

    /// Counts the commits and wakes the watchers of their buckets.
    fn ended(
        &self,
        ending: TransactionEnd,
        plan: GroupPlan<'_>,
        batches: &[&Batch],
    ) -> (TransactionEnd, Verdicts) {
        if let TransactionEnd::Committed = ending {
            for (tenant, place) in plan.places() {
                self.connections.watchers.wake(tenant, place);
            }
            self.connections.counters.transaction(durability(batches));
            for (batch, verdict) in batches.iter().zip(&plan.verdicts) {
                match verdict {
                    Ok(()) => {
                        self.connections.counters.commits.add(1);
                        self.connections.counters.bytes.add(batch.bytes());
                        let is_durable = batch.durability == Durability::Durable;
                        self.connections.counters.durable_commits.add(usize::from(is_durable));
                    }
                    Err(_) => self.connections.counters.conflicts.add(1),
                }
            }
        }
        (ending, plan.verdicts)
    }

    /// The connection of before when it lives, or a new one.
    async fn connected(&mut self) -> Result<WriteSession, PostgresFailure> {
        match self.session.take().filter(|session| !session.client.is_closed()) {
            Some(session) => Ok(session),
            None => WriteSession::open(&self.connections).await,
        }
    }

    fn unknown(&self, reason: &str) -> PostgresFailure {
        // If the commit happened, the server notifies other processes, but this one ignores its own notices.
        self.connections.watchers.wake_all();
        let reason = format!("{reason}; whether the last commit happened is not known");
        PostgresFailure::unavailable(&self.connections.server, reason)
    }
}

impl WriteSession {
    async fn open(Connections { server, epochs, .. }: &Connections) -> Result<Self, PostgresFailure> {
        let client = server.connect().await?;
        let epoch = epochs.begin();
        prepare(&client).await.map_err(|error| PostgresFailure::of(server, &error))?;
        Ok(Self { client, epoch })
    }
}

fn durability(batches: &[&Batch]) -> Durability {
    batches.iter().map(|batch| batch.durability).max().unwrap_or(Durability::Relaxed)
}
