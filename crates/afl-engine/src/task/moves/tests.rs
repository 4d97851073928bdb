//! Every move in every state of a task, by the holder and by others.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::id::{RunId, StepId};
use crate::policy::Policy;
use crate::task::NewTask;

const SECRET: &str = "secret";
const SYSTEM: Authority<'static> = Authority::Actor(&Actor::System);

/// The columns. A task that waits for an answer is `awaiting` with a lease and `parked` without one.
const STATES: [&str; 8] =
    ["pending", "running", "awaiting", "parked", "completed", "failed", "ignored", "canceled"];

/// A task that has been in the hands of the holder of token 1, and then came to a state.
fn task_in(state: &str) -> Task {
    let mut task = new_task();
    let steps: &[&str] = match state {
        "pending" => &["lost lease"],
        "running" => &[],
        "awaiting" => &["ask, hold"],
        "parked" => &["ask, park"],
        "completed" => &["complete"],
        "failed" => &["fail, attempt"],
        "ignored" => &["lost lease", "ignore"],
        "canceled" => &["cancel"],
        other => panic!("no state {other}"),
    };
    make(&mut task, "claim", SYSTEM).unwrap();
    for step in steps {
        let by = match *step {
            "ask, hold" | "ask, park" | "complete" | "fail, attempt" => holder(&task),
            _ => SYSTEM,
        };
        make(&mut task, step, by).unwrap();
    }
    task
}

fn new_task() -> Task {
    let new = NewTask {
        step_id: StepId::root(),
        workflow_id: RunId("r".into()),
        name: "a.F".into(),
        path: "W.s".to_owned(),
        task_list_name: "default".into(),
        policy: Policy::default(),
        turn: Millis(0),
        token: 0,
        claims: 0,
        fires: None,
    };
    Task::pending(new, Millis(0))
}

fn holder(task: &Task) -> Authority<'static> {
    Authority::Holder { token: task.token, secret: SECRET }
}

const MOVES: [&str; 21] = [
    "claim",
    "extend",
    "ask, hold",
    "ask, park",
    "answer",
    "answer, parked",
    "complete",
    "fail, attempt",
    "fail, lost lease",
    "fail, deadline",
    "fail, operator",
    "release",
    "next attempt",
    "lost lease",
    "unclaim",
    "cancel",
    "cancel, error",
    "retry",
    "ignore",
    "amend, result",
    "amend, error",
];

fn make(task: &mut Task, what: &str, by: Authority<'_>) -> Result<(), MoveRefusal> {
    let now = Millis(task.updated.0 + 10);
    let error = &EventError::new("E", "it broke");
    let question = &QuestionId("q1".to_owned());
    let fail = |source| Move::Fail { error, source };
    let lease =
        Lease { owner: "w".to_owned(), secret: SECRET.to_owned(), since: now, expires: now, heartbeat: now };
    let what = match what {
        "claim" => Move::Claim { lease, handler: "", crashes: 0 },
        "extend" => Move::Extend { expires: now.plus(Millis(5)) },
        "ask, hold" => Move::Ask { question, wait: QuestionWait::Hold },
        "ask, park" => Move::Ask { question, wait: QuestionWait::Park { server: Some("host".into()) } },
        "answer" => Move::Answer { question },
        "answer, parked" => Move::AnswerParked { question },
        "complete" => Move::Complete,
        "fail, attempt" => fail(FailureSource::Attempt),
        "fail, lost lease" => fail(FailureSource::LostLease),
        "fail, deadline" => fail(FailureSource::Deadline),
        "fail, operator" => fail(FailureSource::Operator),
        "release" => Move::Requeue(Requeue::Release { not_before: None }),
        "next attempt" => Move::Requeue(Requeue::NextAttempt { error: "it broke", not_before: None }),
        "lost lease" => Move::Requeue(Requeue::LostLease { error: "w fell silent" }),
        "unclaim" => Move::Requeue(Requeue::Unclaim { cause: "the run waits" }),
        "cancel" => Move::Cancel { cause: "not wanted", error: None },
        "cancel, error" => Move::Cancel { cause: "not wanted", error: Some(error) },
        "retry" => Move::Retry { server: None, turn: None, fires: None },
        "ignore" => Move::Ignore,
        "amend, result" => Move::Amend(Ok(())),
        "amend, error" => Move::Amend(Err(error)),
        other => panic!("no move {other}"),
    };
    task.apply(what, by, now)
}

