//! Files with the secret key of an administrator: one line of 64 hexadecimal digits that only its owner may
//! read.

use super::hex;
use crate::failure::Failure;
use bundle::sign::Signer;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The longest such file, in bytes: a key, with blanks around it.
const LONGEST: u64 = 128;

fn failed(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::Finding(format!("the key file {}: {what}", path.display()))
}

/// Makes a key and puts it into a new file.
pub(super) fn make(path: &Path) -> Result<Signer, Failure> {
    let mut seed = [0; 32];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    random.map_err(|error| failed(path, &format!("no random bytes from /dev/urandom: {error}")))?;
    let signer = Signer::new(&seed).map_err(|error| failed(path, &error))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(
        |error| match error.kind() {
            ErrorKind::AlreadyExists => failed(path, &"it is there already, and a key is never written over"),
            _ => failed(path, &error),
        },
    )?;
    writeln!(file, "{}", hex(&seed)).and_then(|()| file.sync_all()).map_err(|error| failed(path, &error))?;
    Ok(signer)
}

/// Reads a key.
pub(super) fn read(path: &Path) -> Result<Signer, Failure> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let mode = file.metadata().map_err(|error| failed(path, &error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let what =
            "others may read or write it: `chmod 600` it, and make another key if somebody can have read it";
        return Err(failed(path, &what));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(|error| failed(path, &error))?;
    let seed = key(text.trim())
        .ok_or_else(|| failed(path, &"it does not hold a key; `ravelin bundle key new` makes one"))?;
    Signer::new(&seed).map_err(|error| failed(path, &error))
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
