//! Checks of many callers at once, on one handle and on several.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio::task::JoinSet;

use super::Fixture;
use super::given::{
    batch, bucket, conflict, content, delete, insert, key, page, placed, read, take, taken, update, write,
};
use crate::backend::{Backend, MaxInBucket, StoreError, Take};

const WRITERS: usize = 50;
const TAKERS: usize = 16;

pub async fn one_of_fifty_writers_wins(fixture: &dyn Fixture) {
    let handles = handles(fixture).await;
    write(&handles[0], [insert(key("run", "a"), content("start"))]).await;
    for version in 1..=5 {
        let race = race(&handles, WRITERS, move |store, writer| async move {
            let change = update(key("run", "a"), version, content(&writer.to_string()));
            store.commit(batch([change])).await
        });
        let winner = only_winner(race.await);
        let found = read(&handles[0], &key("run", "a")).await.expect("it was written");
        assert_eq!((found.version.number, found.content), (version + 1, content(&winner.to_string())));
    }
}

pub async fn one_of_fifty_creators_wins(fixture: &dyn Fixture) {
    let handles = handles(fixture).await;
    let race = race(&handles, WRITERS, |store, writer| async move {
        let own = insert(key("run", &writer.to_string()), content("{}"));
        store.commit(batch([own, insert(key("run", "a"), content(&writer.to_string()))])).await
    });
    let winner = only_winner(race.await);
    for writer in 0..WRITERS {
        let own = read(&handles[0], &key("run", &writer.to_string())).await;
        assert_eq!(own.is_some(), writer == winner, "a loser wrote a part");
    }
}

/// Each writer counts two records up in one batch until it did so a few times; a lost update would show.
pub async fn batches_of_many_writers_are_whole(fixture: &dyn Fixture) {
    const EACH: u64 = 5;
    let handles = handles(fixture).await;
    write(&handles[0], ["a", "b"].map(|id| insert(key("run", id), content("0")))).await;
    let race = race(&handles, TAKERS, |store, _| async move {
        let mut done = 0;
        while done < EACH {
            let found = store.get(&[key("run", "a"), key("run", "b")]).await?;
            let versions: Vec<u64> = found.iter().flatten().map(|found| found.version.number).collect();
            assert_eq!(versions[0], versions[1], "a batch was seen in part");
            let count = content(&versions[0].to_string());
            let writes = ["a", "b"].map(|id| update(key("run", id), versions[0], count.clone()));
            match store.commit(batch(writes)).await {
                Ok(()) => done += 1,
                Err(StoreError::Conflict { .. }) => tokio::task::yield_now().await,
                Err(other) => return Err(other),
            }
        }
        Ok(())
    });
    assert!(race.await.into_iter().all(|(_, answer)| answer.is_ok()));
    let found = read(&handles[0], &key("run", "b")).await.expect("it was written");
    assert_eq!(found.version.number, 1 + TAKERS as u64 * EACH);
}

pub async fn each_record_is_taken_once(fixture: &dyn Fixture) {
    const RECORDS: usize = 300;
    let handles = handles(fixture).await;
    fill(&handles[0], RECORDS).await;
    let race = race(&handles, TAKERS, |store, taker| async move {
        let mut mine = Vec::new();
        loop {
            let found = taken(&store, take("ready", "running", 1 + taker % 7)).await;
            if found.is_empty() {
                return Ok(mine);
            }
            mine.extend(found.into_iter().map(|record| record.key.id));
        }
    });
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, answer) in race.await {
        for id in answer.expect("nothing stands against the take") {
            *times.entry(id).or_default() += 1;
        }
    }
    assert_eq!(times.len(), RECORDS);
    assert!(times.values().all(|times| *times == 1), "a record was taken twice");
    assert_eq!(page(&handles[0], &bucket("running")).await.len(), RECORDS);
}

