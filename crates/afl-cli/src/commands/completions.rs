//! `afl completions`: what a shell needs to complete `afl`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  afl completions bash > ~/.local/share/bash-completion/completions/afl
  afl completions fish > ~/.config/fish/completions/afl.fish
  afl completions zsh > ~/.zfunc/_afl";

/// Print a script that completes `afl` in a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The shell to complete in
    shell: Shell,
}

pub(crate) fn run(options: &Options, console: &Console) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "afl", &mut script);
    console.data(&script)?;
    Ok(Exit::Fine)
}
