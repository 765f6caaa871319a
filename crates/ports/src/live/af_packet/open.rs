//! Opens the sockets of an AF_PACKET port: for every lane one socket with a ring to receive and two to send,
//! past the queueing discipline of the interface and through it.

use super::claim::{Claim, Refused};
use super::keep::Kept;
use super::sockets::{FIRST, OpenLane, SendSockets, TAG};
use crate::live::frame_ring::{BLOCK, FrameRing, Geometry};
use crate::live::witness::Witness;
use crate::live::{AttachError, Offloads, WantedPort, sys};
use packet::VirtioHeader;
use packet::region::SLACK;
use std::io;
use std::os::fd::OwnedFd;

/// What the kernel puts before a packet besides its own room: the header of the ring and the address of the
/// sender, as it rounds them.
const KERNEL: usize = 80 - ETHERNET;
const ETHERNET: usize = 14;
/// The longest packet that a frame of the ring is made for, behind its Ethernet header: longer ones wait at
/// the socket. The loopback interface, whose MTU is 64 KiB, would have a ring of half a gigabyte otherwise.
const LONGEST_IN_RING: usize = 9216;
/// Bytes of longer packets that may wait at the socket.
const LONG_BUFFER: usize = 64 << 20;
/// Bytes of packets that may be on their way out.
const SEND_BUFFER: usize = 8 << 20;

/// What a port has of its interface beside the sockets of its lanes.
pub(in crate::live) struct Held {
    pub(super) witness: Witness,
    /// What keeps other gateways off it.
    pub(super) _claim: Option<Claim>,
    /// What keeps its packets from the kernel.
    pub(super) _kept: Option<Kept>,
}

impl Held {
    /// Whether the interface is there, and has been all the time.
    pub(in crate::live) fn is_there(&self) -> bool {
        self.witness.is_there()
    }
}

/// Claims the interface for this gateway, and keeps its packets from the kernel if that is wanted.
///
/// # Errors
/// The interface is missing, off or of a kind that has no Ethernet headers, another gateway has it, or the
/// kernel refuses; then nothing is left open.
pub(in crate::live) fn claim(wanted: &WantedPort) -> Result<Held, AttachError> {
    let interface = Interface::find(wanted)?;
    // What was made for this gateway is nobody else's, and root of its container could take the name of a
    // claim.
    let claimed = wanted.vnic.is_none().then(|| Claim::of(interface.index));
    let claim = claimed.transpose().map_err(|refused| match refused {
        Refused::Taken(owner) => AttachError::Taken { interface: wanted.interface.clone(), owner },
        Refused::System(source) => interface.failed("claiming it for this gateway alone")(source),
    })?;
    let witness = Witness::of(interface.index, false).map_err(interface.failed("binding to it"))?;
    let keep = wanted.keep_from_kernel.then(|| Kept::new(&wanted.interface));
    let kept =
        keep.transpose().map_err(interface.failed("keeping its packets from the kernel by nf_tables"))?;
    Ok(Held { witness, _claim: claim, _kept: kept })
}

/// Opens the sockets of lanes, and says what was obtained; packets come in from then on.
///
/// # Errors
/// As for [`claim`].
pub(super) fn open_lanes(wanted: &WantedPort, lanes: u16) -> Result<(String, Vec<OpenLane>), AttachError> {
    let interface = Interface::find(wanted)?;
    let mut short = None;
    let lanes: Vec<_> = (0..lanes).map(|_| interface.lane(&mut short)).collect::<Result<_, _>>()?;
    if let [first, others @ ..] = &lanes[..]
        && !others.is_empty()
    {
        let group = sys::make_fanout(&first.incoming).map_err(interface.failed("sharing its packets out"))?;
        for lane in others {
            sys::join_fanout(&lane.incoming, group).map_err(interface.failed("sharing its packets out"))?;
        }
    }
    for lane in &lanes {
        sys::begin(&lane.incoming).map_err(interface.failed("letting packets in"))?;
    }
    Ok((interface.mode(lanes.len(), short), lanes))
}

/// An interface that is there and switched on.
struct Interface<'a> {
    wanted: &'a WantedPort,
    index: u32,
    geometry: Geometry,
    /// Whether packets that are longer than a frame of the ring wait at the socket.
    long: bool,
}

impl<'a> Interface<'a> {
    fn find(wanted: &'a WantedPort) -> Result<Interface<'a>, AttachError> {
        let name = &wanted.interface;
        let failed = |call| system(name, call);
        let socket = socket(name)?;
        let index = sys::interface_index(name).map_err(|_| AttachError::NoInterface(name.clone()))?;
        let kind = sys::interface_link_type(&socket, name).map_err(failed("asking for its link type"))?;
        if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&kind) {
            return Err(AttachError::LinkType { interface: name.clone(), kind });
        }
        if !sys::interface_is_up(&socket, name).map_err(failed("asking whether it is on"))? {
            return Err(AttachError::Down(name.clone()));
        }
        let mtu = sys::interface_mtu(&socket, name).map_err(failed("asking for its MTU"))? as usize;
        let geometry = Geometry::of(FIRST + ETHERNET + TAG + mtu.min(LONGEST_IN_RING) + SLACK);
        Ok(Interface {
            wanted,
            index,
            geometry,
            long: wanted.offloads != Offloads::Off || mtu > LONGEST_IN_RING,
        })
    }

