//! Writes the batches of a group in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_store::backend::{Batch, Durability, Era, StoreError};
use afl_store::watch::Watchers;
use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;
use tokio_postgres::Error;

use super::eras::Eras;
use super::failure::{Failure, Outlook, outlook};
use super::lanes::Request;
use super::listen::Origin;
use super::plan::{Known, Plan, Verdicts};
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
    server: Server,
    eras: Eras,
    origin: Origin,
    watchers: Arc<Watchers>,
    counters: Arc<Counters>,
    line: Option<Line>,
}

/// A connection, and the era that began with it.
#[derive(Debug)]
struct Line {
    client: ClientWrapper,
    era: Era,
}

/// How a group is written.
#[derive(Clone, Copy)]
enum Way {
    /// In one round trip, as if nobody else wrote the same records.
    AtOnce,
    /// After looking, with what is there locked, so that only the batches with a conflict fail.
    Carefully,
}

impl Writer {
    /// Connected at once: what is read before it writes must not be older than its connection.
    pub(super) async fn connect(
        server: Server,
        eras: Eras,
        origin: Origin,
        watchers: Arc<Watchers>,
        counters: Arc<Counters>,
    ) -> Result<Self, Failure> {
        let line = Some(Line::open(&server, &eras).await?);
        Ok(Self { server, eras, origin, watchers, counters, line })
    }

    /// Writes and answers.
    pub(super) async fn serve(&mut self, group: Vec<Request>) {
        let batches: Vec<&Batch> = group.iter().map(|request| &request.batch).collect();
        let results: Vec<Result<(), StoreError>> = match self.commit(&batches).await {
            Ok(verdicts) => verdicts.into_iter().map(|verdict| verdict.map_err(StoreError::from)).collect(),
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
        Ok(verdicts.pop().expect("one verdict for one batch")?)
    }

    async fn commit(&mut self, batches: &[&Batch]) -> Result<Verdicts, Failure> {
        let mut way = Way::AtOnce;
        let mut tries = Tries::default();
        loop {
            let line = self.connected().await?;
            let written = timeout(ANSWER, self.write(&line, batches, way)).await;
            let Ok((ending, verdicts)) = written else { return Err(self.unknown(SILENT)) };
            let error = match ending {
                Ending::Committed => {
                    self.line = Some(line);
                    return Ok(verdicts);
                }
                Ending::Unknown(error) => return Err(self.unknown(&error.to_string())),
                Ending::Undone(error) => error,
            };
            match (outlook(&error), way) {
                (Outlook::Contended, Way::AtOnce) => {
                    self.line = Some(line);
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

    async fn write(&self, line: &Line, batches: &[&Batch], way: Way) -> (Ending, Verdicts) {
        let client = &line.client;
        match way {
            Way::AtOnce => {
                let plan = Plan::new(batches.iter().copied(), line.era, Known::Nothing);
                let durability = durability(batches);
                let rows = Rows::new(&plan);
                let written = and_tell(rows.write(client, durability), rows.tell(client, &self.origin)).await;
                self.ended(Ending::of(written), plan, batches, durability)
            }
            Way::Carefully => match self.write_carefully(line, batches).await {
                Ok((ending, verdicts)) => (ending, verdicts),
                Err(error) => (Ending::Undone(error), Vec::new()),
            },
        }
    }

    /// An error is one before the commit: nothing was written.
    async fn write_carefully(
        &self,
        Line { client, era }: &Line,
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
        let plan = Plan::new(batches.iter().copied(), *era, Known::Versions(&versions));
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
    async fn connected(&mut self) -> Result<Line, Failure> {
        match self.line.take().filter(|line| !line.client.is_closed()) {
            Some(line) => Ok(line),
            None => Line::open(&self.server, &self.eras).await,
        }
    }

    fn unknown(&self, reason: &str) -> Failure {
        // Others hear of it from the server if it did happen, but our own notices we do not listen to.
        self.watchers.wake_all();
        let reason = format!("{reason}; whether the last commit happened is not known");
        Failure::unavailable(&self.server, reason)
    }
}

impl Line {
    async fn open(server: &Server, eras: &Eras) -> Result<Self, Failure> {
        let client = server.connect().await?;
        let era = eras.begin();
        prepare(&client).await.map_err(|error| Failure::of(server, &error))?;
        Ok(Self { client, era })
    }
}

fn durability(batches: &[&Batch]) -> Durability {
    batches.iter().map(|batch| batch.durability).max().unwrap_or(Durability::Relaxed)
}
