//! Checksums after rewriting, held against a full recomputation by another library: over random packets with
//! options, extension headers, fragments, odd lengths, wrong checksums and UDP without one, on both back
//! ends.

use etherparse::checksum::Sum16BitWords;
use exec::BackendKind;
use ir::Program;
use lang::pipeline::{CompileOptions, Decode, compile};
use suite::outcome::see;
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

const PORTS: u16 = 5;

/// Addresses, without a look at what is behind.
const ADDRESSES: &str = "
    import std.net.{ethernet, vlan, ipv4, ipv6}
    start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => network(eth.type) } }
    decoder tag(v: vlan) { goto network(v.type) }
    stage network(kind: u16) { match kind { 0x0800 => packet, 0x86dd => packet6, else => flood } }
    decoder packet(ip: ipv4) {
        if in_port == 1 { set ip.src = 192.0.2.1 }
        if in_port == 2 { set ip.src = 255.255.255.255 set ip.dst = 0.0.0.0 }
        if ip.ttl > 0 { set ip.ttl = ip.ttl - 1 }
        set ip.dscp = 46
        if in_port == 3 { copy to 4  set ip.id = ip.id +% 0x7fff }
        if in_port == 4 { set ip.dst = ip.src }
        if in_port == 5 { set ip.ecn = 3 goto again }
        flood
    }
    stage again() requires ip { set ip.src = 10.1.2.3  set ip.src = 10.1.2.4  send 1 }
    decoder packet6(ip6: ipv6) {
        if ip6.hop_limit > 0 { set ip6.hop_limit = ip6.hop_limit - 1 }
        if in_port == 1 { set ip6.src = 2001:db8::1 }
        if in_port == 2 { set ip6.src = ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff  set ip6.dst = :: }
        set ip6.flow = 0xfffff
        if in_port > 3 { copy to 1  set ip6.dst = ip6.src }
        send 2
    }";

/// Fields of every header.
const FIELDS: &str = "
    import std.net.{ethernet, vlan, ipv4, ipv6, ipv6_extension, tcp, udp, icmp, icmpv6, icmp_echo}
    start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => network(eth.type) } }
    decoder tag(v: vlan) { goto network(v.type) }
    stage network(kind: u16) { match kind { 0x0800 => packet, 0x86dd => packet6, else => flood } }
    decoder packet(ip: ipv4) {
        if in_port == 1 { set ip.src = 192.0.2.1 }
        if ip.frag == 0 { goto transport(ip.proto) }
        set ip.dst = 192.0.2.2
        flood
    }
    decoder packet6(ip6: ipv6) {
        if in_port == 1 { set ip6.src = 2001:db8::1 }
        goto next6(ip6.next)
    }
    stage next6(kind: u8) { match kind { 0 | 43 | 60 => extension, else => transport(kind) } }
    decoder extension(e: ipv6_extension) { goto next6(e.next) }
    stage transport(kind: u8) { match kind { 1 => control, 6 => segment, 17 => datagram, 58 => control6, else => flood } }
    decoder segment(t: tcp) {
        set t.src = t.dst
        if in_port == 2 { set t.seq = t.ack +% 7  set t.flags = 0xff }
        if in_port == 3 { set t.reserved = 15  if t.check > 0x8000 { set t.urgent = t.check } }
        for o in t.options as pair { set o.b = (o.a as u16) +% 0x900 }
        send 1
    }
    layout pair { a: u8  b: u16  c: u8 }
    decoder datagram(u: udp) {
        set u.dst = 53
        if in_port == 4 { set u.src = 0xffff }
        if in_port == 5 { set u.check = 0  set u.src = 7 }
        send 1
    }
    decoder control(i: icmp) {
        if i.type == 0 || i.type == 8 { goto echo }
        set i.code = i.code +% 1
        flood
    }
    decoder control6(j: icmpv6) {
        if j.type == 128 || j.type == 129 { goto echo }
        set j.code = j.code +% 1
        flood
    }
    decoder echo(e2: icmp_echo) {
        set e2.id = e2.sequence +% 0xfff
        if in_port < 3 { copy to 1  set e2.sequence = 0 }
        flood
    }";

