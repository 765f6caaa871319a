//! The virtio header: the work that the sender of a packet left to a network card, such as finishing a
//! checksum or cutting a long segment into packets.
//!
//! A packet that never was on a wire (from a host on a virtual link) often comes unfinished, and the header
//! of virtio-net says what is left to do:
//!
//! ```text
//! byte  0      1      2 3        4 5      6 7        8 9
//!      ┌──────┬──────┬──────────┬────────┬──────────┬─────────────┐
//!      │flags │ gso  │ headers  │ gso    │ checksum │ checksum    │   numbers in the machine's order
//!      │      │ type │ length   │ size   │ start    │ offset      │
//!      └──────┴──────┴──────────┴────────┴──────────┴─────────────┘
//! ```
//!
//! With flag 1 the checksum field at `start + offset` holds the sum of the pseudo header alone, not inverted,
//! and the sum over everything from `start` on is to replace it (VIRTIO 1.2, §5.1.6; RFC 9293 §3.1 and RFC
//! 768 for the pseudo header). The header does not say of which kind the checksum is: SCTP has a CRC instead
//! of a sum, with bits in another order (RFC 9260 §6.8 and appendix A), and is told by its protocol and
//! place.

use crate::checksum::{folded, sum};
use crate::open_checksum::OpenClass;

/// The checksum is not finished.
const NEEDS_CHECKSUM: u8 = 1;
/// It is finished in the bytes of a segment at present, and begins with the pseudo header again when the
/// segment leaves. No header on its way to Linux says this.
const FINISHED: u8 = 0x80;
/// The segment stands for the packets that it would be cut into, and counts as these. No header on its way to
/// Linux says this, either.
const AS_PACKETS: u8 = 0x40;

/// The protocol number of SCTP, and where its checksum stands.
const SCTP: u8 = 132;
const SCTP_FIELD: usize = 8;
/// Where TCP's stands.
const TCP_FIELD: u16 = 16;
/// Where UDP's stands.
const UDP_FIELD: usize = 6;

/// What is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A segment of TCP.
    Tcp,
    /// Datagrams of UDP that were handed over as one.
    Udp,
}

/// Kinds of segments, and the mark of one whose sender takes part in explicit congestion notification.
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const CONGESTION: u8 = 0x80;

/// What is left to do with a packet; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    flags: u8,
    gso_type: u8,
    headers: u16,
    gso_size: u16,
    start: u16,
    offset: u16,
}

impl VirtioHeader {
    /// Bytes of the header.
    pub const LEN: usize = 10;

    /// The most bytes before TCP in a segment that nobody has looked at before: Ethernet, IPv6 and short
    /// extension headers, or headers of a tunnel.
    pub const MOST_HEADERS: u16 = 256;

    /// Nothing is left to do.
    pub const NONE: VirtioHeader =
        VirtioHeader { flags: 0, gso_type: 0, headers: 0, gso_size: 0, start: 0, offset: 0 };

    /// Reads the header. What it says of a finished packet is forgotten.
    pub fn read(bytes: &[u8; VirtioHeader::LEN]) -> VirtioHeader {
        let pair = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let flags = bytes[0] & NEEDS_CHECKSUM;
        if flags == 0 && bytes[1] == 0 {
            return VirtioHeader::NONE;
        }
        VirtioHeader {
            flags,
            gso_type: bytes[1],
            headers: pair(2),
            gso_size: pair(4),
            start: pair(6),
            offset: pair(8),
        }
    }

    /// What is left to do with a frame that came without a header: where a checksum of TCP or UDP holds the
    /// sum of the pseudo header, or one of SCTP is zero, nobody has finished it. Once in 2^16 (2^32) a
    /// finished one looks the same; to finish it again changes nothing. A frame that was padded came over a
    /// wire, finished.
    pub fn unmarked(frame: &[u8]) -> VirtioHeader {
        let unfinished = || {
            let (start, protocol, end) = transport(frame)?;
            let field = match protocol {
                6 => 16,
                17 => 6,
                SCTP => SCTP_FIELD,
                _ => return None,
            };
            let there = frame.get(start + field..)?;
            let begun = match protocol {
                SCTP => there.starts_with(&[0; 4]),
                _ => there.starts_with(&pseudo_header(frame, start)?.to_be_bytes()),
            };
            (begun && end == frame.len()).then_some((start as u16, field as u16))
        };
        unfinished().map_or(VirtioHeader::NONE, |(start, offset)| VirtioHeader {
            flags: NEEDS_CHECKSUM,
            start,
            offset,
            ..VirtioHeader::NONE
        })
    }

