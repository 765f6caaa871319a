//! The files that are seen inside: those of the machine, which cannot be written, with what is private hidden
//! behind empty folders of the container's own.

use crate::limits::{FOLDER_FILES, FOLDER_SIZE, MOST_TERMINALS};
use crate::{ContainerError, failed, sys};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_change,
    mount_remount, move_mount, open_tree,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// Folders that are empty inside, and can be written: services keep their state there, which goes with the
/// container.
const OWN: [&str; 9] =
    ["/run", "/tmp", "/var/tmp", "/var/lib", "/var/log", "/var/cache", "/var/spool", "/root", "/home"];
/// Folders that are empty inside.
const HIDDEN: [&str; 6] = ["/sys", "/boot", "/mnt", "/media", "/srv", "/lost+found"];
/// Files of `/proc` about the machine as a whole.
const SILENT: [&str; 10] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kmsg",
    "/proc/kallsyms",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/sched_debug",
];
/// The list of users, and that of their passwords.
const USERS: &str = "/etc/passwd";
const PASSWORDS: &str = "/etc/shadow";
/// The device that the monitor of a virtual machine gets, where there is one.
const KVM: &str = "/dev/kvm";
/// Devices that do not lead out of the container.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Puts them in place of the machine's. `root` is the user outside that is root inside; `guest` says whether
/// a virtual machine is to run inside.
pub(crate) fn put(root: u32, shown: &[PathBuf], guest: bool) -> Result<(), ContainerError> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(failed("mounts of its own"))?;
    let has_kvm = Path::new(KVM).exists();
    let devices = DEVICES.map(|name| (PathBuf::from("/dev").join(name), true));
    let devices =
        devices.into_iter().map(|(path, file)| Kept::take(path, file)).collect::<Result<Vec<_>, _>>()?;
    sys::make_read_only(c"/").map_err(failed("making the machine's files read-only"))?;
    // With the marks of above: what is shown cannot be written, either.
    let shown =
        shown.iter().map(|path| Kept::take(path.clone(), !path.is_dir())).collect::<Result<Vec<_>, _>>()?;
    let device_folder = Empty { mode: "755", size: "64k", flags: MountFlags::NOSUID | MountFlags::NOEXEC };
    device_folder.put("/dev", root)?;
    devices.iter().chain(&shown).filter(|kept| kept.path.starts_with("/dev")).try_for_each(Kept::put)?;
    terminals(root)?;
    if guest && has_kvm {
        virtualization(root)?;
    }
    let own = Empty { mode: "755", size: FOLDER_SIZE, flags: MountFlags::NOSUID | MountFlags::NODEV };
    for folder in OWN {
        let mode = if folder.ends_with("tmp") { "1777" } else { "755" };
        Empty { mode, ..own }.put(folder, root)?;
    }
    passwords(root)?;
    let hidden = Empty { mode: "555", size: "4k", flags: own.flags | MountFlags::NOEXEC };
    HIDDEN.into_iter().try_for_each(|folder| hidden.put(folder, root))?;
    shown.iter().filter(|kept| !kept.path.starts_with("/dev")).try_for_each(Kept::put)?;
    // What is shown below had to be made there.
    HIDDEN.into_iter().try_for_each(|folder| hidden.make_read_only(folder))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(failed("/proc"))?;
    for path in SILENT.into_iter().filter(|path| Path::new(path).exists()) {
        mount_bind("/dev/null", path).map_err(failed(path))?;
    }
    std::env::set_current_dir("/").map_err(failed("/"))
}

/// An empty folder of the container's own.
#[derive(Clone, Copy)]
struct Empty {
    mode: &'static str,
    size: &'static str,
    flags: MountFlags,
}

impl Empty {
    /// Puts it over a folder, if there is one; where a link leads to it, over what the link leads to.
    fn put(&self, folder: &str, root: u32) -> Result<(), ContainerError> {
        if !Path::new(folder).is_dir() {
            return Ok(());
        }
        let place = fs::canonicalize(folder).map_err(failed(folder))?;
        if place == Path::new("/") {
            return Err(failed(folder)(io::Error::other("it leads to all files of the machine")));
        }
        let options =
            format!("mode={},size={},nr_inodes={FOLDER_FILES},uid={root},gid={root}", self.mode, self.size);
        let options = std::ffi::CString::new(options).map_err(failed(folder))?;
        mount("tmpfs", &place, "tmpfs", self.flags, &*options).map_err(failed(folder))
    }

