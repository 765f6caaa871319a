//! Ports that one process opens and another one runs: the first needs rights at interfaces and sees no
//! packet, the second needs no rights.
//!
//! ```text
//! process with rights                            process without rights
//! OpenedPort::open   claims the interface
//! OpenedPort::lanes  opens sockets  ─descriptors─►  adopt  maps the rings, makes lanes of them
//!                                                   PortRenewal::renew  goes on with others
//! ```
//!
//! The claim on an interface, and what keeps its packets from the Linux kernel, stay with the first process.
//! So the second one can end and another one can take its place without a moment in which the packets are
//! anybody else's.

use super::af_packet::{self, Adopted, Held};
use super::segments::packets_only;
use super::{AttachError, Attached, HandedOver, Offloads, PortKind, WantedPort, sys, tap};
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A port that was opened for another process.
pub struct OpenedPort {
    wanted: WantedPort,
    held: Kept,
}

/// What stays with the process that opens ports.
enum Kept {
    AfPacket(Held),
    /// The queues of a device, which would go with the last of them.
    Tap(Vec<OwnedFd>, String),
}

impl OpenedPort {
    /// Claims an interface, or makes a TAP device with so many queues. A VNIC is made in the network
    /// namespace of the thread that calls.
    ///
    /// # Errors
    /// As for [`attach`](super::attach()), and as for [`can_be_handed_over`].
    pub fn open(wanted: &WantedPort, lanes: u16) -> Result<OpenedPort, AttachError> {
        can_be_handed_over(wanted).map_err(|what| AttachError::System {
            interface: wanted.interface.clone(),
            call: "opening it for a confined process",
            source: io::Error::new(io::ErrorKind::Unsupported, what),
        })?;
        let held = match wanted.kind {
            PortKind::Tap => {
                let (mode, queues) = tap::open_queues(wanted, lanes)?;
                Kept::Tap(queues, mode)
            }
            PortKind::Vnic => {
                let (mode, queues) = tap::open_vnic(wanted, lanes)?;
                Kept::Tap(queues, mode)
            }
            _ => Kept::AfPacket(af_packet::claim(wanted)?),
        };
        Ok(OpenedPort { wanted: wanted.clone(), held })
    }

    /// Whether the interface is there, and has been since it was opened.
    pub fn is_there(&self) -> bool {
        match &self.held {
            Kept::AfPacket(held) => held.is_there(),
            Kept::Tap(queues, _) => queues.iter().all(tap::is_there),
        }
    }

    /// New descriptors to hand over, with what has to be known of them: of AF_PACKET three for each lane,
    /// first the one that receives; of TAP one.
    ///
    /// # Errors
    /// As for [`attach`](super::attach()).
    pub fn lanes(&self, lanes: u16) -> Result<(HandedOver, Vec<OwnedFd>), AttachError> {
        let (mode, frame, descriptors) = match &self.held {
            Kept::AfPacket(_) => af_packet::descriptors(&self.wanted, lanes)?,
            Kept::Tap(queues, mode) => {
                let again: io::Result<Vec<_>> = queues.iter().map(OwnedFd::try_clone).collect();
                let failed = af_packet::system(&self.wanted.interface, "handing its queues over");
                (mode.clone(), 0, again.map_err(failed)?)
            }
        };
        let WantedPort { interface, kind, offloads, promiscuous, vnic, .. } = self.wanted.clone();
        Ok((HandedOver { interface, kind, offloads, promiscuous, frame, mode, vnic }, descriptors))
    }
}

/// Whether a port can be opened for another process.
///
/// # Errors
/// What of it cannot be handed over: another kind than AF_PACKET, TAP and VNIC, a part of an interface,
/// middleware.
pub fn can_be_handed_over(wanted: &WantedPort) -> Result<(), &'static str> {
    if !matches!(wanted.kind, PortKind::AfPacket | PortKind::Tap | PortKind::Vnic) {
        return Err(
            "the `kind` of a port must be \"af_packet\", \"tap\" or \"vnic\" there, and no port may be `empty`",
        );
    }
    let plain = WantedPort {
        kind: wanted.kind.clone(),
        offloads: wanted.offloads,
        keep_from_kernel: wanted.keep_from_kernel,
        promiscuous: wanted.promiscuous,
        vnic: wanted.vnic.clone(),
        ..WantedPort::plain(&wanted.interface)
    };
    if *wanted == plain {
        Ok(())
    } else {
        Err("`vlan`, `on`, `impair`, `shape`, `trace` and `xdp` are not available there")
    }
}

/// Goes on with other descriptors of a port that has been adopted.
pub struct PortRenewal(Renewed);

/// What goes on with other descriptors.
enum Renewed {
    AfPacket(Adopted),
    /// The queues, of which each keeps its number.
    Tap(Vec<Arc<OwnedFd>>),
}

impl PortRenewal {
    /// Goes on with these descriptors, which were opened as those before.
    ///
    /// # Errors
    /// They are not as many as those before, or a ring cannot be mapped; then nothing has changed.
    pub fn renew(&self, port: &HandedOver, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        match &self.0 {
            Renewed::AfPacket(adopted) => adopted.renew(port, descriptors),
            Renewed::Tap(queues) if queues.len() == descriptors.len() => {
                queues.iter().zip(&descriptors).try_for_each(|(queue, new)| sys::replace(queue, new))
            }
            Renewed::Tap(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "not as many queues as before"))
            }
        }
    }
}

/// Makes a port of descriptors that another process opened; its packets carry `number`.
///
/// # Errors
/// The descriptors do not suit the description, or a ring cannot be mapped.
pub fn adopt(
    port: &HandedOver,
    number: PortNumber,
    descriptors: Vec<OwnedFd>,
) -> io::Result<(Attached, PortRenewal)> {
    let (attached, renewal) = match port.kind {
        PortKind::AfPacket => {
            let (attached, adopted) = af_packet::adopt(port, number, descriptors)?;
            (attached, PortRenewal(Renewed::AfPacket(adopted)))
        }
        PortKind::Tap | PortKind::Vnic => {
            let (attached, queues) = tap::adopt(port, number, descriptors);
            (attached, PortRenewal(Renewed::Tap(queues)))
        }
        PortKind::AfXdp | PortKind::Tunnel | PortKind::Empty => {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a kind of port that is not handed over"));
        }
    };
    let cut = port.offloads == Offloads::Cut;
    Ok((if cut { packets_only(attached) } else { attached }, renewal))
}
