//! The part that the lanes of an AF_XDP port share, by which they get other sockets.

use super::FRAMES;
#[cfg(feature = "attach")]
use super::attached::Watching;
use super::incoming::{Entrance, Queue};
use super::outlet::Exit;
use super::socket::Socket;
use crate::live::mailbox::Mailbox;
use crate::live::{Offloads, Presence};
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The port.
pub(super) struct Port {
    pub(super) number: PortNumber,
    pub(super) offloads: Offloads,
    pub(super) presence: Arc<Presence>,
    /// What the receiving halves are to go on with, lane by lane.
    pub(super) incoming: Vec<Mailbox<Entrance>>,
    /// The same for the sending halves.
    pub(super) outgoing: Vec<Mailbox<Exit>>,
    /// Its interface, if this process looks after it.
    #[cfg(feature = "attach")]
    pub(super) watching: Option<Watching>,
}

impl Port {
    /// A port of so many lanes that nobody watches here.
    pub(super) fn unwatched(number: PortNumber, offloads: Offloads, lanes: usize) -> Port {
        Port {
            number,
            offloads,
            presence: Arc::default(),
            incoming: (0..lanes).map(|_| Mailbox::new()).collect(),
            outgoing: (0..lanes).map(|_| Mailbox::new()).collect(),
            #[cfg(feature = "attach")]
            watching: None,
        }
    }

    /// Hands sockets over to the lanes.
    ///
    /// # Errors
    /// There are not as many as lanes; then nothing has changed.
    pub(super) fn hand_over(&self, lanes: Vec<(Entrance, Exit)>) -> io::Result<()> {
        if lanes.len() != self.incoming.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not as many sockets as lanes"));
        }
        for ((entrance, exit), boxes) in lanes.into_iter().zip(self.incoming.iter().zip(&self.outgoing)) {
            boxes.1.put(exit);
            boxes.0.put(entrance);
        }
        Ok(())
    }
}

/// What the two halves of a lane have of its sockets, of which the first is the one that sends. `any` can be
/// read when one of them can; its number is its own, since other sockets may take the place of these.
///
/// # Errors
/// None of them sends.
pub(super) fn halves(sockets: Vec<Socket>, any: OwnedFd) -> io::Result<(Entrance, Exit)> {
    let share = FRAMES as usize / sockets.len().max(1);
    let (mut exit, mut queues) = (None, Vec::with_capacity(sockets.len()));
    for socket in sockets {
        if let Some((transmit, completed)) = socket.sending {
            let metadata = socket.metadata;
            exit = Some(Exit { socket: socket.fd.clone(), transmit, completed, metadata });
        }
        queues.push(Queue {
            socket: socket.fd,
            fill: socket.fill,
            received: socket.received,
            held: 0,
            share,
        });
    }
    Ok((Entrance { queues, any }, exit.ok_or(io::ErrorKind::NotFound)?))
}
