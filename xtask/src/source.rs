//! A Rust file as tidy sees it: code apart from comments, tests apart from the rest.

mod items;
mod layers;

use std::ops::RangeInclusive;

pub(crate) use items::Function;

pub(crate) struct Source {
    /// Relative to the workspace's root, with `/`.
    pub(crate) path: String,
    /// The text with comments and the contents of literals blanked out.
    pub(crate) code: String,
    /// The text with everything but comments blanked out.
    pub(crate) comments: String,
    pub(crate) text: String,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// What a piece of code is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Source,
    Test,
    Bench,
    Example,
}

impl Source {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let layers = layers::split(&text);
        let test_lines = items::test_lines(&layers.code);
        Self { path: path.to_owned(), code: layers.code, comments: layers.comments, text, test_lines }
    }

    /// What the line (counted from one) is there for.
    pub(crate) fn part(&self, line: usize) -> Part {
        match part_of_file(&self.path) {
            Part::Source if self.test_lines.iter().any(|lines| lines.contains(&line)) => Part::Test,
            part => part,
        }
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        items::functions(&self.code)
    }

    /// Number, code and comments of each line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let pairs = self.code.lines().zip(self.comments.lines());
        pairs.enumerate().map(|(index, (code, comments))| (index + 1, code, comments))
    }
}

fn part_of_file(path: &str) -> Part {
    for component in path.split('/') {
        match component {
            "tests" | "tests.rs" => return Part::Test,
            "benches" => return Part::Bench,
            "examples" => return Part::Example,
            _ => {}
        }
    }
    Part::Source
}
