//! Random programs that change real packets, judged by a twin that sums whole packets: what came in right
//! leaves right.
//!
//! The programs know Ethernet, tags, IP, tunnels and transport headers, and write, push, pop, encapsulate,
//! decapsulate, fragment, copy and emit. Those that the compiler refuses because a length or checksum could
//! not be kept right are counted; all others are run.

use crate::agree::{AgreeTally, Disagreement, compile_as};
use crate::packet_generator::Arrivals;
use crate::random::SuiteRandom;
use crate::whole_sums::{SMALL, WHOLE, fill_in, judge};
use engine::PacketBench;
use exec::BackendKind;
use lang::diagnostic::Severity;
use lang::pipeline::Decode;

/// Packets a program.
const PACKETS: usize = 60;
/// Codes of what could not be kept right.
const NOT_KEPT: [&str; 3] = ["E0317", "E0319", "E0436"];

/// What the search did.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Programs that were run.
    pub programs: u64,
    /// Programs that were refused because something could not be kept right.
    pub refused: u64,
    /// Packets that left.
    pub packets: u64,
    /// Checksums and lengths that were looked at in them.
    pub checks: u64,
    /// Packets that left with another size than they came in with.
    pub resized: u64,
}

/// A program of edits.
struct Writer {
    random: SuiteRandom,
    /// No packet is tagged, so that IP always stands behind Ethernet.
    untagged: bool,
    /// The only version of IP, if there is one.
    version: Option<u8>,
    /// Extension headers go in, or else out: one that goes out is the one that IPv6 announces.
    extends: bool,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut random = SuiteRandom::new(seed ^ 0x6564_6974);
    let (untagged, version) = (random.one_in(2), *random.pick(&[None, Some(4), Some(6)]));
    let extends = random.one_in(2);
    Writer { random, untagged, version, extends }.program()
}

