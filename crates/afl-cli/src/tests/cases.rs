//! Every conformance case on every store, as `afl run --json --mock CASE.json` does it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use afl_backends::KINDS;
use afl_engine::value::{Value, equal};
use afl_lang::render::Color;
use afl_runtime::Service;
use afl_runtime::doctor::Remedy;
use afl_store::backend::Backend;
use afl_store::record::Tenant;
use clap::Parser;
use tokio::task::JoinSet;

use crate::cli::{Cli, Command};
use crate::commands::run;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::foreground::{FollowResult, Foreground};
use crate::handlers::HandlerSet;
use crate::launch::Launch;
use crate::local_handlers::LocalHandlers;
use crate::mock::Mock;
use crate::outcome;

/// It gives no inputs to a workflow that needs some: that the program compiles is all that is said of it.
const ONLY_COMPILED: &str = "comparison_is_legal";

/// How many cases run. One that is added is counted here, so that none is left out by accident.
const RUN: usize = 120;

const CASE: &str = "json";
const REJECTED: &str = "rejected";

struct ConformanceCase {
    name: String,
    path: PathBuf,
    data: Value,
}

/// The result of a case.
struct CaseResult {
    outcome: Value,
    /// The final state; nothing for a start that was refused.
    canonical: String,
}

// covers: RT-10.2-a, RT-15-a, RT-19-a, RT-3-b, RT-W14-b
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_case_comes_out_as_expected_and_the_same_on_every_store() {
    let folder = tempfile::tempdir().unwrap();
    // One after the other: all cases of one store at once keep a machine busy, and connecting to a server has a time limit.
    let mut stores = Vec::new();
    for kind in KINDS {
        let backend = afl_backends::open(&kind.test_url(folder.path())).await.unwrap();
        stores.push((kind.name(), run_all(kind.name(), backend).await));
    }
    let (_, expected) = &stores[0];
    for (store, states) in &stores {
        assert_eq!(states.len(), RUN, "{store}");
        for (name, state) in states {
            assert_eq!(Some(state), expected.get(name), "{name} on {store}");
        }
    }
}

/// Runs all cases on one store, and gives their final states.
async fn run_all(store: &str, backend: Arc<dyn Backend>) -> BTreeMap<String, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let tenant = format!("cases-{}-{}", std::process::id(), since.as_nanos());
    let service = Service::new(backend, Tenant::new(&tenant).unwrap());
    let mut running = JoinSet::new();
    for case in cases() {
        let service = service.clone();
        running.spawn(async move { (run_one(&service, &case).await, case) });
    }
    let mut states = BTreeMap::new();
    for (ran, case) in running.join_all().await {
        let Some(ran) = ran else { continue };
        check(store, &case, &ran);
        states.insert(case.name, ran.canonical);
    }
    let report = service.doctor(Remedy::Tell).await.unwrap();
    assert_eq!(report.findings, [], "{store}");
    states
}

async fn run_one(service: &Service, case: &ConformanceCase) -> Option<CaseResult> {
    let program = case.path.with_extension("afl");
    let program = program.to_str().unwrap();
    let mock = case.path.to_str().unwrap();
    let Command::Run(options) =
        Cli::parse_from(["afl", "run", program, "--json", "--mock", mock, "--store", "memory:"]).command
    else {
        panic!("`run` is a command")
    };
    let (launch, mock) = match run::prepare(&options, Color::Plain) {
        Ok(prepared) => prepared,
        Err(failure) if case.name == ONLY_COMPILED => {
            assert_eq!(failure.exit(), Exit::WrongUse, "{failure}");
            return None;
        }
        Err(failure) => {
            assert!(is_rejection(&failure), "{}: {failure}", case.name);
            let outcome = serde_json::to_value(outcome::without_end(&failure, &options.store)).unwrap();
            return Some(CaseResult { outcome, canonical: String::new() });
        }
    };
    let FollowResult { service, run, .. } = follow(service, &options, launch, mock.as_ref()).await;
    let outcome = service.outcome(&run).await.unwrap();
    Some(CaseResult {
        outcome: serde_json::to_value(outcome).unwrap(),
        canonical: service.canonical(&run.id).await.unwrap(),
    })
}

/// Starts a run and does its work, as `afl run` does.
pub(super) async fn follow(
    service: &Service,
    options: &run::Options,
    launch: Launch,
    mock: Option<&Mock>,
) -> FollowResult {
    let (given, program, workflow) = (HandlerSet::default(), &launch.program, &launch.workflow);
    let handlers = LocalHandlers::new(mock, given, &[], program, workflow, Color::Plain).unwrap();
    let foreground =
        Foreground::new(service.clone(), handlers, &options.foreground, &options.store, Color::Plain);
    let started = launch.start(&foreground.service).await.unwrap();
    foreground.follow(&started.run).await.unwrap()
}

/// Whether the program, the workflow or the inputs are wrong.
fn is_rejection(failure: &Failure) -> bool {
    matches!(failure.exit(), Exit::Mistakes | Exit::WrongUse)
}

fn check(store: &str, case: &ConformanceCase, ran: &CaseResult) {
    let (name, expect, outcome) = (&case.name, &case.data["expect"], &ran.outcome);
    assert_eq!(outcome["status"], expect["status"], "{name} on {store}: {outcome}");
    assert_eq!(outcome["run"].is_null(), expect["status"] == REJECTED, "{name} on {store}");
    let error = outcome["error"].to_string();
    for text in expect["error_mentions"].as_array().into_iter().flatten() {
        // Inside JSON, as a reader finds it.
        let text = text.to_string();
        let text = &text[1..text.len() - 1];
        assert!(error.contains(text), "{name} on {store}: {error} does not mention {text}");
    }
    if expect["outputs"].is_object() {
        assert!(equal(&outcome["outputs"], &expect["outputs"]), "{name} on {store}: {outcome}");
    }
    if expect["iterations_per_run"].is_array() {
        assert_eq!(outcome["iterationsPerRun"], expect["iterations_per_run"], "{name} on {store}");
    }
}

/// The agreed cases and those of the engine that run at all.
fn cases() -> Vec<ConformanceCase> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = [crates.join("../conformance"), crates.join("afl-engine/tests/cases")];
    let mut cases: Vec<ConformanceCase> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            path.extension().is_some_and(|extension| extension == CASE).then(|| case(path))
        })
        .filter(|case| case.data["expect"]["status"].is_string())
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

fn case(path: PathBuf) -> ConformanceCase {
    let data = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    ConformanceCase { name: path.file_stem().unwrap().to_string_lossy().into_owned(), path, data }
}
