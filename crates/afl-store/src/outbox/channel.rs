//! A channel: a named receiver and the filter of its messages.

use std::fmt;
use std::str::FromStr;

use afl_engine::time::Millis;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use url::Url;

use super::message::Topic;
use crate::collection::CollectionItem;

/// Each commit that ends something holds a message for each channel, and has room for so many.
pub const MAX_CHANNELS: usize = 16;
const MAX_NAME_CHARS: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Channel {
    pub to: ChannelTarget,
    /// Patterns over the names of [`Topic`]s.
    pub topics: Vec<String>,
    /// Patterns over the facets of tasks and the workflows of runs; none admit all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facets: Vec<String>,
    /// The name of the agents' secret that messages are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// A disabled channel gets no new messages, and its waiting messages keep waiting.
    pub enabled: bool,
    #[serde(default)]
    pub created: Millis,
    #[serde(default)]
    pub updated: Millis,
}

/// Where messages go.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ChannelTarget {
    /// Nowhere: readers fetch the messages from the store.
    Feed,
    /// Agents post them there.
    Url(String),
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadChannel {
    #[error(
        "`{name}` is no name for a channel: write 1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` or `.`"
    )]
    Name { name: String },
    #[error("`{to}` is no place for messages: write `feed`, or a URL that begins with https:// or http://")]
    Target { to: String },
    /// Without the address, which would show them.
    #[error(
        "the address holds a user name or password: leave them out, and sign with a secret of the agents"
    )]
    Userinfo,
    #[error("`{pattern}` is no pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("no topic fits `{pattern}`: there are {}", topics())]
    Topic { pattern: String },
}

/// A channel ready to be asked whether it wants something.
#[derive(Clone, Debug)]
pub(super) struct ChannelFilter {
    pub(super) channel: String,
    pub(super) opened: Millis,
    topics: Vec<Topic>,
    facets: Option<GlobSet>,
}

impl CollectionItem for Channel {
    const COLLECTION: &'static str = "channels";

    fn rank(&self) -> i64 {
        self.updated.0
    }
}

impl Channel {
    /// Whether it can be kept under this name.
    pub fn check(&self, name: &str) -> Result<(), BadChannel> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.chars().all(plain) {
            return Err(BadChannel::Name { name: name.to_owned() });
        }
        self.filter(name).map(drop)
    }

    pub(super) fn filter(&self, name: &str) -> Result<ChannelFilter, BadChannel> {
        let mut topics = Vec::new();
        for pattern in &self.topics {
            let glob = glob(pattern)?.compile_matcher();
            let before = topics.len();
            topics.extend(Topic::ends().filter(|topic| glob.is_match(topic.name())));
            if topics.len() == before {
                return Err(BadChannel::Topic { pattern: pattern.clone() });
            }
        }
        let facets = match &self.facets[..] {
            [] => None,
            patterns => Some(globs(patterns)?),
        };
        Ok(ChannelFilter { channel: name.to_owned(), opened: self.created, topics, facets })
    }
}

impl ChannelFilter {
    pub(super) fn wants(&self, topic: Topic, facet: &str) -> bool {
        self.topics.contains(&topic) && self.facets.as_ref().is_none_or(|facets| facets.is_match(facet))
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, BadChannel> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
    }
    set.build().map_err(|error| bad(&patterns.join(" "), &error))
}

fn glob(pattern: &str) -> Result<Glob, BadChannel> {
    Glob::new(pattern).map_err(|error| bad(pattern, &error))
}

fn bad(pattern: &str, error: &globset::Error) -> BadChannel {
    BadChannel::Pattern { pattern: pattern.to_owned(), reason: error.kind().to_string() }
}

fn topics() -> String {
    Topic::ends().map(Topic::name).collect::<Vec<_>>().join(", ")
}

const FEED: &str = "feed";
const SCHEMES: [&str; 2] = ["https://", "http://"];

impl FromStr for ChannelTarget {
    type Err = BadChannel;

    fn from_str(text: &str) -> Result<Self, BadChannel> {
        let is_url = |scheme: &&str| text.strip_prefix(*scheme).is_some_and(|rest| !rest.is_empty());
        match text {
            FEED => Ok(Self::Feed),
            _ if SCHEMES.iter().any(is_url) => match plain_url(text) {
                Ok(_) => Ok(Self::Url(text.to_owned())),
                Err(BadUrl::Userinfo) => Err(BadChannel::Userinfo),
                Err(BadUrl::Syntax(_)) => Err(BadChannel::Target { to: text.to_owned() }),
            },
            _ => Err(BadChannel::Target { to: text.to_owned() }),
        }
    }
}

/// A URL that names no user: stored and displayed text is no place for passwords.
pub fn plain_url(text: &str) -> Result<Url, BadUrl> {
    let url = Url::parse(text)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadUrl::Userinfo);
    }
    Ok(url)
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadUrl {
    #[error("is no URL: {0}")]
    Syntax(#[from] url::ParseError),
    #[error("holds a user name or password: leave them out")]
    Userinfo,
}

impl TryFrom<String> for ChannelTarget {
    type Error = BadChannel;

    fn try_from(text: String) -> Result<Self, BadChannel> {
        text.parse()
    }
}

impl From<ChannelTarget> for String {
    fn from(target: ChannelTarget) -> Self {
        match target {
            ChannelTarget::Feed => FEED.to_owned(),
            ChannelTarget::Url(url) => url,
        }
    }
}

/// Without the query, which may hold secrets.
impl fmt::Display for ChannelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed => f.write_str(FEED),
            Self::Url(url) => f.write_str(url.split(['?', '#']).next().unwrap_or(url)),
        }
    }
}

/// As little as is shown to people.
impl fmt::Debug for ChannelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
