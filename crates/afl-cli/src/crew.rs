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
    /// For a workflow of a program. Says what nobody in it can do, and what the mock answers for nothing.
    pub(crate) fn new(
        mock: Option<&Mock>,
        given: Given,
        program: &Program,
        workflow: &str,
        color: Color,
    ) -> Result<Self, Failure> {
        let needs = needs::of(program, workflow);
        let (mock, mut warnings) = match mock {
            Some(mock) => mock.handlers_of(program).map(|(handlers, told)| (Agent::new(handlers), told))?,
            None => (Agent::default(), Vec::new()),
        };
        if !given.is_empty() {
            let undone = needs.events.iter().filter(|facet| !mock.answers(facet));
            for trouble in undone.filter_map(|facet| find(&given.registrations, facet).err()) {
                warnings.push(format!("{trouble}; the run waits where it needs that"));
            }
        }
        for warning in warnings {
            output::say(&format!("{} {warning}\n", paint("warning:", color::HELP, color)));
        }
        Ok(Self { mock, given, scripts: needs.scripts })
    }
}
