//! Arguments: explicit ones, those that an implicit supplies, and those that are missing.

use super::Checker;
use super::hint::listed;
use super::params::Repeats;
use super::table::{DefId, ImplicitDef, NamespaceId, Sort, TOP_LEVEL, Table};
use super::ty::Type;
use crate::code::Code;
use crate::names::NameSet;
use crate::program::NamedArg;
use crate::source::{FileSpan, Span};
use crate::syntax::ast::{Arg, Args, QName, Wholeness};

/// The parameter that a call may leave out although it has no default.
///
/// The documents write the result of a facet as a parameter, `facet Value(input: Long, output: Long)`,
/// and call it as `Value(input = 1)`. So the parameter of this name, on a facet without returns, is a
/// slot that stays empty.
pub(super) const UNSET: &str = "output";

pub(super) struct ArgSlot<'a> {
    pub(super) callee: &'a str,
    pub(super) ty: Type,
    pub(super) place: FileSpan,
    /// A `foreach` collects: a list takes single elements too.
    pub(super) element: Option<Type>,
}

impl ArgSlot<'_> {
    fn takes(&self, value: &Type, table: &Table<'_>) -> bool {
        value.fits(&self.ty, table) || self.element.as_ref().is_some_and(|element| value.fits(element, table))
    }
}

impl<'a> Checker<'a> {
    /// Checks the arguments of a call and adds what an implicit supplies.
    pub(super) fn args(
        &mut self,
        def: Option<DefId>,
        target: &QName<'a>,
        args: &'a Args<'a>,
    ) -> Vec<NamedArg> {
        let mut compiled = self.checked_args(args, |checker, arg| checker.param_slot(def?, arg));
        if let Some(def) = def {
            let supplied = self.add_implicit_args(def, target.span, &mut compiled);
            if args.wholeness == Wholeness::Whole && supplied == Wholeness::Whole {
                self.check_missing(def, target.span, &compiled);
            }
        }
        compiled
    }

    /// Arguments that anything may be named, such as those of `sys.log`.
    pub(super) fn free_args(&mut self, args: &'a Args<'a>) -> Vec<NamedArg> {
        self.checked_args(args, |_, _| None)
    }

    /// The arguments as written, each fitting its slot.
    pub(super) fn checked_args(
        &mut self,
        args: &'a Args<'a>,
        slot_of: impl Fn(&mut Self, &'a Arg<'a>) -> Option<ArgSlot<'a>>,
    ) -> Vec<NamedArg> {
        let mut compiled = Vec::with_capacity(args.list.len());
        let mut repeats = Repeats::default();
        for (at, arg) in args.list.iter().enumerate() {
            if let Some(before) = repeats.first(&args.list, at, |arg| arg.name.text) {
                self.repeated(before.name.span, arg);
            }
            let slot = slot_of(self, arg);
            let (value, ty) = self.expr(&arg.value);
            if let Some(slot) = slot
                && !slot.takes(&ty, &self.table)
            {
                let what = format!("`{}` of `{}`", arg.name.text, slot.callee);
                self.wrong_type(arg.value.span, &ty, &slot.ty, &what, |d| {
                    d.related(slot.place, "declared here")
                });
            }
            compiled.push(NamedArg { name: arg.name.text.to_owned(), value, implicit: None });
        }
        compiled
    }

    fn repeated(&mut self, first: Span, arg: &Arg<'a>) {
        let place = self.place(first);
        let message = format!("`{}` is given twice", arg.name.text);
        self.report(Code::DuplicateArgument, arg.name.span, message, |d| {
            d.related(place, "first given here").help("remove one of the two")
        });
    }

