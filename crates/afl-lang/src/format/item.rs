//! Namespaces, imports and declarations.

use super::block::NO_BODY;
use super::entries::Position;
use super::layout::{Break, LayoutMark};
use super::printer::Printer;
use crate::syntax::ast::{
    DeclKind, DeclSyntax, FacetKind, FacetSyntax, ItemSyntax, NamespaceExtent, NamespaceSyntax, Params,
    Schema, SyntaxTree, Wholeness,
};

/// Whether an item needs a blank line around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ItemShape {
    OneLine,
    Lines,
}

impl<'t> Printer<'t> {
    pub(super) fn file(&mut self, tree: &'t SyntaxTree<'t>) {
        self.items(&tree.items, Position::First, ItemShape::OneLine);
        let position = if tree.items.is_empty() { Position::First } else { Position::Later };
        self.leave(u32::MAX, position);
    }

    /// Items on lines of their own, the first behind something of the given shape.
    fn items(&mut self, items: &'t [ItemSyntax<'t>], mut position: Position, mut before: ItemShape) {
        for item in items {
            let gap = self.enter(start(item), position);
            let is_later = position == Position::Later;
            let is_set_off = before == ItemShape::Lines || matches!(item, ItemSyntax::Namespace(_));
            if is_later && is_set_off {
                self.set_off(gap);
            }
            let shape = self.item(item);
            if is_later && !is_set_off && shape == ItemShape::Lines {
                self.set_off(gap);
            }
            self.layout.render();
            position = Position::Later;
            before = shape;
        }
    }

    fn item(&mut self, item: &'t ItemSyntax<'t>) -> ItemShape {
        match item {
            ItemSyntax::Namespace(namespace) => {
                self.namespace(namespace);
                ItemShape::Lines
            }
            ItemSyntax::Use(import) => {
                self.layout.text("use ");
                self.qname(&import.namespace);
                ItemShape::OneLine
            }
            ItemSyntax::Decl(decl) => self.decl(decl),
        }
    }

    fn namespace(&mut self, namespace: &'t NamespaceSyntax<'t>) {
        self.layout.text("namespace ");
        self.qname(&namespace.name);
        match namespace.extent {
            NamespaceExtent::RestOfFile => self.items(&namespace.items, Position::Later, ItemShape::Lines),
            NamespaceExtent::Braces(span) => {
                self.token(span.start, " ");
                if namespace.items.is_empty() {
                    return self.empty_braces(span);
                }
                self.long_braces(span, Position::Later, |printer| {
                    printer.items(&namespace.items, Position::First, ItemShape::OneLine);
                });
            }
        }
    }

    fn decl(&mut self, decl: &'t DeclSyntax<'t>) -> ItemShape {
        let begin = self.layout.mark();
        match &decl.kind {
            DeclKind::Facet(facet) => self.facet(facet),
            DeclKind::Schema(schema) => self.schema(schema),
            DeclKind::Implicit(implicit) => {
                self.layout.text("implicit ");
                self.ident(&implicit.name);
                self.layout.text(" = ");
                self.call(&implicit.call, &NO_BODY);
            }
        }
        let width = self.layout.width_since(begin);
        if self.layout.fits_a_line(width) { ItemShape::OneLine } else { ItemShape::Lines }
    }

    fn facet(&mut self, facet: &'t FacetSyntax<'t>) {
        self.layout.text(match facet.kind {
            FacetKind::Plain => "facet ",
            FacetKind::Event => "event facet ",
            FacetKind::Workflow => "workflow ",
        });
        self.ident(&facet.name);
        let params = self.params(&facet.params);
        if let Some(returns) = &facet.returns {
            self.returns(returns, params);
        }
        self.tail(&facet.mixins, &facet.body);
    }

    fn returns(&mut self, returns: &'t Params<'t>, params: LayoutMark) {
        let begin = self.layout.mark();
        self.hanging(returns.span.start, |printer| {
            printer.layout.text(" => ");
            printer.params(returns);
        });
        // Returns that fit behind the last line of the parameters are better kept together.
        let width = self.layout.width_since(begin);
        if self.layout.fits_a_line(width.saturating_add(1)) {
            self.layout.stretch(params);
        }
    }

    fn schema(&mut self, schema: &'t Schema<'t>) {
        self.layout.text("schema ");
        self.ident(&schema.name);
        self.layout.text(" ");
        let fields = &schema.fields;
        assert_eq!(fields.wholeness, Wholeness::Whole, "fields were lost without an error");
        let is_line = self.is_on_one_line(fields.span) && !self.comments.is_doc_before(fields.span.end);
        if fields.list.is_empty() || !is_line {
            return self.braces(fields.span, &fields.list, |field| field.span.start, Self::param);
        }
        self.short_braces(fields.span, |printer| {
            let mut rest = fields.list.iter();
            while let Some(field) = rest.next() {
                printer.before_element(field.span.start, Break::Space);
                printer.param(field);
                if let Some(next) = rest.as_slice().first() {
                    printer.before_separator(next.span.start);
                    printer.layout.if_flat(",");
                }
            }
        });
    }
}

fn start(item: &ItemSyntax<'_>) -> u32 {
    match item {
        ItemSyntax::Namespace(namespace) => namespace.span.start,
        ItemSyntax::Use(import) => import.span.start,
        ItemSyntax::Decl(decl) => decl.span.start,
    }
}
