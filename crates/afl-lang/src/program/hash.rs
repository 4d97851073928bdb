//! The version of a program: a hash of what it means.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::Program;
use super::wire::ByteSink;

/// SHA-256 of the [canonical form](Program::canonical); written `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramHash([u8; 32]);

const PREFIX: &str = "sha256:";

impl Program {
    /// The version that a run is pinned to. Where the source was changed only in layout, comments or
    /// file names, it stays.
    pub fn hash(&self) -> ProgramHash {
        let mut hasher = Hasher(Sha256::new());
        self.write_canonical(&mut hasher);
        ProgramHash(hasher.0.finalize().into())
    }
}

struct Hasher(Sha256);

impl ByteSink for Hasher {
    fn take(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    fn count(&self) -> usize {
        0
    }

    fn repeat(&mut self, _: Range<usize>) {
        unreachable!("the canonical form repeats nothing")
    }
}

impl fmt::Display for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a program hash is `sha256:` and 64 lower-case hex digits")]
pub struct NotAHash;

impl FromStr for ProgramHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(is_digit));
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(NotAHash)?;
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| NotAHash)?;
        }
        Ok(Self(bytes))
    }
}
