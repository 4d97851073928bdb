//! How errors of the service end a command, and what to do about them.

use afl_runtime::Error;
use afl_store::store::Error::Unreadable;

use crate::exit::Exit;
use crate::shell::word;
use crate::store;

pub(super) fn exit(error: &Error) -> Exit {
    match error {
        Error::Store(_)
        | Error::UnknownProgram { .. }
        | Error::Program { .. }
        | Error::Busy { .. }
        | Error::StartedByOthers { .. }
        | Error::ChannelBusy { .. }
        | Error::DrivenAlready => Exit::Inaccessible,
        Error::UnknownRun { .. }
        | Error::AmbiguousRun { .. }
        | Error::UnknownWorkflow { .. }
        | Error::WhichWorkflow(_)
        | Error::Inputs(_)
        | Error::KeyTaken { .. }
        | Error::BadKey { .. }
        | Error::Ended { .. }
        | Error::NotDamaged { .. }
        | Error::NewerRelease { .. }
        | Error::RecordNotDamaged { .. }
        | Error::UnknownRecord { .. }
        | Error::UnknownStep { .. }
        | Error::NothingFailed { .. }
        | Error::NotBegun { .. }
        | Error::BadRequest { .. }
        | Error::Unanswerable { .. }
        | Error::FailedAlready { .. }
        | Error::Misfit { .. }
        | Error::Lacks { .. }
        | Error::NeedsResult { .. }
        | Error::Undecided { .. }
        | Error::NotOnline { .. }
        | Error::UnknownNotification { .. }
        | Error::Channel(_)
        | Error::UnknownChannel { .. }
        | Error::ChannelHolds { .. }
        | Error::TooManyChannels { .. }
        | Error::NotAFeed { .. }
        | Error::Refused(_)
        | Error::Canceling { .. } => Exit::WrongUse,
    }
}

/// What to do about it; `store` is the one that the command was given.
pub(super) fn help(error: &Error, store: &store::Options) -> Option<String> {
    let command = |command: &str| store.command(command);
    let of = |verb: &str, what: &str| store.command(&format!("{verb} {}", word(what)));
    match error {
        Error::UnknownRun { .. } => Some(format!("{} lists all runs of this store", command("runs"))),
        Error::NotBegun { state, .. } if !state.is_terminal() => {
            let agent = command("agent --profile service");
            Some(format!("{agent} starts it; {} shows how it stands", command("tasks")))
        }
        Error::UnknownStep { run, .. } => Some(format!("{} lists its steps", of("show", &run.0))),
        Error::WhichWorkflow(names) if names.is_empty() => {
            Some("declare a `workflow`; a facet cannot be started".into())
        }
        Error::WhichWorkflow(_) => Some("name it with `--workflow`".into()),
        Error::NothingFailed { run, .. } => {
            let [why, resume] = ["why", "resume"].map(|verb| of(verb, &run.0));
            Some(format!("{why} tells how it stands; if it waits, {resume} goes on with it"))
        }
        Error::NotOnline { .. } => {
            Some(format!("{} lists the agents; without `--on` any of them takes it", command("servers")))
        }
        Error::UnknownNotification { .. } => {
            Some(format!("{} lists them with their ids", command("notifications")))
        }
        Error::UnknownChannel { .. } => {
            Some(format!("{} lists all channels of this store", command("outbox list")))
        }
        Error::ChannelHolds { name, .. } => {
            let [show, drop] = ["outbox show", "outbox remove --drop"].map(|verb| of(verb, name));
            Some(format!("{show} says why; {drop} deletes them"))
        }
        Error::NotAFeed { name } => Some(format!("{} says how it stands", of("outbox show", name))),
        Error::TooManyChannels { .. } => Some(format!("{} takes one away", command("outbox remove NAME"))),
        Error::FailedAlready { run, path } => {
            Some(format!("{} tries it again", of(&format!("task retry {run}"), path)))
        }
        Error::NeedsResult { run, path, .. } => {
            let done = command(&format!("task done {run} {} --result JSON", word(path)));
            Some(format!("{done} says what it returns"))
        }
        Error::Undecided { run, .. } => Some(format!("{} has the commands to decide by", of("why", &run.0))),
        Error::Store(Unreadable { .. }) => Some(format!("{} tells what is damaged", command("doctor"))),
        Error::Store(_)
        | Error::AmbiguousRun { .. }
        | Error::UnknownProgram { .. }
        | Error::Program { .. }
        | Error::UnknownWorkflow { .. }
        | Error::Inputs(_)
        | Error::KeyTaken { .. }
        | Error::BadKey { .. }
        | Error::Ended { .. }
        | Error::NotDamaged { .. }
        | Error::NewerRelease { .. }
        | Error::RecordNotDamaged { .. }
        | Error::UnknownRecord { .. }
        | Error::Unanswerable { .. }
        | Error::Misfit { .. }
        | Error::Lacks { .. }
        | Error::Refused(_)
        | Error::Canceling { .. }
        | Error::Busy { .. }
        | Error::StartedByOthers { .. }
        | Error::NotBegun { .. }
        | Error::BadRequest { .. }
        | Error::Channel(_)
        | Error::ChannelBusy { .. }
        | Error::DrivenAlready => None,
    }
}
