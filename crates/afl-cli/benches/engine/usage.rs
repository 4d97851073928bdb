//! Resource usage of this process and of others, as the system counts it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of this process.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Bytes that this process sent to a disk.
pub(crate) fn written_bytes() -> u64 {
    field(Path::new("/proc/self/io"), "write_bytes:").unwrap_or(0)
}

pub(crate) fn resident_bytes() -> u64 {
    field(Path::new("/proc/self/status"), "VmRSS:").unwrap_or(0) * 1024
}

/// The most that was resident in this process's life.
pub(crate) fn peak_bytes() -> u64 {
    field(Path::new("/proc/self/status"), "VmHWM:").unwrap_or(0) * 1024
}

/// Of one, five and fifteen minutes.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// CPU time of a server: the process of the id in the file, its children, and those that have ended.
pub(crate) fn cpu_of_server(pid_file: &Path) -> Duration {
    let server = fs::read_to_string(pid_file).expect("a server that runs has a file with its id");
    cpu_of(server.lines().next().expect("its first line is the id"))
}

/// CPU time of a process, its children, and those that have ended.
pub(crate) fn cpu_of(pid: &str) -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ticks = processes.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold anything, so the fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let is_it = entry.file_name().to_string_lossy() == pid;
        let own: u32 = fields.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
        let ended: u32 = fields.get(13..15)?.iter().filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
        match (is_it, *fields.get(1)? == pid) {
            (true, _) => Some(own + ended),
            (false, true) => Some(own),
            (false, false) => None,
        }
    });
    TICK * ticks.sum::<u32>()
}

pub(crate) fn resident_bytes_of(pid: &str) -> u64 {
    field(&Path::new("/proc").join(pid).join("status"), "VmRSS:").unwrap_or(0) * 1024
}

fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
