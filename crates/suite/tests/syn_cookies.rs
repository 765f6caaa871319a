//! SYN cookies of `waypoint.rav`: who acknowledges one is led to its host, and whatever else is sent takes no
//! place. The twin of a cookie is computed here by another library; the model of initiator and host knows
//! segments and nothing of the program's tables.

mod names_segments;

use engine::{PacketBench, PacketOutcome};
use etherparse::TcpOptionElement::{MaximumSegmentSize, SelectiveAcknowledgementPermitted, WindowScale};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use exec::BackendKind;
use ir::{Entry, Match, Program};
use names_segments::{ACK, Address, FIN, ROUTER, RST, SECOND, SYN, WAYPOINT, peer, tcp_header};
use packet::VerdictKind;
use siphasher::sip::SipHasher24;
use suite::corpus::shipped_with;

const PUBLIC: u16 = 1;
const TUNNEL: u16 = 2;
const AT: [u8; 4] = [198, 51, 100, 1];
const HOST: [u8; 4] = [10, 0, 0, 80];
const CLIENT: [u8; 4] = [203, 0, 113, 1];
const TCP: u8 = 6;
const KEYS: (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);

/// A segment of TCP.
#[derive(Clone, Debug, PartialEq)]
struct Segment {
    from: Address,
    to: Address,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    /// The option, if there is one, and whether others stand beside it.
    mss: Option<u16>,
    other_options: bool,
    data: Vec<u8>,
}

/// The first segment of a client.
fn opening(port: u16, seq: u32) -> Segment {
    Segment {
        from: CLIENT,
        to: AT,
        ports: (port, 80),
        seq,
        ack: 0,
        flags: SYN,
        mss: Some(1_460),
        other_options: true,
        data: Vec::new(),
    }
}

impl Segment {
    fn bytes(&self, cards: ([u8; 6], [u8; 6])) -> Vec<u8> {
        let ip = PacketBuilder::ethernet2(cards.0, cards.1).ipv4(self.from, self.to, 60);
        let mut options: Vec<_> = self.mss.map(MaximumSegmentSize).into_iter().collect();
        if self.other_options {
            options.extend([SelectiveAcknowledgementPermitted, WindowScale(7)]);
        }
        let header = tcp_header(self.ports, self.seq, self.ack, self.flags, 5_000);
        let tcp = ip.tcp_header(header).options(&options).expect("they fit");
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &self.data).expect("a segment can be written");
        bytes
    }

    /// What a frame says; its checksums are right.
    fn of(frame: &[u8]) -> Segment {
        let sliced = SlicedPacket::from_ethernet(frame).expect("it is sound");
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport)
        else {
            panic!("no TCP: {frame:?}")
        };
        let ip = ip.header().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let sum = tcp.to_header().calc_checksum_ipv4(&ip, tcp.payload()).expect("it is short");
        assert_eq!(tcp.checksum(), sum);
        let options: Vec<_> = tcp.options_iterator().map(|option| option.expect("it is sound")).collect();
        let mss = options.iter().find_map(|option| match option {
            MaximumSegmentSize(mss) => Some(*mss),
            _ => None,
        });
        Segment {
            from: ip.source,
            to: ip.destination,
            ports: (tcp.source_port(), tcp.destination_port()),
            seq: tcp.sequence_number(),
            ack: tcp.acknowledgment_number(),
            flags: tcp.slice()[13],
            mss,
            other_options: options.len() > usize::from(mss.is_some()),
            data: tcp.payload().to_vec(),
        }
    }
}

/// The cookie of a segment for the first host, as another library computes it.
fn twin(segment: &Segment, mss_index: u8, period: u64) -> u32 {
    let number = |address: Address| u64::from(u32::from_be_bytes(address));
    let mut text = (number(segment.from) << 32 | number(segment.to)).to_le_bytes().to_vec();
    let ports = u64::from(segment.ports.0) << 48 | u64::from(segment.ports.1) << 32;
    text.extend((ports | u64::from(segment.seq)).to_le_bytes());
    let asked_for = u64::from(mss_index) << 56 | 1 << 32 | number(HOST);
    text.extend(asked_for.to_le_bytes());
    text.extend(&period.to_le_bytes()[..7]);
    let hash = SipHasher24::new_with_keys(KEYS.0, KEYS.1).hash(&text);
    ((period & 1) as u32) << 31 | u32::from(mss_index) << 28 | hash as u32 & 0xfff_ffff
}

/// The waypoint, with a reason and the segments for each packet.
struct World<'a> {
    program: &'a Program,
    bench: PacketBench<'a>,
    now: u64,
}

/// What became of a packet: its reason, and what left.
type Became = (Option<String>, Vec<(u16, Segment)>);

