//! Walks over the declarations of a program, and finds them by name.

use super::{Decl, FacetDecl, FacetKind, Program, SchemaDecl};

impl Program {
    /// Every declaration in source order; a namespace comes before its members.
    pub fn walk(&self) -> impl Iterator<Item = &Decl> {
        let mut open = vec![self.declarations.iter()];
        std::iter::from_fn(move || {
            loop {
                let Some(decl) = open.last_mut()?.next() else {
                    open.pop();
                    continue;
                };
                match decl {
                    Decl::Namespace(namespace) => open.push(namespace.declarations.iter()),
                    Decl::Facet(_) | Decl::Schema(_) | Decl::Implicit(_) => {}
                }
                return Some(decl);
            }
        })
    }

    /// The facets, event facets and workflows, in source order.
    pub fn facets(&self) -> impl Iterator<Item = &FacetDecl> {
        self.walk().filter_map(|decl| match decl {
            Decl::Facet(facet) => Some(facet),
            Decl::Namespace(_) | Decl::Schema(_) | Decl::Implicit(_) => None,
        })
    }

    pub fn facets_of(&self, kind: FacetKind) -> impl Iterator<Item = &FacetDecl> {
        self.facets().filter(move |facet| facet.kind == kind)
    }

    pub fn schemas(&self) -> impl Iterator<Item = &SchemaDecl> {
        self.walk().filter_map(|decl| match decl {
            Decl::Schema(schema) => Some(schema),
            Decl::Namespace(_) | Decl::Facet(_) | Decl::Implicit(_) => None,
        })
    }

    /// The facet, event facet or workflow of this name: `get_facet_definition` of document 003 §11.1. A short name
    /// finds the only facet that has it.
    pub fn facet(&self, name: &str) -> Option<&FacetDecl> {
        if let Some(exact) = self.facets().find(|facet| &*facet.id == name) {
            return Some(exact);
        }
        let mut named = self.facets().filter(|facet| facet.name == name);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }
}
