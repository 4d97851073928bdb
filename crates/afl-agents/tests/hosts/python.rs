use std::process::Command;

use afl_agents::handler::{HandlerFailureKind, LogStream};
use afl_agents::registration::{Checksum, Registration};
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{FACET, World, without_marks};

// covers: SDK-8.6-a, SDK-8.7-b, SDK-8.4-e, SDK-8.11-a
#[tokio::test]
async fn a_module_gets_the_payload_with_injected_values() {
    let world = World::new();
    world.write("handlers/__init__.py", "");
    world.write("handlers/billing.py", "def handle(payload): return {'got': payload}");
    let mut registration = Registration::new(FACET, "handlers.billing");
    registration.metadata.insert("region".to_owned(), json!("eu"));
    let result = world.run(&registration, json!({"amount": 5.5, "name": "Zoë"})).await.result();
    assert_eq!(
        result["got"],
        json!({
            "amount": 5.5, "name": "Zoë", "_facet_name": FACET, "_handler_metadata": {"region": "eu"},
            "_attempt": 2, "_idempotency_key": "run-1/wb0s0", "_lease_token": 7,
        })
    );
}

// covers: SDK-8.6-b
#[tokio::test]
async fn a_file_and_its_entrypoint_may_be_named() {
    let world = World::new();
    let path = world.write(
        "my handlers.py",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\ndef pay(p): return {'x': A(3).x}",
    );
    let uri = url::Url::from_file_path(&path).unwrap().to_string();
    let mut registration = Registration::new(FACET, uri);
    registration.entrypoint = "pay".to_owned();
    assert_eq!(world.run(&registration, json!({})).await.result()["x"], 3);
}

