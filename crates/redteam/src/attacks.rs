//! The attacks by frames: each has a name, and makes one frame after the other.

use crate::frames::{
    ALL_HOSTS, EVERYBODY, Ipv4, RandomNumbers, Scene, arp, discovery, ethernet, icmp, icmpv6, ipv4, ipv6,
    link_layer, mutate, neighbour, right, router_advertisement, udp, udp4,
};
use crate::policy_judge::CLOSED;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Stands in frames that must not arrive anywhere, whatever addresses they have.
pub const MARKER: &[u8] = b"<<this must not arrive>>";

/// A frame, and the virtio header by which its sender says what is left to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The header, if it says that something is left.
    pub virtio: Option<[u8; 10]>,
    /// The frame.
    pub frame: Vec<u8>,
}

/// An attack.
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// Makes the next frame.
    pub next: fn(&Scene, &mut RandomNumbers) -> Attempt,
}

fn plain(frame: Vec<u8>) -> Attempt {
    Attempt { virtio: None, frame }
}

/// A frame from the router's station to the host of the LAN.
fn to_lan(scene: &Scene, kind: u16, packet: &[u8]) -> Attempt {
    plain(ethernet(scene.lan.ethernet, scene.router.ethernet, kind, packet))
}

/// Data that must not arrive.
fn marked(random: &mut RandomNumbers) -> Vec<u8> {
    let count = random.below(200);
    [MARKER, &random.bytes(count)].concat()
}

/// A datagram of the router that must not arrive, since something around it is wrong.
fn datagram4(scene: &Scene, random: &mut RandomNumbers) -> Vec<u8> {
    udp4(scene.own().ipv4, scene.lan.ipv4, (53, 4000), &marked(random))
}

fn ipv4_with(scene: &Scene, random: &mut RandomNumbers, options: &[u8], place: u16) -> Attempt {
    let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol: 17, place, options };
    let mut data = udp((53, 4000), &marked(random));
    data.truncate(data.len() / 8 * 8);
    to_lan(scene, 0x0800, &ipv4(header, &data))
}

/// A fragment of the router's, always of the same packet.
fn fragment(scene: &Scene, protocol: u8, place: u16, data: &[u8]) -> Attempt {
    let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol, place, options: &[] };
    to_lan(scene, 0x0800, &ipv4(header, data))
}

fn ipv6_with(scene: &Scene, random: &mut RandomNumbers, next: u8, extension: &[u8]) -> Attempt {
    let data = [extension, &udp((53, 4000), &marked(random))].concat();
    to_lan(scene, 0x86dd, &ipv6(scene.own().ipv6, scene.lan.ipv6, next, 64, &data))
}

/// A router advertisement behind these headers.
fn advertisement_behind(scene: &Scene, next: u8, extension: &[u8]) -> Attempt {
    let from = scene.router.link_local();
    let message = icmpv6(from, ALL_HOSTS, 134, &router_advertisement(&link_layer(1, scene.router.ethernet)));
    let packet = ipv6(from, ALL_HOSTS, next, 255, &[extension, &message].concat());
    plain(ethernet([0x33, 0x33, 0, 0, 0, 1], scene.router.ethernet, 0x86dd, &packet))
}

/// A header of virtio: version 1.2, 5.1.6.
fn virtio(flags: u8, kind: u8, numbers: [u16; 4]) -> Option<[u8; 10]> {
    let mut header = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    for (at, number) in numbers.into_iter().enumerate() {
        header[2 + 2 * at..4 + 2 * at].copy_from_slice(&number.to_ne_bytes());
    }
    Some(header)
}

macro_rules! attacks {
    ($($name:literal: |$scene:ident, $random:ident| $next:expr,)*) => {
        /// All of them.
        pub const ATTACKS: &[Attack] = &[
            $(Attack { name: $name, next: |$scene, $random| { let _ = &$random; $next } },)*
        ];
    };
}

