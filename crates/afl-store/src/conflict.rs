//! Optimistic writes: read, decide, write what the reads allow, and begin again when another writer was faster.

use crate::backend::StoreError;
use crate::queue::Refusal;
use crate::store::Error;

/// After so many attempts the last conflict is returned. There is no wait between attempts: a conflict means that
/// another writer succeeded, so the writers together always make progress. A person who pauses a run competes with an
/// evaluator that commits over and over, and must get through.
pub const CONFLICT_TRIES: usize = 64;

/// An error that says whether to read again and decide anew.
pub trait MayConflict {
    fn is_conflict(&self) -> bool;
}

/// Repeats the whole attempt, its reads too, until it does not conflict with another writer.
pub async fn retry_on_conflict<T, E: MayConflict, F: Future<Output = Result<T, E>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if error.is_conflict() && tries < CONFLICT_TRIES => tries += 1,
            result => return result,
        }
    }
}

/// Whether a write succeeded; `false` when another writer was faster, for callers that leave it to the other.
pub fn unless_overtaken<T, E: MayConflict>(written: Result<T, E>) -> Result<bool, E> {
    match written {
        Err(error) if error.is_conflict() => Ok(false),
        written => written.map(|_| true),
    }
}

impl MayConflict for StoreError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Restarted)
    }
}

impl MayConflict for Error {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }
}

impl MayConflict for Refusal {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_conflict())
    }
}
