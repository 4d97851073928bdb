//! `handlers.toml`: which handler does the work of which facet, with paths from where the file is.

use std::path::Path;

use afl_agents::Hosts;
use afl_agents::registration::{DEFAULT_ENTRYPOINT, DEFAULT_TIMEOUT_MS, DEFAULT_VERSION, Registration};
use afl_engine::value::{Map, Value};
use serde::Deserialize;

use super::{HandlerSet, Trouble};
use crate::failure::{Failure, FileRole};
use crate::input::Input;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    handler: Vec<HandlerEntry>,
}

/// `[[handler]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandlerEntry {
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

pub(super) fn read(path: &Path, hosts: &Hosts) -> Result<HandlerSet, Failure> {
    let text = Input::File(path.to_owned()).read()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unreadable =
        |source| Failure::Unreadable { name: folder.display().to_string(), sought: FileRole::File, source };
    let folder = std::fs::canonicalize(folder).map_err(unreadable)?;
    let wrong = |reason: String| Trouble::BadFile { file: path.to_owned(), reason };
    let file: File = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    if file.handler.is_empty() {
        return Err(wrong("it has no `[[handler]]`".to_owned()).into());
    }
    let mut given = HandlerSet { registrations: Vec::new(), roots: vec![folder.clone()] };
    for entry in file.handler {
        let mut registration = registration(entry);
        hosts.anchor(&mut registration, &folder);
        hosts.parse(&registration).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            wrong(format!("the handler of {}: {}", registration.facet_name, problems.join("; ")))
        })?;
        given.registrations.push(registration);
    }
    Ok(given)
}

fn registration(entry: HandlerEntry) -> Registration {
    Registration {
        entrypoint: entry.entrypoint.unwrap_or_else(|| DEFAULT_ENTRYPOINT.to_owned()),
        version: entry.version.unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
        checksum: entry.checksum.unwrap_or_default(),
        timeout_ms: entry.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        requirements: entry.requirements,
        metadata: entry.metadata,
        ..Registration::new(entry.facet, entry.module)
    }
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
            let mut registration = Registration::new("a.F", written);
            super::super::readers().anchor(&mut registration, folder);
            assert_eq!(registration.module_uri, meant);
        }
    }
}
