//! Laws of arithmetic and order, and that nothing panics, on random expressions and values.

use std::cmp::Ordering;

use afl_engine::eval::{Root, Scope, eval};
use afl_engine::value::{ArithmeticError, Map};
use afl_engine::{EvalError, Value};
use afl_lang::program::{BinaryOp, Expr, ExprKind, InputRef, InputSource, StepRef, UnaryOp};
use proptest::prelude::*;

proptest! {
    #[test]
    fn integers_are_exact_or_overflow(a in integer(), b in integer()) {
        let (wide_a, wide_b) = (i128::from(a), i128::from(b));
        for (op, exact) in [
            (BinaryOp::Add, wide_a + wide_b),
            (BinaryOp::Subtract, wide_a - wide_b),
            (BinaryOp::Multiply, wide_a * wide_b),
        ] {
            let expected = i64::try_from(exact).map(Value::from).map_err(|_| ArithmeticError::Overflow);
            prop_assert_eq!(computed(op, a.into(), b.into()), expected);
        }
    }

    #[test]
    fn modulo_is_what_floor_division_leaves(a in integer(), b in integer()) {
        let found = computed(BinaryOp::Modulo, a.into(), b.into());
        if b == 0 {
            prop_assert_eq!(found, Err(ArithmeticError::DivisionByZero));
            return Ok(());
        }
        let rest = i128::from(found.expect("a rest").as_i64().expect("an integer"));
        let (a, b) = (i128::from(a), i128::from(b));
        prop_assert!(rest == 0 || (rest < 0) == (b < 0));
        prop_assert!(rest.abs() < b.abs());
        prop_assert_eq!((a - rest) % b, 0);
    }

    #[test]
    fn modulo_of_doubles_agrees_with_integers(a in -1_000_000_i32..1_000_000, b in 1_i32..1000, sign in prop::sample::select(vec![-1, 1])) {
        let b = sign * b;
        let of_integers = computed(BinaryOp::Modulo, a.into(), b.into()).expect("a rest");
        let of_doubles = computed(BinaryOp::Modulo, f64::from(a).into(), b.into()).expect("a rest");
        prop_assert!(of_doubles.is_f64());
        prop_assert_eq!(of_doubles.as_f64(), of_integers.as_f64());
    }

    #[test]
    fn modulo_of_doubles_has_the_sign_of_the_divisor(a in double(), b in double()) {
        let b = if b == 0.0 { f64::MIN_POSITIVE } else { b };
        let rest = computed(BinaryOp::Modulo, a.into(), b.into()).expect("a rest").as_f64().expect("a double");
        prop_assert!(rest == 0.0 || (rest < 0.0) == (b < 0.0), "{a} % {b} = {rest}");
        prop_assert!(rest.abs() <= b.abs());
    }

    #[test]
    fn division_gives_a_double_or_an_error(a in number(), b in number()) {
        match computed(BinaryOp::Divide, a, b.clone()) {
            Ok(quotient) => prop_assert!(quotient.is_f64()),
            Err(ArithmeticError::DivisionByZero) => prop_assert_eq!(b.as_f64(), Some(0.0)),
            Err(other) => prop_assert_eq!(other, ArithmeticError::NotFinite),
        }
    }

    #[test]
    fn numbers_are_totally_ordered(a in number(), b in number(), c in number()) {
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        prop_assert_eq!(order(&a, &b).is_eq(), holds(BinaryOp::Equal, &a, &b));
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le(), "{a} <= {b} <= {c}");
        }
        if order(&a, &b).is_eq() {
            prop_assert_eq!(order(&a, &c), order(&b, &c), "{} = {}, {}", a, b, c);
        }
    }

    /// The double is an integer exactly, so integers can be compared instead.
    #[test]
    fn an_integer_and_a_whole_double_compare_as_integers(a in integer(), b in whole_double()) {
        let exact = i128::from(a).cmp(&(b as i128));
        prop_assert_eq!(order(&a.into(), &b.into()), exact);
    }

    #[test]
    fn evaluation_never_panics_and_repeats_itself(expr in expr(), readable in map()) {
        let scope = Readable(readable);
        let first = eval(&expr, &scope);
        prop_assert_eq!(&first, &eval(&expr, &scope));
        if let Ok(value) = first {
            let text = value.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value, "{}", text);
        }
    }

    #[test]
    fn every_value_equals_itself_and_is_in_its_list(value in value()) {
        prop_assert!(holds(BinaryOp::Equal, &value, &value));
        prop_assert!(holds(BinaryOp::In, &value, &Value::from(vec![Value::Null, value.clone()])));
    }
}

