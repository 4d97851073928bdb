//! The views for people, on both databases, after a run.

use rusqlite::Connection;
use serde_json::json;
use tokio_postgres::NoTls;

use crate::site::Site;
use crate::work::{claim, finish, start};

/// Questions of operators, with names that both databases know.
const QUESTIONS: [&str; 4] = [
    "SELECT workflow, status, CAST(steps AS TEXT), error_path, error FROM {}runs",
    "SELECT step, object_type, facet, state, error FROM {}steps WHERE facet <> '' OR error IS NOT NULL",
    "SELECT path, name, list, state, owner FROM {}tasks",
    "SELECT event_type, state, reception, error_kind, error FROM {}events",
];
const TIMES: &str = "SELECT CAST(count(*) AS TEXT), NULL, NULL, NULL, NULL FROM {}runs, {}tasks
    WHERE runs.run = tasks.run AND tasks.created >= runs.created AND tasks.lease_expires > tasks.started
    AND tasks.ended <= runs.ended";

const FAILED: &str = "\
t.Risky|failed|4|Risky.b|it broke
wb0s0|VariableAssignment|t.Inc|state.statement.Complete|
wb0s1|VariableAssignment|t.Bad|state.statement.Error|it broke
wb0|AndThen||state.statement.Error|it broke
w|Workflow|t.Risky|state.statement.Error|it broke
Risky.a|t.Inc|default|completed|agent
Risky.b|t.Bad|default|failed|agent
t.Bad|event.Error|taken|Broken|it broke
t.Inc|event.Completed|taken||
";

const WAITING: &str = "\
t.Two|paused|3||
wb0s0|VariableAssignment|t.Inc|state.EventTransmit|
w|Workflow|t.Two|state.statement.blocks.Continue|
Two.a|t.Inc|default|running|agent
t.Inc|event.Processing|open||
";

#[tokio::test]
async fn people_see_runs_steps_tasks_and_events_in_views() {
    for kind in ["sqlite", "postgres"] {
        let site = Site::of(kind);
        let service = site.service().await;
        start(&service, "Risky", json!({"n": 1})).await;
        finish(&service).await;
        let mut seen = String::new();
        for question in QUESTIONS {
            seen += &ask(&site, question).await;
        }
        assert_eq!(seen, FAILED, "{kind}");
        assert_eq!(ask(&site, TIMES).await, "2||||\n", "{kind}");
    }
}

#[tokio::test]
async fn an_event_in_a_view_stands_where_its_task_does() {
    for kind in ["sqlite", "postgres"] {
        let site = Site::of(kind);
        let service = site.service().await;
        start(&service, "Two", json!({"n": 1})).await;
        assert!(ask(&site, QUESTIONS[3]).await.contains("event.Dispatched"), "{kind}");
        claim(&service, 1).await;
        let mut seen = String::new();
        for question in QUESTIONS {
            seen += &ask(&site, question).await;
        }
        assert_eq!(seen, WAITING, "{kind}");
    }
}

/// Five columns of text of this site's tenant, sorted.
async fn ask(site: &Site, question: &str) -> String {
    let mut lines = match site.kind.name() {
        "sqlite" => ask_sqlite(site, &question.replace("{}", "")),
        "postgres" => {
            let asked = narrowed(site, &question.replace("{}", "afl."));
            ask_postgres(&asked).await
        }
        other => unreachable!("{other} has no views"),
    };
    lines.sort();
    lines.into_iter().map(|line| line + "\n").collect()
}

fn ask_sqlite(site: &Site, question: &str) -> Vec<String> {
    let connection = Connection::open(site.file()).unwrap();
    let mut statement = connection.prepare(question).unwrap();
    let rows = statement.query_map([], |row| {
        let columns: [Option<String>; 5] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        Ok(columns.map(Option::unwrap_or_default).join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

async fn ask_postgres(question: &str) -> Vec<String> {
    let url = afl_testbed::postgres::shared_url();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let rows = client.query(question, &[]).await.unwrap();
    let line = |row: &tokio_postgres::Row| {
        let columns: [Option<String>; 5] = std::array::from_fn(|column| row.get(column));
        columns.map(Option::unwrap_or_default).join("|")
    };
    rows.iter().map(line).collect()
}

/// Tests share the database.
fn narrowed(site: &Site, question: &str) -> String {
    let tenant = site.tenant.as_str();
    ["runs", "steps", "tasks", "events"].iter().fold(question.to_owned(), |question, view| {
        let own = format!("(SELECT * FROM afl.{view} WHERE tenant = '{tenant}') AS {view}");
        question.replace(&format!("afl.{view}"), &own)
    })
}