pub async fn a_ceiling_holds_with_many_takers(fixture: &dyn Fixture) {
    const RECORDS: usize = 60;
    const MAX: usize = 5;
    let handles = handles(fixture).await;
    fill(&handles[0], RECORDS).await;
    let race = race(&handles, TAKERS, |store, _| async move {
        let mut done = 0;
        loop {
            let max_in_bucket = Some(MaxInBucket { bucket: "running".to_owned(), max: MAX });
            let found = taken(&store, Take { max_in_bucket, ..take("ready", "running", 3) }).await;
            let running = page(&store, &bucket("running")).await.len();
            assert!(running <= MAX, "{running} at once");
            done += found.len();
            if found.is_empty() && page(&store, &bucket("ready")).await.is_empty() {
                return Ok(done);
            }
            store
                .commit(batch(found.into_iter().map(|found| delete(found.key, found.version.number))))
                .await?;
            tokio::task::yield_now().await;
        }
    });
    let done: usize = race.await.into_iter().map(|(_, answer)| answer.expect("the store answers")).sum();
    assert_eq!(done, RECORDS);
}

pub async fn readers_see_a_batch_whole(fixture: &dyn Fixture) {
    const ROUNDS: u64 = 40;
    let handles = handles(fixture).await;
    let keys = ["a", "b", "c"].map(|id| key("run", id));
    write(&handles[0], keys.clone().map(|key| insert(key, placed("queue", 0)))).await;
    let race = race(&handles, 4, move |store, role| {
        let keys = keys.clone();
        async move {
            for round in 1..=ROUNDS {
                let rank = i64::try_from(round).expect("a small number");
                if role == 0 {
                    let writes = keys.clone().map(|key| update(key, round, placed("queue", rank)));
                    store.commit(batch(writes)).await?;
                    continue;
                }
                let got = store.get(&keys).await?.into_iter().flatten().map(|record| record.version.number);
                let scanned =
                    page(&store, &bucket("queue")).await.into_iter().map(|record| record.version.number);
                for versions in [got.collect::<Vec<_>>(), scanned.collect()] {
                    assert_eq!(versions, vec![versions[0]; keys.len()], "a batch was seen in part");
                }
            }
            Ok(())
        }
    });
    assert!(race.await.into_iter().all(|(_, answer)| answer.is_ok()));
}

/// A caller may begin a call and then wait for another one before it polls the first again, as a `select!` does. A call that
/// kept a connection meanwhile would keep all callers waiting for it.
pub async fn calls_that_no_caller_polls_keep_no_other_waiting(fixture: &dyn Fixture) {
    const CALLS: usize = 50;
    let store = fixture.open().await;
    let (a, ready) = ([key("run", "a")], bucket("ready"));
    write(&store, [insert(a[0].clone(), placed("ready", 0))]).await;
    let mut begun: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::new();
    for _ in 0..CALLS {
        begun.push(Box::pin(async { drop(store.get(&a).await) }));
        begun.push(Box::pin(async { drop(store.scan(&ready).await) }));
        begun.push(Box::pin(async { drop(store.take(take("none", "running", 1)).await) }));
    }
    let mut context = Context::from_waker(Waker::noop());
    for call in &mut begun {
        let _is_ready = call.as_mut().poll(&mut context).is_ready();
    }
    assert!(read(&store, &a[0]).await.is_some());
    assert_eq!(page(&store, &ready).await.len(), 1);
    assert_eq!(taken(&store, take("ready", "running", 1)).await.len(), 1);
}

/// Callers share two handles, so that both kinds of neighbour meet.
async fn handles(fixture: &dyn Fixture) -> [Arc<dyn Backend>; 2] {
    [fixture.open().await, fixture.open().await]
}

async fn race<T, F>(
    handles: &[Arc<dyn Backend>; 2],
    callers: usize,
    call: impl Fn(Arc<dyn Backend>, usize) -> F,
) -> Vec<(usize, Result<T, StoreError>)>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let work = call(handles[caller % handles.len()].clone(), caller);
        tasks.spawn(async move { (caller, work.await) });
    }
    tasks.join_all().await
}

fn only_winner(answers: Vec<(usize, Result<(), StoreError>)>) -> usize {
    let (winners, losers): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, answer)| answer.is_ok());
    for (_, answer) in losers {
        conflict(answer);
    }
    assert_eq!(winners.len(), 1, "one wins");
    winners[0].0
}

async fn fill(store: &Arc<dyn Backend>, count: usize) {
    write(store, (0..count).map(|index| insert(key("run", &index.to_string()), placed("ready", 0)))).await;
}
