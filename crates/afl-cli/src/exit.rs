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
    /// A run waits, and no handler here can do its work.
    Waiting,
    /// The user pressed Ctrl-C; shells give this code too.
    Interrupted,
    /// A supervisor sent SIGTERM; shells give this code too.
    Terminated,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Mistakes => 1,
            Self::WrongUse => 2,
            Self::Inaccessible => 3,
            Self::Waiting => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