fn computed(op: BinaryOp, left: Value, right: Value) -> Result<Value, ArithmeticError> {
    binary(op, left, right).map_err(|error| match error {
        EvalError::Arithmetic { problem, .. } => problem,
        other => panic!("{other}"),
    })
}

fn holds(op: BinaryOp, left: &Value, right: &Value) -> bool {
    binary(op, left.clone(), right.clone()).expect("comparable").as_bool().expect("a Boolean")
}

/// By the operators, which must agree with one another.
fn order(left: &Value, right: &Value) -> Ordering {
    let [less, less_equal, greater, greater_equal] =
        [BinaryOp::Less, BinaryOp::LessEqual, BinaryOp::Greater, BinaryOp::GreaterEqual]
            .map(|op| holds(op, left, right));
    match (less, less_equal, greater, greater_equal) {
        (true, true, false, false) => Ordering::Less,
        (false, true, false, true) => Ordering::Equal,
        (false, false, true, true) => Ordering::Greater,
        other => panic!("{left} and {right} compare as {other:?}"),
    }
}

fn binary(op: BinaryOp, left: Value, right: Value) -> Result<Value, EvalError> {
    let scope = Readable(Map::from_iter([("a".to_owned(), left), ("b".to_owned(), right)]));
    eval(&plain(ExprKind::Binary(op, Box::new(["a", "b"].map(input)))), &scope)
}

fn input(name: &str) -> Expr {
    plain(ExprKind::Input(InputRef { path: vec![name.to_owned()], source: InputSource::Owner }))
}

fn plain(kind: ExprKind) -> Expr {
    Expr { kind, location: None }
}

struct Readable(Map<String, Value>);

impl Scope for Readable {
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value> {
        match root {
            Root::Input(_) => self.0.get(name),
            Root::Step { .. } => self.0.values().next(),
        }
    }

    fn record(&self, _: Root<'_>) -> Vec<(&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// Often near the edges, where arithmetic goes wrong.
fn integer() -> impl Strategy<Value = i64> {
    let near = |centre: i64| (-2_i64..=2).prop_map(move |offset| centre.saturating_add(offset));
    prop_oneof![
        any::<i64>(),
        -100_i64..100,
        near(0),
        near(i64::MAX),
        near(i64::MIN),
        near(1 << 53),
        near(3_037_000_499),
    ]
}

fn double() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO, -10.0..10.0, whole_double()]
}

#[expect(clippy::cast_precision_loss, reason = "any whole double will do")]
fn whole_double() -> impl Strategy<Value = f64> {
    prop_oneof![integer().prop_map(|integer| integer as f64), Just(9_223_372_036_854_775_808.0), Just(1e20)]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        integer().prop_map(Value::from),
        double().prop_map(Value::from),
        (i64::MAX as u64..).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        "[ab😀é]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map("[abc]", value(), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn expr() -> impl Strategy<Value = Expr> {
    let path = || prop::collection::vec("[abc]", 1..3);
    let source = prop::sample::select(vec![InputSource::Owner, InputSource::Foreach, InputSource::Caught]);
    let leaf = prop_oneof![
        integer().prop_map(ExprKind::Int),
        double().prop_map(ExprKind::Double),
        "[ab😀]{0,2}".prop_map(ExprKind::String),
        any::<bool>().prop_map(ExprKind::Boolean),
        Just(ExprKind::Null),
        Just(ExprKind::Input(InputRef { path: Vec::new(), source: InputSource::Owner })),
        (path(), source).prop_map(|(path, source)| ExprKind::Input(InputRef { path, source })),
        path().prop_map(|path| ExprKind::Step(StepRef { path, clause: None })),
    ];
    leaf.prop_map(plain).prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone()).prop_map(|(left, right)| Box::new([left, right]));
        let many = prop::collection::vec(inner.clone(), 0..4);
        let unary = prop::sample::select(UnaryOp::ALL);
        prop_oneof![
            4 => (operator(), two.clone()).prop_map(|(op, operands)| ExprKind::Binary(op, operands)),
            2 => two.prop_map(ExprKind::Index),
            1 => (unary, inner.clone()).prop_map(|(op, operand)| ExprKind::Unary(op, Box::new(operand))),
            1 => many.clone().prop_map(ExprKind::Array),
            1 => many.prop_map(ExprKind::Concat),
            1 => prop::collection::vec(("[abc]", inner), 0..3).prop_map(ExprKind::Map),
        ]
        .prop_map(plain)
    })
}

fn operator() -> impl Strategy<Value = BinaryOp> {
    prop::sample::select(BinaryOp::ALL)
}
