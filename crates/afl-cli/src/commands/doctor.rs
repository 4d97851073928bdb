//! `afl doctor`: checks every promise about the stored runs.

use std::fmt::Write;

use afl_lang::render::Color;
use afl_runtime::doctor::{Finding, Remedy, Repair, Report};
use clap::Args;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::store::{self, Missing};

/// Check every promise about the stored runs
///
/// Ends with code 1 when something is wrong and not repaired.
#[derive(Args)]
pub(crate) struct Options {
    /// Look at this run only, by its id or the beginning of it
    run: Option<String>,
    /// Repair what can be repaired without harm
    #[arg(long)]
    fix: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let service = options.store.open(Missing::Refuse).await?;
    let remedy = if options.fix { Remedy::Fix } else { Remedy::Tell };
    let report = match &options.run {
        Some(run) => service.examine(&service.find(run).await?, remedy).await?,
        None => service.doctor(remedy).await?,
    };
    if options.json {
        output::json(&report)?;
    } else {
        output::data(&text(&report, color))?;
    }
    let is_open = |finding: &Finding| finding.repair != Repair::Done;
    Ok(if report.findings.iter().any(is_open) { Exit::Mistakes } else { Exit::Fine })
}

fn text(report: &Report, color: Color) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let Finding { promise, run, path, problem, repair } = finding;
        let mark = paint("broken:", color::ERROR, color);
        writeln!(text, "{mark} {promise:?} in run {run}, {path}: {problem}")
            .expect("a string takes any text");
        writeln!(text, "  {}", advice(*repair)).expect("a string takes any text");
    }
    for run in &report.busy {
        writeln!(text, "run {run} changed all the time; look at it again later")
            .expect("a string takes any text");
    }
    let found = match report.findings.len() {
        0 => "all promises hold".to_owned(),
        some => count(some, "broken promise"),
    };
    writeln!(text, "checked {}: {found}", count(report.runs, "run")).expect("a string takes any text");
    text
}

fn advice(repair: Repair) -> &'static str {
    match repair {
        Repair::Possible => "`afl doctor --fix` repairs it",
        Repair::Done => "repaired",
        Repair::ByHand => "it needs a person: restore the record from a backup, or cancel the run",
    }
}
