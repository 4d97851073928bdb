//! The nodes of a program above its expressions.

use std::sync::Arc;

use super::Expr;
use crate::source::FileId;
use crate::types::TypeRef;

/// The version of the format; a loader refuses any other.
pub const FORMAT_VERSION: u32 = 1;

/// A qualified name, such as `billing.ProcessPayment`. Many nodes share one text.
pub type QualifiedName = Arc<str>;

/// Where a node stands in its source; lines and columns count from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    pub declarations: Vec<Decl>,
    /// The names of the source texts, for `sourceId`.
    pub sources: Vec<String>,
}

/// A declaration in source order.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "most declarations are facets, the largest")]
pub enum Decl {
    Namespace(Namespace),
    Facet(FacetDecl),
    Schema(SchemaDecl),
    Implicit(ImplicitDecl),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Namespace {
    /// Also its id; several blocks of one name share it.
    pub name: QualifiedName,
    pub doc: Option<String>,
    pub uses: Vec<QualifiedName>,
    pub declarations: Vec<Decl>,
    pub location: Option<Location>,
    /// An index into [`Program::sources`].
    pub source: Option<FileId>,
}

/// `FacetDecl`, `EventFacetDecl` or `WorkflowDecl`.
#[derive(Clone, PartialEq, Debug)]
pub struct FacetDecl {
    pub kind: FacetKind,
    /// The qualified name; unique among facets and schemas.
    pub id: QualifiedName,
    pub name: String,
    pub doc: Option<String>,
    pub params: Vec<Parameter>,
    pub returns: Vec<Parameter>,
    pub mixins: Vec<MixinCall>,
    pub script: Option<ScriptBlock>,
    pub prompt: Option<PromptBlock>,
    pub body: Vec<AndThenBlock>,
    pub catch: Option<CatchClause>,
    pub location: Option<Location>,
    pub source: Option<FileId>,
}

pub use crate::syntax::ast::FacetKind;

#[derive(Clone, PartialEq, Debug)]
pub struct SchemaDecl {
    pub id: QualifiedName,
    pub name: String,
    pub doc: Option<String>,
    pub fields: Vec<Parameter>,
    pub location: Option<Location>,
    pub source: Option<FileId>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ImplicitDecl {
    pub id: QualifiedName,
    pub name: String,
    pub call: CallExpr,
    pub location: Option<Location>,
    pub source: Option<FileId>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    pub name: String,
    pub ty: TypeRef,
    pub default: Option<Expr>,
}

/// One `andThen`, a case of a `when`, or the block of a `catch`.
#[derive(Clone, PartialEq, Debug)]
pub struct AndThenBlock {
    /// `ns.Facet/0`, `ns.Facet/0/step/1`, `ns.Facet/1/case0`, `ns.Facet/catch`.
    pub id: String,
    pub content: BlockContent,
    /// Earlier clauses of the same owner whose steps this one reads, by position; it starts when they are complete.
    pub after: Vec<u32>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum BlockContent {
    Steps(Statements),
    Foreach(ForeachClause, Statements),
    When(WhenBlock),
    Script(ScriptBlock),
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statements {
    pub steps: Vec<Statement>,
    pub yields: Vec<YieldStmt>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ForeachClause {
    pub variable: String,
    pub iterable: Expr,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct WhenBlock {
    pub cases: Vec<WhenCase>,
    pub location: Option<Location>,
}

/// The last case has no condition.
#[derive(Clone, PartialEq, Debug)]
pub struct WhenCase {
    pub id: String,
    pub condition: Option<Expr>,
    pub statements: Statements,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct CatchClause {
    pub id: String,
    pub content: CatchContent,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum CatchContent {
    Steps(Statements),
    When(WhenBlock),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    Step(StepStmt),
    Log(LogStmt),
    Assert(AssertStmt),
}

#[derive(Clone, PartialEq, Debug)]
pub struct StepStmt {
    pub id: String,
    pub name: String,
    pub call: CallExpr,
    pub body: Vec<AndThenBlock>,
    pub catch: Option<CatchClause>,
    /// The steps of the same block whose attributes this statement reads, in the order first read.
    pub depends_on: Vec<String>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LogStmt {
    pub id: String,
    pub args: Vec<NamedArg>,
    pub depends_on: Vec<String>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct AssertStmt {
    pub id: String,
    pub condition: Expr,
    pub depends_on: Vec<String>,
    pub location: Option<Location>,
}

/// One target of a `yield`.
#[derive(Clone, PartialEq, Debug)]
pub struct YieldStmt {
    pub id: String,
    /// The facet yielded to.
    pub target: QualifiedName,
    /// Set when the yield goes to a mixin by its alias.
    pub alias: Option<String>,
    pub args: Vec<NamedArg>,
    pub depends_on: Vec<String>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct CallExpr {
    pub id: String,
    pub target: QualifiedName,
    /// Explicit arguments in source order, then those an implicit supplies.
    pub args: Vec<NamedArg>,
    pub mixins: Vec<MixinCall>,
    pub location: Option<Location>,
}

/// `MixinSig` on a declaration, `MixinCall` on a call.
#[derive(Clone, PartialEq, Debug)]
pub struct MixinCall {
    pub target: QualifiedName,
    pub alias: Option<String>,
    pub args: Vec<NamedArg>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct NamedArg {
    pub name: String,
    pub value: Expr,
    /// The implicit that supplies it, if one does.
    pub implicit: Option<QualifiedName>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromptBlock {
    /// In source order; `template` is always among them.
    pub entries: Vec<(String, String)>,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptBlock {
    pub language: String,
    pub code: String,
    pub location: Option<Location>,
}
