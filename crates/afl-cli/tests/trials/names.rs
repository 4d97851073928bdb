//! T11: no agent takes work that two handlers could do, and an error reports it.

use afl_engine::run::RunStatus;
use serde_json::json;

use crate::world::World;

const PROGRAM: &str = r"
namespace a {
    event facet Pay(n: Long) => (n: Long)
    workflow Order(n: Long) => (n: Long) andThen {
        pay = Pay(n = $.n)
        yield Order(n = pay.n)
    }
}
";

#[tokio::test(flavor = "multi_thread")]
async fn t11_work_with_an_ambiguous_handler_waits_and_is_reported() {
    let world = World::new(PROGRAM);
    for facet in ["Pay", "b.Pay"] {
        world.said(&["handlers", "register", facet, "builtin:echo"]);
    }
    let agent = world.agent("only", &[]);
    agent.says("handlers: Pay, b.Pay");
    let run = world.start("a.Order", &["n=1"]);
    let why = world.json(&["why", &run.to_string(), "--json"]);
    assert_eq!(why["unserved"], json!(["a.Pay"]), "{why}");
    assert_eq!(world.task(&run).await.token, 0, "nobody has claimed it");

    world.said(&["handlers", "remove", "b.Pay"]);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    agent.end();
}
