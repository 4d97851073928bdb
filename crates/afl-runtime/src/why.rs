//! Why a run or a step is not further: the exact chain of what it waits for, and what to do about it.

use afl_engine::event::{Event, Reception};
use afl_engine::failure::StepFailure;
use afl_engine::id::{RunId, StepId};
use afl_engine::plan::Plan;
use afl_engine::policy::Effect;
use afl_engine::run::{Control, Quarantine, Run, RunStatus};
use afl_engine::state::State;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_store::paging::Pages;
use serde::Serialize;

use crate::error::Error;
use crate::query::StepView;
use crate::service::Service;

/// The most open ends that are listed; the count includes the others.
const TOLD: usize = 20;
const PAGE: usize = 500;

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Why {
    pub run: RunId,
    pub workflow: String,
    pub status: RunStatus,
    pub reason: WhyReason,
    /// Its waits, the first ones in the order of the program.
    pub waits: Vec<Wait>,
    /// How many open ends there are in all, in the run or in the step that was asked for.
    pub waiting: u64,
    /// The first time at which something happens by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Millis>,
}

/// Why the run as a whole stands where it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyReason {
    Completed,
    Failed(StepFailure),
    Canceled,
    /// An operator holds it; `resume` lets it go on.
    Held,
    /// It is held because it harms others or cannot be stored; `resume` tries it again.
    Quarantined(Quarantine),
    Canceling,
    /// A driver has work to do for it. If nothing moves, no driver is there.
    Evaluating,
    /// [`Why::waits`] lists what it waits for.
    Waiting,
    /// Nothing is open and nothing will wake it: a mistake in the engine or its store.
    Stalled,
}

/// One open end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wait {
    pub step: StepId,
    pub path: String,
    /// From the workflow down to the step, with where each stands.
    pub chain: Vec<ChainLink>,
    pub on: On,
    /// When its `Timeout` ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_out: Option<Millis>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChainLink {
    pub path: String,
    pub state: State,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftTo {
    pub server: String,
    pub until: Millis,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum On {
    /// The task is unclaimed: an agent for its name and list is missing or busy.
    Agent {
        name: String,
        list: String,
        /// The capabilities that the agent must have.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        needs: Vec<String>,
        since: Millis,
        /// Which server it is left to, and until when.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_to: Option<LeftTo>,
    },
    /// An agent works on it.
    Holder {
        name: String,
        owner: String,
        heartbeat: Millis,
        expires: Millis,
        /// The effect of the work outside, where that was declared.
        #[serde(skip_serializing_if = "Option::is_none")]
        effect: Option<Effect>,
    },
    /// A timer of the store, which fires without an agent.
    Timer { name: String, at: Millis },
    /// The next of its declared attempts.
    Retry { name: String, attempts: u32, at: Millis, error: Option<String> },
    /// Its outcome is there; a driver takes it in.
    Driver,
    /// It failed, and what to do is a person's choice: retry, continue, or leave it.
    Failure(StepFailure),
    /// Its work must happen at most once, failed, and may have happened: a person finds out and decides.
    Decision { name: String, must_return: Vec<String>, failure: StepFailure },
}

impl Service {
    /// Why the run stands where it does.
    pub async fn why(&self, run: &RunId) -> Result<Why, Error> {
        self.why_within(run, &StepId::root()).await
    }

    /// Why a step of the run does.
    pub async fn why_within(&self, id: &RunId, within: &StepId) -> Result<Why, Error> {
        let run = self.existing(id).await?;
        let why = self.why_of(&run.item, within).await?;
        if why.reason != WhyReason::Stalled {
            return Ok(why);
        }
        // The awaited event may have come while we looked.
        let now = self.existing(id).await?;
        if now.version == run.version { Ok(why) } else { self.why_of(&now.item, within).await }
    }

    async fn why_of(&self, run: &Run, within: &StepId) -> Result<Why, Error> {
        let (waits, waiting) = self.waits(run, within).await?;
        let next = waits.iter().flat_map(|wait| wait.on.next().into_iter().chain(wait.times_out)).min();
        Ok(Why {
            run: run.id.clone(),
            workflow: run.workflow.to_string(),
            status: run.status,
            reason: reason(run, &waits, *within == StepId::root()),
            waiting,
            waits,
            next,
        })
    }

    /// The first open ends, and how many there are.
    async fn waits(&self, run: &Run, within: &StepId) -> Result<(Vec<Wait>, u64), Error> {
        let mut waits = Vec::new();
        let mut above: Vec<(StepId, ChainLink)> = Vec::new();
        let (mut seen, mut waiting) = (0, 0);
        let plan = self.plan_of(run).await?;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.steps(&run.id, Some(within), pages.after(), PAGE).await?;
            seen += page.steps.len();
            for view in page.steps {
                above.retain(|(ancestor, _)| view.id.is_within(ancestor));
                above.push((view.id.clone(), ChainLink { path: view.path.clone(), state: view.step.state }));
                let Some(on) = on(&view, &plan) else { continue };
                waiting += 1;
                if waits.len() < TOLD {
                    let chain = above.iter().map(|(_, link)| link.clone()).collect();
                    let open = view.event.filter(|event| event.reception == Reception::Open);
                    let times_out = open.and_then(|event| event.times_out);
                    waits.push(Wait { step: view.id, path: view.path, chain, on, times_out });
                }
                // The run itself knows how many there are.
                if waits.len() == TOLD && *within == StepId::root() {
                    return Ok((waits, run.counts.waiting.max(waiting)));
                }
            }
            pages.follow(page.next);
        }
        if seen == 0 { Err(Error::no_step(&run.id, within)) } else { Ok((waits, waiting)) }
    }
}

