//! The programs `waypoint` and `names_gateway`, one behind the other: errors of ICMP, fragments, checksums
//! that are absent, and protocols without ports.
//!
//! Whatever arrives is judged by sums that another library computes: every checksum on every link is right,
//! also in what errors quote, and nothing outside names an address of the network behind the gateway.

use crate::ends::{self, ICMP, TCP, UDP, number, put, right, transport};
use engine::PacketBench;
use etherparse::PacketBuilder;
use exec::BackendKind;
use ir::Program;
use packet::VerdictKind;
use std::collections::VecDeque;

use crate::{GATEWAY, ROUTER, WAYPOINT, peer, program};

/// Ports of both programs: towards initiators, towards hosts.
const OUT: u16 = 1;
const IN: u16 = 2;

const HOST_CARD: [u8; 6] = [2, 0, 0, 0, 0, 53];

const INITIATOR: [u8; 4] = [203, 0, 113, 9];
const AT: [u8; 4] = [198, 51, 100, 1];
/// A router between both.
const ROUTER_ADDRESS: [u8; 4] = [192, 0, 2, 77];
/// Hosts by the entries of the program.
const WEB: [u8; 4] = [10, 0, 0, 80];
const DNS: [u8; 4] = [10, 0, 0, 53];

/// Both programs, and what left them.
struct Path<'a> {
    benches: [PacketBench<'a>; 2],
    programs: [&'a Program; 2],
    outside: Vec<Vec<u8>>,
    hosts: Vec<Vec<u8>>,
    reasons: Vec<String>,
}

impl<'a> Path<'a> {
    fn new(programs: &'a [Program; 2], back_end: BackendKind) -> Path<'a> {
        let bench = |program| PacketBench::new(program, back_end, 2, 0).expect("it loads");
        let benches = [bench(&programs[0]), bench(&programs[1])];
        let programs = [&programs[0], &programs[1]];
        let mut path = Path { benches, programs, outside: vec![], hosts: vec![], reasons: vec![] };
        for host in [WEB, DNS] {
            let mut arp =
                [&GATEWAY[..], &HOST_CARD, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &HOST_CARD, &host].concat();
            arp.resize(60, 0);
            path.run(1, IN, arp);
        }
        path.reasons.clear();
        path
    }

    /// Sends a frame, follows what becomes of it, and gives what arrived outside and at the hosts.
    fn run(&mut self, program: usize, port: u16, frame: Vec<u8>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut frames = VecDeque::from([(program, port, frame)]);
        while let Some((program, port, frame)) = frames.pop_front() {
            let outcome = self.benches[program].packet(port, &frame, 0);
            // A later fragment that waits for its first one has no verdict yet.
            if let Some(verdict) = outcome.verdict.filter(|verdict| verdict.kind() == VerdictKind::Drop) {
                self.reasons.push(self.programs[program].reasons[verdict.argument() as usize].name.clone());
            }
            for (to, mut left) in outcome.left {
                judged(&left);
                match (program, to) {
                    (0, OUT) => {
                        nothing_private(&left);
                        self.outside.push(left);
                    }
                    (0, IN) => {
                        assert_eq!(left[..6], peer(1), "both hosts are behind the first gateway");
                        left[..12].copy_from_slice(&[peer(0), peer(9)].concat());
                        frames.push_back((1, OUT, left));
                    }
                    (1, OUT) => {
                        assert_eq!(left[..6], peer(9), "it came by this waypoint");
                        left[..12].copy_from_slice(&[peer(0), peer(1)].concat());
                        frames.push_back((0, IN, left));
                    }
                    _ => self.hosts.push(left),
                }
            }
        }
        (std::mem::take(&mut self.outside), std::mem::take(&mut self.hosts))
    }

    /// From outside; one frame reaches a host.
    fn reaches(&mut self, frame: &[u8]) -> Vec<u8> {
        let (outside, mut hosts) = self.run(0, OUT, frame.to_vec());
        assert_eq!((outside.len(), hosts.len()), (0, 1), "{:?}", self.reasons);
        hosts.remove(0)
    }

    /// From a host; one frame gets outside.
    fn leaves(&mut self, frame: &[u8]) -> Vec<u8> {
        let (mut outside, hosts) = self.run(1, IN, frame.to_vec());
        assert_eq!((outside.len(), hosts.len()), (1, 0), "{:?}", self.reasons);
        outside.remove(0)
    }

    /// From outside; nothing arrives, by this reason.
    fn refused(&mut self, frame: &[u8]) -> String {
        let (outside, hosts) = self.run(0, OUT, frame.to_vec());
        assert_eq!((outside.len(), hosts.len()), (0, 0));
        self.reasons.pop().expect("a packet that does not go on has a reason")
    }
}

/// All checksums are right: of IP, of what follows in a whole packet, of what an error quotes.
fn judged(frame: &[u8]) {
    if frame[12..14] != [8, 0] {
        return;
    }
    let whole = number(frame, 20) & 0x3fff == 0;
    let (header, sum) = right(frame);
    assert_eq!(number(frame, 24), header, "{frame:02x?}");
    let at = transport(frame);
    let absent = frame[23] == UDP && number(frame, at + 6) == 0;
    if whole && [ICMP, TCP, UDP].contains(&frame[23]) && !absent {
        assert_eq!(number(frame, ends::place(frame)), sum, "the sum of {} bytes", frame.len());
    }
    if let Some(quoted) = quoted(frame) {
        let frame = [&frame[..14], quoted].concat();
        let header = etherparse::Ipv4Header::from_slice(quoted).expect("a header is quoted").0;
        assert_eq!(header.header_checksum, header.calc_header_checksum(), "{frame:02x?}");
    }
}

/// The packet that an error quotes.
fn quoted(frame: &[u8]) -> Option<&[u8]> {
    let at = transport(frame);
    let is_error = frame[23] == ICMP && number(frame, 20) & 0x1fff == 0 && matches!(frame[at], 3 | 11 | 12);
    is_error.then(|| &frame[at + 8..])
}

fn nothing_private(frame: &[u8]) {
    if frame[12..14] == [8, 0] {
        let mut addresses = vec![&frame[26..30], &frame[30..34]];
        addresses.extend(quoted(frame).iter().flat_map(|quoted| [&quoted[12..16], &quoted[16..20]]));
        assert!(addresses.iter().all(|address| address[0] != 10), "{frame:02x?}");
    }
}

fn between(inward: bool, from: [u8; 4], to: [u8; 4]) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    let cards = if inward { (ROUTER, WAYPOINT) } else { (HOST_CARD, GATEWAY) };
    PacketBuilder::ethernet2(cards.0, cards.1).ipv4(from, to, 60)
}

fn datagram(inward: bool, ends: [[u8; 4]; 2], ports: (u16, u16), size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let step = between(inward, ends[0], ends[1]).udp(ports.0, ports.1);
    step.write(&mut bytes, &(0..size).map(|at| at as u8).collect::<Vec<_>>()).expect("it can be written");
    put(&mut bytes, 20, 0);
    mended(bytes)
}

/// With the sum of the IP header made right.
fn mended(mut frame: Vec<u8>) -> Vec<u8> {
    let header = right(&frame).0;
    put(&mut frame, 24, header);
    frame
}

/// An error about a packet, as `from` makes it.
fn error(
    inward: bool,
    from: [u8; 4],
    to: [u8; 4],
    kind: (u8, u8),
    rest: [u8; 4],
    about: &[u8],
    size: usize,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let step = between(inward, from, to).icmpv4_raw(kind.0, kind.1, rest);
    step.write(&mut bytes, &about[14..about.len().min(14 + size)]).expect("it can be written");
    bytes
}

/// What is quoted is what was sent, but for the hops on the way.
fn quotes(error: &[u8], sent: &[u8]) {
    let quoted = quoted(error).expect("it is an error");
    let sent = &sent[14..14 + quoted.len()];
    assert_eq!((&quoted[..8], quoted[9]), (&sent[..8], sent[9]));
    assert_eq!(quoted[12..], sent[12..]);
    assert!(quoted[8] <= sent[8]);
}

#[test]
fn errors_quote_what_their_receiver_has_sent() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        for size in [28, 200] {
            let asked = datagram(true, [INITIATOR, AT], (40_000, 53), 100);
            let got = path.reaches(&asked);
            let answered = datagram(false, [DNS, INITIATOR], (53, 40_000), 40);
            let left = path.leaves(&answered);

            for (kind, rest) in
                [((3, 3), [0; 4]), ((3, 4), [0, 0, 4, 0]), ((11, 0), [0; 4]), ((12, 0), [9, 0, 0, 0])]
            {
                // Of the host itself, and of somebody else there.
                for from in [DNS, [10, 0, 0, 7]] {
                    let told = path.leaves(&error(false, from, INITIATOR, kind, rest, &got, size));
                    assert_eq!((&told[26..30], &told[30..34]), (&AT[..], &INITIATOR[..]));
                    assert_eq!((told[34], told[35], &told[38..42]), (kind.0, kind.1, &rest[..]));
                    quotes(&told, &asked);
                    path.reaches(&asked);
                }
                // Of a router on the way to the initiator.
                let told = path.reaches(&error(true, ROUTER_ADDRESS, AT, kind, rest, &left, size));
                assert_eq!((&told[26..30], &told[30..34]), (&ROUTER_ADDRESS[..], &DNS[..]));
                assert_eq!((told[34], told[35], &told[38..42]), (kind.0, kind.1, &rest[..]));
                quotes(&told, &answered);
            }
        }
        // About a connection that is none, of another gateway's making, and about an error.
        let other = datagram(false, [AT, [203, 0, 113, 8]], (53, 40_000), 40);
        assert_eq!(path.refused(&error(true, ROUTER_ADDRESS, AT, (3, 3), [0; 4], &other, 28)), "no_binding");
        let stranger = datagram(false, [AT, INITIATOR], (53, 40_001), 40);
        assert_eq!(
            path.refused(&error(true, ROUTER_ADDRESS, AT, (3, 3), [0; 4], &stranger, 28)),
            "not_asked"
        );
        let about = error(true, AT, ROUTER_ADDRESS, (3, 3), [0; 4], &other, 28);
        assert_eq!(
            path.refused(&error(true, ROUTER_ADDRESS, AT, (3, 3), [0; 4], &about, 28)),
            "other_protocol"
        );
    }
}

