//! Files with the secret key of a tunnel's end: one line of base64 that only its owner may read.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tunnel::{PublicKey, SecretKey};

/// The longest such file, in bytes: a key, with blanks around it.
const LONGEST: u64 = 128;

/// Why there is no key in a file, or none can be put there.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// it cannot be read or written
    #[error("the key file {file}: {source}", file = .file.display())]
    File {
        /// Its path.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// there is a file already
    #[error("{file} is there already, and a key is never written over", file = .0.display())]
    Exists(PathBuf),
    /// others may read it
    #[error(
        "the key file {file} may be read or written by others (mode {mode:04o}): `chmod 600 {file}`, and make another key if somebody can have read it",
        file = .file.display()
    )]
    Open {
        /// Its path.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
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
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
        _ => KeyFileError::File { file: path.to_owned(), source },
    };
    let mut bytes = [0; 32];
    random(&mut bytes).map_err(failed)?;
    let key = SecretKey::new(bytes);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{}", key.to_text()).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(key.public())
}

/// Reads a key.
///
/// # Errors
/// The file cannot be read, others than its owner may read or write it, or there is no key in it.
pub fn read(path: &Path) -> Result<SecretKey, KeyFileError> {
    let failed = |source| KeyFileError::File { file: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(KeyFileError::NoKey(path.to_owned()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Open { file: path.to_owned(), mode });
    }
    let mut text = String::new();
    match file.take(LONGEST).read_to_string(&mut text) {
        Ok(_) => text.trim().parse().map_err(|_| KeyFileError::NoKey(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(KeyFileError::NoKey(path.to_owned())),
        Err(error) => Err(failed(error)),
    }
}

/// Fills memory with random bytes of the system.
pub(super) fn random(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(length) => bytes = &mut bytes[length..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_kept_for_its_owner_and_never_written_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("home.key");
        let public = make(&path).expect("is made");
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o600);
        assert_eq!(read(&path).expect("is read").public(), public);
        assert!(matches!(make(&path), Err(KeyFileError::Exists(_))));
        assert_ne!(make(&directory.path().join("other.key")).expect("is made"), public);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("is changed");
        assert!(matches!(read(&path), Err(KeyFileError::Open { mode: 0o640, .. })));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("home.key");
        assert!(matches!(read(&path), Err(KeyFileError::File { .. })));
        assert!(matches!(read(directory.path()), Err(KeyFileError::NoKey(_) | KeyFileError::Open { .. })));
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
