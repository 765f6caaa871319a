//! Files that hold a secret: a line that only its owner may read, in a file that is never written over.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest such file, in bytes: a key, with blanks around it.
const LONGEST: u64 = 128;

/// Why there is no secret in a file, or none can be put there.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
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
    /// it holds no text, or is no file
    #[error("{file} holds no text, and a key is one line of text", file = .0.display())]
    NoText(PathBuf),
}

/// Puts a secret into a new file that only the caller's user may read.
///
/// # Errors
/// There is a file already, or it cannot be written.
pub fn make(path: &Path, secret: &str) -> Result<(), SecretFileError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => SecretFileError::Exists(path.to_owned()),
        _ => SecretFileError::File { file: path.to_owned(), source },
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{secret}").and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads what a file holds, without the blanks around it: of a longer one the beginning.
///
/// # Errors
/// The file cannot be read, others than its owner may read or write it, or it holds no text.
pub fn read(path: &Path) -> Result<String, SecretFileError> {
    let failed = |source| SecretFileError::File { file: path.to_owned(), source };
    // One that is no file keeps nobody waiting.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(SecretFileError::NoText(path.to_owned()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Open { file: path.to_owned(), mode });
    }
    let mut text = String::new();
    match file.take(LONGEST).read_to_string(&mut text) {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(SecretFileError::NoText(path.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Fills memory with random bytes of the system.
///
/// # Errors
/// The system has none.
pub fn random(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(length) => bytes = &mut bytes[length..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
