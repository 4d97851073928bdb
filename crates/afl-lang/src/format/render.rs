//! Breaks lines: from a layout to text.

use super::layout::{Break, GroupExtent, INDENT, Op, UNFIT, WIDTH, columns};

#[derive(Debug, Default)]
pub(super) struct Renderer {
    out: String,
    indent: u32,
    column: u32,
    /// Nothing is on the line yet; its indentation is written with the first text.
    fresh: bool,
    modes: Vec<GroupMode>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GroupMode {
    Flat,
    Broken,
}

impl Renderer {
    pub(super) fn new(capacity: usize) -> Self {
        Self { out: String::with_capacity(capacity), fresh: true, ..Self::default() }
    }

    /// Appends the ops, in which every group that opens closes.
    pub(super) fn render(&mut self, ops: &[Op<'_>]) {
        for op in ops {
            match *op {
                Op::Text(text) => self.write(text),
                Op::Verbatim(text) => self.write_lines(text),
                Op::Comment(text) => self.write_comment(text),
                Op::Break(kind) => self.break_line(kind),
                Op::IfBroken(text) if self.mode() == GroupMode::Broken => self.write(text),
                Op::IfFlat(text) if self.mode() == GroupMode::Flat => self.write(text),
                Op::IfBroken(_) | Op::IfFlat(_) => {}
                Op::Indent => self.indent += INDENT,
                Op::Dedent => self.indent -= INDENT,
                Op::Open(extent) => {
                    let flat = self.mode() == GroupMode::Flat || self.fits(ops, extent);
                    self.modes.push(if flat { GroupMode::Flat } else { GroupMode::Broken });
                }
                Op::Close => {
                    self.modes.pop();
                }
            }
        }
        debug_assert!(self.modes.is_empty(), "a group is open");
    }

    pub(super) fn finish(mut self) -> String {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out
    }

    fn mode(&self) -> GroupMode {
        self.modes.last().copied().unwrap_or(GroupMode::Broken)
    }

    fn fits(&self, ops: &[Op<'_>], extent: GroupExtent) -> bool {
        if extent.width == UNFIT {
            return false;
        }
        let column = if self.fresh { self.indent } else { self.column };
        let Some(room) = WIDTH.checked_sub(column.saturating_add(extent.width)) else { return false };
        tail_fits(&ops[extent.end..], room)
    }

    fn write(&mut self, text: &str) {
        if self.fresh {
            self.fresh = false;
            self.column = self.indent;
            self.out.extend(std::iter::repeat_n(' ', self.indent as usize));
        }
        self.out.push_str(text);
        self.column += columns(text);
    }

    fn write_lines(&mut self, text: &str) {
        self.write(text);
        if let Some((_, last)) = text.rsplit_once('\n') {
            self.column = columns(last);
        }
    }

    fn write_comment(&mut self, text: &str) {
        let hugs_bracket = text.starts_with("/*") && self.out.ends_with(['(', '[']);
        if !self.fresh && !self.out.ends_with(' ') && !hugs_bracket {
            self.write(" ");
        }
        self.write(text);
    }

    fn break_line(&mut self, kind: Break) {
        match (kind, self.mode()) {
            (Break::Soft, GroupMode::Flat) => {}
            (Break::Space, GroupMode::Flat) => self.write(" "),
            (Break::Soft | Break::Space, GroupMode::Broken) | (Break::Hard, _) => self.end_line(),
            (Break::Blank, _) => {
                self.end_line();
                if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                    self.out.push('\n');
                }
            }
            (Break::Raw, _) => {
                self.end_line();
                self.fresh = false;
                self.column = 0;
            }
        }
    }

    fn end_line(&mut self) {
        if self.fresh {
            return;
        }
        let length = self.out.trim_end_matches(' ').len();
        self.out.truncate(length);
        self.out.push('\n');
        self.fresh = true;
    }
}

/// Whether the text before the next possible line end fits into the room. The caller has broken the
/// groups around it.
fn tail_fits(tail: &[Op<'_>], room: u32) -> bool {
    let mut width = 0;
    for op in tail {
        match *op {
            Op::Text(text) | Op::IfBroken(text) => width += columns(text),
            Op::Verbatim(text) => width += columns(text.split('\n').next().unwrap_or_default()),
            Op::IfFlat(_) | Op::Indent | Op::Dedent | Op::Open(_) | Op::Close => continue,
            Op::Comment(_) | Op::Break(_) => return width <= room,
        }
        if width > room {
            return false;
        }
        if matches!(op, Op::Verbatim(_)) {
            return true;
        }
    }
    true
}
