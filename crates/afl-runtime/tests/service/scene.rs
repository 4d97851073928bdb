//! A world in which one verb of the service has something to do, and all that is there in its end.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use afl_engine::id::{RunId, StepId};
use afl_engine::task::{TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::notification::STUCK_AFTER;
use afl_runtime::outbox::{Channel, ChannelTarget, DeliveryFailure};
use afl_runtime::{EXECUTE, RunQuery, TaskQuery};
use serde_json::json;

use crate::verbs::Ask;
use crate::world::{World, inc};

pub(crate) const CHANNEL: &str = "all";

pub(crate) struct Scene {
    pub(crate) world: World,
    /// The run that the verb is about, which may only be asked for yet, or the shared record.
    pub(crate) run: RunId,
    /// The first step that waits.
    pub(crate) step: StepId,
    pub(crate) held: Option<Claim>,
    /// Messages that wait for the channel.
    pub(crate) letters: Vec<String>,
}

impl Scene {
    pub(crate) async fn before(ask: Ask) -> Self {
        match ask {
            Ask::DoStart | Ask::Withdraw | Ask::Again | Ask::CancelStart => Self::handed_over(ask).await,
            Ask::OpenChannel
            | Ask::CloseChannel
            | Ask::DropChannel
            | Ask::ReviveChannel
            | Ask::Feed
            | Ask::Acknowledge
            | Ask::Dispatch => Self::with_channel(ask).await,
            Ask::Doctor | Ask::Examine | Ask::Discard | Ask::DiscardShared => Self::hurt(ask).await,
            _ => Self::at_work(ask).await,
        }
    }

    async fn of(workflow: &str) -> Self {
        let world = World::new();
        let run = world.start(workflow, json!({"n": 1})).await;
        let step = world.step(&run, &format!("{workflow}.a")).await;
        Self { world, run, step, held: None, letters: Vec::new() }
    }

    async fn at_work(ask: Ask) -> Self {
        let workflow = match ask {
            Ask::Retry | Ask::Answer | Ask::MarkRead => "Risky",
            Ask::Skip => "Told",
            _ => "Two",
        };
        let mut scene = Self::of(workflow).await;
        let world = &scene.world;
        match ask {
            Ask::Extend | Ask::Update | Ask::Log | Ask::Complete | Ask::Fail | Ask::Release | Ask::PutOff => {
                scene.held = world.claim(1).await.pop();
            }
            Ask::Resume => {
                world.service.pause(&scene.run).await.unwrap();
                // It finds the run held and is put aside.
                assert!(world.claim(1).await.is_empty());
            }
            Ask::Retry | Ask::Collect | Ask::MarkRead => {
                world.finish().await;
                world.clock.advance(Millis(1));
            }
            Ask::Answer => {
                world.finish().await;
                scene.step = world.step(&scene.run, "Risky.b").await;
            }
            Ask::Sweep => {
                world.claim(1).await;
                world.clock.advance(Millis(61_000));
            }
            Ask::WatchOver => world.clock.advance(STUCK_AFTER),
            Ask::Turn | Ask::Drive => {
                let claim = world.claim(1).await.remove(0);
                world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
            }
            _ => {}
        }
        scene
    }

    /// A start that a runner is to make.
    async fn handed_over(ask: Ask) -> Self {
        let world = World::new();
        let mut request = world.request("Two", json!({"n": 1})).await;
        request.idempotency_key = Some("the-key".to_owned());
        let run = world.service.hand_over(request).await.unwrap().run;
        let mut held = None;
        match ask {
            Ask::DoStart => held = claim_start(&world).await,
            Ask::Again => {
                let task = world.service.start_task(&run).await.unwrap().unwrap();
                world.service.withdraw(&task.workflow_id).await.unwrap();
            }
            _ => {}
        }
        Self { world, run, step: StepId::root(), held, letters: Vec::new() }
    }

    async fn with_channel(ask: Ask) -> Self {
        let mut scene = Self::of("Two").await;
        let service = &scene.world.service;
        match ask {
            Ask::OpenChannel => return scene,
            _ => drop(service.open_channel(CHANNEL, channel()).await.unwrap()),
        }
        match ask {
            Ask::CloseChannel | Ask::Dispatch => return scene,
            _ => scene.world.finish().await,
        }
        scene.letters = service.feed(CHANNEL, 10).await.unwrap().into_iter().map(|it| it.id).collect();
        assert_eq!(scene.letters.len(), 3, "two tasks and the run");
        if ask == Ask::ReviveChannel {
            let now = service.now().await.unwrap();
            let outbox = scene.world.outbox();
            for row in outbox.due(CHANNEL, now, None, 10).await.unwrap().items {
                outbox.failed(row, "refused", DeliveryFailure::Permanent).await.unwrap();
            }
        }
        if ask == Ask::Feed {
            // Another channel takes the name; the messages of the one before it have no receiver.
            let first = service.channel(CHANNEL).await.unwrap();
            scene.world.outbox().channels().remove(CHANNEL, first.version).await.unwrap();
            scene.world.clock.advance(Millis(1));
            service.open_channel(CHANNEL, channel()).await.unwrap();
        }
        scene
    }

    /// With a record in no list, or one that cannot be read.
    async fn hurt(ask: Ask) -> Self {
        let mut scene = Self::of("Two").await;
        let run = scene.run.to_string();
        match ask {
            Ask::Discard => scene.world.damage(&run, &format!("s/{}", scene.step)).await,
            Ask::DiscardShared => {
                let program = scene.world.run(&scene.run).await.workflow_version;
                scene.world.damage("@programs", &program).await;
                scene.run = RunId(format!("@programs/{program}").into());
            }
            _ => {
                let task = format!("t/{}", scene.step);
                let lose =
                    |place: &mut afl_store::record::QueuePosition| "nowhere".clone_into(&mut place.bucket);
                scene.world.rewrite(&run, &task, |content| lose(content.place.as_mut().unwrap())).await;
            }
        }
        scene
    }

    /// All that the store holds in the end, without what differs between equal worlds.
    pub(crate) async fn end(&self) -> Vec<String> {
        let world = self.world.restarted();
        // A program that was discarded comes back with the next who publishes it.
        world.request("Two", json!({"n": 1})).await;
        // A claim whose answer was lost comes back with its lease.
        world.clock.advance(Millis(61_000));
        for _ in 0..4 {
            world.service.sweep_once().await.unwrap();
            do_system_tasks(&world).await;
            world.finish().await;
        }
        world.service.watch_over(world.clock.now()).await.unwrap();
        world.examine().await;
        let query = RunQuery { limit: 10, ..RunQuery::default() };
        let mut ends = Vec::new();
        for run in world.service.runs(&query).await.unwrap().runs {
            ends.push(world.service.canonical(&run.id).await.unwrap() + &logs(&world, &run.id).await);
        }
        ends.sort();
        ends.extend(beside_runs(&world).await);
        ends
    }
}

pub(crate) fn channel() -> Channel {
    Channel {
        to: ChannelTarget::Feed,
        topics: vec!["*".to_owned()],
        facets: Vec::new(),
        secret: None,
        enabled: true,
        created: Millis(0),
        updated: Millis(0),
    }
}

async fn claim_start(world: &World) -> Option<Claim> {
    let request = ClaimRequest::new(FacetFilter::Only(vec![EXECUTE.to_owned()]), "runner");
    world.service.claim(&request).await.unwrap().pop()
}

/// As a runner does.
async fn do_system_tasks(world: &World) {
    while let Some(claim) = claim_start(world).await {
        let result = world.service.execute(claim.payload.clone()).await.unwrap();
        world.service.complete(&claim.ticket, &result).await.unwrap();
    }
}

async fn logs(world: &World, run: &RunId) -> String {
    let query = TaskQuery { run: Some(run.clone()), limit: 100, ..TaskQuery::default() };
    let mut text = String::new();
    for task in world.service.tasks(&query).await.unwrap().tasks {
        for page in world.service.task_log(run, &task.step_id, None).await.unwrap() {
            writeln!(text, "log {} {} {} {:?}", task.step_id, page.token, page.number, page.lines).unwrap();
        }
    }
    text
}

/// System tasks, channels with their messages, and notifications.
async fn beside_runs(world: &World) -> Vec<String> {
    let service = &world.service;
    // An evaluation that is asked for twice is two tasks, and does no harm.
    let mut system = BTreeSet::new();
    for state in
        [TaskState::Pending, TaskState::Running, TaskState::Completed, TaskState::Failed, TaskState::Canceled]
    {
        let query = TaskQuery { state: Some(state), limit: 100, ..TaskQuery::default() };
        let tasks = service.tasks(&query).await.unwrap().tasks;
        let of_system = tasks.iter().filter(|task| task.kind() == TaskKind::System);
        system.extend(of_system.map(|task| format!("{} {state}", task.name)));
    }
    let mut rest: Vec<String> = system.into_iter().collect();
    for (name, channel) in service.channels().await.unwrap() {
        let letters = service.feed(&name, 100).await.unwrap();
        let mut told: Vec<_> = letters.iter().map(|it| (it.topic, &it.path, &it.result)).collect();
        told.sort_by_key(|(topic, path, _)| (topic.name(), path.as_str()));
        rest.push(format!("channel {name} {:?} {told:?}", channel.topics));
    }
    let stats = service.stats().await.unwrap();
    rest.push(format!("outbox {:?} {:?}", stats.outbox, stats.outbox_dead));
    let notices = service.notifications(100).await.unwrap();
    let told = notices.iter().map(|it| (it.notification.notification_type.name(), it.notification.read));
    let mut told: Vec<_> = told.collect();
    told.sort_unstable();
    rest.push(format!("notifications {told:?}"));
    rest
}
