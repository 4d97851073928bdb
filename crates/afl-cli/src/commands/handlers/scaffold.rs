//! `afl handlers scaffold`: typed Python functions for the event facets of a program, to be filled in.

use std::path::PathBuf;

use afl_lang::Validation;
use afl_lang::render::Color;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::Trouble;
use crate::input;
use crate::output::{self, Target};
use crate::report::{self, Tally};
use crate::stubs;

#[derive(Args)]
pub(super) struct Options {
    /// Files or folders (every .afl file below); together they are one program
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// A file or folder whose declarations can be used; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    library: Vec<PathBuf>,
    /// Write to this file, which must not be there yet; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "handlers.py")]
    output: PathBuf,
}

pub(super) fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let sources = input::program(&options.files, &options.library)?;
    let compiled = afl_lang::compile(&sources, Validation::Require);
    let Some(program) = compiled.program else {
        report::refuse(color, "scaffolded", &sources, &compiled.diagnostics)?;
        return Err(Failure::Mistakes { tally: Tally::of(&compiled.diagnostics).to_string() });
    };
    let text = stubs::python(&program).ok_or(Trouble::NoEventFacets)?;
    let target = Target::new(Some(&options.output));
    match &target {
        Target::File(path) if path.exists() => {
            return Err(Trouble::Exists { path: path.clone() }.into());
        }
        Target::File(_) | Target::Stdout => target.write(|out| out.write_all(text.as_bytes()))?,
    }
    if let Target::File(path) = &target {
        let path = path.display();
        output::say(&format!("wrote {path}; fill in its functions, then run with `--handlers {path}`\n"));
    }
    Ok(Exit::Fine)
}
