//! Ports that one process opens and another one runs: the first needs rights at interfaces and looks at no
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
//! So the second one can end and another one can take its place: meanwhile the packets wait in the sockets,
//! or are dropped where these end with the process, as those of AF_XDP.

#[cfg(feature = "open")]
mod opened;

#[cfg(feature = "open")]
pub use opened::{OpenedPort, can_be_handed_over, ethernet_address};

use super::af_packet;
use super::af_xdp::{self, LaneFrames};
use super::segments::packets_only;
use super::vhost::{self, VhostRenewal};
use super::{Attached, HandedOver, Offloads, PortWay, tap};
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;

/// Goes on with other descriptors of a port that has been adopted.
pub struct PortRenewal(Renewed);

/// What goes on with other descriptors.
enum Renewed {
    AfPacket(af_packet::Adopted),
    AfXdp(af_xdp::Adopted),
    Tap(tap::Adopted),
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
            Renewed::Tap(adopted) => adopted.renew(port, &descriptors),
        }
    }
}

/// Why a port does not go on with what belongs to one of another kind.
pub(super) fn another_kind() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a port of another kind than before")
}

/// Makes ports of descriptors that another process opened.
pub struct Adopter {
    /// Whether a process runs that has the descriptors, too, and is to say where these go on.
    resumes: bool,
    /// The frames that AF_XDP ports share, worker by worker.
    frames: Vec<LaneFrames>,
}

impl Adopter {
    /// With `resumes`, a process runs that has the descriptors, too: the ports leave what it has alone until
    /// they are told to [resume](super::Receiver::resume).
    pub fn new(resumes: bool) -> Adopter {
        Adopter { resumes, frames: Vec::new() }
    }

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
        let (attached, renewal) = match &port.way {
            &PortWay::AfPacket { frame } => {
                let (attached, adopted) = af_packet::adopt(frame, port, number, descriptors)?;
                (attached, Renewed::AfPacket(adopted))
            }
            PortWay::AfXdp(xdp) => {
                let frames = (&mut self.frames, self.resumes);
                let (attached, adopted) = af_xdp::adopt(xdp, port, number, descriptors, frames)?;
                // It neither receives nor sends segments.
                return Ok((attached, PortRenewal(Renewed::AfXdp(adopted))));
            }
            PortWay::Tap | PortWay::Process => {
                let (attached, adopted) = tap::adopt(port, number, descriptors);
                (attached, Renewed::Tap(adopted))
            }
            PortWay::Vhost(vhost) => {
                let (attached, renewal) = vhost::adopt(vhost, port, number, descriptors)?;
                (attached, Renewed::Vhost(renewal))
            }
        };
        let cut = port.offloads == Offloads::Cut;
        Ok((if cut { packets_only(attached) } else { attached }, PortRenewal(renewal)))
    }
}
