//! A message as bytes: `length 4, little-endian | the message in the form of postcard`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// not of the type
    #[error("a message that is not understood: {0}")]
    NotUnderstood(postcard::Error),
    /// more behind it
    #[error("a message with {0} bytes behind its end")]
    Behind(usize),
}

/// The bytes of a message, with its length before them.
///
/// # Errors
/// It is too long for a length, or has no form.
pub fn written<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(message, vec![0; 4])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| io::ErrorKind::InvalidInput)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The message of the bytes that stand behind its length, which have to be exactly one.
///
/// # Errors
/// They are not.
pub fn read<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, MessageError> {
    let (message, behind) = postcard::take_from_bytes(bytes).map_err(MessageError::NotUnderstood)?;
    if behind.is_empty() { Ok(message) } else { Err(MessageError::Behind(behind.len())) }
}
