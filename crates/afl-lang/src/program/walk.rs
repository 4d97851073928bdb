//! Walks over the declarations of a program, and finds them by name.

use super::{
    AndThenBlock, BlockContent, CatchClause, CatchContent, Decl, FacetDecl, FacetKind, Program, SchemaDecl,
    Statement, Statements, StepStmt,
};

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

impl FacetDecl {
    /// Every step of its blocks and its `catch`, those of nested blocks included.
    pub fn steps(&self) -> Vec<&StepStmt> {
        let mut steps = Vec::new();
        collect_steps(&self.body, self.catch.as_ref(), &mut steps);
        steps
    }
}

fn collect_steps<'p>(
    blocks: &'p [AndThenBlock],
    catch: Option<&'p CatchClause>,
    steps: &mut Vec<&'p StepStmt>,
) {
    let mut bodies: Vec<&Statements> = Vec::new();
    for block in blocks {
        match &block.content {
            BlockContent::Steps(statements) | BlockContent::Foreach(_, statements) => bodies.push(statements),
            BlockContent::When(when) => bodies.extend(when.cases.iter().map(|case| &case.statements)),
            BlockContent::Script(_) => {}
        }
    }
    match catch.map(|catch| &catch.content) {
        Some(CatchContent::Steps(statements)) => bodies.push(statements),
        Some(CatchContent::When(when)) => bodies.extend(when.cases.iter().map(|case| &case.statements)),
        None => {}
    }
    for step in bodies.into_iter().flat_map(Statements::calls) {
        steps.push(step);
        collect_steps(&step.body, step.catch.as_ref(), steps);
    }
}

impl Statements {
    /// The steps that call a facet, without logs and assertions.
    pub fn calls(&self) -> impl Iterator<Item = &StepStmt> {
        self.steps.iter().filter_map(|statement| match statement {
            Statement::Step(step) => Some(step),
            Statement::Log(_) | Statement::Assert(_) => None,
        })
    }
}
