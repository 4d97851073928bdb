//! `afl agent`, as people start it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::work;
use crate::usage;

pub(crate) struct Agent {
    child: Child,
    pid: u32,
}

impl Agent {
    /// Returns when it is ready for work.
    pub(crate) async fn start(url: &str, folder: &Path, slots: usize) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_afl"))
            .args(["agent", "--store", url, "--max-concurrent", &slots.to_string()])
            .arg("--handlers")
            .arg(work::handlers(folder))
            .current_dir(folder)
            .env_remove("AFL_STORE")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("afl starts");
        let pid = child.id().expect("it runs");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        loop {
            let line = lines.next_line().await.expect("it is readable").expect("it says that it is ready");
            if line.starts_with("handlers:") {
                break;
            }
        }
        // Its output must not block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, pid }
    }

    /// Of its own and of the processes of its handlers.
    pub(crate) fn cpu(&self) -> Duration {
        usage::cpu_of(&self.pid.to_string())
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        usage::resident_bytes_of(&self.pid.to_string())
    }

    pub(crate) async fn stop(mut self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, Signal::TERM).expect("it runs");
        self.child.wait().await.expect("it ends");
    }
}
