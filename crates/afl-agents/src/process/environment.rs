//! The environment variables that a handler may see.

use std::env;
use std::ffi::OsString;

/// What programs need to find other programs, files, languages and certificates, and nothing secret.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Of our own variables the harmless ones and those that the operator names.
pub(crate) fn pass(chosen: &[String]) -> impl Iterator<Item = (String, OsString)> {
    let names = HARMLESS.iter().copied().chain(chosen.iter().map(String::as_str));
    names.filter_map(|name| Some((name.to_owned(), env::var_os(name)?)))
}
