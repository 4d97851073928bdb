//! Workers over a store in memory: what they claim, do, tell and leave behind.

mod ends;
mod poller;
mod registered;
mod world;
