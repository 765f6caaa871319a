//! Ports that a process with rights opens for another one, and the descriptors that it hands over.

use crate::live::af_packet::{self, Held};
use crate::live::{AttachError, HandedOver, PortKind, WantedPort, sys, tap};
use std::io;
use std::os::fd::OwnedFd;

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
    /// The interface is missing, off or taken, or Linux refuses; then nothing has changed. As for
    /// [`can_be_handed_over`], too.
    pub fn open(wanted: &WantedPort, lanes: u16) -> Result<OpenedPort, AttachError> {
        can_be_handed_over(wanted).map_err(|what| AttachError::System {
            interface: wanted.interface.clone(),
            call: "opening it for a confined process",
            source: io::Error::new(io::ErrorKind::Unsupported, what),
        })?;
        let mut wanted = wanted.clone();
        // What a virtual machine sends is for stations that its device is not.
        wanted.promiscuous |= is_of_guest(&wanted);
        let held = match wanted.kind {
            PortKind::Tap => {
                let (mode, queues) = tap::open_queues(&wanted, lanes)?;
                Kept::Tap(queues, mode)
            }
            PortKind::Vnic if is_of_guest(&wanted) => {
                tap::make_for_guest(&wanted)?;
                Kept::AfPacket(af_packet::claim(&wanted)?)
            }
            PortKind::Vnic => {
                let (mode, queues) = tap::open_vnic(&wanted, lanes)?;
                Kept::Tap(queues, mode)
            }
            _ => Kept::AfPacket(af_packet::claim(&wanted)?),
        };
        Ok(OpenedPort { wanted, held })
    }

    /// Whether the interface is there, and has been since it was opened.
    pub fn is_there(&self) -> bool {
        match &self.held {
            Kept::AfPacket(held) => held.is_there(),
            Kept::Tap(queues, _) => queues.iter().all(tap::is_there),
        }
    }

    /// New descriptors to hand over, with what has to be known of them: of AF_PACKET three for each lane,
    /// first the one that receives; of TAP one. A VNIC is looked for in the network namespace of the thread
    /// that calls.
    ///
    /// # Errors
    /// The interface is missing or off, or Linux refuses.
    pub fn lanes(&self, lanes: u16) -> Result<(HandedOver, Vec<OwnedFd>), AttachError> {
        let (mode, frame, descriptors) = match &self.held {
            Kept::AfPacket(_) => af_packet::descriptors(&self.wanted, lanes)?,
            Kept::Tap(queues, mode) => {
                let again: io::Result<Vec<_>> = queues.iter().map(OwnedFd::try_clone).collect();
                let failed = af_packet::system(&self.wanted.interface, "handing its queues over");
                (mode.clone(), 0, again.map_err(failed)?)
            }
        };
        let WantedPort { interface, offloads, promiscuous, .. } = self.wanted.clone();
        let kind = match &self.held {
            Kept::AfPacket(_) => PortKind::AfPacket,
            Kept::Tap(..) => PortKind::Tap,
        };
        let keeps_tags = self.wanted.vnic.is_some();
        Ok((HandedOver { interface, kind, offloads, promiscuous, keeps_tags, frame, mode }, descriptors))
    }
}

/// The Ethernet address of an interface.
///
/// # Errors
/// The interface is missing.
pub fn ethernet_address(interface: &str) -> io::Result<[u8; 6]> {
    sys::interface_station(&sys::asker()?, interface)
}

/// Whether the router of a VNIC is a virtual machine.
fn is_of_guest(wanted: &WantedPort) -> bool {
    wanted.vnic.as_ref().is_some_and(|vnic| vnic.guest)
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
