//! Epochs: detects that the server may have lost commits that this process has read or made.
//!
//! Problem: a relaxed commit is visible before it is on the disk. A server that crashes then forgets it, and a process that
//! continues from the lost state would write on top of records that do not exist.
//!
//! Approach: a crash ends all connections of the server. So while one connection lives, nothing that was read or written
//! since its start is lost. Each connection that writes begins an epoch when it is made. A batch names the epoch of the
//! reads behind it, and a connection of a later epoch refuses the batch.
//!
//! Rejected: asking the server for its start time before each commit, which costs a round trip.

use std::sync::atomic::{AtomicU64, Ordering};

use afl_store::Epoch;

/// Shared by all connections of this process that write.
#[derive(Debug, Default)]
pub(super) struct Epochs(AtomicU64);

impl Epochs {
    pub(super) fn now(&self) -> Epoch {
        Epoch(self.0.load(Ordering::SeqCst))
    }

    /// For a connection that was just made.
    pub(super) fn begin(&self) -> Epoch {
        Epoch(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
