//! Workers over a store in memory: what they claim, do, report and leave behind.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod ends;
mod leases;
mod matrix;
mod once;
mod one_run;
mod outbox;
mod poller;
mod presence;
mod registered;
mod routing;
mod runner;
mod spy;
mod status;
mod traps;
mod world;
