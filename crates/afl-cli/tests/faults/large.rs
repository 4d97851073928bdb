//! F14: oversized values, programs and runs. They work or are refused by name, and operators can still do their work.

use std::fmt::Write as _;
use std::fs;

use afl_engine::run::RunStatus;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::Refusal;
use afl_runtime::{Error, InvalidRequest, RunQuery, StartRequest, compile};
use serde_json::json;

use crate::site::Site;
use crate::work::{claim, examine, finish, result, start};

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no map"),
    }
}

/// The peak memory of this process, where the system reports it.
fn peak_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// One after the other, because they measure the memory of the process.
#[tokio::test]
async fn f14_a_hundred_megabytes_go_through_an_event_step_and_a_gigabyte_is_refused_in_bounded_memory() {
    send_a_hundred_megabytes().await;
    offer_a_gigabyte().await;
}

async fn send_a_hundred_megabytes() {
    const SIZE: usize = 100 << 20;
    const COPIES: usize = 8;
    let site = Site::of("sqlite");
    let service = site.service().await;
    let run = start(&service, "Long", json!({"text": "begin"})).await;
    let before = peak_bytes();
    let first = claim(&service, 1).await.remove(0);
    service.complete(&first.ticket, &map(json!({ "text": "x".repeat(SIZE) }))).await.unwrap();
    drop(first);
    service.turn().await.unwrap();
    let second = claim(&service, 1).await.remove(0);
    assert_eq!(second.payload["text"].as_str().map(str::len), Some(SIZE));
    service.complete(&second.ticket, &result(&second)).await.unwrap();
    drop(second);
    finish(&service).await;
    assert_eq!(service.outputs(&run).await.unwrap()["text"].as_str().map(str::len), Some(SIZE));
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < COPIES * SIZE, "{} MB for one value of {} MB", grown >> 20, SIZE >> 20);
    examine(&service).await;
}

async fn offer_a_gigabyte() {
    const SIZE: usize = 1 << 30;
    let site = Site::of("memory");
    let service = site.service().await;
    let run = start(&service, "Long", json!({"text": "begin"})).await;
    let held = claim(&service, 1).await.remove(0);
    // Fresh pages of zeros cost nothing until they are copied.
    let large = map(json!({ "text": Value::String(String::from_utf8(vec![0; SIZE]).unwrap()) }));
    let before = peak_bytes();
    let refusal = service.complete(&held.ticket, &large).await.unwrap_err();
    assert!(matches!(&refusal, Refusal::TooLarge { path, .. } if path == "Long.a"), "{refusal}");
    assert!(refusal.to_string().contains("268435456 is the limit: store it elsewhere"), "{refusal}");
    let refusal = service.continue_step(&run, &held.ticket.step, &large).await.unwrap_err();
    assert!(matches!(&refusal, Refusal::TooLarge { .. }), "{refusal}");
    let asked = crate::work::request(&service, "Long", json!({})).await;
    let error = service.start(StartRequest { inputs: large, ..asked }).await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(InvalidRequest::Inputs(_)))
            && error.to_string().contains("is the limit"),
        "{error}"
    );
    assert!(peak_bytes().saturating_sub(before) < SIZE / 8, "somebody copied it");
    // The holder keeps the task, and may give a smaller answer.
    service.complete(&held.ticket, &result(&held)).await.unwrap();
    finish(&service).await;
    assert_eq!(service.run(&run).await.unwrap().status, RunStatus::Completed);
}

/// JSON text deeper than 128 levels cannot be read back, so it must not get in.
#[tokio::test]
async fn f14_a_value_that_nests_too_deep_is_refused_and_hurts_no_run() {
    let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
    let site = Site::of("sqlite");
    let service = site.service().await;
    let program = "namespace d { event facet Any(v: Json) => (v: Json)
        workflow W(v: Json) => (v: Json) andThen { a = Any(v = $.v) yield W(v = a.v) } }";
    let hash = service.publish(&compile("d.afl", program).unwrap()).await.unwrap();
    let ask = |v: Value| StartRequest { inputs: map(json!({ "v": v })), ..StartRequest::new(hash) };
    let error = service.start(ask(deep.clone())).await.unwrap_err();
    assert!(error.to_string().contains("nest deeper than 100 levels"), "{error}");

    let run = service.start(ask(json!([1]))).await.unwrap().run;
    let held = claim(&service, 1).await.remove(0);
    let refusal = service.complete(&held.ticket, &map(json!({ "v": deep }))).await.unwrap_err();
    assert!(refusal.to_string().contains("nest deeper than 100 levels"), "{refusal}");
    let hundred = (0..95).fold(json!(1), |inner, _| json!([inner]));
    service.complete(&held.ticket, &map(json!({ "v": hundred }))).await.unwrap();
    finish(&service).await;
    assert_eq!(service.outputs(&run).await.unwrap()["v"], hundred);
    examine(&service).await;

    let nested = format!(
        "workflow W(n: Long) => (n: Long) andThen {{ yield W(n = {}1{}) }}",
        "(".repeat(10_000),
        ")".repeat(10_000)
    );
    let error = compile("brackets.afl", &nested).unwrap_err().to_string();
    assert!(error.contains("AFL0105") && error.contains("nested more than 100 levels deep"), "{error}");
}

#[tokio::test]
async fn f14_operators_can_steer_a_run_of_a_hundred_thousand_elements() {
    // The benchmarks take as many to their end, and a run of a million steps.
    const ELEMENTS: usize = 100_000;
    let site = Site::of("memory");
    let service = site.service().await;
    let run = start(&service, "Fan", json!({"items": (0..ELEMENTS).collect::<Vec<_>>()})).await;
    for held in claim(&service, 20).await {
        service.complete(&held.ticket, &result(&held)).await.unwrap();
    }
    service.turn().await.unwrap();
    let why = service.why(&run).await.unwrap();
    assert!(why.waiting > 0 && why.waits.len() < 1_000, "{} of {} waits", why.waits.len(), why.waiting);
    service.pause(&run).await.unwrap();
    service.resume(&run).await.unwrap();
    assert_eq!(service.steps(&run, None, None, 50).await.unwrap().steps.len(), 50);
    assert_eq!(service.runs(&RunQuery { limit: 5, ..RunQuery::default() }).await.unwrap().runs.len(), 1);
    service.cancel(&run).await.unwrap();
    assert_eq!(service.run(&run).await.unwrap().status, RunStatus::Canceled);
    assert!(claim(&service, 5).await.is_empty());
}

#[tokio::test]
async fn f14_a_source_of_ten_megabytes_compiles_and_runs() {
    const SIZE: usize = 10 << 20;
    let mut source = String::from("event facet Inc(n: Long) => (n: Long)\n");
    source += "workflow Last(n: Long) => (n: Long) andThen {\n  a = Inc(n = $.n)\n  yield Last(n = a.n)\n}\n";
    let comment = "// All that a generator had to say about the facet below, on one line.\n".repeat(20);
    let mut nth = 0;
    while source.len() < SIZE {
        writeln!(source, "{comment}facet F{nth}(a: Long, b: String = \"{nth}\") => (c: Long)").unwrap();
        nth += 1;
    }
    let site = Site::of("sqlite");
    let service = site.service().await;
    let hash = service.publish(&compile("generated.afl", &source).unwrap()).await.unwrap();
    let request = StartRequest { inputs: map(json!({"n": 1})), ..StartRequest::new(hash) };
    let run = service.start(request).await.unwrap().run;
    finish(&service).await;
    assert_eq!(crate::work::output(&service, &run).await, json!({"n": 2}));
}
