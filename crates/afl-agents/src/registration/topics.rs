//! Which facets an agent takes, by patterns over their names (document 000 §8.8).

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Patterns with `*`, `?` and `[seq]`, of which one must match. None at all match everything.
#[derive(Clone, Debug)]
pub struct Topics(Option<GlobSet>);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("topic `{pattern}` is no pattern: {reason}")]
pub struct BadTopic {
    pattern: String,
    reason: String,
}

impl Topics {
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, BadTopic> {
        let mut set = GlobSetBuilder::new();
        let mut is_empty = true;
        for pattern in patterns {
            is_empty = false;
            set.add(Glob::new(pattern).map_err(|error| bad(pattern, &error))?);
        }
        if is_empty {
            return Ok(Self(None));
        }
        Ok(Self(Some(set.build().map_err(|error| bad("", &error))?)))
    }

    pub fn admit(&self, facet: &str) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(facet))
    }
}

fn bad(pattern: &str, error: &globset::Error) -> BadTopic {
    BadTopic { pattern: pattern.to_owned(), reason: error.kind().to_string() }
}