/// Bytes of the payload, at odd places too.
const PAYLOAD: &str = "
    import std.net.{ethernet, vlan, ipv4, tcp, udp, icmp}
    layout three { a: u8  b: u16 }
    start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => network(eth.type) } }
    decoder tag(v: vlan) { goto network(v.type) }
    stage network(kind: u16) { match kind { 0x0800 => packet, else => flood } }
    decoder packet(ip: ipv4) {
        for o in ip.options as three { if o.a > 3 { set o.b = 0x1234 } else { break } }
        if ip.frag != 0 { flood }
        match ip.proto { 1 => control, 6 => segment, 17 => datagram, else => flood }
    }
    decoder segment(t: tcp) { goto deep }
    decoder datagram(u: udp) { goto deep }
    decoder control(i: icmp) { if i.code == 0 { goto deep } set i.type = 3 flood }
    decoder deep(d: three) {
        set d.b = d.b +% 3
        for x in payload as three {
            if x.a == 9 { break }
            set x.b = x.b +% 0x0101
            set x.a = x.a +% 1
        }
        flood
    }";

/// Headers that go in and out between writes.
const SIZES: &str = "
    import std.net.{ethernet, vlan, ipv4, ipv6, tcp, udp}
    start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => network(eth.type) } }
    decoder tag(v: vlan) {
        let kind = v.type
        if in_port < 3 { pop v  set eth.type = kind }
        goto network(kind)
    }
    stage network(kind: u16) { match kind { 0x0800 => packet, 0x86dd => packet6, else => flood } }
    decoder packet(ip: ipv4) {
        set ip.src = 192.0.2.1
        push vlan(id 9) after eth
        set ip.ttl = ip.ttl +% 3
        if ip.frag != 0 || ip.proto != 17 { set ip.dst = 10.1.1.1  flood }
        goto datagram
    }
    decoder datagram(u: udp) {
        push vlan(id 8) after eth
        set ip.dst = ip.src
        set u.src = u.dst
        flood
    }
    decoder packet6(ip6: ipv6) {
        encapsulate { ethernet / vlan(id 5, type 0x86dd) }
        decapsulate to ip6
        encapsulate { ethernet(type 0x86dd) }
        set ip6.dst = ip6.src
        flood
    }";

/// A packet, and what is needed to see whether it is right.
#[derive(Clone, Debug)]
struct Case {
    frame: Vec<u8>,
    port: u16,
    /// Bytes of the transport payload that are in later fragments.
    rest: Vec<u8>,
}

/// A checksum as it stands and as it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Check {
    found: u16,
    right: u16,
    /// Zero says that there is none.
    unless_zero: bool,
}

impl Check {
    /// By how much it is wrong, modulo 65,535.
    fn error(self) -> u16 {
        ((u32::from(self.found) + 0xffff - u32::from(self.right)) % 0xffff) as u16
    }
}

fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The checksums of a packet: its IPv4 header's, and the transport header's where that is here.
fn checks(frame: &[u8], rest: &[u8]) -> (Option<Check>, Option<Check>) {
    let mut at = 12;
    while number(frame, at) == 0x8100 {
        at += 4;
    }
    let version4 = number(frame, at) == 0x0800;
    at += 2;
    let (mut pseudo, mut header, kind, first) = (Sum16BitWords::new(), None, &mut 0, &mut true);
    if version4 {
        let length = usize::from(frame[at] & 15) * 4;
        let mut bytes = frame[at..at + length].to_vec();
        bytes[10..12].fill(0);
        let right = Sum16BitWords::new().add_slice(&bytes).ones_complement().to_be();
        header = Some(Check { found: number(frame, at + 10), right, unless_zero: false });
        pseudo = pseudo.add_slice(&frame[at + 12..at + 20]);
        (*kind, *first) = (frame[at + 9], number(frame, at + 6) & 0x1fff == 0);
        at += length;
    } else {
        pseudo = pseudo.add_slice(&frame[at + 8..at + 40]);
        *kind = frame[at + 6];
        at += 40;
        while matches!(*kind, 0 | 43 | 44 | 60) {
            let size = if *kind == 44 { 8 } else { usize::from(frame[at + 1]) * 8 + 8 };
            *first &= *kind != 44 || number(frame, at + 2) >> 3 == 0;
            *kind = frame[at];
            at += size;
        }
    }
    let place = match *kind {
        1 | 58 => 2,
        6 => 16,
        17 => 6,
        _ => return (header, None),
    };
    if !*first || frame.len() < at + place + 2 {
        return (header, None);
    }
    let mut segment = [&frame[at..], rest].concat();
    let found = number(&segment, place);
    segment[place..place + 2].fill(0);
    let mut sum = if *kind == 1 { Sum16BitWords::new() } else { pseudo.add_2bytes([0, *kind]) };
    if *kind != 1 {
        sum = sum.add_4bytes((segment.len() as u32).to_be_bytes());
    }
    let mut right = sum.add_slice(&segment).ones_complement().to_be();
    if *kind == 17 && right == 0 {
        right = 0xffff;
    }
    (header, Some(Check { found, right, unless_zero: *kind == 17 }))
}