impl<'a> World<'a> {
    fn new(program: &'a Program, back_end: BackendKind) -> World<'a> {
        World {
            program,
            bench: PacketBench::new(program, back_end, 2, 0).expect("it loads"),
            now: 1_000 * SECOND,
        }
    }

    fn table(&self, name: &str) -> u32 {
        let place = self.program.tables.iter().position(|table| table.name == name);
        place.expect("the waypoint has it") as u32
    }

    fn insert(&mut self, table: &str, key: &[u128], value: &[u128]) {
        let key = key.iter().map(|part| Match::Exact(*part)).collect();
        let entry = Entry { key, value: value.to_vec(), priority: 0 };
        let table = self.table(table);
        self.bench.processor_mut().insert(table, &entry).expect("there is room");
    }

    fn learn(&mut self, table: &str, key: &[u128], value: &[u128]) {
        let key = key.iter().map(|part| Match::Exact(*part)).collect();
        let entry = Entry { key, value: value.to_vec(), priority: 0 };
        let (table, now) = (self.table(table), self.now);
        self.bench.processor_mut().learn(table, &entry, now).expect("there is room");
    }

    fn held(&self, table: &str) -> u64 {
        self.bench.backend().entries_held(self.table(table))
    }

    fn became(&self, outcome: &PacketOutcome) -> Became {
        let verdict = outcome.verdict.expect("a packet has a verdict");
        let kinds = [VerdictKind::Drop, VerdictKind::Punt];
        let reason = kinds.contains(&verdict.kind()).then(|| verdict.argument() as usize);
        let reason = reason.and_then(|number| self.program.reasons.get(number));
        let left = outcome.left.iter().map(|(port, frame)| (*port, Segment::of(frame))).collect();
        (reason.map(|reason| reason.name.clone()), left)
    }

    fn asks(&mut self, segment: &Segment) -> Became {
        let outcome = self.bench.packet(PUBLIC, &segment.bytes((ROUTER, WAYPOINT)), self.now);
        if outcome.verdict.is_some_and(|verdict| verdict.kind() == VerdictKind::Drop) {
            let asked = segment.bytes((ROUTER, WAYPOINT)).len();
            for (_, frame) in outcome.left.iter().filter(|(port, _)| *port == PUBLIC) {
                assert!(frame.len() <= asked, "an answer of {} bytes to {asked}", frame.len());
            }
        }
        self.became(&outcome)
    }

    fn answers(&mut self, segment: &Segment) -> Became {
        let frame = segment.bytes((peer(1), peer(0)));
        let outcome = self.bench.packet(TUNNEL, &frame, self.now);
        self.became(&outcome)
    }

    /// Lets other initiators take the places for first packets.
    fn crowd(&mut self) {
        for number in 0..32 {
            self.asks(&Segment { from: [192, 3, number, 1], ..opening(1_000, 7) });
        }
    }

    /// A client gets a cookie.
    fn cookie(&mut self, first: &Segment) -> u32 {
        let (reason, left) = self.asks(first);
        assert_eq!(reason.as_deref(), Some("answered_by_cookie"));
        let [(PUBLIC, answer)] = &left[..] else { panic!("one answer: {left:?}") };
        assert_eq!((answer.from, answer.to), (first.to, first.from));
        assert_eq!(answer.ports, (first.ports.1, first.ports.0));
        assert_eq!((answer.flags, answer.ack), (SYN | ACK, first.seq.wrapping_add(1)));
        assert_eq!((answer.mss, answer.other_options), (first.mss.map(|_| 1_380), false));
        answer.seq
    }

    /// A client gets a cookie and acknowledges it, and the host is asked. Gives the cookie.
    fn opens(&mut self, first: &Segment) -> u32 {
        let cookie = self.cookie(first);
        let (reason, left) = self.asks(&acknowledges(first, cookie));
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"), "{left:?}");
        asks_host(first, &left, Some(1_380));
        cookie
    }
}

/// The segment that acknowledges a cookie.
fn acknowledges(first: &Segment, cookie: u32) -> Segment {
    Segment {
        seq: first.seq.wrapping_add(1),
        ack: cookie.wrapping_add(1),
        flags: ACK,
        mss: None,
        other_options: false,
        ..first.clone()
    }
}

/// What left is the SYN to the host, with the initiator's own number.
fn asks_host(first: &Segment, left: &[(u16, Segment)], mss: Option<u16>) {
    let [(TUNNEL, asked)] = left else { panic!("one SYN: {left:?}") };
    let wanted = Segment { to: HOST, mss, other_options: false, ..first.clone() };
    assert_eq!(asked, &wanted);
}

/// The answer of the host to such a SYN.
fn host_answer(first: &Segment, seq: u32) -> Segment {
    Segment {
        from: HOST,
        to: first.from,
        ports: (first.ports.1, first.ports.0),
        seq,
        ack: first.seq.wrapping_add(1),
        flags: SYN | ACK,
        ..first.clone()
    }
}

/// Both back ends do the same.
fn everywhere(values: &[(&str, &str)], run: impl Fn(&mut World)) {
    let program = shipped_with("waypoint.rav", values);
    for back_end in BackendKind::ALL {
        let mut world = World::new(&program, back_end);
        world.insert("cookie_keys", &[0], &[KEYS.0.into(), KEYS.1.into()]);
        run(&mut world);
    }
}

const FEW: &[(&str, &str)] = &[("MOST_YOUNG", "8")];

/// A whole handshake, with numbers that wrap around on both sides.
#[test]
fn who_acknowledges_a_cookie_has_a_connection_with_its_host() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, u32::MAX);
        let cookie = world.opens(&first);
        assert_eq!(cookie, twin(&first, 5, world.now / SECOND / 64));
        // What comes before the host has answered is lost, and asks for nothing.
        let early = Segment { data: vec![1; 9], ..acknowledges(&first, cookie) };
        assert_eq!(world.asks(&early), (Some("host_unanswered".to_owned()), vec![]));
        let answer = host_answer(&first, 0xffff_fff0);
        for _ in 0..2 {
            // The second time it comes again, since the acknowledgement was lost.
            let (reason, left) = world.answers(&answer);
            assert_eq!(reason.as_deref(), Some("host_answered"));
            let wanted = Segment { to: HOST, ..acknowledges(&first, answer.seq) };
            assert_eq!(left, [(TUNNEL, wanted)]);
        }
        // Data both ways: the host's own numbers inside, the cookie's outside.
        let asked = Segment { data: b"GET /".to_vec(), ..acknowledges(&first, cookie) };
        for _ in 0..2 {
            let wanted = Segment { to: HOST, ack: 0xffff_fff1, ..asked.clone() };
            assert_eq!(world.asks(&asked), (None, vec![(TUNNEL, wanted)]));
        }
        for offset in [0, 1_000] {
            let page = Segment {
                seq: 0xffff_fff1_u32.wrapping_add(offset),
                ack: 5,
                flags: ACK,
                mss: None,
                other_options: false,
                data: vec![3; 1_000],
                ..answer.clone()
            };
            let wanted = Segment { from: AT, seq: cookie.wrapping_add(1 + offset), ..page.clone() };
            assert_eq!(world.answers(&page), (None, vec![(PUBLIC, wanted)]));
        }
        let got = Segment { seq: 5, ack: cookie.wrapping_add(2_001), ..acknowledges(&first, cookie) };
        let wanted = Segment { to: HOST, ack: 0xffff_fff1_u32.wrapping_add(2_000), ..got.clone() };
        assert_eq!(world.asks(&got), (None, vec![(TUNNEL, wanted)]));
        // The initiator is bound: its next connection needs no cookie, and is its host's alone.
        let second = opening(40_001, 99);
        let wanted = Segment { to: HOST, mss: Some(1_380), ..second.clone() };
        assert_eq!(world.asks(&second), (None, vec![(TUNNEL, wanted)]));
        let direct = host_answer(&second, 4_711);
        let wanted = Segment { from: AT, mss: Some(1_380), ..direct.clone() };
        assert_eq!(world.answers(&direct), (None, vec![(PUBLIC, wanted)]));
        // Both ends end, and four minutes later nothing of it is left.
        let bye = Segment { flags: FIN | ACK, ..got.clone() };
        assert_eq!(world.asks(&bye).0, None);
        let bye = Segment { flags: FIN | ACK, seq: 7, mss: None, other_options: false, ..answer.clone() };
        let (reason, left) = world.answers(&bye);
        assert_eq!((reason, left[0].1.seq), (None, 7_u32.wrapping_add(cookie.wrapping_sub(0xffff_fff0))));
        assert_eq!((world.held("spliced"), world.held("spliced_back")), (1, 1));
        world.bench.advance(world.now + 241 * SECOND);
        for table in ["spliced", "spliced_back", "spliced_of_network", "opening", "closing_splices"] {
            assert_eq!(world.held(table), 0, "{table}");
        }
        assert_eq!(world.held("tcp_bindings"), 1);
    });
}

