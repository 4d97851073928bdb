//! The JSON form of a whole program.

use serde_json::{Value, json};

use super::decl::{declarations_schema, write_declarations};
use super::json::PathSegment;
use super::{Definitions, Field, Json, JsonWriter, WireError, WireValue};
use crate::program::{Decl, FORMAT_VERSION, Program, ProgramHash};

/// The compiler that made the document; it depends on nothing but the version.
const COMPILER: &str = concat!("afl ", env!("CARGO_PKG_VERSION"));

/// `hash` is `None` in the canonical form, which the hash is taken of.
pub(crate) fn write(program: &Program, hash: Option<&ProgramHash>, mut out: JsonWriter<'_>) {
    out.object(|out| {
        out.tag("Program");
        FORMAT_VERSION.write_field("formatVersion", out);
        if let Some(hash) = hash {
            out.key("hash");
            out.text(&hash.to_string());
        }
        write_declarations(&program.declarations, out);
        if !out.form.sources.is_empty() {
            write_provenance(out.form.sources, out);
        }
    });
    out.flush();
}

fn write_provenance(sources: &[String], out: &mut JsonWriter<'_>) {
    out.key("provenance");
    out.object(|out| {
        out.key("compiler");
        out.text(COMPILER);
        out.key("sources");
        out.list(sources, |out, source| out.object(|out| source.write_field("id", out)));
    });
}

/// The version that a document says it has.
pub(crate) fn read_version(json: Json<'_>) -> Result<u32, WireError> {
    let mut fields = json.object()?;
    fields.tag("Program")?;
    fields.take("formatVersion")
}

/// The names of the source texts; none without provenance. Keys that are not known here are fine.
pub(crate) fn read_sources(json: Json<'_>) -> Result<Vec<String>, WireError> {
    match json.object()?.find("provenance") {
        Some(provenance) => {
            let sources = provenance.object()?.list("sources", |source| source.object()?.take("id"));
            sources.map_err(|error| error.inside(PathSegment::Key("provenance")))
        }
        None => Ok(Vec::new()),
    }
}

/// The hash that a document says it has, and its program.
pub(crate) fn read(json: Json<'_>, sources: Vec<String>) -> Result<(ProgramHash, Program), WireError> {
    let mut fields = json.object()?;
    fields.tag("Program")?;
    fields.take::<u32>("formatVersion")?;
    let hash = fields.take_with("hash", |hash| {
        let text = hash.text()?;
        text.parse().map_err(|_| WireError::new(format!("`{text}` is not `sha256:` and 64 hex digits")))
    })?;
    let declarations = fields.take_with("declarations", |list| list.list(Decl::read))?;
    fields.find("provenance");
    fields.finish()?;
    Ok((hash, Program { declarations, sources }))
}

/// The schema (draft 2020-12) that every [emitted](Program::emit) document follows.
pub fn json_schema() -> Value {
    let mut types = Definitions::default();
    let program = types.object("Program", |shape| {
        shape.tag("Program");
        shape.required("formatVersion", json!({"const": FORMAT_VERSION}));
        shape.required("hash", json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}));
        declarations_schema(shape);
        shape.optional("provenance", provenance_schema());
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Compiled AFL program",
        "$ref": program["$ref"],
        "$defs": types.into_value(),
    })
}

fn provenance_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "compiler": {"type": "string"},
            "sources": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}},
                    "required": ["id"],
                },
            },
        },
    })
}
