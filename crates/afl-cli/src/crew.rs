//! Who does the tasks of a run in this process: the mock, and handlers.

use afl_agents::registration::find;
use afl_engine::policy::names_capability;
use afl_lang::program::Program;
use afl_lang::render::Color;
use afl_runtime::view::ProgramNeeds;

use crate::agent::Agent;
use crate::color::{self, paint};
use crate::failure::Failure;
use crate::handlers::Given;
use crate::mock::Mock;
use crate::output;

#[derive(Clone, Debug, Default)]
pub(crate) struct Crew {
    /// Goes before all handlers.
    pub(crate) mock: Agent,
    pub(crate) given: Given,
    /// What this process has that tasks may need.
    pub(crate) capabilities: Vec<String>,
    /// Whether the program has `script` blocks.
    pub(crate) scripts: bool,
}

impl Crew {
    /// For a workflow of a program. Says what nobody in it can do.
    pub(crate) fn new(
        mock: Option<&Mock>,
        given: Given,
        capabilities: &[String],
        program: &Program,
        workflow: &str,
        color: Color,
    ) -> Result<Self, Failure> {
        let needs = ProgramNeeds::of(program, workflow);
        let mock = match mock {
            Some(mock) => Agent::new(mock.handlers_of(program)?),
            None => Agent::default(),
        };
        if !given.is_empty() {
            let undone = needs.events.iter().filter(|facet| !mock.answers(facet));
            for trouble in undone.filter_map(|facet| find(&given.registrations, facet).err()) {
                let warning = paint("warning:", color::HELP, color);
                output::say(&format!("{warning} {trouble}; the run waits where it needs that\n"));
            }
        }
        Ok(Self { mock, given, capabilities: capabilities.to_vec(), scripts: needs.scripts })
    }
}

/// Reads the name of a capability from the command line.
pub(crate) fn capability(name: &str) -> Result<String, String> {
    if names_capability(name) {
        return Ok(name.to_owned());
    }
    Err("write letters, digits, `-`, `_`, `.` or `:`".to_owned())
}
