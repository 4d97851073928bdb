//! The beginning of a run: its inputs are checked, its root step is made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use afl_lang::program::Parameter;
use afl_lang::suggest::closest;
use afl_lang::types::TypeRef;

use super::{Evaluation, Options};
use crate::attribute::Attribute;
use crate::eval::{EvalError, NoScope, eval};
use crate::id::{RunId, StepId};
use crate::plan::{Node, Plan};
use crate::run::{Control, Counts, Run, RunStatus};
use crate::time::Millis;
use crate::types::{Misfit, Schemas, as_declared, fits};
use crate::value::{self, Map, Oversize, Value};
use crate::version::Epoch;

/// The parameters of a new run.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    pub id: RunId,
    /// The qualified name of a workflow of the plan.
    pub workflow: Arc<str>,
    pub inputs: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    pub idempotency_key: Option<String>,
    /// That of the store, before anything was read for the start.
    pub epoch: Epoch,
}

/// All that is wrong with the inputs of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct InputError {
    pub workflow: Arc<str>,
    pub problems: Vec<InputProblem>,
}

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum InputProblem {
    #[error("`{0}` is no workflow of this program")]
    NoWorkflow(String),
    #[error("there is no input `{name}`{}", hint(.closest.as_deref()))]
    Unknown { name: String, closest: Option<String> },
    #[error("the input `{name}: {ty}` is missing")]
    Missing { name: String, ty: TypeRef },
    #[error("the input {0}")]
    Misfit(Misfit),
    #[error("the default of the input `{name}`: {source}")]
    Default { name: String, source: EvalError },
    #[error("the inputs have {0}")]
    Oversize(Oversize),
}

impl InputError {
    /// Whether the inputs are of a size that can be stored and read again. Cheap, so that it can come first.
    pub fn check_size(workflow: &Arc<str>, inputs: &Map<String, Value>) -> Result<(), Self> {
        value::check_size(inputs).map_err(|oversize| Self {
            workflow: Arc::clone(workflow),
            problems: vec![InputProblem::Oversize(oversize)],
        })
    }
}

fn hint(closest: Option<&str>) -> String {
    closest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the inputs of `{}` are refused", self.workflow)?;
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{} {problem}", if at == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl Evaluation {
    /// A new run, nothing of which is stored.
    pub fn start(plan: Arc<Plan>, start: Start, now: Millis, options: Options) -> Result<Self, InputError> {
        let refused = |problems| InputError { workflow: start.workflow.clone(), problems };
        let Some(workflow) = plan.facet_at(&start.workflow) else {
            return Err(refused(vec![InputProblem::NoWorkflow(start.workflow.to_string())]));
        };
        let declared = &plan.facet(workflow).params;
        let inputs = check(declared, start.inputs, &plan.schemas).map_err(refused)?;
        let hints: Vec<Arc<str>> = declared.iter().map(|parameter| parameter.ty.to_string().into()).collect();

        let run = Run {
            id: start.id,
            workflow: plan.facet(workflow).id.clone(),
            workflow_version: plan.version().to_owned(),
            status: RunStatus::Running,
            control: Control::Go,
            created: now,
            updated: now,
            ended: None,
            labels: start.labels,
            idempotency_key: start.idempotency_key,
            iterations: 0,
            iterations_per_run: Vec::new(),
            iterations_now: 0,
            active: 0,
            counts: Counts::default(),
            turn: None,
            error: None,
            evaluating: None,
            quarantine: None,
        };
        let mut evaluation = Self::new(plan, workflow, run, start.epoch, now, options);
        let root = StepId::root();
        evaluation.create_at(&root, Node::Root(workflow));
        for ((name, value), type_hint) in inputs.into_iter().zip(hints) {
            let attribute = Attribute { held: evaluation.known.hold(value), type_hint };
            evaluation.change(&root).attributes.params.insert(name, attribute);
        }
        evaluation.activate(root);
        Ok(evaluation)
    }
}

type Inputs = Vec<(String, Value)>;

/// Every declared input with its value, defaults filled in; or all that is wrong.
fn check(
    declared: &[Parameter],
    mut given: Map<String, Value>,
    schemas: &Schemas,
) -> Result<Inputs, Vec<InputProblem>> {
    let mut problems = Vec::new();
    let mut inputs = Vec::new();
    for parameter in declared {
        match input(parameter, given.remove(&parameter.name), schemas) {
            Ok(value) => inputs.push((parameter.name.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    for (name, _) in given {
        let names = declared.iter().map(|parameter| parameter.name.as_str());
        let closest = closest(&name, names).map(str::to_owned);
        problems.push(InputProblem::Unknown { name, closest });
    }
    if problems.is_empty() { Ok(inputs) } else { Err(problems) }
}

fn input(parameter: &Parameter, given: Option<Value>, schemas: &Schemas) -> Result<Value, InputProblem> {
    let Parameter { name, ty, default } = parameter;
    let in_default = |source| InputProblem::Default { name: name.clone(), source };
    let value = match (given, default) {
        (Some(value), _) => value,
        (None, Some(default)) => eval(default, &NoScope).map_err(in_default)?,
        (None, None) => return Err(InputProblem::Missing { name: name.clone(), ty: ty.clone() }),
    };
    fits(name, &value, ty, schemas).map_err(InputProblem::Misfit)?;
    as_declared(value, ty, schemas).map_err(in_default)
}
