//! The programs `waypoint` and `names_gateway`, one behind the other, judged by what names promise.
//!
//! A packet reaches the host that its initiator was promised and no other, with the initiator's own
//! address; who is bound to a host is bound to no other one within two minutes; what could be for the host
//! of a binding or for the one that is promised goes to neither; only the gateway of a binding answers for
//! it; nobody gets more than three times what it sent before it has shown that it gets answers; checksums
//! stay right; and no private address gets outside. The judge knows promises and packets, nothing of the
//! programs' tables.

mod ends;
mod names_messages;
mod names_segments;
mod names_six;

use ends::{Ends, ICMP, TCP, UDP, ends, rewritten, valid, without_wrong};
use engine::{PacketBench, PacketOutcome};
use etherparse::PacketBuilder;
use exec::BackendKind;
use exec::state::MAX_DUE_RUNS;
use ir::{Entry, Match, Program};
use lang::pipeline::Decode;
use names_segments::{ACK, Address, FIN, ROUTER, RST, SECOND, SYN, WAYPOINT, peer, tcp_header};
use packet::VerdictKind;
use std::collections::{BTreeMap, HashMap};
use suite::corpus::{compile_file, root, shipped_with};
use suite::random::SuiteRandom;

const QUARANTINE: u64 = 120 * SECOND;
/// For how long a packet may come again that could have been for another host.
const CONTESTED: u64 = 65 * SECOND;

/// Ports: of the waypoint outside and inside, of a gateway inside and to its hosts.
const PUBLIC: u16 = 1;
const TUNNEL: u16 = 2;
const GATEWAY_TUNNEL: u16 = 1;
const HOSTS: u16 = 2;

const GATEWAY: [u8; 6] = [2, 0, 0x5e, 0, 0, 2];
/// The number that gateways know the waypoint by.
const WAYPOINT_NUMBER: u8 = 9;

/// The number that every segment begins with.
const SEQUENCE: u32 = 7;

/// Initiator, waypoint address, protocol, port or 0 for echo.
type Claim = (Address, Address, u8, u16);

fn program(name: &str) -> Program {
    let path = root().join(format!("programs/{name}.rav"));
    compile_file(&path, Decode::Lazy).expect("it can be read").program.expect("it compiles")
}

fn card(host: Address) -> [u8; 6] {
    [2, 0, 0, 0, 0, host[3]]
}

/// What a packet says, without its frame.
#[derive(Clone, Copy, Debug)]
struct Said {
    from: Address,
    to: Address,
    proto: u8,
    ports: (u16, u16),
    /// Flags of TCP; for an echo, whether it is the reply.
    flags: u8,
    /// What TCP acknowledges.
    ack: u32,
    size: usize,
}

impl Said {
    /// What acknowledges a segment.
    fn next(&self) -> u32 {
        SEQUENCE + self.size as u32 + u32::from(self.flags & SYN != 0)
    }
}

/// The first segment of a connection to the web of a host.
fn opening(from: Address, to: Address) -> Said {
    Said { from, to, proto: TCP, ports: (40_000, 80), flags: SYN, ack: 0, size: 0 }
}

fn frame(cards: ([u8; 6], [u8; 6]), said: Said) -> Vec<u8> {
    let ip = PacketBuilder::ethernet2(cards.0, cards.1).ipv4(said.from, said.to, 60);
    let body = vec![0x5a; said.size];
    let mut bytes = Vec::new();
    let written = match said.proto {
        TCP => {
            let header = tcp_header(said.ports, SEQUENCE, said.ack, said.flags, 1_000);
            ip.tcp_header(header).write(&mut bytes, &body)
        }
        UDP => ip.udp(said.ports.0, said.ports.1).write(&mut bytes, &body),
        _ if said.flags == 0 => ip.icmpv4_echo_request(said.ports.0, 1).write(&mut bytes, &body),
        _ => ip.icmpv4_echo_reply(said.ports.0, 1).write(&mut bytes, &body),
    };
    written.expect("a packet can be written");
    bytes
}

/// What the judge has seen of a claim.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    gateway: u8,
    host: Address,
    last: u64,
    came: usize,
    left: usize,
    /// What acknowledges the latest answer.
    next: u32,
    proved: bool,
    /// When a packet could have been for another host last: until this one is promised again, and 65 s have
    /// passed, nothing new reaches it.
    contested: Option<u64>,
    /// When a packet was refused last that may have begun something.
    refused: u64,
    /// The same, and what was there has ended with it.
    over: bool,
}

impl Seen {
    /// When a packet came or left last, or was refused.
    fn heard(&self) -> u64 {
        self.last.max(self.refused)
    }
}

/// Waypoint address, protocol, port and, where only one is meant, initiator.
type PromiseKey = (Address, u8, u16, Option<Address>);

struct Judge<'a> {
    waypoint: PacketBench<'a>,
    gateways: Vec<PacketBench<'a>>,
    programs: [&'a Program; 2],
    /// Gateway and host.
    promises: BTreeMap<PromiseKey, (u8, Address)>,
    seen: HashMap<Claim, Seen>,
    now: u64,
    reasons: BTreeMap<String, u64>,
    reached: u64,
    answered: u64,
}

