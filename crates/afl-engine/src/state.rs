//! The states of a step and the four straight paths through them.

use crate::wire::wire_enum;

wire_enum! {
    /// Where a step stands (document 003 §6).
    pub enum State ("state of a step") {
        Created = "state.statement.Created",
        InitBegin = "state.facet.initialization.Begin",
        InitEnd = "state.facet.initialization.End",
        FacetScriptsBegin = "state.facet.scripts.Begin",
        FacetScriptsEnd = "state.facet.scripts.End",
        /// On no path: the documents name it, and nothing enters it.
        StatementScriptsBegin = "state.statement.scripts.Begin",
        /// On no path, like its beginning.
        StatementScriptsEnd = "state.statement.scripts.End",
        MixinBlocksBegin = "state.mixin.blocks.Begin",
        MixinBlocksContinue = "state.mixin.blocks.Continue",
        MixinBlocksEnd = "state.mixin.blocks.End",
        MixinCaptureBegin = "state.mixin.capture.Begin",
        MixinCaptureEnd = "state.mixin.capture.End",
        EventTransmit = "state.EventTransmit",
        StatementBlocksBegin = "state.statement.blocks.Begin",
        StatementBlocksContinue = "state.statement.blocks.Continue",
        StatementBlocksEnd = "state.statement.blocks.End",
        StatementCaptureBegin = "state.statement.capture.Begin",
        StatementCaptureEnd = "state.statement.capture.End",
        BlockExecutionBegin = "state.block.execution.Begin",
        BlockExecutionContinue = "state.block.execution.Continue",
        BlockExecutionEnd = "state.block.execution.End",
        End = "state.statement.End",
        /// The step never changes again.
        Complete = "state.statement.Complete",
        /// The step failed; reachable from everywhere before `Complete`, so on no path.
        Error = "state.statement.Error",
    }
}

impl State {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Error)
    }

    /// The state after this one; `None` at the end of the path and beside it.
    pub fn next(self, path: Path) -> Option<Self> {
        let states = path.states();
        let at = states.iter().position(|state| *state == self)?;
        states.get(at + 1).copied()
    }
}

/// The way a step takes through the states; which one depends on what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    Statement,
    Yield,
    Schema,
    Block,
}

impl Path {
    pub const ALL: [Self; 4] = [Self::Statement, Self::Yield, Self::Schema, Self::Block];

    /// From `Created` to `Complete`.
    pub const fn states(self) -> &'static [State] {
        match self {
            Self::Statement => STATEMENT,
            Self::Yield => YIELD,
            Self::Schema => SCHEMA,
            Self::Block => BLOCK,
        }
    }
}

const STATEMENT: &[State] = &[
    State::Created,
    State::InitBegin,
    State::InitEnd,
    State::FacetScriptsBegin,
    State::FacetScriptsEnd,
    State::MixinBlocksBegin,
    State::MixinBlocksContinue,
    State::MixinBlocksEnd,
    State::MixinCaptureBegin,
    State::MixinCaptureEnd,
    State::EventTransmit,
    State::StatementBlocksBegin,
    State::StatementBlocksContinue,
    State::StatementBlocksEnd,
    State::StatementCaptureBegin,
    State::StatementCaptureEnd,
    State::End,
    State::Complete,
];

const YIELD: &[State] = &[
    State::Created,
    State::InitBegin,
    State::InitEnd,
    State::FacetScriptsBegin,
    State::FacetScriptsEnd,
    State::End,
    State::Complete,
];

const SCHEMA: &[State] = &[State::Created, State::InitBegin, State::InitEnd, State::End, State::Complete];

const BLOCK: &[State] = &[
    State::Created,
    State::BlockExecutionBegin,
    State::BlockExecutionContinue,
    State::BlockExecutionEnd,
    State::End,
    State::Complete,
];

/// The request that the work of a state makes. The documents set three flags instead, of which only these
/// combinations have a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The step goes on to its next state: `request_transition`, and with it `changed`.
    Advance,
    /// It stays in its state and is looked at again in the next iteration: `push_me`.
    Wait,
    /// It stays until something arrives from outside: no flag is set.
    Park,
}
