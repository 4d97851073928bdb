//! The work that a worker accepts: functions of this process, registrations of the store, system tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::EXECUTE;
use afl_runtime::agent::{HandlerMatch, match_handler};

use super::config::shortest_lease;
use crate::handler::Handler;
use crate::host::Hosts;
use crate::registration::{NoHandler, Registration, Topics};

/// The name of every task that is no facet's begins so.
const SYSTEM: &str = "afl:";

/// The handlers of a worker, as one place to look a facet up.
#[derive(Clone, Default)]
pub(super) struct Directory {
    /// By whole names. They go before all other handlers.
    pub(super) stand_ins: BTreeMap<String, Arc<dyn Handler>>,
    /// Functions of this process, by the names of their facets, qualified or short.
    pub(super) functions: BTreeMap<String, Arc<dyn Handler>>,
    /// Does what nothing else does.
    pub(super) default: Option<Arc<dyn Handler>>,
    /// Registrations of this process alone.
    pub(super) own: Vec<Registration>,
    /// Its own and those of the store.
    registrations: Vec<Registration>,
    /// The handlers of the registrations, if there are hosts for them.
    registered: Vec<Arc<dyn Handler>>,
    pub(super) hosts: Option<Arc<Hosts>>,
    topics: Topics,
    /// Does the task that starts a run, in the profile that does it.
    execute: Option<Arc<dyn Handler>>,
    /// The lease of its tasks.
    lease: Duration,
}

/// A handler that could work on while another agent has its task.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a lease of {lease_ms} ms is too short for the handler of `{name}`, which needs {stop_ms} ms to stop: \
     it must be at least {least_ms} ms"
)]
pub struct ShortLease {
    pub name: String,
    pub lease_ms: u64,
    pub stop_ms: u64,
    pub least_ms: u64,
}

impl Directory {
    pub(super) fn new(topics: Topics, execute: Option<Arc<dyn Handler>>, lease: Duration) -> Self {
        Self { topics, execute, lease, ..Self::default() }
    }

    /// The first of this process's own handlers that its leases are too short for.
    pub(super) fn check_own(&self) -> Result<(), ShortLease> {
        let given =
            self.stand_ins.iter().chain(&self.functions).map(|(name, handler)| (name.as_str(), handler));
        let offered = self.hosts.iter().flat_map(|hosts| hosts.offers());
        let default = self.default.iter().map(|handler| ("any task", handler));
        let is_own = |name: &str| self.own.iter().any(|own| own.facet_name == name);
        let registered = self.registered().filter(|(name, _)| is_own(name));
        let mut all = given.chain(offered).chain(default).chain(registered);
        all.try_for_each(|(name, handler)| self.check_lease(name, handler))
    }

    /// The handlers of the store that its leases are too short for. It does not take their work.
    pub(super) fn unfit(&self) -> Vec<ShortLease> {
        self.registered().filter_map(|(name, handler)| self.check_lease(name, handler).err()).collect()
    }

    fn registered(&self) -> impl Iterator<Item = (&str, &Arc<dyn Handler>)> {
        self.registrations.iter().map(|it| it.facet_name.as_str()).zip(&self.registered)
    }

    fn check_lease(&self, name: &str, handler: &Arc<dyn Handler>) -> Result<(), ShortLease> {
        let least = shortest_lease(handler.kill_ladder());
        if self.lease >= least {
            return Ok(());
        }
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Err(ShortLease {
            name: name.to_owned(),
            lease_ms: millis(self.lease),
            stop_ms: millis(handler.kill_ladder()),
            least_ms: millis(least),
        })
    }

    pub(super) fn set_hosts(&mut self, hosts: Arc<Hosts>) {
        self.hosts = Some(hosts);
        self.resolve();
    }

    /// Says whether they are others than before.
    pub(super) fn set_registrations(&mut self, registrations: Vec<Registration>) -> bool {
        let changed = self.registrations != registrations;
        if changed {
            self.registrations = registrations;
            self.resolve();
        }
        changed
    }

    fn resolve(&mut self) {
        let hosts = self.hosts.iter();
        self.registered =
            hosts.flat_map(|hosts| self.registrations.iter().map(|it| hosts.handler(it))).collect();
    }

    /// All names that it has handlers for and may do, as they were registered.
    pub(super) fn names(&self) -> Vec<String> {
        let fit = self.registered().filter(|(name, handler)| self.check_lease(name, handler).is_ok());
        let unhosted = self.registrations.iter().filter(|_| self.hosts.is_none());
        let registered = fit.map(|(name, _)| name).chain(unhosted.map(|it| it.facet_name.as_str()));
        let all = self.functions.keys().map(String::as_str).chain(registered);
        let mut names: Vec<String> = all.filter(|name| self.topics.admit(name)).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    /// And the system tasks it does, as others need to know.
    pub(super) fn all_names(&self) -> Vec<String> {
        let system = self.execute.iter().map(|_| EXECUTE.to_owned());
        system.chain(self.names()).collect()
    }

    /// The handler for tasks of this name: the exact name first, then its last part.
    pub(super) fn find(&self, name: &str) -> Result<Arc<dyn Handler>, NoHandler> {
        let unknown = || NoHandler::Unknown { facet: name.to_owned() };
        if let Some(handler) = self.stand_ins.get(name) {
            return Ok(handler.clone());
        }
        if name.starts_with(SYSTEM) {
            let mut offers = self.hosts.iter().flat_map(|hosts| hosts.offers());
            let offer = || offers.find(|(offered, _)| *offered == name).map(|(_, handler)| handler);
            let execute = self.execute.as_ref().filter(|_| name == EXECUTE);
            return execute.or_else(offer).cloned().ok_or_else(unknown);
        }
        if !self.topics.admit(name) {
            return Err(unknown());
        }
        // A function goes before a registration of the same name.
        let registered = self.registered();
        let functions = self.functions.iter().map(|(name, handler)| (name.as_str(), handler));
        match match_handler(functions.chain(registered), name) {
            HandlerMatch::Exact(handler) | HandlerMatch::Short(handler) => {
                self.check_lease(name, handler).map(|()| handler.clone()).map_err(|_| unknown())
            }
            HandlerMatch::Ambiguous { short, other } => Err(NoHandler::ambiguous(name, short, other)),
            HandlerMatch::Missing => self.default.clone().ok_or_else(unknown),
        }
    }
}
