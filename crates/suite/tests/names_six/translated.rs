//! Clients of IPv6 and hosts that have IPv4 alone: what is translated, who has which port and how long, and
//! what strangers can do about it.

use super::{
    ACK, ECHO, FIN, GATEWAY, HOST_CARD, IN, PLAIN, RST, SECOND, SERVICES, SYN, SYN_ACK, Said, Six, TCP, UDP,
    address, error, number, outside, packet, place, pool, put, read, segment, small, sum, turned,
};
use crate::program;
use exec::BackendKind;
use ir::Program;
use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use suite::random::SuiteRandom;

/// How a connection ends, by the port that the host sees.
type End<'a> = &'a dyn Fn(&mut Six, u16);

/// The first numbers of an initiator and of a host.
const FIRST: u32 = 100;
const HOSTS_FIRST: u32 = 700;

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
    Said { from, to, proto, ports, hops: packet[8], size: body.len() - head, segment: segment(proto, body) }
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
    for back_end in BackendKind::ALL {
        let mut six = Six::new(&programs, back_end);
        for (proto, number) in SERVICES {
            six.lead((pool(1), proto, number), Some((1, four(80))));
        }
        resolve_four(&mut six);
        let mut random = SuiteRandom::new(7);
        let (mut ports, mut opened) = (BTreeMap::new(), HashSet::new());
        for _ in 0..1_000 {
            let (proto, number) = *random.pick(&SERVICES);
            let (from, other) = (outside(random.between(1, 30) as u16), 40_000 + random.below(30) as u16);
            let ends = if proto == ECHO { (128, other) } else { (other, number) };
            let size = random.below(60) as usize;
            let mut ask = Said { from, to: pool(1), proto, ports: ends, hops: 60, size, segment: PLAIN };
            if proto == TCP {
                if opened.insert((from, other, number)) {
                    connect(&mut six, Said { size: 0, ..ask }).expect("there is room");
                }
                ask.segment = (0x18, 101, 701);
            }
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
            let answer = match proto {
                ECHO => Said { ports: (0, port), ..answer },
                TCP => Said { segment: (0x18, 701, 101 + size as u32), ..answer },
                _ => answer,
            };
            let inside = six.answers(1, &packet_four(answer)).expect("it was asked");
            let left = six.returns(1, &inside).expect("it is of the service");
            assert_eq!(
                read(&left),
                Said { hops: 58, segment: answer.segment, ..turned(Said { to: pool(1), ..ask }, pool(1)) }
            );
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

/// The card of the host is known for so long that no packet waits for it.
fn resolve_four(six: &mut Six) {
    let mut arp =
        [&GATEWAY[..], &HOST_CARD, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &HOST_CARD, &[10, 0, 0, 80]].concat();
    arp.resize(60, 0);
    six.gateways[0].packet(IN, &arp, six.now);
}

/// Both programs, with services of one host that has IPv4 alone.
fn with_host(programs: &[Program; 2], back_end: BackendKind) -> Six<'_> {
    let mut six = Six::new(programs, back_end);
    for (proto, number) in SERVICES {
        six.lead((pool(1), proto, number), Some((1, four(80))));
    }
    resolve_four(&mut six);
    six
}

fn ask(from: Ipv6Addr, proto: u8, other: u16) -> Said {
    let ports = match proto {
        ECHO => (128, other),
        TCP => (other, 80),
        _ => (other, 53),
    };
    Said { from, to: pool(1), proto, ports, hops: 60, size: 0, segment: PLAIN }
}

/// One of many initiators, each of a network (/48) of its own.
fn somebody(which: u32) -> Ipv6Addr {
    let [a, b, c, d] = which.to_be_bytes().map(u16::from);
    Ipv6Addr::new(0x2a00, a << 8 | b, c << 8 | d, 0, 0, 0, 0, 1)
}

/// A packet of an initiator: the port that the host sees.
fn asks(six: &mut Six, said: Said) -> Option<u16> {
    let (_, got) = six.asks(&packet(said))?;
    let seen = read_four(&got);
    Some(if said.proto == ECHO { seen.ports.1 } else { seen.ports.0 })
}

/// What the host sends to a port: who gets it.
fn says(six: &mut Six, proto: u8, port: u16, segment: (u8, u32, u32)) -> Option<(Ipv6Addr, u16)> {
    resolve_four(six);
    let ports = match proto {
        ECHO => (0, port),
        TCP => (80, port),
        _ => (53, port),
    };
    let said = Said { from: four(80), to: four(1), proto, ports, hops: 60, size: 0, segment };
    let inside = six.answers(1, &packet_four(said))?;
    let got = read(&six.returns(1, &inside)?);
    Some((got.to, got.ports.1))
}

/// A connection that is proved: the port that the host sees.
fn connect(six: &mut Six, ask: Said) -> Option<u16> {
    resolve_four(six);
    let port = asks(six, Said { segment: (SYN, FIRST, 0), ..ask })?;
    let said = Said { from: four(80), to: four(1), segment: (SYN_ACK, HOSTS_FIRST, FIRST + 1), ..ask };
    let ports = if ask.proto == ECHO { (0, port) } else { (ask.ports.1, port) };
    let inside = six.answers(1, &packet_four(Said { ports, ..said }))?;
    six.returns(1, &inside)?;
    let again = asks(six, Said { segment: (ACK, FIRST + 1, HOSTS_FIRST + 1), ..ask })?;
    assert_eq!(again, port, "a connection keeps its port");
    Some(port)
}

/// The port that a connection gets if it is free: a hash of both ends (language, `hash`).
fn first_port(ask: Said) -> u16 {
    let other = if ask.proto == ECHO { ask.ports.1 } else { ask.ports.0 };
    let number = if ask.proto == ECHO { 0 } else { ask.ports.1 };
    let (from, host) = (ask.from.to_bits(), four(80).to_bits());
    let ends = [(from >> 64) as u64, from as u64, other.into(), ask.proto.into()];
    let service = [(host >> 64) as u64, host as u64, number.into()];
    let mixed = |state: u64| {
        let state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^ state >> 32
    };
    let state = ends.iter().chain(&service).fold(0x9e37_79b9_7f4a_7c15, |state, word| mixed(state ^ word));
    (mixed(state) >> 32) as u16 | 0x8000
}

/// Another connection that would get the same port.
fn with_same_port(ask: Said) -> Said {
    let others = (1..).map(|which| Said { from: somebody(which), ..ask });
    others.into_iter().find(|other| first_port(*other) == first_port(ask)).expect("there is one")
}

#[test]
fn many_connections_push_no_quiet_one_out() {
    let small = [program("waypoint"), small(&[("MOST_TRANSLATED", "1000")])];
    for back_end in BackendKind::ALL {
        let mut six = with_host(&small, back_end);
        let quiet = [TCP, UDP, ECHO].map(|proto| {
            let ask = ask(outside(1), proto, 40_000);
            (proto, connect(&mut six, ask).expect("there is room"))
        });
        for which in 0..3_000 {
            for (proto, own) in quiet {
                let port = connect(&mut six, ask(somebody(which), proto, 40_000));
                assert_ne!(port, Some(own), "somebody has the port of another");
            }
        }
        assert!(six.reasons["translations_full"] > 1_000, "{:?}", six.reasons);
        for (proto, port) in quiet {
            let got = says(&mut six, proto, port, (ACK, HOSTS_FIRST + 1, FIRST + 1));
            assert_eq!(got, Some((outside(1), 40_000)), "protocol {proto}");
        }
    }
}

#[test]
fn a_network_has_a_part_of_all_places_and_no_more() {
    let small = [program("waypoint"), small(&[("PLACES_OF_64", "100"), ("PLACES_OF_48", "250")])];
    for back_end in BackendKind::ALL {
        let mut six = with_host(&small, back_end);
        let mut other = 0;
        let mut connected = |six: &mut Six, site: u16, link: u16| {
            let all = (0..300_u16).filter(|n| {
                other += 1;
                let from = Ipv6Addr::new(0x2a00, 1, site, link, 0, 0, 0, *n);
                connect(six, ask(from, [TCP, UDP, ECHO][usize::from(*n % 3)], other)).is_some()
            });
            all.count()
        };
        assert_eq!([1, 2, 3, 4, 1].map(|link| connected(&mut six, 1, link)), [100, 100, 50, 0, 0]);
        assert_eq!(connected(&mut six, 2, 1), 100, "another site");
        assert!(six.reasons.contains_key("network_full"));
        // Echo and datagrams have ended, and what they held is free again.
        six.rest(301 * SECOND);
        assert_eq!(connected(&mut six, 2, 1), 66);
        six.rest(7_500 * SECOND);
        assert_eq!(connected(&mut six, 1, 1), 100);
    }
}

#[test]
fn so_many_connections_as_there_are_may_close_at_once() {
    let small = [program("waypoint"), small(&[("MOST_TRANSLATED", "40"), ("MOST_PASSING", "10")])];
    for back_end in BackendKind::ALL {
        let mut six = with_host(&small, back_end);
        let closed = |six: &mut Six, which: u32| {
            let ask = ask(somebody(which), TCP, 40_000);
            let connected = connect(six, ask).is_some();
            asks(six, Said { segment: (RST, FIRST + 1, HOSTS_FIRST + 1), ..ask });
            connected
        };
        assert_eq!((0..40).filter(|which| closed(&mut six, *which)).count(), 40);
        // None of them keeps its place for the 124 minutes of one that is open.
        six.now += 241 * SECOND;
        assert_eq!((40..80).filter(|which| closed(&mut six, *which)).count(), 40);
    }
}

#[test]
fn the_part_of_a_network_is_counted_as_long_as_its_connections_live() {
    let small = [program("waypoint"), small(&[("PLACES_OF_64", "10")])];
    for back_end in BackendKind::ALL {
        let mut six = with_host(&small, back_end);
        let client = |last| ask(Ipv6Addr::new(0x2a00, 1, 1, 1, 0, 0, 0, last), TCP, 40_000);
        assert!((1..=10).all(|last| connect(&mut six, client(last)).is_some()));
        for _ in 0..13 {
            six.now += 7_200 * SECOND;
            resolve_four(&mut six);
            let segment = (ACK, FIRST + 1, HOSTS_FIRST + 1);
            assert!((1..=10).all(|last| asks(&mut six, Said { segment, ..client(last) }).is_some()));
        }
        assert_eq!(connect(&mut six, client(11)), None, "more than a day later");
        assert_eq!(six.reasons.get("network_full"), Some(&1));
    }
}

#[test]
fn who_forges_initiators_takes_no_port_for_long() {
    let programs = [program("waypoint"), program("names_gateway")];
    let mut six = with_host(&programs, BackendKind::Native);
    let own = connect(&mut six, ask(outside(1), TCP, 40_000)).expect("there is room");
    for which in 0..60_000 {
        let ask = ask(somebody(which), TCP, 40_000);
        let Some(port) = asks(&mut six, Said { segment: (SYN, FIRST, 0), ..ask }) else { continue };
        // The host accepts or refuses; the second packet is a guess.
        let flags = if which % 2 == 0 { SYN_ACK } else { RST | ACK };
        says(&mut six, TCP, port, (flags, HOSTS_FIRST, FIRST + 1));
        asks(&mut six, Said { segment: (ACK, FIRST + 1, HOSTS_FIRST), ..ask });
    }
    let begun = |six: &mut Six, from: u32| {
        let all =
            (from..from + 100).filter(|which| connect(six, ask(somebody(*which), TCP, 40_000)).is_some());
        all.count()
    };
    let beside = begun(&mut six, 1 << 24);
    assert!(beside > 80, "who proves itself finds a port beside the forgers: {beside}, {:?}", six.reasons);
    six.now += 31 * SECOND;
    assert_eq!(begun(&mut six, 1 << 25), 100, "nothing was proved");
    let got = says(&mut six, TCP, own, (ACK, HOSTS_FIRST + 1, FIRST + 1));
    assert_eq!(got, Some((outside(1), 40_000)), "who is there stays");
}

#[test]
fn a_connection_of_tcp_ends_by_its_ends_and_by_no_stranger() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let host_acks = (ACK, HOSTS_FIRST + 1, FIRST + 1);
        let ask = ask(outside(1), TCP, 40_000);
        let client = Some((outside(1), 40_000));
        let sent = |flags: u8, number: u32| Said { segment: (flags, number, HOSTS_FIRST + 1), ..ask };
        // Resets that a stranger forges, and one FIN, pass and end nothing.
        let mut six = with_host(&programs, back_end);
        let port = connect(&mut six, ask).expect("there is room");
        for number in (0..1_000).map(|n| n * 4_294_967 + 7).filter(|number| *number != FIRST + 1) {
            assert_eq!(asks(&mut six, sent(RST, number)), Some(port));
        }
        asks(&mut six, sent(FIN, 5_000));
        says(&mut six, TCP, port, (FIN, HOSTS_FIRST + 1, FIRST + 1));
        says(&mut six, TCP, port, (RST, HOSTS_FIRST + 100_000, 0));
        six.now += 300 * SECOND;
        assert_eq!(says(&mut six, TCP, port, host_acks), client);
        // One with the number that the host expects, one of the host, and both FIN: four minutes later nobody
        // gets what the host sends there.
        let by_reset = |six: &mut Six, _: u16| assert!(asks(six, sent(RST, FIRST + 1)).is_some());
        let by_host = |six: &mut Six, port: u16| {
            assert_eq!(says(six, TCP, port, (RST, HOSTS_FIRST + 1, 0)), client);
        };
        let by_fin = |six: &mut Six, port: u16| {
            assert!(asks(six, sent(FIN, FIRST + 1)).is_some());
            assert_eq!(says(six, TCP, port, (FIN, HOSTS_FIRST + 1, FIRST + 2)), client);
        };
        let ends: [End; 3] = [&by_reset, &by_host, &by_fin];
        for end in ends {
            six.now += 8_000 * SECOND;
            let port = connect(&mut six, ask).expect("there is room");
            end(&mut six, port);
            six.now += 200 * SECOND;
            assert_eq!(says(&mut six, TCP, port, host_acks), client, "what was under way still comes");
            six.now += 241 * SECOND;
            assert_eq!(says(&mut six, TCP, port, host_acks), None);
            // The same ends may begin anew, also before.
            assert_eq!(connect(&mut six, ask), Some(port));
            end(&mut six, port);
            assert_eq!(connect(&mut six, ask), Some(port));
        }
    }
}

