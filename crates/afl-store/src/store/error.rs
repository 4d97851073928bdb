//! Errors between a record and its meaning.

use afl_engine::id::RunId;

use super::scope;
use crate::backend::StoreError;
use crate::conflict::MayConflict;
use crate::record::Key;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Backend(StoreError),
    /// The run is blocked until a person repairs it; the other runs are not.
    #[error("run {run} is quarantined: its record `{record}` {defect}{}", .defect.way_out("the run"))]
    Unreadable { run: RunId, record: String, defect: Defect },
    #[error("the record `{}` of `{}` {defect}{}", .key.id, .key.scope, .defect.way_out("it"))]
    Shared { key: Key, defect: Defect },
}

/// Why a record cannot be believed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Defect {
    #[error("is damaged (its checksum is wrong)")]
    Checksum,
    #[error("is damaged ({0})")]
    Body(String),
    #[error("was written by a newer release (version {found}, this one knows {known}): use that release")]
    Newer { found: u32, known: u32 },
    #[error("is missing, though others refer to it")]
    Missing,
}

impl Defect {
    fn way_out(&self, discarded: &str) -> String {
        match self {
            Self::Checksum | Self::Body(_) | Self::Missing => {
                format!(": restore it from a backup, or discard {discarded}")
            }
            Self::Newer { .. } => String::new(),
        }
    }
}

impl Error {
    pub(crate) fn unreadable(key: &Key, defect: Defect) -> Self {
        match scope::run_of(key) {
            Some(run) => Self::Unreadable { run, record: key.id.clone(), defect },
            None => Self::Shared { key: key.clone(), defect },
        }
    }

    /// The basis of the write has changed: read again and decide anew.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Backend(error) if error.is_conflict())
    }

    /// Whether another release can read what this one cannot.
    pub fn is_of_newer_release(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { defect: Defect::Newer { .. }, .. }
                | Self::Shared { defect: Defect::Newer { .. }, .. }
        )
    }

    /// Whether a record is wrong, and not the store.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Shared { .. })
    }

    /// Whether the call may have taken effect all the same.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Backend(StoreError::Unavailable { .. }))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Backend(error)
    }
}
