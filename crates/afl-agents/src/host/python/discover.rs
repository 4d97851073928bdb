//! Finds the functions of Python files that are marked as handlers.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::interpreter::{Interpreter, ask};
use super::module::file_uri;
use crate::handler::HandlerFailure;
use crate::host::HandlerFile;
use crate::registration::Registration;

/// One line of what the script prints.
#[derive(Deserialize)]
struct FileLine {
    path: PathBuf,
    /// The functions that `@handler("ns.Facet")` marks, without the URI of their file.
    #[serde(default)]
    marked: Vec<Registration>,
    /// Why it is no Python that can be read.
    #[serde(default)]
    unreadable: Option<String>,
}

const TEXT: &str = include_str!("discover.py");

/// The marked functions of files, in their order. The names of the facets must be written out there: nothing is run.
pub(super) async fn discover(python: &Path, files: &[PathBuf]) -> Result<Vec<HandlerFile>, HandlerFailure> {
    let failed = |message: String| HandlerFailure::unavailable(message);
    let interpreter = Interpreter::probe(python, &[]).await?;
    let asked = ask(&interpreter.program, TEXT, files, &[]).await;
    let output = asked.map_err(|reason| failed(format!("cannot run Python: {reason}")))?;
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let found: Result<Vec<FileLine>, _> = lines.map(serde_json::from_slice).collect();
    match found {
        Ok(found) if found.len() == files.len() => Ok(found.into_iter().map(FileLine::handlers).collect()),
        Ok(_) | Err(_) => {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(failed(format!("cannot look for handlers: {message}")))
        }
    }
}

impl FileLine {
    fn handlers(self) -> HandlerFile {
        let registrations = match (self.unreadable, file_uri(&self.path)) {
            (Some(reason), _) => Err(reason),
            (None, None) => Err("its path is not absolute".to_owned()),
            (None, Some(uri)) => {
                let here = |marked| Registration { module_uri: uri.clone(), ..marked };
                Ok(self.marked.into_iter().map(here).collect())
            }
        };
        HandlerFile { path: self.path, registrations }
    }
}
