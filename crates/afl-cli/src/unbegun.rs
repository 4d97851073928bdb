//! Steps that a program declares and that a run has not come to: what they wait for.

use std::collections::BTreeSet;

use afl_engine::id::{RunId, StepId};
use afl_engine::state::State;
use afl_lang::program::{
    AndThenBlock, BlockContent, CatchClause, CatchContent, Decl, Program, Statement, StepStmt,
};
use afl_runtime::{Error, NotFound, Service};
use serde::Serialize;

use crate::failure::Failure;

/// What must be complete before a step begins.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Chain {
    /// From the step asked for to what it reads, and so on.
    pub(crate) unbegun: Vec<Unbegun>,
    /// Where the chain ends: steps that have begun and are not complete.
    #[serde(skip)]
    pub(crate) open: BTreeSet<StepId>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Unbegun {
    pub(crate) path: String,
    /// The steps it reads that are not complete; none when it only waits for its block to begin.
    pub(crate) reads: Vec<String>,
}

/// The chain of a step that has not begun; nothing when the program has no such step there.
pub(crate) async fn chain(service: &Service, run: &RunId, given: &str) -> Result<Option<Chain>, Failure> {
    let record = service.run(run).await?;
    let program = service.program(&record.workflow_version).await?;
    let mut chain = Chain::default();
    let mut ahead = vec![given.to_owned()];
    while let Some(path) = ahead.pop() {
        let Some(place) = Place::find(service, run, &program, &path).await? else {
            return Ok(None);
        };
        let mut reads = Vec::new();
        for name in &place.step.depends_on {
            let path = place.sibling(name);
            match begun(service, run, &path).await? {
                Some((_, State::Complete)) => continue,
                Some((step, _)) => {
                    chain.open.insert(step);
                }
                None => ahead.push(path.clone()),
            }
            reads.push(path);
        }
        if reads.is_empty() {
            chain.open.insert(place.owner.clone());
        }
        chain.unbegun.push(Unbegun { path, reads });
    }
    Ok(Some(chain))
}

/// A step that has not begun, and the one it would be in.
struct Place<'p> {
    owner: StepId,
    /// What the user wrote in front of the step's name.
    prefix: String,
    step: &'p StepStmt,
}

impl<'p> Place<'p> {
    async fn find(
        service: &Service,
        run: &RunId,
        program: &'p Program,
        path: &str,
    ) -> Result<Option<Self>, Failure> {
        let (owner, prefix, name) = match path.rsplit_once('.') {
            Some((owner, name)) => match begun(service, run, owner).await? {
                Some((step, _)) => (step, format!("{owner}."), name),
                None => return Ok(None),
            },
            None => (StepId::root(), String::new(), path),
        };
        let Some(view) = service.steps(run, Some(&owner), None, 1).await?.steps.pop() else {
            return Ok(None);
        };
        let within = [&view.step.facet_name, &view.step.statement_id];
        let is_here = |step: &&StepStmt| {
            step.name == name && within.iter().any(|block| !block.is_empty() && is_in(&step.id, block))
        };
        let mut steps = Vec::new();
        declared(&program.declarations, &mut steps);
        Ok(steps.into_iter().find(is_here).map(|step| Self { owner, prefix, step }))
    }

    fn sibling(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Whether a statement is in a block of this owner: `shop.Pay/0/case1/charge` is in one of `shop.Pay`.
fn is_in(statement: &str, owner: &str) -> bool {
    const DEEPEST: usize = 3;
    let rest = statement.strip_prefix(owner).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').count() <= DEEPEST)
}

async fn begun(service: &Service, run: &RunId, path: &str) -> Result<Option<(StepId, State)>, Failure> {
    let step = match service.find_step(run, path).await {
        Ok(step) => step,
        Err(Error::NotFound(NotFound::Step { .. })) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(service.step_state(run, &step).await?.map(|state| (step, state)))
}

fn declared<'p>(declarations: &'p [Decl], steps: &mut Vec<&'p StepStmt>) {
    for declaration in declarations {
        match declaration {
            Decl::Namespace(namespace) => declared(&namespace.declarations, steps),
            Decl::Facet(facet) => in_blocks(&facet.body, facet.catch.as_ref(), steps),
            Decl::Schema(_) | Decl::Implicit(_) => {}
        }
    }
}

fn in_blocks<'p>(blocks: &'p [AndThenBlock], catch: Option<&'p CatchClause>, steps: &mut Vec<&'p StepStmt>) {
    for block in blocks {
        match &block.content {
            BlockContent::Steps(statements) | BlockContent::Foreach(_, statements) => {
                in_statements(&statements.steps, steps);
            }
            BlockContent::When(when) => {
                when.cases.iter().for_each(|case| in_statements(&case.statements.steps, steps));
            }
            BlockContent::Script(_) => {}
        }
    }
    match catch.map(|catch| &catch.content) {
        Some(CatchContent::Steps(statements)) => in_statements(&statements.steps, steps),
        Some(CatchContent::When(when)) => {
            when.cases.iter().for_each(|case| in_statements(&case.statements.steps, steps));
        }
        None => {}
    }
}

fn in_statements<'p>(statements: &'p [Statement], steps: &mut Vec<&'p StepStmt>) {
    for statement in statements {
        match statement {
            Statement::Step(step) => {
                steps.push(step);
                in_blocks(&step.body, step.catch.as_ref(), steps);
            }
            Statement::Log(_) | Statement::Assert(_) => {}
        }
    }
}
