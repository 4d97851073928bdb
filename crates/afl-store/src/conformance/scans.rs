//! Checks of pages: of a scope by id, of a bucket by rank, and of the names of buckets.

use std::sync::Arc;

use super::Fixture;
use super::given::{
    acme, bucket, buckets, content, delete, ids, insert, key, page, placed, scope, update, write,
};
use crate::backend::{Backend, BucketCursor, Head, Ranks, Scan, ScanOrder};
use crate::record::Record;

pub async fn a_scope_is_read_in_the_order_of_bytes(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names =
        ["é", "b", "a/b", "a", "a.b", "B", "aa", "a b", "10", "9", "\u{1f600}", "\u{ffff}", "a-b", "Z_"];
    write(&store, names.map(|id| insert(key("run", id), content("{}")))).await;
    write(&store, [insert(key("run2", "a"), content("{}")), insert(key("ru", "a"), content("{}"))]).await;
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(ids(&page(&store, &scope("run", "")).await), sorted);
}

pub async fn a_scope_is_read_by_prefix(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names = ["step", "step/", "step/a", "step/b", "step0", "step/\u{10ffff}\u{10ffff}", "Step/a", "stem"];
    write(&store, names.map(|id| insert(key("run", id), content("{}")))).await;
    let found = page(&store, &scope("run", "step/")).await;
    assert_eq!(ids(&found), ["step/", "step/a", "step/b", "step/\u{10ffff}\u{10ffff}"]);
    assert_eq!(ids(&page(&store, &scope("run", "step/\u{10ffff}")).await), ["step/\u{10ffff}\u{10ffff}"]);
    assert!(page(&store, &scope("run", "x")).await.is_empty());
}

pub async fn a_prefix_is_no_pattern(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names = ["a%b", "axb", "a_b", "a\\b", "a*b", "%", "_", "A%b"];
    write(&store, names.map(|id| insert(key("run", id), placed(id, 0)))).await;
    for prefix in ["a%", "a_", "a\\", "a*", "%", "_", "A"] {
        let mut expected = names.into_iter().filter(|id| id.starts_with(prefix)).collect::<Vec<_>>();
        expected.sort_unstable();
        assert_eq!(ids(&page(&store, &scope("run", prefix)).await), expected);
        assert_eq!(buckets(&store, &acme(), prefix).await, expected);
    }
}

pub async fn a_scope_is_read_in_pages(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names: Vec<String> = (0..7).map(|index| format!("p/{index}")).collect();
    write(&store, names.iter().map(|id| insert(key("run", id), content("{}")))).await;
    write(&store, ["o", "q"].map(|id| insert(key("run", id), content("{}")))).await;
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let found = page(&store, &scope_page("p/", after.as_deref(), 3)).await;
        seen.extend(ids(&found).into_iter().map(str::to_owned));
        let Some(last) = found.last() else { break };
        after = Some(last.key.id.clone());
    }
    assert_eq!(seen, names);
}

pub async fn a_page_may_begin_outside_its_prefix(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, ["a", "p/1", "p/2", "z"].map(|id| insert(key("run", id), content("{}")))).await;
    assert_eq!(ids(&page(&store, &scope_page("p/", Some("b"), 9)).await), ["p/1", "p/2"]);
    assert_eq!(ids(&page(&store, &scope_page("p/", Some("p/1x"), 9)).await), ["p/2"]);
    assert!(page(&store, &scope_page("p/", Some("q"), 9)).await.is_empty());
}

pub async fn a_bucket_is_read_by_rank_scope_and_id(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store).await;
    let found = page(&store, &bucket("queue")).await;
    assert_eq!(places(&found), FILLED);
}

pub async fn a_bucket_is_read_in_pages_both_ways(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store).await;
    for limit in 1..=FILLED.len() {
        assert_eq!(all_pages(&store, ScanOrder::Ascending, limit).await, FILLED);
        let mut backwards = all_pages(&store, ScanOrder::Descending, limit).await;
        backwards.reverse();
        assert_eq!(backwards, FILLED);
    }
}

pub async fn a_bucket_is_read_up_to_a_rank(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store).await;
    for highest in -3..4 {
        let expected: Vec<_> = FILLED.iter().copied().filter(|(rank, ..)| *rank <= highest).collect();
        let ranks = Ranks::UpTo(highest);
        let found = page(&store, &bucket_page(ranks, ScanOrder::Ascending, None, 9)).await;
        assert_eq!(places(&found), expected);
        let found = page(&store, &bucket_page(ranks, ScanOrder::Descending, None, 2)).await;
        assert_eq!(places(&found), expected.iter().rev().take(2).copied().collect::<Vec<_>>());
        let after = Some(mark(-2, "a", "a"));
        let found = page(&store, &bucket_page(ranks, ScanOrder::Ascending, after, 9)).await;
        assert_eq!(places(&found), expected.iter().skip(1).copied().collect::<Vec<_>>());
    }
}

pub async fn a_mark_need_not_be_there_any_more(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store).await;
    write(&store, [delete(key("a", "b"), 1)]).await;
    let after = Some(mark(1, "a", "b"));
    let found = page(&store, &bucket_page(Ranks::All, ScanOrder::Ascending, after.clone(), 2)).await;
    assert_eq!(places(&found), [FILLED[3], FILLED[4]]);
    let found = page(&store, &bucket_page(Ranks::All, ScanOrder::Descending, after, 2)).await;
    assert_eq!(places(&found), [FILLED[1], FILLED[0]]);
}

