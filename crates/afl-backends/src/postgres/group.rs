//! Writes the batches of a group in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_store::backend::{Batch, Durability, StoreError};
use afl_store::record::Key;
use afl_store::watch::Watchers;
use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Error;

use super::failure::{Failure, Outlook, outlook};
use super::lanes::Request;
use super::listen::Origin;
use super::plan::{Known, Plan};
use super::rows::{Keys, key};
use super::server::{ANSWER, SILENT, Server, Tries};
use super::stats::Counters;
use super::write::{BEGIN, COMMIT, Ending, Rows, and_tell, prepare};

/// The records of the group that are there, locked until the transaction ends.
const LOCK: &str = "
    SELECT r.tenant, r.scope, r.id, r.version
    FROM unnest($1::text[], $2::text[], $3::text[]) AS k(tenant, scope, id)
    JOIN afl.records r ON r.tenant = k.tenant AND r.scope = k.scope AND r.id = k.id
    ORDER BY r.tenant, r.scope, r.id
    FOR UPDATE OF r";

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
    /// Writes and answers.
    pub(super) async fn serve(&mut self, group: Vec<Request>) {
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
                let rows = Rows::new(&plan);
                let written = and_tell(rows.write(client, durability), rows.tell(client, &self.origin)).await;
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
        let rows = Rows::new(&plan);
        rows.write(client, durability).await?;
        let commit = client.batch_execute(COMMIT);
        let ending = Ending::of(and_tell(commit, rows.tell(client, &self.origin)).await);
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
        prepare(&client).await.map_err(|error| Failure::of(&self.server, &error))?;
        Ok(client)
    }

    fn unknown(&self, reason: &str) -> Failure {
        // Others hear of it from the server if it did happen, but our own notices we do not listen to.
        self.watchers.wake_all();
        let reason = format!("{reason}; whether the last commit happened is not known");
        Failure::unavailable(&self.server, reason)
    }
}

fn durability(batches: &[&Batch]) -> Durability {
    batches.iter().map(|batch| batch.durability).max().unwrap_or(Durability::Relaxed)
}

fn conflict(key: Key) -> StoreError {
    StoreError::Conflict { key }
}
