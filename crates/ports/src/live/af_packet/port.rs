//! The part that the lanes of an AF_PACKET port share: it watches the interface, and opens new sockets when
//! an interface of this name is there again.
//!
//! Where the interface has vanished and another has come, new sockets are opened for all lanes at once and
//! handed over. The other ports do not notice. An interface that is switched off and on again keeps its
//! sockets.

use super::claim::Claim;
use super::keep::Kept;
use super::open::{self, OpenLane, Opened, SendSockets};
use crate::live::frame_ring::FrameRing;
use crate::live::mailbox::Mailbox;
use crate::live::presence::Presence;
use crate::live::watch::{self, Watched, Witness};
use crate::live::{AttachError, WantedPort};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// The port.
pub(super) struct Port {
    pub(super) wanted: WantedPort,
    pub(super) presence: Arc<Presence>,
    /// Nothing while the interface is away.
    held: Mutex<Option<Held>>,
    /// What the receiving halves are to go on with, lane by lane.
    pub(super) incoming: Vec<Mailbox<(OwnedFd, FrameRing)>>,
    /// The same for the sending halves.
    pub(super) outgoing: Vec<Mailbox<SendSockets>>,
    /// Whether this process may ask Linux about the interface.
    pub(super) asks: bool,
}

/// What a port has of its interface beside the sockets of its lanes.
pub(in crate::live) struct Held {
    pub(super) witness: Witness,
    /// What keeps other gateways off it.
    pub(super) _claim: Claim,
    /// What keeps its packets from the kernel.
    pub(super) _kept: Option<Kept>,
}

impl Held {
    /// Whether the interface is there, and has been all the time.
    pub(in crate::live) fn is_there(&self) -> bool {
        self.witness.is_there()
    }
}

/// A port whose sockets another process opened, and watches over.
pub(in crate::live) struct Adopted(pub(super) Arc<Port>);

impl Port {
    /// A port of so many lanes that nobody watches here.
    pub(super) fn handed_over(wanted: WantedPort, lanes: usize) -> Port {
        Port {
            wanted,
            presence: Arc::default(),
            held: Mutex::new(None),
            incoming: (0..lanes).map(|_| Mailbox::new()).collect(),
            outgoing: (0..lanes).map(|_| Mailbox::new()).collect(),
            asks: false,
        }
    }

    /// A port that has been opened, and the watch over it, which ends when the lanes are gone.
    ///
    /// # Errors
    /// No further thread can be had.
    pub(super) fn watched(wanted: &WantedPort, held: Held, lanes: u16) -> Result<Arc<Port>, AttachError> {
        let port = Port::handed_over(wanted.clone(), usize::from(lanes));
        let port = Arc::new(Port { held: Mutex::new(Some(held)), asks: true, ..port });
        watch::watch(&wanted.interface, &port)
            .map_err(open::system(&wanted.interface, "starting to watch it"))?;
        Ok(port)
    }

    /// Opens an interface of the same name for all lanes, and hands its sockets over; says what was obtained.
    fn open(&self) -> Result<(Held, String), AttachError> {
        let Opened { lanes, held, mode } = open::open(&self.wanted, self.incoming.len() as u16)?;
        self.hand_over(lanes).map_err(open::system(&self.wanted.interface, "going on with its sockets"))?;
        Ok((held, mode))
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

impl Watched for Port {
    fn look(&self) {
        watch::look(&self.held, |held| &held.witness, &self.presence, || self.open());
    }
}
