//! Two hosts with a gateway between them, each in a network of its own, joined by two virtual cables.
//!
//! ```text
//! host a                     gateway                      host b
//! eth0 10.0.1.1 ────────── to-a     to-b ────────── eth0 10.0.2.1, and 10.0.2.9 that takes everything and answers nothing
//! ```
//!
//! Nobody asks for Ethernet addresses: all of them are given, so that a gateway is measured and not its
//! answers. A gateway that routes is sent frames for itself; one that only passes frames on is sent those for
//! the other host.
//!
//! Instead of cables there may be TAP devices, which the gateway makes: it holds their queues, and the
//! interfaces are moved to the hosts.

use rig::{Counters, Namespace};
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

/// How a gateway hands packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By their IP addresses, as a router.
    Routed,
    /// As they are, or by their Ethernet addresses.
    Switched,
}

/// What offloads the hosts and the gateway have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CableOffloads {
    /// As virtual cables come.
    On,
    /// None.
    Off,
}

pub(crate) const A: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x0a], Ipv4Addr::new(10, 0, 1, 1));
pub(crate) const B: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x0b], Ipv4Addr::new(10, 0, 2, 1));
/// Frames for it end at host b, which takes them for another host's.
pub(crate) const SINK: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x0c], Ipv4Addr::new(10, 0, 2, 9));
pub(crate) const TO_A: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x1a], Ipv4Addr::new(10, 0, 1, 254));
pub(crate) const TO_B: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x1b], Ipv4Addr::new(10, 0, 2, 254));

/// How many frames may wait at a TAP device, whoever made it.
const QUEUE: u32 = 4096;

/// The hosts and the gateway.
pub struct Net {
    /// The host that begins.
    pub a: Namespace,
    /// The host that answers.
    pub b: Namespace,
    /// What stands between them.
    pub gateway: Namespace,
    /// How it hands packets on.
    pub way: Way,
    /// What the interfaces between them have.
    offloads: CableOffloads,
}

/// An end of a way between two networks: the name that it has at the gateway and its Ethernet address there,
/// the host with its addresses, and which of the gateway's addresses and of the other host's Ethernet
/// addresses are next to it.
struct End<'a> {
    name: &'static str,
    ethernet: [u8; 6],
    host: &'a Namespace,
    addresses: ([u8; 6], Ipv4Addr),
    next: Ipv4Addr,
    other: [u8; 6],
}

/// Where frames are sent, and where they are counted: each a host and its interface.
#[derive(Clone, Copy)]
pub struct FloodEnds<'a> {
    /// Who sends.
    pub from: (&'a Namespace, &'a str),
    /// Who counts.
    pub to: (&'a Namespace, &'a str),
}

impl Net {
    /// Makes them, without anything between them.
    ///
    /// # Errors
    /// The rights are missing, or what the kernel says.
    pub fn apart(way: Way, offloads: CableOffloads) -> io::Result<Net> {
        let net =
            Net { a: Namespace::new()?, b: Namespace::new()?, gateway: Namespace::new()?, way, offloads };
        for namespace in [&net.a, &net.b, &net.gateway] {
            // Neighbour discovery would be counted among the frames.
            namespace.set("ipv6/conf/all/disable_ipv6", "1")?;
            namespace.set("ipv6/conf/default/disable_ipv6", "1")?;
        }
        Ok(net)
    }

    /// Makes them, joined by cables.
    ///
    /// # Errors
    /// The rights are missing, or what the kernel says.
    pub fn new(way: Way, offloads: CableOffloads) -> io::Result<Net> {
        let net = Net::apart(way, offloads)?;
        let gateway = net.gateway.links()?;
        for end in net.ends() {
            gateway.cable((end.name, end.ethernet), ("eth0", end.addresses.0), end.host)?;
            if offloads == CableOffloads::Off {
                gateway.offloads(end.name, false)?;
            }
            gateway.up(end.name)?;
            net.settle(&end)?;
        }
        Ok(net)
    }

