//! Attributes: what a step, an owner or a value offers behind a dot.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::Checker;
use super::params::ParamDef;
use super::scope::Instance;
use super::table::{Def, DefId, Sort};
use super::ty::Type;
use crate::code::Code;
use crate::syntax::ast::{Ident, Wholeness};

impl<'a> Checker<'a> {
    /// The attribute of a step: its returns, then its parameters, then what its mixins bring.
    pub(super) fn step_attribute(&self, instance: &Instance<'a>, name: &str) -> Option<Type> {
        let Some(def) = instance.def.map(|id| &self.table[id]) else { return Some(Type::Broken) };
        let param = || def.params.named(name).filter(|param| instance.unset != Some(param.name));
        self.own_or_mixed_in(def.returns.named(name).or_else(param), def, instance, name)
    }

    /// The meaning of `$.name` in the blocks of an owner: parameters, mixins, and results that an event or a script
    /// has returned before the blocks begin.
    pub(super) fn owner_attribute(&self, instance: &Instance<'a>, name: &str) -> Option<Type> {
        let Some(def) = instance.def.map(|id| &self.table[id]) else { return Some(Type::Broken) };
        let returned = || def.returns.named(name).filter(|_| def.is_event() || def.has_script());
        self.own_or_mixed_in(def.params.named(name).or_else(returned), def, instance, name)
    }

    /// The type of an attribute of its own, or of a mixin's; of a broken declaration everything is believed.
    fn own_or_mixed_in(
        &self,
        own: Option<&ParamDef<'a>>,
        def: &Def<'a>,
        instance: &Instance<'a>,
        name: &str,
    ) -> Option<Type> {
        let is_broken = def.wholeness == Wholeness::Broken || instance.lacks_mixin();
        own.map(|param| param.ty.clone())
            .or_else(|| self.mixin_attribute(instance, name))
            .or_else(|| is_broken.then_some(Type::Broken))
    }

    pub(super) fn mixin_attribute(&self, instance: &Instance<'a>, name: &str) -> Option<Type> {
        instance.mixins.iter().find_map(|mixin| match mixin.alias {
            Some(alias) => (alias == name).then(|| self.record_of(mixin.def)),
            None => self.declared(mixin.def, name).map(|param| param.ty.clone()),
        })
    }

    fn declared(&self, def: DefId, name: &str) -> Option<&ParamDef<'a>> {
        let def = &self.table[def];
        def.returns.named(name).or_else(|| def.params.named(name))
    }

    /// All attributes of a mixin, as `s.alias`.
    fn record_of(&self, def: DefId) -> Type {
        let def = &self.table[def];
        let hidden = |param: &&ParamDef<'a>| def.returns.named(param.name).is_none();
        let fields = def.returns.iter().chain(def.params.iter().filter(hidden));
        Type::Record(fields.map(|param| (param.name.to_owned(), param.ty.clone())).collect())
    }

    /// All attributes of a step, as the bare name of the step gives them.
    pub(super) fn step_record(&self, instance: &Instance<'a>) -> Type {
        let Some(id) = instance.def else { return Type::Broken };
        if self.table[id].sort == Sort::Schema {
            return Type::Schema(id);
        }
        self.record(instance, |name| self.step_attribute(instance, name))
    }

    /// All attributes of an instance, each with the type that `attribute` gives it.
    pub(super) fn record(&self, instance: &Instance<'a>, attribute: impl Fn(&str) -> Option<Type>) -> Type {
        let mut met = FxHashSet::default();
        let names = self.attribute_names(instance).filter(|name| met.insert(*name));
        Type::Record(names.filter_map(|name| Some((name.to_owned(), attribute(name)?))).collect())
    }

    /// The names that [`step_attribute`](Self::step_attribute) knows, for suggestions.
    pub(super) fn attribute_names(&self, instance: &Instance<'a>) -> impl Iterator<Item = &'a str> {
        let own = instance.def.into_iter().chain(instance.mixins.iter().map(|mixin| mixin.def));
        let names = own.flat_map(|id| {
            let def = &self.table[id];
            def.returns.iter().chain(def.params.iter()).map(|param| param.name)
        });
        let aliases = instance.mixins.iter().filter_map(|mixin| mixin.alias);
        names.chain(aliases).filter(|name| instance.unset != Some(name))
    }

    /// The type at the end of a path that begins with a value of type `ty`, called `written`.
    pub(super) fn walk(&mut self, mut ty: Type, path: &[Ident<'a>], mut written: String) -> Type {
        for segment in path {
            ty = match self.field(&ty, segment, &written) {
                Some(ty) => ty,
                None => return Type::Broken,
            };
            written.push('.');
            written.push_str(segment.text);
        }
        ty
    }

    fn field(&mut self, ty: &Type, segment: &Ident<'a>, written: &str) -> Option<Type> {
        match ty {
            Type::Json | Type::Broken => Some(ty.clone()),
            Type::Either(_) => Some(Type::Json),
            Type::Nullable(of) => self.field(of, segment, written).map(Type::nullable),
            Type::Schema(schema) => {
                let def = &self.table[*schema];
                let found = def.params.named(segment.text).map(|field| field.ty.clone());
                let forgiven = (def.wholeness == Wholeness::Broken).then_some(Type::Broken);
                found.or(forgiven).or_else(|| {
                    let names = self.table[*schema].params.iter().map(|field| field.name);
                    let help = self.did_you_mean(segment.text, names);
                    self.no_field(segment, written, help)
                })
            }
            Type::Record(fields) => {
                let fields = Rc::clone(fields);
                let found = fields.iter().find(|(name, _)| name == segment.text).map(|(_, ty)| ty.clone());
                found.or_else(|| {
                    let help = self.did_you_mean(segment.text, fields.iter().map(|(name, _)| name.as_str()));
                    self.no_field(segment, written, help)
                })
            }
            Type::List(_) => {
                let message = format!("`{written}` is a list; it has no field `{}`", segment.text);
                let help = format!("take an element first: `{written}[0].{}`", segment.text);
                self.report(Code::UnknownAttribute, segment.span, message, |d| d.help(help));
                None
            }
            Type::String | Type::Long | Type::Int | Type::Double | Type::Boolean | Type::Null => {
                let message =
                    format!("`{written}` is {}; it has no field `{}`", ty.show(&self.table), segment.text);
                self.report(Code::UnknownAttribute, segment.span, message, |d| d);
                None
            }
        }
    }

    fn no_field(&mut self, segment: &Ident<'a>, written: &str, help: Option<String>) -> Option<Type> {
        let message = format!("`{written}` has no field `{}`", segment.text);
        self.report(Code::UnknownAttribute, segment.span, message, |d| d.help_if(help));
        None
    }
}
