//! The queue of tasks: claimed under a lease, settled once, swept when their holders are silent.

mod claim;
mod claim_order;
mod continuing;
mod head_cache;
mod lease;
mod matching;
mod note;
mod outcome;
mod refusal;
mod request;
mod settle;
mod sweep;
mod system;

use std::sync::{Arc, MutexGuard, PoisonError};

use afl_engine::id::{RunId, StepId};
use afl_engine::task::Authority;
use serde::{Deserialize, Serialize};

use crate::entropy::Entropy;
use crate::store::Store;

pub use claim::Claim;
pub use continuing::{ContinueResult, WorkOfStep};
pub use matching::{HandlerMatch, match_handler};
pub use note::{LogLevel, LogLine, LogPage, LogStream};
pub use refusal::Refusal;
pub use request::{ClaimRequest, FacetFilter, HandlerLookup};
pub use settle::SettleResult;
pub use sweep::{SweepReport, Upkeep};
pub use system::SystemTaskRequest;

/// One tenant's tasks.
#[derive(Clone, Debug)]
pub struct Queue {
    store: Store,
    entropy: Entropy,
    /// Protects the turns and cached heads of this process's claims, and is held for a look-up in memory.
    #[expect(
        clippy::disallowed_types,
        reason = "every claim looks here several times; a channel would make it wait"
    )]
    order: Arc<std::sync::Mutex<claim_order::ClaimOrder>>,
}

/// The proof that a write comes from the holder of the task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ticket {
    pub run: RunId,
    pub step: StepId,
    /// Greater with each claim of the task, for systems outside that fence by number. No two claims have the same, even
    /// when a crash of the database takes a claim back.
    pub token: u64,
    pub secret: String,
}

impl Ticket {
    fn authority(&self) -> Authority<'_> {
        Authority::Holder { token: self.token, secret: &self.secret }
    }
}

impl Queue {
    pub fn new(store: Store, entropy: Entropy) -> Self {
        Self { store, entropy, order: Arc::default() }
    }

    /// Whether the last claim of this owner left tasks because as many of their facet run as their `Limit` allows.
    pub fn was_turned_away(&self, owner: &str) -> bool {
        self.order().turned_away.contains(owner)
    }

    fn order(&self) -> MutexGuard<'_, claim_order::ClaimOrder> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
