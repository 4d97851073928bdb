//! Which facets an agent takes (document 000 §8.8), and which registration their work goes to (document 000 §3.4).

use afl_runtime::agent::{HandlerMatch, match_handler};
use globset::{Glob, GlobSet, GlobSetBuilder};

use super::Registration;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoHandler {
    #[error("no handler is registered for {facet}: register one for `{facet}`")]
    Unknown { facet: String },
    /// The short one may be meant for the other namespace.
    #[error(
        "`{short}` is registered, and so is `{other}`: it is not clear whose work {facet} is, so register `{facet}` itself"
    )]
    Ambiguous { facet: String, short: String, other: String },
}

/// The registration of this very name, else one of its short name when no other namespace has a claim to that.
/// A qualified registration never does the work of a namesake.
pub fn find<'a>(
    registrations: impl IntoIterator<Item = &'a Registration>,
    facet: &str,
) -> Result<&'a Registration, NoHandler> {
    let offers =
        registrations.into_iter().map(|registration| (registration.facet_name.as_str(), registration));
    match match_handler(offers, facet) {
        HandlerMatch::Exact(registration) | HandlerMatch::Short(registration) => Ok(registration),
        HandlerMatch::Ambiguous { short, other } => Err(NoHandler::ambiguous(facet, short, other)),
        HandlerMatch::Missing => Err(NoHandler::Unknown { facet: facet.to_owned() }),
    }
}

impl NoHandler {
    pub(crate) fn ambiguous(facet: &str, short: &str, other: &str) -> Self {
        Self::Ambiguous { facet: facet.to_owned(), short: short.to_owned(), other: other.to_owned() }
    }
}

/// Patterns with `*`, `?` and `[seq]`, of which one must match. None at all match everything.
#[derive(Clone, Debug, Default)]
pub struct Topics(GlobSet);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("topic `{pattern}` is no pattern: {reason}")]
pub struct BadTopic {
    pattern: String,
    reason: String,
}

impl Topics {
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, BadTopic> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(Glob::new(pattern).map_err(|error| bad(pattern, &error))?);
        }
        Ok(Self(set.build().map_err(|error| bad("", &error))?))
    }

    pub fn admit(&self, facet: &str) -> bool {
        self.0.is_empty() || self.0.is_match(facet)
    }
}

fn bad(pattern: &str, error: &globset::Error) -> BadTopic {
    BadTopic { pattern: pattern.to_owned(), reason: error.kind().to_string() }
}
