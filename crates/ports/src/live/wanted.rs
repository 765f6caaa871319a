//! The settings of a live port, and the errors when an interface cannot become this port.

use super::af_xdp::XdpPort;
use super::vhost::shared::VhostPort;
use super::{GuestLink, TapError, VnicWishes};
#[cfg(feature = "attach")]
use super::{Middleware, NOBODY, TunnelError, TunnelWishes};
#[cfg(feature = "open")]
use super::{XdpError, XdpWishes};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::{fmt, io};

/// By which way packets come off an interface and leave by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// AF_PACKET sockets: every interface has them.
    #[default]
    AfPacket,
    /// AF_XDP sockets: the kernel puts packets into memory of the gateway, past its own network stack.
    AfXdp,
    /// A TAP device: an interface of this machine that is made for the gateway, so that the machine is behind
    /// it.
    Tap,
    /// A TAP device in the network namespace of a container, as its only link.
    Vnic,
    /// Encrypted datagrams of UDP to gateways elsewhere, each of which is a station.
    Tunnel,
    /// The network card of a virtual machine in such a network, whose memory is shared (vhost-user).
    #[serde(skip)]
    Vhost,
    /// None: the number is nobody's. Nothing comes in by it, and what leaves by it is lost.
    #[serde(skip)]
    Empty,
}

/// What to do with packets that hosts on virtual links, and network cards, hand over unfinished: checksums
/// not summed, long segments not cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// The program gets segments cut into packets; what leaves is joined again where that changes nothing.
    #[default]
    Cut,
    /// The program gets segments whole. It must not compare lengths with an MTU, nor put packets into
    /// tunnels.
    Whole,
    /// Long segments are lost and counted.
    Off,
}

impl<'de> Deserialize<'de> for Offloads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Offloads, D::Error> {
        deserializer.deserialize_any(OffloadsVisitor)
    }
}

struct OffloadsVisitor;

impl Visitor<'_> for OffloadsVisitor {
    type Value = Offloads;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`\"cut\"`, `\"whole\"` or `\"off\"`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Offloads, E> {
        match text {
            "cut" => Ok(Offloads::Cut),
            "whole" => Ok(Offloads::Whole),
            "off" => Ok(Offloads::Off),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }

    /// `true` is the default, `false` is `"off"`.
    fn visit_bool<E: Error>(self, on: bool) -> Result<Offloads, E> {
        Ok(if on { Offloads::default() } else { Offloads::Off })
    }
}

/// Which frames of an interface are those of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanPlace {
    /// All.
    #[default]
    Alone,
    /// Those without a VLAN tag; other ports have those with one.
    Untagged,
    /// Those with the tag of this VLAN, 1 to 4094, without which they come in; it is put before what leaves.
    Tag(u16),
}

impl VlanPlace {
    /// The number of the VLAN; 0 for frames without a tag.
    #[cfg(feature = "attach")]
    pub(super) fn number(self) -> u16 {
        match self {
            VlanPlace::Tag(vlan) => vlan,
            VlanPlace::Alone | VlanPlace::Untagged => 0,
        }
    }
}

/// What is wanted of an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedPort {
    /// Its name.
    pub interface: String,
    /// Which of its frames. Where ports share an interface, the first of them says by which way it is
    /// attached.
    pub vlan: VlanPlace,
    /// By which way.
    pub kind: PortKind,
    /// What to do with unfinished packets.
    pub offloads: Offloads,
    /// Keep what comes in from the kernel's own network stack. Of the queues that it takes packets from
    /// AF_XDP does so anyway, of others with this.
    pub keep_from_kernel: bool,
    /// Take what is meant for other stations, too, as a bridge has to and a router must not.
    pub promiscuous: bool,
    /// What is wanted of AF_XDP.
    #[cfg(feature = "open")]
    pub xdp: XdpWishes,
    /// What is to stand between the program and it.
    #[cfg(feature = "attach")]
    pub middleware: Middleware,
    /// The end of a tunnel that it is to be, of ports of that kind.
    #[cfg(feature = "attach")]
    pub tunnel: Option<TunnelWishes>,
    /// What the router in the container is called, of ports of that kind.
    pub vnic: Option<VnicWishes>,
}

impl WantedPort {
    /// Whether it is the card of a virtual machine that shares its memory.
    pub fn is_by_vhost(&self) -> bool {
        self.vnic.as_ref().is_some_and(|vnic| vnic.guest == Some(GuestLink::VhostUser))
    }

