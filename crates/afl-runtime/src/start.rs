//! Starts runs: one durable commit holds the run and all of its first evaluation that fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::attribute::BlobHash;
use afl_engine::evaluation::{Advance, Evaluation, InputError, Start};
use afl_engine::id::RunId;
use afl_engine::plan::Plan;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_lang::program::ProgramHash;
use afl_store::backend::Durability;
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::store::{Reservation, Terms};
use serde::Serialize;

use crate::error::{Contention, Error, InvalidRequest, StateRefusal};
use crate::plans;
use crate::run_id;
use crate::serve::Wake;
use crate::service::Service;

/// How long an idempotency key may be.
pub const MAX_KEY_BYTES: usize = 256;

/// The parameters of a start.
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

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StartResult {
    pub run: RunId,
    pub status: RunStatus,
    /// False when the key was used before.
    #[serde(rename = "new")]
    pub is_new: bool,
}

/// A request against the program it names.
pub(crate) struct PreparedStart {
    plan: Arc<Plan>,
    pub(crate) workflow: Arc<str>,
    /// The same key must ask for the same.
    digest: String,
}

impl Service {
    /// Starts a run. When it returns, the run is durable, and evaluated to its first fixed point if one commit can
    /// hold that.
    pub async fn start(&self, request: StartRequest) -> Result<StartResult, Error> {
        let prepared = self.prepare(&request).await?;
        // A conflict means that another start has the key, or the id.
        let attempt = || async {
            if let Some(started) = self.reserved(&request, &prepared).await? {
                return Ok(started);
            }
            let now = self.store.now().await?;
            let id = run_id::fresh(now, &self.entropy);
            let reservation = prepared.reservation(&request, &id);
            let terms = Terms { reservation: reservation.as_ref(), task: None };
            self.try_start(&prepared, &request, &id, terms, now).await
        };
        self.redo(Contention::Start { tries: CONFLICT_TRIES }, attempt).await
    }

    /// Starts the run that has this id, however often it is called. Its key may be reserved for it already.
    pub(crate) async fn start_as(&self, id: &RunId, request: &StartRequest) -> Result<StartResult, Error> {
        let attempt = || async {
            if let Some(run) = self.store.run(id).await? {
                let status = run.item.status;
                return Ok(StartResult { run: id.clone(), status, is_new: false });
            }
            let task = self.asked_by(id).await?;
            let prepared = self.prepare(request).await?;
            let mut reservation = prepared.reservation(request, id);
            if let Some(key) = &request.idempotency_key
                && let Some(reserved) = self.store.reservation(key).await?
            {
                match &reserved.run {
                    run if run == id => reservation = None,
                    _ => return self.already_started(reserved, &prepared).await,
                }
            }
            let now = self.store.now().await?;
            let terms = Terms { reservation: reservation.as_ref(), task: task.as_ref() };
            self.try_start(&prepared, request, id, terms, now).await
        };
        self.redo(Contention::Start { tries: CONFLICT_TRIES }, attempt).await
    }

    pub(crate) async fn prepare(&self, request: &StartRequest) -> Result<PreparedStart, Error> {
        if let Some(key) = &request.idempotency_key {
            check_key(key)?;
        }
        let plan = self.plan(&request.program.to_string()).await?;
        let workflow = plans::pick_workflow(&plan, request.workflow.as_deref())?;
        InputError::check_size(&workflow, &request.inputs).map_err(InvalidRequest::from)?;
        let digest = digest(&plan, &workflow, &request.inputs);
        Ok(PreparedStart { plan, workflow, digest })
    }

    async fn try_start(
        &self,
        prepared: &PreparedStart,
        request: &StartRequest,
        id: &RunId,
        terms: Terms<'_>,
        now: Millis,
    ) -> Result<StartResult, Error> {
        let start = Start {
            id: id.clone(),
            workflow: Arc::clone(&prepared.workflow),
            inputs: request.inputs.clone(),
            labels: request.labels.clone(),
            idempotency_key: request.idempotency_key.clone(),
            epoch: self.store.epoch(),
        };
        let evaluation = Evaluation::start(Arc::clone(&prepared.plan), start, now, self.options);
        let evaluation = evaluation.map_err(InvalidRequest::from)?;
        match self.first_evaluation(evaluation, terms).await {
            Ok(status) => Ok(StartResult { run: id.clone(), status, is_new: true }),
            Err(error) if error.is_uncertain() => self.started_after_all(id, error).await,
            Err(error) => Err(error),
        }
    }

