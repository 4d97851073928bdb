//! The faults of docs/promises.md that need real stores; each test is named after its fault.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod clock;
mod damage;
mod failover;
mod full;
mod full_postgres;
mod large;
mod outage;
mod outbox;
mod races;
mod site;
mod skew;
mod small;
mod steered;
mod views;
mod work;
