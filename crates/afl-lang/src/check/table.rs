//! The symbol table: every declaration of every text, and the namespaces they stand in.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::params::ParamList;
use super::ty::Type;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::{FileId, FileSpan};
use crate::syntax::ast::{
    DeclKind, DeclSyntax, FacetKind, FacetSyntax, Ident, Implicit, ItemSyntax, SyntaxTree, Wholeness,
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct NamespaceId(u32);

/// Declarations outside of any namespace.
pub(super) const TOP_LEVEL: NamespaceId = NamespaceId(0);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct DefId(pub(super) u32);

/// The sort of thing that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Facet(FacetKind),
    Schema,
    /// A facet of `afl.policy`.
    Policy,
}

impl Sort {
    /// "a facet", "an event facet".
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Facet(FacetKind::Plain) => "a facet",
            Self::Facet(FacetKind::Event) => "an event facet",
            Self::Facet(FacetKind::Workflow) => "a workflow",
            Self::Schema => "a schema",
            Self::Policy => "a policy",
        }
    }
}

/// A facet or a schema.
#[derive(Debug)]
pub(super) struct Def<'a> {
    pub(super) sort: Sort,
    pub(super) name: &'a str,
    pub(super) id: Arc<str>,
    pub(super) namespace: NamespaceId,
    pub(super) place: FileSpan,
    /// The parameters of a facet, the fields of a schema; filled by the signature pass.
    pub(super) params: ParamList<'a>,
    pub(super) returns: ParamList<'a>,
    pub(super) mixins: Vec<MixinRef<'a>>,
    pub(super) ast: Option<&'a FacetSyntax<'a>>,
    /// Broken: an argument it does not seem to take may be one that was lost.
    pub(super) wholeness: Wholeness,
}

impl<'a> Def<'a> {
    pub(super) fn declares_returns(&self) -> bool {
        self.ast.is_some_and(|facet| facet.returns.is_some())
    }

    pub(super) fn is_event(&self) -> bool {
        self.sort == Sort::Facet(FacetKind::Event)
    }

    pub(super) fn has_script(&self) -> bool {
        self.ast.is_some_and(|facet| facet.body.script.is_some())
    }

    /// The parameters that accept a yield: its returns, or its parameters where it declares no returns.
    pub(super) fn yieldable(&self) -> &ParamList<'a> {
        if self.declares_returns() { &self.returns } else { &self.params }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MixinRef<'a> {
    pub(super) def: DefId,
    pub(super) alias: Option<&'a str>,
}

/// An `implicit` and where it counts.
#[derive(Debug)]
pub(super) struct ImplicitDef<'a> {
    pub(super) namespace: NamespaceId,
    pub(super) id: Arc<str>,
    pub(super) ast: &'a Implicit<'a>,
    pub(super) file: FileId,
}

impl ImplicitDef<'_> {
    pub(super) fn place(&self) -> FileSpan {
        FileSpan { file: self.file, span: self.ast.name.span }
    }
}

#[derive(Debug, Default)]
pub(super) struct Table<'a> {
    namespaces: Vec<&'a str>,
    namespace_ids: FxHashMap<&'a str, NamespaceId>,
    defs: Vec<Def<'a>>,
    /// How many of them, the first ones, are those of the prelude.
    prelude: u32,
    members: FxHashMap<(NamespaceId, &'a str), DefId>,
    anywhere: FxHashMap<&'a str, Vec<DefId>>,
    pub(super) implicits: Vec<ImplicitDef<'a>>,
    implicit_names: FxHashMap<(NamespaceId, &'a str), FileSpan>,
}

impl<'a> Index<DefId> for Table<'a> {
    type Output = Def<'a>;

    fn index(&self, id: DefId) -> &Def<'a> {
        &self.defs[id.0 as usize]
    }
}

impl IndexMut<DefId> for Table<'_> {
    fn index_mut(&mut self, id: DefId) -> &mut Self::Output {
        &mut self.defs[id.0 as usize]
    }
}

impl<'a> Table<'a> {
    pub(super) fn new() -> Self {
        let mut table = Self::default();
        table.intern("");
        table
    }

    fn intern(&mut self, name: &'a str) -> NamespaceId {
        let next = NamespaceId(self.namespaces.len() as u32);
        let id = *self.namespace_ids.entry(name).or_insert(next);
        if id == next {
            self.namespaces.push(name);
        }
        id
    }

    pub(super) fn namespace(&self, name: &str) -> Option<NamespaceId> {
        self.namespace_ids.get(name).copied()
    }

