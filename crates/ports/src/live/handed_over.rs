//! Ports that one process opens and another one runs: the first needs rights at interfaces and sees no
//! packet, the second needs no rights.
//!
//! ```text
//! process with rights                            process without rights
//! OpenedPort::open   claims the interface
//! OpenedPort::lanes  opens sockets  ─descriptors─►  Adopter::adopt      maps the rings, makes lanes of them
//!                                                   PortRenewal::renew  goes on with others
//! ```
//!
//! The claim on an interface, and what keeps its packets from the Linux kernel, stay with the first process.
//! So the second one can end and another one can take its place without a moment in which the packets are
//! anybody else's.

#[cfg(feature = "open")]
mod opened;

#[cfg(feature = "open")]
pub use opened::{OpenedPort, can_be_handed_over, ethernet_address};

use super::af_packet;
use super::af_xdp::{self, LaneFrames};
use super::segments::packets_only;
use super::vhost::{self, VhostRenewal};
use super::{Attached, HandedOver, Offloads, PortKind, sys, tap};
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Goes on with other descriptors of a port that has been adopted.
pub struct PortRenewal(Renewed);

/// What goes on with other descriptors.
enum Renewed {
    AfPacket(af_packet::Adopted),
    AfXdp(af_xdp::Adopted),
    /// The queues, of which each keeps its number.
    Tap(Vec<Arc<OwnedFd>>),
    Vhost(VhostRenewal),
}

impl PortRenewal {
    /// Goes on with these descriptors, which were opened as those before.
    ///
    /// # Errors
    /// They are not as many as those before, or a ring cannot be mapped; then nothing has changed, but that
    /// a virtual machine's memory is let go of.
    pub fn renew(&self, port: &HandedOver, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        match &self.0 {
            Renewed::AfPacket(adopted) => adopted.renew(port, descriptors),
            Renewed::AfXdp(adopted) => adopted.renew(port, descriptors),
            Renewed::Vhost(renewal) => renewal.renew(port, descriptors),
            Renewed::Tap(queues) if queues.len() == descriptors.len() => {
                queues.iter().zip(&descriptors).try_for_each(|(queue, new)| sys::replace(queue, new))
            }
            Renewed::Tap(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "not as many queues as before"))
            }
        }
    }
}

/// Makes ports of descriptors that another process opened.
#[derive(Default)]
pub struct Adopter {
    /// The frames that AF_XDP ports share, worker by worker.
    frames: Vec<LaneFrames>,
}

impl Adopter {
    /// Makes a port whose packets carry `number`.
    ///
    /// # Errors
    /// The descriptors do not suit the description, or a ring cannot be mapped.
    pub fn adopt(
        &mut self,
        port: &HandedOver,
        number: PortNumber,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<(Attached, PortRenewal)> {
        let (attached, renewal) = match port.kind {
            PortKind::AfPacket => {
                let (attached, adopted) = af_packet::adopt(port, number, descriptors)?;
                (attached, Renewed::AfPacket(adopted))
            }
            PortKind::AfXdp => {
                let (attached, adopted) = af_xdp::adopt(port, number, descriptors, &mut self.frames)?;
                // It neither receives nor sends segments.
                return Ok((attached, PortRenewal(Renewed::AfXdp(adopted))));
            }
            PortKind::Tap => {
                let (attached, queues) = tap::adopt(port, number, descriptors);
                (attached, Renewed::Tap(queues))
            }
            PortKind::Vhost => {
                let (attached, renewal) = vhost::adopt(port, number, descriptors)?;
                (attached, Renewed::Vhost(renewal))
            }
            PortKind::Vnic | PortKind::Tunnel | PortKind::Empty => {
                let what = "a kind of port that is not handed over";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
        };
        let cut = port.offloads == Offloads::Cut;
        Ok((if cut { packets_only(attached) } else { attached }, PortRenewal(renewal)))
    }
}
