//! Packets between a host inside and one outside, as bytes: IPv4 and IPv6, with right checksums.

use packet::checksum::{folded, sum};

/// The protocol numbers that have names here (IANA).
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP6: u8 = 58;

/// An address of either family; that of IPv4 stands in the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) v6: bool,
    pub(crate) bits: u128,
}

/// A packet of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from_inside: bool,
    /// From the end that its sequence lets begin.
    pub(crate) from_client: bool,
    /// What it is in its sequence.
    pub(crate) label: &'static str,
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) proto: u8,
    /// From the transport header on.
    pub(crate) body: Vec<u8>,
    pub(crate) cut: Option<Cut>,
}

/// How a packet is cut into two fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Where the second one begins: a multiple of eight.
    pub(crate) at: usize,
    /// Whether the second one is sent first.
    pub(crate) second_first: bool,
}

/// A datagram of UDP without its checksum.
pub(crate) fn datagram_bytes(ports: (u16, u16), payload: usize) -> Vec<u8> {
    let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    bytes.extend((8 + payload as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.resize(8 + payload, 0x55);
    bytes
}

impl Address {
    fn bytes(self) -> Vec<u8> {
        let bytes = self.bits.to_be_bytes();
        if self.v6 { bytes.to_vec() } else { bytes[12..].to_vec() }
    }
}

impl Packet {
    /// The flags of a segment; 0 of other packets.
    pub(crate) fn flags(&self) -> u8 {
        if self.proto == TCP { self.body[13] } else { 0 }
    }

    /// The sequence number of a segment.
    pub(crate) fn seq(&self) -> u32 {
        self.number(4)
    }

    /// The acknowledgement of a segment.
    pub(crate) fn ack(&self) -> u32 {
        self.number(8)
    }

    fn number(&self, place: usize) -> u32 {
        self.body[place..].iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// How much payload a segment has.
    pub(crate) fn payload(&self) -> u32 {
        self.body.len() as u32 - u32::from(self.body[12] >> 4) * 4
    }

    /// The sequence number behind a segment.
    pub(crate) fn end(&self) -> u32 {
        let flags = u32::from(self.flags() & 1) + u32::from(self.flags() >> 1 & 1);
        self.seq().wrapping_add(self.payload()).wrapping_add(flags)
    }

    /// The same with the checksum of its transport header, which is over the pseudo header too but for ICMP
    /// of IPv4 (RFC 9293, 3.1; RFC 768; RFC 4443, 2.3).
    pub(crate) fn summed(mut self) -> Packet {
        let place = match self.proto {
            ICMP | ICMP6 => 2,
            TCP => 16,
            UDP => 6,
            _ => return self,
        };
        self.body[place..place + 2].fill(0);
        let mut total = u64::from(sum(&self.body));
        if self.proto != ICMP {
            total += u64::from(sum(&self.from.bytes())) + u64::from(sum(&self.to.bytes()));
            total += u64::from(self.proto) + self.body.len() as u64;
        }
        let check = match !folded(total) {
            0 => 0xffff,
            check => check,
        };
        self.body[place..place + 2].copy_from_slice(&check.to_be_bytes());
        self
    }

    /// The packets of IP that it is, in the order of sending, with a number by which they are known again:
    /// the identification of IPv4, the flow label of IPv6.
    pub(crate) fn pieces(&self, number: u16) -> Vec<Vec<u8>> {
        let first = self.first_piece(number);
        let Some(Cut { at, second_first }) = self.cut() else { return vec![first] };
        let second = self.piece(number, at as u16, false, &self.body[at..]);
        if second_first { vec![second, first] } else { vec![first, second] }
    }

    /// The whole packet, or its first fragment.
    fn first_piece(&self, number: u16) -> Vec<u8> {
        let cut = self.cut();
        self.piece(number, 0, cut.is_some(), &self.body[..cut.map_or(self.body.len(), |cut| cut.at)])
    }

    fn cut(&self) -> Option<Cut> {
        self.cut.filter(|cut| cut.at < self.body.len())
    }

    fn piece(&self, number: u16, begin: u16, more: bool, body: &[u8]) -> Vec<u8> {
        let cut = begin != 0 || more;
        let mut bytes = Vec::new();
        if self.from.v6 {
            let extension = if cut { 8 } else { 0 };
            bytes.extend((6 << 28 | u32::from(number)).to_be_bytes());
            bytes.extend((body.len() as u16 + extension).to_be_bytes());
            bytes.extend([if cut { 44 } else { self.proto }, 64]);
            bytes.extend(self.from.bytes());
            bytes.extend(self.to.bytes());
            if cut {
                let place = (begin | u16::from(more)).to_be_bytes();
                bytes.extend([self.proto, 0, place[0], place[1]]);
                bytes.extend(u32::from(number).to_be_bytes());
            }
        } else {
            let place = (begin / 8) | (u16::from(more) << 13);
            bytes.extend([0x45, 0]);
            bytes.extend((body.len() as u16 + 20).to_be_bytes());
            bytes.extend(number.to_be_bytes());
            bytes.extend(place.to_be_bytes());
            bytes.extend([64, self.proto, 0, 0]);
            bytes.extend(self.from.bytes());
            bytes.extend(self.to.bytes());
            let check = !sum(&bytes);
            bytes[10..12].copy_from_slice(&check.to_be_bytes());
        }
        bytes.extend(body);
        bytes
    }

    /// An error of ICMP about this packet, from a router or from the end that it went to.
    pub(crate) fn error(&self, kind: u8, from: Address, label: &'static str) -> Packet {
        let mut quoted = self.first_piece(77);
        quoted.truncate(if self.from.v6 { 100 } else { 60 });
        let mut body = vec![kind, u8::from(kind == 3), 0, 0, 0, 0, 0, 0];
        body.extend(quoted);
        let proto = if self.from.v6 { ICMP6 } else { ICMP };
        let (from_inside, from_client) = (!self.from_inside, !self.from_client);
        Packet { from_inside, from_client, label, from, to: self.from, proto, body, cut: None }.summed()
    }
}

/// A frame of Ethernet with a packet of IP.
pub(crate) fn frame(packet: &[u8], to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&to[..], &from, &kind, packet].concat()
}

/// The number of a packet and the low four bytes of its source, of a frame that came.
pub(crate) fn number_of(frame: &[u8]) -> Option<(u16, [u8; 4])> {
    let at = |place: usize| frame.get(place).copied();
    let bytes = |place: usize| -> Option<[u8; 4]> { frame.get(place..place + 4)?.try_into().ok() };
    match at(14)? >> 4 {
        4 => Some((u16::from_be_bytes([at(18)?, at(19)?]), bytes(26)?)),
        6 => Some((u16::from_be_bytes([at(16)?, at(17)?]), bytes(34)?)),
        _ => None,
    }
}
