//! The policies and the facets of time of the prelude: what their settings may be, and where they do something.

use super::Checker;
use super::hint::listed;
use super::table::{DefId, Sort};
use crate::code::Code;
use crate::operator::UnaryOp;
use crate::source::Span;
use crate::syntax::ast::{Args, ExprSyntaxKind, MixinSyntax, QName, Wholeness};
use crate::syntax::literal;
use crate::timestamp;

/// The values that `Effect` takes.
const EFFECTS: [&str; 3] = ["idempotent", "once", "pure"];

/// The mistake in a policy's settings, and what to do.
type Misuse = Option<(String, &'static str)>;

impl<'a> Checker<'a> {
    /// Settings that are written out are checked now, the others when it runs.
    pub(super) fn check_settings(&mut self, def: DefId, target: &QName<'a>, args: &Args<'a>, span: Span) {
        if !self.table.is_of_prelude(def) || args.wholeness == Wholeness::Broken {
            return;
        }
        let name = &*target.text;
        let misuse = match self.table[def].name {
            "Retry" => retry(name, args),
            "Limit" => at_least(1, name, args, "concurrency", "at least one must be able to run"),
            "Effect" => effect(args),
            "Timeout" | "AttemptTimeout" | "Heartbeat" | "Wait" => duration(name, args),
            "Until" => moment(args),
            _ => None,
        };
        if let Some((message, help)) = misuse {
            self.report(Code::PolicyMisuse, span, message, |d| d.help(help));
        }
    }

    /// For those who look for one.
    pub(super) fn policy_names(&self) -> String {
        let policies = self.table.defs().filter(|def| def.sort == Sort::Policy);
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
fn at_least(least: u64, target: &str, args: &Args<'_>, name: &str, help: &'static str) -> Misuse {
    let value = &args.list.iter().find(|arg| arg.name.text == name)?.value;
    let too_small = match &value.kind {
        ExprSyntaxKind::Int(value) => *value < least,
        ExprSyntaxKind::Unary(UnaryOp::Negate, _) => true,
        _ => false,
    };
    too_small.then(|| (format!("`{name}` of `{target}` must be at least {least}"), help))
}

fn retry(target: &str, args: &Args<'_>) -> Misuse {
    at_least(1, target, args, "max", "`max` counts all attempts, the first included")
        .or_else(|| at_least(0, target, args, "backoff_ms", "a delay cannot be negative"))
        .or_else(|| at_least(0, target, args, "max_backoff_ms", "a delay cannot be negative"))
}

fn effect(args: &Args<'_>) -> Misuse {
    // `kind` is the only parameter.
    let arg = args.list.first()?;
    let ExprSyntaxKind::String(text) = &arg.value.kind else { return None };
    let kind = literal::value(text);
    (!EFFECTS.contains(&kind.as_ref()))
        .then(|| (format!("there is no effect \"{kind}\""), "write \"idempotent\", \"once\" or \"pure\""))
}

/// One length of time above zero.
fn duration(target: &str, args: &Args<'_>) -> Misuse {
    match &args.list[..] {
        [one] => at_least(1, target, args, one.name.text, "a length of time is above zero"),
        [] => Some((
            format!("`{target}` needs a time"),
            "give one of `ms`, `seconds`, `minutes`, `hours` and `days`",
        )),
        [_, _, ..] => Some((
            format!("`{target}` takes one time"),
            "keep one of `ms`, `seconds`, `minutes`, `hours` and `days`",
        )),
    }
}

/// A moment that is written out must be one.
fn moment(args: &Args<'_>) -> Misuse {
    let arg = args.list.first()?;
    let ExprSyntaxKind::String(text) = &arg.value.kind else { return None };
    let text = literal::value(text);
    timestamp::parse(&text).is_none().then(|| {
        (format!("\"{text}\" is no moment of RFC 3339"), "write it as \"2026-12-24T18:00:00+01:00\"")
    })
}
