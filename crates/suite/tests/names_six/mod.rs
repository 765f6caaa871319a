//! The programs `waypoint` and `names_gateway`, one behind the other, with IPv6: each host has an address of
//! its own outside; judged by what leads where, and by sums that are computed here.
//!
//! A packet reaches the host that its address and service lead to, and no other, exactly if they lead
//! anywhere; the host sees the initiator's own address. What a host sends leaves exactly if it is of such a
//! service, behind the gateway of it, from the address outside. Nothing outside names an address inside.

use super::{GATEWAY, ROUTER, WAYPOINT};
use crate::program;
use engine::{PacketBench, PacketOutcome};
use exec::BackendKind;
use lang::ir::{Entry, Match, Program};
use packet::VerdictKind;
use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use suite::random::SuiteRandom;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ECHO: u8 = 58;
const FRAGMENT: u8 = 44;

/// Ports of both programs: towards initiators, towards hosts.
const OUT: u16 = 1;
const IN: u16 = 2;

const HOST_CARD: [u8; 6] = [2, 0, 0, 0, 0, 80];

const BACK_ENDS: [BackendKind; 2] = [BackendKind::Interpreter, BackendKind::Native];
const SERVICES: [(u8, u16); 4] = [(TCP, 80), (TCP, 22), (UDP, 53), (ECHO, 0)];

/// What a packet says, without its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    from: Ipv6Addr,
    to: Ipv6Addr,
    proto: u8,
    /// Of TCP and UDP; of an echo its type and identifier.
    ports: (u16, u16),
    hops: u8,
    size: usize,
}

fn peer(number: u8) -> [u8; 6] {
    [2, 0x52, 0x56, 0, 0, number]
}

fn outside(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, last)
}
fn pool(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, last)
}
fn host(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, last)
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
fn address(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    octets.into()
}

/// The checksum of what follows the IPv6 header (RFC 8200, 8.1), as if its field held zero.
fn sum(from: Ipv6Addr, to: Ipv6Addr, proto: u8, body: &[u8], place: usize) -> u16 {
    let mut words = [from.octets(), to.octets()].concat();
    words.extend((body.len() as u32).to_be_bytes());
    words.extend([0, 0, 0, proto]);
    words.extend(body);
    let place = place + 40;
    words[place..place + 2].fill(0);
    words.resize(words.len().next_multiple_of(2), 0);
    let mut total: u32 = words.chunks(2).map(|word| u32::from(number(word, 0))).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    match !(total as u16) {
        0 if proto != TCP => 0xffff,
        sum => sum,
    }
}

fn place(proto: u8) -> usize {
    match proto {
        TCP => 16,
        UDP => 6,
        _ => 2,
    }
}

fn header(from: Ipv6Addr, to: Ipv6Addr, next: u8, hops: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, hops];
    put(&mut packet, 4, body.len() as u16);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(body);
    packet
}

/// A packet of IPv6 with a right checksum.
fn packet(said: Said) -> Vec<u8> {
    let mut body = vec![0; if said.proto == TCP { 20 } else { 8 }];
    match said.proto {
        TCP => body[12..14].copy_from_slice(&[0x50, 0x10]),
        UDP => put(&mut body, 4, 8 + said.size as u16),
        _ => {}
    }
    if said.proto == ECHO {
        body[0] = said.ports.0 as u8;
        put(&mut body, 4, said.ports.1);
    } else {
        put(&mut body, 0, said.ports.0);
        put(&mut body, 2, said.ports.1);
    }
    body.extend((0..said.size).map(|at| at as u8));
    let right = sum(said.from, said.to, said.proto, &body, place(said.proto));
    put(&mut body, place(said.proto), right);
    header(said.from, said.to, said.proto, said.hops, &body)
}

fn framed(cards: ([u8; 6], [u8; 6]), packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&cards.0[..], &cards.1, &kind, packet].concat()
}

