//! The evidence of a failure: nothing has happened before the first instruction of the handler.

use afl_agents::PythonConfig;
use afl_agents::handler::WorkEvidence;
use afl_agents::registration::Registration;
use serde_json::json;
use tokio::net::TcpListener;

use crate::world::{FACET, World};

#[tokio::test]
async fn g4_the_work_of_a_handler_that_cannot_be_started_has_not_happened() {
    let world = World::new();
    world.write("broken.py", "raise RuntimeError('on import')");
    world.write("leaving.py", "raise SystemExit");
    world.write("empty.py", "");
    let plain = world.write("plain", "no program");
    let unrunnable = world.program("unrunnable", "#!/nowhere/sh\n");
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for uri in [
        "broken".to_owned(),
        "leaving".to_owned(),
        "empty".to_owned(),
        "missing".to_owned(),
        "file:///etc/passwd.py".to_owned(),
        format!("exec:{}", world.path("missing").display()),
        format!("exec:{}", plain.display()),
        format!("exec:{}", unrunnable.display()),
        "exec:/bin/true".to_owned(),
        format!("http://{unused}/"),
        "http://10.0.0.1/".to_owned(),
        "http://no.such.host.invalid/".to_owned(),
    ] {
        let ran = world.run(&Registration::new(FACET, &*uri), json!({})).await;
        assert_eq!(ran.failure().evidence, WorkEvidence::NotDone, "{uri}: {}", ran.failure());
    }
    let world = World::with(|config| {
        config.python = PythonConfig { python: "/nowhere/python3".into(), ..PythonConfig::default() };
    });
    let ran = world.python("def handle(payload): return {}", json!({})).await;
    assert_eq!(ran.failure().evidence, WorkEvidence::NotDone, "{}", ran.failure());
}
