//! Ingress policies: decide by which port each packet of a capture enters: in turn, by flow, at random,
//! always the same port, or by its origin.
//!
//! The random numbers are SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014); the flow hash folds the addresses, protocol and ports through its mixing
//! function.

pub mod origins;

use origins::{Origins, OriginsError};
use packet::{Batch, NO_PORT, PortNumber};
use std::str::FromStr;

/// How ports are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngressPolicy {
    /// Packet i, counted from 0, enters by port i mod N + 1.
    RoundRobin,
    /// All packets of one direction of a flow enter by one port: a hash of addresses, protocol and ports, or
    /// of the MAC addresses where there is no IP.
    Hash,
    /// Each packet enters by a port drawn with this seed.
    Random(u64),
    /// Every packet enters by this port.
    Port(PortNumber),
    /// Packets of interface i of the capture, counted from 0, enter by port i + 1: what a gateway captured
    /// enters as it did there. A pcap file has interface 0 alone.
    Interface,
    /// By the source address of a packet, IP or MAC.
    Origins(Origins),
}

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// no policy has this name or form
    #[error(
        "`{0}` is no way to choose ports; use round-robin, hash, interface, random:SEED, port:P with P at least 1, subnet:10.0.1.0/24=1,else=2 or mac:02:00:00:00:00:01=1,else=2"
    )]
    Unknown(String),
    /// origins that are not understood
    #[error(transparent)]
    Origins(#[from] OriginsError),
}

impl FromStr for IngressPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<IngressPolicy, PolicyError> {
        let policy = match text.split_once(':') {
            None if text == "round-robin" => Some(IngressPolicy::RoundRobin),
            None if text == "hash" => Some(IngressPolicy::Hash),
            None if text == "interface" => Some(IngressPolicy::Interface),
            Some(("subnet", origins)) => Some(IngressPolicy::Origins(Origins::subnets(origins)?)),
            Some(("mac", origins)) => Some(IngressPolicy::Origins(Origins::mac_addresses(origins)?)),
            Some(("random", seed)) => seed.parse().ok().map(IngressPolicy::Random),
            Some(("port", port)) => {
                port.parse().ok().filter(|&port| port != NO_PORT).map(IngressPolicy::Port)
            }
            _ => None,
        };
        policy.ok_or_else(|| PolicyError::Unknown(text.to_owned()))
    }
}

impl IngressPolicy {
    /// The largest port that it names itself; 0 if it takes the ports that there are.
    pub fn largest(&self) -> PortNumber {
        match self {
            IngressPolicy::Port(port) => *port,
            IngressPolicy::Origins(origins) => origins.largest(),
            IngressPolicy::RoundRobin
            | IngressPolicy::Hash
            | IngressPolicy::Random(_)
            | IngressPolicy::Interface => 0,
        }
    }
}

/// Chooses the port of each packet of a source, in order.
#[derive(Clone, Debug)]
pub struct Ingress {
    policy: IngressPolicy,
    ports: u16,
    /// The port of the next packet for [`IngressPolicy::RoundRobin`], counted from 0.
    turn: u16,
    /// The state of the generator for [`IngressPolicy::Random`].
    random: u64,
}

impl Ingress {
    /// Chooses among `ports` ports (at least one).
    pub fn new(policy: IngressPolicy, ports: u16) -> Ingress {
        let random = match policy {
            IngressPolicy::Random(seed) => seed,
            _ => 0,
        };
        Ingress { policy, ports: ports.max(1), turn: 0, random }
    }

    /// The port of a packet of this interface of a capture, where interfaces decide; [`NO_PORT`] otherwise.
    ///
    /// # Errors
    /// There is no such port: how many there are.
    #[inline]
    pub fn of_interface(&self, interface: u32) -> Result<PortNumber, u16> {
        if self.policy != IngressPolicy::Interface {
            return Ok(NO_PORT);
        }
        let port = interface.checked_add(1).and_then(|port| PortNumber::try_from(port).ok());
        port.filter(|&port| port <= self.ports).ok_or(self.ports)
    }

    /// Fills the port column of the batch, whose frames lie in `memory`. Where interfaces decide, the capture
    /// has filled it.
    #[inline]
    pub fn assign(&mut self, memory: &[u8], batch: &mut Batch) {
        let n = batch.len;
        match &self.policy {
            IngressPolicy::Interface => {}
            IngressPolicy::RoundRobin => {
                for port in &mut batch.port[..n] {
                    *port = self.turn + 1;
                    self.turn += 1;
                    if self.turn == self.ports {
                        self.turn = 0;
                    }
                }
            }
            IngressPolicy::Port(fixed) => batch.port[..n].fill(*fixed),
            IngressPolicy::Random(_) => {
                for port in &mut batch.port[..n] {
                    self.random = self.random.wrapping_add(GOLDEN);
                    *port = self.reduce(mix(self.random));
                }
            }
            IngressPolicy::Hash => {
                for i in 0..n {
                    batch.port[i] = self.reduce(flow_hash(batch.bytes(memory, i).unwrap_or_default()));
                }
            }
            IngressPolicy::Origins(origins) => {
                for i in 0..n {
                    let frame = batch.bytes(memory, i).unwrap_or_default();
                    batch.port[i] = origins.port(frame, payload(frame));
                }
            }
        }
    }

    /// A number as one of the ports, all equally often.
    fn reduce(&self, number: u64) -> PortNumber {
        ((u128::from(number) * u128::from(self.ports)) >> 64) as PortNumber + 1
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(hash, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash.wrapping_add(GOLDEN) ^ u64::from_le_bytes(word))
    })
}

