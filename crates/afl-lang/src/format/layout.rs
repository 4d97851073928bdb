//! The text to print before lines are broken: words, places where a line may end, and groups.
//!
//! A group is printed on one line if it fits there, otherwise all its own breaks become line ends. Every
//! group is measured once, while it is written down, so that laying out takes linear time.

use super::render::Renderer;

/// Columns of a line; only a text that cannot be broken reaches beyond.
pub(super) const WIDTH: u32 = 100;

/// Columns of one level of indentation.
pub(super) const INDENT: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) enum Op<'t> {
    Text(&'t str),
    /// A literal or a script that spans lines, printed as it is.
    Verbatim(&'t str),
    /// The first line of a comment. It does not count for the text before it on the line.
    Comment(&'t str),
    Break(Break),
    IfBroken(&'static str),
    IfFlat(&'static str),
    Indent,
    Dedent,
    Open(GroupExtent),
    Close,
}

/// Where a line ends, or may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Break {
    /// Nothing if its group is flat.
    Soft,
    /// A blank if its group is flat.
    Space,
    /// Ends the line always.
    Hard,
    /// Ends the line and leaves one line empty.
    Blank,
    /// Ends the line and does not indent the next.
    Raw,
}

/// How much a group takes on one line; the text behind op number `end` up to the next possible
/// break must fit there too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupExtent {
    pub width: u32,
    pub end: usize,
}

/// The width of a group that cannot stand on one line.
pub(super) const UNFIT: u32 = u32::MAX;

/// A position in the layout; the difference of two measures the text between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutMark {
    at: usize,
    width: u32,
    line_ends: u32,
}

/// The break that a comment needs before the next text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum PendingBreak {
    #[default]
    Nothing,
    Blank,
    LineEnd,
}

#[derive(Debug, Default)]
pub(super) struct FormatLayout<'t> {
    ops: Vec<Op<'t>>,
    width: u32,
    line_ends: u32,
    indent: u32,
    owed: PendingBreak,
    renderer: Renderer,
}

impl<'t> FormatLayout<'t> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { renderer: Renderer::new(capacity), ..Self::default() }
    }

    /// Breaks the lines of everything written so far. No group may be open.
    pub(super) fn render(&mut self) {
        self.renderer.render(&self.ops);
        self.ops.clear();
    }

    pub(super) fn finish(mut self) -> String {
        self.render();
        self.renderer.finish()
    }

    pub(super) fn text(&mut self, text: &'t str) {
        let text = self.settle(text);
        self.width += columns(text);
        self.ops.push(Op::Text(text));
    }

    /// A text that may span lines; if it does, no group around it is flat.
    pub(super) fn verbatim(&mut self, text: &'t str) {
        if !text.contains('\n') {
            return self.text(text);
        }
        let text = self.settle(text);
        self.line_ends += 1;
        self.ops.push(Op::Verbatim(text));
    }

    /// Writes the pending break before a text; behind a line end the text loses its leading blanks.
    fn settle(&mut self, text: &'t str) -> &'t str {
        match std::mem::take(&mut self.owed) {
            PendingBreak::Nothing => text,
            PendingBreak::Blank if text.starts_with([' ', ')', ']', '}', ',', '.', ':', '?']) => text,
            PendingBreak::Blank => {
                self.width += 1;
                self.ops.push(Op::Text(" "));
                text
            }
            PendingBreak::LineEnd => {
                self.break_line(Break::Hard);
                text.trim_start()
            }
        }
    }

    /// A comment on one line, or the first line of one.
    pub(super) fn comment(&mut self, text: &'t str) {
        if self.owed == PendingBreak::LineEnd {
            self.break_line(Break::Hard);
        }
        self.width += columns(text) + 1;
        self.ops.push(Op::Comment(text));
        self.owed = PendingBreak::Blank;
    }

    /// A further line of the comment just written.
    pub(super) fn comment_line(&mut self, line_end: Break, margin: &'static str, text: &'t str) {
        self.break_line(line_end);
        if !text.is_empty() {
            self.ops.extend([Op::Text(margin), Op::Text(text)]);
        }
        self.owed = PendingBreak::Blank;
    }

    /// Whatever comes next begins a line.
    pub(super) fn end_line(&mut self) {
        self.owed = PendingBreak::LineEnd;
    }

    pub(super) fn break_line(&mut self, kind: Break) {
        let owed = std::mem::take(&mut self.owed);
        let kind = match kind {
            Break::Soft | Break::Space if owed == PendingBreak::LineEnd => Break::Hard,
            Break::Soft | Break::Space | Break::Hard | Break::Blank | Break::Raw => kind,
        };
        match kind {
            Break::Soft => {}
            Break::Space => self.width += 1,
            Break::Hard | Break::Blank | Break::Raw => self.line_ends += 1,
        }
        self.ops.push(Op::Break(kind));
    }

    pub(super) fn if_broken(&mut self, text: &'static str) {
        self.ops.push(Op::IfBroken(text));
    }

    pub(super) fn if_flat(&mut self, text: &'static str) {
        self.width += columns(text);
        self.ops.push(Op::IfFlat(text));
    }

    pub(super) fn indent(&mut self) {
        self.indent += INDENT;
        self.ops.push(Op::Indent);
    }

    pub(super) fn dedent(&mut self) {
        self.indent -= INDENT;
        self.ops.push(Op::Dedent);
    }

    pub(super) fn open(&mut self) -> LayoutMark {
        if self.owed == PendingBreak::LineEnd {
            self.break_line(Break::Hard);
        }
        let mark = self.mark();
        self.ops.push(Op::Open(GroupExtent { width: UNFIT, end: mark.at }));
        mark
    }

    pub(super) fn close(&mut self, group: LayoutMark) {
        self.ops.push(Op::Close);
        self.stretch(group);
    }

    /// Makes a closed group flat only if the text behind it fits on its line as well.
    pub(super) fn stretch(&mut self, group: LayoutMark) {
        let extent = GroupExtent { width: self.width_since(group), end: self.ops.len() };
        self.ops[group.at] = Op::Open(extent);
    }

    pub(super) fn mark(&self) -> LayoutMark {
        LayoutMark { at: self.ops.len(), width: self.width, line_ends: self.line_ends }
    }

    /// The columns that everything since the mark takes on one line, or [`UNFIT`].
    pub(super) fn width_since(&self, mark: LayoutMark) -> u32 {
        if self.line_ends == mark.line_ends { self.width - mark.width } else { UNFIT }
    }

    /// Whether something of this width fits on a line of its own, indented as the next one.
    pub(super) fn fits_a_line(&self, width: u32) -> bool {
        width.saturating_add(self.indent) <= WIDTH
    }

    /// Turns the line end at the mark into one with an empty line behind it.
    pub(super) fn leave_blank(&mut self, line_end: LayoutMark) {
        debug_assert!(matches!(self.ops[line_end.at], Op::Break(Break::Hard | Break::Blank)));
        self.ops[line_end.at] = Op::Break(Break::Blank);
    }
}

pub(super) fn columns(text: &str) -> u32 {
    text.chars().count() as u32
}
