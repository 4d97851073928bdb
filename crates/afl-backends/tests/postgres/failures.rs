//! Messages about a server that cannot be used, and calls that are tried again.

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Expect, StoreError};

use crate::database::{Database, content, put, read, relaxed};

const PASSWORD: &str = "hunter2";

pub(crate) async fn refused(url: &str) -> String {
    let error = Postgres::connect(url, 2).await.expect_err("this address cannot be used");
    let (shown, debug) = (error.to_string(), format!("{error:?}"));
    assert!(!shown.contains(PASSWORD) && !debug.contains(PASSWORD), "{shown} {debug}");
    shown
}

fn at(database: &Database, user: &str) -> String {
    let url = database.url();
    let (_, address) = url.rsplit_once('@').unwrap();
    format!("postgres://{user}:{PASSWORD}@{address}")
}

#[track_caller]
pub(crate) fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

#[tokio::test]
async fn a_wrong_password_or_user_is_named_without_the_password() {
    let database = Database::new().await;
    says(&refused(&at(&database, "postgres")).await, &["user `postgres`", "check the user and the password"]);
    says(&refused(&at(&database, "nobody")).await, &["user `nobody`", "check the user and the password"]);
}

#[tokio::test]
async fn a_handle_does_not_show_its_password() {
    let database = Database::new().await;
    let url = database.url();
    let password = url.split(['@', ':']).nth(2).unwrap();
    let shown = format!("{:?}", database.connect().await);
    assert!(password.len() > 8 && !shown.contains(password), "{shown}");
}

#[tokio::test]
async fn a_missing_database_is_named_with_what_to_do() {
    let server = afl_testbed::postgres::shared_url();
    let (address, _) = server.rsplit_once('/').unwrap();
    says(&refused(&format!("{address}/nowhere")).await, &["`nowhere`", "does not exist", "createdb"]);
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let url = format!("postgres://postgres:{PASSWORD}@127.0.0.1:1/postgres");
    says(
        &refused(&url).await,
        &["127.0.0.1:1", "cannot reach the PostgreSQL database", "is the server running"],
    );
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    says(
        &refused(&format!("postgres://a:{PASSWORD}@host:port/x")).await,
        &["cannot be read", "postgres://USER"],
    );
    says(&refused(&format!("host=a password={PASSWORD} colour=red")).await, &["cannot be read"]);
    let strange = format!("postgres://a:{PASSWORD}@host/x?sslmode=always");
    says(&refused(&strange).await, &["sslmode=always", "verify-full"]);
}

#[tokio::test]
async fn a_server_without_free_connections_says_what_to_change() {
    let database = Database::new().await;
    let role = format!("busy_{}", std::process::id());
    let client = database.client().await;
    let create = format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0");
    client.batch_execute(&create).await.unwrap();
    says(&refused(&at(&database, &role)).await, &["too many connections", "max_connections"]);
    client.batch_execute(&format!("DROP ROLE {role}")).await.unwrap();
}

#[tokio::test]
async fn a_user_without_the_right_to_create_learns_what_to_grant() {
    let database = Database::new().await;
    let role = format!("guest_{}", std::process::id());
    let client = database.client().await;
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")).await.unwrap();
    says(&refused(&at(&database, &role)).await, &[&role, "grant"]);

    // When another has prepared the database, the rights to use it are enough.
    drop(database.connect().await);
    let grants = format!(
        "GRANT USAGE ON SCHEMA afl TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA afl TO {role}"
    );
    client.batch_execute(&grants).await.unwrap();
    let guest = Postgres::connect(&at(&database, &role), 2).await.unwrap();
    guest.commit(relaxed([put("a", Expect::Absent, content("1"))])).await.unwrap();
    assert!(read(&guest, "a").await.is_some());
    drop(guest);
    client.batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).await.unwrap();
}

/// Makes the server fail the next inserts with a code, `times` times.
async fn fail_inserts(database: &Database, code: &str, times: u32) {
    let sql = format!(
        "CREATE SEQUENCE failures;
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('failures') <= {times} THEN RAISE EXCEPTION 'as told' USING ERRCODE = '{code}'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER fail BEFORE INSERT ON afl.records FOR EACH ROW EXECUTE FUNCTION fail()"
    );
    database.client().await.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn f11_a_full_disk_is_reported_and_the_same_commit_works_later() {
    let database = Database::new().await;
    let store = database.connect().await;
    fail_inserts(&database, "53100", 1).await;
    let commit = || store.commit(relaxed([put("a", Expect::Absent, content("1"))]));
    assert!(matches!(commit().await, Err(StoreError::Full)));
    commit().await.unwrap();
}

#[tokio::test]
async fn f9_serialization_failures_and_deadlocks_are_tried_again() {
    for code in ["40001", "40P01"] {
        let database = Database::new().await;
        let store = database.connect().await;
        fail_inserts(&database, code, 2).await;
        store.commit(relaxed([put("a", Expect::Absent, content("1"))])).await.unwrap();
        assert_eq!(read(&store, "a").await.unwrap().version.number, 1);
    }
}