/// One line for each move, one column for each state: the new state, `-` where the move is illegal, `caller` where
/// another must make it, `lost` or `spent` where the holder's ticket is not the current one.
fn table(by: impl Fn(&Task) -> Authority<'static>) -> String {
    let mut text = String::new();
    for what in MOVES {
        write!(text, "{what:16}").unwrap();
        for state in STATES {
            let before = task_in(state);
            let mut task = before.clone();
            let cell = match make(&mut task, what, by(&before)) {
                Ok(()) => {
                    check_record(&task);
                    let new = task.events().len() - before.events().len();
                    assert!(new > 0, "{what} of a {state} task leaves no history entry");
                    match (task.state, &task.lease) {
                        (TaskState::AwaitingResponse, None) => "parked",
                        (TaskState::AwaitingResponse, Some(_)) => "awaiting",
                        (state, _) => state.name(),
                    }
                }
                Err(refusal) => {
                    assert_eq!(task, before, "{what} of a {state} task is refused, but changes it");
                    match refusal.reason {
                        RefusalReason::Illegal => "-",
                        RefusalReason::OtherCaller => "caller",
                        RefusalReason::Ticket(TicketStatus::Spent) => "spent",
                        RefusalReason::Ticket(TicketStatus::Lost) => "lost",
                        RefusalReason::Ticket(TicketStatus::Current) | RefusalReason::OtherQuestion => {
                            panic!("{refusal}")
                        }
                    }
                }
            };
            write!(text, " {cell:9}").unwrap();
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// The agreement of a task's fields in each state.
fn check_record(task: &Task) {
    let state = task.state;
    assert_eq!(task.question.is_some(), state == TaskState::AwaitingResponse, "{task:?}");
    assert_eq!(task.ended.is_some(), state.is_terminal(), "{task:?}");
    assert!(task.lease.is_some() || state != TaskState::Running, "{task:?}");
    assert!(task.not_before.is_none() || state == TaskState::Pending, "{task:?}");
    assert!(
        task.error_kind.is_none() || matches!(state, TaskState::Failed | TaskState::Canceled),
        "{task:?}"
    );
}

// covers: SDK-3.2-b, XR-3
#[test]
fn m2_to_m12_others_than_the_holder_make_the_moves_of_the_table_and_no_others() {
    assert_eq!(
        table(|_| SYSTEM),
        "\
claim            running   -         -         -         -         -         -         -
extend           caller    caller    caller    caller    caller    caller    caller    caller
ask, hold        caller    caller    caller    caller    caller    caller    caller    caller
ask, park        caller    caller    caller    caller    caller    caller    caller    caller
answer           -         -         running   -         -         -         -         -
answer, parked   -         -         -         pending   -         -         -         -
complete         completed completed completed completed -         -         -         -
fail, attempt    -         failed    failed    failed    -         -         -         -
fail, lost lease -         failed    failed    failed    -         -         -         -
fail, deadline   failed    failed    failed    failed    -         -         -         -
fail, operator   failed    failed    failed    failed    -         -         -         -
release          caller    caller    caller    caller    caller    caller    caller    caller
next attempt     -         pending   pending   -         -         -         -         -
lost lease       -         pending   pending   -         -         -         -         -
unclaim          -         pending   pending   -         -         -         -         -
cancel           canceled  canceled  canceled  canceled  -         -         -         -
cancel, error    canceled  canceled  canceled  canceled  -         -         -         -
retry            -         -         -         -         pending   pending   pending   pending
ignore           ignored   -         -         -         -         -         -         -
amend, result    -         -         -         -         completed completed completed completed
amend, error     -         -         -         -         failed    failed    failed    failed
"
    );
}

// covers: SDK-3.2-b, XR-3
#[test]
fn m2_to_m12_the_holder_moves_a_task_only_while_its_ticket_is_current() {
    assert_eq!(
        table(holder),
        "\
claim            lost      caller    caller    lost      spent     spent     lost      lost
extend           lost      running   awaiting  lost      spent     spent     lost      lost
ask, hold        lost      awaiting  -         lost      spent     spent     lost      lost
ask, park        lost      parked    -         lost      spent     spent     lost      lost
answer           lost      caller    caller    lost      spent     spent     lost      lost
answer, parked   lost      caller    caller    lost      spent     spent     lost      lost
complete         lost      completed -         lost      spent     spent     lost      lost
fail, attempt    lost      failed    failed    lost      spent     spent     lost      lost
fail, lost lease lost      caller    caller    lost      spent     spent     lost      lost
fail, deadline   lost      caller    caller    lost      spent     spent     lost      lost
fail, operator   lost      caller    caller    lost      spent     spent     lost      lost
release          lost      pending   pending   lost      spent     spent     lost      lost
next attempt     lost      pending   pending   lost      spent     spent     lost      lost
lost lease       lost      caller    caller    lost      spent     spent     lost      lost
unclaim          lost      caller    caller    lost      spent     spent     lost      lost
cancel           lost      canceled  canceled  lost      spent     spent     lost      lost
cancel, error    lost      canceled  canceled  lost      spent     spent     lost      lost
retry            lost      caller    caller    lost      spent     spent     lost      lost
ignore           lost      caller    caller    lost      spent     spent     lost      lost
amend, result    lost      caller    caller    lost      spent     spent     lost      lost
amend, error     lost      caller    caller    lost      spent     spent     lost      lost
"
    );
}

#[test]
fn an_older_token_or_another_secret_moves_nothing() {
    for state in STATES {
        let token = task_in(state).token;
        for by in [
            Authority::Holder { token: token - 1, secret: SECRET },
            Authority::Holder { token, secret: "guessed" },
        ] {
            for what in MOVES {
                let mut task = task_in(state);
                let refusal = make(&mut task, what, by).unwrap_err();
                assert_eq!(refusal.reason, RefusalReason::Ticket(TicketStatus::Lost), "{what}, {state}");
                assert_eq!(task, task_in(state), "{what}, {state}");
            }
        }
    }
}

#[test]
fn m5_m6_an_answer_to_another_question_changes_nothing() {
    let other = &QuestionId("q0".to_owned());
    for (state, what) in
        [("awaiting", Move::Answer { question: other }), ("parked", Move::AnswerParked { question: other })]
    {
        let mut task = task_in(state);
        let refusal = task.apply(what, SYSTEM, Millis(99)).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::OtherQuestion);
        assert_eq!(
            refusal.to_string(),
            "the task of `W.s` is awaiting_response, so it cannot be answered for a question that it did not ask"
        );
        assert_eq!(task, task_in(state));
    }
}

#[test]
fn m4_m5_a_holder_that_waits_keeps_its_ticket() {
    let mut task = task_in("awaiting");
    let ticket = holder(&task);
    make(&mut task, "extend", ticket).unwrap();
    make(&mut task, "answer", Authority::Actor(&Actor::User("ada".to_owned()))).unwrap();
    make(&mut task, "complete", ticket).unwrap();
    let events: Vec<String> =
        task.events().iter().map(|it| format!("{} {}", it.event_type, it.actor)).collect();
    assert_eq!(
        events[2..],
        [
            "LEASED system",
            "STARTED system",
            "AWAITING_RESPONSE agent:w",
            "PROGRESS agent:w",
            "RESPONSE_RECEIVED user:ada",
            "COMPLETED agent:w",
        ]
    );
}

#[test]
fn m4_m6_a_parked_task_counts_no_delivery_and_wants_the_server_that_parked_it() {
    let mut task = task_in("parked");
    assert_eq!((task.deliveries, task.desired_server.as_deref()), (0, Some("host")));
    make(&mut task, "answer, parked", SYSTEM).unwrap();
    assert_eq!((task.state, task.desired_server.as_deref()), (TaskState::Pending, Some("host")));
    make(&mut task, "claim", SYSTEM).unwrap();
    assert_eq!((task.token, task.deliveries, task.desired_server.as_deref()), (2, 1, None));
}

#[test]
fn g3_a_token_is_greater_than_all_from_before_a_crash_of_the_store() {
    assert_eq!((next_token(0, 0), next_token(7, 0)), (1, 8));
    let before = (1..=5).fold(0, |last, _| next_token(last, 2));
    // The crash took all five claims back.
    assert!(next_token(0, 3) > before);
    assert!(next_token(next_token(0, 3), 3) > next_token(0, 3));
}

proptest! {
    #[test]
    fn any_sequence_of_moves_keeps_a_record_in_order(
        moves in prop::collection::vec((0..MOVES.len(), any::<bool>()), 0..60)
    ) {
        let mut task = new_task();
        for (index, is_holder) in moves {
            let before = task.clone();
            let by = if is_holder { holder(&task) } else { SYSTEM };
            let result = make(&mut task, MOVES[index], by);
            prop_assert_eq!(result.is_err(), task == before);
            prop_assert!(task.token >= before.token);
            check_record(&task);
            let text = serde_json::to_string(&task).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Task>(&text).unwrap(), &task);
        }
    }
}
