//! The fields of a packet that rules compare, sets of their values, and one packet as its fields.

use crate::header_fields::{self, Carried};
use serde::{Deserialize, Serialize};

/// What stands before the bits of an IPv4 address where it is one of IPv6: ::ffff:0:0/96 (RFC 4291, 2.5.5.2).
pub const MAPPED: u128 = 0xffff_0000_0000;

/// A field of a packet, or what the gateway knows of it.
///
/// Addresses are those of IPv6; an IPv4 address stands behind [`MAPPED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PacketField {
    /// 4 or 6: the version of IP.
    Family,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The protocol behind IP and its extension headers.
    Protocol,
    /// The source port of TCP, UDP, DCCP, SCTP or UDP-Lite.
    SourcePort,
    /// The destination port of these.
    DestinationPort,
    /// The type of ICMP or ICMPv6.
    IcmpType,
    /// The code of ICMP or ICMPv6.
    IcmpCode,
    /// The flags of TCP, FIN lowest (RFC 9293, 3.1).
    TcpFlags,
    /// 1 for a fragment that is not the first of its packet.
    LaterFragment,
    /// The port of the gateway by which the packet came in.
    InPort,
    /// The port of the gateway by which it leaves.
    OutPort,
    /// The differentiated services code point (RFC 2474).
    Dscp,
    /// The time to live, or hop limit.
    TimeToLive,
    /// The length of the packet with its IP header, in bytes.
    Length,
    /// A [`State`] as its number; where connections are remembered by direction, that on the way in.
    State,
    /// The source address of Ethernet.
    SourceMac,
    /// The [`State`] on the way out, where connections are remembered by direction.
    OutState,
    /// Explicit congestion notification, the two bits below the code point (RFC 3168, 5).
    Ecn,
    /// The identification of IPv4 (RFC 791, 3.1).
    Identification,
    /// The length of the header of IPv4, in words of 32 bits.
    HeaderLength,
    /// The checksum of the header of IPv4 where a packet comes in.
    HeaderChecksum,
    /// The flow label of IPv6 (RFC 6437).
    FlowLabel,
    /// The number behind which IPv6 says what follows: an extension header, or the protocol.
    NextHeader,
    /// The sequence number of TCP, ESP or AH.
    Sequence,
    /// The acknowledgment number of TCP (RFC 9293, 3.1).
    Acknowledgment,
    /// The length of the header of TCP, in words of 32 bits.
    DataOffset,
    /// The window of TCP, as it stands there.
    Window,
    /// The urgent pointer of TCP.
    UrgentPointer,
    /// The checksum of TCP, UDP, UDP-Lite, IGMP, ICMP or ICMPv6.
    Checksum,
    /// The length that UDP says, in bytes with its header (RFC 768).
    DatagramLength,
    /// The checksum of SCTP (RFC 9260, 3.1).
    SctpChecksum,
    /// The verification tag of SCTP.
    VerificationTag,
    /// The type of a packet of DCCP (RFC 4340, 5.1).
    DccpType,
    /// The security parameters index of ESP or AH (RFC 4303, RFC 4302).
    SecurityIndex,
    /// The length of AH, in words of 32 bits less two.
    AuthenticationLength,
    /// What AH reserves.
    AuthenticationReserved,
    /// The protocol that IPComp compresses (RFC 3173, 3.3).
    CompressedNextHeader,
    /// The flags of IPComp.
    CompressionFlags,
    /// The compression parameter index of IPComp.
    CompressionIndex,
    /// The four bytes of ICMP and ICMPv6 behind the checksum: an identifier and a number, an MTU, an address.
    IcmpRest,
    /// The type of IGMP (RFC 2236, 2).
    IgmpType,
    /// The largest response time of IGMP, in tenths of a second.
    IgmpResponseTime,
    /// What follows a mobility header (RFC 6275, 6.1).
    MobilityNextHeader,
    /// The length of a mobility header, in units of 8 bytes less one.
    MobilityLength,
    /// The type of a mobility header.
    MobilityType,
    /// What a mobility header reserves.
    MobilityReserved,
    /// The checksum of a mobility header.
    MobilityChecksum,
    /// Which extension headers of IPv6 there are: 1 hop-by-hop options, 2 destination options, 4 routing.
    ExtensionHeaders,
    /// What follows the hop-by-hop options (RFC 8200, 4.3).
    HopByHopNextHeader,
    /// Their length, in units of 8 bytes less one.
    HopByHopLength,
    /// What follows the first destination options (RFC 8200, 4.6).
    DestinationNextHeader,
    /// Their length, in units of 8 bytes less one.
    DestinationLength,
    /// What follows the first routing header (RFC 8200, 4.4).
    RoutingNextHeader,
    /// Its length, in units of 8 bytes less one.
    RoutingLength,
    /// Its type.
    RoutingType,
    /// How many nodes it still names before the last one.
    SegmentsLeft,
}