/// A packet with right checksums, wrong ones, or none where that may be.
fn case(random: &mut SuiteRandom) -> Case {
    let mut frame: Vec<u8> = (0..12).map(|_| random.number() as u8).collect();
    if random.one_in(4) {
        frame.extend([0x81, 0, 0, 9]);
    }
    let version4 = !random.one_in(3);
    let kind = *random.pick(if version4 { &[1, 6, 17, 47][..] } else { &[58, 6, 17, 59][..] });
    let byte = |random: &mut SuiteRandom| *random.pick(&[0, 1, 9, 0xff, random.clone().number() as u8]);
    let tags = frame.len();
    let payload: Vec<u8> = (0..random.below(40)).map(|_| byte(random)).collect();
    let mut segment: Vec<u8> = Vec::new();
    match kind {
        1 => segment.extend([
            *random.pick(&[0, 8, 3]),
            *random.pick(&[0, 1]),
            0,
            0,
            0,
            byte(random),
            byte(random),
            1,
        ]),
        58 => segment.extend([*random.pick(&[128, 129, 1]), 0, 0, 0, 0xff, byte(random), byte(random), 1]),
        6 => {
            let words = 5 + random.below(5);
            segment.extend((0..words * 4).map(|_| byte(random)));
            segment[12] = (words as u8) << 4;
        }
        17 => {
            segment.extend([byte(random), byte(random), 0, 53]);
            segment.extend((8 + payload.len() as u16).to_be_bytes());
            segment.extend([0, 0]);
        }
        _ => {}
    }
    let headers = segment.len();
    segment.extend(&payload);
    let cut = random.one_in(4).then(|| headers.div_ceil(8) * 8).filter(|cut| *cut < segment.len());
    let later = cut.is_some() && random.one_in(4);
    let mut rest = Vec::new();
    if version4 {
        let words = 5 + if random.one_in(2) { random.below(11) } else { 0 };
        frame.extend([8, 0, 0x40 | words as u8, byte(random)]);
        let total = words as usize * 4 + cut.unwrap_or(segment.len());
        frame.extend((total as u16).to_be_bytes());
        frame.extend([byte(random), byte(random), if cut.is_some() { 0x20 } else { 0 }, u8::from(later)]);
        frame.extend([byte(random), kind, 0, 0]);
        frame.extend((0..(words - 3) * 4).map(|_| byte(random)));
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, byte(random), byte(random), 0, 0]);
        let chain: Vec<u8> = (0..random.below(3)).map(|_| *random.pick(&[0, 43, 60])).collect();
        let mut kinds: Vec<u8> = chain;
        kinds.extend(cut.map(|_| 44));
        kinds.push(kind);
        frame.extend([kinds[0], byte(random)]);
        frame.extend((0..32).map(|_| byte(random)));
        for pair in kinds.windows(2) {
            if pair[0] == 44 {
                frame.extend([pair[1], 0, 0, if later { 8 } else { 1 }, 1, 2, 3, 4]);
                continue;
            }
            let size = random.below(3) as u8;
            frame.extend([pair[1], size]);
            frame.extend((0..usize::from(size) * 8 + 6).map(|_| byte(random)));
        }
    }
    let end = frame.len();
    frame.extend(&segment);
    if let Some(cut) = cut {
        rest = frame.split_off(end + cut);
    }
    // Checksums stand at zero so far; what was found to be right goes in.
    let (header, check) = checks(&frame, &rest);
    let wrong = |random: &mut SuiteRandom| if random.one_in(4) { random.number() as u16 } else { 0 };
    if let Some(check) = check {
        let place = match kind {
            1 | 58 => 2,
            6 => 16,
            _ => 6,
        };
        let none = kind == 17 && random.one_in(4);
        let value = if none { 0 } else { check.right ^ wrong(random) };
        frame[end + place..end + place + 2].copy_from_slice(&value.to_be_bytes());
    }
    if let Some(check) = header {
        let at = tags + 2;
        let value = check.right ^ wrong(random);
        frame[at + 10..at + 12].copy_from_slice(&value.to_be_bytes());
    }
    // What is cut off by the capture need not be known.
    if rest.is_empty() && random.one_in(20) {
        let keep = random.below(frame.len() as u64 - 14) as usize + 14;
        frame.truncate(keep.max(end));
    }
    Case { frame, port: random.between(1, PORTS.into()) as u16, rest }
}

