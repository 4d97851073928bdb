//! Texts too large for one record: pieces first, then a manifest in their place, so that a text that is there is whole.

use serde::{Deserialize, Serialize};

use super::error::{Defect, Error};
use super::{Store, seal};
use crate::backend::{Batch, Durability, StoreError, Write};
use crate::record::{Key, Record};

/// The most bytes of a text in one record.
const PIECE_BYTES: usize = 4 << 20;

/// Stands for a text in pieces.
#[derive(Serialize, Deserialize)]
struct Manifest {
    pieces: usize,
}

/// A text that may be stored in pieces is longer than this, and a manifest is shorter.
const MANIFEST_BYTES: usize = 64;

impl Store {
    pub(crate) fn piece_bytes(&self) -> usize {
        PIECE_BYTES.min(self.limits().body_bytes)
    }

    /// Writes a text that depends only on its key. The durability is that of all of it.
    pub(crate) async fn write_pieces(
        &self,
        key: Key,
        piece_key: impl Fn(usize) -> Key,
        text: &str,
        durability: Durability,
    ) -> Result<(), Error> {
        let pieces = split(text, self.piece_bytes());
        let manifest =
            serde_json::to_string(&Manifest { pieces: pieces.len() }).expect("a number has a JSON form");
        loop {
            let epoch = self.epoch();
            for (at, piece) in pieces.iter().enumerate() {
                self.write_once(Batch::new(vec![put_text(piece_key(at), piece)], Durability::Relaxed))
                    .await?;
            }
            let manifest = Batch::new(vec![put_text(key.clone(), &manifest)], durability);
            match self.write_once(Batch { since: Some(epoch), ..manifest }).await {
                // Pieces may be lost.
                Err(StoreError::Restarted) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// The text of a record, or of the pieces that it stands for.
    pub(crate) async fn whole_text(
        &self,
        record: &Record,
        piece_key: impl Fn(usize) -> Key,
    ) -> Result<String, Error> {
        let body = text(record)?;
        if body.len() > MANIFEST_BYTES {
            return Ok(body.to_owned());
        }
        let manifest: Manifest = serde_json::from_str(body)
            .map_err(|error| Error::unreadable(&record.key, Defect::Body(error.to_string())))?;
        let mut whole = String::new();
        for piece in 0..manifest.pieces {
            let key = piece_key(piece);
            let missing = || Error::unreadable(&key, Defect::Missing);
            whole.push_str(text(&self.record(&key).await?.ok_or_else(missing)?)?);
        }
        Ok(whole)
    }

    /// Writes what depends only on its key, so that finding it there is as good.
    pub(crate) async fn write_once(&self, batch: Batch) -> Result<(), StoreError> {
        match self.backend.commit(batch).await {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn put_text(key: Key, text: &str) -> Write {
    let content = seal::sealed(&key, text.as_bytes().to_vec(), None);
    Write::put(key, None, content)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::Limits;
    use crate::clock::Clock;
    use crate::fault::{BackendCall, Fault, Faulty};
    use crate::memory::Memory;
    use crate::record::Tenant;
    use crate::store::ProgramRecord;

    // A crash of the database takes pieces back that are not durable, and this process lives on.
    #[tokio::test]
    async fn g2_a_text_that_was_kept_in_pieces_is_whole_whatever_a_crash_took_back() {
        let program = ProgramRecord { hash: "h".to_owned(), json: format!("{:0>900}", 1) };
        for cut_at in 1..16 {
            let limits = Limits { batch_writes: 10, batch_bytes: 4_000, body_bytes: 100 };
            let memory = Arc::new(Memory::new(Clock::System).with_limits(limits).with_power_cuts());
            let cut = memory.clone();
            let faulty = Faulty::new(memory, move |call: BackendCall| {
                if call.write == Some(cut_at) {
                    cut.power_cut(3);
                }
                Fault::None
            });
            let store = Store::new(Arc::new(faulty), Tenant::new(Tenant::LOCAL).unwrap());
            store.publish(program.clone()).await.unwrap();
            assert_eq!(store.program("h").await.unwrap().as_ref(), Some(&program), "cut at {cut_at}");
        }
    }
}
