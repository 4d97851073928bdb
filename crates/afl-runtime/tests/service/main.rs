//! What a service promises, from outside.

mod faults;
mod runs;
mod serving;
mod world;
