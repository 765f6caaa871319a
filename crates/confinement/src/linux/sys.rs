//! The system calls that no safe interface has, of a process that confines itself, and what is done when a
//! call is refused.

#![allow(unsafe_code)]

#[cfg(feature = "start")]
mod start;

#[cfg(feature = "start")]
pub(super) use start::{Beginning, Step, begin, in_a_copy, leave};

use std::io;
use std::os::fd::RawFd;
use std::ptr;

/// Makes all threads of this process act as another user, without further groups.
pub(super) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: these take numbers only, and no groups at all.
    unsafe {
        check(libc::setgroups(0, ptr::null()))?;
        check(libc::setresgid(group, group, group))?;
        check(libc::setresuid(user, user, user))
    }
}

/// Whether memory that is made to be read can be executed too, as very old programs had it (personality(2)).
pub(super) fn readable_is_executable() -> bool {
    // SAFETY: takes a number, which asks and changes nothing.
    unsafe { libc::personality(0xffff_ffff) & libc::READ_IMPLIES_EXEC != 0 }
}

/// How many numbers of descriptors are in use or below one that is, looking at the first `limit`.
pub(super) fn descriptors_end(limit: u32) -> u32 {
    let open = |number: &u32| {
        // SAFETY: takes numbers only, and says of one that is not open that it is not.
        (unsafe { libc::fcntl(*number as RawFd, libc::F_GETFD) }) >= 0
    };
    (0..limit).rev().find(open).map_or(0, |last| last + 1)
}

/// Whether the error output is a file, which a process that may write none cannot use.
pub(super) fn error_output_is_file() -> bool {
    // SAFETY: zeros are a valid value of this plain structure.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is that of a value that lives throughout the call.
    let known = unsafe { libc::fstat(libc::STDERR_FILENO, &raw mut about) } == 0;
    known && about.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Lets threads share a fixed number of allocators, none of which gives back the end of its memory. By itself
/// the C library would ask Linux how many processors there are, and read before it gives memory back how
/// Linux overcommits it; it may do neither once the process is locked. Large pieces are mapped one by one and
/// given back as before.
pub(super) fn fix_allocators() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers only.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 8);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    };
}

/// Has a refused system call told on the error output, by its number, before it ends the process.
pub(super) fn tell_refused_calls() -> io::Result<()> {
    // SAFETY: zeros are a valid value of this plain structure: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = refused as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler makes only system calls, on memory of its own; the old action is not asked for.
    check(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) })
}

/// The beginning of what is told of a refused call; its number follows.
const REFUSED: &[u8; 33] = b"confinement: refused system call ";

/// Tells the number of a refused call and ends the process by the same signal.
extern "C" fn refused(_signal: libc::c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    /// The beginning of what Linux tells with SIGSYS (sigaction(2)).
    #[repr(C)]
    struct RefusedCall {
        signal: libc::c_int,
        error: libc::c_int,
        code: libc::c_int,
        address: *const libc::c_void,
        call: libc::c_int,
    }
    // SAFETY: Linux calls this for SIGSYS alone, with a structure that begins so.
    let mut number = unsafe { (*about.cast::<RefusedCall>()).call } as u32;
    // The number, written from its end, of at most ten digits.
    let mut line = [b'\n'; REFUSED.len() + 11];
    let mut digits = line.len() - 1;
    loop {
        digits -= 1;
        line[digits] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let begin = digits - REFUSED.len();
    line[begin..digits].copy_from_slice(REFUSED);
    let line = &line[begin..];
    let mut output = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: bytes and structures that live. A full pipe is not waited for. The signal is blocked while this
    // runs, so the last call but one, which no role has, ends the process by it at once (seccomp(2)); if it
    // did not, the last one would.
    unsafe {
        if libc::ppoll(&raw mut output, 1, &raw const at_once, ptr::null()) == 1 {
            libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        }
        libc::syscall(libc::SYS_getppid);
        libc::_exit(128 + libc::SIGSYS);
    }
}

/// The result of a call that is negative where it fails.
fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
