//! The packets that routers and their kin get: IPv4 in Ethernet of one size, with right checksums.

use super::data::{Classifier, Data};
use packet::Frames;
use tables::generate::addresses;
use tables::generate::payload::{Literals, Payload, PayloadSpec};

/// Bytes of Ethernet's frame check sequence, which counts to a size and is not in memory.
const CHECK: usize = 4;
/// Behind it, payload is taken from the beginning again.
const PAYLOAD: usize = 1 << 20;
/// The seed of addresses and payload.
const SEED: u64 = 5;

/// What fills a packet up to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// What Ethernet adds behind an IP packet that ends with its last header.
    Padding,
    /// Payload of TCP and UDP: words, and random bytes for 40 % of it. Short patterns are among the words.
    Words,
    /// Payload of random bytes, as if it were encrypted: next to no pattern is in it.
    Random,
}

/// The five fields that tell a flow.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) ports: [u16; 2],
    pub(crate) proto: u8,
}

/// The smallest packets of some flows.
pub(crate) fn made(flows: impl Iterator<Item = Flow>) -> Frames {
    frames(flows, 64, Filling::Padding)
}

/// Headers of a classifier's trace; their destinations drawn from the routes, uniformly over the routes and
/// within each.
pub(crate) fn routed(
    data: &Data,
    classifier: &Classifier,
    size: usize,
    filling: Filling,
    count: usize,
) -> Frames {
    let places = 0..classifier.trace.len() / 5;
    let headers = places.cycle().map(|place| &classifier.trace[place * 5..place * 5 + 5]);
    // Some are left out, since they may not be routed.
    let destinations = addresses::inside(&data.routes, count * 4, SEED);
    let flows = headers.zip(&destinations).map(|(header, dst)| Flow {
        src: header[0] as u32,
        dst: *dst as u32,
        ports: [header[2] as u16, header[3] as u16],
        proto: header[4] as u8,
    });
    let flows = flows.filter(|flow| ordinary(flow.src) && ordinary(flow.dst)).take(count);
    frames(flows, size, filling)
}

/// Packets of so many flows of UDP from the hosts of 10.0.0.0/24 to one address, in turn.
pub(super) fn inside(flows: u32, dst: u32, port: u16, count: usize) -> Frames {
    let flow = |number: u32| {
        let (host, own) = (number % flows % 254, number % flows / 254);
        Flow { src: 0x0a00_0001 + host, dst, ports: [(1024 + own) as u16, port], proto: 17 }
    };
    frames((0..count as u32).map(flow), 64, Filling::Padding)
}

/// Packets of so many flows of UDP or TCP from clients to one address, in turn.
pub(super) fn clients(flows: u32, proto: u8, dst: u32, port: u16, count: usize) -> Frames {
    let flow = |number: u32| Flow {
        src: 0x0a01_0000 + number % flows,
        dst,
        ports: [(1024 + number % flows) as u16, port],
        proto,
    };
    frames((0..count as u32).map(flow), 64, Filling::Padding)
}

/// In turn, a frame with a VLAN tag from a local host to a remote one, and one back in VXLAN, of so many
/// pairs of hosts. The inner frames have 64 bytes.
pub(super) fn tunnelled(pairs: u32, count: usize) -> Frames {
    let mut frames = Frames::new();
    for number in 0..count as u32 {
        let pair = (number / 2) % pairs;
        let hosts = [0x0200_0001_0000 + u64::from(pair), 0x0200_0002_0000 + u64::from(pair)];
        let mut bytes = Vec::new();
        if number % 2 == 0 {
            ethernet(&mut bytes, hosts[1], hosts[0]);
            // VLAN 10.
            bytes.extend([0x81, 0, 0, 10, 0x88, 0xb5]);
        } else {
            let outer = Flow { src: 0xc000_0202, dst: 0xc000_0201, ports: [50_000, 4789], proto: 17 };
            ethernet(&mut bytes, 0x0200_5e00_0001, 0x0200_5e00_00fe);
            bytes.extend([8, 0]);
            network(&mut bytes, outer, 20 + 8 + 8 + 60);
            bytes.extend(outer.ports.iter().flat_map(|port| port.to_be_bytes()));
            // The length of UDP without a checksum; then VXLAN with the network 5010.
            bytes.extend([0, 8 + 8 + 60, 0, 0, 8, 0, 0, 0, 0, 0x13, 0x92, 0]);
            ethernet(&mut bytes, hosts[0], hosts[1]);
            bytes.extend([0x88, 0xb5]);
        }
        bytes.resize(bytes.len() + 46, 0);
        frames.push(&bytes, bytes.len() as u32, 1_000_000_000 + u64::from(number));
    }
    frames
}

