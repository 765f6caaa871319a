//! Files with the secret key of an administrator: one line of 64 hexadecimal digits that only its owner may
//! read.

use crate::failure::Failure;
use crate::render::diagnostic::hex;
use bundle::bytes_of_digits;
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
    let seed = bytes_of_digits(&text)
        .ok_or_else(|| of_file(path, &"it does not hold a key; `ravelin bundle key new` makes one"))?;
    Signer::new(&seed).map_err(|error| of_file(path, &error))
}
