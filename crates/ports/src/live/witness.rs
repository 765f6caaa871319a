//! Tells whether an interface is still the one that a port was made for.
//!
//! A socket whose interface was deleted, or moved to another network namespace, stays without one for good,
//! also when another of the same name is made or the same one returns. The number of the interface does not
//! tell: one that returns may have its old number. But a packet socket that is bound to the interface tells,
//! for the kernel takes its interface away from it (packet_notifier in net/packet/af_packet.c of Linux). One
//! that receives nothing is kept for that.

use super::sys;
use std::io;
use std::os::fd::OwnedFd;

/// Tells whether an interface is still the one that it was made for.
pub(super) struct Witness {
    socket: OwnedFd,
    index: u32,
}

impl Witness {
    /// For the interface of this number, which is asked for packets to all groups, and if `all` is wanted for
    /// packets that are meant for others.
    ///
    /// # Errors
    /// There is none, or the right to open packet sockets is missing.
    pub(super) fn of(index: u32, all: bool) -> io::Result<Witness> {
        let socket = sys::packet_socket()?;
        sys::take_all(&socket, index, all)?;
        // Protocol 0: it receives nothing.
        sys::bind_packet(&socket, index, 0)?;
        Ok(Witness { socket, index })
    }

    /// Whether it is there, and has been all the time.
    pub(super) fn is_there(&self) -> bool {
        sys::bound_interface(&self.socket) == Some(self.index)
    }
}