/// An error about a packet, as `from` makes it.
fn error(from: Ipv6Addr, to: Ipv6Addr, (kind, rest): (u8, u32), about: &[u8]) -> Vec<u8> {
    let mut body = vec![kind, 0, 0, 0];
    body.extend(rest.to_be_bytes());
    body.extend(about);
    let right = sum(from, to, ECHO, &body, 2);
    put(&mut body, 2, right);
    header(from, to, ECHO, 60, &body)
}

/// What a whole packet says. Its checksum is right, and that of what an error quotes whole.
fn read(packet: &[u8]) -> Said {
    let (from, to, proto, body) = (address(packet, 8), address(packet, 24), packet[6], &packet[40..]);
    assert_eq!(usize::from(number(packet, 4)), body.len());
    assert_eq!(number(body, place(proto)), sum(from, to, proto, body, place(proto)), "{packet:02x?}");
    let (ports, head) = match proto {
        TCP => ((number(body, 0), number(body, 2)), 20),
        UDP => ((number(body, 0), number(body, 2)), 8),
        _ => ((body[0].into(), number(body, 4)), 8),
    };
    if proto == ECHO && body[0] < 128 {
        let quoted = read(&body[8..]);
        assert_eq!(quoted.from, to, "an error goes to the sender of what it quotes");
    }
    Said { from, to, proto, ports, hops: packet[7], size: body.len() - head }
}

/// The pieces of a packet, each of so many bytes at most.
fn pieces(packet: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let body = &packet[40..];
    let cut = |(index, piece): (usize, &[u8])| {
        let place = (index * size) as u16 | u16::from((index + 1) * size < body.len());
        let mut part = vec![packet[6], 0];
        part.extend(place.to_be_bytes());
        part.extend(id.to_be_bytes());
        part.extend(piece);
        header(address(packet, 8), address(packet, 24), FRAGMENT, packet[7], &part)
    };
    body.chunks(size).enumerate().map(cut).collect()
}

/// One packet out of pieces that come in order.
fn joined(pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in pieces {
        assert_eq!(usize::from(number(piece, 42) & !7), body.len());
        body.extend(&piece[48..]);
    }
    let first = &pieces[0];
    header(address(first, 8), address(first, 24), first[40], first[7], &body)
}

/// Address, protocol and number of a service.
type Service = (Ipv6Addr, u8, u16);

struct Six<'a> {
    waypoint: PacketBench<'a>,
    gateways: Vec<PacketBench<'a>>,
    programs: &'a [Program; 2],
    leads: BTreeMap<Service, (u8, Ipv6Addr)>,
    now: u64,
    reasons: BTreeMap<String, u64>,
}

