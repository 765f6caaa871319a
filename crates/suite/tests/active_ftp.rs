//! Active FTP through `waypoint` and `names_gateway`, one behind the other: a host connects from port 20 to a
//! client that has proved itself at its port 21 and has just said something there, if its name has port 20,
//! until this connection ends; and nothing else that a host begins leaves. The judge knows what was sent and
//! what arrived, and nothing of the programs' tables.

mod names_segments;

use engine::{PacketBench, PacketOutcome};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use exec::BackendKind;
use ir::{Entry, Match, Program};
use names_segments::{ACK, Address, FIN, ROUTER, RST, SECOND, SYN, WAYPOINT, peer, tcp_header};
use std::collections::{BTreeMap, HashMap};
use suite::corpus::shipped_with;
use suite::random::SuiteRandom;

/// What one segment of a client lets its host open, how many at once, and for how long.
const OPENS: usize = 2;
const OPENS_AT_ONCE: usize = 8;
const OPENS_FOR: u64 = 30 * SECOND;

const GATEWAY: [u8; 6] = [2, 0, 0x5e, 0, 0, 2];

/// Hosts with FTP, as the text of the program promises them to everybody: the first has its port for data.
const HOSTS: [(Address, Address); 2] =
    [([10, 0, 0, 21], [198, 51, 100, 1]), ([10, 0, 0, 22], [198, 51, 100, 2])];

fn client(number: u8) -> Address {
    [203, 0, 113, number]
}

/// A segment: from whom, to whom, ports, number, what it acknowledges, flags, and data.
#[derive(Clone, Copy, Debug)]
struct Segment<'a> {
    from: Address,
    to: Address,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    data: &'a [u8],
}

impl Segment<'_> {
    fn frame(&self, source: [u8; 6], destination: [u8; 6]) -> Vec<u8> {
        let ip = PacketBuilder::ethernet2(source, destination).ipv4(self.from, self.to, 60);
        let header = tcp_header(self.ports, self.seq, self.ack, self.flags, 5_000);
        let mut bytes = Vec::new();
        ip.tcp_header(header).write(&mut bytes, self.data).expect("a segment can be written");
        bytes
    }
}

/// Both ends of a packet of TCP, and its number.
fn ends_and_number(frame: &[u8]) -> ((Address, u16), (Address, u16), u32) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("it is sound");
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else {
        panic!("no TCP: {frame:?}")
    };
    let ip = ip.header();
    let from = (ip.source(), tcp.source_port());
    (from, (ip.destination(), tcp.destination_port()), tcp.sequence_number())
}

/// Both programs, the second behind the first.
struct Path<'a> {
    programs: [&'a Program; 2],
    waypoint: PacketBench<'a>,
    gateway: PacketBench<'a>,
    now: u64,
    reasons: BTreeMap<String, u64>,
    /// Whether what a host sent last has left the gateway.
    left_gateway: bool,
}

