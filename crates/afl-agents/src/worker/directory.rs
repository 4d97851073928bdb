//! What a worker can do: functions of this process, registrations of the store, system tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::agent::{HandlerMatch, match_handler};
use afl_runtime::{Service, SystemTask};

use super::system;
use crate::handler::{Call, Handler, Outcome, perform};
use crate::hosts::Hosts;
use crate::registration::{NoHandler, Registration, Topics};

/// The task that a language host does for a script.
pub const SCRIPT_TASK: &str = "afl:script";
/// The name of every task that is no facet's begins so.
const SYSTEM: &str = "afl:";

/// `ToolRegistry` and the registrations, as one place to look a facet up.
#[derive(Clone, Default)]
pub(super) struct Directory {
    pub(super) functions: BTreeMap<String, Arc<dyn Handler>>,
    /// Does what nothing else does.
    pub(super) default: Option<Arc<dyn Handler>>,
    /// Of this process alone.
    pub(super) own: Vec<Registration>,
    /// Its own and those of the store.
    pub(super) registrations: Vec<Registration>,
    pub(super) hosts: Option<Arc<Hosts>>,
    pub(super) topics: Option<Topics>,
    /// For system tasks, in the profile that does them.
    pub(super) system: Option<Service>,
}

/// Who does the work of a task.
#[derive(Clone)]
pub(super) enum Hand {
    Function(Arc<dyn Handler>),
    Registered(Arc<Hosts>, Box<Registration>),
    Script(Arc<Hosts>),
    System(Box<Service>, SystemTask),
}

impl Directory {
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
        let system = self.system.iter().flat_map(|_| SystemTask::ALL).map(|task| task.name().to_owned());
        system.chain(self.names()).collect()
    }

    /// Who does the work of a task of this name; the exact name first, then its last part.
    pub(super) fn find(&self, name: &str) -> Result<Hand, NoHandler> {
        let unknown = || NoHandler::Unknown { facet: name.to_owned() };
        if name.starts_with(SYSTEM) {
            return match (&self.hosts, &self.system, name.parse()) {
                (Some(hosts), _, Err(_)) if name == SCRIPT_TASK => Ok(Hand::Script(hosts.clone())),
                (_, Some(service), Ok(task)) => Ok(Hand::System(Box::new(service.clone()), task)),
                (_, None, Ok(_)) | (_, _, Err(_)) => Err(unknown()),
            };
        }
        if !self.admits(name) {
            return Err(unknown());
        }
        match match_handler(self.offers(), name) {
            HandlerMatch::Exact(offer) | HandlerMatch::Short(offer) => Ok(offer.hand()),
            HandlerMatch::Ambiguous { short, other } => Err(NoHandler::ambiguous(name, short, other)),
            HandlerMatch::Missing => self.default.clone().map(Hand::Function).ok_or_else(unknown),
        }
    }

    /// A function goes before a registration of the same name.
    fn offers(&self) -> impl Iterator<Item = (&str, Offer<'_>)> {
        let functions =
            self.functions.iter().map(|(name, handler)| (name.as_str(), Offer::Function(handler)));
        let registered = self.hosts.iter().flat_map(|hosts| {
            let offer = |registration| Offer::Registered(hosts, registration);
            self.registrations.iter().map(move |it| (it.facet_name.as_str(), offer(it)))
        });
        functions.chain(registered)
    }

    fn admits(&self, name: &str) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.admit(name))
    }
}

/// A handler that is not taken yet.
#[derive(Clone, Copy)]
enum Offer<'a> {
    Function(&'a Arc<dyn Handler>),
    Registered(&'a Arc<Hosts>, &'a Registration),
}

impl Offer<'_> {
    fn hand(self) -> Hand {
        match self {
            Self::Function(handler) => Hand::Function(handler.clone()),
            Self::Registered(hosts, registration) => {
                Hand::Registered(hosts.clone(), Box::new(registration.clone()))
            }
        }
    }
}

impl Hand {
    /// Which version of a handler it is, for the history of a task; nothing where none was said.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Registered(_, registration) => registration.words(),
            Self::Function(_) | Self::Script(_) | Self::System(..) => String::new(),
        }
    }

    /// `silence` is the longest that the task's own policy allows.
    pub(super) async fn run(&self, call: Call, silence: Option<Duration>) -> Outcome {
        match self {
            Self::Function(handler) => perform(&**handler, call, silence).await,
            Self::Script(hosts) => hosts.run_script(call).await,
            Self::System(service, task) => system::run(service, *task, call).await,
            Self::Registered(hosts, registration) => {
                let timeout_ms = registration.timeout_of(silence);
                let registration = Registration { timeout_ms, ..(**registration).clone() };
                hosts.run(&registration, call).await
            }
        }
    }
}
