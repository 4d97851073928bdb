//! Processes with another wall clock, by Debian's `faketime`. Their monotonic clock and their time since boot stay real.

use std::path::Path;
use std::process::Command;

/// Of Debian and its children.
pub const PACKAGE: &str = "faketime";

const PROGRAM: &str = "faketime";

/// Without it the library replaces the monotonic clock too.
const REAL_MONOTONIC: (&str, &str) = ("FAKETIME_DONT_FAKE_MONOTONIC", "1");

pub fn is_installed() -> bool {
    Command::new(PROGRAM).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A command whose wall clock is `ahead_s` seconds ahead.
pub fn command(ahead_s: u32, program: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["-f", &format!("+{ahead_s}s"), program]).env(REAL_MONOTONIC.0, REAL_MONOTONIC.1);
    command
}

/// The environment of a process whose wall clock follows the offset in a file, such as `+3600s`.
///
/// # Panics
/// When `faketime` is not installed: a test that skips itself proves nothing.
pub fn variables(offset: &Path) -> Vec<(&'static str, String)> {
    let shown = Command::new(PROGRAM).args(["-f", "+0s", "sh", "-c", "echo $LD_PRELOAD"]).output();
    let shown = shown.expect("`faketime` is installed (Debian, Ubuntu: `apt-get install faketime`)");
    let library = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
    assert!(!library.is_empty(), "`faketime` names its library");
    vec![
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", offset.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        (REAL_MONOTONIC.0, REAL_MONOTONIC.1.to_owned()),
    ]
}
