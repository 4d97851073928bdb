//! How work ends otherwise: lost leases, cancels, shutdowns, work that may happen once only.

use std::sync::Arc;

use afl_agents::handler::{Call, blocking, concurrent};
use afl_agents::worker::Profile;
use serde_json::json;
use tokio::sync::Notify;

use crate::world::{World, object, paid, work};

pub(crate) const ONCE: &str = r#"
namespace post {
    event facet Send(to: String) => (sent: Boolean)
    workflow Mail(to: String) => (sent: Boolean) andThen {
        letter = Send(to = $.to) with afl.policy.Effect(kind = "once") with afl.policy.Retry(max = 3)
        yield Mail(sent = letter.sent)
    }
}
"#;

// T20: the worker stops the handler, then releases the task.
#[tokio::test]
async fn a_worker_that_must_end_gives_back_what_it_cannot_finish() {
    let world = World::new();
    let slow = world.worker_with(Profile::Poller, |config| config.shutdown_timeout_ms = 1);
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    slow.register(
        "ProcessPayment",
        concurrent(move |call: Call| {
            let tell = tell.clone();
            async move {
                tell.notify_one();
                call.context.stopped().await;
                Ok(object(json!({"transaction_id": "too late", "status": "late"})))
            }
        }),
    );
    let run = world.checkout().await;
    let working = work(&slow);
    begun.notified().await;
    working.stop().await;
    let quick = world.worker(Profile::Poller);
    quick.register("ProcessPayment", blocking(|_| Ok(paid())));
    assert_eq!(quick.poll_once().await.unwrap(), 1, "it was given back at once");
    assert_eq!(world.receipt(&run).await, "txn-12345");
}

#[tokio::test]
async fn a_cancel_reaches_the_handler_and_its_result_counts_for_nothing() {
    let world = World::new();
    let worker = world.worker_with(Profile::Poller, |config| config.lock_extend_interval_ms = 20);
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell_begun, tell_ended) = (begun.clone(), ended.clone());
    worker.register(
        "ProcessPayment",
        concurrent(move |call: Call| {
            let (begun, ended) = (tell_begun.clone(), tell_ended.clone());
            async move {
                begun.notify_one();
                call.context.stopped().await;
                ended.notify_one();
                Ok(paid())
            }
        }),
    );
    let run = world.checkout().await;
    let working = work(&worker);
    begun.notified().await;
    world.service.cancel(&run).await.unwrap();
    ended.notified().await;
    working.stop().await;
    assert_eq!(world.service.ended(&run).await.unwrap().status.name(), "canceled");
}

#[tokio::test]
async fn work_that_must_happen_once_and_crashed_is_not_repeated_but_asked_about() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    worker.register("Send", blocking(|_| panic!("in the middle of it")));
    let run = world.start(ONCE, json!({"to": "ada"})).await;
    assert_eq!(worker.poll_once().await.unwrap(), 1);
    assert_eq!(worker.poll_once().await.unwrap(), 0, "three attempts are declared, and none is made");
    let error = world.error(&run).await;
    assert!(error.contains("find out whether it happened"), "{error}");
}
