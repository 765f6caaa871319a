//! Keys by which both ends of a connection are known. They are keys of Ed25519 as those that sign policies
//! are, and of another kind: the text of one begins with a word, so that neither is taken for the other.

use bundle::{bytes_of_digits, hex};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use std::fmt;
use std::sync::Arc;

/// What the text of a secret key begins with.
const KIND: &str = "ravelin-front-key ";

/// What stands before the 32 bytes of a public key where its kind is told (RFC 8410, 4: SubjectPublicKeyInfo
/// of Ed25519).
const PUBLIC_START: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The same of a secret key (RFC 8410, 7: PrivateKeyInfo of Ed25519).
const SECRET_START: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Why there is no key in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// another kind of key, or none
    #[error(
        "it holds no key of a front or of a client of one: `ravelin front key new` makes one; keys that sign policies are others"
    )]
    Kind,
    /// no public key
    #[error("`{0}` is no public key: it has 64 hexadecimal digits, as `ravelin front key show` prints them")]
    Public(String),
    /// the bytes make no key
    #[error("these 32 bytes make no key of Ed25519: take other random bytes")]
    Seed,
}

/// The secret key of a front or of a client. Its `Debug` form does not show it.
pub struct IdentityKey {
    seed: [u8; 32],
    key: Arc<dyn SigningKey>,
    public: [u8; 32],
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IdentityKey({})", hex(&self.public))
    }
}

impl IdentityKey {
    /// The key that `seed` makes: the private key of RFC 8032, 5.1.5, 32 random bytes that nobody else knows.
    ///
    /// # Errors
    /// The seed makes no key.
    pub fn new(seed: [u8; 32]) -> Result<IdentityKey, KeyError> {
        let secret = [&SECRET_START[..], &seed].concat();
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(secret)).map_err(|_| KeyError::Seed)?;
        let told = key.public_key().ok_or(KeyError::Seed)?;
        let public = told.strip_prefix(&PUBLIC_START).and_then(|public| public.try_into().ok());
        Ok(IdentityKey { seed, key, public: public.ok_or(KeyError::Seed)? })
    }

    /// The key of a text.
    ///
    /// # Errors
    /// It is none, or one of another kind.
    pub fn from_text(text: &str) -> Result<IdentityKey, KeyError> {
        let digits = text.strip_prefix(KIND).ok_or(KeyError::Kind)?;
        IdentityKey::new(bytes_of_digits(digits).ok_or(KeyError::Kind)?)
    }

    /// Its text, which has to be kept secret.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{KIND}{}", hex(&self.seed))
    }

    /// The public key, by which others know it.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        self.public
    }

    /// It as TLS has it.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        let public = CertificateDer::from(in_tls(&self.public));
        Arc::new(CertifiedKey::new(vec![public], self.key.clone()))
    }
}

/// A public key as it comes in a handshake.
pub(crate) fn in_tls(key: &[u8; 32]) -> Vec<u8> {
    [&PUBLIC_START[..], key].concat()
}

/// A public key of its 64 digits.
///
/// # Errors
/// These are no digits, or not as many.
pub(crate) fn public_of_digits(digits: &str) -> Result<[u8; 32], KeyError> {
    bytes_of_digits(digits).ok_or_else(|| KeyError::Public(digits.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_one_of_rfc_8032_and_comes_back_from_its_text() {
        // RFC 8032, 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let key = IdentityKey::from_text(&format!("{KIND}{seed}")).expect("it is one");
        assert_eq!(hex(&key.public_key()), public);
        assert_eq!(public_of_digits(public), Ok(key.public_key()));
        assert_eq!(key.to_text(), format!("{KIND}{seed}"));
        assert!(!format!("{key:?}").contains(seed));
        // One that signs policies is its digits alone.
        for text in [seed, "", KIND, &format!("{KIND}{seed}0"), &format!("{KIND}{}", seed.replace('9', "é"))]
        {
            assert_eq!(IdentityKey::from_text(text).err(), Some(KeyError::Kind), "{text}");
        }
        assert!(public_of_digits(&public[1..]).is_err());
    }
}
