use std::time::Duration;

use afl_agents::handler::{
    CancelReason, Handler, HandlerFailure, HandlerFailureKind, LogLevel, LogStream, Notes, Object, Progress,
    WorkEvidence, blocking, concurrent, perform,
};
use insta::assert_snapshot;
use serde_json::json;

use crate::world::call;

const SECOND: Duration = Duration::from_secs(1);

async fn outcome(handler: &dyn Handler, timeout: Option<Duration>) -> String {
    let (call, _control) = call(json!({"amount": 5}));
    match perform(handler, call, timeout).await {
        Ok(result) => serde_json::to_string(&result).unwrap(),
        Err(failure) => failure.to_string(),
    }
}

#[tokio::test]
async fn functions_of_the_process_are_handlers() {
    assert_eq!(outcome(&blocking(|call| Ok(call.payload)), None).await, r#"{"amount":5}"#);
    assert_eq!(outcome(&concurrent(async |call| Ok(call.payload)), None).await, r#"{"amount":5}"#);
    let failing = blocking(|_| Err(HandlerFailure::error("no money")));
    assert_eq!(outcome(&failing, None).await, "error: no money");
}

#[tokio::test]
async fn f15_a_panic_is_an_outcome() {
    assert_snapshot!(outcome(&blocking(|_| panic!("at the {}", "disco")), None).await, @"crash: the handler panicked: at the disco");
    let panicking = concurrent(async |_| panic!("at the disco"));
    assert_snapshot!(outcome(&panicking, None).await, @"crash: the handler panicked: at the disco");
}

// covers: SDK-8.4-c
#[tokio::test(start_paused = true)]
async fn t14_the_timeout_counts_from_the_last_sign_of_life() {
    let silent = concurrent(async |call| {
        tokio::time::sleep(2 * SECOND).await;
        Ok(call.payload)
    });
    assert_snapshot!(outcome(&silent, Some(SECOND)).await, @"timeout: no sign of life from the handler of Checkout.payment for 1000 ms: make it faster, let it call heartbeat, or raise timeout_ms");

    let alive = concurrent(async |call| {
        for _ in 0..3 {
            tokio::time::sleep(SECOND * 9 / 10).await;
            call.context.heartbeat();
            tokio::time::sleep(SECOND * 9 / 10).await;
            call.context.progress(Progress { fraction: Some(0.5), message: String::new() });
            tokio::time::sleep(SECOND * 9 / 10).await;
            call.context.update(Object::new());
        }
        Ok(call.payload)
    });
    assert_eq!(outcome(&alive, Some(SECOND)).await, r#"{"amount":5}"#);

    let talking = concurrent(async |call| {
        loop {
            tokio::time::sleep(SECOND / 2).await;
            call.context.log(LogStream::Stdout, LogLevel::Info, "still here");
        }
    });
    assert!(outcome(&talking, Some(SECOND)).await.starts_with("timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_call_whatever_it_would_answer() {
    for reason in [CancelReason::Requested, CancelReason::LeaseLost, CancelReason::Shutdown] {
        let (call, control) = call(json!({}));
        let handler = concurrent(async |call| {
            call.context.heartbeat();
            call.context.stopped().await;
            Ok(call.payload)
        });
        let cancel = async {
            control.notes().await;
            control.cancel(reason);
        };
        let again = call.clone();
        let (outcome, ()) = tokio::join!(perform(&handler, call, None), cancel);
        let Err(failure) = outcome else { panic!("not canceled") };
        assert_eq!(failure.kind, HandlerFailureKind::Canceled, "{reason:?}");
        assert_eq!(failure.evidence, WorkEvidence::Unknown, "{reason:?}: it had begun");
        let never = concurrent(async |_| panic!("a canceled call began"));
        assert_eq!(perform(&never, again, None).await, Err(failure.not_done()));
    }
}

#[tokio::test]
async fn notes_of_a_handler_arrive() {
    let (call, control) = call(json!({}));
    let telling = concurrent(async |call| {
        let context = &call.context;
        context.log(LogStream::System, LogLevel::Warn, "low on money");
        context.progress(Progress { fraction: Some(0.1), message: "a bit".to_owned() });
        context.progress(Progress { fraction: Some(0.9), message: "nearly".to_owned() });
        context.update(Object::from_iter([("a".to_owned(), json!(1)), ("b".to_owned(), json!(1))]));
        context.update(Object::from_iter([("b".to_owned(), json!(2))]));
        Ok(Object::new())
    });
    perform(&telling, call, None).await.unwrap();
    let notes = control.notes().await;
    assert_eq!(notes.lines.len(), 1);
    assert_eq!(notes.progress.unwrap().message, "nearly");
    assert_eq!(notes.update.unwrap(), *json!({"a": 1, "b": 2}).as_object().unwrap());
    assert_eq!(control.take_notes(), Notes::default());
}

#[tokio::test]
async fn f14_a_flood_of_lines_is_bounded_and_counted() {
    let (call, control) = call(json!({}));
    let flooding = blocking(|call| {
        for number in 0..50_000 {
            call.context.log(LogStream::Stdout, LogLevel::Info, format!("{number} {}", "x".repeat(1_000)));
        }
        Ok(Object::new())
    });
    perform(&flooding, call, None).await.unwrap();
    let notes = control.take_notes();
    let bytes: usize = notes.lines.iter().map(|line| line.text.len()).sum();
    assert!(bytes < 9 << 20, "{bytes} bytes kept");
    assert_eq!(notes.lines.len() as u64 + notes.dropped_lines, 50_000);
}
