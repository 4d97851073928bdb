//! Random programs that count what they do, and an oracle that knows without the engine what they must count.
//!
//! A program consists of facets that call only earlier ones, and mix them in. Its work is done by two event facets:
//! `Inc` always succeeds, `Risk` fails for some arguments. The oracle walks the same description that the text is
//! written from.

mod oracle;
mod write;

pub(crate) use oracle::{Expected, expect, expect_retried, expect_unrefused};

/// Seeded and small; the same seed gives the same program everywhere.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn number(&mut self, bound: u32) -> i64 {
        i64::from(self.below(bound as usize) as u32)
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The last facet is the workflow.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) facets: Vec<Facet>,
}

#[derive(Debug)]
pub(crate) enum Facet {
    /// `andThen { … }`, once or more; later clauses read steps of the first.
    Clauses(Vec<Block>),
    /// `andThen foreach x in [$.n + …]`
    Foreach(Vec<i64>, Block),
    /// `andThen when { case $.n % modulus == 0 => … case _ => … }`
    When(i64, Block, Block),
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) steps: Vec<Step>,
    /// Its yield: the sum of these.
    pub(crate) total: Vec<Term>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) call: Callee,
    pub(crate) args: Vec<Term>,
    /// The facet that it mixes in under the alias `m`, with the argument.
    pub(crate) mixin: Option<(Callee, Vec<Term>)>,
    /// The step's result when it failed, if it has a `catch`.
    pub(crate) catch: Option<i64>,
    pub(crate) with_retry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    Inc,
    Risk,
    Facet(usize),
}

/// A part of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Term {
    Number(i64),
    /// `$.n`
    Input,
    /// The `foreach` variable.
    Element,
    /// The result of an earlier step of the same block.
    Step(usize),
    /// The result of what an earlier step mixed in.
    Mixed(usize),
    /// Of a step of the facet's first clause.
    FirstClause(usize),
}

const MODULUS: i64 = 1_000_003;
/// Attempts at event facets in one run.
const MOST_WORK: usize = 120;
/// The input of the workflow.
pub(crate) const INPUT: i64 = 7;

/// The answer of both event facets; small, so that no sum overflows.
pub(crate) fn answer(by: i64) -> i64 {
    (by * 3 + 1).rem_euclid(MODULUS)
}

/// Whether `Risk` fails for this argument.
pub(crate) fn is_refused(by: i64) -> bool {
    by.rem_euclid(5) == 2
}

/// Whether steps have a `catch`. Without any, a run comes to the same whenever its failed steps are tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Catches {
    Some,
    None,
}

impl Program {
    /// A program whose run does some work, and not too much.
    pub(crate) fn generate(seed: u64, catches: Catches) -> Self {
        let mut rng = Rng::new(seed);
        loop {
            let mut program = Self::generate_any(&mut rng);
            if catches == Catches::None {
                program.steps_mut().for_each(|step| step.catch = None);
            }
            let work = expect(&program, INPUT).work.max(expect_retried(&program, INPUT).work);
            if (1..=MOST_WORK).contains(&work) {
                return program;
            }
        }
    }

    fn generate_any(rng: &mut Rng) -> Self {
        let count = 2 + rng.below(4);
        let mut facets = Vec::new();
        for at in 0..count {
            let facet = generate_facet(rng, at);
            facets.push(facet);
        }
        Self { facets }
    }

    fn steps_mut(&mut self) -> impl Iterator<Item = &mut Step> {
        self.facets.iter_mut().flat_map(Facet::blocks_mut).flat_map(|block| &mut block.steps)
    }
}

impl Facet {
    fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Self::Clauses(clauses) => clauses.iter_mut().collect(),
            Self::Foreach(_, block) => vec![block],
            Self::When(_, yes, no) => vec![yes, no],
        }
    }
}

fn generate_facet(rng: &mut Rng, at: usize) -> Facet {
    match rng.below(4) {
        0 => {
            let list = (0..rng.below(5)).map(|_| rng.number(9)).collect();
            Facet::Foreach(list, generate_block(rng, at, Scope { element: true, first: 0 }))
        }
        1 => {
            let inner = Scope { element: false, first: 0 };
            Facet::When(2 + rng.number(3), generate_block(rng, at, inner), generate_block(rng, at, inner))
        }
        _ => {
            let first = generate_block(rng, at, Scope { element: false, first: 0 });
            let steps = first.steps.len();
            let mut clauses = vec![first];
            for _ in 0..rng.below(3) {
                clauses.push(generate_block(rng, at, Scope { element: false, first: steps }));
            }
            Facet::Clauses(clauses)
        }
    }
}

/// The names that the terms of a block can use.
#[derive(Clone, Copy)]
struct Scope {
    element: bool,
    /// How many steps the facet's first clause has, when this is a later one.
    first: usize,
}

fn generate_block(rng: &mut Rng, facet: usize, scope: Scope) -> Block {
    let count = rng.below(4) + usize::from(facet == 0);
    let mut steps = Vec::new();
    for _ in 0..count {
        let call = callee(rng, facet);
        let args = terms(rng, &steps, scope);
        let mixin = rng.one_in(4).then(|| (callee(rng, facet), terms(rng, &steps, scope)));
        let catch = rng.one_in(3).then(|| rng.number(50));
        let with_retry = call == Callee::Risk && rng.one_in(3);
        steps.push(Step { call, args, mixin, catch, with_retry });
    }
    Block { total: terms(rng, &steps, scope), steps }
}

fn callee(rng: &mut Rng, facet: usize) -> Callee {
    match rng.below(if facet == 0 { 3 } else { 6 }) {
        0 | 1 => Callee::Inc,
        2 => Callee::Risk,
        _ => Callee::Facet(rng.below(facet)),
    }
}

fn terms(rng: &mut Rng, steps: &[Step], scope: Scope) -> Vec<Term> {
    let term = |rng: &mut Rng| match rng.below(5) {
        0 | 1 if !steps.is_empty() => {
            let at = rng.below(steps.len());
            // The result of a `catch` has no results of mixins.
            let is_mixed = steps[at].mixin.is_some() && steps[at].catch.is_none();
            if is_mixed && rng.one_in(2) { Term::Mixed(at) } else { Term::Step(at) }
        }
        2 if scope.first > 0 => Term::FirstClause(rng.below(scope.first)),
        3 if scope.element => Term::Element,
        4 => Term::Number(rng.number(10)),
        _ => Term::Input,
    };
    (0..=rng.below(2)).map(|_| term(rng)).collect()
}
