//! Diagnostics for people: the sentence, the lines it is about, and what to do.

use annotate_snippets::{Group, Level, Renderer};

use super::excerpt::{Excerpt, ExcerptMark};
use super::{Positions, shortened};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{LineColumn, Sources};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    Plain,
    /// Escape sequences of a terminal.
    Ansi,
}

/// Each diagnostic with its excerpt, a blank line between two. Ends with a line break unless it is empty.
pub fn human(sources: &Sources, diagnostics: &[Diagnostic], color: Color) -> String {
    let positions = Positions::new(sources);
    let renderer = match color {
        Color::Plain => Renderer::plain(),
        Color::Ansi => Renderer::styled(),
    }
    .anonymized_origin_line_numbers(true);
    let texts = diagnostics.iter().map(|diagnostic| one(&positions, &renderer, diagnostic) + "\n");
    texts.collect::<Vec<_>>().join("\n")
}

fn one(positions: &Positions<'_>, renderer: &Renderer, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let excerpts = excerpts(positions, diagnostic);
    let headers: Vec<String> = excerpts.iter().map(|excerpt| header(positions, excerpt)).collect();
    let title = level.primary_title(printable(&diagnostic.message)).id(diagnostic.code.text());
    let snippets = excerpts.iter().zip(&headers).map(|(excerpt, header)| excerpt.snippet().path(header));
    let mut group = Group::with_title(title).elements(snippets);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    headers.iter().fold(renderer.render(&[group]), |rendered, header| without_own_position(rendered, header))
}

fn header(positions: &Positions<'_>, excerpt: &Excerpt<'_>) -> String {
    let place = excerpt.place();
    let LineColumn { line, column } = positions.start(place);
    format!("{}:{line}:{column}", printable(positions.name(place.file)))
}

/// Takes off the position that the renderer puts behind the header: it counts in the excerpt, which may
/// be cut.
fn without_own_position(mut rendered: String, header: &str) -> String {
    let own = format!("{header}:LL:");
    if let Some(at) = rendered.find(&own) {
        let column = rendered[at + own.len()..].bytes().take_while(u8::is_ascii_digit).count();
        rendered.replace_range(at + header.len()..at + own.len() + column, "");
    }
    rendered
}

/// The places of a diagnostic, those that are close to one another in one excerpt, the first place first.
fn excerpts<'d>(positions: &Positions<'_>, diagnostic: &'d Diagnostic) -> Vec<Excerpt<'d>> {
    let mut clusters = vec![vec![ExcerptMark::primary(diagnostic.place)]];
    for label in &diagnostic.related {
        let mark = ExcerptMark::related(label);
        let index = positions.index(label.place.file);
        let near = clusters.iter_mut().find(|marks| marks.iter().all(|other| mark.is_near(other, index)));
        match near {
            Some(marks) => marks.push(mark),
            None => clusters.push(vec![mark]),
        }
    }
    let excerpt = |marks: Vec<ExcerptMark<'d>>| {
        let file = marks[0].place.file;
        Excerpt::new(&positions.sources.get(file).text, positions.index(file), marks)
    };
    clusters.into_iter().map(excerpt).collect()
}

/// The text without control characters: it may quote the source or a file name.
fn printable(text: &str) -> String {
    let acts = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    shortened(text).replace(acts, "\u{fffd}")
}
