//! G4: work that must happen at most once, with handlers of every host that answer badly. Effects are counted outside.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afl_agents::handler::{Call, HandlerFailure, Outcome, blocking, concurrent};
use afl_agents::http::{AllowedHosts, HttpConfig};
use afl_agents::registration::Registration;
use afl_agents::worker::{Profile, Worker};
use afl_agents::{Hosts, HostsConfig, PythonConfig, Roots};
use afl_runtime::RunId;
use afl_runtime::agent::{Task, TaskState};
use afl_runtime::{Again, Error, StateRefusal, TaskQuery};
use futures_util::future::join_all;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::world::{World, object, work};

const ONCE: &str = r#"
namespace post {
    event facet Send(to: String) => (sent: Boolean)
    workflow Mail(to: String) => (sent: Boolean) andThen {
        letter = Send(to = $.to) with Effect(kind = "once") with Retry(max = 3, backoff_ms = 0)
        yield Mail(sent = letter.sent)
    }
}
"#;

/// Long enough for a busy machine to start a handler.
const TIMEOUT_MS: i64 = 5_000;

/// The end of the step after all attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnceEnd {
    Completed,
    /// A person is asked whether it happened.
    Uncertain,
    /// The handler reported a failure, and nothing repeats it.
    Reported,
    /// All three attempts were made, because nothing happened in any of them.
    Exhausted,
}

impl OnceEnd {
    fn of(task: &Task) -> Self {
        match task.state {
            TaskState::Completed => Self::Completed,
            TaskState::Failed if task.is_uncertain() => Self::Uncertain,
            TaskState::Failed if task.needs_decision() => Self::Reported,
            TaskState::Failed => Self::Exhausted,
            other => panic!("the task is {other}: {task:?}"),
        }
    }
}

/// A folder of handlers, and the file in which each effect is a line.
struct OnceSite {
    folder: TempDir,
}

impl OnceSite {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn hosts(&self, python: PythonConfig) -> Arc<Hosts> {
        let roots = Roots::new([self.folder.path()]).unwrap();
        let http = HttpConfig { allowed: AllowedHosts::new(["127.0.0.1"]).unwrap(), ..HttpConfig::default() };
        Arc::new(Hosts::new(HostsConfig { roots, python, http }).unwrap())
    }

    /// Counts them, and forgets them.
    fn effects(&self) -> usize {
        let effects = self.path("effects");
        let count = fs::read_to_string(&effects).unwrap_or_default().lines().count();
        fs::write(effects, "").unwrap();
        count
    }

    fn program(&self, body: &str) -> String {
        let path = self.path("program");
        let text = format!("#!/bin/sh\necho paid >> {}\n{body}\n", self.path("effects").display());
        // The file of a program that just ended may be busy.
        drop(fs::remove_file(&path));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("exec:{}", path.display())
    }
}

fn worker(world: &World, hosts: &Arc<Hosts>, uri: &str) -> Worker {
    let registration = Registration { timeout_ms: TIMEOUT_MS, ..Registration::new("post.Send", uri) };
    world.worker(Profile::Poller).with_hosts(hosts.clone()).with_registrations(vec![registration])
}

async fn task(world: &World, run: &RunId) -> Task {
    let query = TaskQuery { run: Some(run.clone()), limit: 1, ..TaskQuery::default() };
    world.service.tasks(&query).await.unwrap().tasks.remove(0)
}

/// Does the work until no agent is offered any, then what a person may do without a decision.
async fn end_of(hosts: &Arc<Hosts>, uri: &str, to: &str) -> (OnceEnd, Task) {
    let world = World::new();
    let worker = worker(&world, hosts, uri);
    let run = world.start(ONCE, json!({"to": to})).await;
    while worker.poll_once().await.unwrap() > 0 {}
    let ended = task(&world, &run).await;
    let end = OnceEnd::of(&ended);
    let again = world.service.retry(&run, &Again::Run).await;
    let is_refused = matches!(again, Err(Error::Refused(StateRefusal::Undecided { .. })));
    assert_eq!(is_refused, matches!(end, OnceEnd::Uncertain | OnceEnd::Reported), "{to}: {again:?}");
    (end, ended)
}

const PYTHON: &str = r#"
import asyncio, os, signal, sys
from agentflow import NotDone

class Odd(dict):
    def items(self):
        raise RuntimeError("no items")