attacks! {
    "station_of_another": |scene, random| {
        let packet = datagram4(scene, random);
        plain(ethernet(scene.lan.ethernet, scene.wan.ethernet, 0x0800, &packet))
    },
    "station_of_nobody": |scene, random| {
        let station = [2, random.number() as u8, random.number() as u8, 1, 2, 3];
        plain(ethernet(scene.lan.ethernet, station, 0x0800, &datagram4(scene, random)))
    },
    "ipv4_of_another": |scene, random| {
        to_lan(scene, 0x0800, &udp4(scene.wan.ipv4, scene.lan.ipv4, (53, 4000), &marked(random)))
    },
    "ipv4_of_anybody": |scene, random| {
        let from = Ipv4Addr::from(random.number() as u32 | 1 << 31);
        to_lan(scene, 0x0800, &udp4(from, scene.lan.ipv4, (53, 4000), &marked(random)))
    },
    "ipv4_of_the_one_asked": |scene, random| {
        to_lan(scene, 0x0800, &udp4(scene.lan.ipv4, scene.lan.ipv4, (53, 4000), &marked(random)))
    },
    "ipv6_of_another": |scene, random| {
        let packet = ipv6(scene.wan.ipv6, scene.lan.ipv6, 17, 64, &udp((53, 4000), &marked(random)));
        to_lan(scene, 0x86dd, &packet)
    },
    "ipv6_link_local_of_another": |scene, random| {
        let from = Ipv6Addr::new(0xfe80, 0, 0, 0, random.number() as u16, 0xff, 0xfe00, 1);
        to_lan(scene, 0x86dd, &ipv6(from, scene.lan.ipv6, 17, 64, &udp((53, 4000), &marked(random))))
    },
    "vlan_tag": |scene, random| {
        let packet = [&[0, 20, 8, 0][..], &datagram4(scene, random)].concat();
        to_lan(scene, 0x8100, &packet)
    },
    "priority_tag": |scene, random| {
        let packet = [&[0xe0, 0, 8, 0][..], &datagram4(scene, random)].concat();
        to_lan(scene, 0x8100, &packet)
    },
    "two_tags": |scene, random| {
        let packet = [&[0, 20, 0x81, 0, 0, 30, 8, 0][..], &datagram4(scene, random)].concat();
        to_lan(scene, random.one_of(&[0x8100, 0x88a8, 0x9100]), &packet)
    },
    "arp_answer_for_another": |scene, _random| {
        to_lan(scene, 0x0806, &arp(2, (scene.router.ethernet, scene.wan.ipv4), (scene.lan.ethernet, scene.lan.ipv4)))
    },
    "arp_question_of_another": |scene, _random| {
        let message = arp(1, (scene.router.ethernet, scene.wan.ipv4), ([0; 6], scene.lan.ipv4));
        plain(ethernet(EVERYBODY, scene.router.ethernet, 0x0806, &message))
    },
    "arp_with_another_station": |scene, random| {
        let station = random.one_of(&[scene.wan.ethernet, [2, 9, 9, 9, 9, 9]]);
        to_lan(scene, 0x0806, &arp(2, (station, scene.own().ipv4), (scene.lan.ethernet, scene.lan.ipv4)))
    },
    "arp_announcement_of_another": |scene, _random| {
        let message = arp(1, (scene.router.ethernet, scene.lan.ipv4), ([0; 6], scene.lan.ipv4));
        plain(ethernet(EVERYBODY, scene.router.ethernet, 0x0806, &message))
    },
    "arp_probe_of_another": |scene, _random| {
        let message = arp(1, (scene.router.ethernet, Ipv4Addr::UNSPECIFIED), ([0; 6], scene.lan.ipv4));
        plain(ethernet(EVERYBODY, scene.router.ethernet, 0x0806, &message))
    },
    "arp_of_other_forms": |scene, random| {
        let mut message = arp(1, (scene.router.ethernet, scene.wan.ipv4), ([0; 6], scene.lan.ipv4));
        message[random.below(8)] ^= 1 << random.below(8);
        to_lan(scene, 0x0806, &message)
    },
    "router_advertisement": |scene, _random| advertisement_behind(scene, 58, &[]),
    "router_advertisement_of_another": |scene, _random| {
        let rest = router_advertisement(&link_layer(1, scene.wan.ethernet));
        plain(discovery(scene.router.ethernet, scene.wan.ipv6, 134, &rest))
    },
    "router_advertisement_behind_options": |scene, random| {
        let count = random.below(12);
        let headers: Vec<u8> = (0..count).flat_map(|_| [60, 0, 1, 4, 0, 0, 0, 0]).collect();
        advertisement_behind(scene, 60, &[headers, vec![58, 0, 1, 4, 0, 0, 0, 0]].concat())
    },
    "router_advertisement_behind_an_unknown_header": |scene, random| {
        advertisement_behind(scene, random.one_of(&[135, 139, 140, 253, 254]), &[58, 0, 1, 4, 0, 0, 0, 0])
    },
    "router_advertisement_in_a_fragment": |scene, random| {
        advertisement_behind(scene, 44, &[58, 0, 0, random.one_of(&[0, 1]), 0, 0, 0, 9])
    },
    "router_advertisement_of_ipv4": |scene, _random| {
        let message = icmp(9, 0, &[&[1, 2, 7, 8][..], &scene.own().ipv4.octets(), &[0; 4]].concat());
        let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol: 1, place: 0, options: &[] };
        to_lan(scene, 0x0800, &ipv4(header, &message))
    },
    "redirect": |scene, _random| {
        let body = [&[0; 4][..], &scene.router.link_local().octets(), &scene.wan.ipv6.octets()].concat();
        plain(discovery(scene.router.ethernet, scene.router.link_local(), 137, &body))
    },
    "redirect_of_ipv4": |scene, random| {
        let message = icmp(5, 1, &[&scene.own().ipv4.octets()[..], &datagram4(scene, random)].concat());
        let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol: 1, place: 0, options: &[] };
        to_lan(scene, 0x0800, &ipv4(header, &message))
    },
    "neighbour_advertisement_for_another": |scene, _random| {
        let body = neighbour(0x60, scene.wan.ipv6, &link_layer(2, scene.router.ethernet));
        plain(discovery(scene.router.ethernet, scene.own().ipv6, 136, &body))
    },
    "neighbour_advertisement_of_another_station": |scene, _random| {
        let body = neighbour(0x60, scene.own().ipv6, &link_layer(2, scene.wan.ethernet));
        plain(discovery(scene.router.ethernet, scene.own().ipv6, 136, &body))
    },
    "neighbour_solicitation_of_another_station": |scene, _random| {
        let body = neighbour(0, scene.lan.ipv6, &link_layer(1, scene.wan.ethernet));
        plain(discovery(scene.router.ethernet, scene.own().ipv6, 135, &body))
    },
    "duplicate_of_another": |scene, _random| {
        plain(discovery(scene.router.ethernet, Ipv6Addr::UNSPECIFIED, 135, &neighbour(0, scene.lan.ipv6, &[])))
    },
    "discovery_of_other_kinds": |scene, random| {
        let kind = random.one_of(&[138, 141, 142, 148, 149]);
        plain(discovery(scene.router.ethernet, scene.own().ipv6, kind, &link_layer(1, scene.wan.ethernet)))
    },
    "source_route": |scene, random| {
        let kind = random.one_of(&[131, 137]);
        let [a, b, c, d] = scene.wan.ipv4.octets();
        ipv4_with(scene, random, &[kind, 7, 4, a, b, c, d, 0], 0)
    },
    "options_that_lie": |scene, random| {
        let (kind, length) = (random.one_of(&[7, 68, 130, 136, 148, 255]), random.one_of(&[0, 1, 9, 255]));
        ipv4_with(scene, random, &[kind, length, 4, 0, 0, 0, 0, 0], 0)
    },
    "routing_header": |scene, random| {
        let kind = random.one_of(&[0, 2, 3, 4, 253]);
        ipv6_with(scene, random, 43, &[17, 0, kind, 1, 0, 0, 0, 0])
    },
    "home_address": |scene, random| {
        let option = [&[17, 2, 1, 2, 0, 0, 0xc9, 16][..], &scene.wan.ipv6.octets()].concat();
        ipv6_with(scene, random, 60, &option)
    },
    "jumbogram": |scene, random| {
        let mut attempt = ipv6_with(scene, random, 0, &[17, 0, 0xc2, 4, 0, 1, 0, 0]);
        attempt.frame[18..20].fill(0);
        attempt
    },
    "hop_by_hop_behind_others": |scene, random| {
        ipv6_with(scene, random, 60, &[0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0])
    },
    "question_by_dhcp": |scene, random| {
        let packet = udp4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, (68, 67), &marked(random));
        plain(ethernet(EVERYBODY, scene.router.ethernet, 0x0800, &packet))
    },
    "fragments_of_another": |scene, random| {
        let place = random.one_of(&[0x2000, 0x2001, 1, 185]);
        let header = Ipv4 { from: scene.wan.ipv4, to: scene.lan.ipv4, protocol: 17, place, options: &[] };
        to_lan(scene, 0x0800, &ipv4(header, &[MARKER, MARKER].concat()))
    },
    "fragment_over_the_ports": |scene, random| {
        let place = random.one_of(&[1, 0x2001, 2, 0x2002]);
        let count = 8 + 8 * random.below(4);
        let data = [&CLOSED.to_be_bytes()[..], &random.bytes(count - 2)].concat();
        fragment(scene, random.one_of(&[6, 17]), place, &data)
    },
    "first_fragment_without_its_header": |scene, random| {
        let data = udp((53, 53), &[0; 8]);
        fragment(scene, random.one_of(&[6, 17]), 0x2000, &data[..random.one_of(&[8, 16])])
    },
    "fragments_with_other_ports_at_the_same_place": |scene, random| {
        let port = random.one_of(&[53, 53, CLOSED]);
        fragment(scene, 17, 0x2000, &udp((53, port), &random.bytes(24)))
    },
    "fragments_of_a_connection": |scene, random| {
        let mut segment = random.bytes(32);
        (segment[12], segment[13]) = (0x50, random.one_of(&[2, 0xc2, 0x12, 0x10]));
        fragment(scene, 6, 0x2000, &segment)
    },
    // Of these the policy lets all pass: they overlap behind what it looks at.
    "fragments_that_overlap_behind_the_header": |scene, random| {
        let place = random.one_of(&[0x2003, 0x2004, 3, 4, 5]);
        let count = 8 + 8 * random.below(8);
        let data = random.bytes(count);
        fragment(scene, 17, place, &data)
    },
    "fragment_of_too_much": |scene, random| ipv4_with(scene, random, &[], 0x1fff),
    "fragment_with_the_reserved_flag": |scene, random| {
        let place = random.one_of(&[0x8000, 0xa000, 0x8001]);
        ipv4_with(scene, random, &[], place)
    },
    "fragment_without_its_headers": |scene, random| {
        let data = [&[17, 0, 0, 1, 0, 0, 0, 9, 17, 31, 0, 0][..], MARKER].concat();
        let _ = random.number();
        to_lan(scene, 0x86dd, &ipv6(scene.own().ipv6, scene.lan.ipv6, 44, 64, &data))
    },
    "longer_than_the_mtu": |scene, random| {
        let count = 1500 + random.below(7000);
        to_lan(scene, 0x0800, &udp4(scene.own().ipv4, scene.lan.ipv4, (53, 4000), &[MARKER, &vec![0; count]].concat()))
    },
    "shorter_than_it_says": |scene, random| {
        let mut attempt = to_lan(scene, 0x0800, &datagram4(scene, random));
        attempt.frame.truncate(15 + random.below(attempt.frame.len() - 15));
        attempt
    },
    "something_behind_the_packet": |scene, random| {
        let count = 60 + random.below(60);
        let packet = [datagram4(scene, random), random.bytes(count)].concat();
        to_lan(scene, 0x0800, &packet)
    },
    "lengths_that_lie": |scene, random| {
        let mut attempt = to_lan(scene, 0x0800, &datagram4(scene, random));
        attempt.frame[random.one_of(&[14, 16, 17])] ^= 1 << random.below(8);
        crate::frames::sum_up(&mut attempt.frame);
        attempt
    },
    "checksum_of_ipv4": |scene, random| {
        let mut attempt = to_lan(scene, 0x0800, &datagram4(scene, random));
        attempt.frame[24 + random.below(2)] ^= 1 << random.below(8);
        attempt
    },
    "other_types": |scene, random| {
        let kind = random.one_of(&[0x8863, 0x8864, 0x8847, 0x88cc, 0x888e, 0x88f7, 0x893a, 0x22f0, 0x0027, 0x05dc]);
        to_lan(scene, kind, &datagram4(scene, random))
    },
    "spanning_tree": |scene, random| {
        let group = [1, 0x80, 0xc2, 0, 0, random.below(16) as u8];
        let kind = random.one_of(&[0x0026, 0x0800]);
        plain(ethernet(group, scene.router.ethernet, kind, &datagram4(scene, random)))
    },
    "checksum_into_the_source": |scene, random| {
        // Whoever finishes the checksum writes it over the source of the packet. Once in 65,536 that is what
        // stood there.
        let count = random.below(200);
        let packet = udp4(scene.own().ipv4, scene.lan.ipv4, (53, 4000), &random.bytes(count));
        let offset = random.one_of(&[0, 2]);
        let frame = ethernet(scene.lan.ethernet, scene.router.ethernet, 0x0800, &packet);
        Attempt { virtio: virtio(1, 0, [0, 0, 26, offset]), frame }
    },
    "segments_of_another": |scene, random| {
        let mut segment = vec![0; 20 + 4000];
        (segment[12], segment[13]) = (0x50, 0x10);
        segment[20..20 + MARKER.len()].copy_from_slice(MARKER);
        let _ = random.number();
        let header = Ipv4 { from: scene.wan.ipv4, to: scene.lan.ipv4, protocol: 6, place: 0, options: &[] };
        let frame = ethernet(scene.lan.ethernet, scene.router.ethernet, 0x0800, &ipv4(header, &segment));
        Attempt { virtio: virtio(1, 1, [54, 1448, 34, 16]), frame }
    },
    "segments_of_another_kind": |scene, random| {
        let mut segment = vec![0; 20 + 4000];
        (segment[12], segment[13]) = (0x50, 0x10);
        let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol: 6, place: 0, options: &[] };
        let frame = ethernet(scene.lan.ethernet, scene.router.ethernet, 0x0800, &ipv4(header, &segment));
        let kind = random.one_of(&[1, 5, 0x81]);
        let (headers, size) = (random.below(200) as u16, 1 + random.below(3000) as u16);
        let numbers = [headers, size, 34, random.one_of(&[6, 16])];
        Attempt { virtio: virtio(1, kind, numbers), frame }
    },
    "garbage": |scene, random| {
        let count = 14 + random.below(1486);
        let mut frame = random.bytes(count);
        if random.below(2) == 0 {
            frame[6..12].copy_from_slice(&scene.router.ethernet);
        }
        plain(frame)
    },
    "right_frames_changed": |scene, random| {
        let frames = right(scene);
        let mut frame = frames[random.below(frames.len())].clone();
        mutate(&mut frame, scene, random);
        plain(frame)
    },
}

