//! The schema in the database: who may use it, and what people see in it.

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Expect};
use futures_util::future::join_all;

use crate::database::{Database, content, put, relaxed};

async fn refusal(database: &Database) -> String {
    Postgres::connect(&database.url(), 2).await.expect_err("this database cannot be used").to_string()
}

#[tokio::test]
async fn many_processes_may_start_at_once_on_an_empty_database() {
    let database = Database::new().await;
    let stores = join_all((0..8).map(|_| database.connect())).await;
    let applied = "SELECT count(*) FROM afl.migrations";
    assert_eq!(database.client().await.query_one(applied, &[]).await.unwrap().get::<_, i64>(0), 3);
    drop(stores);
}

// G14, F25: an older process refuses a schema that it cannot use.
#[tokio::test]
async fn a_newer_schema_is_used_only_when_it_says_so() {
    let database = Database::new().await;
    drop(database.connect().await);
    let client = database.client().await;
    client.batch_execute("INSERT INTO afl.migrations VALUES (1000, 1, 'x')").await.unwrap();
    drop(database.connect().await);
    client.batch_execute("INSERT INTO afl.migrations VALUES (1001, 1001, 'x')").await.unwrap();
    let message = refusal(&database).await;
    assert!(message.contains("newer AgentFlow") && message.contains("upgrade this program"), "{message}");
}

#[tokio::test]
async fn a_migration_that_was_changed_is_refused() {
    let database = Database::new().await;
    drop(database.connect().await);
    database.client().await.batch_execute("UPDATE afl.migrations SET checksum = 'x'").await.unwrap();
    let message = refusal(&database).await;
    assert!(message.contains("migration 1"), "{message}");
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let options = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'";
    let database = Database::with(&afl_testbed::postgres::shared_url(), options).await;
    let message = refusal(&database).await;
    assert!(message.contains("LATIN1") && message.contains("UTF8"), "{message}");
}

#[tokio::test]
async fn people_can_look_into_every_body() {
    let database = Database::new().await;
    let store = database.connect().await;
    let body = r#"{"plain":"é","nul":"a\u0000\u0000b","escaped":"\\u0000","both":"\\\u0000"}"#;
    store.commit(relaxed([put("a", Expect::Absent, content(body))])).await.unwrap();
    let look = "SELECT j->>'plain', j->>'nul', j->>'escaped', j->>'both'
                FROM afl.records, LATERAL afl.json(body) AS j";
    let row = database.client().await.query_one(look, &[]).await.unwrap();
    let seen: [String; 4] = std::array::from_fn(|column| row.get(column));
    assert_eq!(seen, ["é", "a\u{fffd}\u{fffd}b", "\\u0000", "\\\u{fffd}"]);
}
