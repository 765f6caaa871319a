//! What rtnetlink tells, and the kernel's main routing table as it follows from that.
//!
//! Messages come in the order of what happened, answers to questions among them, so they are taken in as they come; a route that was there before an
//! answer to "all routes" and is not in it is gone. Of routes to one prefix that with the smallest metric counts, and of several next hops
//! the first.

use super::neighbours::Neighbour;
use super::prefix::Prefix;
use super::rib::Way;
use super::router::Link;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, State};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use packet::PortNumber;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// Errors that go by themselves: EINTR, EAGAIN, ENOMEM, EBUSY, ENOBUFS.
const AGAIN: [i32; 5] = [4, 11, 12, 16, 105];

/// What all is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Links,
    Ipv4Routes,
    Ipv6Routes,
}

/// The question for all of something.
pub(crate) fn question(wanted: Wanted) -> Vec<u8> {
    let message = match wanted {
        Wanted::Links => RouteNetlinkMessage::GetLink(LinkMessage::default()),
        Wanted::Ipv4Routes | Wanted::Ipv6Routes => {
            let mut message = RouteMessage::default();
            message.header.address_family =
                if wanted == Wanted::Ipv4Routes { AddressFamily::Inet } else { AddressFamily::Inet6 };
            RouteNetlinkMessage::GetRoute(message)
        }
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    header.sequence_number = 1;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// A next hop as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// By the interface of this number, to a router or to hosts of its link.
    By(u32, Option<IpAddr>),
    /// Nowhere.
    Nowhere(Way),
}

/// One thing that the kernel told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// An interface is there, or has gone.
    Link { index: u32, name: String, link: Option<Link> },
    /// A route came (perhaps in place of others of its metric) or went.
    Route { prefix: Prefix, metric: u32, hops: Vec<Hop>, there: bool, replaces: bool },
    /// An address came or went; routes may have gone with it silently.
    Address,
    /// All of what was asked for has been told; `broken` if it changed meanwhile.
    Done { broken: bool },
}

/// Reads the messages of one receipt. What cannot be read, or is about something else, is left out.
pub(crate) fn read(mut bytes: &[u8]) -> Vec<Told> {
    let mut told = Vec::new();
    while let Ok(buffer) = NetlinkBuffer::new_checked(&bytes) {
        let length = buffer.length() as usize;
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes[..length]);
        if let Ok(message) = message {
            told.extend(one(message));
        }
        // Messages begin at multiples of 4 bytes.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    told
}

fn one(message: NetlinkMessage<RouteNetlinkMessage>) -> Option<Told> {
    let (header, payload) = message.into_parts();
    let broken = header.flags & NLM_F_DUMP_INTR != 0;
    match payload {
        NetlinkPayload::Done(_) => Some(Told::Done { broken }),
        NetlinkPayload::Error(error) => {
            // A kernel without IPv6 has no such routes; one that was busy is to be asked again.
            let code = error.code.map_or(0, |code| code.get());
            Some(Told::Done { broken: broken || AGAIN.contains(&-code) })
        }
        NetlinkPayload::InnerMessage(message) => match message {
            RouteNetlinkMessage::NewLink(message) => Some(link(&message, true)),
            RouteNetlinkMessage::DelLink(message) => Some(link(&message, false)),
            RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::DelAddress(_) => Some(Told::Address),
            RouteNetlinkMessage::NewRoute(message) => {
                route(&message, true, header.flags & NLM_F_REPLACE != 0)
            }
            RouteNetlinkMessage::DelRoute(message) => route(&message, false, false),
            _ => None,
        },
        _ => None,
    }
}

fn link(message: &LinkMessage, there: bool) -> Told {
    let (mut name, mut mac, mut mtu, mut state) = (String::new(), None, 1500, State::Unknown);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name.clone_from(text),
            LinkAttribute::Address(bytes) => mac = bytes.as_slice().try_into().ok(),
            LinkAttribute::Mtu(bytes) => mtu = *bytes,
            LinkAttribute::OperState(now) => state = *now,
            _ => {}
        }
    }
    let index = message.header.index;
    let up = message.header.flags.contains(LinkFlags::Up)
        && !matches!(state, State::Down | State::LowerLayerDown | State::NotPresent);
    let link = mac.filter(|_| there).map(|mac| Link { index, mac, mtu, up });
    Told::Link { index, name, link }
}

