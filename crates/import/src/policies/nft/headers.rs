//! Fields of headers that few rules ask for: which field of a policy each of nftables is, how its values are
//! written, and what nftables asks for besides by itself.

use super::fields::{Context, Left, Reads};
use crate::address::{AddressFamily, host_mask};
use crate::nft::operands::Refusal;
use crate::ruleset::Part;
use crate::text::shown;
use policy::{HookPoint, PacketField, RuleCondition, Values};

/// A field of a header, as rules ask for it.
pub(super) struct HeaderField {
    pub(super) field: PacketField,
    pub(super) reads: Reads,
    /// The types of ICMP that have it; all of them, if none is named.
    pub(super) types: &'static [u128],
}

/// The names of packets of DCCP (RFC 4340, 5.1).
const DCCP_TYPES: &[(&str, u128)] = &[
    ("request", 0),
    ("response", 1),
    ("data", 2),
    ("ack", 3),
    ("dataack", 4),
    ("closereq", 5),
    ("close", 6),
    ("reset", 7),
    ("sync", 8),
    ("syncack", 9),
];

/// The names of messages of IGMP (RFC 2236, RFC 3376).
const IGMP_TYPES: &[(&str, u128)] = &[
    ("membership-query", 0x11),
    ("membership-report-v1", 0x12),
    ("membership-report-v2", 0x16),
    ("leave-group", 0x17),
    ("membership-report-v3", 0x22),
];

/// The names of mobility headers (RFC 6275, 6.1; RFC 5568, 6.2; RFC 5096; RFC 5142).
const MOBILITY_TYPES: &[(&str, u128)] = &[
    ("binding-refresh-request", 0),
    ("home-test-init", 1),
    ("careof-test-init", 2),
    ("home-test", 3),
    ("careof-test", 4),
    ("binding-update", 5),
    ("binding-acknowledgement", 6),
    ("binding-error", 7),
    ("fast-binding-update", 8),
    ("fast-binding-acknowledgement", 9),
    ("fast-binding-advertisement", 10),
    ("experimental-mobility-header", 11),
    ("home-agent-switch-message", 12),
];

const PROTOCOL: Reads = Reads::Column(Part::Protocol, AddressFamily::V4);

fn number(field: PacketField) -> (PacketField, Reads) {
    (field, Reads::Number { width: field.width(), less: 0 })
}

/// A field in the header of IP, or behind it.
pub(super) fn of_payload(header: &str, field: &str) -> Option<HeaderField> {
    use PacketField as Field;
    const ECHO: [&[u128]; 2] = [&[0, 8], &[128, 129]];
    let six = header == "icmpv6";
    // Of the four bytes behind the checksum of ICMP, the first two or the last two.
    let half = |shift: u8| (Field::IcmpRest, Reads::Bits { shift, width: 16 });
    let ((field, reads), types) = match (header, field) {
        ("ip", "id") => (number(Field::Identification), &[][..]),
        ("ip", "hdrlength") => (number(Field::HeaderLength), &[][..]),
        ("ip", "checksum") => (number(Field::HeaderChecksum), &[][..]),
        ("ip6", "flowlabel") => (number(Field::FlowLabel), &[][..]),
        ("ip6", "nexthdr") => ((Field::NextHeader, PROTOCOL), &[][..]),
        ("tcp" | "ah" | "esp", "sequence") => (number(Field::Sequence), &[][..]),
        ("tcp", "ackseq") => (number(Field::Acknowledgment), &[][..]),
        ("tcp", "doff") => (number(Field::DataOffset), &[][..]),
        ("tcp", "window") => (number(Field::Window), &[][..]),
        ("tcp", "urgptr") => (number(Field::UrgentPointer), &[][..]),
        ("tcp" | "udp" | "udplite" | "igmp" | "icmp" | "icmpv6", "checksum") => {
            (number(Field::Checksum), &[][..])
        }
        ("udp", "length") => (number(Field::DatagramLength), &[][..]),
        ("sctp", "checksum") => (number(Field::SctpChecksum), &[][..]),
        ("sctp", "vtag") => (number(Field::VerificationTag), &[][..]),
        ("dccp", "type") => ((Field::DccpType, Reads::Names { names: DCCP_TYPES, width: 4 }), &[][..]),
        ("ah" | "esp", "spi") => (number(Field::SecurityIndex), &[][..]),
        ("ah", "hdrlength") => (number(Field::AuthenticationLength), &[][..]),
        ("ah", "reserved") => (number(Field::AuthenticationReserved), &[][..]),
        ("comp", "nexthdr") => ((Field::CompressedNextHeader, PROTOCOL), &[][..]),
        ("comp", "flags") => (number(Field::CompressionFlags), &[][..]),
        ("comp", "cpi") => (number(Field::CompressionIndex), &[][..]),
        ("igmp", "type") => ((Field::IgmpType, Reads::Names { names: IGMP_TYPES, width: 8 }), &[][..]),
        ("igmp", "mrt") => (number(Field::IgmpResponseTime), &[][..]),
        ("icmp" | "icmpv6", "id") => (half(16), ECHO[usize::from(six)]),
        ("icmp" | "icmpv6", "sequence") => (half(0), ECHO[usize::from(six)]),
        ("icmp", "mtu") => (half(0), &[3][..]),
        ("icmp", "gateway") => (number(Field::IcmpRest), &[5][..]),
        ("icmpv6", "mtu") => (number(Field::IcmpRest), &[2][..]),
        ("icmpv6", "max-delay") => (half(16), &[130][..]),
        _ => return None,
    };
    Some(HeaderField { field, reads, types })
}