#[test]
fn two_connections_that_ask_at_once_both_get_to_the_host() {
    everywhere(FEW, |world| {
        world.crowd();
        let (one, other) = (opening(40_000, 10), opening(40_001, 20));
        let (first, second) = (world.cookie(&one), world.cookie(&other));
        for (first, cookie) in [(&one, first), (&other, second)] {
            let (reason, left) = world.asks(&acknowledges(first, cookie));
            assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
            asks_host(first, &left, Some(1_380));
        }
        // Who has got a young place meanwhile is proved by its cookie, too.
        world.now += 11 * SECOND;
        world.crowd();
        let late = Segment { from: [203, 0, 113, 2], ..opening(40_000, 30) };
        let cookie = world.cookie(&late);
        world.now += 11 * SECOND;
        let third = Segment { from: late.from, ..opening(40_001, 40) };
        assert_eq!(world.asks(&third).0, None, "there is a place again");
        let (reason, left) = world.asks(&acknowledges(&late, cookie));
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&late, &left, Some(1_380));
        assert_eq!((world.held("tcp_bindings"), world.held("young_of_network")), (2, 0));
    });
}

#[test]
fn a_cookie_holds_for_its_connection_and_for_two_minutes_at_most() {
    everywhere(FEW, |world| {
        world.now = 64 * 100 * SECOND;
        world.crowd();
        let first = opening(40_000, 10);
        let cookie = world.cookie(&first);
        let right = acknowledges(&first, cookie);
        let dropped = |reason: &str| (Some(reason.to_owned()), vec![]);
        for wrong in [
            Segment { ack: right.ack ^ 1, ..right.clone() },
            Segment { ack: right.ack ^ 0x8000_0000, ..right.clone() },
            Segment { ack: right.ack ^ 0x1000_0000, ..right.clone() },
            Segment { seq: right.seq + 1, ..right.clone() },
            Segment { ports: (40_001, 80), ..right.clone() },
            Segment { ports: (40_000, 81), ..right.clone() },
            Segment { from: [203, 0, 113, 2], ..right.clone() },
            Segment { to: [198, 51, 100, 2], ..right.clone() },
            Segment { flags: ACK | RST, ..right.clone() },
            Segment { flags: ACK | SYN, ..right.clone() },
        ] {
            assert_eq!(world.asks(&wrong), dropped("no_binding"), "{wrong:?}");
        }
        // In the next period it still holds, in the one after no more.
        world.now += 127 * SECOND;
        world.crowd();
        assert_eq!(world.cookie(&first), twin(&first, 5, 101));
        let (reason, left) = world.asks(&right);
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&first, &left, Some(1_380));
        let late = Segment { from: [203, 0, 113, 2], ..first.clone() };
        let cookie = world.cookie(&late);
        world.now += 65 * SECOND;
        world.crowd();
        world.cookie(&Segment { from: [203, 0, 113, 3], ..opening(40_000, 1) });
        world.now += 63 * SECOND;
        assert_eq!(world.asks(&acknowledges(&late, cookie)), dropped("no_binding"));
    });
}

