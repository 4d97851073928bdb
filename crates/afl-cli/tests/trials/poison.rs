//! F15: handlers that do harm. The agent has one slot, and after each of them it does honest work.

use std::time::Duration;

use afl_engine::run::RunStatus;
use afl_engine::task::TaskState;

use crate::world::{Process, World, wait_for_deaths};

const PROGRAM: &str = r"
event facet Poison(n: Long) => (n: Long)
event facet Honest(n: Long) => (n: Long)

workflow Poisoned(n: Long) => (n: Long) andThen {
    poison = Poison(n = $.n)
    yield Poisoned(n = poison.n)
}

workflow Harmless(n: Long) => (n: Long) andThen {
    honest = Honest(n = $.n)
    yield Harmless(n = honest.n)
}
";

const LIST: &str = r#"
[[handler]]
facet = "Poison"
module = "MODULE"
timeout_ms = TIMEOUT

[[handler]]
facet = "Honest"
module = "builtin:echo"
"#;

/// Longer than poison can keep an agent from extending it.
const LEASE: Duration = Duration::from_secs(14);
/// Long enough for a busy machine to start a process.
const PATIENT: u32 = 60_000;
const IMPATIENT: u32 = 700;

struct Poison {
    /// Of a program, or of a module in Python.
    text: &'static str,
    timeout_ms: u32,
    /// The error that people see.
    error: &'static str,
}

const fn poison(text: &'static str, timeout_ms: u32, error: &'static str) -> Poison {
    Poison { text, timeout_ms, error }
}

const POISONS: &[Poison] = &[
    poison("#!/bin/sh\nexit 3\n", PATIENT, "ended with exit code 3"),
    poison("#!/bin/sh\nkill -KILL $$\n", PATIENT, "SIGKILL (perhaps the machine ran out of memory)"),
    poison(
        "#!/bin/sh\nulimit -v 300000\nexec python3 -c 'bytearray(1 << 30)'\n",
        PATIENT,
        "ended with exit code 1: MemoryError",
    ),
    poison(
        "#!/bin/sh\necho $$ >> FOLDER/pids\nsleep 1000 &\necho $! >> FOLDER/pids\nexec sleep 1000\n",
        IMPATIENT,
        "no sign of life from the handler",
    ),
    poison(
        "#!/bin/sh\ntrap '' TERM HUP INT\necho $$ >> FOLDER/pids\nwhile :; do sleep 0.05; done\n",
        IMPATIENT,
        "no sign of life from the handler",
    ),
    poison("#!/bin/sh\nsleep 1.2\necho '{\"n\": 1}'\n", IMPATIENT, "no sign of life from the handler"),
    poison("#!/bin/sh\necho '[1]'\n", PATIENT, "the result is a list, and must be a JSON object"),
    poison("#!/bin/sh\necho '{\"n\": \"one\"}'\n", PATIENT, "`n` must be Long, but is String"),
    poison("#!/bin/sh\nexec cat /dev/zero\n", PATIENT, "wrote more than"),
    poison("def handle(payload): raise ValueError('no money')\n", PATIENT, "ValueError: no money"),
    poison("import os\ndef handle(payload): os._exit(7)\n", PATIENT, "exit code 7"),
    poison("import os\ndef handle(payload): os.abort()\n", PATIENT, "SIGABRT"),
    poison(
        "import os, time\ndef handle(payload):\n    with open('FOLDER/pids', 'a') as pids:\n        child = os.fork() or os.getpid()\n        pids.write(f'{child}\\n')\n    time.sleep(1000)\n",
        IMPATIENT,
        "no sign of life from the handler",
    ),
];

impl Poison {
    fn agent(&self, world: &World) -> Process {
        let module = if self.text.starts_with("#!") { "exec:poison.sh" } else { "poison.py" };
        world.program("poison.sh", self.text);
        world.write("poison.py", self.text);
        let list = LIST.replace("MODULE", module).replace("TIMEOUT", &self.timeout_ms.to_string());
        world.write("handlers.toml", &list);
        world.agent_with(LEASE, "only", &["--handlers", "handlers.toml", "--max-concurrent", "1"])
    }
}

