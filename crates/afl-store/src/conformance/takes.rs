//! Checks of taking from a bucket.

use std::sync::Arc;

use super::Fixture;
use super::given::{
    acme, batch, bucket, buckets, conflict, content, delete, ids, insert, key, moved, page, placed, read,
    take, taken, too_large, update, write,
};
use crate::backend::{
    Backend, BucketCursor, Decision, Durability, KeysToRead, MaxInBucket, Ranks, TAKE_LOOKS, Take,
    TakeMoment, TakeResult,
};
use crate::record::Content;

pub async fn the_lowest_rank_is_taken_first(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let ranked = [("a", 3), ("b", -1), ("c", 2), ("d", -1)];
    write(&store, ranked.map(|(id, rank)| insert(key("run", id), placed("ready", rank)))).await;
    assert_eq!(ids(&taken(&store, take("ready", "running", 3)).await), ["b", "d", "c"]);
    assert_eq!(ids(&taken(&store, take("ready", "running", 3)).await), ["a"]);
    assert!(taken(&store, take("ready", "running", 3)).await.is_empty());
}

pub async fn no_more_than_the_limit_is_taken(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 10).await;
    for limit in [0, 1, 4] {
        assert_eq!(taken(&store, take("ready", "running", limit)).await.len(), limit);
    }
    assert_eq!(page(&store, &bucket("ready")).await.len(), 5);
    assert_eq!(page(&store, &bucket("running")).await.len(), 5);
}

pub async fn a_taken_record_is_written(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 2).await;
    for durability in [Durability::Relaxed, Durability::Durable] {
        let found = taken(&store, Take { durability, ..take("ready", "running", 1) }).await;
        assert_eq!(found[0].version.number, 2);
        assert_eq!(found[0].content, placed("running", 0));
        assert_eq!(read(&store, &found[0].key).await.as_ref(), found.first());
    }
}

pub async fn a_record_that_the_mover_leaves_is_skipped(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 6).await;
    let even = |id: &str| id.ends_with(['0', '2', '4']);
    let decide = Arc::new(move |record: &crate::record::Record, _| {
        even(&record.key.id).then(|| moved(record, "running")).into()
    });
    let found = taken(&store, Take { decide, ..take("ready", "running", 2) }).await;
    assert_eq!(ids(&found), ["0000", "0002"]);
    let left = page(&store, &bucket("ready")).await;
    assert_eq!(ids(&left), ["0001", "0003", "0004", "0005"]);
    assert!(left.iter().all(|record| record.version.number == 1));
}

pub async fn a_mover_may_stop(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 4).await;
    let decide = Arc::new(|record: &crate::record::Record, _| match record.key.id.as_str() {
        "0000" => Decision::Leave,
        "0002" => Decision::Stop,
        _ => Decision::Move(moved(record, "running")),
    });
    let found = taken(&store, Take { decide, ..take("ready", "running", 9) }).await;
    assert_eq!(ids(&found), ["0001"]);
    assert_eq!(ids(&page(&store, &bucket("ready")).await), ["0000", "0002", "0003"]);
}

pub async fn records_wanted_beside_are_read_in_the_same_go(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 3).await;
    write(&store, [insert(key("run", "e/0001"), content("1")), insert(key("other", "e"), content("2"))])
        .await;
    let wanted = |moved: &[crate::record::Record]| {
        let also_read = moved.iter().map(|record| key("run", &format!("e/{}", record.key.id)));
        also_read.chain([key("other", "e"), moved[0].key.clone()]).collect::<Vec<_>>()
    };
    let also_read = || -> Option<KeysToRead> { Some(Arc::new(wanted)) };
    let found = store.take(Take { also_read: also_read(), ..take("ready", "running", 2) }).await;
    let TakeResult { moved: records, also_read: found, .. } = found.expect("nothing stands against the take");
    assert_eq!(ids(&records), ["0000", "0001"]);
    let bodies: Vec<_> = found.iter().map(|found| Some(found.as_ref()?.content.clone())).collect();
    // The last is as the take left it.
    let last = records[0].content.clone();
    assert_eq!(bodies, [None, Some(content("1")), Some(content("2")), Some(last)]);
    let none = Take { also_read: also_read(), ..take("no such bucket", "running", 2) };
    assert_eq!(store.take(none).await.expect("the store answers"), TakeResult::default());
}

pub async fn a_take_stops_at_its_highest_rank(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [1, 2, 3].map(|rank| insert(key("run", &rank.to_string()), placed("due", rank)))).await;
    let due = |highest| Take { ranks: Ranks::UpTo(highest), ..take("due", "fired", 9) };
    assert!(taken(&store, due(0)).await.is_empty());
    assert_eq!(ids(&taken(&store, due(2)).await), ["1", "2"]);
    assert_eq!(ids(&taken(&store, due(i64::MAX)).await), ["3"]);
}

pub async fn a_take_may_move_to_another_rank(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 3).await;
    let decide = Arc::new(|_: &crate::record::Record, _| Decision::Move(placed("ready", 9)));
    let found = taken(&store, Take { decide, ..take("ready", "ready", 1) }).await;
    assert_eq!(ids(&found), ["0000"]);
    assert_eq!(ids(&page(&store, &bucket("ready")).await), ["0001", "0002", "0000"]);
    let decide = Arc::new(|_: &crate::record::Record, _| Decision::Move(content("done")));
    let found = taken(&store, Take { decide, ..take("ready", "ready", 2) }).await;
    assert_eq!(ids(&found), ["0001", "0002"]);
    assert_eq!(ids(&page(&store, &bucket("ready")).await), ["0000"]);
}