#[test]
fn a_host_begins_nothing_by_a_connection_of_who_is_translated() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        let ask = ask(outside(1), TCP, 40_000);
        let mut six = with_host(&programs, back_end);
        let port = connect(&mut six, ask).expect("there is room");
        let segment = (SYN, HOSTS_FIRST + 100_000, 0);
        let ports = (80, port);
        let begins =
            packet_four(Said { from: four(80), to: four(1), proto: TCP, ports, hops: 60, size: 0, segment });
        // The gateway itself keeps it in, and so would the waypoint.
        assert_eq!(six.answers(1, &begins), None, "while it is open");
        let reset = (RST, HOSTS_FIRST + 1, 0);
        assert_eq!(says(&mut six, TCP, port, reset), Some((outside(1), 40_000)));
        assert_eq!(six.answers(1, &begins), None, "while it closes");
        assert_eq!(six.reasons.get("host_begins"), Some(&2));
    }
}

#[test]
fn a_port_is_nobody_elses_while_the_host_may_send_there() {
    let programs = [program("waypoint"), program("names_gateway")];
    for back_end in BackendKind::ALL {
        // Datagrams: the first answer comes late, more come though the initiator is silent.
        let mut six = with_host(&programs, back_end);
        let first = ask(outside(1), UDP, 40_000);
        let other = with_same_port(first);
        let port = asks(&mut six, first).expect("there is room");
        assert_eq!(port, first_port(first));
        for _ in 0..5 {
            six.now += 119 * SECOND;
            resolve_four(&mut six);
            assert_ne!(asks(&mut six, other), Some(port));
            assert_eq!(says(&mut six, UDP, port, PLAIN), Some((outside(1), 40_000)));
        }
        // The gateway has forgotten all, and the host has not.
        let mut six = with_host(&programs, back_end);
        assert_eq!(says(&mut six, UDP, port, PLAIN), None);
        assert_ne!(asks(&mut six, other), Some(port));
        assert_eq!(says(&mut six, UDP, port, PLAIN), None);
        six.now += 121 * SECOND;
        resolve_four(&mut six);
        assert_eq!(asks(&mut six, other), Some(port), "nobody has sent for two minutes");
        // TCP: the host has kept a connection of somebody else at this port.
        let first = ask(outside(1), TCP, 40_000);
        let other = with_same_port(first);
        let port = first_port(first);
        assert_eq!(asks(&mut six, Said { segment: (SYN, 5_000, 0), ..other }), Some(port));
        for old in [(ACK, HOSTS_FIRST + 1, FIRST + 1), (ACK, 1, 5_000), (FIN, 1, 5_001), (RST, 1, 0)] {
            assert_eq!(says(&mut six, TCP, port, old), None, "{old:?}");
        }
        assert_eq!(says(&mut six, TCP, port, (SYN_ACK, 1, 5_001)), Some((other.from, 40_000)));
    }
}

