//! Tests of packets put together, beside a twin that is as plain as can be, with a clock that is moved by
//! hand.

use super::*;
use etherparse::{IpFragOffset, Ipv4Header, Ipv6FragmentHeader, NetSlice, PacketBuilder, SlicedPacket};
use packet::VirtioHeader;
use packet::fragment::{Fragmenting, Pieces};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// A piece of IPv4 from this sender: data from a place on, in units of eight bytes.
fn piece4(sender: u8, id: u16, at: u16, more: bool, data: &[u8]) -> Packet {
    let mut ip =
        Ipv4Header::new(data.len() as u16, 9, 253.into(), [10, 0, 1, sender], [10, 0, 1, 1]).expect("fits");
    ip.identification = id;
    ip.more_fragments = more;
    ip.fragment_offset = IpFragOffset::try_new(at).expect("fits");
    ip.header_checksum = ip.calc_header_checksum();
    let mut bytes = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, sender]].concat();
    bytes.extend([8, 0]);
    ip.write(&mut bytes).expect("is written");
    bytes.extend_from_slice(data);
    Packet { port: 1, bytes, virtio: VirtioHeader::NONE }
}

/// The same of IPv6.
fn piece6(sender: u8, id: u32, at: u16, more: bool, data: &[u8]) -> Packet {
    let mut bytes = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, sender]].concat();
    bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    bytes.extend((8 + data.len() as u16).to_be_bytes());
    bytes.extend([44, 9]);
    bytes.extend([&[0xfd; 15][..], &[sender], &[0xfd; 16]].concat());
    let offset = IpFragOffset::try_new(at).expect("fits");
    Ipv6FragmentHeader::new(253.into(), offset, more, id).write(&mut bytes).expect("is written");
    bytes.extend_from_slice(data);
    Packet { port: 1, bytes, virtio: VirtioHeader::NONE }
}

fn take(reassembly: &mut Reassembly, packet: Packet, now: u64) -> Vec<Joined> {
    let mut joined = Vec::new();
    reassembly.take(packet, now, &mut joined);
    joined
}

/// The data of a whole packet, read by another library.
fn data(packet: &Packet) -> Vec<u8> {
    let sliced = SlicedPacket::from_ethernet(&packet.bytes).expect("a packet");
    match sliced.net.expect("IP") {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert!(!header.is_fragmenting_payload());
            ip.payload().payload.to_vec()
        }
        NetSlice::Ipv6(ip) => ip.payload().payload.to_vec(),
        NetSlice::Arp(_) => panic!("no IP"),
    }
}

#[test]
fn what_a_host_cut_is_as_it_was_whatever_the_order() {
    let mut bytes = Vec::new();
    let payload: Vec<u8> = (0..4000).map(|index| (index % 251) as u8).collect();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 1, 2], [10, 0, 1, 1], 9);
    builder.icmpv4_echo_request(7, 3).write(&mut bytes, &payload).expect("fits");
    bytes[20] = 0;
    let check = !packet::checksum::sum(&[&bytes[14..24], &[0, 0][..], &bytes[26..34]].concat());
    bytes[24..26].copy_from_slice(&check.to_be_bytes());
    let pieces = Pieces::of(&bytes, bytes.len() as u32, Fragmenting { at: 14, mtu: 600 }).expect("too long");
    let mut reassembly = Reassembly::default();
    let order: Vec<usize> = (0..pieces.count()).rev().chain(0..pieces.count()).collect();
    let mut whole = Vec::new();
    for index in order {
        let mut piece = Vec::new();
        pieces.write(&bytes, index, &mut piece);
        whole.extend(take(&mut reassembly, Packet { port: 1, bytes: piece, virtio: VirtioHeader::NONE }, 0));
    }
    let packet = Packet { port: 1, bytes, virtio: VirtioHeader::NONE };
    let one = [Joined::Met(Fate::Joined, pieces.count() - 1), Joined::Whole(packet)];
    assert_eq!(whole, [one.clone(), one].concat());
    assert_eq!((reassembly.waiting(), reassembly.bytes, reassembly.due()), (0, 0, None));
}