#[test]
fn traceroute_shows_each_hop_and_the_host() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        for (hops, port) in [(1, 33_434), (2, 33_437), (3, 33_440)] {
            let mut asked = datagram(true, [INITIATOR, AT], (40_000, port), 32);
            asked[22] = hops;
            let asked = mended(asked);
            let (mut outside, hosts) = path.run(0, OUT, asked.clone());
            if hops == 3 {
                assert_eq!((outside.len(), hosts[0][22]), (0, 1), "it has reached the host");
                outside.push(path.leaves(&error(false, WEB, INITIATOR, (3, 3), [0; 4], &hosts[0], 60)));
            }
            assert_eq!(outside.len(), 1, "{:?}", path.reasons);
            let told = &outside[0];
            assert_eq!((&told[26..30], &told[30..34]), (&AT[..], &INITIATOR[..]));
            assert_eq!(told[34], if hops == 3 { 3 } else { 11 });
            quotes(told, &asked);
        }
    }
}

#[test]
fn the_tunnels_size_is_told_to_both_ends() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        path.reaches(&datagram(true, [INITIATOR, AT], (40_000, 53), 700));
        let whole = |frame: Vec<u8>| {
            let mut frame = frame;
            put(&mut frame, 20, 0x4000);
            mended(frame)
        };
        let large = whole(datagram(true, [INITIATOR, AT], (40_000, 53), 1_400));
        let (outside, hosts) = path.run(0, OUT, large.clone());
        assert_eq!((outside.len(), hosts.len(), &outside[0][34..42]), (1, 0, &large_told(&outside[0])[..]));
        quotes(&outside[0], &large);
        let large = whole(datagram(false, [DNS, INITIATOR], (53, 40_000), 1_400));
        let (outside, hosts) = path.run(1, IN, large.clone());
        assert_eq!((outside.len(), hosts.len(), &hosts[0][34..42]), (0, 1, &large_told(&hosts[0])[..]));
        quotes(&hosts[0], &large);
        path.reaches(&whole(datagram(true, [INITIATOR, AT], (40_000, 53), 1_392)));
    }
}

