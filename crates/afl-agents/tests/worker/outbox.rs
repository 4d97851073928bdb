//! Messages of the outbox on their way to a server on this machine.

use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use afl_agents::handler::concurrent;
use afl_agents::http::{AllowedHosts, HttpConfig, Secret};
use afl_agents::worker::{Profile, Worker, WorkerPhase};
use afl_agents::{Hosts, HostsConfig};
use afl_runtime::Millis;
use afl_runtime::outbox::{Channel, ChannelStatus, ChannelTarget};
use afl_store::outbox::Outbox;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::spy::Hearing;
use crate::world::{World, work};

const PURE: &str = "workflow W(n: Long) => (n: Long) andThen { yield W(n = $.n + 1) }";

/// Takes every post, remembers it, and answers as the test says.
#[derive(Clone)]
struct Receiver {
    answer: watch::Sender<StatusCode>,
    says: watch::Sender<Says>,
    posts: watch::Sender<Vec<Post>>,
}

/// The answer beside the status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Nothing,
    /// For ever.
    Much,
    /// The connection breaks.
    Broken,
    /// Not even the status, until the test says otherwise.
    NotYet,
}

#[derive(Clone, Debug)]
struct Post {
    headers: HeaderMap,
    body: Value,
}

impl Receiver {
    /// With the address it listens on.
    async fn listening() -> (Self, String) {
        let receiver = Self {
            answer: watch::Sender::new(StatusCode::OK),
            says: watch::Sender::new(Says::Nothing),
            posts: watch::Sender::new(Vec::new()),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?token=hidden", listener.local_addr().unwrap());
        let app = Router::new().route("/hook", post(take)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (receiver, url)
    }

    fn numbers(&self) -> Vec<i64> {
        self.posts.borrow().iter().map(|post| post.body["result"]["n"].as_i64().unwrap()).collect()
    }
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap();
    receiver.posts.send_modify(|posts| posts.push(Post { headers, body }));
    let says = *receiver.says.subscribe().wait_for(|says| *says != Says::NotYet).await.unwrap();
    let status = *receiver.answer.borrow();
    let words = || Ok::<_, std::io::Error>(Bytes::from_static(b"all is well, and more "));
    let body = match says {
        Says::Nothing | Says::NotYet => return status.into_response(),
        Says::Much => Body::from_stream(stream::repeat_with(words)),
        Says::Broken => {
            let end = stream::once(async {
                // Earlier answers go out first.
                tokio::task::yield_now().await;
                Err(std::io::Error::other("it broke"))
            });
            Body::from_stream(stream::repeat_with(words).take(1).chain(end))
        }
    };
    (status, body).into_response()
}

impl World {
    fn relaying(&self) -> Worker {
        let secrets = BTreeMap::from([("partner".to_owned(), Secret::new("a shared secret"))]);
        let http = HttpConfig { allowed: AllowedHosts::new(["127.0.0.1"]).unwrap(), secrets };
        let hosts = Hosts::new(HostsConfig { http, ..HostsConfig::default() }).unwrap();
        self.worker(Profile::Poller).with_hosts(Arc::new(hosts))
    }

    async fn channel(&self, to: &str, secret: Option<&str>) {
        let channel = Channel {
            to: to.parse::<ChannelTarget>().unwrap(),
            topics: vec!["run.*".to_owned()],
            facets: Vec::new(),
            secret: secret.map(str::to_owned),
            enabled: true,
            created: Millis(0),
            updated: Millis(0),
        };
        self.service.open_channel("out", channel).await.unwrap();
    }

    /// Runs that end at once, one after the other.
    async fn runs(&self, count: i64) {
        for n in 0..count {
            self.start(PURE, json!({ "n": n })).await;
            self.clock.advance(Millis(1));
        }
    }

    async fn status(&self) -> ChannelStatus {
        Outbox::new(self.store()).status("out", 100).await.unwrap()
    }
}

#[tokio::test]
async fn messages_are_posted_in_order_with_their_id_and_signature() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, Some("partner")).await;
    world.runs(3).await;
    world.relaying().relay_once(pending()).await.unwrap();
    assert_eq!(receiver.numbers(), [1, 2, 3]);
    assert_eq!(world.status().await, ChannelStatus::default());
    let post = receiver.posts.borrow()[0].clone();
    let header = |name: &str| post.headers.get(name).unwrap().to_str().unwrap();
    assert_eq!(post.body["id"], header("idempotency-key"));
    assert_eq!(header("webhook-id"), header("idempotency-key"));
    assert!(header("webhook-signature").starts_with("v1,"));
    assert_eq!((&post.body["topic"], &post.body["workflow"]), (&json!("run.completed"), &json!("W")));
}

