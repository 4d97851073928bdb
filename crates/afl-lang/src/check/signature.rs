//! Signatures: the types of parameters, returns and fields, and the mixins.

use rustc_hash::FxHashSet;

use super::Checker;
use super::params::{ParamDef, ParamList, Repeats};
use super::table::{DefId, MixinRef, Sort};
use crate::code::Code;
use crate::source::{FileId, Span};
use crate::syntax::ast::{
    DeclKind, DeclSyntax, FacetSyntax, Ident, ItemSyntax, MixinSyntax, NamespaceSyntax, Param, Params,
    SyntaxTree,
};
use crate::types::TypeRef;

/// Only the prelude may declare namespaces of this name.
const RESERVED_NAMESPACE: &str = "afl";

impl<'a> Checker<'a> {
    pub(super) fn check_signatures(&mut self, trees: &'a [SyntaxTree<'a>], prelude: &'a SyntaxTree<'a>) {
        for (file, tree) in trees.iter().chain([prelude]).enumerate() {
            self.enter_file(FileId(file as u32));
            self.sign_items("", &tree.items);
        }
    }

    fn sign_items(&mut self, namespace: &'a str, items: &'a [ItemSyntax<'a>]) {
        let index = self.scopes.len();
        let scope = self.scope_of(namespace, items);
        self.scopes.push(scope);
        for item in items {
            match item {
                ItemSyntax::Use(_) => {}
                ItemSyntax::Decl(decl) => {
                    self.enter_scope(index);
                    self.sign(decl);
                    self.leave_scope();
                }
                ItemSyntax::Namespace(inner) => {
                    self.check_namespace_name(inner);
                    self.sign_items(&inner.name.text, &inner.items);
                }
            }
        }
    }

    fn check_namespace_name(&mut self, namespace: &NamespaceSyntax<'a>) {
        let in_prelude = self.file.0 as usize == self.sources.len();
        let reserved = namespace.name.text.split('.').next() == Some(RESERVED_NAMESPACE);
        if reserved && !in_prelude {
            let message = format!("namespaces of `{RESERVED_NAMESPACE}` belong to AgentFlow");
            self.report(Code::ReservedName, namespace.name.span, message, |d| {
                d.help("choose another first word")
            });
        }
    }

    fn sign(&mut self, decl: &'a DeclSyntax<'a>) {
        match &decl.kind {
            DeclKind::Facet(facet) => self.sign_facet(facet),
            DeclKind::Schema(schema) => {
                self.check_schema_name(schema.name);
                let fields = self.params(&schema.fields, "field");
                if let Some(id) = self.own(schema.name.text, schema.name.span) {
                    self.table[id].params = ParamList::new(fields);
                }
            }
            DeclKind::Implicit(_) => self.implicit_scopes.push(self.scope_index),
        }
    }

    fn check_schema_name(&mut self, name: Ident<'a>) {
        if TypeRef::builtin(name.text).is_some() {
            let message = format!("`{}` is a type of the language", name.text);
            self.report(Code::ReservedName, name.span, message, |d| {
                d.help("choose another name for the schema")
            });
        }
    }

    fn sign_facet(&mut self, facet: &'a FacetSyntax<'a>) {
        for param in &facet.params.list {
            self.check_param_name(param);
        }
        let params = self.params(&facet.params, "parameter");
        let returns =
            facet.returns.as_ref().map(|returns| self.params(returns, "return")).unwrap_or_default();
        let Some(id) = self.own(facet.name.text, facet.name.span) else { return };
        let def = &mut self.table[id];
        def.params = ParamList::new(params);
        def.returns = ParamList::new(returns);
        let targets = self.mixin_targets(&facet.mixins);
        self.table[id].mixins = self.joining(&facet.mixins, &targets, Some(id));
    }

    /// The declaration that stands here; `None` for one whose name was taken.
    pub(super) fn own(&self, name: &str, span: Span) -> Option<DefId> {
        let id = self.table.member(self.scope.namespace, name)?;
        (self.table[id].place == self.place(span)).then_some(id)
    }

    fn params(&mut self, params: &'a Params<'a>, noun: &str) -> Vec<ParamDef<'a>> {
        let mut repeats = Repeats::default();
        let mut defs = Vec::with_capacity(params.list.len());
        for (at, param) in params.list.iter().enumerate() {
            let place = self.place(param.name.span);
            if let Some(before) = repeats.first(&params.list, at, |param| param.name.text) {
                let before = self.place(before.name.span);
                let message = format!("the {noun} `{}` is declared twice", param.name.text);
                self.report(Code::DuplicateParameter, param.name.span, message, |d| {
                    d.related(before, "first declared here").help("rename one of the two")
                });
                continue;
            }
            let ty = self.resolve_type(&param.ty);
            defs.push(ParamDef { name: param.name.text, ty, default: param.default.as_ref(), place });
        }
        defs
    }

    fn check_param_name(&mut self, param: &Param<'a>) {
        if param.name.text.starts_with('_') {
            let message = format!("`{}` begins with `_`, which is kept for the runtime", param.name.text);
            self.report(Code::ReservedName, param.name.span, message, |d| {
                d.help("choose a name that begins with a letter")
            });
        }
    }

    /// The facets that are mixed in; each target that cannot be mixed in is reported.
    pub(super) fn mixin_targets(&mut self, mixins: &'a [MixinSyntax<'a>]) -> Vec<Option<DefId>> {
        mixins.iter().map(|mixin| self.mixin_target(mixin)).collect()
    }

    fn mixin_target(&mut self, mixin: &'a MixinSyntax<'a>) -> Option<DefId> {
        let id = self.resolve_or(&mixin.target, Self::policy_names)?;
        let def = &self.table[id];
        match def.sort {
            Sort::Facet(crate::syntax::ast::FacetKind::Workflow) | Sort::Schema => {
                let message =
                    format!("`{}` is {}; only facets can be a mixin", def.name, def.sort.described());
                let help = match def.sort {
                    Sort::Schema => "pass it as an argument, or declare a facet with these parameters",
                    Sort::Facet(_) | Sort::Policy => "call it as a step of its own",
                };
                let place = def.place;
                self.report(Code::MixinTarget, mixin.target.span, message, |d| {
                    d.related(place, "declared here").help(help)
                });
                None
            }
            Sort::Facet(_) | Sort::Policy => Some(id),
        }
    }

    /// The mixins whose attributes join: all but policies. Names that clash are reported.
    pub(super) fn joining(
        &mut self,
        mixins: &'a [MixinSyntax<'a>],
        targets: &[Option<DefId>],
        owner: Option<DefId>,
    ) -> Vec<MixinRef<'a>> {
        let mut joining: Vec<MixinRef<'a>> = Vec::new();
        let mut met = FxHashSet::default();
        let mut aliases = FxHashSet::default();
        for (mixin, target) in mixins.iter().zip(targets) {
            let Some(def) = *target else { continue };
            let alias = mixin.alias.map(|alias| alias.text);
            let repeated = !met.insert((def, alias));
            if let Some(owner) = owner {
                self.check_alias(mixin, owner);
            }
            if repeated || alias.is_some_and(|alias| aliases.contains(alias)) {
                self.mixed_in_twice(mixin, def, alias);
            } else if self.table[def].sort != Sort::Policy {
                aliases.extend(alias);
                joining.push(MixinRef { def, alias });
            }
        }
        joining
    }

    /// An alias stands among the attributes of its step, and names a target of yields.
    fn check_alias(&mut self, mixin: &MixinSyntax<'a>, owner: DefId) {
        let Some(alias) = mixin.alias else { return };
        let def = &self.table[owner];
        let attribute =
            def.params.named(alias.text).or_else(|| def.returns.named(alias.text)).map(|param| param.place);
        let Some(place) = attribute.or_else(|| (def.name == alias.text).then_some(def.place)) else { return };
        let message = format!("the alias `{}` is already a name of `{}`", alias.text, def.name);
        self.report(Code::DuplicateAlias, alias.span, message, |d| {
            d.related(place, "declared here").help("choose another alias")
        });
    }

    fn mixed_in_twice(&mut self, mixin: &MixinSyntax<'a>, def: DefId, alias: Option<&str>) {
        let (message, help) = match alias {
            Some(alias) => (format!("the alias `{alias}` is given twice"), "choose another alias"),
            None if self.table[def].sort == Sort::Policy => {
                (format!("the policy `{}` is given twice", mixin.target.text), "keep one of the two")
            }
            None => (format!("`{}` is mixed in twice", mixin.target.text), "give each an alias with `as`"),
        };
        self.report(Code::DuplicateAlias, mixin.span, message, |d| d.help(help));
    }
}
