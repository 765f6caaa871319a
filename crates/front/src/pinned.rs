//! The clients that a front knows, by their keys.

use crate::key::{KeyError, public_of_digits};
use crate::role::{ClientRole, UnknownRole};
use bundle::hex;
use std::fmt;
use std::str::FromStr;

/// A client that a front knows. Its text is `NAME=ROLE=KEY`, the key in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedClient {
    /// Its name, by which others are told of it.
    pub name: String,
    /// What it may ask.
    pub role: ClientRole,
    /// Its public key of Ed25519.
    pub key: [u8; 32],
}

/// Why a text is no such client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinnedError {
    /// the form
    #[error("a client is `NAME=ROLE=KEY`")]
    Form,
    /// the role
    #[error(transparent)]
    Role(#[from] UnknownRole),
    /// the key
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl PinnedClient {
    /// A client of its parts, the key in hexadecimal digits.
    ///
    /// # Errors
    /// There is no such role, or the digits are no key.
    pub fn new(name: &str, role: &str, key: &str) -> Result<PinnedClient, PinnedError> {
        Ok(PinnedClient { name: name.to_owned(), role: role.parse()?, key: public_of_digits(key)? })
    }
}

impl fmt::Display for PinnedClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}={}", self.name, self.role, hex(&self.key))
    }
}

impl FromStr for PinnedClient {
    type Err = PinnedError;

    fn from_str(text: &str) -> Result<PinnedClient, PinnedError> {
        let parts = text.rsplit_once('=').and_then(|(before, key)| Some((before.rsplit_once('=')?, key)));
        let ((name, role), key) = parts.ok_or(PinnedError::Form)?;
        PinnedClient::new(name, role, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_comes_back_from_its_text_and_nothing_else_does() {
        let client = PinnedClient { name: "a=b".to_owned(), role: ClientRole::Operator, key: [0xa7; 32] };
        let text = client.to_string();
        assert_eq!(text.parse(), Ok(client));
        for wrong in ["", "anna", "anna=owner", &text[..text.len() - 1], &text.replace("operator", "root")] {
            assert!(wrong.parse::<PinnedClient>().is_err(), "{wrong}");
        }
    }
}