// covers: SDK-8.11-b
#[tokio::test]
async fn one_module_may_handle_many_facets_by_name() {
    let world = World::new();
    let text = "
_DISPATCH = {'cache.Africa': lambda p: {'data': 'africa'}, 'cache.Europe': lambda p: {'data': 'europe'}}
def handle(payload):
    handler = _DISPATCH.get(payload['_facet_name'])
    if handler is None:
        raise ValueError(f\"Unknown facet: {payload['_facet_name']}\")
    return handler(payload)
";
    assert_snapshot!(world.python(text, json!({})).await.failure(), @"error: ValueError: Unknown facet: billing.ProcessPayment");
    let (mut call, _control) = crate::world::call(json!({}));
    call.facet = "cache.Europe".to_owned();
    let outcome = world.hosts.run(&Registration::new("cache.Europe", "handlers"), call).await;
    assert_eq!(outcome, Ok(json!({"data": "europe"}).as_object().unwrap().clone()));
}

#[tokio::test]
async fn decorated_functions_are_found_by_their_facet() {
    let world = World::new();
    let text = "
from agentflow import handler
@handler('billing.Refund')
def refund(payload): return {'did': 'refund'}
@handler('ProcessPayment', 'billing.Other')
async def pay(payload): return {'did': 'pay'}
def special(payload): return {'did': 'special'}
";
    assert_eq!(world.python(text, json!({})).await.result()["did"], "pay");
    let mut registration = Registration::new(FACET, "handlers");
    registration.entrypoint = "special".to_owned();
    assert_eq!(world.run(&registration, json!({})).await.result()["did"], "special");
    registration.entrypoint = "missing".to_owned();
    assert_snapshot!(world.run(&registration, json!({})).await.failure(), @"not_found: module 'handlers' has no function 'missing' for billing.ProcessPayment; facets decorated with @handler there: ProcessPayment, billing.Other, billing.Refund");
}

// covers: SDK-8.11-c
#[tokio::test]
async fn a_module_says_what_it_is_to_be_registered_for() {
    let world = World::new();
    let text = "
from agentflow import handler
@handler('geo.Count')
def count(payload): return {}
REGIONS = {'Africa': 'africa', 'Asia': 'asia'}
def register_handlers(runner):
    for name, path in REGIONS.items():
        runner.register_handler(facet_name=f'geo.cache.{name}', module_uri='handlers', entrypoint='cache', timeout_ms=5000)
def cache(payload): return {'data': REGIONS[payload['_facet_name'].rsplit('.', 1)[-1]]}
";
    world.write("handlers.py", text);
    let mut like = Registration::new("discovered", "handlers");
    like.version = "2.0.0".to_owned();
    let found = world.hosts.registrations(&like).await.unwrap();
    let told: Vec<_> = found
        .iter()
        .map(|found| {
            format!("{} {} {} {}", found.facet_name, found.entrypoint, found.timeout_ms, found.version)
        })
        .collect();
    assert_eq!(
        told,
        [
            "geo.Count handle 30000 2.0.0",
            "geo.cache.Africa cache 5000 2.0.0",
            "geo.cache.Asia cache 5000 2.0.0"
        ]
    );
    let (mut call, _control) = crate::world::call(json!({}));
    call.facet = "geo.cache.Asia".to_owned();
    let outcome = world.hosts.run(&found[2], call).await;
    assert_eq!(outcome, Ok(json!({"data": "asia"}).as_object().unwrap().clone()));
}

// covers: SDK-8.7-c
#[tokio::test]
async fn async_handlers_work_and_share_a_loop() {
    let world = World::new();
    let text = "
import asyncio
loops = set()
async def handle(payload):
    await asyncio.sleep(0)
    loops.add(id(asyncio.get_running_loop()))
    return {'loops': len(loops), 'pid': __import__('os').getpid()}
";
    let first = world.python(text, json!({})).await.result();
    let second = world.run(&Registration::new(FACET, "handlers"), json!({})).await.result();
    assert_eq!(first, second);
}

#[tokio::test]
async fn an_exception_comes_with_its_traceback() {
    let world = World::new();
    let text = "def charge(amount):\n    raise KeyError('amount')\n\ndef handle(payload):\n    return charge(payload)\n";
    let ran = world.python(text, json!({})).await;
    let failure = ran.failure();
    assert_eq!((failure.kind, failure.error_type()), (HandlerFailureKind::Error, "KeyError"));
    assert_eq!(failure.message, "KeyError: 'amount'");
    let traceback = without_marks(failure.details["traceback"].as_str().unwrap());
    let traceback = traceback.replace(&world.path("").display().to_string(), "[folder]/");
    assert_snapshot!(traceback);
}

#[tokio::test]
async fn a_module_that_does_not_load_says_why_and_is_tried_again() {
    let world = World::new();
    let ran = world.python("import nothing_like_that\n", json!({})).await;
    assert_snapshot!(ran.failure(), @"error: ModuleNotFoundError: No module named 'nothing_like_that'");
    let ran = world.python("def handle(payload)\n", json!({})).await;
    assert_eq!(ran.failure().error_type(), "SyntaxError");
    assert!(ran.failure().details["traceback"].as_str().unwrap().contains("handlers.py\", line 1"));
    assert_eq!(world.python("def handle(payload): return {}", json!({})).await.result().len(), 0);
}

// covers: SDK-8.6-c, SDK-8.6-d
#[tokio::test]
async fn f16_a_module_is_cached_by_its_checksum_and_loaded_anew_when_that_changes() {
    let world = World::new();
    let text = |version: u32| {
        format!(
            "import os\ncount = 0\ndef handle(p):\n    global count\n    count += 1\n    return {{'version': {version}, 'count': count}}\n"
        )
    };
    let registration = |text: &str| {
        let mut registration = Registration::new(FACET, "handlers");
        registration.checksum = Checksum::of(text.as_bytes()).to_string();
        registration
    };
    let (one, two) = (text(1), text(2));
    world.write("handlers.py", &one);
    for count in 1..=3 {
        let result = world.run(&registration(&one), json!({})).await.result();
        assert_eq!((&result["version"], &result["count"]), (&json!(1), &json!(count)));
    }
    // A loaded module was verified, so its file need not stay; any other module is refused.
    world.write("handlers.py", &two);
    assert_eq!(world.run(&registration(&one), json!({})).await.result()["count"], 4);
    assert_eq!(
        world.run(&registration(&two), json!({})).await.result(),
        *json!({"version": 2, "count": 1}).as_object().unwrap()
    );
    assert_eq!(world.run(&registration(&one), json!({})).await.result()["count"], 5);
}

#[tokio::test]
async fn f16_without_a_checksum_a_changed_file_is_loaded_anew() {
    let world = World::new();
    world.write("helper.py", "value = 1");
    let text = "import helper\ndef handle(p): return {'value': helper.value, 'text': 'one'}";
    assert_eq!(world.python(text, json!({})).await.result()["text"], "one");
    let text = "import helper\ndef handle(p): return {'value': helper.value, 'text': 'three'}";
    assert_eq!(world.python(text, json!({})).await.result()["text"], "three");
    std::fs::remove_file(world.path("handlers.py")).unwrap();
    let ran = world.run(&Registration::new(FACET, "handlers"), json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::NotFound);
}

#[tokio::test]
async fn a_virtual_environment_is_used_with_its_packages() {
    let world = World::new();
    let venv = world.path("venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status().unwrap();
    assert!(made.success());
    let lib = std::fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(
        lib.join("site-packages/installed.py"),
        "def handle(p): return {'from': 'venv', 'prefix': __import__('sys').prefix}",
    )
    .unwrap();
    let mut registration = Registration::new(FACET, "installed");
    assert_eq!(world.run(&registration, json!({})).await.failure().kind, HandlerFailureKind::NotFound);
    for python in ["venv", "venv/bin/python"] {
        registration.metadata.insert("python".to_owned(), json!(world.path(python)));
        let result = world.run(&registration, json!({})).await.result();
        assert_eq!(result["prefix"], json!(venv));
    }
    registration.metadata.insert("python".to_owned(), json!("/usr"));
    assert_eq!(world.run(&registration, json!({})).await.failure().kind, HandlerFailureKind::Refused);
    registration.metadata.insert("python".to_owned(), json!(world.path("nothing")));
    assert_eq!(world.run(&registration, json!({})).await.failure().kind, HandlerFailureKind::NotFound);
}

#[tokio::test]
async fn a_handler_with_two_parameters_gets_a_context() {
    let world = World::new();
    let text = "
def handle(payload, ctx):
    print('before')
    ctx.log('charging', 5, level='warn')
    print('after')
    ctx.progress(0.25, 'a quarter')
    ctx.heartbeat()
    ctx.update({'so': 'far'}, good=True)
    ctx.update(so='further')
    return {'key': ctx.idempotency_key, 'cancelled': ctx.cancelled, 'path': ctx.path, 'attempt': ctx.attempt}
";
    let ran = world.python(text, json!({})).await;
    let texts: Vec<_> = ran
        .notes
        .lines
        .iter()
        .map(|line| format!("{} {} {}", line.stream.name(), line.level.name(), line.text))
        .collect();
    let mut texts = texts;
    texts.sort_unstable();
    assert_eq!(texts, ["stdout info after", "stdout info before", "system warn charging 5"]);
    assert_eq!(ran.notes.progress.as_ref().unwrap().fraction, Some(0.25));
    assert_eq!(ran.notes.update, json!({"so": "further", "good": true}).as_object().cloned());
    assert_eq!(
        ran.result(),
        *json!({"key": "run-1/wb0s0", "cancelled": false, "path": "Checkout.payment", "attempt": 2})
            .as_object()
            .unwrap()
    );
    let second_is_no_context = "def handle(payload, retries=3): return {'retries': retries}";
    assert_eq!(world.python(second_is_no_context, json!({})).await.result()["retries"], 3);
}

#[tokio::test]
async fn t13_keys_that_the_agent_adds_override_those_of_the_payload() {
    let world = World::new();
    let forged = json!({
        "amount": 5, "_facet_name": "forged", "_handler_metadata": "forged", "_attempt": 0, "_idempotency_key": "forged",
        "_lease_token": 0,
    });
    let found = world.python("def handle(payload): return payload", forged).await.result();
    let expected = json!({
        "amount": 5, "_facet_name": FACET, "_handler_metadata": {}, "_attempt": 2, "_idempotency_key": "run-1/wb0s0",
        "_lease_token": 7,
    });
    assert_eq!(serde_json::Value::Object(found), expected);
}

#[tokio::test]
async fn f15_whatever_is_printed_becomes_log_lines_and_never_a_frame() {
    let world = World::new();
    let text = r#"
import os, subprocess, sys
def handle(payload):
    print("Zoë")
    print("to stderr", file=sys.stderr)
    os.write(1, b"\xff\xfe raw\r\n")
    subprocess.run(["sh", "-c", "echo from a child; cat"])
    sys.__stdout__.write("no line break")
    return {"stdin": sys.stdin.read()}
"#;
    let ran = world.python(text, json!({})).await;
    assert_eq!(
        ran.lines(LogStream::Stdout),
        ["Zoë", "\u{fffd}\u{fffd} raw", "from a child", "no line break"]
    );
    assert_eq!(ran.lines(LogStream::Stderr), ["to stderr"]);
    assert_eq!(ran.result()["stdin"], "");
}

#[tokio::test]
async fn f15_a_flood_of_output_is_survived() {
    let world = World::new();
    let text = "
import sys
def handle(payload):
    for _ in range(200): sys.stdout.write('x' * 99_999 + '\\n')
    sys.stdout.write('y' * 10_000_000)
    for _ in range(100_000): print('line')
    return {}
";
    let ran = world.python(text, json!({})).await;
    let bytes: usize = ran.notes.lines.iter().map(|line| line.text.len()).sum();
    assert!(bytes < 10 << 20, "{bytes} bytes kept");
    assert!(ran.notes.dropped_lines > 80_000);
    ran.result();
}

#[tokio::test]
async fn an_agent_without_python_says_so() {
    for python in ["/nothing/like/python3", "/bin/true"] {
        let world = World::with(|config| config.python.python = python.into());
        let ran = world.python("def handle(p): return {}", json!({})).await;
        assert_eq!(ran.failure().kind, HandlerFailureKind::Unavailable);
        assert!(
            ran.failure().message.starts_with(&format!("cannot use {python} as Python")),
            "{}",
            ran.failure()
        );
    }
}

#[tokio::test]
async fn a_module_may_have_a_name_that_python_uses_itself() {
    let world = World::new();
    for name in ["queue", "struct", "agentflow_host"] {
        world.write(&format!("{name}.py"), "def handle(payload): return {'mine': True}");
        assert_eq!(
            world.run(&Registration::new(FACET, name), json!({})).await.result()["mine"],
            true,
            "{name}"
        );
    }
}

#[tokio::test]
async fn output_between_calls_is_in_no_log() {
    let world = World::new();
    let text = "
import os, subprocess
def handle(payload):
    fifo = payload['fifo']
    os.mkfifo(fifo)
    os.mkfifo(fifo + '2')
    subprocess.Popen(['sh', '-c', f'read x < {fifo}; echo late; echo > {fifo}2'])
    return {}
def quiet(payload): return {}
";
    let fifo = world.path("fifo");
    world.python(text, json!({"fifo": fifo})).await.result();
    std::fs::write(&fifo, "go\n").unwrap();
    std::fs::read(world.path("fifo2")).unwrap();
    let mut registration = Registration::new(FACET, "handlers");
    registration.entrypoint = "quiet".to_owned();
    assert_eq!(world.run(&registration, json!({})).await.notes.lines, []);
}

#[tokio::test]
async fn a_worker_is_reused_and_calls_at_once_have_one_each() {
    let world = World::new();
    world.write("handlers.py", "import os, time\ndef handle(p):\n    if p.get('make'): open(p['make'], 'w').close()\n    while p.get('wait') and not os.path.exists(p['wait']): time.sleep(0.001)\n    return {'pid': os.getpid()}");
    let registration = Registration::new(FACET, "handlers");
    let pid = async |payload| world.run(&registration, payload).await.result()["pid"].clone();
    let first = pid(json!({})).await;
    assert_eq!(first, pid(json!({})).await);
    // Each waits for what the other makes, so they must run at the same time.
    let (left, right) = (world.path("left"), world.path("right"));
    let (one, other) =
        tokio::join!(pid(json!({"make": left, "wait": right})), pid(json!({"make": right, "wait": left})));
    assert_ne!(one, other);
    assert!(one == first || other == first);
}
