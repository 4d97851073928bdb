//! How a process ended, for people and for programs.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::handler::HandlerFailure;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Exited(i32),
    Signaled(i32),
}

impl Ending {
    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signaled(signal.unwrap_or_default()),
        }
    }

    /// Adds what programs judge by.
    pub(crate) fn describe(self, failure: HandlerFailure) -> HandlerFailure {
        match self {
            Self::Exited(code) => failure.with("exit_code", code),
            Self::Signaled(signal) => failure.with("signal", signal),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signaled(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {name}"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

/// Those that end a process which did not ask for them.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL (perhaps the machine ran out of memory)",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}
