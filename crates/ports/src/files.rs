//! Reads whole files: only regular files, up to a limit of bytes before and after decompression, and without
//! waiting for another process.
//!
//! What is read as a whole (a program, a table's entries, a gateway's file) is named by people, by programs
//! and, for a running gateway, by whoever may ask it to load again. So nothing but a regular file is opened
//! (a pipe would wait for its writer, a device may never end), and a file that a program names lies beside
//! the program or below, wherever links lead.

use captures::compressed::uncompressed;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a file of entries, rules or routes, unpacked (512 MiB): five times the routes of the
/// Internet as text.
pub const LARGEST: u64 = 512 << 20;

/// The most bytes of all files together that fill the tables and groups of a program, unpacked (1 GiB): twice
/// the largest.
pub const LARGEST_TOGETHER: u64 = 1 << 30;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    /// It cannot be opened or read.
    #[error("{0}")]
    System(#[from] io::Error),
    /// It is a directory, a device, a pipe or the like.
    #[error("it is {0}, and only regular files are read: save its contents in a file and name that")]
    NoFile(&'static str),
    /// It is longer than what is read of such a file.
    #[error(
        "it has more than {0} bytes, which is the most that is read here: split it, or leave out what is not needed"
    )]
    TooLong(u64),
    /// Unpacked it is longer than what is read of such a file.
    #[error(
        "unpacked it has more than {0} bytes, which is the most that is read here: split it, or leave out what is not needed"
    )]
    TooLongUnpacked(u64),
    /// A program names it, and it lies elsewhere.
    #[error("it lies outside of the program's folder {0}, where a program may not look: put the file there")]
    Outside(PathBuf),
}

impl FileReadError {
    /// What the system said, if it was the system.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            FileReadError::System(error) => Some(error.kind()),
            FileReadError::NoFile("a directory") => Some(io::ErrorKind::IsADirectory),
            _ => None,
        }
    }
}

/// The bytes of a regular file of at most so many bytes.
///
/// # Errors
/// See [`FileReadError`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileReadError> {
    let file = regular(path)?;
    let size = file.metadata()?.len();
    if size > most {
        return Err(FileReadError::TooLong(most));
    }
    up_to(file, size, most)?.ok_or(FileReadError::TooLong(most))
}

/// The same of a file that may be packed with gzip or zstd, which its first bytes tell: `most` holds for what
/// it is packed and unpacked.
///
/// # Errors
/// See [`FileReadError`].
pub fn read_unpacked(path: &Path, most: u64) -> Result<Vec<u8>, FileReadError> {
    unpack(regular(path)?, most)
}

/// The same of a file that a program in `folder` names. Neither `..` nor a link leads out of the folder.
///
/// # Errors
/// See [`FileReadError`].
pub fn read_beside(folder: &Path, name: &Path, most: u64) -> Result<Vec<u8>, FileReadError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = folder.canonicalize()?;
    // What a name leads to is said only of files in the folder, so that a program cannot ask what there is
    // elsewhere.
    let climbs = name
        .components()
        .any(|part| !matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    if climbs {
        return Err(FileReadError::Outside(folder));
    }
    let path = folder.join(name).canonicalize()?;
    let Ok(below) = path.strip_prefix(&folder) else {
        return Err(FileReadError::Outside(folder));
    };
    unpack(below_without_links(&folder, below)?, most)
}

/// Opens a regular file at a path below a folder. Links were followed when the path was made: one that has
/// since taken the place of any folder on it, or of the file, is refused, since each part is opened in the
/// folder before it and none as a link.
fn below_without_links(folder: &Path, below: &Path) -> Result<File, FileReadError> {
    let changed = |errno| match errno {
        Errno::LOOP | Errno::NOTDIR => FileReadError::Outside(folder.to_owned()),
        errno => FileReadError::System(errno.into()),
    };
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (inner, name) = (below.parent().unwrap_or(below), below.file_name());
    // The folder itself has no name in itself.
    let name = name.ok_or(FileReadError::NoFile("a directory"))?;
    let mut at =
        openat(CWD, folder, no_link | OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).map_err(changed)?;
    for part in inner {
        at = openat(&at, part, no_link | OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).map_err(changed)?;
    }
    // A device may do something when it is opened, so it is looked at before, and again once it is open.
    let seen =
        File::from(openat(&at, name, no_link | OFlags::PATH, Mode::empty()).map_err(changed)?).metadata()?;
    if seen.is_symlink() {
        return Err(FileReadError::Outside(folder.to_owned()));
    }
    if let Some(what) = other_than_a_file(&seen) {
        return Err(FileReadError::NoFile(what));
    }
    let flags = no_link | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(openat(&at, name, flags, Mode::empty()).map_err(changed)?);
    match other_than_a_file(&file.metadata()?) {
        Some(what) => Err(FileReadError::NoFile(what)),
        None => Ok(file),
    }
}

/// The bytes of standard input, unpacked, up to a limit.
///
/// # Errors
/// See [`FileReadError`].
pub fn read_standard_input(most: u64) -> Result<Vec<u8>, FileReadError> {
    up_to(uncompressed(io::stdin())?, 0, most)?.ok_or(FileReadError::TooLongUnpacked(most))
}

