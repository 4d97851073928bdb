//! The names that an expression can refer to.

use std::slice;

use super::model::{Facet, Lead, Mixed, Model, ModelKind, Ty};

/// A reference, as it is written between the dots.
#[derive(Clone)]
pub(super) struct Reference {
    pub(super) path: Vec<String>,
    pub(super) ty: Ty,
}

/// Everything in sight.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) references: Vec<Reference>,
    /// The variables of the loops around, which inner blocks see too.
    pub(super) variables: Vec<(String, Ty)>,
}

/// Fields of fields are referred to up to this depth.
const MAX_PATH: usize = 4;

impl Scope {
    /// The names in the blocks of an owner: its inputs and the variables around it.
    pub(super) fn of_owner(model: &Model, owner: &Facet, mixins: &[Mixed], around: &Self) -> Self {
        let mut scope = Self { references: Vec::new(), variables: around.variables.clone() };
        let returned = owner.kind == ModelKind::Event || owner.lead == Lead::Script;
        // Here a parameter hides a return of the same name.
        let hidden = |name: &str| owner.params.iter().any(|slot| slot.name == name);
        let returns = owner.returns().iter().filter(|slot| returned && !hidden(&slot.name));
        for input in owner.params.iter().chain(returns) {
            scope.add(model, vec!["$".into(), input.name.clone()], &input.ty);
        }
        scope.add(model, vec!["$".into()], &Ty::Opaque);
        scope.add_mixins(model, &["$".into()], mixins, owner);
        for (name, ty) in &around.variables {
            scope.add_variable_references(model, name, ty);
        }
        scope
    }

    pub(super) fn add_variable(&mut self, model: &Model, name: &str, ty: &Ty) {
        self.variables.push((name.to_owned(), ty.clone()));
        self.add_variable_references(model, name, ty);
    }

    fn add_variable_references(&mut self, model: &Model, name: &str, ty: &Ty) {
        self.add(model, vec![name.to_owned()], ty);
        self.add(model, vec!["$".into(), name.to_owned()], ty);
    }

    /// The attributes of a step. A return hides a parameter of the same name.
    pub(super) fn add_step(&mut self, model: &Model, name: &str, facet: &Facet, mixins: &[Mixed]) {
        let hidden = |name: &str| facet.returns().iter().any(|slot| slot.name == name);
        let params = facet.params.iter().filter(|slot| !hidden(&slot.name));
        for slot in facet.returns().iter().chain(params) {
            self.add(model, vec![name.to_owned(), slot.name.clone()], &slot.ty);
        }
        self.add_mixins(model, &[name.to_owned()], mixins, facet);
        if mixins.is_empty() {
            self.add(model, vec![name.to_owned()], &Ty::Opaque);
        }
    }

    pub(super) fn add_schema_step(&mut self, model: &Model, name: &str, schema: usize) {
        self.add(model, vec![name.to_owned()], &Ty::Schema(schema));
    }

    /// The names that mixins bring, where no attribute of the owner hides them.
    fn add_mixins(&mut self, model: &Model, base: &[String], mixins: &[Mixed], owner: &Facet) {
        let own = |name: &str| owner.params.iter().chain(owner.returns()).any(|slot| slot.name == name);
        // Of two mixins with one attribute the first wins; only the first is referred to plainly.
        let mut plain = mixins.iter().filter(|mixed| mixed.alias.is_none());
        if let Some(mixed) = plain.next() {
            let facet = &model.facets[mixed.facet];
            let hidden = |name: &str| facet.returns().iter().any(|slot| slot.name == name);
            let params = facet.params.iter().filter(|slot| !hidden(&slot.name));
            for slot in facet.returns().iter().chain(params).filter(|slot| !own(&slot.name)) {
                self.add(model, [base, slice::from_ref(&slot.name)].concat(), &slot.ty);
            }
        }
        for mixed in mixins {
            let Some(alias) = &mixed.alias else { continue };
            for slot in model.facets[mixed.facet].returns() {
                self.add(model, [base, &[alias.clone(), slot.name.clone()]].concat(), &slot.ty);
            }
        }
    }

    /// A reference, and those to its fields.
    pub(super) fn add(&mut self, model: &Model, path: Vec<String>, ty: &Ty) {
        if let Ty::Schema(schema) = ty
            && path.len() < MAX_PATH
        {
            for field in &model.schemas[*schema].fields {
                self.add(model, [&path[..], slice::from_ref(&field.name)].concat(), &field.ty);
            }
        }
        self.references.push(Reference { path, ty: ty.clone() });
    }
}
