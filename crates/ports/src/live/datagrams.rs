//! The UDP socket of a tunnel, as a process with rights makes it.

use super::sys;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Bytes that may wait in the socket in either direction.
const SOCKET_BYTES: usize = 4 << 20;

/// A socket at which datagrams come, several in one where Linux can do that.
///
/// # Errors
/// The address is not one of this machine, or somebody listens there.
pub fn datagram_socket(listen: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(listen)?;
    socket.set_nonblocking(true)?;
    sys::set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, SOCKET_BYTES)?;
    sys::set_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SOCKET_BYTES)?;
    // A datagram that is too long for some link on its way goes in fragments rather than not at all.
    match listen {
        SocketAddr::V4(_) => {
            sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)
        }
        SocketAddr::V6(_) => {
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT)
        }
    }?;
    // A kernel before 5.0 hands datagrams over one by one.
    let _ = sys::set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(socket)
}
