//! Which agents of a store are there, and what they can do.

use std::fmt::Write as _;

use afl_agents::worker::SCRIPT_TASK;
use afl_engine::task::DEFAULT_TASK_LIST;
use afl_runtime::agent::{HandlerMatch, match_handler};
use afl_runtime::server::{Server, ServerStatus};
use afl_runtime::{On, Service, Why};

use crate::failure::Failure;
use crate::shell::word;
use crate::store;

/// The agents that were heard of a short while ago.
pub(crate) struct Online(Vec<Server>);

impl Online {
    pub(crate) async fn of(service: &Service) -> Result<Self, Failure> {
        let now = service.now().await?;
        let all = service.collection::<Server>().readable().await?.into_iter().map(|(_, stored)| stored.item);
        Ok(Self(all.filter(|server| server.status(now) == ServerStatus::Online).collect()))
    }

    /// The facets that a run waits for and that none of them can take.
    pub(crate) fn unserved(&self, why: &Why) -> Vec<String> {
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
                | On::Driver
                | On::Failure(_)
                | On::Decision { .. } => {}
            }
        }
        unserved
    }

    /// As its agents would decide: the exact name, or a short name that means no other facet.
    pub(crate) fn can_do(&self, facet: &str, list: &str, needs: &[String]) -> bool {
        let gets = |server: &&Server| {
            server.task_lists.iter().any(|taken| taken == list)
                && needs.iter().all(|need| server.capabilities.contains(need))
        };
        let can = |server: &Server| {
            let offers = server.handlers.iter().map(|name| (name.as_str(), ()));
            let has = match match_handler(offers, facet) {
                HandlerMatch::Exact(()) | HandlerMatch::Short(()) => true,
                HandlerMatch::Ambiguous { .. } | HandlerMatch::Missing => false,
            };
            // Scripts need no handler.
            facet == SCRIPT_TASK || has
        };
        self.0.iter().filter(gets).any(can)
    }
}

/// What to do about it.
pub(crate) fn advice(facet: &str, list: &str, needs: &[String], store: &store::Options) -> String {
    let mut agent = "agent".to_owned();
    let mut who = "no agent that is online".to_owned();
    if list != DEFAULT_TASK_LIST {
        write!(agent, " --task-list {}", word(list)).expect(ANY_TEXT);
        write!(who, " for the task list `{list}`").expect(ANY_TEXT);
    }
    for need in needs {
        write!(agent, " --capability {need}").expect(ANY_TEXT);
        write!(who, " with `{need}`").expect(ANY_TEXT);
    }
    if facet == SCRIPT_TASK {
        return format!("{who} runs scripts: start {}", store.command(&agent));
    }
    format!(
        "{who} has a handler for `{facet}`: register one with {} and start {}",
        store.command(&format!("handlers register {facet} MODULE")),
        store.command(&agent)
    )
}

const ANY_TEXT: &str = "a string takes any text";