impl<'a> Six<'a> {
    fn new(programs: &'a [Program; 2], back_end: BackendKind) -> Six<'a> {
        let bench = |program| PacketBench::new(program, back_end, 2, 0).expect("it loads");
        let mut six = Six {
            waypoint: bench(&programs[0]),
            gateways: vec![bench(&programs[1]), bench(&programs[1])],
            programs,
            leads: BTreeMap::new(),
            now: 0,
            reasons: BTreeMap::new(),
        };
        for name in ["stable6", "stable6_back"] {
            let table = six.table(name);
            six.waypoint.processor_mut().replace(table, Vec::new()).expect("it can be emptied");
        }
        for gateway in [1, 2] {
            for last in 80..84 {
                six.resolve(gateway, host(last));
            }
        }
        six
    }

    fn table(&self, name: &str) -> u32 {
        let place = self.programs[0].tables.iter().position(|table| table.name == name);
        place.expect("the waypoint has it") as u32
    }

    /// The answer of a host to the question for its card.
    fn resolve(&mut self, gateway: u8, host: Ipv6Addr) {
        let to = self::host(1);
        let mut body = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
        body.extend(host.octets());
        body.extend([2, 1]);
        body.extend(HOST_CARD);
        let right = sum(host, to, ECHO, &body, 2);
        put(&mut body, 2, right);
        let said = framed((GATEWAY, HOST_CARD), &header(host, to, ECHO, 255, &body));
        let outcome = self.gateways[usize::from(gateway) - 1].packet(IN, &said, 0);
        assert_eq!(reason(&self.programs[1], &outcome), Some("neighbour_done"));
    }

    /// Lets a service lead to a host, or to nobody.
    fn lead(&mut self, (at, proto, number): Service, to: Option<(u8, Ipv6Addr)>) {
        let exact = |columns: &[u128]| columns.iter().copied().map(Match::Exact).collect::<Vec<_>>();
        let (there, back) = (self.table("stable6"), self.table("stable6_back"));
        let key = exact(&[at.to_bits(), proto.into(), number.into()]);
        let back_key = |(gateway, host): (u8, Ipv6Addr)| {
            exact(&[gateway.into(), host.to_bits(), proto.into(), number.into()])
        };
        let tables = self.waypoint.processor_mut();
        if let Some(before) = self.leads.remove(&(at, proto, number)) {
            tables.remove(there, &key, 0);
            tables.remove(back, &back_key(before), 0);
        }
        if let Some((gateway, host)) = to {
            let entry = Entry { key, value: vec![gateway.into(), host.to_bits()], priority: 0 };
            tables.insert(there, &entry).expect("there is room");
            let entry = Entry { key: back_key((gateway, host)), value: vec![at.to_bits()], priority: 0 };
            tables.insert(back, &entry).expect("there is room");
            self.leads.insert((at, proto, number), (gateway, host));
        }
    }

    /// The address by which a service of a host is reached.
    fn back(&self, gateway: u8, host: Ipv6Addr, proto: u8, number: u16) -> Option<Ipv6Addr> {
        let is_it = |((_, p, n), to): &(&Service, &(u8, Ipv6Addr))| {
            (*p, *n, **to) == (proto, number, (gateway, host))
        };
        self.leads.iter().find(is_it).map(|((at, ..), _)| *at)
    }

    fn count(&mut self, program: usize, outcome: &PacketOutcome) {
        if let Some(reason) = reason(&self.programs[program], outcome) {
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// A packet from outside: the gateway that it came to, and the packet as it reached a host.
    fn asks(&mut self, packet: &[u8]) -> Option<(u8, Vec<u8>)> {
        let outcome = self.waypoint.packet(OUT, &framed((WAYPOINT, ROUTER), packet), self.now);
        self.count(0, &outcome);
        let (port, left) = outcome.left.first()?;
        if *port == OUT {
            return None;
        }
        let gateway = left[5];
        assert_eq!((outcome.left.len(), &left[..12]), (1, &[peer(gateway), peer(0)].concat()[..]));
        let inside = framed((peer(0), peer(9)), &left[14..]);
        let outcome = self.gateways[usize::from(gateway) - 1].packet(OUT, &inside, self.now);
        self.count(1, &outcome);
        let (port, reached) = outcome.left.first()?;
        if *port == OUT {
            return None;
        }
        assert_eq!(reached[..12], [HOST_CARD, GATEWAY].concat());
        Some((gateway, reached[14..].to_vec()))
    }

    /// A packet of a host behind a gateway, as it left the gateway.
    fn answers(&mut self, gateway: u8, packet: &[u8]) -> Option<Vec<u8>> {
        let outcome = self.gateways[usize::from(gateway) - 1].packet(
            IN,
            &framed((GATEWAY, HOST_CARD), packet),
            self.now,
        );
        self.count(1, &outcome);
        let (port, left) = outcome.left.first()?;
        assert_eq!((*port, &left[..12]), (OUT, &[peer(9), peer(0)].concat()[..]));
        Some(left[14..].to_vec())
    }

    /// A packet that a gateway sends into the tunnel, as it left the waypoint.
    fn returns(&mut self, gateway: u8, packet: &[u8]) -> Option<Vec<u8>> {
        let outcome = self.waypoint.packet(IN, &framed((peer(0), peer(gateway)), packet), self.now);
        self.count(0, &outcome);
        let (port, left) = outcome.left.first()?;
        assert_eq!((*port, &left[..12]), (OUT, &[ROUTER, WAYPOINT].concat()[..]));
        Some(left[14..].to_vec())
    }
}

fn reason<'a>(program: &'a Program, outcome: &PacketOutcome) -> Option<&'a str> {
    let verdict = outcome.verdict?;
    let number = (verdict.kind() == VerdictKind::Drop).then(|| verdict.argument() as usize)?;
    program.reasons.get(number).map(|reason| reason.name.as_str())
}

/// The number of the service that a packet of an initiator is for.
fn service(said: Said) -> u16 {
    if said.proto == ECHO { 0 } else { said.ports.1 }
}

/// The same exchange the other way.
fn turned(said: Said, from: Ipv6Addr) -> Said {
    let ports = if said.proto == ECHO { (129, said.ports.1) } else { (said.ports.1, said.ports.0) };
    Said { from, to: said.from, ports, hops: 60, ..said }
}

/// Whole or in two pieces through `carry`; what arrives, put together.
fn carried(
    random: &mut SuiteRandom,
    packet: &[u8],
    mut carry: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    if packet.len() < 100 || random.one_in(2) {
        return carry(packet);
    }
    let arrived: Vec<_> =
        pieces(packet, random.below(1 << 32) as u32, 48).iter().filter_map(|one| carry(one)).collect();
    (!arrived.is_empty()).then(|| joined(&arrived))
}

fn exchange(six: &mut Six, random: &mut SuiteRandom, seen: &mut HashSet<(u8, u8)>) {
    let (proto, number) = *random.pick(&SERVICES);
    let from = match random.below(10) {
        0 => host(90),
        1 => pool(7),
        _ => outside(random.between(1, 3) as u16),
    };
    let to = if random.one_in(10) { outside(100) } else { pool(random.between(1, 3) as u16) };
    let other = 40_000 + random.below(3) as u16;
    let ports = if proto == ECHO { (128, other) } else { (other, number) };
    let size = if random.one_in(3) { 100 } else { 8 };
    let ask = Said { from, to, proto, ports, hops: 60, size };
    let may = from.octets()[2] == 0x0d && from.octets()[5] == 9;
    let leads = six.leads.get(&(to, proto, service(ask))).copied().filter(|_| may);
    let mut came = None;
    let got = carried(random, &packet(ask), |packet| {
        let (gateway, packet) = six.asks(packet)?;
        came = Some(gateway);
        Some(packet)
    });
    let Some((gateway, host)) = leads else {
        assert_eq!(got, None, "nothing leads there: {ask:?}");
        return;
    };
    assert_eq!(came, Some(gateway), "{ask:?}");
    let got = got.expect("it leads there");
    assert_eq!(read(&got), Said { to: host, hops: 58, ..ask });
    seen.insert((proto, gateway));

    // The host answers; somebody else says the same.
    let answer = turned(ask, host);
    let left = carried(random, &packet(answer), |one| {
        let inside = six.answers(gateway, one)?;
        six.returns(gateway, &inside)
    });
    let left = left.expect("it was asked");
    assert_eq!(read(&left), Said { from: to, hops: 58, ..answer });
    let by_other = six.back(3 - gateway, host, proto, number);
    let lie = six.returns(3 - gateway, &packet(answer)).map(|left| read(&left).from);
    assert_eq!(lie, by_other, "the other gateway has only addresses of its own");
    assert_eq!(
        six.returns(gateway, &packet(Said { from: to, ..answer })),
        None,
        "addresses outside are no hosts"
    );

    // Errors of the host, of its gateway and of a router outside: each quotes what its receiver has sent.
    let kind = *random.pick(&[(1, 0), (2, 1_300), (3, 0), (4, 6)]);
    for by in [host, self::host(1)] {
        let told = error(by, ask.from, kind, &got);
        let inside = if by == host { six.answers(gateway, &told).expect("it was asked") } else { told };
        let told = six.returns(gateway, &inside).expect("it is about a packet of an initiator");
        assert_eq!((address(&told, 8), address(&told, 24), told[40]), (to, ask.from, kind.0));
        read(&told);
        assert_eq!((address(&told, 56), address(&told, 72)), (ask.from, to), "it quotes what was sent");
        assert_eq!(told[88..], packet(ask)[40..]);
    }
    let (_, told) =
        six.asks(&error(outside(200), to, kind, &left)).expect("it is about a packet of the host");
    assert_eq!((address(&told, 8), address(&told, 24), told[40]), (outside(200), host, kind.0));
    read(&told);
}

fn live(back_end: BackendKind, seed: u64, steps: u32) -> BTreeMap<String, u64> {
    let programs = [program("waypoint"), program("names_gateway")];
    let mut six = Six::new(&programs, back_end);
    let (mut random, mut seen) = (SuiteRandom::new(seed), HashSet::new());
    for _ in 0..steps {
        if random.one_in(3) {
            let (proto, number) = *random.pick(&SERVICES);
            let at = pool(random.between(1, 3) as u16);
            let to = (random.between(1, 2) as u8, host(random.between(80, 83) as u16));
            // A service of a host has one address.
            let free = six.back(to.0, to.1, proto, number).is_none();
            six.lead((at, proto, number), Some(to).filter(|_| free));
        }
        exchange(&mut six, &mut random, &mut seen);
    }
    assert_eq!(seen.len(), 6, "every protocol to both gateways: {seen:?}");
    six.reasons
}

#[test]
fn by_ipv6_services_lead_to_their_hosts_and_nowhere_else() {
    let judged = live(BackendKind::Interpreter, 1, 2_000);
    assert_eq!(live(BackendKind::Native, 1, 2_000), judged);
    for reason in ["no_service", "martian", "not_our_address", "fragment_without_first"] {
        assert!(judged.contains_key(reason), "nothing was dropped as {reason}: {judged:?}");
    }
}

#[test]
fn by_ipv6_both_programs_are_hops_and_say_how_much_fits() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BACK_ENDS {
        let mut six = Six::new(&programs, back_end);
        six.lead((pool(1), UDP, 53), Some((2, host(80))));
        let ask = Said { from: outside(1), to: pool(1), proto: UDP, ports: (40_000, 53), hops: 60, size: 8 };
        let told = |told: &[u8], kind: u8, rest: u32, about: &[u8]| {
            let (from, to) = (address(told, 8), address(told, 24));
            assert_eq!((from, to, told[40], told[41]), (pool(1), outside(1), kind, 0));
            assert_eq!(number(told, 42), sum(from, to, ECHO, &told[40..], 2));
            assert_eq!(told[44..48], rest.to_be_bytes());
            let quoted = &told[48..];
            assert_eq!(
                (&quoted[..7], &quoted[8..]),
                (&about[..7], &about[8..quoted.len()]),
                "but for the hops"
            );
        };
        // Of the waypoint.
        let last = packet(Said { hops: 1, ..ask });
        let outcome = six.waypoint.packet(OUT, &framed((WAYPOINT, ROUTER), &last), 0);
        told(&outcome.left[0].1[14..], 3, 0, &last);
        let large = packet(Said { size: 1_373, ..ask });
        let outcome = six.waypoint.packet(OUT, &framed((WAYPOINT, ROUTER), &large), 0);
        assert_eq!((outcome.left.len(), outcome.left[0].1.len()), (1, 14 + 1_280));
        told(&outcome.left[0].1[14..], 2, 1_420, &large);
        let (gateway, whole) = six.asks(&packet(Said { size: 1_372, ..ask })).expect("it fits");
        assert_eq!((gateway, read(&whole).size), (2, 1_372));
        // Of the gateway, by the waypoint.
        let last = packet(Said { hops: 2, ..ask });
        let outcome = six.waypoint.packet(OUT, &framed((WAYPOINT, ROUTER), &last), 0);
        let inside = framed((peer(0), peer(9)), &outcome.left[0].1[14..]);
        let outcome = six.gateways[1].packet(OUT, &inside, 0);
        assert_eq!(outcome.left[0].0, OUT);
        let left = six.returns(2, &outcome.left[0].1[14..]).expect("it is about a packet of an initiator");
        told(&left, 3, 0, &last);
        // To the host, which sends too much.
        let large = packet(Said { size: 1_373, ..turned(ask, host(80)) });
        let outcome = six.gateways[1].packet(IN, &framed((GATEWAY, HOST_CARD), &large), 0);
        let (port, told) = (outcome.left[0].0, &outcome.left[0].1[14..]);
        assert_eq!(
            (port, address(told, 24), told[40], &told[44..48]),
            (IN, host(80), 2, &[0, 0, 0x05, 0x8c][..])
        );
        assert_eq!(number(told, 42), sum(address(told, 8), host(80), ECHO, &told[40..], 2));
    }
}

