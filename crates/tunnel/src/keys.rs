//! Static keys: the secrets of this end, and the public keys by which peers are known.

use crate::noise;
use std::fmt;

/// A public key of X25519 (RFC 7748).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// In hexadecimal digits.
impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A secret key of X25519: 32 random bytes. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// The key made of these bytes, which must be random.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> SecretKey {
        SecretKey(bytes)
    }

    /// What peers know this key by.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        noise::public_key(&self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(not shown)")
    }
}
