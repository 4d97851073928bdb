//! Which scope a record belongs to: its run, or one of the scopes that all runs share.

use std::sync::Arc;

use afl_engine::id::RunId;

use super::Store;
use super::error::{Defect, Error};
use super::seal;
use crate::backend::{Change, Durability, Expect, StoreError, Write};
use crate::record::Key;

/// No run's id begins with this.
const SHARED: char = '@';
const PROGRAMS: &str = "@programs";
const KEYS: &str = "@keys";

/// Compiled programs, by the hash of what they mean; written once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// `sha256:…`.
    pub hash: String,
    pub json: Vec<u8>,
}

impl Store {
    /// Keeps a program; keeping it again changes nothing.
    pub async fn publish(&self, program: Program) -> Result<(), Error> {
        let key = self.shared_key(PROGRAMS, &program.hash);
        if self.backend.get(std::slice::from_ref(&key)).await?[0].is_some() {
            return Ok(());
        }
        let content = seal::sealed(&key, program.json, None);
        let write = Write { key, expect: Expect::Absent, change: Change::Put(content) };
        match self.write(vec![write], Durability::Durable).await {
            // The same hash is the same program, whoever wrote it.
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn program(&self, hash: &str) -> Result<Option<Program>, Error> {
        let key = self.shared_key(PROGRAMS, hash);
        let Some(record) = self.backend.get(&[key]).await?.pop().flatten() else { return Ok(None) };
        let json = seal::opened(&record)?.to_vec();
        Ok(Some(Program { hash: hash.to_owned(), json }))
    }

    pub(crate) fn run_key(&self, run: &RunId, id: String) -> Key {
        Key { tenant: self.tenant.clone(), scope: run.0.clone(), id }
    }

    /// Where an idempotency key is kept. It is text of a stranger, so only its length is limited.
    pub(crate) fn idempotency_key(&self, key: &str) -> Key {
        self.shared_key(KEYS, key)
    }

    fn shared_key(&self, scope: &str, id: &str) -> Key {
        Key { tenant: self.tenant.clone(), scope: scope.into(), id: id.to_owned() }
    }
}

/// The run that a record belongs to, if it belongs to one.
pub(crate) fn run_of(key: &Key) -> Option<RunId> {
    (!key.scope.starts_with(SHARED)).then(|| RunId(Arc::clone(&key.scope)))
}

/// A record that others refer to is not there.
pub(crate) fn missing(key: &Key) -> Error {
    Error::unreadable(key, Defect::Missing)
}
