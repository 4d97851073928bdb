//! Checks of single records and batches: a write is read back, or nothing is written.

use super::Fixture;
use super::given::{
    ALL, acme, batch, bucket, buckets, conflict, content, delete, ids, insert, keep, key, page, placed, read,
    scope, tenant, too_large, unread, update, write,
};
use crate::backend::{Batch, Durability, Expect, Scan};
use crate::record::{Content, Key, QueuePosition, Seal};

pub async fn a_written_record_is_read(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), content(r#"{"n":1}"#))]).await;
    let found = read(&store, &key("run", "a")).await.expect("it was written");
    assert_eq!((found.key, found.version.number), (key("run", "a"), 1));
    assert_eq!(found.content, content(r#"{"n":1}"#));
}

pub async fn a_get_answers_in_the_order_of_its_keys(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, ["a", "b", "c"].map(|id| insert(key("run", id), content(id)))).await;
    let keys = ["c", "missing", "a", "c"].map(|id| key("run", id));
    let found = store.get(&keys).await.expect("the store answers");
    let found: Vec<_> = found.iter().map(|found| found.as_ref().map(|found| &found.key.id[..])).collect();
    assert_eq!(found, [Some("c"), None, Some("a"), Some("c")]);
    assert!(store.get(&[]).await.expect("the store answers").is_empty());
}

pub async fn a_body_is_kept_byte_by_byte(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let bodies = [
        "",
        "null",
        r#"{ "b" : 1.0,  "a":1e400, "a":2 }"#,
        r#"{"nul":"\u0000","lone":"\ud800"}"#,
        "{\"text\":\"é 漢字 \u{1f600} \u{202e} '\\\"\\\\ % _ ; -- $1 ?1\"}\n",
    ];
    for (index, body) in bodies.iter().enumerate() {
        let key = key("run", &format!("body.{index}"));
        write(&store, [insert(key.clone(), content(body))]).await;
        let found = read(&store, &key).await.expect("it was written");
        assert_eq!(String::from_utf8_lossy(&found.content.body), *body);
    }
    // A body that is no text cannot be displayed, but it can be kept.
    let raw = Content { body: b"\0\xff\xfe raw \0".to_vec(), ..content("") };
    write(&store, [insert(key("run", "raw"), raw.clone())]).await;
    assert_eq!(read(&store, &key("run", "raw")).await.expect("it was written").content, raw);
}

pub async fn a_large_body_is_kept(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let size = store.limits().body_bytes.min(store.limits().batch_bytes - 100).min(8 << 20);
    let large = content(&format!("\"{}\"", "x".repeat(size - 2)));
    write(&store, [insert(key("run", "large"), large.clone())]).await;
    let found = read(&store, &key("run", "large")).await.expect("it was written");
    assert!(found.content == large, "a body of {size} bytes came back otherwise");
}

pub async fn names_are_only_names(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names =
        ["a'b", "a\"b", "a%", "a_", "a\\", "a/b:c#d", "é漢\u{1f600}", " a ", "a\n\u{1}", "$1;--", "A"];
    for name in names {
        let content = placed(name, 0);
        write(&store, [insert(key(name, name), content.clone())]).await;
        assert_eq!(read(&store, &key(name, name)).await.expect("it was written").content, content);
        assert_eq!(ids(&page(&store, &scope(name, "")).await), [name]);
        assert_eq!(ids(&page(&store, &bucket(name)).await), [name]);
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort();
    assert_eq!(buckets(&store, &acme(), "").await, sorted);
}

pub async fn ranks_seals_and_versions_are_kept(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for rank in [i64::MIN, -1, 0, i64::MAX] {
        let seal = Seal { schema: u32::MAX, runtime: u32::MAX - 1, checksum: u32::MAX - 2 };
        let content = Content { seal, ..placed("queue", rank) };
        let key = key("run", &format!("rank {rank}"));
        write(&store, [insert(key.clone(), content.clone())]).await;
        assert_eq!(read(&store, &key).await.expect("it was written").content, content);
    }
    let found = page(&store, &bucket("queue")).await;
    let ranks = found.iter().filter_map(|found| found.content.place.as_ref()).map(|place| place.rank);
    assert_eq!(ranks.collect::<Vec<_>>(), [i64::MIN, -1, 0, i64::MAX]);
}

pub async fn each_write_counts_the_version_up(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), content("0"))]).await;
    for version in 1..=5_u64 {
        write(&store, [update(key("run", "a"), version, content(&version.to_string()))]).await;
        let found = read(&store, &key("run", "a")).await.expect("it was written");
        assert_eq!(
            (found.version.number, found.content.body),
            (version + 1, version.to_string().into_bytes())
        );
    }
}