fn reason<'a>(program: &'a Program, outcome: &PacketOutcome) -> Option<&'a str> {
    let verdict = outcome.verdict.expect("a packet has a verdict");
    let number = (verdict.kind() == VerdictKind::Drop).then(|| verdict.argument() as usize)?;
    program.reasons.get(number).map(|reason| reason.name.as_str())
}

/// Nothing has changed but addresses, the TTL by one, and checksums, which are right.
fn carried(before: &[u8], after: &[u8]) -> Ends {
    let found = ends(after).expect("it is what it was");
    assert_eq!(valid(after), (true, true), "{found:?}");
    assert_eq!(after[22] + 1, before[22], "one hop");
    let was = ends(before).expect("it was sent so");
    assert_eq!((found.src.1, found.dst.1), (was.src.1, was.dst.1), "ports stay");
    let mut back = rewritten(after, Some(was.src), Some(was.dst));
    back[..12].copy_from_slice(&before[..12]);
    back[22] = before[22];
    // The sum of the IP header, judged above, follows the TTL.
    assert_eq!(
        without_wrong(&back, (false, true)),
        without_wrong(before, (false, true)),
        "nothing else changes"
    );
    found
}

impl<'a> Judge<'a> {
    fn new(waypoint: &'a Program, gateway: &'a Program, back_end: BackendKind) -> Judge<'a> {
        let bench = |program| PacketBench::new(program, back_end, 2, 0).expect("it loads");
        let mut judge = Judge {
            waypoint: bench(waypoint),
            gateways: vec![bench(gateway), bench(gateway)],
            programs: [waypoint, gateway],
            promises: BTreeMap::new(),
            seen: HashMap::new(),
            now: 0,
            reasons: BTreeMap::new(),
            reached: 0,
            answered: 0,
        };
        let table = judge.expectations();
        judge.waypoint.processor_mut().replace(table, Vec::new()).expect("it can be emptied");
        judge
    }

    /// So much time passes without packets, and then as much as ends of all young bindings take together: a
    /// gateway handles some of them each millisecond.
    fn rest(&mut self, time: u64) {
        self.now += time;
        for _ in 0..4_096 / MAX_DUE_RUNS + 1 {
            self.now += SECOND / 1_000;
            for bench in self.gateways.iter_mut().chain([&mut self.waypoint]) {
                bench.advance(self.now);
            }
        }
    }

    fn expectations(&self) -> u32 {
        let place = self.programs[0].tables.iter().position(|table| table.name == "expectations");
        place.expect("the waypoint has expectations") as u32
    }

    /// Promises the web of a host at an address to everybody, and has the host known by ARP.
    fn promise_web(&mut self) -> Address {
        let at = [198, 51, 100, 1];
        self.promise(at, TCP, 80, None, Some((1, [10, 0, 0, 80])));
        self.resolve(1, [10, 0, 0, 80]);
        at
    }

    /// Promises an address, or takes the promise back.
    fn promise(
        &mut self,
        at: Address,
        proto: u8,
        number: u16,
        only: Option<Address>,
        to: Option<(u8, Address)>,
    ) {
        let last = match only {
            Some(initiator) => Match::Prefix { value: u32::from_be_bytes(initiator).into(), length: 32 },
            None => Match::Prefix { value: 0, length: 0 },
        };
        let exact = [u32::from_be_bytes(at).into(), proto.into(), number.into()].map(Match::Exact);
        let key: Vec<Match> = exact.into_iter().chain([last]).collect();
        let table = self.expectations();
        match to {
            Some((gateway, host)) => {
                let value = vec![gateway.into(), u32::from_be_bytes(host).into()];
                let entry = Entry { key, value, priority: 0 };
                self.waypoint.processor_mut().insert(table, &entry).expect("there is room");
                self.promises.insert((at, proto, number, only), (gateway, host));
            }
            None => {
                self.waypoint.processor_mut().remove(table, &key, 0);
                self.promises.remove(&(at, proto, number, only));
            }
        }
    }

    fn count(&mut self, program: usize, outcome: &PacketOutcome) {
        if let Some(reason) = reason(self.programs[program], outcome) {
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// A packet from outside. Gives the gateway and the host that it reached.
    fn asks(&mut self, said: Said) -> Option<(u8, Address)> {
        let sent = frame((ROUTER, WAYPOINT), said);
        let outcome = self.waypoint.packet(PUBLIC, &sent, self.now);
        self.count(0, &outcome);
        let number = if said.proto == ICMP { 0 } else { said.ports.1 };
        let claim = (said.from, said.to, said.proto, number);
        let promised = self.promises.get(&(said.to, said.proto, number, Some(said.from)));
        let promised = promised.or_else(|| self.promises.get(&(said.to, said.proto, number, None))).copied();
        let opens = said.proto != TCP || said.flags & (SYN | ACK | RST | FIN) == SYN;
        if reason(self.programs[0], &outcome) == Some("ambiguous") {
            let seen = self.seen.get_mut(&claim).expect("it reached somebody before");
            assert!(opens, "{said:?} belongs to what was there");
            match promised {
                Some(one) if one != (seen.gateway, seen.host) => {}
                Some(_) => {
                    let since = seen.contested.map(|at| self.now - at);
                    assert!(since.is_some_and(|since| since < 2 * CONTESTED), "{said:?} is for this one");
                }
                None => assert!(seen.contested.is_some(), "{said:?} can be for {seen:?} alone"),
            }
            if said.proto != TCP || !seen.proved {
                let Seen { gateway, host, contested, .. } = *seen;
                *seen = Seen { gateway, host, last: self.now, contested, over: true, ..Seen::default() };
            }
        }
        // Who goes on sending may still mean the host that it has reached, or the one that was promised.
        let refused = reason(self.programs[0], &outcome);
        if opens
            && matches!(refused, Some("quarantined" | "no_expectation" | "ambiguous"))
            && let Some(seen) = self.seen.get_mut(&claim)
            && self.now - seen.heard() < QUARANTINE
        {
            seen.refused = self.now;
            if promised.is_some_and(|promised| promised != (seen.gateway, seen.host)) {
                seen.contested = Some(self.now);
            }
        }
        let (_, left) = outcome.left.first()?;
        assert_eq!((outcome.left.len(), outcome.left[0].0), (1, TUNNEL), "one packet, into the tunnel");
        let found = carried(&sent, left);
        assert_eq!(left[6..12], peer(0), "the tunnel's own end sends it");
        assert_eq!(left[..5], peer(0)[..5]);
        let (gateway, host) = (left[5], found.dst.0);
        assert_eq!(found.src.0, said.from, "the host sees the initiator");

        let mut seen = Seen { gateway, host, ..Seen::default() };
        match self.seen.get(&claim) {
            Some(known) if (known.gateway, known.host) == (gateway, host) => {
                seen = *known;
                let is_its = promised == Some((gateway, host));
                assert!(!opens || is_its || promised.is_none(), "{said:?} could be for {promised:?}");
                let is_free = |at| is_its && self.now - at >= CONTESTED;
                assert!(!opens || seen.contested.is_none_or(is_free), "{said:?} may be for somebody else");
                assert!(opens || !seen.over, "{said:?} belongs to what has ended");
                if opens {
                    (seen.contested, seen.over) = (None, false);
                }
                let answered = seen.left > 0;
                let acknowledges = said.flags & (SYN | ACK | RST) == ACK && said.ack == seen.next;
                let proves = said.proto != TCP || acknowledges;
                if answered && proves && self.now - seen.last < 10 * SECOND {
                    seen.proved = true;
                }
            }
            Some(known) => {
                let since = self.now - known.heard();
                assert!(since >= QUARANTINE, "{claim:?} was {known:?}, is {host:?} too soon");
                assert_eq!(promised, Some((gateway, host)), "{claim:?} was promised something else");
            }
            None => assert_eq!(promised, Some((gateway, host)), "{claim:?} was promised something else"),
        }
        seen.came += usize::from(ends::number(left, 16));
        seen.last = self.now;
        self.seen.insert(claim, seen);

        // Through the tunnel, which names the ends by what they are for each other.
        let mut inside = left.clone();
        inside[..6].copy_from_slice(&peer(0));
        inside[6..12].copy_from_slice(&peer(WAYPOINT_NUMBER));
        let outcome = self.gateways[usize::from(gateway) - 1].packet(GATEWAY_TUNNEL, &inside, self.now);
        self.count(1, &outcome);
        if reason(self.programs[1], &outcome) == Some("resolving") {
            let [(HOSTS, asked)] = &outcome.left[..] else { panic!("it asks for the host: {outcome:?}") };
            assert_eq!((&asked[..6], &asked[38..42]), (&[255; 6][..], &host[..]));
            self.resolve(gateway, host);
            return None;
        }
        let [(HOSTS, reached)] = &outcome.left[..] else { panic!("it reaches the host: {outcome:?}") };
        let found = carried(&inside, reached);
        assert_eq!((found.src.0, found.dst.0), (said.from, host));
        assert_eq!((&reached[..6], &reached[6..12]), (&card(host)[..], &GATEWAY[..]));
        self.reached += 1;
        Some((gateway, host))
    }

    /// The answer of a host to the question for its card.
    fn resolve(&mut self, gateway: u8, host: Address) {
        let mut arp =
            [&GATEWAY[..], &card(host), &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &card(host), &host].concat();
        arp.extend_from_slice(&GATEWAY);
        arp.extend_from_slice(&[10, 0, 0, 1]);
        arp.resize(60, 0);
        let outcome = self.gateways[usize::from(gateway) - 1].packet(HOSTS, &arp, self.now);
        assert_eq!(reason(self.programs[1], &outcome), Some("arp_done"));
    }

    /// A packet of a host behind its gateway.
    fn answers(&mut self, gateway: u8, said: Said) {
        let sent = frame((card(said.from), GATEWAY), said);
        let outcome = self.gateways[usize::from(gateway) - 1].packet(HOSTS, &sent, self.now);
        self.count(1, &outcome);
        let Some((port, left)) = outcome.left.first() else { return };
        assert_eq!((*port, outcome.left.len()), (GATEWAY_TUNNEL, 1));
        carried(&sent, left);
        assert_eq!((&left[..6], &left[6..12]), (&peer(WAYPOINT_NUMBER)[..], &peer(0)[..]));
        self.returns(gateway, said, left);
    }

    /// A packet that a gateway sends into the tunnel, whatever it says.
    fn returns(&mut self, gateway: u8, said: Said, packet: &[u8]) {
        let mut packet = packet.to_vec();
        packet[..6].copy_from_slice(&peer(0));
        packet[6..12].copy_from_slice(&peer(gateway));
        let outcome = self.waypoint.packet(TUNNEL, &packet, self.now);
        self.count(0, &outcome);
        let Some((port, left)) = outcome.left.first() else { return };
        assert_eq!((*port, outcome.left.len()), (PUBLIC, 1));
        let found = carried(&packet, left);
        assert_eq!((&left[..6], &left[6..12]), (&ROUTER[..], &WAYPOINT[..]));
        assert_eq!(found.dst.0, said.to);
        let number = if said.proto == ICMP { 0 } else { said.ports.0 };
        let seen = self.seen.get_mut(&(said.to, found.src.0, said.proto, number));
        let seen = seen.unwrap_or_else(|| panic!("nobody asked for {said:?}, which left as {found:?}"));
        assert_eq!((seen.gateway, seen.host), (gateway, said.from), "only the host that was asked answers");
        assert!(!seen.over, "nobody waits for {said:?} any more");
        seen.left += usize::from(ends::number(left, 16));
        seen.last = self.now;
        seen.next = said.next();
        assert!(seen.proved || seen.left <= 3 * seen.came, "more than was asked for: {seen:?}");
        self.answered += 1;
    }
}

/// An initiator's exchange with what is, perhaps, behind an address.
fn exchange(judge: &mut Judge, random: &mut SuiteRandom, from: Address, at: Address, service: (u8, u16)) {
    let (proto, number) = service;
    let from_port = 40_000 + random.below(3) as u16;
    let ports = if proto == ICMP { (from_port, from_port) } else { (from_port, number) };
    let first = if random.one_in(8) { ACK } else { SYN };
    let flags = if proto == TCP { first } else { 0 };
    let mut ask = Said { from, to: at, proto, ports, flags, ack: 70, size: 8 };
    for round in 0..random.between(1, 4) {
        let Some((gateway, host)) = judge.asks(ask) else { continue };
        judge.now += random.below(SECOND);
        if !random.one_in(4) {
            let flags = if round == 0 { SYN | ACK } else { ACK };
            let size = if random.one_in(3) { 400 } else { 8 };
            let answer =
                Said { from: host, to: from, proto, ports: (ports.1, ports.0), flags, ack: 70, size };
            judge.answers(gateway, answer);
            // Who only guesses acknowledges something else.
            ask.ack = if random.one_in(5) { answer.next() + 1 } else { answer.next() };
            // Somebody else says the same: another gateway, another host, to somebody else.
            let other = 3 - gateway;
            judge.returns(other, answer, &frame((peer(0), peer(0)), answer));
            let lie = Said { from: [10, 0, 0, host[3] + 1], ..answer };
            judge.returns(gateway, lie, &frame((peer(0), peer(0)), lie));
            let lie = Said { from: at, ..answer };
            judge.returns(gateway, lie, &frame((peer(0), peer(0)), lie));
        }
        if proto == TCP {
            ask.flags = if random.one_in(5) { SYN } else { ACK };
        }
    }
}

fn live(back_end: BackendKind, seed: u64, steps: u32) -> BTreeMap<String, u64> {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    let mut judge = Judge::new(&waypoint, &gateway, back_end);
    let mut random = SuiteRandom::new(seed);
    let services = [(TCP, 80), (TCP, 22), (UDP, 53), (ICMP, 0)];
    for _ in 0..steps {
        let at = [198, 51, 100, random.between(1, 3) as u8];
        let from = match random.below(12) {
            0 => [10, 0, 0, 80],
            1 => [198, 51, 100, 2],
            _ => [203, 0, 113, random.between(1, 6) as u8],
        };
        let service = *random.pick(&services);
        if random.one_in(3) {
            let only = random.one_in(2).then_some(from);
            let host = (random.between(1, 2) as u8, [10, 0, 0, random.between(80, 83) as u8]);
            let to = (!random.one_in(4)).then_some(host);
            judge.promise(at, service.0, service.1, only, to);
        }
        exchange(&mut judge, &mut random, from, at, service);
        judge.now += match random.below(20) {
            0 => 200 * SECOND,
            1 => 7_500 * SECOND,
            2..=5 => 15 * SECOND,
            _ => random.below(SECOND),
        };
    }
    assert!(judge.reached > u64::from(steps) / 4, "only {} packets reached a host", judge.reached);
    assert!(judge.answered > u64::from(steps) / 8, "only {} answers", judge.answered);
    judge.reasons
}

#[test]
fn initiators_reach_what_they_were_promised_and_nothing_else() {
    for seed in [1, 2] {
        let judged = live(BackendKind::Interpreter, seed, 3_000);
        assert_eq!(live(BackendKind::Native, seed, 3_000), judged);
        for reason in [
            "no_expectation",
            "no_binding",
            "not_its_binding",
            "bound_elsewhere",
            "quarantined",
            "ambiguous",
            "unproven",
            "martian",
            "resolving",
        ] {
            assert!(judged.contains_key(reason), "nothing was dropped as {reason}: {judged:?}");
        }
    }
}

#[test]
fn who_proves_nothing_takes_no_more_places_than_there_are() {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = judge.promise_web();
        let known = opening([203, 0, 113, 1], at);
        let answer =
            Said { from: [10, 0, 0, 80], to: known.from, ports: (80, 40_000), flags: SYN | ACK, ..known };
        assert!(judge.asks(known).is_some());
        judge.answers(1, answer);
        let acknowledged = Said { flags: ACK, ack: answer.next(), ..known };
        assert!(judge.asks(acknowledged).is_some());
        // One network (/24) has so many.
        for low in 0..200 {
            judge.asks(Said { from: [192, 3, 0, low], ..known });
        }
        assert_eq!(judge.reasons.get("network_full"), Some(&(200 - 64)));
        // Each of another network: the host gets half of the places, since one more may want the same.
        for number in 0..5_000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            judge.asks(Said { from: [192, 16 + high, low, 1], ..known });
        }
        assert_eq!(judge.reasons.get("host_full"), Some(&(5_000 - (2_048 - 64))));
        judge.promise(at, TCP, 22, None, Some((2, [10, 0, 0, 81])));
        judge.resolve(2, [10, 0, 0, 81]);
        let other = Said { ports: (40_000, 22), ..known };
        for number in 0..5_000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            judge.asks(Said { from: [192, 64 + high, low, 1], ..other });
        }
        // Two hosts, and one more that may want: a third each, of which the first has more already.
        assert_eq!(judge.reasons.get("host_full"), Some(&(5_000 - (2_048 - 64) + 5_000 - 1_366)));
        judge.promise(at, TCP, 443, None, Some((2, [10, 0, 0, 82])));
        judge.resolve(2, [10, 0, 0, 82]);
        assert!(judge.asks(Said { ports: (40_000, 443), ..known }).is_some(), "a host that nobody floods");
        assert!(judge.asks(Said { flags: ACK, ..known }).is_some(), "who is bound stays so");
        judge.rest(11 * SECOND);
        assert!(judge.asks(Said { from: [192, 3, 0, 1], ..known }).is_some(), "their time is over");
        for number in 0..1_000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            let from = [192, 16 + high, low, 1];
            judge.now += SECOND / 1_000;
            assert!(
                judge.asks(Said { from, ..known }).is_some(),
                "and their places are free: {number} {:?}",
                judge.reasons
            );
        }
    }
}

