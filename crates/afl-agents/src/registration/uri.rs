//! Where a handler is: the forms of `module_uri`.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use afl_runtime::outbox::{BadUrl, plain_url};
use url::Url;

use super::Problem;
use crate::builtin::Builtin;

/// The form decides the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModuleUri {
    /// `my.handlers.cache`
    PythonModule(DottedName),
    /// `file:///opt/handlers/cache.py`
    PythonFile(PathBuf),
    /// `exec:/opt/bin/resize`
    Exec(PathBuf),
    /// `https://example.org/resize`
    Http(Url),
    /// `builtin:echo`
    Builtin(Builtin),
}

/// Identifiers joined by dots.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DottedName(String);

const FORMS: &str = "write a Python module (`my.handlers`), `file:///path/to/module.py`, `exec:/path/to/program`, \
                     `https://…`, `http://…` or `builtin:name`";

impl ModuleUri {
    pub fn parse(uri: &str) -> Result<Self, Problem> {
        let bad = |reason: String| Problem::ModuleUri { uri: uri.to_owned(), reason };
        let Some((scheme, rest)) = uri.split_once(':') else {
            let name = DottedName::parse(uri).map(Self::PythonModule);
            return name.ok_or_else(|| bad(format!("is no name of a Python module: {FORMS}")));
        };
        match scheme {
            "file" => file_path(uri).map(Self::PythonFile).map_err(bad),
            "exec" => absolute(rest).map(Self::Exec).map_err(bad),
            "http" | "https" => http_url(uri).map(Self::Http).map_err(bad),
            "builtin" => Builtin::parse(rest).map(Self::Builtin).map_err(bad),
            _ => Err(bad(format!("has the unknown scheme `{scheme}:`: {FORMS}"))),
        }
    }
}

fn file_path(uri: &str) -> Result<PathBuf, String> {
    let form = "must be `file:///` and an absolute path of this machine";
    if !uri.starts_with("file:///") {
        return Err(form.to_owned());
    }
    let url = Url::parse(uri).map_err(|error| format!("is no URI: {error}"))?;
    let path = url.to_file_path().map_err(|()| form.to_owned())?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py")) {
        absolute(&path.to_string_lossy())
    } else {
        Err("must name a file that ends with `.py`".to_owned())
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute()
        && path.components().all(is_plain)
        && !path.as_os_str().as_encoded_bytes().contains(&0)
    {
        Ok(path.to_owned())
    } else {
        Err("must name an absolute path without `..`".to_owned())
    }
}

fn http_url(uri: &str) -> Result<Url, String> {
    plain_url(uri).map_err(|error| match error {
        BadUrl::Syntax(_) => error.to_string(),
        BadUrl::Userinfo => format!("{error}, and sign with `metadata.secret`"),
    })
}

impl DottedName {
    pub fn parse(text: &str) -> Option<Self> {
        text.split('.').all(is_identifier).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// The part after the last dot.
    pub fn short(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or(&self.0)
    }

    pub fn is_short(&self) -> bool {
        !self.0.contains('.')
    }
}

impl fmt::Display for DottedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    let starts = letters.next().is_some_and(|first| first == '_' || first.is_alphanumeric());
    starts && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
}
