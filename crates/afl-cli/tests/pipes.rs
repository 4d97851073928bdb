//! A closed pipe is no failure.

use std::io::{PipeWriter, pipe};
use std::process::{Command, Stdio};

fn closed() -> PipeWriter {
    let (reader, writer) = pipe().expect("a pipe can be made");
    drop(reader);
    writer
}

fn afl(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn a_reader_of_data_may_stop_early() {
    for arguments in
        [&["explain"][..], &["schema", "program"], &["completions", "bash"], &["check", "--json", "-"]]
    {
        let output = afl(arguments).stdout(closed()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn a_reader_of_messages_may_stop_early() {
    let status = afl(&["check", "missing.afl"]).stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
#[cfg(target_os = "linux")]
fn data_that_is_lost_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = afl(&["explain"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: cannot write standard output: no space is left\n"
    );
}
