//! The system calls that no safe interface has.

#![allow(unsafe_code)]

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::RawFd;

/// Gives this thread namespaces of its own, or those that come for its children.
pub(crate) fn leave(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: what must not be taken away from other threads of a process is its table of descriptors, and no
    // caller asks for that.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }
}

/// Arguments of mount_setattr(2).
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Lets nothing below a folder be written, bring rights, or be a device, by this way.
pub(crate) fn make_read_only(folder: &std::ffi::CStr) -> io::Result<()> {
    let wanted = MountAttributes {
        set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the path and the structure, whose size is passed, live throughout the call, which reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            folder.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const wanted,
            size_of::<MountAttributes>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Leaves the keys of the one that started this process (keyrings(7)) and begins with none.
pub(crate) fn leave_keys() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: takes a number, and no name.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
    match io::Error::last_os_error() {
        // A Linux without keys.
        error if result < 0 && error.raw_os_error() != Some(libc::ENOSYS) => Err(error),
        _ => Ok(()),
    }
}

/// Makes a copy of this process, which must have a single thread; the number of the copy, and `None` in it.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: no other thread holds a lock that the copy would wait for.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(Pid::from_raw(number)),
    }
}

/// Whether nobody has the other end of a pipe any more.
pub(crate) fn is_closed(reader: RawFd) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: reader, events: 0, revents: 0 };
    // SAFETY: one structure is read and written, and nothing is waited for.
    match unsafe { libc::poll(&raw mut asked, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ if asked.revents & libc::POLLNVAL != 0 => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(asked.revents & libc::POLLHUP != 0),
    }
}

/// Closes every descriptor but the three of standard input and outputs. Nothing of this process may use
/// another one any more.
pub(crate) fn close_descriptors() -> io::Result<()> {
    // SAFETY: takes numbers only, and no value here has one of these descriptors.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Keeps every descriptor but the three of standard input and outputs, and `passed` by the number 3, from a
/// program that is executed.
pub(crate) fn keep_descriptors(passed: Option<RawFd>) -> io::Result<()> {
    let first_kept = if passed.is_some() { 4 } else { 3 };
    // SAFETY: takes numbers only; the descriptors stay open in this process.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first_kept, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(passed) = passed else { return Ok(()) };
    // SAFETY: takes numbers only. What had the number 3 is used no more: nothing but the program that is
    // executed comes behind this.
    if unsafe { libc::dup2(passed, 3) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if passed == 3 {
        // Nothing was copied, and a copy is what stays open.
        // SAFETY: takes numbers only.
        let result = unsafe { libc::fcntl(3, libc::F_SETFD, 0) };
        return if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    }
    Ok(())
}