#[tokio::test]
async fn a_message_that_is_not_taken_comes_again_under_the_same_id() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, None).await;
    world.runs(3).await;
    let worker = world.relaying();
    receiver.answer.send_replace(StatusCode::SERVICE_UNAVAILABLE);
    worker.relay_once(pending()).await.unwrap();
    assert_eq!(receiver.numbers(), [1], "a receiver that is away is not asked for each message");
    let status = world.status().await;
    assert_eq!((status.waiting, status.dead), (3, 0));
    let error = status.last_error.unwrap();
    assert!(error.contains("503") && !error.contains("hidden"), "{error}");
    receiver.answer.send_replace(StatusCode::OK);
    worker.relay_once(pending()).await.unwrap();
    assert_eq!(receiver.numbers(), [1, 1, 2, 3], "one that was away hears all in order");
    let posts = receiver.posts.borrow();
    let first = &posts[0].body["id"];
    assert_eq!(posts.iter().filter(|post| post.body["id"] == *first).count(), 2);
    assert_eq!(world.status().await.waiting, 0);
}

#[tokio::test]
async fn a_message_for_an_unreachable_receiver_is_given_up_after_a_day_and_reported() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, None).await;
    world.runs(30).await;
    let worker = world.relaying();
    receiver.answer.send_replace(StatusCode::SERVICE_UNAVAILABLE);
    for _ in 0..24 {
        worker.relay_once(pending()).await.unwrap();
        world.clock.advance(Millis(3_600_000));
    }
    assert_eq!((receiver.numbers(), world.status().await.dead), (vec![1; 24], 0));
    worker.relay_once(pending()).await.unwrap();
    let status = world.status().await;
    assert_eq!((status.waiting, status.dead), (29, 1));
    let mut titles = Vec::new();
    for _ in 0..2 {
        world.service.watch_over(world.clock.now()).await.unwrap();
        let notices = world.service.notifications(10).await.unwrap();
        titles = notices.into_iter().map(|it| it.notification.title).collect();
        titles.sort();
    }
    let told =
        ["messages for `out` could not be delivered", "messages for `out` have waited for more than a day"];
    assert_eq!(titles, told);
}

#[tokio::test]
async fn the_status_alone_says_whether_a_message_was_taken() {
    for says in [Says::Nothing, Says::Much, Says::Broken] {
        for (status, counts) in
            [(StatusCode::OK, (0, 0)), (StatusCode::BAD_REQUEST, (1, 0)), (StatusCode::GONE, (0, 1))]
        {
            let world = World::simulated(Hearing::Good);
            let (receiver, url) = Receiver::listening().await;
            receiver.says.send_replace(says);
            receiver.answer.send_replace(status);
            world.channel(&url, None).await;
            world.runs(1).await;
            world.relaying().relay_once(pending()).await.unwrap();
            let found = world.status().await;
            assert_eq!((found.waiting, found.dead), counts, "{status} {says:?}");
        }
    }
}

#[tokio::test]
async fn a_worker_that_stops_finishes_the_message_it_has_begun() {
    // By a real clock both runs may end in the same millisecond, and then the order of their messages is open.
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    receiver.says.send_replace(Says::NotYet);
    world.channel(&url, None).await;
    world.runs(2).await;
    let worker = world.relaying();
    let agent = work(&worker);
    let mut posts = receiver.posts.subscribe();
    posts.wait_for(|posts| posts.len() == 1).await.unwrap();
    let answer = async {
        while worker.phase() == WorkerPhase::Running {
            tokio::task::yield_now().await;
        }
        receiver.says.send_replace(Says::Nothing);
    };
    tokio::join!(agent.stop(), answer);
    assert_eq!((receiver.numbers(), world.status().await.waiting), (vec![1], 1));
}

#[tokio::test]
async fn a_refused_message_stops_no_other_and_an_undeliverable_one_is_put_aside() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, None).await;
    world.runs(2).await;
    let worker = world.relaying();
    receiver.answer.send_replace(StatusCode::UNPROCESSABLE_ENTITY);
    worker.relay_once(pending()).await.unwrap();
    assert_eq!((receiver.numbers(), world.status().await.waiting), (vec![1, 2], 2));
    receiver.answer.send_replace(StatusCode::GONE);
    world.clock.advance(Millis(1_000));
    worker.relay_once(pending()).await.unwrap();
    let status = world.status().await;
    assert_eq!((status.waiting, status.dead), (0, 2));
    world.service.watch_over(world.clock.now()).await.unwrap();
    let notices = world.service.notifications(10).await.unwrap();
    let [notice] = &notices[..] else { panic!("{} notifications", notices.len()) };
    assert!(notice.notification.title.contains("`out`"), "{notice:?}");
    receiver.answer.send_replace(StatusCode::NO_CONTENT);
    assert_eq!(world.service.revive_channel("out").await.unwrap(), 2);
    worker.relay_once(pending()).await.unwrap();
    assert_eq!(world.status().await, ChannelStatus::default());
}

