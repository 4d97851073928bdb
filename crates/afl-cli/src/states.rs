//! States of steps in a few words.

use afl_engine::state::State;

/// The activity of a step in this state.
pub(crate) fn phrase(state: State) -> &'static str {
    match state {
        State::Created => "is to begin",
        State::InitBegin | State::InitEnd => "evaluates its arguments",
        State::FacetScriptsBegin
        | State::FacetScriptsEnd
        | State::StatementScriptsBegin
        | State::StatementScriptsEnd => "runs its script",
        State::MixinBlocksBegin
        | State::MixinBlocksContinue
        | State::MixinBlocksEnd
        | State::MixinCaptureBegin
        | State::MixinCaptureEnd => "waits for its mixins",
        State::EventTransmit => "waits for its event",
        State::StatementBlocksBegin | State::StatementBlocksContinue | State::StatementBlocksEnd => {
            "waits for its blocks"
        }
        State::StatementCaptureBegin | State::StatementCaptureEnd => "collects its results",
        State::BlockExecutionBegin | State::BlockExecutionContinue | State::BlockExecutionEnd => {
            "waits for its steps"
        }
        State::End => "ends",
        State::Complete => "is complete",
        State::Error => "failed",
    }
}
