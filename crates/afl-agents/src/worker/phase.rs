//! Where a worker stands between its start and its end.

use afl_runtime::server::ServerState;
use serde::Serialize;

/// `ServerState`, and within `shutdown` how far the end is: work is finished, then stopped and given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPhase {
    /// It has never been started.
    Idle,
    Startup,
    Running,
    /// It claims nothing more, and finishes what it has begun.
    Draining,
    /// The time for that is over: handlers are stopped, and their tasks given back.
    Stopping,
    Ended,
    /// It cannot go on.
    Broken,
}

impl WorkerPhase {
    pub const fn state(self) -> ServerState {
        match self {
            Self::Idle | Self::Startup => ServerState::Startup,
            Self::Running => ServerState::Running,
            Self::Draining | Self::Stopping | Self::Ended => ServerState::Shutdown,
            Self::Broken => ServerState::Error,
        }
    }
}
