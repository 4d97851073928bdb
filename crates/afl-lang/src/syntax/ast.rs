//! The syntax tree: what the text says, before names and types mean anything.
//!
//! The tree keeps spans, parentheses and literals as written; comments stand beside it in
//! [`SyntaxTree::comments`]. Together they are all the formatter needs. Broken parts are left out or
//! are [`ExprSyntaxKind::Broken`]; whatever is left out has been reported.

use std::borrow::Cow;

use crate::operator::{BinaryOp, UnaryOp};
use crate::source::Span;

#[derive(Debug, Default)]
pub struct SyntaxTree<'s> {
    pub items: Vec<ItemSyntax<'s>>,
    /// Every comment of the text, in order.
    pub comments: Vec<Comment>,
    /// The identifiers of text that was skipped after an error: what they may have declared is unknown.
    pub lost: Vec<&'s str>,
}

/// Among the lost words where something has no name: whatever is unknown may be meant.
pub const NAMELESS: &str = "";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    pub kind: CommentKind,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommentKind {
    Line,
    Block,
    Doc,
}

#[derive(Debug)]
pub enum ItemSyntax<'s> {
    Namespace(NamespaceSyntax<'s>),
    Use(Use<'s>),
    Decl(Box<DeclSyntax<'s>>),
}

#[derive(Clone, Copy, Debug)]
pub struct Ident<'s> {
    pub text: &'s str,
    pub span: Span,
}

/// A dotted name; `text` has no blanks or comments even where the source has. An empty one stands for
/// a name that was reported as missing.
#[derive(Clone, Debug)]
pub struct QName<'s> {
    pub text: Cow<'s, str>,
    pub span: Span,
}

impl QName<'_> {
    pub fn is_missing(&self) -> bool {
        self.text.is_empty()
    }

    /// The part after the last dot.
    pub fn last(&self) -> &str {
        self.text.rsplit('.').next().unwrap_or(&self.text)
    }
}

#[derive(Debug)]
pub struct NamespaceSyntax<'s> {
    pub doc: Option<Span>,
    pub name: QName<'s>,
    pub extent: NamespaceExtent,
    pub items: Vec<ItemSyntax<'s>>,
    pub span: Span,
}

/// How far a namespace reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamespaceExtent {
    /// `namespace a { … }`; the span covers the braces.
    Braces(Span),
    /// `namespace a` without braces: to the next such line or the end of the file.
    RestOfFile,
}

#[derive(Debug)]
pub struct Use<'s> {
    pub namespace: QName<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub struct DeclSyntax<'s> {
    pub doc: Option<Span>,
    pub kind: DeclKind<'s>,
    /// From the first keyword to the end of the tail; without the doc comment.
    pub span: Span,
}

#[derive(Debug)]
pub enum DeclKind<'s> {
    Facet(FacetSyntax<'s>),
    Schema(Schema<'s>),
    Implicit(Implicit<'s>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FacetKind {
    Plain,
    Event,
    Workflow,
}

#[derive(Debug)]
pub struct FacetSyntax<'s> {
    pub kind: FacetKind,
    pub name: Ident<'s>,
    pub params: Params<'s>,
    pub returns: Option<Params<'s>>,
    pub mixins: Vec<MixinSyntax<'s>>,
    pub body: BodySyntax<'s>,
}

/// Whether a list holds all that was written, or lost something to a reported error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wholeness {
    Whole,
    Broken,
}

/// The tail of a signature or a step's call.
#[derive(Debug, Default)]
pub struct BodySyntax<'s> {
    pub script: Option<ScriptSyntax<'s>>,
    pub prompt: Option<Prompt<'s>>,
    pub clauses: Vec<Clause<'s>>,
    pub catch: Option<Catch<'s>>,
}

#[derive(Debug)]
pub struct Params<'s> {
    pub list: Vec<Param<'s>>,
    /// With the parentheses.
    pub span: Span,
    pub wholeness: Wholeness,
}

/// A parameter, a return or a schema field.
#[derive(Debug)]
pub struct Param<'s> {
    pub name: Ident<'s>,
    pub ty: TypeExpr<'s>,
    pub default: Option<ExprSyntax<'s>>,
    pub span: Span,
}

#[derive(Debug)]
pub struct TypeExpr<'s> {
    pub kind: TypeKind<'s>,
    /// Written with a `?`.
    pub nullable: bool,
    pub span: Span,
}

#[derive(Debug)]
pub enum TypeKind<'s> {
    Name(QName<'s>),
    List(Box<TypeExpr<'s>>),
    Broken,
}

#[derive(Debug)]
pub struct Schema<'s> {
    pub name: Ident<'s>,
    pub fields: Params<'s>,
}

#[derive(Debug)]
pub struct Implicit<'s> {
    pub name: Ident<'s>,
    pub call: CallSyntax<'s>,
}

