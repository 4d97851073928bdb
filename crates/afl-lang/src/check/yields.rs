//! Checks yields: their target, their attributes, and whether every return gets a value.

use std::rc::Rc;

use super::Checker;
use super::args::ArgSlot;
use super::body::CheckedBody;
use super::scope::{BlockKind, Instance, YieldedAttribute};
use super::table::DefId;
use super::ty::Type;
use crate::code::Code;
use crate::program::{NamedArg, YieldStmt};
use crate::syntax::ast::{
    Arg, Args, BodySyntax, ClauseKind, FacetKind, FacetSyntax, QName, Wholeness, Yield,
};

/// The facet or mixin that a yield gives values to.
#[derive(Clone, Copy, PartialEq)]
struct YieldTarget<'a> {
    def: DefId,
    alias: Option<&'a str>,
    is_owner: bool,
}

impl<'a> Checker<'a> {
    /// Checks a `yield` and adds one statement for each of its targets.
    pub(super) fn yield_to(&mut self, yielded: &'a Yield<'a>, id: &str, yields: &mut Vec<YieldStmt>) {
        let first = (&yielded.call.target, &yielded.call.args, yielded.span);
        let rest = yielded.call.mixins.iter().map(|mixin| (&mixin.target, &mixin.args, mixin.span));
        for (target, args, span) in std::iter::once(first).chain(rest) {
            self.frame().block.begin_statement();
            let location = self.location(span);
            let found = self.yield_target(target);
            if let Some(found) = found {
                self.check_repeated_yield(found, target, yields);
            }
            let args = self.yield_args(found, args);
            let depends_on = self.frame().block.read_names();
            let id = format!("{id}/yield.{}", target.text);
            let alias = found.and_then(|found| found.alias).map(str::to_owned);
            let target =
                found.map_or_else(|| target.text.as_ref().into(), |found| self.table[found.def].id.clone());
            yields.push(YieldStmt { id, target, alias, args, depends_on, location });
        }
    }

    /// The owner or one of its mixins, by name or alias.
    fn yield_target(&mut self, name: &QName<'a>) -> Option<YieldTarget<'a>> {
        let owner = Rc::clone(&self.frame().owner);
        let own = owner.def?;
        let by_alias = owner.mixins.iter().find(|mixin| mixin.alias == Some(&name.text));
        if let Some(mixin) = by_alias {
            return Some(YieldTarget { def: mixin.def, alias: mixin.alias, is_owner: false });
        }
        if self.names(own, name) {
            return Some(YieldTarget { def: own, alias: None, is_owner: true });
        }
        let named: Vec<_> = owner.mixins.iter().filter(|mixin| self.names(mixin.def, name)).collect();
        if named.len() > 1 {
            self.frame().yields_in_doubt = true;
            let message = format!("`{}` is mixed in more than once", name.text);
            self.report(Code::YieldTarget, name.span, message, |d| {
                d.help("yield to one of them by its alias")
            });
            return None;
        }
        if let Some(mixin) = named.first() {
            return Some(YieldTarget { def: mixin.def, alias: mixin.alias, is_owner: false });
        }
        self.wrong_target(&owner, own, name);
        None
    }

    fn names(&self, def: DefId, name: &QName<'_>) -> bool {
        let def = &self.table[def];
        *def.id == *name.text || def.name == name.text
    }

    fn wrong_target(&mut self, owner: &Instance<'a>, own: DefId, name: &QName<'a>) {
        let def = &self.table[own];
        let mixins = owner.mixins.iter().map(|mixin| mixin.alias.unwrap_or(self.table[mixin.def].name));
        let meant = self.closest(&name.text, mixins).unwrap_or(def.name);
        let message = format!("this block belongs to `{}` and cannot yield to `{}`", def.name, name.text);
        let help = format!("write `yield {meant}(…)`");
        let place = def.place;
        self.frame().yields_in_doubt = true;
        self.report(Code::YieldTarget, name.span, message, |d| {
            d.related(place, "the owner of the block").help(help)
        });
    }

    fn check_repeated_yield(&mut self, target: YieldTarget<'a>, name: &QName<'a>, yields: &[YieldStmt]) {
        let id = &self.table[target.def].id;
        let again = yields.iter().any(|other| other.target == *id && other.alias.as_deref() == target.alias);
        if again {
            let message = format!("this block already yields to `{}`", name.text);
            self.report(Code::DuplicateYield, name.span, message, |d| {
                d.help("put all attributes into one `yield`")
            });
        }
    }

    fn yield_args(&mut self, target: Option<YieldTarget<'a>>, args: &'a Args<'a>) -> Vec<NamedArg> {
        let Some(target) = target else { return self.free_args(args) };
        let compiled = self.checked_args(args, |checker, arg| checker.yield_slot(target, arg));
        if target.is_owner {
            let clause = self.frame().block.clause;
            let yielded = args.list.iter().map(|arg| YieldedAttribute {
                attribute: arg.name.text,
                clause,
                span: arg.name.span,
            });
            self.frame().yielded.extend(yielded);
        }
        compiled
    }

    /// The type that a yielded attribute must have.
    fn yield_slot(&mut self, target: YieldTarget<'a>, arg: &Arg<'a>) -> Option<ArgSlot<'a>> {
        let def = &self.table[target.def];
        let Some(slot) = def.yieldable().named(arg.name.text) else {
            if def.wholeness == Wholeness::Whole {
                self.unknown_yield(target.def, arg);
            }
            return None;
        };
        let (callee, ty, place) = (def.name, slot.ty.clone(), slot.place);
        if self.frame().block.kind == BlockKind::Plain {
            return Some(ArgSlot { callee, ty, place, element: None });
        }
        let element = match ty.solid() {
            Type::List(of) => Some((**of).clone()),
            Type::Json | Type::Broken => None,
            _ => {
                self.keeps_last(arg, &ty);
                None
            }
        };
        Some(ArgSlot { callee, ty, place, element })
    }

