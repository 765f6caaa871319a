//! The part that the lanes of an AF_PACKET port share, by which they get other sockets.

#[cfg(feature = "attach")]
use super::open::Held;
use super::sockets::{OpenLane, SendSockets};
use crate::live::WantedPort;
use crate::live::frame_ring::FrameRing;
use crate::live::mailbox::Mailbox;
use crate::live::presence::Presence;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
#[cfg(feature = "attach")]
use std::sync::Mutex;

/// The port.
pub(super) struct Port {
    pub(super) wanted: WantedPort,
    /// Whether priority tags are left in.
    pub(super) keeps_tags: bool,
    pub(super) presence: Arc<Presence>,
    /// Nothing while the interface is away.
    #[cfg(feature = "attach")]
    pub(super) held: Mutex<Option<Held>>,
    /// What the receiving halves are to go on with, lane by lane.
    pub(super) incoming: Vec<Mailbox<(OwnedFd, FrameRing)>>,
    /// The same for the sending halves.
    pub(super) outgoing: Vec<Mailbox<SendSockets>>,
    /// Whether this process may ask Linux about the interface.
    #[cfg(feature = "attach")]
    pub(super) asks: bool,
}

/// A port whose sockets another process opened, and watches over.
pub(in crate::live) struct Adopted(pub(super) Arc<Port>);

impl Port {
    /// A port of so many lanes that nobody watches here.
    pub(super) fn handed_over(wanted: WantedPort, keeps_tags: bool, lanes: usize) -> Port {
        Port {
            wanted,
            keeps_tags,
            presence: Arc::default(),
            #[cfg(feature = "attach")]
            held: Mutex::new(None),
            incoming: (0..lanes).map(|_| Mailbox::new()).collect(),
            outgoing: (0..lanes).map(|_| Mailbox::new()).collect(),
            #[cfg(feature = "attach")]
            asks: false,
        }
    }

    /// Hands sockets over to the lanes.
    ///
    /// # Errors
    /// There are not as many as lanes; then nothing has changed.
    pub(super) fn hand_over(&self, lanes: Vec<OpenLane>) -> io::Result<()> {
        if lanes.len() != self.incoming.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not as many sockets as lanes"));
        }
        for (lane, boxes) in lanes.into_iter().zip(self.incoming.iter().zip(&self.outgoing)) {
            boxes.1.put(lane.outgoing);
            boxes.0.put((lane.incoming, lane.ring));
        }
        Ok(())
    }
}
