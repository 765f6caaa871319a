//! Linux compares fields of headers that few rules ask for as the policy does that was read of its ruleset:
//! of TCP and UDP, of IPsec, of ICMP, and of the extension headers of IPv6.

use super::packets::Packet;
use super::random::Random;
use super::router::Router;
use super::rulesets::load;
use super::{made, rounds, seed};
use import::address::AddressFamily;
use policy::{PacketField, Path, RuleAction, evaluate};

/// What a rule may ask in a table of `inet`.
const MATCHES: [&str; 62] = [
    "tcp sequence < 2147483648",
    "tcp sequence != 0-3221225471",
    "tcp ackseq { 0-1000000000, 3000000000-4000000000 }",
    "tcp doff 5",
    "tcp doff != 5",
    "tcp window > 30000",
    "tcp checksum < 32768",
    "tcp urgptr != { 0-40000, 50000 }",
    "udp length 0-32767",
    "udp checksum >= 16384",
    "udplite checksum < 40000",
    "sctp vtag < 3000000000",
    "sctp checksum != 0-2000000000",
    "dccp type { request, data, ack, closereq, reset }",
    "dccp type != ack",
    "esp spi > 1000000000",
    "esp sequence < 2000000000",
    "ah spi < 2000000000",
    "ah sequence != 0-1000000000",
    "ah hdrlength < 128",
    "ah reserved > 20000",
    "comp nexthdr != tcp",
    "comp flags 0-99",
    "comp cpi > 12345",
    "icmp id < 40000",
    "icmp id != 0-9999",
    "icmp sequence < 30000",
    "icmp sequence { 33-30011, 50000-60001 }",
    "icmp mtu < 40000",
    "icmp gateway < 2000000000",
    "icmp checksum > 20000",
    "icmpv6 id > 30000",
    "icmpv6 sequence != 7-29999",
    "icmpv6 mtu < 3000000000",
    "icmpv6 max-delay < 30000",
    "icmpv6 checksum < 50000",
    "igmp type { membership-query, leave-group }",
    "igmp mrt > 100",
    "igmp checksum < 50000",
    "mh type { binding-update, home-test, 13-200 }",
    "mh nexthdr < 100",
    "mh hdrlength != 0-99",
    "mh reserved > 99",
    "mh checksum < 30000",
    "ip id < 100",
    "ip id != { 3, 7, 40-90 }",
    "ip hdrlength 5",
    "ip hdrlength != 5",
    "ip6 flowlabel < 100",
    "ip6 flowlabel != { 3, 7, 90 }",
    "ip6 nexthdr tcp",
    "ip6 nexthdr != { tcp, udp, 43 }",
    "hbh nexthdr { tcp, udp, 60 }",
    "hbh hdrlength != 0",
    "dst nexthdr != 43",
    "dst hdrlength 0",
    "rt type 241",
    "rt type != 240-241",
    "rt seg-left > 1",
    "rt nexthdr != udp",
    "exthdr hbh exists",
    "exthdr rt missing",
];

const TARGETS: [&str; 4] = ["accept", "drop", "accept", "return"];

/// The number in some bytes of it, the first of them the highest.
fn number(bytes: &[u8]) -> Option<u128> {
    Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
}

/// The fields of a packet with those of its headers, read out of its frame.
fn fields(packet: &Packet, own_number: u32) -> policy::Packet {
    use PacketField as Field;
    let frame = packet.frame(own_number, [0; 6], [0; 6]);
    let ip = &frame[14..];
    let mut fields = packet.fields();
    let mut put = |field: Field, value: Option<u128>| fields = fields.clone().with(field, value);
    if packet.family == AddressFamily::V4 {
        put(Field::Identification, number(&ip[4..6]));
        put(Field::HeaderLength, Some(u128::from(ip[0] & 15)));
        put(Field::HeaderChecksum, number(&ip[10..12]));
    } else {
        put(Field::FlowLabel, number(&ip[1..4]).map(|bits| bits & 0xf_ffff));
        put(Field::NextHeader, Some(ip[6].into()));
        let (mut next, mut at, mut seen) = (ip[6], 40, 0);
        while let (Some(bit), [own_next, length, kind, left, ..]) =
            ([(0, 1), (60, 2), (43, 4)].iter().find(|(own, _)| *own == next).map(|(_, bit)| *bit), &ip[at..])
        {
            let of = |field: Field, value: &u8| (field, Some(u128::from(*value)));
            let own = match bit {
                1 => vec![of(Field::HopByHopNextHeader, own_next), of(Field::HopByHopLength, length)],
                2 => vec![of(Field::DestinationNextHeader, own_next), of(Field::DestinationLength, length)],
                _ => vec![
                    of(Field::RoutingNextHeader, own_next),
                    of(Field::RoutingLength, length),
                    of(Field::RoutingType, kind),
                    of(Field::SegmentsLeft, left),
                ],
            };
            // The first header of a kind is the one that is looked at.
            if seen & bit == 0 {
                own.into_iter().for_each(|(field, value)| put(field, value));
            }
            (next, at, seen) = (*own_next, at + 8 + usize::from(*length) * 8, seen | bit);
        }
        put(Field::ExtensionHeaders, Some(seen));
    }
    if packet.is_later() || packet.there < 24 {
        return fields;
    }
    let rest = &packet.rest;
    let four = packet.family == AddressFamily::V4;
    let own: Vec<(Field, Option<u128>)> = match packet.proto {
        6 => vec![
            (Field::Sequence, number(&rest[4..8])),
            (Field::Acknowledgment, number(&rest[8..12])),
            (Field::DataOffset, Some(u128::from(rest[12] >> 4))),
            (Field::Window, number(&rest[14..16])),
            (Field::Checksum, number(&rest[16..18])),
            (Field::UrgentPointer, number(&rest[18..20])),
        ],
        17 => vec![(Field::DatagramLength, number(&rest[4..6])), (Field::Checksum, number(&rest[6..8]))],
        136 => vec![(Field::Checksum, number(&rest[6..8]))],
        132 => {
            vec![(Field::VerificationTag, number(&rest[4..8])), (Field::SctpChecksum, number(&rest[8..12]))]
        }
        33 => vec![(Field::DccpType, Some(u128::from(rest[8] >> 1 & 15)))],
        50 => vec![(Field::SecurityIndex, number(&rest[..4])), (Field::Sequence, number(&rest[4..8]))],
        51 => vec![
            (Field::AuthenticationLength, number(&rest[1..2])),
            (Field::AuthenticationReserved, number(&rest[2..4])),
            (Field::SecurityIndex, number(&rest[4..8])),
            (Field::Sequence, number(&rest[8..12])),
        ],
        108 => vec![
            (Field::CompressedNextHeader, number(&rest[..1])),
            (Field::CompressionFlags, number(&rest[1..2])),
            (Field::CompressionIndex, number(&rest[2..4])),
        ],
        1 if four => vec![(Field::Checksum, number(&rest[2..4])), (Field::IcmpRest, number(&rest[4..8]))],
        58 if !four => vec![(Field::Checksum, number(&rest[2..4])), (Field::IcmpRest, number(&rest[4..8]))],
        2 => vec![
            (Field::IgmpType, number(&rest[..1])),
            (Field::IgmpResponseTime, number(&rest[1..2])),
            (Field::Checksum, number(&rest[2..4])),
        ],
        135 if !four => vec![
            (Field::MobilityNextHeader, number(&rest[..1])),
            (Field::MobilityLength, number(&rest[1..2])),
            (Field::MobilityType, number(&rest[2..3])),
            (Field::MobilityReserved, number(&rest[3..4])),
            (Field::MobilityChecksum, number(&rest[4..6])),
        ],
        _ => Vec::new(),
    };
    own.into_iter().fold(fields, |packet, (field, value)| packet.with(field, value))
}