impl Writer {
    fn program(&mut self) -> String {
        let goes4 = if self.version == Some(6) { "" } else { "0x0800 => packet, " };
        let goes6 = if self.version == Some(4) { "" } else { "0x86dd => packet6, " };
        let network = format!("{goes4}{goes6}{SMALL} => small, {WHOLE} => whole, else => finish");
        let tagged = if self.untagged { "" } else { "0x8100 => tag, " };
        let mut text = String::from(
            "import std.net.{ethernet, vlan, ipv4, ipv6, ipv6_extension, tcp, udp, icmp, icmp_echo, icmpv6, gre, vxlan}\n\
             layout small_header { d: u16  c: inet16 over header }\n\
             layout whole_header { d: u16  c: inet16 over (header + payload) }\n",
        );
        let mut decoder = |head: &str, edits: String, tail: String| {
            text.push_str(&format!("{head} {{\n{edits}    {tail}\n}}\n"));
        };
        let mut first = self.edits(&["eth"], 1);
        let of_tag = if self.untagged { String::new() } else { self.edits(&["eth", "v"], 1) };
        // A tag that was pushed first would stand between Ethernet and the tag that goes: the type of what
        // follows, which the program then writes into Ethernet, would belong into the pushed one.
        if of_tag.contains("pop v") && first.contains("push vlan") {
            first.clear();
        }
        decoder(
            "start decoder frame(eth: ethernet)",
            "    let kind = eth.type\n".to_string() + &first,
            format!("match kind {{ {tagged}{network} }}"),
        );
        if !self.untagged {
            decoder(
                "decoder tag(v: vlan)",
                "    let kind = v.type\n".to_string() + &of_tag,
                format!("match kind {{ {network} }}"),
            );
        }
        let edits = self.edits(&["d"], 2);
        decoder("decoder small(d: small_header)", edits, "goto finish".to_string());
        let edits = self.edits(&["w"], 2);
        decoder("decoder whole(w: whole_header)", edits, "goto finish".to_string());
        let over = "6 => segment, 17 => datagram";
        if self.version != Some(6) {
            let edits = self.edits(&["eth", "ip"], 2);
            let goes = format!(
                "if ip.frag != 0 || ip.flags.mf {{ goto finish }}\n    match kind {{ 1 => control, 4 => inside, {over}, else => finish }}"
            );
            decoder("decoder packet(ip: ipv4)", "    let kind = ip.proto\n".to_string() + &edits, goes);
            let edits = self.edits(&["eth", "ip", "inner"], 2);
            decoder("decoder inside(inner: ipv4)", edits, "goto finish".to_string());
            let edits = self.edits(&["eth", "ip", "i"], 2);
            let goes = "if code == 0 { goto echo }\n    goto finish".to_string();
            decoder("decoder control(i: icmp)", "    let code = i.code\n".to_string() + &edits, goes);
            let edits = self.edits(&["i", "e"], 2);
            decoder("decoder echo(e: icmp_echo)", edits, "goto finish".to_string());
        }
        if self.version != Some(4) {
            let edits = self.edits(&["eth", "ip6"], 2);
            decoder(
                "decoder packet6(ip6: ipv6)",
                "    let kind = ip6.next\n".to_string() + &edits,
                format!("match kind {{ 0 | 60 => extension, 58 => control6, {over}, else => finish }}"),
            );
            let edits = self.edits(&["eth", "ip6", "x"], 2);
            decoder(
                "decoder extension(x: ipv6_extension)",
                "    let kind = x.next\n".to_string() + &edits,
                format!("match kind {{ {over}, else => finish }}"),
            );
            let edits = self.edits(&["ip6", "j"], 2);
            decoder("decoder control6(j: icmpv6)", edits, "goto finish".to_string());
        }
        let ip: &[&str] = match self.version {
            Some(4) => &["eth", "ip"],
            Some(_) => &["eth", "ip6"],
            None => &["eth"],
        };
        let edits = self.edits(&[ip, &["t"]].concat(), 2);
        decoder("decoder segment(t: tcp)", edits, "goto finish".to_string());
        let edits = self.edits(&[ip, &["u"]].concat(), 1);
        let goes = "if port == 4789 { goto tunnel }\n    goto finish".to_string();
        decoder("decoder datagram(u: udp)", "    let port = u.dst\n".to_string() + &edits, goes);
        decoder("decoder tunnel(vx: vxlan)", String::new(), "goto carried".to_string());
        let edits = self.edits(&["carried"], 2);
        let whole = if self.random.one_in(2) { "    decapsulate to carried\n" } else { "" };
        decoder("decoder carried(carried: ethernet)", whole.to_string() + &edits, "goto finish".to_string());
        let edits = self.edits(&["eth"], 1);
        decoder("stage finish()", edits, "send 2".to_string());
        text
    }

    /// Up to so many statements with these headers.
    fn edits(&mut self, headers: &[&str], most: u64) -> String {
        let mut text = String::new();
        for _ in 0..self.random.below(most + 1) {
            let header = *self.random.pick(headers);
            let edit = match self.random.below(5) {
                0 | 1 => self.set(header),
                2 | 3 => self.resize(header),
                _ => self.other(header),
            };
            let guard = self.random.one_in(3);
            text.push_str(&if guard {
                format!("    if in_port > 1 {{ {edit} }}\n")
            } else {
                format!("    {edit}\n")
            });
        }
        text
    }

    fn set(&mut self, header: &str) -> String {
        let fields: &[(&str, u8)] = match header {
            "eth" | "carried" => &[("dst", 48)],
            "v" => &[("id", 12)],
            "ip" | "inner" => &[("src", 132), ("dst", 132), ("ttl", 8), ("id", 16), ("dscp", 6)],
            "ip6" => &[("src", 128), ("dst", 128), ("hop_limit", 8), ("flow", 20)],
            "t" => &[("src", 16), ("dst", 16), ("seq", 32), ("ack", 32), ("window", 16), ("urgent", 16)],
            "u" => &[("src", 16)],
            "i" => &[("type", 8), ("code", 8)],
            "j" => &[("code", 8)],
            "e" => &[("id", 16), ("sequence", 16)],
            "d" | "w" => &[("d", 16)],
            _ => &[("size", 0)],
        };
        let (field, width) = *self.random.pick(fields);
        let value = match width {
            0 => return String::new(),
            132 => self.random.pick(&["0.0.0.0", "255.255.255.255", "10.0.0.9"]).to_string(),
            128 => self
                .random
                .pick(&["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::9"])
                .to_string(),
            48 => "02:00:00:00:00:09".to_string(),
            _ => match self.random.below(4) {
                0 => "0".to_string(),
                1 => ((1_u64 << width) - 1).to_string(),
                2 => format!("{header}.{field} -% 1"),
                _ => format!("{header}.{field} +% 1"),
            },
        };
        format!("set {header}.{field} = {value}")
    }