fn route(message: &RouteMessage, there: bool, replaces: bool) -> Option<Told> {
    let header = &message.header;
    let (mut table, mut metric, mut destination) = (u32::from(header.table), 0, None);
    let (mut interface, mut gateway, mut several) = (None, None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            RouteAttribute::Destination(address) => destination = Some(ip(address)?),
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Via(via) => gateway = over(via),
            RouteAttribute::MultiPath(hops) => {
                several.extend(
                    hops.iter().map(|hop| Hop::By(hop.interface_index, hop_gateway(&hop.attributes))),
                );
            }
            _ => {}
        }
    }
    let family = match header.address_family {
        AddressFamily::Inet => IpAddr::from([0u8; 4]),
        AddressFamily::Inet6 => IpAddr::from([0u8; 16]),
        _ => return None,
    };
    let prefix = Prefix::of(destination.unwrap_or(family), header.destination_prefix_length);
    let local = prefix.address().is_multicast()
        || prefix.address().is_loopback()
        || super::router::is_link_local(prefix.address());
    // The route that IPv6 has where there is none (metric 2^32 - 1) is no route.
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) || local || metric == u32::MAX {
        return None;
    }
    let hops = match header.kind {
        RouteType::Unicast if !several.is_empty() => several,
        RouteType::Unicast => vec![Hop::By(interface?, gateway)],
        RouteType::BlackHole => vec![Hop::Nowhere(Way::Blackhole)],
        RouteType::Unreachable => vec![Hop::Nowhere(Way::Unreachable)],
        RouteType::Prohibit => vec![Hop::Nowhere(Way::Prohibited)],
        _ => return None,
    };
    Some(Told::Route { prefix, metric, hops, there, replaces })
}

fn hop_gateway(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(address) => ip(address),
        RouteAttribute::Via(via) => over(via),
        _ => None,
    })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(four) => Some((*four).into()),
        RouteAddress::Inet6(six) => Some((*six).into()),
        _ => None,
    }
}

fn over(via: &RouteVia) -> Option<IpAddr> {
    match via {
        RouteVia::Inet(four) => Some((*four).into()),
        RouteVia::Inet6(six) => Some((*six).into()),
        _ => None,
    }
}

/// The kernel's main table.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelTable {
    /// By metric; each next hop with the round of questions that saw it last.
    routes: HashMap<Prefix, BTreeMap<u32, Vec<(Hop, u64)>>>,
    round: u64,
}

impl KernelTable {
    /// Everything is asked for anew from here on.
    pub(crate) fn begin(&mut self) {
        self.round += 1;
    }

    /// A route came or went.
    pub(crate) fn route(&mut self, prefix: Prefix, metric: u32, hops: &[Hop], there: bool, replaces: bool) {
        let metrics = self.routes.entry(prefix).or_default();
        let known = metrics.entry(metric).or_default();
        if replaces {
            known.clear();
        }
        for hop in hops {
            match known.iter_mut().find(|(known, _)| known == hop) {
                Some(known) if there => known.1 = self.round,
                None if there => known.push((*hop, self.round)),
                _ => known.retain(|(known, _)| known != hop),
            }
        }
        if known.is_empty() {
            metrics.remove(&metric);
        }
        if metrics.is_empty() {
            self.routes.remove(&prefix);
        }
    }

    /// Everything has been told: what was not among it is gone. Says which prefixes that changes.
    pub(crate) fn end(&mut self) -> Vec<Prefix> {
        let (round, mut changed) = (self.round, HashSet::new());
        self.routes.retain(|prefix, metrics| {
            metrics.retain(|_, hops| {
                let before = hops.len();
                hops.retain(|(_, seen)| *seen == round);
                if hops.len() != before {
                    changed.insert(*prefix);
                }
                !hops.is_empty()
            });
            !metrics.is_empty()
        });
        changed.into_iter().collect()
    }