/// The first eight bytes of "fragmentation needed", 1,420 bytes, with the sum that stands there.
fn large_told(frame: &[u8]) -> [u8; 8] {
    [3, 4, frame[36], frame[37], 0, 0, 0x05, 0x8c]
}

/// The pieces of a packet, each of so many bytes behind the header at most.
fn pieces(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let body = &frame[34..];
    body.chunks(size)
        .enumerate()
        .map(|(index, piece)| {
            let mut made = [&frame[..34], piece].concat();
            let more = (index + 1) * size < body.len();
            put(&mut made, 16, 20 + piece.len() as u16);
            put(&mut made, 20, (index * size / 8) as u16 | if more { 0x2000 } else { 0 });
            mended(made)
        })
        .collect()
}

/// One packet out of pieces that come in order.
fn joined(pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = pieces[0][..34].to_vec();
    for piece in pieces {
        assert_eq!(usize::from(number(piece, 20) & 0x1fff) * 8, whole.len() - 34);
        whole.extend_from_slice(&piece[34..]);
    }
    let total = whole.len() as u16 - 14;
    put(&mut whole, 16, total);
    put(&mut whole, 20, 0);
    mended(whole)
}

#[test]
fn fragments_arrive_as_one_packet_with_right_sums() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        for (round, size) in [(1_u16, 800), (2, 24), (3, 1_480)] {
            let identified = |mut frame: Vec<u8>| {
                put(&mut frame, 18, round);
                mended(frame)
            };
            let asked = identified(datagram(true, [INITIATOR, AT], (40_000, 53), 3_000));
            let mut got = Vec::new();
            for piece in pieces(&asked, size) {
                let (outside, hosts) = path.run(0, OUT, piece);
                assert!(outside.is_empty() && !hosts.is_empty(), "{:?}", path.reasons);
                assert!(hosts.iter().all(|frame| frame.len() <= 1_434), "it fits into the tunnel");
                got.extend(hosts);
            }
            let got = joined(&got);
            judged(&got);
            assert_eq!((&got[26..30], &got[30..34], &got[42..]), (&INITIATOR[..], &DNS[..], &asked[42..]));

            let answered = identified(datagram(false, [DNS, INITIATOR], (53, 40_000), 2_000));
            let mut left = Vec::new();
            for piece in pieces(&answered, size) {
                left.extend(path.run(1, IN, piece).0);
            }
            let left = joined(&left);
            judged(&left);
            assert_eq!(
                (&left[26..30], &left[30..34], &left[42..]),
                (&AT[..], &INITIATOR[..], &answered[42..])
            );
        }
        // The first one may come last.
        let mut late = pieces(&datagram(true, [INITIATOR, AT], (40_000, 53), 1_500), 800);
        late.iter_mut().for_each(|piece| put(piece, 18, 99));
        let (first, last) = (mended(late.remove(0)), mended(late.remove(0)));
        assert_eq!(path.run(0, OUT, last), (vec![], vec![]));
        let (outside, hosts) = path.run(0, OUT, first);
        assert_eq!((outside.len(), hosts.len()), (0, 2), "{:?}", path.reasons);
        judged(&joined(&hosts));
    }
}

