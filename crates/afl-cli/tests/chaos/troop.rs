//! The processes, and the faults injected into them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use afl_store::seed::SeededRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::site::Site;
use crate::starter;

const AGENTS: usize = 3;
/// Short, so that the work of the dead is soon done by others.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// How often it is looked whether the time for the next deed has come.
const LOOK: Duration = Duration::from_millis(5);
/// A deed is done when the handlers have left so many more marks, so that there are as many on slow machines as on
/// fast ones.
const MARKS_BETWEEN: (usize, usize) = (10, 80);
const MARK_BYTES: u64 = 45;
/// One deed in so many stops an agent for longer than its lease; the others kill.
const FREEZE_ONE_IN: usize = 4;

pub(crate) struct Troop<'a> {
    site: &'a Site,
    seed: u64,
    runs: usize,
    chance: SeededRng,
    /// The starter first.
    members: Vec<Member>,
    pub(crate) kills: usize,
    pub(crate) freezes: usize,
}

struct Member {
    name: String,
    child: Child,
    frozen_until: Option<Instant>,
}

impl<'a> Troop<'a> {
    pub(crate) fn new(site: &'a Site, seed: u64, runs: usize) -> Self {
        let chance = SeededRng::new(seed);
        let mut troop = Self { site, seed, runs, chance, members: Vec::new(), kills: 0, freezes: 0 };
        let names = ["starter".to_owned()].into_iter().chain((1..=AGENTS).map(|nth| format!("agent{nth}")));
        troop.members = names.map(|name| troop.member(name)).collect();
        troop
    }

    fn member(&self, name: String) -> Member {
        let mut command = match name.as_str() {
            "starter" => starter::command(self.site, self.seed, self.runs),
            name => self.agent(name),
        };
        let log = File::options().create(true).append(true).open(self.log(&name)).expect("it can be written");
        command.stdout(log.try_clone().expect("a second handle")).stderr(log);
        Member { child: command.spawn().expect("it starts"), name, frozen_until: None }
    }

    fn agent(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
        command.args(["agent", "--name", name, "--max-concurrent", "4", "--handlers"]);
        command.arg(self.site.path("handlers")).args(["--lease-ms", &LEASE.as_millis().to_string()]);
        // Not by the variable, which handlers could see.
        command.env_remove("AFL_STORE").args(["--store", &self.site.url]);
        command.current_dir(self.site.path("")).stdin(Stdio::null());
        command
    }

    fn log(&self, name: &str) -> PathBuf {
        self.site.path(&format!("{name}.log"))
    }

    /// Does harm for as long as it is let.
    pub(crate) async fn torment(&mut self) {
        loop {
            self.next_moment().await;
            let victim = self.chance.below(self.members.len());
            let freeze = self.chance.below(FREEZE_ONE_IN) == 0;
            let span = LEASE + LEASE * self.chance.below(100) as u32 / 100 + LEASE / 5;
            let is_frozen = self.members.iter().any(|member| member.frozen_until.is_some());
            if freeze && victim > 0 && !is_frozen {
                self.freezes += 1;
                self.members[victim].signal(Signal::STOP);
                self.members[victim].frozen_until = Some(Instant::now() + span);
            } else {
                self.kills += 1;
                self.replace(victim);
            }
        }
    }

    /// When enough has been done since the last deed.
    async fn next_moment(&mut self) {
        let (least, most) = MARKS_BETWEEN;
        let enough = self.written() + MARK_BYTES * (least + self.chance.below(most - least)) as u64;
        while self.written() < enough {
            sleep(LOOK).await;
            self.thaw();
            self.check();
        }
    }

    fn written(&self) -> u64 {
        fs::metadata(self.site.marks()).map_or(0, |marks| marks.len())
    }

    fn thaw(&mut self) {
        for member in &mut self.members {
            if member.frozen_until.is_some_and(|until| until <= Instant::now()) {
                member.signal(Signal::CONT);
                member.frozen_until = None;
            }
        }
    }

    /// No process may end by itself, except the starter when all runs are started.
    fn check(&mut self) {
        for nth in 0..self.members.len() {
            let Some(status) = self.members[nth].child.try_wait().expect("it is our child") else { continue };
            let name = &self.members[nth].name;
            assert!(nth == 0 && status.success(), "{name} ended with {status}: {}", self.last_words(name));
        }
    }

    fn last_words(&self, name: &str) -> String {
        let log = fs::read_to_string(self.log(name)).unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn replace(&mut self, victim: usize) {
        let member = &mut self.members[victim];
        member.child.kill().expect("it is our child");
        member.child.wait().expect("it is our child");
        let name = member.name.clone();
        self.members[victim] = self.member(name);
    }

    /// Lets all go on, and do so undisturbed.
    pub(crate) fn calm(&mut self) {
        for member in &mut self.members {
            if member.frozen_until.take().is_some() {
                member.signal(Signal::CONT);
            }
        }
    }

    /// Asks the agents to end, which they must do well.
    pub(crate) fn dismiss(&mut self) {
        for agent in &self.members[1..] {
            agent.signal(Signal::TERM);
        }
        for nth in 1..self.members.len() {
            let status = self.members[nth].child.wait().expect("it is our child");
            let name = &self.members[nth].name;
            assert!(status.success(), "{name} ended with {status}: {}", self.last_words(name));
        }
    }
}

impl Member {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child has a number");
        kill_process(pid, signal).expect("it is our child");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Those of a test that failed; one that has ended is not there to be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
