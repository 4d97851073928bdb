//! The effects of `afl` on the files it writes.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const UNTIDY: &str = "facet  A( )\n";
const TIDY: &str = "facet A()\n";

fn afl(folder: &Path, arguments: &[&str]) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.args(arguments).current_dir(folder).output().expect("afl runs").status.code()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

#[test]
fn a_formatted_file_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.afl");
    fs::write(&file, UNTIDY).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(afl(folder.path(), &["fmt", "a.afl"]), Some(0));
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), (TIDY, 0o640));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.afl"), folder.path().join("link.afl"));
    fs::write(&file, UNTIDY).unwrap();
    symlink("a.afl", &link).unwrap();
    assert_eq!(afl(folder.path(), &["fmt", "link.afl"]), Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), TIDY);
}

#[test]
fn a_new_file_has_the_permissions_of_the_users_mask() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.afl", "plain"] {
        fs::write(folder.path().join(name), TIDY).unwrap();
    }
    assert_eq!(afl(folder.path(), &["compile", "a.afl", "-o", "a.json"]), Some(0));
    assert_eq!(mode(&folder.path().join("a.json")), mode(&folder.path().join("plain")));
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.afl"), TIDY).unwrap();
    assert_eq!(afl(folder.path(), &["compile", "a.afl", "-o", "/dev/null"]), Some(0));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_link_that_leads_back_ends() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.afl"), TIDY).unwrap();
    symlink(".", folder.path().join("again")).unwrap();
    assert_eq!(afl(folder.path(), &["check", "."]), Some(0));
}
