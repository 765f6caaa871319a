//! The system calls by which AF_XDP sockets are made, each wrapped once: memory, rings and queues, the
//! program that redirects packets to them, and what interfaces say of themselves.

#![allow(unsafe_code)]

use super::RingKind;
use crate::live::af_xdp::memory::Pages;
use crate::live::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A socket without memory and rings.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    sys::owned(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })
}

/// Makes the pages known to the kernel as frames of `chunk` bytes. Where that is no power of two, frames may
/// lie anywhere, and so many bytes before a packet may describe it.
pub(crate) fn register(fd: &OwnedFd, pages: &Pages, chunk: usize, metadata: usize) -> io::Result<()> {
    let unaligned = if chunk.is_power_of_two() { 0 } else { libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG };
    let described = if metadata == 0 { 0 } else { libc::XDP_UMEM_TX_METADATA_LEN };
    let request = libc::xdp_umem_reg {
        addr: pages.address() as u64,
        len: (pages.len() / chunk * chunk) as u64,
        chunk_size: chunk as u32,
        headroom: 0,
        flags: unaligned | described,
        tx_metadata_len: metadata as u32,
    };
    sys::set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, request)
}

/// Asks for a ring.
pub(crate) fn ask_ring(fd: &OwnedFd, kind: RingKind) -> io::Result<()> {
    let option = match kind {
        RingKind::Fill => libc::XDP_UMEM_FILL_RING,
        RingKind::Completion => libc::XDP_UMEM_COMPLETION_RING,
        RingKind::Receive => libc::XDP_RX_RING,
        RingKind::Transmit => libc::XDP_TX_RING,
    };
    sys::set_option(fd, libc::SOL_XDP, option, kind.size())
}

/// Whether the kernel and the interface's driver use the frames themselves rather than copies.
#[cfg(feature = "attach")]
pub(crate) fn is_zero_copy(fd: &OwnedFd) -> io::Result<bool> {
    let options = sys::read_option(fd, libc::SOL_XDP, libc::XDP_OPTIONS, libc::xdp_options { flags: 0 })?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Lets one call send so many packets, where the kernel can be asked for that (XDP_MAX_TX_SKB_BUDGET of
/// linux/if_xdp.h, since 6.18; 32 otherwise).
pub(crate) fn send_at_once(fd: &OwnedFd, packets: u32) {
    const BUDGET: i32 = 9;
    // It is only faster.
    let _ = sys::set_option(fd, libc::SOL_XDP, BUDGET, packets);
}

/// Binds a socket to a queue of an interface; with `shared`, to the memory that another socket has
/// registered.
pub(crate) fn bind(
    fd: &OwnedFd,
    interface: u32,
    queue: u32,
    flags: u16,
    shared: Option<&OwnedFd>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if shared.is_some() { libc::XDP_SHARED_UMEM } else { flags },
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    sys::check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(())
}

/// A descriptor that can be read when one of these can.
pub(crate) fn any_of(fds: &[RawFd]) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let all = sys::owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    for &fd in fds {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event lives throughout the call.
        sys::check(unsafe { libc::epoll_ctl(all.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
    }
    Ok(all)
}

/// Commands of bpf(2).
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
/// Kinds of maps, programs and places to attach them (include/uapi/linux/bpf.h).
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// bpf(2) with a request laid out in words of 32 bits.
fn bpf<const WORDS: usize>(command: i32, mut request: [u32; WORDS]) -> io::Result<i32> {
    // SAFETY: the pointer and the size are those of the request; addresses in it are of values that the
    // callers keep throughout the call, and exposed, so that these are written before it.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, request.as_mut_ptr(), size_of_val(&request)) };
    sys::check(result as i32)
}

fn halves(address: u64) -> [u32; 2] {
    let bytes = address.to_ne_bytes();
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4)]
}

/// A map from queues (0 and the following) to sockets.
pub(crate) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    sys::owned(bpf(MAP_CREATE, [XSKMAP, 4, 4, queues, 0])?)
}

/// Puts a socket into such a map.
pub(crate) fn put_socket(map: &OwnedFd, queue: u32, socket: &OwnedFd) -> io::Result<()> {
    let (key, value) = (queue, socket.as_raw_fd() as u32);
    let [key_low, key_high] = halves((&raw const key).expose_provenance() as u64);
    let [value_low, value_high] = halves((&raw const value).expose_provenance() as u64);
    let map = map.as_raw_fd() as u32;
    bpf(MAP_UPDATE, [map, 0, key_low, key_high, value_low, value_high, 0, 0]).map(|_| ())
}

/// Loads a program for XDP.
pub(crate) fn load_program(instructions: &[u64]) -> io::Result<OwnedFd> {
    let licence = c"Dual MIT/GPL";
    let [code_low, code_high] = halves(instructions.as_ptr().expose_provenance() as u64);
    let [licence_low, licence_high] = halves(licence.as_ptr().expose_provenance() as u64);
    let name = u32::from_ne_bytes(*b"rave");
    let rest = u32::from_ne_bytes(*b"lin\0");
    let request = [
        PROGRAM_XDP,
        instructions.len() as u32,
        code_low,
        code_high,
        licence_low,
        licence_high,
        // No log, any version, no flags.
        0,
        0,
        0,
        0,
        0,
        0,
        name,
        rest,
        0,
        0,
        // Any interface, and where it is to be attached.
        0,
        ATTACH_XDP,
    ];
    sys::owned(bpf(PROGRAM_LOAD, request)?)
}

/// Attaches a program to an interface for as long as the descriptor is open, in `mode` (XDP_FLAGS_SKB_MODE or
/// XDP_FLAGS_DRV_MODE).
pub(crate) fn link(program: &OwnedFd, interface: u32, mode: u32) -> io::Result<OwnedFd> {
    sys::owned(bpf(LINK_CREATE, [program.as_raw_fd() as u32, interface, ATTACH_XDP, mode])?)
}

/// How many queues an interface receives by, and how many it sends by; one where it does not say.
pub(crate) fn queues(fd: &OwnedFd, interface: &str) -> (u32, u32) {
    /// ETHTOOL_GCHANNELS and what it answers (include/uapi/linux/ethtool.h): the greatest and the present
    /// numbers of queues that receive, send, do neither, or both.
    const CHANNELS: u32 = 0x3c;
    match sys::ask_ethtool(fd, interface, [CHANNELS, 0, 0, 0, 0, 0, 0, 0, 0]) {
        Ok([_, _, _, _, _, receive, send, _, both]) => ((receive + both).max(1), (send + both).max(1)),
        Err(_) => (1, 1),
    }
}

/// Lets the interface leave VLAN tags in packets: an AF_XDP socket gets nothing that lies beside them.
///
/// # Errors
/// The interface cannot, or the right is missing.
pub(crate) fn leave_tags(fd: &OwnedFd, interface: &str) -> io::Result<()> {
    /// ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_RXVLAN (include/uapi/linux/ethtool.h).
    const ASK: u32 = 0x25;
    const SET: u32 = 0x26;
    const TAKES_OUT: u32 = 1 << 8;
    let [_, flags] = sys::ask_ethtool(fd, interface, [ASK, 0])?;
    if flags & TAKES_OUT != 0 {
        sys::ask_ethtool(fd, interface, [SET, flags & !TAKES_OUT])?;
    }
    let [_, flags] = sys::ask_ethtool(fd, interface, [ASK, 0])?;
    if flags & TAKES_OUT == 0 { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}
