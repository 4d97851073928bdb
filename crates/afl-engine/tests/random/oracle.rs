//! The expected result of a random program, computed without the engine.

use std::collections::BTreeMap;

use super::{Block, Callee, Facet, MODULUS, Program, Step, Term, answer, is_refused};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Expected {
    /// `None` when the run fails.
    pub(crate) out: Option<i64>,
    pub(crate) all: Option<Vec<i64>>,
    /// How often each key is worked for.
    pub(crate) counts: BTreeMap<String, usize>,
    pub(crate) work: usize,
}

/// The end of a run without help.
pub(crate) fn expect(program: &Program, input: i64) -> Expected {
    walk(program, input, Help::None)
}

/// The end of a run that is retried as often as it fails, if each step is refused once at most.
pub(crate) fn expect_retried(program: &Program, input: i64) -> Expected {
    walk(program, input, Help::Retries)
}

/// The end of a run in which nothing is refused.
pub(crate) fn expect_unrefused(program: &Program, input: i64) -> Expected {
    walk(program, input, Help::NotNeeded)
}

fn walk(program: &Program, input: i64, help: Help) -> Expected {
    let mut oracle = Oracle { program, help, catches: 0, counts: BTreeMap::new() };
    let out = oracle.facet(program.facets.len() - 1, input);
    let work = oracle.counts.values().sum();
    let all = out.as_ref().and_then(|out| out.all.clone());
    Expected { out: out.map(|out| out.out), all, counts: oracle.counts, work }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Help {
    None,
    Retries,
    NotNeeded,
}

struct Oracle<'p> {
    program: &'p Program,
    help: Help,
    /// How many steps with a `catch` are above, which takes a failure before a person can retry it.
    catches: usize,
    counts: BTreeMap<String, usize>,
}

struct Out {
    out: i64,
    all: Option<Vec<i64>>,
}

/// The surroundings of a block.
struct Around<'a> {
    owner: usize,
    clause: usize,
    n: i64,
    element: i64,
    first: &'a [i64],
}

