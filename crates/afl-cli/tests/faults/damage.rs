//! F12: flipped bytes in records, in the file and in its log, torn pages, and a cut log. The damaged record is named,
//! the other runs continue.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_engine::value::Value;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Error, NotFound, RunQuery, Service, StartRequest, compile};
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Scan, StoreError, Write};
use afl_store::clock::{Clock, SimClock};
use afl_store::record::{Record, Tenant};
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::site::{Site, folder};
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
            assert!(found, "{:?}: the doctor does not report {part}", site.kind);
            // Operators can still look, and the error names the record.
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

/// Answers and drives as far as possible. Only damaged runs may fail.
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

/// A store of many runs that wait, in a file that no process has open.
async fn waiting(site: &Site, runs: usize) -> Vec<RunId> {
    let service = site.service().await;
    let mut started = Vec::new();
    for n in 0..runs {
        started.push(start(&service, "Two", json!({ "n": n })).await);
    }
    started
}

/// Uses a damaged file: every answer is true, and an error names every run that does not end. Returns how many end.
async fn use_damaged(path: &Path, tenant: &Tenant, runs: &[RunId]) -> usize {
    let store = match Sqlite::open(path, Options::default()) {
        Ok(store) => store,
        Err(StoreError::Refused(reason)) => {
            assert!(is_of_store(&reason), "{reason}");
            return 0;
        }
        Err(other) => panic!("{other:?}"),
    };
    let service = Service::new(Arc::new(store), tenant.clone());
    let mut told = Vec::new();
    for _ in 0..4 {
        let request = ClaimRequest { max: 100, ..ClaimRequest::new(FacetFilter::All, "agent") };
        let claims = service.claim(&request).await;
        told.extend(claims.as_ref().err().map(ToString::to_string));
        for held in claims.unwrap_or_default() {
            told.extend(settle(&service, &held).await.err().map(|refusal| refusal.to_string()));
        }
        told.extend(service.turn().await.err().map(|error| error.to_string()));
    }
    match service.doctor(Remedy::Tell).await {
        Ok(report) => told.extend(report.findings.iter().map(|it| format!("{}: {}", it.run, it.problem))),
        Err(error) => told.push(error.to_string()),
    }
    let mut done = 0;
    for (n, run) in runs.iter().enumerate() {
        let status = service.run(run).await.map(|run| run.status);
        if matches!(status, Ok(RunStatus::Completed)) {
            match service.outputs(run).await {
                Ok(outputs) => {
                    assert_eq!(Value::Object(outputs), json!({ "n": n + 2 }));
                    done += 1;
                    continue;
                }
                Err(error) => told.push(error.to_string()),
            }
        }
        match &status {
            // A missing run does not explain itself.
            Ok(_) | Err(Error::NotFound(NotFound::Run { .. })) => {}
            Err(error) => told.push(error.to_string()),
        }
        let is_told = told.iter().any(|text| text.contains(&*run.0) || is_of_store(text));
        assert!(is_told, "nobody told of {run} ({status:?}): {told:#?}");
    }
    done
}

/// Whether a text says that the whole store is damaged.
fn is_of_store(text: &str) -> bool {
    text.contains("the store ") && text.contains("is damaged") || text.contains("or its beginning is damaged")
}

/// Damages copies of a file of runs that wait, and says how many of the copies had all, and some, of them end.
async fn damage_copies(copies: usize, mut damage: impl FnMut(&mut Vec<u8>)) -> (usize, usize) {
    const RUNS: usize = 40;
    let site = Site::of("sqlite");
    let runs = waiting(&site, RUNS).await;
    let whole = fs::read(site.file()).unwrap();
    let (mut all, mut some) = (0, 0);
    for _ in 0..copies {
        let mut damaged = whole.clone();
        damage(&mut damaged);
        let folder = folder();
        let path = folder.path().join("store.db");
        fs::write(&path, damaged).unwrap();
        match use_damaged(&path, &site.tenant, &runs).await {
            RUNS => all += 1,
            0 => {}
            _ => some += 1,
        }
    }
    (all, some)
}

const COPIES: usize = 20;