/// The host refuses, does not answer, or still has an older connection.
#[test]
fn what_the_host_says_reaches_the_initiator_in_its_numbers() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, 10);
        let cookie = world.opens(&first);
        let refusal =
            Segment { flags: RST | ACK, seq: 0, mss: None, other_options: false, ..host_answer(&first, 0) };
        let wanted = Segment { from: AT, seq: cookie.wrapping_add(1), ..refusal.clone() };
        assert_eq!(world.answers(&refusal), (None, vec![(PUBLIC, wanted)]));
        world.bench.advance(world.now);
        assert_eq!((world.held("spliced"), world.held("spliced_of_network")), (0, 0));

        // Later the cookie comes again, and opens the connection again. The host is asked three times in 4 s.
        world.now += 10 * SECOND;
        let (reason, left) = world.asks(&acknowledges(&first, cookie));
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&first, &left, Some(1_380));
        for (second, count) in [(1, 0), (2, 1), (3, 0), (4, 1), (5, 0), (6, 0)] {
            let outcome = world.bench.advance(world.now + second * SECOND);
            assert_eq!(outcome.left.len(), count, "after {second} s");
            if let [(port, frame)] = &outcome.left[..] {
                asks_host(&first, &[(*port, Segment::of(frame))], Some(1_380));
            }
        }
        world.now += 6 * SECOND;
        for table in ["spliced", "spliced_back", "opening"] {
            assert_eq!(world.held(table), 0, "{table}");
        }

        // An older connection of the host answers by a challenge, which a reset ends.
        assert_eq!(world.asks(&acknowledges(&first, cookie)).0.as_deref(), Some("opened_by_cookie"));
        let challenge = Segment { flags: ACK, ack: 4_000, ..refusal.clone() };
        let (reason, left) = world.answers(&challenge);
        assert_eq!(reason.as_deref(), Some("host_unanswered"));
        let [(TUNNEL, reset)] = &left[..] else { panic!("a reset: {left:?}") };
        assert_eq!((reset.flags, reset.seq, reset.to), (RST, 4_000, HOST));
        // Another gateway, and another host, answer for nobody.
        let frame = host_answer(&first, 50).bytes((peer(2), peer(0)));
        let outcome = world.bench.packet(TUNNEL, &frame, world.now);
        assert_eq!(world.became(&outcome).0.as_deref(), Some("not_its_binding"));
        let other = Segment { from: [10, 0, 0, 81], ..host_answer(&first, 50) };
        assert_eq!(world.answers(&other).0.as_deref(), Some("not_its_binding"));
        assert_eq!(world.answers(&host_answer(&first, 50)).0.as_deref(), Some("host_answered"));
        // A reset in the connection has the initiator's number of the host, too.
        let reset = Segment { flags: RST, seq: 51, ack: 0, ..refusal };
        let (reason, left) = world.answers(&reset);
        assert_eq!((reason, left[0].1.seq), (None, cookie.wrapping_add(1)));
    });
}

/// A port is used again: the new connection has a cookie of its own, and the old one is not disturbed by a
/// SYN that somebody forged.
#[test]
fn a_port_that_is_used_again_begins_with_a_new_cookie() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, 10);
        let cookie = world.opens(&first);
        world.answers(&host_answer(&first, 50));
        let again = opening(40_000, 9_000);
        let second = world.cookie(&again);
        let data = Segment { data: vec![1; 20], ..acknowledges(&first, cookie) };
        let wanted = Segment { to: HOST, ack: 51, ..data.clone() };
        assert_eq!(world.asks(&data), (None, vec![(TUNNEL, wanted)]));
        let (reason, left) = world.asks(&acknowledges(&again, second));
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&again, &left, Some(1_380));
        assert_eq!(world.answers(&host_answer(&again, 70)).0.as_deref(), Some("host_answered"));
        let data = Segment { data: vec![1; 20], ..acknowledges(&again, second) };
        let wanted = Segment { to: HOST, ack: 71, ..data.clone() };
        assert_eq!(world.asks(&data), (None, vec![(TUNNEL, wanted)]));
        assert_eq!((world.held("spliced"), world.held("spliced_back")), (1, 1));
    });
}

