//! Expressions of a given type.

use super::Generator;
use super::layout::Tokens;
use super::model::{Need, Ty};
use super::scope::{Reference, Scope};

/// How tightly an expression holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    Compare,
    Concat,
    Sum,
    Product,
    Unary,
    Atom,
}

pub(super) struct Expr {
    pub(super) tokens: Tokens,
    level: Level,
}

/// How many operators may stand in one another.
pub(super) const FUEL: usize = 3;

impl Generator<'_, '_> {
    /// An expression that fits `ty`.
    pub(super) fn expr(&mut self, ty: &Ty, scope: &Scope, fuel: usize) -> Expr {
        let fitting: Vec<&Reference> =
            scope.references.iter().filter(|reference| reference.ty.fits(ty)).collect();
        if !fitting.is_empty() && self.dice.chance(45) {
            let reference = self.dice.pick(&fitting);
            return self.reference(reference, scope, fuel);
        }
        if fuel == 0 || self.dice.chance(30) {
            return self.literal(ty, scope, fuel);
        }
        match ty {
            Ty::Long | Ty::Int => self.integer(ty, scope, fuel - 1),
            Ty::Double => self.number(scope, fuel - 1),
            Ty::String => self.text(scope, fuel - 1),
            Ty::Boolean => self.boolean(scope, fuel - 1),
            Ty::List(_) => self.binary(Level::Sum, "+", (ty, ty), scope, fuel - 1),
            Ty::Nullable(of) => self.expr(of, scope, fuel - 1),
            Ty::Json => {
                let ty = self.model.ty(self.dice, 1);
                self.expr(&ty, scope, fuel - 1)
            }
            Ty::Schema(_) | Ty::Opaque => self.literal(ty, scope, fuel),
        }
    }

    /// The tokens of an expression that holds together at least as tightly as `level`.
    fn operand(&mut self, level: Level, ty: &Ty, scope: &Scope, fuel: usize) -> Tokens {
        let expr = self.expr(ty, scope, fuel);
        if expr.level >= level && !self.dice.chance(8) {
            return expr.tokens;
        }
        let mut tokens = Tokens::default();
        tokens.push("(").extend(expr.tokens);
        tokens.push(")");
        tokens
    }

    fn reference(&mut self, reference: &Reference, scope: &Scope, fuel: usize) -> Expr {
        let mut tokens = Tokens::default();
        tokens.dotted(&reference.path.join("."));
        if reference.ty == Ty::Json && reference.path.len() > 1 && fuel > 0 && self.dice.chance(50) {
            tokens.push("[").extend(self.operand(Level::Or, &Ty::Json, scope, 0));
            tokens.push("]");
            if self.dice.chance(30) {
                tokens.push(".").push("field");
            }
        }
        Expr { tokens, level: Level::Atom }
    }

    fn binary(&mut self, level: Level, op: &str, sides: (&Ty, &Ty), scope: &Scope, fuel: usize) -> Expr {
        // Comparisons do not associate, the others do to the left.
        let (left, right) = match level {
            Level::Or => (Level::Or, Level::And),
            Level::And => (Level::And, Level::Compare),
            Level::Compare | Level::Concat => (Level::Concat, Level::Concat),
            Level::Sum => (Level::Sum, Level::Product),
            Level::Product | Level::Unary | Level::Atom => (Level::Product, Level::Unary),
        };
        let mut tokens = self.operand(left, sides.0, scope, fuel);
        tokens.words(op).extend(self.operand(right, sides.1, scope, fuel));
        Expr { tokens, level }
    }

    fn unary(&mut self, op: &str, ty: &Ty, scope: &Scope, fuel: usize) -> Expr {
        let mut tokens = Tokens::default();
        tokens.push(op).extend(self.operand(Level::Unary, ty, scope, fuel));
        Expr { tokens, level: Level::Unary }
    }

