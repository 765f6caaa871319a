//! Ports of AF_XDP that the process which runs them opens: it watches the interface, and opens new sockets
//! when an interface of this name is there again. The frames stay the same, so that packets which lie in
//! them are not lost and the other ports do not notice.

use super::incoming::Entrance;
use super::interface::{Interface, Memory, QueueSocket, any_of, at_best};
use super::memory::Pages;
use super::outlet::Exit;
use super::port::{self, Port};
use super::redirect::Redirect;
use crate::live::watch::{self, Watched};
use crate::live::witness::Witness;
use crate::live::{AttachError, WantedPort};
use packet::PortNumber;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long is waited for what a process that has ended still has of an interface.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// The interface of a port, and what its sockets are bound to.
pub(super) struct Watching {
    pub(super) wanted: WantedPort,
    /// Nothing while the interface is away.
    held: Mutex<Option<Held>>,
    /// Lane by lane.
    memory: Vec<Arc<Pages>>,
    /// Bytes of a frame.
    chunk: usize,
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
    ) -> Result<Arc<Port>, AttachError> {
        let held = Mutex::new(Some(held));
        let watching = Watching { wanted: wanted.clone(), held, memory: memory.to_vec(), chunk };
        let port = Port::unwatched(number, wanted.offloads, memory.len());
        let port = Arc::new(Port { watching: Some(watching), ..port });
        let interface = || wanted.interface.clone();
        watch::watch(&wanted.interface, &port).map_err(|source| AttachError::System {
            interface: interface(),
            call: "starting to watch it",
            source,
        })?;
        Ok(port)
    }
}

impl Watching {
    /// Opens an interface of the same name for all lanes, and hands its sockets over; says what was obtained.
    fn open(&self, port: &Port) -> Result<(Held, String), AttachError> {
        let Watching { wanted, memory, chunk, .. } = self;
        let lanes = memory.len();
        let interface = Interface::find(wanted, lanes as u16, PATIENCE)?;
        interface.fits(*chunk)?;
        let sockets = |zero_copy| -> Result<Vec<Vec<QueueSocket>>, AttachError> {
            let each = memory.iter().enumerate().map(|(lane, pages)| {
                interface.sockets(lane, lanes, Memory { pages, chunk: *chunk, zero_copy }, None)
            });
            each.collect()
        };
        let (sockets, zero_copy) = at_best(chunk.is_power_of_two(), &wanted.xdp, sockets)?;
        let (redirect, mode) = interface.redirect(sockets.iter().flatten())?;
        let mode = interface.obtained(mode, *chunk, zero_copy, lanes);
        let halves = sockets.into_iter().map(halves).collect::<io::Result<_>>();
        port.hand_over(halves.map_err(interface.failed("waiting for several queues"))?)
            .map_err(interface.failed("going on with its sockets"))?;
        Ok((Held::new(interface.witness, redirect), mode))
    }
}

/// What the two halves of a lane have of its sockets.
///
/// # Errors
/// Linux gives no descriptor for all of them.
pub(super) fn halves(sockets: Vec<QueueSocket>) -> io::Result<(Entrance, Exit)> {
    let any = any_of(&sockets)?;
    port::halves(sockets.into_iter().map(|socket| socket.socket).collect(), any)
}

impl Watched for Port {
    fn look(&self) {
        if let Some(watching) = &self.watching {
            watch::look(&watching.held, |held| &held.witness, &self.presence, || watching.open(self));
        }
    }
}
