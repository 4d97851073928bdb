//! The Python interpreter of a handler's environment.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::process::Command;
use tokio::time;

use super::process::START_TIMEOUT;
use crate::handler::HandlerFailure;
use crate::process;
use crate::roots::Roots;

/// Runs a short Python text with arguments and returns its output.
pub(super) async fn ask(
    python: &Path,
    text: &str,
    args: &[PathBuf],
    passed: &[String],
) -> Result<Output, String> {
    let mut command = Command::new(python);
    command.args(["-I", "-c", text]).args(args).env_clear().envs(process::pass(passed)).stdin(Stdio::null());
    let output = time::timeout(START_TIMEOUT, command.kill_on_drop(true).output()).await;
    output.map_err(|_| "it does not answer".to_owned())?.map_err(|error| error.to_string())
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interpreter {
    /// The program itself, not a wrapper that looks for it.
    pub(super) program: PathBuf,
    /// Of a virtual environment.
    pub(super) folder: Option<PathBuf>,
}

const PROBE: &str = "import sys; print(sys.executable); print(*sys.version_info[:2])";
const OLDEST: (u32, u32) = (3, 8);

impl Interpreter {
    /// The agent's own, by name or path.
    pub(super) async fn probe(python: &Path, passed: &[String]) -> Result<Self, HandlerFailure> {
        let unusable = |reason: String| {
            let message = format!(
                "cannot use {} as Python: {reason}: install Python 3, or name another",
                python.display()
            );
            HandlerFailure::unavailable(message)
        };
        let output = ask(python, PROBE, &[], passed).await.map_err(unusable)?;
        let text = String::from_utf8_lossy(&output.stdout);
        // An answer of one line has no version, and is refused below.
        let (program, version) = text.trim_end().split_once('\n').unwrap_or_default();
        let version: Vec<u32> = version.split(' ').filter_map(|part| part.parse().ok()).collect();
        match version.as_slice() {
            [major, minor] if (*major, *minor) >= OLDEST => {
                Ok(Self { program: program.into(), folder: None })
            }
            [major, minor] => {
                Err(unusable(format!("it is Python {major}.{minor}, and 3.8 is the oldest that will do")))
            }
            _ => Err(unusable(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    /// The interpreter that a registration names: a virtual environment or its interpreter, under an allowed folder.
    pub(super) fn named(path: &Path, roots: &Roots) -> Result<Self, HandlerFailure> {
        let is_program = path.is_file();
        let folder = match (is_program, path.parent().and_then(Path::parent)) {
            (true, Some(folder)) => folder,
            (true, None) | (false, _) => path,
        };
        // The interpreter in it is a link to one outside, so the folder must be an allowed one.
        let folder = roots.admit_folder(folder)?;
        let program = folder.join("bin").join(if is_program {
            path.file_name().unwrap_or_default()
        } else {
            "python".as_ref()
        });
        if program.is_file() {
            return Ok(Self { program, folder: Some(folder) });
        }
        let message = format!(
            "there is no Python in {}: make the environment with `python3 -m venv {}`",
            folder.display(),
            folder.display()
        );
        Err(HandlerFailure::not_found(message))
    }

    /// Where packages of the virtual environment are.
    pub(super) fn packages(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let versions = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
        versions
            .map(|version| version.path().join("site-packages"))
            .filter(|folder| folder.is_dir())
            .collect()
    }
}