    pub(super) fn namespace_name(&self, id: NamespaceId) -> &'a str {
        self.namespaces[id.0 as usize]
    }

    pub(super) fn namespace_names(&self) -> impl Iterator<Item = &'a str> {
        self.namespaces.iter().copied().filter(|name| !name.is_empty())
    }

    pub(super) fn member(&self, namespace: NamespaceId, name: &str) -> Option<DefId> {
        self.members.get(&(namespace, name)).copied()
    }

    /// Every declaration of this short name, wherever it stands.
    pub(super) fn anywhere(&self, name: &str) -> &[DefId] {
        self.anywhere.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = DefId> + use<> {
        (0..self.defs.len() as u32).map(DefId)
    }

    pub(super) fn defs(&self) -> impl Iterator<Item = &Def<'a>> {
        self.defs.iter()
    }

    /// Enters all declarations of a text; reports names that are taken.
    pub(super) fn declare(&mut self, file: FileId, tree: &'a SyntaxTree<'a>) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        self.declare_items(file, TOP_LEVEL, &tree.items, &mut diagnostics);
        diagnostics
    }

    /// Enters the policies and the facets of time.
    pub(super) fn declare_prelude(&mut self, file: FileId, tree: &'a SyntaxTree<'a>) {
        let taken = self.declare(file, tree);
        assert!(taken.is_empty(), "the prelude declares every name once");
        for def in &mut self.defs {
            if def.sort == Sort::Facet(FacetKind::Plain) {
                def.sort = Sort::Policy;
            }
        }
        self.prelude = self.defs.len() as u32;
    }

    /// Whether the prelude declares it.
    pub(super) fn is_of_prelude(&self, id: DefId) -> bool {
        id.0 < self.prelude
    }

    fn declare_items(
        &mut self,
        file: FileId,
        namespace: NamespaceId,
        items: &'a [ItemSyntax<'a>],
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for item in items {
            match item {
                ItemSyntax::Use(_) => {}
                ItemSyntax::Namespace(inner) => {
                    let id = self.intern(&inner.name.text);
                    self.declare_items(file, id, &inner.items, diagnostics);
                }
                ItemSyntax::Decl(decl) => diagnostics.extend(self.declare_one(file, namespace, decl)),
            }
        }
    }

    fn declare_one(
        &mut self,
        file: FileId,
        namespace: NamespaceId,
        decl: &'a DeclSyntax<'a>,
    ) -> Option<Diagnostic> {
        let (sort, name, ast, wholeness) = match &decl.kind {
            DeclKind::Facet(facet) => {
                let returns = facet.returns.as_ref().map(|returns| returns.wholeness);
                let broken = returns.filter(|returns| *returns == Wholeness::Broken);
                (Sort::Facet(facet.kind), facet.name, Some(facet), broken.unwrap_or(facet.params.wholeness))
            }
            DeclKind::Schema(schema) => (Sort::Schema, schema.name, None, schema.fields.wholeness),
            DeclKind::Implicit(ast) => return self.declare_implicit(file, namespace, ast),
        };
        let place = FileSpan { file, span: name.span };
        if let Some(taken) = self.member(namespace, name.text) {
            return Some(self.duplicate(name, place, taken));
        }
        let implicit = self.implicit_names.get(&(namespace, name.text)).copied();
        let def = Def {
            sort,
            name: name.text,
            id: self.qualified(namespace, name.text),
            namespace,
            place,
            params: ParamList::default(),
            returns: ParamList::default(),
            mixins: Vec::new(),
            ast,
            wholeness,
        };
        self.enter(def);
        implicit.map(|first| taken_by_implicit(name, place, first))
    }

    fn declare_implicit(
        &mut self,
        file: FileId,
        namespace: NamespaceId,
        ast: &'a Implicit<'a>,
    ) -> Option<Diagnostic> {
        let id = self.qualified(namespace, ast.name.text);
        let implicit = ImplicitDef { namespace, id, ast, file };
        let place = implicit.place();
        let first = *self.implicit_names.entry((namespace, ast.name.text)).or_insert(place);
        self.implicits.push(implicit);
        if let Some(taken) = self.member(namespace, ast.name.text) {
            return Some(self.duplicate(ast.name, place, taken));
        }
        (first != place).then(|| taken_by_implicit(ast.name, place, first))
    }

    fn enter(&mut self, def: Def<'a>) {
        let id = DefId(self.defs.len() as u32);
        self.members.insert((def.namespace, def.name), id);
        self.anywhere.entry(def.name).or_default().push(id);
        self.defs.push(def);
    }

    fn duplicate(&self, name: Ident<'a>, place: FileSpan, taken: DefId) -> Diagnostic {
        let first = &self[taken];
        let message = format!("`{}` is already the name of {}", first.id, first.sort.described());
        Diagnostic::new(Code::DuplicateDeclaration, place, message)
            .related(first.place, "declared here")
            .help(format!("give `{}` another name, or put it into another namespace", name.text))
    }

    fn qualified(&self, namespace: NamespaceId, name: &str) -> Arc<str> {
        if namespace == TOP_LEVEL {
            return name.into();
        }
        format!("{}.{name}", self.namespace_name(namespace)).into()
    }

    /// Why a map of these fields is no instance of the schema; `None` where it is one.
    pub(super) fn misfit(&self, fields: &[(String, Type)], schema: DefId) -> Option<String> {
        let def = &self[schema];
        if def.wholeness == Wholeness::Broken {
            return None;
        }
        for (name, ty) in fields {
            match def.params.named(name) {
                None => return Some(format!("`{}` has no field `{name}`", def.name)),
                Some(field) if !ty.fits(&field.ty, self) => {
                    let (wanted, found) = (field.ty.show(self), ty.show(self));
                    return Some(format!("its field `{name}` must be {wanted}, but is {found}"));
                }
                Some(_) => {}
            }
        }
        let given: FxHashSet<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let missing = def.params.required().find(|field| !given.contains(field.name))?;
        Some(format!("it lacks the field `{}`", missing.name))
    }
}

fn taken_by_implicit(name: Ident<'_>, place: FileSpan, first: FileSpan) -> Diagnostic {
    let message = format!("`{}` is already the name of an implicit", name.text);
    Diagnostic::new(Code::DuplicateDeclaration, place, message)
        .related(first, "declared here")
        .help("give one of them another name")
}