pub async fn a_new_record_must_be_absent(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), content("first"))]).await;
    conflict(store.commit(batch([insert(key("run", "a"), content("second"))])).await);
    assert_eq!(read(&store, &key("run", "a")).await.expect("it was written").content, content("first"));
}

pub async fn a_write_must_name_the_version(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), content("1"))]).await;
    write(&store, [update(key("run", "a"), 1, content("2"))]).await;
    for version in [0, 1, 3, u64::from(u32::MAX)] {
        conflict(store.commit(batch([update(key("run", "a"), version, content("3"))])).await);
        conflict(store.commit(batch([delete(key("run", "a"), version)])).await);
        conflict(store.commit(batch([keep(key("run", "a"), Expect::Version(unread(version)))])).await);
    }
    conflict(store.commit(batch([update(key("run", "missing"), 1, content("3"))])).await);
    let found = read(&store, &key("run", "a")).await.expect("it was written");
    assert_eq!((found.version.number, found.content), (2, content("2")));
}

pub async fn a_conflict_writes_nothing(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, ["a", "b"].map(|id| insert(key("run", id), placed("queue", 1)))).await;
    for durability in [Durability::Relaxed, Durability::Durable] {
        let writes = [
            insert(key("run", "new"), placed("queue", 0)),
            update(key("run", "a"), 1, placed("other", 0)),
            delete(key("run", "b"), 1),
            insert(key("run", "c"), content("{}")),
            keep(key("run", "missing"), Expect::Version(unread(1))),
        ];
        conflict(store.commit(Batch { durability, ..batch(writes) }).await);
        assert_eq!(ids(&page(&store, &scope("run", "")).await), ["a", "b"]);
        assert_eq!(ids(&page(&store, &bucket("queue")).await), ["a", "b"]);
        assert_eq!(buckets(&store, &acme(), "").await, ["queue"]);
    }
}

pub async fn a_conflict_names_the_key(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "there"), content("1"))]).await;
    let writes = ["a", "there", "b"].map(|id| insert(key("run", id), content("2")));
    assert_eq!(conflict(store.commit(batch(writes)).await), key("run", "there"));
}

pub async fn a_deleted_record_is_gone_and_starts_anew(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), placed("queue", 0))]).await;
    write(&store, [update(key("run", "a"), 1, placed("queue", 1))]).await;
    write(&store, [delete(key("run", "a"), 2)]).await;
    assert_eq!(read(&store, &key("run", "a")).await, None);
    assert!(page(&store, &bucket("queue")).await.is_empty());
    conflict(store.commit(batch([update(key("run", "a"), 2, content("late"))])).await);
    write(&store, [insert(key("run", "a"), content("anew"))]).await;
    assert_eq!(read(&store, &key("run", "a")).await.expect("it was written").version.number, 1);
}

pub async fn keeping_only_checks(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), placed("queue", 0))]).await;
    let keeps = [keep(key("run", "a"), Expect::Version(unread(1))), keep(key("run", "none"), Expect::Absent)];
    write(&store, keeps.clone()).await;
    write(&store, keeps.into_iter().chain([insert(key("run", "b"), content("{}"))])).await;
    conflict(store.commit(batch([keep(key("run", "a"), Expect::Absent)])).await);
    let found = read(&store, &key("run", "a")).await.expect("it was written");
    assert_eq!((found.version.number, found.content), (1, placed("queue", 0)));
    assert_eq!(read(&store, &key("run", "none")).await, None);
}

