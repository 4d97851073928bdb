//! A few lines of one text with places marked in them, cut to what a screen can show.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Snippet};

use super::shortened;
use crate::diagnostic::Label;
use crate::source::{FileSpan, LineIndex, Span};

/// Places further apart than this get an excerpt each.
const NEAR_LINES: u32 = 40;

/// A place over more lines than this is marked on its first line only.
const MAX_MARKED_LINES: u32 = 12;

/// A line of more bytes than this is cut to a window, for minified and generated text.
const MAX_LINE_BYTES: u32 = 160;
const WINDOW_BYTES: u32 = 120;
/// How much of the window stands before the first mark.
const WINDOW_LEAD_BYTES: u32 = 40;

const CUT: &str = "...";

pub(super) struct Excerpt<'d> {
    text: String,
    first_line: u32,
    marks: Vec<ExcerptMark<'d>>,
    /// Where each of the marks is in `text`.
    ranges: Vec<Range<usize>>,
}

pub(super) struct ExcerptMark<'d> {
    pub(super) place: FileSpan,
    label: Option<Cow<'d, str>>,
    kind: AnnotationKind,
}

impl<'d> ExcerptMark<'d> {
    pub(super) fn primary(place: FileSpan) -> Self {
        Self { place, label: None, kind: AnnotationKind::Primary }
    }

    pub(super) fn related(label: &'d Label) -> Self {
        Self { place: label.place, label: Some(shortened(&label.message)), kind: AnnotationKind::Context }
    }

    fn annotation(&self, range: &Range<usize>) -> Annotation<'_> {
        self.kind.span(range.clone()).label(self.label.as_deref())
    }

    /// Whether one excerpt can show both; `index` is of the text that this mark is in.
    pub(super) fn is_near(&self, other: &Self, index: &LineIndex<'_>) -> bool {
        if self.place.file != other.place.file {
            return false;
        }
        let (a, b) = (self.place.span.start, other.place.span.start);
        let (line, other_line) = (index.position(a).line, index.position(b).line);
        let on_long_line = line == other_line && is_long(index.line(line));
        line.abs_diff(other_line) <= NEAR_LINES
            && !(on_long_line && a.abs_diff(b) > WINDOW_BYTES - WINDOW_LEAD_BYTES)
    }
}

impl<'d> Excerpt<'d> {
    /// `marks` are all in the file of `text` and near one another; there is at least one.
    pub(super) fn new(text: &str, index: &LineIndex<'_>, marks: Vec<ExcerptMark<'d>>) -> Self {
        let spans: Vec<Span> = marks.iter().map(|mark| shown_span(text, mark.place.span, index)).collect();
        let all = spans.iter().copied().reduce(Span::to).expect("an excerpt shows at least one mark");
        let (first_line, last_line) = (index.position(all.start).line, index.position(all.end).line);
        let mut excerpt = String::new();
        let mut lines = Vec::new();
        for number in first_line..=last_line {
            let source = index.line(number);
            let is_on = |span: &&Span| source.start <= span.start && span.start <= source.end;
            let first_mark = spans.iter().filter(is_on).map(|span| span.start).min();
            let shown = window(text, source, first_mark.unwrap_or(source.start));
            if number > first_line {
                excerpt.push('\n');
            }
            excerpt.push_str(if shown.start > source.start { CUT } else { "" });
            lines.push(ExcerptLine { source, shown, at: excerpt.len() });
            excerpt.push_str(&text[shown.range()]);
            excerpt.push_str(if shown.end < source.end { CUT } else { "" });
        }
        if excerpt.ends_with('\n') {
            // The renderer sees no empty line behind the last line break, and a mark may be there.
            excerpt.push(' ');
        }
        let ranges = spans.iter().map(|span| find(&lines, span.start)..find(&lines, span.end)).collect();
        Self { text: excerpt, first_line, marks, ranges }
    }

    /// The place that the header of the excerpt names.
    pub(super) fn place(&self) -> FileSpan {
        self.marks[0].place
    }

    pub(super) fn snippet(&self) -> Snippet<'_, Annotation<'_>> {
        Snippet::source(&self.text)
            .line_start(self.first_line as usize)
            .annotations(self.marks.iter().zip(&self.ranges).map(|(mark, range)| mark.annotation(range)))
    }
}

/// A line of the source and what of it is in the excerpt.
struct ExcerptLine {
    source: Span,
    shown: Span,
    /// Where the shown part begins in the excerpt.
    at: usize,
}

/// Where the byte `offset` of the source is in the excerpt, or the nearest that is shown.
fn find(lines: &[ExcerptLine], offset: u32) -> usize {
    let line = &lines[lines.partition_point(|line| line.source.start <= offset) - 1];
    line.at + (offset.clamp(line.shown.start, line.shown.end) - line.shown.start) as usize
}

/// The marked part of a span: no line break at its end, which would be drawn as one more line.
fn shown_span(text: &str, span: Span, index: &LineIndex<'_>) -> Span {
    let length = text[span.range()].trim_end_matches(['\r', '\n']).len();
    let end = span.start + length as u32;
    let first = index.position(span.start).line;
    if index.position(end).line - first < MAX_MARKED_LINES {
        return Span::new(span.start, end);
    }
    Span::new(span.start, index.line(first).end.max(span.start))
}

fn is_long(line: Span) -> bool {
    line.end - line.start > MAX_LINE_BYTES
}

/// The part of a line to show so that `mark` can be seen.
fn window(text: &str, line: Span, mark: u32) -> Span {
    if !is_long(line) {
        return line;
    }
    let start = mark.saturating_sub(WINDOW_LEAD_BYTES).clamp(line.start, line.end - WINDOW_BYTES);
    let boundary = |offset: u32| text.floor_char_boundary(offset as usize) as u32;
    Span::new(boundary(start).max(line.start), boundary(start + WINDOW_BYTES))
}