/// Hours later a port is used again, whose older connection is still spliced: the way back of the binding
/// lasts as long as the binding.
#[test]
fn a_connection_by_a_cookie_keeps_the_way_back_of_its_binding() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, 10);
        world.opens(&first);
        world.answers(&host_answer(&first, 50));
        world.now += 123 * 60 * SECOND;
        world.opens(&opening(40_000, 9_000));
        world.now += 120 * SECOND;
        world.bench.advance(world.now);
        let second = opening(40_001, 99);
        assert_eq!(world.asks(&second).0, None, "who is bound needs no cookie");
        let direct = host_answer(&second, 4_711);
        let wanted = Segment { from: AT, mss: Some(1_380), ..direct.clone() };
        assert_eq!(world.answers(&direct), (None, vec![(PUBLIC, wanted)]));
    });
}

/// A reset of the initiator closes a connection; who forges one, or an end, ends nothing that goes on.
#[test]
fn what_somebody_forged_ends_no_connection_that_goes_on() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, 10);
        let cookie = world.opens(&first);
        world.answers(&host_answer(&first, 50));
        let data = Segment { data: vec![1; 20], ..acknowledges(&first, cookie) };
        for flags in [FIN | ACK, RST] {
            assert_eq!(world.asks(&Segment { flags, ack: 1, ..data.clone() }).0, None);
        }
        for minute in 0..20 {
            world.now += 180 * SECOND;
            let wanted = Segment { to: HOST, ack: 51, ..data.clone() };
            assert_eq!(world.asks(&data), (None, vec![(TUNNEL, wanted)]), "{minute}");
        }
        world.bench.advance(world.now + 239 * SECOND);
        assert_eq!(world.held("spliced"), 1);
        world.bench.advance(world.now + 241 * SECOND);
        for table in ["spliced", "spliced_back", "spliced_of_network", "closing_splices"] {
            assert_eq!(world.held(table), 0, "{table}");
        }
    });
}

#[test]
fn a_flood_of_forged_first_packets_grows_no_table() {
    everywhere(FEW, |world| {
        world.crowd();
        let tables = |world: &World| -> Vec<u64> {
            (0..world.program.tables.len() as u32)
                .map(|table| world.bench.backend().entries_held(table))
                .collect()
        };
        let before = tables(world);
        for number in 0..20_000_u32 {
            let [_, high, low, last] = number.to_be_bytes();
            let from = [192, 16 + high, low, last];
            let (reason, _) = world.asks(&Segment { from, ..opening(number as u16, number) });
            assert_eq!(reason.as_deref(), Some("answered_by_cookie"));
            if number % 4 == 0 {
                let forged = Segment { from, ..acknowledges(&opening(number as u16, number), number) };
                assert_eq!(world.asks(&forged).0.as_deref(), Some("no_binding"));
            }
        }
        assert_eq!(tables(world), before);
        world.opens(&opening(40_000, 10));
    });
}

/// Without a secret, beyond the rate, and for who takes too small segments nothing is as before.
#[test]
fn what_gets_no_cookie_is_refused_as_before() {
    everywhere(&[("MOST_YOUNG", "8"), ("COOKIES", "4")], |world| {
        world.crowd();
        world.now += SECOND;
        for mss in [Some(535), Some(0)] {
            assert_eq!(
                world.asks(&Segment { mss, ..opening(40_000, 1) }).0.as_deref(),
                Some("host_full"),
                "{mss:?}"
            );
        }
        for (mss, index) in [(None, 0), (Some(536), 0), (Some(1_299), 2), (Some(9_000), 5)] {
            let other_options = mss.is_some();
            let first = Segment { mss, other_options, ..opening(40_000, 1) };
            assert_eq!(world.cookie(&first), twin(&first, index, world.now / SECOND / 64), "{mss:?}");
        }
        let (reason, left) = world.asks(&opening(40_000, 1));
        assert_eq!((reason.as_deref(), left), (Some("host_full"), vec![]));
    });
    let program = shipped_with("waypoint.rav", FEW);
    for back_end in BackendKind::ALL {
        let mut world = World::new(&program, back_end);
        world.crowd();
        let first = opening(40_000, 1);
        assert_eq!(world.asks(&first), (Some("host_full".to_owned()), vec![]));
        let guessed = acknowledges(&first, twin(&first, 5, world.now / SECOND / 64));
        assert_eq!(world.asks(&guessed).0.as_deref(), Some("no_binding"));
    }
}

#[test]
fn a_valid_cookie_takes_no_more_places_than_there_are() {
    let room = [("MOST_YOUNG", "8"), ("MOST_SPLICED", "8"), ("SPLICED_OF_NETWORK", "3")];
    everywhere(&room, |world| {
        world.crowd();
        let reasons = |world: &mut World, from: Address, ports: std::ops::Range<u16>| -> Vec<String> {
            let asked: Vec<_> = ports.map(|port| Segment { from, ..opening(port, 1) }).collect();
            let cookies: Vec<_> = asked.iter().map(|first| world.cookie(first)).collect();
            let proofs = asked.iter().zip(cookies).map(|(first, cookie)| acknowledges(first, cookie));
            proofs.map(|proof| world.asks(&proof).0.expect("it is dropped")).collect()
        };
        let (opened, full) = ("opened_by_cookie", "spliced_full");
        assert_eq!(reasons(world, CLIENT, 1..5), [opened, opened, opened, full]);
        assert_eq!(reasons(world, [203, 0, 114, 1], 1..4), [opened, opened, full]);
        assert_eq!((world.held("spliced"), world.held("spliced_back")), (5, 5));
        // No answer of the host: six seconds later the places are free.
        world.now += 6 * SECOND;
        world.bench.advance(world.now);
        assert_eq!((world.held("spliced"), world.held("spliced_of_network")), (0, 0));
    });
    // Bindings are as many as ever, and a cookie needs one.
    everywhere(&[("MOST_YOUNG", "8"), ("MOST_BINDINGS", "4")], |world| {
        world.crowd();
        let mut last = String::new();
        for number in 1..8 {
            let first = Segment { from: [203, 0, number, 1], ..opening(40_000, 1) };
            let cookie = world.cookie(&first);
            last = world.asks(&acknowledges(&first, cookie)).0.expect("it is dropped");
        }
        assert_eq!(last, "bindings_full");
        assert!(world.held("tcp_bindings") <= 4);
    });
}

