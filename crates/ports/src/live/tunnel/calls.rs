//! The system calls of a tunnel's UDP socket: many datagrams in one call, long ones of several (UDP_GRO and
//! UDP_SEGMENT of udp(7)).

#![allow(unsafe_code)]

use crate::live::sys;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// How many messages one call takes or hands over at most.
pub(super) const AT_ONCE: usize = 32;

/// A message that came: one datagram, or several of one sender one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Its bytes.
    pub(super) length: usize,
    /// The bytes of each datagram; the last one may be shorter.
    pub(super) each: usize,
    /// Who sent it; nobody if the kernel tells an address of another kind.
    pub(super) from: Option<SocketAddr>,
}

impl Arrived {
    pub(super) const NONE: Arrived = Arrived { length: 0, each: 0, from: None };
}

/// A message to be sent, as one that came.
#[derive(Clone, Copy)]
pub(super) struct Leaving<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) each: usize,
    pub(super) to: SocketAddr,
}

/// A value that the kernel tells beside a message, or is told.
#[repr(C)]
#[derive(Clone, Copy)]
struct Beside {
    header: libc::cmsghdr,
    value: libc::c_int,
}

/// What one call says of its messages: who is at the other end, where the bytes are, and what is beside them.
struct MessageArrays {
    names: [libc::sockaddr_in6; AT_ONCE],
    parts: [libc::iovec; AT_ONCE],
    beside: [Beside; AT_ONCE],
    messages: [libc::mmsghdr; AT_ONCE],
}

impl MessageArrays {
    fn empty() -> MessageArrays {
        // SAFETY: zeros are a valid value of each of these plain structures.
        unsafe { std::mem::zeroed() }
    }
}

/// Takes messages that have come, each into `stride` bytes of the memory of its own. Says how many.
///
/// # Errors
/// There are none, or what the kernel says.
pub(super) fn receive(
    socket: &UdpSocket,
    memory: &mut [u8],
    stride: usize,
    arrived: &mut [Arrived; AT_ONCE],
) -> io::Result<usize> {
    let MessageArrays { mut names, mut parts, mut beside, mut messages } = MessageArrays::empty();
    let mut count = 0;
    for (index, room) in memory.chunks_exact_mut(stride).take(AT_ONCE).enumerate() {
        parts[index] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        let message = &mut messages[index].msg_hdr;
        message.msg_name = (&raw mut names[index]).cast();
        message.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        message.msg_iov = &raw mut parts[index];
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut beside[index]).cast();
        message.msg_controllen = size_of::<Beside>() as _;
        count += 1;
    }
    // SAFETY: every message points to an address, a part and a value of its own that live throughout the
    // call, with their sizes, and every part to bytes that are ours alone.
    let came = sys::check(unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    })? as usize;
    for index in 0..came {
        let (message, length) = (&messages[index].msg_hdr, messages[index].msg_len as usize);
        let Beside { header, value } = beside[index];
        let is_several = message.msg_controllen >= size_of::<libc::cmsghdr>()
            && (header.cmsg_level, header.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let each = if is_several { (value.max(1) as usize).min(length) } else { length };
        arrived[index] = Arrived { length, each, from: sender(&names[index]) };
    }
    Ok(came)
}

/// Sends messages, at most [`AT_ONCE`] of them, and returns how many the kernel took.
///
/// # Errors
/// The first message could not be sent.
pub(super) fn send<'a>(socket: &UdpSocket, leaving: impl Iterator<Item = Leaving<'a>>) -> io::Result<usize> {
    let MessageArrays { mut names, mut parts, mut beside, mut messages } = MessageArrays::empty();
    let mut count = 0;
    for (index, Leaving { bytes, each, to }) in leaving.take(AT_ONCE).enumerate() {
        parts[index] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let message = &mut messages[index].msg_hdr;
        message.msg_namelen = receiver(to, &mut names[index]);
        message.msg_name = (&raw mut names[index]).cast();
        message.msg_iov = &raw mut parts[index];
        message.msg_iovlen = 1;
        if bytes.len() > each {
            // The kernel reads a number of two bytes.
            let [a, b] = (each as u16).to_ne_bytes();
            let value = libc::c_int::from_ne_bytes([a, b, 0, 0]);
            let length = size_of::<libc::cmsghdr>() + size_of::<u16>();
            let (cmsg_level, cmsg_type) = (libc::SOL_UDP, libc::UDP_SEGMENT);
            beside[index] =
                Beside { header: libc::cmsghdr { cmsg_len: length as _, cmsg_level, cmsg_type }, value };
            message.msg_control = (&raw mut beside[index]).cast();
            message.msg_controllen = size_of::<Beside>() as _;
        }
        count += 1;
    }
    // SAFETY: every message points to an address, a part and a value of its own that live throughout the
    // call, with their sizes, and every part to bytes that live as long as `'a`; the kernel only reads them.
    let sent = sys::check(unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    })?;
    Ok(sent as usize)
}