impl PacketField {
    /// All fields.
    pub const ALL: [PacketField; 57] = [
        PacketField::Family,
        PacketField::Source,
        PacketField::Destination,
        PacketField::Protocol,
        PacketField::SourcePort,
        PacketField::DestinationPort,
        PacketField::IcmpType,
        PacketField::IcmpCode,
        PacketField::TcpFlags,
        PacketField::LaterFragment,
        PacketField::InPort,
        PacketField::OutPort,
        PacketField::Dscp,
        PacketField::TimeToLive,
        PacketField::Length,
        PacketField::State,
        PacketField::SourceMac,
        PacketField::OutState,
        PacketField::Ecn,
        PacketField::Identification,
        PacketField::HeaderLength,
        PacketField::HeaderChecksum,
        PacketField::FlowLabel,
        PacketField::NextHeader,
        PacketField::Sequence,
        PacketField::Acknowledgment,
        PacketField::DataOffset,
        PacketField::Window,
        PacketField::UrgentPointer,
        PacketField::Checksum,
        PacketField::DatagramLength,
        PacketField::SctpChecksum,
        PacketField::VerificationTag,
        PacketField::DccpType,
        PacketField::SecurityIndex,
        PacketField::AuthenticationLength,
        PacketField::AuthenticationReserved,
        PacketField::CompressedNextHeader,
        PacketField::CompressionFlags,
        PacketField::CompressionIndex,
        PacketField::IcmpRest,
        PacketField::IgmpType,
        PacketField::IgmpResponseTime,
        PacketField::MobilityNextHeader,
        PacketField::MobilityLength,
        PacketField::MobilityType,
        PacketField::MobilityReserved,
        PacketField::MobilityChecksum,
        PacketField::ExtensionHeaders,
        PacketField::HopByHopNextHeader,
        PacketField::HopByHopLength,
        PacketField::DestinationNextHeader,
        PacketField::DestinationLength,
        PacketField::RoutingNextHeader,
        PacketField::RoutingLength,
        PacketField::RoutingType,
        PacketField::SegmentsLeft,
    ];

    /// How many bits a value has.
    pub fn width(self) -> u8 {
        match self {
            PacketField::Source | PacketField::Destination => 128,
            PacketField::SourceMac => 48,
            PacketField::SourcePort
            | PacketField::DestinationPort
            | PacketField::InPort
            | PacketField::OutPort
            | PacketField::Length => 16,
            PacketField::Protocol
            | PacketField::IcmpType
            | PacketField::IcmpCode
            | PacketField::TcpFlags
            | PacketField::TimeToLive => 8,
            PacketField::Dscp => 6,
            PacketField::Family | PacketField::State | PacketField::OutState => 3,
            PacketField::Ecn => 2,
            PacketField::LaterFragment => 1,
            _ => header_fields::width(self),
        }
    }

