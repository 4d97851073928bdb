//! Programs, made ready for the evaluator once in a process.

use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "every start looks a plan up; a channel would make it wait")]
use std::sync::RwLock;
use std::sync::{Arc, PoisonError};

use afl_engine::id::RunId;
use afl_engine::plan::{FacetDeclaration, Plan};
use afl_engine::run::Run;
use afl_lang::Validation;
use afl_lang::program::{Emit, Program, ProgramHash, load};
use afl_lang::render::{self, Color};
use afl_lang::source::Sources;
use afl_lang::suggest::closest;
use afl_store::store;

use crate::error::{Corruption, Error, InvalidRequest, NotFound};
use crate::service::Service;

/// How many plans are kept; the first are dropped for the next.
const KEPT: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// Held for a look-up, never across an await. A plan is a function of its version, so a race is harmless.
    #[expect(clippy::disallowed_types, reason = "every start looks a plan up; a channel would make it wait")]
    by_version: RwLock<BTreeMap<String, CachedPlan>>,
}

#[derive(Debug)]
struct CachedPlan {
    plan: Arc<Plan>,
    /// Whether its program is known to be in the store.
    is_stored: bool,
}

impl Plans {
    fn get(&self, version: &str) -> Option<Arc<Plan>> {
        let plans = self.by_version.read().unwrap_or_else(PoisonError::into_inner);
        plans.get(version).map(|kept| Arc::clone(&kept.plan))
    }

    fn are_stored(&self, version: &str) -> bool {
        let plans = self.by_version.read().unwrap_or_else(PoisonError::into_inner);
        plans.get(version).is_some_and(|kept| kept.is_stored)
    }

    fn keep(&self, kept: CachedPlan) {
        let mut plans = self.by_version.write().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= KEPT {
            plans.pop_first();
        }
        plans.insert(kept.plan.version().to_owned(), kept);
    }
}

impl Service {
    /// Keeps a program for ever, by the hash of what it means; publishing it again changes nothing.
    pub async fn publish(&self, program: &Program) -> Result<ProgramHash, Error> {
        let hash = program.hash();
        let version = hash.to_string();
        if !self.plans.are_stored(&version) {
            let json = String::from_utf8(program.emit(Emit::WHOLE).to_vec()).expect("JSON is UTF-8");
            self.store.publish(store::ProgramRecord { hash: version, json }).await?;
            self.plans.keep(CachedPlan { plan: Arc::new(Plan::new(program)), is_stored: true });
        }
        Ok(hash)
    }

    /// Keeps a program at hand that was published before, or will be: no look-up is needed for its runs.
    pub fn cache_program(&self, program: &Program) {
        self.plans.keep(CachedPlan { plan: Arc::new(Plan::new(program)), is_stored: false });
    }

    pub async fn program(&self, version: &str) -> Result<Program, Error> {
        let stored = self.store.program(version).await?;
        let stored = stored.ok_or_else(|| NotFound::Program { version: version.to_owned() })?;
        let loaded = load(stored.json.as_bytes());
        Ok(loaded.map_err(|source| Corruption::Program { version: version.to_owned(), source })?)
    }

    /// The program of a run.
    pub(crate) async fn program_of(&self, run: &Run) -> Result<Program, Error> {
        self.program(&run.workflow_version).await.map_err(|error| lost_program(run, error))
    }

    /// The plan of a published program.
    pub async fn plan(&self, version: &str) -> Result<Arc<Plan>, Error> {
        if let Some(plan) = self.plans.get(version) {
            return Ok(plan);
        }
        let plan = Arc::new(Plan::new(&self.program(version).await?));
        self.plans.keep(CachedPlan { plan: Arc::clone(&plan), is_stored: true });
        Ok(plan)
    }

    /// A facet as a run's program declares it. A system task, such as a script, has no declaration.
    pub async fn declaration(&self, run: &RunId, facet: &str) -> Result<Option<FacetDeclaration>, Error> {
        if !run.is_run() {
            return Ok(None);
        }
        Ok(FacetDeclaration::new(self.planned(run).await?.1, facet))
    }

    /// A run with its plan.
    pub(crate) async fn planned(&self, id: &RunId) -> Result<(Run, Arc<Plan>), Error> {
        let run = self.existing(id).await?.item;
        let plan = self.plan_of(&run).await?;
        Ok((run, plan))
    }

    /// The plan of a run's program, in which its workflow is.
    pub async fn plan_of(&self, run: &Run) -> Result<Arc<Plan>, Error> {
        let plan = self.plan(&run.workflow_version).await.map_err(|error| lost_program(run, error))?;
        if plan.returns(&run.workflow).is_none() {
            let problem = format!("its program {} has no workflow `{}`", run.workflow_version, run.workflow);
            let (run, record) = (run.id.clone(), "run".to_owned());
            return Err(store::Error::Unreadable { run, record, defect: store::Defect::Body(problem) }.into());
        }
        Ok(plan)
    }
}

/// A program may be unknown to a caller; to a run that was started with it, it is lost.
fn lost_program(run: &Run, error: Error) -> Error {
    match error {
        Error::NotFound(NotFound::Program { version }) => {
            Corruption::MissingProgram { run: run.id.clone(), version }.into()
        }
        error => error,
    }
}

/// The workflow that a person means: the whole name, the part after the last dot, or the only one there is.
pub fn pick_workflow(plan: &Plan, given: Option<&str>) -> Result<Arc<str>, Error> {
    let names: Vec<&str> = plan.workflows().collect();
    let Some(given) = given else {
        return match names[..] {
            [only] => Ok(only.into()),
            _ => Err(InvalidRequest::WhichWorkflow(names.into_iter().map(str::to_owned).collect()).into()),
        };
    };
    let short = |name: &str| name.rsplit('.').next() == Some(given);
    let exact = names.iter().copied().find(|name| *name == given);
    let by_short: Vec<&str> = names.iter().copied().filter(|name| short(name)).collect();
    match (exact, &by_short[..]) {
        (Some(name), _) => Ok(name.into()),
        (None, [name]) => Ok((*name).into()),
        (None, []) => {
            let short_names = names.iter().filter_map(|name| name.rsplit('.').next());
            let closest = closest(given, names.iter().copied().chain(short_names)).map(str::to_owned);
            Err(NotFound::Workflow { given: given.to_owned(), closest }.into())
        }
        (None, several) => {
            Err(InvalidRequest::WhichWorkflow(several.iter().map(|name| (*name).to_owned()).collect()).into())
        }
    }
}

/// Compiles one text, for programs that bring their workflows along.
pub fn compile(name: &str, text: &str) -> Result<Program, NotCompiled> {
    let sources = Sources::one(name, text);
    let compiled = afl_lang::compile(&sources, Validation::Require);
    compiled.program.ok_or_else(|| NotCompiled(render::human(&sources, &compiled.diagnostics, Color::Plain)))
}

/// The diagnostics of a text, as people read them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the program has mistakes:\n{0}")]
pub struct NotCompiled(pub String);