#[test]
fn a_packet_whose_others_do_not_come_is_given_up_and_its_sender_told() {
    let mut reassembly = Reassembly::default();
    let first = piece6(2, 9, 0, true, &[1; 8]);
    assert_eq!(take(&mut reassembly, first.clone(), SECOND), []);
    assert_eq!(take(&mut reassembly, piece4(2, 9, 1, false, &[1; 8]), SECOND), []);
    assert_eq!((reassembly.waiting(), reassembly.due()), (2, Some(SECOND + PATIENCE)));
    let mut joined = Vec::new();
    reassembly.advance(PATIENCE, &mut joined);
    assert_eq!(joined, []);
    reassembly.advance(SECOND + PATIENCE, &mut joined);
    let missing = Joined::Met(Fate::PiecesMissing, 1);
    assert_eq!(joined, [missing.clone(), Joined::Late(first), missing], "only the first piece says of what");
    assert_eq!((reassembly.waiting(), reassembly.bytes), (0, 0));
}

#[test]
fn pieces_that_cannot_be_are_refused_and_a_single_one_is_whole() {
    let mut reassembly = Reassembly::default();
    let malformed = [Joined::Met(Fate::Malformed, 1)];
    for packet in [
        piece4(2, 1, 0, true, &[1; 9]),
        piece4(2, 1, 8191, false, &[1; 8]),
        piece4(2, 1, 1, false, &[]),
        piece6(2, 1, 0, true, &[1; 7]),
        piece6(2, 1, 8191, false, &[1; 8]),
    ] {
        assert_eq!(take(&mut reassembly, packet, 0), malformed);
    }
    let mut cut = piece6(2, 1, 0, true, &[]);
    cut.bytes.truncate(60);
    cut.bytes[18..20].copy_from_slice(&6u16.to_be_bytes());
    assert_eq!(take(&mut reassembly, cut, 0), malformed, "its header is cut");
    assert!(
        matches!(&take(&mut reassembly, piece6(2, 1, 0, false, &[1; 7]), 0)[..],
        [Joined::Whole(packet)] if data(packet) == [1; 7]),
        "RFC 6946"
    );
    let mut solicitation = piece6(2, 1, 0, false, &[135; 24]);
    solicitation.bytes[54] = ICMPV6;
    assert_eq!(take(&mut reassembly, solicitation, 0), malformed, "RFC 6980");
    let other = Packet { port: 1, bytes: vec![0; 60], virtio: VirtioHeader::NONE };
    assert_eq!(take(&mut reassembly, other.clone(), 0), [Joined::Other(other)]);
    assert_eq!((reassembly.waiting(), reassembly.bytes), (0, 0));
}

#[test]
fn what_waits_is_bounded_and_each_sender_has_a_share() {
    let mut reassembly = Reassembly::default();
    let full = [Joined::Met(Fate::PiecesFull, 1)];
    assert_eq!(take(&mut reassembly, piece4(9, 7, 0, true, &[1; 8]), 0), []);
    for id in 0..1000 {
        let expected = if id < OF_SENDER as u16 { &[][..] } else { &full };
        assert_eq!(take(&mut reassembly, piece4(2, id, 0, true, &[1; 8]), 0), expected, "of its own");
    }
    assert_eq!(take(&mut reassembly, piece4(9, 7, 1, false, &[2; 8]), 0).len(), 2, "still there");
    // Senders without number, each with as much as it may: packets, pieces and bytes stay bounded.
    let mut handed = 0;
    let mut met = 0;
    for round in 0..20_000usize {
        let (sender, id) = ((10 + round / 40 % 200) as u8, (round / 2000) as u16);
        let length = if round % 3 == 0 { 16 } else { 1480 };
        handed += 1;
        for joined in
            take(&mut reassembly, piece4(sender, id, (round % 40 * 190) as u16, true, &vec![3; length]), 0)
        {
            let Joined::Met(_, pieces) = joined else { panic!("{joined:?}") };
            met += pieces;
        }
        assert!(reassembly.partial.len() <= PACKETS && reassembly.bytes <= BYTES);
    }
    assert_eq!(handed + OF_SENDER, met + reassembly.waiting());
    let mut reassembly = Reassembly::default();
    let count: usize = (0..=PIECES as u16)
        .flat_map(|index| take(&mut reassembly, piece6(2, 1, index * 2, true, &[1; 8]), 0))
        .map(|joined| if let Joined::Met(Fate::PiecesFull, pieces) = joined { pieces } else { 0 })
        .sum();
    assert_eq!((count, reassembly.waiting(), reassembly.bytes), (PIECES + 1, 0, 0));
}

