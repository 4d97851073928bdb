//! The references of an expression, known before it is evaluated.

use std::collections::BTreeMap;

use afl_lang::program::{Expr, ExprKind, InputSource};

/// One thing that an expression reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ExprRead {
    /// An attribute of the owner of the block; `None`: all of them.
    Owner(Option<String>),
    Foreach(String),
    Caught,
    Step(StepRead),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StepRead {
    pub(crate) name: String,
    pub(crate) clause: Option<u32>,
    /// The step's place in its block.
    pub(crate) statement: u32,
    pub(crate) attribute: Option<String>,
}

/// An expression with what it reads.
#[derive(Debug)]
pub(crate) struct ReadingExpr {
    pub(crate) expr: Expr,
    pub(crate) reads: Vec<ExprRead>,
}

/// The steps that a block's expressions can name.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepNames<'p> {
    pub(crate) own: BTreeMap<&'p str, u32>,
    /// Of the earlier clauses of the same owner.
    pub(crate) earlier: Vec<BTreeMap<&'p str, u32>>,
}

impl StepNames<'_> {
    fn find(&self, name: &str, clause: Option<u32>) -> u32 {
        let names = match clause {
            None => &self.own,
            Some(clause) => &self.earlier[clause as usize],
        };
        *names.get(name).expect("a compiled program names steps that are there")
    }

    pub(crate) fn reading(&self, expr: &Expr) -> ReadingExpr {
        ReadingExpr { expr: expr.clone(), reads: self.reads([expr]) }
    }

    pub(crate) fn reads<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<ExprRead> {
        let mut reads = Vec::new();
        for expr in exprs {
            expr.walk(&mut |inner| {
                let read = match &inner.kind {
                    ExprKind::Input(input) => match input.source {
                        InputSource::Owner => ExprRead::Owner(input.path.first().cloned()),
                        InputSource::Foreach => ExprRead::Foreach(input.path[0].clone()),
                        InputSource::Caught => ExprRead::Caught,
                    },
                    ExprKind::Step(step) => ExprRead::Step(StepRead {
                        name: step.path[0].clone(),
                        clause: step.clause,
                        statement: self.find(&step.path[0], step.clause),
                        attribute: step.path.get(1).cloned(),
                    }),
                    _ => return,
                };
                if !reads.contains(&read) {
                    reads.push(read);
                }
            });
        }
        reads
    }
}
