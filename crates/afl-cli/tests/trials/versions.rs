//! F16: handlers that change while runs go on.

use afl_agents::registration::Checksum;
use afl_engine::run::RunStatus;
use afl_runtime::{Again, RunId};

use crate::world::{Process, World};

const PROGRAM: &str = r"
event facet Price(n: Long) => (text: String)
event facet Pause(n: Long) => (n: Long)

workflow Quote(n: Long) => (text: String) andThen {
    before = Price(n = $.n)
    pause = Pause(n = $.n)
    after = Price(n = pause.n)
    yield Quote(text = before.text ++ after.text)
}
";
const ONE: &str = "def handle(payload): return {'text': 'one '}\n";
const TWO: &str = "def handle(payload): return {'text': 'two '}\n";
/// Between the two prices.
const PAUSE: &str = "#!/bin/sh
echo x >> FOLDER/paused
while [ ! -e FOLDER/go ]; do sleep 0.02; done
echo '{\"n\": 2}'
";

fn world() -> World {
    let world = World::new(PROGRAM);
    world.write("price.py", ONE);
    world.program("pause.sh", PAUSE);
    world.said(&["handlers", "register", "Pause", "exec:pause.sh", "--metadata", "{\"grace_ms\": 0}"]);
    world
}

fn register(world: &World, version: &str, checksum: &str) {
    let arguments = ["handlers", "register", "Price", "price.py", "--handler-version", version];
    world.said(&[&arguments[..], &["--checksum", checksum]].concat());
}

fn checksum(text: &str) -> String {
    Checksum::of(text.as_bytes()).to_string()
}

/// A run that has its first price and waits.
async fn halfway(world: &World) -> (RunId, Process) {
    let agent = world.agent("only", &[]);
    let run = world.start("Quote", &["n=1"]);
    agent.says("Quote.before of run");
    agent.says("done");
    world.leaves("paused", 1).await;
    (run, agent)
}

async fn text(world: &World, run: &RunId) -> String {
    let ended = world.ended(run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    world.service.outputs(run).await.unwrap()["text"].as_str().unwrap().to_owned()
}

async fn error(world: &World, run: &RunId) -> String {
    let ended = world.ended(run).await;
    assert_eq!(ended.status, RunStatus::Failed);
    ended.error.unwrap().message
}

#[tokio::test(flavor = "multi_thread")]
async fn f16_without_a_checksum_the_file_as_it_is_does_the_work() {
    let world = world();
    register(&world, "1.0.0", "");
    let (run, agent) = halfway(&world).await;
    world.write("price.py", TWO);
    world.write("go", "");
    assert_eq!(text(&world, &run).await, "one two ");

    std::fs::remove_file(world.path("price.py")).unwrap();
    let late = world.start("Quote", &["n=1"]);
    let told = error(&world, &late).await;
    assert!(told.contains("there is no") && told.contains("price.py"), "{told}");
    world.write("price.py", ONE);
    world.service.retry(&late, &Again::Run).await.unwrap();
    assert_eq!(text(&world, &late).await, "one one ");
    agent.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn f16_with_a_checksum_only_the_registered_program_does_the_work() {
    let world = world();
    register(&world, "1.0.0", &checksum(ONE));
    let (run, mut agent) = halfway(&world).await;
    world.write("price.py", TWO);
    agent.kill();
    world.write("go", "");
    // The modules that the first agent had loaded are gone with it.
    let second = world.agent("second", &[]);
    let told = error(&world, &run).await;
    assert!(told.contains("register the new checksum if the change is meant"), "{told}");

    register(&world, "2.0.0", &checksum(TWO));
    world.service.retry(&run, &Again::Run).await.unwrap();
    assert_eq!(text(&world, &run).await, "one two ");
    second.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn f16_of_two_versions_the_one_registered_last_does_the_work() {
    let world = world();
    register(&world, "1.0.0", &checksum(ONE));
    let (run, agent) = halfway(&world).await;
    world.write("price.py", TWO);
    register(&world, "2.0.0", &checksum(TWO));
    assert_eq!(world.json(&["handlers", "show", "Price", "--json"])["version"], "2.0.0");
    // An agent that knows this one has read them all again.
    world.said(&["handlers", "register", "Other", "builtin:echo"]);
    agent.says("handlers: Other, Pause, Price");
    world.write("go", "");
    assert_eq!(text(&world, &run).await, "one two ");
    agent.end();
    world.examine();
}
