//! Faults and traps of docs/promises.md with real agents, real handlers and real signals.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod actor;
mod deaths;
mod growth;
mod holding;
mod names;
mod poison;
#[path = "../standstill/mod.rs"]
mod standstill;
mod versions;
mod world;
