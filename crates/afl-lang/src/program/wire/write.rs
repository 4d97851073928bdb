//! Writes JSON text: pretty or compact, and without the parts that are not wanted.

use std::ops::Range;

use serde::Serialize;

/// How the text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonLayout {
    /// A line for each value, two blanks for each level.
    Pretty,
    Compact,
}

/// Whether nodes say where they stand in their source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locations {
    Keep,
    Strip,
}

/// The use of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WirePurpose {
    /// A document for readers: doc comments stay, and declarations are repeated by category.
    Document,
    /// The form that is hashed, without either.
    Canonical,
}

/// The parts that are written, and their layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireForm<'p> {
    pub(crate) layout: JsonLayout,
    pub(crate) locations: Locations,
    pub(crate) purpose: WirePurpose,
    /// The names behind `sourceId`; empty where provenance is not wanted.
    pub(crate) sources: &'p [String],
}

impl WireForm<'_> {
    /// Whether no node is written with this key.
    #[inline]
    pub(super) fn leaves_out(&self, key: &'static str) -> bool {
        match key {
            "location" => self.locations == Locations::Strip,
            "doc" => self.purpose == WirePurpose::Canonical,
            "sourceId" => self.sources.is_empty(),
            _ => false,
        }
    }
}

/// Where text goes, piece by piece.
pub(crate) trait ByteSink {
    fn take(&mut self, piece: &[u8]);

    /// How many pieces there are.
    fn count(&self) -> usize;

    /// Takes earlier pieces again.
    fn repeat(&mut self, pieces: Range<usize>);
}

/// Text in pieces. A declaration appears up to four times in a document, but its bytes only once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    texts: Vec<Box<[u8]>>,
    /// Which of the texts follow one another.
    order: Vec<u32>,
}

impl Pieces {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.order.iter().map(|piece| &*self.texts[*piece as usize])
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.iter().collect::<Vec<_>>().concat()
    }
}

impl ByteSink for Pieces {
    fn take(&mut self, piece: &[u8]) {
        self.order.push(self.texts.len() as u32);
        self.texts.push(piece.into());
    }

    fn count(&self) -> usize {
        self.order.len()
    }

    fn repeat(&mut self, pieces: Range<usize>) {
        self.order.extend_from_within(pieces);
    }
}

pub(crate) struct JsonWriter<'p> {
    pub(crate) form: WireForm<'p>,
    sink: &'p mut dyn ByteSink,
    /// The bytes behind the last piece: a declaration at most, so that they stay in the processor's cache.
    bytes: Vec<u8>,
    depth: usize,
    /// Whether the innermost open list or object is still empty.
    place: ListPosition,
}

/// Which pieces something recorded takes.
pub(super) struct PieceRange(Range<usize>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListPosition {
    First,
    Later,
}

impl<'p> JsonWriter<'p> {
    pub(crate) fn new(form: WireForm<'p>, sink: &'p mut dyn ByteSink) -> Self {
        Self { form, sink, bytes: Vec::new(), depth: 0, place: ListPosition::First }
    }

    /// Hands the text so far to the sink.
    pub(crate) fn flush(&mut self) {
        if !self.bytes.is_empty() {
            self.sink.take(&self.bytes);
            self.bytes.clear();
        }
    }

    /// Writes something that is to be [repeated](Self::repeat).
    pub(super) fn record(&mut self, write: impl FnOnce(&mut Self)) -> PieceRange {
        self.flush();
        let first = self.sink.count();
        write(self);
        self.flush();
        PieceRange(first..self.sink.count())
    }

    /// Writes a recorded range again, at the same depth: the range includes its indentation.
    pub(super) fn repeat(&mut self, extent: &PieceRange) {
        self.flush();
        self.sink.repeat(extent.0.clone());
    }

    pub(super) fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.open(b'{');
        fields(self);
        self.close(b'}');
    }

    #[inline]
    pub(super) fn tag(&mut self, name: &str) {
        self.key("type");
        self.text(name);
    }

    /// Writes a list and gives what writing each item gave.
    pub(super) fn list<T, R>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T) -> R) -> Vec<R> {
        self.open(b'[');
        let write_item = |item| {
            self.separate();
            write(self, item)
        };
        let written = items.iter().map(write_item).collect();
        self.close(b']');
        written
    }

    #[inline]
    pub(super) fn key(&mut self, key: &str) {
        self.separate();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(match self.form.layout {
            JsonLayout::Pretty => b"\": ",
            JsonLayout::Compact => b"\":",
        });
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        let needs_escape = |byte: &u8| matches!(byte, 0..=0x1f | b'"' | b'\\');
        // Counting has no early exit, so it takes many bytes at a time.
        if text.as_bytes().iter().filter(|byte| needs_escape(byte)).count() == 0 {
            self.bytes.push(b'"');
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.push(b'"');
        } else {
            self.scalar(text);
        }
    }

    pub(super) fn scalar<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.bytes, value).expect("memory takes every scalar");
    }

    #[inline]
    fn open(&mut self, bracket: u8) {
        self.bytes.push(bracket);
        self.depth += 1;
        self.place = ListPosition::First;
    }

    #[inline]
    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if self.place == ListPosition::Later {
            self.break_line();
        }
        self.bytes.push(bracket);
        self.place = ListPosition::Later;
    }

    /// Stands before every element and key.
    #[inline]
    fn separate(&mut self) {
        if self.place == ListPosition::Later {
            self.bytes.push(b',');
        }
        self.place = ListPosition::Later;
        self.break_line();
    }

    fn break_line(&mut self) {
        if self.form.layout == JsonLayout::Pretty {
            self.bytes.push(b'\n');
            self.bytes.resize(self.bytes.len() + 2 * self.depth, b' ');
        }
    }
}
