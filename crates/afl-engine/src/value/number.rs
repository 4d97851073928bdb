//! Arithmetic: exact on 64-bit integers, IEEE 754 on doubles, and never a result that is neither.

use std::cmp::Ordering;

use serde_json::Value;

/// A number while it is computed with. Integers are wider than values may be, so that one addition or
/// comparison is exact before its result is checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Integer(i128),
    /// Finite.
    Double(f64),
}

/// Why an operation on numbers has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArithmeticError {
    #[error("division by zero")]
    DivisionByZero,
    #[error("integer overflow")]
    Overflow,
    #[error("floating-point overflow")]
    NotFinite,
}

type Result<T> = std::result::Result<T, ArithmeticError>;

impl Number {
    pub(crate) fn of(number: &serde_json::Number) -> Self {
        // Text beyond an u64 is a double already when it is read, so these are all integers.
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        match (integer, number.as_f64()) {
            (Some(integer), _) => Self::Integer(integer),
            (None, Some(double)) => Self::Double(double),
            (None, None) => unreachable!("a number is an integer or a double"),
        }
    }

    pub(crate) fn double(double: f64) -> Result<Self> {
        // Adding zero turns -0.0 into 0.0: equal numbers look equal.
        if double.is_finite() { Ok(Self::Double(double + 0.0)) } else { Err(ArithmeticError::NotFinite) }
    }

    pub(crate) fn to_value(self) -> Result<Value> {
        match self {
            Self::Integer(integer) => {
                let integer = i64::try_from(integer).map_err(|_| ArithmeticError::Overflow)?;
                Ok(Value::from(integer))
            }
            Self::Double(double) => Ok(Value::from(double)),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Result<Self> {
        self.combine(other, i128::checked_add, |a, b| a + b)
    }

    pub(crate) fn minus(self, other: Self) -> Result<Self> {
        self.combine(other, i128::checked_sub, |a, b| a - b)
    }

    pub(crate) fn times(self, other: Self) -> Result<Self> {
        self.combine(other, i128::checked_mul, |a, b| a * b)
    }

    /// Always a double, also of two integers.
    pub(crate) fn divided_by(self, other: Self) -> Result<Self> {
        if other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        Self::double(self.to_double() / other.to_double())
    }

    /// With the sign of the divisor: the rest after the quotient is rounded down.
    pub(crate) fn modulo(self, other: Self) -> Result<Self> {
        if other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        self.combine(
            other,
            |a, b| {
                let rest = a.checked_rem(b)?;
                Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
            },
            |a, b| {
                let rest = a % b;
                if rest.abs() > 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
            },
        )
    }

    pub(crate) fn negate(self) -> Self {
        match self {
            Self::Integer(integer) => Self::Integer(-integer),
            // Not `-double`, which makes -0.0 of 0.0.
            Self::Double(double) => Self::Double(0.0 - double),
        }
    }

    /// By value, exactly, whatever the two are.
    pub(crate) fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b).expect("numbers are finite"),
            (Self::Integer(a), Self::Double(b)) => order_mixed(a, b),
            (Self::Double(a), Self::Integer(b)) => order_mixed(b, a).reverse(),
        }
    }

    fn combine(
        self,
        other: Self,
        on_integers: impl FnOnce(i128, i128) -> Option<i128>,
        on_doubles: impl FnOnce(f64, f64) -> f64,
    ) -> Result<Self> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => {
                on_integers(a, b).map(Self::Integer).ok_or(ArithmeticError::Overflow)
            }
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                Self::double(on_doubles(self.to_double(), other.to_double()))
            }
        }
    }

    fn is_zero(self) -> bool {
        self.order(Self::Integer(0)).is_eq()
    }

    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what the language promises")]
    fn to_double(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Double(double) => double,
        }
    }
}

/// Compares whole parts first: as doubles, neighbouring large integers would be equal.
fn order_mixed(integer: i128, double: f64) -> Ordering {
    // A double beyond an i128 becomes the nearest one, which no integer of a value reaches.
    let whole = integer.cmp(&(double as i128));
    whole.then_with(|| 0.0.partial_cmp(&double.fract()).expect("numbers are finite"))
}
