//! Signs calls as the Standard Webhooks specification has it, so that receivers can use its libraries.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A key that both sides know; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

const PREFIX: &str = "whsec_";

impl Secret {
    /// The bytes themselves, or `whsec_` and their Base64.
    pub fn new(text: &str) -> Self {
        let decoded = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
        Self(decoded.unwrap_or_else(|| text.as_bytes().to_vec()))
    }

    /// The values of `webhook-timestamp` and `webhook-signature`.
    pub(super) fn sign(&self, id: &[u8], body: &[u8]) -> (String, String) {
        // A clock before 1970 signs with a time that every receiver refuses as too old.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(id);
        mac.update(format!(".{now}.").as_bytes());
        mac.update(body);
        let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        (now, signature)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
