//! Declarations, in source order, to their compiled form.

use std::rc::Rc;
use std::sync::Arc;

use super::Checker;
use super::params::ParamList;
use super::scope::{FrameMode, Instance};
use super::table::{Def, DefId};
use crate::program::{
    CallExpr, Decl, FacetDecl, ImplicitDecl, NamedArg, Namespace, Parameter, Program, QualifiedName,
    SchemaDecl,
};
use crate::source::FileId;
use crate::syntax::ast::{self, DeclKind, ItemSyntax, SyntaxTree};

impl<'a> Checker<'a> {
    pub(super) fn check_bodies(&mut self, trees: &'a [SyntaxTree<'a>]) -> Program {
        let mut declarations = Vec::new();
        let mut next_scope = 0;
        self.next_implicit = 0;
        for (file, tree) in trees.iter().enumerate() {
            self.enter_file(FileId(file as u32));
            declarations.extend(self.items(&tree.items, &mut next_scope));
        }
        let sources = self.sources.iter().map(|source| source.name.clone()).collect();
        Program { declarations, sources }
    }

    /// The declarations among `items`. Scopes are numbered as the signature pass met them: a list of
    /// items first, then the namespaces in it.
    fn items(&mut self, items: &'a [ItemSyntax<'a>], next_scope: &mut usize) -> Vec<Decl> {
        let scope = *next_scope;
        *next_scope += 1;
        let mut declarations = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ItemSyntax::Use(_) => {}
                ItemSyntax::Decl(decl) => {
                    self.enter_scope(scope);
                    declarations.extend(self.decl(decl));
                    self.leave_scope();
                }
                ItemSyntax::Namespace(namespace) => {
                    let inner = self.items(&namespace.items, next_scope);
                    declarations.push(Decl::Namespace(self.namespace(namespace, inner)));
                }
            }
        }
        self.enter_scope(scope);
        self.check_imports();
        self.leave_scope();
        declarations
    }

    fn namespace(&mut self, namespace: &'a ast::NamespaceSyntax<'a>, declarations: Vec<Decl>) -> Namespace {
        let used = |item: &ItemSyntax<'a>| match item {
            ItemSyntax::Use(import) => Some(QualifiedName::from(import.namespace.text.as_ref())),
            ItemSyntax::Namespace(_) | ItemSyntax::Decl(_) => None,
        };
        Namespace {
            name: namespace.name.text.as_ref().into(),
            doc: self.doc_text(namespace.doc),
            uses: namespace.items.iter().filter_map(used).collect(),
            declarations,
            location: self.location(namespace.span),
            source: Some(self.file),
        }
    }

    fn decl(&mut self, decl: &'a ast::DeclSyntax<'a>) -> Option<Decl> {
        match &decl.kind {
            DeclKind::Facet(facet) => {
                let id = self.own(facet.name.text, facet.name.span)?;
                Some(Decl::Facet(self.facet(decl, facet, id)))
            }
            DeclKind::Schema(schema) => {
                let id = self.own(schema.name.text, schema.name.span)?;
                let location = self.location(decl.span);
                Some(Decl::Schema(SchemaDecl {
                    id: Arc::clone(&self.table[id].id),
                    name: schema.name.text.to_owned(),
                    doc: self.doc_text(decl.doc),
                    fields: self.parameters(id, |def| &def.params),
                    location,
                    source: Some(self.file),
                }))
            }
            DeclKind::Implicit(implicit) => Some(Decl::Implicit(self.implicit(decl, implicit))),
        }
    }

    fn facet(
        &mut self,
        decl: &'a ast::DeclSyntax<'a>,
        facet: &'a ast::FacetSyntax<'a>,
        def: DefId,
    ) -> FacetDecl {
        let location = self.location(decl.span);
        let id = Arc::clone(&self.table[def].id);
        self.calls.caller = Some(def);
        self.check_doc(decl.doc, def);
        let params = self.parameters(def, |def| &def.params);
        let returns = self.parameters(def, |def| &def.returns);
        let owner = Rc::new(Instance {
            def: Some(def),
            mixins: self.table[def].mixins.clone(),
            ..Instance::default()
        });
        let targets: Vec<Option<DefId>> =
            facet.mixins.iter().map(|mixin| self.resolve_again(&mixin.target)).collect();
        for (mixin, target) in facet.mixins.iter().zip(&targets) {
            let place = self.place(mixin.target.span);
            if let Some(target) = target {
                self.calls.note(*target, place);
            }
        }
        self.push_frame(&owner, FrameMode::Normal);
        let mixins = self.mixin_calls(&facet.mixins, &targets);
        self.pop_frame();
        self.check_policies(Some(def), &facet.mixins, &targets);
        let script = facet.body.script.as_ref().map(|script| self.script(script));
        let prompt = facet.body.prompt.as_ref().map(|prompt| self.prompt(prompt, def));
        let body = self.body(&owner, &facet.body, &id);
        self.check_returns(facet, def, &body);
        FacetDecl {
            kind: facet.kind,
            id,
            name: facet.name.text.to_owned(),
            doc: self.doc_text(decl.doc),
            params,
            returns,
            mixins,
            script,
            prompt,
            body: body.blocks,
            catch: body.catch,
            location,
            source: Some(self.file),
        }
    }

    fn parameters(&mut self, def: DefId, list: ListOf) -> Vec<Parameter> {
        let count = list(&self.table[def]).len();
        let mut parameters = Vec::with_capacity(count);
        for at in 0..count {
            let param = &list(&self.table[def])[at];
            let (name, ty, default) = (param.name, param.ty.clone(), param.default);
            let default =
                default.map(|value| self.expr_fitting(value, &ty, || format!("the default of `{name}`")));
            parameters.push(Parameter { name: name.to_owned(), ty: ty.to_ref(&self.table), default });
        }
        parameters
    }

    fn implicit(&mut self, decl: &'a ast::DeclSyntax<'a>, implicit: &'a ast::Implicit<'a>) -> ImplicitDecl {
        let index = self.next_implicit;
        self.next_implicit += 1;
        let id = Arc::clone(&self.table.implicits[index].id);
        let without_origin = |arg: NamedArg| NamedArg { implicit: None, ..arg };
        let args = self.implicit_args[index].iter().cloned().map(without_origin).collect();
        let target = match self.resolve_again(&implicit.call.target) {
            Some(def) => Arc::clone(&self.table[def].id),
            None => implicit.call.target.text.as_ref().into(),
        };
        let call = CallExpr {
            id: format!("{id}/call"),
            target,
            args,
            mixins: Vec::new(),
            location: self.location(implicit.call.span),
        };
        let location = self.location(decl.span);
        ImplicitDecl { id, name: implicit.name.text.to_owned(), call, location, source: Some(self.file) }
    }
}

/// Gives one of a declaration's lists.
type ListOf = for<'t, 'a> fn(&'t Def<'a>) -> &'t ParamList<'a>;
