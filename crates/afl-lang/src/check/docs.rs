//! Doc comments: their text, and whether the names in them exist.

use super::Checker;
use super::decl::DeclList;
use super::table::DefId;
use crate::code::Code;
use crate::source::Span;

impl Checker<'_> {
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
    pub(super) fn check_doc(&mut self, doc: Option<Span>, facet: DefId) {
        let Some(doc) = doc else { return };
        let text = &self.source_text()[doc.range()];
        for list in [DeclList::Params, DeclList::Returns] {
            let tag = list.tag();
            for (at, _) in text.match_indices(tag) {
                self.check_doc_name(doc.start as usize + at + tag.len(), facet, list);
            }
        }
    }

    fn check_doc_name(&mut self, start: usize, facet: DefId, list: DeclList) {
        let rest = &self.source_text()[start..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let word = &rest[blanks..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
        let name = &word[..end];
        let def = &self.table[facet];
        if name.is_empty() || list.of(def).named(name).is_some() {
            return;
        }
        let message = format!("`{}` has no {} `{name}`", def.name, list.noun());
        let from = (start + blanks) as u32;
        let span = Span::new(from, from + end as u32);
        self.report(Code::UnknownDocParameter, span, message, |d| {
            d.help("correct the name, or remove the line")
        });
    }
}

impl DeclList {
    fn tag(self) -> &'static str {
        match self {
            Self::Params => "@param ",
            Self::Returns => "@return ",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Params => "parameter",
            Self::Returns => "return",
        }
    }
}
