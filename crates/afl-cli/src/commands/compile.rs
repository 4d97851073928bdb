//! `afl compile`: writes the compiled program.

use std::path::PathBuf;

use afl_lang::Validation;
use afl_lang::program::{Emit, JsonLayout, Locations, Provenance};
use afl_lang::render::Color;
use clap::Args;

use crate::failure::Failure;
use crate::input;
use crate::output::{self, Target};
use crate::report::{self, DiagnosticFormat, Tally};

const EXAMPLES: &str = "\
Examples:
  afl compile billing.afl                           write the program to standard output
  afl compile flow/ -o flow.json                    compile every .afl file below flow
  afl compile app.afl --library lib/ -o app.json    use declarations of a library
  afl compile --compact --no-locations app.afl      write few bytes";

/// Compile a program to JSON
///
/// All files of one call are one program. Nothing is written when the program has errors.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Files, folders (every .afl file below), or `-` for standard input
    #[arg(required_unless_present = "primary", value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// One more file or folder to compile; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    primary: Vec<PathBuf>,
    /// A file or folder whose declarations can be used; it gets no warnings; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    library: Vec<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    shape: Shape,
    /// Write the program even if names or types are wrong; text that cannot be parsed is still an error
    #[arg(long)]
    no_validate: bool,
}

/// The form of the written program.
#[derive(Args)]
struct Shape {
    /// Leave out where in the source each part stands
    #[arg(long)]
    no_locations: bool,
    /// Say which source each declaration is from
    #[arg(long)]
    include_provenance: bool,
    /// Write everything on one line
    #[arg(long)]
    compact: bool,
}

pub(crate) fn run(options: &Options, color: Color) -> Result<(), Failure> {
    let primary: Vec<PathBuf> = options.files.iter().chain(&options.primary).cloned().collect();
    let sources = input::program(&primary, &options.library)?;
    let validation = if options.no_validate { Validation::Skip } else { Validation::Require };
    let (program, diagnostics) = report::compile(&sources, validation, "written", color)?;
    report::show(color, DiagnosticFormat::Human, &sources, &diagnostics)?;
    let tally = Tally::of(&diagnostics);
    if tally.errors > 0 {
        output::say(&format!("the program is written with its mistakes: {tally}\n"));
    }
    let document = program.emit(options.shape.emit());
    Target::new(options.output.as_deref()).write(|mut out| {
        document.write_to(&mut out)?;
        out.write_all(b"\n")
    })
}

impl Shape {
    fn emit(&self) -> Emit {
        Emit {
            layout: if self.compact { JsonLayout::Compact } else { JsonLayout::Pretty },
            locations: if self.no_locations { Locations::Strip } else { Locations::Keep },
            provenance: if self.include_provenance { Provenance::Include } else { Provenance::Omit },
        }
    }
}
