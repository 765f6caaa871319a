//! A folder as a read-only root in place of all file systems.

use super::empty_root;
use crate::{Layer, Missing};
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, OpenTreeFlags};
use rustix::{fs, mount};
use std::path::Path;

/// Puts the folder there, with what is mounted below it, and gives up everything else.
pub(super) fn put(folder: &Path) -> Result<(), Missing> {
    let missing = |what: &'static str| {
        move |error: Errno| Missing::new(Layer::MountNamespace, format!("{what}: {error}"))
    };
    empty_root::apart()?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let tree = mount::open_tree(CWD, folder, flags).map_err(|error| {
        let why = format!("{}: {error}; nobody (65534) has to be able to reach it", folder.display());
        Missing::new(Layer::MountNamespace, why)
    })?;
    empty_root::make_root(&tree)?;
    let only_read =
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount::mount_remount("/", only_read, "").map_err(missing("remount"))
}

/// Looks whether it is there.
pub(super) fn check(folder: &fs::Stat) -> Result<(), Missing> {
    let missing = |why: String| Missing::new(Layer::MountNamespace, why);
    let about = fs::statvfs("/").map_err(|error| missing(format!("/: {error}")))?;
    if !about.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(missing("the root can be written".to_owned()));
    }
    let root = fs::stat("/").map_err(|error| missing(format!("/: {error}")))?;
    match (root.st_dev, root.st_ino) == (folder.st_dev, folder.st_ino) {
        true => Ok(()),
        false => Err(missing("the root is another folder".to_owned())),
    }
}
