//! Reports why a command failed: as text on standard error, and with `--json` as one object on standard output.

use std::env;

use afl_lang::render::Color;
use clap::ArgMatches;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::outcome;
use crate::output;
use crate::store;

/// The commands that report a failure as the outcome of a run, even if there is no run.
const OUTCOMES: [&str; 4] = ["run", "start", "resume", "retry"];
const JSON: &str = "json";

/// Ends a command whose line cannot be understood, or that only asks for help.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    let words: Vec<String> = env::args_os().skip(1).filter_map(|word| word.into_string().ok()).collect();
    let is_json = words.iter().any(|word| word.strip_prefix("--") == Some(JSON));
    if error.use_stderr() && is_json {
        let text = error.render().to_string();
        let reason = text.split("\n\n").next().unwrap_or_default();
        let failure = Failure::BadLine { reason: reason.trim_start_matches("error: ").to_owned() };
        let form = Form::of(words.first().map(String::as_str));
        // When standard output cannot be written either, the exit code alone reports the failure.
        form.print(&failure, &store::Options::default()).ok();
    }
    error.exit()
}

/// How a command reports its failure.
pub(crate) struct Complaint {
    form: Form,
    /// For the commands that are suggested.
    store: store::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    Object,
    Outcome,
}

impl Complaint {
    /// As the command line asks.
    pub(crate) fn of(line: &ArgMatches) -> Self {
        let mut command = line;
        while let Some((_, action)) = command.subcommand() {
            command = action;
        }
        let is_json = command.try_get_one(JSON).ok().flatten().copied().unwrap_or(false);
        let form = if is_json { Form::of(line.subcommand_name()) } else { Form::Text };
        Self { form, store: store::Options::of(command) }
    }

    pub(crate) fn tell(&self, failure: &Failure, color: Color) -> Exit {
        output::say(&failure.text(&self.store, color));
        // If writing standard output is the failure, standard error has it already.
        self.form.print(failure, &self.store).ok();
        failure.exit()
    }
}

impl Form {
    /// That of a command which prints JSON.
    fn of(command: Option<&str>) -> Self {
        match command {
            Some(name) if OUTCOMES.contains(&name) => Self::Outcome,
            Some(_) | None => Self::Object,
        }
    }

    fn print(self, failure: &Failure, store: &store::Options) -> Result<(), Failure> {
        match self {
            Self::Text => Ok(()),
            Self::Object => output::json(&object(failure, store)),
            Self::Outcome => output::json(&outcome::without_end(failure, store)),
        }
    }
}

fn object(failure: &Failure, store: &store::Options) -> Value {
    let mut error = json!({"message": failure.to_string()});
    if let Some(help) = failure.help(store) {
        error["help"] = help.into();
    }
    json!({ "error": error })
}
