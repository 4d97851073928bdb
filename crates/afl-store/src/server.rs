//! The registry of servers: the processes that do work, by their own reports (document 000 §5).

use std::collections::BTreeMap;

use afl_engine::time::Millis;
use afl_engine::wire_enum;
use serde::{Deserialize, Serialize};

use crate::collection::CollectionItem;

/// `ServerDefinition`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Server {
    pub uuid: String,
    pub server_group: String,
    pub service_name: String,
    pub server_name: String,
    #[serde(default)]
    pub server_ips: Vec<String>,
    #[serde(default)]
    pub start_time: Millis,
    /// The last heartbeat.
    #[serde(default)]
    pub ping_time: Millis,
    #[serde(default)]
    pub topics: Vec<String>,
    /// Where it takes tasks from.
    #[serde(default)]
    pub task_lists: Vec<String>,
    /// The capabilities that tasks may need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The facets it can do.
    #[serde(default)]
    pub handlers: Vec<String>,
    /// How often each was done here. Statistics only: it may drift.
    #[serde(default)]
    pub handled: BTreeMap<String, HandlerCounts>,
    #[serde(default)]
    pub state: ServerState,
    #[serde(default)]
    pub manager: String,
    #[serde(default)]
    pub error: Option<String>,
    /// The paths of the steps in work, the oldest first.
    #[serde(default)]
    pub current: Vec<String>,
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub version: String,
    /// Where it serves its status over HTTP, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HandlerCounts {
    pub completed: u64,
    pub failed: u64,
    /// Its lease ran out while the work was going on.
    #[serde(default)]
    pub lost: u64,
    #[serde(default)]
    pub canceled: u64,
}

wire_enum! {
    /// The state that a server reports.
    #[derive(Default)]
    pub enum ServerState ("state of a server") {
        #[default]
        Startup = "startup",
        Running = "running",
        Shutdown = "shutdown",
        Error = "error",
    }
}

wire_enum! {
    /// The status of a server by its heartbeats.
    pub enum ServerStatus ("status of a server") {
        Online = "online",
        Stale = "stale",
        Offline = "offline",
    }
}

pub const STALE_AFTER: Millis = Millis(30_000);
pub const OFFLINE_AFTER: Millis = Millis(60_000);
/// A server that was silent for so long is forgotten.
pub const PURGED_AFTER: Millis = Millis(3_600_000);

impl Server {
    /// By the store's clock.
    pub fn status(&self, now: Millis) -> ServerStatus {
        let silent = now.since(self.ping_time);
        match self.state {
            ServerState::Shutdown | ServerState::Error => ServerStatus::Offline,
            ServerState::Startup | ServerState::Running if silent >= OFFLINE_AFTER => ServerStatus::Offline,
            ServerState::Startup | ServerState::Running if silent >= STALE_AFTER => ServerStatus::Stale,
            ServerState::Startup | ServerState::Running => ServerStatus::Online,
        }
    }
}

impl CollectionItem for Server {
    const COLLECTION: &'static str = "servers";

    fn rank(&self) -> i64 {
        self.ping_time.0
    }
}