/// A frame of any of the attacks.
pub const ANY: Attack =
    Attack { name: "any", next: |scene, random| (ATTACKS[random.below(ATTACKS.len())].next)(scene, random) };

/// What a flood consists of that the guard admits: short datagrams of the router to the host of the LAN. None
/// of them is wrong.
pub const DATAGRAMS: Attack = Attack {
    name: "datagrams",
    next: |scene, _random| {
        to_lan(scene, 0x0800, &udp4(scene.own().ipv4, scene.lan.ipv4, (53, 4000), b"flood"))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_judge::forbidden;
    use std::collections::HashSet;

    #[test]
    fn attacks_differ_and_what_is_wrong_on_its_own_is_no_frame_of_the_router() {
        let scene = Scene::usual();
        let names: HashSet<_> = ATTACKS.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), ATTACKS.len());
        // What these send may be right, or becomes wrong by what is left to do.
        let may_be_right = [
            "checksum_into_the_source",
            "segments_of_another_kind",
            "garbage",
            "right_frames_changed",
            "fragments_with_other_ports_at_the_same_place",
            "fragments_of_a_connection",
            "fragments_that_overlap_behind_the_header",
        ];
        for attack in ATTACKS.iter().filter(|attack| !may_be_right.contains(&attack.name)) {
            let mut random = RandomNumbers(3);
            for _ in 0..500 {
                let Attempt { frame, .. } = (attack.next)(&scene, &mut random);
                let is_wrong = scene.router.violation(&frame).is_some() || forbidden(&frame).is_some();
                assert!(is_wrong, "{}: {frame:02x?}", attack.name);
            }
        }
    }

    #[test]
    fn fragments_of_the_router_are_in_part_what_the_policy_must_drop() {
        let scene = Scene::usual();
        let share = |name: &str| {
            let attack = ATTACKS.iter().find(|attack| attack.name == name).expect("there is one");
            let mut random = RandomNumbers(3);
            let frames = (0..1000).map(|_| (attack.next)(&scene, &mut random).frame);
            let (wrong, right): (Vec<_>, Vec<_>) = frames.partition(|frame| forbidden(frame).is_some());
            assert!(
                right.iter().chain(&wrong).all(|frame| scene.router.violation(frame).is_none()),
                "{name}"
            );
            (!wrong.is_empty(), !right.is_empty())
        };
        assert_eq!(share("fragment_over_the_ports"), (true, false));
        assert_eq!(share("first_fragment_without_its_header"), (true, false));
        assert_eq!(share("fragments_with_other_ports_at_the_same_place"), (true, true));
        assert_eq!(share("fragments_of_a_connection"), (true, true));
        assert_eq!(share("fragments_that_overlap_behind_the_header"), (false, true));
    }
}
