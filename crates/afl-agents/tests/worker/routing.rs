//! Which worker gets a task: by task list and by what it needs.

use std::time::Duration;

use afl_agents::handler::{Call, concurrent};
use afl_agents::worker::{Config, Profile, StopReason, Worker, WorkerError};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::world::{World, object, paid, work};

const LISTS: &str = r"
namespace lists {
    event facet Do() => (transaction_id: String, status: String)
    workflow One(list: String) => (receipt: String) andThen {
        done = Do() with TaskList(name = $.list)
        yield One(receipt = done.transaction_id)
    }
}
";

fn of_lists(world: &World, lists: &[&str]) -> Worker {
    let worker = world.worker_with(Profile::Poller, |config| {
        config.task_lists = lists.iter().map(|list| (*list).to_owned()).collect();
    });
    worker.register("lists.Do", concurrent(|_| async { Ok(paid()) }));
    worker
}

/// By the simulated clock of the runtime: a task that is not claimed at once waits for the next poll.
#[tokio::test(start_paused = true)]
async fn a_worker_is_woken_by_each_of_its_task_lists_and_leaves_the_others_alone() {
    let world = World::new();
    let worker = of_lists(&world, &["slow", "quick", "slow"]);
    let working = work(&worker);
    sleep(Duration::from_mins(1)).await;
    for list in ["slow", "quick"] {
        let began = Instant::now();
        let run = world.start(LISTS, json!({"list": list})).await;
        assert_eq!(world.receipt(&run).await, "txn-12345");
        let back_stop = Duration::from_millis(worker.config().poll_interval_ms);
        assert!(began.elapsed() < back_stop / 10, "{list}: {:?}", began.elapsed());
    }
    let other = world.start(LISTS, json!({"list": "default"})).await;
    sleep(Duration::from_mins(1)).await;
    assert!(!world.service.run(&other).await.unwrap().status.is_terminal());
    assert_eq!(world.servers().await[0].task_lists, ["quick", "slow"]);
    assert_eq!(worker.status()["task_lists"], json!(["quick", "slow"]));
    working.stop().await;
}

const LIMITED: &str = r"
namespace limited {
    event facet Do(n: Long) => (n: Long)
    workflow All(items: [Long]) => (done: [Long]) andThen foreach item in $.items {
        a = Do(n = $.item) with Limit(concurrency = 1)
        yield All(done = [a.n])
    }
}
";

/// Two processes: each is turned away while the other works.
#[tokio::test(start_paused = true)]
async fn workers_that_a_limit_turned_away_are_woken_when_there_is_room() {
    let world = World::new();
    let workers = [world.restarted(), world.restarted()].map(|world| world.worker(Profile::Poller));
    for worker in &workers {
        let work = |call: Call| async move {
            sleep(Duration::from_millis(1)).await;
            Ok(object(json!({"n": call.payload["n"]})))
        };
        worker.register("limited.Do", concurrent(work));
    }
    let working = workers.each_ref().map(work);
    sleep(Duration::from_mins(1)).await;
    let began = Instant::now();
    let run = world.start(LIMITED, json!({"items": (0..12).collect::<Vec<_>>()})).await;
    world.service.ended(&run).await.unwrap();
    let back_stop = Duration::from_millis(workers[0].config().poll_interval_ms);
    assert!(began.elapsed() < back_stop, "{:?}", began.elapsed());
    for working in working {
        working.stop().await;
    }
}

#[tokio::test]
async fn a_worker_has_a_task_list() {
    let world = World::new();
    let config = Config { task_lists: Vec::new(), ..Config::of(Profile::Poller) };
    let refused = Worker::new(world.service.clone(), config).unwrap_err();
    assert!(matches!(refused, WorkerError::NoTaskList), "{refused}");
}

const NEEDS: &str = r#"
namespace needs {
    event facet Do() => (transaction_id: String, status: String)
    workflow One() => (receipt: String) andThen {
        done = Do() with Needs(capabilities = ["gpu"])
        yield One(receipt = done.transaction_id)
    }
}
"#;

#[tokio::test]
async fn a_worker_of_one_run_does_its_task_only_if_it_has_what_the_task_needs() {
    let world = World::new();
    let run = world.start(NEEDS, json!({})).await;
    let mut ends = Vec::new();
    for capabilities in [&[][..], &["tpu"], &["tpu", "gpu"]] {
        let worker = world.worker_with(Profile::Poller, |config| {
            config.capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
        });
        worker.register("needs.Do", concurrent(|_| async { Ok(paid()) }));
        ends.push(worker.finish(&run, Duration::ZERO, std::future::pending::<()>()).await.unwrap());
    }
    assert_eq!(ends, [StopReason::Waiting, StopReason::Waiting, StopReason::Ended]);
}