pub async fn a_take_keeps_below_its_ceiling(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 9).await;
    let up_to = |max| {
        let max_in_bucket = Some(MaxInBucket { bucket: "running".to_owned(), max });
        Take { max_in_bucket, ..take("ready", "running", 3) }
    };
    assert!(taken(&store, up_to(0)).await.is_empty());
    assert_eq!(taken(&store, up_to(5)).await.len(), 3);
    assert_eq!(taken(&store, up_to(5)).await.len(), 2);
    assert!(taken(&store, up_to(5)).await.is_empty());
    assert!(taken(&store, up_to(2)).await.is_empty());
    write(&store, [delete(key("run", "0000"), 2)]).await;
    assert_eq!(ids(&taken(&store, up_to(5)).await), ["0005"]);
}

pub async fn a_ceiling_may_be_the_bucket_of_the_take(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 3).await;
    let max_in_bucket = |max| Some(MaxInBucket { bucket: "ready".to_owned(), max });
    assert!(
        taken(&store, Take { max_in_bucket: max_in_bucket(3), ..take("ready", "running", 9) })
            .await
            .is_empty()
    );
    assert_eq!(
        taken(&store, Take { max_in_bucket: max_in_bucket(5), ..take("ready", "running", 9) }).await.len(),
        2
    );
}

pub async fn a_take_gives_up_after_its_looks(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, TAKE_LOOKS + 1).await;
    let last = format!("{TAKE_LOOKS:04}");
    let decide = Arc::new(move |record: &crate::record::Record, _| {
        (record.key.id == last).then(|| moved(record, "running")).into()
    });
    let find = Take { decide, ..take("ready", "running", 1) };
    let TakeResult { moved, gave_up_at, .. } = store.take(find.clone()).await.expect("the store answers");
    assert!(moved.is_empty());
    let at = gave_up_at.expect("the last one was not looked at");
    assert_eq!((at.rank, at.id.as_str()), (0, format!("{:04}", TAKE_LOOKS - 1).as_str()));
    let found = store.take(Take { after: Some(at), ..find }).await.expect("the store answers");
    assert_eq!((found.moved.len(), found.gave_up_at), (1, None));
}

pub async fn a_take_begins_behind_a_record(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let ranked = [("a", 1), ("b", 2), ("c", 2), ("d", 3)];
    write(&store, ranked.map(|(id, rank)| insert(key("run", id), placed("ready", rank)))).await;
    let behind = |after, highest| {
        let ranks = Ranks::UpTo(highest);
        Take { after: Some(after), ranks, ..take("ready", "ready", 9) }
    };
    let mark = |rank, id: &str| BucketCursor { rank, scope: "run".into(), id: id.to_owned() };
    for (after, highest, expected) in [
        (BucketCursor::before(i64::MIN), i64::MAX, &["a", "b", "c", "d"][..]),
        (BucketCursor::before(2), i64::MAX, &["b", "c", "d"]),
        (mark(2, "b"), i64::MAX, &["c", "d"]),
        (mark(2, "b"), 2, &["c"]),
        (mark(2, "x"), 2, &[]),
        (mark(3, "d"), i64::MAX, &[]),
    ] {
        assert_eq!(ids(&taken(&store, behind(after.clone(), highest)).await), expected, "{after:?}");
    }
}

pub async fn a_take_that_grows_a_body_too_much_moves_nothing(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 2).await;
    let large = vec![b'x'; store.limits().body_bytes + 1];
    let decide = Arc::new(move |record: &crate::record::Record, _| {
        let grows = record.key.id.ends_with('1');
        let body = if grows { large.clone() } else { b"{}".to_vec() };
        Decision::Move(Content { body, ..moved(record, "running") })
    });
    too_large(&store.take(Take { decide, ..take("ready", "running", 2) }).await);
    assert_eq!(page(&store, &bucket("ready")).await.len(), 2);
    assert_eq!(taken(&store, take("ready", "running", 2)).await.len(), 2);
}

pub async fn the_mover_sees_the_clock_of_the_store(fixture: &dyn Fixture) {
    const SKEW_MS: i64 = 1_000;
    let store = fixture.open().await;
    fill(&store, 1).await;
    let decide = Arc::new(|record: &crate::record::Record, moment: TakeMoment| {
        Decision::Move(Content { body: moment.now.0.to_string().into_bytes(), ..moved(record, "running") })
    });
    let before = store.now().await.expect("the store answers");
    let found = taken(&store, Take { decide, ..take("ready", "running", 1) }).await;
    let after = store.now().await.expect("the store answers");
    let seen: i64 = String::from_utf8_lossy(&found[0].content.body).parse().expect("the mover wrote a time");
    assert!((before.0 - SKEW_MS..=after.0 + SKEW_MS).contains(&seen), "{before:?} {seen} {after:?}");
}

pub async fn a_taken_record_is_the_takers(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store, 1).await;
    let found = taken(&store, take("ready", "running", 1)).await;
    // A writer that read it before the take must lose.
    conflict(store.commit(batch([delete(key("run", "0000"), 1)])).await);
    write(&store, [update(found[0].key.clone(), found[0].version.number, placed("done", 0))]).await;
    assert_eq!(buckets(&store, &acme(), "").await, ["done"]);
}

async fn fill(store: &Arc<dyn Backend>, count: usize) {
    let ids = (0..count).map(|index| format!("{index:04}"));
    write(store, ids.map(|id| insert(key("run", &id), placed("ready", 0)))).await;
}
