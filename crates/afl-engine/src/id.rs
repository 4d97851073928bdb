//! The names of runs and of the steps in them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One execution of a workflow. Fresh and unguessable; the caller that starts the run makes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Arc<str>);

impl RunId {
    /// No run's id begins so: records beside the runs have such names.
    pub const NO_RUN: char = '@';

    pub fn is_run(&self) -> bool {
        !self.0.starts_with(Self::NO_RUN)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A step of a run, by its way from the root: creating it twice names the same step.
///
/// The text begins with `w`, the workflow itself, and has a letter and a number for each further level. It
/// sorts as the program does: clauses, statements and elements in their order, a parent before its children,
/// everything below a step between it and its next sibling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(Arc<str>);

/// One level of a [`StepId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Segment {
    /// An `andThen` of a step.
    Clause(u32),
    /// The block that runs when a step failed.
    Catch,
    /// An element of a `foreach`.
    Element(u32),
    /// A mixin of a step.
    Mixin(u32),
    /// A statement of a block, counted over all cases of a `when`.
    Statement(u32),
}

/// A text that is no [`StepId`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no step's id")]
pub struct NotAStepId(String);

const ROOT: &str = "w";

impl StepId {
    pub fn root() -> Self {
        Self(ROOT.into())
    }

    #[must_use]
    pub fn child(&self, segment: Segment) -> Self {
        let mut text = String::with_capacity(self.0.len() + 4);
        text.push_str(&self.0);
        segment.push_onto(&mut text);
        Self(text.into())
    }

    /// The step or block that this one belongs to, and its place there; `None` for the root.
    pub fn split(&self) -> Option<(Self, Segment)> {
        let at = self.0.rfind(|character: char| character.is_ascii_lowercase()).filter(|at| *at > 0)?;
        let segment = Segment::parse(&self.0[at..]).expect("a step's id was checked when it was made");
        Some((Self(self.0[..at].into()), segment))
    }

    pub fn parent(&self) -> Option<Self> {
        self.split().map(|(parent, _)| parent)
    }

    /// The steps above this one, without those in whose `catch` it stands: their failure ends at such a `catch`.
    pub fn outside_catches(&self) -> impl Iterator<Item = Self> + use<> {
        let above = std::iter::successors(self.split(), |(parent, _)| parent.split());
        above.filter(|(_, segment)| *segment != Segment::Catch).map(|(parent, _)| parent)
    }

    /// From the level below the root to this step.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let mut rest = &self.0[ROOT.len()..];
        std::iter::from_fn(move || {
            let end = rest.get(1..)?.find(|c: char| c.is_ascii_lowercase()).map_or(rest.len(), |at| at + 1);
            let (segment, behind) = rest.split_at(end);
            rest = behind;
            Segment::parse(segment)
        })
    }

    pub fn depth(&self) -> usize {
        self.0.bytes().filter(u8::is_ascii_lowercase).count() - 1
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_within(&self, other: &Self) -> bool {
        // A number in an id ends where a letter begins, so a text prefix may still split one.
        self.0.strip_prefix(&*other.0).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl std::str::FromStr for StepId {
    type Err = NotAStepId;

    fn from_str(text: &str) -> Result<Self, NotAStepId> {
        let wrong = || NotAStepId(text.to_owned());
        let segments = text.strip_prefix(ROOT).ok_or_else(wrong)?;
        let id = Self(text.into());
        let mut again = String::with_capacity(segments.len());
        if !segments.is_ascii() {
            return Err(wrong());
        }
        for segment in id.segments() {
            segment.push_onto(&mut again);
        }
        if again == segments { Ok(id) } else { Err(wrong()) }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for StepId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Segment {
    /// The number among its siblings of the same kind.
    pub const fn place(self) -> u32 {
        match self {
            Self::Clause(place) | Self::Element(place) | Self::Mixin(place) | Self::Statement(place) => place,
            Self::Catch => 0,
        }
    }

    /// The sibling of the same kind at this place.
    #[must_use]
    pub const fn beside(self, place: u32) -> Self {
        match self {
            Self::Clause(_) => Self::Clause(place),
            Self::Catch => Self::Catch,
            Self::Element(_) => Self::Element(place),
            Self::Mixin(_) => Self::Mixin(place),
            Self::Statement(_) => Self::Statement(place),
        }
    }

    fn push_onto(self, text: &mut String) {
        let (letter, number) = match self {
            Self::Clause(number) => ('b', Some(number)),
            Self::Catch => ('c', None),
            Self::Element(number) => ('e', Some(number)),
            Self::Mixin(number) => ('m', Some(number)),
            Self::Statement(number) => ('s', Some(number)),
        };
        text.push(letter);
        if let Some(number) = number {
            push_number(text, number);
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (letter, digits) = text.split_at_checked(1)?;
        let number = || digits.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse().ok();
        Some(match letter.as_bytes()[0] {
            b'b' => Self::Clause(number()?),
            b'c' => Self::Catch,
            b'e' => Self::Element(number()?),
            b'm' => Self::Mixin(number()?),
            b's' => Self::Statement(number()?),
            _ => return None,
        })
    }
}

/// One digit as it is; longer numbers behind a capital for their length, so that texts sort as numbers.
fn push_number(text: &mut String, number: u32) {
    let highest = number.checked_ilog10().unwrap_or(0);
    if highest > 0 {
        text.push(char::from(b'A' + (highest - 1) as u8));
    }
    for place in (0..=highest).rev() {
        text.push(char::from(b'0' + (number / 10_u32.pow(place) % 10) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, StepId};

    #[test]
    fn ids_sort_as_the_program_does_and_split_into_their_levels() {
        let map = StepId::root().child(Segment::Clause(0));
        let elements: Vec<StepId> =
            [0, 9, 10, 99, 100, 12_345].map(|at| map.child(Segment::Element(at))).into();
        assert!(elements.is_sorted());
        let inner = elements[2].child(Segment::Statement(3)).child(Segment::Catch);
        assert!(elements[2] < inner && inner < elements[3]);
        assert_eq!(inner.as_str(), "wb0eA10s3c");
        let levels = [Segment::Clause(0), Segment::Element(10), Segment::Statement(3), Segment::Catch];
        assert!(inner.segments().eq(levels));
        assert_eq!(inner.depth(), 4);
        assert!(inner.is_within(&elements[2]) && !elements[2].is_within(&inner));
        assert_eq!("wb0eA10s3c".parse(), Ok(inner));
        assert_eq!(StepId::root().split(), None);
        for wrong in ["", "x", "w0", "wb", "wb01", "wbA1", "wz3", "wb0 "] {
            assert!(wrong.parse::<StepId>().is_err(), "{wrong}");
        }
    }
}
