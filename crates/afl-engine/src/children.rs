//! How far the children of a block or of a step are, without looking at them.

use serde::{Deserialize, Serialize};

use crate::failure::StepFailure;
use crate::wire;

/// Stored with the parent, so that a result costs the same whatever the number of its siblings.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Children {
    /// How many there can be.
    pub total: u32,
    /// Those created so far that are neither complete nor failed.
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub open: u32,
    /// The elements of a `foreach` created so far.
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub created: u32,
    /// Which are complete; not kept for a `foreach`, where nothing depends on one element.
    #[serde(default, skip_serializing_if = "Bits::is_empty")]
    pub done: Bits,
    /// Those whose dependencies are complete and that are to be created in the next iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready: Vec<u32>,
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub failed: u32,
    /// The first of them in order, not in time. Uncertain work comes before all other failures: only a person may decide
    /// about it, so no `catch` above may end it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ChildFailure>,
}

/// How many failures of its children a parent keeps.
const KEPT_FAILURES: usize = 8;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildFailure {
    pub child: u32,
    pub failure: StepFailure,
}

impl Children {
    pub fn of(total: u32) -> Self {
        Self { total, ..Self::default() }
    }

    /// Whether nothing is running and nothing more will be created.
    pub fn are_settled(&self) -> bool {
        self.open == 0 && self.ready.is_empty()
    }

    /// Counts a child that ends. Only damaged records can count fewer children than end: the panic stops the evaluation,
    /// and the driver quarantines the run. A wrapped counter would be stored.
    pub fn close(&mut self) {
        self.open = self.open.checked_sub(1).expect("a child that ends was open");
    }

    pub fn fail(&mut self, child: u32, failure: StepFailure) {
        self.close();
        self.failed += 1;
        let rank = |child: u32, failure: &StepFailure| (!failure.is_uncertain(), child);
        let own = rank(child, &failure);
        let at = self.failures.partition_point(|earlier| rank(earlier.child, &earlier.failure) < own);
        self.failures.insert(at, ChildFailure { child, failure });
        self.failures.truncate(KEPT_FAILURES);
    }

    /// Takes the failure of a child back.
    pub fn reopen(&mut self, child: u32) {
        self.open += 1;
        self.failed = self.failed.checked_sub(1).expect("a child that is retried had failed");
        self.failures.retain(|failed| failed.child != child);
    }

    /// The failure of the parent.
    pub fn first_failure(&self) -> Option<&StepFailure> {
        self.failures.first().map(|failed| &failed.failure)
    }
}

/// A set of small numbers, as hex digits of four each on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bits(Vec<u8>);

impl Bits {
    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 4).is_some_and(|digit| digit & (1 << (number % 4)) != 0)
    }

    pub fn insert(&mut self, number: u32) {
        let at = number as usize / 4;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 4);
    }

    pub fn remove(&mut self, number: u32) {
        if let Some(digit) = self.0.get_mut(number as usize / 4) {
            *digit &= !(1 << (number % 4));
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|digit| digit.count_ones()).sum()
    }
}

impl Serialize for Bits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digit = |bits: &u8| char::from_digit(u32::from(*bits), 16).expect("a digit holds four bits");
        serializer.collect_str(&self.0.iter().map(digit).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let digit = |character: char| character.to_digit(16).map(|bits| bits as u8);
        let digits: Option<Vec<u8>> = text.chars().map(digit).collect();
        digits.map(Self).ok_or_else(|| serde::de::Error::custom("a set of numbers is written in hex digits"))
    }
}