/// However many networks ask for one host: others get their connections, and counts go with what they count.
#[test]
fn hosts_and_gateways_have_parts_of_the_places_of_spliced_connections() {
    let room = [("MOST_YOUNG", "8"), ("MOST_SPLICED", "64"), ("SPLICED_OF_NETWORK", "4")];
    everywhere(&room, |world| {
        let at = u128::from(u32::from_be_bytes(AT));
        world.insert("server_names", &[at, 443], &[]);
        /// Whether a client is led to a host by its name.
        fn opens(world: &mut World, from: Address, seq: u32, to: (u128, Address)) -> bool {
            let (gateway, host) = to;
            let first = Segment { from, ports: (40_000, 443), ..opening(40_000, seq) };
            let proof = acknowledges(&first, world.cookie(&first));
            let address = |address: Address| u128::from(u32::from_be_bytes(address));
            let named = [address(from), 40_000, address(AT), 443];
            world.learn("named", &named, &[gateway, address(host), proof.ack.into()]);
            match world.asks(&proof).0.as_deref() {
                Some("opened_by_cookie") => true,
                Some("spliced_full") => false,
                other => panic!("{other:?}"),
            }
        }
        let flood = |world: &mut World, first: u8, gateway, host| {
            (0..64)
                .filter(|network| opens(world, [192, 16 + first, *network, 1], 10, (gateway, host)))
                .count()
        };
        let other = [10, 0, 0, 81];
        let counts = ["spliced_of_network", "spliced_in_all", "spliced_of_gateway", "spliced_of_host"];
        // A lone host has 9/16; with a second one its gateway has three quarters; another gateway has a part.
        assert_eq!(flood(world, 0, 1, HOST), 36);
        assert_eq!(flood(world, 1, 1, other), 12);
        assert_eq!(flood(world, 2, 1, [10, 0, 0, 82]), 0);
        assert_eq!(flood(world, 3, 2, HOST), 16);
        assert_eq!((world.held("spliced"), world.held("spliced_of_host")), (64, 3));
        // No host answers, so all of them end.
        world.now += 6 * SECOND;
        world.bench.advance(world.now);
        assert_eq!(counts.map(|table| world.held(table)), [0; 4]);
        // A client whose port leads to another host now is counted there alone.
        for (seq, to) in [(10, (1, HOST)), (20, (1, other)), (30, (2, other)), (40, (2, other))] {
            assert!(opens(world, CLIENT, seq, to));
            world.bench.advance(world.now);
            assert_eq!(counts.map(|table| world.held(table)), [1; 4]);
            assert_eq!((world.held("spliced"), world.held("spliced_back")), (1, 1));
        }
        world.now += 6 * SECOND;
        world.bench.advance(world.now);
        assert_eq!(counts.map(|table| world.held(table)), [0; 4]);
    });
}

/// The promise is gone, or is another one, when the cookie comes back. It then proves nothing, so who asked
/// for one host does not reach the other by what it sends again.
#[test]
fn a_cookie_is_no_promise() {
    everywhere(FEW, |world| {
        world.crowd();
        let first = opening(40_000, 10);
        let cookie = world.cookie(&first);
        let at = [u32::from_be_bytes(AT).into(), TCP.into(), 80].map(Match::Exact);
        let everybody = Match::Prefix { value: 0, length: 0 };
        let key: Vec<Match> = at.into_iter().chain([everybody]).collect();
        let table = world.table("expectations");
        let proof = acknowledges(&first, cookie);
        let refused = (Some("no_binding".to_owned()), vec![]);
        world.bench.processor_mut().remove(table, &key, 0);
        assert_eq!(world.asks(&proof), refused);
        let promise = |world: &mut World, gateway: u128, host: Address| {
            let value = vec![gateway, u32::from_be_bytes(host).into()];
            let entry = Entry { key: key.clone(), value, priority: 0 };
            world.bench.processor_mut().insert(table, &entry).expect("there is room");
        };
        for (gateway, host) in [(2, HOST), (1, [10, 0, 0, 81])] {
            promise(world, gateway, host);
            assert_eq!(world.asks(&proof), refused, "{gateway}: {host:?}");
            world.bench.processor_mut().remove(table, &key, 0);
        }
        assert_eq!((world.held("spliced"), world.held("tcp_bindings")), (0, 0));
        promise(world, 1, HOST);
        let (reason, left) = world.asks(&proof);
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&first, &left, Some(1_380));
    });
}

