//! Which agents of a store are there, and what they can do.

use afl_agents::worker::SCRIPT_TASK;
use afl_runtime::server::{Server, ServerStatus};
use afl_runtime::{On, Service, Why};

use crate::failure::Failure;

/// The agents that were heard of a short while ago.
pub(crate) struct Online(Vec<Server>);

impl Online {
    pub(crate) async fn of(service: &Service) -> Result<Self, Failure> {
        let now = service.store().now().await?;
        let all = service.collection::<Server>().all().await?.into_iter().map(|(_, stored)| stored.item);
        Ok(Self(all.filter(|server| server.status(now) == ServerStatus::Online).collect()))
    }

    /// The facets that a run waits for and that none of them has a handler for.
    pub(crate) fn unserved(&self, why: &Why) -> Vec<String> {
        let mut unserved: Vec<String> = Vec::new();
        for wait in &why.waits {
            match &wait.on {
                On::Agent { name, .. } if !self.can_do(name) && !unserved.contains(name) => {
                    unserved.push(name.clone());
                }
                On::Agent { .. }
                | On::Holder { .. }
                | On::Retry { .. }
                | On::Driver
                | On::Failure(_)
                | On::Decision { .. } => {}
            }
        }
        unserved
    }

    /// As its agents would decide: the exact name, or a short name that means no other facet.
    pub(crate) fn can_do(&self, facet: &str) -> bool {
        let short = short_of(facet);
        let can = |server: &Server| {
            let has = |wanted: &str| server.handlers.iter().any(|name| name == wanted);
            let is_clear = || server.handlers.iter().all(|name| name == short || short_of(name) != short);
            // Scripts need no handler.
            facet == SCRIPT_TASK || has(facet) || (has(short) && is_clear())
        };
        self.0.iter().any(can)
    }
}

fn short_of(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// What to do about it.
pub(crate) fn advice(facet: &str, flag: &str) -> String {
    if facet == SCRIPT_TASK {
        return format!("no agent is online to run scripts: start `afl agent{flag}`");
    }
    format!(
        "no agent that is online has a handler for `{facet}`: register one with \
         `afl handlers register {facet} MODULE{flag}` and start `afl agent{flag}`"
    )
}
