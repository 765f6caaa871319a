//! Keeps what the core says of signed policies, in memory and in a folder: the newest version that was ever
//! accepted, and the last policy that needs no confirmation, whose bundle is bytes here and nothing more.
//!
//! ```text
//! newest   the newest version, in decimal digits
//! policy   8 bytes, its version, lowest first | the bundle
//! ```
//!
//! A file is written beside the old one, brought to the disk, and takes its name then, so that after a crash
//! of the machine there is the old one or the new one. Neither version ever falls, whatever a core says.

use messages::launch::{Kept, KeptPolicy};
use messages::limits::LONGEST_BUNDLE;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NEWEST: &str = "newest";
const POLICY: &str = "policy";
/// What is written, until it takes its name.
const UNFINISHED: &str = "unfinished";
/// The longest file of the newest version: the digits of a number of 64 bits, and the end of a line.
const LONGEST_NEWEST: u64 = 21;

/// Why nothing can be kept in a folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// the system refuses
    #[error("{0}")]
    System(#[from] io::Error),
    /// others may change it
    #[error(
        "others may look into it or change it: let it belong to the user who starts the gateway, with the \
         rights 0700"
    )]
    Open,
    /// another gateway has it
    #[error("another gateway keeps its policies there: `keep_in` names another folder")]
    Taken,
    /// not as it was written
    #[error(
        "the file `{0}` in it is damaged: without it, it is not known which policies are old; put a copy of \
         it back, or remove both files and install a policy with a version above all before"
    )]
    Damaged(&'static str),
}

/// What is kept, and where. Whoever asks what is kept does not wait for the disk.
pub(crate) struct Store {
    folder: OwnedFd,
    kept: Mutex<Arc<Kept>>,
    on_disk: Mutex<OnDisk>,
}

/// The versions that are on the disk; 0 where there is none.
struct OnDisk {
    newest: u64,
    policy: u64,
}

impl Store {
    /// Reads what a folder has, which is made if there is none.
    ///
    /// # Errors
    /// The folder cannot be had for this gateway and root alone, or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Store, FolderError> {
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from)?;
        let about = fstat(&folder).map_err(io::Error::from)?;
        if about.st_uid != geteuid().as_raw() || about.st_mode & 0o077 != 0 {
            return Err(FolderError::Open);
        }
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(FolderError::Taken),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let newest = match read(&folder, NEWEST, LONGEST_NEWEST)? {
            Some(bytes) => newest(&bytes).ok_or(FolderError::Damaged(NEWEST))?,
            None => 0,
        };
        let policy = match read(&folder, POLICY, LONGEST_BUNDLE as u64 + 8)? {
            Some(bytes) => Some(policy(bytes).ok_or(FolderError::Damaged(POLICY))?),
            None => None,
        };
        let newest = newest.max(policy.as_ref().map_or(0, |policy| policy.version));
        let on_disk = OnDisk { newest, policy: policy.as_ref().map_or(0, |policy| policy.version) };
        Ok(Store {
            folder,
            kept: Mutex::new(Arc::new(Kept { newest, policy })),
            on_disk: Mutex::new(on_disk),
        })
    }

    /// What is kept.
    pub(crate) fn kept(&self) -> Arc<Kept> {
        held(&self.kept).clone()
    }

    /// Keeps more: versions that are older than what is kept are left aside, and what could not be written
    /// before is written.
    ///
    /// # Errors
    /// It cannot be written; it is kept in memory nevertheless. Or a policy is left aside.
    pub(crate) fn keep(&self, more: Kept) -> io::Result<()> {
        let mut left_aside = Ok(());
        {
            let mut now = held(&self.kept);
            let kept = Arc::make_mut(&mut now);
            kept.newest = kept.newest.max(more.newest);
            match more.policy {
                Some(policy) if is_newer(kept, &policy) => kept.policy = Some(policy),
                Some(policy) if kept.policy.as_ref() != Some(&policy) => {
                    left_aside = Err(io::Error::other("another one of this version or above is kept"));
                }
                _ => {}
            }
        }
        // One after the other writes, while others go on with what is kept in memory.
        let mut on_disk = held(&self.on_disk);
        let kept = self.kept();
        self.bring_to_disk(&kept, &mut on_disk).and(left_aside)
    }

    /// Writes what is kept and is not on the disk.
    fn bring_to_disk(&self, kept: &Kept, on_disk: &mut OnDisk) -> io::Result<()> {
        let mut written = Ok(());
        if kept.newest > on_disk.newest {
            written = self.write(NEWEST, &[format!("{}\n", kept.newest).as_bytes()]);
            if written.is_ok() {
                on_disk.newest = kept.newest;
            }
        }
        if let Some(policy) = kept.policy.as_ref().filter(|policy| policy.version > on_disk.policy) {
            // Even where the version could not be written: this says it, too.
            let wrote = self.write(POLICY, &[&policy.version.to_le_bytes()[..], &policy.bundle]);
            if wrote.is_ok() {
                on_disk.policy = policy.version;
            }
            written = wrote.and(written);
        }
        written
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = || {
            let file = openat(&self.folder, UNFINISHED, flags, Mode::RUSR | Mode::WUSR)?;
            let mut file = File::from(file);
            parts.iter().try_for_each(|part| file.write_all(part))?;
            file.sync_all()?;
            renameat(&self.folder, UNFINISHED, &self.folder, name)?;
            Ok(fsync(&self.folder)?)
        };
        let written: io::Result<()> = written();
        if written.is_err() {
            // Its room may be needed; if it cannot be removed either, the next one takes its place.
            let _ = unlinkat(&self.folder, UNFINISHED, AtFlags::empty());
        }
        written
    }
}

