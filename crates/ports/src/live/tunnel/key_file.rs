//! Files with the secret key of a tunnel's end: one line of base64 that only its owner may read.

use crate::live::secret_file::{self, SecretFileError, random};
use std::path::{Path, PathBuf};
use tunnel::{PublicKey, SecretKey};

/// Why there is no key in a file, or none can be put there.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// the file itself
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// there is something else in it
    #[error(
        "{file} does not hold a secret key, which is one line of base64: `ravelin naming key new {file}` makes one where there is no file",
        file = .0.display()
    )]
    NoKey(PathBuf),
}

/// Makes a key, puts it into a new file that only the caller's user may read, and returns its public half.
///
/// # Errors
/// There is a file already, or it cannot be written.
pub fn make(path: &Path) -> Result<PublicKey, KeyFileError> {
    let mut bytes = [0; 32];
    random(&mut bytes).map_err(|source| SecretFileError::File { file: path.to_owned(), source })?;
    let key = SecretKey::new(bytes);
    secret_file::make(path, &key.to_text())?;
    Ok(key.public())
}

/// Reads a key.
///
/// # Errors
/// The file cannot be read, others than its owner may read or write it, or there is no key in it.
pub fn read(path: &Path) -> Result<SecretKey, KeyFileError> {
    match secret_file::read(path) {
        Ok(text) => text.parse().map_err(|_| KeyFileError::NoKey(path.to_owned())),
        Err(SecretFileError::NoText(path)) => Err(KeyFileError::NoKey(path)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_key_is_kept_for_its_owner_and_never_written_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("home.key");
        let public = make(&path).expect("is made");
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o600);
        assert_eq!(read(&path).expect("is read").public(), public);
        assert!(matches!(make(&path), Err(KeyFileError::Secret(SecretFileError::Exists(_)))));
        assert_ne!(make(&directory.path().join("other.key")).expect("is made"), public);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("is changed");
        assert!(matches!(read(&path), Err(KeyFileError::Secret(SecretFileError::Open { mode: 0o640, .. }))));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("home.key");
        assert!(matches!(read(&path), Err(KeyFileError::Secret(SecretFileError::File { .. }))));
        assert!(matches!(
            read(directory.path()),
            Err(KeyFileError::NoKey(_) | KeyFileError::Secret(SecretFileError::Open { .. }))
        ));
        // One that is a pipe is opened at once.
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
        fs::set_permissions(&pipe, Permissions::from_mode(0o600)).expect("is changed");
        assert!(matches!(read(&pipe), Err(KeyFileError::NoKey(_))));
        let long = "a".repeat(10_000);
        for text in ["", "abc", &long, "\u{fffd}"] {
            fs::write(&path, text).expect("is written");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("is changed");
            assert!(matches!(read(&path), Err(KeyFileError::NoKey(_))), "{text}");
        }
        fs::write(&path, b"\xff\xfe").expect("is written");
        assert!(matches!(read(&path), Err(KeyFileError::NoKey(_))));
    }
}
