//! Control's part of a router, with a clock that is moved by hand: frames read by another library, and its
//! changes replayed beside what it knows.

use super::account::Fate;
use super::effects::{BROADCAST, Effects, Filled, ITSELF, LAST, UNRESOLVED, link_number};
use super::icmp;
use super::link_frames::{Arp, EVERYBODY, link_local};
use super::neighbours::{Mac, Neighbour};
use super::port::{Link, PortSettings};
use super::prefix::IpPrefix;
use super::reassembly::{Joined, Reassembly};
use super::rib::Way;
use super::router::{FollowedRoutes, Packet, Router, RoutingSettings, StaticRoute};
use engine::live::urgency::of_neighbours as urgency;
use engine::live::{Injected, Urgent};
use etherparse::{
    ArpOperation, Icmpv6Type, NetHeaders, NetSlice, PacketBuilder, PacketHeaders, SlicedPacket,
    TransportHeader,
};
use ir::{Entry, Match};
use packet::{PortNumber, VirtioHeader};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod host;
mod several;
mod turns;

const SECOND: u64 = 1_000_000_000;
const OWN: [Mac; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 2, 1]];
const A: Mac = [2, 0, 0, 0, 1, 2];
const B: Mac = [2, 0, 0, 0, 2, 2];

/// A router with address 1 in 10.0.1.0/24 and fd00:1::/64 at port 1, and in 10.0.2.0/24 and fd00:2::/64 at
/// port 2.
struct Scene {
    router: Router,
    settings: RoutingSettings,
    now: u64,
    hops: usize,
    groups: u16,
    tables: BTreeMap<(Filled, Vec<Match>), Entry>,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(16)
    }

    fn settings() -> RoutingSettings {
        let port = |number: u8| PortSettings {
            interface: format!("x{number}"),
            addresses: [format!("10.0.{number}.1/24"), format!("fd00:{number}::1/64")]
                .map(|text| text.parse().expect("an address"))
                .to_vec(),
            ..PortSettings::default()
        };
        let via = Neighbour { port: 2, address: address("10.0.2.7") };
        let to = "198.51.100.0/24".parse().expect("a prefix");
        let routes = vec![StaticRoute { to, via: vec![(via, 1)] }];
        RoutingSettings { ports: vec![port(1), port(2)], routes, kernel: FollowedRoutes::Machine }
    }

    /// With room for so many next hops.
    fn with(hops: usize) -> Scene {
        Scene::of(&Scene::settings(), hops, 0)
    }

    /// With room for so many next hops, and sets of several.
    fn of(settings: &RoutingSettings, hops: usize, groups: u16) -> Scene {
        let (router, settings) = (Router::new(settings, hops, groups), settings.clone());
        let mut scene = Scene { router, settings, now: SECOND, hops, groups, tables: BTreeMap::new() };
        for number in [1, 2] {
            let link = Link { index: number, mac: OWN[number as usize - 1], mtu: 1500, up: true };
            scene.router.link(number as u16, Some(link), SECOND, &mut Effects::default());
        }
        scene.fill();
        scene
    }

    /// Everything that the router knows goes into new tables.
    fn fill(&mut self) {
        self.tables.clear();
        for table in Filled::ALL {
            for entry in self.router.entries(table) {
                self.tables.insert((table, entry.key.clone()), entry);
            }
        }
    }

    /// Another router of the same file goes on, with new tables.
    fn reload(&mut self) {
        let mut router = Router::new(&self.settings, self.hops, self.groups);
        router.succeed(&self.router);
        self.router = router;
        self.fill();
    }

    /// Replays changes, of which every one must change something, and returns the frames.
    fn replay(&mut self, effects: Effects) -> Vec<Injected> {
        for change in effects.changes {
            let key = (change.table, change.entry.key.clone());
            if change.insert {
                self.tables.insert(key, change.entry);
            } else {
                assert!(self.tables.remove(&key).is_some(), "{key:?} was not there");
            }
        }
        effects.frames
    }

    fn packet(&mut self, reason: &str, port: PortNumber, bytes: Vec<u8>) -> Vec<Injected> {
        let mut effects = Effects::default();
        let packet = Packet { port, bytes, virtio: VirtioHeader::NONE };
        self.router.packet(reason, packet, self.now, &mut effects);
        self.replay(effects)
    }

    fn wait(&mut self, seconds: u64) -> Vec<Injected> {
        let mut frames = Vec::new();
        for _ in 0..seconds {
            self.now += SECOND;
            let mut effects = Effects::default();
            self.router.advance(self.now, &mut effects);
            frames.extend(self.replay(effects));
        }
        frames
    }

    fn kernel(&mut self, prefix: &str, way: Option<Way>) {
        let mut effects = Effects::default();
        self.router.kernel_routes(vec![(prefix.parse().expect("a prefix"), way)], &mut effects);
        self.replay(effects);
        // Who was looked at within the prefix is everybody whom it concerns.
        let mut effects = Effects::default();
        self.router.settle_hosts(&mut effects);
        assert_eq!(effects.changes, [], "{prefix}");
    }

    fn route(&self, prefix: &str) -> Option<u128> {
        let prefix: IpPrefix = prefix.parse().expect("a prefix");
        let table = if prefix.is_ipv4() { Filled::Routes } else { Filled::Routes6 };
        self.tables.get(&(table, vec![prefix.key()])).map(|entry| entry.value[0])
    }

    fn count(&self, fate: Fate) -> u64 {
        self.router.account.of(fate)
    }

    /// What was replayed is what it knows, and every packet is in the account.
    fn check(&self) {
        for table in Filled::ALL {
            let of = self.tables.iter().filter(|((of, _), _)| *of == table);
            let mut replayed: Vec<Entry> = of.map(|(_, entry)| entry.clone()).collect();
            replayed.sort_unstable();
            assert_eq!(replayed, self.router.entries(table), "{table:?}");
        }
        let fates: u64 = Fate::ALL.iter().map(|fate| self.count(*fate)).sum();
        assert_eq!(self.router.account.handed, fates + self.router.waiting() as u64);
        let routes = |table: &Filled| matches!(table, Filled::Routes | Filled::Routes6);
        let numbers =
            self.tables.iter().filter(|((table, _), _)| routes(table)).map(|(_, entry)| entry.value[0]);
        let numbers: Vec<u128> = numbers.filter(|number| *number <= LAST.into()).collect();
        let used: BTreeSet<&u128> = numbers.iter().collect();
        assert!(numbers.iter().all(|number| (1..=self.hops as u128).contains(number)), "{numbers:?}");
        for (prefix, ..) in
            self.router.rib.all().filter(|(prefix, ..)| self.router.rib.best(*prefix).is_none())
        {
            let host = prefix == IpPrefix::host(prefix.address());
            assert!(host || !self.router.installed(prefix), "{prefix} leads by a link that is down");
        }
        // A program that checks sources finds the port of every route.
        for ((_, key), entry) in self.tables.iter().filter(|((table, _), _)| routes(table)) {
            let behind = self.tables.get(&(Filled::Behind, vec![Match::Exact(entry.value[0])]));
            let led = |prefix: &IpPrefix| prefix.key() == key[0];
            let link =
                self.router.rib.ways().find(|(prefix, _)| led(prefix)).and_then(|(_, way)| match way {
                    Way::Link(port) | Way::Via(Neighbour { port, .. }) => Some(u128::from(port)),
                    _ => None,
                });
            assert!(link.is_none() || behind.map(|behind| behind.value[0]) == link, "{key:?}: {behind:?}");
        }
        // Who has no number lacks it because all are taken, by routes or by neighbours on the way out of the
        // table.
        let lacking = self.router.rib.ways().any(|(prefix, _)| !self.router.installed(prefix));
        let hops = self.tables.keys().filter(|(table, _)| *table == Filled::NextHops).map(|(_, key)| &key[0]);
        let hops = hops.filter_map(|key| if let Match::Exact(number) = key { Some(number) } else { None });
        let taken: BTreeSet<&u128> = used.into_iter().chain(hops).collect();
        assert!(!lacking || taken.len() == self.hops, "{taken:?} of {}", self.hops);
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A packet of UDP from host `a`, as the program hands it over.
fn datagram(to: &str, ttl: u8, payload: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ethernet2(A, OWN[0]);
    let payload = vec![7; payload];
    match address(to) {
        IpAddr::V4(to) => builder.ipv4([10, 0, 1, 2], to.octets(), ttl).udp(5, 6).write(&mut bytes, &payload),
        IpAddr::V6(to) => {
            let from: Ipv6Addr = "fd00:1::2".parse().expect("an address");
            builder.ipv6(from.octets(), to.octets(), ttl).udp(5, 6).write(&mut bytes, &payload)
        }
    }
    .expect("fits");
    bytes
}

fn arp(request: bool, from: (Mac, &str), target: (Mac, &str), to: Mac) -> Vec<u8> {
    let four = |text: &str| text.parse::<Ipv4Addr>().expect("an address");
    Arp { request, sender: (from.0, four(from.1)), target: (target.0, four(target.1)) }.write(to)
}

#[test]
fn a_packet_waits_for_its_neighbour_and_leaves_as_it_came_but_for_one_hop() {
    let mut scene = Scene::new();
    let packet = datagram("10.0.2.2", 9, 100);
    let asked = scene.packet("unresolved", 1, packet.clone());
    assert_eq!((asked.len(), asked[0].port), (1, 2));
    let sliced = SlicedPacket::from_ethernet(&asked[0].bytes).expect("a frame");
    let Some(NetSlice::Arp(question)) = sliced.net else { panic!("no ARP") };
    assert_eq!(question.operation(), ArpOperation::REQUEST);
    assert_eq!(
        (question.sender_hw_addr(), question.sender_protocol_addr()),
        (&OWN[1][..], &[10, 0, 2, 1][..])
    );
    assert_eq!(
        (question.target_hw_addr(), question.target_protocol_addr()),
        (&[0; 6][..], &[10, 0, 2, 2][..])
    );
    assert_eq!(asked[0].bytes[..6], EVERYBODY);
    assert_eq!((scene.route("10.0.2.0/24"), scene.route("10.0.2.2/32")), (Some(link_number(2).into()), None));

    let sent = scene.packet("neighbours", 2, arp(false, (B, "10.0.2.2"), (OWN[1], "10.0.2.1"), OWN[1]));
    let [sent] = sent.as_slice() else { panic!("{sent:?}") };
    let headers = PacketHeaders::from_ethernet_slice(&sent.bytes).expect("a packet");
    let Some(NetHeaders::Ipv4(ip, _)) = headers.net else { panic!("no IPv4") };
    assert_eq!((ip.time_to_live, ip.header_checksum), (8, ip.calc_header_checksum()));
    assert_eq!((&sent.bytes[..6], &sent.bytes[6..12], sent.port), (&B[..], &OWN[1][..], 2));
    assert_eq!(sent.bytes[26..], packet[26..], "all behind the header's checksum");
    let number = scene.route("10.0.2.2/32").expect("a route of its own");
    let hop = scene.tables[&(Filled::NextHops, vec![Match::Exact(number)])].value.clone();
    assert_eq!(hop, [2, 0x02_00_00_00_02_02, 0x02_00_00_00_02_01, 1500]);
    scene.check();

    // Nobody hears of it again: it is asked, and given up.
    scene.wait(120);
    assert_eq!((scene.route("10.0.2.2/32"), scene.router.neighbours.all().len()), (None, 0));
    scene.check();
}

#[test]
fn a_packet_that_is_too_long_is_cut_or_its_sender_told() {
    let mut scene = Scene::new();
    let link = Link { index: 2, mac: OWN[1], mtu: 1280, up: true };
    scene.router.link(2, Some(link), SECOND, &mut Effects::default());
    scene.packet("neighbours", 2, arp(true, (B, "10.0.2.2"), ([0; 6], "10.0.2.1"), EVERYBODY));
    let mut packet = datagram("10.0.2.2", 9, 1400);
    packet[20] = 0;
    let check = !packet::checksum::sum(&[&packet[14..24], &[0, 0][..], &packet[26..34]].concat());
    packet[24..26].copy_from_slice(&check.to_be_bytes());
    let sent = scene.packet("unresolved", 1, packet.clone());
    let lengths: Vec<usize> = sent.iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!(lengths, [14 + 20 + 1256, 14 + 20 + 152]);
    packet[20] = 0x40;
    let check = !packet::checksum::sum(&[&packet[14..24], &[0, 0][..], &packet[26..34]].concat());
    packet[24..26].copy_from_slice(&check.to_be_bytes());
    let told = scene.packet("unresolved", 1, packet);
    assert_eq!((told.len(), told[0].port, &told[0].bytes[34..36]), (1, 1, &[3, 4][..]));
    let told = scene.packet("unresolved", 1, datagram("fd00:2::2", 9, 1400));
    assert_eq!(
        (told.len(), &told[0].bytes[54..56], &told[0].bytes[58..62]),
        (1, &[2, 0][..], &[0, 0, 5, 0][..])
    );
    assert_eq!((scene.count(Fate::TooBig), scene.count(Fate::Sent)), (2, 1));
}

#[test]
fn what_is_odd_about_arp_is_counted_and_changes_nothing() {
    let mut scene = Scene::new();
    let tables = scene.tables.clone();
    let us = (OWN[0], "10.0.1.1");
    let cases = [
        (1, arp(true, (A, "10.0.1.1"), ([0; 6], "10.0.1.1"), EVERYBODY), Fate::Conflict),
        (1, arp(false, (A, "10.0.2.1"), us, OWN[0]), Fate::Conflict),
        (1, arp(false, (A, "10.0.2.2"), us, OWN[0]), Fate::WrongLink),
        (1, arp(true, (A, "10.0.2.2"), ([0; 6], "10.0.1.1"), EVERYBODY), Fate::WrongLink),
        (1, arp(true, (A, "10.0.1.255"), ([0; 6], "10.0.1.1"), EVERYBODY), Fate::WrongLink),
        (1, arp(true, (EVERYBODY, "10.0.1.2"), ([0; 6], "10.0.1.1"), EVERYBODY), Fate::Malformed),
        (1, arp(false, (A, "10.0.1.2"), us, OWN[0]), Fate::Heard),
        (1, arp(true, (A, "10.0.1.2"), ([0; 6], "10.0.2.1"), EVERYBODY), Fate::Heard),
        (1, arp(true, (OWN[0], "10.0.1.1"), ([0; 6], "10.0.1.2"), EVERYBODY), Fate::Ignored),
        (1, vec![0; 60], Fate::Malformed),
    ];
    for (port, frame, fate) in cases {
        let before = scene.count(fate);
        assert_eq!(scene.packet("neighbours", port, frame.clone()).len(), 0, "{fate:?}");
        assert_eq!(scene.count(fate), before + 1, "{frame:?}");
    }
    assert_eq!(scene.tables, tables);
    // Who looks whether an address is taken is told so, and not learned.
    let reply = scene.packet("neighbours", 1, arp(true, (A, "0.0.0.0"), ([0; 6], "10.0.1.1"), EVERYBODY));
    let sliced = SlicedPacket::from_ethernet(&reply[0].bytes).expect("a frame");
    let Some(NetSlice::Arp(answer)) = sliced.net else { panic!("no ARP") };
    assert_eq!(
        (answer.operation(), answer.sender_protocol_addr()),
        (ArpOperation::REPLY, &[10, 0, 1, 1][..])
    );
    assert_eq!(scene.tables, tables);
    scene.check();
}

#[test]
fn neighbours_of_ipv6_ask_and_are_asked() {
    let mut scene = Scene::new();
    let asked = scene.packet("unresolved", 1, datagram("fd00:2::2", 9, 10));
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.bytes[..6], [0x33, 0x33, 0xff, 0, 0, 2]);
    let headers = PacketHeaders::from_ethernet_slice(&question.bytes).expect("a packet");
    let (Some(NetHeaders::Ipv6(ip, _)), Some(TransportHeader::Icmpv6(icmp))) =
        (headers.net, headers.transport)
    else {
        panic!("no ICMPv6")
    };
    assert_eq!((ip.hop_limit, ip.destination_addr()), (255, "ff02::1:ff00:2".parse().expect("a group")));
    assert!(matches!(icmp.icmp_type, Icmpv6Type::NeighborSolicitation), "{:?}", icmp.icmp_type);
    let payload = headers.payload.slice();
    let sum = icmp.icmp_type.calc_checksum(ip.source, ip.destination, payload).expect("fits");
    assert_eq!((icmp.checksum, &payload[..16]), (sum, &array_of("fd00:2::2")[..]));

    // The neighbour's answer is made by its own control, as it were: host B asked for itself by a router that
    // has its address.
    let b: Ipv6Addr = "fd00:2::2".parse().expect("an address");
    let own: Ipv6Addr = "fd00:2::1".parse().expect("an address");
    let answer = super::link_frames::advertisement((B, b), (OWN[1], own));
    assert_eq!(urgency("ours", &answer), Some(Urgent::Answer));
    assert_eq!(urgency("link_only", &question.bytes), Some(Urgent::Question));
    let [ask, say] = [true, false].map(|request| arp(request, (B, "10.0.2.2"), (OWN[1], "10.0.2.1"), OWN[1]));
    assert_eq!(urgency("neighbours", &ask), Some(Urgent::Question));
    assert_eq!(urgency("neighbours", &say), Some(Urgent::Answer));
    assert_eq!(
        (urgency("unresolved", &answer), urgency("ours", &datagram("fd00:2::1", 9, 10))),
        (None, None)
    );
    let mut wrong = answer.clone();
    wrong[60] ^= 1;
    assert_eq!(scene.packet("ours", 2, wrong).len(), 0);
    let mut far = answer.clone();
    far[21] = 254;
    assert_eq!(scene.packet("ours", 2, far).len(), 0);
    assert_eq!(scene.count(Fate::Malformed), 2, "a wrong checksum, and one that came through a router");
    assert_eq!(scene.packet("ours", 1, answer.clone()).len(), 0);
    assert_eq!(scene.count(Fate::WrongLink), 1);
    let sent = scene.packet("ours", 2, answer);
    assert_eq!((sent.len(), &sent[0].bytes[..6], sent[0].bytes[21]), (1, &B[..], 8));
    assert!(scene.route("fd00:2::2/128").is_some_and(|number| number <= 16));

    let question = super::link_frames::question((A, address("fd00:1::2")), address("fd00:1::1"), None);
    let reply = scene.packet("link_only", 1, question.expect("of one family"));
    let headers = PacketHeaders::from_ethernet_slice(&reply[0].bytes).expect("a packet");
    let Some(TransportHeader::Icmpv6(icmp)) = headers.transport else { panic!("no ICMPv6") };
    let Icmpv6Type::NeighborAdvertisement(told) = icmp.icmp_type else { panic!("{:?}", icmp.icmp_type) };
    assert!(told.router && told.solicited && told.r#override);
    let local = IpAddr::V6(link_local(OWN[0]));
    let question = super::link_frames::question((A, IpAddr::V6(link_local(A))), local, None);
    assert_eq!(scene.packet("link_only", 1, question.expect("of one family")).len(), 1);
    scene.check();
}

#[test]
fn a_route_between_a_link_and_its_host_goes_before_the_host() {
    let mut scene = Scene::new();
    scene.packet("neighbours", 2, arp(true, (B, "10.0.2.2"), ([0; 6], "10.0.2.1"), EVERYBODY));
    assert!(scene.route("10.0.2.2/32").is_some());
    scene.kernel("10.0.2.0/28", Some(Way::Blackhole));
    assert_eq!((scene.route("10.0.2.2/32"), scene.route("10.0.2.0/28")), (None, Some(UNRESOLVED.into())));
    scene.packet("unresolved", 1, datagram("10.0.2.2", 9, 10));
    assert_eq!(scene.count(Fate::Blackhole), 1);
    scene.kernel("10.0.2.0/28", None);
    assert!(scene.route("10.0.2.2/32").is_some());
    scene.kernel("10.0.1.0/24", Some(Way::Blackhole));
    assert_eq!(scene.route("10.0.1.0/24"), Some(link_number(1).into()));
    scene.packet("unresolved", 2, datagram("10.0.1.9", 9, 10));
    assert_eq!(scene.count(Fate::Blackhole), 1, "what is connected goes before the kernel's routes");
    scene.check();
}

#[test]
fn hosts_that_the_kernel_knows_by_a_link_are_neighbours() {
    let mut scene = Scene::new();
    let claim = |address| arp(false, (B, address), (OWN[1], "10.0.2.1"), OWN[1]);
    scene.packet("neighbours", 2, claim("10.5.0.9"));
    assert_eq!(scene.count(Fate::WrongLink), 1, "no route says that it is there");
    scene.kernel("10.5.0.0/24", Some(Way::Link(2)));
    scene.kernel("10.6.0.7/32", Some(Way::Link(2)));
    let onlink = Neighbour { port: 2, address: address("10.7.0.1") };
    scene.kernel("10.8.0.0/16", Some(Way::Via(onlink)));
    for (to, host) in [("10.5.0.9", "10.5.0.9"), ("10.6.0.7", "10.6.0.7"), ("10.8.0.9", "10.7.0.1")] {
        assert_eq!(scene.packet("unresolved", 1, datagram(to, 9, 10)).len(), 1, "asks for {host}");
        let sent = scene.packet("neighbours", 2, claim(host));
        assert_eq!((sent.len(), &sent[0].bytes[..6]), (1, &B[..]), "{to} leaves");
    }
    assert!(scene.route("10.5.0.9/32").is_some_and(|number| number <= LAST.into()));
    assert!(scene.route("10.6.0.7/32").is_some_and(|number| number <= LAST.into()));
    scene.packet("neighbours", 1, arp(false, (A, "10.5.0.8"), (OWN[0], "10.0.1.1"), OWN[0]));
    assert_eq!(scene.count(Fate::WrongLink), 2, "it would be at the other port");
    scene.check();
    // When nobody answers by it any more the route is as it was.
    scene.wait(120);
    assert_eq!((scene.route("10.5.0.9/32"), scene.route("10.6.0.7/32")), (None, Some(link_number(2).into())));
    scene.check();
}

#[test]
fn a_frame_that_says_it_came_from_everybody_is_not_answered() {
    let mut scene = Scene::new();
    let mut echo = datagram("10.0.1.1", 9, 10);
    echo[23] = 1;
    echo[6..12].copy_from_slice(&EVERYBODY);
    assert_eq!(scene.packet("ours", 1, echo).len(), 0);
    let mut lost = datagram("192.0.2.1", 9, 10);
    assert_eq!(scene.packet("unresolved", 1, lost.clone()).len(), 1, "no route, and told so");
    lost[6..12].copy_from_slice(&EVERYBODY);
    assert_eq!(scene.packet("unresolved", 1, lost).len(), 0);
    scene.check();
}

#[test]
fn a_link_that_goes_off_takes_its_neighbours_with_it() {
    let mut scene = Scene::new();
    scene.packet("neighbours", 2, arp(true, (B, "10.0.2.2"), ([0; 6], "10.0.2.1"), EVERYBODY));
    scene.packet("unresolved", 1, datagram("10.0.2.3", 9, 10));
    let mut effects = Effects::default();
    scene.router.link(2, None, scene.now, &mut effects);
    let told = scene.replay(effects);
    assert_eq!((told.len(), &told[0].bytes[34..36]), (1, &[3, 1][..]), "host unreachable");
    assert_eq!((scene.route("10.0.2.2/32"), scene.count(Fate::Unreachable)), (None, 1));
}

#[test]
fn a_long_echo_is_put_together_and_answered_in_pieces() {
    let mut scene = Scene::new();
    let payload: Vec<u8> = (0..4000).map(|index| (index % 253) as u8).collect();
    let (four, six) = (PacketBuilder::ethernet2(A, OWN[0]), PacketBuilder::ethernet2(A, OWN[0]));
    let mut requests = [Vec::new(), Vec::new()];
    let four = four.ipv4([10, 0, 1, 2], [10, 0, 1, 1], 9).icmpv4_echo_request(7, 3);
    four.write(&mut requests[0], &payload).expect("fits");
    let six = six.ipv6(array_of("fd00:1::2"), array_of("fd00:1::1"), 9).icmpv6_echo_request(7, 3);
    six.write(&mut requests[1], &payload).expect("fits");
    for (mut request, (reason, kind)) in requests.into_iter().zip([("ours", 0), ("link_only", 129)]) {
        let at = request.len() - payload.len() - 8;
        let mut pieces = icmp::in_pieces(request.clone(), 1400, 1);
        assert_eq!(pieces.len(), 3);
        pieces.swap(0, 2);
        let mut answers: Vec<Vec<u8>> = Vec::new();
        for piece in pieces {
            assert!(answers.is_empty(), "not before all are there");
            answers = scene.packet(reason, 1, piece).into_iter().map(|frame| frame.bytes).collect();
            scene.check();
        }
        assert!(answers.len() == 3 && answers.iter().all(|answer| answer.len() <= 14 + 1500), "{kind}");
        let (mut reassembly, mut joined) = (Reassembly::default(), Vec::new());
        for bytes in answers {
            reassembly.take(Packet { port: 1, bytes, virtio: VirtioHeader::NONE }, 0, &mut joined);
        }
        let Some(Joined::Whole(mut answer)) = joined.pop() else { panic!("{joined:?}") };
        let message = answer.bytes.split_off(at);
        let was = request.split_off(at);
        assert_eq!((message[0], &message[4..]), (kind, &was[4..]));
        assert_eq!((&answer.bytes[..6], &answer.bytes[6..12]), (&A[..], &OWN[0][..]));
    }
    assert_eq!((scene.count(Fate::Joined), scene.count(Fate::Answered)), (4, 2));
    // Of one whose other pieces do not come the sender is told.
    let mut request = Vec::new();
    let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv4([10, 0, 1, 2], [10, 0, 1, 1], 9);
    builder.icmpv4_echo_request(7, 4).write(&mut request, &payload).expect("fits");
    scene.packet("ours", 1, icmp::in_pieces(request, 1500, 2).swap_remove(0));
    let told = scene.wait(60);
    assert_eq!((told.len(), &told[0].bytes[34..36], scene.count(Fate::PiecesMissing)), (1, &[11, 1][..], 1));
    scene.check();
}

fn array_of(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().expect("an address").octets()
}

/// What a link that is down leaves to others.
#[test]
fn a_network_whose_link_is_down_hides_no_other_route() {
    let mut scene = Scene::new();
    let other = Neighbour { port: 1, address: address("10.0.1.7") };
    scene.kernel("10.0.2.0/24", Some(Way::Via(other)));
    scene.kernel("198.51.100.0/24", Some(Way::Via(other)));
    scene.kernel("10.5.0.0/16", Some(Way::Via(other)));
    scene.kernel("10.5.5.0/24", Some(Way::Link(2)));
    assert_eq!(scene.route("10.0.2.0/24"), Some(link_number(2).into()));
    assert_eq!(scene.route("10.0.2.255/32"), Some(BROADCAST.into()));
    let before = scene.tables.clone();
    let link = |scene: &mut Scene, up: bool| {
        let link = Link { index: 2, mac: OWN[1], mtu: 1500, up };
        let mut effects = Effects::default();
        scene.router.link(2, Some(link), scene.now, &mut effects);
        scene.replay(effects);
        scene.check();
    };
    link(&mut scene, false);
    let to_other = scene.route("10.0.2.0/24").expect("the kernel's");
    assert!(to_other <= LAST.into(), "by the kernel's route");
    assert_eq!(scene.route("198.51.100.0/24"), Some(to_other), "the file's route leads by the link");
    assert_eq!((scene.route("10.0.2.255/32"), scene.route("10.0.2.1/32")), (None, Some(ITSELF.into())));
    let asked = scene.packet("unresolved", 1, datagram("10.0.2.9", 9, 10));
    assert_eq!((asked.len(), asked[0].port), (1, 1), "the other router is asked for");
    assert_eq!(scene.route("10.5.5.0/24"), None, "nor do the kernel's routes by it count");
    scene.packet("unresolved", 1, datagram("10.5.5.9", 9, 10));
    assert!(scene.router.neighbours.all().iter().all(|seen| seen.neighbour.port == 1));
    scene.wait(5);
    link(&mut scene, true);
    let number = |tables: &BTreeMap<(Filled, Vec<Match>), Entry>| tables.len();
    assert_eq!(
        (scene.route("10.0.2.0/24"), number(&scene.tables)),
        (Some(link_number(2).into()), number(&before))
    );
}

#[test]
fn a_router_that_a_route_names_may_ask_before_it_is_looked_for() {
    let mut scene = Scene::new();
    let question = || arp(true, (B, "10.7.0.1"), ([0; 6], "10.0.2.1"), EVERYBODY);
    assert_eq!(scene.packet("neighbours", 2, question()).len(), 0);
    let onlink = Neighbour { port: 2, address: address("10.7.0.1") };
    scene.kernel("10.8.0.0/16", Some(Way::Via(onlink)));
    assert_eq!(scene.packet("neighbours", 1, question()).len(), 0, "it is at the other port");
    assert_eq!(scene.count(Fate::WrongLink), 2);
    assert_eq!(scene.packet("neighbours", 2, question()).len(), 1);
    let sent = scene.packet("unresolved", 1, datagram("10.8.0.9", 9, 10));
    assert_eq!((sent.len(), &sent[0].bytes[..6]), (1, &B[..]), "nobody has to be asked");
    scene.check();
}

#[test]
fn a_reload_leaves_routes_by_a_link_that_is_down_where_they_are() {
    let mut scene = Scene::new();
    let link = Link { index: 2, mac: OWN[1], mtu: 1500, up: false };
    let mut effects = Effects::default();
    scene.router.link(2, Some(link), scene.now, &mut effects);
    scene.replay(effects);
    let before = scene.tables.clone();
    scene.reload();
    assert_eq!((scene.route("10.0.2.0/24"), scene.route("198.51.100.0/24")), (None, None));
    assert_eq!(scene.tables, before);
    scene.check();
}

/// A link that carries less than the answers are long.
#[test]
fn pieces_of_each_answer_have_an_identification_of_their_own() {
    let mut scene = Scene::new();
    let link = Link { index: 1, mac: OWN[0], mtu: 1280, up: true };
    scene.router.link(1, Some(link), SECOND, &mut Effects::default());
    let mut used = BTreeSet::new();
    for (identifier, sequence) in [(7, 3), (3, 7), (0, 10), (7, 3)] {
        if identifier == 0 {
            scene.reload();
        }
        let mut request = Vec::new();
        let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv4([10, 0, 1, 2], [10, 0, 1, 1], 9);
        builder.icmpv4_echo_request(identifier, sequence).write(&mut request, &[7; 1400]).expect("fits");
        let answer = scene.packet("ours", 1, request);
        assert_eq!((answer.len(), &answer[0].bytes[18..20]), (2, &answer[1].bytes[18..20]));
        assert!(used.insert(answer[0].bytes[18..20].to_vec()), "{identifier} {sequence}");
    }
}

#[test]
fn who_got_no_number_gets_one_when_there_are_some_again() {
    let mut scene = Scene::new();
    let via = |last: u8| Way::Via(Neighbour { port: 2, address: [10, 0, 2, last].into() });
    // The file's route has one of 16 numbers.
    for last in 10..30 {
        scene.kernel(&format!("10.{last}.0.0/16"), Some(via(last)));
    }
    let lacking = |scene: &Scene| {
        let unnumbered = Some(link_number(2).into());
        (10..30u8).filter(|last| scene.route(&format!("10.{last}.0.0/16")) == unnumbered).count()
    };
    assert_eq!((lacking(&scene), scene.router.account.entries_refused), (5, 5));
    scene.packet("neighbours", 2, arp(true, (B, "10.0.2.2"), ([0; 6], "10.0.2.1"), EVERYBODY));
    assert_eq!((scene.route("10.0.2.2/32"), scene.router.account.entries_refused), (None, 6));
    let sent = scene.packet("unresolved", 1, datagram("10.0.2.2", 9, 10));
    assert_eq!((sent.len(), &sent[0].bytes[..6]), (1, &B[..]), "control sends meanwhile");
    scene.packet("unresolved", 1, datagram("10.29.0.1", 9, 10));
    let sent = scene.packet("neighbours", 2, arp(false, (A, "10.0.2.29"), (OWN[1], "10.0.2.1"), OWN[1]));
    assert_eq!((sent.len(), &sent[0].bytes[..6]), (1, &A[..]), "by the longest prefix, too");
    scene.check();
    for last in 10..18 {
        scene.kernel(&format!("10.{last}.0.0/16"), None);
    }
    assert_eq!(lacking(&scene), 0);
    assert!(scene.route("10.0.2.2/32").is_some_and(|number| number <= 16));
    let number = scene.route("10.29.0.0/16").expect("a number");
    assert!(scene.tables.contains_key(&(Filled::NextHops, vec![Match::Exact(number)])), "and its next hop");
    scene.check();
}

proptest! {
    /// Whatever happens: the tables as changed one by one are what the router would fill new ones with, and
    /// each packet met one fate or waits.
    #[test]
    fn changes_add_up_to_what_is_known(
        steps in proptest::collection::vec((0u8..11, 0u8..5, 1u16..3, any::<bool>()), 0..80), hops in 1usize..17,
    ) {
        let mut scene = Scene::with(hops);
        for (what, last, port, one) in steps {
            let mac = if one { A } else { B };
            let (host, own) = (format!("10.0.{port}.{last}"), format!("10.0.{port}.1"));
            let own = (OWN[usize::from(port) - 1], own.as_str());
            match what {
                0 => drop(scene.packet("unresolved", 3 - port, datagram(&host, 1 + last, 10))),
                1 => drop(scene.packet("unresolved", 1, datagram("198.51.100.9", 9, 10))),
                2 => drop(scene.packet("neighbours", port, arp(false, (mac, &host), own, own.0))),
                3 => drop(scene.packet("neighbours", port, arp(true, (mac, &host), own, EVERYBODY))),
                4 => drop(scene.wait(1 + u64::from(last) * u64::from(last))),
                5 => {
                    let via = Neighbour { port, address: address(&host) };
                    let ways = [Way::Via(via), Way::Blackhole, Way::Link(port), Way::Unreachable, Way::Prohibited];
                    let length = if last == 2 { 32 } else { 25 + last };
                    scene.kernel(&format!("10.0.{}.0/{length}", 3 - port), one.then_some(ways[usize::from(last)]));
                }
                6 => {
                    let via = Neighbour { port, address: address(&host) };
                    scene.kernel(&format!("10.{last}.0.0/16"), one.then_some(Way::Via(via)));
                }
                8 => {
                    let link = Link { index: port.into(), mac: OWN[usize::from(port) - 1], mtu: 1500, up: one };
                    let mut effects = Effects::default();
                    scene.router.link(port, Some(link), scene.now, &mut effects);
                    scene.replay(effects);
                }
                7 => drop(scene.packet("ours", port, datagram(&host, 9, 10))),
                9 => scene.reload(),
                _ => drop(scene.packet("unresolved", port, vec![last; usize::from(last) * 9])),
            }
            scene.check();
        }
    }

    /// Frames of every kind, damaged and cut anywhere: each meets one fate, and the tables stay what is
    /// known.
    #[test]
    fn damaged_frames_meet_a_fate(
        kind in 0usize..8, damage in proptest::collection::vec((0usize..110, any::<u8>()), 0..6), cut in 0usize..120,
        reason in 0usize..5, port in 0u16..4,
    ) {
        let mut scene = Scene::new();
        let own = IpAddr::V6(link_local(OWN[0]));
        let echo = |to: &str| {
            let mut bytes = datagram(to, 9, 30);
            bytes[if to.contains(':') { 20 } else { 23 }] = if to.contains(':') { 58 } else { 1 };
            bytes
        };
        let mut frame = match kind {
            0 => arp(true, (A, "10.0.1.2"), ([0; 6], "10.0.1.1"), EVERYBODY),
            1 => super::link_frames::question((A, IpAddr::V6(link_local(A))), own, None).unwrap_or_default(),
            2 => super::link_frames::advertisement((A, link_local(A)), (OWN[0], link_local(OWN[0]))),
            3 => echo("10.0.1.1"),
            4 => echo("fd00:1::1"),
            6 => icmp::in_pieces([echo("10.0.1.1"), vec![0; 1500]].concat(), 100, 1).swap_remove(0),
            7 => icmp::in_pieces([echo("fd00:1::1"), vec![0; 1500]].concat(), 1280, 1).swap_remove(0),
            _ => datagram("10.0.2.2", 9, 40),
        };
        for (place, byte) in damage {
            if let Some(at) = frame.get_mut(place) {
                *at = byte;
            }
        }
        frame.truncate(cut);
        let reason = ["neighbours", "ours", "link_only", "unresolved", "another"][reason];
        scene.packet(reason, port, frame);
        scene.check();
        scene.wait(5);
        scene.check();
    }
}

#[test]
fn addresses_of_the_machine_are_asked_for_by_nobody_and_nothing_is_said_about_them() {
    let mut scene = Scene::new();
    scene.packet("unresolved", 1, datagram("10.0.2.3", 9, 10));
    assert_eq!(scene.router.waiting(), 1, "anybody's so far");
    let mut effects = Effects::default();
    let machine = ["10.0.2.3", "fd00:2::3", "10.0.1.1", "10.0.2.7"].map(address);
    scene.router.machine(BTreeSet::from(machine), &mut effects);
    scene.replay(effects);
    assert_eq!(scene.route("10.0.2.3/32"), Some(ITSELF.into()), "whatever is left of its TTL");
    assert_eq!(scene.wait(10).len(), 2, "it was asked for already, and its sender is told nothing");
    for to in ["10.0.2.3", "fd00:2::3"] {
        for (reason, ttl) in [("ours", 1), ("unresolved", 9)] {
            assert!(scene.packet(reason, 1, datagram(to, ttl, 10)).is_empty());
        }
    }
    assert_eq!(scene.count(Fate::Machine), 5);
    let claim = arp(true, (B, "10.0.2.3"), ([0; 6], "10.0.2.1"), EVERYBODY);
    assert!(scene.packet("neighbours", 2, claim).is_empty());
    assert_eq!(scene.count(Fate::Conflict), 1);
    // The gateway's own stay its own.
    assert_eq!(scene.route("10.0.1.1/32"), Some(ITSELF.into()));
    assert_eq!(scene.packet("ours", 1, datagram("10.0.1.1", 9, 10)).len(), 1, "no such service");
    scene.check();
    scene.reload();
    assert!(scene.packet("unresolved", 1, datagram("10.0.2.3", 9, 10)).is_empty());
    let mut effects = Effects::default();
    scene.router.machine(BTreeSet::new(), &mut effects);
    scene.replay(effects);
    assert_eq!(scene.packet("unresolved", 1, datagram("10.0.2.3", 9, 10)).len(), 1, "anybody's again");
    scene.check();
}

/// An answer would go to the gateway itself, or to all hosts of a network.
#[test]
fn nobody_is_answered_who_says_to_be_the_gateway_or_a_whole_network() {
    let mut scene = Scene::new();
    let echo = |source: &str, destination: [u8; 4]| {
        let IpAddr::V4(source) = address(source) else { panic!("of IPv4") };
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv4(source.octets(), destination, 64);
        builder.icmpv4_echo_request(1, 2).write(&mut bytes, b"x").expect("memory");
        bytes
    };
    assert_eq!(scene.packet("ours", 1, echo("10.0.1.9", [10, 0, 1, 1])).len(), 1);
    for (source, fate) in [
        ("10.0.1.1", Fate::Conflict),
        ("10.0.2.1", Fate::Conflict),
        ("10.0.1.255", Fate::WrongLink),
        ("10.0.2.255", Fate::WrongLink),
    ] {
        let before = scene.count(fate);
        assert_eq!(scene.packet("ours", 1, echo(source, [10, 0, 1, 1])).len(), 0, "{source}");
        assert_eq!(scene.count(fate), before + 1, "{source}");
    }
    let six = |source: &str| {
        let IpAddr::V6(source) = address(source) else { panic!("of IPv6") };
        let IpAddr::V6(own) = address("fd00:1::1") else { panic!("of IPv6") };
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv6(source.octets(), own.octets(), 64);
        builder.icmpv6_echo_request(1, 2).write(&mut bytes, b"x").expect("memory");
        bytes
    };
    assert_eq!(scene.packet("ours", 1, six("fd00:1::9")).len(), 1);
    let before = scene.count(Fate::Conflict);
    assert_eq!(scene.packet("ours", 1, six("fd00:1::1")).len(), 0);
    assert_eq!(scene.packet("ours", 1, six("fd00:2::1")).len(), 0);
    assert_eq!(scene.count(Fate::Conflict), before + 2);
    scene.check();
}

/// What fills a short frame up, or follows a packet, does not leave with one that waited for its neighbour.
#[test]
fn a_packet_that_waited_leaves_without_what_stands_behind_its_end() {
    let mut scene = Scene::new();
    let mut padded = datagram("10.0.2.2", 9, 10);
    let whole = padded.len();
    padded.extend_from_slice(b"secret");
    assert_eq!(scene.packet("unresolved", 1, padded).len(), 1, "a question");
    let sent = scene.packet("neighbours", 2, arp(false, (B, "10.0.2.2"), (OWN[1], "10.0.2.1"), OWN[1]));
    let [sent] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(sent.bytes.len(), whole);
}

/// A host that has an address of the link only asks whether the router is still there (RFC 4861, 7.2.2): it
/// is answered.
#[test]
fn a_solicitation_from_an_address_of_the_link_for_a_global_one_is_answered() {
    let mut scene = Scene::new();
    let (host, own) = (link_local(A), "fd00:1::1".parse::<Ipv6Addr>().expect("an address"));
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv6(host.octets(), own.octets(), 255);
    let mut body = own.octets().to_vec();
    body.extend([1, 1]);
    body.extend(A);
    builder.icmpv6_raw(135, 0, [0; 4]).write(&mut bytes, &body).expect("memory");
    let sent = scene.packet("ours", 1, bytes);
    let [sent] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((&sent.bytes[..6], sent.bytes[20], sent.bytes[54]), (&A[..], 58, 136));
    assert_eq!(sent.bytes[38..54], host.octets());
    scene.check();
}
