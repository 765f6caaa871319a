//! Builds frames: right ones of a router, and what attacks make of them.

use crate::RouterAddresses;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A station that is to be told wrong things, or in whose name they are told.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
    /// Its address of IPv4.
    pub ipv4: Ipv4Addr,
    /// Its address of IPv6.
    pub ipv6: Ipv6Addr,
}

/// The router and the stations around it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The router whose services were taken over.
    pub router: RouterAddresses,
    /// A host of the LAN.
    pub lan: Victim,
    /// A host of the WAN.
    pub wan: Victim,
}

impl Scene {
    /// The scene of the tests.
    pub fn usual() -> Scene {
        let victim = |last: u8| Victim {
            ethernet: [2, 0, 0, 0, 0, last],
            ipv4: Ipv4Addr::new(10, 1, 1, last),
            ipv6: Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, last.into()),
        };
        let router = RouterAddresses {
            ethernet: [2, 0, 0, 0, 0, 0x63],
            ipv4: vec![Ipv4Addr::new(10, 1, 1, 99)],
            ipv6: vec![Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 0x99)],
            mtu: 1500,
            advertises: false,
            dhcp_client: false,
        };
        Scene { router, lan: victim(1), wan: victim(2) }
    }

    /// The router as a station.
    pub fn own(&self) -> Victim {
        let RouterAddresses { ethernet, ipv4, ipv6, .. } = &self.router;
        let (ipv4, ipv6) = (ipv4.first().copied(), ipv6.first().copied());
        Victim {
            ethernet: *ethernet,
            ipv4: ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED),
            ipv6: ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED),
        }
    }
}

/// The group of all stations.
pub const EVERYBODY: [u8; 6] = [0xff; 6];
/// The group of all hosts of IPv6, and its Ethernet address.
pub const ALL_HOSTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_HOSTS_ETHERNET: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// A frame.
pub fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16, packet: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes(), packet].concat()
}

/// The sum of RFC 1071 over bytes, and what is to be added to it.
fn checksum(bytes: &[u8], more: u32) -> [u8; 2] {
    let mut sum = more;
    for two in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([two[0], two.get(1).copied().unwrap_or(0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// What of an IPv4 header differs.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    /// The source.
    pub from: Ipv4Addr,
    /// The destination.
    pub to: Ipv4Addr,
    /// What follows.
    pub protocol: u8,
    /// Flags and the place of a fragment, as they stand there.
    pub place: u16,
    /// Options, a multiple of four bytes.
    pub options: &'a [u8],
}

/// A packet of IPv4.
pub fn ipv4(header: Ipv4<'_>, payload: &[u8]) -> Vec<u8> {
    let length = 20 + header.options.len();
    let mut packet = vec![0x40 | (length / 4) as u8, 0];
    packet.extend(((length + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 7]);
    packet.extend(header.place.to_be_bytes());
    packet.extend([64, header.protocol, 0, 0]);
    packet.extend(header.from.octets());
    packet.extend(header.to.octets());
    packet.extend(header.options);
    let sum = checksum(&packet, 0);
    packet[10..12].copy_from_slice(&sum);
    packet.extend(payload);
    packet
}

/// A datagram of UDP in a packet of IPv4 without options.
pub fn udp4(from: Ipv4Addr, to: Ipv4Addr, ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let datagram = udp(ports, data);
    ipv4(Ipv4 { from, to, protocol: 17, place: 0, options: &[] }, &datagram)
}

/// A datagram of UDP without a checksum.
pub fn udp((from, to): (u16, u16), data: &[u8]) -> Vec<u8> {
    let length = (8 + data.len()) as u16;
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &length.to_be_bytes(), &[0, 0], data].concat()
}

/// A message of ICMP with its checksum.
pub fn icmp(kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0][..], rest].concat();
    let sum = checksum(&message, 0);
    message[2..4].copy_from_slice(&sum);
    message
}

/// A message of ARP: 1 asks, 2 answers.
pub fn arp(operation: u16, sender: ([u8; 6], Ipv4Addr), target: ([u8; 6], Ipv4Addr)) -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4];
    message.extend(operation.to_be_bytes());
    for (station, host) in [sender, target] {
        message.extend(station);
        message.extend(host.octets());
    }
    message
}

/// A packet of IPv6.
pub fn ipv6(from: Ipv6Addr, to: Ipv6Addr, next: u8, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, hops]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(payload);
    packet
}

