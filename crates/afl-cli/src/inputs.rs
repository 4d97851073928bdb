//! The inputs of a run, from what a person types.

use std::collections::HashSet;
use std::num::IntErrorKind;
use std::path::{Path, PathBuf};

use afl_engine::evaluation::InputProblem;
use afl_engine::value::{JsonError, Map, Value};
use afl_lang::program::Parameter;
use afl_lang::types::TypeRef;
use clap::Args;

use crate::failure::{Failure, FileRole};
use crate::input::{Input, STANDARD};
use crate::json_text;
use crate::launch::pair;
use crate::shown::cut;

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub(crate) struct Options {
    /// An input of the workflow, read by its declared type: text as it is, lists, maps and `Json` as JSON; `@FILE` reads
    /// a file, `@@` begins a text with `@`; can be repeated
    #[arg(short = 'i', long = "input", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// A file with a JSON object of inputs, or `-` for standard input; `--input` wins over it
    #[arg(long = "inputs", value_name = "FILE|-")]
    file: Option<PathBuf>,
}

/// The inputs of a command line, and those that cannot be read.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct InputValues {
    pub(crate) values: Map<String, Value>,
    pub(crate) problems: Vec<BadInput>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadInput {
    name: String,
    text: String,
}

impl Options {
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.file.is_none()
    }

    pub(crate) fn reads_stdin(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.as_os_str() == STANDARD)
    }

    pub(crate) fn read(&self, declared: &[Parameter]) -> Result<InputValues, Failure> {
        let mut given = InputValues::default();
        if let Some(file) = &self.file {
            given = object(file)?;
        }
        let mut names = HashSet::new();
        for given_pair in &self.pairs {
            let (name, text) = pair(given_pair)?;
            let ty = declared.iter().find(|parameter| parameter.name == name).map(|parameter| &parameter.ty);
            if !names.insert(name) {
                given.problems.push(BadInput::twice(name));
                continue;
            }
            match value(name, text, ty)? {
                Ok(value) => {
                    given.values.insert(name.to_owned(), value);
                }
                Err(problem) => {
                    let ty = ty.unwrap_or(&TypeRef::String);
                    let text = format!("the input `{name}: {ty}` {problem}");
                    given.values.remove(name);
                    given.problems.push(BadInput { name: name.to_owned(), text });
                }
            }
        }
        Ok(given)
    }
}

impl BadInput {
    fn twice(name: &str) -> Self {
        Self { name: name.to_owned(), text: format!("the input `{name}` is given twice") }
    }
}

impl InputValues {
    /// Every problem once: an unreadable input is not missing too.
    pub(crate) fn all_problems(&self, refused: &[InputProblem]) -> Vec<String> {
        let is_told = |problem: &InputProblem| match problem {
            InputProblem::Missing { name, .. } => self.problems.iter().any(|told| told.name == *name),
            InputProblem::NoWorkflow(_)
            | InputProblem::Unknown { .. }
            | InputProblem::Misfit(_)
            | InputProblem::Default { .. }
            | InputProblem::Oversize(_) => false,
        };
        let own = self.problems.iter().map(|problem| problem.text.clone());
        let refused = refused.iter().filter(|problem| !is_told(problem)).map(ToString::to_string);
        own.chain(refused).collect()
    }
}

fn object(file: &Path) -> Result<InputValues, Failure> {
    let input = if file.as_os_str() == STANDARD { Input::Stdin } else { Input::File(file.to_owned()) };
    let wrong = |reason: String| Failure::BadInputs { name: input.name(), reason };
    let text = input.read()?;
    let values = json_text::parse_object(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(InputValues { values, problems: Vec::new() })
}

/// The value that a text stands for. An input that is not declared is refused later, by name.
fn value(name: &str, text: &str, ty: Option<&TypeRef>) -> Result<Result<Value, String>, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(typed(name, text, ty)) };
    if file.starts_with('@') {
        return Ok(typed(name, file, ty));
    }
    Ok(typed(name, &Input::File(file.into()).read_as(FileRole::Value)?, ty))
}

const NULL: &str = "null";

fn typed(name: &str, text: &str, ty: Option<&TypeRef>) -> Result<Value, String> {
    let Some(ty) = ty else { return Ok(Value::String(text.into())) };
    match ty {
        TypeRef::String => Ok(Value::String(text.into())),
        TypeRef::Long | TypeRef::Int => {
            let number = text.trim().parse::<i64>();
            number.map(Value::from).map_err(|error| match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                    format!("takes an integer of 64 bits, and `{}` needs more", short(text))
                }
                _ => format!("takes an integer, not `{}`", short(text)),
            })
        }
        TypeRef::Double => match json_text::parse(text, name) {
            Err(JsonError::BeyondLong { .. }) => {
                Err(format!("takes no integer beyond 64 bits: write `{}` with a point", short(text)))
            }
            Ok(number) if number.is_number() => Ok(number),
            Ok(_) | Err(_) => Err(format!("takes a number, not `{}`", short(text))),
        },
        TypeRef::Boolean => {
            let truth = text.trim().parse::<bool>();
            truth.map(Value::Bool).map_err(|_| format!("takes `true` or `false`, not `{}`", short(text)))
        }
        TypeRef::Nullable(of) => match (&**of, text.trim()) {
            (TypeRef::String, _) => Ok(Value::String(text.into())),
            (_, NULL) => Ok(Value::Null),
            (of, _) => typed(name, text, Some(of)),
        },
        TypeRef::List(_) | TypeRef::Schema(_) | TypeRef::Json => json(name, text),
    }
}

fn json(name: &str, text: &str) -> Result<Value, String> {
    json_text::parse(text, name).map_err(|error| match error {
        JsonError::Syntax(error) => format!("takes JSON, not `{}` ({error})", short(text)),
        JsonError::TooDeep | JsonError::BeyondLong { .. } | JsonError::RepeatedKey { .. } => {
            format!("cannot be `{}`: {error}", short(text))
        }
    })
}

/// Enough of a text to know it again.
fn short(text: &str) -> String {
    cut(text, 40)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_read_by_the_type_of_its_input() {
        let list = TypeRef::List(Box::new(TypeRef::Long));
        let maybe = |of| TypeRef::Nullable(Box::new(of));
        for (text, ty, value) in [
            ("12", TypeRef::String, json!("12")),
            ("12", TypeRef::Long, json!(12)),
            ("12", TypeRef::Double, json!(12)),
            ("1.5", TypeRef::Double, json!(1.5)),
            ("true", TypeRef::Boolean, json!(true)),
            ("[1, 2]", list.clone(), json!([1, 2])),
            ("{\"a\": null}", TypeRef::Json, json!({"a": null})),
            ("null", maybe(TypeRef::Long), json!(null)),
            ("7", maybe(TypeRef::Long), json!(7)),
            ("null", maybe(TypeRef::String), json!("null")),
        ] {
            assert_eq!(typed("x", text, Some(&ty)), Ok(value), "{text} {ty}");
        }
        for (text, ty) in [
            ("1.5", TypeRef::Long),
            ("x", TypeRef::Double),
            ("yes", TypeRef::Boolean),
            ("[1", list),
            ("x", TypeRef::Json),
            ("[{\"a\": 18446744073709551616}]", TypeRef::Json),
            ("{\"a\": {\"b\": 1, \"b\": 2}}", TypeRef::Json),
            ("18446744073709551616", TypeRef::Double),
        ] {
            assert!(typed("x", text, Some(&ty)).is_err(), "{text} {ty}");
        }
    }
}
