//! Traps of the documents, and calls that come late, twice or in the wrong order.

use afl_engine::id::{RunId, Segment, StepId};
use afl_engine::run::RunStatus;
use afl_runtime::agent::{Claim, Refusal};
use afl_runtime::{Error, ReportedOutcome, Service, StartRequest, StateRefusal, compile};
use serde_json::{Value, json};

use crate::world::{World, broken, inc};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Late {
    Complete,
    Fail,
    Continue,
    FailStep,
    Answer,
    Cancel,
}

const LATE: [Late; 6] =
    [Late::Complete, Late::Fail, Late::Continue, Late::FailStep, Late::Answer, Late::Cancel];

/// When the run is driven with the first arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driven {
    /// So that all the rest is late.
    AtOnce,
    /// So that the rest races it.
    Later,
}

/// How the run ends, if it ends by this.
fn end_by(late: Late) -> (RunStatus, Value) {
    match late {
        Late::Complete => (RunStatus::Completed, json!({"n": 40})),
        Late::Continue => (RunStatus::Completed, json!({"n": 41})),
        Late::Answer => (RunStatus::Completed, json!({"n": 42})),
        Late::Fail | Late::FailStep => (RunStatus::Failed, json!({})),
        Late::Cancel => (RunStatus::Canceled, json!({})),
    }
}

/// Whether a call still changes a run that is to end as `by` says. A person may take a failure back; and a run that has
/// its outcome but was not driven yet has not ended, so it can be canceled.
fn counts_after(by: Late, driven: Driven, late: Late) -> bool {
    match (by, late) {
        (Late::Fail | Late::FailStep, Late::Answer) => true,
        (by, Late::Cancel) => driven == Driven::Later && by != Late::Cancel,
        (_, Late::Complete | Late::Fail | Late::Continue | Late::FailStep | Late::Answer) => false,
    }
}

