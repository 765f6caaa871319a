//! The programs `waypoint` and `names_gateway`, one behind the other, with IPv6: each host has an address of
//! its own outside; judged by what leads where, and by sums that are computed here.
//!
//! A packet reaches the host that its address and service lead to, and no other, exactly if they lead
//! anywhere; the host sees the initiator's own address. What a host sends leaves exactly if it is of such a
//! service, behind the gateway of it, from the address outside. Nothing outside names an address inside.

mod translated;

use crate::{GATEWAY, ROUTER, SECOND, WAYPOINT, peer, program};
use engine::{PacketBench, PacketOutcome};
use exec::BackendKind;
use exec::state::MAX_DUE_RUNS;
use ir::{Entry, Match, Program};
use lang::pipeline::{CompileOptions, compile};
use lang::settings::{SetValue, Settings};
use packet::VerdictKind;
use std::collections::{BTreeMap, HashSet};
use std::net::Ipv6Addr;
use suite::corpus::root;
use suite::random::SuiteRandom;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ECHO: u8 = 58;
const FRAGMENT: u8 = 44;

const FIN: u8 = 0x11;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;

/// Ports of both programs: towards initiators, towards hosts.
const OUT: u16 = 1;
const IN: u16 = 2;

const HOST_CARD: [u8; 6] = [2, 0, 0, 0, 0, 80];

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
    /// Flags, number and acknowledged number of TCP, else [`PLAIN`].
    segment: (u8, u32, u32),
}

/// An acknowledgement of nothing.
const PLAIN: (u8, u32, u32) = (0x10, 0, 0);

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
        TCP => {
            let (flags, number, acknowledged) = said.segment;
            body[4..8].copy_from_slice(&number.to_be_bytes());
            body[8..12].copy_from_slice(&acknowledged.to_be_bytes());
            body[12..14].copy_from_slice(&[0x50, flags]);
        }
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