#[test]
fn the_mss_of_ipv6_is_lowered_to_what_the_tunnel_takes() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BACK_ENDS {
        let mut six = Six::new(&programs, back_end);
        six.lead((pool(1), TCP, 80), Some((1, host(80))));
        let mut body =
            vec![0x9c, 0x40, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 0xa0];
        let right = sum(outside(1), pool(1), TCP, &body, 16);
        put(&mut body, 16, right);
        let (_, got) = six.asks(&header(outside(1), pool(1), TCP, 60, &body)).expect("it leads there");
        assert_eq!(number(&got, 62), 1_420 - 60);
        assert_eq!(number(&got, 56), sum(outside(1), host(80), TCP, &got[40..], 16));
    }
}

#[test]
fn by_ipv6_a_silent_host_is_asked_for_once_a_second() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BACK_ENDS {
        let mut six = Six::new(&programs, back_end);
        let mut asked = |last: u16, now: u64| {
            let ports = (40_000, 53);
            let ask = Said { from: outside(1), to: host(last), proto: UDP, ports, hops: 60, size: 8 };
            let outcome = six.gateways[0].packet(OUT, &framed((peer(0), peer(9)), &packet(ask)), now);
            assert_eq!(reason(&programs[1], &outcome), Some("resolving"));
            for (port, left) in &outcome.left {
                assert_eq!((*port, left[54], address(left, 62)), (IN, 135, host(last)));
            }
            outcome.left.len()
        };
        let second = 1_000_000_000;
        let times = [0, second / 2, second - 1, second, second * 3 / 2, 3 * second];
        assert_eq!(times.map(|now| asked(90, now)), [1, 0, 0, 1, 0, 1]);
        assert_eq!(asked(91, 3 * second), 1, "another host");
    }
}

