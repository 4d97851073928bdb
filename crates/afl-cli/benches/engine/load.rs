//! The programs that are run, and how each is started and waited for.

use std::fmt::Write as _;

use afl_runtime::{Service, StartRequest, compile};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::place::Opened;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    /// Pure steps, each reading the one before.
    Chain { steps: usize },
    /// Event steps, each reading the one before.
    Sequence { events: usize },
    /// Event steps of one `foreach`.
    Fan { events: usize },
    /// Runs of one event step.
    Singles { runs: usize, in_flight: usize },
    /// Pure steps of one `foreach`: a block, a step and a yield for each element.
    Wide { steps: usize },
}

/// How many steps are measured at least.
const LEAST_STEPS: usize = 20_000;

/// Steps of a block and its yield, for each element of [`Load::Wide`].
const STEPS_PER_ELEMENT: usize = 3;

const HEAD: &str = "
namespace bench {
    event facet Inc(n: Long) => (n: Long)
    facet Value(n: Long)
";

impl Load {
    pub(crate) const SMALLEST_FAN: Self = Self::Fan { events: 1_000 };

    pub(crate) const fn largest_fan(divisor: usize) -> Self {
        Self::Fan { events: 100_000 / divisor }
    }

    /// Small runs are made several times, one after the other: a tenth of a second says little.
    pub(crate) fn runs(self) -> usize {
        match self {
            Self::Singles { runs, .. } => runs,
            Self::Chain { .. } | Self::Sequence { .. } | Self::Fan { .. } | Self::Wide { .. } => {
                (LEAST_STEPS / self.steps_of_a_run()).max(1)
            }
        }
    }

    /// All steps of all runs that the name of the case counts.
    pub(crate) fn steps(self) -> usize {
        self.runs() * self.steps_of_a_run()
    }

    fn steps_of_a_run(self) -> usize {
        match self {
            Self::Chain { steps } | Self::Wide { steps } => steps,
            Self::Sequence { events } | Self::Fan { events } => events,
            Self::Singles { .. } => 1,
        }
    }

    fn program(self) -> String {
        let body = match self {
            Self::Chain { steps } => chain("Value", steps),
            Self::Sequence { events } => chain("Inc", events),
            Self::Singles { .. } => chain("Inc", 1),
            Self::Fan { .. } => foreach("Inc"),
            Self::Wide { .. } => foreach("Value"),
        };
        format!("{HEAD}{body}}}\n")
    }

    fn inputs(self) -> Value {
        match self {
            Self::Chain { .. } | Self::Sequence { .. } | Self::Singles { .. } => json!({ "n": 1 }),
            Self::Fan { events } => json!({ "items": (0..events).collect::<Vec<_>>() }),
            Self::Wide { steps } => json!({ "items": (0..steps / STEPS_PER_ELEMENT).collect::<Vec<_>>() }),
        }
    }
}

fn chain(facet: &str, steps: usize) -> String {
    let mut body = format!(
        "    workflow W(n: Long) => (n: Long)\n        andThen {{\n            s0 = {facet}(n = $.n)\n"
    );
    for step in 1..steps {
        writeln!(body, "            s{step} = {facet}(n = s{}.n + 1)", step - 1).expect("a string takes all");
    }
    writeln!(body, "            yield W(n = s{}.n)\n        }}", steps - 1).expect("a string takes all");
    body
}

fn foreach(facet: &str) -> String {
    format!(
        "    workflow W(items: [Long]) => (sum: [Long])\n        andThen foreach item in $.items {{\n            \
         a = {facet}(n = $.item)\n            yield W(sum = [a.n])\n        }}\n"
    )
}

/// Publishes the program, so that starting it is all that is left.
pub(crate) async fn prepare(service: &Service, load: Load) -> StartRequest {
    let program = compile("bench.afl", &load.program()).expect("the program has no mistake");
    let hash = service.publish(&program).await.expect("the program is published");
    let inputs = load.inputs().as_object().cloned().unwrap_or_default();
    StartRequest { inputs, ..StartRequest::new(hash) }
}

/// Starts all runs, never more at once than the load says, and waits for their ends.
pub(crate) async fn drive(opened: &Opened, load: Load, request: &StartRequest) {
    let Load::Singles { runs, in_flight } = load else {
        for _ in 0..load.runs() {
            opened.service.start(request.clone()).await.expect("the run starts");
            opened.counted.ended(1).await;
        }
        return;
    };
    let free = Semaphore::new(in_flight);
    let ends = async {
        for _ in 0..runs {
            opened.counted.ended(1).await;
            free.add_permits(1);
        }
    };
    let starts = async {
        let mut starts = JoinSet::new();
        for _ in 0..runs {
            free.acquire().await.expect("it is never closed").forget();
            let (service, request) = (opened.service.clone(), request.clone());
            starts.spawn(async move { service.start(request).await.expect("the run starts") });
            while starts.try_join_next().is_some() {}
        }
        starts.join_all().await;
    };
    tokio::join!(ends, starts);
}

pub(crate) async fn run(opened: &Opened, load: Load) {
    let request = prepare(&opened.service, load).await;
    drive(opened, load, &request).await;
}
