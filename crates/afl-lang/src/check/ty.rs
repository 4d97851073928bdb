//! Types while checking: those of the language, of literals and of broken parts.

use std::fmt;
use std::rc::Rc;

use super::table::{DefId, Table};
use crate::types::TypeRef;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Type {
    String,
    Long,
    Int,
    Double,
    Boolean,
    Json,
    Null,
    Schema(DefId),
    List(Rc<Type>),
    Nullable(Rc<Type>),
    /// The elements of a list literal that differ: one of these.
    Either(Rc<[Type]>),
    /// A map literal, or all attributes of a step.
    Record(Rc<[(String, Type)]>),
    /// Something already reported; it fits everywhere.
    Broken,
}

/// The kinds of values that operators distinguish.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandKind {
    Number,
    Text,
    Boolean,
    List,
    Record,
    Null,
    /// Known only when it runs.
    Any,
}

/// Beyond so many different elements of one list the compiler loses count, and leaves the check to the run.
const MAX_ALTERNATIVES: usize = 8;

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Rc::new(of))
    }

    pub(super) fn nullable(of: Self) -> Self {
        match of {
            Self::Nullable(_) | Self::Json | Self::Null | Self::Broken => of,
            other => Self::Nullable(Rc::new(other)),
        }
    }

    /// Without a `?`. Values of `T?` are checked for null when it runs: the language has no test for it.
    pub(super) fn solid(&self) -> &Self {
        match self {
            Self::Nullable(of) => of,
            other => other,
        }
    }

    pub(super) fn kind(&self) -> OperandKind {
        match self {
            Self::Long | Self::Int | Self::Double => OperandKind::Number,
            Self::String => OperandKind::Text,
            Self::Boolean => OperandKind::Boolean,
            Self::List(_) => OperandKind::List,
            Self::Schema(_) | Self::Record(_) => OperandKind::Record,
            Self::Null => OperandKind::Null,
            Self::Json | Self::Either(_) | Self::Broken => OperandKind::Any,
            Self::Nullable(of) => of.kind(),
        }
    }

    /// The type of a list whose elements have these two types.
    pub(super) fn join(self, other: Self, table: &Table<'_>) -> Self {
        if other.fits(&self, table) && self != Self::Json {
            self
        } else if self.fits(&other, table) {
            other
        } else {
            self.or(other)
        }
    }

    fn or(self, other: Self) -> Self {
        let mut members = match self {
            Self::Either(members) => members.to_vec(),
            one => vec![one],
        };
        if members.len() >= MAX_ALTERNATIVES {
            return Self::Json;
        }
        members.push(other);
        Self::Either(members.into())
    }

    /// Whether a value of this type may stand where `slot` is wanted.
    pub(super) fn fits(&self, slot: &Self, table: &Table<'_>) -> bool {
        match (self, slot) {
            (Self::Broken | Self::Json, _)
            | (_, Self::Broken | Self::Json)
            | (Self::Int, Self::Int | Self::Long | Self::Double)
            | (Self::Long, Self::Long | Self::Double) => true,
            (Self::Either(members), slot) => members.iter().all(|member| member.fits(slot, table)),
            (value, Self::Either(members)) => members.iter().any(|member| value.fits(member, table)),
            (Self::Null, slot) => matches!(slot, Self::Nullable(_) | Self::Null),
            (Self::Nullable(value), _) => value.fits(slot.solid(), table),
            (_, Self::Nullable(slot)) => self.fits(slot, table),
            (Self::List(value), Self::List(slot)) => value.fits(slot, table),
            (Self::Record(fields), Self::Schema(schema)) => table.misfit(fields, *schema).is_none(),
            (value, slot) => value == slot,
        }
    }

    pub(super) fn show<'t>(&'t self, table: &'t Table<'_>) -> TypeDisplay<'t> {
        TypeDisplay(self, table)
    }

    pub(super) fn to_ref(&self, table: &Table<'_>) -> TypeRef {
        match self {
            Self::String => TypeRef::String,
            Self::Long => TypeRef::Long,
            Self::Int => TypeRef::Int,
            Self::Double => TypeRef::Double,
            Self::Boolean => TypeRef::Boolean,
            Self::Schema(schema) => TypeRef::Schema(table[*schema].id.clone()),
            Self::List(of) => TypeRef::List(Box::new(of.to_ref(table))),
            Self::Nullable(of) => TypeRef::Nullable(Box::new(of.to_ref(table))),
            Self::Json | Self::Null | Self::Either(_) | Self::Record(_) | Self::Broken => TypeRef::Json,
        }
    }
}

/// A type as messages write it.
pub(super) struct TypeDisplay<'t>(&'t Type, &'t Table<'t>);

impl fmt::Display for TypeDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Null => f.write_str("null"),
            Type::Either(members) => {
                let shown: Vec<String> =
                    members.iter().map(|member| member.show(self.1).to_string()).collect();
                f.write_str(&shown.join(" or "))
            }
            Type::Record(_) => f.write_str("a map"),
            Type::List(of) if **of == Type::Broken => f.write_str("a list"),
            Type::List(of) => write!(f, "[{}]", of.show(self.1)),
            Type::Nullable(of) => write!(f, "{}?", of.show(self.1)),
            Type::Schema(schema) => f.write_str(self.1[*schema].name),
            other => write!(f, "{}", other.to_ref(self.1)),
        }
    }
}
