//! Why a command could not do its work, and what the user can do about it.

mod hint;

use std::io::{Error, ErrorKind};

use afl_engine::id::RunId;
use afl_lang::graph::GraphError;
use afl_lang::render::Color;
use afl_runtime::Error as ServiceError;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::handlers::Trouble;
use crate::stop::Signal;
use crate::store;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot read {name}: {}", reason(source, "file"))]
    Unreadable { name: String, sought: FileRole, source: Error },
    #[error("cannot read {name}: it is not UTF-8 text, see the byte {byte:#04x} at offset {offset}")]
    NotText { name: String, byte: u8, offset: usize },
    #[error("cannot write {name}: {}", reason(source, "folder"))]
    Unwritable { name: String, source: Error },
    #[error("there is no .afl file in {folder}")]
    NoSources { folder: String },
    /// It is shown already.
    #[error("{reason}")]
    BadLine { reason: String },
    #[error("standard input is formatted alone, not together with files")]
    StdinNotAlone,
    #[error("{0}")]
    NoGraph(GraphError),
    #[error("there is no code `{code}`")]
    UnknownCode { code: String, closest: Option<&'static str> },
    /// The messages are shown already.
    #[error("the program has mistakes: {tally}")]
    Mistakes { tally: String },
    #[error("the label `{name}` is given twice")]
    LabelTwice { name: String },
    #[error("`{text}` is no `NAME=VALUE`")]
    NotAPair { text: String },
    #[error("cannot read inputs from {name}: {reason}")]
    BadInputs { name: String, reason: String },
    #[error("the inputs of `{workflow}` are refused: {}", problems.join("; "))]
    RefusedInputs { workflow: String, problems: Vec<String> },
    #[error("cannot use {name} as a mock: {reason}")]
    BadMock { name: String, reason: String },
    #[error("{file} answers `{name}`, which fits several facets: {}", facets.join(", "))]
    AmbiguousMock { file: String, name: String, facets: Vec<String> },
    #[error("{file} answers `{name}`, which is no event facet of the program")]
    UnknownMock { file: String, name: String, closest: Option<String> },
    #[error("`{url}` is no address of a store")]
    BadStoreUrl { url: String },
    #[error("a run that is only started, in a store in memory, is gone at once")]
    StartedInMemory,
    #[error("there is no store at {path}")]
    NoStore { path: String },
    #[error("cannot make the folder {folder} for the store here: {}", reason(source, "folder"))]
    NoFolder { folder: &'static str, source: Error },
    #[error("standard input cannot be both the program and its inputs")]
    StdinTwice,
    #[error("`{text}` is no time")]
    BadTime { text: String },
    #[error("run {run} has no iteration {iteration}: it has had {}", crate::report::count(*had, "iteration"))]
    NoIteration { run: String, iteration: u64, had: usize },
    #[error("cannot start threads: {source}")]
    NoThreads { source: Error },
    #[error("{0}")]
    Handlers(Trouble),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("stopped while starting")]
    StoppedStarting { signal: Signal },
    /// The command was working on this run; `resume` is the command that continues it.
    #[error("{}", without_advice(failure))]
    OfRun { run: RunId, resume: String, failure: Box<Failure> },
}

/// The use of a file that is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileRole {
    Sources,
    /// That of an input, as `@FILE`.
    Value,
    File,
}