/// A field of an extension header of IPv6.
pub(super) fn of_extension(header: &str, field: &str) -> Option<HeaderField> {
    use PacketField as Field;
    let (field, reads) = match (header, field) {
        ("hbh", "nexthdr") => (Field::HopByHopNextHeader, PROTOCOL),
        ("hbh", "hdrlength") => number(Field::HopByHopLength),
        ("dst", "nexthdr") => (Field::DestinationNextHeader, PROTOCOL),
        ("dst", "hdrlength") => number(Field::DestinationLength),
        ("rt", "nexthdr") => (Field::RoutingNextHeader, PROTOCOL),
        ("rt", "hdrlength") => number(Field::RoutingLength),
        ("rt", "type") => number(Field::RoutingType),
        ("rt", "seg-left") => number(Field::SegmentsLeft),
        ("mh", "nexthdr") => (Field::MobilityNextHeader, PROTOCOL),
        ("mh", "hdrlength") => number(Field::MobilityLength),
        ("mh", "type") => (Field::MobilityType, Reads::Names { names: MOBILITY_TYPES, width: 8 }),
        ("mh", "reserved") => number(Field::MobilityReserved),
        ("mh", "checksum") => number(Field::MobilityChecksum),
        _ => return None,
    };
    Some(HeaderField { field, reads, types: &[] })
}

/// The bit of [`PacketField::ExtensionHeaders`] for a header that there may be or not.
pub(super) fn extension_bit(header: &str) -> Option<u128> {
    match header {
        "hbh" => Some(1),
        "dst" => Some(2),
        "rt" => Some(4),
        _ => None,
    }
}

impl HeaderField {
    /// The same as what a comparison looks at.
    pub(super) fn left(self) -> Left {
        let mut left = Left::of(self.field, self.reads);
        if !self.types.is_empty() {
            let types = self.types.iter().map(|number| Values::exact(*number)).collect();
            left.needs.push(RuleCondition::Holds(PacketField::IcmpType, types));
        }
        left
    }
}

/// That there is no field for it.
pub(super) fn no_field(header: &str, field: &str) -> Refusal {
    let (header, field) = (shown(header), shown(field));
    let what = match header.is_empty() {
        // As in `@nh,0,8`.
        true => "bytes are asked for by their place in the packet, for which there is no field".to_owned(),
        false => format!("`{header} {field}` is something for which there is no field"),
    };
    Refusal { what, advice: None }
}

/// Refuses a checksum that is another one where the rule asks than where the packet comes in or goes out.
pub(super) fn known_where_asked(
    found: &HeaderField,
    header: &str,
    field: &str,
    context: Context<'_>,
) -> Result<(), Refusal> {
    let may_differ: &[HookPoint] = match found.field {
        // Linux writes it anew with the time to live.
        PacketField::HeaderChecksum => &[HookPoint::Forward, HookPoint::FromGateway, HookPoint::Out],
        // Of the machine's own packets the network device may write it.
        PacketField::Checksum | PacketField::SctpChecksum | PacketField::MobilityChecksum => {
            &[HookPoint::FromGateway, HookPoint::Out]
        }
        _ => return Ok(()),
    };
    if context.reached.points.iter().any(|point| may_differ.contains(point)) {
        let what =
            format!("`{} {}` is not yet, or no more, what the packet has", shown(header), shown(field));
        return Err(Refusal { what, advice: Some("ask for it in a chain at prerouting or input") });
    }
    Ok(())
}

/// The values of a field of `whole` bits of which `width` bits, above the lowest `shift`, are a number from
/// `low` to `high`.
pub(super) fn bits_of(whole: u8, shift: u8, width: u8, low: u128, high: u128) -> Vec<Values> {
    let below = host_mask(shift, 0);
    if shift + width == whole {
        return vec![Values::Range { low: low << shift, high: high << shift | below }];
    }
    // As few masks as the range has prefixes.
    let (mut next, mut all) = (Some(low), Vec::new());
    while let Some(first) = next.filter(|next| *next <= high) {
        let fits = |free: &u8| {
            let host = host_mask(*free, 0);
            first & host == 0 && first | host <= high
        };
        let free = (0..=width).rev().find(fits).unwrap_or(0);
        let (host, own) = (host_mask(free, 0), host_mask(width, 0));
        all.push(Values::Masked { value: first << shift, mask: (own & !host) << shift });
        next = (first | host).checked_add(1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_within_a_field_are_compared_as_numbers() {
        let mut compared = 0;
        for (shift, width, above) in [(0, 5, 0), (0, 5, 2), (3, 4, 0), (2, 4, 1), (7, 1, 1), (1, 5, 3)] {
            let (whole, most) = (shift + width + above, host_mask(width, 0));
            for (low, high) in (0..=most).flat_map(|low| (low..=most).map(move |high| (low, high))) {
                let values = bits_of(whole, shift, width, low, high);
                assert!(values.len() <= 2 * usize::from(width));
                for value in 0..=host_mask(whole, 0) {
                    let holds = values.iter().any(|values| values.hold(value));
                    let number = value >> shift & most;
                    assert_eq!(holds, (low..=high).contains(&number), "{value} of {values:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 100_000, "{compared}");
    }
}