    fn resize(&mut self, header: &str) -> String {
        let four = "ipv4(ttl 9, src 10.9.0.1, dst 10.9.0.2)";
        let six = "ipv6(hop_limit 9, src 2001:db8::5, dst 2001:db8::6)";
        let flat = |with: &str, from: &str, kind: &str| {
            format!(
                "if {from} == 6 || {from} == 17 {{ let over = {from}  pop {header}  push {} after eth }}",
                with.replace('(', &format!("({kind} over, "))
            )
        };
        let (first, second) = (self.random.one_in(2), self.random.one_in(3));
        match header {
            "v" => match self.random.below(3) {
                0 => "push vlan(id 5) after v".to_string(),
                1 => "set eth.type = kind  pop v".to_string(),
                _ => "pop v  set eth.type = kind".to_string(),
            },
            "ip" if first && self.untagged => {
                format!("if ip.frag == 0 && !ip.flags.mf {{ {} }}", flat(six, "ip.proto", "next"))
            }
            "ip" if second => format!("push {four} after ip"),
            "ip" => format!("push {four} before ip"),
            "ip6" if first && self.untagged => flat(four, "ip6.next", "proto"),
            "ip6" if second && self.untagged => {
                format!("push {four} before ip6  pop ip6  set eth.type = 0x0800")
            }
            "ip6" if self.extends => "push ipv6_extension after ip6".to_string(),
            "inner" if first => "pop ip".to_string(),
            "inner" if second => "let under = inner.proto  pop inner  set ip.proto = under".to_string(),
            "inner" if self.untagged => {
                "decapsulate to inner  encapsulate { ethernet(type 0x0800) }".to_string()
            }
            "x" if self.extends => "push ipv6_extension after x".to_string(),
            "x" => "set ip6.next = kind  pop x".to_string(),
            "t" if first && self.untagged => {
                let (with, of) = if self.version == Some(6) { (four, "proto") } else { (six, "next") };
                let kind = if self.version == Some(6) { "0x0800" } else { "0x86dd" };
                format!(
                    "decapsulate to t  encapsulate {{ ethernet(type {kind}) / {} }}",
                    with.replace('(', &format!("({of} 6, "))
                )
            }
            "t" => format!("push {} before t", four.replace('(', "(proto 6, ")),
            "u" => "push gre(type 0x6558) after u".to_string(),
            _ => self.outside(),
        }
    }

    fn outside(&mut self) -> String {
        let ip = *self
            .random
            .pick(&["ipv4(src 192.0.2.1, dst 192.0.2.2)", "ipv6(src 2001:db8::1, dst 2001:db8::2)"]);
        // A tag that was pushed would stand between Ethernet and the IP header that another edit exchanges.
        match self.random.between(u64::from(self.untagged), 3) {
            0 => "push vlan(id 7) after eth".to_string(),
            1 => format!("encapsulate {{ ethernet / {ip} / udp(dst 4789, check 0) / vxlan }}"),
            2 => format!("encapsulate {{ ethernet / {ip} / udp(src 7, dst 4789) / vxlan }}"),
            _ => "encapsulate { ethernet / ipv4(src 192.0.2.1) / gre(type 0x6558) }".to_string(),
        }
    }

