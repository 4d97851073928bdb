use std::time::{Duration, Instant};

use afl_agents::handler::{CancelReason, HandlerFailureKind, LogStream};
use afl_agents::registration::Registration;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{FACET, World, call, number_in, wait_for_death};

fn impatient(uri: &str) -> Registration {
    let mut registration = Registration::new(FACET, uri);
    registration.timeout_ms = 300;
    registration
}

/// Python that ends before its answer, and the message.
#[tokio::test]
async fn f15_an_interpreter_that_dies_is_a_failed_attempt() {
    let world = World::new();
    let mut texts = Vec::new();
    for body in [
        "os.abort()",
        "os._exit(3)",
        "os._exit(0)",
        "sys.exit(4)",
        "os.kill(os.getpid(), 11)",
        "os.kill(os.getpid(), 9)",
        "raise KeyboardInterrupt",
        "os.closerange(3, 1000)",
    ] {
        let text = format!("import os, sys\ndef handle(payload):\n    print('last words')\n    {body}\n");
        let ran = world.python(&text, json!({})).await;
        assert_eq!(ran.lines(LogStream::Stdout), ["last words"], "{body}");
        texts.push(format!("{body}\n    {}", ran.failure()));
    }
    assert_snapshot!(texts.join("\n"));
    // The pool has a new one.
    assert!(world.python("def handle(p): return {}", json!({})).await.result().is_empty());
}

#[tokio::test]
async fn f15_a_forked_process_neither_speaks_for_its_parent_nor_hides_its_death() {
    let world = World::new();
    let text = "
import os, time
def handle(payload, ctx):
    child = os.fork()
    if child == 0:
        print('from the fork')
        ctx.log('from the fork')
        ctx.update(fork=True)
        if payload['stay']: time.sleep(1000)
        os._exit(0)
    if payload['stay']:
        open(payload['child'], 'w').write(str(child))
        os._exit(5)
    os.waitpid(child, 0)
    return {'parent': True}
";
    let child = world.path("child");
    let ran = world.python(text, json!({"stay": false, "child": child})).await;
    assert_eq!((ran.lines(LogStream::Stdout), ran.lines(LogStream::System)), (vec!["from the fork"], vec![]));
    assert_eq!(ran.notes.update, None);
    assert_eq!(ran.result()["parent"], true);
    let ran = world.python(text, json!({"stay": true, "child": child})).await;
    assert_eq!(ran.failure().details["exit_code"], 5);
    wait_for_death(number_in(&child));
}

#[tokio::test]
async fn a_crash_shows_the_end_of_standard_error() {
    let world = World::new();
    let text = "import faulthandler, os, sys\nfaulthandler.enable()\ndef handle(payload):\n    os.abort()\n";
    let ran = world.python(text, json!({})).await;
    assert!(ran.failure().details["stderr"].as_str().unwrap().contains("Fatal Python error: Aborted"));
}

// covers: SDK-8.4-c
#[tokio::test]
async fn f15_an_endless_loop_is_killed_with_its_children_at_the_timeout() {
    let world = World::new();
    let text = "
import os, signal, subprocess
def handle(payload):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(['sleep', '1000'])
    open(payload['pids'], 'w').write(str(child.pid))
    open(payload['own'], 'w').write(str(os.getpid()))
    while True: pass
";
    world.write("handlers.py", text);
    let (pids, own) = (world.path("pids"), world.path("own"));
    let mut registration = impatient("handlers");
    registration.timeout_ms = 2_000;
    let ran = world.run(&registration, json!({"pids": pids, "own": own})).await;
    assert_snapshot!(ran.failure(), @"timeout: no sign of life from the handler of Checkout.payment for 2000 ms: make it faster, let it call heartbeat, or raise timeout_ms");
    wait_for_death(number_in(&pids));
    wait_for_death(number_in(&own));
}

#[tokio::test]
async fn t14_a_python_handler_that_gives_signs_of_life_may_take_longer() {
    let world = World::new();
    let text = "
import time
def handle(payload, ctx):
    for number in range(12):
        time.sleep(0.1)
        [ctx.heartbeat, ctx.progress, lambda: ctx.update(number=number)][number % 3]()
    return {}
";
    world.write("handlers.py", text);
    let mut registration = impatient("handlers");
    registration.timeout_ms = 1_000;
    assert!(world.run(&registration, json!({})).await.result().is_empty());
}

/// Cancels when the handler has made a file.
async fn cancel(world: &World, text: &str) -> (Duration, HandlerFailureKind) {
    world.write("handlers.py", text);
    let (call, control) = call(json!({"started": world.path("started")}));
    let registration = Registration::new(FACET, "handlers");
    let running = world.hosts.run(&registration, call);
    let cancel = async {
        // The handler says so by its first progress.
        while control.notes().await.lines.is_empty() {}
        control.cancel(CancelReason::Requested);
        Instant::now()
    };
    let mut running = std::pin::pin!(running);
    let canceled = tokio::select! {
        canceled = cancel => canceled,
        outcome = &mut running => panic!("ended before it was canceled: {outcome:?}"),
    };
    let Err(failure) = running.await else { panic!("not canceled") };
    (canceled.elapsed(), failure.kind)
}