    /// Up to the fixed point. The first commit makes the run durable; the rest of the evaluation follows. After a
    /// crash any driver continues it.
    async fn first_evaluation(
        &self,
        mut evaluator: Evaluation,
        terms: Terms<'_>,
    ) -> Result<RunStatus, Error> {
        let now = evaluator.run().created;
        let advance = loop {
            match evaluator.advance(now) {
                Advance::Need(wants) => self.supply(&mut evaluator, &wants).await?,
                advance @ (Advance::Commit | Advance::Rest) => break advance,
            }
        };
        let changes = evaluator.take_changes().expect("a new run is a change");
        self.store.commit(&changes, terms, Durability::Durable).await?;
        evaluator.committed();
        self.tell(&mut evaluator);
        if advance == Advance::Commit && self.is_driven_after_start() {
            // Two evaluators of one run would only be in each other's way.
            self.wake(Wake::Unfinished(Box::new(evaluator)));
            return Ok(RunStatus::Running);
        }
        if self.evaluate(&mut evaluator, now, Durability::Relaxed).await.is_err() {
            // The run is accepted, and every driver finds the rest of its first evaluation.
            self.wake(Wake::Look);
            return Ok(RunStatus::Running);
        }
        let status = evaluator.run().status;
        self.wake(Wake::Evaluated(Box::new(evaluator)));
        Ok(status)
    }

    /// The connection failed during the commit, so only the store knows whether it happened.
    async fn started_after_all(&self, id: &RunId, error: Error) -> Result<StartResult, Error> {
        let Some(run) = self.store.run(id).await? else { return Err(error) };
        self.wake(Wake::Look);
        Ok(StartResult { run: id.clone(), status: run.item.status, is_new: true })
    }

    pub(crate) async fn reserved(
        &self,
        request: &StartRequest,
        prepared: &PreparedStart,
    ) -> Result<Option<StartResult>, Error> {
        let Some(key) = &request.idempotency_key else { return Ok(None) };
        match self.store.reservation(key).await? {
            Some(reservation) => self.already_started(reservation, prepared).await.map(Some),
            None => Ok(None),
        }
    }

    async fn already_started(
        &self,
        reserved: Reservation,
        prepared: &PreparedStart,
    ) -> Result<StartResult, Error> {
        let Reservation { key, run, digest } = reserved;
        if digest != prepared.digest {
            return Err(StateRefusal::KeyTaken { key, run }.into());
        }
        let status = match self.store.run(&run).await? {
            Some(run) => run.item.status,
            None if self.is_handed_over(&run).await? => RunStatus::Running,
            None => RunStatus::Canceled,
        };
        Ok(StartResult { run, status, is_new: false })
    }
}

impl PreparedStart {
    pub(crate) fn reservation(&self, request: &StartRequest, run: &RunId) -> Option<Reservation> {
        let key = request.idempotency_key.clone()?;
        Some(Reservation { key, run: run.clone(), digest: self.digest.clone() })
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    let bytes = key.len();
    if key.chars().any(char::is_control) {
        return Err(InvalidRequest::KeyText.into());
    }
    if (1..=MAX_KEY_BYTES).contains(&bytes) {
        Ok(())
    } else {
        Err(InvalidRequest::Key { bytes, limit: MAX_KEY_BYTES }.into())
    }
}

fn digest(plan: &Plan, workflow: &Arc<str>, inputs: &Map<String, Value>) -> String {
    let inputs = serde_json::to_string(inputs).expect("inputs have a JSON form");
    BlobHash::of(&format!("{}\n{workflow}\n{inputs}", plan.version())).0
}
