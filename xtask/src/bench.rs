//! `cargo xtask bench`: the benches of the workspace, in release, as tables or as one JSON file.
//!
//! A bench is a target with `harness = false`. It prints a table; with the argument `--json` it prints one
//! JSON object instead.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::workspace::{Workspace, output};

struct Bench {
    package: &'static str,
    target: &'static str,
}

const BENCHES: &[Bench] = &[Bench { package: "afl-lang", target: "compile" }];

pub(crate) fn run(workspace: &Workspace, filter: Option<&str>, json: Option<&Path>) -> Result<ExitCode> {
    let chosen: Vec<&Bench> =
        BENCHES.iter().filter(|bench| filter.is_none_or(|filter| bench.name().contains(filter))).collect();
    let names: Vec<String> = BENCHES.iter().map(Bench::name).collect();
    ensure!(!chosen.is_empty(), "no bench is named like that; there are: {}", names.join(", "));
    match json {
        None => print_tables(workspace, &chosen)?,
        Some(path) => collect_json(workspace, &chosen, path)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_tables(workspace: &Workspace, benches: &[&Bench]) -> Result<()> {
    for bench in benches {
        let mut command = bench.command(workspace);
        let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
        ensure!(status.success(), "bench {} failed", bench.name());
    }
    Ok(())
}

fn collect_json(workspace: &Workspace, benches: &[&Bench], path: &Path) -> Result<()> {
    let mut results = Map::new();
    for bench in benches {
        let name = bench.name();
        eprintln!("bench {name}");
        let printed = output(bench.command(workspace).args(["--", "--json"]))?;
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
        format!("{}/{}", self.package, self.target)
    }

    fn command(&self, workspace: &Workspace) -> Command {
        let mut cargo = workspace.cargo();
        cargo.args(["bench", "--package", self.package, "--bench", self.target]);
        cargo
    }
}