// covers: SDK-8.7-e, SDK-6.1-c
#[tokio::test(flavor = "multi_thread")]
async fn f15_no_poison_keeps_a_slot_or_leaves_a_process_behind() {
    for (nth, poison) in POISONS.iter().enumerate() {
        let world = World::new(PROGRAM);
        let agent = poison.agent(&world);
        let poisoned = world.start("Poisoned", &["n=1"]);
        let ended = world.ended(&poisoned).await;
        let error = ended.error.unwrap().message;
        assert!(error.contains(poison.error), "{nth}: {error}");
        assert_eq!(ended.status, RunStatus::Failed, "{nth}");
        let task = world.task(&poisoned).await;
        let expected = match task.state {
            // The handler did its work; that its answer is of the wrong type the evaluator finds.
            TaskState::Completed => (0, 1),
            _ => (1, 1),
        };
        assert_eq!((task.attempts, task.deliveries), expected, "{nth}: {:?}", task.state);
        wait_for_deaths(&world.left("pids"));

        let honest = world.start("Harmless", &["n=5"]);
        assert_eq!(world.ended(&honest).await.status, RunStatus::Completed, "{nth}");
        agent.end();
        world.examine();
    }
}

/// The processes that a handler with a good answer leaves behind.
const GRANDCHILDREN: &str = "#!/bin/sh
(sleep 1000 & echo $! >> FOLDER/pids; sleep 1000 & echo $! >> FOLDER/pids; wait) &
while [ \"$(wc -l < FOLDER/pids)\" != 2 ]; do sleep 0.02; done
echo '{\"n\": 1}'
";

#[tokio::test(flavor = "multi_thread")]
async fn f15_grandchildren_end_with_the_answer() {
    let world = World::new(PROGRAM);
    world.write("pids", "");
    let agent = poison(GRANDCHILDREN, PATIENT, "").agent(&world);
    let run = world.start("Poisoned", &["n=1"]);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(world.left("pids").len(), 2);
    wait_for_deaths(&world.left("pids"));
    agent.end();
}

/// A hundred megabytes, half of them in lines and half in one that does not end.
const FLOOD: &str = "#!/bin/sh
yes 'a line that says nothing' | head -c 50000000 >&2
head -c 50000000 /dev/zero >&2
echo '{\"n\": 1}'
";
const MOST_KB: u64 = 90_000;
const MOST_LOGGED: usize = 10_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn f15_a_flood_of_output_fills_neither_the_memory_nor_the_store_nor_costs_the_lease() {
    let world = World::new(PROGRAM);
    let agent = poison(FLOOD, PATIENT, "").agent(&world);
    let honest = world.start("Harmless", &["n=5"]);
    assert_eq!(world.ended(&honest).await.status, RunStatus::Completed);
    let before = peak_kb(&agent);
    let run = world.start("Poisoned", &["n=1"]);
    let ended = world.ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    assert_eq!(world.task(&run).await.token, 1, "the flood kept its agent from extending the lease");
    let grown = peak_kb(&agent) - before;
    assert!(grown < MOST_KB, "{grown} kB more than before");
    agent.end();
    let shown = world.json(&["task", "show", &run.to_string(), "Poisoned.poison", "--json"]);
    let lines = shown["log"].as_array().unwrap().iter().flat_map(|page| page["lines"].as_array().unwrap());
    let lines: Vec<&str> = lines.map(|line| line["text"].as_str().unwrap()).collect();
    let bytes: usize = lines.iter().map(|line| line.len()).sum();
    assert!(bytes < MOST_LOGGED, "{bytes} bytes logged");
    assert!(lines.iter().any(|line| line.contains("lines dropped")), "it is told what is not there");
}

fn peak_kb(agent: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
