use afl_agents::registration::Registration;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{FACET, World};

async fn told(name: &str, payload: Value) -> String {
    let world = World::new();
    match world.run(&Registration::new(FACET, format!("builtin:{name}")), payload).await.outcome {
        Ok(result) => serde_json::to_string(&result).unwrap(),
        Err(failure) => failure.to_string(),
    }
}

#[tokio::test]
async fn built_in_handlers_do_what_examples_need() {
    assert_snapshot!(told("echo", json!({"a": [1]})).await, @r#"{"a":[1]}"#);
    assert_snapshot!(told("sleep", json!({"ms": 1})).await, @r#"{"ms":1}"#);
    assert_snapshot!(told("sleep", json!({"ms": "1"})).await, @"invalid_input: the payload needs `ms`, a whole number of milliseconds");
    assert_snapshot!(told("fail", json!({"message": "no money"})).await, @"error: no money");
    let value = json!({"a": [{"b": 7}]});
    assert_snapshot!(told("json.pick", json!({"value": value, "path": "a[0].b"})).await, @r#"{"value":7}"#);
    assert_snapshot!(told("json.pick", json!({"value": value, "path": "a[1]"})).await, @"error: there is no `1` on the path `a[1]`");
    assert_snapshot!(told("http.get", json!({"url": "http://169.254.169.254/latest"})).await, @"refused: 169.254.169.254 is at 169.254.169.254, which is no public address: allow the host or its network in the agent's configuration");
    assert_snapshot!(told("http.get", json!({"url": "file:///etc/passwd"})).await, @"invalid_input: `file:///etc/passwd` is neither http nor https");
}
