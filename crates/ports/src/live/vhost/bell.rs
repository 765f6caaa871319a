//! A bell between a port and the process that speaks with a machine's monitor: bytes over a pair of sockets.
//! Neither side trusts the other one, so neither ever waits: what finds no room is not said, and whoever has
//! ended the pair is not listened to any more.

use crate::live::sys;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// There is something to look at.
pub const NOTIFY: u8 = 1;
/// The driver has done what no driver does, and nothing of its memory is used any more.
pub const BROKEN: u8 = 2;

/// One end.
pub(super) struct Bell {
    socket: OwnedFd,
    /// What stands in its place once the other end is gone, since that would end every wait: it never does.
    quiet: OwnedFd,
}

impl Bell {
    /// The bell that this socket is.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub(super) fn of(socket: OwnedFd) -> io::Result<Bell> {
        Ok(Bell { socket, quiet: sys::bell()? })
    }

    /// What is readable when it rings.
    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Goes on with another pair, under the number of the one before.
    pub(super) fn replace(&self, by: &OwnedFd) -> io::Result<()> {
        sys::replace(&self.socket, by)
    }

    /// Says something. Where there is no room, the other side has more to hear than this.
    pub(super) fn say(&self, what: u8) {
        let _ = send(&self.socket, &[what], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Takes what was said, as much as fits.
    pub(super) fn silence(&self) {
        let mut said = [0; 64];
        if let Ok((_, 0)) = recv(&self.socket, &mut said[..], RecvFlags::DONTWAIT) {
            // Where that fails, waits end at once, and nothing else is wrong.
            let _ = sys::replace(&self.socket, &self.quiet);
        }
    }
}
