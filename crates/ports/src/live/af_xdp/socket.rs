//! An AF_XDP socket that is bound to a queue of an interface, with its rings.

use super::calls::{self, RingKind};
use super::ring::{Consumer, Producer};
use crate::live::sys::Shared;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A socket with its rings.
pub(super) struct Socket {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) fill: Producer<Shared, 1>,
    pub(super) received: Consumer<Shared, 2>,
    /// Whether bytes before a packet may describe it.
    pub(super) metadata: bool,
    /// For a socket that sends, too.
    pub(super) sending: Option<(Producer<Shared, 2>, Consumer<Shared, 1>)>,
}

impl Socket {
    /// Maps the rings of a socket that was asked for them.
    ///
    /// # Errors
    /// It has them not, or Linux refuses.
    pub(super) fn map(fd: OwnedFd, sends: bool, metadata: bool) -> io::Result<Socket> {
        let (fill, received) =
            (calls::map_ring(&fd, RingKind::Fill)?, calls::map_ring(&fd, RingKind::Receive)?);
        let sending = match sends {
            true => {
                let transmit = calls::map_ring(&fd, RingKind::Transmit)?;
                let completed = calls::map_ring(&fd, RingKind::Completion)?;
                Some((Producer::new(transmit.0, transmit.1), Consumer::new(completed.0, completed.1)))
            }
            false => None,
        };
        Ok(Socket {
            fd: Arc::new(fd),
            fill: Producer::new(fill.0, fill.1),
            received: Consumer::new(received.0, received.1),
            metadata,
            sending,
        })
    }
}
