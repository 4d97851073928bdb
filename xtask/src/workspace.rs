//! Where the workspace is, which files it holds, and how its cargo is called.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The checkout that `cargo xtask` was called in.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
}

impl Workspace {
    /// Asks the environment and not `env!`: a build that two checkouts share would name the wrong one.
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").context("call this as `cargo xtask`")?;
        let root = Path::new(&manifest_dir).parent().context("the manifest of xtask lies in no workspace")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// All files that are not ignored, relative to the root, in order.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&self.root);
        let listing = output(&mut git)?;
        let mut files: Vec<String> = listing
            .split('\0')
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The text of a file, or nothing when the file is not text.
    pub(crate) fn text(&self, path: &str) -> Result<Option<String>> {
        let bytes = fs::read(self.root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// The cargo that runs us, so that a `+toolchain` on the command line reaches every build.
    pub(crate) fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.current_dir(&self.root);
        command
    }

    pub(crate) fn packages(&self) -> Result<Vec<Package>> {
        #[derive(Deserialize)]
        struct Metadata {
            packages: Vec<Package>,
        }
        let mut cargo = self.cargo();
        cargo.args(["metadata", "--format-version=1", "--no-deps"]);
        Ok(parsed::<Metadata>(&output(&mut cargo)?)?.packages)
    }
}

/// A member of the workspace, as `cargo metadata` prints it.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Set for a crate of this workspace only: everything else comes from a registry.
    pub(crate) path: Option<PathBuf>,
}

/// The output of a command; a failing command is an error that shows its stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(done.status.success(), "{command:?} failed\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).with_context(|| format!("{command:?} did not print text"))
}

fn parsed<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).context("cannot read what `cargo metadata` printed")
}