/// A packet of which pieces wait, as plainly as can be: all that came, and nothing about holes.
#[derive(Clone, Debug, Default)]
struct Plain {
    since: u64,
    came: Vec<(usize, bool, Vec<u8>)>,
    spoiled: bool,
}

impl Plain {
    /// Byte by byte: `None` where two pieces claim one byte, or the end contradicts itself.
    fn bytes(&self) -> Option<(Vec<Option<u8>>, Option<usize>)> {
        let mut bytes = vec![None; 100];
        let ends: Vec<usize> =
            self.came.iter().filter(|(_, more, _)| !more).map(|(at, _, data)| at + data.len()).collect();
        for (at, _, data) in &self.came {
            for (index, byte) in data.iter().enumerate() {
                if bytes[at + index].replace(*byte).is_some() {
                    return None;
                }
            }
        }
        let end = ends.first().copied();
        let beyond = end.is_some_and(|end| bytes[end..].iter().any(Option::is_some));
        (ends.len() < 2 && !beyond).then_some((bytes, end))
    }
}

proptest! {
    /// Pieces of any place, length and content, of a few packets, in any order, and time that passes.
    #[test]
    fn it_is_what_a_look_at_every_byte_says(
        six in any::<bool>(),
        steps in proptest::collection::vec((0u8..2, 0usize..5, 1usize..20, any::<bool>(), 0u8..8, 0u64..30), 0..60),
    ) {
        let mut reassembly = Reassembly::default();
        let mut plain: BTreeMap<u8, Plain> = BTreeMap::new();
        let mut now = 0;
        for (id, at, length, more, content, time) in steps {
            if time > 25 {
                now += time * SECOND;
                let mut joined = Vec::new();
                reassembly.advance(now, &mut joined);
                let late = plain.values().filter(|plain| plain.since + PATIENCE <= now);
                let (missing, told) = late.fold((0, 0), |(missing, told), plain| {
                    (missing + plain.came.len(), told + usize::from(plain.came.iter().any(|(at, ..)| *at == 0)))
                });
                plain.retain(|_, plain| plain.since + PATIENCE > now);
                let count = |joined: &Joined| match joined {
                    Joined::Met(Fate::PiecesMissing, pieces) => (*pieces, 0),
                    Joined::Late(_) => (0, 1),
                    _ => (1000, 1000),
                };
                let sum = joined.iter().map(count).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
                prop_assert_eq!(sum, (missing, told));
            }
            let length = if more { length.div_ceil(8) * 8 } else { length };
            let filled = vec![content / 6; length];
            let packet = if six {
                piece6(2, id.into(), at as u16, more, &filled)
            } else {
                piece4(2, id.into(), at as u16, more, &filled)
            };
            let joined = take(&mut reassembly, packet, now);
            if at == 0 && !more {
                match &joined[..] {
                    [Joined::Whole(packet)] if six => prop_assert_eq!(data(packet), filled),
                    [Joined::Other(_)] if !six => {}
                    _ => panic!("{joined:?}"),
                }
                continue;
            }
            let twin = plain.entry(id).or_insert_with(|| Plain { since: now, ..Plain::default() });
            let came = (at * 8, more, filled);
            if twin.spoiled {
                prop_assert_eq!(joined, [Joined::Met(Fate::Overlapping, 1)]);
                continue;
            }
            if twin.came.contains(&came) {
                prop_assert_eq!(joined, [Joined::Met(Fate::Joined, 1)]);
                continue;
            }
            twin.came.push(came);
            match twin.bytes() {
                None => {
                    prop_assert_eq!(joined, [Joined::Met(Fate::Overlapping, twin.came.len())]);
                    (twin.spoiled, twin.came) = (true, Vec::new());
                }
                Some((bytes, Some(end))) if bytes[..end].iter().all(Option::is_some) => {
                    prop_assert_eq!(&joined[0], &Joined::Met(Fate::Joined, twin.came.len() - 1));
                    let [_, Joined::Whole(packet)] = &joined[..] else { panic!("{joined:?}") };
                    let wanted: Vec<u8> = bytes[..end].iter().copied().flatten().collect();
                    prop_assert_eq!(data(packet), wanted);
                    plain.remove(&id);
                }
                Some(_) => prop_assert_eq!(joined, []),
            }
            let waiting: usize = plain.values().map(|plain| plain.came.len()).sum();
            prop_assert_eq!(reassembly.waiting(), waiting);
            prop_assert_eq!(reassembly.bytes == 0, waiting == 0);
        }
    }
}
