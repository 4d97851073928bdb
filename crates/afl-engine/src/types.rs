//! Whether a value from outside fits a declared type, and the defaults it may leave out.

use std::collections::BTreeMap;

use afl_lang::program::{Parameter, Program, QualifiedName, SchemaDecl, shortened};
use afl_lang::types::TypeRef;

use crate::eval::{EvalError, NoScope, eval};
use crate::value::{MAX_VALUE_DEPTH, Value, ValueKind, ValueRoom, is_within_depth};

/// Checks the value that is called `name`.
///
/// `Long` and `Int` take integers only, however a double is written; `Double` takes both. A map fits a
/// schema when every field without a default is there and fits; further keys are left alone, because a
/// handler may know more than the program asks for.
pub fn fits(name: &str, value: &Value, ty: &TypeRef, schemas: &Schemas) -> Result<(), Misfit> {
    check(value, ty, schemas, MAX_VALUE_DEPTH).map_err(|misfit| misfit.within(name))
}

/// The value as its type has it, at every depth: with the defaults of the schema fields it leaves out, and with integers
/// widened where a `Double` is declared.
pub fn as_declared(value: Value, ty: &TypeRef, schemas: &Schemas) -> Result<Value, EvalError> {
    fill(value, ty, schemas, MAX_VALUE_DEPTH, &mut ValueRoom::default())
}

/// The schemas of a program by their qualified names.
#[derive(Clone, Debug, Default)]
pub struct Schemas(BTreeMap<QualifiedName, SchemaDecl>);

impl Schemas {
    pub fn of(program: &Program) -> Self {
        Self(program.schemas().map(|schema| (schema.id.clone(), schema.clone())).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&SchemaDecl> {
        self.0.get(name)
    }

    pub(crate) fn fields(&self, name: &str) -> &[Parameter] {
        &self.get(name).expect("a program declares the schemas it names").fields
    }
}

/// Why a value does not fit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{path}` must be {wanted}, but {found}")]
pub struct Misfit {
    /// The way to the culprit, such as `order.items[2].price`.
    pub path: String,
    pub wanted: TypeRef,
    pub found: MisfitCause,
}

/// The cause by which a value does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MisfitCause {
    #[error("is {0}")]
    Kind(ValueKind),
    #[error("is missing")]
    Nothing,
    #[error("does not fit in 64 bits")]
    BeyondLong,
    #[error("nests deeper than {MAX_VALUE_DEPTH} levels")]
    TooDeep,
}

impl Misfit {
    fn new(wanted: &TypeRef, found: MisfitCause) -> Self {
        Self { path: String::new(), wanted: wanted.clone(), found }
    }

    fn within(mut self, outer: &str) -> Self {
        self.path.insert_str(0, outer);
        self
    }
}

/// `levels` is how deep the value may still nest.
fn check(value: &Value, ty: &TypeRef, schemas: &Schemas, levels: usize) -> Result<(), Misfit> {
    let is_list_or_map = matches!(value, Value::Array(_) | Value::Object(_));
    if levels == 0 && is_list_or_map {
        return Err(Misfit::new(ty, MisfitCause::TooDeep));
    }
    match (ty, value) {
        (TypeRef::Json, value) if !is_within_depth(value, levels) => {
            Err(Misfit::new(ty, MisfitCause::TooDeep))
        }
        (TypeRef::Json, _)
        | (TypeRef::Nullable(_), Value::Null)
        | (TypeRef::String, Value::String(_))
        | (TypeRef::Boolean, Value::Bool(_))
        | (TypeRef::Double, Value::Number(_)) => Ok(()),
        (TypeRef::Nullable(of), value) => check(value, of, schemas, levels).map_err(|misfit| {
            let is_here = misfit.path.is_empty();
            if is_here { Misfit::new(ty, misfit.found) } else { misfit }
        }),
        (TypeRef::Long | TypeRef::Int, Value::Number(number)) if number.is_i64() => Ok(()),
        (TypeRef::Long | TypeRef::Int, Value::Number(number)) if number.is_u64() => {
            Err(Misfit::new(ty, MisfitCause::BeyondLong))
        }
        (TypeRef::List(of), Value::Array(elements)) => {
            elements.iter().enumerate().try_for_each(|(at, element)| {
                check(element, of, schemas, levels - 1).map_err(|misfit| misfit.within(&format!("[{at}]")))
            })
        }
        (TypeRef::Schema(schema), Value::Object(entries)) => {
            schemas.fields(schema).iter().try_for_each(|field| {
                let checked = match (entries.get(&field.name), &field.default) {
                    (Some(value), _) => check(value, &field.ty, schemas, levels - 1),
                    (None, Some(_)) => Ok(()),
                    (None, None) => Err(Misfit::new(&field.ty, MisfitCause::Nothing)),
                };
                checked.map_err(|misfit| misfit.within(&format!(".{}", field.name)))
            })
        }
        (
            TypeRef::String
            | TypeRef::Long
            | TypeRef::Int
            | TypeRef::Double
            | TypeRef::Boolean
            | TypeRef::List(_)
            | TypeRef::Schema(_),
            value,
        ) => Err(Misfit::new(ty, MisfitCause::Kind(ValueKind::of(value)))),
    }
}

/// `room` is for the defaults: a long list may leave out a long default in each of its elements.
fn fill(
    value: Value,
    ty: &TypeRef,
    schemas: &Schemas,
    levels: usize,
    room: &mut ValueRoom,
) -> Result<Value, EvalError> {
    match (ty, value) {
        (TypeRef::Nullable(of), value) => fill(value, of, schemas, levels, room),
        (TypeRef::Double, Value::Number(number)) => {
            Ok(number.as_f64().map_or(Value::Number(number), Value::from))
        }
        (TypeRef::List(of), Value::Array(elements)) if levels > 0 => {
            elements.into_iter().map(|element| fill(element, of, schemas, levels - 1, room)).collect()
        }
        (TypeRef::Schema(schema), Value::Object(mut entries)) => {
            for field in schemas.fields(schema) {
                let value = match (entries.remove(&field.name), &field.default) {
                    (Some(value), _) => value,
                    // A schema whose default holds a further instance of it would never end.
                    (None, Some(default)) if levels == 0 => {
                        return Err(EvalError::TooDeep { expr: default.to_string() });
                    }
                    (None, Some(default)) => {
                        let value = eval(default, &NoScope)?;
                        room.take(&value)
                            .ok_or_else(|| EvalError::TooLarge { expr: shortened(&default.to_string()) })?;
                        value
                    }
                    (None, None) => continue,
                };
                let filled = fill(value, &field.ty, schemas, levels.saturating_sub(1), room)?;
                entries.insert(field.name.clone(), filled);
            }
            Ok(Value::Object(entries))
        }
        // A value that does not fit stays as it is; `fits` reports it.
        (_, value) => Ok(value),
    }
}
