//! The signature of a call: HMAC-SHA-256 over `timestamp.body`, so that a service can tell our calls from
//! anybody's, and old ones from new ones.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A shared secret. It has no readable form (R24).
#[derive(Clone)]
pub struct Signer(String);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(***)")
    }
}

impl Signer {
    pub fn new(secret: &str) -> Self {
        Self(secret.to_owned())
    }

    /// What `Handback-Signature` holds. A call without a body signs `timestamp.`.
    pub fn signature(&self, timestamp: i64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).ok()?;
        mac.update(format!("{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!("v1={}", hex::encode(mac.finalize().into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_anybody_can_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac s3cret
        let signed = Signer::new("s3cret").signature(1_700_000_000, br#"{"a":1}"#);
        assert_eq!(signed.as_deref(), Some(VECTOR));
        assert_eq!(format!("{:?}", Signer::new("s3cret")), "Signer(***)");
    }

    const VECTOR: &str = "v1=1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940";
}
