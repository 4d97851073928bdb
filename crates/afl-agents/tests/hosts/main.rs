//! The handler hosts, with real interpreters, programs, processes and servers.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod builtin;
mod closures;
mod death;
mod evidence;
mod exec;
mod files;
mod http;
mod list;
mod overhead;
mod package;
mod python;
mod python_results;
mod script;
mod stops;
mod world;
