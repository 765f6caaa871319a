//! The system calls of live ports, each wrapped once. Memory shared with Linux is accessed only through
//! `Shared`.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
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

/// A socket that sees every frame of a network interface once it is bound.
///
/// # Errors
/// The right is missing (CAP_NET_RAW).
pub fn packet_socket() -> io::Result<OwnedFd> {
    // Protocol 0: nothing is received before it is bound to an interface.
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) };
    owned(fd)
}

pub(crate) fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the kernel has just given it to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The result of a call that is negative where it fails.
pub(crate) fn check<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets an option of a socket whose value is a whole number or a flag.
///
/// # Errors
/// What the kernel says.
pub fn set_number(fd: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    set_option(fd, level, option, value)
}

/// Sets an option of a socket. `T` is the type that the kernel documents for it. It may hold an address,
/// which the kernel then reads or writes: therefore the function stays inside the crate.
pub(crate) fn set_option<T: Copy>(fd: &impl AsRawFd, level: i32, option: i32, value: T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), size) })?;
    Ok(())
}

/// Gives a socket's receive buffer so many bytes, or as many as may be had without the right to more
/// (CAP_NET_ADMIN); says how many it has now.
pub(crate) fn set_receive_buffer(fd: &OwnedFd, bytes: usize) -> io::Result<usize> {
    set_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)
}

/// The same for its send buffer.
pub(crate) fn set_send_buffer(fd: &OwnedFd, bytes: usize) -> io::Result<usize> {
    set_buffer(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)
}

/// Sets the size of one of a socket's buffers by two options: one that needs CAP_NET_ADMIN, and one that does
/// not. Returns the size that it has now, in bytes.
///
/// # Errors
/// What the kernel says.
pub fn set_buffer(fd: &impl AsRawFd, forced: i32, plain: i32, bytes: usize) -> io::Result<usize> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(fd, libc::SOL_SOCKET, forced, bytes)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, plain, bytes))?;
    // The kernel counts its own keeping, too, and says twice what was asked for (socket(7)).
    Ok(read_option(fd, libc::SOL_SOCKET, plain, 0i32)? as usize / 2)
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

/// Whether a packet socket sends to its interface directly, past the queueing discipline. The direct way does
/// not cut segments.
pub(crate) fn send_directly(fd: &OwnedFd, directly: bool) -> io::Result<()> {
    set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, i32::from(directly))
}

/// Asks an interface for packets to all groups of stations, as long as the packet socket is open, and if
/// `promiscuous` for those that are meant for others, too.
pub(crate) fn take_all(fd: &OwnedFd, interface: u32, promiscuous: bool) -> io::Result<()> {
    let kind = if promiscuous { libc::PACKET_MR_PROMISC } else { libc::PACKET_MR_ALLMULTI };
    let request = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: kind as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
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

/// The number of a network interface.
///
/// # Errors
/// There is none of this name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: a string that ends with a zero and lives throughout the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// How many bytes a frame of the interface carries at most behind its Ethernet header.
pub(crate) fn interface_mtu(fd: &OwnedFd, name: &str) -> io::Result<u32> {
    let answer = ask(fd, name, libc::SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU has filled this member.
    Ok(unsafe { answer.ifr_ifru.ifru_mtu } as u32)
}

/// What kind of headers an interface's frames have, as a number of the list in the kernel (ARPHRD_*).
pub(crate) fn interface_link_type(fd: &OwnedFd, name: &str) -> io::Result<u16> {
    let answer = ask(fd, name, libc::SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR has filled this member.
    Ok(unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// An interface's Ethernet address.
pub(crate) fn interface_station(fd: &OwnedFd, name: &str) -> io::Result<[u8; 6]> {
    let answer = ask(fd, name, libc::SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR has filled this member.
    let address = unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok(std::array::from_fn(|at| address[at] as u8))
}

/// A socket to ask netfilter by, non-blocking.
pub(crate) fn netfilter_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
}

/// A socket to ask about interfaces by.
pub(crate) fn asker() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// Whether the interface is switched on.
pub(crate) fn interface_is_up(fd: &OwnedFd, name: &str) -> io::Result<bool> {
    Ok(interface_flags(fd, name)? & libc::IFF_UP != 0)
}

/// Whether the interface has a carrier: somebody is at the other end. The interface's flags would say so up
/// to a second later.
pub(crate) fn interface_has_carrier(fd: &OwnedFd, name: &str) -> io::Result<bool> {
    /// ETHTOOL_GLINK of linux/ethtool.h.
    const ASK_LINK: u32 = 0x0a;
    // struct ethtool_value: the question, and the place of its answer.
    let [_, carrier] = ask_ethtool(fd, name, [ASK_LINK, 0])?;
    Ok(carrier != 0)
}

/// Asks the driver of an interface (linux/ethtool.h). The kernel writes its answer over the question, whose
/// first number says how many there are.
pub(crate) fn ask_ethtool<const NUMBERS: usize>(
    fd: &OwnedFd,
    name: &str,
    mut numbers: [u32; NUMBERS],
) -> io::Result<[u32; NUMBERS]> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = numbers.as_mut_ptr().cast();
    // SAFETY: the request and the numbers that it points to live throughout the call, and the callers give as
    // many numbers as the question has.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(numbers)
}

/// The flags of an interface (IFF_UP and others).
pub(crate) fn interface_flags(fd: &OwnedFd, name: &str) -> io::Result<i32> {
    let answer = ask(fd, name, libc::SIOCGIFFLAGS)?;
    // SAFETY: SIOCGIFFLAGS has filled this member.
    Ok(i32::from(unsafe { answer.ifr_ifru.ifru_flags }))
}

/// Asks a question about an interface that needs no more than its name.
fn ask(fd: &OwnedFd, name: &str, question: libc::Ioctl) -> io::Result<libc::ifreq> {
    let mut request = request(name)?;
    // SAFETY: the request lives throughout the call, which writes inside it.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), question, &raw mut request) })?;
    Ok(request)
}

/// A question about an interface.
///
/// # Errors
/// No interface can have this name.
pub fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zeros are a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Binds a packet socket to an interface, by which it sends, and of which it sees the frames of a protocol
/// from then on (ETH_P_ALL: of all; 0: of none).
///
/// # Errors
/// There is no such interface.
pub fn bind_packet(fd: &OwnedFd, interface: u32, protocol: i32) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(())
}

/// The number of the interface that a packet socket is bound to; `None` if there is none any more.
pub(crate) fn bound_interface(fd: &OwnedFd) -> Option<u32> {
    // SAFETY: zeros are a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut size) }).ok()?;
    u32::try_from(address.sll_ifindex).ok().filter(|&index| index != 0)
}

/// Lets nothing into a socket before [`begin`]: what it sees between being bound and joining a group, another
/// socket of the group sees, too.
pub(crate) fn hold(fd: &OwnedFd) -> io::Result<()> {
    // One instruction of classic BPF: return 0, which keeps no byte of any packet.
    let nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    attach_filter(fd, &mut [nothing])
}

/// Lets into a socket what a program of classic BPF lets pass.
///
/// # Errors
/// What the kernel says; it checks the program.
pub fn attach_filter(fd: &OwnedFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, filter)
}

/// Lets packets in from now on.
pub(crate) fn begin(fd: &OwnedFd) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0i32)
}

