//! Whether messages are coloured, and how.

use std::env;
use std::io::{self, IsTerminal};

use afl_lang::render::Color;
use clap::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};

/// The colour of messages on standard error.
pub(crate) fn choose(choice: ColorChoice) -> Color {
    match choice {
        ColorChoice::Always => Color::Ansi,
        ColorChoice::Never => Color::Plain,
        ColorChoice::Auto => detect(),
    }
}

fn detect() -> Color {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == *"dumb");
    if refused || dumb || !io::stderr().is_terminal() { Color::Plain } else { Color::Ansi }
}

pub(crate) fn paint(text: &str, style: Style, color: Color) -> String {
    match color {
        Color::Ansi => format!("{style}{text}{style:#}"),
        Color::Plain => text.to_owned(),
    }
}

pub(crate) const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
pub(crate) const HELP: Style = AnsiColor::BrightCyan.on_default().bold();
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();
pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