#[tokio::test]
async fn f12_flipped_bytes_in_the_pages_of_the_file_never_give_a_wrong_answer_and_are_reported() {
    let mut seeded = SeededRng::new(12);
    let flip = |file: &mut Vec<u8>| {
        for _ in 0..3 {
            let at = seeded.below(file.len());
            file[at] ^= 1 << seeded.below(8);
        }
    };
    let (all, some) = damage_copies(COPIES, flip).await;
    assert!(some > 0 && all < COPIES, "{all} unhurt, {some} partly");
}

#[tokio::test]
async fn f12_a_page_of_which_half_was_written_never_gives_a_wrong_answer_and_is_reported() {
    const PAGE: usize = 4_096;
    let mut seeded = SeededRng::new(12);
    let tear = |file: &mut Vec<u8>| {
        let page = seeded.below(file.len() / PAGE) * PAGE;
        let half = page + seeded.below(2) * PAGE / 2;
        file[half..half + PAGE / 2].fill(0);
    };
    let (all, _) = damage_copies(COPIES, tear).await;
    assert!(all < COPIES / 2, "{all} unhurt");
}

/// A file with its log, while its process lives.
struct Logged {
    site: Site,
    runs: Vec<RunId>,
    file: Vec<u8>,
    log: Vec<u8>,
}

impl Logged {
    async fn new() -> Self {
        let site = Site::of("sqlite");
        let service = site.service().await;
        let mut runs = Vec::new();
        for n in 0..8 {
            runs.push(start(&service, "Two", json!({ "n": n })).await);
            let held = claim(&service, 1).await.remove(0);
            settle(&service, &held).await.unwrap();
            service.turn().await.unwrap();
        }
        let file = fs::read(site.file()).unwrap();
        let log = fs::read(site.file().with_extension("db-wal")).unwrap();
        assert!(log.len() > 100_000, "nothing was moved out of the log yet");
        Self { site, runs, file, log }
    }

    /// With another log, the runs in the file are whole and end as they would have. Returns their number.
    async fn resumes_with(&self, log: &[u8]) -> usize {
        let folder = folder();
        let path = folder.path().join("store.db");
        fs::write(&path, &self.file).unwrap();
        fs::write(path.with_extension("db-wal"), log).unwrap();
        // The holder of a task is gone for long.
        let clock = SimClock::new(Clock::System.now().plus(Millis(3_600_000)));
        let options = Options { clock: Clock::Simulated(clock), ..Options::default() };
        let store = Sqlite::open(&path, options).unwrap();
        let service = Service::new(Arc::new(store), self.site.tenant.clone());
        examine(&service).await;
        service.sweep_once().await.unwrap();
        finish(&service).await;
        let list = service.runs(&RunQuery { limit: 100, ..RunQuery::default() }).await.unwrap();
        for run in &list.runs {
            let n = self.runs.iter().position(|started| *started == run.id).unwrap();
            assert_eq!(run.status, RunStatus::Completed);
            assert_eq!(output(&service, &run.id).await, json!({ "n": n + 2 }));
        }
        examine(&service).await;
        list.runs.len()
    }
}

#[tokio::test]
async fn f12_a_log_that_was_cut_leaves_a_whole_state_that_goes_on() {
    const CUTS: usize = 24;
    let logged = Logged::new().await;
    let mut there = Vec::new();
    for cut in 0..=CUTS {
        there.push(logged.resumes_with(&logged.log[..logged.log.len() * cut / CUTS]).await);
    }
    assert!(there.is_sorted() && there[0] == 0 && there[CUTS] == logged.runs.len(), "{there:?}");
}

/// Each part of the log has a sum over all before it: nothing behind a wrong one counts.
#[tokio::test]
async fn f12_a_flipped_byte_in_the_log_leaves_a_whole_state_that_goes_on() {
    const FLIPS: usize = 24;
    let logged = Logged::new().await;
    let mut seeded = SeededRng::new(12);
    let mut there = Vec::new();
    for part in 0..FLIPS {
        let mut log = logged.log.clone();
        let at = log.len() * part / FLIPS + seeded.below(log.len() / FLIPS);
        log[at] ^= 1 << seeded.below(8);
        there.push(logged.resumes_with(&log).await);
    }
    assert!(there.is_sorted() && there[0] < there[FLIPS - 1], "{there:?}");
}