/// By flow; and not what leaves, for a group does not ask its sockets about that
/// (`PACKET_FANOUT_FLAG_IGNORE_OUTGOING`, Linux 5.14).
const FANOUT: u32 = libc::PACKET_FANOUT_HASH | 0x4000;

/// Makes a bound packet socket the first of a group that shares the packets of its interface out by flow, and
/// returns the number of the group.
pub(crate) fn make_fanout(fd: &OwnedFd) -> io::Result<u16> {
    let way = FANOUT | libc::PACKET_FANOUT_FLAG_UNIQUEID;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, (way << 16) as i32)?;
    Ok(read_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, 0i32)? as u16)
}

/// Adds a bound packet socket to a group.
pub(crate) fn join_fanout(fd: &OwnedFd, group: u16) -> io::Result<()> {
    let way = (FANOUT << 16) | u32::from(group);
    set_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, way as i32)
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
fn poll(polled: &mut [libc::pollfd], nanoseconds: u64) -> io::Result<bool> {
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
    // SAFETY: takes numbers only.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes a bell readable. It can fail only where it is already.
pub(crate) fn ring(bell: &OwnedFd) {
    let one = 1u64;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    unsafe { libc::write(bell.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Makes a bell unreadable. It can fail only where it is already.
pub(crate) fn silence(bell: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    unsafe { libc::read(bell.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// Keeps the thread that calls on one core, counted from 0.
///
/// # Errors
/// There is no such core, or this process may not use it.
pub fn pin(core: u16) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this plain structure, the empty set.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if usize::from(core) >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the number was just found to be inside the set.
    unsafe { libc::CPU_SET(usize::from(core), &mut cores) };
    // SAFETY: the pointer and the size are those of a value that lives throughout the call; 0 is the calling
    // thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores) })?;
    Ok(())
}

/// Takes the thread that calls, and those that it will start, off some cores, if it may use others.
///
/// # Errors
/// What the kernel says.
pub fn keep_off(cores: &[u16]) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this plain structure, the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer and the size are those of a value that lives throughout the call; 0 is the calling
    // thread.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) })?;
    for &core in cores.iter().filter(|&&core| usize::from(core) < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number was just found to be inside the set.
        unsafe { libc::CPU_CLR(usize::from(core), &mut allowed) };
    }
    // SAFETY: reads a value that lives throughout the call.
    if cores.is_empty() || unsafe { libc::CPU_COUNT(&allowed) } == 0 {
        return Ok(());
    }
    // SAFETY: as where the set was asked for.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&allowed), &raw const allowed) })?;
    Ok(())
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
    // clock, it is 0.
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
