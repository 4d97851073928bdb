//! The sessions that the README shows are what the commands print.

#![cfg(unix)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../README.md");

#[test]
fn every_session_prints_what_the_readme_shows() {
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples");
    fs::create_dir(&examples).unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, examples.join(path.file_name().unwrap())).unwrap();
        }
    }
    let steps = steps();
    assert!(steps.len() >= 4, "the README shows {} commands", steps.len());
    for (command, shown) in steps {
        assert_eq!(lines(&run(folder.path(), command)), lines(shown), "$ {command}");
    }
}

/// The first command of the README, which is run from the sources.
#[test]
fn the_first_command_gives_a_result() {
    let command = README.lines().find_map(|line| line.strip_prefix("    cargo run --quiet --bin afl -- "));
    let command = format!("afl {} --store memory:", command.expect("the README begins with a command"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let printed = run(&root, &command);
    assert!(printed.contains("ada@example.org (billing): We send you a new invoice"), "{printed}");
    assert!(printed.contains("attempt 1 of 3 failed: ConnectionError"), "{printed}");
    assert!(printed.contains("cleo@example.org needs a person: ValueError"), "{printed}");
}

/// Each command with its output.
fn steps() -> Vec<(&'static str, &'static str)> {
    let blocks = README.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let steps = blocks.flat_map(|block| block.split("$ ").skip(1));
    steps.filter_map(|step| step.split_once('\n')).collect()
}

fn run(folder: &Path, command: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_afl")).parent().expect("a program is in a folder").display();
    let path = format!("{programs}:{}", env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("AFL_STORE")
        .output()
        .expect("a shell runs");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The words of each line, without the parts that change each time: ids, times and the widths of columns.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(line).collect()
}

fn line(line: &str) -> String {
    let line = match line.split_once(';') {
        Some((_, rest)) if line.starts_with("started ") => rest,
        Some(_) | None => line,
    };
    let mut words: Vec<String> = line.split_whitespace().map(word).collect();
    for at in 1..words.len() {
        if matches!(words[at].as_str(), "ms" | "s") {
            words[at - 1] = "TIME".into();
            words[at] = "UNIT".into();
        }
    }
    words.join(" ")
}

fn word(word: &str) -> String {
    let is_part = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let part = word.trim_matches(|character: char| !is_part(character));
    let is_id = part.len() == 19 && part.chars().all(is_part);
    if is_id { word.replace(part, "RUN") } else { word.to_owned() }
}