fn compiled(text: &str, decode: Decode) -> Program {
    let compiled =
        compile("case.rav", text, &|_| None, &CompileOptions { decode, ..CompileOptions::default() });
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

/// Compares the checksums of a packet before and after.
fn compare(before: &Case, after: &[u8], name: &str) -> u32 {
    let mut changed = 0;
    let (old, new) = (checks(&before.frame, &before.rest), checks(after, &before.rest));
    for (old, new) in [(old.0, new.0), (old.1, new.1)] {
        let (Some(old), Some(new)) = (old, new) else {
            assert_eq!(old.is_some(), new.is_some());
            continue;
        };
        // A datagram without a checksum stays so, and a program may say that one has none.
        let made_none = name == "fields" && before.port == 5;
        if old.unless_zero && new.found == 0 && (old.found == 0 || made_none) {
            continue;
        }
        assert_eq!(old.error(), new.error(), "{name}: {old:?} {new:?}\n{:02x?}\n{after:02x?}", before);
        if old.error() == 0 && old.found == old.right {
            assert_eq!(new.found, new.right, "{name}: {:02x?}\n{after:02x?}", before);
        }
        changed += u32::from(old.found != new.found);
    }
    changed
}

#[test]
fn rewritten_packets_have_the_checksums_of_a_full_recomputation() {
    let count = 4000;
    let mut random = SuiteRandom::new(0x0c5);
    let cases: Vec<Case> = (0..count).map(|_| case(&mut random)).collect();
    let mut arrivals = Arrivals::default();
    for case in &cases {
        arrivals.push(&case.frame, case.frame.len() as u32, 1, case.port);
    }
    for (name, text) in [("addresses", ADDRESSES), ("fields", FIELDS), ("payload", PAYLOAD), ("sizes", SIZES)]
    {
        for decode in [Decode::Lazy, Decode::Full] {
            let program = compiled(text, decode);
            for back_end in BackendKind::ALL {
                let seen = see(&program, back_end, &arrivals, PORTS, 64).expect("it can be loaded");
                let mut changed = 0;
                for (case, (after, _)) in cases.iter().zip(&seen.bytes) {
                    changed += compare(case, after, name);
                }
                for (_, cause, bytes, ..) in &seen.sent {
                    changed += compare(&cases[*cause as usize], bytes, name);
                }
                assert!(changed > count / 3, "{name}: only {changed} checksums changed");
            }
        }
    }
}

/// Packets made from received ones.
const MADE: &str = "
    import std.net.{ethernet, vlan, ipv4, ipv6, udp, icmp, icmpv6, ipv6_extension}
    start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => network(eth.type) } }
    decoder tag(v: vlan) { goto network(v.type) }
    stage network(kind: u16) { match kind { 0x0800 => packet, 0x86dd => packet6, else => flood } }
    decoder packet(ip: ipv4) {
        set ip.ttl = ip.ttl -| 1
        emit ethernet / ipv4(src 192.0.2.1, dst ip.src, id ip.id) / icmp(type 11, code ip.ecn as u8) / zero[4] / from ip take 40 to 1
        emit ethernet / vlan / ipv4(src ip.dst, dst ip.src) / udp(src ip.id, dst 9) / \"odd\" / payload to 2
        emit ethernet / ipv6(src 2001:db8::7, dst ::) / ipv6_extension / udp(src ip.id) / \"x\" / payload take ip.ttl as u32 to 3
        emit ethernet / ipv4(check 7, src ip.src) / udp(check 0) / packet to 4
        flood
    }
    decoder packet6(ip6: ipv6) {
        emit ethernet / ipv6(src 2001:db8::1, dst ip6.src) / icmpv6(type 3) / zero[4] / from ip6 take 1232 to 1
        emit ethernet / ipv6(src ip6.src, dst ip6.dst, flow ip6.flow) / icmpv6(type ip6.class, code 1) / \"constant\" to 5
        flood
    }";