    /// Makes them with a cable from host to host: nothing stands between them.
    ///
    /// # Errors
    /// The rights are missing, or what the kernel says.
    pub fn direct(offloads: CableOffloads) -> io::Result<Net> {
        let net = Net::apart(Way::Switched, offloads)?;
        net.a.links()?.cable(("eth0", A.0), ("eth0", B.0), &net.b)?;
        net.ends().iter().try_for_each(|end| net.settle(end))?;
        Ok(net)
    }

    /// Gives the hosts the interfaces of TAP devices that a gateway makes, as soon as it has switched them
    /// on.
    ///
    /// # Errors
    /// They are not there within a time, or what the kernel says.
    pub fn give_taps(&self, limit: Duration) -> io::Result<()> {
        let gateway = self.gateway.links()?;
        let over = Instant::now() + limit;
        while !self.ends().iter().all(|end| gateway.is_up(end.name).unwrap_or(false)) {
            if Instant::now() > over {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            thread::sleep(Duration::from_millis(10));
        }
        for end in self.ends() {
            gateway.queue(end.name, QUEUE)?;
            gateway.hand(end.name, ("eth0", end.addresses.0), end.host)?;
            self.settle(&end)?;
        }
        Ok(())
    }

    fn ends(&self) -> [End<'_>; 2] {
        let end = |name, (ethernet, next), host, addresses, other| End {
            name,
            ethernet,
            host,
            addresses,
            next,
            other,
        };
        [end("to-a", TO_A, &self.a, A, B.0), end("to-b", TO_B, &self.b, B, A.0)]
    }

    /// Switches a host's interface on and says who is next to it.
    fn settle(&self, end: &End<'_>) -> io::Result<()> {
        let links = end.host.links()?;
        if self.offloads == CableOffloads::Off {
            links.offloads("eth0", false)?;
        }
        links.up("lo")?;
        links.up("eth0")?;
        links.address("eth0", end.addresses.1, 24)?;
        let next = if self.way == Way::Routed { end.ethernet } else { end.other };
        links.neighbour("eth0", end.next, next)?;
        links.default_route(end.next)
    }

    /// A flood from host a to host b.
    pub fn flood_ends(&self) -> FloodEnds<'_> {
        FloodEnds { from: (&self.a, "eth0"), to: (&self.b, "eth0") }
    }

    /// What host b has counted at its end of the cable.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn arrived(&self) -> io::Result<Counters> {
        self.b.links()?.counters("eth0")
    }

    /// UDP packets of host a for a port of nobody at host b, of some flows. The size counts the frame check
    /// sequence, which is not in memory.
    pub fn frames(&self, size: usize, flows: u16, port: u16) -> Vec<Vec<u8>> {
        let to = if self.way == Way::Routed { TO_A.0 } else { SINK.0 };
        (0..flows).map(|flow| udp((A.0, to), (A.1, SINK.1), (1024 + flow, port), size - 4)).collect()
    }
}

/// A frame with a UDP packet whose IP checksum is right and whose UDP checksum is not used (RFC 768): its
/// network cards, addresses and ports, each of the sender and of the receiver, and its length.
pub(crate) fn udp(
    cards: ([u8; 6], [u8; 6]),
    addresses: (Ipv4Addr, Ipv4Addr),
    ports: (u16, u16),
    length: usize,
) -> Vec<u8> {
    let (total, datagram) = (length - 14, length - 34);
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&addresses.0.octets());
    ip[16..20].copy_from_slice(&addresses.1.octets());
    let words = ip.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    let mut frame = Vec::with_capacity(length);
    frame.extend_from_slice(&cards.1);
    frame.extend_from_slice(&cards.0);
    frame.extend_from_slice(&[8, 0]);
    frame.extend_from_slice(&ip);
    frame.extend_from_slice(&ports.0.to_be_bytes());
    frame.extend_from_slice(&ports.1.to_be_bytes());
    frame.extend_from_slice(&(datagram as u16).to_be_bytes());
    frame.resize(length, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_frame_is_right() {
        let frame = udp((A.0, TO_A.0), (A.1, SINK.1), (1024, 9), 60);
        assert_eq!(frame.len(), 60);
        let sum: u32 =
            frame[14..34].chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(frame[16..18], [0, 46]);
        assert_eq!(frame[38..40], [0, 26]);
    }
}
