//! How a command ends, as the shell sees it.

use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Fine,
    /// The user's program has mistakes, or a run of it failed or was canceled.
    Mistakes,
    /// The command line asks for something that is not there; clap ends with the same code.
    WrongUse,
    /// A file or the store cannot be read or written.
    Inaccessible,
    /// A run waits, and nobody here can answer.
    Waiting,
    /// The user pressed Ctrl-C; shells give this code too.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Mistakes => 1,
            Exit::WrongUse => 2,
            Exit::Inaccessible => 3,
            Exit::Waiting => 4,
            Exit::Interrupted => 130,
        })
    }
}