#[test]
fn made_packets_have_right_lengths_and_checksums() {
    let mut random = SuiteRandom::new(77);
    let cases: Vec<Case> = (0..1500).map(|_| case(&mut random)).collect();
    let mut arrivals = Arrivals::default();
    // Of every other packet three bytes were not captured.
    let lost = |index: usize| index % 2 * 3;
    for (index, case) in cases.iter().enumerate() {
        arrivals.push(&case.frame, (case.frame.len() + lost(index)) as u32, 1, case.port);
    }
    let program = compiled(MADE, Decode::Lazy);
    for back_end in BackendKind::ALL {
        let seen = see(&program, back_end, &arrivals, PORTS, 64).expect("it can be loaded");
        let (mut kinds, mut unseen) = ([0; 6], 0);
        for (port, cause, bytes, wire, ..) in &seen.sent {
            let (port, received) = (usize::from(*port), &seen.bytes[*cause as usize].0);
            kinds[port] += 1;
            let at = if number(bytes, 12) == 0x8100 { 18 } else { 14 };
            let version4 = bytes[at] >> 4 == 4;
            let said = if version4 { number(bytes, at + 2) } else { number(bytes, at + 4) + 40 };
            assert_eq!(usize::from(said), *wire as usize - at, "the length on the wire: {bytes:02x?}");
            let start = if number(received, 12) == 0x8100 { 18 } else { 14 };
            let (header, tail) = match (port, version4) {
                (1, true) => (at + 28, &received[start..received.len().min(start + 40)]),
                (1, false) => (at + 48, &received[start..]),
                (2, _) => (at + 31, &received[start + usize::from(received[start] & 15) * 4..]),
                (3, _) => {
                    let payload = &received[start + usize::from(received[start] & 15) * 4..];
                    (at + 57, &payload[..payload.len().min(received[start + 8].into())])
                }
                (4, _) => (at + 28, &received[..]),
                _ => (at + 52, &[][..]),
            };
            assert_eq!(&bytes[header..], tail, "{bytes:02x?}");
            let whole = tail.len() == received.len() || matches!(port, 2) || port == 1 && !version4;
            if whole {
                assert_eq!(
                    *wire as usize,
                    bytes.len() + lost(*cause as usize),
                    "what was not captured is still on the wire"
                );
            }
            let (ip, transport) = checks(bytes, &[]);
            let transport = transport.expect("there is one");
            if port == 4 {
                assert_eq!((ip.map(|ip| ip.found), transport.found), (Some(7), 0));
                continue;
            }
            assert!(ip.is_none_or(|ip| ip.found == ip.right), "{ip:?} {bytes:02x?}");
            if transport.unless_zero && bytes.len() < *wire as usize {
                assert_eq!(transport.found, 0, "no checksum over what nobody saw: {bytes:02x?}");
                unseen += 1;
            } else {
                assert_eq!(transport.found, transport.right, "{bytes:02x?}");
            }
        }
        assert!(unseen > 100, "{unseen}");
        assert!(kinds[1..].iter().all(|&kind| kind > 100), "{kinds:?}");
    }
}