    /// The name that commands and programs use.
    pub fn name(self) -> &'static str {
        match self {
            PacketField::Family => "family",
            PacketField::Source => "src",
            PacketField::Destination => "dst",
            PacketField::Protocol => "proto",
            PacketField::SourcePort => "sport",
            PacketField::DestinationPort => "dport",
            PacketField::IcmpType => "icmp_type",
            PacketField::IcmpCode => "icmp_code",
            PacketField::TcpFlags => "tcp_flags",
            PacketField::LaterFragment => "fragment",
            PacketField::InPort => "in_port",
            PacketField::OutPort => "out_port",
            PacketField::Dscp => "dscp",
            PacketField::TimeToLive => "ttl",
            PacketField::Length => "length",
            PacketField::State => "state",
            PacketField::SourceMac => "src_mac",
            PacketField::OutState => "out_state",
            PacketField::Ecn => "ecn",
            _ => header_fields::name(self),
        }
    }

    /// Whether it stands in a header behind IP that a later fragment has not.
    pub fn is_behind_ip(self) -> bool {
        match self {
            PacketField::SourcePort
            | PacketField::DestinationPort
            | PacketField::IcmpType
            | PacketField::IcmpCode
            | PacketField::TcpFlags => true,
            _ => matches!(header_fields::carried(self), Some(Carried::Protocols(_) | Carried::Messages(_))),
        }
    }

    /// Whether it stands in the header of TCP or another one that not every packet has, or in that of one
    /// version of IP.
    pub fn is_of_some_packets(self) -> bool {
        self.is_behind_ip() || header_fields::carried(self).is_some()
    }

    /// The largest value.
    pub fn most(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }
}

/// What the gateway knows of the connection of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It belongs to none and could begin one.
    New = 0,
    /// It belongs to one that was let in.
    Established = 1,
    /// It reports an error about one that was let in.
    Related = 2,
    /// It belongs to none and cannot begin one.
    Invalid = 3,
    /// Connections are not looked at for it.
    Untracked = 4,
}

impl State {
    /// All states.
    pub const ALL: [State; 5] =
        [State::New, State::Established, State::Related, State::Invalid, State::Untracked];

    /// The name that Linux, commands and programs use.
    pub fn name(self) -> &'static str {
        match self {
            State::New => "new",
            State::Established => "established",
            State::Related => "related",
            State::Invalid => "invalid",
            State::Untracked => "untracked",
        }
    }
}

/// One run of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Values {
    /// From `low` to `high`, both of them included.
    Range {
        /// The smallest.
        low: u128,
        /// The largest.
        high: u128,
    },
    /// The bits of `mask` are those of `value`, which has no other bits.
    Masked {
        /// The bits.
        value: u128,
        /// Which bits are compared.
        mask: u128,
    },
}

impl Values {
    /// One value.
    pub fn exact(value: u128) -> Values {
        Values::Range { low: value, high: value }
    }

    /// Whether the value is one of these.
    pub fn hold(&self, value: u128) -> bool {
        match *self {
            Values::Range { low, high } => (low..=high).contains(&value),
            Values::Masked { value: bits, mask } => value & mask == bits,
        }
    }
}

/// One packet as its fields. A field that it has not is absent, such as the ports of a later fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packet {
    values: [Option<u128>; header_fields::FIRST],
    /// Those of [`header_fields::HEADER_FIELDS`] that it has, in their order.
    of_headers: Vec<(PacketField, u128)>,
}

impl Packet {
    /// The value of a field, or `None` where the packet has no such field.
    pub fn get(&self, field: PacketField) -> Option<u128> {
        match self.values.get(field as usize) {
            Some(value) => *value,
            None => self.of_headers.iter().find(|(own, _)| *own == field).map(|(_, value)| *value),
        }
    }

    /// The same packet with this value, or without this field.
    #[must_use]
    pub fn with(mut self, field: PacketField, value: Option<u128>) -> Packet {
        match self.values.get_mut(field as usize) {
            Some(own) => *own = value,
            None => {
                self.of_headers.retain(|(own, _)| *own != field);
                self.of_headers.extend(value.map(|value| (field, value)));
                self.of_headers.sort_unstable();
            }
        }
        self
    }
}
