//! Packets of all kinds: with ports and without, whole, first pieces and later ones, whose payload looks like
//! a header.

use super::ALL_PORTS;
use super::random::Random;
use import::address::AddressFamily;
use policy::{PacketField, Path, Policy, RuleAction, evaluate};

/// The type of frames with IPv6 packets.
pub(crate) const V6: &[u8] = &[0x86, 0xdd];

/// Which piece of a packet a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Whole,
    First,
    /// It begins so many bytes, eight times this, behind the packet's start.
    Later(u16),
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) family: AddressFamily,
    pub(crate) src: u128,
    pub(crate) dst: u128,
    pub(crate) proto: u8,
    pub(crate) piece: Piece,
    /// What stands behind the header of IP: that of TCP, UDP and so on, or anything in its place.
    pub(crate) rest: [u8; 24],
    /// So many bytes of it are there.
    pub(crate) there: u8,
    /// The time to live, or hop limit.
    pub(crate) hops: u8,
    /// The differentiated services code point.
    pub(crate) code_point: u8,
    /// Explicit congestion notification.
    pub(crate) congestion: u8,
    /// The numbers of the extension headers of IPv6 before a fragment header, each of 8 bytes: 0, 43 or 60.
    pub(crate) extensions: Vec<u8>,
}

pub(crate) const PORTS: [u16; 8] = [0, 22, 53, 80, 1023, 1024, 2048, 65535];
pub(crate) const SOURCES: [u32; 6] =
    [0x0a00_0001, 0x0a00_0002, 0x0aff_ff01, 0xac10_0001, 0x0b00_0007, 0xc000_0207];
pub(crate) const TARGETS: [u32; 4] = [0xc000_0201, 0x0a01_0000 + 9, 0x0a02_0003, 0x0808_0808];
pub(crate) const FLAGS: [u8; 8] = [0, 0x02, 0x10, 0x12, 0x04, 0x14, 0x3f, 0xff];
const PROTOCOLS: [u8; 14] = [6, 6, 6, 6, 17, 17, 17, 1, 58, 132, 33, 136, 47, 89];

/// An address of the family that has the bits of an IPv4 address at its end.
pub(crate) fn address(family: AddressFamily, bits: u32) -> u128 {
    match family {
        AddressFamily::V4 => bits.into(),
        AddressFamily::V6 => 0x2001_0db8_0000_0000_0000_0000_0000_0000 | u128::from(bits),
    }
}

impl Packet {
    pub(crate) fn made(random: &mut Random, family: AddressFamily) -> Packet {
        let (from, to) = (random.one(&PORTS).to_be_bytes(), random.one(&PORTS).to_be_bytes());
        let proto = random.one(&PROTOCOLS);
        let mut rest = [0; 24];
        rest.fill_with(|| random.below(256) as u8);
        rest[..4].copy_from_slice(&[from[0], from[1], to[0], to[1]]);
        if random.once_in(2) {
            rest[13] = random.one(&FLAGS);
        }
        if matches!(proto, 1 | 58) {
            rest[..2].copy_from_slice(&[random.one(&[0, 3, 8, 11, 128, 129]), random.one(&[0, 4])]);
        }
        if proto == 6 {
            // A header without options.
            rest[12] = 0x50;
        }
        let piece = match random.below(4) {
            0 => Piece::First,
            1 => Piece::Later(random.one(&[2, 3, 100])),
            _ => Piece::Whole,
        };
        let (src, dst) = (random.one(&SOURCES), random.one(&TARGETS));
        let (src, dst) = (address(family, src), address(family, dst));
        Packet {
            family,
            src,
            dst,
            proto,
            piece,
            rest,
            there: 24,
            hops: 64,
            code_point: 0,
            congestion: 0,
            extensions: Vec::new(),
        }
    }

    /// The same packet, and nothing of its transport header that a rule could ask for.
    pub(crate) fn cut(self, random: &mut Random) -> Packet {
        let least = if matches!(self.proto, 1 | 58) { 0 } else { 1 };
        Packet { there: random.below(least + 1) as u8, ..self }
    }

    pub(crate) fn is_later(&self) -> bool {
        matches!(self.piece, Piece::Later(_))
    }

    /// The source as its bytes, those of IPv4 at the end.
    pub(crate) fn source(&self) -> [u8; 16] {
        self.src.to_be_bytes()
    }

