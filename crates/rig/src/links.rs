//! Cables, addresses, neighbours and routes of a namespace, by netlink (RFC 3549; rtnetlink(7)).

use crate::namespace::Namespace;
use crate::sys;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

/// Offloads of a network device, by the numbers that set them (linux/ethtool.h): checksums received and sent,
/// scatter and gather, segmentation of TCP, of everything, and the joining of segments.
const OFFLOADS: [u32; 6] = [0x15, 0x17, 0x19, 0x1f, 0x24, 0x2c];

/// What a device counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came in.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Frames that were to come in and did not.
    pub dropped: u64,
}

/// The devices of a namespace.
pub struct RigLinks<'a> {
    namespace: &'a Namespace,
    socket: OwnedFd,
}

impl Namespace {
    /// Its devices.
    ///
    /// # Errors
    /// The kernel gives no socket.
    pub fn links(&self) -> io::Result<RigLinks<'_>> {
        Ok(RigLinks { namespace: self, socket: self.inside(sys::route_socket)? })
    }
}

impl RigLinks<'_> {
    /// A virtual cable from here to another namespace; each end has a name and an Ethernet address.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn cable(
        &self,
        here: (&str, [u8; 6]),
        there: (&str, [u8; 6]),
        namespace: &Namespace,
    ) -> io::Result<()> {
        let end = |(name, address): (&str, [u8; 6])| {
            vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::Address(address.to_vec())]
        };
        let mut peer = LinkMessage::default();
        peer.attributes = end(there);
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.network().as_raw_fd()));
        let mut link = LinkMessage::default();
        link.attributes = end(here);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.make(RouteNetlinkMessage::NewLink(link))
    }

    /// A bridge, switched on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bridge(&self, name: &str) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        self.make(RouteNetlinkMessage::NewLink(link))
    }

    /// Makes an interface a port of a bridge.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn plug(&self, interface: &str, bridge: &str) -> io::Result<()> {
        let bridge = self.index(bridge)?;
        let mut link = self.named(interface)?;
        link.attributes.push(LinkAttribute::Controller(bridge));
        self.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
    }

    /// Moves an interface to another namespace, where it has another name and Ethernet address and is off.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn hand(&self, interface: &str, to: (&str, [u8; 6]), namespace: &Namespace) -> io::Result<()> {
        let mut link = self.named(interface)?;
        link.attributes = vec![
            LinkAttribute::NetNsFd(namespace.network().as_raw_fd()),
            LinkAttribute::IfName(to.0.to_owned()),
            LinkAttribute::Address(to.1.to_vec()),
        ];
        self.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
    }

    /// Lets so many frames wait at an interface until they are sent.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn queue(&self, interface: &str, frames: u32) -> io::Result<()> {
        let mut link = self.named(interface)?;
        link.attributes.push(LinkAttribute::TxQueueLen(frames));
        self.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
    }

    /// Switches an interface on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn up(&self, interface: &str) -> io::Result<()> {
        let mut link = self.named(interface)?;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
    }

    /// Gives an interface an address with the length of its network's prefix. Nobody is asked whether one of
    /// IPv6 is free.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn address(&self, interface: &str, address: impl Into<IpAddr>, length: u8) -> io::Result<()> {
        let address = address.into();
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = length;
        message.header.index = self.index(interface)?;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.make(RouteNetlinkMessage::NewAddress(message))
    }

    /// Says for good which Ethernet address a neighbour has.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn neighbour(&self, interface: &str, address: Ipv4Addr, ethernet: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = self.index(interface)?;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
            NeighbourAttribute::LinkLayerAddress(ethernet.to_vec()),
        ];
        let message = RouteNetlinkMessage::NewNeighbour(message);
        self.request(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Sends what is for none of the interfaces' networks to a neighbour.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn default_route(&self, gateway: impl Into<IpAddr>) -> io::Result<()> {
        let gateway = gateway.into();
        self.make(RouteNetlinkMessage::NewRoute(route(gateway)))
    }

    /// Sends what is for a network of IPv6 to a neighbour at this interface.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn route6(&self, to: (Ipv6Addr, u8), gateway: Ipv6Addr, interface: &str) -> io::Result<()> {
        let mut message = route(gateway.into());
        message.header.destination_prefix_length = to.1;
        message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet6(to.0)));
        message.attributes.push(RouteAttribute::Oif(self.index(interface)?));
        self.make(RouteNetlinkMessage::NewRoute(message))
    }

    /// Switches the offloads of an interface on or off: checksums, scatter and gather, segmentation, joining
    /// of segments.
    ///
    /// # Errors
    /// What the kernel says; features that a device does not let anyone change are left as they are.
    pub fn offloads(&self, interface: &str, on: bool) -> io::Result<()> {
        self.namespace.inside(|| {
            for command in OFFLOADS {
                match sys::set_feature(interface, command, on) {
                    Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        })
    }

    /// Switches the checksums on or off that an interface makes of what it sends, and with them the cutting
    /// of UDP segments (since Linux 6.11).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn checksums(&self, interface: &str, on: bool) -> io::Result<()> {
        self.namespace.inside(|| sys::set_feature(interface, OFFLOADS[1], on))
    }

    /// What an interface counted.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counters(&self, interface: &str) -> io::Result<Counters> {
        let link = self.link(interface)?;
        let stats = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        });
        let stats = stats.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Counters { received: stats.rx_packets, sent: stats.tx_packets, dropped: stats.rx_dropped })
    }

    /// The number of an interface.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn index(&self, interface: &str) -> io::Result<u32> {
        Ok(self.link(interface)?.header.index)
    }

    /// Whether an interface is switched on.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn is_up(&self, interface: &str) -> io::Result<bool> {
        Ok(self.link(interface)?.header.flags.contains(LinkFlags::Up))
    }

    fn link(&self, interface: &str) -> io::Result<LinkMessage> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(interface.to_owned()));
        match self.request(RouteNetlinkMessage::GetLink(link), 0)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    /// A message that is to change an interface.
    fn named(&self, interface: &str) -> io::Result<LinkMessage> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(interface)?;
        Ok(link)
    }

    fn make(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.request(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Asks the kernel and takes its answer.
    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        sys::send(&self.socket, &bytes)?;
        let mut room = vec![0; 32 << 10];
        let length = sys::receive(&self.socket, &mut room)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&room[..length]);
        match answer.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

/// A route to everything.
fn route(gateway: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(gateway);
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![RouteAttribute::Gateway(match gateway {
        IpAddr::V4(gateway) => RouteAddress::Inet(gateway),
        IpAddr::V6(gateway) => RouteAddress::Inet6(gateway),
    })];
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_carries_frames_and_goes_with_its_namespaces() {
        let Ok(left) = Namespace::new() else {
            eprintln!("not run, since network namespaces cannot be made here");
            return;
        };
        let right = Namespace::new().expect("a second one");
        let (ours, theirs) = (left.links().expect("links"), right.links().expect("links"));
        ours.cable(("here", [2, 0, 0, 0, 0, 1]), ("there", [2, 0, 0, 0, 0, 2]), &right).expect("a cable");
        ours.up("here").expect("on");
        theirs.up("there").expect("on");
        theirs.offloads("there", false).expect("off");
        ours.address("here", Ipv4Addr::new(10, 0, 1, 1), 24).expect("an address");
        ours.neighbour("here", Ipv4Addr::new(10, 0, 1, 2), [2, 0, 0, 0, 0, 2]).expect("a neighbour");
        ours.default_route(Ipv4Addr::new(10, 0, 1, 2)).expect("a route");
        assert!(ours.index("nothing").is_err());
        let before = theirs.counters("there").expect("counters").received;
        let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &[7; 46]].concat();
        let mut receiver = crate::FrameReceiver::new(&right, "there", None).expect("a receiver");
        let sender = crate::FrameSender::new(&left, "here").expect("a sender");
        assert_eq!(sender.send(&[&frame, &frame, &frame]).expect("sent"), 3);
        let mut times = Vec::new();
        let mut look = |time, bytes: &[u8]| {
            assert_eq!(bytes, frame);
            times.push(time);
        };
        while receiver.receive(&mut look).expect("received") > 0 {}
        assert_eq!(times.len(), 3, "what was sent on a virtual cable is there when the call returns");
        assert!(times.is_sorted() && times[0] > 1_600_000_000_000_000_000);
        assert!(theirs.counters("there").expect("counters").received >= before + 3);
        ours.cable(("one", [2, 0, 0, 0, 0, 3]), ("other", [2, 0, 0, 0, 0, 4]), &right).expect("a cable");
        ours.queue("one", 4096).expect("a longer queue");
        ours.hand("one", ("eth7", [2, 0, 0, 0, 0, 5]), &right).expect("handed over");
        assert!(theirs.is_up("there").expect("is there") && !theirs.is_up("eth7").expect("is there"));
        assert!(ours.index("one").is_err() && theirs.index("eth7").is_ok());
        drop((ours, sender));
        drop(left);
        let links = right.links().expect("links");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while links.index("there").is_ok() {
            assert!(std::time::Instant::now() < end, "the cable stays though its other end is gone");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
