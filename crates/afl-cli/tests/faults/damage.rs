//! F12: flipped bytes in records and in the file, and a cut log. What is hurt is named, what is not goes on.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_runtime::agent::{Names, Request};
use afl_runtime::doctor::Remedy;
use afl_runtime::{RunQuery, Service, StartRequest, compile};
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Scan, StoreError, Write};
use afl_store::record::{Record, Tenant};
use afl_store::seed::Seeded;
use serde_json::json;

use crate::site::{Kind, Site, folder};
use crate::work::{PROGRAM, claim, examine, finish, output, settle, start};

/// Which record of a run is hurt, by how its id begins.
const PARTS: [&str; 6] = ["run", "s/w", "s/wb0s0", "e/", "t/", "x/"];

#[tokio::test]
async fn f12_a_flipped_byte_in_any_record_of_a_run_stops_that_run_and_no_other() {
    for site in Site::all() {
        let (service, backend) = (site.service().await, site.backend().await);
        let text = "long enough to be kept apart ".repeat(400);
        let mut hurt = Vec::new();
        for part in PARTS {
            let run = start(&service, "Long", json!({ "text": text })).await;
            flip(&*backend, &site.tenant, &run.0, part).await;
            hurt.push((run, part));
        }
        let well = start(&service, "Long", json!({ "text": text })).await;
        go_on(&service).await;
        assert_eq!(service.run(&well).await.unwrap().status, RunStatus::Completed, "{:?}", site.kind);
        assert_eq!(output(&service, &well).await, json!({ "text": text }));
        let report = service.doctor(Remedy::Tell).await.unwrap();
        for (run, part) in &hurt {
            let found = report.findings.iter().any(|finding| finding.run == *run);
            assert!(found, "{:?}: nobody told of {part}", site.kind);
            // Operators can still look, and are told which record it is.
            if let Err(error) = service.why(run).await {
                assert!(error.is_damage() && error.to_string().contains(&*run.0), "{error}");
            }
        }
        assert_eq!(report.findings.iter().filter(|finding| finding.run == well).count(), 0);
        let list = service.runs(&RunQuery { limit: 100, ..RunQuery::default() }).await.unwrap();
        assert_eq!((list.runs.len(), list.unreadable.len()), (PARTS.len(), 1), "{:?}", site.kind);
    }
}

#[tokio::test]
async fn f12_a_flipped_byte_in_a_program_stops_its_runs_and_no_others() {
    for site in Site::all() {
        let (service, backend) = (site.service().await, site.backend().await);
        let well = start(&service, "Two", json!({"n": 1})).await;
        let other = compile("other.afl", &PROGRAM.replace("namespace t", "namespace other")).unwrap();
        let hash = service.publish(&other).await.unwrap();
        let inputs = json!({"n": 1}).as_object().unwrap().clone();
        let request = StartRequest { workflow: Some("Two".to_owned()), inputs, ..StartRequest::new(hash) };
        let hurt = service.start(request).await.unwrap().run;
        flip(&*backend, &site.tenant, "@programs", &hash.to_string()).await;

        // A process that has not read the program yet.
        let service = site.service().await;
        go_on(&service).await;
        assert_eq!(output(&service, &well).await, json!({"n": 3}), "{:?}", site.kind);
        let error = service.why(&hurt).await.unwrap_err();
        assert!(error.is_damage() && error.to_string().contains(&hash.to_string()), "{error}");
        let report = service.doctor(Remedy::Tell).await.unwrap();
        let subjects: Vec<String> = report.findings.iter().map(|it| it.subject().to_string()).collect();
        assert_eq!(subjects, [hurt.to_string(), format!("@programs/{hash}")]);
    }
}

/// Answers and drives as far as it goes. Nothing may fail but what is hurt.
async fn go_on(service: &Service) {
    for _ in 0..6 {
        for held in claim(service, 100).await {
            if let Err(refusal) = settle(service, &held).await {
                assert!(refusal.to_string().contains("quarantined"), "{refusal}");
            }
        }
        service.turn().await.unwrap();
    }
}

