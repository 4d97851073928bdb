//! Evaluates a run: what is stored and what arrived in, [`Changes`] out.
