//! The most memory that a compilation holds at once, as the system counts it.
//!
//! A process remembers only the peak of its whole life, so every measurement has a process of its own:
//! this one again, with the text on its standard input.

use std::env;
use std::fs;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use afl_lang::program::Emit;
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};

/// The work of a process on the text before it reports its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    Nothing,
    /// Tree, program and hash.
    Program,
    /// All that, and the JSON document.
    Document,
}

impl Load {
    const ALL: [Self; 3] = [Self::Nothing, Self::Program, Self::Document];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Program => "parse+check+emit",
            Self::Document => "and the document",
        }
    }
}

/// Bytes at the peak of a process with this load; `None` where the system does not report it.
pub(crate) fn peak_of_child(load: Load, text: &str) -> Option<usize> {
    let mut child = Command::new(env::current_exe().ok()?)
        .args(["--peak", load.name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Prints the peak, in bytes, after the load of this name.
pub(crate) fn run_child(name: &str) {
    let load = Load::ALL.into_iter().find(|load| load.name() == name).expect("a load of `Load::ALL`");
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).expect("the parent sends UTF-8");
    let sources = Sources::one("bench.afl", text);
    if load != Load::Nothing {
        let program = compile(&sources, Validation::Require).program.expect("the text has no mistake");
        black_box(program.hash());
        if load == Load::Document {
            black_box(program.emit(Emit::WHOLE));
        }
    }
    if let Some(bytes) = peak() {
        println!("{bytes}");
    }
}

fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}
