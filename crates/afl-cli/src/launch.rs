//! The shared start of `run` and `start`: a program, a workflow of it, and inputs that fit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use afl_engine::evaluation::{Budget, Evaluation, Options as Evaluating, Start};
use afl_engine::id::RunId;
use afl_engine::plan::Plan;
use afl_engine::time::Millis;
use afl_engine::trace::Tracing;
use afl_engine::value::{Map, Value};
use afl_engine::version::Epoch;
use afl_lang::Validation;
use afl_lang::program::Program;
use afl_lang::render::Color;
use afl_runtime::{Service, StartRequest, StartResult, pick_workflow};
use clap::Args;

use crate::failure::Failure;
use crate::handlers;
use crate::input::{self, STANDARD};
use crate::inputs;
use crate::mock::Mock;
use crate::report::{self, DiagnosticFormat};

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Options {
    /// Files, folders (every .afl file below), or `-` for standard input; together they are one program
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// A file or folder whose declarations can be used; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    library: Vec<PathBuf>,
    /// The workflow to start, by its whole or its short name; not needed if there is only one
    #[arg(short, long, value_name = "NAME")]
    workflow: Option<String>,
    #[command(flatten)]
    inputs: inputs::Options,
    /// A label to find the run by; can be repeated
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// A key of your choice: starting again with the same key gives the same run
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
}

/// A start that nothing speaks against. Nothing of it is stored.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Program,
    pub(crate) workflow: Arc<str>,
    inputs: Map<String, Value>,
    labels: BTreeMap<String, String>,
    key: Option<String>,
}

/// Which messages about the program are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageFilter {
    All,
    /// A program reads the result as data.
    Errors,
}

impl Options {
    pub(crate) fn prepare(
        &self,
        mock: Option<&Mock>,
        color: Color,
        shown: MessageFilter,
    ) -> Result<Launch, Failure> {
        if self.inputs.reads_stdin() && self.files.iter().any(|file| file.as_os_str() == STANDARD) {
            return Err(Failure::StdinTwice);
        }
        let program = self.compile(color, shown)?;
        let plan = Arc::new(Plan::new(&program));
        let given = self.workflow.as_deref().or(mock.and_then(|mock| mock.workflow.as_deref()));
        let workflow = pick_workflow(&plan, given)?;
        let declared = plan.parameters(&workflow).expect("the workflow was picked from this plan");
        let mut given = self.inputs.read(declared)?;
        if let Some(inputs) = mock.and_then(|mock| mock.inputs.clone())
            && self.inputs.is_empty()
        {
            given.values = inputs;
        }
        let refused = check(&plan, &workflow, given.values.clone());
        let problems = given.all_problems(&refused);
        if !problems.is_empty() {
            return Err(Failure::RefusedInputs { workflow: workflow.to_string(), problems });
        }
        let labels = labels(&self.labels)?;
        Ok(Launch { program, workflow, inputs: given.values, labels, key: self.key.clone() })
    }

    /// Lists of handlers in the folders of the program.
    pub(crate) fn handlers_beside(&self) -> Vec<PathBuf> {
        let files = self.files.iter().filter(|file| file.as_os_str() != STANDARD);
        let folder = |file: &PathBuf| match file.parent() {
            _ if file.is_dir() => file.clone(),
            Some(parent) => parent.to_owned(),
            None => PathBuf::new(),
        };
        let mut lists: Vec<PathBuf> = files.map(|file| folder(file).join(handlers::FILE)).collect();
        lists.retain(|list| list.is_file());
        lists.sort();
        lists.dedup();
        lists
    }

    fn compile(&self, color: Color, shown: MessageFilter) -> Result<Program, Failure> {
        let sources = input::program(&self.files, &self.library)?;
        let (program, diagnostics) = report::compile(&sources, Validation::Require, "started", color)?;
        match shown {
            MessageFilter::All => report::show(color, DiagnosticFormat::Human, &sources, &diagnostics)?,
            MessageFilter::Errors => {}
        }
        Ok(program)
    }
}

impl Launch {
    pub(crate) async fn start(self, service: &Service) -> Result<StartResult, Failure> {
        Ok(service.start(self.request(service).await?).await?)
    }

    /// Leaves the start to a runner.
    pub(crate) async fn hand_over(self, service: &Service) -> Result<StartResult, Failure> {
        Ok(service.hand_over(self.request(service).await?).await?)
    }

    async fn request(self, service: &Service) -> Result<StartRequest, Failure> {
        Ok(StartRequest {
            program: service.publish(&self.program).await?,
            workflow: Some(self.workflow.to_string()),
            inputs: self.inputs,
            labels: self.labels,
            idempotency_key: self.key,
        })
    }
}

/// The checks of a start, without a store.
fn check(
    plan: &Arc<Plan>,
    workflow: &Arc<str>,
    inputs: Map<String, Value>,
) -> Vec<afl_engine::evaluation::InputProblem> {
    let start = Start {
        id: RunId("".into()),
        workflow: Arc::clone(workflow),
        inputs,
        labels: BTreeMap::new(),
        idempotency_key: None,
        epoch: Epoch::default(),
    };
    let options = Evaluating { budget: Budget { writes: 1, bytes: 1 }, tracing: Tracing::LogsOnly };
    match Evaluation::start(Arc::clone(plan), start, Millis::default(), options) {
        Ok(_) => Vec::new(),
        Err(refused) => refused.problems,
    }
}

/// Each has one value.
pub(crate) fn labels(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut labels = BTreeMap::new();
    for label in given {
        let (name, value) = pair(label)?;
        if labels.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::LabelTwice { name: name.to_owned() });
        }
    }
    Ok(labels)
}

/// `NAME=VALUE`
pub(crate) fn pair(text: &str) -> Result<(&str, &str), Failure> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.ok_or_else(|| Failure::NotAPair { text: text.to_owned() })
}
