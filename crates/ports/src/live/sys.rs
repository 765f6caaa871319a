//! The system calls of live ports, each wrapped once. Memory shared with Linux is accessed only through
//! `Shared`.

#![allow(unsafe_code)]

#[cfg(feature = "open")]
mod opening;

#[cfg(feature = "attach")]
pub(crate) use opening::interface_has_carrier;
#[cfg(feature = "open")]
pub(crate) use opening::{
    ask_ethtool, asker, begin, bound_interface, descriptor_of, hold, interface_flags, interface_is_up,
    interface_link_type, interface_mtu, interface_station, join_fanout, make_fanout, netfilter_socket,
    netlink_socket, send_directly, set_option, set_receive_buffer, set_send_buffer,
};
#[cfg(feature = "open")]
pub use opening::{
    attach_filter, bind_packet, interface_index, keep_off, packet_socket, peer_process, request, set_buffer,
    set_number, take_all,
};

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
#[cfg(feature = "open")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A frame that is handed to [`send_frames`]: what stands before it, and its bytes.
pub struct Outgoing<'a> {
    /// A header of its own, which other sockets of this kind take before the frame.
    pub header: &'a [u8],
    /// The frame.
    pub frame: &'a [u8],
}

/// Memory that the kernel writes, too. Words whose owner changes are read and written as atomics; bytes are
/// lent as a slice only for a range that the caller knows to be its own at that time.
pub(crate) struct Shared {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and `Shared` is its only owner.
unsafe impl Send for Shared {}

impl Shared {
    /// Maps what a descriptor offers from `offset` on.
    pub(crate) fn map(fd: &OwnedFd, len: usize, offset: i64) -> io::Result<Shared> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(start.cast()) {
            Some(start) if start.as_ptr() as isize != -1 => Ok(Shared { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A word whose owner changes, at a byte offset that is a multiple of 4.
    ///
    /// # Panics
    /// The offset is odd or outside, which no packet can cause: offsets come from the geometry of the ring.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.len);
        // SAFETY: inside the mapping and aligned, as was just checked; both sides touch it as a whole word
        // only.
        unsafe { self.start.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// A word of 64 bits, at a byte offset that is a multiple of 8.
    ///
    /// # Panics
    /// As for [`word`](Shared::word).
    #[inline]
    pub(crate) fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len);
        // SAFETY: inside the mapping and aligned, as was just checked. This side touches it as a whole only;
        // where the kernel has two words of 32 bits there, a word whose owner changes has handed both over
        // together.
        unsafe { self.start.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Bytes that are this side's own for as long as the slice lives.
    ///
    /// # Safety
    /// The kernel neither reads nor writes the range until the borrow ends, and no word in it is used through
    /// [`word`](Shared::word).
    #[inline]
    pub(crate) unsafe fn own(&mut self, start: usize, end: usize) -> &mut [u8] {
        assert!(start <= end && end <= self.len);
        // SAFETY: inside the mapping, as was just checked; the caller promises that nobody else touches it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(start), end - start) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it is exactly what `map` got, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(feature = "open")]
pub(crate) fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the kernel has just given it to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The result of a call that is negative where it fails.
pub(crate) fn check<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Reads an option of a socket over `value`. `T` is the type that the kernel documents for it, a structure of
/// numbers only.
pub(crate) fn read_option<T: Copy>(
    fd: &impl AsRawFd,
    level: i32,
    option: i32,
    mut value: T,
) -> io::Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call, and every value
    // of its numbers is valid.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut size)
    })?;
    Ok(value)
}

/// Lets a descriptor stand for what another stands for, under its own number.
pub(crate) fn replace(place: &OwnedFd, by: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes numbers only; both are open, and `place` stays so.
    check(unsafe { libc::dup3(by.as_raw_fd(), place.as_raw_fd(), libc::O_CLOEXEC) })?;
    Ok(())
}

/// What a packet socket counted since it was asked last: frames, and those of them that found no room.
pub fn packet_statistics(fd: &OwnedFd) -> io::Result<(u32, u32)> {
    let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let counts = read_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
    Ok((counts.tp_packets, counts.tp_drops))
}

/// How many frames one call hands over at most.
pub const SEND_AT_ONCE: usize = 64;

/// Sends frames in order and returns how many the kernel took. At most [`SEND_AT_ONCE`] are tried.
///
/// # Errors
/// The first frame could not be sent.
pub fn send_frames<'a>(fd: &OwnedFd, frames: impl Iterator<Item = Outgoing<'a>>) -> io::Result<usize> {
    const NO_PART: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut parts = [[NO_PART; 2]; SEND_AT_ONCE];
    let mut count = 0;
    for (place, frame) in parts.iter_mut().zip(frames) {
        let part =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        *place = [part(frame.header), part(frame.frame)];
        count += 1;
    }
    // SAFETY: zeros are a valid value of this plain structure.
    let mut messages: [libc::mmsghdr; SEND_AT_ONCE] = unsafe { std::mem::zeroed() };
    for (message, place) in messages.iter_mut().zip(&mut parts[..count]) {
        // The kernel has a quicker way for a message of one part.
        let first = usize::from(place[0].iov_len == 0);
        message.msg_hdr.msg_iov = place[first..].as_mut_ptr();
        message.msg_hdr.msg_iovlen = place.len() - first;
    }
    // SAFETY: every message points to its one or two parts and these to bytes that live as long as `'a`; the
    // kernel only reads them.
    let sent = check(unsafe {
        libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT)
    })?;
    Ok(sent as usize)
}

/// Receives the next frame and what stands before it, and returns how long the frame really is; what does not
/// fit is lost.
///
/// # Errors
/// Nothing is there.
pub(crate) fn receive_frame(fd: &OwnedFd, header: &mut [u8], frame: &mut [u8]) -> io::Result<usize> {
    let part = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut parts = [part(header), part(frame)];
    // SAFETY: zeros are a valid value of this plain structure.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    // SAFETY: the message points to two parts, and these to bytes that are ours alone throughout the call.
    let length =
        unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    Ok((check(length)? as usize).saturating_sub(header.len()))
}

/// Waits until one of the descriptors has something to read, or the time is up. Says whether the first one
/// has; `polled` is room for the question. A descriptor with an error that stays, as of a TAP device that was
/// deleted, ends no wait, but none is longer than [`ERROR_STAYS`] then.
pub(crate) fn wait(fds: &[RawFd], polled: &mut Vec<libc::pollfd>, nanoseconds: u64) -> io::Result<bool> {
    polled.clear();
    polled.extend(fds.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }));
    if !poll(polled, nanoseconds)? {
        return Ok(false);
    }
    let mut stays = false;
    for one in polled.iter_mut().filter(|one| one.revents & libc::POLLERR != 0) {
        if !forget_error(one.fd) {
            // The kernel passes over what is below zero (poll(2)).
            (one.fd, one.revents, stays) = (-1, 0, true);
        }
    }
    if stays && polled.iter().all(|one| one.revents == 0) {
        poll(polled, nanoseconds.min(ERROR_STAYS))?;
    }
    Ok(polled.first().is_some_and(|first| first.revents != 0))
}