    fn other(&mut self, header: &str) -> String {
        let size = *self.random.pick(&[68, 90, 300]);
        match (self.random.below(4), header) {
            (0, _) => "copy to 3".to_string(),
            (1, "ip" | "inner") => format!("if !{header}.flags.df {{ fragment {header} to {size}  send 2 }}"),
            (2, "ip") => "emit ethernet / ipv4(src ip.dst, dst ip.src) / icmp(type 11) / zero[4] / from ip take 28 to 4".to_string(),
            (2, "ip6") => "emit ethernet / ipv6(src ip6.dst, dst ip6.src) / icmpv6(type 3) / zero[4] / from ip6 take 60 to 4".to_string(),
            (2, _) => "emit ethernet / ipv4(dst 10.1.1.1) / udp(src 9, dst 9) / packet to 4".to_string(),
            _ => self.set(header),
        }
    }
}

/// A packet with right checksums and lengths; whether it ends where its headers say.
fn packet(random: &mut SuiteRandom) -> (Vec<u8>, bool) {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if random.one_in(3) {
        frame.extend([0x81, 0, 0, 7]);
    }
    let depth = random.below(3);
    link(random, &mut frame, depth);
    let padded = random.one_in(6);
    if padded {
        let byte = if random.one_in(2) { 0 } else { 0xff };
        frame.extend(std::iter::repeat_n(byte, random.between(1, 9) as usize));
    }
    fill_in(&mut frame);
    (frame, !padded)
}

fn byte(random: &mut SuiteRandom) -> u8 {
    *random.pick(&[0, 0, 0, 1, 0xff, 0xfe])
}

fn data(random: &mut SuiteRandom) -> Vec<u8> {
    let zeros = random.one_in(3);
    let length = if random.one_in(8) { 400 } else { random.below(12) };
    (0..length).map(|_| if zeros { 0 } else { byte(random) }).collect()
}

/// An ethertype, and what follows it.
fn link(random: &mut SuiteRandom, frame: &mut Vec<u8>, depth: u64) {
    let kind = *random.pick(&[0x0800, 0x0800, 0x86dd, SMALL, WHOLE]);
    frame.extend(kind.to_be_bytes());
    match kind {
        0x0800 => ipv4(random, frame, depth),
        0x86dd => ipv6(random, frame, depth),
        SMALL => frame.extend([byte(random), byte(random), 0, 0]),
        _ => {
            frame.extend([byte(random), byte(random), 0, 0]);
            frame.extend(data(random));
        }
    }
}

fn ipv4(random: &mut SuiteRandom, frame: &mut Vec<u8>, depth: u64) {
    let at = frame.len();
    let options = if random.one_in(4) { 4 } else { 0 };
    frame.extend([0x45 + options / 4, 0, 0, 0, byte(random), byte(random), 0, 0, byte(random), 0, 0, 0]);
    frame.extend((0..8 + options).map(|_| byte(random)));
    let kind = *random.pick(&[1, 1, 6, 17, 17, if depth > 0 { 4 } else { 253 }, 47]);
    frame[at + 9] = kind;
    transport(random, frame, kind, depth);
    let total = (frame.len() - at) as u16;
    frame[at + 2..at + 4].copy_from_slice(&total.to_be_bytes());
}