async fn flip(backend: &dyn Backend, tenant: &Tenant, scope: &str, prefix: &str) {
    let scan = Scan::Scope {
        tenant: tenant.clone(),
        scope: scope.into(),
        prefix: prefix.to_owned(),
        after: None,
        limit: 1,
    };
    let Record { key, version, mut content } = backend.scan(&scan).await.unwrap().remove(0);
    let middle = content.body.len() / 2;
    content.body[middle] ^= 1;
    let write = Write { key, expect: Expect::Version(version), change: Change::Put(content) };
    backend.commit(Batch::new(vec![write], Durability::Durable)).await.unwrap();
}

/// A store of many runs that wait, in a file that nobody has open.
async fn waiting(site: &Site, runs: usize) -> Vec<RunId> {
    let service = site.service().await;
    let mut started = Vec::new();
    for n in 0..runs {
        started.push(start(&service, "Two", json!({ "n": n })).await);
    }
    started
}

/// What can be done with a damaged file: all that is answered is true, the rest is refused. Says how much was.
async fn use_damaged(path: &Path, tenant: &Tenant, runs: &[RunId]) -> usize {
    let store = match Sqlite::open(path, Options::default()) {
        Ok(store) => store,
        Err(StoreError::Refused(_)) => return 0,
        Err(other) => panic!("{other:?}"),
    };
    let service = Service::new(Arc::new(store), tenant.clone());
    drop(service.doctor(Remedy::Tell).await);
    for _ in 0..3 {
        let request = Request { max: 100, ..Request::new(Names::All, "agent") };
        for held in service.claim(&request).await.unwrap_or_default() {
            drop(settle(&service, &held).await);
        }
        drop(service.turn().await);
    }
    let mut done = 0;
    for (n, run) in runs.iter().enumerate() {
        if service.run(run).await.is_ok_and(|run| run.status == RunStatus::Completed) {
            assert_eq!(output(&service, run).await, json!({ "n": n + 2 }));
            done += 1;
        }
    }
    done
}

#[tokio::test]
async fn f12_flipped_bytes_in_the_pages_of_the_file_never_give_a_wrong_answer() {
    const RUNS: usize = 40;
    const DAMAGES: usize = 20;
    let site = Site::new(Kind::Sqlite);
    let runs = waiting(&site, RUNS).await;
    let whole = fs::read(site.file()).unwrap();
    let mut seeded = Seeded::new(12);
    let (mut all, mut some) = (0, 0);
    for _ in 0..DAMAGES {
        let mut damaged = whole.clone();
        for _ in 0..3 {
            let at = seeded.below(damaged.len());
            damaged[at] ^= 1 << seeded.below(8);
        }
        let folder = folder();
        let path = folder.path().join("store.db");
        fs::write(&path, damaged).unwrap();
        match use_damaged(&path, &site.tenant, &runs).await {
            RUNS => all += 1,
            0 => {}
            _ => some += 1,
        }
    }
    assert!(some > 0 && all < DAMAGES, "{all} unhurt, {some} partly");
}

#[tokio::test]
async fn f12_a_log_that_was_cut_leaves_a_whole_state_that_goes_on() {
    let site = Site::new(Kind::Sqlite);
    let service = site.service().await;
    let mut runs = Vec::new();
    for n in 0..8 {
        runs.push(start(&service, "Two", json!({ "n": n })).await);
        let held = claim(&service, 1).await.remove(0);
        settle(&service, &held).await.unwrap();
        service.turn().await.unwrap();
    }
    let (file, log) =
        (fs::read(site.file()).unwrap(), fs::read(site.file().with_extension("db-wal")).unwrap());
    assert!(log.len() > 100_000, "nothing was moved out of the log yet");
    for cut in 0..=24 {
        let folder = folder();
        let path = folder.path().join("store.db");
        fs::write(&path, &file).unwrap();
        fs::write(path.with_extension("db-wal"), &log[..log.len() * cut / 24]).unwrap();
        let store = Sqlite::open(&path, Options::default()).unwrap();
        let service = Service::new(Arc::new(store), site.tenant.clone());
        examine(&service).await;
        let list = service.runs(&RunQuery { limit: 100, ..RunQuery::default() }).await.unwrap();
        assert!(cut < 24 || list.runs.len() == runs.len());
        finish(&service).await;
        for run in list.runs {
            // A task that a lost process holds comes back after its lease; all others are done.
            let status = service.run(&run.id).await.unwrap().status;
            assert!(matches!(status, RunStatus::Completed | RunStatus::Paused), "{status}");
        }
        examine(&service).await;
    }
}
