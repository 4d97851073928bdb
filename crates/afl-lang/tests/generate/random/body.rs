//! The tail of a signature or a step: scripts, prompts, clauses and `catch`.

use super::Generator;
use super::expr::{Expr, FUEL};
use super::layout::Tokens;
use super::model::{Facet, Lead, Mixed, Ty};
use super::scope::Scope;

/// In Python.
const SCRIPTS: [&str; 4] = [
    "{ result[\"a\"] = params[\"a\"] }",
    "{\n    x = {\"k\": {1: '}'}}  # } is text\n    result[\"x\"] = x\n}",
    "\"result[\\\"a\\\"] = 1\"",
    "\"\"\"\n    result[\"a\"] = {}\n    \"\"\"",
];

/// Whose blocks are written: a facet as it is declared, or as a step uses it.
pub(super) struct Owner<'o> {
    pub(super) facet: &'o Facet,
    pub(super) mixins: &'o [Mixed],
    /// How many facets the blocks may call: those declared before the one they stand in.
    pub(super) callable: usize,
    /// How many blocks may stand in one another below this.
    pub(super) fuel: usize,
}

impl Generator<'_, '_> {
    /// The body of a declared facet.
    pub(super) fn body(&mut self, tokens: &mut Tokens, at: usize) {
        let facet = &self.model.facets[at];
        match facet.lead {
            Lead::Nothing => {}
            Lead::Script => self.script(tokens),
            Lead::Prompt => self.prompt(tokens, facet),
        }
        let owner = Owner { facet, mixins: &facet.mixins, callable: at, fuel: 2 };
        let clauses = self.dice.below(4);
        self.clauses(tokens, &owner, clauses, &Scope::default());
        if self.dice.chance(20) {
            self.catch(tokens, &owner, &Scope::default());
        }
    }

    fn script(&mut self, tokens: &mut Tokens) {
        tokens.push("script");
        if self.dice.chance(20) {
            tokens.push(self.dice.pick(&["js", "script", "in"])).push("{ if (a) { b() } }");
            return;
        }
        if self.dice.chance(20) {
            tokens.push("python");
        }
        tokens.push(self.dice.pick(&SCRIPTS));
    }

    fn prompt(&mut self, tokens: &mut Tokens, facet: &Facet) {
        tokens.words("prompt {");
        let named: Vec<String> = facet.params.iter().map(|param| format!("{{{}}}", param.name)).collect();
        let mut entries = vec![("template", format!("\"Answer {}, not {{ this }}.\"", named.join(" ")))];
        for key in ["system", "model", "in", "case"] {
            if self.dice.chance(25) {
                entries.push((key, "\"some text\"".to_owned()));
            }
        }
        self.dice.shuffle(&mut entries);
        for (key, text) in entries {
            tokens.push(key).push(&text);
            tokens.end_of_entry();
        }
        tokens.push("}");
    }

    /// The `andThen` clauses of an owner; later ones read the steps of earlier ones.
    pub(super) fn clauses(&mut self, tokens: &mut Tokens, owner: &Owner<'_>, count: usize, around: &Scope) {
        let mut scope = Scope::of_owner(self.model, owner.facet, owner.mixins, around);
        for at in 0..count {
            tokens.push("andThen");
            match self.dice.below(6) {
                0 => self.foreach(tokens, owner, &scope),
                1 => self.when(tokens, owner, &scope),
                2 => self.script(tokens),
                _ => {
                    let steps = self.block(tokens, owner, &scope, &format!("_{at}"));
                    scope.references.extend(steps);
                }
            }
        }
    }

    fn foreach(&mut self, tokens: &mut Tokens, owner: &Owner<'_>, scope: &Scope) {
        // No parameter has such a name, and no loop around this one has this one.
        let variable = format!("{}{}", self.dice.pick(&["each", "yield", "case"]), scope.variables.len());
        tokens.push("foreach").push(&variable).push("in");
        let of = self.model.ty(self.dice, 1);
        let list = Ty::List(Box::new(of.clone()));
        // A map gives its keys.
        let (iterable, element) = if self.dice.chance(25) {
            (self.literal(&Ty::Json, scope, 1), Ty::String)
        } else {
            (self.expr(&list, scope, 1), of.element())
        };
        tokens.extend(iterable.tokens);
        let mut inner = scope.clone();
        inner.add_variable(self.model, &variable, &element);
        self.block(tokens, owner, &inner, "_loop");
    }

    fn when(&mut self, tokens: &mut Tokens, owner: &Owner<'_>, scope: &Scope) {
        tokens.words("when {");
        for _ in 0..self.dice.below(3) {
            tokens.push("case");
            tokens.extend(self.condition(scope).tokens);
            tokens.push("=>");
            self.block(tokens, owner, scope, "_case");
            tokens.end_of_entry();
        }
        tokens.words("case _ =>");
        self.block(tokens, owner, scope, "_case");
        tokens.end_of_entry();
        tokens.push("}");
    }

    pub(super) fn condition(&mut self, scope: &Scope) -> Expr {
        self.expr(&Ty::Boolean, scope, FUEL)
    }

    pub(super) fn catch(&mut self, tokens: &mut Tokens, owner: &Owner<'_>, around: &Scope) {
        let mut scope = Scope::of_owner(self.model, owner.facet, owner.mixins, around);
        for name in ["error", "error_type"] {
            scope.add(self.model, vec!["$".into(), name.into()], &Ty::String);
        }
        tokens.push("catch");
        if self.dice.chance(30) {
            self.when(tokens, owner, &scope);
        } else {
            self.block(tokens, owner, &scope, "_catch");
        }
    }
}
