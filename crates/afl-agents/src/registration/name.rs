//! Names of facets and modules.

use std::fmt;

/// Identifiers joined by dots.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DottedName(String);

impl DottedName {
    pub fn parse(text: &str) -> Option<Self> {
        text.split('.').all(is_identifier).then(|| Self(text.to_owned()))
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
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
