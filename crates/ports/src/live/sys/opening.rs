//! The system calls by which a process with rights opens sockets at network interfaces, each wrapped once,
//! and what only ports that it runs itself need of shared memory.

#![allow(unsafe_code)]

use super::{check, owned, read_option};
use netlink_sys::Socket;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// A socket that sees every frame of a network interface once it is bound.
///
/// # Errors
/// The right is missing (CAP_NET_RAW).
pub fn packet_socket() -> io::Result<OwnedFd> {
    // Protocol 0: nothing is received before it is bound to an interface.
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
}

/// The socket of netlink that a descriptor is.
pub(crate) fn netlink_socket(descriptor: OwnedFd) -> Socket {
    // SAFETY: it is open, and nobody else has it any more.
    unsafe { Socket::from_raw_fd(descriptor.into_raw_fd()) }
}

/// The descriptor of a socket of netlink.
pub(crate) fn descriptor_of(socket: Socket) -> OwnedFd {
    // SAFETY: it is open, and nobody else has it any more.
    unsafe { OwnedFd::from_raw_fd(socket.into_raw_fd()) }
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

/// The number of the process that made the socket at the other end of a Unix socket; 0 if the PID namespace
/// of this process has no number for it.
///
/// # Errors
/// What the kernel says.
pub fn peer_process(fd: &impl AsRawFd) -> io::Result<i32> {
    let unknown = libc::ucred { pid: 0, uid: 0, gid: 0 };
    Ok(read_option(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, unknown)?.pid)
}

/// Whether a packet socket sends to its interface directly, past the queueing discipline. The direct way does
/// not cut segments.
pub(crate) fn send_directly(fd: &OwnedFd, directly: bool) -> io::Result<()> {
    set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, i32::from(directly))
}

/// Asks an interface for packets to all groups of stations, as long as the packet socket is open, and if
/// `promiscuous` for those that are meant for others, too.
///
/// # Errors
/// There is no such interface.
pub fn take_all(fd: &OwnedFd, interface: u32, promiscuous: bool) -> io::Result<()> {
    let kind = if promiscuous { libc::PACKET_MR_PROMISC } else { libc::PACKET_MR_ALLMULTI };
    let request = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: kind as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
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

/// Whether the interface is switched on.
pub(crate) fn interface_is_up(fd: &OwnedFd, name: &str) -> io::Result<bool> {
    Ok(interface_flags(fd, name)? & libc::IFF_UP != 0)
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

/// Takes the thread that calls, and those that it will start, off some cores, if it may use others.
///
/// # Errors
/// What the kernel says.
pub fn keep_off(cores: &[u16]) -> io::Result<()> {
    let mut allowed = sched_getaffinity(None)?;
    for core in cores.iter().map(|&core| usize::from(core)).filter(|&core| core < CpuSet::MAX_CPU) {
        allowed.unset(core);
    }
    if cores.is_empty() || allowed.count() == 0 {
        return Ok(());
    }
    Ok(sched_setaffinity(None, &allowed)?)
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) };
    owned(fd)
}

/// A socket to ask about interfaces by.
pub(crate) fn asker() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// Whether the interface has a carrier: somebody is at the other end. The interface's flags would say so up
/// to a second later.
#[cfg(feature = "attach")]
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