#[test]
fn who_goes_on_sending_through_quarantine_reaches_nobody_else() {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = [198, 51, 100, 1];
        let (own, other) = (Some((1, [10, 0, 0, 80])), Some((2, [10, 0, 0, 81])));
        judge.resolve(1, [10, 0, 0, 80]);
        judge.promise(at, UDP, 53, None, own);
        let from = [203, 0, 113, 1];
        let ask = Said { from, to: at, proto: UDP, ports: (40_000, 53), flags: 0, ack: 0, size: 8 };
        assert_eq!(judge.asks(ask), own);
        // Now and then another host has the address, in between nobody.
        for second in 1..600 {
            judge.now = second * SECOND;
            judge.promise(at, UDP, 53, None, other.filter(|_| second / 70 % 2 == 1));
            if second > 12 {
                assert_eq!(judge.asks(ask), None, "after {second} s");
            }
        }
        assert!(judge.reasons["quarantined"] > 200 && judge.reasons["no_expectation"] > 200);
        judge.promise(at, UDP, 53, None, own);
        judge.now += CONTESTED / 2;
        assert_eq!(judge.asks(ask), None, "what is sent may be for the other one");
        judge.now += CONTESTED;
        judge.resolve(1, [10, 0, 0, 80]);
        assert_eq!(judge.asks(ask), own, "its own host again");
        judge.now += 600 * SECOND;
        judge.promise(at, UDP, 53, None, other);
        judge.resolve(2, [10, 0, 0, 81]);
        assert_eq!(judge.asks(ask), other, "it has been silent for long enough");
    }
}