impl<'a> Path<'a> {
    fn new(programs: [&'a Program; 2], back_end: BackendKind) -> Path<'a> {
        let bench = |program| PacketBench::new(program, back_end, 2, 0).expect("it loads");
        Path {
            programs,
            waypoint: bench(programs[0]),
            gateway: bench(programs[1]),
            now: 1_000 * SECOND,
            reasons: BTreeMap::new(),
            left_gateway: false,
        }
    }

    /// What of a packet leaves by this port.
    fn left(&mut self, end: usize, port: u16, outcome: &PacketOutcome) -> Option<Vec<u8>> {
        if let Some(verdict) = outcome.verdict.filter(|_| outcome.left.is_empty()) {
            let reason = self.programs[end].reasons.get(verdict.argument() as usize);
            let reason = reason.map_or(String::new(), |reason| reason.name.clone());
            *self.reasons.entry(reason).or_default() += 1;
        }
        let left = outcome.left.iter().find(|(by, _)| *by == port)?;
        Some(left.1.clone())
    }

    /// A segment of a client: what reaches the host.
    fn asks(&mut self, segment: &Segment<'_>) -> Option<Vec<u8>> {
        let outcome = self.waypoint.packet(1, &segment.frame(ROUTER, WAYPOINT), self.now);
        let mut inside = self.left(0, 2, &outcome)?;
        inside[..6].copy_from_slice(&peer(0));
        inside[6..12].copy_from_slice(&peer(9));
        for (host, _) in HOSTS {
            self.knows(host);
        }
        let outcome = self.gateway.packet(1, &inside, self.now);
        self.left(1, 2, &outcome)
    }

    /// A segment of a host: what reaches its client.
    fn sends(&mut self, segment: &Segment<'_>) -> Option<Vec<u8>> {
        let outcome = self.gateway.packet(2, &segment.frame([2, 0, 0, 0, 0, 9], GATEWAY), self.now);
        let left = self.left(1, 1, &outcome);
        self.left_gateway = left.is_some();
        let mut inside = left?;
        inside[..6].copy_from_slice(&peer(0));
        inside[6..12].copy_from_slice(&peer(1));
        let outcome = self.waypoint.packet(2, &inside, self.now);
        self.left(0, 1, &outcome)
    }

    /// The gateway hears where a host is.
    fn knows(&mut self, host: Address) {
        let card = [2, 0, 0, 0, 0, host[3]];
        let mut arp = [&GATEWAY[..], &card, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &card, &host].concat();
        arp.extend_from_slice(&GATEWAY);
        arp.extend_from_slice(&[10, 0, 0, 1]);
        arp.resize(60, 0);
        self.gateway.packet(2, &arp, self.now);
    }

    fn held(&self, end: usize, table: &str) -> u64 {
        let place = self.programs[end].tables.iter().position(|one| one.name == table);
        let bench = if end == 0 { &self.waypoint } else { &self.gateway };
        bench.backend().entries_held(place.expect("it is there") as u32)
    }

    fn learn(&mut self, table: &str, key: &[u128], value: &[u128]) {
        let place = self.programs[0].tables.iter().position(|one| one.name == table);
        let key = key.iter().map(|part| Match::Exact(*part)).collect();
        let entry = Entry { key, value: value.to_vec(), priority: 0 };
        let place = place.expect("it is there") as u32;
        self.waypoint.processor_mut().learn(place, &entry, self.now).expect("there is room");
    }

    /// A first segment to a host's port 21, which the host answers; whether it has reached the host.
    fn begins(&mut self, from: Address, port: u16, host: usize) -> bool {
        let (inside, at) = HOSTS[host];
        let opens = Segment { from, to: at, ports: (port, 21), seq: 7, ack: 0, flags: SYN, data: b"" };
        let reached = self.asks(&opens).is_some();
        let flags = SYN | ACK;
        self.sends(&Segment { from: inside, to: from, ports: (21, port), seq: 700, ack: 8, flags, ..opens });
        reached
    }

    /// A handshake at a host's port 21, whose last segment acknowledges the answer or misses it by this;
    /// whether its first and its last segment have reached the host.
    fn shakes_hands(&mut self, from: Address, port: u16, host: usize, misses: u32) -> (bool, bool) {
        let first = self.begins(from, port, host);
        let (to, ack) = (HOSTS[host].1, 701 + misses);
        let last = Segment { from, to, ports: (port, 21), seq: 8, ack, flags: ACK, data: b"" };
        (first, self.asks(&last).is_some())
    }

    /// A segment with `DATA` to a host's port 21; whether it reaches the host.
    fn says(&mut self, from: Address, port: u16, host: usize, seq: u32, ack: u32) -> bool {
        let to = HOSTS[host].1;
        self.asks(&Segment { from, to, ports: (port, 21), seq, ack, flags: ACK, data: DATA }).is_some()
    }

    /// A first segment of a host to a client.
    fn opens(&mut self, host: usize, port: u16, to: Address, other: u16, seq: u32) -> Option<Vec<u8>> {
        let from = HOSTS[host].0;
        self.sends(&Segment { from, to, ports: (port, other), seq, ack: 0, flags: SYN, data: b"" })
    }
}

const DATA: &[u8] = b"PORT";

fn both(waypoint: &[(&str, &str)], gateway: &[(&str, &str)]) -> [Program; 2] {
    [shipped_with("waypoint.rav", waypoint), shipped_with("names_gateway.rav", gateway)]
}

/// A connection of a client to port 21.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// When the host answered last to its SYN, which the client has not acknowledged.
    answered: Option<u64>,
    /// The number of its next data since the client has.
    next: Option<u32>,
}

/// What was seen between a client and a host.
#[derive(Debug, Default)]
struct Seen {
    proved: bool,
    connections: HashMap<u16, Connection>,
    /// The connection that said something new last, and when; how many connections this lets the host open.
    said: Option<(u16, u64)>,
    may_open: usize,
}

impl Seen {
    /// Whether the host may open something, if not too much.
    fn lives(&self, now: u64) -> bool {
        self.said.is_some_and(|(_, at)| now - at < OPENS_FOR)
    }