    fn unknown_yield(&mut self, def: DefId, arg: &Arg<'a>) {
        self.frame().yields_in_doubt = true;
        let def = &self.table[def];
        let message = format!("`{}` has no return `{}`", def.name, arg.name.text);
        let help = if def.params.named(arg.name.text).is_some() {
            Some(format!("`{}` is a parameter; only returns can be yielded", arg.name.text))
        } else {
            self.did_you_mean(arg.name.text, def.yieldable().iter().map(|param| param.name))
        };
        let place = def.place;
        self.report(Code::UnknownYieldAttribute, arg.name.span, message, |d| {
            d.related(place, "declared here").help_if(help)
        });
    }

    fn keeps_last(&mut self, arg: &Arg<'a>, ty: &Type) {
        let message = format!("`{}` keeps only the value of the last element", arg.name.text);
        let help = format!("declare it as `[{}]` to collect all of them", ty.show(&self.table));
        self.report(Code::KeepsLastElement, arg.name.span, message, |d| d.help(help));
    }

    /// Warns of returns that nothing gives a value.
    pub(super) fn check_returns(&mut self, facet: &'a FacetSyntax<'a>, def: DefId, body: &CheckedBody<'a>) {
        let owner = &self.table[def];
        let given_elsewhere = facet.body.script.is_some()
            || facet.body.prompt.is_some()
            || facet.kind == FacetKind::Event
            || owner.wholeness == Wholeness::Broken
            || has_script_clause(&facet.body);
        if given_elsewhere || owner.returns.is_empty() {
            return;
        }
        if facet.body.clauses.is_empty() {
            self.no_body(facet, def);
            return;
        }
        if body.yields_in_doubt {
            return;
        }
        let yielded: rustc_hash::FxHashSet<&str> = body.yielded.iter().map(|one| one.attribute).collect();
        let missing = owner.returns.required().filter(|one| !yielded.contains(one.name));
        let missing: Vec<_> = missing.map(|one| (one.name, one.place)).collect();
        let name = owner.name;
        for (attribute, place) in missing {
            let message = format!("nothing yields `{attribute}`, so `{name}` never returns it");
            let help = format!("add it to a `yield {name}(…)`, or give it a default");
            self.report(Code::NeverYielded, place.span, message, |d| d.help(help));
        }
    }

    fn no_body(&mut self, facet: &'a FacetSyntax<'a>, def: DefId) {
        if self.table[def].returns.required().next().is_none() {
            return;
        }
        let message = format!("`{}` declares returns, but has no body to yield them", facet.name.text);
        let help = match facet.kind {
            FacetKind::Plain => "add `andThen { … }`, or make it an `event facet` that agents answer",
            FacetKind::Event | FacetKind::Workflow => "add `andThen { … }`",
        };
        self.report(Code::NoBody, facet.name.span, message, |d| d.help(help));
    }
}

fn has_script_clause(body: &BodySyntax<'_>) -> bool {
    body.clauses.iter().any(|clause| matches!(clause.kind, ClauseKind::Script(_)))
}
