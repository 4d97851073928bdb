//! The work that agents get: one `foreach` of tasks, done by a handler of each sort.

use std::path::{Path, PathBuf};
use std::time::Duration;

use afl_runtime::{RunId, Service, StartRequest, compile};
use serde_json::json;
use tokio::time::sleep;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgentWork {
    /// Nothing but the way to the agent and back.
    Echo,
    /// A wait, as for something outside.
    Nap,
    /// A function in Python that does nothing.
    Python,
}

/// How long a nap is.
const NAP_MS: u64 = 20;
/// Until the end of a run is looked for again.
const LOOK: Duration = Duration::from_millis(10);

const PROGRAM: &str = "
namespace bench {
    event facet Echo(n: Long) => (n: Long)
    event facet Nap(ms: Long) => (ms: Long)
    event facet Python(n: Long) => (n: Long)

    workflow OfEcho(items: [Long]) => (all: [Long])
        andThen foreach item in $.items { a = Echo(n = $.item) yield OfEcho(all = [a.n]) }
    workflow OfNap(items: [Long]) => (all: [Long])
        andThen foreach item in $.items { a = Nap(ms = $.item) yield OfNap(all = [a.ms]) }
    workflow OfPython(items: [Long]) => (all: [Long])
        andThen foreach item in $.items { a = Python(n = $.item) yield OfPython(all = [a.n]) }
}
";

const HANDLERS: &str = r#"
[[handler]]
facet = "bench.Echo"
module = "builtin:echo"

[[handler]]
facet = "bench.Nap"
module = "builtin:sleep"

[[handler]]
facet = "bench.Python"
module = "handlers.py"
"#;
const PYTHON: &str = "def handle(payload):\n    return {'n': payload['n'] + 1}\n";

impl AgentWork {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Nap => "naps of 20 ms",
            Self::Python => "Python",
        }
    }

    const fn workflow(self) -> &'static str {
        match self {
            Self::Echo => "bench.OfEcho",
            Self::Nap => "bench.OfNap",
            Self::Python => "bench.OfPython",
        }
    }

    /// Starts a run of so many tasks.
    pub(crate) async fn start(self, service: &Service, tasks: usize) -> RunId {
        let program = compile("bench.afl", PROGRAM).expect("the program has no mistake");
        let hash = service.publish(&program).await.expect("the program is published");
        let items: Vec<u64> = match self {
            Self::Echo | Self::Python => (0..tasks as u64).collect(),
            Self::Nap => vec![NAP_MS; tasks],
        };
        let inputs = json!({ "items": items }).as_object().cloned().expect("it is an object");
        let workflow = Some(self.workflow().to_owned());
        let request = StartRequest { workflow, inputs, ..StartRequest::new(hash) };
        service.start(request).await.expect("the run starts").run
    }

    pub(crate) async fn run(self, service: &Service, tasks: usize) {
        let run = self.start(service, tasks).await;
        while !service.run(&run).await.expect("the run is there").status.is_terminal() {
            sleep(LOOK).await;
        }
    }
}

/// The handlers of all sorts, in a folder of their own.
pub(crate) fn handlers(folder: &Path) -> PathBuf {
    let file = folder.join("handlers.toml");
    std::fs::write(&file, HANDLERS).expect("it is written");
    std::fs::write(folder.join("handlers.py"), PYTHON).expect("it is written");
    file
}
