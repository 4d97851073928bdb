//! The policies of the prelude: what their settings may be, and where they do something.

use super::Checker;
use super::hint::listed;
use super::table::{DefId, Sort};
use crate::code::Code;
use crate::operator::UnaryOp;
use crate::syntax::ast::{ExprSyntaxKind, MixinSyntax, Wholeness};
use crate::syntax::literal;

/// The values that `Effect` takes.
const EFFECTS: [&str; 3] = ["idempotent", "once", "pure"];

/// The mistake in a policy's settings, and what to do.
type Misuse = Option<(String, &'static str)>;

impl<'a> Checker<'a> {
    /// Settings that are written out are checked now, the others when it runs.
    pub(super) fn check_policy(&mut self, def: DefId, mixin: &'a MixinSyntax<'a>) {
        let policy = &self.table[def];
        if policy.sort != Sort::Policy || mixin.args.wholeness == Wholeness::Broken {
            return;
        }
        let misuse = match policy.name {
            "Retry" => retry(mixin),
            "Limit" => at_least(1, mixin, "concurrency", "at least one must be able to run"),
            "Effect" => effect(mixin),
            "Timeout" => timeout(mixin),
            _ => None,
        };
        if let Some((message, help)) = misuse {
            self.report(Code::PolicyMisuse, mixin.span, message, |d| d.help(help));
        }
    }

    /// For those who look for one.
    pub(super) fn policy_names(&self) -> String {
        // The prelude is declared before everything else.
        let policies = self.table.defs().take_while(|def| def.sort == Sort::Policy);
        let names: Vec<&str> = policies.map(|def| def.name).collect();
        format!("the policies are {}", listed(&names))
    }

    /// Policies say how a task is done; a facet without tasks has none.
    pub(super) fn check_policies(
        &mut self,
        callee: Option<DefId>,
        mixins: &'a [MixinSyntax<'a>],
        targets: &[Option<DefId>],
    ) {
        let Some(callee) = callee.map(|id| &self.table[id]) else { return };
        if callee.sort == Sort::Schema {
            // That a schema has a mixin at all has been reported.
            return;
        }
        let works = callee.is_event()
            || callee.ast.is_some_and(|facet| facet.body.script.is_some() || facet.body.prompt.is_some())
            || targets.iter().flatten().any(|id| self.table[*id].is_event());
        if works {
            return;
        }
        let name = callee.name;
        for (mixin, target) in mixins.iter().zip(targets) {
            if target.is_some_and(|id| self.table[id].sort == Sort::Policy) {
                let message = format!("`{}` changes nothing: `{name}` is no event facet", mixin.target.text);
                self.report(Code::PolicyWithoutEffect, mixin.span, message, |d| {
                    d.help("put it on the event facets that do the work")
                });
            }
        }
    }
}

/// A setting that is written out must not be smaller than `least`.
fn at_least(least: u64, mixin: &MixinSyntax<'_>, name: &str, help: &'static str) -> Misuse {
    let value = &mixin.args.list.iter().find(|arg| arg.name.text == name)?.value;
    let too_small = match &value.kind {
        ExprSyntaxKind::Int(value) => *value < least,
        ExprSyntaxKind::Unary(UnaryOp::Negate, _) => true,
        _ => false,
    };
    too_small.then(|| (format!("`{name}` of `{}` must be at least {least}", mixin.target.text), help))
}

fn retry(mixin: &MixinSyntax<'_>) -> Misuse {
    at_least(1, mixin, "max", "`max` counts all attempts, the first included")
        .or_else(|| at_least(0, mixin, "backoff_ms", "a delay cannot be negative"))
        .or_else(|| at_least(0, mixin, "max_backoff_ms", "a delay cannot be negative"))
}

fn effect(mixin: &MixinSyntax<'_>) -> Misuse {
    // `kind` is the only parameter.
    let arg = mixin.args.list.first()?;
    let ExprSyntaxKind::String(text) = &arg.value.kind else { return None };
    let kind = literal::value(text);
    (!EFFECTS.contains(&kind.as_ref()))
        .then(|| (format!("there is no effect \"{kind}\""), "write \"idempotent\", \"once\" or \"pure\""))
}

fn timeout(mixin: &MixinSyntax<'_>) -> Misuse {
    match mixin.args.list.len() {
        1 => at_least(1, mixin, mixin.args.list[0].name.text, "without any time nothing can be done"),
        0 => {
            Some(("`Timeout` needs a time".to_owned(), "give one of `ms`, `seconds`, `minutes` and `hours`"))
        }
        _ => Some((
            "`Timeout` takes one time".to_owned(),
            "keep one of `ms`, `seconds`, `minutes` and `hours`",
        )),
    }
}
