//! Large values: each one once in a run, by its hash, in pieces when a record cannot hold it.

use std::collections::BTreeSet;

use afl_engine::attribute::{Blob, BlobHash, ValueRef};
use afl_engine::id::RunId;
use afl_engine::value::Value;

use super::Store;
use super::entity::{BLOBS, PIECES};
use super::error::{Defect, Error};
use super::piece::put_text;
use crate::backend::{Batch, Durability, StoreError};
use crate::record::{Key, Record};

/// The most bytes beside the records of a commit; more is written before it, in commits of its own.
const ALONG_BYTES: usize = 8 << 20;

impl Store {
    /// Commits a batch and the large values that it refers to. A value that is there already is not written again. The
    /// values must still be there when the commit is made, so after a crash of the database it is refused.
    pub(crate) async fn write_with_blobs(
        &self,
        run: &RunId,
        batch: Batch,
        blobs: &[Blob],
    ) -> Result<(), Error> {
        let batch = Batch { since: batch.since.or_else(|| Some(self.epoch())), ..batch };
        if blobs.is_empty() {
            return Ok(self.backend.commit(batch).await?);
        }
        loop {
            let mut all = batch.clone();
            let mut room = ALONG_BYTES.min(self.limits().batch_bytes / 4);
            for blob in self.lacking(run, blobs).await? {
                let key = self.run_key(run, blob_record(&blob.hash));
                if blob.text.len() <= room.min(self.piece_bytes()) {
                    room -= blob.text.len();
                    all.writes.push(put_text(key, &blob.text));
                } else {
                    let piece = |at| self.run_key(run, piece_record(&blob.hash, at));
                    self.write_pieces(key, piece, &blob.text, Durability::Relaxed).await?;
                }
            }
            match self.backend.commit(all).await {
                // Another writer stored the same value meanwhile. Blobs are never deleted alone, so this ends.
                Err(StoreError::Conflict { key }) if key.id.starts_with(BLOBS) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// A value, inline or from its blob; `name` names it in the error when it cannot be read.
    pub async fn value(
        &self,
        run: &RunId,
        held: &ValueRef,
        name: impl Fn() -> String,
    ) -> Result<Value, Error> {
        let blob = match held {
            ValueRef::Inline(value) => return Ok(value.clone()),
            ValueRef::Blob(blob) => blob,
        };
        let unreadable = |defect| Error::Unreadable { run: run.clone(), record: name(), defect };
        let key = self.run_key(run, blob_record(&blob.hash));
        let record = self.record(&key).await?.ok_or_else(|| unreadable(Defect::Missing))?;
        let text = self.blob(run, &record).await?;
        serde_json::from_str(&text).map_err(|error| unreadable(Defect::Body(error.to_string())))
    }

    pub async fn has_blob(&self, run: &RunId, hash: &BlobHash) -> Result<bool, Error> {
        let key = self.run_key(run, blob_record(hash));
        Ok(self.record(&key).await?.is_some())
    }

    pub(crate) async fn blob(&self, run: &RunId, record: &Record) -> Result<String, Error> {
        let hash = BlobHash(record.key.id[BLOBS.len()..].to_owned());
        self.whole_text(record, |piece| self.run_key(run, piece_record(&hash, piece))).await
    }

    /// Those that are not stored yet, each once.
    async fn lacking<'a>(&self, run: &RunId, blobs: &'a [Blob]) -> Result<Vec<&'a Blob>, Error> {
        let keys: Vec<Key> = blobs.iter().map(|blob| self.run_key(run, blob_record(&blob.hash))).collect();
        let found = self.backend.get(&keys).await?;
        let mut seen = BTreeSet::new();
        let lacking =
            blobs.iter().zip(found).filter(|(blob, found)| found.is_none() && seen.insert(&blob.hash));
        Ok(lacking.map(|(blob, _)| blob).collect())
    }
}

pub fn blob_record(hash: &BlobHash) -> String {
    format!("{BLOBS}{}", hash.0)
}

fn piece_record(hash: &BlobHash, at: usize) -> String {
    format!("{PIECES}{}/{at:06}", hash.0)
}