/// A host that has IPv4 alone, as the waypoint names it.
fn four(last: u8) -> Ipv6Addr {
    Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped()
}

/// What a whole packet of IPv4 says, as a packet of IPv6 would. All its sums are right, also in what it
/// quotes.
fn read_four(packet: &[u8]) -> Said {
    assert_eq!((packet[0], usize::from(number(packet, 2)) >= packet.len()), (0x45, true), "{packet:02x?}");
    let of = |at: usize| {
        let address: [u8; 4] = packet[at..at + 4].try_into().expect("four bytes");
        Ipv4Addr::from(address).to_ipv6_mapped()
    };
    let mut header = packet[..20].to_vec();
    assert_eq!(folded(&header), 0xffff, "the sum of the header");
    let (from, to, body) = (of(12), of(16), &packet[20..]);
    header.truncate(0);
    let (proto, ports, head) = match packet[9] {
        1 => (ECHO, (u16::from(body[0]), number(body, 4)), 8),
        17 => (UDP, (number(body, 0), number(body, 2)), 8),
        _ => (TCP, (number(body, 0), number(body, 2)), 20),
    };
    if proto != ECHO {
        header.extend(&packet[12..20]);
        header.extend([0, packet[9]]);
        header.extend((body.len() as u16).to_be_bytes());
    }
    header.extend(body);
    assert_eq!(folded(&header), 0xffff, "the sum of what follows: {packet:02x?}");
    if proto == ECHO && matches!(body[0], 3 | 11) {
        assert_eq!(read_four(&body[8..]).from, to, "an error goes to the sender of what it quotes");
    }
    Said { from, to, proto, ports, hops: packet[8], size: body.len() - head }
}

