//! The handlers that do the tasks of a run in this process: the mock, and those given.

use std::future::ready;

use afl_agents::handler::concurrent;
use afl_agents::registration::find;
use afl_agents::worker::{Config, Profile, Worker};
use afl_engine::policy::names_capability;
use afl_lang::program::Program;
use afl_lang::render::Color;
use afl_runtime::Service;
use afl_runtime::view::ProgramNeeds;

use crate::color::{self, paint};
use crate::failure::Failure;
use crate::handlers::HandlerSet;
use crate::mock::{Mock, MockHandlers};
use crate::output;

/// As others see the holder of a task.
const SERVICE_NAME: &str = "afl-run";
/// How many handlers are in work at once.
const AT_ONCE: usize = 8;
/// A command that dies keeps its tasks for so long.
const LEASE_MS: u64 = 15_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct LocalHandlers {
    /// Goes before all others.
    mock: MockHandlers,
    given: HandlerSet,
    /// The capabilities that tasks may need.
    capabilities: Vec<String>,
    /// Whether the program has `script` blocks.
    scripts: bool,
}

impl LocalHandlers {
    /// For a workflow of a program. Warns of facets that none of them can do.
    pub(crate) fn new(
        mock: Option<&Mock>,
        given: HandlerSet,
        capabilities: &[String],
        program: &Program,
        workflow: &str,
        color: Color,
    ) -> Result<Self, Failure> {
        let needs = ProgramNeeds::of(program, workflow);
        let mock = mock.map(|mock| mock.handlers_of(program)).transpose()?.unwrap_or_default();
        if !given.is_empty() {
            let undone = needs.events.iter().filter(|facet| !mock.contains_key(*facet));
            for trouble in undone.filter_map(|facet| find(&given.registrations, facet).err()) {
                let warning = paint("warning:", color::HELP, color);
                output::say(&format!("{warning} {trouble}; the run waits where it needs that\n"));
            }
        }
        Ok(Self { mock, given, capabilities: capabilities.to_vec(), scripts: needs.scripts })
    }

    pub(crate) fn worker(self, service: Service) -> Result<Worker, Failure> {
        let config = Config {
            service_name: SERVICE_NAME.to_owned(),
            capabilities: self.capabilities,
            max_concurrent: AT_ONCE,
            lock_duration_ms: LEASE_MS,
            ..Config::of(Profile::Poller)
        };
        let worker = Worker::new(service, config)?;
        for (facet, handler) in self.mock {
            worker.stand_in(&facet, concurrent(move |call| ready(handler.handle(&call))));
        }
        if self.given.is_empty() && !self.scripts {
            return Ok(worker);
        }
        let hosts = self.given.hosts(&[])?;
        Ok(worker.with_hosts(hosts).with_registrations(self.given.registrations))
    }
}

/// Reads the name of a capability from the command line.
pub(crate) fn capability(name: &str) -> Result<String, String> {
    if names_capability(name) {
        return Ok(name.to_owned());
    }
    Err("write letters, digits, `-`, `_`, `.` or `:`".to_owned())
}