/// Neither a group, nor an address that no packet between networks may have.
fn ordinary(address: u32) -> bool {
    let first = address >> 24;
    (1..224).contains(&first) && first != 127 && address >> 16 != 0xa9fe
}

fn frames(flows: impl Iterator<Item = Flow>, size: usize, filling: Filling) -> Frames {
    let payload = |opaque| {
        let spec = PayloadSpec { length: PAYLOAD, planted: 0, opaque, seed: SEED };
        Payload::new(&Literals { literals: Vec::new() }, &spec).bytes
    };
    let payload = match filling {
        Filling::Padding => Vec::new(),
        Filling::Words => payload(40),
        Filling::Random => payload(100),
    };
    let mut payload = payload.iter().cycle();
    let mut frames = Frames::new();
    let mut bytes = Vec::new();
    let size = size - CHECK;
    for (number, flow) in flows.enumerate() {
        bytes.clear();
        ethernet(&mut bytes, 0x0200_0000_0001, 0x0200_0000_0002);
        bytes.extend([8, 0]);
        let headers = match flow.proto {
            6 => 40,
            17 => 28,
            _ => 20,
        };
        let total = match filling {
            Filling::Padding => headers,
            Filling::Words | Filling::Random => size - 14,
        };
        network(&mut bytes, flow, total as u16);
        match flow.proto {
            6 => {
                bytes.extend(flow.ports.iter().flat_map(|port| port.to_be_bytes()));
                // An acknowledgement: data offset 5, window, no checksum.
                bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
            }
            17 => {
                bytes.extend(flow.ports.iter().flat_map(|port| port.to_be_bytes()));
                bytes.extend(((total - 20) as u16).to_be_bytes());
                bytes.extend([0, 0]);
            }
            _ => {}
        }
        let rest = size - bytes.len();
        match filling {
            Filling::Padding => bytes.resize(size, 0),
            Filling::Words | Filling::Random => bytes.extend(payload.by_ref().take(rest)),
        }
        frames.push(&bytes, size as u32, 1_000_000_000 + number as u64);
    }
    frames
}

/// Both addresses; the type follows.
fn ethernet(bytes: &mut Vec<u8>, dst: u64, src: u64) {
    bytes.extend(&dst.to_be_bytes()[2..]);
    bytes.extend(&src.to_be_bytes()[2..]);
}

/// The header of an IPv4 packet of so many bytes.
fn network(bytes: &mut Vec<u8>, flow: Flow, total: u16) {
    let start = bytes.len();
    bytes.extend([0x45, 0]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 1, 0, 0, 64, flow.proto, 0, 0]);
    bytes.extend(flow.src.to_be_bytes());
    bytes.extend(flow.dst.to_be_bytes());
    let sum: u32 =
        bytes[start..].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !((sum + (sum >> 16)) as u16);
    bytes[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_their_size_and_a_right_checksum() {
        for filling in [Filling::Padding, Filling::Words, Filling::Random] {
            for (proto, size) in [(6, 64), (17, 512), (1, 1500)] {
                let flow = Flow { src: 0xffff_fff0, dst: 0x0a00_0001, ports: [1, 2], proto };
                let frames = frames([flow].into_iter(), size, filling);
                let frame = frames.iter().next().expect("one packet");
                assert_eq!(frame.bytes.len(), size - CHECK);
                let header = frame.bytes[14..34].chunks_exact(2);
                let mut sum: u32 = header.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
                while sum > 0xffff {
                    sum = (sum & 0xffff) + (sum >> 16);
                }
                assert_eq!(sum, 0xffff);
                let total = usize::from(u16::from_be_bytes([frame.bytes[16], frame.bytes[17]]));
                assert!(total + 14 <= frame.bytes.len());
            }
        }
    }
}
