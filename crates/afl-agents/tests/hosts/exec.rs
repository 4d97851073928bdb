use std::time::{Duration, Instant};

use afl_agents::handler::{HandlerFailureKind, LogStream};
use afl_agents::registration::Registration;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{FACET, World, call, number_in, wait_for_death};

#[tokio::test]
async fn a_program_gets_its_payload_and_gives_its_result() {
    let world = World::with(|config| config.python.pass_variables = vec!["CARGO_PKG_NAME".to_owned()]);
    let program = world.program("program", "#!/bin/sh\necho working >&2\nprintf '{\"input\": %s, \"args\": \"%s\", \"env\": \"%s\"}' \"$(cat)\" \"$*\" \"$(env | cut -d= -f1 | sort | tr '\\n' ' ')\"\n");
    let mut registration = Registration::new(FACET, format!("exec:{}", program.display()));
    registration.metadata.insert("args".to_owned(), json!(["--fast", "two words"]));
    let ran = world.run(&registration, json!({"amount": 5})).await;
    assert_eq!(ran.lines(LogStream::Stderr), ["working"]);
    let result = ran.result();
    assert_eq!(result["input"]["amount"], 5);
    assert_eq!(result["input"]["_facet_name"], FACET);
    assert_eq!(result["args"], "--fast two words");
    let names: Vec<&str> = result["env"].as_str().unwrap().split_whitespace().collect();
    let ours: Vec<_> = names.iter().filter(|name| name.starts_with("AFL_")).collect();
    assert_eq!(
        ours,
        [
            &"AFL_ATTEMPT",
            &"AFL_FACET",
            &"AFL_IDEMPOTENCY_KEY",
            &"AFL_LEASE_TOKEN",
            &"AFL_PROGRAM",
            &"AFL_STEP"
        ]
    );
    assert!(names.contains(&"PATH") && names.contains(&"CARGO_PKG_NAME"));
    assert!(!names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
}

/// Programs by their text, and how each is judged.
#[tokio::test]
async fn a_program_is_judged_by_its_exit_code_then_by_its_output() {
    let world = World::new();
    let mut texts = Vec::new();
    for body in [
        "echo '{\"ok\": true}'",
        "echo '{\"ok\": true}'; echo no money >&2; exit 3",
        "exit 1",
        "true",
        "echo 'not json'",
        "echo '[1]'",
        "echo '{} {}'",
        "echo '{\"a\": [{\"id\": 18446744073709551616}]}'",
        "echo '{\"a\": {\"id\": 1, \"id\": 2}}'",
        "echo '{\"a\": [18446744073709551615, 1e30]}'",
        "printf '{\"a\": \"\\377\"}'",
        "kill -SEGV $$",
        "exec 0<&-; echo '{}'",
    ] {
        let ran = world.exec(&format!("#!/bin/sh\n{body}\n"), json!({"large": "x".repeat(1 << 20)})).await;
        let text = match &ran.outcome {
            Ok(result) => serde_json::to_string(result).unwrap(),
            Err(failure) => {
                failure.to_string().replace(&world.path("program").display().to_string(), "program")
            }
        };
        texts.push(format!("{body}\n    {text}"));
    }
    assert_snapshot!(texts.join("\n"));
    let ran = world.exec("no shebang, no program", json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::Unavailable);
    std::fs::set_permissions(world.path("program"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let uri = format!("exec:{}", world.path("program").display());
    assert_eq!(
        world.run(&Registration::new(FACET, uri), json!({})).await.failure().kind,
        HandlerFailureKind::Refused
    );
}

#[tokio::test]
async fn f15_output_without_end_is_bounded() {
    let world = World::new();
    let ran = world.exec("#!/bin/sh\nexec yes\n", json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::InvalidResult);
    let ran =
        world.exec("#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x >&2; echo '{}'\n", json!({})).await;
    let bytes: usize = ran.notes.lines.iter().map(|line| line.text.len()).sum();
    assert!(bytes < 20_000, "{bytes}");
    ran.result();
}

#[tokio::test]
async fn log_lines_arrive_while_the_program_runs() {
    let world = World::new();
    let fifo = world.path("fifo");
    let text = format!(
        "#!/bin/sh\nmkfifo {0}\necho ready >&2\nread answer < {0}\necho \"{{\\\"answer\\\": \\\"$answer\\\"}}\"\n",
        fifo.display()
    );
    let program = world.program("program", &text);
    let (call, control) = call(json!({}));
    let registration = Registration::new(FACET, format!("exec:{}", program.display()));
    let answer = async {
        assert_eq!(control.notes().await.lines[0].text, "ready");
        tokio::task::spawn_blocking(move || std::fs::write(fifo, "live\n")).await.unwrap().unwrap();
    };
    let (outcome, ()) = tokio::join!(world.hosts.run(&registration, call), answer);
    let Ok(result) = outcome else { panic!("{outcome:?}") };
    assert_eq!(result["answer"], "live");
}

#[tokio::test]
async fn f15_the_kill_ladder_asks_first_and_then_kills_the_group() {
    let world = World::new();
    let mut registration = Registration::new(FACET, "exec:/");
    registration.timeout_ms = 500;
    let polite =
        world.program("polite", "#!/bin/sh\ntrap 'echo cleaned up >&2; exit 0' TERM\nsleep 1000 & wait\n");
    registration.module_uri = format!("exec:{}", polite.display());
    let began = Instant::now();
    let ran = world.run(&registration, json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::Timeout);
    assert_eq!(ran.lines(LogStream::Stderr), ["cleaned up"]);
    assert!(began.elapsed() < Duration::from_secs(4));

    let text = format!(
        "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $! > {0}/grandchild\necho $$ > {0}/own\nwhile :; do :; done\n",
        world.path("").display()
    );
    let stubborn = world.program("stubborn", &text);
    registration.module_uri = format!("exec:{}", stubborn.display());
    let ran = world.run(&registration, json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::Timeout);
    wait_for_death(number_in(&world.path("own")));
    wait_for_death(number_in(&world.path("grandchild")));
}

#[tokio::test]
async fn f15_child_processes_of_an_ended_program_are_killed_and_not_awaited() {
    let world = World::new();
    let text = format!(
        "#!/bin/sh\nsleep 1000 &\necho $! > {}\necho '{{\"done\": true}}'\n",
        world.path("left").display()
    );
    assert_eq!(world.exec(&text, json!({})).await.result()["done"], true);
    wait_for_death(number_in(&world.path("left")));
}
