//! Binary operators and what they take.

use super::Checker;
use super::ty::{Kind, Type};
use crate::code::Code;
use crate::program::ExprKind;
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp};

impl<'a> Checker<'a> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        operands: &'a [ast::Expr<'a>; 2],
        span: Span,
    ) -> (ExprKind, Type) {
        let (left, left_ty) = self.expr(&operands[0]);
        let (right, right_ty) = self.expr(&operands[1]);
        let ty = self.result(op, &left_ty, &right_ty).unwrap_or_else(|reason| {
            let help = hint(op, left_ty.kind(), right_ty.kind());
            self.report(Code::BadOperand, span, reason, |d| d.help_if(help));
            Type::Broken
        });
        (ExprKind::Binary(op, Box::new([left, right])), ty)
    }

    /// The type that an operator gives, or why it gives none.
    fn result(&self, op: BinaryOp, left: &Type, right: &Type) -> Result<Type, String> {
        let (left, right) = (left.solid(), right.solid());
        if *left == Type::Broken || *right == Type::Broken {
            return Ok(Type::Broken);
        }
        match op {
            BinaryOp::Or | BinaryOp::And => {
                self.both(op, left, right, &[Kind::Boolean], "Booleans", Type::Boolean)
            }
            BinaryOp::Equal | BinaryOp::NotEqual => self.equality(op, left, right),
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => self.both(
                op,
                left,
                right,
                &[Kind::Number, Kind::Text],
                "two numbers or two strings",
                Type::Boolean,
            ),
            BinaryOp::StartsWith | BinaryOp::EndsWith => {
                self.both(op, left, right, &[Kind::Text], "strings", Type::Boolean)
            }
            BinaryOp::In | BinaryOp::NotIn => self.containment(op, left, right),
            BinaryOp::Contains => self.containment(op, right, left),
            BinaryOp::Add => {
                let kinds = [Kind::Number, Kind::Text, Kind::List];
                let sum =
                    self.both(op, left, right, &kinds, "two numbers, two strings or two lists", Type::Json)?;
                Ok(self.sum(left, right).unwrap_or(sum))
            }
            BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Modulo => {
                let result = self.both(op, left, right, &[Kind::Number], "numbers", Type::Json)?;
                Ok(self.sum(left, right).unwrap_or(result))
            }
            BinaryOp::Divide => self.both(op, left, right, &[Kind::Number], "numbers", Type::Double),
        }
    }

    /// Both sides of one of the kinds, and of the same one.
    fn both(
        &self,
        op: BinaryOp,
        left: &Type,
        right: &Type,
        kinds: &[Kind],
        wanted: &str,
        result: Type,
    ) -> Result<Type, String> {
        let allowed = |kind: Kind| kind == Kind::Any || kinds.contains(&kind);
        let alike = left.kind() == right.kind() || left.kind() == Kind::Any || right.kind() == Kind::Any;
        if allowed(left.kind()) && allowed(right.kind()) && alike {
            return Ok(result);
        }
        let (left, right) = (left.show(&self.table), right.show(&self.table));
        Err(format!("`{}` takes {wanted}, not {left} and {right}", op.text()))
    }

    /// The type of a sum, where it is known.
    fn sum(&self, left: &Type, right: &Type) -> Option<Type> {
        match (left, right) {
            (Type::Json, _) | (_, Type::Json) => None,
            (Type::List(left), Type::List(right)) => {
                Some(Type::list((**left).clone().join((**right).clone(), &self.table)))
            }
            _ => Some(left.clone().join(right.clone(), &self.table)),
        }
    }

    fn equality(&self, op: BinaryOp, left: &Type, right: &Type) -> Result<Type, String> {
        let open = |kind: Kind| matches!(kind, Kind::Any | Kind::Null);
        if left.kind() == right.kind() || open(left.kind()) || open(right.kind()) {
            return Ok(Type::Boolean);
        }
        let (left, right) = (left.show(&self.table), right.show(&self.table));
        Err(format!("`{}` compares values of one kind; {left} and {right} are never equal", op.text()))
    }

    /// Whether `element` can be in `container`: of a list, a key of a map, a part of a string.
    fn containment(&self, op: BinaryOp, element: &Type, container: &Type) -> Result<Type, String> {
        let fits = match container {
            Type::List(of) => element.fits(of, &self.table) || of.fits(element, &self.table),
            Type::String | Type::Record(_) | Type::Schema(_) => element.fits(&Type::String, &self.table),
            Type::Json => true,
            _ => false,
        };
        if fits {
            return Ok(Type::Boolean);
        }
        let (element, container) = (element.show(&self.table), container.show(&self.table));
        Err(format!(
            "`{}` looks into a list, a map or a string; {element} cannot be in {container}",
            op.text()
        ))
    }
}

/// What to do about operands that do not go together.
fn hint(op: BinaryOp, left: Kind, right: Kind) -> Option<&'static str> {
    let number_and_text = matches!((left, right), (Kind::Text, Kind::Number) | (Kind::Number, Kind::Text));
    match op {
        BinaryOp::Add => Some("`++` joins anything to text"),
        BinaryOp::In | BinaryOp::NotIn | BinaryOp::Contains => None,
        _ if number_and_text => Some("write a number without quotes; `\"\" ++ number` makes text of it"),
        _ => None,
    }
}
