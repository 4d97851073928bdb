//! Expressions: their types, and their compiled form.

use rustc_hash::FxHashSet;

use super::Checker;
use super::ty::{OperandKind, Type};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::operator::{UnaryOp, UnaryOperand};
use crate::program::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::{self, Ident, MapEntry, MapKey};
use crate::syntax::literal;

impl<'a> Checker<'a> {
    pub(super) fn expr(&mut self, expr: &'a ast::ExprSyntax<'a>) -> (Expr, Type) {
        if let ast::ExprSyntaxKind::Paren(inner) = &expr.kind {
            return self.expr(inner);
        }
        let location = self.location(expr.span);
        let (kind, ty) = self.expr_kind(expr);
        (Expr { kind, location }, ty)
    }

    /// An expression that must fit `slot`, which `what` describes.
    pub(super) fn expr_fitting(
        &mut self,
        expr: &'a ast::ExprSyntax<'a>,
        slot: &Type,
        what: impl FnOnce() -> String,
    ) -> Expr {
        let (compiled, ty) = self.expr(expr);
        if !ty.fits(slot, &self.table) {
            self.wrong_type(expr.span, &ty, slot, &what(), |d| d);
        }
        compiled
    }

    pub(super) fn wrong_type(
        &mut self,
        span: Span,
        ty: &Type,
        slot: &Type,
        what: &str,
        detail: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let message =
            format!("{what} must be {}, but this is {}", slot.show(&self.table), ty.show(&self.table));
        let help = match (ty.solid(), slot.solid()) {
            (Type::Record(fields), Type::Schema(schema)) => self.table.misfit(fields, *schema),
            (Type::Null, _) => Some(format!("write the type as `{}?` to admit null", slot.show(&self.table))),
            (_, Type::String) => Some("`\"\" ++ value` makes text of anything".to_owned()),
            (ty, Type::List(of)) if ty.fits(of, &self.table) => {
                Some("write it in brackets to make a list".to_owned())
            }
            _ => None,
        };
        self.report(Code::WrongType, span, message, |d| detail(d).help_if(help));
    }

    fn expr_kind(&mut self, expr: &'a ast::ExprSyntax<'a>) -> (ExprKind, Type) {
        match &expr.kind {
            ast::ExprSyntaxKind::String(text) => {
                (ExprKind::String(literal::value(text).into_owned()), Type::String)
            }
            ast::ExprSyntaxKind::Int(magnitude) => self.integer(*magnitude, expr.span),
            ast::ExprSyntaxKind::Double(value) => (ExprKind::Double(*value), Type::Double),
            ast::ExprSyntaxKind::Boolean(value) => (ExprKind::Boolean(*value), Type::Boolean),
            ast::ExprSyntaxKind::Null => (ExprKind::Null, Type::Null),
            ast::ExprSyntaxKind::Array(elements) => self.array(elements),
            ast::ExprSyntaxKind::Map(entries) => self.map(entries),
            ast::ExprSyntaxKind::Input(path) => self.input(path, expr.span),
            ast::ExprSyntaxKind::Name(path) => self.name(path, expr.span),
            ast::ExprSyntaxKind::Concat(operands) => (
                ExprKind::Concat(operands.iter().map(|operand| self.expr(operand).0).collect()),
                Type::String,
            ),
            ast::ExprSyntaxKind::Binary(op, operands) => self.binary(*op, operands, expr.span),
            ast::ExprSyntaxKind::Unary(op, operand) => self.unary(*op, operand, expr.span),
            ast::ExprSyntaxKind::Index(parts) => self.index(parts),
            ast::ExprSyntaxKind::Field(base, field) => self.field_of(base, field),
            ast::ExprSyntaxKind::Paren(inner) => self.expr_kind(inner),
            ast::ExprSyntaxKind::Broken => (ExprKind::Null, Type::Broken),
        }
    }

    fn integer(&mut self, magnitude: u64, span: Span) -> (ExprKind, Type) {
        if let Ok(value) = i64::try_from(magnitude) {
            return (ExprKind::Int(value), Type::Int);
        }
        let message = format!("`{magnitude}` does not fit in 64 bits");
        self.report(Code::NumberOutOfRange, span, message, |d| d.help("only `-9223372036854775808` does"));
        (ExprKind::Int(i64::MAX), Type::Broken)
    }

