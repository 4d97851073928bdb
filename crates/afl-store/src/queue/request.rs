//! What an agent asks for, and which tasks that admits.

use std::fmt;
use std::sync::Arc;

use afl_engine::task::{DEFAULT_TASK_LIST, Task};
use afl_engine::time::Millis;

use super::head_cache::OpenBucket;
use super::matching::{HandlerMatch, match_handler};
use crate::store::bucket;

/// What an agent asks for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub names: FacetFilter,
    /// This task alone, as it was read last, whatever list it is on.
    pub task: Option<Arc<Task>>,
    pub lists: Vec<String>,
    /// What the agent has; tasks that need something else are left.
    pub capabilities: Vec<String>,
    /// The name of the agent's server; tasks that want another are left to it for a while.
    pub server: Option<String>,
    pub max: usize,
    /// How long nobody else gets the task unless the holder extends.
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
    /// Those for which the function has a handler, by their whole names. What it says of the handler is noted with each
    /// claim; it may be nothing.
    Which(HandlerLookup),
}

/// What can be said of the handler of a facet; nothing where there is none.
pub type HandlerLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl ClaimRequest {
    pub(super) fn admits_bucket(&self, bucket: &str) -> bool {
        let end = |list: &String| bucket.strip_prefix(&bucket::tasks(list, ""));
        self.lists.iter().filter_map(end).any(|end| self.admits(end))
    }

    /// Those of the buckets with this prefix whose tasks are asked for.
    pub(super) fn admitted(&self, prefix: &str, open: Vec<OpenBucket>) -> Vec<OpenBucket> {
        open.into_iter().filter(|open| self.admits(&open.bucket[prefix.len()..])).collect()
    }

    /// Where the tasks of a bucket of one of the lists are while they are worked on. A list may have any name, also one
    /// that looks as if needs followed.
    pub(super) fn running_beside(&self, bucket: &str) -> String {
        let of_list = |list| Some((list, bucket.strip_prefix(&bucket::tasks(list, ""))?));
        let lists = self.lists.iter().map(String::as_str).filter_map(of_list);
        let (list, end) =
            lists.min_by_key(|(_, end)| end.len()).expect("tasks are taken from lists asked for");
        bucket::running(list, bucket::name_and_needs(end).0)
    }

    /// Whether tasks of a bucket are asked for, by the end of its name.
    fn admits(&self, end: &str) -> bool {
        let (name, mut needs) = bucket::name_and_needs(end);
        needs.all(|need| self.has(need)) && self.names.admit(name)
    }

    /// Whether this task may be handed out to who asks, whatever list it is on.
    pub(super) fn admits_task(&self, task: &Task, now: Millis) -> bool {
        self.names.admit(&task.name)
            && task.policy.needs.iter().all(|need| self.has(need))
            && !task.is_left_to_another(self.server.as_deref(), now)
    }

    fn has(&self, need: &str) -> bool {
        self.capabilities.iter().any(|has| has == need)
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

    /// What is to be noted of the handler of a task.
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