    /// An AF_PACKET port of this interface of which nothing else is said.
    pub fn plain(interface: &str) -> WantedPort {
        WantedPort {
            interface: interface.to_owned(),
            vlan: VlanPlace::default(),
            kind: PortKind::default(),
            offloads: Offloads::default(),
            keep_from_kernel: false,
            promiscuous: false,
            #[cfg(feature = "open")]
            xdp: XdpWishes::default(),
            #[cfg(feature = "attach")]
            middleware: Middleware::default(),
            #[cfg(feature = "attach")]
            tunnel: None,
            vnic: None,
        }
    }
}

#[cfg(feature = "attach")]
impl WantedPort {
    /// The name of the port: that of its interface, and of a port of a VLAN the VLAN's number behind it.
    pub fn name(&self) -> String {
        match self.vlan {
            _ if self.kind == PortKind::Empty => NOBODY.to_owned(),
            VlanPlace::Alone | VlanPlace::Untagged => self.interface.clone(),
            VlanPlace::Tag(vlan) => format!("{}.{vlan}", self.interface),
        }
    }

    /// Whether a port that was opened for this one needs not be opened anew to be the other one. Peers and
    /// keys of a tunnel can be changed while it runs.
    pub fn continues_as(&self, other: &WantedPort) -> bool {
        let rest = |port: &WantedPort| {
            let tunnel = port.tunnel.as_ref();
            let tunnel = tunnel.map(|tunnel| TunnelWishes {
                listen: tunnel.listen,
                mtu: tunnel.mtu,
                keys: Vec::new(),
                peers: Vec::new(),
            });
            WantedPort { tunnel, ..port.clone() }
        };
        rest(self) == rest(other)
    }
}

/// By which way packets come and leave at a port that another process opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortWay {
    /// AF_PACKET sockets, three for each worker, whose rings have frames of so many bytes.
    AfPacket {
        /// Bytes of a frame.
        frame: u32,
    },
    /// AF_XDP sockets, and the memory of frames.
    AfXdp(XdpPort),
    /// A TAP device, with a queue for each worker.
    Tap,
    /// A process, with a socket for each worker, over which messages go as at a TAP device.
    Process,
    /// The network card of a virtual machine (vhost-user): a bell, and a file for each region of memory.
    Vhost(VhostPort),
}

/// What has to be known of a port beside its descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// The interface's name.
    pub interface: String,
    /// By which way.
    pub way: PortWay,
    /// What to do with unfinished packets.
    pub offloads: Offloads,
    /// Whether packets that are meant for other stations are taken, too.
    pub promiscuous: bool,
    /// Whether priority tags are left in, as for a port whose frames are judged byte by byte.
    pub keeps_tags: bool,
    /// How the port is attached, as a text for people.
    pub mode: String,
}

#[cfg(feature = "open")]
impl AttachError {
    /// Whether somebody has it who may go: a process that has ended lets go of its interfaces a moment later.
    pub fn is_taken(&self) -> bool {
        matches!(self, AttachError::Xdp(XdpError::QueueTaken { .. } | XdpError::Taken { .. }))
    }
}

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// there is none of this name
    #[error("there is no interface {0} here; `ip link` lists those there are")]
    NoInterface(String),
    /// it is switched off
    #[error("interface {0} is switched off; `ip link set {0} up` switches it on")]
    Down(String),
    /// it has no Ethernet headers
    #[error(
        "interface {interface} is not an Ethernet interface (its link type is {kind} in the kernel's list, ARPHRD_*), and programs are made for Ethernet frames"
    )]
    LinkType {
        /// The interface's name.
        interface: String,
        /// The number of its type.
        kind: u16,
    },
    /// the right is missing
    #[error(
        "no right to take packets off interface {0}: it needs CAP_NET_RAW; run as root, or over a capture with `ravelin run`, which needs no rights"
    )]
    Rights(String),
    /// another gateway has it
    #[error(
        "the packets of interface {interface} are taken by {owner} already, and two gateways would both answer each of them: stop that one, or give this one another interface"
    )]
    Taken {
        /// The interface's name.
        interface: String,
        /// Who has it.
        owner: String,
    },
    /// AF_XDP
    #[cfg(feature = "open")]
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// TAP
    #[error(transparent)]
    Tap(#[from] TapError),
    /// a tunnel
    #[cfg(feature = "attach")]
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// a call failed
    #[error("interface {interface}: {call}: {source}")]
    System {
        /// The interface's name.
        interface: String,
        /// What was asked of the kernel.
        call: &'static str,
        /// What it said.
        source: io::Error,
    },
}
