//! Versions of stored records, and the epochs in which they were read.
//!
//! Problem: a batch names the version of each record that it replaces, so that a decision on old data is refused. That
//! is not enough when a database server crashes under living processes. The crash takes relaxed commits back, and the
//! next writers spend the same version numbers again, on other contents. A process that read before the crash would
//! match the number and overwrite them: counters go wrong, accepted outcomes are lost.
//!
//! Approach: an epoch is one incarnation of the database server as one process sees it. A backend stamps each record
//! with the epoch in which the read began, and a commit refuses a batch that expects a version of an earlier epoch. The
//! stamp is part of the version, so no caller can forget it. An evaluation reads its run first and writes it with
//! every commit, so the run's version guards all that the evaluation has read since.
//!
//! Rejected: an epoch as an argument beside the version. Three of the store's writers did not pass it, and one world in
//! 3,000 of the simulation broke a promise. Rejected too: durable commits only, which cost one disk sync for each step.

/// One incarnation of the database server, counted by each process for itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Epoch(pub u64);

/// The version that a read saw. A version of a later epoch is newer than any of an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// When the read began.
    pub epoch: Epoch,
    /// One for a new record, one more with each write.
    pub number: u64,
}

impl Version {
    /// That of a record that did not exist before.
    pub fn first(epoch: Epoch) -> Self {
        Self { epoch, number: 1 }
    }

    /// That of the record after a write that expected this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }
}