    /// The connection of this port has ended, or another one has begun.
    fn over(&mut self, port: u16) {
        self.connections.remove(&port);
        self.said = self.said.filter(|(said, _)| *said != port);
    }

    /// A first segment from this port has reached the host. Of connections that begin and whose ports have
    /// the same last four bits, the gateway knows one.
    fn begins(&mut self, port: u16) {
        for (other, connection) in &mut self.connections {
            if *other != port && other % 16 == port % 16 {
                connection.answered = None;
            }
        }
    }

    /// A segment that has reached the host, with data or without.
    fn hears(&mut self, port: u16, seq: u32, ack: u32, bytes: usize, now: u64) {
        let known = self.connections.get(&port).copied().unwrap_or_default();
        if known.answered.is_some_and(|at| now - at < OPENS_FOR) && ack == 701 {
            self.over(port);
            self.connections.insert(port, Connection { answered: None, next: Some(seq) });
        }
        let Some(connection) = self.connections.get_mut(&port).filter(|_| bytes > 0) else { return };
        let end = seq.wrapping_add(bytes as u32);
        if !connection.next.is_some_and(|next| (1..65_536).contains(&end.wrapping_sub(next))) {
            return;
        }
        connection.next = Some(end);
        let before = if self.lives(now) { self.may_open } else { 0 };
        self.may_open = (before + OPENS).min(OPENS_AT_ONCE);
        self.said = Some((port, now));
    }
}

/// Random segments of clients and of a host that somebody has taken over.
fn random_run(back_end: BackendKind, seed: u64) -> (usize, usize, BTreeMap<String, u64>) {
    let programs = both(&[], &[]);
    let mut path = Path::new([&programs[0], &programs[1]], back_end);
    let mut random = SuiteRandom::new(seed);
    let mut seen: HashMap<(Address, usize), Seen> = HashMap::new();
    // What the host has opened: to whom, by which number, and when.
    let mut opened: Vec<(Address, u16, u32, u64)> = Vec::new();
    let (mut fresh, mut left, mut again) = (1_024, 0, 0);
    for _ in 0..1_500 {
        path.now += random.below(4) * random.below(3 * SECOND);
        let (number, host) = (random.between(1, 3) as u8, random.below(2) as usize);
        let (from, port) = (client(number), *random.pick(&[40_000, 40_001, 40_016]));
        let (inside, at) = HOSTS[host];
        let state = seen.entry((from, host)).or_default();
        let next = state.connections.get(&port).and_then(|one| one.next).unwrap_or(8);
        match random.below(14) {
            0 => {
                let misses = random.below(3).saturating_sub(1) as u32;
                let (first, last) = path.shakes_hands(from, port, host, misses);
                if first {
                    state.begins(port);
                    state.connections.entry(port).or_default().answered = Some(path.now);
                }
                if last {
                    state.proved |= misses == 0;
                    state.hears(port, 8, 701 + misses, 0, path.now);
                }
            }
            1..=3 => {
                // Who guesses acknowledges something else, and reaches the host while its binding is young.
                // Some data has come before, and some is far from what comes next. Some segments have none.
                let ack = if random.one_in(3) { 900 } else { 701 };
                let far = next.wrapping_add(1 << 20);
                let seq = *random.pick(&[next, next, next, next.wrapping_sub(4), next.wrapping_add(9), far]);
                let data: &[u8] = if random.one_in(4) { b"" } else { DATA };
                let said = Segment { from, to: at, ports: (port, 21), seq, ack, flags: ACK, data };
                if path.asks(&said).is_some() {
                    state.proved |= ack == 701;
                    state.hears(port, seq, ack, data.len(), path.now);
                }
            }
            4 => {
                let flags = *random.pick(&[FIN | ACK, RST, RST | ACK]);
                let is_guessed = random.one_in(3);
                let seq = if is_guessed { next.wrapping_add(1 << 20) } else { next };
                let ends = Segment { from, to: at, ports: (port, 21), seq, ack: 900, flags, data: b"" };
                if random.one_in(2) {
                    let is_open = state.connections.get(&port).is_some_and(|one| one.next.is_some());
                    if path.asks(&ends).is_some() && !(is_open && is_guessed) {
                        state.over(port);
                    }
                } else {
                    path.sends(&Segment { from: inside, to: from, ports: (21, port), ..ends });
                    if path.left_gateway {
                        state.over(port);
                    }
                }
            }
            5 => {
                // What is no first segment, from any port that is not that of a service.
                let flags = *random.pick(&[SYN | ACK, ACK, RST, FIN | ACK, SYN | FIN]);
                fresh += 1;
                let ports = (*random.pick(&[20, 22, 1_024]), fresh);
                let sent = Segment { from: inside, to: from, ports, seq: 9, ack: 10, flags, data: b"" };
                assert!(path.sends(&sent).is_none(), "{sent:?}");
            }
            6 => {
                // What was opened is opened again, by the same number or by another one.
                let place = random.below(opened.len().max(1) as u64) as usize;
                let Some(&(to, other, seq, since)) = opened.get(place) else { continue };
                let state = seen.entry((to, 0)).or_default();
                let number = seq + random.below(2) as u32;
                let is_known = number == seq && path.now - since < OPENS_FOR;
                let wanted = state.lives(path.now) && (is_known || state.may_open > 0);
                let frame = path.opens(0, 20, to, other, number);
                assert_eq!(frame.is_some(), wanted, "{to:?} again: {state:?} at {}", path.now);
                if wanted && !is_known {
                    state.may_open -= 1;
                    opened[place] = (to, other, number, path.now);
                }
                again += usize::from(wanted);
            }
            7 => {
                fresh += 1;
                let port = *random.pick(&[1, 19, 21, 22, 80, 1_024]);
                assert!(path.opens(host, port, from, fresh, 9).is_none(), "from port {port}");
                assert!(path.opens(host, 20, client(77), fresh, 9).is_none(), "to a stranger");
            }
            8 => {
                // Somebody forges a SYN of who has asked for nothing, or of who has.
                fresh += 1;
                let (of, by) = *random.pick(&[(client(78), 20), (client(78), 21), (from, 21)]);
                let forged =
                    Segment { from: of, to: at, ports: (fresh, by), seq: 7, ack: 0, flags: SYN, data: b"" };
                assert_eq!(path.asks(&forged).is_some(), by == 21 || host == 0);
                if of == from {
                    state.begins(fresh);
                }
                assert!(path.opens(host, by, of, fresh, 9).is_none(), "to {of:?} from port {by}");
            }
            _ => {
                fresh += 1;
                let may_leave_gateway = state.lives(path.now) && state.may_open > 0;
                let wanted = host == 0 && state.proved && may_leave_gateway;
                let frame = path.opens(host, 20, from, fresh, 9);
                assert_eq!(frame.is_some(), wanted, "{from:?}, host {host}: {state:?} at {}", path.now);
                assert_eq!(path.left_gateway, may_leave_gateway);
                state.may_open -= usize::from(may_leave_gateway);
                if let Some(frame) = frame {
                    assert_eq!(ends_and_number(&frame), ((at, 20), (from, fresh), 9));
                    opened.push((from, fresh, 9, path.now));
                    left += 1;
                    // The client answers, and nobody else's answer reaches the host.
                    let answer = Segment {
                        from,
                        to: at,
                        ports: (fresh, 20),
                        seq: 70,
                        ack: 10,
                        flags: SYN | ACK,
                        data: b"",
                    };
                    let reached = path.asks(&answer).expect("the host gets the answer");
                    assert_eq!(ends_and_number(&reached), ((from, fresh), (inside, 20), 70));
                    assert!(path.asks(&Segment { from: client(77), ..answer }).is_none());
                }
            }
        }
    }
    (left, again, path.reasons)
}

#[test]
fn a_host_reaches_who_has_said_something_by_ftp_and_nobody_else() {
    for back_end in BackendKind::ALL {
        let (mut left, mut again, mut reasons) = (0, 0, BTreeMap::new());
        for seed in 0..6 {
            let run = random_run(back_end, seed);
            left += run.0;
            again += run.1;
            run.2.into_iter().for_each(|(reason, count)| *reasons.entry(reason).or_insert(0) += count);
        }
        assert!(left > 100 && again > 20, "{left} left, {again} again: {reasons:?}");
        for reason in ["not_asked", "host_begins", "ftp_opens_too_many", "not_its_binding"] {
            assert!(reasons.get(reason).is_some_and(|&count| count > 20), "{reason}: {reasons:?}");
        }
    }
}

#[test]
fn the_gateway_remembers_so_many_who_have_said_something() {
    let programs = both(&[], &[("MOST_FTP", "2")]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        for number in 1..=3 {
            path.shakes_hands(client(number), 40_000, 0, 0);
            assert!(path.says(client(number), 40_000, 0, 8, 701));
            path.now += SECOND;
        }
        assert_eq!(path.held(1, "ftp_clients"), 2);
        let open = [1, 2, 3].map(|number| path.opens(0, 20, client(number), 50_000, 9).is_some());
        assert_eq!(open, [false, true, true], "the one that spoke first has given way");
    }
}

/// The ports of a client push out nobody else's connection that begins, and of its own those whose ports
/// have the same last four bits.
#[test]
fn a_client_has_so_many_places_for_connections_that_begin() {
    let programs = both(&[], &[("MOST_FTP", "2")]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        path.begins(client(1), 40_000, 0);
        for port in 40_000..40_100 {
            path.begins(client(2), port, 0);
        }
        assert_eq!(path.held(1, "ftp_begun"), 17);
        assert!(path.says(client(1), 40_000, 0, 8, 701));
        assert!(path.opens(0, 20, client(1), 50_000, 9).is_some());
        for (port, counts) in [(40_083, false), (40_099, true)] {
            assert!(path.says(client(2), port, 0, 8, 701));
            assert_eq!(path.opens(0, 20, client(2), port, 9).is_some(), counts, "{port}");
        }
    }
}

#[test]
fn the_gateway_remembers_so_many_connections_that_begin() {
    let programs = both(&[], &[("MOST_FTP", "1")]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        for number in 1..=17 {
            path.begins(client(number), 40_000, 0);
        }
        assert_eq!(path.held(1, "ftp_begun"), 16);
        for (number, counts) in [(1, false), (2, true), (17, true)] {
            assert!(path.says(client(number), 40_000, 0, 8, 701));
            assert_eq!(path.opens(0, 20, client(number), 50_000, 9).is_some(), counts, "{number}");
        }
    }
}

/// What is forgotten lets nothing more, and its end still ends what it has let.
#[test]
fn the_gateway_remembers_so_many_connections_that_are_open() {
    let programs = both(&[], &[("MOST_FTP", "1")]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        let from = client(1);
        path.shakes_hands(from, 40_000, 0, 0);
        assert!(path.says(from, 40_000, 0, 8, 701));
        for port in 40_001..=40_016 {
            path.shakes_hands(from, port, 0, 0);
        }
        assert_eq!(path.held(1, "ftp_open"), 16);
        assert!(path.opens(0, 20, from, 50_000, 9).is_some());
        let (to, flags) = (HOSTS[0].1, FIN | ACK);
        let ends = Segment { from, to, ports: (40_000, 21), seq: 12, ack: 701, flags, data: b"" };
        assert!(path.asks(&ends).is_some());
        assert!(path.opens(0, 20, from, 50_001, 9).is_none());
        assert!(path.says(from, 40_000, 0, 12, 701) && path.opens(0, 20, from, 50_001, 9).is_none());
        assert_eq!(path.reasons.get("host_begins"), Some(&2));
        assert!(path.says(from, 40_001, 0, 8, 701) && path.opens(0, 20, from, 50_001, 9).is_some());
    }
}

/// A SYN that comes again to a port that is forgotten counts as another one.
#[test]
fn the_gateway_remembers_so_many_ports_that_a_host_has_connected_to() {
    let programs = both(&[], &[("MOST_FTP", "1")]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        path.shakes_hands(client(1), 40_000, 0, 0);
        assert!(path.says(client(1), 40_000, 0, 8, 701));
        let opens = [50_000, 50_001, 50_001, 50_000].map(|to| path.opens(0, 20, client(1), to, 9).is_some());
        assert_eq!(opens, [true, true, true, false]);
        assert_eq!(path.held(1, "ftp_opened"), 1);
        assert_eq!(path.reasons.get("ftp_opens_too_many"), Some(&1));
    }
}

#[test]
fn who_finds_no_place_for_data_has_its_connection_for_commands() {
    // There is one place, and the connection for commands has it.
    let programs = both(&[("MOST_BINDINGS", "1")], &[]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        path.shakes_hands(client(1), 40_000, 0, 0);
        assert_eq!(path.held(0, "tcp_bindings"), 1);
        assert!(path.says(client(1), 40_000, 0, 8, 701));
        assert!(path.opens(0, 20, client(1), 50_000, 9).is_none());
        assert_eq!(path.reasons.get("not_its_binding"), Some(&1));
    }
}

/// The binding for data lasts as long as connections for commands begin.
#[test]
fn who_goes_on_with_commands_stays_bound_by_the_port_for_data() {
    let programs = both(&[], &[]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        for port in [40_000, 40_001] {
            path.shakes_hands(client(1), port, 0, 0);
            path.now += 100 * 60 * SECOND;
        }
        assert!(path.says(client(1), 40_001, 0, 8, 701));
        assert!(path.opens(0, 20, client(1), 50_000, 9).is_some());
    }
}

/// A binding for data to another host, which was promised before, lasts on as a whole.
#[test]
fn a_binding_for_data_to_another_host_lasts_as_long_as_its_way_back() {
    let programs = both(&[], &[]);
    let number = |address: Address| u128::from(u32::from_be_bytes(address));
    let (initiator, at, other) = (number(client(1)), number(HOSTS[0].1), number([10, 0, 0, 23]));
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        let now = u128::from(path.now);
        path.learn("tcp_bindings", &[initiator, at, 6, 20], &[2, other, 0, now]);
        path.learn("ways_back", &[2, other, initiator, 6, 20], &[at]);
        for port in [40_000, 40_001, 40_002] {
            path.shakes_hands(client(1), port, 0, 0);
            assert_eq!((path.held(0, "tcp_bindings"), path.held(0, "ways_back")), (2, 2), "{port}");
            path.now += 100 * 60 * SECOND;
        }
    }
}