#[test]
fn a_connection_for_another_host_does_not_reach_that_of_the_binding_when_it_is_sent_again() {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = judge.promise_web();
        let from = [203, 0, 113, 1];
        let ask = Said { from, to: at, proto: TCP, ports: (40_000, 80), flags: SYN, ack: 0, size: 0 };
        let own = judge.asks(ask);
        assert_eq!(own, Some((1, [10, 0, 0, 80])));
        let answer = Said { from: [10, 0, 0, 80], to: from, ports: (80, 40_000), flags: SYN | ACK, ..ask };
        judge.answers(1, answer);
        assert!(judge.asks(Said { flags: ACK, ack: answer.next(), ..ask }).is_some());
        judge.promise(at, TCP, 80, None, Some((2, [10, 0, 0, 81])));
        judge.now += SECOND;
        assert_eq!(judge.asks(ask), None);
        // The host of the binding is promised anew before the SYN for the other one has been given up.
        judge.promise(at, TCP, 80, None, own);
        for pause in [2, 4, 8, 16, 32] {
            judge.now += pause * SECOND;
            assert_eq!(judge.asks(ask), None, "{} s", judge.now / SECOND);
        }
        assert_eq!(judge.reasons["ambiguous"], 6);
        judge.now += 3 * SECOND;
        assert_eq!(judge.asks(ask), own);
    }
}

