//! Reads a value of an indexed JSON text; errors have the path to it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::{Index, WireValue};
use crate::source::FileId;

#[derive(Clone, Copy)]
pub(crate) struct Json<'j> {
    index: &'j Index<'j>,
    slot: u32,
}

impl<'j> Json<'j> {
    pub(super) fn new(index: &'j Index<'j>, slot: u32) -> Self {
        Self { index, slot }
    }

    pub(crate) fn text(self) -> Result<Cow<'j, str>, WireError> {
        if self.first_byte() != b'"' {
            return Err(self.expected("a string"));
        }
        let quoted = self.index.scalar(self.slot);
        if !quoted.contains('\\') {
            return Ok(Cow::Borrowed(&quoted[1..quoted.len() - 1]));
        }
        match serde_json::from_str(quoted) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(_) => Err(WireError::new(format!("{quoted} has an escape that is half a character"))),
        }
    }

    /// A number or a boolean; `what` says which, for the error.
    pub(crate) fn scalar<T: Deserialize<'j>>(self, what: &'static str) -> Result<T, WireError> {
        match self.first_byte() {
            b'{' | b'[' => Err(self.expected(what)),
            _ => serde_json::from_str(self.index.scalar(self.slot)).map_err(|_| self.expected(what)),
        }
    }

    pub(crate) fn list<T>(
        self,
        mut read: impl FnMut(Json<'j>) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        if self.first_byte() != b'[' {
            return Err(self.expected("a list"));
        }
        let mut items = Vec::new();
        let mut slot = self.slot + 1;
        while slot < self.index.behind(self.slot) {
            match read(Self { slot, ..self }) {
                Ok(item) => items.push(item),
                Err(error) => return Err(error.inside(PathSegment::Item(items.len()))),
            }
            slot = self.index.behind(slot);
        }
        Ok(items)
    }

    pub(crate) fn object(self) -> Result<ObjectReader<'j>, WireError> {
        match self.first_byte() {
            b'{' => Ok(ObjectReader {
                object: self,
                next: KeyEntry { slot: self.slot + 1, ordinal: 0 },
                taken: 0,
            }),
            _ => Err(self.expected("an object")),
        }
    }

    /// The `type` of the node.
    pub(crate) fn tag(self) -> Result<Cow<'j, str>, WireError> {
        self.object()?.value("type")?.text().map_err(|error| error.inside(PathSegment::Key("type")))
    }

    /// The source text that this string names.
    pub(super) fn source(self) -> Result<FileId, WireError> {
        let id = self.text()?;
        match self.index.sources.iter().position(|source| *source == id) {
            Some(at) => Ok(FileId(at as u32)),
            None => Err(WireError::new(format!("`{id}` is not among the sources of `provenance`"))),
        }
    }

    fn first_byte(self) -> u8 {
        self.index.first_byte(self.slot)
    }

    fn expected(self, what: &str) -> WireError {
        let found = match self.first_byte() {
            b'{' => "an object",
            b'[' => "a list",
            _ => self.index.scalar(self.slot),
        };
        WireError::new(format!("expected {what}, found {found}"))
    }
}

/// The keys of one object; each is to be taken once.
pub(crate) struct ObjectReader<'j> {
    object: Json<'j>,
    /// The entry behind the one taken last.
    next: KeyEntry,
    /// A bit for each entry taken; no node has as many keys as there are bits.
    taken: u64,
}

/// A key by its slot and its place among the keys; the value's slot is the next.
#[derive(Clone, Copy)]
struct KeyEntry {
    slot: u32,
    ordinal: u32,
}

impl<'j> ObjectReader<'j> {
    /// Checks the node's `type`.
    pub(crate) fn tag(&mut self, expected: &str) -> Result<(), WireError> {
        let found = self.value("type")?;
        match found.text() {
            Ok(tag) if tag == expected => Ok(()),
            _ => Err(found.expected(&format!("\"{expected}\"")).inside(PathSegment::Key("type"))),
        }
    }

