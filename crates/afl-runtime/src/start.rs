//! Starts runs: one durable commit holds the run and all of its first evaluation that fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::attribute::BlobHash;
use afl_engine::evaluation::{Advance, Evaluation, InputError, Start};
use afl_engine::id::RunId;
use afl_engine::plan::Plan;
use afl_engine::run::RunStatus;
use afl_engine::value::{Map, Value};
use afl_lang::program::ProgramHash;
use afl_store::backend::Durability;
use afl_store::store::Reservation;

use crate::error::Error;
use crate::plans;
use crate::run_id;
use crate::serve::Wake;
use crate::service::Service;

/// How long an idempotency key may be.
pub const MAX_KEY_BYTES: usize = 256;

/// How often a start that met another one looks again.
const TRIES: usize = 16;

/// What to start.
#[derive(Clone, PartialEq, Debug)]
pub struct StartRequest {
    pub program: ProgramHash,
    /// By its whole or its short name; not needed when the program has one.
    pub workflow: Option<String>,
    pub inputs: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// Starting again with the same key gives the same run.
    pub idempotency_key: Option<String>,
}

impl StartRequest {
    pub fn new(program: ProgramHash) -> Self {
        let inputs = Map::new();
        Self { program, workflow: None, inputs, labels: BTreeMap::new(), idempotency_key: None }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Started {
    pub run: RunId,
    pub status: RunStatus,
    pub origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    New,
    /// The key was used before.
    Existing,
}

impl Service {
    /// Starts a run. When it returns, the run is durable, and evaluated to its first fixed point if one commit can
    /// hold that.
    pub async fn start(&self, request: StartRequest) -> Result<Started, Error> {
        let plan = self.plan(&request.program.to_string()).await?;
        let workflow = plans::workflow(&plan, request.workflow.as_deref())?;
        InputError::check_size(&workflow, &request.inputs)?;
        let digest = digest(&plan, &workflow, &request.inputs);
        for _ in 0..TRIES {
            if let Some(key) = &request.idempotency_key {
                check_key(key)?;
                if let Some(started) = self.reserved(key, &digest).await? {
                    return Ok(started);
                }
            }
            let now = self.store.now().await?;
            let id = run_id::fresh(now, &self.entropy);
            let start = Start {
                id: id.clone(),
                workflow: Arc::clone(&workflow),
                inputs: request.inputs.clone(),
                labels: request.labels.clone(),
                idempotency_key: request.idempotency_key.clone(),
            };
            let evaluation = Evaluation::start(Arc::clone(&plan), start, now, self.options)?;
            let reserve = |key| Reservation { key, run: id.clone(), digest: digest.clone() };
            let reservation = request.idempotency_key.clone().map(reserve);
            match self.first_evaluation(evaluation, reservation.as_ref()).await {
                Ok(status) => return Ok(Started { run: id, status, origin: Origin::New }),
                // Another start has the key, or the id: look again.
                Err(error) if error.is_conflict() => {}
                Err(error) if error.is_uncertain() => return self.started_after_all(&id, error).await,
                Err(error) => return Err(error),
            }
        }
        Err(Error::StartedByOthers { tries: TRIES })
    }

    /// Up to the fixed point. The first commit makes the run durable; what does not fit into it follows, and whoever
    /// finds the run after a crash goes on with it.
    async fn first_evaluation(
        &self,
        mut evaluation: Evaluation,
        reservation: Option<&Reservation>,
    ) -> Result<RunStatus, Error> {
        let now = evaluation.run().created;
        let advance = loop {
            match evaluation.advance(now) {
                Advance::Need(wants) => self.supply(&mut evaluation, &wants).await?,
                advance @ (Advance::Commit | Advance::Rest) => break advance,
            }
        };
        let changes = evaluation.take_changes().expect("a new run is a change");
        self.store.commit_start(&changes, reservation).await?;
        evaluation.committed();
        self.tell(&mut evaluation);
        if advance == Advance::Commit && self.is_driven() {
            // Two evaluators of one run would only be in each other's way.
            self.wake(Wake::Unfinished(Box::new(evaluation)));
            return Ok(RunStatus::Running);
        }
        if self.evaluate(&mut evaluation, now, Durability::Relaxed).await.is_err() {
            // The run is accepted, and what is left of its beginning is found by every driver.
            self.wake(Wake::Look);
            return Ok(RunStatus::Running);
        }
        let status = evaluation.run().status;
        self.wake(Wake::Evaluated(Box::new(evaluation)));
        Ok(status)
    }

    /// Nobody knows whether the start was committed; the store does.
    async fn started_after_all(&self, id: &RunId, error: Error) -> Result<Started, Error> {
        let Some(run) = self.store.run(id).await? else { return Err(error) };
        self.wake(Wake::Look);
        Ok(Started { run: id.clone(), status: run.item.status, origin: Origin::New })
    }

    async fn reserved(&self, key: &str, digest: &str) -> Result<Option<Started>, Error> {
        let Some(reservation) = self.store.reservation(key).await? else { return Ok(None) };
        if reservation.digest != digest {
            return Err(Error::KeyTaken { key: key.to_owned(), run: reservation.run });
        }
        let run = self.store.run(&reservation.run).await?;
        let status = run.map_or(RunStatus::Canceled, |run| run.item.status);
        Ok(Some(Started { run: reservation.run, status, origin: Origin::Existing }))
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    let bytes = key.len();
    if (1..=MAX_KEY_BYTES).contains(&bytes) {
        Ok(())
    } else {
        Err(Error::BadKey { bytes, limit: MAX_KEY_BYTES })
    }
}

fn digest(plan: &Plan, workflow: &Arc<str>, inputs: &Map<String, Value>) -> String {
    let inputs = serde_json::to_string(inputs).expect("inputs have a JSON form");
    BlobHash::of(&format!("{}\n{workflow}\n{inputs}", plan.version())).0
}
