//! `afl doctor`: checks every promise about the stored runs and system tasks, and what they share.

use afl_engine::id::RunId;
use afl_lang::render::Color;
use afl_runtime::Service;
use afl_runtime::doctor::{Finding, Promise, Remedy, Repair, Report};
use clap::Args;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shell::word;
use crate::store::{self, IfMissing, ObjectOptions};

/// Check the promises that stored data can show
///
/// Ends with code 1 when something is wrong and not repaired.
#[derive(Args)]
pub(crate) struct Options {
    /// Look at this run only, by its id or the beginning of it, at a system task, such as @execute/06ebz, or at a record
    /// that all share, such as @notifications/offline-06ebz
    run: Option<String>,
    /// Repair what can be repaired without harm
    #[arg(long)]
    fix: bool,
    /// Delete the run or record, which must be damaged, with everything of it
    #[arg(long, requires = "run", conflicts_with_all = ["fix", "json"])]
    discard: bool,
    #[command(flatten)]
    object: ObjectOptions,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let service = options.object.store.open(IfMissing::Refuse).await?;
    if let (true, Some(run)) = (options.discard, &options.run) {
        let run = named(&service, run).await?;
        service.discard(&run).await?;
        output::say(&format!("{} is deleted\n", called(&run)));
        return Ok(Exit::Fine);
    }
    let remedy = if options.fix { Remedy::Fix } else { Remedy::Tell };
    let report = match &options.run {
        Some(run) => service.examine(&named(&service, run).await?, remedy).await?,
        None => service.doctor(remedy).await?,
    };
    if options.object.json {
        output::json(&report)?;
    } else {
        output::lines(&text(&report, &options.object.store, color))?;
    }
    let is_open = |finding: &Finding| finding.repair != Repair::Done;
    Ok(if report.findings.iter().any(is_open) { Exit::Mistakes } else { Exit::Fine })
}

/// The run by a part of its id; one that cannot be read is found by its whole id.
async fn named(service: &Service, run: &str) -> Result<RunId, Failure> {
    let id = RunId(run.into());
    if !id.is_run() {
        return Ok(id);
    }
    match service.find(run).await {
        Ok(found) => Ok(found),
        Err(error) if error.is_damage() || service.has_records(&id).await? => Ok(id),
        Err(error) => Err(error.into()),
    }
}

fn text(report: &Report, store: &store::Options, color: Color) -> Vec<String> {
    let mut lines = Vec::new();
    let mark = paint("broken:", color::ERROR, color);
    for finding in &report.findings {
        let Finding { promise, run, path, problem, .. } = finding;
        lines.push(format!("{mark} {}; {}, {path}: {problem}", words(*promise), called(run)));
        lines.push(format!("  {}", advice(finding, store)));
    }
    let busy = report.busy.iter();
    lines.extend(busy.map(|run| format!("run {run} changed all the time; look at it again later")));
    let found = match report.findings.len() {
        0 => "all promises hold".to_owned(),
        some => count(some, "broken promise"),
    };
    let tasks = match report.system_tasks {
        0 => String::new(),
        some => format!(" and {}", count(some, "system task")),
    };
    lines.push(format!("checked {}{tasks}: {found}", count(report.runs, "run")));
    lines
}

/// The promise, as it should be.
fn words(promise: Promise) -> &'static str {
    match promise {
        Promise::AtomicStep => "each iteration is stored whole",
        Promise::Acknowledged => "acknowledged writes are there",
        Promise::OneOutcome => "each step has one outcome",
        Promise::HonestEffects => "work that must happen once is not repeated without asking",
        Promise::CrashesCount => "attempts stay within their limits",
        Promise::Completion => "an ended run has ended whole",
        Promise::PinnedDefinition => "the program of a run is there",
        Promise::NoSilentStall => "every open run has something that wakes it",
        Promise::OneClock => "leases are by one clock",
        Promise::FailStop => "every record can be read",
    }
}

fn advice(finding: &Finding, store: &store::Options) -> String {
    match finding.repair {
        Repair::Possible => format!("{} repairs it", store.command("doctor --fix")),
        Repair::Done => "repaired".to_owned(),
        Repair::ByNewerRelease => "nothing of it is lost; it is left as it is".to_owned(),
        Repair::OfStore => "only the operator of the store can mend it".to_owned(),
        Repair::ByHand => {
            let discard = store.command(&format!("doctor {} --discard", word(&finding.subject().0)));
            format!("a person must decide; {discard} deletes it")
        }
    }
}

fn called(run: &RunId) -> String {
    if run.is_run() { format!("run {run}") } else { run.to_string() }
}
