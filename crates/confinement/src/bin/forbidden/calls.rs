//! The system calls of forbidden actions, made without any library between.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, IntoRawFd};

/// Makes a system call. What its arguments point to is memory of `ground`, which is never freed.
pub(crate) fn make(number: i64, arguments: [u64; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: a forbidden action does to this process, which ends after it, whatever it does; it is memory of
    // the ground that calls write to.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
}

/// Ends this process at once.
pub(crate) fn end(status: i32) -> ! {
    // SAFETY: takes a number only.
    unsafe { libc::_exit(status) }
}

/// Asks for the number of this process in the way of 32-bit programs. It is call 20 there, and `writev` in
/// ours.
#[cfg(target_arch = "x86_64")]
pub(crate) fn make_32_bit() -> Result<i64, i32> {
    let result: i32;
    // SAFETY: this call reads and writes no memory; the compiler is told which registers it changes.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") 20 => result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result < 0 { Err(-result) } else { Ok(i64::from(result)) }
}

/// A child that waits until this process ends.
pub(crate) fn waiting_child() -> io::Result<i32> {
    let (mut end, kept) = io::pipe()?;
    // SAFETY: this process has one thread; the copy waits, and ends without running what belongs to the
    // original.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(kept);
            let _ = end.read(&mut [0]);
            self::end(0)
        }
        child => {
            // It is closed when this process ends, or becomes another program.
            let _ = kept.into_raw_fd();
            Ok(child)
        }
    }
}

/// Lets a copy of this process trace this one, and says what Linux answered it.
pub(crate) fn be_traced() -> Result<i64, i32> {
    let process = std::process::id();
    // SAFETY: this process has one thread; the copy makes one call and ends.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        0 => end(make(libc::SYS_ptrace, [libc::PTRACE_SEIZE as u64, process.into(), 0, 0, 0, 0])
            .err()
            .unwrap_or(0)),
        child => {
            let mut status = 0;
            // SAFETY: takes numbers, and a number that lives.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match libc::WEXITSTATUS(status) {
                0 => Ok(0),
                error => Err(error),
            }
        }
    }
}

/// A descriptor that this process has had from its beginning.
pub(crate) fn descriptor(number: i32) -> File {
    // SAFETY: who starts this process gives it the descriptor, for this alone.
    unsafe { File::from_raw_fd(number) }
}

/// Waits until something can be read.
pub(crate) fn wait_to_read(descriptor: i32) {
    let mut polled = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the structure lives throughout the call; there is neither a limit nor a mask.
    unsafe { libc::ppoll(&raw mut polled, 1, std::ptr::null(), std::ptr::null()) };
}

/// Hides from the machine what the process does to its mounts and its host name.
pub(crate) fn hide() -> io::Result<()> {
    let none = std::ptr::null();
    // SAFETY: takes numbers, and a text that ends with a zero.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWUTS) != 0
            || libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes the message queue that an action opens; anybody may use it. Returns its number.
pub(crate) fn make_queue() -> io::Result<i32> {
    // SAFETY: takes numbers only.
    match unsafe { libc::msgget(QUEUE, libc::IPC_CREAT | 0o666) } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Removes it.
pub(crate) fn remove_queue(number: i32) -> io::Result<()> {
    // SAFETY: takes numbers; this command reads no structure.
    match unsafe { libc::msgctl(number, libc::IPC_RMID, std::ptr::null_mut()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The key of the message queue.
pub(crate) const QUEUE: i32 = 0x7261_7601;
