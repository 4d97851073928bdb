//! Mixins of calls and of signatures.

use afl_lang::program::NamedArg;

use super::{ExprRead, FacetAt};
use crate::policy::PolicyKind;

#[derive(Debug)]
pub(crate) struct Mixin {
    pub(crate) kind: MixinKind,
    pub(crate) alias: Option<String>,
    pub(crate) args: Vec<NamedArg>,
    pub(crate) reads: Vec<ExprRead>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MixinKind {
    Facet(FacetAt),
    Policy(PolicyKind),
}
