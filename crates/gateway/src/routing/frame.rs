//! Parses and builds Ethernet frames with IPv4 and IPv6, as far as the control plane needs them.
//!
//! ```text
//! Ethernet:  0 destination  6 source  12 type
//! IPv4:      0 version, header's length in words   2 total length   6 flags, offset   8 TTL   9 protocol   10 checksum   12 source   16 destination
//! IPv6:      0 version                             4 length of what follows           7 hop limit   6 next header       8 source   24 destination
//! ```

use super::neighbours::Mac;
use packet::checksum::{folded, sum};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// ICMP and ICMPv6 among the protocols above IP.
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;

/// An IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4<'a> {
    /// The packet from its header to its end; what fills a short frame up is no part of it.
    pub(crate) bytes: &'a [u8],
    /// What stands behind the header.
    pub(crate) payload: &'a [u8],
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    pub(crate) dont_fragment: bool,
    /// It is a piece of a packet.
    pub(crate) piece: bool,
    /// It is a piece other than the first.
    pub(crate) later_piece: bool,
}

impl<'a> Ipv4<'a> {
    /// Reads a frame; `None` where its header is not there or contradicts itself.
    pub(crate) fn read(frame: &'a [u8]) -> Option<Ipv4<'a>> {
        let ip = frame.get(ETHERNET..)?;
        let header = usize::from(ip.first()? & 15) * 4;
        let total = usize::from(u16::from_be_bytes(array(ip, 2)?));
        if frame[12..14] != [8, 0] || ip[0] >> 4 != 4 || header < 20 || total < header {
            return None;
        }
        let bytes = ip.get(..total)?;
        let offset = u16::from_be_bytes(array(ip, 6)?);
        Some(Ipv4 {
            bytes,
            payload: &bytes[header..],
            source: array(ip, 12).map(<[u8; 4]>::into)?,
            destination: array(ip, 16).map(<[u8; 4]>::into)?,
            ttl: ip[8],
            protocol: ip[9],
            dont_fragment: offset & 0x4000 != 0,
            piece: offset & 0x3fff != 0,
            later_piece: offset & 0x1fff != 0,
        })
    }
}

/// An IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv6<'a> {
    /// The packet from its header to its end.
    pub(crate) bytes: &'a [u8],
    /// What stands behind the header.
    pub(crate) payload: &'a [u8],
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    pub(crate) hop_limit: u8,
    /// What `payload` begins with.
    pub(crate) next: u8,
}

impl<'a> Ipv6<'a> {
    /// Reads a frame; `None` where its header is not there or contradicts itself.
    pub(crate) fn read(frame: &'a [u8]) -> Option<Ipv6<'a>> {
        let ip = frame.get(ETHERNET..)?;
        let length = usize::from(u16::from_be_bytes(array(ip, 4)?));
        let bytes = ip.get(..40 + length)?;
        (frame[12..14] == [0x86, 0xdd] && ip[0] >> 4 == 6).then(|| {
            Some(Ipv6 {
                bytes,
                payload: &bytes[40..],
                source: array(ip, 8).map(<[u8; 16]>::into)?,
                destination: array(ip, 24).map(<[u8; 16]>::into)?,
                hop_limit: ip[7],
                next: ip[6],
            })
        })?
    }

    /// Whether the checksum of its ICMPv6 message is right.
    pub(crate) fn icmp_is_right(&self) -> bool {
        self.next == ICMPV6
            && self.payload.len() >= 4
            && icmpv6_sum(self.source, self.destination, self.payload) == 0xffff
    }
}

/// The station that a frame came from; nobody answers one that says it came from a group.
pub(crate) fn source(frame: &[u8]) -> Option<Mac> {
    array(frame, 6).filter(|mac| is_station(*mac))
}

/// Whether this is the address of one station and of no group.
pub(crate) fn is_station(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// The bytes from a place on.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The header of Ethernet.
pub(crate) fn ethernet(to: Mac, from: Mac, kind: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(128);
    frame.extend(to);
    frame.extend(from);
    frame.extend(kind.to_be_bytes());
    frame
}

/// Fills in the checksum of an IPv4 header.
pub(crate) fn finish_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let check = !sum(header);
    header[10..12].copy_from_slice(&check.to_be_bytes());
}

/// A frame with an ICMP message, whose checksum is filled in.
pub(crate) fn ipv4(
    to: Mac,
    from: Mac,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    dscp: u8,
    mut message: Vec<u8>,
) -> Vec<u8> {
    let mut header = [0u8; 20];
    header[0] = 0x45;
    header[1] = dscp << 2;
    header[2..4].copy_from_slice(&((20 + message.len()) as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = ICMP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    finish_ipv4(&mut header);
    message[2..4].fill(0);
    let check = !sum(&message);
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let mut frame = ethernet(to, from, 0x0800);
    frame.extend(header);
    frame.extend(message);
    frame
}

/// A frame with an ICMPv6 message, whose checksum is filled in.
pub(crate) fn ipv6(
    to: Mac,
    from: Mac,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hop_limit: u8,
    mut message: Vec<u8>,
) -> Vec<u8> {
    message[2..4].fill(0);
    let check = !icmpv6_sum(source, destination, &message);
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let mut frame = ethernet(to, from, 0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([ICMPV6, hop_limit]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend(message);
    frame
}

/// The sum over the pseudo header (RFC 8200, 8.1) and a message: 0xffff where the checksum in it is right.
fn icmpv6_sum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let words = |bytes: &[u8]| u64::from(sum(bytes));
    let total = words(&source.octets())
        + words(&destination.octets())
        + message.len() as u64
        + u64::from(ICMPV6)
        + words(message);
    folded(total)
}