/// The EtherType behind all VLAN tags, and the bytes behind it.
fn payload(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = 12;
    loop {
        match frame.get(at..at + 2)? {
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            &[high, low] => return Some((u16::from_be_bytes([high, low]), &frame[at + 2..])),
            _ => return None,
        }
    }
}

/// A hash of what tells a flow: addresses, protocol and ports of the first IP header, or the MAC addresses
/// and EtherType.
fn flow_hash(frame: &[u8]) -> u64 {
    let Some((ether_type, packet)) = payload(frame) else { return fold(0, frame) };
    ip_hash(ether_type, packet).unwrap_or_else(|| fold(fold(0, &frame[..12]), &ether_type.to_be_bytes()))
}

fn ip_hash(ether_type: u16, packet: &[u8]) -> Option<u64> {
    let (addresses, protocol, rest) = match ether_type {
        0x0800 => {
            let header = usize::from(packet.first()? & 15) * 4;
            let later_fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff != 0;
            let rest = if later_fragment { None } else { packet.get(header..) };
            (packet.get(12..20)?, *packet.get(9)?, rest)
        }
        0x86dd => (packet.get(8..40)?, *packet.get(6)?, packet.get(40..)),
        _ => return None,
    };
    let hash = fold(fold(0, addresses), &[protocol]);
    match (protocol, rest.and_then(|rest| rest.get(..4))) {
        (6 | 17 | 132, Some(ports)) => Some(fold(hash, ports)),
        _ => Some(hash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Frames;

    fn ports_of(policy: IngressPolicy, ports: u16, frames: &Frames) -> Vec<PortNumber> {
        let mut ingress = Ingress::new(policy, ports);
        let mut batch = Batch::new();
        let mut all = Vec::new();
        // Two batches of different sizes, so that state carries over.
        for range in [0..3, 3..frames.len()] {
            frames.fill(&mut batch, range);
            ingress.assign(frames.memory(), &mut batch);
            all.extend_from_slice(batch.ports());
        }
        all
    }

    /// An Ethernet frame with an IPv4 header and UDP ports.
    fn udp(source_port: u8, tag: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tag {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, source_port, 0, 53, 0, 8, 0, 0]);
        frame
    }

    fn frames(all: impl IntoIterator<Item = Vec<u8>>) -> Frames {
        let mut frames = Frames::new();
        all.into_iter().for_each(|bytes| frames.push(&bytes, 0, 0));
        frames
    }

    #[test]
    fn round_robin_goes_on_across_batches() {
        let frames = frames((0..8).map(|i| udp(i, false)));
        assert_eq!(ports_of(IngressPolicy::RoundRobin, 3, &frames), [1, 2, 3, 1, 2, 3, 1, 2]);
        assert_eq!(ports_of(IngressPolicy::RoundRobin, 1, &frames), [1; 8]);
        assert_eq!(ports_of(IngressPolicy::Port(4), 5, &frames), [4; 8]);
    }

    #[test]
    fn a_seed_gives_the_same_ports_every_time() {
        let frames = frames((0..200).map(|i| udp(i, false)));
        let first = ports_of(IngressPolicy::Random(1), 5, &frames);
        assert_eq!(first, ports_of(IngressPolicy::Random(1), 5, &frames));
        assert_ne!(first, ports_of(IngressPolicy::Random(2), 5, &frames));
        for port in 1..=5 {
            let n = first.iter().filter(|&&found| found == port).count();
            assert!((20..=60).contains(&n), "port {port}: {n} of 200");
        }
        assert_eq!(first[..6], [3, 4, 5, 3, 3, 4], "the numbers of SplitMix64 from seed 1");
    }

    #[test]
    fn a_flow_keeps_its_port_whatever_else_the_frame_says() {
        let mut other_payload = udp(7, false);
        other_payload.extend([1, 2, 3]);
        let same = frames([udp(7, false), other_payload, udp(7, true), udp(7, false)]);
        let ports = ports_of(IngressPolicy::Hash, 1000, &same);
        assert_eq!(ports, [ports[0]; 4]);
        let many = ports_of(IngressPolicy::Hash, 4, &frames((0..200).map(|i| udp(i, false))));
        for port in 1..=4 {
            assert!(many.iter().filter(|&&found| found == port).count() > 25);
        }
    }

    #[test]
    fn short_and_strange_frames_get_a_port_of_those_there_are() {
        let whole = udp(7, true);
        let mut strange: Vec<_> = (0..whole.len()).map(|cut| whole[..cut].to_vec()).collect();
        strange.push(vec![0xff; 64]);
        strange.push([vec![2; 12], [0x81, 0].repeat(40)].concat());
        let ports = ports_of(IngressPolicy::Hash, 3, &frames(strange));
        assert!(ports.iter().all(|port| (1..=3).contains(port)));
    }

    #[test]
    fn texts() {
        assert_eq!("round-robin".parse(), Ok(IngressPolicy::RoundRobin));
        assert_eq!("hash".parse(), Ok(IngressPolicy::Hash));
        assert_eq!("random:7".parse(), Ok(IngressPolicy::Random(7)));
        assert_eq!("port:3".parse(), Ok(IngressPolicy::Port(3)));
        assert_eq!("interface".parse(), Ok(IngressPolicy::Interface));
        let by_network: IngressPolicy = "subnet:10.0.0.0/8=2,else=3".parse().expect("a policy");
        assert_eq!(by_network.largest(), 3);
        assert!("mac:02:00:00:00:00:01=1".parse::<IngressPolicy>().is_err(), "`else` is missing");
        for bad in ["", "port:0", "port:", "port:65536", "random", "random:x", "hash:1", "Hash"] {
            let error = bad.parse::<IngressPolicy>().expect_err("no policy").to_string();
            assert!(error.starts_with(&format!("`{bad}` is no way to choose ports")), "{error}");
        }
    }
}