    /// The parameter that an argument goes to; an unknown one is reported.
    fn param_slot(&mut self, def: DefId, arg: &Arg<'a>) -> Option<ArgSlot<'a>> {
        let callee = &self.table[def];
        if let Some(param) = callee.params.named(arg.name.text) {
            return Some(ArgSlot {
                callee: callee.name,
                ty: param.ty.clone(),
                place: param.place,
                element: None,
            });
        }
        if callee.wholeness == Wholeness::Broken {
            return None;
        }
        let noun = if callee.sort == Sort::Schema { "field" } else { "parameter" };
        let message = format!("`{}` has no {noun} `{}`", callee.name, arg.name.text);
        let help = if callee.params.is_empty() {
            Some(format!("`{}` takes no arguments", callee.name))
        } else {
            self.did_you_mean(arg.name.text, callee.params.iter().map(|param| param.name))
        };
        let place = callee.place;
        self.report(Code::UnknownArgument, arg.name.span, message, |d| {
            d.related(place, "declared here").help_if(help)
        });
        None
    }

    /// Adds what an implicit supplies. `Broken` where two could, which is reported.
    fn add_implicit_args(&mut self, def: DefId, span: Span, args: &mut Vec<NamedArg>) -> Wholeness {
        let given = NameSet::new(args, |arg| &arg.name);
        let missing = |arg: &&NamedArg| !given.has(&arg.name);
        match self.implicits(def)[..] {
            [] => {}
            [implicit] => {
                let supplied: Vec<NamedArg> =
                    self.implicit_args[implicit].iter().filter(missing).cloned().collect();
                self.mark_used(self.table.implicits[implicit].namespace);
                args.extend(supplied);
            }
            [first, second, ..] => {
                let supplies = |at: usize| self.implicit_args[at].iter().any(|arg| missing(&arg));
                if supplies(first) || supplies(second) {
                    self.ambiguous_implicit(def, span, [first, second]);
                    return Wholeness::Broken;
                }
            }
        }
        Wholeness::Whole
    }

    /// The implicits for this facet, looked up as names are: of the own namespace; else of imported ones,
    /// the facet's own and the top level together; else anywhere. More than one is too many.
    fn implicits(&self, def: DefId) -> Vec<usize> {
        let Some(by_namespace) = self.implicits_for.get(&def) else { return Vec::new() };
        let of = |namespace: NamespaceId| by_namespace.get(&namespace).copied();
        if let Some(own) = of(self.scope.namespace) {
            return vec![own];
        }
        let home = self.table[def].namespace;
        let imported = self.scope.imported.keys().copied();
        let imported = imported.filter(|namespace| ![TOP_LEVEL, home].contains(namespace));
        let mut near: Vec<usize> = imported.chain([TOP_LEVEL]).filter_map(of).collect();
        if home != TOP_LEVEL {
            near.extend(of(home));
        }
        if near.is_empty() {
            near.extend(by_namespace.values().copied().take(2));
        }
        near.sort_unstable();
        near
    }

    fn ambiguous_implicit(&mut self, def: DefId, span: Span, implicits: [usize; 2]) {
        let [first, second] = implicits.map(|at| &self.table.implicits[at]);
        let callee = self.table[def].name;
        let message = format!("`{}` and `{}` both supply arguments of `{callee}`", first.id, second.id);
        let places = [first, second].map(ImplicitDef::place);
        for namespace in [first.namespace, second.namespace] {
            self.mark_used(namespace);
        }
        self.report(Code::AmbiguousName, span, message, |d| {
            let d = d.related(places[0], "declared here").related(places[1], "declared here");
            d.help("give the arguments here, or declare an implicit in this namespace")
        });
    }

    /// Compiles every `implicit`, before anything that may use it.
    pub(super) fn check_implicits(&mut self) {
        for index in 0..self.table.implicits.len() {
            let implicit = &self.table.implicits[index];
            let (ast, namespace, file, id) =
                (implicit.ast, implicit.namespace, implicit.file, implicit.id.clone());
            self.enter_file(file);
            self.enter_scope(self.implicit_scopes[index]);
            let def = self.resolve(&ast.call.target);
            let mut args = self.checked_args(&ast.call.args, |checker, arg| checker.param_slot(def?, arg));
            for arg in &mut args {
                arg.implicit = Some(id.clone());
            }
            self.implicit_args.push(args);
            self.leave_scope();
            for mixin in &ast.call.mixins {
                self.report(Code::MixinTarget, mixin.span, "an implicit takes no mixins", |d| {
                    d.help("mix it in where the facet is called")
                });
            }
            let Some(def) = def else { continue };
            let first = *self.implicits_for.entry(def).or_default().entry(namespace).or_insert(index);
            if first != index {
                self.duplicate_implicit(first, index, def);
            }
        }
    }

    fn duplicate_implicit(&mut self, first: usize, second: usize, def: DefId) {
        let place = |at: usize| self.table.implicits[at].place();
        let message = format!("there is already an implicit for `{}`", self.table[def].name);
        let (first, second) = (place(first), place(second));
        self.report(Code::DuplicateImplicit, second.span, message, |d| {
            d.related(first, "declared here").help("remove one of the two")
        });
    }

    /// One error for all that is missing.
    fn check_missing(&mut self, def: DefId, span: Span, given: &[NamedArg]) {
        let callee = &self.table[def];
        if callee.wholeness == Wholeness::Broken {
            return;
        }
        // An argument that the callee does not know, and that has been reported, is most likely one of
        // those that are missing.
        let unknown = given.iter().filter(|arg| callee.params.named(&arg.name).is_none()).count();
        let given = NameSet::new(given, |arg| &arg.name);
        let missing: Vec<_> = callee
            .params
            .required()
            .filter(|param| !given.has(param.name))
            .filter(|param| !self.may_stay_unset(def, param.name))
            .collect();
        if missing.len() <= unknown {
            return;
        }
        let [first, ..] = &missing[..] else { return };
        let names: Vec<&str> = missing.iter().map(|param| param.name).collect();
        let message = format!("`{}` needs {}", callee.name, listed(&names));
        let help = format!("add `{} = …` ({})", first.name, first.ty.show(&self.table));
        let place = first.place;
        self.report(Code::MissingArgument, span, message, |d| d.related(place, "declared here").help(help));
    }

    /// See [`UNSET`].
    pub(super) fn may_stay_unset(&self, def: DefId, param: &str) -> bool {
        let callee = &self.table[def];
        matches!(callee.sort, Sort::Facet(_)) && !callee.declares_returns() && param == UNSET
    }
}
