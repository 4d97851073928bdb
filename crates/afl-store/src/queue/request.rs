//! The request of an agent, and the tasks that it admits.

use std::fmt;
use std::sync::Arc;

use afl_engine::policy::Effect;
use afl_engine::task::{DEFAULT_TASK_LIST, Task};
use afl_engine::time::Millis;

use super::claim_order::OpenBucket;
use super::matching::{HandlerMatch, match_handler};
use crate::backend::{Durability, Head, MaxInBucket};
use crate::store::{TaskBucket, bucket};

/// The request of an agent.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub names: FacetFilter,
    /// This task alone, as it was read last, whatever list it is on.
    pub task: Option<Arc<Task>>,
    pub lists: Vec<String>,
    /// The agent's capabilities; tasks that need others are left.
    pub capabilities: Vec<String>,
    /// The name of the agent's server; tasks that want another are left to it for a while.
    pub server: Option<String>,
    pub max: usize,
    /// How long the task is reserved unless the holder extends the lease.
    pub lease: Millis,
    pub owner: String,
}

impl ClaimRequest {
    /// One task of the default list, under a lease of a minute.
    pub fn new(names: FacetFilter, owner: &str) -> Self {
        let lists = vec![DEFAULT_TASK_LIST.to_owned()];
        Self {
            names,
            task: None,
            lists,
            capabilities: Vec::new(),
            server: None,
            max: 1,
            lease: Millis(60_000),
            owner: owner.to_owned(),
        }
    }
}

/// Which facets an agent can do. A name without a dot stands for the facet of that name in every namespace, as long as
/// no other name of the agent says the same of one namespace.
#[derive(Clone)]
pub enum FacetFilter {
    All,
    Only(Vec<String>),
    /// Those for which the function has a handler, by their whole names. Its note about the handler is stored with each
    /// claim; it may be nothing.
    Which(HandlerLookup),
}

/// Returns a note about the handler of a facet; nothing where there is none.
pub type HandlerLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl ClaimRequest {
    /// Those of a list's buckets whose tasks this agent can do.
    pub(super) fn open(&self, list: &str, heads: &[Head]) -> Vec<OpenBucket> {
        heads.iter().filter_map(|head| self.open_one(list, head)).collect()
    }

    /// A bucket of a list, if this agent can do its tasks.
    pub(super) fn open_one(&self, list: &str, head: &Head) -> Option<OpenBucket> {
        let TaskBucket { facet, limit, effect, needs, server } = TaskBucket::parse(list, &head.bucket)?;
        let has = |need: &&str| self.capabilities.iter().any(|capability| capability == need);
        let is_admitted = needs.iter().all(has) && self.names.admit(facet);
        let in_bucket = |max| MaxInBucket { bucket: bucket::running(list, facet), max: max as usize };
        is_admitted.then(|| OpenBucket {
            head: head.clone(),
            max_in_bucket: limit.map(in_bucket),
            durability: claim_durability(effect),
            is_for_another: server.is_some_and(|server| self.server.as_deref() != Some(server)),
        })
    }
}

/// Whether work was begun that may be done once only must outlive a power cut, or it would be begun twice.
pub(super) fn claim_durability(effect: Option<Effect>) -> Durability {
    match effect {
        Some(Effect::Once) => Durability::Durable,
        Some(Effect::Idempotent | Effect::Pure) | None => Durability::Relaxed,
    }
}

impl FacetFilter {
    fn admit(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => {
                match match_handler(names.iter().map(|offered| (offered.as_str(), ())), name) {
                    HandlerMatch::Exact(()) | HandlerMatch::Short(()) => true,
                    HandlerMatch::Ambiguous { .. } | HandlerMatch::Missing => false,
                }
            }
            Self::Which(handler) => handler(name).is_some(),
        }
    }

    /// The note about the handler of a task.
    pub(super) fn handler(&self, name: &str) -> String {
        match self {
            Self::All | Self::Only(_) => String::new(),
            // It was admitted for this claim; a handler that went meanwhile has nothing to note.
            Self::Which(handler) => handler(name).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for FacetFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Only(names) => f.debug_tuple("Only").field(names).finish(),
            Self::Which(_) => f.write_str("Which"),
        }
    }
}
