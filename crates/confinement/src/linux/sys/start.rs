//! The system calls that no safe interface has: a process in new namespaces, and a copy of this process for
//! trials.

#![allow(unsafe_code)]

use super::check;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// What a new process does before its program begins. All of it is made ready beforehand: the process is a
/// copy of one thread of this one, so it must not wait for a lock that another thread held.
pub(in crate::linux) struct Beginning<'a> {
    /// Flags of clone(2) that ask for namespaces.
    pub(in crate::linux) namespaces: u64,
    /// The program, its arguments and its environment.
    pub(in crate::linux) program: &'a OwnedFd,
    pub(in crate::linux) arguments: &'a [CString],
    pub(in crate::linux) environment: &'a [CString],
    /// Descriptors of this process, and their numbers in the new one. All are above these numbers.
    pub(in crate::linux) descriptors: &'a [(OwnedFd, RawFd)],
    /// Gives one byte once the new process may go on, and ends if it may not.
    pub(in crate::linux) go: &'a OwnedFd,
    /// The end of `go` that gives it. The new process closes its copy.
    pub(in crate::linux) go_writer: RawFd,
    /// Gets what failed; nothing if the program began.
    pub(in crate::linux) failure: &'a OwnedFd,
    /// Whether it becomes user 0 of its namespace, and whether it can give up its groups there.
    pub(in crate::linux) becomes_root: bool,
    pub(in crate::linux) leaves_groups: bool,
}

/// What a new process had not done yet when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::linux) enum Step {
    User = 1,
    Death = 2,
    Descriptors = 3,
    Program = 4,
}

/// Arguments of clone3(2), of which later parts are left out.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// Starts a process as it is described. Returns its number and a descriptor that stands for it.
pub(in crate::linux) fn begin(beginning: &Beginning<'_>) -> io::Result<(i32, OwnedFd)> {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(beginning.arguments), pointers(beginning.environment));
    let mut process: RawFd = -1;
    let mut wanted = CloneArguments {
        flags: beginning.namespaces | libc::CLONE_PIDFD as u64,
        pidfd: (&raw mut process) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArguments::default()
    };
    let mask = every_signal_blocked()?;
    // SAFETY: the structure has the size that is passed, and it and `process` live throughout the call.
    // Without CLONE_VM the new process has memory of its own, as after fork(2); it makes only system calls,
    // on what was made before, until it ends or its program begins.
    let number = unsafe { libc::syscall(libc::SYS_clone3, &raw mut wanted, size_of::<CloneArguments>()) };
    if number == 0 {
        let step = follow(beginning, &arguments, &environment);
        // SAFETY: as in `follow`: `errno` is that of the call that failed, and the place is this thread's.
        let number = unsafe { *libc::__errno_location() };
        let told = [step as u8, number as u8];
        // SAFETY: two bytes that live; then the process ends without running anything else.
        unsafe {
            libc::write(beginning.failure.as_raw_fd(), told.as_ptr().cast(), told.len());
            libc::_exit(127)
        }
    }
    let error = io::Error::last_os_error();
    // SAFETY: a mask that lives; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
    if number < 0 {
        return Err(error);
    }
    // SAFETY: Linux has just opened it, for this process alone.
    Ok((number as i32, unsafe { OwnedFd::from_raw_fd(process) }))
}

/// Lets no signal come to this thread, and so to the copy that it makes; returns what was blocked before.
fn every_signal_blocked() -> io::Result<libc::sigset_t> {
    // SAFETY: zeros are a valid value of this plain structure; both live throughout the calls.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// What the new process does. Returns what it had not done yet when a call failed.
fn follow(
    beginning: &Beginning<'_>,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> Step {
    let mut byte = 0u8;
    // SAFETY: takes numbers, and a byte that lives.
    unsafe {
        libc::close(beginning.go_writer);
        if libc::read(beginning.go.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
            libc::_exit(127);
        }
    }
    if beginning.becomes_root {
        // The calls of glibc would ask threads that this process does not have.
        // SAFETY: these take numbers only, and no groups at all.
        let became = unsafe {
            (!beginning.leaves_groups
                || libc::syscall(libc::SYS_setgroups, 0, ptr::null::<libc::gid_t>()) == 0)
                && libc::syscall(libc::SYS_setresgid, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_setresuid, 0, 0, 0) == 0
        };
        if !became {
            return Step::User;
        }
    }
    let mut gone = libc::pollfd { fd: beginning.go.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: takes numbers, and a structure that lives; an empty set of signals is written before it is
    // read.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Step::Death;
        }
        // The parent may have died before it was asked for: it held the other end.
        if libc::poll(&raw mut gone, 1, 0) != 0 {
            libc::_exit(127);
        }
        // A handler of this process has no business in the new one. Numbers that the C library keeps for
        // itself it refuses.
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    // SAFETY: takes numbers only.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } != 0 {
        return Step::Descriptors;
    }
    for (descriptor, number) in beginning.descriptors {
        // SAFETY: takes numbers only; the descriptor is open.
        if unsafe { libc::dup2(descriptor.as_raw_fd(), *number) } < 0 {
            return Step::Descriptors;
        }
    }
    // SAFETY: lists of strings that end with a zero, and the lists end with a null; they live.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            beginning.program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    Step::Program
}

/// Does something in a copy of this process, which ends after it, and returns the text that it gave back:
/// nothing if it succeeded.
pub(in crate::linux) fn in_a_copy(deed: impl FnOnce() -> Result<(), String>) -> io::Result<Option<String>> {
    use std::io::{Read, Write};
    let (mut read, mut write) = io::pipe()?;
    // SAFETY: fork(3) of the C library leaves its allocator usable in the copy. The copy runs `deed`, which
    // takes no lock that another thread of this process could hold, and ends by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let told = deed().err().unwrap_or_else(|| "+".to_owned());
            let _ = write.write_all(told.as_bytes());
            // SAFETY: ends the process without running what belongs to the original.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(write);
            let mut told = String::new();
            let read = read.read_to_string(&mut told);
            // SAFETY: takes numbers, and no place for the status.
            unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
            read?;
            match told.as_str() {
                "+" => Ok(None),
                "" => Ok(Some("the trial ended without a word".to_owned())),
                _ => Ok(Some(told)),
            }
        }
    }
}

/// Gives this thread namespaces of its own (unshare(2)), or those that come for its children.
pub(in crate::linux) fn leave(namespaces: u64) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::unshare(namespaces as libc::c_int) })
}
