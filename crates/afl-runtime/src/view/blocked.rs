//! Why a step has not begun: the chain of steps that it reads, down to those that are open.

use std::collections::BTreeSet;

use afl_engine::id::{RunId, StepId};
use afl_engine::state::State;
use afl_lang::program::{Program, StepStmt};
use serde::Serialize;

use crate::error::{Error, NotFound};
use crate::service::Service;
use crate::why::Why;

/// The steps that must be complete before a step begins.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BlockedChain {
    pub run: RunId,
    /// From the requested step to the steps it reads, and so on.
    #[serde(rename = "unbegun")]
    pub steps: Vec<BlockedStep>,
    /// Where the chain ends: the steps that have begun and are not complete, with what they wait for.
    pub open: Vec<Why>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockedStep {
    pub path: String,
    /// The steps it reads that are not complete; none when it only waits for its block to begin.
    pub reads: Vec<String>,
}

impl Service {
    /// The chain of a step that has not begun; `None` if the program has no such step there.
    pub async fn blocked(&self, run: &RunId, given: &str) -> Result<Option<BlockedChain>, Error> {
        let record = self.existing(run).await?.item;
        let program = self.program_of(&record).await?;
        let mut steps = Vec::new();
        let mut open: BTreeSet<StepId> = BTreeSet::new();
        let mut ahead = vec![given.to_owned()];
        while let Some(path) = ahead.pop() {
            let Some(declared) = self.declared_step(run, &program, &path).await? else {
                return Ok(None);
            };
            let mut reads = Vec::new();
            for name in &declared.statement.depends_on {
                let path = format!("{}{name}", declared.prefix);
                match self.begun(run, &path).await? {
                    Some((_, State::Complete)) => continue,
                    Some((step, _)) => {
                        open.insert(step);
                    }
                    None => ahead.push(path.clone()),
                }
                reads.push(path);
            }
            if reads.is_empty() {
                open.insert(declared.owner.clone());
            }
            steps.push(BlockedStep { path, reads });
        }
        let mut waits = Vec::with_capacity(open.len());
        for step in &open {
            waits.push(self.why_within(run, step).await?);
        }
        Ok(Some(BlockedChain { run: run.clone(), steps, open: waits }))
    }

    async fn declared_step<'p>(
        &self,
        run: &RunId,
        program: &'p Program,
        path: &str,
    ) -> Result<Option<DeclaredStep<'p>>, Error> {
        let (owner, prefix, name) = match path.rsplit_once('.') {
            Some((owner, name)) => match self.begun(run, owner).await? {
                Some((step, _)) => (step, format!("{owner}."), name),
                None => return Ok(None),
            },
            None => (StepId::root(), String::new(), path),
        };
        let Some(view) = self.steps(run, Some(&owner), None, 1).await?.steps.pop() else {
            return Ok(None);
        };
        let within = [&view.step.facet_name, &view.step.statement_id];
        let is_here = |step: &&StepStmt| {
            step.name == name && within.iter().any(|block| !block.is_empty() && is_in(&step.id, block))
        };
        let statement = program.facets().flat_map(|facet| facet.steps()).find(is_here);
        Ok(statement.map(|statement| DeclaredStep { owner, prefix, statement }))
    }

    async fn begun(&self, run: &RunId, path: &str) -> Result<Option<(StepId, State)>, Error> {
        let step = match self.find_step(run, path).await {
            Err(Error::NotFound(NotFound::Step { .. })) => return Ok(None),
            found => found?,
        };
        Ok(self.store.step(run, &step).await?.map(|stored| (step, stored.item.state)))
    }
}

/// The statement of a step that has not begun, and the step it will be in.
struct DeclaredStep<'p> {
    owner: StepId,
    /// The part of the path before the name of the step, as the caller wrote it.
    prefix: String,
    statement: &'p StepStmt,
}

/// Whether a statement is in a block of this owner: `shop.Pay/0/case1/charge` is in one of `shop.Pay`.
fn is_in(statement: &str, owner: &str) -> bool {
    const DEEPEST: usize = 3;
    let rest = statement.strip_prefix(owner).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').count() <= DEEPEST)
}
