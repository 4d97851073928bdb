//! References and indices: the ways into values.

use std::borrow::Cow;

use afl_lang::program::{Expr, InputRef, InputSource, StepRef, shortened};

use super::error::{EvalError, named};
use super::{BuildSite, Root, value_of};
use crate::value::{Map, Number, Value, ValueKind};

type ReferenceResult<'v> = Result<Cow<'v, Value>, EvalError>;

pub(super) fn input<'v>(expr: &Expr, input: &InputRef, site: BuildSite<'v>) -> ReferenceResult<'v> {
    let written = |count: usize| {
        let path = input.path[..count].to_vec();
        // A variable that is not there is missed in `$`, where it can also be written.
        let source = if path.is_empty() { InputSource::Owner } else { input.source };
        InputRef { path, source }.to_string()
    };
    let root = Root::Input(input.source);
    if input.path.is_empty() { record(expr, root, site) } else { read(root, &input.path, site, written) }
}

pub(super) fn step<'v>(expr: &Expr, step: &StepRef, site: BuildSite<'v>) -> ReferenceResult<'v> {
    let (name, path) = step.path.split_first().expect("a loaded program's references name a step");
    let written = |count: usize| step.path[..=count].join(".");
    let root = Root::Step { name, clause: step.clause };
    if path.is_empty() { record(expr, root, site) } else { read(root, path, site, written) }
}

/// All attributes at once.
fn record<'v>(expr: &Expr, root: Root<'_>, site: BuildSite<'v>) -> ReferenceResult<'v> {
    let mut record = Map::new();
    for (name, value) in site.scope.record(root) {
        record.insert(name.to_owned(), site.own(Cow::Borrowed(value), expr)?);
    }
    Ok(Cow::Owned(Value::Object(record)))
}

/// `written` gives the text of the reference up to the n-th name of the path.
fn read<'v>(
    root: Root<'_>,
    path: &[String],
    site: BuildSite<'v>,
    written: impl Fn(usize) -> String,
) -> ReferenceResult<'v> {
    let (first, fields) = path.split_first().expect("a reference without a path is a record");
    let missing =
        |count: usize, name: &String| EvalError::Missing { base: written(count), name: name.clone() };
    let mut value = site.scope.attribute(root, first).ok_or_else(|| missing(0, first))?;
    for (at, name) in (1..).zip(fields) {
        let Value::Object(entries) = value else {
            let found = ValueKind::of(value);
            return Err(EvalError::NoFields { base: written(at), found, name: name.clone() });
        };
        value = entries.get(name).ok_or_else(|| missing(at, name))?;
    }
    Ok(Cow::Borrowed(value))
}

pub(super) fn index<'v>(parts: &'v [Expr; 2], site: BuildSite<'v>) -> ReferenceResult<'v> {
    let base = value_of(&parts[0], site)?;
    let key = value_of(&parts[1], site)?;
    match base {
        Cow::Borrowed(base) => element(base, &key, parts),
        Cow::Owned(base) => Ok(Cow::Owned(element(&base, &key, parts)?.into_owned())),
    }
}

fn element<'v>(base: &'v Value, key: &Value, parts: &[Expr; 2]) -> ReferenceResult<'v> {
    let written = || named(&parts[0]);
    let wrong = |wanted: ValueKind| {
        let index = named(&parts[1]);
        EvalError::WrongIndex { base: written(), wanted, index, found: ValueKind::of(key) }
    };
    match (base, key) {
        (Value::Object(entries), Value::String(name)) => {
            let value = entries.get(name).map(Cow::Borrowed);
            value.ok_or_else(|| EvalError::Missing { base: written(), name: shortened(name) })
        }
        (Value::Object(_), _) => Err(wrong(ValueKind::String)),
        (_, Value::String(name)) => {
            Err(EvalError::NoFields { base: written(), found: ValueKind::of(base), name: shortened(name) })
        }
        (Value::Array(elements), key) => {
            let index = integer(key).ok_or_else(|| wrong(ValueKind::Integer))?;
            let value = position(index, elements.len()).map(|at| Cow::Borrowed(&elements[at]));
            value.ok_or_else(|| EvalError::OutOfRange { base: written(), index, length: elements.len() })
        }
        (Value::String(text), key) => {
            let index = integer(key).ok_or_else(|| wrong(ValueKind::Integer))?;
            let length = text.chars().count();
            let character = position(index, length).and_then(|at| text.chars().nth(at));
            let value = character.map(|character| Cow::Owned(Value::String(character.into())));
            value.ok_or_else(|| EvalError::OutOfRange { base: written(), index, length })
        }
        (Value::Null | Value::Bool(_) | Value::Number(_), _) => {
            Err(EvalError::NotIndexed { base: written(), found: ValueKind::of(base) })
        }
    }
}

fn integer(key: &Value) -> Option<i128> {
    match Number::of(key.as_number()?) {
        Number::Integer(integer) => Some(integer),
        Number::Double(_) => None,
    }
}

/// Negative indices count from the end.
fn position(index: i128, length: usize) -> Option<usize> {
    let from_start = if index < 0 { index + i128::try_from(length).ok()? } else { index };
    usize::try_from(from_start).ok().filter(|at| *at < length)
}
