//! Doc comments: their text, and whether the names in them exist.

use super::Checker;
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
        let def = &self.table[facet];
        let lists = [("@param ", "parameter", &def.params), ("@return ", "return", &def.returns)];
        let mut unknown = Vec::new();
        for (tag, noun, list) in lists {
            for (at, _) in text.match_indices(tag) {
                let rest = &text[at + tag.len()..];
                let word = rest.trim_start_matches(' ');
                let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
                let name = &word[..end];
                if !name.is_empty() && list.named(name).is_none() {
                    let start = doc.end - word.len() as u32;
                    let message = format!("`{}` has no {noun} `{name}`", def.name);
                    unknown.push((Span::new(start, start + end as u32), message));
                }
            }
        }
        for (span, message) in unknown {
            self.report(Code::UnknownDocParameter, span, message, |d| {
                d.help("correct the name, or remove the line")
            });
        }
    }
}