#[test]
fn what_keeps_a_first_packet_out_keeps_the_binding_for_data_out() {
    let programs = both(&[], &[]);
    let number = |address: Address| u128::from(u32::from_be_bytes(address));
    for (back_end, (before, is_bound)) in
        BackendKind::ALL.into_iter().flat_map(|kind| [(22, false), (21, true)].map(|before| (kind, before)))
    {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        let (key, host) = ([number(client(1)), number(HOSTS[0].1), 6, 20], number([10, 0, 0, before]));
        path.learn("quarantine", &key, &[1, host, u128::from(path.now), 0]);
        path.shakes_hands(client(1), 40_000, 0, 0);
        assert_eq!(path.held(0, "tcp_bindings"), 1 + u64::from(is_bound));
        // When the quarantine is over, its next connection binds it.
        path.now += 151 * SECOND;
        path.shakes_hands(client(1), 40_001, 0, 0);
        assert_eq!(path.held(0, "tcp_bindings"), 2);
        assert!(path.says(client(1), 40_001, 0, 8, 701) && path.opens(0, 20, client(1), 50_000, 9).is_some());
    }
}

#[test]
fn who_means_another_host_by_the_port_for_data_is_not_bound_by_it() {
    let programs = both(&[], &[]);
    let number = |address: Address| u128::from(u32::from_be_bytes(address));
    let (inside, at) = HOSTS[0];
    let key = [number(client(1)), number(at), 6, 20];
    for back_end in BackendKind::ALL {
        let now = u128::from(1_000 * SECOND);
        let back = [1, number(inside), number(client(1)), 6, 20];
        let before: [(&str, &[u128], &[u128], u64); 4] = [
            ("tcp_bindings", &key, &[2, number([10, 0, 0, 23]), 0, now], 2),
            ("young_bindings", &key, &[2, number([10, 0, 0, 23]), 0, 0, 0], 1),
            ("ways_back", &back, &[number([198, 51, 100, 9])], 1),
            ("young_back", &back, &[number([198, 51, 100, 9])], 1),
        ];
        for (table, key, value, bindings) in before {
            let mut path = Path::new([&programs[0], &programs[1]], back_end);
            path.learn(table, key, value);
            path.shakes_hands(client(1), 40_000, 0, 0);
            assert_eq!(path.held(0, "tcp_bindings"), bindings, "{table}");
            assert!(path.says(client(1), 40_000, 0, 8, 701));
            let frame = path.opens(0, 20, client(1), 50_000, 9);
            assert!(path.left_gateway);
            let from = frame.map(|frame| ends_and_number(&frame).0.0);
            assert_ne!(from, Some(at), "{table}");
        }
    }
}