#[test]
fn a_datagram_without_a_checksum_stays_so() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        let without = |mut frame: Vec<u8>| {
            put(&mut frame, 40, 0);
            frame
        };
        let got = path.reaches(&without(datagram(true, [INITIATOR, AT], (40_000, 53), 8)));
        assert_eq!(number(&got, 40), 0);
        let left = path.leaves(&without(datagram(false, [DNS, INITIATOR], (53, 40_000), 8)));
        assert_eq!(number(&left, 40), 0);
        // Errors about it, too.
        let told = path.leaves(&error(false, DNS, INITIATOR, (3, 3), [0; 4], &got, 28));
        assert_eq!(number(&told, 34 + 8 + 26), 0);
    }
}

#[test]
fn protocols_without_ports_are_bound_by_addresses() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let mut path = Path::new(&programs, back_end);
        let of = |proto: u8, mut frame: Vec<u8>| {
            frame[23] = proto;
            mended(frame)
        };
        let asked = of(47, datagram(true, [INITIATOR, AT], (0x2000, 0x0800), 60));
        let got = path.reaches(&asked);
        assert_eq!((&got[26..34], &got[34..]), (&[INITIATOR, WEB].concat()[..], &asked[34..]));
        let answered = of(47, datagram(false, [WEB, INITIATOR], (0x2000, 0x0800), 60));
        let left = path.leaves(&answered);
        assert_eq!((&left[26..34], &left[34..]), (&[AT, INITIATOR].concat()[..], &answered[34..]));
        let told = path.leaves(&error(false, WEB, INITIATOR, (3, 2), [0; 4], &got, 28));
        quotes(&told, &asked);
        // ESP is not promised; UDP-Lite has a checksum over addresses.
        assert_eq!(path.refused(&of(50, asked.clone())), "no_expectation");
        assert_eq!(path.refused(&of(136, asked)), "other_protocol");
    }
}