    /// As [`read`](VirtioHeader::read) for a header that nobody has looked at before, and its frame: `None`
    /// unless it says that a checksum is open which the frame has, or the same of a segment, which has at
    /// most [`MOST_HEADERS`](VirtioHeader::MOST_HEADERS) bytes before TCP or UDP: each of its packets has
    /// them again. Segments are those of TCP, and with `all_kinds` also those of UDP and of TCP that tells of
    /// congestion.
    pub fn judged(
        bytes: &[u8; VirtioHeader::LEN],
        frame_length: usize,
        all_kinds: bool,
    ) -> Option<VirtioHeader> {
        let header = VirtioHeader::read(bytes);
        let is_short = header.start <= VirtioHeader::MOST_HEADERS;
        let is_known = match bytes[1] {
            0 => header.gso_size == 0,
            TCP4 | TCP6 => is_short && header.offset == TCP_FIELD,
            kind if all_kinds => match kind & !CONGESTION {
                TCP4 | TCP6 => is_short && header.offset == TCP_FIELD,
                _ => kind == UDP && is_short && usize::from(header.offset) == UDP_FIELD,
            },
            _ => false,
        };
        let checksum_ends = usize::from(header.start) + usize::from(header.offset) + 2;
        let is_in_frame = checksum_ends.max(usize::from(header.headers)) <= frame_length;
        (bytes[0] == NEEDS_CHECKSUM && is_known && is_in_frame).then_some(header)
    }