/// One `andThen`.
#[derive(Debug)]
pub struct Clause<'s> {
    pub kind: ClauseKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum ClauseKind<'s> {
    Block(BlockSyntax<'s>),
    Foreach(Foreach<'s>),
    When(When<'s>),
    Script(ScriptSyntax<'s>),
}

#[derive(Debug)]
pub struct Foreach<'s> {
    pub variable: Ident<'s>,
    pub iterable: ExprSyntax<'s>,
    pub block: BlockSyntax<'s>,
}

#[derive(Debug)]
pub struct BlockSyntax<'s> {
    pub statements: Vec<StatementSyntax<'s>>,
    /// With the braces.
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementSyntax<'s> {
    Step(StepSyntax<'s>),
    Log(LogSyntax<'s>),
    Assert(Assert<'s>),
    Yield(Yield<'s>),
}

impl StatementSyntax<'_> {
    pub fn span(&self) -> Span {
        match self {
            Self::Step(step) => step.span,
            Self::Log(log) => log.span,
            Self::Assert(assert) => assert.span,
            Self::Yield(yielded) => yielded.span,
        }
    }
}

#[derive(Debug)]
pub struct StepSyntax<'s> {
    pub name: Ident<'s>,
    pub call: CallSyntax<'s>,
    /// Only `clauses` and `catch` can be filled.
    pub body: BodySyntax<'s>,
    pub span: Span,
}

/// `sys.log(…)`.
#[derive(Debug)]
pub struct LogSyntax<'s> {
    pub args: Args<'s>,
    pub span: Span,
}

/// `sys.assert(…)`.
#[derive(Debug)]
pub struct Assert<'s> {
    pub condition: ExprSyntax<'s>,
    pub span: Span,
}

/// `yield A(…) with B(…)`: one yield for each target.
#[derive(Debug)]
pub struct Yield<'s> {
    pub call: CallSyntax<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub struct CallSyntax<'s> {
    pub target: QName<'s>,
    pub args: Args<'s>,
    pub mixins: Vec<MixinSyntax<'s>>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Args<'s> {
    pub list: Vec<Arg<'s>>,
    /// With the parentheses.
    pub span: Span,
    pub wholeness: Wholeness,
}

#[derive(Debug)]
pub struct Arg<'s> {
    pub name: Ident<'s>,
    pub value: ExprSyntax<'s>,
}

/// `with Target(…) as alias`.
#[derive(Debug)]
pub struct MixinSyntax<'s> {
    pub target: QName<'s>,
    pub args: Args<'s>,
    pub alias: Option<Ident<'s>>,
    /// From `with` to the end.
    pub span: Span,
}

#[derive(Debug)]
pub struct When<'s> {
    pub cases: Vec<CaseSyntax<'s>>,
    /// From `when` to the closing brace.
    pub span: Span,
}

#[derive(Debug)]
pub struct CaseSyntax<'s> {
    pub condition: Condition<'s>,
    pub block: BlockSyntax<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum Condition<'s> {
    If(ExprSyntax<'s>),
    /// `_`
    Otherwise(Span),
}

#[derive(Debug)]
pub struct Catch<'s> {
    pub kind: CatchKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum CatchKind<'s> {
    Block(BlockSyntax<'s>),
    When(When<'s>),
}

#[derive(Debug)]
pub struct ScriptSyntax<'s> {
    pub language: Option<Ident<'s>>,
    pub body: ScriptBody<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum ScriptBody<'s> {
    Text(StringLit<'s>),
    /// `{ … }`: the text between the braces.
    Braces(&'s str, Span),
}

#[derive(Debug)]
pub struct Prompt<'s> {
    pub entries: Vec<PromptEntry<'s>>,
    /// From `prompt` to the closing brace.
    pub span: Span,
}

#[derive(Debug)]
pub struct PromptEntry<'s> {
    pub key: Ident<'s>,
    pub value: StringLit<'s>,
}

/// A string as written, quotes included; `literal::value` gives what it means.
#[derive(Clone, Copy, Debug)]
pub struct StringLit<'s> {
    pub raw: &'s str,
    pub span: Span,
}

#[derive(Debug)]
pub struct ExprSyntax<'s> {
    pub kind: ExprSyntaxKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub enum ExprSyntaxKind<'s> {
    String(StringLit<'s>),
    /// The magnitude; a sign is a [`UnaryOp::Negate`] around it.
    Int(u64),
    Double(f64),
    Boolean(bool),
    Null,
    Array(Vec<ExprSyntax<'s>>),
    Map(Vec<MapEntry<'s>>),
    /// `$.a.b`
    Input(Vec<Ident<'s>>),
    /// `step.a.b`, or a foreach variable; never empty.
    Name(Vec<Ident<'s>>),
    /// All operands of a chain of `++`.
    Concat(Vec<ExprSyntax<'s>>),
    Binary(BinaryOp, Box<[ExprSyntax<'s>; 2]>),
    Unary(UnaryOp, Box<ExprSyntax<'s>>),
    /// `base[index]`
    Index(Box<[ExprSyntax<'s>; 2]>),
    /// `.field` behind anything but a plain reference.
    Field(Box<ExprSyntax<'s>>, Ident<'s>),
    Paren(Box<ExprSyntax<'s>>),
    Broken,
}

#[derive(Debug)]
pub struct MapEntry<'s> {
    pub key: MapKey<'s>,
    pub value: ExprSyntax<'s>,
}

#[derive(Debug)]
pub enum MapKey<'s> {
    Name(Ident<'s>),
    String(StringLit<'s>),
}
