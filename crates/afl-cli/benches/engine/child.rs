//! This program again, as another process at the same store.

use std::env;
use std::process::Stdio;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, stdin};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::agent;
use crate::load::{self, Load};
use crate::place::{Opened, Spent};
use crate::usage;

/// The part that the other process plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Claims and answers tasks.
    Agent,
    /// Drives runs.
    Server,
    /// Takes one run of many steps to its end.
    Large,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Agent, Self::Server, Self::Large];

    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::Agent => "--agent",
            Self::Server => "--server",
            Self::Large => "--large",
        }
    }
}

/// Its report of itself, on request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) spent: Spent,
    pub(crate) resident_bytes: u64,
    pub(crate) peak_bytes: u64,
    /// Runs whose tasks it claimed since it was asked last, with the time since 1970.
    pub(crate) picked: Vec<(String, Duration)>,
}

pub(crate) struct Other {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// From its start to its first word.
    pub(crate) ready_after: Duration,
}

impl Other {
    /// Returns when it is ready for work.
    pub(crate) async fn start(role: Role, url: &str, size: usize) -> Self {
        let started = Instant::now();
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args([role.flag(), url, &size.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("this program starts again");
        let orders = child.stdin.take().expect("it is piped");
        let mut answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        answers.next_line().await.expect("it is readable").expect("it says that it is ready");
        Self { child, orders, answers, ready_after: started.elapsed() }
    }

    pub(crate) async fn tell(&mut self) -> Told {
        self.orders.write_all(b"tell\n").await.expect("it listens");
        let line = self.answers.next_line().await.expect("it is readable").expect("it answers");
        serde_json::from_str(&line).expect("it answers in JSON")
    }

    pub(crate) async fn stop(self) {
        let Self { mut child, orders, .. } = self;
        drop(orders);
        child.wait().await.expect("it ends with its input");
    }
}

/// The other process itself: says that it is ready, then answers each line until its input ends.
pub(crate) async fn run(role: Role, url: &str, size: usize) {
    let opened = Opened::at(url).await;
    let (picks, mut picked) = mpsc::unbounded_channel();
    match role {
        Role::Agent => {
            tokio::spawn(agent::work(opened.service.clone(), Some(picks)));
        }
        Role::Server => {
            let service = opened.service.clone();
            tokio::spawn(async move { service.serve(std::future::pending()).await });
            opened.service.stats().await.expect("the store works");
        }
        Role::Large => load::run(&opened, Load::Wide { steps: size }).await,
    }
    println!("ready");
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        let mut told = Told {
            spent: opened.spent(),
            resident_bytes: usage::resident_bytes(),
            peak_bytes: usage::peak_bytes(),
            picked: Vec::new(),
        };
        while let Ok((run, at)) = picked.try_recv() {
            told.picked.push((run, at.duration_since(UNIX_EPOCH).unwrap_or_default()));
        }
        println!("{}", serde_json::to_string(&told).expect("it has a JSON form"));
    }
}