def handle(payload, ctx):
    to = payload["to"]
    if to == "nobody":
        raise NotDone("no such address")
    if to == "nobody at first" and ctx.attempt < 3:
        raise NotDone("not yet")
    with open(EFFECTS, "a") as effects:
        print("paid", file=effects)
    if to == "nan": return {"sent": float("nan")}
    if to == "surrogate": return {"sent": "\ud800"}
    if to == "str": return "sent"
    if to == "none": return None
    if to == "odd": return Odd(sent=True)
    if to == "long": return {"sent": 2 ** 70}
    if to == "type": return {"sent": "yes"}
    if to == "lacks": return {"send": True}
    if to == "update": ctx.update(sent=float("nan"))
    if to == "exit": sys.exit(0)
    if to == "interrupt": raise KeyboardInterrupt
    if to == "_exit": os._exit(0)
    if to == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if to == "exception": raise ValueError("refused by the bank")
    if to == "memory": raise MemoryError
    return {"sent": True}
"#;

#[tokio::test]
async fn g4_once_work_in_python_is_never_repeated_unless_it_says_that_nothing_happened() {
    let site = OnceSite::new();
    let effects = format!("EFFECTS = {:?}\n", site.path("effects").to_str().unwrap());
    fs::write(site.path("handlers.py"), effects + PYTHON).unwrap();
    let hosts = site.hosts(PythonConfig::default());
    for (to, expected, effects) in [
        ("ada", OnceEnd::Completed, 1),
        ("nan", OnceEnd::Uncertain, 1),
        ("surrogate", OnceEnd::Uncertain, 1),
        ("str", OnceEnd::Uncertain, 1),
        ("none", OnceEnd::Uncertain, 1),
        ("odd", OnceEnd::Uncertain, 1),
        ("long", OnceEnd::Uncertain, 1),
        ("type", OnceEnd::Uncertain, 1),
        ("lacks", OnceEnd::Uncertain, 1),
        ("update", OnceEnd::Uncertain, 1),
        ("exit", OnceEnd::Uncertain, 1),
        ("interrupt", OnceEnd::Uncertain, 1),
        ("_exit", OnceEnd::Uncertain, 1),
        ("kill", OnceEnd::Uncertain, 1),
        ("exception", OnceEnd::Reported, 1),
        ("memory", OnceEnd::Reported, 1),
        ("nobody", OnceEnd::Exhausted, 0),
        ("nobody at first", OnceEnd::Completed, 1),
    ] {
        let (end, task) = end_of(&hosts, "handlers", to).await;
        assert_eq!((end, site.effects()), (expected, effects), "{to}: {task:?}");
        let claims = match expected {
            OnceEnd::Exhausted => 3,
            OnceEnd::Completed if to != "ada" => 3,
            OnceEnd::Completed | OnceEnd::Uncertain | OnceEnd::Reported => 1,
        };
        assert_eq!(task.token, claims, "{to}");
    }
}

#[tokio::test]
async fn g4_once_work_of_a_program_is_never_repeated_unless_it_exits_with_75() {
    let site = OnceSite::new();
    let hosts = site.hosts(PythonConfig::default());
    for (body, expected, effects) in [
        ("echo '{\"sent\": true}'", OnceEnd::Completed, 1),
        ("echo '{\"sent\": tr'", OnceEnd::Uncertain, 1),
        ("echo '[1]'", OnceEnd::Uncertain, 1),
        ("echo '{\"sent\": \"yes\"}'", OnceEnd::Uncertain, 1),
        ("echo '{}'", OnceEnd::Uncertain, 1),
        ("true", OnceEnd::Uncertain, 1),
        ("kill -9 $$", OnceEnd::Uncertain, 1),
        ("kill -15 $$", OnceEnd::Uncertain, 1),
        ("exit 1", OnceEnd::Reported, 1),
        ("echo '{\"sent\": true}'; exit 74", OnceEnd::Reported, 1),
        ("exit 127", OnceEnd::Reported, 1),
        // The line says that it was tried; the program says that nothing came of it.
        ("exit 75", OnceEnd::Exhausted, 3),
    ] {
        let (end, task) = end_of(&hosts, &site.program(body), "ada").await;
        assert_eq!((end, site.effects()), (expected, effects), "{body}: {task:?}");
    }
}

/// How a server ends a connection after its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hangup {
    Close,
    Reset,
    Never,
}

/// Takes whole requests, which are the effects, and answers each with the same bytes.
struct CutServer {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl CutServer {
    async fn answering(answer: &[u8], hangup: Hangup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (answer.to_vec(), requests.clone());
        tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                read_request(&mut stream).await;
                count.fetch_add(1, Ordering::SeqCst);
                drop(stream.write_all(&answer).await);
                match hangup {
                    Hangup::Close => drop(stream.shutdown().await),
                    #[expect(
                        deprecated,
                        reason = "without a linger there is no reset, and zero does not block"
                    )]
                    Hangup::Reset => stream.set_linger(Some(std::time::Duration::ZERO)).unwrap(),
                    Hangup::Never => open.push(stream),
                }
            }
        });
        Self { port, requests }
    }

    fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/pay", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the client hung up");
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse().unwrap() {
            return;
        }
    }
}

fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}");
    format!("{head}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn g4_once_work_over_http_happens_once_wherever_the_answer_breaks() {
    let hosts = OnceSite::new().hosts(PythonConfig::default());
    let whole = answer("200 OK", "application/json", "{\"sent\": true}");
    for hangup in [Hangup::Close, Hangup::Reset] {
        for cut in 0..whole.len() {
            let server = CutServer::answering(&whole[..cut], hangup).await;
            let (end, task) = end_of(&hosts, &server.uri(), "ada").await;
            let case = format!("{hangup:?} after {cut} bytes: {task:?}");
            assert_eq!((end, server.requests(), task.token), (OnceEnd::Uncertain, 1, 1), "{case}");
        }
    }
    let server = CutServer::answering(&whole, Hangup::Close).await;
    assert_eq!(end_of(&hosts, &server.uri(), "ada").await.0, OnceEnd::Completed);
}

/// A connection that is used again may be closed by the server at any time.
#[tokio::test]
async fn g4_once_work_over_http_happens_once_on_a_connection_that_is_used_again() {
    let hosts = OnceSite::new().hosts(PythonConfig::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/pay", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        let whole = answer("200 OK", "application/json", "{\"sent\": true}");
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The first request of a connection is answered, the second is read and lost.
            read_request(&mut stream).await;
            count.fetch_add(1, Ordering::SeqCst);
            stream.write_all(&whole).await.unwrap();
            read_request(&mut stream).await;
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    assert_eq!(end_of(&hosts, &uri, "ada").await.0, OnceEnd::Completed);
    let (end, task) = end_of(&hosts, &uri, "grace").await;
    assert_eq!((end, requests.load(Ordering::SeqCst)), (OnceEnd::Uncertain, 2), "{task:?}");
}

#[tokio::test]
async fn g4_once_work_that_timed_out_after_its_start_is_uncertain() {
    let site = OnceSite::new();
    let effects = site.path("effects");
    let python = format!(
        "import time\ndef handle(payload):\n    open({:?}, 'a').write('paid\\n')\n    time.sleep(600)\n",
        effects.to_str().unwrap()
    );
    fs::write(site.path("handlers.py"), python).unwrap();
    let hosts = site.hosts(PythonConfig::default());
    let program = site.program("exec sleep 600");
    let silent = CutServer::answering(b"HTTP/1.1 200 OK\r\n", Hangup::Never).await;
    let uri = silent.uri();
    let ends = ["handlers", &program, &uri].map(|uri| end_of(&hosts, uri, "ada"));
    for (end, task) in join_all(ends).await {
        assert_eq!((end, task.token), (OnceEnd::Uncertain, 1), "{task:?}");
    }
    assert_eq!((site.effects(), silent.requests()), (2, 1));
}

#[tokio::test]
async fn g4_once_work_over_http_is_never_repeated_unless_the_answer_says_that_nothing_happened() {
    let hosts = OnceSite::new().hosts(PythonConfig::default());
    let (json, problem) = ("application/json", "application/problem+json; charset=utf-8");
    let not_done = r#"{"type": "not-done", "title": "closed"}"#;
    for (status, content_type, body, expected, requests) in [
        ("200 OK", json, "{\"sent\": true}", OnceEnd::Completed, 1),
        ("200 OK", json, "{\"sent\": tr", OnceEnd::Uncertain, 1),
        ("200 OK", "text/html", "<p>ok</p>", OnceEnd::Uncertain, 1),
        ("200 OK", json, "[true]", OnceEnd::Uncertain, 1),
        ("200 OK", json, "{\"sent\": \"yes\"}", OnceEnd::Uncertain, 1),
        ("202 Accepted", json, "", OnceEnd::Uncertain, 1),
        ("303 See Other", json, "", OnceEnd::Uncertain, 1),
        ("500 Internal CutServer Error", json, "{}", OnceEnd::Uncertain, 1),
        ("502 Bad Gateway", "text/html", "", OnceEnd::Uncertain, 1),
        ("503 Service Unavailable", json, "", OnceEnd::Uncertain, 1),
        ("504 Gateway Timeout", json, "", OnceEnd::Uncertain, 1),
        ("400 Bad Request", json, "{}", OnceEnd::Reported, 1),
        ("404 Not Found", json, "{}", OnceEnd::Reported, 1),
        ("409 Conflict", problem, r#"{"type": "about:blank"}"#, OnceEnd::Reported, 1),
        ("429 Too Many Requests", json, "{}", OnceEnd::Reported, 1),
        ("503 Service Unavailable", problem, not_done, OnceEnd::Exhausted, 3),
        (
            "409 Conflict",
            problem,
            r#"{"type": "https://bank.example/problems/not-done"}"#,
            OnceEnd::Exhausted,
            3,
        ),
        // Only a problem document says it.
        ("409 Conflict", json, not_done, OnceEnd::Reported, 1),
        ("200 OK", problem, not_done, OnceEnd::Uncertain, 1),
    ] {
        let server = CutServer::answering(&answer(status, content_type, body), Hangup::Close).await;
        let (end, task) = end_of(&hosts, &server.uri(), "ada").await;
        assert_eq!((end, server.requests()), (expected, requests), "{status} {body}: {task:?}");
    }
}

async fn end_of_function(function: impl Fn(Call) -> Outcome + Send + Sync + 'static) -> (OnceEnd, u64) {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    worker.register("Send", blocking(function));
    let run = world.start(ONCE, json!({"to": "ada"})).await;
    while worker.poll_once().await.unwrap() > 0 {}
    let task = task(&world, &run).await;
    (OnceEnd::of(&task), task.token)
}

#[tokio::test]
async fn g4_once_work_of_a_function_that_crashed_is_uncertain() {
    let crashed = end_of_function(|_| panic!("in the middle of it")).await;
    assert_eq!(crashed, (OnceEnd::Uncertain, 1));
    let failed = end_of_function(|_| Err(HandlerFailure::unavailable("the bank does not answer"))).await;
    assert_eq!(failed, (OnceEnd::Reported, 1));
    let not_done = end_of_function(|_| Err(HandlerFailure::error("it is Sunday").not_done())).await;
    assert_eq!(not_done, (OnceEnd::Exhausted, 3));
    let unusable = end_of_function(|_| Ok(object(json!({"sent": "yes"})))).await;
    assert_eq!(unusable, (OnceEnd::Uncertain, 1));
}

#[tokio::test]
async fn g4_once_work_that_has_begun_is_not_given_back_at_shutdown() {
    let world = World::new();
    let slow = world.worker_with(Profile::Poller, |config| config.shutdown_timeout_ms = 1);
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    slow.register(
        "Send",
        concurrent(move |call: Call| {
            let tell = tell.clone();
            async move {
                tell.notify_one();
                call.context.stopped().await;
                Ok(object(json!({"sent": true})))
            }
        }),
    );
    let run = world.start(ONCE, json!({"to": "ada"})).await;
    let working = work(&slow);
    begun.notified().await;
    working.stop().await;
    let task = task(&world, &run).await;
    assert_eq!((OnceEnd::of(&task), task.token), (OnceEnd::Uncertain, 1), "{task:?}");
    let other = world.worker(Profile::Poller);
    other.register("Send", blocking(|_| panic!("it happens twice")));
    assert_eq!(other.poll_once().await.unwrap(), 0);
}

const TWO: &str = r#"
namespace post {
    event facet Send(to: String) => (sent: Boolean)
    workflow Mails(to: [String]) => (sent: [Boolean]) andThen foreach one in $.to {
        letter = Send(to = $.one) with Effect(kind = "once")
        yield Mails(sent = [letter.sent])
    }
}
"#;

/// Only one of two can have the one process; the other has not begun, and another agent does it.
#[tokio::test]
async fn g4_once_work_that_waits_in_line_is_given_back_at_shutdown() {
    let site = OnceSite::new();
    let effects = site.path("effects");
    let text = format!(
        "import time\ndef handle(payload):\n    with open({:?}, 'a') as effects: print('paid', file=effects)\n    time.sleep(600)\n",
        effects.to_str().unwrap()
    );
    fs::write(site.path("handlers.py"), text).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&effects).status().unwrap();
    assert!(made.success());
    let world = World::new();
    let hosts = site.hosts(PythonConfig { workers: 1, ..PythonConfig::default() });
    let registration = Registration { timeout_ms: 600_000, ..Registration::new("post.Send", "handlers") };
    let slow = world.worker_with(Profile::Poller, |config| config.shutdown_timeout_ms = 1);
    let slow = slow.with_hosts(hosts).with_registrations(vec![registration]);
    let run = world.start(TWO, json!({"to": ["ada", "grace"]})).await;
    let working = work(&slow);
    // A pipe blocks until the first handler has written.
    tokio::task::spawn_blocking(move || fs::read_to_string(effects).unwrap()).await.unwrap();
    let query = TaskQuery { run: Some(run.clone()), limit: 2, ..TaskQuery::default() };
    while world.service.tasks(&query).await.unwrap().tasks.iter().any(|task| task.state != TaskState::Running)
    {
        tokio::task::yield_now().await;
    }
    working.stop().await;
    let mut states: Vec<_> = world
        .service
        .tasks(&query)
        .await
        .unwrap()
        .tasks
        .iter()
        .map(|task| (task.state, task.is_uncertain()))
        .collect();
    states.sort_by_key(|(_, is_uncertain)| *is_uncertain);
    assert_eq!(states, [(TaskState::Pending, false), (TaskState::Failed, true)]);
}