#[tokio::test]
async fn a_cancel_is_passed_to_handlers_that_can_notice_and_kills_the_others() {
    let world = World::new();
    let deaf = "
import os
def handle(payload):
    open(payload['started'], 'w').write(str(os.getpid()))
    print('started')
    while True: pass
";
    let (took, kind) = cancel(&world, deaf).await;
    assert_eq!(kind, HandlerFailureKind::Canceled);
    assert!(took < Duration::from_secs(5), "{took:?}");
    wait_for_death(number_in(&world.path("started")));

    let polite = "
import time
def handle(payload, ctx):
    print('started')
    while not ctx.cancelled: time.sleep(0.001)
    open(payload['started'], 'w').write('cleaned up')
    return {}
";
    assert_eq!(cancel(&world, polite).await.1, HandlerFailureKind::Canceled);
    assert_eq!(std::fs::read_to_string(world.path("started")).unwrap(), "cleaned up");

    let awaiting = "
import asyncio
async def handle(payload):
    print('started')
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        open(payload['started'], 'w').write('awaited')
        raise
";
    assert_eq!(cancel(&world, awaiting).await.1, HandlerFailureKind::Canceled);
    assert_eq!(std::fs::read_to_string(world.path("started")).unwrap(), "awaited");

    let stubborn = "
import os
def handle(payload, ctx):
    open(payload['started'], 'w').write(str(os.getpid()))
    print('started')
    while True: pass
";
    let (took, _) = cancel(&world, stubborn).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    wait_for_death(number_in(&world.path("started")));
}

#[tokio::test]
async fn a_call_that_waits_for_a_worker_is_not_overdue() {
    let world = World::with(|config| config.python.workers = 1);
    let text = "
import time
def handle(payload, ctx):
    for _ in range(payload['tenths']):
        time.sleep(0.1)
        ctx.heartbeat()
    return {}
";
    world.write("handlers.py", text);
    let mut registration = impatient("handlers");
    registration.timeout_ms = 1_000;
    let (first, second) = tokio::join!(
        world.run(&registration, json!({"tenths": 15})),
        world.run(&registration, json!({"tenths": 0}))
    );
    assert!(first.result().is_empty() && second.result().is_empty());
}

#[tokio::test]
async fn an_agent_that_closes_lets_its_workers_clean_up() {
    let world = World::new();
    let text = "
import atexit
def handle(payload):
    atexit.register(lambda: open(payload['left'], 'w').write('clean'))
    return {}
";
    let left = world.path("left");
    world.python(text, json!({"left": left})).await.result();
    world.hosts.close().await;
    assert_eq!(std::fs::read_to_string(left).unwrap(), "clean");
}

#[tokio::test]
async fn an_idle_worker_is_ended_and_may_clean_up() {
    let world = World::with(|config| config.python.idle_for = Duration::from_millis(50));
    let text = "
import atexit, os
def handle(payload):
    atexit.register(lambda: open(payload['left'], 'w').write('clean'))
    return {'pid': os.getpid()}
";
    let left = world.path("left");
    let pid = world.python(text, json!({"left": left})).await.result()["pid"].as_i64().unwrap();
    tokio::task::spawn_blocking(move || wait_for_death(i32::try_from(pid).unwrap())).await.unwrap();
    assert_eq!(std::fs::read_to_string(left).unwrap(), "clean");
}

#[tokio::test]
async fn a_worker_that_dies_while_idle_is_replaced() {
    let world = World::new();
    let text = "import os\ndef handle(payload): return {'pid': os.getpid()}";
    let pid = world.python(text, json!({})).await.result()["pid"].as_i64().unwrap();
    let pid = i32::try_from(pid).unwrap();
    let number = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(number, rustix::process::Signal::KILL).unwrap();
    wait_for_death(pid);
    let again = world.python(text, json!({})).await.result()["pid"].as_i64().unwrap();
    assert_ne!(i64::from(pid), again);
}

#[tokio::test]
async fn dropping_the_call_kills_its_process() {
    let world = World::new();
    let text = "
import os
def handle(payload, ctx):
    open(payload['own'], 'w').write(str(os.getpid()))
    ctx.log('started')
    while True: pass
";
    world.write("handlers.py", text);
    let (call, control) = call(json!({"own": world.path("own")}));
    let registration = Registration::new(FACET, "handlers");
    tokio::select! {
        _ = world.hosts.run(&registration, call) => panic!("ended"),
        () = async { while control.notes().await.lines.is_empty() {} } => {}
    }
    wait_for_death(number_in(&world.path("own")));
}
