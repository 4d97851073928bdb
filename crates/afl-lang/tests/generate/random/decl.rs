//! Declarations: namespaces, schemas, facets, implicits.

use super::Generator;
use super::expr::FUEL;
use super::layout::Tokens;
use super::model::{Facet, ModelKind, Need, Slot, Ty};
use super::scope::Scope;

const DOCS: [&str; 3] = ["/** One line. */", "/**\n * Two lines\n * of text, with é.\n */", "/** @ */"];

/// Declarations, and the head of the namespace they stand in.
pub(super) struct Item {
    pub(super) namespace: Option<Tokens>,
    pub(super) decls: Tokens,
}

impl Generator<'_, '_> {
    /// The items of the program: a namespace may be there several times.
    pub(super) fn items(&mut self) -> Vec<Item> {
        let mut decls: Vec<(usize, Tokens)> = Vec::new();
        for at in 0..self.model.schemas.len() {
            decls.push((self.model.schemas[at].namespace, self.schema(at)));
        }
        for at in 0..self.model.facets.len() {
            let facet = &self.model.facets[at];
            decls.push((facet.namespace, self.facet(at)));
            if facet.params.iter().any(|param| param.need == Need::Implicit) {
                // At the top level it counts everywhere.
                decls.push((0, self.implicit(at)));
            }
        }
        self.dice.shuffle(&mut decls);
        let mut items = Vec::new();
        while let Some((namespace, decl)) = decls.pop() {
            let mut inner = if namespace == 0 { Tokens::default() } else { self.imports() };
            inner.extend(decl);
            while let Some((_, more)) = decls.pop_if(|(next, _)| *next == namespace) {
                inner.extend(more);
            }
            let namespace = (namespace != 0).then(|| {
                let mut head = self.doc();
                head.push("namespace").dotted(&self.model.namespaces[namespace]);
                head
            });
            items.push(Item { namespace, decls: inner });
        }
        items
    }

    fn imports(&mut self) -> Tokens {
        let mut tokens = Tokens::default();
        while self.dice.chance(20) {
            // An import must name a namespace that declares something.
            let facet = &self.model.facets[self.dice.below(self.model.facets.len())];
            if facet.namespace != 0 {
                let namespace = &self.model.namespaces[facet.namespace];
                tokens.push(self.dice.pick(&["use", "uses"])).dotted(namespace).end();
            }
        }
        tokens
    }

    fn doc(&mut self) -> Tokens {
        let mut tokens = Tokens::default();
        if self.dice.chance(25) {
            tokens.push(self.dice.pick(&DOCS));
        }
        tokens
    }

    fn schema(&mut self, at: usize) -> Tokens {
        let schema = &self.model.schemas[at];
        let mut tokens = self.doc();
        tokens.push("schema").push(&schema.name).push("{");
        for field in &schema.fields {
            self.slot(&mut tokens, field);
            tokens.end_of_entry();
        }
        tokens.push("}").end();
        tokens
    }

    fn slot(&mut self, tokens: &mut Tokens, slot: &Slot) {
        tokens.push(&slot.name).push(":");
        self.ty(tokens, &slot.ty);
        if slot.need == Need::Default {
            tokens.push("=");
            tokens.extend(self.expr(&slot.ty, &Scope::default(), 1).tokens);
        }
    }

    fn ty(&mut self, tokens: &mut Tokens, ty: &Ty) {
        match ty {
            Ty::Long => tokens.push("Long"),
            Ty::Int => tokens.push("Int"),
            Ty::Double => tokens.push("Double"),
            Ty::String => tokens.push("String"),
            Ty::Boolean => tokens.push("Boolean"),
            Ty::Json | Ty::Opaque => tokens.push("Json"),
            Ty::Schema(at) => {
                let schema = &self.model.schemas[*at];
                let name = self.written(schema.namespace, &schema.name);
                tokens.dotted(&name)
            }
            Ty::List(of) => {
                tokens.push("[");
                self.ty(tokens, of);
                tokens.push("]")
            }
            Ty::Nullable(of) => {
                self.ty(tokens, of);
                tokens.push("?")
            }
        };
    }

    /// A name in short, which is always enough, or in full.
    pub(super) fn written(&mut self, namespace: usize, name: &str) -> String {
        if namespace == 0 || self.dice.chance(60) {
            return name.to_owned();
        }
        format!("{}.{name}", self.model.namespaces[namespace])
    }

    pub(super) fn facet_name(&mut self, facet: &Facet) -> String {
        self.written(facet.namespace, &facet.name)
    }

    fn facet(&mut self, at: usize) -> Tokens {
        let facet = &self.model.facets[at];
        let mut tokens = self.doc();
        tokens.words(match facet.kind {
            ModelKind::Plain => "facet",
            ModelKind::Event => "event facet",
            ModelKind::Workflow => "workflow",
        });
        tokens.push(&facet.name);
        self.slots(&mut tokens, &facet.params);
        if let Some(returns) = &facet.returns {
            tokens.push("=>");
            self.slots(&mut tokens, returns);
        }
        let scope = Scope::of_owner(self.model, facet, &[], &Scope::default());
        self.mixins(&mut tokens, &facet.mixins, &scope);
        self.policies(&mut tokens);
        self.body(&mut tokens, at);
        tokens.end();
        tokens
    }

    fn slots(&mut self, tokens: &mut Tokens, slots: &[Slot]) {
        tokens.push("(");
        for (at, slot) in slots.iter().enumerate() {
            self.slot(tokens, slot);
            tokens.comma(at, slots.len());
        }
        tokens.push(")");
    }

    fn implicit(&mut self, at: usize) -> Tokens {
        let facet = &self.model.facets[at];
        let mut tokens = Tokens::default();
        tokens.push("implicit").push(&format!("implicit{at}")).push("=");
        let name = self.facet_name(facet);
        tokens.dotted(&name).push("(");
        let supplied: Vec<_> = facet.params.iter().filter(|param| param.need == Need::Implicit).collect();
        for (at, param) in supplied.iter().enumerate() {
            tokens.push(&param.name).push("=");
            tokens.extend(self.expr(&param.ty, &Scope::default(), FUEL).tokens);
            tokens.comma(at, supplied.len());
        }
        tokens.push(")").end();
        tokens
    }
}
