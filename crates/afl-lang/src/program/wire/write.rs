//! Writes JSON text: pretty or compact, and without the parts that are not wanted.

use std::ops::Range;

use serde::Serialize;

use super::Wire;

/// How the text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
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

/// Whether declarations keep their doc comments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Docs {
    Keep,
    Strip,
}

/// Whether declarations are repeated by category.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Categories {
    Keep,
    Strip,
}

/// What is written, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'p> {
    pub(crate) layout: Layout,
    pub(crate) locations: Locations,
    pub(crate) docs: Docs,
    pub(crate) categories: Categories,
    /// The names behind `sourceId`; empty where provenance is not wanted.
    pub(crate) sources: &'p [String],
}

/// Text in pieces. A declaration appears up to four times in a document, but its bytes only once.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    order: Vec<Range<usize>>,
}

impl Pieces {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.order.iter().map(|piece| &self.bytes[piece.clone()])
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.iter().collect::<Vec<_>>().concat()
    }
}

pub(crate) struct Writer<'p> {
    pub(crate) form: Form<'p>,
    bytes: Vec<u8>,
    /// The pieces so far; what was written behind the last is not yet one.
    order: Vec<Range<usize>>,
    uncut: usize,
    depth: usize,
    /// Whether the innermost open list or object is still empty.
    place: Place,
}

/// Which pieces something recorded takes.
pub(super) struct Extent(Range<usize>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

impl<'p> Writer<'p> {
    pub(crate) fn new(form: Form<'p>) -> Self {
        Self { form, bytes: Vec::new(), order: Vec::new(), uncut: 0, depth: 0, place: Place::First }
    }

    pub(crate) fn finish(mut self) -> Pieces {
        self.cut();
        Pieces { bytes: self.bytes, order: self.order }
    }

    /// Writes something that is to be [repeated](Self::repeat).
    pub(super) fn record(&mut self, write: impl FnOnce(&mut Self)) -> Extent {
        self.cut();
        let first = self.order.len();
        write(self);
        self.cut();
        Extent(first..self.order.len())
    }

    /// Writes what was recorded again; at the same depth, or its lines would not stand right.
    pub(super) fn repeat(&mut self, extent: &Extent) {
        self.cut();
        self.order.extend_from_within(extent.0.clone());
    }

    fn cut(&mut self) {
        if self.uncut < self.bytes.len() {
            self.order.push(self.uncut..self.bytes.len());
            self.uncut = self.bytes.len();
        }
    }

    pub(super) fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.open(b'{');
        fields(self);
        self.close(b'}');
    }

    pub(super) fn tag(&mut self, name: &str) {
        self.key("type");
        self.scalar(name);
    }

    pub(super) fn field<T: Wire>(&mut self, key: &str, value: &T) {
        if !value.is_absent(&self.form) {
            self.key(key);
            value.write(self);
        }
    }

    /// A doc comment; the canonical form has none.
    pub(super) fn doc(&mut self, doc: Option<&String>) {
        if let (Some(doc), Docs::Keep) = (doc, self.form.docs) {
            self.field("doc", doc);
        }
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

    pub(super) fn key(&mut self, key: &str) {
        self.separate();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(match self.form.layout {
            Layout::Pretty => b"\": ",
            Layout::Compact => b"\":",
        });
    }

    pub(super) fn scalar<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.bytes, value).expect("memory takes every scalar");
    }

    fn open(&mut self, bracket: u8) {
        self.bytes.push(bracket);
        self.depth += 1;
        self.place = Place::First;
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if self.place == Place::Later {
            self.break_line();
        }
        self.bytes.push(bracket);
        self.place = Place::Later;
    }

    /// Stands before every element and key.
    fn separate(&mut self) {
        if self.place == Place::Later {
            self.bytes.push(b',');
        }
        self.place = Place::Later;
        self.break_line();
    }

    fn break_line(&mut self) {
        if self.form.layout == Layout::Pretty {
            self.bytes.push(b'\n');
            self.bytes.resize(self.bytes.len() + 2 * self.depth, b' ');
        }
    }
}