pub async fn both_durabilities_are_seen_at_once(fixture: &dyn Fixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    for (index, durability) in
        [Durability::Relaxed, Durability::Durable, Durability::Relaxed].into_iter().enumerate()
    {
        let key = key("run", &index.to_string());
        let writes = vec![insert(key.clone(), placed("queue", 0))];
        store.commit(Batch::new(writes, durability)).await.expect("nothing stands against the write");
        for handle in [&store, &other] {
            assert!(read(handle, &key).await.is_some(), "{durability:?}");
            assert_eq!(page(handle, &bucket("queue")).await.len(), index + 1);
        }
    }
}

pub async fn an_empty_batch_is_fine(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    for durability in [Durability::Relaxed, Durability::Durable] {
        store.commit(Batch::new(Vec::new(), durability)).await.expect("nothing stands against it");
    }
    let keeps = vec![keep(key("run", "none"), Expect::Absent)];
    let durable = Batch::new(keeps, Durability::Durable);
    store.commit(durable).await.expect("nothing stands against it");
}

pub async fn too_much_is_refused_whole(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let limits = store.limits();
    let small = insert(key("run", "small"), content("{}"));

    let body = "x".repeat(limits.body_bytes + 1);
    too_large(&store.commit(batch([small.clone(), insert(key("run", "large"), content(&body))])).await);

    let many = (0..=limits.batch_writes).map(|index| insert(key("run", &index.to_string()), content("{}")));
    too_large(&store.commit(batch(many)).await);

    let half = "x".repeat(limits.body_bytes.min(limits.batch_bytes));
    let count = limits.batch_bytes / half.len() + 1;
    if count <= limits.batch_writes {
        let heavy = (0..count).map(|index| insert(key("run", &index.to_string()), content(&half)));
        too_large(&store.commit(batch(heavy)).await);
    }

    assert!(page(&store, &scope("run", "")).await.is_empty());
    write(&store, [small]).await;
}

pub async fn a_full_batch_is_taken(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let count = store.limits().batch_writes;
    let id = |index: usize| format!("{index:06}");
    write(&store, (0..count).map(|index| insert(key("run", &id(index)), placed("queue", 0)))).await;
    let keys: Vec<Key> = [0, count / 2, count - 1].map(|index| key("run", &id(index))).to_vec();
    assert!(store.get(&keys).await.expect("the store answers").iter().all(Option::is_some));
    let Scan::Scope { tenant, scope, prefix, .. } = scope("run", "") else {
        unreachable!("it is of a scope")
    };
    let after = Some(id(count - 2));
    let last = Scan::Scope { tenant, scope, prefix, after, limit: ALL };
    assert_eq!(ids(&page(&store, &last).await), [id(count - 1)]);
}

pub async fn the_clock_goes_on(fixture: &dyn Fixture) {
    // A clock of many machines may differ a little between them.
    const SKEW_MS: i64 = 1_000;
    let (store, other) = (fixture.open().await, fixture.open().await);
    let first = store.now().await.expect("the store answers");
    let second = other.now().await.expect("the store answers");
    assert!(second.since(first).0 >= -SKEW_MS, "{first:?} {second:?}");
}

// G12: equal keys of two tenants are two records.
pub async fn tenants_do_not_meet(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    // `acme` is a prefix of the other one.
    let other = tenant("acme2");
    let there = Key { tenant: other.clone(), ..key("run", "a") };
    let content =
        Content { place: Some(QueuePosition { bucket: "queue".to_owned(), rank: 0 }), ..content("theirs") };
    write(&store, [insert(there.clone(), content)]).await;

    assert_eq!(read(&store, &key("run", "a")).await, None);
    assert!(page(&store, &scope("run", "")).await.is_empty());
    assert!(page(&store, &bucket("queue")).await.is_empty());
    assert!(buckets(&store, &acme(), "").await.is_empty());
    conflict(store.commit(batch([delete(key("run", "a"), 1)])).await);
    let taken = store.take(super::given::take("queue", "mine", 1)).await.expect("the store answers");
    assert!(taken.moved.is_empty());

    write(&store, [insert(key("run", "a"), placed("queue", 0))]).await;
    assert_eq!(buckets(&store, &other, "").await, ["queue"]);
    assert_eq!(read(&store, &there).await.expect("it was written").content.body, b"theirs");
}
