//! Declarations by name.

use super::{Decl, FacetDecl, Program};

impl Program {
    /// The facet, event facet or workflow of this name: `get_facet_definition` of document 003 §11.1. A short name
    /// finds the only facet that has it.
    pub fn facet(&self, name: &str) -> Option<&FacetDecl> {
        let mut facets = Vec::new();
        collect(&self.declarations, &mut facets);
        if let Some(exact) = facets.iter().find(|facet| &*facet.id == name) {
            return Some(exact);
        }
        let mut named = facets.into_iter().filter(|facet| facet.name == name);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }
}

fn collect<'p>(declarations: &'p [Decl], facets: &mut Vec<&'p FacetDecl>) {
    for declaration in declarations {
        match declaration {
            Decl::Namespace(namespace) => collect(&namespace.declarations, facets),
            Decl::Facet(facet) => facets.push(facet),
            Decl::Schema(_) | Decl::Implicit(_) => {}
        }
    }
}
