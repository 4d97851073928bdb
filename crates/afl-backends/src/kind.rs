//! Kinds of stores: the address of a store names its kind, and the kind opens it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use afl_store::backend::{Backend, StoreError};
use afl_store::clock::Clock;
use afl_store::memory::Memory;

use crate::KINDS;

/// For tests and trials: the records end with the process.
pub(crate) const MEMORY: StoreKind = StoreKind {
    schemes: &["memory"],
    form: "memory:",
    advice: "",
    is_kept: false,
    is_file: false,
    #[cfg(feature = "testing")]
    test_server: None,
    accepts: |rest| matches!(rest, "" | "//"),
    open: |_, _| Box::pin(async { Ok(Arc::new(Memory::new(Clock::System)) as Arc<dyn Backend>) }),
};

pub struct StoreKind {
    pub(crate) schemes: &'static [&'static str],
    /// How its address is written.
    pub form: &'static str,
    /// More advice on writing it, in parentheses; may be empty.
    pub advice: &'static str,
    /// Whether its records outlive the process.
    pub is_kept: bool,
    /// Whether the address names a file.
    pub(crate) is_file: bool,
    /// The environment variable with the address of a server that all tests share; none for a kind without a server.
    #[cfg(feature = "testing")]
    pub(crate) test_server: Option<&'static str>,
    /// Whether the text behind the scheme and its colon is good.
    pub(crate) accepts: fn(&str) -> bool,
    pub(crate) open: fn(StoreAddress, WaitObserver) -> Opening,
}

impl StoreKind {
    /// Its scheme in an address.
    pub fn name(&self) -> &'static str {
        self.schemes[0]
    }

    /// Where a test has a store of this kind: in a file of this folder, or on the server that all tests share.
    ///
    /// # Panics
    /// When there is no such server: a test that skips itself proves nothing.
    #[cfg(feature = "testing")]
    pub fn test_url(&self, folder: &std::path::Path) -> String {
        match self.test_server {
            Some(variable) => std::env::var(variable).unwrap_or_else(|_| {
                panic!("{variable} is not set: run `cargo xtask test`, which starts a server")
            }),
            None if self.is_file => format!("{}:{}", self.name(), folder.join("store.db").display()),
            None => self.form.to_owned(),
        }
    }
}

impl fmt::Debug for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Backend>, StoreError>> + Send>>;

/// The address of a store, which names its kind: `sqlite:PATH`.
#[derive(Clone, Debug)]
pub struct StoreAddress {
    pub kind: &'static StoreKind,
    url: String,
}

impl StoreAddress {
    /// None for a text that is no address of any kind.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once(':')?;
        let kind = KINDS.iter().find(|kind| kind.schemes.contains(&scheme))?;
        (kind.accepts)(rest).then(|| Self { kind, url: url.to_owned() })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path of a store in a file; empty when the address names none.
    pub fn file(&self) -> Option<&str> {
        let (_, rest) = self.url.split_once(':').filter(|_| self.kind.is_file)?;
        let path = rest.strip_prefix("//").unwrap_or(rest);
        Some(if path.trim_start_matches('/').is_empty() { "" } else { path })
    }

    pub async fn open(self, on_wait: WaitObserver) -> Result<Arc<dyn Backend>, StoreError> {
        (self.kind.open)(self, on_wait).await
    }
}

/// Opens the store at an address.
pub async fn open(url: &str) -> Result<Arc<dyn Backend>, StoreError> {
    let forms: Vec<&str> = KINDS.iter().map(|kind| kind.form).collect();
    let bad =
        || StoreError::Refused(format!("this is no address of a store: write one of {}", forms.join(", ")));
    StoreAddress::parse(url).ok_or_else(bad)?.open(WaitObserver::default()).await
}

/// Called when a write waits long for another process, with the error that the write returns if the wait is in vain.
#[derive(Clone)]
pub struct WaitObserver(pub(crate) Arc<dyn Fn(&StoreError) + Send + Sync>);

impl WaitObserver {
    /// The call holds the write up, so it must be quick.
    pub fn new(observe: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }
}

impl Default for WaitObserver {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for WaitObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitObserver")
    }
}

#[cfg(all(test, feature = "sqlite", feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_and_a_place() {
        let file = |url: &str| StoreAddress::parse(url).unwrap().file().map(str::to_owned);
        assert_eq!(file("memory:"), None);
        assert_eq!(file("postgres://me@host/db"), None);
        for (url, path) in [
            ("sqlite:", ""),
            ("sqlite://", ""),
            ("sqlite:a/b.db", "a/b.db"),
            ("sqlite:/a/b.db", "/a/b.db"),
            ("sqlite:///a/b.db", "/a/b.db"),
        ] {
            assert_eq!(file(url).as_deref(), Some(path), "{url}");
        }
        for wrong in ["a.db", "mysql://x", "memory:x", "postgres:x", "postgres://me:se@cret@host/db", ""] {
            assert!(StoreAddress::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_kind_with_a_folder_is_held_to_the_conformance_list() {
        for kind in KINDS.iter().filter(|kind| kind.is_kept) {
            let tests = format!("{}/tests/{}/main.rs", env!("CARGO_MANIFEST_DIR"), kind.name());
            let tests = std::fs::read_to_string(&tests).unwrap_or_else(|error| panic!("{tests}: {error}"));
            assert!(tests.contains("afl_store::conformance!("), "{kind:?} has no line of conformance");
        }
    }
}
