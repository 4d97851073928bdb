//! The agents of a store, and which work none of them takes.

use std::cmp::Reverse;

use afl_engine::evaluation::SCRIPT_EVENT;
use afl_engine::id::{RunId, StepId};
use afl_store::backend::Durability;
use afl_store::queue::{HandlerMatch, match_handler};
use afl_store::server::{Server, ServerStatus};
use serde::Serialize;

use crate::error::Error;
use crate::service::Service;
use crate::why::{On, Why};

/// The agents that sent a heartbeat a short while ago.
#[derive(Clone, PartialEq, Debug)]
pub struct OnlineServers(pub(crate) Vec<Server>);

/// An agent with the status that its heartbeats give it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServerView {
    #[serde(flatten)]
    pub server: Server,
    pub status: ServerStatus,
}

/// Why a run waits, with the facets that no agent takes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WhyReport {
    #[serde(flatten)]
    pub why: Why,
    pub unserved: Vec<String>,
}

impl Service {
    /// All agents by their status, the newest first.
    pub async fn servers(&self) -> Result<Vec<ServerView>, Error> {
        let now = self.store.now().await?;
        let all = self.collection::<Server>().readable().await?.into_iter().map(|(_, stored)| stored.item);
        let mut views: Vec<_> = all.map(|server| ServerView { status: server.status(now), server }).collect();
        views.sort_by_key(|view| (view.status, Reverse(view.server.start_time)));
        Ok(views)
    }

    /// Stores the heartbeat of a server under its uuid, with the store's time. Its start is the time of its first one.
    pub async fn heartbeat(&self, server: Server) -> Result<(), Error> {
        let servers = self.collection::<Server>();
        let known = servers.get(&server.uuid).await?;
        let now = self.store.now().await?;
        let start_time = known.as_ref().map_or(now, |known| known.item.start_time);
        let server = Server { start_time, ping_time: now, ..server };
        let version = known.map(|known| known.version);
        servers.put(&server.uuid, &server, version, Durability::Relaxed).await?;
        Ok(())
    }

    pub async fn online_servers(&self) -> Result<OnlineServers, Error> {
        let online = self.servers().await?.into_iter().filter(|view| view.status == ServerStatus::Online);
        Ok(OnlineServers(online.map(|view| view.server).collect()))
    }

    /// Why a step of the run stands where it does, with the facets that no agent online takes.
    pub async fn why_report(&self, run: &RunId, within: &StepId) -> Result<WhyReport, Error> {
        let why = self.why_within(run, within).await?;
        let unserved = self.online_servers().await?.unserved(&why);
        Ok(WhyReport { why, unserved })
    }
}

impl OnlineServers {
    /// The facets that a run waits for and that no agent online takes.
    fn unserved(&self, why: &Why) -> Vec<String> {
        let mut unserved: Vec<String> = Vec::new();
        for wait in &why.waits {
            match &wait.on {
                On::Agent { name, list, needs, .. }
                    if !self.can_do(name, list, needs) && !unserved.contains(name) =>
                {
                    unserved.push(name.clone());
                }
                On::Agent { .. }
                | On::Holder { .. }
                | On::Retry { .. }
                | On::Timer { .. }
                | On::Driver
                | On::Failure(_)
                | On::Decision { .. } => {}
            }
        }
        unserved
    }

    /// Decides as agents do: by the exact name, or by a short name that fits no other facet.
    pub fn can_do(&self, facet: &str, list: &str, needs: &[String]) -> bool {
        let serves = |server: &&Server| {
            server.task_lists.iter().any(|served| served == list)
                && needs.iter().all(|need| server.capabilities.contains(need))
        };
        let can = |server: &Server| {
            let offers = server.handlers.iter().map(|name| (name.as_str(), ()));
            let has = match match_handler(offers, facet) {
                HandlerMatch::Exact(()) | HandlerMatch::Short(()) => true,
                HandlerMatch::Ambiguous { .. } | HandlerMatch::Missing => false,
            };
            // Scripts need no handler.
            facet == SCRIPT_EVENT || has
        };
        self.0.iter().filter(serves).any(can)
    }
}
