//! `handlers.toml`: which handler does the work of which facet, with paths from where the file is.

use std::path::{Path, PathBuf};

use afl_agents::registration::{DEFAULT_ENTRYPOINT, DEFAULT_TIMEOUT_MS, DEFAULT_VERSION, Registration};
use afl_engine::value::{Map, Value};
use serde::Deserialize;
use url::Url;

use super::{Given, Trouble};
use crate::failure::{Failure, Sought};
use crate::input::Input;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    handler: Vec<Entry>,
}

/// `[[handler]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    facet: String,
    module: String,
    entrypoint: Option<String>,
    version: Option<String>,
    checksum: Option<String>,
    timeout_ms: Option<i64>,
    #[serde(default)]
    requirements: Vec<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

pub(super) fn read(path: &Path) -> Result<Given, Failure> {
    let text = Input::File(path.to_owned()).read()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unreadable =
        |source| Failure::Unreadable { name: folder.display().to_string(), sought: Sought::File, source };
    let folder = std::fs::canonicalize(folder).map_err(unreadable)?;
    let wrong = |reason: String| Trouble::BadFile { file: path.to_owned(), reason };
    let file: File = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    if file.handler.is_empty() {
        return Err(wrong("it has no `[[handler]]`".to_owned()).into());
    }
    let mut given = Given { registrations: Vec::new(), roots: vec![folder.clone()] };
    for entry in file.handler {
        let registration = registration(entry, &folder);
        registration.check().map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            wrong(format!("the handler of {}: {}", registration.facet_name, problems.join("; ")))
        })?;
        given.registrations.push(registration);
    }
    Ok(given)
}

fn registration(entry: Entry, folder: &Path) -> Registration {
    let mut metadata = entry.metadata;
    if let Some(Value::String(python)) = metadata.get_mut(PYTHON_OF) {
        *python = folder.join(&*python).display().to_string();
    }
    Registration {
        facet_name: entry.facet,
        module_uri: module(&entry.module, folder),
        entrypoint: entry.entrypoint.unwrap_or_else(|| DEFAULT_ENTRYPOINT.to_owned()),
        version: entry.version.unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
        checksum: entry.checksum.unwrap_or_default(),
        timeout_ms: entry.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        requirements: entry.requirements,
        metadata,
        created: 0,
        updated: 0,
    }
}

/// The environment of a handler, in its metadata.
const PYTHON_OF: &str = "python";
const EXEC: &str = "exec:";

/// A path becomes absolute; what is none stays as it is written.
pub(super) fn module(written: &str, folder: &Path) -> String {
    let absolute = |path: &str| {
        let path = folder.join(path);
        std::fs::canonicalize(&path).unwrap_or(path)
    };
    if let Some(program) = written.strip_prefix(EXEC) {
        return format!("{EXEC}{}", absolute(program).display());
    }
    let is_file = Path::new(written).extension().is_some_and(|extension| extension == super::PYTHON);
    if !is_file || written.contains(SCHEME) {
        return written.to_owned();
    }
    file_uri(&absolute(written)).unwrap_or_else(|| written.to_owned())
}

const SCHEME: &str = "://";

pub(super) fn file_uri(path: &PathBuf) -> Option<String> {
    Url::from_file_path(path).ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_where_the_file_is() {
        let folder = Path::new("/none/such");
        for (written, meant) in [
            ("pay.py", "file:///none/such/pay.py"),
            ("handlers/pay.py", "file:///none/such/handlers/pay.py"),
            ("/opt/pay.py", "file:///opt/pay.py"),
            ("file:///opt/pay.py", "file:///opt/pay.py"),
            ("handlers.pay", "handlers.pay"),
            ("exec:bin/pay", "exec:/none/such/bin/pay"),
            ("exec:/bin/pay", "exec:/bin/pay"),
            ("builtin:echo", "builtin:echo"),
            ("https://example.org/pay.py", "https://example.org/pay.py"),
        ] {
            assert_eq!(module(written, folder), meant);
        }
    }
}
