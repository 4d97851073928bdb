//! The work that a worker accepts: functions of this process, registrations of the store, system tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_runtime::agent::{HandlerMatch, match_handler};

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
    topics: Option<Topics>,
    /// For system tasks, in the profile that does them.
    system: BTreeMap<String, Arc<dyn Handler>>,
}

impl Directory {
    pub(super) fn new(topics: Option<Topics>, system: BTreeMap<String, Arc<dyn Handler>>) -> Self {
        Self { topics, system, ..Self::default() }
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
        let registered = self.registrations.iter().map(|registration| registration.facet_name.as_str());
        let all = self.functions.keys().map(String::as_str).chain(registered);
        let mut names: Vec<String> = all.filter(|name| self.admits(name)).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    /// And the system tasks it does, as others need to know.
    pub(super) fn all_names(&self) -> Vec<String> {
        self.system.keys().cloned().chain(self.names()).collect()
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
            return self.system.get(name).or_else(offer).cloned().ok_or_else(unknown);
        }
        if !self.admits(name) {
            return Err(unknown());
        }
        // A function goes before a registration of the same name.
        let registered = self.registrations.iter().map(|it| it.facet_name.as_str()).zip(&self.registered);
        let functions = self.functions.iter().map(|(name, handler)| (name.as_str(), handler));
        match match_handler(functions.chain(registered), name) {
            HandlerMatch::Exact(handler) | HandlerMatch::Short(handler) => Ok(handler.clone()),
            HandlerMatch::Ambiguous { short, other } => Err(NoHandler::ambiguous(name, short, other)),
            HandlerMatch::Missing => self.default.clone().ok_or_else(unknown),
        }
    }

    fn admits(&self, name: &str) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.admit(name))
    }
}
