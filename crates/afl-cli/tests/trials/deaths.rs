//! F2: workers that are killed, at each moment of their work.

use std::os::unix::process::ExitStatusExt as _;

use afl_engine::run::RunStatus;
use afl_engine::task::{MAX_DELIVERIES, TaskState};
use afl_runtime::RunId;
use afl_runtime::agent::UNCERTAIN;

use crate::actor::Phase;
use crate::world::{World, wait_for_deaths};

pub(crate) const PROGRAM: &str = r#"
event facet Mark(n: Long) => (by: String)
event facet Wait(by: String) => (by: String)

workflow Marked(n: Long) => (by: String) andThen {
    mark = Mark(n = $.n)
    yield Marked(by = mark.by)
}

workflow MarkedOnce(n: Long) => (by: String) andThen {
    mark = Mark(n = $.n) with Effect(kind = "once") with Retry(max = 3)
    yield MarkedOnce(by = mark.by)
}

workflow Long(n: Long) => (by: String) andThen {
    mark = Mark(n = $.n)
    wait = Wait(by = mark.by)
    yield Long(by = wait.by)
}
"#;

/// Leaves a mark and answers at once.
const QUICK: &str = "#!/bin/sh
echo $AFL_IDEMPOTENCY_KEY >> FOLDER/marks
echo '{\"by\": \"quick\"}'
";
/// Leaves a mark, and answers when it may.
const SLOW: &str = "#!/bin/sh
echo $AFL_IDEMPOTENCY_KEY >> FOLDER/marks
sleep 1000 &
echo $$ $! >> FOLDER/pids
while [ ! -e FOLDER/go ]; do sleep 0.02; done
echo '{\"by\": \"slow\"}'
";

/// Two lists of handlers: `quick` and `slow`. A mark is the key of the finished work.
pub(crate) fn world() -> World {
    let world = World::new(PROGRAM);
    world.program("quick.sh", QUICK);
    world.program("slow.sh", SLOW);
    let entry = |facet: &str, program: &str| {
        format!(
            "[[handler]]\nfacet = \"{facet}\"\nmodule = \"exec:{program}.sh\"\ntimeout_ms = 600000\nmetadata = {{ grace_ms = 0 }}\n"
        )
    };
    world.write("quick.toml", &(entry("Mark", "quick") + &entry("Wait", "quick")));
    world.write("slow.toml", &(entry("Mark", "slow") + &entry("Wait", "slow")));
    world.write("half.toml", &(entry("Mark", "quick") + &entry("Wait", "slow")));
    world
}

/// How often the work of a run was done.
pub(crate) fn times(world: &World, run: &RunId) -> usize {
    world.left("marks").iter().filter(|key| key.starts_with(&format!("{run}/"))).count()
}

pub(crate) async fn by(world: &World, run: &RunId) -> String {
    let ended = world.ended(run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    world.service.outputs(run).await.unwrap()["by"].as_str().unwrap().to_owned()
}

// covers: XR-3
#[tokio::test(flavor = "multi_thread")]
async fn f2_t6_work_of_a_killed_worker_repeats_under_its_key_or_is_left_to_a_person_if_it_may_happen_once() {
    let world = world();
    let mut dead = Vec::new();
    for phase in Phase::ALL {
        let plain = world.start("Marked", &["n=1"]);
        world.dies(phase);
        let once = world.start("MarkedOnce", &["n=1"]);
        world.dies(phase);
        dead.push((phase, plain, once));
    }
    let survivor = world.agent("survivor", &["--handlers", "quick.toml"]);
    for (phase, plain, once) in &dead {
        let (expected_by, expected_times) = match phase {
            Phase::AfterClaim | Phase::InHandler => ("quick", 1),
            Phase::AfterEffect => ("quick", 2),
            Phase::AfterReport => ("actor", 1),
        };
        assert_eq!(by(&world, plain).await, expected_by, "{phase:?}");
        assert_eq!(times(&world, plain), expected_times, "{phase:?}");
        let task = world.task(plain).await;
        let claims = if *phase == Phase::AfterReport { 1 } else { 2 };
        assert_eq!((task.state, task.deliveries, task.token), (TaskState::Completed, claims, claims.into()));

        match phase {
            Phase::AfterReport => assert_eq!(by(&world, once).await, "actor"),
            Phase::AfterClaim | Phase::InHandler | Phase::AfterEffect => {
                let failure = world.ended(once).await.error.unwrap();
                assert_eq!(failure.kind, UNCERTAIN, "{phase:?}: {failure}");
            }
        }
        let happened = matches!(phase, Phase::AfterEffect | Phase::AfterReport);
        assert_eq!(times(&world, once), usize::from(happened), "{phase:?}");
        assert_eq!(world.task(once).await.token, 1, "{phase:?}: it was handed out again");
    }
    survivor.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn t1_the_task_of_a_dead_agent_comes_back_whatever_its_profile() {
    let world = world();
    let mut runs = Vec::new();
    for profile in ["registry", "poller", "service"] {
        let run = world.start("Marked", &["n=1"]);
        let mut agent = world.agent("mortal", &["--profile", profile, "--handlers", "slow.toml"]);
        agent.says(&format!("Marked.mark of run {run}: begun"));
        agent.kill();
        runs.push(run);
    }
    let survivor = world.agent("survivor", &["--profile", "poller", "--handlers", "quick.toml"]);
    for run in &runs {
        assert_eq!(by(&world, run).await, "quick");
    }
    survivor.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_driver_was_killed_is_found_and_driven_by_another_agent() {
    let world = world();
    let mut driver =
        world.runs(&["program.afl", "--workflow", "Long", "-i", "n=1", "--handlers", "half.toml"]);
    let run = driver.says("run ").split_whitespace().nth(1).map(|run| RunId(run.into())).unwrap();
    world.leaves("pids", 2).await;
    driver.kill();
    let agent = world.agent("heir", &["--handlers", "quick.toml"]);
    assert_eq!(by(&world, &run).await, "quick");
    agent.end();
    assert_eq!(times(&world, &run), 3, "what was complete was not done again, what was in work was");
    world.examine();
}

/// The agent is the parent of its programs.
const MURDERER: &str = "#!/bin/sh
echo $AFL_IDEMPOTENCY_KEY >> FOLDER/marks
kill -KILL $PPID
sleep 1000
";

#[tokio::test(flavor = "multi_thread")]
async fn f2_g5_work_that_kills_its_agent_each_time_is_given_up() {
    let world = world();
    world.program("quick.sh", MURDERER);
    let run = world.start("Marked", &["n=1"]);
    for nth in 1..=MAX_DELIVERIES {
        let mut agent = world.agent("mortal", &["--handlers", "quick.toml"]);
        assert_eq!(agent.child.wait().unwrap().signal(), Some(9), "delivery {nth}");
    }
    let survivor = world.agent("survivor", &["--handlers", "quick.toml"]);
    let failure = world.ended(&run).await.error.unwrap();
    assert_eq!(failure.kind, "lease_exhausted", "{failure}");
    assert!(failure.message.contains("ran out 5 times"), "{failure}");
    assert_eq!(times(&world, &run), MAX_DELIVERIES as usize);
    survivor.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn f2_handlers_die_with_their_agent() {
    let world = world();
    world.start("Marked", &["n=1"]);
    let mut agent = world.agent("mortal", &["--handlers", "slow.toml"]);
    let pids = world.leaves("pids", 2).await;
    agent.kill();
    wait_for_deaths(&pids);
}