/// What a segment of TCP says of itself.
fn segment(proto: u8, body: &[u8]) -> (u8, u32, u32) {
    let of = |at: usize| u32::from(number(body, at)) << 16 | u32::from(number(body, at + 2));
    if proto == TCP { (body[13], of(4), of(8)) } else { PLAIN }
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
    Said { from, to, proto, ports, hops: packet[7], size: body.len() - head, segment: segment(proto, body) }
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

/// A gateway whose tables are small.
fn small(values: &[(&str, &str)]) -> Program {
    let path = root().join("programs/names_gateway.rav");
    let text = std::fs::read_to_string(&path).expect("it can be read");
    let mut settings = Settings { name: "small".into(), ..Settings::default() };
    for (name, value) in values {
        let at = settings.text.len();
        settings.text += &format!("{name} {value} ");
        let value = at + name.len() + 1..settings.text.len() - 1;
        settings.values.push(SetValue {
            name: (*name).into(),
            place: at..at + name.len(),
            parts: vec![value],
        });
    }
    let options = CompileOptions { settings, ..CompileOptions::default() };
    compile("names_gateway.rav", &text, &|_: &str| None, &options).program.expect("it compiles")
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

    /// So much time passes without packets, and then as much as a thousand ends take: a gateway handles some
    /// of them each millisecond.
    fn rest(&mut self, time: u64) {
        self.now += time;
        for _ in 0..1_000 / MAX_DUE_RUNS + 1 {
            self.now += SECOND / 1_000;
            for bench in self.gateways.iter_mut().chain([&mut self.waypoint]) {
                bench.advance(self.now);
            }
        }
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

    /// Lets a gateway of this number send for a service, whatever leads there.
    fn lead_by(&mut self, (at, proto, number): Service, gateway: u32, host: Ipv6Addr) {
        let key = [gateway.into(), host.to_bits(), proto.into(), number.into()].map(Match::Exact).to_vec();
        let entry = Entry { key, value: vec![at.to_bits()], priority: 0 };
        let back = self.table("stable6_back");
        self.waypoint.processor_mut().insert(back, &entry).expect("there is room");
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
    let ask = Said { from, to, proto, ports, hops: 60, size, segment: PLAIN };
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
    for back_end in BackendKind::ALL {
        let mut six = Six::new(&programs, back_end);
        six.lead((pool(1), UDP, 53), Some((2, host(80))));
        let ask = Said {
            from: outside(1),
            to: pool(1),
            proto: UDP,
            ports: (40_000, 53),
            hops: 60,
            size: 8,
            segment: PLAIN,
        };
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
    for back_end in BackendKind::ALL {
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
    for back_end in BackendKind::ALL {
        let mut six = Six::new(&programs, back_end);
        let mut asked = |last: u16, now: u64| {
            let ports = (40_000, 53);
            let (from, to) = (outside(1), host(last));
            let ask = Said { from, to, proto: UDP, ports, hops: 60, size: 8, segment: PLAIN };
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

/// A segment or datagram of the host to an initiator, by the gateway and the waypoint.
fn says(six: &mut Six, to: Said, segment: (u8, u32, u32)) -> bool {
    six.resolve(1, host(80));
    let said = Said { segment, ..turned(to, host(80)) };
    let inside = six.answers(1, &packet(said));
    inside.is_some_and(|inside| six.returns(1, &inside).is_some())
}

/// A session whose initiator shows that it gets answers.
fn proves(six: &mut Six, ask: Said) {
    six.resolve(1, host(80));
    six.asks(&packet(Said { segment: (SYN, 100, 0), ..ask })).expect("it leads there");
    assert!(says(six, ask, (SYN_ACK, 700, 101)));
    six.asks(&packet(Said { segment: (ACK, 101, 701), ..ask })).expect("it leads there");
}

#[test]
fn by_ipv6_nobody_pushes_a_proved_session_out() {
    let values = [("MOST_SESSIONS", "1000"), ("MOST_PROVED6", "101"), ("PLACES_OF_64", "100")];
    let programs = [program("waypoint"), small(&values)];
    let many = |which: u16| Ipv6Addr::new(0x2a00, which, 0, 0, 0, 0, 0, 1);
    for back_end in BackendKind::ALL {
        let mut six = Six::new(&programs, back_end);
        for (proto, number) in SERVICES {
            six.lead((pool(1), proto, number), Some((1, host(80))));
        }
        let ask = |from: Ipv6Addr, proto: u8, other: u16| {
            let ports = match proto {
                ECHO => (128, other),
                TCP => (other, 80),
                _ => (other, 53),
            };
            Said { from, to: pool(1), proto, ports, hops: 60, size: 0, segment: PLAIN }
        };
        // One network proves a lot and gets its part; then come one of another, and many that prove nothing.
        for other in 0..400 {
            proves(&mut six, ask(outside(1), TCP, other));
        }
        let quiet = [TCP, UDP, ECHO].map(|proto| ask(many(9_999), proto, 40_000));
        for ask in quiet {
            proves(&mut six, ask);
        }
        for which in 0..2_000 {
            six.asks(&packet(Said { segment: (SYN, 100, 0), ..ask(many(which), TCP, 40_000) }));
        }
        for ask in quiet {
            assert!(says(&mut six, ask, (ACK, 701, 101)), "{ask:?}");
        }
        let kept: Vec<_> =
            (0..400).filter(|other| says(&mut six, ask(outside(1), TCP, *other), (ACK, 701, 101))).collect();
        assert_eq!(kept, (0..100).collect::<Vec<_>>());
        // Beyond the part of its network, or beyond all places, a session works like one that is not proved.
        let beyond = [ask(outside(1), TCP, 50_000), ask(many(8_888), TCP, 50_000)];
        for ask in beyond {
            proves(&mut six, ask);
            assert!(says(&mut six, ask, (ACK, 701, 101)));
        }
        six.now += 121 * SECOND;
        for ask in beyond {
            assert!(!says(&mut six, ask, (ACK, 701, 101)));
        }
        assert!(says(&mut six, quiet[0], (ACK, 701, 101)));
    }
}

#[test]
fn by_ipv6_a_gateway_sends_little_to_those_who_sent_it_nothing() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut six = Six::new(&programs, back_end);
        for gateway in [1, 2] {
            six.lead((pool(gateway.into()), UDP, 53), Some((gateway, host(80))));
            six.lead((pool(gateway.into()), TCP, 80), Some((gateway, host(80))));
        }
        let ports = (53, 40_000);
        let said =
            Said { from: host(80), to: outside(1), proto: UDP, ports, hops: 60, size: 8, segment: PLAIN };
        let begins = Said { proto: TCP, ports: (80, 443), segment: (SYN, 100, 0), ..said };
        assert_eq!(six.returns(1, &packet(begins)), None, "names are no way out");
        let sent = |six: &mut Six, gateway: u8| {
            let to = |last: u16| Ipv6Addr::new(0x2a00, 1, 1, 1, 0, 0, 0, last);
            let all = (0..4_000)
                .filter(|last| six.returns(gateway, &packet(Said { to: to(*last), ..said })).is_some());
            all.count()
        };
        assert_eq!([1, 1].map(|gateway| sent(&mut six, gateway)), [1_000, 0]);
        let asked = Said { from: outside(1), to: pool(1), ports: (40_000, 53), ..said };
        assert_eq!(six.returns(1, &packet(said)), None);
        six.asks(&packet(asked)).expect("it leads there");
        assert!((0..4_000).all(|_| six.returns(1, &packet(said)).is_some()), "it answers");
        assert_eq!(sent(&mut six, 2), 1_000, "the other gateway");
        six.now += 2 * SECOND;
        assert_eq!(sent(&mut six, 1), 200);
        assert_eq!(six.reasons["unasked"], 3_000 + 4_000 + 1 + 3_000 + 3_800);
        // Whatever the numbers of gateways are, none takes from another one.
        let numbered = |six: &mut Six, number: u32| {
            let [_, a, b, c] = number.to_be_bytes();
            six.lead_by((pool(9), UDP, 53), number, host(80));
            let to = |last: u16| Said { to: Ipv6Addr::new(0x2a00, 1, 1, 1, 0, 0, 0, last), ..said };
            let frame =
                |last| framed(([2, 0x52, 0x56, 0, 0, 0], [2, 0x52, 0x56, a, b, c]), &packet(to(last)));
            (0..2_000).filter(|last| !six.waypoint.packet(IN, &frame(*last), six.now).left.is_empty()).count()
        };
        assert_eq!([4_100, 8_196, 1_048_580].map(|number| numbered(&mut six, number)), [1_000; 3]);
    }
}
