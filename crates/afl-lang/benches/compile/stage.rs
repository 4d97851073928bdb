//! The measured stages of a compilation; each gets the output of the stages before it.

use std::hint::black_box;
use std::io;

use afl_lang::check;
use afl_lang::format::format;
use afl_lang::program::{Emit, Program, load};
use afl_lang::source::{FileId, Sources};
use afl_lang::syntax::parse;

use crate::timing::Clock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Parse,
    Check,
    /// The canonical bytes and their hash.
    Emit,
    /// The JSON document, its hash included.
    Document,
    Load,
    Format,
    /// From text to hash.
    Whole,
}

impl Stage {
    pub(crate) const ALL: [Self; 7] =
        [Self::Parse, Self::Check, Self::Emit, Self::Document, Self::Load, Self::Format, Self::Whole];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Check => "check",
            Self::Emit => "emit (hash)",
            Self::Document => "emit (document)",
            Self::Load => "load",
            Self::Format => "format",
            Self::Whole => "parse+check+emit",
        }
    }
}

/// A text, ready for every stage.
pub(crate) struct Input {
    sources: Sources,
}

impl Input {
    pub(crate) fn new(text: &str) -> Self {
        Self { sources: Sources::one("bench.afl", text) }
    }

    fn text(&self) -> &str {
        &self.sources.0[0].text
    }

    /// The program, mistakes or not.
    fn program(&self) -> Program {
        let trees = [parse(FileId(0), self.text()).tree];
        check(&self.sources, &trees).0
    }

    /// Seconds that the stage takes; what it needs is made before, what it made is dropped after.
    pub(crate) fn time(&self, stage: Stage) -> f64 {
        match stage {
            Stage::Parse => timed(|| parse(FileId(0), self.text())),
            Stage::Check => {
                let trees = [parse(FileId(0), self.text()).tree];
                timed(|| check(&self.sources, &trees))
            }
            Stage::Emit => {
                let program = self.program();
                timed(|| program.hash())
            }
            Stage::Document => {
                let program = self.program();
                timed(|| program.emit(Emit::WHOLE).write_to(&mut io::sink()))
            }
            Stage::Load => {
                let document = self.program().emit(Emit::WHOLE).to_vec();
                timed(|| load(&document).expect("an emitted document loads"))
            }
            Stage::Format => timed(|| format(self.text())),
            Stage::Whole => timed(|| {
                let trees = [parse(FileId(0), self.text()).tree];
                let checked = check(&self.sources, &trees);
                (checked.0.hash(), checked, trees)
            }),
        }
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let clock = Clock::start();
    let made = black_box(work());
    let seconds = clock.seconds();
    drop(made);
    seconds
}
