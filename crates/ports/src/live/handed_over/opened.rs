//! Ports that a process with rights opens for another one, and the descriptors that it hands over.

#[cfg(doc)]
use crate::live::XdpPort;
use crate::live::af_packet::{self, Held};
use crate::live::af_xdp::{FrameShare, OpenedXdp};
use crate::live::vhost::{Rings, VhostPort, shared_files};
use crate::live::{AttachError, GuestLink, HandedOver, PortKind, PortWay, WantedPort, sys, tap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Whether a socket takes descriptors (include/uapi/asm-generic/socket.h of Linux).
const SO_PASSRIGHTS: i32 = 83;

/// Bytes of frames that may wait for a process at each socket; Linux doubles it, and counts more than the
/// frames.
const FRAME_BYTES: usize = 4 << 20;

/// How a port is attached to a virtual machine that is not there.
const NO_MACHINE: &str = "vhost-user, without a machine";

/// A port that was opened for another process.
pub struct OpenedPort {
    wanted: WantedPort,
    held: Kept,
}

/// What stays with the process that opens ports.
enum Kept {
    AfPacket(Held),
    AfXdp(Box<OpenedXdp>),
    /// The queues of a device, which would go with the last of them.
    Tap(Vec<OwnedFd>, String),
    Tunnel(FrameSockets),
    Vhost(SharedMemory),
}

/// Sockets by which frames go between a core and the process of a tunnel, pair by pair. Each end stays open
/// here, so that neither process finds the other one gone.
struct FrameSockets {
    of_core: Vec<OwnedFd>,
    of_tunnel: Vec<OwnedFd>,
}

/// What a virtual machine shares.
struct SharedMemory {
    bell: OwnedFd,
    /// The other end of the bell, before there was a machine.
    _nobody: Option<OwnedFd>,
    rings: Option<(Rings, Vec<OwnedFd>)>,
}

impl OpenedPort {
    /// Claims an interface, or makes a TAP device with so many queues. A VNIC is made in the network
    /// namespace of the thread that calls. An AF_XDP port has the frames of [`FrameShare::of_all`].
    ///
    /// # Errors
    /// The interface is missing, off or taken, or Linux refuses; then nothing has changed. As for
    /// [`can_be_handed_over`], too.
    pub fn open(
        wanted: &WantedPort,
        lanes: u16,
        frames: Option<&FrameShare>,
    ) -> Result<OpenedPort, AttachError> {
        let unsupported = |what| AttachError::System {
            interface: wanted.interface.clone(),
            call: "opening it for a confined process",
            source: io::Error::new(io::ErrorKind::Unsupported, what),
        };
        can_be_handed_over(wanted).map_err(unsupported)?;
        let mut wanted = wanted.clone();
        // What a virtual machine sends is for stations that its device is not.
        let guest = wanted.vnic.as_ref().and_then(|vnic| vnic.guest);
        wanted.promiscuous |= guest.is_some();
        let held = match wanted.kind {
            PortKind::AfXdp => {
                let frames = frames.ok_or("it has no frames").map_err(unsupported)?;
                Kept::AfXdp(Box::new(OpenedXdp::open(&wanted, frames.clone())?))
            }
            PortKind::Tunnel => {
                let sockets = FrameSockets::new(lanes);
                Kept::Tunnel(sockets.map_err(af_packet::system(&wanted.interface, "its sockets"))?)
            }
            PortKind::Tap => {
                let (mode, queues) = tap::open_queues(&wanted, lanes)?;
                Kept::Tap(queues, mode)
            }
            PortKind::Vnic if guest == Some(GuestLink::Tap) => {
                tap::make_for_guest(&wanted)?;
                Kept::AfPacket(af_packet::claim(&wanted)?)
            }
            PortKind::Vnic if guest == Some(GuestLink::VhostUser) => {
                let pair = UnixStream::pair();
                let (bell, nobody) = pair.map_err(af_packet::system(&wanted.interface, "its bell"))?;
                Kept::Vhost(SharedMemory { bell: bell.into(), _nobody: Some(nobody.into()), rings: None })
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
            Kept::AfXdp(opened) => opened.is_there(),
            Kept::Tap(queues, _) => queues.iter().all(tap::is_there),
            Kept::Tunnel(_) | Kept::Vhost(_) => true,
        }
    }

    /// New descriptors to hand over, with what has to be known of them: of AF_PACKET three for each lane,
    /// first the one that receives; of AF_XDP those of [`XdpPort`]; of TAP one; of vhost-user the bell and
    /// what the machine shares. A VNIC is looked for in the network namespace of the thread that calls.
    ///
    /// # Errors
    /// The interface is missing or off, or Linux refuses.
    pub fn lanes(&self, lanes: u16) -> Result<(HandedOver, Vec<OwnedFd>), AttachError> {
        let again = |descriptors: &[OwnedFd]| {
            let again: io::Result<Vec<_>> = descriptors.iter().map(OwnedFd::try_clone).collect();
            again.map_err(af_packet::system(&self.wanted.interface, "handing it over"))
        };
        let (mode, way, descriptors) = match &self.held {
            Kept::AfPacket(_) => {
                let (mode, frame, descriptors) = af_packet::descriptors(&self.wanted, lanes)?;
                (mode, PortWay::AfPacket { frame }, descriptors)
            }
            Kept::AfXdp(opened) => {
                let (mode, xdp, descriptors) = opened.descriptors()?;
                (mode, PortWay::AfXdp(xdp), descriptors)
            }
            Kept::Tap(queues, mode) => (mode.clone(), PortWay::Tap, again(queues)?),
            Kept::Tunnel(sockets) => {
                ("tunnel, by a process of its own".to_owned(), PortWay::Process, again(&sockets.of_core)?)
            }
            Kept::Vhost(SharedMemory { bell, rings, .. }) => {
                let (mut descriptors, mut mode) = (again(std::slice::from_ref(bell))?, NO_MACHINE.to_owned());
                if let Some((rings, files)) = rings {
                    descriptors.extend(again(files)?);
                    let (receive, transmit) = (rings.receive.size, rings.transmit.size);
                    let cut = if rings.unfinished { ", segments cut for the program" } else { "" };
                    mode = format!("vhost-user, {receive} and {transmit} descriptors{cut}");
                }
                let rings = rings.as_ref().map(|(rings, _)| rings.clone());
                (mode, PortWay::Vhost(VhostPort { lanes, rings }), descriptors)
            }
        };
        let WantedPort { interface, offloads, promiscuous, .. } = self.wanted.clone();
        let keeps_tags = self.wanted.vnic.is_some();
        let handed = HandedOver { interface, way, offloads, promiscuous, keeps_tags, mode };
        Ok((handed, descriptors))
    }

    /// The sockets by which the process of a tunnel gets frames and gives them, if the port is one.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub fn of_tunnel(&self) -> io::Result<Vec<OwnedFd>> {
        match &self.held {
            Kept::Tunnel(sockets) => sockets.of_tunnel.iter().map(OwnedFd::try_clone).collect(),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Takes over what a virtual machine shares from now on, by whose bell, or that it shares nothing.
    ///
    /// # Errors
    /// The port is of another kind, or the memory could go away while it is read; it shares nothing then.
    pub fn share(&mut self, bell: OwnedFd, rings: Option<(Rings, Vec<OwnedFd>)>) -> io::Result<()> {
        let Kept::Vhost(shared) = &mut self.held else { return Err(io::ErrorKind::Unsupported.into()) };
        *shared = SharedMemory { bell, _nobody: None, rings: None };
        if let Some((rings, files)) = rings {
            shared_files::check(&rings.regions, &files).map_err(io::Error::other)?;
            shared.rings = Some((rings, files));
        }
        Ok(())
    }
}

impl FrameSockets {
    fn new(lanes: u16) -> io::Result<FrameSockets> {
        let mut sockets = FrameSockets { of_core: Vec::new(), of_tunnel: Vec::new() };
        for _ in 0..lanes {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (core, tunnel) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            for end in [&core, &tunnel] {
                sys::set_buffer(end, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, FRAME_BYTES)?;
                // Nobody hands a socket to the other one. A kernel before 6.16 cannot refuse that.
                let _ = sys::set_number(end, libc::SOL_SOCKET, SO_PASSRIGHTS, 0);
            }
            sockets.of_core.push(core);
            sockets.of_tunnel.push(tunnel);
        }
        Ok(sockets)
    }
}

/// The Ethernet address of an interface.
///
/// # Errors
/// The interface is missing.
pub fn ethernet_address(interface: &str) -> io::Result<[u8; 6]> {
    sys::interface_station(&sys::asker()?, interface)
}

/// Whether a port can be opened for another process.
///
/// # Errors
/// What of it cannot be handed over: a port that is nobody's, a part of an interface, middleware.
pub fn can_be_handed_over(wanted: &WantedPort) -> Result<(), &'static str> {
    if matches!(wanted.kind, PortKind::Vhost | PortKind::Empty) {
        return Err("no port can be `empty` there");
    }
    let plain = WantedPort {
        kind: wanted.kind.clone(),
        offloads: wanted.offloads,
        keep_from_kernel: wanted.keep_from_kernel,
        promiscuous: wanted.promiscuous,
        xdp: wanted.xdp.clone(),
        #[cfg(feature = "attach")]
        tunnel: wanted.tunnel.clone(),
        vnic: wanted.vnic.clone(),
        ..WantedPort::plain(&wanted.interface)
    };
    if *wanted == plain {
        Ok(())
    } else {
        Err("`vlan`, `on`, `impair`, `shape` and `trace` are not available there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd;

    #[test]
    fn no_process_hands_a_descriptor_to_the_other_one() {
        let sockets = FrameSockets::new(2).expect("sockets");
        assert_eq!((sockets.of_core.len(), sockets.of_tunnel.len()), (2, 2));
        for end in sockets.of_core.iter().chain(&sockets.of_tunnel) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            let own = [end.as_fd()];
            rights.push(SendAncillaryMessage::ScmRights(&own));
            let sent = sendmsg(end, &[IoSlice::new(b"x")], &mut rights, SendFlags::DONTWAIT);
            // Linux before 6.16 does not know of it.
            let knows = sys::set_number(end, libc::SOL_SOCKET, SO_PASSRIGHTS, 0).is_ok();
            assert_eq!(sent.err(), knows.then_some(Errno::PERM));
            assert!(sockopt::socket_send_buffer_size(end).expect("it is told") >= FRAME_BYTES);
        }
    }
}
