//! Seals bodies when they are written and checks them when they are read.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Defect, Error};
use crate::record::{Content, Key, QueuePosition, Record, Seal};

/// The form of the bodies (`step_schema_version`).
pub const SCHEMA_VERSION: u32 = 1;
/// The engine whose rules they follow (`runtime_version`).
pub const RUNTIME_VERSION: u32 = 1;

pub(crate) fn sealed(key: &Key, body: Vec<u8>, place: Option<QueuePosition>) -> Content {
    let checksum = checksum(key, &body);
    Content { place, body, seal: Seal { schema: SCHEMA_VERSION, runtime: RUNTIME_VERSION, checksum } }
}

pub(crate) fn sealed_json(key: &Key, item: &impl Serialize, place: Option<QueuePosition>) -> Content {
    sealed(key, serde_json::to_vec(item).expect("a stored item has a JSON form"), place)
}

pub(crate) fn opened_json<T: DeserializeOwned>(record: &Record) -> Result<T, Error> {
    let wrong = |error: serde_json::Error| Error::unreadable(&record.key, Defect::Body(error.to_string()));
    serde_json::from_slice(opened(record)?).map_err(wrong)
}

/// The body, if its checksum is right and this release understands it.
pub(crate) fn opened(record: &Record) -> Result<&[u8], Error> {
    let Record { key, content: Content { body, seal, .. }, .. } = record;
    if seal.checksum != checksum(key, body) {
        return Err(Error::unreadable(key, Defect::Checksum));
    }
    for (found, known) in [(seal.schema, SCHEMA_VERSION), (seal.runtime, RUNTIME_VERSION)] {
        if found > known {
            return Err(Error::unreadable(key, Defect::Newer { found, known }));
        }
    }
    Ok(body)
}

fn checksum(key: &Key, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [key.tenant.as_str(), &key.scope, &key.id] {
        hasher.update(part.as_bytes());
        // No part holds it, so parts cannot run into each other.
        hasher.update(&[0xff]);
    }
    hasher.update(body);
    hasher.finalize()
}
