//! Fields of headers that few rules compare: their names, their widths, and which packets have them.
//!
//! For an analysis they are free: whatever the other fields say, each may hold any value.

use crate::field::PacketField;

/// Which packets have a field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Those of this version of IP.
    Version(u128),
    /// Those of these protocols that are no later fragment.
    Protocols(&'static [u128]),
    /// The same of these protocols, of ICMP with IPv4, and of ICMPv6 with IPv6.
    Messages(&'static [u128]),
    /// Those of IPv6 with a mobility header that are no later fragment.
    Mobility,
    /// Those that have the bit of [`PacketField::ExtensionHeaders`].
    Extension(u128),
}

/// The first of these fields, and how many others there are.
pub(crate) const FIRST: usize = PacketField::Identification as usize;

/// The fields in their order: name, width in bits, and who has it.
pub(crate) const HEADER_FIELDS: [(PacketField, &str, u8, Carried); PacketField::ALL.len() - FIRST] = [
    (PacketField::Identification, "ip_id", 16, Carried::Version(4)),
    (PacketField::HeaderLength, "ip_header_length", 4, Carried::Version(4)),
    (PacketField::HeaderChecksum, "ip_checksum", 16, Carried::Version(4)),
    (PacketField::FlowLabel, "flow_label", 20, Carried::Version(6)),
    (PacketField::NextHeader, "next_header", 8, Carried::Version(6)),
    (PacketField::Sequence, "sequence", 32, Carried::Protocols(&[6, 50, 51])),
    (PacketField::Acknowledgment, "acknowledgment", 32, Carried::Protocols(&[6])),
    (PacketField::DataOffset, "data_offset", 4, Carried::Protocols(&[6])),
    (PacketField::Window, "window", 16, Carried::Protocols(&[6])),
    (PacketField::UrgentPointer, "urgent_pointer", 16, Carried::Protocols(&[6])),
    (PacketField::Checksum, "checksum", 16, Carried::Messages(&[2, 6, 17, 136])),
    (PacketField::DatagramLength, "datagram_length", 16, Carried::Protocols(&[17])),
    (PacketField::SctpChecksum, "sctp_checksum", 32, Carried::Protocols(&[132])),
    (PacketField::VerificationTag, "verification_tag", 32, Carried::Protocols(&[132])),
    (PacketField::DccpType, "dccp_type", 4, Carried::Protocols(&[33])),
    (PacketField::SecurityIndex, "spi", 32, Carried::Protocols(&[50, 51])),
    (PacketField::AuthenticationLength, "ah_length", 8, Carried::Protocols(&[51])),
    (PacketField::AuthenticationReserved, "ah_reserved", 16, Carried::Protocols(&[51])),
    (PacketField::CompressedNextHeader, "ipcomp_next_header", 8, Carried::Protocols(&[108])),
    (PacketField::CompressionFlags, "ipcomp_flags", 8, Carried::Protocols(&[108])),
    (PacketField::CompressionIndex, "cpi", 16, Carried::Protocols(&[108])),
    (PacketField::IcmpRest, "icmp_rest", 32, Carried::Messages(&[])),
    (PacketField::IgmpType, "igmp_type", 8, Carried::Protocols(&[2])),
    (PacketField::IgmpResponseTime, "igmp_response_time", 8, Carried::Protocols(&[2])),
    (PacketField::MobilityNextHeader, "mobility_next_header", 8, Carried::Mobility),
    (PacketField::MobilityLength, "mobility_length", 8, Carried::Mobility),
    (PacketField::MobilityType, "mobility_type", 8, Carried::Mobility),
    (PacketField::MobilityReserved, "mobility_reserved", 8, Carried::Mobility),
    (PacketField::MobilityChecksum, "mobility_checksum", 16, Carried::Mobility),
    (PacketField::ExtensionHeaders, "extension_headers", 3, Carried::Version(6)),
    (PacketField::HopByHopNextHeader, "hop_by_hop_next_header", 8, Carried::Extension(1)),
    (PacketField::HopByHopLength, "hop_by_hop_length", 8, Carried::Extension(1)),
    (PacketField::DestinationNextHeader, "destination_next_header", 8, Carried::Extension(2)),
    (PacketField::DestinationLength, "destination_length", 8, Carried::Extension(2)),
    (PacketField::RoutingNextHeader, "routing_next_header", 8, Carried::Extension(4)),
    (PacketField::RoutingLength, "routing_length", 8, Carried::Extension(4)),
    (PacketField::RoutingType, "routing_type", 8, Carried::Extension(4)),
    (PacketField::SegmentsLeft, "segments_left", 8, Carried::Extension(4)),
];

fn row(field: PacketField) -> Option<&'static (PacketField, &'static str, u8, Carried)> {
    (field as usize).checked_sub(FIRST).and_then(|index| HEADER_FIELDS.get(index))
}

/// The name of one of these fields; empty for others.
pub(crate) fn name(field: PacketField) -> &'static str {
    row(field).map_or("", |(_, name, ..)| name)
}

/// How many bits one of these fields has; 0 for others.
pub(crate) fn width(field: PacketField) -> u8 {
    row(field).map_or(0, |(_, _, width, _)| *width)
}

/// Who has one of these fields; `None` for others.
pub(crate) fn carried(field: PacketField) -> Option<Carried> {
    row(field).map(|(.., carried)| *carried)
}

/// The field of this name.
pub(crate) fn named(name: &str) -> Option<PacketField> {
    HEADER_FIELDS.iter().find(|(_, own, ..)| *own == name).map(|(field, ..)| *field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_its_own_row_and_name() {
        for (index, (field, name, width, _)) in HEADER_FIELDS.iter().enumerate() {
            assert_eq!(*field as usize, FIRST + index);
            assert_eq!(PacketField::ALL[FIRST + index], *field);
            assert_eq!((field.name(), field.width()), (*name, *width));
            assert_eq!(named(name), Some(*field));
            assert!((1..=32).contains(width));
        }
        let mut names = PacketField::ALL.map(PacketField::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PacketField::ALL.len());
    }
}
