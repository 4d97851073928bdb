use afl_agents::handler::HandlerFailureKind;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::World;

/// Each result by its expression, and its outcome.
#[tokio::test]
async fn a_result_is_a_json_object_or_a_clear_failure() {
    let expressions = [
        "{'n': 1, 't': ('a', None, True), 'big': 2**64 - 1, 1: 'key'}",
        "None",
        "[1]",
        "'text'",
        "{'a': [1, float('nan')]}",
        "{'a': {'b': float('inf')}}",
        "{'a': {'when': __import__('datetime').date(2020, 1, 1)}}",
        "{'a': {1, 2}}",
        "{('a', 'b'): 1}",
        "{'a': [[2**64]]}",
        "{'a': {1: 'one', '1': 'uno'}}",
        "{'a': '\\ud800'}",
        "{'a': b'bytes'}",
        "(lambda d: d.update(me=[d]) or d)({})",
        "__import__('functools').reduce(lambda inner, _: {'a': inner}, range(200), {})",
        "__import__('functools').reduce(lambda inner, _: [inner], range(5000), {})",
        "handle",
    ];
    let world = World::new();
    world.write("handlers.py", "def handle(payload): return eval(payload['expression'])");
    let mut texts = Vec::new();
    for expression in expressions {
        let registration = afl_agents::registration::Registration::new(crate::world::FACET, "handlers");
        let ran = world.run(&registration, json!({"expression": expression})).await;
        let text = match &ran.outcome {
            Ok(result) => serde_json::to_string(result).unwrap(),
            Err(failure) => {
                assert_eq!(failure.kind, HandlerFailureKind::InvalidResult, "{expression}: {failure}");
                failure.message.chars().take(150).collect()
            }
        };
        texts.push(format!("{expression}\n    {text}"));
    }
    assert_snapshot!(texts.join("\n"));
}

#[tokio::test]
async fn f14_a_large_result_arrives_and_a_huge_one_is_refused() {
    let world = World::new();
    let text = "def handle(payload): return {'text': 'x' * payload['size']}";
    let result = world.python(text, json!({"size": 20 << 20})).await.result();
    assert_eq!(result["text"].as_str().map(str::len), Some(20 << 20));
    let ran = world.python(text, json!({"size": 129 << 20})).await;
    assert_snapshot!(ran.failure(), @"invalid_result: the result has 135266315 bytes, and 134217728 is the limit: store it elsewhere and return a reference");
    assert_eq!(world.python(text, json!({"size": 1})).await.result()["text"], "x");
}

#[tokio::test]
async fn f14_a_large_payload_arrives() {
    let world = World::new();
    let payload = json!({"text": "é".repeat(5 << 20), "list": vec![1; 100_000]});
    let text = "def handle(payload): return {'text': len(payload['text']), 'list': sum(payload['list'])}";
    let result = world.python(text, payload).await.result();
    assert_eq!(Value::Object(result), json!({"text": 5 << 20, "list": 100_000}));
}
