//! How an error of the service ends a command, and which command helps.
//!
//! Libraries describe the error; only this file knows the commands of `afl`.

use afl_runtime::{Corruption, Error, InvalidRequest, NotFound, StateRefusal};

use crate::decide::UncertainStep;
use crate::exit::Exit;
use crate::shell::word;
use crate::store;

pub(super) fn exit(error: &Error) -> Exit {
    match error {
        Error::NotFound(_) | Error::Invalid(_) | Error::Refused(_) => Exit::WrongUse,
        Error::Contended(_) | Error::Unavailable(_) | Error::Damaged(_) => Exit::Inaccessible,
    }
}

/// The hint for an error; `store` is the one that the command was given.
pub(super) fn of(error: &Error, store: &store::Options) -> Option<String> {
    match error {
        Error::NotFound(missing) => not_found(missing, store),
        Error::Invalid(request) => invalid(request, store),
        Error::Refused(refusal) => refused(refusal, store),
        Error::Damaged(Corruption::Record(_)) if error.run().is_some() => {
            Some(format!("{} lists the damage", store.command("doctor")))
        }
        Error::Damaged(Corruption::MissingProgram { .. }) => Some(stores_program(store)),
        Error::Damaged(Corruption::Record(_) | Corruption::Program { .. })
        | Error::Contended(_)
        | Error::Unavailable(_) => None,
    }
}

fn not_found(missing: &NotFound, store: &store::Options) -> Option<String> {
    let command = |command: &str| store.command(command);
    match missing {
        NotFound::Run { .. } => Some(format!("{} lists all runs of this store", command("runs"))),
        NotFound::Step { run, .. } => Some(format!("{} lists its steps", with(store, "show", &run.0))),
        NotFound::Program { .. } => Some(stores_program(store)),
        NotFound::Server { .. } => {
            Some(format!("{} lists the agents; without `--on` any of them takes it", command("servers")))
        }
        NotFound::Notification { .. } => {
            Some(format!("{} lists them with their ids", command("notifications")))
        }
        NotFound::Channel { .. } => {
            Some(format!("{} lists all channels of this store", command("outbox list")))
        }
        NotFound::Record { .. } => Some(format!("{} lists those that are damaged", command("doctor"))),
        NotFound::WaitingStep { .. } | NotFound::Workflow { .. } => None,
    }
}

fn invalid(request: &InvalidRequest, store: &store::Options) -> Option<String> {
    match request {
        InvalidRequest::WhichWorkflow(names) if names.is_empty() => {
            Some("declare a `workflow`; a facet cannot be started".into())
        }
        InvalidRequest::WhichWorkflow(_) => Some("name it with `--workflow`".into()),
        InvalidRequest::NeedsResult { run, path, .. } => {
            let done = store.command(&format!("task done {run} {} --result JSON", word(path)));
            Some(format!("{done} says what it returns"))
        }
        InvalidRequest::AmbiguousRun { .. }
        | InvalidRequest::Inputs(_)
        | InvalidRequest::Cursor(_)
        | InvalidRequest::Key { .. }
        | InvalidRequest::KeyText
        | InvalidRequest::Channel(_)
        | InvalidRequest::Misfit { .. }
        | InvalidRequest::Lacks { .. }
        | InvalidRequest::ResultTooLarge { .. }
        | InvalidRequest::SystemTask { .. } => None,
    }
}

fn refused(refusal: &StateRefusal, store: &store::Options) -> Option<String> {
    let of = |verb: &str, what: &str| with(store, verb, what);
    match refusal {
        StateRefusal::NotBegun { state, .. } if !state.is_terminal() => {
            let agent = store.command("agent --profile service");
            Some(format!("{agent} starts it; {} shows how it stands", store.command("tasks")))
        }
        StateRefusal::NothingFailed { run, .. } => {
            let [why, resume] = ["why", "resume"].map(|verb| of(verb, &run.0));
            Some(format!("{why} shows its state; if it waits, {resume} continues it"))
        }
        StateRefusal::Unstorable { run, .. } => Some(format!("{} ends it", of("cancel", &run.0))),
        StateRefusal::FailedAlready { run, path } => {
            Some(format!("{} tries it again", of(&format!("task retry {run}"), path)))
        }
        StateRefusal::Undecided { run, path, must_return, .. } => {
            let undecided = UncertainStep { run, path, must_return: must_return.clone() };
            Some(undecided.advice(&store.flag()))
        }
        StateRefusal::ChannelHolds { name, .. } => {
            let [show, drop] = ["outbox show", "outbox remove --drop"].map(|verb| of(verb, name));
            Some(format!("{show} says why; {drop} deletes them"))
        }
        StateRefusal::TooManyChannels { .. } => {
            Some(format!("{} takes one away", store.command("outbox remove NAME")))
        }
        StateRefusal::NotAFeed { name } => Some(format!("{} says how it stands", of("outbox show", name))),
        StateRefusal::NotBegun { .. }
        | StateRefusal::KeyTaken { .. }
        | StateRefusal::Ended { .. }
        | StateRefusal::Canceling { .. }
        | StateRefusal::Unanswerable { .. }
        | StateRefusal::Task(_)
        | StateRefusal::NotDamaged { .. }
        | StateRefusal::RecordNotDamaged { .. }
        | StateRefusal::NewerRelease { .. }
        | StateRefusal::DrivenAlready => None,
    }
}

fn stores_program(store: &store::Options) -> String {
    format!("{} of the same source stores it", store.command("start FILE"))
}

/// The command about one thing.
fn with(store: &store::Options, verb: &str, what: &str) -> String {
    store.command(&format!("{verb} {}", word(what)))
}