    /// Its fields, where it comes in by the first port and leaves by the second.
    pub(crate) fn fields(&self) -> policy::Packet {
        let four = self.family == AddressFamily::V4;
        let mapped = |bits: u128| if four { 0xffff_0000_0000 | bits } else { bits };
        let (whole, icmp) = (!self.is_later() && self.there == 24, if four { 1 } else { 58 });
        let of = |there: bool, name: &str| (whole && there).then(|| self.column(name, ALL_PORTS));
        let header = match (four, self.piece) {
            (true, _) => 20,
            (false, Piece::Whole) => 40 + 8 * self.extensions.len() as u128,
            (false, _) => 48 + 8 * self.extensions.len() as u128,
        };
        let has_ports = ALL_PORTS.contains(&self.proto);
        let fields = [
            (PacketField::Family, Some(if four { 4 } else { 6 })),
            (PacketField::Source, Some(mapped(self.src))),
            (PacketField::Destination, Some(mapped(self.dst))),
            (PacketField::Protocol, Some(self.proto.into())),
            (PacketField::SourcePort, of(has_ports, "sport")),
            (PacketField::DestinationPort, of(has_ports, "dport")),
            (PacketField::IcmpType, of(self.proto == icmp, "icmp_type")),
            (PacketField::IcmpCode, of(self.proto == icmp, "icmp_code")),
            (PacketField::TcpFlags, of(self.proto == 6, "tcp_flags")),
            (PacketField::LaterFragment, Some(self.is_later().into())),
            (PacketField::InPort, Some(1)),
            (PacketField::OutPort, Some(2)),
            (PacketField::Dscp, Some(self.code_point.into())),
            (PacketField::Ecn, Some(self.congestion.into())),
            (PacketField::TimeToLive, Some(self.hops.into())),
            (PacketField::Length, Some(u128::from(self.there) + header)),
            (PacketField::SourceMac, Some(0x0200_0000_0001)),
        ];
        fields.into_iter().fold(policy::Packet::default(), |packet, (field, value)| packet.with(field, value))
    }

    /// Whether a policy lets it pass.
    pub(crate) fn passes(&self, policy: &Policy) -> bool {
        let said = evaluate(policy, Path::Forwarded, &self.fields(), &|_| false).expect("every way ends");
        matches!(said.action, RuleAction::Pass | RuleAction::Keep)
    }

    /// The value of a column, as `docs/import.md` says; ports are those of these protocols. A packet that
    /// ends before its transport header is no question for a table; to rules that say nothing of fragments it
    /// is what a later fragment is.
    pub(crate) fn column(&self, name: &str, with_ports: &[u8]) -> u128 {
        let of = |protocols: &[u8], value: u16| {
            if !self.is_later() && self.there == 24 && protocols.contains(&self.proto) {
                u128::from(value)
            } else {
                0
            }
        };
        let icmp = if self.family == AddressFamily::V4 { 1 } else { 58 };
        let rest = &self.rest;
        match name {
            "src" => self.src,
            "dst" => self.dst,
            "sport" => of(with_ports, u16::from_be_bytes([rest[0], rest[1]])),
            "dport" => of(with_ports, u16::from_be_bytes([rest[2], rest[3]])),
            "proto" => self.proto.into(),
            "icmp_type" => of(&[icmp], rest[0].into()),
            "icmp_code" => of(&[icmp], rest[1].into()),
            "tcp_flags" => of(&[6], rest[13].into()),
            "in_port" => 1,
            "out_port" => 2,
            "fragment" => (self.is_later() || self.there < 24).into(),
            other => panic!("no packet has a column {other}"),
        }
    }

    /// The frame, from one station to another, with a number by which it is known again.
    pub(crate) fn frame(&self, number: u32, to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
        let mut frame = [&to[..], &from].concat();
        let (offset, more) = match self.piece {
            Piece::Whole => (0, 0),
            Piece::First => (0, 1),
            Piece::Later(offset) => (offset, 1),
        };
        match self.family {
            AddressFamily::V4 => {
                let mut header = [0; 20];
                header[0] = 0x45;
                header[2..4].copy_from_slice(&(20 + u16::from(self.there)).to_be_bytes());
                header[4..6].copy_from_slice(&(number as u16).to_be_bytes());
                header[6..8].copy_from_slice(&(offset | more << 13).to_be_bytes());
                header[1] = self.code_point << 2 | self.congestion;
                (header[8], header[9]) = (self.hops, self.proto);
                header[12..16].copy_from_slice(&(self.src as u32).to_be_bytes());
                header[16..20].copy_from_slice(&(self.dst as u32).to_be_bytes());
                let check = !packet::checksum::sum(&header);
                header[10..12].copy_from_slice(&check.to_be_bytes());
                frame.extend([&[8, 0][..], &header].concat());
            }
            AddressFamily::V6 => {
                let piece = self.piece != Piece::Whole;
                let behind = if piece { (44, 8 + self.there) } else { (self.proto, self.there) };
                let length = behind.1 + 8 * self.extensions.len() as u8;
                let next = *self.extensions.first().unwrap_or(&behind.0);
                frame.extend_from_slice(V6);
                let class = u32::from(self.code_point << 2 | self.congestion) << 20;
                frame.extend_from_slice(&(6 << 28 | class | number).to_be_bytes());
                frame.extend_from_slice(&[0, length, next, self.hops]);
                frame.extend_from_slice(&self.src.to_be_bytes());
                frame.extend_from_slice(&self.dst.to_be_bytes());
                for (index, header) in self.extensions.iter().enumerate() {
                    let next = *self.extensions.get(index + 1).unwrap_or(&behind.0);
                    frame.extend_from_slice(&match header {
                        // A routing header of a type that nobody knows, and of segments that are not looked
                        // at.
                        43 => [next, 0, 0xf0 | self.rest[20] & 3, self.rest[21] & 3, 0, 0, 0, 0],
                        // Four bytes of padding as the one option.
                        _ => [next, 0, 1, 4, 0, 0, 0, 0],
                    });
                }
                if piece {
                    let place = (offset << 3 | more).to_be_bytes();
                    frame.extend_from_slice(&[self.proto, 0, place[0], place[1], 0, 0, 0, 7]);
                }
            }
        }
        frame.extend_from_slice(&self.rest[..self.there.into()]);
        frame
    }
}
