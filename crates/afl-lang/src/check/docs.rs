//! Doc comments: their text, and whether they speak of what is there.

use super::Checker;
use crate::code::Code;
use crate::source::Span;
use crate::syntax::ast::{Facet, Param};

impl<'a> Checker<'a> {
    /// The text of a doc comment without its frame.
    pub(super) fn doc_text(&self, doc: Option<Span>) -> Option<String> {
        let raw = &self.source_text()[doc?.range()];
        let inner = raw.strip_prefix("/**").and_then(|rest| rest.strip_suffix("*/")).unwrap_or(raw);
        let line = |line: &str| {
            let line = line.trim();
            line.strip_prefix('*').map_or(line, str::trim_start).to_owned()
        };
        let lines: Vec<String> = inner.lines().map(line).collect();
        Some(lines.join("\n").trim().to_owned())
    }

    /// Reports `@param` and `@return` of names that the facet does not have.
    pub(super) fn check_doc(&mut self, doc: Option<Span>, facet: &'a Facet<'a>) {
        let Some(doc) = doc else { return };
        let text = &self.source_text()[doc.range()];
        let returns = facet.returns.as_ref().map_or(&[][..], |returns| &returns.list);
        for (tag, noun, params) in
            [("@param ", "parameter", &facet.params.list[..]), ("@return ", "return", returns)]
        {
            for (at, _) in text.match_indices(tag) {
                self.check_doc_name(doc.start as usize + at + tag.len(), noun, params, facet.name.text);
            }
        }
    }

    fn check_doc_name(&mut self, start: usize, noun: &str, params: &[Param<'a>], facet: &str) {
        let rest = &self.source_text()[start..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let word = &rest[blanks..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
        let name = &word[..end];
        if name.is_empty() || params.iter().any(|param| param.name.text == name) {
            return;
        }
        let message = format!("`{facet}` has no {noun} `{name}`");
        let from = (start + blanks) as u32;
        let span = Span::new(from, from + end as u32);
        self.report(Code::UnknownDocParameter, span, message, |d| {
            d.help("correct the name, or remove the line")
        });
    }
}