/// The sum of all words (RFC 1071).
fn folded(bytes: &[u8]) -> u16 {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let mut total: u32 = bytes.chunks(2).map(|word| u32::from(number(word, 0))).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// A packet of IPv4 with right sums.
fn packet_four(said: Said) -> Vec<u8> {
    let of = |address: Ipv6Addr| address.to_ipv4_mapped().expect("it is mapped").octets();
    let mut body = packet(said)[40..].to_vec();
    let place = place(said.proto);
    put(&mut body, place, 0);
    let mut header = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, said.hops, said.proto, 0, 0];
    if said.proto == ECHO {
        header[9] = 1;
        body[0] = 0;
    }
    put(&mut header, 2, 20 + body.len() as u16);
    header.extend(of(said.from));
    header.extend(of(said.to));
    let mut words = Vec::new();
    if said.proto != ECHO {
        words.extend(&header[12..20]);
        words.extend([0, said.proto]);
        words.extend((body.len() as u16).to_be_bytes());
    }
    words.extend(&body);
    let right = !folded(&words);
    put(&mut body, place, if right == 0 && said.proto == UDP { 0xffff } else { right });
    let right = !folded(&header);
    put(&mut header, 10, right);
    [header, body].concat()
}

#[test]
fn a_host_that_has_ipv4_alone_is_reached_by_ipv6_from_the_gateways_address() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BACK_ENDS {
        let mut six = Six::new(&programs, back_end);
        for (proto, number) in SERVICES {
            six.lead((pool(1), proto, number), Some((1, four(80))));
        }
        let mut arp =
            [&GATEWAY[..], &HOST_CARD, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &HOST_CARD, &[10, 0, 0, 80]].concat();
        arp.resize(60, 0);
        six.gateways[0].packet(IN, &arp, 0);
        let mut random = SuiteRandom::new(7);
        let mut ports = BTreeMap::new();
        for _ in 0..1_000 {
            let (proto, number) = *random.pick(&SERVICES);
            let (from, other) = (outside(random.between(1, 30) as u16), 40_000 + random.below(30) as u16);
            let ends = if proto == ECHO { (128, other) } else { (other, number) };
            let size = random.below(60) as usize;
            let ask = Said { from, to: pool(1), proto, ports: ends, hops: 60, size };
            let (gateway, got) = six.asks(&packet(ask)).expect("it leads there");
            let seen = read_four(&got);
            let (port, kind) = if proto == ECHO { (seen.ports.1, 8) } else { (seen.ports.0, number) };
            let ends = if proto == ECHO { (kind, port) } else { (port, kind) };
            assert_eq!(
                (gateway, seen),
                (1, Said { from: four(1), to: four(80), ports: ends, hops: 58, ..ask })
            );
            assert_eq!(got[20 + place(proto) + 2..].len(), packet(ask)[40 + place(proto) + 2..].len());
            // A connection keeps its port, and no two have the same.
            let connection = (from, other);
            assert_eq!(*ports.entry((proto, number, port)).or_insert(connection), connection);

            let answer = Said { from: four(80), to: four(1), ports: (ends.1, ends.0), hops: 60, ..seen };
            let answer = if proto == ECHO { Said { ports: (0, port), ..answer } } else { answer };
            let inside = six.answers(1, &packet_four(answer)).expect("it was asked");
            let left = six.returns(1, &inside).expect("it is of the service");
            assert_eq!(read(&left), Said { hops: 58, ..turned(Said { to: pool(1), ..ask }, pool(1)) });
            if proto == ECHO {
                continue;
            }
            // Errors both ways, with all of what they quote and with a part.
            let cut = random.between(28, got.len() as u64) as usize;
            let cut = if proto == TCP { cut.max(40) } else { cut };
            let about = if random.one_in(2) { &got[..] } else { &got[..cut] };
            for (kind, wanted) in
                [([3, 3, 0, 0], [1, 4, 0, 0]), ([3, 4, 4, 76], [2, 0, 5, 0]), ([11, 0, 0, 0], [3, 0, 0, 0])]
            {
                let mut body = vec![kind[0], kind[1], 0, 0, 0, 0, kind[2], kind[3]];
                body.extend(about);
                let right = !folded(&body);
                put(&mut body, 2, right);
                let mut told = packet_four(Said { size: 0, ..answer })[..20].to_vec();
                (told[8], told[9]) = (60, 1);
                put(&mut told, 2, 20 + body.len() as u16);
                put(&mut told, 10, 0);
                let right = !folded(&told);
                put(&mut told, 10, right);
                told.extend(body);
                let inside = six.answers(1, &told).expect("it is about a connection");
                let told = six.returns(1, &inside).expect("it is of the service");
                assert_eq!((address(&told, 8), address(&told, 24)), (pool(1), from));
                assert_eq!([told[40], told[41], told[46], told[47]], wanted);
                assert_eq!(number_of_sum(&told), 0, "{told:02x?}");
                assert_eq!((address(&told, 56), address(&told, 72)), (from, pool(1)));
                // What is quoted is what was sent, as far as it goes.
                assert_eq!(told[88..], packet(ask)[40..][..told.len() - 88], "{proto} {cut}");
            }
            let about = if random.one_in(2) { &left[..] } else { &left[..(cut + 20).min(left.len())] };
            for (kind, wanted) in
                [((1, 0), [3, 1, 0, 0]), ((2, 1_300), [3, 4, 5, 0]), ((3, 0), [11, 0, 0, 0])]
            {
                let told = error(outside(200), pool(1), kind, about);
                let (_, told) = six.asks(&told).expect("it is about a connection");
                assert_eq!((&told[12..16], &told[16..20]), (&[10, 0, 0, 1][..], &[10, 0, 0, 80][..]));
                assert_eq!([told[20], told[21], told[26], told[27]], wanted);
                assert_eq!(
                    (folded(&told[..20]), folded(&told[20..]), folded(&told[28..48])),
                    (0xffff, 0xffff, 0xffff)
                );
                assert_eq!(told[48..], packet_four(answer)[20..][..told.len() - 48]);
            }
        }
        assert!(ports.len() > 500, "{} connections", ports.len());
        assert_eq!(six.reasons.get("ports_full"), None);
    }
}