#[test]
fn each_protocol_has_its_own_time() {
    let programs = [program("waypoint"), program("names_gateway")];
    let mut six = with_host(&programs, BackendKind::Native);
    for (proto, proved, seconds) in
        [(TCP, true, 7_440), (TCP, false, 30), (UDP, true, 300), (UDP, false, 120), (ECHO, true, 60)]
    {
        six.now += 8_000 * SECOND;
        resolve_four(&mut six);
        let own = ask(outside(1), proto, 40_000);
        let port = if proved {
            connect(&mut six, own)
        } else {
            asks(&mut six, Said { segment: (SYN, FIRST, 0), ..own })
        };
        let port = port.expect("there is room");
        let says = |six: &mut Six| says(six, proto, port, (SYN_ACK, HOSTS_FIRST, FIRST + 1));
        six.now += (seconds - 1) * SECOND;
        assert!(says(&mut six).is_some(), "protocol {proto} at {seconds} s");
        six.now += (seconds + 1) * SECOND;
        assert_eq!(says(&mut six), None, "protocol {proto} behind {seconds} s");
    }
}

/// What is wrong with the checksum of a packet of ICMPv6.
fn number_of_sum(told: &[u8]) -> u16 {
    number(told, 42) ^ sum(address(told, 8), address(told, 24), ECHO, &told[40..], 2)
}