/// An exchange of datagrams in which the initiator sends again behind an answer.
fn proves(judge: &mut Judge, from: Address, at: Address, port: u16) {
    let ask = Said { from, to: at, proto: UDP, ports: (40_000, port), flags: 0, ack: 0, size: 8 };
    let (gateway, host) = judge.asks(ask).expect("it is let through");
    let answer = Said { from: host, to: from, ports: (port, 40_000), ..ask };
    judge.answers(gateway, answer);
    assert!(judge.asks(ask).is_some(), "an exchange goes on, bound or not");
    judge.answers(gateway, answer);
}

#[test]
fn who_proves_much_leaves_bindings_to_other_hosts_gateways_and_networks() {
    let waypoint = shipped_with("waypoint.rav", &[("MOST_BINDINGS", "120"), ("BINDINGS_OF_NETWORK", "8")]);
    let gateway = program("names_gateway");
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = [198, 51, 100, 1];
        let hosts = [(1, [10, 0, 0, 80]), (1, [10, 0, 0, 81]), (2, [10, 0, 0, 82])];
        for (port, (gateway, host)) in (53..).zip(hosts) {
            judge.promise(at, UDP, port, None, Some((gateway, host)));
            judge.resolve(gateway, host);
        }
        let forged = |number: u32| [192, 16 + (number / 250) as u8, (number % 250) as u8, 1];
        let one_network = |last: u32| [203, 0, 113, last as u8];
        (0..400).for_each(|number| proves(&mut judge, forged(number), at, 53));
        (1..21).for_each(|last| proves(&mut judge, one_network(last), at, 54));
        proves(&mut judge, forged(1_000), at, 54);
        // Who comes next finds a quarter of its gateway's part, or of all.
        (0..60).for_each(|number| proves(&mut judge, forged(1_001 + number), at, 54));
        (0..60).for_each(|number| proves(&mut judge, forged(2_000 + number), at, 55));
        // What is bound is there when the time of young ones is over.
        judge.now += 20 * SECOND;
        let mut bound = |froms: Vec<Address>, port: u16, (gateway, host): (u8, Address)| {
            let before = judge.answered;
            for to in froms {
                let said =
                    Said { from: host, to, proto: UDP, ports: (port, 40_000), flags: 0, ack: 0, size: 8 };
                judge.answers(gateway, said);
            }
            judge.answered - before
        };
        // With one gateway and one host: three quarters of three quarters.
        assert_eq!(bound((0..400).map(forged).collect(), 53, hosts[0]), 68);
        assert_eq!(bound((1..21).map(one_network).collect(), 54, hosts[1]), 8);
        assert_eq!(bound((1_000..1_061).map(forged).collect(), 54, hosts[1]), 90 - 68 - 8);
        assert_eq!(bound((2_000..2_060).map(forged).collect(), 55, hosts[2]), 30);
        // Their end gives the places back.
        judge.rest(400 * SECOND);
        assert!(
            judge
                .asks(Said {
                    from: forged(5),
                    to: at,
                    proto: TCP,
                    ports: (1, 1),
                    flags: SYN,
                    ack: 0,
                    size: 0
                })
                .is_none()
        );
        for (gateway, host) in hosts {
            judge.resolve(gateway, host);
        }
        (0..30).for_each(|number| proves(&mut judge, forged(3_000 + number), at, 53));
        judge.now += 20 * SECOND;
        let before = judge.answered;
        for number in 0..30 {
            let to = forged(3_000 + number);
            judge.answers(
                1,
                Said { from: hosts[0].1, to, proto: UDP, ports: (53, 40_000), flags: 0, ack: 0, size: 8 },
            );
        }
        assert_eq!(judge.answered - before, 30);
    }
}