impl FileRole {
    fn help(self) -> &'static str {
        match self {
            Self::Sources => {
                "check the name; a folder stands for every .afl file in it, `-` for standard input"
            }
            Self::Value => "check the name; a text that begins with `@` is written with `@@`",
            Self::File => "check the name, and the folder you are in",
        }
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        self.remedy(&store::Options::default()).0
    }

    /// The run that it is about, where that is known.
    pub(crate) fn run(&self) -> Option<&RunId> {
        match self {
            Self::OfRun { run, .. } => Some(run),
            Self::Service(error) => error.run(),
            _ => None,
        }
    }

    fn is_full(&self) -> bool {
        matches!(self, Self::Service(error) if error.is_full())
    }

    /// The text for the user, ending with a line break.
    pub(crate) fn text(&self, store: &store::Options, color: Color) -> String {
        let message = match self {
            Self::Mistakes { .. } | Self::BadLine { .. } => return String::new(),
            Self::RefusedInputs { workflow, problems } => {
                problems.iter().fold(format!("the inputs of `{workflow}` are refused:"), |text, problem| {
                    text + "\n  " + problem
                })
            }
            _ => self.to_string(),
        };
        let error = format!("{} {message}\n", paint("error:", color::ERROR, color));
        match self.help(store) {
            Some(help) => format!("{error}{} {help}\n", paint("help:", color::HELP, color)),
            None => error,
        }
    }

    /// The advice for the user; `store` is the one that the command was given.
    pub(crate) fn help(&self, store: &store::Options) -> Option<String> {
        self.remedy(store).1
    }

    /// How the command ends, and the advice.
    fn remedy(&self, store: &store::Options) -> (Exit, Option<String>) {
        let misuse = |advice: &str| (Exit::WrongUse, Some(advice.to_owned()));
        let inaccessible = |advice: &str| (Exit::Inaccessible, Some(advice.to_owned()));
        match self {
            Self::Unreadable { sought, source, .. } if source.kind() == ErrorKind::NotFound => {
                inaccessible(sought.help())
            }
            Self::NotText { .. } => inaccessible("save the file as UTF-8"),
            Self::Unwritable { source, .. } if source.kind() == ErrorKind::NotFound => {
                inaccessible("create the folder first")
            }
            Self::NoStore { .. } => {
                inaccessible("`afl run` and `afl start` make one; `--store` or AFL_STORE name another")
            }
            Self::NoFolder { .. } => {
                inaccessible("go to a folder that you may write, or name a store with `--store` or AFL_STORE")
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::NoThreads { .. } => {
                (Exit::Inaccessible, None)
            }
            Self::NoGraph(GraphError::SeveralWorkflows { .. }) => misuse("name it with `--workflow`"),
            Self::NoGraph(_) | Self::BadLine { .. } => (Exit::WrongUse, None),
            Self::NoSources { .. } => misuse("name another folder, or the files themselves"),
            Self::StdinNotAlone => misuse("run `afl fmt` twice"),
            Self::UnknownCode { closest: Some(code), .. } => misuse(&format!("did you mean `{code}`?")),
            Self::UnknownCode { closest: None, .. } => misuse("`afl explain` lists all codes"),
            Self::LabelTwice { .. } => misuse("leave one of them out: a label has one value"),
            Self::NotAPair { .. } => misuse("write the name, `=`, and the value"),
            Self::BadInputs { .. } => misuse("write an object, such as {\"name\": \"Ada\"}"),
            Self::RefusedInputs { .. } => {
                misuse("give each input with `--input NAME=VALUE`, or all with `--inputs FILE`")
            }
            Self::BadMock { .. } => misuse(
                "write {\"Facet\": {\"returns\": {…}}}; `error`, `echo`, `table` and `sequence` answer too",
            ),
            Self::AmbiguousMock { .. } => misuse("write the whole name"),
            Self::UnknownMock { closest: Some(facet), .. } => misuse(&format!("did you mean `{facet}`?")),
            Self::UnknownMock { closest: None, .. } => misuse("take it out of the file"),
            Self::BadStoreUrl { .. } => {
                let forms = store::forms(|kind| format!("{}{}", kind.form, kind.advice));
                misuse(&format!("write {forms}"))
            }
            Self::StartedInMemory => misuse("use `afl run`, or name a store that stays"),
            Self::StdinTwice => misuse("name a file for one of them"),
            Self::BadTime { .. } => misuse("write a span, such as 30d or 2h, or a date, such as 2026-01-31"),
            Self::NoIteration { .. } => misuse("iterations count from 1"),
            Self::Mistakes { .. } => (Exit::Mistakes, None),
            Self::Handlers(trouble) => trouble.remedy(store),
            Self::Service(error) => (hint::exit(error), hint::of(error, store)),
            Self::StoppedStarting { signal } => {
                (signal.exit(), Some(format!("{} lists the run if it was stored", store.command("runs"))))
            }
            Self::OfRun { run, resume, failure } => {
                (failure.exit(), failure.help_to_resume(run, resume).or_else(|| failure.help(store)))
            }
        }
    }

    /// The advice for a run that the store could not continue.
    fn help_to_resume(&self, run: &RunId, resume: &str) -> Option<String> {
        match self {
            Self::Service(error) if error.is_full() => {
                Some(format!("run {run} is kept; free space, then continue with {resume}"))
            }
            Self::Service(error) if error.is_of_store() => {
                Some(format!("run {run} is kept; continue with {resume}"))
            }
            _ => None,
        }
    }
}

/// The store advises to give the same command again, which would start another run.
fn without_advice(failure: &Failure) -> String {
    if failure.is_full() { "the disk of the store is full".into() } else { failure.to_string() }
}

/// The error in our words where the system's are for programmers; `missing` names the thing that may be absent.
fn reason(error: &Error, missing: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("no such {missing}"),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::NotADirectory => "a part of the path is no folder".into(),
        ErrorKind::StorageFull => "no space is left".into(),
        _ => error.to_string(),
    }
}
