//! A socket of rtnetlink, by which Linux answers questions about links, addresses, neighbours and routes,
//! and reports changes.

use super::sys;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::AsRawFd;

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

    /// Sends a question to the kernel.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ask(&self, message: &[u8]) -> io::Result<()> {
        self.socket.send_to(message, &SocketAddr::new(0, 0), 0).map(|_| ())
    }

    /// The next messages, or `None` where none came in that time.
    ///
    /// # Errors
    /// What the kernel says; ENOBUFS means that changes were lost, so that everything has to be asked for
    /// again.
    pub fn receive(&mut self, nanoseconds: u64) -> io::Result<Option<&[u8]>> {
        let mut waited = nanoseconds == 0;
        loop {
            match self.socket.recv_from(&mut &mut self.buffer[..], 0) {
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
