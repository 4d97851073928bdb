//! The one place that writes: data to standard output, talk to standard error.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use afl_lang::render::Color;
use clap::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};

use crate::failure::Failure;

pub(crate) struct Console {
    /// Of what goes to standard error.
    pub(crate) color: Color,
}

impl Console {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let color = match choice {
            ColorChoice::Always => Color::Ansi,
            ColorChoice::Never => Color::Plain,
            ColorChoice::Auto => detect(),
        };
        Self { color }
    }

    /// Writes what the user asked for. A reader that has seen enough, such as `head`, is no failure.
    pub(crate) fn data(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(source) if source.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::Unwritable { name: "standard output".into(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Tells the user something; when nobody listens there is nobody to complain to either.
    pub(crate) fn say(&self, text: &str) {
        io::stderr().lock().write_all(text.as_bytes()).ok();
    }

    pub(crate) fn fail(&self, failure: &Failure) {
        self.say(&format!("{} {failure}\n", self.paint("error:", AnsiColor::BrightRed)));
        if let Some(help) = failure.help() {
            self.say(&format!("{} {help}\n", self.paint("help:", AnsiColor::BrightCyan)));
        }
    }

    fn paint(&self, text: &str, color: AnsiColor) -> String {
        let style = match self.color {
            Color::Ansi => color.on_default().bold(),
            Color::Plain => Style::new(),
        };
        format!("{style}{text}{style:#}")
    }
}

fn detect() -> Color {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == *"dumb");
    if refused || dumb || !io::stderr().is_terminal() { Color::Plain } else { Color::Ansi }
}