/// What a host with answers that it has given to all of these, bound or not.
fn answered(judge: &mut Judge, froms: &[Address], port: u16, (gateway, host): (u8, Address)) -> u64 {
    let before = judge.answered;
    for &to in froms {
        let said = Said { from: host, to, proto: UDP, ports: (port, 40_000), flags: 0, ack: 0, size: 8 };
        judge.answers(gateway, said);
    }
    judge.answered - before
}

#[test]
fn nobody_is_bound_between_the_end_of_a_binding_and_its_quarantine() {
    let (waypoint, gateway) =
        (shipped_with("waypoint.rav", &[("MOST_YOUNG", "16k")]), program("names_gateway"));
    let (own, other) = ((1, [10, 0, 0, 80]), (2, [10, 0, 0, 81]));
    let from = |number: u16| [11, (number >> 8) as u8, number as u8, 1];
    let ask = |number| Said {
        from: from(number),
        to: [198, 51, 100, 1],
        proto: UDP,
        ports: (40_000, 53),
        flags: 0,
        ack: 0,
        size: 8,
    };
    // More end together than begin to end at one moment. The end of one takes three handlers, and no packet
    // may come between them.
    for number in MAX_DUE_RUNS as u16 - 3..MAX_DUE_RUNS as u16 + 3 {
        let mut judge = Judge::new(&waypoint, &gateway, BackendKind::Native);
        judge.resolve(1, own.1);
        judge.promise(ask(0).to, UDP, 53, None, Some(own));
        (0..200).for_each(|number| assert_eq!(judge.asks(ask(number)), Some(own)));
        judge.promise(ask(0).to, UDP, 53, None, Some(other));
        judge.now += 10 * SECOND;
        judge.resolve(2, other.1);
        assert_eq!(judge.asks(ask(number)), None, "{number}");
    }
}

