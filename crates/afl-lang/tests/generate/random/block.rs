//! Blocks: steps, logs, assertions and yields, in an order of their own.

use super::Generator;
use super::body::Owner;
use super::expr::FUEL;
use super::layout::Tokens;
use super::model::{Facet, Mixed, Need, Slot};
use super::scope::{Reference, Scope};

/// Step names; a number is put behind all but the keywords.
const STEP_NAMES: [&str; 8] = ["s", "step", "in", "sys", "yield", "with", "model", "andThen"];

const POLICIES: [&str; 7] = [
    "with Retry ( max = 3 , backoff_ms = 100 )",
    "with Timeout ( seconds = 30 )",
    "with Priority ( level = 5 )",
    "with afl . policy . Limit ( concurrency = 2 )",
    "with Effect ( kind = \"pure\" )",
    "with TaskList ( name = \"a\" )",
    "with Needs ( capabilities = [ \"gpu\" ] )",
];

impl Generator<'_, '_> {
    /// A block in braces. Gives what later clauses can refer to; `suffix` keeps step names of one owner
    /// apart.
    pub(super) fn block(
        &mut self,
        tokens: &mut Tokens,
        owner: &Owner<'_>,
        scope: &Scope,
        suffix: &str,
    ) -> Vec<Reference> {
        let mut inner = scope.clone();
        let known = scope.references.len();
        let mut statements = Vec::new();
        for at in 0..self.dice.below(4) {
            statements.push(match self.dice.below(8) {
                0 => self.log(&inner),
                1 => self.assert(&inner),
                _ => {
                    let name = self.step_name(at, suffix);
                    self.step(&name, owner, &mut inner)
                }
            });
        }
        // Order is data flow: a step may stand before those that it reads.
        if self.dice.chance(40) {
            self.dice.shuffle(&mut statements);
        }
        tokens.push("{");
        for statement in statements {
            tokens.extend(statement);
            tokens.end();
        }
        self.yields(tokens, owner, &inner);
        tokens.push("}");
        inner.references.split_off(known)
    }

    fn step_name(&mut self, at: usize, suffix: &str) -> String {
        // Not all with a number, so that some are keywords as they are.
        if suffix == "_case" && at == 0 {
            return (self.dice.pick(&STEP_NAMES)).to_owned();
        }
        format!("{}{at}{suffix}", self.dice.pick(&STEP_NAMES))
    }

    fn log(&mut self, scope: &Scope) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.words("sys . log (");
        let count = self.dice.below(3);
        for (at, name) in ["level", "in"][..count].iter().enumerate() {
            let ty = self.model.ty(self.dice, 1);
            tokens.push(name).push("=").extend(self.expr(&ty, scope, FUEL).tokens);
            tokens.comma(at, count);
        }
        tokens.push(")");
        tokens
    }

    fn assert(&mut self, scope: &Scope) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.words("sys . assert (").extend(self.condition(scope).tokens);
        tokens.push(")");
        tokens
    }

    /// A step, which `scope` then knows.
    fn step(&mut self, name: &str, owner: &Owner<'_>, scope: &mut Scope) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.push(name).push("=");
        let schemas = self.model.schemas.len();
        if owner.callable == 0 && schemas == 0 {
            // There is nothing else that can be called, and this cannot fail.
            return self.log(scope);
        }
        if schemas > 0 && (owner.callable == 0 || self.dice.chance(20)) {
            let schema = self.dice.below(schemas);
            let called = &self.model.schemas[schema];
            let target = self.written(called.namespace, &called.name);
            tokens.dotted(&target);
            self.args(&mut tokens, &called.fields, scope);
            scope.add_schema_step(self.model, name, schema);
            return tokens;
        }
        let called = &self.model.facets[self.dice.below(owner.callable)];
        let target = self.facet_name(called);
        tokens.dotted(&target);
        self.args(&mut tokens, &called.params, scope);
        let mixins = self.call_mixins(called, owner);
        self.mixins(&mut tokens, &mixins, scope);
        self.policies(&mut tokens);
        let all = [&called.mixins[..], &mixins[..]].concat();
        self.inline_blocks(&mut tokens, called, &all, owner, scope);
        scope.add_step(self.model, name, called, &all);
        tokens
    }

    /// Mixins of a call that the signature does not have, and that blocks here may enter.
    fn call_mixins(&mut self, called: &Facet, owner: &Owner<'_>) -> Vec<Mixed> {
        let mut mixins = self.model.mixed(self.dice);
        let taken = |facet: usize| {
            self.model.facets[facet].name == called.name
                || called.mixins.iter().any(|mixed| mixed.facet == facet)
        };
        mixins.retain(|mixed| mixed.facet < owner.callable && !taken(mixed.facet));
        mixins
    }

    fn inline_blocks(
        &mut self,
        tokens: &mut Tokens,
        called: &Facet,
        mixins: &[Mixed],
        around: &Owner<'_>,
        scope: &Scope,
    ) {
        if around.fuel == 0 || !self.dice.chance(35) {
            return;
        }
        let owner = Owner { facet: called, mixins, callable: around.callable, fuel: around.fuel - 1 };
        let count = self.dice.below(3);
        self.clauses(tokens, &owner, count, scope);
        if self.dice.chance(30) {
            self.catch(tokens, &owner, scope);
        }
    }

    pub(super) fn mixins(&mut self, tokens: &mut Tokens, mixins: &[Mixed], scope: &Scope) {
        for mixed in mixins {
            let facet = &self.model.facets[mixed.facet];
            let target = self.facet_name(facet);
            tokens.push("with").dotted(&target);
            self.args(tokens, &facet.params, scope);
            if let Some(alias) = &mixed.alias {
                tokens.push("as").push(alias);
            }
        }
    }

    pub(super) fn policies(&mut self, tokens: &mut Tokens) {
        if self.dice.chance(15) {
            tokens.words(self.dice.pick(&POLICIES));
        }
    }

    fn args(&mut self, tokens: &mut Tokens, slots: &[Slot], scope: &Scope) {
        let mut given: Vec<&Slot> =
            slots.iter().filter(|slot| slot.need == Need::Required || self.dice.chance(40)).collect();
        self.dice.shuffle(&mut given);
        self.named(tokens, &given, scope);
    }

    fn named(&mut self, tokens: &mut Tokens, given: &[&Slot], scope: &Scope) {
        tokens.push("(");
        for (at, slot) in given.iter().enumerate() {
            tokens.push(&slot.name).push("=");
            tokens.extend(self.expr(&slot.ty, scope, FUEL).tokens);
            tokens.comma(at, given.len());
        }
        tokens.push(")");
    }

    /// One statement, or one for each target.
    fn yields(&mut self, tokens: &mut Tokens, owner: &Owner<'_>, scope: &Scope) {
        let own = self.facet_name(owner.facet);
        let mut targets = vec![(own, owner.facet)];
        for mixed in owner.mixins {
            let facet = &self.model.facets[mixed.facet];
            let name = match &mixed.alias {
                Some(alias) => alias.clone(),
                None => self.facet_name(facet),
            };
            targets.push((name, facet));
        }
        targets.retain(|_| self.dice.chance(60));
        let chained = self.dice.chance(50);
        for (at, (name, facet)) in targets.iter().enumerate() {
            tokens.push(if at > 0 && chained { "with" } else { "yield" }).dotted(name);
            let given: Vec<&Slot> = facet.yieldable().iter().filter(|_| self.dice.chance(70)).collect();
            self.named(tokens, &given, scope);
            if !chained {
                tokens.end();
            }
        }
        if chained && !targets.is_empty() {
            tokens.end();
        }
    }
}
