//! Static keys: the secrets of this end, and the public keys by which peers are known.

use crate::noise;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::str::FromStr;

/// A public key of X25519 (RFC 7748).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is 32 bytes in base64: 43 letters, digits, `+` and `/`, and one `=` (RFC 4648, 4)")]
pub struct KeyTextError;

fn read(text: &str) -> Result<[u8; 32], KeyTextError> {
    let mut bytes = [0; 33];
    match STANDARD.decode_slice(text, &mut bytes) {
        Ok(32) => Ok(std::array::from_fn(|at| bytes[at])),
        _ => Err(KeyTextError),
    }
}

impl PublicKey {
    /// Whether there can be sessions with it. With some keys, every secret gives the same result.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        noise::is_usable(self)
    }
}

/// In base64.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

/// From base64.
impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<PublicKey, KeyTextError> {
        read(text).map(PublicKey)
    }
}

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

    /// The key in base64, to be kept where nobody else can read it.
    #[must_use]
    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// From base64.
impl FromStr for SecretKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<SecretKey, KeyTextError> {
        read(text).map(SecretKey)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_text_and_no_other_text_is_a_key() {
        let secret = SecretKey::new([7; 32]);
        let (text, public) = (secret.to_text(), secret.public());
        assert_eq!(text.len(), 44);
        assert_eq!(text.parse::<SecretKey>().unwrap().public(), public);
        assert_eq!(public.to_string().parse(), Ok(public));
        assert!(public.is_usable() && !PublicKey([0; 32]).is_usable());
        let last = &text[..42];
        // Shorter, longer, another alphabet, bits behind the last byte, blanks.
        let wrong = [
            "",
            &text[..40],
            &text[..43],
            &(text.clone() + "AAAA"),
            &format!("{last}_="),
            &format!("{last}d="),
        ];
        for text in wrong {
            assert_eq!(text.parse::<PublicKey>(), Err(KeyTextError), "{text}");
        }
        assert_eq!(format!(" {text}").parse::<PublicKey>(), Err(KeyTextError));
    }
}
