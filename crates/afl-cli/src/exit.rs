//! How a command ends, as the shell sees it.

use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Fine = 0,
    /// The user's program has mistakes, or a run of it failed or was canceled.
    Mistakes = 1,
    /// The command line asks for something that is not there; clap ends with the same code.
    WrongUse = 2,
    /// A file or the store cannot be read or written.
    Inaccessible = 3,
    /// A run waits, and no handler here can do its work.
    Waiting = 4,
    /// The user pressed Ctrl-C; shells give this code too.
    Interrupted = 130,
    /// A supervisor sent SIGTERM; shells give this code too.
    Terminated = 143,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// A command that cannot end otherwise returns nothing.
impl From<()> for Exit {
    fn from((): ()) -> Self {
        Self::Fine
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