    fn array(&mut self, elements: &'a [ast::ExprSyntax<'a>]) -> (ExprKind, Type) {
        let mut joined = Type::Broken;
        let mut compiled = Vec::with_capacity(elements.len());
        for element in elements {
            let (element, ty) = self.expr(element);
            compiled.push(element);
            joined = if joined == Type::Broken { ty } else { joined.join(ty, &self.table) };
        }
        (ExprKind::Array(compiled), Type::list(joined))
    }

    fn map(&mut self, entries: &'a [MapEntry<'a>]) -> (ExprKind, Type) {
        let mut seen = FxHashSet::default();
        let mut compiled = Vec::with_capacity(entries.len());
        let mut types = Vec::with_capacity(entries.len());
        for MapEntry { key, value } in entries {
            let (name, span) = match key {
                MapKey::Name(name) => (name.text.to_owned(), name.span),
                MapKey::String(text) => (literal::value(text).into_owned(), text.span),
            };
            let (value, ty) = self.expr(value);
            if !seen.insert(name.clone()) {
                let message = format!("the key `{name}` is given twice");
                self.report(Code::DuplicateKey, span, message, |d| d.help("remove one of the two"));
                continue;
            }
            types.push((name.clone(), ty));
            compiled.push((name, value));
        }
        (ExprKind::Map(compiled), Type::Record(types.into()))
    }

    fn unary(&mut self, op: UnaryOp, operand: &'a ast::ExprSyntax<'a>, span: Span) -> (ExprKind, Type) {
        if let (UnaryOp::Negate, ast::ExprSyntaxKind::Int(magnitude)) = (op, &operand.kind)
            && let Some(value) = 0_i64.checked_sub_unsigned(*magnitude)
        {
            return (ExprKind::Int(value), Type::Int);
        }
        let (compiled, ty) = self.expr(operand);
        let wanted = match op.operand() {
            UnaryOperand::Boolean => OperandKind::Boolean,
            UnaryOperand::Number => OperandKind::Number,
        };
        if ty.kind() != wanted && ty.kind() != OperandKind::Any {
            let message =
                format!("`{}` needs {}, but this is {}", op.text(), op.operand(), ty.show(&self.table));
            self.report(Code::BadOperand, span, message, |d| d);
            return (ExprKind::Null, Type::Broken);
        }
        let ty = ty.solid().clone();
        match (op, compiled.kind) {
            (UnaryOp::Plus, kind) => (kind, ty),
            (UnaryOp::Negate, ExprKind::Double(value)) => (ExprKind::Double(-value), ty),
            (op, kind) => (ExprKind::Unary(op, Box::new(Expr { kind, location: compiled.location })), ty),
        }
    }

    fn index(&mut self, parts: &'a [ast::ExprSyntax<'a>; 2]) -> (ExprKind, Type) {
        let [base, index] = parts;
        let (base_compiled, base_ty) = self.expr(base);
        let (index_compiled, index_ty) = self.expr(index);
        let table = &self.table;
        let (ty, wanted) = match base_ty.solid() {
            Type::List(of) => ((**of).clone(), Some(Type::Long)),
            Type::String => (Type::String, Some(Type::Long)),
            Type::Schema(_) | Type::Record(_) => (Type::Json, Some(Type::String)),
            Type::Json | Type::Broken => (base_ty.solid().clone(), None),
            Type::Either(_) => (Type::Json, None),
            Type::Long | Type::Int | Type::Double | Type::Boolean | Type::Null | Type::Nullable(_) => {
                let message = format!("{} has no elements, so it cannot be indexed", base_ty.show(table));
                self.report(Code::BadOperand, base.span, message, |d| d);
                (Type::Broken, None)
            }
        };
        if let Some(wanted) = wanted
            && !index_ty.fits(&wanted, &self.table)
        {
            let (wanted, found) = (wanted.show(&self.table), index_ty.show(&self.table));
            let message =
                format!("the index of {} must be {wanted}, but this is {found}", base_ty.show(&self.table));
            self.report(Code::WrongType, index.span, message, |d| d);
        }
        (ExprKind::Index(Box::new([base_compiled, index_compiled])), ty)
    }

    /// `.field` behind an index or parentheses; compiled to an index with a string.
    fn field_of(&mut self, base: &'a ast::ExprSyntax<'a>, field: &'a Ident<'a>) -> (ExprKind, Type) {
        let (compiled, ty) = self.expr(base);
        let text = &self.source_text()[base.span.range()];
        let ty = self.walk(ty, std::slice::from_ref(field), text.to_owned());
        let location = self.location(field.span);
        let key = Expr { kind: ExprKind::String(field.text.to_owned()), location };
        (ExprKind::Index(Box::new([compiled, key])), ty)
    }

    /// A condition of a `case` or an assertion.
    pub(super) fn condition(&mut self, expr: &'a ast::ExprSyntax<'a>) -> Expr {
        let (compiled, ty) = self.expr(expr);
        if !matches!(ty.kind(), OperandKind::Boolean | OperandKind::Any) {
            let message = format!("a condition must be Boolean, but this is {}", ty.show(&self.table));
            let example = match ty.kind() {
                OperandKind::Text => "x != \"\"",
                OperandKind::List => "x != []",
                OperandKind::Number
                | OperandKind::Boolean
                | OperandKind::Record
                | OperandKind::Null
                | OperandKind::Any => "x > 0",
            };
            let help = format!("compare it with something, as in `{example}`");
            self.report(Code::NotBoolean, expr.span, message, |d| d.help(help));
        }
        compiled
    }
}
