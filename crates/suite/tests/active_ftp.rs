//! Active FTP through `waypoint` and `names_gateway`, one behind the other: a host connects from port 20 to a
//! client that has proved itself at its port 21 and has just said something there, if its name has port 20;
//! and nothing else that a host begins leaves. The judge knows what was sent and what arrived, and nothing of
//! the programs' tables.

use engine::{PacketBench, PacketOutcome};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use exec::BackendKind;
use lang::ir::{Entry, Match, Program};
use std::collections::{BTreeMap, HashMap, HashSet};
use suite::corpus::shipped_with;
use suite::random::SuiteRandom;

const SECOND: u64 = 1_000_000_000;
/// What one segment of a client lets its host open, and for how long.
const OPENS: usize = 2;
const OPENS_FOR: u64 = 30 * SECOND;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

const ROUTER: [u8; 6] = [2, 0, 0x5e, 0, 0, 0xfe];
const WAYPOINT: [u8; 6] = [2, 0, 0x5e, 0, 0, 1];
const GATEWAY: [u8; 6] = [2, 0, 0x5e, 0, 0, 2];

type Address = [u8; 4];

/// Hosts with FTP, as the text of the program promises them to everybody: the first has its port for data.
const HOSTS: [(Address, Address); 2] =
    [([10, 0, 0, 21], [198, 51, 100, 1]), ([10, 0, 0, 22], [198, 51, 100, 2])];

fn client(number: u8) -> Address {
    [203, 0, 113, number]
}

fn peer(number: u8) -> [u8; 6] {
    [2, 0x52, 0x56, 0, 0, number]
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
        let mut tcp = ip.tcp(self.ports.0, self.ports.1, self.seq, 5_000);
        for flag in [FIN, SYN, RST, ACK].into_iter().filter(|flag| self.flags & flag != 0) {
            tcp = match flag {
                FIN => tcp.fin(),
                SYN => tcp.syn(),
                RST => tcp.rst(),
                _ => tcp.ack(self.ack),
            };
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, self.data).expect("a segment can be written");
        bytes
    }
}

/// Both ends of a packet of TCP, and its number.
fn ends(frame: &[u8]) -> ((Address, u16), (Address, u16), u32) {
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
        let mut inside = self.left(1, 1, &outcome)?;
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

    /// A handshake at a host's port 21, whose last segment acknowledges the answer or misses it by this.
    fn shakes_hands(&mut self, from: Address, port: u16, host: usize, misses: u32) {
        let (inside, at) = HOSTS[host];
        let opens = Segment { from, to: at, ports: (port, 21), seq: 7, ack: 0, flags: SYN, data: b"" };
        self.asks(&opens);
        let flags = SYN | ACK;
        self.sends(&Segment { from: inside, to: from, ports: (21, port), seq: 700, ack: 8, flags, ..opens });
        self.asks(&Segment { seq: 8, ack: 701 + misses, flags: ACK, ..opens });
    }

    /// A segment with data to a host's port 21; whether it reaches the host.
    fn says(&mut self, from: Address, port: u16, host: usize, ack: u32) -> bool {
        let (to, flags) = (HOSTS[host].1, ACK);
        let data = b"PORT";
        self.asks(&Segment { from, to, ports: (port, 21), seq: 8, ack, flags, data }).is_some()
    }

    /// A first segment of a host to a client.
    fn opens(&mut self, host: usize, port: u16, to: Address, other: u16) -> Option<Vec<u8>> {
        let from = HOSTS[host].0;
        self.sends(&Segment { from, to, ports: (port, other), seq: 9, ack: 0, flags: SYN, data: b"" })
    }
}

fn both(waypoint: &[(&str, &str)], gateway: &[(&str, &str)]) -> [Program; 2] {
    [shipped_with("waypoint.rav", waypoint), shipped_with("names_gateway.rav", gateway)]
}

const BACK_ENDS: [BackendKind; 2] = [BackendKind::Interpreter, BackendKind::Native];

/// What was seen between a client and a host.
#[derive(Debug, Default)]
struct Seen {
    proved: bool,
    /// The connection that said something last, and when.
    said: Option<(u16, u64)>,
    /// Connections that have ended, and have said nothing in time since; when they ended.
    ended: HashMap<u16, u64>,
    /// What was opened since something was said.
    opened: usize,
}