/// Hosts that only a name in the first data tells apart.
#[test]
fn the_first_data_of_a_connection_is_shown_to_control_and_then_led_to_the_host_it_named() {
    everywhere(FEW, |world| {
        let port = 443_u128;
        let at = u128::from(u32::from_be_bytes(AT));
        world.insert("server_names", &[at, port], &[]);
        let first = Segment { ports: (40_000, 443), ..opening(40_000, 10) };
        let cookie = world.cookie(&first);
        let proof = acknowledges(&first, cookie);
        let dropped = |reason: &str| (Some(reason.to_owned()), vec![]);
        assert_eq!(world.asks(&proof), dropped("server_name_missing"));
        let hello = Segment { data: vec![22; 300], ..proof.clone() };
        assert_eq!(world.asks(&hello), dropped("server_name"));
        assert_eq!(world.asks(&Segment { ack: hello.ack + 1, ..hello.clone() }), dropped("no_binding"));
        // What comes behind it acknowledges the same, and nothing else is shown.
        let behind = Segment { seq: hello.seq + 300, data: vec![7; 90], ..hello.clone() };
        assert_eq!(world.asks(&behind), dropped("server_name"));
        assert_eq!(world.asks(&Segment { ack: hello.ack + 1, ..behind.clone() }), dropped("no_binding"));
        let other = Segment { ports: (40_007, 443), ..behind.clone() };
        assert_eq!(world.asks(&other), dropped("no_binding"));
        assert_eq!((world.held("spliced"), world.held("tcp_bindings")), (0, 0));
        // Control has read the name; the same data comes again, and its beginning opens the connection.
        let named = [u32::from_be_bytes(CLIENT).into(), 40_000, at, port];
        let host = u128::from(u32::from_be_bytes(HOST));
        world.learn("named", &named, &[1, host, (hello.ack ^ 1).into()]);
        assert_eq!(world.asks(&hello), dropped("server_name"), "that was another connection");
        world.learn("named", &named, &[1, host, hello.ack.into()]);
        assert_eq!(world.asks(&behind), dropped("server_name_missing"));
        let (reason, left) = world.asks(&hello);
        assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
        asks_host(&first, &left, Some(1_380));
        assert_eq!(world.answers(&host_answer(&first, 50)).0.as_deref(), Some("host_answered"));
        let wanted = Segment { to: HOST, ack: 51, ..hello.clone() };
        assert_eq!(world.asks(&hello), (None, vec![(TUNNEL, wanted)]));
        let page = Segment {
            flags: ACK,
            seq: 51,
            mss: None,
            other_options: false,
            data: vec![7; 700],
            ..host_answer(&first, 0)
        };
        let wanted = Segment { from: AT, seq: cookie.wrapping_add(1), ..page.clone() };
        assert_eq!(world.answers(&page), (None, vec![(PUBLIC, wanted)]));
        // No other connection of this client is led there.
        assert_eq!(world.held("tcp_bindings"), 0);
        let next = Segment { ports: (40_001, 443), ..opening(40_001, 10) };
        let cookie = world.cookie(&next);
        let hello = Segment { data: vec![22; 300], ..acknowledges(&next, cookie) };
        assert_eq!(world.asks(&hello), dropped("server_name"));
        // Control is shown no more of a network than it reads, and others as before.
        let reasons: Vec<_> = (0..300).map(|_| world.asks(&hello).0.expect("it is kept")).collect();
        assert!(reasons.iter().filter(|reason| *reason == "server_name").count() <= 200);
        assert_eq!(reasons.last().map(String::as_str), Some("server_names_full"));
        let far = Segment { from: [192, 3, 7, 1], ..next };
        let cookie = world.cookie(&far);
        let hello = Segment { data: vec![22; 300], ..acknowledges(&far, cookie) };
        assert_eq!(world.asks(&hello), dropped("server_name"));
        // What has been read is forgotten a minute later, as is who has proved itself.
        world.bench.advance(world.now + 61 * SECOND);
        assert_eq!((world.held("named"), world.held("naming")), (0, 0));
    });
}

