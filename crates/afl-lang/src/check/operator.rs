//! Binary operators and what they take.

use super::Checker;
use super::ty::{OperandKind, Type};
use crate::code::Code;
use crate::operator::{BinaryOp, BinaryOperands, ResultType};
use crate::program::ExprKind;
use crate::source::Span;
use crate::syntax::ast;

impl<'a> Checker<'a> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        operands: &'a [ast::ExprSyntax<'a>; 2],
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
        match op.operands() {
            BinaryOperands::Booleans => self.both(op, left, right, &[OperandKind::Boolean])?,
            BinaryOperands::Numbers => self.both(op, left, right, &[OperandKind::Number])?,
            BinaryOperands::Strings => self.both(op, left, right, &[OperandKind::Text])?,
            BinaryOperands::Ordered => {
                self.both(op, left, right, &[OperandKind::Number, OperandKind::Text])?;
            }
            BinaryOperands::Summands => {
                self.both(op, left, right, &[OperandKind::Number, OperandKind::Text, OperandKind::List])?;
            }
            BinaryOperands::OneKind => self.equality(op, left, right)?,
            BinaryOperands::ElementIn => self.containment(op, left, right)?,
            BinaryOperands::ContainerOf => self.containment(op, right, left)?,
        }
        Ok(match op.result() {
            ResultType::Boolean => Type::Boolean,
            ResultType::Double => Type::Double,
            ResultType::Joined => self.joined(left, right),
        })
    }

    /// Both sides of one of the kinds, and of the same one.
    fn both(&self, op: BinaryOp, left: &Type, right: &Type, kinds: &[OperandKind]) -> Result<(), String> {
        let allowed = |kind: OperandKind| kind == OperandKind::Any || kinds.contains(&kind);
        let alike = left.kind() == right.kind()
            || left.kind() == OperandKind::Any
            || right.kind() == OperandKind::Any;
        if allowed(left.kind()) && allowed(right.kind()) && alike {
            return Ok(());
        }
        let (left, right) = (left.show(&self.table), right.show(&self.table));
        Err(format!("`{}` takes {}, not {left} and {right}", op.text(), op.operands()))
    }

    fn joined(&self, left: &Type, right: &Type) -> Type {
        match (left, right) {
            (Type::Json | Type::Either(_), _) | (_, Type::Json | Type::Either(_)) => Type::Json,
            (Type::List(left), Type::List(right)) => {
                Type::list((**left).clone().join((**right).clone(), &self.table))
            }
            _ => left.clone().join(right.clone(), &self.table),
        }
    }

    fn equality(&self, op: BinaryOp, left: &Type, right: &Type) -> Result<(), String> {
        let open = |kind: OperandKind| matches!(kind, OperandKind::Any | OperandKind::Null);
        if left.kind() == right.kind() || open(left.kind()) || open(right.kind()) {
            return Ok(());
        }
        let (left, right) = (left.show(&self.table), right.show(&self.table));
        Err(format!("`{}` compares values of one kind; {left} and {right} are never equal", op.text()))
    }

    /// Whether `element` can be in `container`: of a list, a key of a map, a part of a string.
    fn containment(&self, op: BinaryOp, element: &Type, container: &Type) -> Result<(), String> {
        let fits = match container {
            Type::List(of) => element.fits(of, &self.table) || of.fits(element, &self.table),
            Type::String | Type::Record(_) | Type::Schema(_) => element.fits(&Type::String, &self.table),
            Type::Json | Type::Either(_) => true,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let (element, container) = (element.show(&self.table), container.show(&self.table));
        Err(format!(
            "`{}` looks into a list, a map or a string; {element} cannot be in {container}",
            op.text()
        ))
    }
}

/// The advice for operands that do not go together.
fn hint(op: BinaryOp, left: OperandKind, right: OperandKind) -> Option<&'static str> {
    let number_and_text = matches!(
        (left, right),
        (OperandKind::Text, OperandKind::Number) | (OperandKind::Number, OperandKind::Text)
    );
    match op.operands() {
        BinaryOperands::Summands => Some("`++` joins anything to text"),
        BinaryOperands::ElementIn | BinaryOperands::ContainerOf => None,
        BinaryOperands::Booleans
        | BinaryOperands::Numbers
        | BinaryOperands::Strings
        | BinaryOperands::Ordered
        | BinaryOperands::OneKind => {
            number_and_text.then_some("write a number without quotes; `\"\" ++ number` makes text of it")
        }
    }
}
