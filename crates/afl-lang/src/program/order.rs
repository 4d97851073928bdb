//! The order of a loaded block: a statement waits for all it reads, and no step waits for itself.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Statement, Statements};

/// Up to so many names a search is as fast as a set.
const FEW: usize = 16;

/// The steps that a statement waits for.
pub(super) enum AwaitedSteps<'p> {
    Few(&'p [String]),
    Many(FxHashSet<&'p str>),
}

impl<'p> AwaitedSteps<'p> {
    pub(super) fn new(depends_on: &'p [String]) -> Self {
        if depends_on.len() <= FEW {
            return Self::Few(depends_on);
        }
        Self::Many(depends_on.iter().map(String::as_str).collect())
    }

    pub(super) fn has(&self, step: &str) -> bool {
        match self {
            Self::Few(names) => names.iter().any(|name| name == step),
            Self::Many(names) => names.contains(step),
        }
    }
}

/// A step that waits for itself, if only through others. Names that are no steps are passed over.
pub(super) fn ring(statements: &Statements) -> Option<&str> {
    let steps: Vec<_> = statements.steps.iter().filter_map(step_of).collect();
    let index: FxHashMap<&str, usize> = steps.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let mut readers = vec![Vec::new(); steps.len()];
    let mut waits = vec![0_usize; steps.len()];
    for (reader, (_, depends_on)) in steps.iter().enumerate() {
        for step in depends_on.iter().filter_map(|name| index.get(name.as_str())) {
            readers[*step].push(reader);
            waits[reader] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..steps.len()).filter(|step| waits[*step] == 0).collect();
    while let Some(step) = ready.pop() {
        for reader in &readers[step] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push(*reader);
            }
        }
    }
    waits.iter().position(|count| *count > 0).map(|at| steps[at].0)
}

fn step_of(statement: &Statement) -> Option<(&str, &[String])> {
    match statement {
        Statement::Step(step) => Some((&step.name, &step.depends_on)),
        Statement::Log(_) | Statement::Assert(_) => None,
    }
}
