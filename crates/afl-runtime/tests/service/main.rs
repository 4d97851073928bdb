//! The promises of a service, from outside.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answering;
mod ask;
mod clock;
mod contract;
mod doctor;
mod fairness;
mod faults;
mod handed_over;
mod notices;
mod once;
mod one_run;
mod outbox;
mod quarantine;
mod retrying;
mod runs;
mod scene;
mod serving;
mod task_records;
mod timers;
mod traps;
mod verbs;
mod world;
