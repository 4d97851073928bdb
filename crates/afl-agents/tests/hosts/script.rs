use std::time::Duration;

use afl_agents::handler::{Call, HandlerFailureKind, LogStream, Outcome, perform};
use afl_agents::host::SCRIPT_TASK;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{Ran, World, call, without_marks};

async fn run(world: &World, code: &str, params: Value) -> Ran {
    let (call, control) = call(json!({"language": "python", "code": code, "params": params}));
    Ran { outcome: run_script(world, call).await, notes: control.take_notes() }
}

async fn run_script(world: &World, call: Call) -> Outcome {
    let (_, handler) = world.hosts.offers().find(|(name, _)| *name == SCRIPT_TASK).unwrap();
    perform(&**handler, call, handler.timeout(None)).await
}

#[tokio::test]
async fn a_script_gets_params_and_fills_result() {
    let world = World::new();
    let ran = run(&world, "result['u'] = params['t'].upper()", json!({"t": "abc"})).await;
    assert_eq!(Value::Object(ran.result()), json!({"u": "ABC"}));
    let code = "import math\ndef area(r):\n    return math.floor(math.pi * r * r)\nprint('computing')\nresult = {'area': area(params['r'])}\n";
    let ran = run(&world, code, json!({"r": 10})).await;
    assert_eq!(ran.lines(LogStream::Stdout), ["computing"]);
    assert_eq!(ran.result()["area"], 314);
    assert!(run(&world, "pass", json!({})).await.result().is_empty());
}

/// Scripts that fail, and their messages.
#[tokio::test]
async fn a_script_that_fails_says_why() {
    let world = World::new();
    let mut texts = Vec::new();
    for code in [
        "result['u'] = params['t']",
        "result = 3",
        "result['x'] = {1}",
        "x =",
        "import os; os._exit(3)",
        "raise SystemExit",
    ] {
        let ran = run(&world, code, json!({})).await;
        let trace = ran.failure().details.get("traceback").and_then(Value::as_str).unwrap_or_default();
        texts.push(format!("{code}\n{}\n{}", ran.failure(), without_marks(trace)));
    }
    assert_snapshot!(texts.join("\n"));
    let (call, _control) = call(json!({"language": "cobol", "code": "", "params": {}}));
    let Err(failure) = run_script(&world, call).await else { panic!("ran COBOL") };
    assert_snapshot!(failure, @"not_found: no host runs scripts in `cobol`: write them in `python`");
}

#[tokio::test]
async fn a_script_without_end_is_killed() {
    let world = World::with(|config| config.python.script_timeout = Duration::from_secs(1));
    let code = "import os, signal\nprint(os.fork())\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass";
    let ran = run(&world, code, json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::Timeout);
}

#[tokio::test]
async fn a_script_is_caged() {
    let world = World::new();
    let code = "
import os, resource, sys
result['environment'] = sorted(set(os.environ) - {'LC_CTYPE'})
result['files'] = os.listdir('.')
result['isolated'] = sys.flags.isolated
result['core'] = resource.getrlimit(resource.RLIMIT_CORE)
open('scratch', 'w').write('x')
result['folder'] = os.getcwd()
";
    let result = run(&world, code, json!({})).await.result();
    assert_eq!(result["environment"], json!([]));
    assert_eq!(result["files"], json!([]));
    assert_eq!((&result["isolated"], &result["core"]), (&json!(1), &json!([0, 0])));
    assert!(!std::path::Path::new(result["folder"].as_str().unwrap()).exists());

    let ran = run(&world, "x = bytearray(4 << 30)", json!({})).await;
    assert_eq!(ran.failure().error_type(), "MemoryError");
    let ran =
        run(&world, "f = open('big', 'wb')\nfor _ in range(100): f.write(bytes(1 << 20))", json!({})).await;
    assert!(
        matches!(ran.failure().kind, HandlerFailureKind::Error | HandlerFailureKind::Crash),
        "{}",
        ran.failure()
    );
}

/// Whether the platform has the means, asked for in the same way.
fn has(probe: &str) -> bool {
    let probe = format!("import ctypes; libc = ctypes.CDLL(None); raise SystemExit(not ({probe}))");
    std::process::Command::new("python3").args(["-c", &probe]).status().unwrap().success()
}

#[tokio::test]
async fn a_script_sees_no_files_but_its_own_and_starts_nothing() {
    if !has("libc.syscall(444, None, 0, 1) > 0") {
        return;
    }
    let world = World::new();
    let secret = world.write("secret", "42");
    for code in [
        "open(params['secret'])",
        "open(params['secret'], 'w')",
        "import os; os.listdir('/etc')",
        "import os; os.unlink(params['secret'])",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import os; os.symlink(params['secret'], 'link'); open('link')",
    ] {
        let ran = run(&world, code, json!({"secret": secret})).await;
        assert_eq!(ran.failure().error_type(), "PermissionError", "{code}: {}", ran.failure());
    }
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "42");
    let code = "import datetime, decimal, sqlite3, random; result['third'] = str(decimal.Decimal(1) / 3)[:5]";
    assert_eq!(run(&world, code, json!({})).await.result()["third"], "0.333");
}

#[tokio::test]
async fn a_script_sees_no_processes_but_its_own() {
    if !has("libc.unshare(0x78000000) == 0") {
        return;
    }
    let code = "import os; os.kill(params['agent'], 0)";
    let ran = run(&World::new(), code, json!({"agent": std::process::id()})).await;
    assert_eq!(ran.failure().error_type(), "ProcessLookupError", "{}", ran.failure());
}

#[tokio::test]
async fn a_script_has_no_network() {
    if !has("libc.unshare(0x50000000) == 0") {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let code = "import socket; socket.create_connection(('127.0.0.1', params['port']), 5)";
    let port = server.local_addr().unwrap().port();
    let ran = run(&World::new(), code, json!({"port": port})).await;
    assert!(matches!(ran.failure().error_type(), "OSError" | "PermissionError"), "{}", ran.failure());
}