    pub(crate) fn take<T: WireValue>(&mut self, key: &'static str) -> Result<T, WireError> {
        match self.find(key) {
            Some(value) => T::read(value).map_err(|error| error.inside(PathSegment::Key(key))),
            None => T::when_absent().ok_or_else(|| WireError::missing(key)),
        }
    }

    /// Like [`take`](Self::take), for a required key whose value is read in a special way.
    pub(crate) fn take_with<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Json<'j>) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        read(self.value(key)?).map_err(|error| error.inside(PathSegment::Key(key)))
    }

    /// A list that is left out when it is empty.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(Json<'j>) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        match self.find(key) {
            Some(list) => list.list(read).map_err(|error| error.inside(PathSegment::Key(key))),
            None => Ok(Vec::new()),
        }
    }

    fn value(&mut self, key: &'static str) -> Result<Json<'j>, WireError> {
        self.find(key).ok_or_else(|| WireError::missing(key))
    }

    pub(crate) fn find(&mut self, key: &str) -> Option<Json<'j>> {
        // Nodes take their keys in the order they are written, so the next one is nearly always it.
        let is_next = self.is_inside(self.next) && self.key(self.next) == key;
        let found = if is_next { self.next } else { self.entries().find(|entry| self.key(*entry) == key)? };
        self.taken |= 1_u64.checked_shl(found.ordinal).unwrap_or(0);
        self.next = self.behind(found);
        Some(Json { slot: found.slot + 1, ..self.object })
    }

    /// Refuses unknown keys: those that no field took.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        let is_taken = |entry: KeyEntry| self.taken & 1_u64.checked_shl(entry.ordinal).unwrap_or(0) != 0;
        match self.entries().find(|entry| !is_taken(*entry)) {
            None => Ok(()),
            Some(left) => {
                let key = self.key(left);
                let is_repeated = self.entries().any(|entry| is_taken(entry) && self.key(entry) == key);
                let what = if is_repeated { "repeated" } else { "unknown" };
                Err(WireError::new(format!("{what} key `{key}`")))
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = KeyEntry> {
        let inside = |entry: KeyEntry| self.is_inside(entry).then_some(entry);
        let first = KeyEntry { slot: self.object.slot + 1, ordinal: 0 };
        std::iter::successors(inside(first), move |entry| inside(self.behind(*entry)))
    }

    fn is_inside(&self, entry: KeyEntry) -> bool {
        entry.slot < self.object.index.behind(self.object.slot)
    }

    fn behind(&self, entry: KeyEntry) -> KeyEntry {
        KeyEntry { slot: self.object.index.behind(entry.slot + 1), ordinal: entry.ordinal + 1 }
    }

    fn key(&self, entry: KeyEntry) -> Cow<'j, str> {
        let key = Json { slot: entry.slot, ..self.object };
        key.text().unwrap_or_else(|_| Cow::Borrowed(key.index.scalar(key.slot)))
    }
}

/// A node that is not as the format says, with the way to it.
///
/// Boxed, so that reading deep nodes takes little stack.
#[derive(Debug)]
pub(crate) struct WireError(Box<(Vec<PathSegment>, String)>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum PathSegment {
    Key(&'static str),
    Item(usize),
}

impl WireError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(Box::new((Vec::new(), problem.into())))
    }

    fn missing(key: &str) -> Self {
        Self::new(format!("the key `{key}` is missing"))
    }

    pub(crate) fn inside(mut self, segment: PathSegment) -> Self {
        self.0.0.push(segment);
        self
    }

    pub(crate) fn into_parts(self) -> (String, String) {
        let (segments, problem) = *self.0;
        (JsonPath(segments).to_string(), problem)
    }
}

/// Written `declarations[2].body[0].steps`; the innermost segment is the first.
struct JsonPath(Vec<PathSegment>);

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().rev().enumerate() {
            match segment {
                PathSegment::Key(key) if at == 0 => f.write_str(key)?,
                PathSegment::Key(key) => write!(f, ".{key}")?,
                PathSegment::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}
