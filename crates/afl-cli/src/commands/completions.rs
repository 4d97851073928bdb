//! `afl completions`: what a shell needs to complete `afl`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Target;

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

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    // Into memory first, since the generator panics when its reader goes away.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "afl", &mut script);
    Target::Stdout.write(|out| out.write_all(&script))
}
