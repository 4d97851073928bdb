//! What a random program must come to, worked out without the engine.

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

pub(crate) fn expect(program: &Program, input: i64) -> Expected {
    let mut oracle = Oracle { program, counts: BTreeMap::new() };
    let out = oracle.facet(program.facets.len() - 1, input);
    let work = oracle.counts.values().sum();
    let all = out.as_ref().and_then(|out| out.all.clone());
    Expected { out: out.map(|out| out.out), all, counts: oracle.counts, work }
}

struct Oracle<'p> {
    program: &'p Program,
    counts: BTreeMap<String, usize>,
}

struct Out {
    out: i64,
    all: Option<Vec<i64>>,
}

/// What is around a block.
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
        let mut results: Vec<Option<i64>> = Vec::new();
        for (at, step) in block.steps.iter().enumerate() {
            let by = sum(&step.args, &results, around);
            let result = by.and_then(|by| self.step(step, at, by, around));
            results.push(result);
        }
        let results: Vec<i64> = results.into_iter().collect::<Option<_>>()?;
        let known: Vec<Option<i64>> = results.iter().copied().map(Some).collect();
        Some((sum(&block.total, &known, around)?, results))
    }

    fn step(&mut self, step: &Step, at: usize, by: i64, around: &Around<'_>) -> Option<i64> {
        let result = match step.call {
            Callee::Facet(callee) => self.facet(callee, by).map(|out| out.out),
            Callee::Inc => {
                self.count(around, at, 1);
                Some(answer(by))
            }
            Callee::Risk => {
                let refused = is_refused(by);
                self.count(around, at, if refused && step.with_retry { 2 } else { 1 });
                (!refused).then(|| answer(by))
            }
        };
        result.or(step.catch)
    }

    fn count(&mut self, around: &Around<'_>, at: usize, attempts: usize) {
        let key = format!("F{}.{}.{at}.{}", around.owner, around.clause, around.n);
        *self.counts.entry(key).or_default() += attempts;
    }
}

fn reads_first(block: &Block) -> bool {
    let args = block.steps.iter().flat_map(|step| &step.args);
    args.chain(&block.total).any(|term| matches!(term, Term::FirstClause(_)))
}

/// `None` when a step that it reads has no result.
fn sum(terms: &[Term], results: &[Option<i64>], around: &Around<'_>) -> Option<i64> {
    let value = |term: &Term| match term {
        Term::Number(number) => Some(*number),
        Term::Input => Some(around.n),
        Term::Element => Some(around.element),
        Term::Step(at) => results[*at],
        Term::FirstClause(at) => Some(around.first[*at]),
    };
    let sum = terms.iter().map(value).sum::<Option<i64>>()?;
    Some(sum.rem_euclid(MODULUS))
}
