//! Packets for filters: of both families, all directions, with ports and without, alone and as answers.

use crate::random::Random;
use policy::{Packet, PacketField, Path};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The interfaces, by their ports from 1.
pub(crate) const INTERFACES: [&str; 3] = ["north", "lan0", "wan0"];

pub(crate) const V4: [&str; 9] = [
    "192.0.2.49",
    "192.0.2.49",
    "192.0.2.49",
    "192.0.2.42",
    "192.0.2.200",
    "172.16.0.7",
    "10.0.0.1",
    "10.255.0.9",
    "198.51.100.3",
];
pub(crate) const V6: [&str; 3] = ["2001:db8::49", "2001:db8:1::7", "fe80::1"];
pub(crate) const PORTS: [u16; 13] = [0, 22, 25, 53, 80, 4433, 5201, 5201, 5201, 5203, 8000, 50_000, 65_535];
const FLAGS: [u8; 8] = [0x02, 0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x42];
const PROTOCOLS: [u8; 11] = [6, 6, 6, 6, 17, 17, 1, 58, 47, 89, 132];

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The ports by which it comes in and goes out.
    pub(crate) ways: [Option<u16>; 2],
    addresses: [IpAddr; 2],
    protocol: u8,
    ports: Option<[u16; 2]>,
    icmp: Option<[u8; 2]>,
    flags: Option<u8>,
    is_later: bool,
}

/// The two ends and the protocol of a packet.
pub(crate) type Ends = (u8, [IpAddr; 2], Option<[u16; 2]>);

impl Sent {
    pub(crate) fn random(random: &mut Random) -> Self {
        let of: &[&str] = if random.once_in(4) { &V6 } else { &V4 };
        let mut address = || random.one(of).parse::<IpAddr>().expect("an address");
        let mut addresses = [address(), address()];
        // What is sent to its own sender is its own answer.
        while addresses[0] == addresses[1] {
            addresses[1] = address();
        }
        let protocol = random.one(&PROTOCOLS);
        let is_later = random.once_in(8);
        let has_ports = matches!(protocol, 6 | 17 | 132) && !is_later;
        let ways = [Some(1 + random.below(3) as u16), Some(1 + random.below(3) as u16)];
        let ways = match random.below(6) {
            0 => [ways[0], None],
            1 => [None, ways[1]],
            _ => ways,
        };
        Self {
            ways,
            addresses,
            protocol,
            ports: has_ports.then(|| [random.one(&PORTS), random.one(&PORTS)]),
            icmp: (matches!(protocol, 1 | 58) && !is_later)
                .then(|| [random.one(&[0, 3, 8, 11, 128]), random.one(&[0, 1, 3])]),
            flags: (protocol == 6 && !is_later).then(|| random.one(&FLAGS)),
            is_later,
        }
    }

    /// A packet that is forwarded between these ports.
    pub(crate) fn made(
        ways: [u16; 2],
        addresses: [&str; 2],
        protocol: u8,
        ports: Option<[u16; 2]>,
        icmp: Option<[u8; 2]>,
        flags: Option<u8>,
    ) -> Self {
        let addresses = addresses.map(|address| address.parse().expect("an address"));
        Self { ways: ways.map(Some), addresses, protocol, ports, icmp, flags, is_later: false }
    }

    /// A packet of the same connection, of the same direction or the other one.
    pub(crate) fn again(&self, random: &mut Random) -> Self {
        let mut again = self.clone();
        if random.once_in(2) {
            again.addresses.reverse();
            again.ports = again.ports.map(|[from, to]| [to, from]);
            again.ways.reverse();
        }
        again.flags = again.flags.map(|_| random.one(&FLAGS));
        if random.once_in(8) {
            again.ways = again.ways.map(|way| way.map(|_| 1 + random.below(3) as u16));
        }
        again
    }

    pub(crate) fn ends(&self) -> Ends {
        (self.protocol, self.addresses, self.ports)
    }

    /// The same ends the other way round.
    pub(crate) fn answered(&self) -> Ends {
        let [from, to] = self.addresses;
        (self.protocol, [to, from], self.ports.map(|[from, to]| [to, from]))
    }

    pub(crate) fn path(&self) -> Path {
        match self.ways {
            [Some(_), None] => Path::ToGateway,
            [None, _] => Path::FromGateway,
            _ => Path::Forwarded,
        }
    }

    pub(crate) fn fields(&self) -> Packet {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
            IpAddr::V6(address) => address.into(),
        };
        let [from, to] = self.addresses;
        let wide = |value: Option<u16>| value.map(u128::from);
        let port = |at: usize| self.ports.map(|ports| u128::from(ports[at]));
        let icmp = |at: usize| self.icmp.map(|icmp| u128::from(icmp[at]));
        [
            (PacketField::Family, Some(if from.is_ipv4() { 4 } else { 6 })),
            (PacketField::Source, Some(bits(from))),
            (PacketField::Destination, Some(bits(to))),
            (PacketField::Protocol, Some(self.protocol.into())),
            (PacketField::SourcePort, port(0)),
            (PacketField::DestinationPort, port(1)),
            (PacketField::IcmpType, icmp(0)),
            (PacketField::IcmpCode, icmp(1)),
            (PacketField::TcpFlags, self.flags.map(u128::from)),
            (PacketField::LaterFragment, Some(u128::from(self.is_later))),
            (PacketField::InPort, wide(self.ways[0])),
            (PacketField::OutPort, wide(self.ways[1])),
        ]
        .into_iter()
        .fold(Packet::default(), |packet, (field, value)| packet.with(field, value))
    }

    pub(crate) fn json(&self) -> Value {
        let name = |way: Option<u16>| way.map(|port| INTERFACES[usize::from(port) - 1]);
        json!({
            "in": name(self.ways[0]),
            "out": name(self.ways[1]),
            "family": if self.addresses[0].is_ipv4() { 4 } else { 6 },
            "src": self.addresses[0],
            "dst": self.addresses[1],
            "proto": self.protocol,
            "sport": self.ports.map(|ports| ports[0]),
            "dport": self.ports.map(|ports| ports[1]),
            "type": self.icmp.map(|icmp| icmp[0]),
            "code": self.icmp.map(|icmp| icmp[1]),
            "flags": self.flags,
        })
    }
}