    fn failed(&self, call: &'static str) -> impl FnOnce(io::Error) -> AttachError + use<> {
        system(&self.wanted.interface, call)
    }

    /// Two sockets bound to it, the first of which gets nothing before [`sys::begin`], and its ring. A buffer
    /// that got smaller than was asked for is told in `short`.
    fn lane(&self, short: &mut Option<usize>) -> Result<OpenLane, AttachError> {
        let incoming = socket(&self.wanted.interface)?;
        let option = |socket: &OwnedFd, option, value: i32, call| {
            sys::set_option(socket, libc::SOL_PACKET, option, value).map_err(self.failed(call))
        };
        sys::hold(&incoming).map_err(self.failed("keeping packets out to begin with"))?;
        const V2: i32 = libc::tpacket_versions::TPACKET_V2 as i32;
        const ROOM: i32 = (FIRST - KERNEL - VirtioHeader::LEN) as i32;
        option(&incoming, libc::PACKET_VERSION, V2, "asking for a ring of version 2")?;
        option(&incoming, libc::PACKET_IGNORE_OUTGOING, 1, "asking not to see what leaves")?;
        option(&incoming, libc::PACKET_VNET_HDR, 1, "asking for virtio-net headers")?;
        option(&incoming, libc::PACKET_RESERVE, ROOM, "asking for room before packets")?;
        if self.long {
            option(
                &incoming,
                libc::PACKET_COPY_THRESH,
                1,
                "asking for packets that are longer than a frame",
            )?;
            let got = sys::set_receive_buffer(&incoming, LONG_BUFFER)
                .map_err(self.failed("asking for a receive buffer"))?;
            *short = short.or(Some(got).filter(|&got| got < LONG_BUFFER));
        }
        let geometry = self.geometry;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: geometry.blocks as u32,
            tp_frame_size: geometry.frame as u32,
            tp_frame_nr: geometry.frames() as u32,
        };
        sys::set_option(&incoming, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(self.failed("asking for a ring"))?;
        let ring = FrameRing::map(&incoming, geometry).map_err(self.failed("mapping the ring"))?;
        sys::bind_packet(&incoming, self.index, libc::ETH_P_ALL).map_err(self.failed("binding to it"))?;
        sys::take_all(&incoming, self.index, self.wanted.promiscuous)
            .map_err(self.failed("asking for packets that are meant for others"))?;

        let outgoing = |direct| -> Result<OwnedFd, AttachError> {
            let socket = socket(&self.wanted.interface)?;
            option(&socket, libc::PACKET_VNET_HDR, 1, "asking for virtio-net headers")?;
            sys::send_directly(&socket, direct)
                .map_err(self.failed("asking to send past the queueing discipline"))?;
            sys::set_send_buffer(&socket, SEND_BUFFER).map_err(self.failed("asking for a send buffer"))?;
            // Protocol 0: it receives nothing.
            sys::bind_packet(&socket, self.index, 0).map_err(self.failed("binding to it"))?;
            Ok(socket)
        };
        let outgoing = SendSockets { direct: outgoing(true)?, queued: outgoing(false)? };
        Ok(OpenLane { incoming, ring, outgoing })
    }

    fn mode(&self, lanes: usize, short: Option<usize>) -> String {
        let Geometry { frame, .. } = self.geometry;
        let mut mode = format!("af_packet, ring of {} frames of {frame} bytes", self.geometry.frames());
        mode += match self.wanted.offloads {
            Offloads::Cut => ", open checksums taken, segments cut for the program and joined behind it",
            Offloads::Whole => ", open checksums taken, segments whole",
            Offloads::Off => ", offloads not used",
        };
        if self.wanted.keep_from_kernel {
            mode += ", its packets kept from the kernel";
        }
        if lanes > 1 {
            mode += &format!(", flows shared out among {lanes} sockets");
        }
        if let Some(bytes) = short {
            let (got, asked) = (bytes >> 10, LONG_BUFFER >> 10);
            mode += &format!(
                ", {got} KiB for long packets instead of {asked}, which need CAP_NET_ADMIN or a larger net.core.rmem_max"
            );
        }
        mode
    }
}

fn socket(name: &str) -> Result<OwnedFd, AttachError> {
    sys::packet_socket().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => AttachError::Rights(name.to_owned()),
        _ => system(name, "opening a packet socket")(source),
    })
}

pub(in crate::live) fn system(
    name: &str,
    call: &'static str,
) -> impl FnOnce(io::Error) -> AttachError + use<> {
    let interface = name.to_owned();
    move |source| AttachError::System { interface, call, source }
}
