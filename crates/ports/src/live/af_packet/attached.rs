//! Ports of AF_PACKET that the process which runs them opens: it watches the interface, and opens new sockets
//! when an interface of this name is there again.
//!
//! Where the interface has vanished and another has come, new sockets are opened for all lanes at once and
//! handed over. The other ports do not notice. An interface that is switched off and on again keeps its
//! sockets.

use super::attached;
use super::open::{self, Held};
use super::port::Port;
use super::sockets::OpenLane;
use crate::live::watch::{self, Watched};
use crate::live::{AttachError, Attached, WantedPort};
use packet::PortNumber;
use std::sync::{Arc, Mutex};

/// The sockets of a port, and what was really obtained.
struct Opened {
    mode: String,
    lanes: Vec<OpenLane>,
    held: Held,
}

/// Takes over the packets of an interface; they carry `number`.
pub(in crate::live) fn attach(
    wanted: &WantedPort,
    number: PortNumber,
    lanes: u16,
) -> Result<Attached, AttachError> {
    let opened = open(wanted, lanes)?;
    let port = Port::watched(wanted, opened.held, lanes)?;
    Ok(attached(&port, opened.mode, number, opened.lanes))
}

/// Opens everything; packets come in from then on.
///
/// # Errors
/// The interface is missing, off or of a kind that has no Ethernet headers, or the kernel refuses; then
/// nothing is left open.
fn open(wanted: &WantedPort, lanes: u16) -> Result<Opened, AttachError> {
    let held = open::claim(wanted)?;
    let (mode, lanes) = open::open_lanes(wanted, lanes)?;
    Ok(Opened { mode, lanes, held })
}

impl Port {
    /// A port that has been opened, and the watch over it, which ends when the lanes are gone.
    ///
    /// # Errors
    /// No further thread can be had.
    fn watched(wanted: &WantedPort, held: Held, lanes: u16) -> Result<Arc<Port>, AttachError> {
        let port = Port::handed_over(wanted.clone(), false, usize::from(lanes));
        let port = Arc::new(Port { held: Mutex::new(Some(held)), asks: true, ..port });
        watch::watch(&wanted.interface, &port)
            .map_err(open::system(&wanted.interface, "starting to watch it"))?;
        Ok(port)
    }

    /// Opens an interface of the same name for all lanes, and hands its sockets over; says what was obtained.
    fn open(&self) -> Result<(Held, String), AttachError> {
        let Opened { lanes, held, mode } = open(&self.wanted, self.incoming.len() as u16)?;
        self.hand_over(lanes).map_err(open::system(&self.wanted.interface, "going on with its sockets"))?;
        Ok((held, mode))
    }
}

impl Watched for Port {
    fn look(&self) {
        watch::look(&self.held, |held| &held.witness, &self.presence, || self.open());
    }
}
