//! A tap: a socket that gets a copy of every frame that comes by an interface, whole.

use ports::live::sys;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of frames that may wait.
const WAITING: usize = 256 << 20;
/// The longest frame, segments included.
const LONGEST: usize = 66_000;

/// A tap at an interface.
pub struct Tap {
    socket: OwnedFd,
    room: Vec<u8>,
}

impl Tap {
    /// A tap of what comes in by an interface of the network of this thread.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(interface: &str) -> io::Result<Tap> {
        let socket = sys::packet_socket()?;
        sys::set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, WAITING)?;
        sys::set_number(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        let index = sys::interface_index(interface)?;
        // Also of what is for other stations: some devices would not show it.
        sys::take_all(&socket, index, true)?;
        sys::bind_packet(&socket, index, libc::ETH_P_ALL)?;
        Ok(Tap { socket, room: vec![0; LONGEST] })
    }

    /// Takes the next frame, without waiting.
    ///
    /// # Errors
    /// What Linux says.
    pub fn take(&mut self) -> io::Result<Option<&[u8]>> {
        match recv(&self.socket, &mut self.room[..], RecvFlags::DONTWAIT) {
            Ok((_, length)) => Ok(self.room.get(..length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How many frames found no room since this was asked last: nobody has judged them.
    ///
    /// # Errors
    /// What Linux says.
    pub fn lost(&self) -> io::Result<u64> {
        sys::packet_statistics(&self.socket).map(|(_, lost)| lost.into())
    }
}