impl Oracle<'_> {
    fn facet(&mut self, at: usize, n: i64) -> Option<Out> {
        match &self.program.facets[at] {
            Facet::Clauses(clauses) => self.clauses(clauses, at, n),
            Facet::Foreach(list, block) => {
                let run = |item: &i64| {
                    let around = Around { owner: at, clause: 0, n, element: n + item, first: &[] };
                    self.block(block, &around).map(|(total, _)| total)
                };
                // Every element runs, whatever becomes of the others.
                let totals: Vec<Option<i64>> = list.iter().map(run).collect();
                let all = totals.into_iter().collect::<Option<Vec<i64>>>()?;
                Some(Out { out: all.last().copied().unwrap_or(0), all: Some(all) })
            }
            Facet::When(modulus, yes, no) => {
                let takes_first = n.rem_euclid(*modulus) == 0;
                let (clause, block) = if takes_first { (0, yes) } else { (1, no) };
                let around = Around { owner: at, clause, n, element: 0, first: &[] };
                let (out, _) = self.block(block, &around)?;
                Some(Out { out, all: None })
            }
        }
    }

    fn clauses(&mut self, clauses: &[Block], owner: usize, n: i64) -> Option<Out> {
        let first = self.block(&clauses[0], &Around { owner, clause: 0, n, element: 0, first: &[] });
        let results = first.as_ref().map(|(_, results)| results.clone());
        let mut totals = vec![first.map(|(total, _)| total)];
        for (clause, block) in clauses.iter().enumerate().skip(1) {
            totals.push(match (&results, reads_first(block)) {
                (None, true) => None,
                (results, _) => {
                    let first = results.as_deref().unwrap_or_default();
                    self.block(block, &Around { owner, clause, n, element: 0, first }).map(|(total, _)| total)
                }
            });
        }
        let totals: Option<Vec<i64>> = totals.into_iter().collect();
        Some(Out { out: *totals?.last()?, all: None })
    }

    /// The total and the results of its steps; `None` when one failed.
    fn block(&mut self, block: &Block, around: &Around<'_>) -> Option<(i64, Vec<i64>)> {
        let mut results: Vec<Option<Done>> = Vec::new();
        for (at, step) in block.steps.iter().enumerate() {
            let by = sum(&step.args, &results, around);
            let mixed = step.mixin.as_ref().map(|(_, args)| sum(args, &results, around));
            let result = match (by, mixed) {
                (Some(by), None) => self.step(step, at, by, None, around),
                (Some(by), Some(Some(mixed))) => self.step(step, at, by, Some(mixed), around),
                (None, _) | (_, Some(None)) => None,
            };
            results.push(result);
        }
        let total = sum(&block.total, &results, around);
        let results: Option<Vec<i64>> = results.into_iter().map(|done| Some(done?.out)).collect();
        Some((total?, results?))
    }

    fn step(
        &mut self,
        step: &Step,
        at: usize,
        by: i64,
        mixed: Option<i64>,
        around: &Around<'_>,
    ) -> Option<Done> {
        self.catches += usize::from(step.catch.is_some());
        let key = |suffix| format!("F{}.{}.{at}{suffix}.{}", around.owner, around.clause, around.n);
        let attempts = if step.with_retry { 2 } else { 1 };
        let work = |oracle: &mut Self| oracle.call(step.call, by, attempts, key(""));
        let done = match step.mixin.as_ref().zip(mixed) {
            None => work(self).map(|out| Done { out, mixed: None }),
            // The blocks of a mixin come before the event of the step.
            Some(((mixin @ Callee::Facet(_), _), by)) => {
                let mixed = self.call(*mixin, by, attempts, key("m"));
                mixed.and_then(|mixed| work(self).map(|out| Done { out, mixed: Some(mixed) }))
            }
            // Its event goes with that of the step, or before the blocks of the step.
            Some(((mixin @ (Callee::Inc | Callee::Risk), _), by)) => {
                let mixed = self.call(*mixin, by, attempts, key("m"));
                match step.call {
                    Callee::Facet(_) if mixed.is_none() => None,
                    Callee::Facet(_) | Callee::Inc | Callee::Risk => {
                        let both = work(self).zip(mixed);
                        both.map(|(out, mixed)| Done { out, mixed: Some(mixed) })
                    }
                }
            }
        };
        self.catches -= usize::from(step.catch.is_some());
        done.or(step.catch.map(|out| Done { out, mixed: None }))
    }

    fn call(&mut self, callee: Callee, by: i64, attempts: usize, key: String) -> Option<i64> {
        let (worked, result) = match callee {
            Callee::Facet(at) => return self.facet(at, by).map(|out| out.out),
            Callee::Inc => (1, Some(answer(by))),
            Callee::Risk if !is_refused(by) || self.help == Help::NotNeeded => (1, Some(answer(by))),
            Callee::Risk if self.help == Help::Retries && self.catches == 0 => {
                (attempts + 1, Some(answer(by)))
            }
            Callee::Risk => (attempts, None),
        };
        *self.counts.entry(key).or_default() += worked;
        result
    }
}

/// The result of a step.
#[derive(Clone, Copy)]
struct Done {
    out: i64,
    /// The result of what it mixed in.
    mixed: Option<i64>,
}

fn reads_first(block: &Block) -> bool {
    let mixed = block.steps.iter().filter_map(|step| step.mixin.as_ref()).flat_map(|(_, args)| args);
    let args = block.steps.iter().flat_map(|step| &step.args).chain(mixed);
    args.chain(&block.total).any(|term| matches!(term, Term::FirstClause(_)))
}

/// `None` when a step that it reads has no result.
fn sum(terms: &[Term], results: &[Option<Done>], around: &Around<'_>) -> Option<i64> {
    let value = |term: &Term| match term {
        Term::Number(number) => Some(*number),
        Term::Input => Some(around.n),
        Term::Element => Some(around.element),
        Term::Step(at) => results[*at].map(|done| done.out),
        Term::Mixed(at) => results[*at].and_then(|done| done.mixed),
        Term::FirstClause(at) => Some(around.first[*at]),
    };
    let sum = terms.iter().map(value).sum::<Option<i64>>()?;
    Some(sum.rem_euclid(MODULUS))
}