    fn integer(&mut self, ty: &Ty, scope: &Scope, fuel: usize) -> Expr {
        match self.dice.below(6) {
            0 => self.binary(Level::Sum, "+", (ty, ty), scope, fuel),
            1 => self.binary(Level::Sum, "-", (ty, ty), scope, fuel),
            2 => self.binary(Level::Product, "*", (ty, ty), scope, fuel),
            3 => self.binary(Level::Product, "%", (ty, ty), scope, fuel),
            4 => self.unary("-", ty, scope, fuel),
            _ => self.element(ty, scope, fuel),
        }
    }

    fn number(&mut self, scope: &Scope, fuel: usize) -> Expr {
        match self.dice.below(5) {
            0 => self.binary(Level::Product, "/", (&Ty::Long, &Ty::Double), scope, fuel),
            1 => self.binary(Level::Sum, "+", (&Ty::Double, &Ty::Long), scope, fuel),
            2 => self.binary(Level::Product, "*", (&Ty::Int, &Ty::Double), scope, fuel),
            3 => self.unary("+", &Ty::Double, scope, fuel),
            _ => self.element(&Ty::Double, scope, fuel),
        }
    }

    fn text(&mut self, scope: &Scope, fuel: usize) -> Expr {
        match self.dice.below(4) {
            0 => self.binary(Level::Sum, "+", (&Ty::String, &Ty::String), scope, fuel),
            1 => self.element(&Ty::String, scope, fuel),
            2 => {
                let mut tokens = self.operand(Level::Atom, &Ty::String, scope, 0);
                tokens.push("[").extend(self.operand(Level::Or, &Ty::Long, scope, fuel));
                tokens.push("]");
                Expr { tokens, level: Level::Atom }
            }
            _ => self.concatenation(scope, fuel),
        }
    }

    fn concatenation(&mut self, scope: &Scope, fuel: usize) -> Expr {
        let mut tokens = self.operand(Level::Sum, &Ty::String, scope, fuel);
        for _ in 0..=self.dice.below(3) {
            let ty = self.model.ty(self.dice, 1);
            tokens.push("++").extend(self.operand(Level::Sum, &ty, scope, fuel));
        }
        Expr { tokens, level: Level::Concat }
    }

    /// `[a, b][0]`
    fn element(&mut self, ty: &Ty, scope: &Scope, fuel: usize) -> Expr {
        let list = Ty::List(Box::new(ty.clone()));
        let mut tokens = self.operand(Level::Atom, &list, scope, fuel);
        tokens.push("[").extend(self.operand(Level::Or, &Ty::Long, scope, 0));
        tokens.push("]");
        Expr { tokens, level: Level::Atom }
    }

    fn boolean(&mut self, scope: &Scope, fuel: usize) -> Expr {
        let ty = match self.model.ty(self.dice, 1).element() {
            Ty::Opaque => Ty::String,
            other => other,
        };
        let list = Ty::List(Box::new(ty.clone()));
        let (boolean, text) = (&Ty::Boolean, &Ty::String);
        match self.dice.below(12) {
            0 => self.binary(Level::Or, "||", (boolean, boolean), scope, fuel),
            1 => self.binary(Level::And, "&&", (boolean, boolean), scope, fuel),
            2 => self.binary(Level::Compare, "==", (&ty, &ty), scope, fuel),
            3 => self.binary(Level::Compare, "!=", (&ty, &ty), scope, fuel),
            4 => self.binary(Level::Compare, "<", (&Ty::Long, &Ty::Double), scope, fuel),
            5 => self.binary(Level::Compare, ">=", (text, text), scope, fuel),
            6 => self.binary(Level::Compare, "in", (&ty, &list), scope, fuel),
            7 => self.binary(Level::Compare, "not in", (text, text), scope, fuel),
            8 => self.binary(Level::Compare, "contains", (&list, &ty), scope, fuel),
            9 => self.binary(Level::Compare, "startsWith", (text, text), scope, fuel),
            10 => self.binary(Level::Compare, "endsWith", (text, text), scope, fuel),
            _ => self.unary("!", boolean, scope, fuel),
        }
    }

