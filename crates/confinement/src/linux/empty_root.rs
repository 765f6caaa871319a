//! An empty, read-only root in place of all file systems.

use crate::{Layer, Missing};
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
};
use rustix::{fs, mount, process};
use std::os::fd::OwnedFd;

/// Puts the root there and gives up all others.
///
/// The new root is mounted over the old one, made the root in its place, and the old one, which is then
/// mounted over it, is detached with everything below (pivot_root(2)). No folder of the machine is needed for
/// it.
pub(super) fn put() -> Result<(), Missing> {
    let missing = |what: &'static str| {
        move |error: Errno| Missing::new(Layer::MountNamespace, format!("{what}: {error}"))
    };
    apart()?;
    let empty = mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(missing("fsopen"))?;
    // One inode is that of the root itself.
    for (option, value) in [("nr_inodes", "1"), ("size", "4k"), ("mode", "0")] {
        mount::fsconfig_set_string(&empty, option, value).map_err(missing(option))?;
    }
    mount::fsconfig_create(&empty).map_err(missing("fsconfig"))?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root =
        mount::fsmount(&empty, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(missing("fsmount"))?;
    make_root(&root)
}

/// Lets nobody outside see what is mounted from now on.
pub(super) fn apart() -> Result<(), Missing> {
    mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|error| Missing::new(Layer::MountNamespace, format!("mount: {error}")))
}

/// Makes what was mounted nowhere yet the root, as [`put`] says.
pub(super) fn make_root(root: &OwnedFd) -> Result<(), Missing> {
    let missing = |what: &'static str| {
        move |error: Errno| Missing::new(Layer::MountNamespace, format!("{what}: {error}"))
    };
    mount::move_mount(root, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(missing("move_mount"))?;
    process::fchdir(root).map_err(missing("fchdir"))?;
    process::pivot_root(".", ".").map_err(missing("pivot_root"))?;
    mount::unmount(".", UnmountFlags::DETACH).map_err(missing("umount"))?;
    process::chdir("/").map_err(missing("chdir"))
}

/// Looks whether it is there.
pub(super) fn check() -> Result<(), Missing> {
    let missing = |why: String| Missing::new(Layer::MountNamespace, why);
    let about = fs::statvfs("/").map_err(|error| missing(format!("/: {error}")))?;
    if !about.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(missing("the root can be written".to_owned()));
    }
    if about.f_files != 1 {
        return Err(missing(format!("the root has room for {} files", about.f_files)));
    }
    match fs::stat("/proc") {
        Err(Errno::NOENT | Errno::ACCESS) => Ok(()),
        Err(error) => Err(missing(format!("/proc: {error}"))),
        Ok(_) => Err(missing("/proc is still there".to_owned())),
    }
}
