//! Against a server on this machine that answers as the test says.

use std::fmt::Write as _;

use afl_agents::handler::{CancelReason, HandlerFailureKind};
use afl_agents::http::{AllowedHosts, Secret};
use afl_agents::registration::Registration;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use insta::assert_snapshot;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::world::{FACET, World, call};

struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Answers every connection with these bytes; gives the requests when it is stopped.
struct Server {
    port: u16,
    task: JoinHandle<Vec<Request>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Server {
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut requests = Vec::new();
            loop {
                let (mut stream, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    _ = &mut stopped => return requests,
                };
                requests.push(read(&mut stream).await);
                // The client may have heard enough.
                drop(stream.write_all(&answer).await);
            }
        });
        Self { port, task, stop }
    }

    async fn requests(self) -> Vec<Request> {
        self.stop.send(()).unwrap();
        self.task.await.unwrap()
    }

    fn registration(&self) -> Registration {
        Registration::new(FACET, format!("http://127.0.0.1:{}/pay?token=hidden", self.port))
    }
}

async fn read(stream: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes.drain(..end + 4).collect()).unwrap();
        let request = Request { head, body: Vec::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        break (request.head, length);
    };
    while bytes.len() < length {
        stream.read_buf(&mut bytes).await.unwrap();
    }
    Request { head, body: bytes }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn a_call_is_one_post_with_its_key_and_signature() {
    let secret = b"a shared secret of some length";
    let world = World::with(|config| {
        let text = format!("whsec_{}", STANDARD.encode(secret));
        config.http.secrets.insert("billing".to_owned(), Secret::new(&text));
    });
    let server = Server::answering(answer("200 OK", "", r#"{"id": "txn-1"}"#)).await;
    let mut registration = server.registration();
    registration.metadata.insert("secret".to_owned(), json!("billing"));
    registration.metadata.insert("headers".to_owned(), json!({"x-region": "eu"}));
    assert_eq!(world.run(&registration, json!({"amount": 5})).await.result()["id"], "txn-1");

    let requests = server.requests().await;
    let [request] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert!(request.head.starts_with("POST /pay?token=hidden HTTP/1.1"));
    assert_eq!(request.header("idempotency-key"), Some("run-1/wb0s0"));
    assert_eq!((request.header("afl-facet"), request.header("x-region")), (Some(FACET), Some("eu")));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&body["amount"], &body["_facet_name"]), (&json!(5), &json!(FACET)));

    let (id, time) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(format!("{id}.{time}.").as_bytes());
    mac.update(&request.body);
    let signature = request.header("webhook-signature").unwrap().strip_prefix("v1,").unwrap();
    mac.verify_slice(&STANDARD.decode(signature).unwrap()).unwrap();

    let mut unknown = registration.clone();
    unknown.metadata.insert("secret".to_owned(), json!("other"));
    assert_snapshot!(world.run(&unknown, json!({})).await.failure(), @"refused: the agent has no secret `other` to sign with: configure it, or sign with another");
}

/// Answers, and how each is judged; none is asked for twice.
#[tokio::test]
async fn f19_an_answer_is_judged_by_its_status_then_by_its_body() {
    let world = World::new();
    let mut texts = String::new();
    for (status, headers, body) in [
        ("200 OK", "", "[1]"),
        ("200 OK", "", "oops"),
        ("200 OK", "", r#"{"a": [1, -9223372036854775809]}"#),
        ("200 OK", "", r#"{"a": {"id": 1, "id": 1}}"#),
        ("204 No Content", "", ""),
        ("302 Found", "location: http://127.0.0.1/other\r\n", ""),
        ("307 Temporary Redirect", "location: http://169.254.169.254/\r\n", ""),
        ("400 Bad Request", "", r#"{"error": {"message": "no such account"}}"#),
        ("404 Not Found", "", "nothing here"),
        ("429 Too Many Requests", "", r#"{"error": "slow down"}"#),
        ("500 Internal Server Error", "", ""),
        ("503 Service Unavailable", "", ""),
        ("504 Gateway Timeout", "", ""),
    ] {
        let server = Server::answering(answer(status, headers, body)).await;
        let port = server.port.to_string();
        let ran = world.run(&server.registration(), json!({})).await;
        assert_eq!(server.requests().await.len(), 1, "{status}");
        writeln!(texts, "{status} {body}\n    {}", ran.failure().to_string().replace(&port, "PORT")).unwrap();
    }
    assert_snapshot!(texts);
}

#[tokio::test]
async fn f14_an_answer_without_end_is_cut() {
    let world = World::new();
    let body = "x".repeat(33 << 20);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let server = Server::answering(chunked).await;
    let ran = world.run(&server.registration(), json!({})).await;
    assert_eq!(ran.failure().kind, HandlerFailureKind::InvalidResult);
    assert!(ran.failure().message.contains("answered with more than 33554432 bytes"), "{}", ran.failure());
    assert!(!ran.failure().message.contains("hidden"), "{}", ran.failure());
}

#[tokio::test]
async fn a_server_that_is_silent_times_out_and_one_that_is_gone_is_unavailable() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut registration = Registration::new(FACET, format!("http://{}/", listener.local_addr().unwrap()));
    registration.timeout_ms = 100;
    assert_eq!(world.run(&registration, json!({})).await.failure().kind, HandlerFailureKind::Timeout);

    registration.timeout_ms = 30_000;
    let (call, control) = call(json!({}));
    let (outcome, ()) = tokio::join!(world.hosts.run(&registration, call), async {
        listener.accept().await.unwrap();
        control.cancel(CancelReason::Requested);
    });
    let Err(failure) = outcome else { panic!("{outcome:?}") };
    assert!(
        matches!(failure.kind, HandlerFailureKind::Canceled | HandlerFailureKind::Unavailable),
        "{failure}"
    );

    drop(listener);
    assert_eq!(world.run(&registration, json!({})).await.failure().kind, HandlerFailureKind::Unavailable);
    let cut = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").await;
    let ran = world.run(&cut.registration(), json!({})).await;
    assert!(matches!(ran.failure().kind, HandlerFailureKind::Unavailable), "{}", ran.failure());
}

#[tokio::test]
async fn f19_private_addresses_are_refused_by_number_and_by_name() {
    let world = World::with(|config| config.http.allowed = AllowedHosts::default());
    let server = Server::answering(answer("200 OK", "", "{}")).await;
    let port = server.port;
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
    ] {
        let registration = Registration::new(FACET, format!("http://{host}:{port}/"));
        let ran = world.run(&registration, json!({})).await;
        assert_eq!(ran.failure().kind, HandlerFailureKind::Refused, "{host}: {}", ran.failure());
    }
    assert!(server.requests().await.is_empty());

    let named = World::with(|config| config.http.allowed = AllowedHosts::new(["localhost"]).unwrap());
    let server = Server::answering(answer("200 OK", "", "{}")).await;
    let registration = Registration::new(FACET, format!("http://localhost:{}/", server.port));
    named.run(&registration, json!({})).await.result();
}
