//! From trees to a program: resolves every name, checks every rule, and builds the compiled form.
//!
//! One pass over the bodies does both, so that the checked program is the built one. Checking never
//! fails: it reports broken parts and leaves them out of the program.

mod args;
mod attribute;
mod block;
mod body;
mod call;
mod cycle;
mod decl;
mod docs;
mod expr;
mod hint;
mod operator;
mod params;
mod policy;
mod prompt;
mod reference;
mod resolve;
mod scope;
mod signature;
mod table;
mod ty;
mod yields;

use std::cell::Cell;
use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::program::{Location, NamedArg, Program};
use crate::source::{FileId, FileSpan, LineIndex, Source, Sources, Span};
use crate::syntax::ast::SyntaxTree;
use crate::syntax::parse;
use cycle::CallGraph;
use resolve::NameScope;
use scope::OwnerFrame;
use table::{DefId, NamespaceId, Table};

/// The text of the policies and the facets of time, a file behind the last one of the program.
const PRELUDE: &str = include_str!("prelude.afl");

/// Checks the trees of a program's texts, one for each source, and builds the program.
pub fn check<'a>(sources: &'a Sources, trees: &'a [SyntaxTree<'a>]) -> (Program, Vec<Diagnostic>) {
    static PRELUDE_TREE: LazyLock<SyntaxTree<'static>> = LazyLock::new(|| parse(FileId(0), PRELUDE).tree);
    let mut checker = Checker::new(sources, trees);
    checker.declare(trees, &PRELUDE_TREE);
    checker.check_signatures(trees, &PRELUDE_TREE);
    checker.check_implicits();
    let program = checker.check_bodies(trees);
    checker.check_recursion();
    (program, checker.finish())
}

#[derive(Default)]
struct Checker<'a> {
    sources: &'a [Source],
    table: Table<'a>,
    diagnostics: Vec<Diagnostic>,
    /// Words of text that was skipped; what they would have declared is not reported as unknown.
    lost: FxHashSet<&'a str>,
    /// The arguments that each implicit of the table supplies, and the first that a facet has in a namespace.
    implicit_args: Vec<Vec<NamedArg>>,
    implicit_scopes: Vec<usize>,
    implicits_for: FxHashMap<DefId, FxHashMap<NamespaceId, usize>>,
    next_implicit: usize,
    /// Facets whose empty slot has been reported.
    unset_reported: FxHashSet<DefId>,
    calls: CallGraph,
    /// How many names have been compared with wrong ones.
    compared: Cell<usize>,
    file: FileId,
    /// Of every text, the prelude last.
    lines: Vec<LineIndex<'a>>,
    /// The line of the last location, where the next one most likely is.
    near_line: usize,
    /// The scope of every list of items, in the order of the texts.
    scopes: Vec<NameScope>,
    scope_index: usize,
    scope: NameScope,
    /// The owners around the current statement, the innermost last; empty where only constants can stand.
    frames: Vec<OwnerFrame<'a>>,
}

impl<'a> Checker<'a> {
    fn new(sources: &'a Sources, trees: &'a [SyntaxTree<'a>]) -> Self {
        let texts = sources.0.iter().map(|source| source.text.as_str());
        Self {
            sources: &sources.0,
            table: Table::new(),
            lost: trees.iter().flat_map(|tree| tree.lost.iter().copied()).collect(),
            lines: texts.chain([PRELUDE]).map(LineIndex::new).collect(),
            ..Self::default()
        }
    }

    fn declare(&mut self, trees: &'a [SyntaxTree<'a>], prelude: &'a SyntaxTree<'a>) {
        // The prelude comes first, so that a program that declares its namespace gets the error.
        self.table.declare_prelude(FileId(trees.len() as u32), prelude);
        for (file, tree) in trees.iter().enumerate() {
            let taken = self.table.declare(FileId(file as u32), tree);
            self.diagnostics.extend(taken);
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        // The prelude is no text of the program, so no label can point into it.
        let files = self.sources.len();
        for diagnostic in &mut self.diagnostics {
            diagnostic.related.retain(|label| (label.place.file.0 as usize) < files);
        }
        self.diagnostics
    }

    fn enter_file(&mut self, file: FileId) {
        self.file = file;
        self.near_line = 0;
    }

    fn source_text(&self) -> &'a str {
        self.sources.get(self.file.0 as usize).map_or(PRELUDE, |source| source.text.as_str())
    }

    fn place(&self, span: Span) -> FileSpan {
        FileSpan { file: self.file, span }
    }

    fn report(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        detail: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.diagnostics.push(detail(Diagnostic::new(code, self.place(span), message)));
    }

    #[expect(clippy::unnecessary_wraps, reason = "nodes hold an option: a stripped program has no locations")]
    fn location(&mut self, span: Span) -> Option<Location> {
        let lines = &self.lines[self.file.0 as usize];
        let start = lines.position_near(self.near_line, span.start);
        self.near_line = start.line as usize - 1;
        let end = lines.position_near(self.near_line, span.end);
        Some(Location { line: start.line, column: start.column, end_line: end.line, end_column: end.column })
    }
}
