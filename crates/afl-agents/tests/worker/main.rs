//! Workers over a store in memory: what they claim, do, tell and leave behind.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod ends;
mod poller;
mod registered;
mod traps;
mod world;
