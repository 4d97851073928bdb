//! `cargo xtask bench`: the benches of the workspace, in release, as tables or as one JSON file.
//!
//! A bench is a target with `harness = false`. It prints tables; with the argument `--json` it prints one
//! JSON object, and tables to stderr if it likes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::workspace::{Workspace, output};

struct Bench {
    package: &'static str,
    target: &'static str,
    /// The part that the target measures, where that is not all.
    part: Option<&'static str>,
}

const BENCHES: &[Bench] = &[
    Bench { package: "afl-lang", target: "compile", part: None },
    Bench { package: "afl-cli", target: "engine", part: None },
    Bench { package: "afl-cli", target: "engine", part: Some("agents") },
];

/// The command and its options.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only the benches whose `crate/name` contains this
    filter: Option<String>,
    /// Write the results to this file as one JSON object, by bench
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure this store only, named by the scheme of its address
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    /// Measure less, for a first look
    #[arg(long)]
    quick: bool,
    /// Slow the disk down to this many writes a second, as ordinary disks are (Linux, root)
    #[arg(long, value_name = "N")]
    disk_writes: Option<u32>,
    /// Measure only the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
}

impl Options {
    /// For the benches, which leave what they do not know.
    fn arguments(&self) -> Vec<String> {
        let store = self.store.iter().map(|store| format!("--store={store}"));
        let quick = self.quick.then(|| "--quick".to_owned());
        let disk = self.disk_writes.map(|writes| format!("--disk-writes={writes}"));
        store.chain(quick).chain(disk).chain(self.case.clone()).collect()
    }
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let wanted = |bench: &&Bench| options.filter.as_ref().is_none_or(|filter| bench.name().contains(filter));
    let chosen: Vec<&Bench> = BENCHES.iter().filter(wanted).collect();
    let names: Vec<String> = BENCHES.iter().map(Bench::name).collect();
    ensure!(!chosen.is_empty(), "no bench is named like that; there are: {}", names.join(", "));
    let arguments = options.arguments();
    match &options.json {
        None => print_tables(workspace, &chosen, &arguments)?,
        Some(path) => collect_json(workspace, &chosen, &arguments, path)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_tables(workspace: &Workspace, benches: &[&Bench], arguments: &[String]) -> Result<()> {
    for bench in benches {
        let mut command = bench.command(workspace, arguments);
        let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
        ensure!(status.success(), "bench {} failed", bench.name());
    }
    Ok(())
}

fn collect_json(workspace: &Workspace, benches: &[&Bench], arguments: &[String], path: &Path) -> Result<()> {
    let mut results = Map::new();
    for bench in benches {
        let name = bench.name();
        eprintln!("bench {name}");
        let printed = output(bench.command(workspace, arguments).arg("--json").stderr(Stdio::inherit()))?;
        let result: Value = serde_json::from_str(&printed)
            .with_context(|| format!("bench {name} printed no JSON object:\n{printed}"))?;
        results.insert(name, result);
    }
    fs::write(path, format!("{:#}\n", Value::Object(results)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("results are in {}", path.display());
    Ok(())
}

impl Bench {
    fn name(&self) -> String {
        format!("{}/{}", self.package, self.part.unwrap_or(self.target))
    }

    fn command(&self, workspace: &Workspace, arguments: &[String]) -> Command {
        let mut cargo = workspace.cargo();
        cargo.args(["bench", "--package", self.package, "--bench", self.target, "--"]).args(arguments);
        cargo.args(self.part.map(|part| format!("--{part}")));
        cargo
    }
}