    /// Every prefix.
    pub(crate) fn prefixes(&self) -> Vec<Prefix> {
        self.routes.keys().copied().collect()
    }

    /// The way of a prefix, where its route leads by a port; `ports` are the ports' interfaces by number.
    pub(crate) fn way(&self, prefix: Prefix, ports: &HashMap<u32, PortNumber>) -> Option<Way> {
        let (hop, _) = self.routes.get(&prefix)?.first_key_value()?.1.first()?;
        match *hop {
            Hop::Nowhere(way) => Some(way),
            Hop::By(index, gateway) => {
                let port = *ports.get(&index)?;
                Some(gateway.map_or(Way::Link(port), |address| Way::Via(Neighbour { port, address })))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(index: u32, gateway: &str) -> Hop {
        Hop::By(index, Some(gateway.parse().expect("an address")))
    }

    #[test]
    fn the_smallest_metric_and_the_first_next_hop_count() {
        let ports = HashMap::from([(7, 1), (8, 2)]);
        let mut table = KernelTable::default();
        let prefix: Prefix = "198.51.100.0/24".parse().expect("one");
        let via = |port, address: &str| {
            Some(Way::Via(Neighbour { port, address: address.parse().expect("an address") }))
        };
        table.route(prefix, 100, &[by(7, "10.0.1.7"), by(8, "10.0.2.7")], true, false);
        assert_eq!(table.way(prefix, &ports), via(1, "10.0.1.7"));
        table.route(prefix, 50, &[by(8, "10.0.2.9")], true, false);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.9"));
        table.route(prefix, 50, &[by(9, "10.0.3.9")], true, true);
        assert_eq!(table.way(prefix, &ports), None, "by an interface that is no port");
        table.route(prefix, 50, &[by(9, "10.0.3.9")], false, false);
        table.route(prefix, 100, &[by(7, "10.0.1.7")], false, false);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.7"));
        table.route(prefix, 0, &[Hop::Nowhere(Way::Blackhole)], true, false);
        assert_eq!(table.way(prefix, &ports), Some(Way::Blackhole));
    }

    #[test]
    fn what_is_not_told_again_is_gone() {
        let ports = HashMap::from([(7, 1)]);
        let mut table = KernelTable::default();
        let [a, b]: [Prefix; 2] = ["10.1.0.0/16", "10.2.0.0/16"].map(|text| text.parse().expect("one"));
        table.begin();
        table.route(a, 0, &[Hop::By(7, None)], true, false);
        table.route(b, 0, &[Hop::By(7, None)], true, false);
        assert_eq!(table.end(), []);
        table.begin();
        table.route(b, 0, &[Hop::By(7, None)], true, false);
        assert_eq!(table.end(), [a]);
        assert_eq!((table.way(a, &ports), table.way(b, &ports)), (None, Some(Way::Link(1))));
    }

    #[test]
    fn messages_are_read_and_others_left_out() {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.destination_prefix_length = 24;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet([198, 51, 100, 0].into())),
            RouteAttribute::Gateway(RouteAddress::Inet([10, 0, 2, 7].into())),
            RouteAttribute::Oif(8),
            RouteAttribute::Priority(5),
        ];
        let bytes = |message: RouteNetlinkMessage| {
            let mut message =
                NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
            message.finalize();
            let mut bytes = vec![0; message.buffer_len()];
            message.serialize(&mut bytes);
            bytes
        };
        let told = Told::Route {
            prefix: "198.51.100.0/24".parse().expect("one"),
            metric: 5,
            hops: vec![by(8, "10.0.2.7")],
            there: true,
            replaces: false,
        };
        let new = bytes(RouteNetlinkMessage::NewRoute(message.clone()));
        assert_eq!(read(&new), vec![told.clone()]);
        let mut local = message.clone();
        local.header.table = 255;
        let two = [bytes(RouteNetlinkMessage::NewRoute(local)), new.clone()].concat();
        assert_eq!(read(&two), [told], "the local table is left out");
        for cut in 0..new.len() {
            read(&new[..cut]);
        }
    }
}