fn ipv6(random: &mut SuiteRandom, frame: &mut Vec<u8>, depth: u64) {
    let at = frame.len();
    frame.extend([0x60, 0, 0, byte(random), 0, 0, 0, byte(random)]);
    frame.extend((0..32).map(|_| byte(random)));
    let kind = *random.pick(&[58, 6, 17, 17]);
    let extension = random.one_in(3);
    frame[at + 6] = if extension { *random.pick(&[0, 60]) } else { kind };
    if extension {
        frame.extend([kind, 0, 1, 4, 0, 0, 0, 0]);
    }
    transport(random, frame, kind, depth);
    let length = (frame.len() - at - 40) as u16;
    frame[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
}

fn transport(random: &mut SuiteRandom, frame: &mut Vec<u8>, kind: u8, depth: u64) {
    let at = frame.len();
    match kind {
        1 => frame.extend([*random.pick(&[0, 8, 8, 3]), *random.pick(&[0, 0, 1]), 0, 0]),
        58 => frame.extend([*random.pick(&[128, 129, 1]), 0, 0, 0]),
        6 => {
            frame.extend((0..20).map(|_| byte(random)));
            frame[at + 12] = 0x50;
            frame[at + 16..at + 18].fill(0);
        }
        17 => {
            let tunnel = depth > 0 && random.one_in(2);
            frame.extend([byte(random), byte(random)]);
            frame.extend(if tunnel { 4789_u16 } else { 53 }.to_be_bytes());
            // Any number but 0 is filled in.
            let check = if random.one_in(4) { 0 } else { 1 };
            frame.extend([0, 0, 0, check]);
            if tunnel {
                frame.extend([8, 0, 0, 0, 0, 0, 7, 0]);
                frame.extend([2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3]);
                link(random, frame, depth - 1);
            } else {
                frame.extend(data(random));
            }
            let length = (frame.len() - at) as u16;
            frame[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
        }
        4 => ipv4(random, frame, depth.saturating_sub(1)),
        47 => {
            frame.extend([0, 0, 0x65, 0x58]);
            frame.extend([2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3]);
            link(random, frame, 0);
        }
        _ => {}
    }
    if matches!(kind, 1 | 58 | 6 | 253) {
        if matches!(kind, 1 | 58) {
            frame.extend([byte(random), byte(random), byte(random), byte(random)]);
        }
        frame.extend(data(random));
    }
}

/// The program of one seed over its packets.
///
/// # Errors
/// If a packet that came in right leaves wrong, or a program is refused for another reason than what cannot
/// be kept right.
pub fn one(seed: u64, tally: &mut AgreeTally) -> Result<(), Box<Disagreement>> {
    let text = program(seed);
    let compiled = compile_as(&text, Decode::Lazy);
    let wrong = |what: String, frame: Option<&[u8]>| {
        let mut arrivals = Arrivals::default();
        if let Some(frame) = frame {
            arrivals.push(frame, frame.len() as u32, 1, 1);
        }
        Err(Box::new(Disagreement { seed, text: text.clone(), arrivals, what }))
    };
    let Some(program) = compiled.program else {
        tally.judged.refused += 1;
        let errors = compiled.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let strange: Vec<&str> =
            errors.map(|error| error.code).filter(|code| !NOT_KEPT.contains(code)).collect();
        // Reads of what went out, and edits behind a fragmentation, are the writer's own mistakes.
        return match strange.iter().find(|code| !["E0431", "E0433", "E0412", "E0404"].contains(code)) {
            Some(code) => wrong(format!("edits: refused with {code}"), None),
            None => Ok(()),
        };
    };
    tally.judged.programs += 1;
    let mut random = SuiteRandom::new(seed ^ 0x7375_6d73);
    let packets: Vec<(Vec<u8>, bool)> = (0..PACKETS).map(|_| packet(&mut random)).collect();
    for back_end in BackendKind::ALL {
        let Ok(mut bench) = PacketBench::new(&program, back_end, 4, 0) else {
            return wrong(format!("edits: it cannot be loaded for {back_end:?}"), None);
        };
        for (index, (frame, exact)) in packets.iter().enumerate() {
            let (_, faults) = judge(frame, *exact);
            if !faults.is_empty() {
                return wrong(format!("edits: the packet that is made is wrong: {faults:?}"), Some(frame));
            }
            for (port, left) in bench.packet(1 + (index % 2) as u16, frame, 1).left {
                let (checks, faults) = judge(&left, *exact);
                tally.judged.packets += 1;
                tally.judged.checks += u64::from(checks);
                tally.judged.resized += u64::from(left.len() != frame.len());
                if let Some(fault) = faults.first() {
                    let what = format!(
                        "edits: {back_end:?}, out of port {port} came in right and leaves wrong: {fault}; {left:02x?}"
                    );
                    return wrong(what, Some(frame));
                }
            }
        }
    }
    Ok(())
}
