//! Names whose addresses change between one look and the next.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::dns::{Addrs, Name, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// The one that the test allows stands for the public internet, the other for the network of the agent.
const PUBLIC: Ipv4Addr = Ipv4Addr::LOCALHOST;
const PRIVATE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Answers the first look with these addresses, the second with the next, and so on.
struct Changing {
    answers: Vec<Vec<Ipv4Addr>>,
    looks: Arc<AtomicUsize>,
}

impl Resolve for Changing {
    fn resolve(&self, _: Name) -> Resolving {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let found = self.answers[look].clone();
        let found = found.into_iter().map(|address| SocketAddr::from((address, 0)));
        Box::pin(async move { Ok(Box::new(found) as Addrs) })
    }
}

/// Says at which address of this machine each caller called.
async fn serve(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("somebody calls");
        let called = stream.local_addr().expect("it is connected").ip();
        let mut request = [0; 4_096];
        let read = stream.read(&mut request).await.expect("it asks");
        assert!(read > 0, "a caller said nothing");
        let body = format!("\"{called}\"");
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.expect("it listens");
    }
}

#[tokio::test]
async fn f19_a_name_that_turns_to_a_private_address_is_refused_at_every_call() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
    let url = format!("http://rebinding.example:{}/", listener.local_addr().expect("it is bound").port());
    tokio::spawn(serve(listener));
    let looks = Arc::new(AtomicUsize::new(0));
    let answers = vec![vec![PUBLIC], vec![PRIVATE], vec![PUBLIC, PRIVATE], vec![PUBLIC]];
    let config = HttpConfig {
        allowed: AllowedHosts::new(["127.0.0.1"]).expect("an address"),
        ..HttpConfig::default()
    };
    let host = HttpClient::with_names(config, Changing { answers, looks: looks.clone() });
    for (nth, is_admitted) in [true, false, false, true].into_iter().enumerate() {
        match host.get(&url).await {
            Ok(answer) => assert!(is_admitted && answer["body"] == json!(PUBLIC), "{nth}: {answer:?}"),
            Err(failure) => {
                assert!(!is_admitted && failure.kind == HandlerFailureKind::Refused, "{nth}: {failure}");
            }
        }
        assert_eq!(looks.load(Ordering::SeqCst), nth + 1, "what was looked at is what is called");
    }
}
