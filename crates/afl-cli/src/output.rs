//! The one place that writes: data to standard output or a file, talk to standard error.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::input::STANDARD;
use crate::shown;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    /// The output that `-o` asks for.
    pub(crate) fn new(output: Option<&Path>) -> Self {
        match output {
            Some(path) if path.as_os_str() != STANDARD => Self::File(path.to_owned()),
            Some(_) | None => Self::Stdout,
        }
    }

    pub(crate) fn write(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout => match write_stdout(content) {
                // A reader that has seen enough, such as `head`, is no failure.
                Err(source) if source.kind() != ErrorKind::BrokenPipe => {
                    Err(Failure::Unwritable { name: "standard output".into(), source })
                }
                Ok(()) | Err(_) => Ok(()),
            },
            Self::File(path) => replace(path, content)
                .map_err(|source| Failure::Unwritable { name: path.display().to_string(), source }),
        }
    }
}

/// Writes what the user asked for.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    Target::Stdout.write(|out| out.write_all(text.as_bytes()))
}

pub(crate) fn lines(lines: &[String]) -> Result<(), Failure> {
    data(&lines.iter().flat_map(|line| [line, "\n"]).collect::<String>())
}

pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<(), Failure> {
    data(&shown::table(header, rows))
}

/// Whether a person reads what the user asked for.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes one JSON value: laid out for a person at a terminal, on one line for a program.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = if is_terminal() { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    data(&(text.expect("the value has a JSON form") + "\n"))
}

/// Writes a shape of the service as JSON, with the keys of every object in order.
pub(crate) fn view(view: &impl Serialize) -> Result<(), Failure> {
    json(&serde_json::to_value(view).expect("a view has a JSON form"))
}

/// Writes a message to standard error; if that is closed, there is no other place to report it.
pub(crate) fn say(text: &str) {
    io::stderr().lock().write_all(text.as_bytes()).ok();
}

fn write_stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    content(&mut out)?;
    out.flush()
}

/// Replaces a file atomically: a reader sees the old content or the new, never a part.
fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        // A device or a pipe is written to, not replaced.
        return write_through(File::options().write(true).open(path)?, content).map(drop);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let (file, temporary) = new_file(folder.unwrap_or(Path::new(".")))?.into_parts();
    let file = write_through(file, content)?;
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    temporary.persist(&path).map_err(|error| error.error)
}

fn write_through(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    Ok(out.into_inner()?)
}

/// A file that others may read, which a temporary one is not unless one says so.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    file.prefix(PREFIX).tempfile_in(folder)
}

const PREFIX: &str = ".afl-";
