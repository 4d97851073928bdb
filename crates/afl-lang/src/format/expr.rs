//! Expressions, types and parameters.

use super::layout::Break;
use super::list::{MAP, SQUARE};
use super::printer::Printer;
use crate::operator::{CONCAT, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{ExprSyntax, ExprSyntaxKind, Ident, Param, TypeExpr, TypeKind};

impl<'t> Printer<'t> {
    pub(super) fn expr(&mut self, expr: &'t ExprSyntax<'t>) {
        match &expr.kind {
            ExprSyntaxKind::String(_)
            | ExprSyntaxKind::Int(_)
            | ExprSyntaxKind::Double(_)
            | ExprSyntaxKind::Boolean(_)
            | ExprSyntaxKind::Null => self.literal(expr.span),
            ExprSyntaxKind::Array(elements) => {
                self.list(SQUARE, elements, expr.span);
            }
            ExprSyntaxKind::Map(entries) => {
                self.list(MAP, entries, expr.span);
            }
            ExprSyntaxKind::Input(path) => {
                self.token(expr.span.start, "$");
                self.fields(path);
            }
            ExprSyntaxKind::Name(path) => {
                self.ident(&path[0]);
                self.fields(&path[1..]);
            }
            ExprSyntaxKind::Concat(_) | ExprSyntaxKind::Binary(..) => {
                self.reach(expr.span.start);
                let group = self.layout.open();
                self.chain(expr);
                self.layout.close(group);
            }
            ExprSyntaxKind::Unary(op, operand) => self.unary(*op, operand, expr.span),
            ExprSyntaxKind::Index(parts) => {
                let [base, index] = parts.as_ref();
                self.expr(base);
                self.reach_bracket(base.span.end, '[', index.span.start);
                self.layout.text("[");
                self.enclosed(index, expr.span.end - 1);
                self.layout.text("]");
            }
            ExprSyntaxKind::Field(base, name) => {
                self.expr(base);
                self.field(name);
            }
            ExprSyntaxKind::Paren(inner) => {
                self.token(expr.span.start, "(");
                self.enclosed(inner, expr.span.end - 1);
                self.layout.text(")");
            }
            ExprSyntaxKind::Broken => unreachable!("a text with errors is not formatted"),
        }
    }

    fn fields(&mut self, path: &[Ident<'t>]) {
        for name in path {
            self.field(name);
        }
    }

    fn field(&mut self, name: &Ident<'t>) {
        self.token(name.span.start, ".");
        self.layout.text(name.text);
    }

    fn unary(&mut self, op: UnaryOp, operand: &'t ExprSyntax<'t>, span: Span) {
        self.token(span.start, op.text());
        // Two plus signs without a blank are another operator, and two minus signs look like one.
        match (op, &operand.kind) {
            (UnaryOp::Plus, ExprSyntaxKind::Unary(UnaryOp::Plus, _))
            | (UnaryOp::Negate, ExprSyntaxKind::Unary(UnaryOp::Negate, _)) => self.layout.text(" "),
            _ => {}
        }
        self.expr(operand);
    }

    /// The content between the brackets of an expression. Operators that do not fit there have lines of
    /// their own.
    pub(super) fn enclosed(&mut self, inner: &'t ExprSyntax<'t>, close: u32) {
        match inner.kind {
            ExprSyntaxKind::Binary(..) | ExprSyntaxKind::Concat(_) => {
                let group = self.layout.open();
                self.layout.indent();
                self.before_element(inner.span.start, Break::Soft);
                self.expr(inner);
                self.reach(close);
                self.layout.dedent();
                self.layout.break_line(Break::Soft);
                self.layout.close(group);
            }
            _ => {
                self.expr(inner);
                self.reach(close);
            }
        }
    }

    /// The operands of one precedence, each but the first on its own line if the group is broken.
    pub(super) fn chain(&mut self, expr: &'t ExprSyntax<'t>) {
        self.operands(expr);
        self.layout.dedent();
    }

    /// Indents behind the first operand.
    fn operands(&mut self, expr: &'t ExprSyntax<'t>) {
        match &expr.kind {
            ExprSyntaxKind::Concat(operands) => {
                self.expr(&operands[0]);
                self.layout.indent();
                for pair in operands.windows(2) {
                    self.operator(CONCAT, pair[0].span.end, pair[1].span.start);
                    self.expr(&pair[1]);
                }
            }
            ExprSyntaxKind::Binary(op, parts) => {
                let [left, right] = parts.as_ref();
                match &left.kind {
                    ExprSyntaxKind::Binary(before, _) if before.level() == op.level() => {
                        self.operands(left);
                    }
                    _ => {
                        self.expr(left);
                        self.layout.indent();
                    }
                }
                self.operator(op.text(), left.span.end, right.span.start);
                self.expr(right);
            }
            _ => unreachable!("only operators make a chain"),
        }
    }

    /// An operator with a line end before it, and the comments around it.
    fn operator(&mut self, operator: &'static str, left_end: u32, right_start: u32) {
        let mut at = left_end;
        let mut is_behind_operator = false;
        while let Some(comment) = self.comments.peek_before(right_start) {
            let between = self.comments.slice(Span::new(at, comment.span.start));
            is_behind_operator |= !between.trim().is_empty();
            // A comment on the line of the right operand stays with it.
            if is_behind_operator && !self.comments.line_ends_between(comment, right_start) {
                break;
            }
            at = comment.span.end;
            self.reach(comment.span.start + 1);
        }
        self.layout.break_line(Break::Space);
        self.layout.text(operator);
        self.layout.text(" ");
    }

    /// ` = value`
    pub(super) fn assigned(&mut self, value: &'t ExprSyntax<'t>) {
        self.layout.text(" =");
        self.value(value);
    }

    /// A value behind `=` or `:`.
    pub(super) fn value(&mut self, value: &'t ExprSyntax<'t>) {
        self.hanging(value.span.start, |printer| {
            printer.layout.text(" ");
            printer.expr(value);
        });
    }

    pub(super) fn param(&mut self, param: &'t Param<'t>) {
        self.ident(&param.name);
        self.layout.text(": ");
        self.type_expr(&param.ty);
        if let Some(default) = &param.default {
            self.assigned(default);
        }
    }

    fn type_expr(&mut self, ty: &'t TypeExpr<'t>) {
        match &ty.kind {
            TypeKind::Name(name) => self.qname(name),
            TypeKind::List(of) => {
                self.token(ty.span.start, "[");
                self.type_expr(of);
                self.layout.text("]");
            }
            TypeKind::Broken => unreachable!("a text with errors is not formatted"),
        }
        if ty.nullable {
            self.layout.text("?");
        }
    }
}
