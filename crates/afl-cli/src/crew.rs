//! Who does the tasks of a run in this process: the mock, and handlers.

use afl_agents::registration::find;
use afl_lang::program::Program;
use afl_lang::render::Color;

use crate::agent::Agent;
use crate::color::{self, paint};
use crate::failure::Failure;
use crate::handlers::Given;
use crate::mock::Mock;
use crate::needs::{self, Scripts};
use crate::output;

#[derive(Clone, Debug, Default)]
pub(crate) struct Crew {
    /// Goes before all handlers.
    pub(crate) mock: Agent,
    pub(crate) given: Given,
    pub(crate) scripts: Scripts,
}

impl Crew {
    /// For a workflow of a program. Says what nobody in it can do.
    pub(crate) fn new(
        mock: Option<&Mock>,
        given: Given,
        program: &Program,
        workflow: &str,
        color: Color,
    ) -> Result<Self, Failure> {
        let needs = needs::of(program, workflow);
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
        Ok(Self { mock, given, scripts: needs.scripts })
    }
}
