//! F7: people steer runs while drivers evaluate them and agents work for them, on every store.

use std::sync::Arc;

use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::Refusal;
use afl_runtime::{Again, Contention, Error, NotFound, ReportedOutcome, Service, StateRefusal};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::site::Site;
use crate::work::{Process, claim, ended, examine, output, start};

/// How often each person does what they do.
const TIMES: usize = 12;
const ITEMS: i64 = 12;

/// The errors that a verb may return to a caller that lost the race; any other is a fault.
fn overtaken(outcome: Result<(), Error>) {
    match outcome {
        Ok(())
        | Err(
            Error::NotFound(NotFound::Step { .. })
            | Error::Contended(Contention::Run { .. })
            | Error::Refused(
                StateRefusal::Ended { .. }
                | StateRefusal::Canceling { .. }
                | StateRefusal::NothingFailed { .. }
                | StateRefusal::Unanswerable { .. }
                | StateRefusal::Task(Refusal::Canceled { .. } | Refusal::TooEarly { .. }),
            ),
        ) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A person at a dashboard, who goes on until the time is over.
#[derive(Clone, Copy, Debug)]
enum Person {
    PausesAndResumes,
    Retries,
    Answers,
    Cancels,
}

impl Person {
    async fn act(self, service: Service, run: RunId, step: StepId) {
        for nth in 0..TIMES {
            match self {
                Self::PausesAndResumes => {
                    overtaken(service.pause(&run).await);
                    // Others see it held.
                    tokio::task::yield_now().await;
                    overtaken(service.resume(&run).await);
                }
                Self::Retries => overtaken(service.retry(&run, &Again::Run).await.map(drop)),
                Self::Answers => overtaken(service.answer(&run, &step, &done(5)).await.map(drop)),
                Self::Cancels if nth == TIMES / 2 => overtaken(service.cancel(&run).await.map(drop)),
                Self::Cancels => drop(service.why(&run).await.unwrap()),
            }
            tokio::task::yield_now().await;
        }
    }
}

fn done(n: i64) -> ReportedOutcome {
    let result: Map<String, Value> = json!({ "n": n }).as_object().unwrap().clone();
    ReportedOutcome::Done(result)
}

/// All of them at once, by way of two processes that drive and work.
async fn steer(processes: &[Process; 2], run: &RunId, step: &str, people: &[Person]) {
    let gate = Arc::new(Barrier::new(people.len()));
    let mut acts = JoinSet::new();
    for (nth, person) in people.iter().enumerate() {
        let service = processes[nth % 2].service.clone();
        let (run, step, gate, person) = (run.clone(), step.parse::<StepId>().unwrap(), gate.clone(), *person);
        acts.spawn(async move {
            gate.wait().await;
            person.act(service, run, step).await;
        });
    }
    acts.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f7_a_run_that_people_pause_resume_and_answer_while_it_is_driven_ends_right_on_every_store() {
    use Person::{Answers, PausesAndResumes};
    for site in Site::all() {
        let processes = [Process::new(site.service().await), Process::new(site.service().await)];
        let items: Vec<i64> = (0..ITEMS).collect();
        let run = start(&processes[0].service, "Fan", json!({ "items": items })).await;
        // The agent and the person say the same of this element.
        let people = [PausesAndResumes, Answers, PausesAndResumes, Answers];
        steer(&processes, &run, "wb0e4s0", &people).await;
        processes[1].service.resume(&run).await.or_else(is_over).unwrap();
        assert_eq!(ended(&processes[0].service, &run).await, RunStatus::Completed, "{:?}", site.kind);
        let all: Vec<i64> = items.iter().map(|item| item + 1).collect();
        assert_eq!(output(&processes[1].service, &run).await, json!({ "all": all }), "{:?}", site.kind);
        leave(processes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f7_a_failure_that_people_retry_and_answer_while_it_is_driven_gets_the_answer_on_every_store() {
    use Person::{Answers, PausesAndResumes, Retries};
    for site in Site::all() {
        let processes = [Process::new(site.service().await), Process::new(site.service().await)];
        let run = start(&processes[0].service, "Risky", json!({"n": 1})).await;
        let people = [Retries, PausesAndResumes, Retries, Answers];
        steer(&processes, &run, "wb0s1", &people).await;
        // The answer of the person counts, or the agent fails the task once more.
        processes[0].service.resume(&run).await.or_else(is_over).unwrap();
        while ended(&processes[0].service, &run).await == RunStatus::Failed {
            let step = "wb0s1".parse::<StepId>().unwrap();
            overtaken(processes[1].service.answer(&run, &step, &done(5)).await.map(drop));
        }
        assert_eq!(output(&processes[1].service, &run).await, json!({"n": 5}), "{:?}", site.kind);
        leave(processes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f7_a_run_that_is_canceled_among_all_that_people_do_has_ended_whole_on_every_store() {
    use Person::{Answers, Cancels, PausesAndResumes, Retries};
    for site in Site::all() {
        let processes = [Process::new(site.service().await), Process::new(site.service().await)];
        let items: Vec<i64> = (0..ITEMS).collect();
        let run = start(&processes[0].service, "Fan", json!({ "items": items })).await;
        let people = [PausesAndResumes, Answers, Cancels, Retries, Cancels];
        steer(&processes, &run, "wb0e4s0", &people).await;
        processes[1].service.resume(&run).await.or_else(is_over).unwrap();
        let status = ended(&processes[0].service, &run).await;
        // It may have been faster than all of them.
        assert!(matches!(status, RunStatus::Canceled | RunStatus::Completed), "{:?}: {status}", site.kind);
        let service = processes[0].service.clone();
        let canonical = service.canonical(&run).await.unwrap();
        leave(processes).await;
        assert_eq!(claim(&service, 99).await, [], "{:?}", site.kind);
        assert_eq!(service.canonical(&run).await.unwrap(), canonical, "{:?}", site.kind);
    }
}

fn is_over(error: Error) -> Result<(), Error> {
    match error {
        Error::Refused(StateRefusal::Ended { .. } | StateRefusal::Canceling { .. }) => Ok(()),
        other => Err(other),
    }
}

async fn leave(processes: [Process; 2]) {
    let service = processes[0].service.clone();
    for process in processes {
        process.stop().await;
    }
    examine(&service).await;
}
