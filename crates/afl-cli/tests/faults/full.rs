//! F11: a file system without space, a real one of eight megabytes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::run::RunStatus;
use afl_runtime::agent::Refusal;
use afl_runtime::{Error, Service};
use afl_store::backend::StoreError;
use afl_store::record::Tenant;
use serde_json::json;
use tempfile::TempDir;

use crate::work::{claim, ended, examine, finish, result, start};

/// Gone when it is dropped.
struct Small(TempDir);

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path()).output();
        let mount = mount.expect("there is a program `mount`");
        let said = String::from_utf8_lossy(&mount.stderr);
        assert!(mount.status.success(), "this test mounts a small file system, so run it as root: {said}");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn open(&self) -> Service {
        let store = Sqlite::open(&self.path().join("store.db"), Options::default()).unwrap();
        Service::new(Arc::new(store), Tenant::new(Tenant::LOCAL).unwrap())
    }

    /// Takes all space that is left.
    fn fill(&self) {
        let ballast = self.path().join("ballast");
        let mut size = 8 << 20;
        while size > 0 {
            let mut all = fs::read(&ballast).unwrap_or_default();
            all.resize(all.len() + size, 0);
            if fs::write(&ballast, &all).is_err() {
                all.truncate(all.len() - size);
                drop(fs::write(&ballast, &all));
                size /= 2;
            }
        }
    }

    fn free(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(self.0.path()).status());
    }
}

fn is_full(error: &Error) -> bool {
    use afl_store::store::Error as Stored;
    // SQLite calls a failed write of its log a fault of the disk, and says to look for space.
    match error {
        Error::Store(Stored::Backend(StoreError::Full)) => true,
        error => error.to_string().contains("space"),
    }
}

#[tokio::test]
async fn f11_a_full_disk_is_told_and_runs_go_on_when_there_is_space() {
    let small = Small::new();
    let service = small.open();
    let run = start(&service, "Two", json!({"n": 1})).await;
    let held = claim(&service, 1).await.remove(0);
    let asked = crate::work::request(&service, "Two", json!({"n": 5})).await;

    small.fill();
    let mut accepted = Vec::new();
    let full = loop {
        match service.start(asked.clone()).await {
            Ok(started) => accepted.push(started.run),
            Err(full) => break full,
        }
    };
    assert!(is_full(&full), "{full}");
    let refusal = service.complete(&held.ticket, &result(&held)).await;
    assert!(matches!(&refusal, Ok(_) | Err(Refusal::Store(_))), "{refusal:?}");
    // Reading works without space.
    assert_eq!(service.run(&run).await.unwrap().status, RunStatus::Paused);
    service.why(&run).await.unwrap();

    small.free();
    service.complete(&held.ticket, &result(&held)).await.unwrap();
    finish(&service).await;
    for run in accepted.iter().chain([&run]) {
        assert_eq!(ended(&service, run).await, RunStatus::Completed);
    }
    examine(&service).await;
}

/// A large value is written in pieces before the commit that refers to it.
#[tokio::test]
async fn f11_a_value_that_found_no_space_is_not_referred_to_even_after_a_restart() {
    let small = Small::new();
    let service = small.open();
    let text = "x".repeat(6 << 20);
    let run = start(&service, "Long", json!({"text": "small"})).await;
    let held = claim(&service, 1).await.remove(0);
    small.fill();
    let large = json!({ "text": text }).as_object().unwrap().clone();
    let refusal = service.complete(&held.ticket, &large).await.unwrap_err();
    assert!(matches!(&refusal, Refusal::Store(_)), "{refusal}");
    drop(service);

    small.free();
    let service = small.open();
    examine(&service).await;
    let small_one = json!({"text": "less"}).as_object().unwrap().clone();
    service.complete(&held.ticket, &small_one).await.unwrap();
    finish(&service).await;
    assert_eq!(crate::work::output(&service, &run).await, json!({"text": "less"}));
    examine(&service).await;
}
