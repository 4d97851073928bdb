//! Writes a program as JSON: the same program gives the same bytes.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::Program;
use super::wire::{ByteSink, JsonLayout, JsonWriter, Locations, Pieces, WireForm, WirePurpose, document};

/// How a program is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emit {
    pub layout: JsonLayout,
    pub locations: Locations,
    pub provenance: Provenance,
}

/// Whether the document says which source text each declaration is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provenance {
    Include,
    Omit,
}

impl Emit {
    /// Everything the program knows, in the fewest bytes.
    pub const WHOLE: Self =
        Self { layout: JsonLayout::Compact, locations: Locations::Keep, provenance: Provenance::Include };
}

impl Program {
    pub fn emit(&self, how: Emit) -> Document {
        let sources = match how.provenance {
            Provenance::Include => self.sources.as_slice(),
            Provenance::Omit => &[],
        };
        let Emit { layout, locations, .. } = how;
        let form = WireForm { layout, locations, purpose: WirePurpose::Document, sources };
        let mut pieces = Pieces::default();
        document::write(self, Some(&self.hash()), JsonWriter::new(form, &mut pieces));
        Document(pieces)
    }

    /// The form that the [hash](Program::hash) is taken of: compact, each declaration once, without
    /// locations, provenance and doc comments, none of which change the behaviour.
    pub fn canonical(&self) -> Vec<u8> {
        let mut pieces = Pieces::default();
        self.write_canonical(&mut pieces);
        pieces.to_vec()
    }

    pub(super) fn write_canonical(&self, sink: &mut dyn ByteSink) {
        let form = WireForm {
            layout: JsonLayout::Compact,
            locations: Locations::Strip,
            purpose: WirePurpose::Canonical,
            sources: &[],
        };
        document::write(self, None, JsonWriter::new(form, sink));
    }
}

/// The JSON text of a program, held in about a quarter of its length.
#[derive(Clone, Debug)]
pub struct Document(Pieces);

impl Document {
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.0.iter().try_for_each(|piece| out.write_all(piece))
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// As a JSON document inside another; only `serde_json` can take it.
impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = String::from_utf8(self.emit(Emit::WHOLE).to_vec()).expect("JSON is UTF-8");
        RawValue::from_string(text).expect("a document is JSON").serialize(serializer)
    }
}
