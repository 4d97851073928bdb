//! Where the next page of a list begins, as a text that surfaces hand out and take back.

use std::fmt;
use std::str::FromStr;

use afl_engine::id::{RunId, StepId};
use afl_store::backend::BucketCursor;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The place after the last entry of a page. Its text is opaque: a caller returns it as it is.
///
/// The text is base64 of a version, the rank, the scope with its length, the id, and a checksum of all that. The
/// checksum finds a text that was cut or mistyped; it protects no secret, so it needs no key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageCursor(pub(crate) BucketCursor);

/// A text that is no [`PageCursor`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no cursor: use the text that came with the page before, or none for the first page")]
pub struct NotACursor(String);

impl PageCursor {
    /// The place after the task of a step.
    pub(crate) fn of_step(run: &RunId, step: &StepId) -> Self {
        Self(BucketCursor { rank: 0, scope: run.0.clone(), id: step.to_string() })
    }

    pub(crate) fn step_of(&self, run: &RunId) -> Result<StepId, NotACursor> {
        let step = self.0.id.parse().ok().filter(|_| self.0.scope == run.0);
        step.ok_or_else(|| self.refused())
    }

    /// The error for a cursor of another list.
    pub(crate) fn refused(&self) -> NotACursor {
        NotACursor(self.to_string())
    }
}

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = size_of::<u32>();

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BucketCursor { rank, scope, id } = &self.0;
        let mut bytes = vec![VERSION];
        bytes.extend(rank.to_be_bytes());
        bytes.extend((scope.len() as u64).to_be_bytes());
        bytes.extend(scope.as_bytes());
        bytes.extend(id.as_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for PageCursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        bytes.and_then(|bytes| parse(&bytes)).ok_or_else(|| NotACursor(text.to_owned()))
    }
}

fn parse(bytes: &[u8]) -> Option<PageCursor> {
    let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if checksum != crc32fast::hash(content).to_be_bytes() {
        return None;
    }
    let (version, rest) = content.split_first()?;
    let (rank, rest) = rest.split_first_chunk()?;
    let (scope_length, rest) = rest.split_first_chunk()?;
    let scope_length = usize::try_from(u64::from_be_bytes(*scope_length)).ok()?;
    let (scope, id) = rest.split_at_checked(scope_length)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let cursor = BucketCursor { rank: i64::from_be_bytes(*rank), scope: text(scope)?.into(), id: text(id)? };
    (*version == VERSION).then_some(PageCursor(cursor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cursors() -> impl Strategy<Value = PageCursor> {
        (any::<i64>(), any::<String>(), any::<String>())
            .prop_map(|(rank, scope, id)| PageCursor(BucketCursor { rank, scope: scope.into(), id }))
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(cursor in cursors()) {
            prop_assert_eq!(cursor.to_string().parse::<PageCursor>(), Ok(cursor));
        }

        #[test]
        fn a_cut_or_changed_text_is_refused(cursor in cursors(), at in any::<prop::sample::Index>()) {
            let text = cursor.to_string();
            let at = at.index(text.len());
            let other = if text[at..].starts_with('A') { "B" } else { "A" };
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            for wrong in [&text[..at], &changed, &format!("{text}A")] {
                prop_assert_eq!(wrong.parse::<PageCursor>(), Err(NotACursor(wrong.to_owned())));
            }
        }
    }

    #[test]
    fn the_error_names_the_text_and_the_remedy() {
        let error = "page2".parse::<PageCursor>().expect_err("it is no cursor");
        assert_eq!(
            error.to_string(),
            "`page2` is no cursor: use the text that came with the page before, or none for the first page"
        );
    }
}
