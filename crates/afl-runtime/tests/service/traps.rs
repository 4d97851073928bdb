//! Traps of the documents, and calls that come late, twice or in the wrong order.

use afl_engine::id::{RunId, Segment, StepId};
use afl_engine::run::RunStatus;
use afl_runtime::agent::{Claim, Refusal};
use afl_runtime::{Service, StartRequest, compile};
use serde_json::{Value, json};

use crate::world::{World, broken, inc};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Late {
    Complete,
    Fail,
    Continue,
    FailStep,
    Cancel,
}

const LATE: [Late; 5] = [Late::Complete, Late::Fail, Late::Continue, Late::FailStep, Late::Cancel];

/// Whether it was accepted, as something new or as a repetition.
async fn call(service: &Service, late: Late, run: &RunId, step: &StepId, held: &Claim) -> bool {
    let result = json!({"n": 40}).as_object().unwrap().clone();
    let told = match late {
        Late::Complete => service.complete(&held.ticket, &result).await.map(drop),
        Late::Fail => service.fail(&held.ticket, &broken()).await.map(drop),
        Late::Continue => service.continue_step(run, step, &result).await.map(drop),
        Late::FailStep => service.fail_step(run, step, &broken()).await.map(drop),
        Late::Cancel => return service.cancel(run).await.is_ok(),
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
                let world = World::new();
                let run = world.start("One", json!({"n": 1})).await;
                let step = world.step(&run, "One.a").await;
                let held = world.claim(1).await.remove(0);
                let when = format!("{first:?}, {second:?}, {third:?}");
                assert!(call(&world.service, first, &run, &step, &held).await, "{when}");
                // Driven at once, so that the rest is late, or only at the end, so that it races.
                if third != first {
                    world.service.turn().await.unwrap();
                }
                let before = world.service.canonical(&run).await.unwrap();
                for late in [second, third, second] {
                    if late != Late::Cancel {
                        call(&world.service, late, &run, &step, &held).await;
                        assert_eq!(world.service.canonical(&run).await.unwrap(), before, "{when}: {late:?}");
                    }
                }
                world.service.turn().await.unwrap();
                let expected = match first {
                    Late::Complete | Late::Continue => RunStatus::Completed,
                    Late::Fail | Late::FailStep => RunStatus::Failed,
                    Late::Cancel => RunStatus::Canceled,
                };
                assert_eq!(world.status(&run).await, expected, "{when}");
                if second == Late::Cancel && first != Late::Cancel {
                    world.service.cancel(&run).await.unwrap_err();
                    assert_eq!(world.status(&run).await, expected, "{when}");
                }
                world.examine().await;
            }
        }
    }
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
    assert!(error.contains('a') && error.contains("AFL"), "{error}");
}

// covers: RT-15-a, RT-15-b, RT-15-d
#[tokio::test]
async fn t9_g6_what_blocks_yield_is_merged_in_the_order_of_the_program_not_of_arrival() {
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
