//! Large values: each one once in a run, by its hash, in pieces when a record cannot hold it.

use std::collections::BTreeSet;

use afl_engine::attribute::{Blob, BlobHash, Held};
use afl_engine::id::RunId;
use afl_engine::value::Value;
use serde::{Deserialize, Serialize};

use super::entity::{BLOBS, PIECES};
use super::error::{Defect, Error};
use super::{Store, scope, seal};
use crate::backend::{Change, Durability, Expect, StoreError, Write};
use crate::record::{Key, Record};

/// What one record holds of a value at most.
const PIECE_BYTES: usize = 4 << 20;
/// What a commit may carry besides its records; more is written before it, in commits of its own.
const ALONG_BYTES: usize = 8 << 20;

/// Stands for a value in pieces. A value that is a blob at all is longer than this.
#[derive(Serialize, Deserialize)]
struct Manifest {
    pieces: usize,
}

const MANIFEST_BYTES: usize = 64;

impl Store {
    /// Commits writes and the large values they refer to. A value that is there already is not written again.
    pub(crate) async fn write_with_blobs(
        &self,
        run: &RunId,
        writes: Vec<Write>,
        blobs: &[Blob],
        durability: Durability,
    ) -> Result<(), Error> {
        if blobs.is_empty() {
            return Ok(self.write(writes, durability).await?);
        }
        loop {
            let mut all = writes.clone();
            let mut room = ALONG_BYTES.min(self.limits().batch_bytes / 4);
            for blob in self.lacking(run, blobs).await? {
                if blob.text.len() <= room.min(self.piece_bytes()) {
                    room -= blob.text.len();
                    all.push(self.put_blob(run, blob_record(&blob.hash), &blob.text));
                } else {
                    self.write_pieces(run, blob).await?;
                }
            }
            match self.write(all, durability).await {
                // Somebody stored the same value meanwhile. Blobs are never deleted alone, so this ends.
                Err(StoreError::Conflict { key }) if key.id.starts_with(BLOBS) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// A value, wherever it is kept; `name` tells whose it is when it cannot be read.
    pub async fn value(&self, run: &RunId, held: &Held, name: impl Fn() -> String) -> Result<Value, Error> {
        let blob = match held {
            Held::Inline(value) => return Ok(value.clone()),
            Held::Blob(blob) => blob,
        };
        let unreadable = |defect| Error::Unreadable { run: run.clone(), record: name(), defect };
        let key = self.run_key(run, blob_record(&blob.hash));
        let record = self.backend.get(&[key]).await?.pop().flatten();
        let text = self.blob(run, &record.ok_or_else(|| unreadable(Defect::Missing))?).await?;
        serde_json::from_str(&text).map_err(|error| unreadable(Defect::Body(error.to_string())))
    }

    pub async fn has_blob(&self, run: &RunId, hash: &BlobHash) -> Result<bool, Error> {
        let key = self.run_key(run, blob_record(hash));
        Ok(self.backend.get(&[key]).await?.pop().flatten().is_some())
    }

    pub(crate) async fn blob(&self, run: &RunId, record: &Record) -> Result<String, Error> {
        let body = text(record)?;
        if body.len() > MANIFEST_BYTES {
            return Ok(body.to_owned());
        }
        let manifest: Manifest = serde_json::from_str(body)
            .map_err(|error| Error::unreadable(&record.key, Defect::Body(error.to_string())))?;
        let hash = BlobHash(record.key.id[BLOBS.len()..].to_owned());
        let mut whole = String::new();
        for piece in 0..manifest.pieces {
            let key = self.run_key(run, piece_record(&hash, piece));
            let found = self.backend.get(std::slice::from_ref(&key)).await?.pop().flatten();
            whole.push_str(text(&found.ok_or_else(|| scope::missing(&key))?)?);
        }
        Ok(whole)
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

    /// The pieces first and the manifest last, so that a value that is there is whole.
    async fn write_pieces(&self, run: &RunId, blob: &Blob) -> Result<(), Error> {
        let pieces = split(&blob.text, self.piece_bytes());
        for (at, piece) in pieces.iter().enumerate() {
            self.write_once(self.put_blob(run, piece_record(&blob.hash, at), piece)).await?;
        }
        let manifest =
            serde_json::to_string(&Manifest { pieces: pieces.len() }).expect("a number has a JSON form");
        self.write_once(self.put_blob(run, blob_record(&blob.hash), &manifest)).await
    }

    /// Writes what depends only on its key, so that finding it there is as good.
    async fn write_once(&self, write: Write) -> Result<(), Error> {
        match self.write(vec![write], Durability::Relaxed).await {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn put_blob(&self, run: &RunId, id: String, text: &str) -> Write {
        let key = self.run_key(run, id);
        let content = seal::sealed(&key, text.as_bytes().to_vec(), None);
        Write { key, expect: Expect::Absent, change: Change::Put(content) }
    }

    fn piece_bytes(&self) -> usize {
        PIECE_BYTES.min(self.limits().body_bytes)
    }
}

pub(crate) fn blob_record(hash: &BlobHash) -> String {
    format!("{BLOBS}{}", hash.0)
}

fn piece_record(hash: &BlobHash, at: usize) -> String {
    format!("{PIECES}{}/{at:06}", hash.0)
}

fn text(record: &Record) -> Result<&str, Error> {
    let not_text = |_| Error::unreadable(&record.key, Defect::Body("it is not text".to_owned()));
    std::str::from_utf8(seal::opened(record)?).map_err(not_text)
}

fn split(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(bytes.max(4)));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