/// How long a wait is at most while a descriptor has an error that stays, in nanoseconds: whoever reads from
/// it is to look again what has become of it.
const ERROR_STAYS: u64 = 10_000_000;

/// Waits for descriptors; says whether there is something to look at.
pub(crate) fn poll(polled: &mut [libc::pollfd], nanoseconds: u64) -> io::Result<bool> {
    let limit = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointers and the count are those of values that live throughout the call.
    let result = unsafe {
        libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &raw const limit, std::ptr::null())
    };
    match check(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        result => result.map(|ready| ready > 0),
    }
}

/// Waits until a descriptor has something to read or an error to tell, which stays there, or the time is up.
#[cfg(feature = "open")]
pub(crate) fn wait_to_read(fd: RawFd, nanoseconds: u64) {
    // Whoever reads sees what there is, whatever ended the wait.
    let _ = poll(&mut [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }], nanoseconds);
}

/// Takes the error off a socket, as of an interface that was switched off: until then every wait would end at
/// once. Says whether it is one.
fn forget_error(fd: RawFd) -> bool {
    read_option(&fd, libc::SOL_SOCKET, libc::SO_ERROR, 0i32).is_ok()
}

/// A descriptor that can be read once [`ring`] was called, until [`silence`] is.
pub(crate) fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes a bell readable. It can fail only where it is already.
pub(crate) fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Makes a bell unreadable. It can fail only where it is already.
pub(crate) fn silence(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

/// Keeps the thread that calls on one core, counted from 0.
///
/// # Errors
/// There is no such core, or this process may not use it.
pub fn pin(core: u16) -> io::Result<()> {
    let core = usize::from(core);
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

/// The core's cycle counter: it grows at a constant rate, whatever the clock frequency of the core.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches nothing but registers.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since some moment, in the place of a cycle counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn cycles() -> u64 {
    since_start()
}

/// Nanoseconds since the machine started, those of its sleep included. Nobody sets this clock, and it never
/// goes back.
#[inline]
pub(crate) fn since_start() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to the place that is passed, and nothing else; where it does not know the
    // clock, it is 0. By `rustix` it would be asked with a call that a confined process may not make.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads the word that the kernel hands a frame over by; what it wrote before is visible then.
#[inline]
pub(crate) fn taken_over(word: &AtomicU32) -> u32 {
    word.load(Ordering::Acquire)
}

/// Hands a frame back by its word; what was read before has been read.
#[inline]
pub(crate) fn hand_back(word: &AtomicU32, status: u32) {
    word.store(status, Ordering::Release);
}