/// Random segments of clients and of a host that somebody has taken over.
fn random_run(back_end: BackendKind, seed: u64) -> (usize, BTreeMap<String, u64>) {
    let programs = both(&[], &[]);
    let mut path = Path::new([&programs[0], &programs[1]], back_end);
    let mut random = SuiteRandom::new(seed);
    let mut seen: HashMap<(Address, usize), Seen> = HashMap::new();
    let mut opened: Vec<(usize, Address, u16)> = Vec::new();
    let mut known: HashSet<(usize, Address, u16)> = HashSet::new();
    let (mut fresh, mut left) = (1_024, 0);
    for _ in 0..1_500 {
        path.now += random.below(4) * random.below(3 * SECOND);
        let (number, host) = (random.between(1, 3) as u8, random.below(2) as usize);
        let (from, port) = (client(number), random.between(40_000, 40_001) as u16);
        let (inside, at) = HOSTS[host];
        let state = seen.entry((from, host)).or_default();
        match random.below(12) {
            0 => {
                let misses = random.below(3).saturating_sub(1) as u32;
                path.shakes_hands(from, port, host, misses);
                state.proved |= misses == 0;
                state.ended.remove(&port);
                // Its end was before.
                state.said = state.said.filter(|(said, _)| *said != port);
            }
            1..=3 => {
                // Who guesses acknowledges something else, and reaches the host while its binding is young.
                let ack = if random.one_in(3) { 900 } else { 701 };
                if path.says(from, port, host, ack) {
                    state.proved |= ack == 701;
                    if state.ended.get(&port).is_none_or(|ended| path.now - ended > OPENS_FOR) {
                        state.said = Some((port, path.now));
                        state.opened = 0;
                    }
                }
            }
            4 => {
                let flags = *random.pick(&[FIN | ACK, RST, RST | ACK]);
                let ends = Segment { from, to: at, ports: (port, 21), seq: 8, ack: 900, flags, data: b"" };
                let reached = if random.one_in(2) {
                    path.asks(&ends).is_some()
                } else {
                    path.sends(&Segment { from: inside, to: from, ports: (21, port), ..ends }).is_some()
                };
                if reached {
                    state.ended.insert(port, path.now);
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
                if let Some(&(host, to, other)) = opened.last() {
                    assert!(path.opens(host, 20, to, other).is_some(), "sent again, it is the same");
                }
            }
            7 => {
                fresh += 1;
                let port = *random.pick(&[1, 19, 22, 80, 1_024]);
                assert!(path.opens(host, port, from, fresh).is_none(), "from port {port}");
                assert!(path.opens(host, 20, client(77), fresh).is_none(), "to a stranger");
            }
            _ => {
                fresh += 1;
                let said = state.said.filter(|(port, at)| {
                    path.now - at < OPENS_FOR && state.ended.get(port).is_none_or(|ended| ended < at)
                });
                let wanted = host == 0 && state.proved && said.is_some() && state.opened < OPENS;
                let may_leave_gateway = said.is_some() && state.opened < OPENS;
                let frame = path.opens(host, 20, from, fresh);
                assert_eq!(frame.is_some(), wanted, "{from:?}, host {host}: {state:?} at {}", path.now);
                state.opened += usize::from(may_leave_gateway);
                if let Some(frame) = frame {
                    assert_eq!(ends(&frame), ((at, 20), (from, fresh), 9));
                    assert!(known.insert((host, from, fresh)));
                    opened.push((host, from, fresh));
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
                    assert_eq!(ends(&reached), ((from, fresh), (inside, 20), 70));
                    assert!(path.asks(&Segment { from: client(77), ..answer }).is_none());
                }
            }
        }
    }
    (left, path.reasons)
}

#[test]
fn a_host_reaches_who_has_said_something_by_ftp_and_nobody_else() {
    for back_end in BACK_ENDS {
        let (mut left, mut reasons) = (0, BTreeMap::new());
        for seed in 0..6 {
            let run = random_run(back_end, seed);
            left += run.0;
            run.1.into_iter().for_each(|(reason, count)| *reasons.entry(reason).or_insert(0) += count);
        }
        assert!(left > 100, "{left} left: {reasons:?}");
        for reason in ["not_asked", "ftp_opens_too_many", "not_its_binding"] {
            assert!(reasons.get(reason).is_some_and(|&count| count > 20), "{reason}: {reasons:?}");
        }
    }
}

#[test]
fn the_gateway_remembers_so_many_who_have_said_something() {
    let programs = both(&[], &[("MOST_FTP", "2")]);
    for back_end in BACK_ENDS {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        for number in 1..=3 {
            path.shakes_hands(client(number), 40_000, 0, 0);
            assert!(path.says(client(number), 40_000, 0, 701));
            path.now += SECOND;
        }
        assert_eq!(path.held(1, "ftp_clients"), 2);
        let open = [1, 2, 3].map(|number| path.opens(0, 20, client(number), 50_000).is_some());
        assert_eq!(open, [false, true, true], "the one that spoke first has given way");
    }
}

#[test]
fn who_finds_no_place_for_data_has_its_connection_for_commands() {
    // The second of two places is kept for another gateway.
    let programs = both(&[("MOST_BINDINGS", "1")], &[]);
    for back_end in BACK_ENDS {
        let mut path = Path::new([&programs[0], &programs[1]], back_end);
        path.shakes_hands(client(1), 40_000, 0, 0);
        assert_eq!(path.held(0, "tcp_bindings"), 1);
        assert!(path.says(client(1), 40_000, 0, 701));
        assert!(path.opens(0, 20, client(1), 50_000).is_none());
        assert_eq!(path.reasons.get("not_its_binding"), Some(&1));
    }
}

#[test]
fn what_keeps_a_first_packet_out_keeps_the_binding_for_data_out() {
    let programs = both(&[], &[]);
    let number = |address: Address| u128::from(u32::from_be_bytes(address));
    for (back_end, (before, is_bound)) in
        BACK_ENDS.into_iter().flat_map(|kind| [(22, false), (21, true)].map(|before| (kind, before)))
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
        assert!(path.says(client(1), 40_001, 0, 701) && path.opens(0, 20, client(1), 50_000).is_some());
    }
}

#[test]
fn who_begins_by_a_syn_cookie_is_bound_by_both_ports() {
    let programs = both(&[("YOUNG_OF_NETWORK", "1")], &[]);
    for back_end in BACK_ENDS {
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
        let cookie = ends(answer).2;
        path.asks(&Segment { seq: 8, ack: cookie.wrapping_add(1), flags: ACK, ..opens });
        assert_eq!((path.held(0, "tcp_bindings"), path.held(0, "spliced")), (2, 1));
    }
}
