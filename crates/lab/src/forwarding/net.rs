//! Two hosts with a gateway between them, each in a network of its own, joined by two virtual cables.
//!
//! ```text
//! host a                     gateway                      host b
//! eth0 10.0.1.1 ────────── to-a     to-b ────────── eth0 10.0.2.1, and 10.0.2.9 that takes everything and answers nothing
//! ```
//!
//! Nobody asks for Ethernet addresses: all of them are given, so that a gateway is measured and not its answers. A gateway that routes is sent
//! frames for itself; one that only passes frames on is sent those for the other host.

use ports::live::rig::{Counters, Namespace};
use std::io;
use std::net::Ipv4Addr;

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
pub enum Offloads {
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
}

impl Net {
    /// Makes them.
    ///
    /// # Errors
    /// The rights are missing, or what the kernel says.
    pub fn new(way: Way, offloads: Offloads) -> io::Result<Net> {
        let net = Net { a: Namespace::new()?, b: Namespace::new()?, gateway: Namespace::new()?, way };
        let gateway = net.gateway.links()?;
        for (host, end, (host_ethernet, address), (ethernet, own), other) in
            [(&net.a, "to-a", A, TO_A, B), (&net.b, "to-b", B, TO_B, A)]
        {
            let links = host.links()?;
            gateway.cable((end, ethernet), ("eth0", host_ethernet, host))?;
            for namespace in [host, &net.gateway] {
                // Neighbour discovery would be counted among the frames.
                namespace.set("ipv6/conf/all/disable_ipv6", "1")?;
            }
            if offloads == Offloads::Off {
                links.offloads("eth0", false)?;
                gateway.offloads(end, false)?;
            }
            gateway.up(end)?;
            links.up("lo")?;
            links.up("eth0")?;
            links.address("eth0", address, 24)?;
            let next = if way == Way::Routed { ethernet } else { other.0 };
            links.neighbour("eth0", own, next)?;
            links.default_route(own)?;
        }
        Ok(net)
    }

    /// What host b has counted at its end of the cable.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn arrived(&self) -> io::Result<Counters> {
        self.b.links()?.counters("eth0")
    }

    /// UDP packets of host a for a port of nobody at host b, of some flows. The size counts the frame check sequence, which is not in memory.
    pub fn frames(&self, size: usize, flows: u16, port: u16) -> Vec<Vec<u8>> {
        let to = if self.way == Way::Routed { TO_A.0 } else { SINK.0 };
        (0..flows).map(|flow| udp(to, (1024 + flow, port), size - 4)).collect()
    }
}

/// A frame with a UDP packet whose IP checksum is right and whose UDP checksum is not used (RFC 768).
fn udp(to: [u8; 6], ports: (u16, u16), length: usize) -> Vec<u8> {
    let (total, datagram) = (length - 14, length - 34);
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&A.1.octets());
    ip[16..20].copy_from_slice(&SINK.1.octets());
    let words = ip.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    let mut frame = Vec::with_capacity(length);
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&A.0);
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
        let frame = udp(TO_A.0, (1024, 9), 60);
        assert_eq!(frame.len(), 60);
        let sum: u32 =
            frame[14..34].chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(frame[16..18], [0, 46]);
        assert_eq!(frame[38..40], [0, 26]);
    }
}
