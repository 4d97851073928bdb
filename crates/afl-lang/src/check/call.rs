//! Calls of facets and schemas, with their mixins.

use std::rc::Rc;

use super::Checker;
use super::args::UNSET;
use super::scope::Instance;
use super::table::{DefId, Sort};
use crate::code::Code;
use crate::program::{CallExpr, MixinCall, QualifiedName};
use crate::syntax::ast::{Arg, CallSyntax, MixinSyntax, QName};

impl<'a> Checker<'a> {
    /// Resolves the target and the mixins of a call; its arguments come later, when all steps are known.
    pub(super) fn instance_of(&mut self, call: &'a CallSyntax<'a>) -> Instance<'a> {
        let def = if call.target.is_missing() { None } else { self.resolve(&call.target) };
        let def = def.filter(|def| self.check_callable(*def, call));
        let call_mixins = self.mixin_targets(&call.mixins);
        let mut mixins = def.map(|def| self.table[def].mixins.clone()).unwrap_or_default();
        mixins.extend(self.joining(&call.mixins, &call_mixins, def));
        let unset = def.and_then(|def| self.unset_param(def, &call.args.list));
        Instance { def, mixins, call_mixins, unset }
    }

    /// False, with an error, where the definition cannot be a step.
    fn check_callable(&mut self, def: DefId, call: &CallSyntax<'a>) -> bool {
        match self.table[def].sort {
            Sort::Policy => {
                let message = format!("`{}` is a policy; it is not a step of its own", call.target.text);
                let help = format!("mix it into a step: `with {}(…)`", call.target.text);
                self.report(Code::NotCallable, call.target.span, message, |d| d.help(help));
                false
            }
            Sort::Schema | Sort::Facet(_) => true,
        }
    }

    fn unset_param(&self, def: DefId, args: &[Arg<'a>]) -> Option<&'a str> {
        let param =
            self.table[def].params.named(UNSET).filter(|param| self.may_stay_unset(def, param.name))?;
        let given = param.default.is_some() || args.iter().any(|arg| arg.name.text == param.name);
        (!given).then_some(param.name)
    }

    /// The compiled call of an instance.
    pub(super) fn call(
        &mut self,
        call: &'a CallSyntax<'a>,
        instance: &Rc<Instance<'a>>,
        id: String,
    ) -> CallExpr {
        let location = self.location(call.span);
        let args = self.args(instance.def, &call.target, &call.args);
        if let Some(def) = instance.def {
            self.check_settings(def, &call.target, &call.args, call.span);
        }
        if let (Some(name), Some(def)) = (instance.unset, instance.def)
            && !args.iter().any(|arg| arg.name == name)
        {
            self.report_unset(def, name);
        }
        let mixins = self.mixin_calls(&call.mixins, &instance.call_mixins);
        self.check_policies(instance.def, &call.mixins, &instance.call_mixins);
        CallExpr { id, target: self.target(instance.def, &call.target), args, mixins, location }
    }

    /// Once for each facet, where it is declared.
    fn report_unset(&mut self, def: DefId, name: &str) {
        if !self.unset_reported.insert(def) {
            return;
        }
        let callee = &self.table[def];
        let Some(place) = callee.params.named(name).map(|param| param.place) else { return };
        let message = format!("calls of `{}` leave out `{name}`, so it has no value", callee.name);
        let help = format!(
            "declare it as a return, `facet {}(…) => ({name}: …)`, or give it a default",
            callee.name
        );
        let here = std::mem::replace(&mut self.file, place.file);
        self.report(Code::UnsetOutput, place.span, message, |d| d.help(help));
        self.file = here;
    }

    pub(super) fn mixin_calls(
        &mut self,
        mixins: &'a [MixinSyntax<'a>],
        targets: &[Option<DefId>],
    ) -> Vec<MixinCall> {
        let compile = |(mixin, target): (&'a MixinSyntax<'a>, &Option<DefId>)| {
            let location = self.location(mixin.span);
            let args = self.args(*target, &mixin.target, &mixin.args);
            if let Some(def) = *target {
                self.check_settings(def, &mixin.target, &mixin.args, mixin.span);
            }
            let alias = mixin.alias.map(|alias| alias.text.to_owned());
            MixinCall { target: self.target(*target, &mixin.target), alias, args, location }
        };
        mixins.iter().zip(targets).map(compile).collect()
    }

    /// The qualified target; as written where it is unknown.
    fn target(&self, def: Option<DefId>, written: &QName<'a>) -> QualifiedName {
        match def {
            Some(def) => self.table[def].id.clone(),
            None => written.text.as_ref().into(),
        }
    }
}