    /// Writes the header.
    pub fn write(&self) -> [u8; VirtioHeader::LEN] {
        let mut bytes = [0; VirtioHeader::LEN];
        (bytes[0], bytes[1]) = (self.flags & NEEDS_CHECKSUM, self.gso_type);
        for (place, value) in
            bytes[2..].chunks_exact_mut(2).zip([self.headers, self.gso_size, self.start, self.offset])
        {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    /// Whether nothing is left to do.
    pub fn is_none(&self) -> bool {
        self.flags == 0 && self.gso_type == 0
    }

    /// Whether the packet is to be cut into several on the way out.
    pub fn segments(&self) -> bool {
        self.gso_type != 0
    }

    /// What is to be cut, and how many bytes of data every packet is to have; `None` if nothing is, or what
    /// it is is not known.
    pub fn cutting(&self) -> Option<(SegmentKind, usize)> {
        let kind = match self.gso_type & !CONGESTION {
            TCP4 | TCP6 => SegmentKind::Tcp,
            UDP => SegmentKind::Udp,
            _ => return None,
        };
        Some((kind, usize::from(self.gso_size)))
    }

    /// Where the transport header begins, if that is said.
    pub fn transport(&self) -> Option<usize> {
        (self.flags & NEEDS_CHECKSUM != 0).then_some(usize::from(self.start))
    }

    /// A segment of TCP is to be cut into packets with `size` bytes of data; the checksum field has the sum
    /// of the pseudo header.
    pub(crate) fn of_tcp(six: bool, transport: usize, headers: usize, size: usize) -> VirtioHeader {
        VirtioHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: if six { TCP6 } else { TCP4 },
            headers: headers as u16,
            gso_size: size as u16,
            start: transport as u16,
            offset: TCP_FIELD,
        }
    }

    /// The checksum `offset` bytes behind the transport header is open.
    pub(crate) fn of_open(transport: usize, offset: usize) -> VirtioHeader {
        VirtioHeader {
            flags: NEEDS_CHECKSUM,
            start: transport as u16,
            offset: offset as u16,
            ..VirtioHeader::NONE
        }
    }

    /// What is left once the checksum is finished: nothing, or the cutting, which begins with the checksum
    /// anew.
    pub fn without_checksum(&self) -> VirtioHeader {
        if !self.segments() {
            return VirtioHeader::NONE;
        }
        VirtioHeader { flags: if self.is_open() { self.flags | FINISHED } else { self.flags }, ..*self }
    }

    /// Whether the checksum is open: the field holds the sum of the pseudo header at present.
    pub fn is_open(&self) -> bool {
        self.flags & (NEEDS_CHECKSUM | FINISHED) == NEEDS_CHECKSUM
    }

    /// Where the sum of the checksum begins, and how far behind that the field is, if it is open.
    pub fn open_sum(&self) -> Option<(u16, u16)> {
        self.is_open().then_some((self.start, self.offset))
    }

    /// The same for a segment that stands for the packets that it would be cut into.
    pub fn as_packets(&self) -> VirtioHeader {
        VirtioHeader { flags: if self.segments() { self.flags | AS_PACKETS } else { self.flags }, ..*self }
    }

    /// Whether it is a segment that counts as the packets that it would be cut into.
    pub fn counts_as_packets(&self) -> bool {
        self.segments() && self.flags & AS_PACKETS != 0
    }

    /// The class of a frame whose checksum is open, if it has one.
    pub fn open_class(&self, frame: &[u8]) -> Option<OpenClass> {
        let (start, offset) = self.open_sum()?;
        OpenClass::of(frame, start.into(), offset.into())
    }

    /// The same for a packet whose front has grown by `bytes` (or shrunk), or `None` if its headers are not
    /// there any more.
    pub fn moved(&self, bytes: i32) -> Option<VirtioHeader> {
        if self.is_none() {
            return Some(VirtioHeader::NONE);
        }
        let shift = |place: u16| u16::try_from(i32::from(place) + bytes).ok();
        // Only segments say how long their headers are.
        let headers = if self.headers == 0 { 0 } else { shift(self.headers)? };
        Some(VirtioHeader { headers, start: shift(self.start)?, ..*self })
    }

    /// Finishes the checksum in the frame if it is open, as the card would. Says whether the frame has the
    /// bytes.
    pub fn complete(&self, frame: &mut [u8]) -> bool {
        if !self.is_open() {
            return true;
        }
        let (start, field) = (usize::from(self.start), usize::from(self.start) + usize::from(self.offset));
        if start > frame.len() || field + 2 > frame.len() {
            return false;
        }
        if usize::from(self.offset) == SCTP_FIELD && protocol_at(frame, start) == Some(SCTP) {
            let Some(place) = frame.get_mut(field..field + 4) else { return false };
            place.fill(0);
            let crc = crc32c::crc32c(&frame[start..]);
            frame[field..field + 4].copy_from_slice(&crc.to_le_bytes());
            return true;
        }
        let sum = !sum(&frame[start..]);
        // Zero would say that there is none (RFC 768), and stands for the same number (RFC 1624).
        let sum = if sum == 0 && usize::from(self.offset) == UDP_FIELD { 0xffff } else { sum };
        frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        true
    }

    /// How many bytes the frame has on the wire: every piece that it is cut into has the headers again.
    pub fn wire_bytes(&self, frame: &[u8]) -> u64 {
        let whole = frame.len() as u64;
        let transport = usize::from(self.start);
        let header = match self.gso_type & !CONGESTION {
            TCP4 | TCP6 => frame.get(transport + 12).map_or(20, |byte| usize::from(byte >> 4) * 4),
            UDP => 8,
            _ => 0,
        };
        let headers = (transport + header) as u64;
        if !self.segments() || self.gso_size == 0 || whole <= headers {
            return whole;
        }
        let pieces = (whole - headers).div_ceil(u64::from(self.gso_size));
        whole + (pieces - 1) * headers
    }

    /// Damages the checksum that the pieces of a frame will have, so that whoever receives them notices. Says
    /// whether the frame is one that is cut, and has the bytes.
    pub fn spoil(&self, frame: &mut [u8]) -> bool {
        let field = usize::from(self.start) + usize::from(self.offset);
        match frame.get_mut(field) {
            Some(byte) if self.segments() && self.flags & NEEDS_CHECKSUM != 0 => *byte ^= 1,
            _ => return false,
        }
        true
    }

    /// Puts the sum of the pseudo header into the checksum field again, as the frame's addresses are now:
    /// whatever a program wrote there, the card sums the rest. Says whether the frame has the headers for it.
    pub fn restart(&self, frame: &mut [u8]) -> bool {
        if self.flags & NEEDS_CHECKSUM == 0 {
            return true;
        }
        let (start, field) = (usize::from(self.start), usize::from(self.start) + usize::from(self.offset));
        let Some(pseudo) = pseudo_header(frame, start) else { return false };
        match frame.get_mut(field..field + 2) {
            Some(place) => place.copy_from_slice(&pseudo.to_be_bytes()),
            None => return false,
        }
        true
    }
}

/// The sum of the pseudo header of the transport header at `start`, or `None` where no IP header leads there.
fn pseudo_header(frame: &[u8], start: usize) -> Option<u16> {
    let pair = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let ip = ip_header(frame)?;
    let (addresses, length) = match frame.get(ip)? >> 4 {
        4 => (ip + 12..ip + 20, usize::from(pair(ip + 2)?) + ip),
        _ => (ip + 8..ip + 40, usize::from(pair(ip + 4)?) + ip + 40),
    };
    let protocol = protocol_at(frame, start).filter(|protocol| matches!(protocol, 6 | 17))?;
    let length = length.checked_sub(start)?;
    Some(folded(u64::from(sum(frame.get(addresses)?)) + length as u64 + u64::from(protocol)))
}

/// Where the IP header lies, behind VLAN tags; `None` if what lies there is none, as one of IPv4 that says it
/// is shorter than 20 bytes (RFC 791, section 3.1).
pub(crate) fn ip_header(frame: &[u8]) -> Option<usize> {
    const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
    let mut ip = 14;
    while VLAN.contains(frame.get(ip - 2..ip)?.first_chunk()?) {
        ip += 4;
    }
    matches!(frame.get(ip)?, 0x45..=0x4f | 0x60..=0x6f).then_some(ip)
}

/// The protocol of the header at `start`, if an IP header leads there.
pub(crate) fn protocol_at(frame: &[u8], start: usize) -> Option<u8> {
    let ip = ip_header(frame)?;
    let first = *frame.get(ip)?;
    match first >> 4 {
        4 => frame.get(ip + 9).copied().filter(|_| start == ip + 4 * usize::from(first & 15)),
        _ => next_header(frame, ip, start),
    }
}

/// Where the header behind IP's begins in a packet that is no fragment and on its way to its last
/// destination, its protocol, and where the packet ends.
fn transport(frame: &[u8]) -> Option<(usize, u8, usize)> {
    let pair = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let ip = ip_header(frame)?;
    if frame.get(ip)? >> 4 == 6 {
        let (start, protocol) = behind_extensions(frame, ip, usize::MAX, &OPTIONS)?;
        return Some((start, protocol, ip + 40 + usize::from(pair(ip + 4)?)));
    }
    // "More fragments" and the place of this one (RFC 791).
    let whole = pair(ip + 6)? & 0x3fff == 0;
    let start = ip + 4 * usize::from(frame.get(ip)? & 15);
    whole.then_some((start, *frame.get(ip + 9)?, ip + usize::from(pair(ip + 2)?)))
}

/// The protocol of the header at `start` in an IPv6 packet, found by way of its extension headers.
fn next_header(frame: &[u8], ip: usize, start: usize) -> Option<u8> {
    let (at, protocol) = behind_extensions(frame, ip, start, &EXTENSIONS)?;
    (at == start).then_some(protocol)
}

/// Extension headers of IPv6 (RFC 8200, section 4): options for every hop and for the destination, and these
/// with the route and the fragment.
const OPTIONS: [u8; 2] = [0, 60];
const EXTENSIONS: [u8; 4] = [0, 60, 43, FRAGMENT];
const FRAGMENT: u8 = 44;

/// The first header of an IPv6 packet that lies at `end` or behind it, or is none of these extension headers;
/// and its protocol.
fn behind_extensions(frame: &[u8], ip: usize, end: usize, extensions: &[u8]) -> Option<(usize, u8)> {
    let (mut protocol, mut at) = (*frame.get(ip + 6)?, ip + 40);
    while at < end && extensions.contains(&protocol) {
        let length = if protocol == FRAGMENT { 8 } else { 8 * (usize::from(*frame.get(at + 1)?) + 1) };
        protocol = *frame.get(at)?;
        at += length;
    }
    Some((at, protocol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    /// A frame as a host sends it: the checksum field holds the sum of the pseudo header.
    fn unfinished(mut frame: Vec<u8>, start: u16, offset: u16) -> (Vec<u8>, VirtioHeader) {
        let virtio = VirtioHeader { flags: NEEDS_CHECKSUM, start, offset, ..VirtioHeader::NONE };
        let field = usize::from(start + offset);
        frame[field..field + 2].fill(0);
        assert!(virtio.restart(&mut frame));
        (frame, virtio)
    }

    fn frames() -> Vec<(Vec<u8>, u16, u16)> {
        let link = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let tagged = || link().vlan(etherparse::VlanHeader::Single(Default::default()));
        let (mut four, mut six, mut with_tag) = (Vec::new(), Vec::new(), Vec::new());
        link()
            .ipv4([10, 0, 0, 1], [10, 9, 0, 2], 9)
            .udp(53, 9999)
            .write(&mut four, b"an odd load")
            .expect("fits");
        link().ipv6([1; 16], [2; 16], 7).tcp(80, 4000, 5, 6).write(&mut six, b"hello").expect("fits");
        tagged().ipv4([1, 2, 3, 4], [5, 6, 7, 8], 9).tcp(1, 2, 3, 4).write(&mut with_tag, b"").expect("fits");
        vec![(four, 34, 6), (six, 54, 16), (with_tag, 38, 16)]
    }

    #[test]
    fn a_header_that_nobody_has_looked_at_is_taken_only_if_it_is_understood_exactly() {
        let most = VirtioHeader::MOST_HEADERS;
        let header = |flags, gso_type, gso_size, start, offset| {
            let header = VirtioHeader { flags: 0, gso_type, headers: 54, gso_size, start, offset };
            let mut bytes = header.write();
            bytes[0] = flags;
            bytes
        };
        for right in [
            header(1, 0, 0, 34, 6),
            header(1, 0, 0, 3_000 - 8, 6),
            header(1, TCP4, 1_460, 34, 16),
            header(1, TCP6, 8, most, 16),
        ] {
            for all_kinds in [false, true] {
                let taken = VirtioHeader::judged(&right, 3_000, all_kinds);
                assert_eq!(taken, Some(VirtioHeader::read(&right)), "{right:?}");
            }
        }
        for of_linux in [
            header(1, UDP, 1_460, 34, 6),
            header(1, TCP4 | CONGESTION, 1_460, 34, 16),
            header(1, TCP6 | CONGESTION, 1_460, most, 16),
        ] {
            assert_eq!(VirtioHeader::judged(&of_linux, 3_000, false), None, "{of_linux:?}");
            let taken = VirtioHeader::judged(&of_linux, 3_000, true);
            assert_eq!(taken, Some(VirtioHeader::read(&of_linux)), "{of_linux:?}");
        }
        for wrong in [
            header(0, TCP4, 1_460, 34, 16),
            header(2, 0, 0, 34, 16),
            header(3, 0, 0, 34, 16),
            header(0x81, 0, 0, 34, 16),
            header(1, 0, 1, 34, 16),
            header(1, 2, 1_460, 34, 16),
            header(1, 3, 1_460, 34, 6),
            header(1, UDP, 1_460, 34, 16),
            header(1, UDP, 1_460, most + 1, 6),
            header(1, UDP | CONGESTION, 1_460, 34, 6),
            header(1, CONGESTION, 0, 34, 6),
            header(1, TCP4 | CONGESTION, 1_460, 34, 6),
            header(1, TCP4, 1_460, 34, 6),
            header(1, TCP4, 1_460, most + 1, 16),
            header(1, 0, 0, 3_000 - 7, 6),
            header(1, 0, 0, u16::MAX, u16::MAX),
        ] {
            for all_kinds in [false, true] {
                assert_eq!(VirtioHeader::judged(&wrong, 3_000, all_kinds), None, "{wrong:?}");
            }
        }
        // Headers that the frame does not have.
        assert_eq!(VirtioHeader::judged(&header(1, 0, 0, 34, 6), 53, true), None);
        assert!(VirtioHeader::judged(&header(1, 0, 0, 34, 6), 54, true).is_some());
    }

    #[test]
    fn finishes_what_another_builder_made() {
        for (whole, start, offset) in frames() {
            let (mut frame, virtio) = unfinished(whole.clone(), start, offset);
            assert_ne!(frame, whole);
            assert!(virtio.complete(&mut frame));
            assert_eq!(frame, whole);
            assert!(virtio.without_checksum().is_none());
        }
    }

    #[test]
    fn addresses_that_changed_are_summed_anew() {
        for (whole, start, offset) in frames() {
            let (mut frame, virtio) = unfinished(whole, start, offset);
            let ip = usize::from(start) - if frame[12] == 0x86 { 40 } else { 20 };
            frame[ip + 19] ^= 0x5a;
            assert!(virtio.restart(&mut frame) && virtio.complete(&mut frame));
            let sliced = etherparse::SlicedPacket::from_ethernet(&frame).expect("whole");
            let payload = sliced.ip_payload().expect("IP").payload;
            let (Some(net), Some(transport)) = (sliced.net, sliced.transport) else { panic!("no transport") };
            match (net, transport) {
                (etherparse::NetSlice::Ipv4(ip), etherparse::TransportSlice::Tcp(tcp)) => {
                    let right = tcp.to_header().calc_checksum_ipv4(&ip.header().to_header(), tcp.payload());
                    assert_eq!(Ok(tcp.checksum()), right);
                }
                (etherparse::NetSlice::Ipv4(ip), etherparse::TransportSlice::Udp(udp)) => {
                    let right = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), &payload[8..]);
                    assert_eq!(Ok(udp.checksum()), right);
                }
                (etherparse::NetSlice::Ipv6(ip), etherparse::TransportSlice::Tcp(tcp)) => {
                    let right = tcp.to_header().calc_checksum_ipv6(&ip.header().to_header(), tcp.payload());
                    assert_eq!(Ok(tcp.checksum()), right);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn sctp_has_a_crc_and_not_a_sum() {
        // The CRC is made bit by bit, as it is defined.
        let mut frame = Vec::new();
        let load = [0x80u8, 0x44, 0x00, 0x50, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0, 3, 0, 7, 9, 9, 9, 0];
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 0, 0, 1], [10, 9, 0, 2], 9)
            .write(&mut frame, etherparse::IpNumber::SCTP, &load)
            .expect("fits");
        let virtio = VirtioHeader { flags: NEEDS_CHECKSUM, start: 34, offset: 8, ..VirtioHeader::NONE };
        assert!(virtio.complete(&mut frame));
        let mut crc = u32::MAX;
        for byte in load[..8].iter().chain(&[0; 4]).chain(&load[12..]) {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        assert_eq!(frame[42..46], (!crc).to_le_bytes());
        assert_eq!((&frame[34..42], &frame[46..]), (&load[..8], &load[12..]));
        frame.truncate(45);
        assert!(!virtio.complete(&mut frame), "no room for it");
    }

    #[test]
    fn an_ip_header_that_leads_elsewhere_has_no_pseudo_header_for_it() {
        for (mut frame, start, offset) in frames() {
            for elsewhere in [start - 8, start - 4, start + 4, start + 20] {
                let virtio =
                    VirtioHeader { flags: NEEDS_CHECKSUM, start: elsewhere, offset, ..VirtioHeader::NONE };
                assert!(!virtio.restart(&mut frame), "{start}: {elsewhere}");
            }
        }
    }

    #[test]
    fn an_unfinished_checksum_shows_by_itself() {
        for (whole, start, offset) in frames() {
            assert!(VirtioHeader::unmarked(&whole).is_none());
            let (mut frame, virtio) = unfinished(whole, start, offset);
            assert_eq!(VirtioHeader::unmarked(&frame), virtio);
            for length in 0..frame.len() {
                assert!(VirtioHeader::unmarked(&frame[..length]).is_none(), "a piece of it, {length}");
            }
            frame.push(0);
            assert!(VirtioHeader::unmarked(&frame).is_none(), "padded");
        }
        let (mut fragment, _) = unfinished(frames()[0].0.clone(), 34, 6);
        fragment[20] |= 0x20;
        assert!(VirtioHeader::unmarked(&fragment).is_none());
    }

    /// What lies behind a fragment's header may be data, and a packet that goes round by others is summed
    /// with an address that is not in its header.
    #[test]
    fn behind_headers_of_fragments_and_routes_nothing_is_finished() {
        let (plain, _) = unfinished(frames()[1].0.clone(), 54, 16);
        let sctp = [&plain[..20], &[132], &plain[21..54], &[0; 25]].concat();
        for (frame, field, protocol) in [(plain, 16, 6), (sctp, 8, 132)] {
            for (kind, finished) in [(0, true), (60, true), (43, false), (44, false)] {
                let extension = [protocol, 0, 0, 0, 0, 0, 0, 0];
                let mut extended = [&frame[..54], &extension, &frame[54..]].concat();
                (extended[19], extended[20]) = (extended[19] + 8, kind);
                let virtio =
                    VirtioHeader { flags: NEEDS_CHECKSUM, start: 62, offset: field, ..VirtioHeader::NONE };
                assert_eq!(
                    VirtioHeader::unmarked(&extended),
                    if finished { virtio } else { VirtioHeader::NONE },
                    "{kind}"
                );
            }
        }
    }

    #[test]
    fn pieces_have_their_headers_again() {
        let mut frame = vec![0; 54 + 12 + 4_000];
        frame[34 + 12] = 8 << 4;
        let tcp = VirtioHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: TCP4 | CONGESTION,
            gso_size: 1_448,
            start: 34,
            offset: 16,
            ..VirtioHeader::NONE
        };
        assert_eq!(tcp.wire_bytes(&frame), 4_000 + 3 * 66);
        assert_eq!(tcp.wire_bytes(&frame[..66 + 1_448]), 66 + 1_448);
        assert_eq!(tcp.wire_bytes(&frame[..40]), 40);
        let udp = VirtioHeader { gso_type: UDP, gso_size: 1_000, ..tcp };
        assert_eq!(udp.wire_bytes(&frame[..42 + 2_001]), 2_001 + 3 * 42);
        assert_eq!(VirtioHeader::NONE.wire_bytes(&frame), 4_066);
    }

    #[test]
    fn a_spoilt_segment_has_another_sum_to_begin_with() {
        let mut frame = vec![0; 100];
        let tcp = VirtioHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: TCP4,
            gso_size: 10,
            start: 34,
            offset: 16,
            ..VirtioHeader::NONE
        };
        assert!(tcp.spoil(&mut frame));
        assert_eq!(frame.iter().position(|&byte| byte != 0), Some(50));
        assert!(!VirtioHeader { gso_type: 0, ..tcp }.spoil(&mut frame));
        assert!(!tcp.spoil(&mut frame[..50]));
    }

    #[test]
    fn headers_that_are_not_there_are_refused() {
        let virtio = VirtioHeader { flags: NEEDS_CHECKSUM, start: 34, offset: 16, ..VirtioHeader::NONE };
        for length in 0..52 {
            let mut frame = vec![0x45; length];
            assert!(!virtio.complete(&mut frame), "{length}");
            assert!(!virtio.restart(&mut frame), "{length}");
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let bytes = [1, 4, 66, 0, 100, 5, 34, 0, 16, 0];
        let virtio = VirtioHeader::read(&bytes);
        assert_eq!(virtio.write(), bytes);
        assert!(virtio.segments() && !virtio.is_none());
        assert_eq!(virtio.moved(8).map(|moved| (moved.start, moved.headers)), Some((42, 74)));
        assert_eq!(virtio.moved(-35), None);
        let open = VirtioHeader::of_open(38, 16);
        assert_eq!(open.moved(-4), Some(VirtioHeader::of_open(34, 16)), "no length of headers is told");
        assert!(VirtioHeader::read(&[2, 0, 1, 1, 1, 1, 1, 1, 1, 1]).is_none(), "a finished packet");
    }
}