/// A packet of one of the protocols that these rules ask for, perhaps with extension headers.
fn of_all_kinds(random: &mut Random, packet: &mut Packet) {
    let four = packet.family == AddressFamily::V4;
    let protocols: &[u8] = if four { &[2, 50, 51, 108, 1] } else { &[50, 108, 135, 58] };
    if random.once_in(2) {
        packet.proto = random.one(protocols);
        packet.rest[..3].fill_with(|| random.below(256) as u8);
        match packet.proto {
            1 => packet.rest[0] = random.one(&[0, 3, 5, 8]),
            2 => packet.rest[0] = random.one(&[0x11, 0x12, 0x17, 0x22]),
            58 => packet.rest[0] = random.one(&[2, 128, 129, 130]),
            135 => packet.rest[2] = random.one(&[3, 5, 7, 99, 222]),
            _ => {}
        }
    }
    if !four && random.once_in(2) {
        packet.extensions =
            random.one(&[&[0][..], &[60], &[43], &[0, 43], &[60, 43, 60], &[0, 60, 43, 60]]).to_vec();
    }
    packet.there = random.one(&[24, 24, 24, 24, 0]);
}

fn rules(random: &mut Random, count: usize, more: &[&str]) -> String {
    let mut text = String::new();
    for _ in 0..count {
        let asked =
            if random.once_in(8) && !more.is_empty() { random.one(more) } else { random.one(&MATCHES) };
        text += &format!("        {asked} {}\n", random.one(&TARGETS));
    }
    text
}

#[test]
fn fields_of_headers_are_compared_as_linux_compares_them() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let (mut count, mut passing, mut kept, mut decided) = (0, 0, 0, 0);
    for _ in 0..2 * rounds() {
        let policy = random.one(&["accept", "drop"]);
        let (forward, before) = (
            rules(&mut random, 8, &[]),
            rules(&mut random, 4, &["ip checksum < 32768", "ip checksum != 0-9999"]),
        );
        let text = format!(
            "table inet one {{
    chain late {{
        type filter hook forward priority 0; policy {policy};
{forward}    }}
    chain before {{
        type filter hook prerouting priority -150; policy accept;
{before}    }}
}}
"
        );
        let policy = load(&mut router, &text);
        kept += policy.kept;
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let mut packets = made(&mut random, 250, family);
            packets.iter_mut().for_each(|packet| of_all_kinds(&mut random, packet));
            let all: Vec<policy::Packet> =
                packets.iter().zip(1..).map(|(packet, number)| fields(packet, number)).collect();
            let said = |packet: &policy::Packet| {
                evaluate(&policy.policy, Path::Forwarded, packet, &|_| false).expect("every way ends")
            };
            let wanted: Vec<bool> =
                all.iter().map(|packet| matches!(said(packet).action, RuleAction::Pass)).collect();
            let passed = router.passes(&packets, &wanted);
            for (((packet, fields), passed), own) in packets.iter().zip(&all).zip(passed).zip(wanted) {
                let agrees = if packet.is_later() { !own || passed } else { own == passed };
                assert!(agrees, "Linux says {passed} of {packet:?}\n{text}\n{:#?}", said(fields));
                router.judged.stricter += usize::from(own != passed);
                decided += usize::from(said(fields).steps.len() > 1);
                passing += usize::from(own);
                count += 1;
            }
        }
    }
    println!("{count} packets, {passing} pass, rules decide about {decided}; {kept} rules");
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count}");
    assert!(decided > count / 20 && kept > 15 * rounds(), "{decided} of {count}, {kept}");
}