/// A message of ICMPv6 with its checksum.
pub fn icmpv6(from: Ipv6Addr, to: Ipv6Addr, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0][..], rest].concat();
    let pseudo =
        [&from.octets()[..], &to.octets(), &(message.len() as u32).to_be_bytes(), &[0, 0, 0, 58]].concat();
    let sum = !u16::from_be_bytes(checksum(&pseudo, 0));
    let sum = checksum(&message, sum.into());
    message[2..4].copy_from_slice(&sum);
    message
}

/// A message of Neighbour Discovery in a frame to all hosts.
pub fn discovery(station: [u8; 6], from: Ipv6Addr, kind: u8, rest: &[u8]) -> Vec<u8> {
    let message = icmpv6(from, ALL_HOSTS, kind, rest);
    ethernet(ALL_HOSTS_ETHERNET, station, 0x86dd, &ipv6(from, ALL_HOSTS, 58, 255, &message))
}

/// An option of Neighbour Discovery that tells a station: 1 the source's, 2 the target's.
pub fn link_layer(kind: u8, station: [u8; 6]) -> Vec<u8> {
    [&[kind, 1][..], &station].concat()
}

/// The body of a neighbour solicitation or advertisement.
pub fn neighbour(flags: u8, target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    [&[flags, 0, 0, 0][..], &target.octets(), options].concat()
}

/// The body of a router advertisement that says who the default router is.
pub fn router_advertisement(options: &[u8]) -> Vec<u8> {
    [&[64, 0, 7, 8][..], &[0; 8], options].concat()
}

/// Numbers that look random, always the same ones after the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    /// The next one.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    /// Some bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number() as u8).collect()
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Right frames of the router, of each kind that it sends.
pub fn right(scene: &Scene) -> Vec<Vec<u8>> {
    let (own, lan, wan) = (scene.own(), scene.lan, scene.wan);
    let link_local = scene.router.link_local();
    let frame4 = |packet: Vec<u8>| ethernet(lan.ethernet, own.ethernet, 0x0800, &packet);
    let frame6 = |packet: Vec<u8>| ethernet(lan.ethernet, own.ethernet, 0x86dd, &packet);
    let header = Ipv4 { from: own.ipv4, to: wan.ipv4, protocol: 17, place: 0, options: &[] };
    let padded = [1, 4, 0, 0, 0, 0];
    let extension = |next: u8| [&[next, 0][..], &padded].concat();
    let datagram = udp((53, 53), &[7; 40]);
    let fragment = |next: u8, place: u16| [&[next, 0][..], &place.to_be_bytes(), &[0, 0, 0, 9]].concat();
    let group: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0x99);
    let probe = icmpv6(Ipv6Addr::UNSPECIFIED, group, 135, &neighbour(0, own.ipv6, &[]));
    let (solicits, tells) = (link_layer(1, own.ethernet), link_layer(2, own.ethernet));
    vec![
        frame4(udp4(own.ipv4, lan.ipv4, (53, 4000), b"answer")),
        frame4(ipv4(Ipv4 { protocol: 6, ..header }, &[0; 20])),
        frame4(ipv4(Ipv4 { protocol: 1, ..header }, &icmp(8, 0, &[0, 1, 0, 1]))),
        frame4(ipv4(Ipv4 { place: 0x2000, ..header }, &[5; 16])),
        frame4(ipv4(Ipv4 { place: 2, ..header }, &[5; 9])),
        frame4(ipv4(Ipv4 { protocol: 2, options: &[148, 4, 0, 0], ..header }, &[0x16; 8])),
        frame4(ipv4(Ipv4 { options: &[7, 7, 4, 0, 0, 0, 0, 0], ..header }, &datagram)),
        frame4(udp4(own.ipv4, Ipv4Addr::BROADCAST, (67, 68), &[2; 240])),
        ethernet(
            EVERYBODY,
            own.ethernet,
            0x0800,
            &udp4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, (68, 67), &[1; 240]),
        ),
        ethernet(EVERYBODY, own.ethernet, 0x0806, &arp(1, (own.ethernet, own.ipv4), ([0; 6], lan.ipv4))),
        ethernet(
            lan.ethernet,
            own.ethernet,
            0x0806,
            &arp(2, (own.ethernet, own.ipv4), (lan.ethernet, lan.ipv4)),
        ),
        ethernet(
            EVERYBODY,
            own.ethernet,
            0x0806,
            &[arp(1, (own.ethernet, Ipv4Addr::UNSPECIFIED), ([0; 6], own.ipv4)), vec![0; 18]].concat(),
        ),
        frame6(ipv6(own.ipv6, lan.ipv6, 17, 64, &datagram)),
        frame6(ipv6(
            link_local,
            ALL_HOSTS,
            0,
            1,
            &[extension(58), icmpv6(link_local, ALL_HOSTS, 131, &[0; 20])].concat(),
        )),
        frame6(ipv6(own.ipv6, lan.ipv6, 60, 64, &[extension(17), datagram.clone()].concat())),
        frame6(ipv6(own.ipv6, lan.ipv6, 44, 64, &[fragment(17, 1), datagram.clone()].concat())),
        frame6(ipv6(own.ipv6, lan.ipv6, 44, 64, &[fragment(17, 48), vec![3; 21]].concat())),
        frame6(ipv6(own.ipv6, lan.ipv6, 51, 64, &[vec![17, 4], vec![0; 22], datagram.clone()].concat())),
        frame6(ipv6(own.ipv6, lan.ipv6, 59, 64, &[])),
        frame6(ipv6(own.ipv6, lan.ipv6, 58, 64, &icmpv6(own.ipv6, lan.ipv6, 128, &[0, 1, 0, 1]))),
        ethernet(
            [0x33, 0x33, 0xff, 0, 0, 0x99],
            own.ethernet,
            0x86dd,
            &ipv6(Ipv6Addr::UNSPECIFIED, group, 58, 255, &probe),
        ),
        discovery(own.ethernet, own.ipv6, 135, &neighbour(0, lan.ipv6, &solicits)),
        discovery(own.ethernet, own.ipv6, 136, &neighbour(0x60, own.ipv6, &tells)),
        discovery(own.ethernet, link_local, 133, &[&[0; 4][..], &solicits].concat()),
        discovery(own.ethernet, link_local, 134, &router_advertisement(&solicits)),
    ]
}