fn reason(run: &Run, waits: &[Wait], is_of_run: bool) -> WhyReason {
    match (run.status, run.control, &run.error) {
        (RunStatus::Completed, ..) => WhyReason::Completed,
        (RunStatus::Failed, _, Some(failure)) => WhyReason::Failed(failure.clone()),
        (RunStatus::Failed, _, None) => WhyReason::Stalled,
        (RunStatus::Canceled, ..) => WhyReason::Canceled,
        (RunStatus::Running | RunStatus::Paused, Control::Hold, _) => {
            run.quarantine.clone().map_or(WhyReason::Held, WhyReason::Quarantined)
        }
        (RunStatus::Running | RunStatus::Paused, Control::Cancel, _) => WhyReason::Canceling,
        (RunStatus::Running, Control::Go, _) => WhyReason::Evaluating,
        (RunStatus::Paused, Control::Go, _) if run.active > 0 => WhyReason::Evaluating,
        (RunStatus::Paused, Control::Go, _) if waits.is_empty() && (is_of_run || run.counts.waiting == 0) => {
            WhyReason::Stalled
        }
        (RunStatus::Paused, Control::Go, _) => WhyReason::Waiting,
    }
}

/// The wait of a step itself, not of its children.
fn on(view: &StepView, plan: &Plan) -> Option<On> {
    let began = |failure: &&StepFailure| failure.step == view.id;
    if let Some(failure) = view.step.error.as_ref().filter(began).cloned() {
        let undecided =
            view.task.as_ref().filter(|task| task.needs_decision() && view.step.failed_by_event());
        return Some(undecided.map_or(On::Failure(failure.clone()), |task| On::Decision {
            name: task.name.to_string(),
            must_return: plan.must_return(&task.name),
            failure,
        }));
    }
    let (event, task) = view.event.as_ref().zip(view.task.as_ref())?;
    on_work(event, task)
}

fn on_work(event: &Event, task: &Task) -> Option<On> {
    let name = task.name.to_string();
    match (event.reception, task.state) {
        (Reception::Arrived, _) => Some(On::Driver),
        (Reception::Open, TaskState::Pending) => Some(match task.not_before {
            Some(at) if task.timer().is_some() => On::Timer { name, at },
            Some(at) => On::Retry { name, attempts: task.attempts, at, error: task.error.clone() },
            None => On::Agent {
                name,
                list: task.task_list_name.to_string(),
                needs: task.policy.needs.clone(),
                since: task.updated,
                left_to: task
                    .desired_server
                    .as_deref()
                    .zip(task.free_at())
                    .map(|(server, until)| LeftTo { server: server.to_owned(), until }),
            },
        }),
        (Reception::Open, TaskState::Running | TaskState::AwaitingResponse) => {
            let lease = task.lease.as_ref()?;
            let (owner, heartbeat) = (lease.owner.clone(), lease.heartbeat);
            let effect = task.policy.effect;
            Some(On::Holder { name, owner, heartbeat, expires: lease.expires, effect })
        }
        (Reception::Taken, _)
        | (
            Reception::Open,
            TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled,
        ) => None,
    }
}

impl On {
    fn next(&self) -> Option<Millis> {
        match self {
            Self::Holder { expires, .. } => Some(*expires),
            Self::Retry { at, .. } | Self::Timer { at, .. } => Some(*at),
            Self::Agent { .. } | Self::Driver | Self::Failure(_) | Self::Decision { .. } => None,
        }
    }

    /// The advice for a person, whatever the surface. A surface may add its own commands.
    pub fn advice(&self) -> String {
        match self {
            Self::Agent { name, list, needs, .. } => {
                let start = format!("start an agent for `{name}` on the task list `{list}`");
                match &needs[..] {
                    [] => start,
                    needs => format!("{start} that has `{}`", needs.join("`, `")),
                }
            }
            Self::Holder { owner, effect: Some(Effect::Once), .. } => {
                format!("wait for {owner}; if it is gone, a person must say whether the work happened")
            }
            Self::Holder { owner, .. } => {
                format!("wait for {owner}; if it is gone, another agent gets the task")
            }
            Self::Retry { .. } => "wait for the next attempt".to_owned(),
            Self::Timer { .. } => "wait: a process that serves this store continues it".to_owned(),
            Self::Driver => "make sure that a process drives the runs of this store".to_owned(),
            Self::Failure(_) => "repair the cause, then retry the step".to_owned(),
            Self::Decision { .. } => {
                "find out whether it happened, then report its result, retry it, or fail it".to_owned()
            }
        }
    }
}
