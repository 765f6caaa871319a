//! Ports of the kind AF_PACKET: frames come in through a ring shared with the Linux kernel, and one system
//! call sends many frames.
//!
//! ```text
//! frame: word status | lengths, offsets, time, tag | … room to grow … | virtio-net header | the packet … | slack
//!        0           4                                                  FIRST - 10          FIRST (a multiple of 64)
//! ```
//!
//! The ring is of version 2 (Linux, Documentation/networking/packet_mmap.rst): its frames are handed over one
//! by one the moment they are written. Version 3 hands over whole blocks, the last of them by a timer of at
//! least a millisecond, which every lonely packet would wait for.
//!
//! With several lanes the sockets are a group (PACKET_FANOUT) that the kernel shares packets out in by a hash
//! of addresses and ports that is the same in both directions. Fragments of IP have no ports: those of one
//! pair of addresses come by one lane, which may be another than that of their flow.

#[cfg(feature = "attach")]
mod attached;
#[cfg(feature = "open")]
mod claim;
mod incoming;
#[cfg(feature = "open")]
mod keep;
#[cfg(feature = "open")]
mod open;
mod outlet;
mod port;
mod sockets;

#[cfg(feature = "attach")]
pub(super) use attached::attach;
#[cfg(feature = "open")]
pub(super) use open::{Held, claim, system};
pub(super) use port::Adopted;

#[cfg(feature = "open")]
use super::AttachError;
use super::frame_ring::{FrameRing, Geometry};
use super::handed_over::another_kind;
use super::{Attached, HandedOver, Lane, PortWay, WantedPort};
use incoming::Incoming;
use outlet::Outlet;
use packet::PortNumber;
use port::Port;
use sockets::{OpenLane, SendSockets};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What another process is to adopt of an interface that was claimed: what was obtained, the bytes of a frame
/// of the rings, and three sockets for each lane.
#[cfg(feature = "open")]
pub(super) fn descriptors(
    wanted: &WantedPort,
    lanes: u16,
) -> Result<(String, u32, Vec<OwnedFd>), AttachError> {
    let (mode, lanes) = open::open_lanes(wanted, lanes)?;
    let frame = lanes.first().map_or(0, |lane| lane.ring.frame() as u32);
    let sockets =
        lanes.into_iter().flat_map(|lane| [lane.incoming, lane.outgoing.direct, lane.outgoing.queued]);
    Ok((mode, frame, sockets.collect()))
}

/// Makes a port of sockets that another process opened.
///
/// # Errors
/// There are not three for each lane, or a ring cannot be mapped.
pub(super) fn adopt(
    frame: u32,
    handed: &HandedOver,
    number: PortNumber,
    descriptors: Vec<OwnedFd>,
) -> io::Result<(Attached, Adopted)> {
    let lanes = adopted_lanes(frame, descriptors)?;
    let &HandedOver { offloads, promiscuous, keeps_tags, .. } = handed;
    let wanted = WantedPort { offloads, promiscuous, ..WantedPort::plain(&handed.interface) };
    let port = Arc::new(Port::handed_over(wanted, keeps_tags, lanes.len()));
    Ok((attached(&port, handed.mode.clone(), number, lanes), Adopted(port)))
}

impl Adopted {
    /// Goes on with other sockets, lane by lane.
    ///
    /// # Errors
    /// There are not as many as lanes, or a ring cannot be mapped.
    pub(super) fn renew(&self, handed: &HandedOver, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let PortWay::AfPacket { frame } = handed.way else { return Err(another_kind()) };
        self.0.hand_over(adopted_lanes(frame, descriptors)?)?;
        self.0.presence.back(handed.mode.clone());
        Ok(())
    }
}

fn adopted_lanes(frame: u32, descriptors: Vec<OwnedFd>) -> io::Result<Vec<OpenLane>> {
    if descriptors.is_empty() || !descriptors.len().is_multiple_of(3) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "each lane needs three sockets"));
    }
    let geometry = Geometry::of(frame as usize);
    let mut lanes = Vec::new();
    let mut descriptors = descriptors.into_iter();
    while let (Some(incoming), Some(direct), Some(queued)) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    {
        let ring = FrameRing::map(&incoming, geometry)?;
        lanes.push(OpenLane { incoming, ring, outgoing: SendSockets { direct, queued } });
    }
    Ok(lanes)
}

/// The port over these sockets.
fn attached(port: &Arc<Port>, mode: String, number: PortNumber, lanes: Vec<OpenLane>) -> Attached {
    let lanes = lanes.into_iter().enumerate().map(|(index, lane)| Lane {
        receive: Box::new(Incoming::new(lane.incoming, lane.ring, number, port.clone(), index)),
        send: Box::new(Outlet::new(lane.outgoing, port.clone(), index)),
    });
    Attached::alone(port.wanted.interface.clone(), mode, lanes.collect(), port.presence.clone())
}