#[test]
fn promises_that_change_each_second_fill_no_quarantine() {
    let settings = [("MOST_BINDINGS", "75"), ("MOST_YOUNG", "64")];
    let (waypoint, gateway) = (shipped_with("waypoint.rav", &settings), program("names_gateway"));
    let table = waypoint.tables.iter().position(|table| table.name == "quarantine").expect("one") as u32;
    let (at, hosts) = ([198, 51, 100, 1], [(1, [10, 0, 0, 80]), (2, [10, 0, 0, 81])]);
    for proves_itself in [false, true] {
        let mut judge = Judge::new(&waypoint, &gateway, BackendKind::Native);
        let (mut number, mut passed) = (0_u16, Vec::new());
        for second in 0..150 {
            judge.now = second * SECOND;
            let own = hosts[second as usize % 2];
            judge.resolve(own.0, own.1);
            judge.promise(at, UDP, 53, None, Some(own));
            // Who has reached the other host a second ago sends again, and others begin.
            let others = std::mem::take(&mut passed).into_iter().chain(number..number + 100);
            number += 100;
            for number in others {
                let from = [11, (number >> 8) as u8, number as u8, 1];
                let ask = Said { from, to: at, proto: UDP, ports: (40_000, 53), flags: 0, ack: 0, size: 8 };
                if judge.asks(ask).is_none() {
                    continue;
                }
                passed.push(number);
                if proves_itself {
                    judge.answers(own.0, Said { from: own.1, to: from, ports: (53, 40_000), ..ask });
                    judge.asks(ask);
                }
            }
        }
        // Room without that for renewals.
        let held = judge.waypoint.processor_mut().entries_held(table);
        assert!(held <= 75 * 6 + 64 * 16, "{held}");
    }
}

#[test]
fn what_lives_for_long_is_counted_as_long_as_it_lives() {
    let settings = [("MOST_BINDINGS", "40"), ("BINDINGS_OF_NETWORK", "4"), ("YOUNG_OF_NETWORK", "6")];
    let (waypoint, gateway) = (shipped_with("waypoint.rav", &settings), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let (at, own) = ([198, 51, 100, 1], (1, [10, 0, 0, 80]));
        judge.promise(at, UDP, 53, None, Some(own));
        let forged = |number: u8| [192, 16, number, 1];
        let asks = |judge: &mut Judge, from: Address| {
            let ask = Said { from, to: at, proto: UDP, ports: (40_000, 53), flags: 0, ack: 0, size: 8 };
            judge.asks(ask).is_some()
        };
        // All bindings that the host may have, and all young ones of one network, which are never proved.
        judge.resolve(1, own.1);
        (0..60).for_each(|number| proves(&mut judge, forged(number), at, 53));
        judge.now += 20 * SECOND;
        judge.resolve(1, own.1);
        let all: Vec<Address> = (0..60).map(forged).collect();
        let bound = answered(&mut judge, &all, 53, own);
        assert!((1..40).contains(&bound), "{bound}");
        let young: Vec<Address> = (1..=6).map(|last| [203, 0, 113, last]).collect();
        for _ in 0..26 * 15 {
            // Both live for more than a day, and nothing begins or ends.
            for _ in 0..30 {
                judge.now += 8 * SECOND;
                assert!(young.iter().all(|from| asks(&mut judge, *from)));
            }
            judge.resolve(1, own.1);
            assert_eq!(answered(&mut judge, &all, 53, own), bound);
        }
        assert!(!asks(&mut judge, [203, 0, 113, 7]));
        assert_eq!(judge.reasons.get("network_full"), Some(&1));
        judge.resolve(1, own.1);
        (100..160).for_each(|number| proves(&mut judge, forged(number), at, 53));
        judge.now += 20 * SECOND;
        judge.resolve(1, own.1);
        let others: Vec<Address> = (100..160).map(forged).collect();
        assert_eq!(answered(&mut judge, &others, 53, own), 0, "the host has its part still");
    }
}

