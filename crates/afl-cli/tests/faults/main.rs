//! The faults of the design's list that need real stores, each test named after its fault.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod damage;
mod full;
mod large;
mod outage;
mod outbox;
mod races;
mod site;
mod views;
mod work;
