//! Programs for tests: random ones, and damage to any.

pub(crate) mod dice;
pub(crate) mod mutate;
pub(crate) mod random;