    /// Lets nothing be written there any more.
    fn make_read_only(&self, folder: &str) -> Result<(), ContainerError> {
        if !Path::new(folder).is_dir() {
            return Ok(());
        }
        let place = fs::canonicalize(folder).map_err(failed(folder))?;
        mount_remount(&place, self.flags | MountFlags::BIND | MountFlags::RDONLY, "").map_err(failed(folder))
    }
}

/// Something of the machine that is to be seen at its path although what is around it is replaced.
struct Kept {
    path: PathBuf,
    tree: OwnedFd,
    file: bool,
}

impl Kept {
    fn take(path: PathBuf, file: bool) -> Result<Kept, ContainerError> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, &path, flags).map_err(failed(path.display().to_string()))?;
        Ok(Kept { path, tree, file })
    }

    fn put(&self) -> Result<(), ContainerError> {
        let what = || failed(self.path.display().to_string());
        let folder = if self.file { self.path.parent() } else { Some(&*self.path) };
        // What is not hidden is there already, and cannot be made.
        let made = folder.map_or(Ok(()), fs::create_dir_all);
        let made = made.and_then(|()| match self.file {
            true if !self.path.exists() => File::create(&self.path).map(drop),
            _ => Ok(()),
        });
        made.map_err(what())?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.tree, "", CWD, &self.path, flags).map_err(failed(self.path.display().to_string()))
    }
}

/// Passwords of its own: every user has one that nobody knows. Whoever cannot read any takes some users for
/// locked (nss-systemd(8)), and a server of logins lets these in by no key, either.
fn passwords(root: u32) -> Result<(), ContainerError> {
    const MADE: &str = "/run/shadow";
    if !Path::new(PASSWORDS).exists() {
        return Ok(());
    }
    let users = fs::read_to_string(USERS).map_err(failed(USERS))?;
    let names = users.lines().filter_map(|line| line.split(':').next());
    let text: String = names.map(|name| format!("{name}:*:::::::\n")).collect();
    let what = || failed(PASSWORDS);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(MADE).map_err(what())?;
    file.write_all(text.as_bytes()).map_err(what())?;
    chown(MADE, Some(root), Some(root)).map_err(what())?;
    mount_bind(MADE, PASSWORDS).map_err(failed(PASSWORDS))?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount(PASSWORDS, flags, "").map_err(failed(PASSWORDS))?;
    fs::remove_file(MADE).map_err(what())
}

/// The device by which Linux runs virtual machines on the processor itself, of the container's root. The
/// machine's own one is not for its user.
fn virtualization(root: u32) -> Result<(), ContainerError> {
    // Linux, Documentation/admin-guide/devices.txt: 10 char, 232.
    let device = makedev(10, 232);
    mknodat(CWD, KVM, FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, device).map_err(failed(KVM))?;
    chown(KVM, Some(root), Some(root)).map_err(failed(KVM))
}

/// Terminals of its own, and the usual names in `/dev`.
fn terminals(root: u32) -> Result<(), ContainerError> {
    for folder in ["/dev/pts", "/dev/shm"] {
        fs::create_dir(folder).map_err(failed(folder))?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = format!("newinstance,ptmxmode=0666,mode=620,max={MOST_TERMINALS}");
    let options = std::ffi::CString::new(options).map_err(failed("/dev/pts"))?;
    mount("devpts", "/dev/pts", "devpts", flags, &*options).map_err(failed("/dev/pts"))?;
    let shared = Empty { mode: "1777", size: FOLDER_SIZE, flags: flags | MountFlags::NODEV };
    shared.put("/dev/shm", root)?;
    for (name, to) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        let path = Path::new("/dev").join(name);
        symlinkat(to, CWD, &path).map_err(failed(path.display().to_string()))?;
    }
    Ok(())
}