    /// A literal; the parts of lists and maps are any expressions.
    pub(super) fn literal(&mut self, ty: &Ty, scope: &Scope, fuel: usize) -> Expr {
        let is_spent = fuel == 0;
        let fuel = fuel.saturating_sub(1);
        let tokens = match ty {
            Ty::Long | Ty::Int => return self.integer_literal(),
            Ty::Double => word(self.dice.pick(&["0.5", "2.0", "1e3", "12.25e-2", "7"])),
            Ty::Boolean => word(self.dice.pick(&["true", "false"])),
            Ty::String => word(self.dice.pick(&STRINGS)),
            Ty::Nullable(of) if self.dice.chance(60) => return self.literal(of, scope, fuel),
            Ty::Nullable(_) => word("null"),
            Ty::List(of) => self.list(of, scope, fuel),
            Ty::Schema(schema) => self.record(*schema, scope, fuel),
            // Maps hold anything, so this recursion could be endless.
            Ty::Json | Ty::Opaque if is_spent => word(self.dice.pick(&["null", "1", "\"a\""])),
            Ty::Json | Ty::Opaque => self.map(scope, fuel),
        };
        Expr { tokens, level: Level::Atom }
    }

    fn integer_literal(&mut self) -> Expr {
        // Only with its sign is this one in range.
        const LEAST: &str = "- 9223372036854775808";
        if self.dice.chance(5) {
            let mut tokens = Tokens::default();
            tokens.words(LEAST);
            return Expr { tokens, level: Level::Unary };
        }
        let tokens = word(self.dice.pick(&["0", "1", "42", "007", "9223372036854775807"]));
        Expr { tokens, level: Level::Atom }
    }

    fn list(&mut self, of: &Ty, scope: &Scope, fuel: usize) -> Tokens {
        let mut tokens = word("[");
        let count = self.dice.below(4);
        for at in 0..count {
            tokens.extend(self.operand(Level::Or, of, scope, fuel));
            tokens.comma(at, count);
        }
        tokens.push("]");
        tokens
    }

    /// A map that is an instance of a schema.
    fn record(&mut self, schema: usize, scope: &Scope, fuel: usize) -> Tokens {
        let fields = self.model.schemas[schema].fields.iter();
        let given: Vec<_> =
            fields.filter(|field| field.need == Need::Required || self.dice.chance(50)).collect();
        let mut tokens = word("#{");
        for (at, field) in given.iter().enumerate() {
            let quoted = format!("\"{}\"", field.name);
            tokens.push(if self.dice.chance(50) { &quoted } else { &field.name }).push(":");
            tokens.extend(self.operand(Level::Or, &field.ty, scope, fuel));
            tokens.comma(at, given.len());
        }
        tokens.push("}");
        tokens
    }

    fn map(&mut self, scope: &Scope, fuel: usize) -> Tokens {
        let mut tokens = word("#{");
        let mut keys = ["k", "in", "\"a b\"", "\"é\"", "type"];
        self.dice.shuffle(&mut keys);
        let count = self.dice.below(4);
        for (at, key) in keys[..count].iter().enumerate() {
            let ty = self.model.ty(self.dice, 1);
            tokens.push(key).push(":");
            tokens.extend(self.operand(Level::Or, &ty, scope, fuel));
            tokens.comma(at, count);
        }
        tokens.push("}");
        tokens
    }
}

fn word(text: &str) -> Tokens {
    let mut tokens = Tokens::default();
    tokens.push(text);
    tokens
}

const STRINGS: [&str; 9] = [
    "\"\"",
    "\"text\"",
    "\"é \\u00e9 \\u{1F600} 🦀\"",
    "\"a\\n\\t\\\"\\\\\"",
    "\"// no comment /* } {\"",
    "\"over\n  two lines\"",
    "\"\"\"block\"\"\"",
    "\"\"\"\n      indented\n        text\n      \"\"\"",
    "\"\"\"\n  quotes \" and \\\"\"\" in it\n\n  \"\"\"",
];
