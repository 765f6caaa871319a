//! The part that the lanes of an AF_XDP port share: the attachment to the interface, and the watch, which
//! opens new sockets when an interface of this name is there again.
//!
//! New sockets register the memory of their lane anew, since those that it was registered with may be without
//! an interface, too, and can be shared no longer. So frames lie where they lay, and packets go on leaving by
//! other ports from where they came in.

use super::incoming::{Entrance, Queue};
use super::interface::{FRAMES, Interface, Memory, QueueSocket, longest};
use super::memory::Pages;
use super::outlet::Exit;
use super::redirect::Redirect;
use super::{XdpError, calls};
use crate::live::mailbox::Mailbox;
use crate::live::watch::{self, Watched};
use crate::live::witness::Witness;
use crate::live::{AttachError, Presence, WantedPort};
use packet::PortNumber;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

/// The port.
pub(super) struct Port {
    pub(super) wanted: WantedPort,
    pub(super) number: PortNumber,
    pub(super) presence: Arc<Presence>,
    /// Nothing while the interface is away.
    held: Mutex<Option<Held>>,
    /// Lane by lane.
    memory: Vec<Arc<Pages>>,
    /// Bytes of a frame.
    chunk: usize,
    /// Whether frames are laid out so that a driver can use them.
    pub(super) zero_copy: bool,
    /// What the receiving halves are to go on with, lane by lane.
    pub(super) incoming: Vec<Mailbox<Entrance>>,
    /// The same for the sending halves.
    pub(super) outgoing: Vec<Mailbox<Exit>>,
}

/// What holds a port at its interface.
pub(super) struct Held {
    witness: Witness,
    /// Goes with this: an interface that was moved elsewhere would keep it otherwise.
    _redirect: Redirect,
}

impl Held {
    pub(super) fn new(witness: Witness, redirect: Redirect) -> Held {
        Held { witness, _redirect: redirect }
    }
}

impl Port {
    /// A port that has been opened, and the watch over it, which ends when the lanes are gone.
    ///
    /// # Errors
    /// No further thread can be had.
    pub(super) fn watched(
        number: PortNumber,
        wanted: &WantedPort,
        held: Held,
        memory: &[Arc<Pages>],
        chunk: usize,
        zero_copy: bool,
    ) -> Result<Arc<Port>, AttachError> {
        let port = Arc::new(Port {
            wanted: wanted.clone(),
            number,
            presence: Arc::default(),
            held: Mutex::new(Some(held)),
            memory: memory.to_vec(),
            chunk,
            zero_copy,
            incoming: memory.iter().map(|_| Mailbox::new()).collect(),
            outgoing: memory.iter().map(|_| Mailbox::new()).collect(),
        });
        let interface = || wanted.interface.clone();
        watch::watch(&wanted.interface, &port).map_err(|source| AttachError::System {
            interface: interface(),
            call: "starting to watch it",
            source,
        })?;
        Ok(port)
    }

    /// A port without an interface, at which nothing happens by itself.
    #[cfg(test)]
    pub(super) fn unwatched(wanted: &WantedPort, memory: &[Arc<Pages>]) -> Port {
        Port {
            wanted: wanted.clone(),
            number: 1,
            presence: Arc::default(),
            held: Mutex::new(None),
            memory: memory.to_vec(),
            chunk: 0,
            zero_copy: false,
            incoming: memory.iter().map(|_| Mailbox::new()).collect(),
            outgoing: memory.iter().map(|_| Mailbox::new()).collect(),
        }
    }

    /// Opens an interface of the same name for all lanes, and hands its sockets over; says what was obtained.
    fn open(&self) -> Result<(Held, String), AttachError> {
        let lanes = self.memory.len();
        let interface = Interface::find(self.number, &self.wanted, lanes as u16)?;
        let (mtu, most) = (interface.mtu, longest(self.chunk));
        if mtu > most {
            return Err(XdpError::Long { interface: self.wanted.interface.clone(), mtu, most }.into());
        }
        let sockets = |zero_copy| -> Result<Vec<Vec<QueueSocket>>, AttachError> {
            let each = self.memory.iter().enumerate().map(|(lane, pages)| {
                interface.sockets(lane, lanes, Memory { pages, chunk: self.chunk, zero_copy }, None)
            });
            each.collect()
        };
        let wishes = &self.wanted.xdp;
        let (sockets, zero_copy) = match self.zero_copy {
            true => match sockets(true) {
                Err(_) if wishes.zero_copy != Some(true) => (sockets(false)?, false),
                opened => (opened?, true),
            },
            false => (sockets(false)?, false),
        };
        let (redirect, place) = interface.redirect(sockets.iter().flatten())?;
        let mode = interface.mode(place, self.chunk, zero_copy, lanes);
        let halves: Vec<_> = sockets
            .into_iter()
            .map(halves)
            .collect::<io::Result<_>>()
            .map_err(interface.failed("waiting for several queues"))?;
        for ((entrance, exit), boxes) in halves.into_iter().zip(self.incoming.iter().zip(&self.outgoing)) {
            boxes.1.put(exit);
            boxes.0.put(entrance);
        }
        Ok((Held::new(interface.witness, redirect), mode))
    }
}

impl Watched for Port {
    fn look(&self) {
        watch::look(&self.held, |held| &held.witness, &self.presence, || self.open());
    }
}

/// What the two halves of a lane have of its sockets. The first socket is the one that sends.
pub(super) fn halves(sockets: Vec<QueueSocket>) -> io::Result<(Entrance, Exit)> {
    let share = FRAMES as usize / sockets.len().max(1);
    let (mut exit, mut queues) = (None, Vec::with_capacity(sockets.len()));
    for QueueSocket { socket, .. } in sockets {
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
    let any = match &queues[..] {
        // A number of its own: the socket may be replaced, and the sending half has it, too.
        [one] => one.socket.try_clone()?,
        several => calls::any_of(&several.iter().map(|queue| queue.socket.as_raw_fd()).collect::<Vec<_>>())?,
    };
    Ok((Entrance { queues, any }, exit.ok_or(io::ErrorKind::NotFound)?))
}
