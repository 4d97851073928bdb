//! Which scope a record belongs to: its run, or one of the scopes that all runs share.

use std::sync::Arc;

use afl_engine::id::RunId;

use super::error::Error;
use super::piece::put_text;
use super::{Store, seal};
use crate::backend::{Batch, Durability, Write};
use crate::record::Key;

const PROGRAMS: &str = "@programs";
pub(super) const KEYS: &str = "@keys";

/// The scopes beside the runs and their system tasks.
pub const SHARED: [&str; 8] = [
    PROGRAMS,
    KEYS,
    "@channels",
    "@handler_registrations",
    "@locks",
    "@notifications",
    "@outbox",
    "@servers",
];

/// Compiled programs, by the hash of what they mean; written once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRecord {
    /// `sha256:…`.
    pub hash: String,
    pub json: String,
}

/// The result of discarding a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscardResult {
    Gone,
    /// It can be read, so it stays.
    Readable,
    /// A newer release can read it, so it stays.
    Newer,
    Absent,
}

impl Store {
    /// Keeps a program; keeping it again changes nothing.
    pub async fn publish(&self, program: ProgramRecord) -> Result<(), Error> {
        let key = self.shared_key(PROGRAMS, &program.hash);
        if self.record(&key).await?.is_some() {
            return Ok(());
        }
        // The same hash is the same program, from any writer.
        if program.json.len() <= self.piece_bytes() {
            let write = put_text(key, &program.json);
            return Ok(self.write_once(Batch::new(vec![write], Durability::Durable)).await?);
        }
        let piece = |at| self.program_piece(&program.hash, at);
        self.write_pieces(key, piece, &program.json, Durability::Durable).await
    }

    pub async fn program(&self, hash: &str) -> Result<Option<ProgramRecord>, Error> {
        let found = self.record(&self.shared_key(PROGRAMS, hash)).await?;
        let Some(record) = found else { return Ok(None) };
        let json = self.whole_text(&record, |at| self.program_piece(hash, at)).await?;
        Ok(Some(ProgramRecord { hash: hash.to_owned(), json }))
    }

    fn program_piece(&self, hash: &str, at: usize) -> Key {
        self.shared_key(PROGRAMS, &format!("{hash}/{at:06}"))
    }

    /// Deletes a record of a shared scope, if it is still the one that cannot be read. Says whether it was there.
    pub async fn discard_shared(&self, scope: &str, id: &str) -> Result<DiscardResult, Error> {
        let found = self.record(&self.shared_key(scope, id)).await?;
        let Some(record) = found else { return Ok(DiscardResult::Absent) };
        match seal::opened(&record) {
            Ok(_) => return Ok(DiscardResult::Readable),
            Err(error) if error.is_of_newer_release() => return Ok(DiscardResult::Newer),
            Err(_) => {}
        }
        self.write(vec![Write::delete_of(&record)], Durability::Durable).await?;
        Ok(DiscardResult::Gone)
    }

    pub(crate) fn run_key(&self, run: &RunId, id: String) -> Key {
        Key { tenant: self.tenant.clone(), scope: run.0.clone(), id }
    }

    /// Where an idempotency key is kept. It is text of a stranger, so only its length is limited.
    pub(crate) fn idempotency_key(&self, key: &str) -> Key {
        self.shared_key(KEYS, key)
    }

    pub(crate) fn shared_key(&self, scope: &str, id: &str) -> Key {
        Key { tenant: self.tenant.clone(), scope: scope.into(), id: id.to_owned() }
    }
}

/// The run that a record belongs to, if it belongs to one.
pub(crate) fn run_of(key: &Key) -> Option<RunId> {
    Some(RunId(Arc::clone(&key.scope))).filter(RunId::is_run)
}
