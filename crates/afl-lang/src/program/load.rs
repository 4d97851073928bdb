//! Reads a program back from JSON, and refuses what no compiler has written.

use std::str::Utf8Error;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::wire::{Index, WireError, document};
use super::{FORMAT_VERSION, Program, ProgramHash, Referent, validate};
use crate::limits::{MAX_PROGRAM_BYTES, MAX_PROGRAM_NESTING};
use crate::source::{LineColumn, LineIndex};

/// Reads a compiled program.
///
/// The order of keys does not matter. A key that the format does not have is refused, except under
/// `provenance`; the keys that sort declarations by category repeat what `declarations` says and are
/// passed over.
pub fn load(json: &[u8]) -> Result<Program, LoadError> {
    if json.len() > MAX_PROGRAM_BYTES {
        return Err(LoadError::TooLarge { bytes: json.len() });
    }
    let json = std::str::from_utf8(json).map_err(|error| not_text(json, error))?;
    // This is what makes it safe to index the text without looking at its grammar again.
    serde_json::from_str::<IgnoredAny>(json).map_err(|error| not_json(&error))?;
    let mut index = Index::new(json, MAX_PROGRAM_NESTING).map_err(|too_deep| {
        let LineColumn { line, column } = LineIndex::new(json).position(too_deep.0 as u32);
        LoadError::TooDeep { line, column }
    })?;
    let found = document::read_version(index.root())?;
    if found != FORMAT_VERSION {
        return Err(LoadError::UnknownVersion { found });
    }
    let sources = document::read_sources(index.root())?;
    index.sources.clone_from(&sources);
    let (recorded, program) = document::read(index.root(), sources)?;
    let computed = program.hash();
    if recorded != computed {
        return Err(LoadError::HashMismatch { recorded, computed });
    }
    validate::check(&program)?;
    Ok(program)
}

/// Why a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the program has {bytes} bytes, and {MAX_PROGRAM_BYTES} is the limit: compile it in parts")]
    TooLarge { bytes: usize },
    #[error("the program is not JSON: {problem} at line {line}, column {column}")]
    NotJson { line: u32, column: u32, problem: String },
    #[error(
        "the program nests deeper than {MAX_PROGRAM_NESTING} levels at line {line}, column {column}: \
         no compiled program does"
    )]
    TooDeep { line: u32, column: u32 },
    #[error(
        "the program has format version {found}, and this compiler reads version {FORMAT_VERSION}: \
         compile the source again with this compiler, or use the one it was compiled with"
    )]
    UnknownVersion { found: u32 },
    #[error("the program is not in the compiled format: {problem}{}", suffix(path))]
    Malformed { path: String, problem: String },
    #[error(
        "the program was changed after it was compiled (its hash is {computed}, not {recorded}): \
         change the source and compile it again"
    )]
    HashMismatch { recorded: ProgramHash, computed: ProgramHash },
    #[error("`{at}` refers to the {referent} `{name}`, which is not there: compile it again")]
    Dangling { at: String, referent: Referent, name: String },
    #[error("`{at}` does not hold together: {problem}: compile it again")]
    Inconsistent { at: String, problem: String },
}

/// The path in the document, where there is one.
fn suffix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at `{path}`") }
}

impl From<WireError> for LoadError {
    fn from(error: WireError) -> Self {
        let (path, problem) = error.into_parts();
        Self::Malformed { path, problem }
    }
}

fn not_text(json: &[u8], error: Utf8Error) -> LoadError {
    let valid = String::from_utf8_lossy(&json[..error.valid_up_to()]);
    let LineColumn { line, column } = LineIndex::new(&valid).position(valid.len() as u32);
    LoadError::NotJson { line, column, problem: "a byte that is not UTF-8".into() }
}

fn not_json(error: &serde_json::Error) -> LoadError {
    let text = error.to_string();
    let problem = text.rsplit_once(" at line ").map_or(&*text, |(problem, _)| problem).into();
    LoadError::NotJson { line: error.line() as u32, column: error.column() as u32, problem }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        load(json.get().as_bytes()).map_err(D::Error::custom)
    }
}
