//! Tells why a command failed: people on standard error, and programs that read JSON by one object on standard output.

use afl_lang::render::Color;
use clap::ArgMatches;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::store;

/// What is told as the outcome of a run, whether there is one or not.
const OUTCOMES: [&str; 4] = ["run", "start", "resume", "retry"];
const JSON: &str = "json";

/// How the user of a command is told.
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
        let form = match line.subcommand_name() {
            _ if !is_json => Form::Text,
            Some(name) if OUTCOMES.contains(&name) => Form::Outcome,
            Some(_) | None => Form::Object,
        };
        Self { form, store: store::Options::of(command) }
    }

    pub(crate) fn tell(&self, failure: &Failure, color: Color) -> Exit {
        output::say(&failure.text(&self.store, color));
        let told = match self.form {
            Form::Text => Ok(()),
            Form::Object => output::json(&self.object(failure)),
            Form::Outcome => output::json(&Outcome::without_end(failure, &self.store)),
        };
        // When standard output is what failed, it was said above.
        told.map_or_else(|_| failure.exit(), |()| failure.exit())
    }

    fn object(&self, failure: &Failure) -> Value {
        let mut error = json!({"message": failure.to_string()});
        if let Some(help) = failure.help(&self.store) {
            error["help"] = help.into();
        }
        json!({ "error": error })
    }
}
