//! A compiled program, arranged for the evaluator.