/// The client is promised another host at this address, and even bound to it, while its connection is read.
#[test]
fn a_promise_that_comes_while_a_name_is_read_leaves_the_connection_to_the_name() {
    #[derive(Clone, Copy, PartialEq)]
    enum ComesBefore {
        Proof,
        Name,
        SentAgain,
    }
    for comes in [ComesBefore::Proof, ComesBefore::Name, ComesBefore::SentAgain] {
        for (other_port, binds) in [(40_001, false), (40_001, true), (40_000, false)] {
            everywhere(FEW, |world| {
                let at = u128::from(u32::from_be_bytes(AT));
                let host = u128::from(u32::from_be_bytes(HOST));
                world.insert("server_names", &[at, 443], &[]);
                if other_port == 40_000 {
                    // An older connection of this port is still spliced.
                    let older = Segment { ports: (40_000, 443), ..opening(40_000, 7_000) };
                    let proof = acknowledges(&older, world.cookie(&older));
                    let named = [u32::from_be_bytes(CLIENT).into(), 40_000, at, 443];
                    world.learn("named", &named, &[1, host, proof.ack.into()]);
                    world.opens(&older);
                    world.answers(&host_answer(&older, 50));
                }
                let promise = |world: &mut World| {
                    let exact = [at, TCP.into(), 443].map(Match::Exact);
                    let everybody = Match::Prefix { value: 0, length: 0 };
                    let key = exact.into_iter().chain([everybody]).collect();
                    let value = vec![2, u32::from_be_bytes([10, 0, 0, 81]).into()];
                    let table = world.table("expectations");
                    let entry = Entry { key, value, priority: 0 };
                    world.bench.processor_mut().insert(table, &entry).expect("there is room");
                    if binds {
                        let first = Segment { ports: (40_001, 443), ..opening(40_001, 900) };
                        assert_eq!(world.asks(&first).0, None, "the promise leads it");
                        assert_eq!(world.held("young_bindings"), 1);
                    }
                };
                let first = Segment { ports: (40_000, 443), ..opening(40_000, 10) };
                let cookie = world.cookie(&first);
                if comes == ComesBefore::Proof {
                    promise(world);
                }
                let dropped = |reason: &str| (Some(reason.to_owned()), vec![]);
                let proof = acknowledges(&first, cookie);
                assert_eq!(world.asks(&proof), dropped("server_name_missing"));
                if comes == ComesBefore::Name {
                    promise(world);
                }
                let hello = Segment { data: vec![22; 300], ..proof.clone() };
                let behind = Segment { seq: hello.seq + 300, data: vec![7; 90], ..hello.clone() };
                for piece in [&hello, &behind] {
                    assert_eq!(world.asks(piece), dropped("server_name"));
                }
                if comes == ComesBefore::SentAgain {
                    promise(world);
                }
                let named = [u32::from_be_bytes(CLIENT).into(), 40_000, at, 443];
                world.learn("named", &named, &[1, host, hello.ack.into()]);
                let (reason, left) = world.asks(&hello);
                assert_eq!(reason.as_deref(), Some("opened_by_cookie"));
                asks_host(&first, &left, Some(1_380));
                assert_eq!(world.answers(&host_answer(&first, 90)).0.as_deref(), Some("host_answered"));
                let wanted = Segment { to: HOST, ack: 91, ..hello.clone() };
                assert_eq!(world.asks(&hello), (None, vec![(TUNNEL, wanted)]));
            });
        }
    }
}

/// An error of ICMP that quotes a segment: its number is that of the side that sent it.
#[test]
fn errors_quote_the_numbers_of_who_gets_them() {
    /// The error, from `from`, about a segment.
    fn error(from: Address, cards: ([u8; 6], [u8; 6]), quoted: &Segment) -> Vec<u8> {
        let quote = &quoted.bytes(cards)[14..42];
        let icmp = PacketBuilder::ethernet2(cards.0, cards.1).ipv4(from, quoted.from, 60);
        let mut bytes = Vec::new();
        icmp.icmpv4_raw(3, 4, [0, 0, 5, 0]).write(&mut bytes, quote).expect("it can be written");
        bytes
    }
    /// What an error quotes: addresses and the number; its checksum is right.
    fn quoted(frame: &[u8]) -> (Address, Address, u32) {
        let part = |at: usize| <[u8; 4]>::try_from(&frame[at..at + 4]).expect("four bytes");
        let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&frame[34..]).ones_complement();
        assert_eq!(sum, 0, "the checksum of the message");
        (part(54), part(58), u32::from_be_bytes(part(66)))
    }
    everywhere(FEW, |world| {
        // Led by the name in its data, so there is no binding by which an error could go.
        let (at, port) = (u128::from(u32::from_be_bytes(AT)), 443);
        world.insert("server_names", &[at, port], &[]);
        let named = [u32::from_be_bytes(CLIENT).into(), 40_000, at, port];
        let first = Segment { ports: (40_000, 443), ..opening(40_000, 10) };
        let proof = acknowledges(&first, world.cookie(&first));
        world.learn("named", &named, &[1, u32::from_be_bytes(HOST).into(), proof.ack.into()]);
        let cookie = world.opens(&first);
        world.answers(&host_answer(&first, 50));
        let page = Segment { flags: ACK, seq: 51, mss: None, other_options: false, ..host_answer(&first, 0) };
        let outside = Segment { from: AT, seq: cookie.wrapping_add(1), ..page.clone() };
        let frame = error([192, 0, 2, 77], (ROUTER, WAYPOINT), &outside);
        let outcome = world.bench.packet(PUBLIC, &frame, world.now);
        let [(TUNNEL, left)] = &outcome.left[..] else { panic!("to the host: {outcome:?}") };
        assert_eq!(quoted(left), (HOST, CLIENT, 51));
        // The other way the number is the initiator's own on both sides.
        let sent = Segment { to: HOST, ack: 51, ..acknowledges(&first, cookie) };
        let frame = error([10, 0, 0, 1], (peer(1), peer(0)), &sent);
        let outcome = world.bench.packet(TUNNEL, &frame, world.now);
        let [(PUBLIC, left)] = &outcome.left[..] else { panic!("to the initiator: {outcome:?}") };
        assert_eq!(quoted(left), (CLIENT, AT, 11));
        // About another port of the initiator there is nothing to tell.
        let other = Segment { ports: (443, 40_001), ..outside };
        let frame = error([192, 0, 2, 77], (ROUTER, WAYPOINT), &other);
        let outcome = world.bench.packet(PUBLIC, &frame, world.now);
        assert_eq!(
            (outcome.left.len(), outcome.verdict.map(|verdict| verdict.kind())),
            (0, Some(VerdictKind::Drop))
        );
    });
}
