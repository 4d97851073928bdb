//! F8: every verb whose caller saw an error although it was done, or although it was not, is safe to repeat.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use afl_store::fault::{BackendCall, BackendVerb, Fault};

use crate::ask::Trouble;
use crate::scene::Scene;

/// The requests to a service, under the name of its verb.
macro_rules! asks {
    ($($ask:ident $verb:ident),+ $(,)?) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Ask { $($ask),+ }

        const ALL: &[(Ask, &str)] = &[$((Ask::$ask, stringify!($verb))),+];
    };
}

asks! {
    Publish publish,
    Start start,
    Claim claim,
    ClaimNamed claim,
    Extend extend,
    Update update,
    Log log,
    Complete complete,
    Fail fail,
    Release release,
    PutOff put_off,
    Heartbeat heartbeat,
    Continue continue_step,
    FailStep fail_step,
    Skip skip,
    CancelTask cancel_task,
    Pause pause,
    Resume resume,
    Cancel cancel,
    CancelStart cancel,
    Retry retry,
    Answer answer,
    HandOver hand_over,
    DoStart execute,
    Withdraw withdraw,
    Again ask_again,
    OpenChannel open_channel,
    CloseChannel close_channel,
    DropChannel drop_channel,
    ReviveChannel revive_channel,
    Feed feed,
    Acknowledge acknowledge,
    Dispatch dispatch,
    MarkRead mark_read,
    WatchOver watch_over,
    Sweep sweep_once,
    Drive drive_once,
    Turn turn,
    Collect collect,
    Discard discard,
    DiscardShared discard,
    Doctor doctor,
    Examine examine,
}

/// They write nothing, or, as `serve`, only by the verbs above.
const OTHERS: &[&str] = &[
    "backlog",
    "blocked",
    "canonical",
    "channel",
    "channel_view",
    "channel_views",
    "channels",
    "clock_jump",
    "closest_task",
    "closest_workflow",
    "declaration",
    "ended",
    "find",
    "find_step",
    "find_work",
    "first_steps",
    "has_begun",
    "has_records",
    "inputs",
    "iteration",
    "must_return",
    "notifications",
    "now",
    "online_servers",
    "outcome",
    "outputs",
    "plan",
    "plan_of",
    "program",
    "run",
    "run_detail",
    "runs",
    "serve",
    "servers",
    "start_task",
    "stats",
    "steps",
    "task",
    "task_detail",
    "task_log",
    "tasks",
    "undeclared",
    "unread",
    "values",
    "view_tasks",
    "waiting_channels",
    "why",
    "why_report",
    "why_within",
];

/// How many calls a store that is away fails.
const CUT_OFF: u64 = 2;

/// A verb that is new must be put into one of the lists.
#[test]
fn f8_every_verb_of_the_service_is_asked_or_writes_nothing() {
    let mut offered = BTreeSet::new();
    collect_verbs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut offered);
    let known = ALL.iter().map(|(_, verb)| *verb).chain(OTHERS.iter().copied()).map(str::to_owned);
    assert_eq!(offered, known.collect());
}

/// The public async methods of the files that have any of the service.
fn collect_verbs(folder: &Path, verbs: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_verbs(&path, verbs);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split("\nimpl ").filter_map(|part| part.strip_prefix("Service {")) {
            let methods = part.split("\n    pub async fn ").skip(1);
            verbs.extend(methods.map(|text| text.split(['(', '<']).next().unwrap().to_owned()));
        }
    }
}

impl Scene {
    async fn insist(&self, ask: Ask, when: &str) {
        for _ in 0..=CUT_OFF {
            match self.ask(ask).await {
                Ok(()) => return,
                Err(Trouble::Uncertain) => {}
                Err(Trouble::Other(error)) => panic!("{when}: {error}"),
            }
        }
        panic!("{when}: it does not come back");
    }
}

/// Fails the call of this number, of those that write or of all.
fn nth(number: u64, writes_only: bool, fault: Fault) -> impl FnMut(BackendCall) -> Fault + Send {
    let mut seen = 0;
    move |call| {
        let counts = !writes_only || matches!(call.verb, BackendVerb::Commit | BackendVerb::Take);
        seen += u64::from(counts);
        if counts && seen == number { fault } else { Fault::None }
    }
}

// covers: RT-14-a, RT-14-b
#[tokio::test]
async fn f8_a_verb_that_was_done_though_its_caller_saw_an_error_may_be_repeated() {
    for &(ask, _) in ALL {
        let clean = Scene::before(ask).await;
        let before = clean.world.faulty.counts();
        clean.ask(ask).await.unwrap();
        let after = clean.world.faulty.counts();
        let expected = clean.end().await;
        let (calls, writes) = (after.calls - before.calls, after.writes() - before.writes());
        assert!(writes > 0, "{ask:?} writes nothing");
        for (count, writes_only, fault) in [
            (writes, true, Fault::ErrorAfter),
            (writes, true, Fault::ErrorBefore),
            (writes, true, Fault::Full),
            (calls, false, Fault::ErrorBefore),
            (calls, false, Fault::Disconnect { calls: CUT_OFF }),
        ] {
            for number in 1..=count {
                let when = format!("{ask:?}: {fault:?} at call {number}");
                let scene = Scene::before(ask).await;
                scene.world.faulty.plan(nth(number, writes_only, fault));
                let first = scene.ask(ask).await;
                scene.world.faulty.plan(|_| Fault::None);
                match first {
                    Ok(()) => {}
                    Err(Trouble::Other(error)) if fault != Fault::Full => panic!("{when}: {error}"),
                    Err(Trouble::Uncertain | Trouble::Other(_)) => scene.insist(ask, &when).await,
                }
                assert_eq!(scene.end().await, expected, "{when}");
            }
        }
    }
}
