//! Files with the secret key of an administrator: one line of 64 hexadecimal digits that only its owner may
//! read.

use crate::failure::Failure;
use crate::render::diagnostic::hex;
use bundle::sign::Signer;
use ports::live::secret_file;
use std::path::Path;

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Finding(error.to_string())
}

fn of_file(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    failed(&format_args!("the key file {}: {what}", path.display()))
}

/// Makes a key and puts it into a new file.
pub(super) fn make(path: &Path) -> Result<Signer, Failure> {
    let mut seed = [0; 32];
    secret_file::random(&mut seed).map_err(|error| of_file(path, &error))?;
    let signer = Signer::new(&seed).map_err(|error| of_file(path, &error))?;
    secret_file::make(path, &hex(&seed)).map_err(|error| failed(&error))?;
    Ok(signer)
}

/// Reads a key.
pub(super) fn read(path: &Path) -> Result<Signer, Failure> {
    let text = secret_file::read(path).map_err(|error| failed(&error))?;
    let seed = key(&text)
        .ok_or_else(|| of_file(path, &"it does not hold a key; `ravelin bundle key new` makes one"))?;
    Signer::new(&seed).map_err(|error| of_file(path, &error))
}

/// 32 bytes from 64 hexadecimal digits.
pub(super) fn key(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}
