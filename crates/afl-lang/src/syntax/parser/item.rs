//! Namespaces, imports and declarations.

use super::Parser;
use super::call::Caller;
use crate::code::Code;
use crate::source::Span;
use crate::suggest;
use crate::syntax::ast::{
    CommentKind, DeclKind, DeclSyntax, FacetKind, FacetSyntax, Implicit, ItemSyntax, NAMELESS,
    NamespaceExtent, NamespaceSyntax, Schema, Use,
};
use crate::syntax::token::{TokenKind, Word};

/// The words that begin an item, for suggestions.
const ITEM_WORDS: [&str; 8] =
    ["namespace", "use", "facet", "event", "workflow", "schema", "implicit", "test"];

/// Where a list of items ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The braces of a namespace, whose word is at `namespace`.
    Brace {
        open: Span,
        namespace: Span,
    },
    EndOfFile,
    /// A namespace without braces ends where the next one begins.
    NextNamespace,
}

impl<'s> Parser<'s> {
    pub(super) fn parse_file(&mut self) {
        self.items = self.items(Until::EndOfFile);
    }

    fn items(&mut self, until: Until) -> Vec<ItemSyntax<'s>> {
        let mut items = Vec::new();
        loop {
            match self.kind() {
                TokenKind::Semicolon => {
                    // A separator does not part a doc comment from its declaration.
                    let end = self.previous_end;
                    self.bump();
                    self.previous_end = end;
                }
                TokenKind::Eof => {
                    if let Until::Brace { open, .. } = until {
                        self.unclosed(open, TokenKind::RBrace);
                    }
                    return items;
                }
                TokenKind::RBrace if matches!(until, Until::Brace { .. }) => {
                    self.bump();
                    return items;
                }
                TokenKind::RBrace => {
                    let message = "this `}` closes nothing";
                    self.syntax_error(Code::NotADeclaration, message, |d| {
                        d.help("remove it, or add the `{` it belongs to")
                    });
                    self.bump();
                }
                TokenKind::Ident if until == Until::NextNamespace && self.word(0) == Word::Namespace => {
                    return items;
                }
                TokenKind::Ident if self.word(0) == Word::Namespace => {
                    if let Until::Brace { open, namespace } = until {
                        let beside = self.indentation(self.span()) <= self.indentation(namespace);
                        if beside && self.on_new_line() {
                            self.unclosed(open, TokenKind::RBrace);
                            return items;
                        }
                        self.namespace_in_namespace(self.slice(Span::new(namespace.end, open.start)).trim());
                    }
                    items.extend(self.item());
                }
                _ => items.extend(self.item()),
            }
        }
    }

    fn namespace_in_namespace(&mut self, outer: &str) {
        let name = self.spelling(1);
        self.syntax_error(Code::NotADeclaration, "a namespace cannot stand inside another", |d| {
            d.help(format!("write it beside the other one: `namespace {outer}.{name} {{ … }}`"))
        });
        self.lost.push(name);
    }

    fn item(&mut self) -> Option<ItemSyntax<'s>> {
        let doc = self.doc_comment();
        match self.word(0) {
            Word::Namespace => self.namespace(doc).map(ItemSyntax::Namespace),
            Word::Use | Word::Uses => self.use_item().map(ItemSyntax::Use),
            Word::Facet => self.facet(doc, FacetKind::Plain),
            Word::Workflow => self.facet(doc, FacetKind::Workflow),
            Word::Event => self.event(doc),
            Word::Schema => self.schema(doc),
            Word::Implicit => self.implicit(doc),
            Word::Test => {
                let message = "`test` declarations are not there yet; the word is reserved";
                self.syntax_error(Code::ReservedWord, message, |d| d);
                self.skip_declaration();
                None
            }
            _ => self.not_an_item(doc),
        }
    }

    /// The doc comment right before the current token.
    fn doc_comment(&self) -> Option<Span> {
        let before = |comment: &&crate::syntax::ast::Comment| comment.span.end <= self.span().start;
        let nearest = self.comments.iter().rev().filter(before);
        nearest
            .take_while(|comment| comment.span.start >= self.previous_end)
            .find(|comment| comment.kind == CommentKind::Doc)
            .map(|comment| comment.span)
    }

    fn namespace(&mut self, doc: Option<Span>) -> Option<NamespaceSyntax<'s>> {
        let start = self.bump().span;
        let Some(name) = self.qualified("the name of the namespace") else {
            self.skip_declaration();
            return None;
        };
        let open = self.eat(TokenKind::LBrace).map(|open| open.span);
        let until = open.map_or(Until::NextNamespace, |open| Until::Brace { open, namespace: start });
        let items = self.nested(|parser| parser.items(until)).unwrap_or_default();
        let extent = match open {
            Some(open) => NamespaceExtent::Braces(self.since(open)),
            None => NamespaceExtent::RestOfFile,
        };
        Some(NamespaceSyntax { doc, name, extent, items, span: self.since(start) })
    }

    fn use_item(&mut self) -> Option<Use<'s>> {
        let start = self.bump().span;
        if self.on_new_line() && matches!(self.word(0), Word::Use | Word::Uses) || self.at_declaration() {
            self.expected("the name of a namespace");
            return None;
        }
        let Some(namespace) = self.qualified("the name of a namespace") else {
            self.skip_declaration();
            return None;
        };
        Some(Use { namespace, span: self.since(start) })
    }

    fn event(&mut self, doc: Option<Span>) -> Option<ItemSyntax<'s>> {
        let start = self.span();
        if self.word(1) == Word::Facet {
            self.bump();
        } else if self.ahead[1].kind == TokenKind::Ident {
            // `event function Name(` has a word for `facet`, `event Name(` has none.
            let other_word = self.ahead[2].kind == TokenKind::Ident;
            let name = self.spelling(if other_word { 2 } else { 1 });
            self.syntax_error(Code::EventWithoutFacet, "`event` is followed by `facet`", |d| {
                d.help(format!("write `event facet {name}(…)`"))
            });
            if other_word {
                self.bump();
            }
        } else {
            return self.not_an_item(doc);
        }
        self.facet_from(start, doc, FacetKind::Event)
    }

    fn facet(&mut self, doc: Option<Span>, kind: FacetKind) -> Option<ItemSyntax<'s>> {
        self.facet_from(self.span(), doc, kind)
    }

    /// A facet whose declaration begins at `start`; the parser stands at the word before its name.
    fn facet_from(&mut self, start: Span, doc: Option<Span>, kind: FacetKind) -> Option<ItemSyntax<'s>> {
        self.bump();
        let Some(name) = self.ident("the name of the facet") else {
            self.lost.push(NAMELESS);
            self.skip_declaration();
            return None;
        };
        let params = self.params(name);
        let returns = self.returns();
        let mixins = self.mixins();
        let body = self.facet_body();
        let facet = FacetSyntax { kind, name, params, returns, mixins, body };
        Some(self.decl(doc, start, DeclKind::Facet(facet)))
    }

    fn decl(&self, doc: Option<Span>, start: Span, kind: DeclKind<'s>) -> ItemSyntax<'s> {
        ItemSyntax::Decl(Box::new(DeclSyntax { doc, kind, span: self.since(start) }))
    }

    fn schema(&mut self, doc: Option<Span>) -> Option<ItemSyntax<'s>> {
        let start = self.bump().span;
        let Some(name) = self.ident("the name of the schema") else {
            self.lost.push(NAMELESS);
            self.skip_declaration();
            return None;
        };
        if !self.at(TokenKind::LBrace) {
            self.expected_with("`{`", |d| d.help("write the fields in braces: `schema Point { x: Long }`"));
            if !(self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Colon) {
                self.skip_declaration();
                self.lost.push(name.text);
                return None;
            }
        }
        let open = self.eat(TokenKind::LBrace).map_or(self.here(), |open| open.span);
        let fields = self.fields(open);
        Some(self.decl(doc, start, DeclKind::Schema(Schema { name, fields })))
    }

    fn implicit(&mut self, doc: Option<Span>) -> Option<ItemSyntax<'s>> {
        let start = self.bump().span;
        let name = self.ident("the name of the implicit")?;
        if self.eat(TokenKind::Assign).is_none() {
            self.expected("`=`");
            self.skip_declaration();
            return None;
        }
        let call = self.call(Caller::Implicit);
        Some(self.decl(doc, start, DeclKind::Implicit(Implicit { name, call })))
    }

    /// Reports a text that is no item. Takes a misspelt keyword for the right one and skips the rest.
    fn not_an_item(&mut self, doc: Option<Span>) -> Option<ItemSyntax<'s>> {
        let word = self.spelling(0);
        let found = self.found();
        let close = suggest::closest(word, ITEM_WORDS);
        let message = format!("expected a declaration, found {found}");
        let help = match (word, close) {
            ("import" | "include" | "from", _) => "write `use name.of.namespace` inside a namespace".to_owned(),
            ("def" | "fn" | "func" | "function", _) => {
                "declare work with `facet`, or with `event facet` if an agent does it".to_owned()
            }
            ("class" | "struct" | "record" | "type" | "interface", _) => {
                "declare a record type with `schema Name { field: Type }`".to_owned()
            }
            ("event", _) => "write `event facet Name(…)`".to_owned(),
            (_, Some(keyword)) => format!("did you mean `{keyword}`?"),
            _ if self.ahead[1].kind == TokenKind::Assign => "steps stand inside `andThen { … }`".to_owned(),
            _ => "a declaration begins with `facet`, `event facet`, `workflow`, `schema`, `implicit` or `namespace`".into(),
        };
        self.syntax_error(Code::NotADeclaration, message, |d| d.help(help));
        let named = self.ahead[1].kind == TokenKind::Ident && self.ahead[2].kind == TokenKind::LParen;
        match close {
            Some("facet") if named => self.facet(doc, FacetKind::Plain),
            Some("workflow") if named => self.facet(doc, FacetKind::Workflow),
            Some("event") if self.word(1) == Word::Facet => self.event(doc),
            Some("schema") if self.ahead[2].kind == TokenKind::LBrace => self.schema(doc),
            Some("namespace") if self.ahead[1].kind == TokenKind::Ident => {
                self.namespace(doc).map(ItemSyntax::Namespace)
            }
            _ if matches!(word, "import" | "include" | "from") => {
                self.skip_line();
                None
            }
            _ => {
                self.skip_declaration();
                None
            }
        }
    }
}
