//! When commits may have been lost.
//!
//! A server that crashes ends all its connections. So over a connection that was there before something was read or
//! written, nothing of it is lost. Each connection that writes begins an epoch, and refuses what relies on an earlier one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_store::backend::Epoch;

/// Shared by all that writes in this process.
#[derive(Clone, Debug, Default)]
pub(super) struct Epochs(Arc<AtomicU64>);

impl Epochs {
    pub(super) fn now(&self) -> Epoch {
        Epoch(self.0.load(Ordering::SeqCst))
    }

    /// Of a connection that was just made.
    pub(super) fn begin(&self) -> Epoch {
        Epoch(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