#[test]
fn who_forges_initiators_takes_the_ports_of_a_service_for_a_short_time_only() {
    let programs = [program("waypoint"), program("names_gateway")];
    let mut six = Six::new(&programs, BackendKind::Native);
    six.lead((pool(1), TCP, 80), Some((1, four(80))));
    let mut arp =
        [&GATEWAY[..], &HOST_CARD, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &HOST_CARD, &[10, 0, 0, 80]].concat();
    arp.resize(60, 0);
    let ask = Said { from: outside(1), to: pool(1), proto: TCP, ports: (40_000, 80), hops: 60, size: 0 };
    let exchanged = |six: &mut Six, ask: Said| {
        six.gateways[0].packet(IN, &arp, six.now);
        let (_, got) = six.asks(&packet(ask))?;
        let port = read_four(&got).ports.0;
        let answer = Said { from: four(80), to: four(1), ports: (80, port), ..ask };
        six.answers(1, &packet_four(answer)).map(|_| port)
    };
    let own = exchanged(&mut six, ask).expect("there is room");
    assert_eq!(exchanged(&mut six, ask), Some(own), "it is proved from now on");
    for number in 0..120_000_u32 {
        let [_, third, high, low] = number.to_be_bytes().map(u16::from);
        let from = Ipv6Addr::new(0x2001, 0xdb8, 9, third, high, low, 0, 2);
        six.asks(&packet(Said { from, ..ask }));
    }
    assert!(six.reasons.get("ports_full").is_some_and(|full| *full > 50_000), "{:?}", six.reasons);
    assert_eq!(exchanged(&mut six, ask), Some(own), "who is there stays");
    let full = six.reasons.get("ports_full").copied();
    six.now += 31_000_000_000;
    for last in 3..103 {
        assert!(exchanged(&mut six, Said { from: outside(last), ..ask }).is_some());
    }
    assert_eq!((exchanged(&mut six, ask), six.reasons.get("ports_full").copied()), (Some(own), full));
}

/// What is wrong with the checksum of a packet of ICMPv6.
fn number_of_sum(told: &[u8]) -> u16 {
    number(told, 42) ^ sum(address(told, 8), address(told, 24), ECHO, &told[40..], 2)
}