/// Makes something else of a frame: other bits and bytes, parts of other frames, another length; and often a
/// right checksum of IPv4, without which little else is looked at.
pub fn mutate(frame: &mut Vec<u8>, scene: &Scene, random: &mut RandomNumbers) {
    let (own, lan) = (scene.own(), scene.lan);
    for _ in 0..1 + random.below(4) {
        let length = frame.len().max(1);
        let reach = if random.below(2) == 0 { 64 } else { length };
        let at = random.below(length.min(reach));
        match random.below(9) {
            0 | 1 => frame.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            2 => frame.iter_mut().skip(at).take(1).for_each(|byte| {
                *byte =
                    random.one_of(&[0, 1, 2, 5, 6, 17, 43, 44, 51, 58, 59, 60, 133, 134, 135, 136, 137, 255]);
            }),
            3 => frame.truncate(at),
            4 => {
                let count = random.below(60);
                frame.extend(random.bytes(count));
            }
            5 => {
                let piece = match random.below(6) {
                    0 => own.ethernet.to_vec(),
                    1 => lan.ethernet.to_vec(),
                    2 => own.ipv4.octets().to_vec(),
                    3 => lan.ipv4.octets().to_vec(),
                    4 => own.ipv6.octets().to_vec(),
                    _ => lan.ipv6.octets().to_vec(),
                };
                frame.iter_mut().skip(at).zip(piece).for_each(|(byte, new)| *byte = new);
            }
            6 => {
                let count = 1 + random.below(8);
                let piece = random.bytes(count);
                frame.splice(at.min(frame.len())..at.min(frame.len()), piece);
            }
            7 => {
                let to = (at + 1 + random.below(8)).min(frame.len());
                frame.drain(at.min(to)..to);
            }
            _ => frame.iter_mut().skip(at).take(2).for_each(|byte| *byte = random.number() as u8),
        }
    }
    if random.below(2) == 0 {
        say_right_lengths(frame);
    }
    if random.below(4) > 0 {
        sum_up(frame);
    }
}

/// Writes the length that a packet has into its header.
fn say_right_lengths(frame: &mut [u8]) {
    let length = frame.len();
    match frame.get(12..14) {
        Some([8, 0]) if length >= 34 => frame[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes()),
        Some([0x86, 0xdd]) if length >= 54 => {
            frame[18..20].copy_from_slice(&((length - 54) as u16).to_be_bytes());
        }
        _ => {}
    }
}

/// Writes the checksum that a header of IPv4 must have.
pub fn sum_up(frame: &mut [u8]) {
    let length = frame.get(14).map_or(0, |first| usize::from(first & 15) * 4);
    if let Some(header) = frame.get_mut(14..14 + length)
        && length >= 20
    {
        header[10..12].fill(0);
        let sum = checksum(header, 0);
        header[10..12].copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_frames_are_the_routers_and_nothing_else_is_missing() {
        let mut scene = Scene::usual();
        (scene.router.advertises, scene.router.dhcp_client) = (true, true);
        for frame in right(&scene) {
            assert_eq!(scene.router.violation(&frame), None, "{frame:02x?}");
        }
    }
}