/// Opens a regular file. A pipe without a writer is opened, too, seen to be none, and closed.
fn regular(path: &Path) -> Result<File, FileReadError> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // A device may do something when it is opened, so it is looked at before, and again once it is open.
    if let Some(what) = other_than_a_file(&path.metadata()?) {
        return Err(FileReadError::NoFile(what));
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match other_than_a_file(&file.metadata()?) {
        Some(what) => Err(FileReadError::NoFile(what)),
        None => Ok(file),
    }
}

fn other_than_a_file(found: &std::fs::Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

fn unpack(file: File, most: u64) -> Result<Vec<u8>, FileReadError> {
    let size = file.metadata()?.len();
    if size > most {
        return Err(FileReadError::TooLong(most));
    }
    up_to(uncompressed(file)?, size, most)?.ok_or(FileReadError::TooLongUnpacked(most))
}

/// All bytes of a stream, or `None` if there are more than so many; one more is read at most.
fn up_to(stream: impl Read, expected: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(expected.min(most)).unwrap_or(0))?;
    stream.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn said(result: Result<Vec<u8>, FileReadError>) -> String {
        result.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, [7; 1000]).expect("written");
        assert_eq!(read(&path, 1000).expect("fits").len(), 1000);
        assert_eq!(read_unpacked(&path, 1000).expect("fits").len(), 1000);
        for result in
            [read(&path, 999), read_unpacked(&path, 999), read_beside(folder.path(), Path::new("a"), 999)]
        {
            assert!(matches!(result, Err(FileReadError::TooLong(999))), "{result:?}");
        }
    }

    #[test]
    fn what_is_packed_small_and_is_large_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bomb.gz");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..100 {
            packed.write_all(&[b'x'; 100_000]).expect("packed");
        }
        let packed = packed.finish().expect("packed");
        assert!(packed.len() < 20_000);
        std::fs::write(&path, &packed).expect("written");
        assert_eq!(read_unpacked(&path, 10_000_000).expect("fits").len(), 10_000_000);
        let result = read_unpacked(&path, 9_999_999);
        assert!(matches!(result, Err(FileReadError::TooLongUnpacked(9_999_999))), "{result:?}");
    }

    #[test]
    fn nothing_but_a_regular_file_is_read_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
        let cases = [
            (pipe.as_path(), "a pipe"),
            (Path::new("/dev/zero"), "a device"),
            (folder.path(), "a directory"),
        ];
        for (path, what) in cases {
            for result in [read(path, 10), read_unpacked(path, 10)] {
                assert_eq!(said(result), FileReadError::NoFile(what).to_string());
            }
        }
        assert_eq!(
            said(read_beside(folder.path(), Path::new("pipe"), 10)),
            FileReadError::NoFile("a pipe").to_string()
        );
        assert_eq!(
            read(Path::new("/proc/self/comm"), 100).expect("a file without a size is read").last(),
            Some(&b'\n')
        );
        assert_eq!(said(read(Path::new("/proc/self/maps"), 3)), FileReadError::TooLong(3).to_string());
    }

    #[test]
    fn a_program_names_files_of_its_own_folder_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        for path in [&own, &other, &own.join("deep")] {
            std::fs::create_dir(path).expect("made");
        }
        std::fs::write(own.join("deep/a"), "mine").expect("written");
        std::fs::write(other.join("b"), "theirs").expect("written");
        symlink(own.join("deep/a"), own.join("inward")).expect("linked");
        symlink(other.join("b"), own.join("outward")).expect("linked");
        symlink(&other, own.join("away")).expect("linked");
        for name in ["deep/a", "./deep/a", "inward"] {
            assert_eq!(read_beside(&own, Path::new(name), 100).expect("is read"), b"mine", "{name}");
        }
        let outside = [other.join("b").display().to_string(), "/etc/passwd".into(), "/no/such/file".into()];
        let outside = outside.iter().map(String::as_str).chain([
            "../other/b",
            "deep/../../other/b",
            "../no_such",
            "outward",
            "away/b",
        ]);
        for name in outside {
            let result = read_beside(&own, Path::new(name), 100);
            assert!(matches!(result, Err(FileReadError::Outside(_))), "{name}: {result:?}");
        }
    }

    /// What happens where a link takes a place between the two steps of `read_beside`.
    #[test]
    fn a_link_that_took_the_place_of_a_folder_on_the_way_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("is there");
        let (own, other) = (folder.join("own"), folder.join("other"));
        for path in [own.join("deep/deeper"), other.join("deeper")] {
            std::fs::create_dir_all(path).expect("made");
        }
        std::fs::write(own.join("deep/deeper/a"), "mine").expect("written");
        std::fs::write(other.join("deeper/a"), "theirs").expect("written");
        let opened = || below_without_links(&own, Path::new("deep/deeper/a"));
        assert_eq!(unpack(opened().expect("is there"), 100).expect("is read"), b"mine");
        std::fs::rename(own.join("deep"), own.join("was")).expect("moved");
        symlink(&other, own.join("deep")).expect("linked");
        assert!(matches!(opened(), Err(FileReadError::Outside(_))), "a folder");
        std::fs::remove_file(own.join("deep")).expect("removed");
        std::fs::rename(own.join("was"), own.join("deep")).expect("moved");
        std::fs::remove_file(own.join("deep/deeper/a")).expect("removed");
        symlink(other.join("deeper/a"), own.join("deep/deeper/a")).expect("linked");
        assert!(matches!(opened(), Err(FileReadError::Outside(_))), "the file");
    }
}