#[test]
fn a_young_binding_for_data_to_the_same_host_is_proved_by_the_port_for_commands() {
    let programs = both(&[], &[]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        let (from, to) = (client(1), HOSTS[0].1);
        let forged = Segment { from, to, ports: (50_000, 20), seq: 7, ack: 0, flags: SYN, data: b"" };
        assert!(path.asks(&forged).is_some());
        assert_eq!(path.held(0, "young_bindings"), 1);
        path.shakes_hands(from, 40_000, 0, 0);
        assert_eq!((path.held(0, "tcp_bindings"), path.held(0, "young_bindings")), (2, 0));
        assert!(path.says(from, 40_000, 0, 8, 701));
        assert!(path.opens(0, 20, from, 50_001, 9).is_some());
    }
}

#[test]
fn who_begins_by_a_syn_cookie_is_bound_by_both_ports() {
    let programs = both(&[("YOUNG_OF_NETWORK", "1")], &[]);
    for back_end in BackendKind::ALL {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        path.learn("cookie_keys", &[0], &[1, 2]);
        let opens = Segment {
            from: client(1),
            to: HOSTS[0].1,
            ports: (40_000, 21),
            seq: 7,
            ack: 0,
            flags: SYN,
            data: b"",
        };
        path.asks(&Segment { from: client(2), ..opens });
        let outcome = path.waypoint.packet(1, &opens.frame(ROUTER, WAYPOINT), path.now);
        let [(1, answer)] = &outcome.left[..] else { panic!("it is answered: {outcome:?}") };
        let cookie = ends_and_number(answer).2;
        path.asks(&Segment { seq: 8, ack: cookie.wrapping_add(1), flags: ACK, ..opens });
        assert_eq!((path.held(0, "tcp_bindings"), path.held(0, "spliced")), (2, 1));
    }
}