#[test]
fn the_shares_of_young_places_outlast_an_hour() {
    let (waypoint, gateway) =
        (shipped_with("waypoint.rav", &[("MOST_YOUNG", "64")]), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = judge.promise_web();
        let mut number = 0_u32;
        let mut flood = |judge: &mut Judge| {
            let passed = (0..100).filter(|_| {
                number += 1;
                let [_, high, middle, low] = number.to_be_bytes();
                judge.asks(opening([11 + high, middle, low, 1], at)).is_some()
            });
            passed.count()
        };
        // Half of the places is the part of a host that is alone.
        assert_eq!(flood(&mut judge), 32);
        for second in (18..3_700).step_by(3) {
            judge.now = second * SECOND;
            judge.resolve(1, [10, 0, 0, 80]);
            // They end after 10 s, so none is left at each fourth flood.
            let wanted = if second % 12 == 6 { 32 } else { 0 };
            assert_eq!(flood(&mut judge), wanted, "after {second} s");
        }
    }
}

#[test]
fn places_are_free_again_for_who_proves_itself() {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = judge.promise_web();
        // More initiators of one network than there may be that prove nothing.
        for last in 1..=200 {
            let from = [203, 0, 113, last];
            let ask = Said { from, to: at, proto: TCP, ports: (40_000, 80), flags: SYN, ack: 0, size: 0 };
            assert!(judge.asks(ask).is_some(), "{last}");
            let answer =
                Said { from: [10, 0, 0, 80], to: from, ports: (80, 40_000), flags: SYN | ACK, ..ask };
            judge.answers(1, answer);
            assert!(judge.asks(Said { flags: ACK, ack: answer.next(), ..ask }).is_some());
        }
        assert_eq!(judge.reasons.get("network_full"), None);
    }
}

/// Browsers keep an address for a minute, whatever its answer said, and pages stay open for longer.
#[test]
fn who_uses_an_address_a_minute_and_six_minutes_after_its_answer_reaches_its_host_or_nobody() {
    let (waypoint, gateway) = (program("waypoint"), program("names_gateway"));
    for (back_end, has_other) in BackendKind::ALL.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut judge = Judge::new(&waypoint, &gateway, back_end);
        let at = judge.promise_web();
        let (own, other) = ((1, [10, 0, 0, 80]), (2, [10, 0, 0, 81]));
        judge.resolve(2, other.1);
        let opens = opening([203, 0, 113, 1], at);
        let late = Said { from: [203, 0, 113, 2], ..opens };
        judge.now += 60 * SECOND;
        assert_eq!(judge.asks(opens), Some(own));
        let answer = Said { from: own.1, to: opens.from, ports: (80, 40_000), flags: SYN | ACK, ..opens };
        judge.answers(1, answer);
        assert_eq!(judge.asks(Said { flags: ACK, ack: answer.next(), ..opens }), Some(own));
        // The promise ends 65 s after the answer, and the address may be promised for another host.
        judge.now += 5 * SECOND;
        judge.promise(at, TCP, 80, None, has_other.then_some(other));
        judge.now += 295 * SECOND;
        judge.resolve(1, own.1);
        judge.resolve(2, other.1);
        // The connection that is there goes on, and a new one is for its host or for nobody.
        assert_eq!(judge.asks(Said { flags: ACK, ack: answer.next(), ..opens }), Some(own));
        let again = Said { ports: (40_001, 80), ..opens };
        assert_eq!(judge.asks(again), (!has_other).then_some(own));
        if has_other {
            assert_eq!(judge.reasons.get("ambiguous"), Some(&1));
        } else {
            // Who has never used its answer is expected no more.
            assert_eq!(judge.asks(late), None);
            assert_eq!(judge.reasons.get("no_expectation"), Some(&1));
        }
    }
}

#[test]
fn a_silent_host_is_asked_for_once_a_second() {
    let gateway = program("names_gateway");
    for back_end in BackendKind::ALL {
        let mut bench = PacketBench::new(&gateway, back_end, 2, 0).expect("it loads");
        let ask = Said {
            from: [203, 0, 113, 1],
            to: [10, 0, 0, 80],
            proto: UDP,
            ports: (40_000, 53),
            flags: 0,
            ack: 0,
            size: 8,
        };
        let mut asked = |said: Said, now: u64| {
            let sent = frame((peer(0), peer(WAYPOINT_NUMBER)), said);
            let outcome = bench.packet(GATEWAY_TUNNEL, &sent, now);
            assert_eq!(reason(&gateway, &outcome), Some("resolving"));
            outcome.left.len()
        };
        let times = [0, SECOND / 2, SECOND - 1, SECOND, SECOND * 3 / 2, 3 * SECOND];
        assert_eq!(times.map(|now| asked(ask, now)), [1, 0, 0, 1, 0, 1]);
        let other = Said { to: [10, 0, 0, 81], ..ask };
        assert_eq!(asked(other, 3 * SECOND), 1, "another host");
    }
}
