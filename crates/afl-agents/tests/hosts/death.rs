//! An agent that is killed takes its handlers with it.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use afl_agents::registration::Registration;
use serde_json::json;

use crate::world::{FACET, World, number_in, wait_for_death};

/// Set for the process that is to be killed.
const VICTIM: &str = "AFL_TEST_VICTIM";

const PYTHON: &str = "
import os, signal, subprocess
def handle(payload, ctx):
    child = subprocess.Popen(['sleep', '1000'])
    open(payload['folder'] + '/python', 'w').write(str(os.getpid()))
    open(payload['folder'] + '/child', 'w').write(str(child.pid))
    subprocess.run(['mkfifo', payload['folder'] + '/ready'])
    while True: pass
";
const PROGRAM: &str = "#!/bin/sh
trap '' TERM HUP
sleep 1000 &
echo $! > $1/grandchild
echo $$ > $1/program
mkfifo $1/started
wait
sleep 1000
";

#[tokio::test]
async fn f2_handlers_and_their_children_die_with_a_killed_agent() {
    if let Ok(folder) = env::var(VICTIM) {
        return be_killed(&folder).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Command::new(env::current_exe().unwrap());
    victim.args(["--exact", "death::f2_handlers_and_their_children_die_with_a_killed_agent", "--nocapture"]);
    let mut victim = victim.env(VICTIM, folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("all started")), "the victim did not start");
    victim.kill().unwrap();
    victim.wait().unwrap();
    for name in ["python", "child", "program", "grandchild"] {
        wait_for_death(number_in(&folder.path().join(name)));
    }
}

async fn be_killed(folder: &str) {
    let world = World::new();
    world.write("handlers.py", PYTHON);
    let program = world.program("program", PROGRAM);
    let python = Registration::new(FACET, "handlers");
    let mut exec = Registration::new(FACET, format!("exec:{}", program.display()));
    exec.metadata.insert("args".to_owned(), json!([folder]));
    let started = async {
        for fifo in ["ready", "started"] {
            while !Path::new(folder).join(fifo).exists() {
                tokio::task::yield_now().await;
            }
        }
        println!("all started");
        std::future::pending::<()>().await;
    };
    tokio::join!(world.run(&python, json!({"folder": folder})), world.run(&exec, json!({})), started);
}