pub async fn a_record_moves_between_buckets(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, ["a", "b"].map(|id| insert(key("run", id), placed("queue", 1)))).await;
    write(&store, [update(key("run", "a"), 1, placed("queue", 2))]).await;
    assert_eq!(ids(&page(&store, &bucket("queue")).await), ["b", "a"]);
    write(&store, [update(key("run", "a"), 2, placed("other", 2))]).await;
    assert_eq!(ids(&page(&store, &bucket("queue")).await), ["b"]);
    assert_eq!(ids(&page(&store, &bucket("other")).await), ["a"]);
}

pub async fn a_record_leaves_its_bucket(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, ["a", "b"].map(|id| insert(key("run", id), placed("queue", 1)))).await;
    write(&store, [update(key("run", "a"), 1, content("{}")), delete(key("run", "b"), 1)]).await;
    assert!(page(&store, &bucket("queue")).await.is_empty());
    assert!(buckets(&store, &acme(), "").await.is_empty());
    assert_eq!(ids(&page(&store, &scope("run", "")).await), ["a"]);
}

pub async fn buckets_are_named_in_order(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let names = ["q/b", "q/a", "q/a", "r", "q", "q/é", "q0", "p"];
    let writes = names.iter().enumerate();
    write(&store, writes.map(|(index, name)| insert(key("run", &index.to_string()), placed(name, 0)))).await;
    assert_eq!(buckets(&store, &acme(), "q/").await, ["q/a", "q/b", "q/é"]);
    assert_eq!(buckets(&store, &acme(), "").await, ["p", "q", "q/a", "q/b", "q/é", "q0", "r"]);
    assert!(buckets(&store, &acme(), "x").await.is_empty());
}

pub async fn a_bucket_is_named_with_its_lowest_rank(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let placed = [("q/a", 3), ("q/a", -7), ("q/a", i64::MAX), ("q/b", i64::MIN), ("q/c", 5), ("q/c", 4)];
    let writes = placed.iter().enumerate();
    let insert = |(index, (bucket, rank)): (usize, &(&str, i64))| {
        insert(key("run", &index.to_string()), super::given::placed(bucket, *rank))
    };
    write(&store, writes.map(insert)).await;
    let heads = async || store.heads(&acme(), "q/").await.expect("the store answers");
    let head = |bucket: &str, rank| Head { bucket: bucket.to_owned(), rank };
    assert_eq!(heads().await, [head("q/a", -7), head("q/b", i64::MIN), head("q/c", 4)]);
    write(&store, [delete(key("run", "1"), 1), delete(key("run", "3"), 1)]).await;
    assert_eq!(heads().await, [head("q/a", 3), head("q/c", 4)]);
}

pub async fn nothing_is_asked_for_and_given(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    fill(&store).await;
    assert!(page(&store, &scope_page("", None, 0)).await.is_empty());
    assert!(page(&store, &bucket_page(Ranks::All, ScanOrder::Descending, None, 0)).await.is_empty());
    assert!(page(&store, &bucket("no such bucket")).await.is_empty());
    assert!(page(&store, &scope("no such scope", "")).await.is_empty());
}

const FILLED: [(i64, &str, &str); 6] =
    [(-2, "a", "a"), (1, "a", "a2"), (1, "a", "b"), (1, "a", "c"), (1, "b", "a"), (2, "A", "0")];

async fn fill(store: &Arc<dyn Backend>) {
    let writes = FILLED.iter().rev();
    write(store, writes.map(|(rank, scope, id)| insert(key(scope, id), placed("queue", *rank)))).await;
    let others = ["queue0", "queu", "queue/x"];
    write(store, others.map(|bucket| insert(key("z", bucket), placed(bucket, 0)))).await;
}

fn places(records: &[Record]) -> Vec<(i64, &str, &str)> {
    let place = |record: &Record| record.content.place.clone().expect("a bucket holds placed records").rank;
    records.iter().map(|record| (place(record), &*record.key.scope, &*record.key.id)).collect()
}

async fn all_pages(
    store: &Arc<dyn Backend>,
    order: ScanOrder,
    limit: usize,
) -> Vec<(i64, &'static str, &'static str)> {
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let found = page(store, &bucket_page(Ranks::All, order, after, limit)).await;
        assert!(found.len() <= limit);
        let Some((rank, scope, id)) = places(&found).last().copied() else { return seen };
        after = Some(mark(rank, scope, id));
        seen.extend(places(&found).into_iter().filter_map(|place| FILLED.iter().find(|it| **it == place)));
    }
}

fn scope_page(prefix: &str, after: Option<&str>, limit: usize) -> Scan {
    let after = after.map(str::to_owned);
    Scan::Scope { tenant: acme(), scope: "run".into(), prefix: prefix.to_owned(), after, limit }
}

pub async fn scopes_are_listed_by_name(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let scopes =
        async |after: &str, limit| store.scopes(&acme(), after, limit).await.expect("the store answers");
    assert_eq!(scopes("", 9).await, <[&str; 0]>::default());
    write(&store, ["b", "@x", "é", "a"].map(|scope| insert(key(scope, "1"), content("1")))).await;
    write(&store, [insert(key("b", "2"), content("2"))]).await;
    assert_eq!(scopes("", 9).await, ["@x", "a", "b", "é"]);
    assert_eq!(scopes("@x", 2).await, ["a", "b"]);
    assert_eq!(scopes("aa", 9).await, ["b", "é"]);
    write(&store, [delete(key("a", "1"), 1)]).await;
    assert_eq!(scopes("", 2).await, ["@x", "b"]);
}

fn bucket_page(ranks: Ranks, order: ScanOrder, after: Option<BucketCursor>, limit: usize) -> Scan {
    Scan::Bucket { tenant: acme(), bucket: "queue".to_owned(), ranks, order, after, limit }
}

fn mark(rank: i64, scope: &str, id: &str) -> BucketCursor {
    BucketCursor { rank, scope: scope.into(), id: id.to_owned() }
}
