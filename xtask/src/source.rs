//! A Rust file as tidy sees it: code apart from comments, tests apart from the rest.

mod items;
mod layers;

use std::ops::{Range, RangeInclusive};

pub(crate) use items::{Function, TypeItem};
pub(crate) use layers::is_word;

pub(crate) struct RustFile {
    /// Relative to the workspace's root, with `/`.
    pub(crate) path: String,
    /// The text with comments and the contents of literals blanked out.
    pub(crate) code: String,
    /// The text with everything but comments blanked out.
    pub(crate) comments: String,
    pub(crate) text: String,
    test_lines: Vec<RangeInclusive<usize>>,
    strings: Vec<Range<usize>>,
}

/// The purpose of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodePart {
    Source,
    Test,
    Bench,
    Example,
}

impl RustFile {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let layers = layers::split(&text);
        let test_lines = items::test_lines(&layers.code);
        Self {
            path: path.to_owned(),
            code: layers.code,
            comments: layers.comments,
            text,
            test_lines,
            strings: layers.strings,
        }
    }

    /// The purpose of the line (counted from one).
    pub(crate) fn part(&self, line: usize) -> CodePart {
        match part_of_file(&self.path) {
            CodePart::Source if self.test_lines.iter().any(|lines| lines.contains(&line)) => CodePart::Test,
            part => part,
        }
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        items::functions(&self.code)
    }

    /// The structs, enums, unions, traits and aliases of modules.
    pub(crate) fn types(&self) -> Vec<TypeItem> {
        items::types(&self.code)
    }

    /// The first line and the contents of each string literal.
    pub(crate) fn strings(&self) -> impl Iterator<Item = (usize, &str)> {
        self.strings.iter().map(|at| (items::line_of(&self.text, at.start), &self.text[at.clone()]))
    }

    /// Number, code and comments of each line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let pairs = self.code.lines().zip(self.comments.lines());
        pairs.enumerate().map(|(index, (code, comments))| (index + 1, code, comments))
    }
}

fn part_of_file(path: &str) -> CodePart {
    for component in path.split('/') {
        match component {
            "tests" | "tests.rs" => return CodePart::Test,
            "benches" => return CodePart::Bench,
            "examples" => return CodePart::Example,
            _ => {}
        }
    }
    CodePart::Source
}