/// Whether a policy may take the place of the one that is kept.
fn is_newer(kept: &Kept, policy: &KeptPolicy) -> bool {
    let before = kept.policy.as_ref().map_or(0, |before| before.version);
    policy.version > before && policy.version <= kept.newest && policy.bundle.len() <= LONGEST_BUNDLE
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file of the folder, if it is there. One that is longer is damaged, and is read no further.
fn read(folder: &OwnedFd, name: &'static str, longest: u64) -> Result<Option<Vec<u8>>, FolderError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest { Err(FolderError::Damaged(name)) } else { Ok(Some(bytes)) }
}

/// The newest version, as it is written.
fn newest(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    text.parse().ok().filter(|newest: &u64| newest.to_string() == text)
}

/// A policy, as it is written.
fn policy(mut bytes: Vec<u8>) -> Option<KeptPolicy> {
    if bytes.len() < 8 {
        return None;
    }
    let bundle = bytes.split_off(8);
    let version = u64::from_le_bytes(bytes.try_into().ok()?);
    (version > 0).then_some(KeptPolicy { version, bundle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn of(newest: u64, policy: Option<(u64, &[u8])>) -> Kept {
        let policy = policy.map(|(version, bundle)| KeptPolicy { version, bundle: bundle.to_vec() });
        Kept { newest, policy }
    }

    fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept");
        (folder, path)
    }

    fn error(path: &Path) -> FolderError {
        Store::open(path).err().expect("refused")
    }

    #[test]
    fn what_was_kept_comes_back_and_no_version_falls() {
        let (_folder, path) = folder();
        let store = Store::open(&path).expect("it is made");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o700);
        assert_eq!(*store.kept(), of(0, None));
        store.keep(of(3, None)).expect("there is room");
        store.keep(of(4, Some((4, b"four")))).expect("there is room");
        store.keep(of(6, None)).expect("there is room");
        let all = of(6, Some((4, b"four")));
        assert_eq!(*store.kept(), all);
        // What a core would say that was taken over.
        store.keep(of(2, None)).expect("nothing is to be written");
        store.keep(of(6, Some((4, b"four")))).expect("it is there");
        assert!(store.keep(of(6, Some((3, b"three")))).is_err());
        assert!(store.keep(of(6, Some((4, b"another")))).is_err());
        assert!(store.keep(of(6, Some((7, b"above the newest")))).is_err());
        assert_eq!(*store.kept(), all);
        drop(store);
        assert_eq!(*Store::open(&path).expect("it is there").kept(), all);
    }

    #[test]
    fn whatever_was_being_written_when_the_machine_fell_the_old_one_is_there() {
        let (_folder, path) = folder();
        let store = Store::open(&path).expect("it is made");
        store.keep(of(1, Some((1, b"one")))).expect("there is room");
        drop(store);
        fs::write(path.join(UNFINISHED), b"\x02\0\0\0\0\0\0\0tw").expect("written");
        let store = Store::open(&path).expect("it is there");
        assert_eq!(*store.kept(), of(1, Some((1, b"one"))));
        store.keep(of(2, Some((2, b"two")))).expect("there is room");
        drop(store);
        // Between both files.
        fs::write(path.join(NEWEST), "1\n").expect("written");
        assert_eq!(*Store::open(&path).expect("it is there").kept(), of(2, Some((2, b"two"))));
    }

    #[test]
    fn what_cannot_be_written_is_kept_in_memory() {
        let (_folder, path) = folder();
        let store = Store::open(&path).expect("it is made");
        fs::remove_dir(&path).expect("it is empty");
        assert!(store.keep(of(2, Some((2, b"two")))).is_err());
        assert_eq!(*store.kept(), of(2, Some((2, b"two"))));
    }

    #[test]
    fn what_is_kept_is_known_while_the_disk_hangs() {
        let (_folder, path) = folder();
        let store = Arc::new(Store::open(&path).expect("it is made"));
        // Whoever writes is held up here as by a disk.
        let disk = held(&store.on_disk);
        let (tells, told) = std::sync::mpsc::channel();
        let asks = store.clone();
        std::thread::spawn(move || tells.send(asks.kept()));
        let kept = told.recv_timeout(std::time::Duration::from_secs(60)).expect("it does not wait");
        assert_eq!(*kept, of(0, None));
        // What is to be kept next is known, too, before it is on the disk.
        let keeps = store.clone();
        let next = std::thread::spawn(move || keeps.keep(of(2, Some((2, b"two")))));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while *store.kept() != of(2, Some((2, b"two"))) {
            assert!(std::time::Instant::now() < end, "it waits for the disk");
            std::thread::yield_now();
        }
        assert!(!path.join(POLICY).exists());
        drop(disk);
        next.join().expect("it ends").expect("there is room");
        assert!(path.join(POLICY).exists());
    }

    #[test]
    fn what_could_not_be_written_is_written_with_the_next() {
        let (_folder, path) = folder();
        let store = Store::open(&path).expect("it is made");
        fs::create_dir(path.join(UNFINISHED)).expect("it is made");
        assert!(store.keep(of(2, Some((2, b"two")))).is_err());
        fs::remove_dir(path.join(UNFINISHED)).expect("it is empty");
        store.keep(of(3, None)).expect("there is room");
        drop(store);
        assert_eq!(*Store::open(&path).expect("it is there").kept(), of(3, Some((2, b"two"))));
    }

    #[test]
    fn a_folder_that_others_may_use_or_that_is_damaged_is_refused() {
        let (outer, path) = folder();
        drop(Store::open(&path).expect("it is made"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("its own");
        assert!(matches!(error(&path), FolderError::Open));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its own");
        let store = Store::open(&path).expect("it is there");
        assert!(matches!(error(&path), FolderError::Taken));
        drop(store);
        let link = outer.path().join("link");
        symlink(&path, &link).expect("a link");
        assert!(matches!(error(&link), FolderError::System(_)));
        for newest in ["", "1", "01\n", "-1\n", "1\n2\n", "18446744073709551616\n"] {
            fs::write(path.join(NEWEST), newest).expect("written");
            assert!(matches!(error(&path), FolderError::Damaged(NEWEST)), "{newest:?}");
        }
        fs::write(path.join(NEWEST), format!("{}\n", u64::MAX)).expect("written");
        for policy in [&b""[..], b"\x01\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0x"] {
            fs::write(path.join(POLICY), policy).expect("written");
            assert!(matches!(error(&path), FolderError::Damaged(POLICY)), "{policy:?}");
        }
        let long = File::create(path.join(POLICY)).expect("it can be written");
        long.set_len(LONGEST_BUNDLE as u64 + 9).expect("a hole");
        assert!(matches!(error(&path), FolderError::Damaged(POLICY)));
    }
}
