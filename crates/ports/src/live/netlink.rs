//! A socket of rtnetlink, by which Linux answers questions about links, addresses, neighbours and routes,
//! and reports changes.

use super::sys;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Groups of changes that can be told of (RTNLGRP_… of `linux/rtnetlink.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkChanges {
    /// Interfaces that come, go, are switched on or off, or get another address or MTU.
    Links = 1,
    /// Neighbours.
    Neighbours = 3,
    /// Addresses of IPv4.
    Ipv4Addresses = 5,
    /// Routes of IPv4.
    Ipv4Routes = 7,
    /// Addresses of IPv6.
    Ipv6Addresses = 9,
    /// Routes of IPv6.
    Ipv6Routes = 11,
    /// Next hops that have numbers (Linux 5.3).
    NextHops = 32,
}

/// The longest part of an answer.
const LONGEST: usize = 64 << 10;
/// Bytes of changes that wait until they are read: about 80,000 changes of routes, each of which counts as
/// nearly a kibibyte. The kernel takes memory for those alone that do wait. Who may change networks gets as
/// much, others what `net.core.rmem_max` allows.
const WAITING: usize = 64 << 20;

/// The port of the kernel (netlink(7)).
const KERNEL: u32 = 0;

/// A socket of rtnetlink. It needs no rights.
pub struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Netlink {
    /// A socket that is told of these changes from now on.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn open(changes: &[LinkChanges]) -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        // A smaller buffer only overflows earlier, which is told.
        let _ = sys::set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, WAITING);
        for group in changes {
            match socket.add_membership(*group as u32) {
                // A kernel without such next hops has none to tell of.
                Err(error)
                    if *group == LinkChanges::NextHops && error.kind() == io::ErrorKind::InvalidInput => {}
                joined => joined?,
            }
        }
        Ok(Netlink { socket, buffer: vec![0; LONGEST] })
    }

    /// A socket that is told of routes, and of links and addresses, with which routes go silently, in the
    /// network of the thread that calls. It is for another process.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn of_routes() -> io::Result<OwnedFd> {
        let netlink = Netlink::open(&[
            LinkChanges::Links,
            LinkChanges::Ipv4Addresses,
            LinkChanges::Ipv4Routes,
            LinkChanges::Ipv6Addresses,
            LinkChanges::Ipv6Routes,
            LinkChanges::NextHops,
        ])?;
        // Linux refuses what others send to a socket that is connected to the kernel alone.
        netlink.socket.connect(&SocketAddr::new(KERNEL, 0))?;
        Ok(sys::descriptor_of(netlink.socket))
    }

    /// The socket that another process has opened, which is told of what that one asked for. Its network may
    /// be another than that of this process.
    pub fn of(descriptor: OwnedFd) -> Netlink {
        Netlink { socket: sys::netlink_socket(descriptor), buffer: vec![0; LONGEST] }
    }

    /// Sends a question to the kernel.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ask(&self, message: &[u8]) -> io::Result<()> {
        self.socket.send_to(message, &SocketAddr::new(0, 0), 0).map(|_| ())
    }

    /// The next messages, or `None` where none came in that time. What another process sent, as root of a
    /// container can to a socket of its network, is received as no message.
    ///
    /// # Errors
    /// What the kernel says; ENOBUFS means that changes were lost, so that everything has to be asked for
    /// again.
    pub fn receive(&mut self, nanoseconds: u64) -> io::Result<Option<&[u8]>> {
        let mut waited = nanoseconds == 0;
        loop {
            match self.socket.recv_from(&mut &mut self.buffer[..], 0) {
                Ok((_, from)) if from.port_number() != KERNEL => return Ok(Some(&[])),
                Ok((length, _)) => return Ok(Some(&self.buffer[..length.min(LONGEST)])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sys::wait_to_read(self.socket.as_raw_fd(), nanoseconds);
                    waited = true;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question for all links (struct nlmsghdr, struct ifinfomsg).
    const LINKS: [u8; 32] =
        [32, 0, 0, 0, 18, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn what_another_process_sends_is_no_message() {
        let mut netlink = Netlink::of(Netlink::of_routes().expect("a socket"));
        let mut own = SocketAddr::new(0, 0);
        netlink.socket.get_address(&mut own).expect("it is bound");
        let mut other = Socket::new(NETLINK_ROUTE).expect("a socket");
        other.bind_auto().expect("bound");
        // Root may not send to this socket, as nobody else may, and it is not to one that is his own either.
        assert!(other.send_to(&[1; 32], &own, 0).is_err());
        let mut open = Netlink::open(&[]).expect("a socket");
        open.socket.get_address(&mut own).expect("it is bound");
        match other.send_to(&[1; 32], &own, 0) {
            Ok(_) => assert_eq!(open.receive(1_000_000_000).expect("received"), Some(&[][..])),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "only root may"),
        }
        for netlink in [&mut open, &mut netlink] {
            netlink.ask(&LINKS).expect("asked");
            let received = netlink.receive(1_000_000_000).expect("received").expect("an answer");
            assert!(received.len() > LINKS.len(), "the kernel is heard");
        }
    }
}