#[tokio::test]
async fn a_private_address_is_not_posted_to() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url.replace("127.0.0.1", "127.0.0.2"), None).await;
    world.runs(1).await;
    world.relaying().relay_once(pending()).await.unwrap();
    assert_eq!(receiver.posts.borrow().len(), 0);
    let error = world.status().await.last_error.unwrap();
    assert!(error.contains("no public address"), "{error}");
}

#[tokio::test]
async fn an_agent_that_cannot_deliver_spoils_nothing_for_those_that_can() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, Some("partner")).await;
    world.runs(2).await;
    let http = HttpConfig { allowed: AllowedHosts::new(["127.0.0.1"]).unwrap(), ..HttpConfig::default() };
    let hosts = Hosts::new(HostsConfig { http, ..HostsConfig::default() }).unwrap();
    let without_secret = world.worker(Profile::Poller).with_hosts(Arc::new(hosts));
    for _ in 0..2 {
        without_secret.relay_once(pending()).await.unwrap();
        world.clock.advance(Millis(24 * 3_600_000));
    }
    let status = world.status().await;
    assert_eq!((status.waiting, status.dead), (2, 0));
    assert!(status.last_error.unwrap().contains("no secret `partner`"));
    let due = Outbox::new(world.store()).due("out", world.clock.now(), None, 1).await.unwrap();
    assert_eq!(due.items[0].message.delivery.attempts, 0);
    world.relaying().relay_once(pending()).await.unwrap();
    assert_eq!(receiver.numbers(), [1, 2]);
}

#[tokio::test]
async fn one_relay_that_is_stopped_begins_nothing_more() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    receiver.says.send_replace(Says::NotYet);
    world.channel(&url, None).await;
    world.runs(2).await;
    let worker = world.relaying();
    worker.relay_once(ready(())).await.unwrap();
    assert_eq!(receiver.posts.borrow().len(), 0);
    let mut posts = receiver.posts.subscribe();
    let begun = async {
        posts.wait_for(|posts| posts.len() == 1).await.unwrap();
        receiver.says.send_replace(Says::Nothing);
    };
    worker.relay_once(begun).await.unwrap();
    assert_eq!((receiver.numbers(), world.status().await.waiting), (vec![1], 1));
}

#[tokio::test]
async fn one_relay_pushes_the_messages_that_were_due_when_it_began() {
    let world = World::simulated(Hearing::Good);
    let (receiver, url) = Receiver::listening().await;
    receiver.says.send_replace(Says::NotYet);
    world.channel(&url, None).await;
    world.runs(60).await;
    let mut posts = receiver.posts.subscribe();
    let more = async {
        posts.wait_for(|posts| posts.len() == 1).await.unwrap();
        world.clock.advance(Millis(1));
        world.runs(1).await;
        receiver.says.send_replace(Says::Nothing);
    };
    let worker = world.relaying();
    let (relayed, ()) = tokio::join!(worker.relay_once(pending()), more);
    relayed.unwrap();
    assert_eq!((receiver.posts.borrow().len(), world.status().await.waiting), (60, 1));
}

#[tokio::test]
async fn a_push_that_panics_is_begun_again() {
    let world = World::new();
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, None).await;
    world.runs(1).await;
    world.spy.panic_once("afl.outbox/out");
    let agent = work(&world.relaying());
    let mut posts = receiver.posts.subscribe();
    let posted = posts.wait_for(|posts| posts.len() == 1);
    let _posts =
        tokio::time::timeout(Duration::from_mins(1), posted).await.expect("it is begun again").unwrap();
    agent.stop().await;
}

#[tokio::test]
async fn two_agents_lose_no_message_and_push_none_twice() {
    let world = World::new();
    let (receiver, url) = Receiver::listening().await;
    world.channel(&url, None).await;
    let agents = [work(&world.relaying()), work(&world.restarted().relaying())];
    world.runs(30).await;
    let mut posts = receiver.posts.subscribe();
    posts.wait_for(|posts| posts.len() >= 30).await.unwrap();
    for agent in agents {
        agent.stop().await;
    }
    let mut numbers = receiver.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=30).collect::<Vec<i64>>());
    assert_eq!(world.status().await, ChannelStatus::default());
}

// covers: EVT-3-a
#[tokio::test]
async fn an_event_is_handled_only_by_the_function_of_its_type() {
    let worker = World::new().worker(Profile::Poller);
    worker.register("billing.Charge", concurrent(|call| async move { Ok(call.payload) }));
    let payload = json!({"amount": 5}).as_object().unwrap().clone();
    let handled = worker.handle("billing.Charge", payload.clone()).await;
    assert_eq!(handled, Some(Ok(payload.clone())));
    assert_eq!(worker.handle("billing.Refund", payload).await, None);
}