/// Whether it was accepted, as something new or as a repetition.
async fn call(service: &Service, late: Late, run: &RunId, step: &StepId, held: &Claim) -> bool {
    let result = end_by(late).1.as_object().unwrap().clone();
    let told = match late {
        Late::Complete => service.complete(&held.ticket, &result).await.map(drop),
        Late::Fail => service.fail(&held.ticket, &broken()).await.map(drop),
        Late::Continue => service.continue_step(run, step, &result).await.map(drop),
        Late::FailStep => service.fail_step(run, step, &broken()).await.map(drop),
        Late::Answer => match service.answer(run, step, &ReportedOutcome::Done(result)).await {
            Ok(_) => return true,
            Err(Error::Refused(StateRefusal::Unanswerable { .. })) => return false,
            Err(other) => panic!("{other}"),
        },
        Late::Cancel => match service.cancel(run).await {
            Ok(_) => return true,
            Err(Error::Refused(StateRefusal::Ended { .. })) => return false,
            Err(other) => panic!("{other}"),
        },
    };
    match told {
        Ok(()) => true,
        Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

// covers: EVT-7-d, EVT-7-e, RT-12.1-b
#[tokio::test]
async fn f6_whatever_comes_first_counts_and_nothing_after_it_in_any_order() {
    for first in LATE {
        for second in LATE {
            for third in LATE {
                for driven in [Driven::AtOnce, Driven::Later] {
                    late_calls(first, [second, third, second], driven).await;
                }
            }
        }
    }
}

async fn late_calls(first: Late, later: [Late; 3], mut driven: Driven) {
    let when = format!("{first:?}, driven {driven:?}, then {later:?}");
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    let step = world.step(&run, "One.a").await;
    let held = world.claim(1).await.remove(0);
    assert!(call(&world.service, first, &run, &step, &held).await, "{when}");
    if driven == Driven::AtOnce {
        world.service.turn().await.unwrap();
    }
    let mut by = first;
    for late in later {
        let before = world.service.canonical(&run).await.unwrap();
        let is_accepted = call(&world.service, late, &run, &step, &held).await;
        let after = world.service.canonical(&run).await.unwrap();
        if counts_after(by, driven, late) {
            assert!(is_accepted && after != before, "{when}: {late:?} counts");
            // A caller that answers a failure or cancels evaluates as well.
            (by, driven) = (late, Driven::AtOnce);
        } else {
            assert_eq!(after, before, "{when}: {late:?} comes too late");
        }
    }
    world.service.turn().await.unwrap();
    assert_eq!((world.status(&run).await, world.outputs(&run).await), end_by(by), "{when}");
    world.examine().await;
}

/// The script of a facet, and that of a block; their steps wait for no event yet, or never.
const SCRIPTS: &str = r#"
namespace t {
    event facet Prepared(n: Long) => (m: Long) script python "result['k'] = 1"

    workflow W() => (m: Long)
        andThen {
            a = Prepared(n = 1)
            yield W(m = a.m)
        }
        andThen script python "result['m'] = 0"
}
"#;

// covers: XR-8, EVT-7-c, EVT-7-e, RT-12.1-b
#[tokio::test]
async fn xr8_a_script_is_settled_by_its_holder_and_never_by_continuing_the_step() {
    let world = World::new();
    let run = start(&world, SCRIPTS).await;
    let step = world.step(&run, "W.a").await;
    let block = StepId::root().child(Segment::Clause(1));
    let early = json!({"m": 9}).as_object().unwrap().clone();
    let claims = world.claim(10).await;
    assert_eq!(claims.len(), 2);
    let before = world.service.canonical(&run).await.unwrap();
    for at in [&step, &block] {
        let refused = world.service.continue_step(&run, at, &early).await.unwrap_err();
        assert!(matches!(refused, Refusal::TooEarly { .. }), "{refused}");
        let refused = world.service.fail_step(&run, at, &broken()).await.unwrap_err();
        assert!(matches!(refused, Refusal::TooEarly { .. }), "{refused}");
    }
    assert_eq!(world.service.canonical(&run).await.unwrap(), before);

    let script = claims.iter().find(|claim| claim.ticket.step == step).unwrap();
    let prepared = json!({"k": 1}).as_object().unwrap().clone();
    world.service.complete(&script.ticket, &prepared).await.unwrap();
    // Its outcome is there, but the step is not at its event before that was taken in.
    let refused = world.service.continue_step(&run, &step, &early).await.unwrap_err();
    assert!(matches!(refused, Refusal::TooEarly { .. }), "{refused}");
    world.service.turn().await.unwrap();
    let sent = world.service.canonical(&run).await.unwrap();
    let late = world.service.complete(&script.ticket, &prepared).await.unwrap_err();
    assert!(matches!(late, Refusal::LeaseLost { .. }), "{late}");
    assert_eq!(world.service.canonical(&run).await.unwrap(), sent);

    let answer = json!({"m": 2}).as_object().unwrap().clone();
    for _ in 0..2 {
        world.service.continue_step(&run, &step, &answer).await.unwrap();
    }
    let block = claims.iter().find(|claim| claim.ticket.step == block).unwrap();
    world.service.complete(&block.ticket, &json!({}).as_object().unwrap().clone()).await.unwrap();
    world.service.turn().await.unwrap();
    assert_eq!(world.outputs(&run).await, json!({"m": 2}));
}

async fn start(world: &World, program: &str) -> RunId {
    let hash = world.service.publish(&compile("trap.afl", program).unwrap()).await.unwrap();
    world.service.start(StartRequest::new(hash)).await.unwrap().run
}

// covers: RT-1-c
#[tokio::test]
async fn t8_a_step_may_use_one_that_is_written_below_it_but_not_itself() {
    let world = World::new();
    let forward = "namespace t { event facet Inc(n: Long) => (n: Long)
        workflow W() => (n: Long) andThen {
            c = Inc(n = b.n)
            b = Inc(n = a.n)
            a = Inc(n = 1)
            yield W(n = c.n)
        } }";
    let run = start(&world, forward).await;
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({"n": 4}));
    let circle = forward.replace("n = 1", "n = c.n");
    let error = compile("circle.afl", &circle).unwrap_err().to_string();
    let [code, message] = ["AFL0405", "these steps wait for one another: c → b → a → c"];
    assert!(error.contains(code) && error.contains(message), "{error}");
    // Where the circle is: the step that is written first.
    assert!(error.contains("circle.afl:3:13"), "{error}");
}

// covers: RT-15-a, RT-15-b, RT-15-d
#[tokio::test]
async fn t9_g6_yields_of_blocks_are_merged_in_the_order_of_the_program_not_of_arrival() {
    let program = "namespace t { event facet Inc(n: Long) => (n: Long)
        workflow W() => (a: Long, b: Long, all: [Long]) andThen {
            x = Inc(n = 1)
            yield W(a = x.n)
        } andThen {
            y = Inc(n = 10)
            yield W(a = y.n, b = y.n)
        } andThen foreach e in [100, 200, 300, 400] {
            z = Inc(n = $.e)
            yield W(all = [z.n])
        } }";
    let mut ends: Vec<(Value, String)> = Vec::new();
    for rotation in 0..6 {
        let world = World::new();
        let run = start(&world, program).await;
        let mut claims = world.claim(10).await;
        assert_eq!(claims.len(), 6);
        claims.rotate_left(rotation);
        if rotation % 2 == 0 {
            claims.reverse();
        }
        for claim in claims {
            world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
            world.service.turn().await.unwrap();
        }
        ends.push((world.outputs(&run).await, world.service.canonical(&run).await.unwrap()));
    }
    // Two blocks give `a`; the one that is written last counts, whichever came first.
    assert_eq!(ends[0].0, json!({"a": 11, "b": 11, "all": [101, 201, 301, 401]}));
    assert!(ends.iter().all(|end| *end == ends[0]));
}