fn sender(name: &libc::sockaddr_in6) -> Option<SocketAddr> {
    match i32::from(name.sin6_family) {
        libc::AF_INET => {
            // SAFETY: an address of IPv4 is shorter, has no stricter alignment, and any bytes are one.
            let name = unsafe { (&raw const *name).cast::<libc::sockaddr_in>().read() };
            let address = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
            Some(SocketAddr::V4(SocketAddrV4::new(address, u16::from_be(name.sin_port))))
        }
        libc::AF_INET6 => {
            let (address, port) = (Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port));
            // A socket of IPv6 tells addresses of IPv4 in its own form.
            Some(match address.to_canonical() {
                IpAddr::V4(address) => SocketAddr::V4(SocketAddrV4::new(address, port)),
                IpAddr::V6(address) => {
                    SocketAddr::V6(SocketAddrV6::new(address, port, 0, name.sin6_scope_id))
                }
            })
        }
        _ => None,
    }
}

/// Writes an address over one that is zero, and says how long it is.
fn receiver(to: SocketAddr, name: &mut libc::sockaddr_in6) -> libc::socklen_t {
    match to {
        SocketAddr::V4(to) => {
            // SAFETY: zeros are a valid value of this plain structure.
            let mut four: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            four.sin_family = libc::AF_INET as libc::sa_family_t;
            four.sin_port = to.port().to_be();
            four.sin_addr.s_addr = to.ip().to_bits().to_be();
            // SAFETY: an address of IPv4 is shorter and has no stricter alignment.
            unsafe { (&raw mut *name).cast::<libc::sockaddr_in>().write(four) };
            size_of::<libc::sockaddr_in>() as libc::socklen_t
        }
        SocketAddr::V6(to) => {
            name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            name.sin6_port = to.port().to_be();
            name.sin6_addr.s6_addr = to.ip().octets();
            name.sin6_scope_id = to.scope_id();
            size_of::<libc::sockaddr_in6>() as libc::socklen_t
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn pair(at: &str) -> (UdpSocket, UdpSocket) {
        let open = || UdpSocket::bind(at).expect("a socket");
        (open(), open())
    }

    /// What comes at a socket: the bytes of each datagram, and who sent them.
    fn taken(socket: &UdpSocket, wanted: usize) -> Vec<(Vec<u8>, SocketAddr)> {
        let (mut memory, mut arrived) = (vec![0; AT_ONCE * 65_536], [Arrived::NONE; AT_ONCE]);
        let (mut all, end) = (Vec::new(), Instant::now() + Duration::from_secs(10));
        while all.len() < wanted && Instant::now() < end {
            let count = receive(socket, &mut memory, 65_536, &mut arrived).unwrap_or(0);
            for (room, one) in memory.chunks_exact(65_536).zip(&arrived[..count]) {
                let from = one.from.expect("an address");
                all.extend(room[..one.length].chunks(one.each.max(1)).map(|bytes| (bytes.to_vec(), from)));
            }
        }
        all
    }

    #[test]
    fn datagrams_arrive_as_they_were_sent_also_several_in_one() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (from, to) = pair(at);
            sys::set_option(&to, libc::SOL_UDP, libc::UDP_GRO, 1).expect("is known");
            let (source, to_address) = (from.local_addr().expect("bound"), to.local_addr().expect("bound"));
            let bytes: Vec<u8> = (0..250).collect();
            let leaving = [
                Leaving { bytes: &bytes, each: 100, to: to_address },
                Leaving { bytes: &bytes[..7], each: 7, to: to_address },
            ];
            assert_eq!(send(&from, leaving.into_iter()).expect("sent"), 2);
            let came = taken(&to, 4);
            let wanted = [&bytes[..100], &bytes[100..200], &bytes[200..], &bytes[..7]];
            assert_eq!(came.len(), 4);
            for ((came, from), wanted) in came.iter().zip(wanted) {
                assert_eq!((came.as_slice(), *from), (wanted, source));
            }
            let none = receive(&to, &mut [0; 100], 100, &mut [Arrived::NONE; AT_ONCE]);
            assert_eq!(none.expect_err("no more").kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn addresses_of_ipv4_keep_their_form_at_a_socket_of_ipv6() {
        let six = UdpSocket::bind("[::]:0").expect("a socket");
        let four = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = six.local_addr().expect("bound").port();
        four.send_to(b"x", ("127.0.0.1", port)).expect("sent");
        assert_eq!(taken(&six, 1), [(b"x".to_vec(), four.local_addr().expect("bound"))]);
    }
}
