//! `router` held against a second router: headers read by another library, tables searched entry by entry,
//! over made and, where `RAVELIN_DATA` names a folder, real traffic. Every verdict, every byte that left,
//! every error and its checksums.

use captures::Capture;
use captures::generate::{Generator, Profile};
use etherparse::checksum::Sum16BitWords;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice};
use exec::BackendKind;
use ir::{ColumnKind, Entry, Match, Program};
use lang::pipeline::Decode;
use packet::VerdictKind;
use packet::fragment::{Fragmenting, Pieces};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use suite::corpus::{compile_file, files, root};
use suite::outcome::{SeenPacket, see};
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

const PORTS: u16 = 4;

/// The smallest MTU of each family (RFC 791; RFC 8200, 5).
const SMALLEST: [u128; 2] = [68, 1280];

/// What the second router does with a packet.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Punt(&'static str),
    Drop(&'static str),
    /// A header that is cut short or cannot be.
    Malformed,
    /// Dropped for this reason; the sender may be told by this type, code and MTU.
    Answer(&'static str, u8, u8, u16),
    /// Sent by this port with these addresses; cut if it is longer than the MTU.
    Send {
        port: u16,
        neighbour: u64,
        own: u64,
        mtu: u32,
    },
}

struct Second<'p> {
    program: &'p Program,
}

/// What is known of a packet when tables are asked.
struct Question {
    src: u128,
    dst: u128,
    ports: (u16, u16),
    proto: u8,
    answered: bool,
    /// The payload to be inspected: from, and bytes.
    payload: (usize, usize),
    /// A message of neighbour discovery that came over no other link.
    discovery: bool,
}

/// The ports of a server of DHCP and of who asks it (RFC 2131, 4.1).
const LEASE: (u16, u16) = (67, 68);

impl Question {
    /// What the header of IPv4 says; ports and payload stand behind it.
    fn of_four(ip: &Ipv4HeaderSlice<'_>) -> Question {
        Question {
            src: u32::from(ip.source_addr()).into(),
            dst: u32::from(ip.destination_addr()).into(),
            ports: (0, 0),
            proto: ip.protocol().0,
            answered: ip.fragments_offset().value() == 0,
            payload: (0, 0),
            discovery: false,
        }
    }
}

/// A fate, and where the packet ends, if it got as far as being cut there.
type Fated = (Fate, Option<usize>);

impl Second<'_> {
    fn entries(&self, table: &str) -> &[Entry] {
        &self.program.tables.iter().find(|known| known.name == table).expect("the table is there").entries
    }

    fn row(&self, table: &str, key: u128) -> Option<&[u128]> {
        let found = self.entries(table).iter().find(|entry| entry.key == [Match::Exact(key)]);
        found.map(|entry| entry.value.as_slice())
    }

    /// The value of the longest prefix that holds an address.
    fn route(&self, table: &str, address: u128) -> Option<u128> {
        let width = if table == "routes" { 32 } else { 128 };
        let length = |entry: &&Entry| match entry.key[0] {
            Match::Exact(_) => width,
            Match::Prefix { length, .. } => length,
            _ => 0,
        };
        let found = self.entries(table).iter().filter(|entry| fits(&entry.key[0], address, width));
        found.max_by_key(length).map(|route| route.value[0])
    }

    /// The port that leads back to a source.
    fn behind(&self, routes: &str, src: u128) -> Option<u128> {
        self.row("behind", self.route(routes, src)?).map(|row| row[0])
    }

    /// What is asked of sources at a port.
    fn asked(&self, port: u16) -> &str {
        let sources = self.program.tables.iter().find(|known| known.name == "sources").expect("it is there");
        let ColumnKind::Names(names) = &sources.values[0].kind else { panic!("variants have names") };
        let asked = self.row("sources", port.into()).map(|row| row[0]);
        let name = |asked| names.iter().find(|(number, _)| *number == asked).map(|(_, name)| name.as_str());
        asked.map_or("strict", |asked| name(asked).expect("one of them"))
    }

    /// Why a source is refused.
    fn refused(&self, routes: &str, src: u128, port: u16) -> Option<&'static str> {
        let asked = self.asked(port);
        let route = self.route(routes, src);
        match route {
            Some(65533) if routes == "routes" => return Some("martian"),
            Some(65535) => return (asked != "any").then_some("own_source"),
            _ => {}
        }
        let behind = self.behind(routes, src);
        let group = route.filter(|hop| behind.is_none() && (65_100..65_532).contains(hop));
        let leads_by_group = group.is_some_and(|group| {
            let key = [Match::Exact(group), Match::Exact(port.into())];
            asked == "loose" || self.entries("group_ports").iter().any(|entry| entry.key == key)
        });
        let good = behind == Some(port.into())
            || leads_by_group
            || matches!((asked, behind), ("any" | "not_own", _) | ("loose", Some(_)));
        (!good).then_some("reverse_path")
    }

    fn fate(&self, frame: &[u8], wire: u32, port: u16) -> Fated {
        if frame.len() < 14 {
            return (Fate::Malformed, None);
        }
        match (frame[12], frame[13]) {
            (8, 0) => match self.four_before(frame, wire, port) {
                Err(fate) => (fate, None),
                Ok(end) => (self.four(&frame[..end.min(frame.len())], port), Some(end)),
            },
            (0x86, 0xdd) => match self.six_before(frame, wire, port) {
                Err(fate) => (fate, None),
                Ok(end) => (self.six(&frame[..end.min(frame.len())]), Some(end)),
            },
            (8, 6) => (Fate::Punt("neighbours"), None),
            _ => (Fate::Drop("not_ip"), None),
        }
    }

    /// Up to the check of the source: where the packet ends, or what becomes of it.
    fn four_before(&self, frame: &[u8], wire: u32, port: u16) -> Result<usize, Fate> {
        let Ok(ip) = Ipv4HeaderSlice::from_slice(&frame[14..]) else { return Err(Fate::Malformed) };
        let header = usize::from(ip.ihl()) * 4;
        let total = usize::from(ip.total_len());
        if total < header || (wire as usize) < 14 + total {
            return Err(Fate::Drop("bad_length"));
        }
        if sum(ip.slice()) != 0 {
            return Err(Fate::Drop("bad_checksum"));
        }
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        if dst.is_multicast() {
            let local = dst.octets()[..3] == [224, 0, 0];
            let proto = ip.protocol().0;
            return Err(if local { punted("link_only", proto, (0, 0)) } else { Fate::Drop("to_group") });
        }
        let martian = |address: Ipv4Addr| {
            let first = address.octets()[0];
            first == 0 || first >= 240 || address.is_loopback() || address.is_link_local()
        };
        if frame[0] & 1 == 1 {
            let is_broadcast =
                dst.is_broadcast() || self.route("routes", u32::from(dst).into()) == Some(65533);
            let is_source =
                frame[6] & 1 == 0 && !src.is_multicast() && (src.is_unspecified() || !martian(src));
            return Err(match (is_broadcast, is_source) {
                (false, _) => Fate::Drop("to_group"),
                (true, false) => Fate::Drop("martian"),
                (true, true) => Fate::Punt("link_only"),
            });
        }
        if frame[6] & 1 == 1 || martian(src) || src.is_multicast() || martian(dst) {
            return Err(Fate::Drop("martian"));
        }
        match options(ip.options()) {
            None => return Err(Fate::Malformed),
            Some(true) => return Err(Fate::Drop("source_routed")),
            Some(false) => {}
        }
        let Some(reason) = self.refused("routes", u32::from(src).into(), port) else { return Ok(14 + total) };
        let is_datagram = ip.protocol().0 == 17 && ip.fragments_offset().value() == 0 && total >= header + 8;
        if reason != "reverse_path" || !is_datagram {
            return Err(Fate::Drop(reason));
        }
        // Who has no address yet has no route to the server that leases one (RFC 2131, 4.1).
        let mut question = Question::of_four(&ip);
        if !transport(frame, 14 + header, 14 + total, 17, &mut question) {
            return Err(Fate::Malformed);
        }
        let is_lease = question.ports == LEASE;
        Err(if is_lease { self.lease(frame, question) } else { Fate::Drop(reason) })
    }

    /// A packet from a server of DHCP to who has no address yet.
    fn lease(&self, frame: &[u8], question: Question) -> Fate {
        let question = Question { answered: false, payload: (0, 0), ..question };
        self.decide(frame, &question, "acl", "routes", |_| unreachable!("it goes to the host"))
    }

    fn four(&self, frame: &[u8], port: u16) -> Fate {
        let ip = Ipv4HeaderSlice::from_slice(&frame[14..]).expect("it was read before");
        let header = usize::from(ip.ihl()) * 4;
        let total = usize::from(ip.total_len());
        let first = ip.fragments_offset().value() == 0;
        let proto = ip.protocol().0;
        let end = 14 + total;
        let mut question = Question::of_four(&ip);
        if first && matches!(proto, 1 | 6 | 17) && !transport(frame, 14 + header, end, proto, &mut question) {
            return Fate::Malformed;
        }
        if proto == 17 && question.ports == LEASE {
            // Not for a host elsewhere.
            let leads = self.route("routes", question.dst).map(|hop| self.row("behind", hop));
            if leads.is_none_or(|behind| behind.is_some_and(|row| row[0] == port.into())) {
                return self.lease(frame, question);
            }
        }
        self.decide(frame, &question, "acl", "routes", |hop| {
            if ip.ttl() <= 1 {
                return Err((Fate::Drop("expired"), Fate::Answer("expired", 11, 0, 0)));
            }
            if total as u128 > hop && ip.dont_fragment() {
                return Err((Fate::Drop("too_big"), Fate::Answer("too_big", 3, 4, hop as u16)));
            }
            Ok(())
        })
    }

    fn six_before(&self, frame: &[u8], wire: u32, port: u16) -> Result<usize, Fate> {
        let Ok(ip) = Ipv6HeaderSlice::from_slice(&frame[14..]) else { return Err(Fate::Malformed) };
        let length = usize::from(ip.payload_length());
        if (wire as usize) < 54 + length {
            return Err(Fate::Drop("bad_length"));
        }
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        let nobody = |address: Ipv6Addr| address.is_unspecified() || address.is_loopback();
        if dst.is_multicast() {
            let local = dst.segments()[0] == 0xff02;
            let next = ip.next_header().0;
            return Err(if local { punted("link_only", next, (0, 0)) } else { Fate::Drop("to_group") });
        }
        if frame[0] & 1 == 1 {
            return Err(Fate::Drop("to_group"));
        }
        if frame[6] & 1 == 1 || src.is_multicast() || nobody(src) || nobody(dst) {
            return Err(Fate::Drop("martian"));
        }
        let refused = if src.is_unicast_link_local() {
            let near = dst.is_unicast_link_local() || self.route("routes6", dst.into()) == Some(65535);
            (!near).then_some("martian")
        } else {
            self.refused("routes6", src.into(), port)
        };
        refused.map_or(Ok(54 + length), |reason| Err(Fate::Drop(reason)))
    }

    fn six(&self, frame: &[u8]) -> Fate {
        let ip = Ipv6HeaderSlice::from_slice(&frame[14..]).expect("it was read before");
        let length = usize::from(ip.payload_length());
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        if dst.is_unicast_link_local() {
            return punted("link_only", ip.next_header().0, (0, 0));
        }
        let end = 54 + length;
        let mut question = Question {
            src: src.into(),
            dst: dst.into(),
            ports: (0, 0),
            proto: ip.next_header().0,
            answered: true,
            payload: (0, 0),
            discovery: ip.hop_limit() == 255,
        };
        if !chain(frame, end, &mut question) {
            return Fate::Malformed;
        }
        if question.discovery && self.route("routes6", question.dst) == Some(65535) {
            return Fate::Punt("ours");
        }
        self.decide(frame, &question, "acl6", "routes6", |hop| {
            if ip.hop_limit() <= 1 {
                return Err((Fate::Drop("expired"), Fate::Answer("expired", 3, 0, 0)));
            }
            if (length + 40) as u128 > hop {
                return Err((Fate::Drop("too_big"), Fate::Answer("too_big", 2, 0, hop as u16)));
            }
            Ok(())
        })
    }

    fn decide(
        &self,
        frame: &[u8],
        question: &Question,
        acl: &str,
        routes: &str,
        leaves: impl Fn(u128) -> Result<(), (Fate, Fate)>,
    ) -> Fate {
        let four = acl == "acl";
        let width = if four { 32 } else { 128 };
        let pick = |silent: Fate, told: Fate| if question.answered { told } else { silent };
        let (sport, dport) = question.ports;
        let key = [question.src, question.dst, sport.into(), dport.into(), question.proto.into()];
        let widths = [width, width, 16, 16, 8];
        let fits_rule = |entry: &&Entry| (0..5).all(|i| fits(&entry.key[i], key[i], widths[i]));
        // The program's first entry of each table denies.
        let denies = &self.entries(acl)[0].value;
        if self.entries(acl).iter().find(fits_rule).is_some_and(|entry| entry.value == *denies) {
            let (kind, code) = if four { (3, 13) } else { (1, 1) };
            return pick(Fate::Drop("prohibited"), Fate::Answer("prohibited", kind, code, 0));
        }
        if !question.answered && question.ports == LEASE {
            return Fate::Punt("link_only");
        }
        let (from, bytes) = question.payload;
        let payload = frame.get(from..).unwrap_or_default();
        if suspicious(&payload[..bytes.min(payload.len())]) {
            return Fate::Drop("suspicious");
        }
        let Some(route) = self.route(routes, question.dst) else {
            let kind = if four { 3 } else { 1 };
            return pick(Fate::Drop("no_route"), Fate::Answer("no_route", kind, 0, 0));
        };
        match route {
            65535 => return punted("ours", question.proto, question.ports),
            65533 if four => return Fate::Drop("directed_broadcast"),
            _ => {}
        }
        let hop = self.row("next_hops", route);
        let mtu = hop.map_or(u128::MAX, |hop| hop[3].max(SMALLEST[usize::from(!four)]));
        match (leaves(mtu), hop) {
            (Err((silent, told)), _) => pick(silent, told),
            (Ok(()), None) => Fate::Punt("unresolved"),
            (Ok(()), Some(hop)) => Fate::Send {
                port: hop[0] as u16,
                neighbour: hop[1] as u64,
                own: hop[2] as u64,
                mtu: mtu as u32,
            },
        }
    }
}

/// Whether a match of a width fits a number.
fn fits(part: &Match, number: u128, width: u8) -> bool {
    match part {
        Match::Any => true,
        Match::Exact(value) => number == *value,
        Match::Prefix { length: 0, .. } => true,
        Match::Prefix { value, length } => (number ^ value) >> (width - length) == 0,
        Match::Masked { value, mask } => number & mask == *value & mask,
        Match::Range { low, high } => (*low..=*high).contains(&number),
        Match::Bytes(_) => false,
    }
}

/// The Internet checksum (RFC 1071) over bytes, as a number: 0 where they hold a right one.
fn sum(bytes: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(bytes).ones_complement().to_be()
}

/// Whether the options hold a source route; `None` if they are malformed.
fn options(mut bytes: &[u8]) -> Option<bool> {
    while let [kind, rest @ ..] = bytes {
        match (kind, rest.first()) {
            (0, _) => return Some(false),
            (1, _) => bytes = rest,
            (_, None | Some(0 | 1)) => return None,
            (_, Some(&size)) if bytes.len() < size.into() => return None,
            (131 | 137, _) => return Some(true),
            (_, Some(&size)) => bytes = &bytes[size.into()..],
        }
    }
    Some(false)
}

/// Handed over as one of a protocol between routers, or for another reason.
fn punted(other: &'static str, proto: u8, (sport, dport): (u16, u16)) -> Fate {
    let is_control = match proto {
        6 => [sport, dport].contains(&179),
        17 => [3784, 4784].contains(&dport),
        proto => [88, 89, 103, 112].contains(&proto),
    };
    Fate::Punt(if is_control { "control" } else { other })
}

/// Reads the header behind IP; false if it is malformed.
fn transport(frame: &[u8], at: usize, end: usize, proto: u8, question: &mut Question) -> bool {
    let bytes = frame.get(at..).unwrap_or_default();
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let header = match proto {
        6 => match TcpHeaderSlice::from_slice(bytes) {
            Ok(tcp) => tcp.slice().len(),
            Err(_) => return false,
        },
        17 if bytes.len() >= 8 => 8,
        1 | 58 if bytes.len() >= 4 => {
            question.discovery &= matches!(bytes[0], 133..=137);
            question.answered &= if proto == 1 {
                !matches!(bytes[0], 3 | 4 | 5 | 11 | 12)
            } else {
                bytes[0] >= 128 && bytes[0] != 137
            };
            return true;
        }
        _ => return false,
    };
    question.ports = (word(0), word(2));
    question.payload = (at + header, end.saturating_sub(at + header));
    true
}

/// Walks the extension headers of IPv6; false if something is malformed.
fn chain(frame: &[u8], end: usize, question: &mut Question) -> bool {
    let mut at = 54;
    let mut left = end.saturating_sub(at);
    loop {
        let rest = frame.get(at..).unwrap_or_default();
        let size = match question.proto {
            0 | 43 | 60 => 8 + usize::from(rest.get(1).copied().unwrap_or(0)) * 8,
            44 => 8,
            _ => break,
        };
        if rest.len() < size {
            return false;
        }
        let later = question.proto == 44 && u16::from_be_bytes([rest[2], rest[3]]) >> 3 != 0;
        question.proto = rest[0];
        if later {
            question.answered = question.proto != 58;
            question.discovery = false;
            return true;
        }
        (at, left) = (at + size, left.saturating_sub(size));
    }
    question.discovery &= question.proto == 58;
    match question.proto {
        6 | 17 | 58 => transport(frame, at, at + left, question.proto, question),
        _ => true,
    }
}

/// The signatures of the program's text.
fn suspicious(payload: &[u8]) -> bool {
    payload.windows(7).any(|seen| seen.eq_ignore_ascii_case(b"cmd.exe"))
        || payload.windows(11).any(|seen| seen == b"/etc/passwd")
        || payload.windows(8).any(|seen| seen == [0x90; 8])
}

/// The program with the entries of its text.
fn plain() -> Program {
    let compiled = compile_file(&root().join("programs/router.rav"), Decode::Lazy).expect("it can be read");
    compiled.program.expect("the program compiles")
}

/// The program with many more entries, drawn from a seed.
fn router(seed: u64, addresses: &[(u128, u128, bool)]) -> Program {
    let mut program = plain();
    let mut random = SuiteRandom::new(seed);
    let mut known: HashMap<(bool, u8, u128), ()> = HashMap::new();
    for _ in 0..400 {
        let (src, dst, four) = *random.pick(addresses);
        let width: u8 = if four { 32 } else { 128 };
        let prefix = |random: &mut SuiteRandom, address: u128| {
            let length = random.between(if four { 6 } else { 16 }, width.into()) as u8;
            (length, address >> (width - length) << (width - length))
        };
        let part = |(length, value): (u8, u128)| {
            if length == width { Match::Exact(value) } else { Match::Prefix { value, length } }
        };
        let route = if random.one_in(2) { src } else { dst };
        let route = prefix(&mut random, route);
        let names = if four { ["acl", "routes"] } else { ["acl6", "routes6"] };
        for table in &mut program.tables {
            if table.name == names[1] && known.insert((four, route.0, route.1), ()).is_none() {
                let key = vec![part(route)];
                if table.entries.iter().all(|entry| entry.key != key) {
                    let hop = match random.below(40) {
                        0..3 => 65535,
                        3..6 => 65533,
                        _ => random.between(1, 8).into(),
                    };
                    table.entries.push(Entry { key, value: vec![hop], priority: 0 });
                }
            }
            if table.name == names[0] && random.one_in(4) {
                let from = if random.one_in(2) { Match::Any } else { part(prefix(&mut random, src)) };
                let low = random.below(60_000);
                let high = (low + random.below(6_000)).min(65_535);
                let service = match random.below(4) {
                    0 => Match::Any,
                    1 => Match::Exact(*random.pick(&[80, 443, 53])),
                    2 => Match::Masked { value: 1, mask: 1 },
                    _ => Match::Range { low: low.into(), high: (high).into() },
                };
                let proto = Match::Exact(*random.pick(&[6, 17]));
                let key = vec![from, part(prefix(&mut random, dst)), Match::Any, service, proto];
                let ColumnKind::Names(names) = &table.values[0].kind else { panic!("variants have names") };
                let value = vec![random.pick(names).0];
                table.entries.push(Entry { key, value, priority: 0 });
            }
        }
    }
    for table in program.tables.iter_mut().filter(|table| table.name == "next_hops") {
        for hop in 4..8u128 {
            let mtu = [40, 576, 1280, 1400][hop as usize - 4];
            let value = vec![hop % 4 + 1, 0x0200_0000_0500 + hop, 0x0200_0000_0600 + hop, mtu];
            table.entries.push(Entry { key: vec![Match::Exact(hop)], value, priority: 0 });
        }
    }
    // Packets come from one next hop that is not known, and from one that is known nobody expects any.
    for table in program.tables.iter_mut().filter(|table| table.name == "behind") {
        for hop in [4, 5, 6, 8u128] {
            table.entries.push(Entry::exact(&[hop], &[hop % 4 + 1]));
        }
    }
    for table in program.tables.iter_mut().filter(|table| table.name == "sources") {
        let ColumnKind::Names(names) = &table.values[0].kind else { panic!("variants have names") };
        let asked: Vec<u128> = names.iter().map(|(number, _)| *number).collect();
        for port in 2..=u128::from(PORTS) {
            table.entries.push(Entry::exact(&[port], &[*random.pick(&asked)]));
        }
    }
    program
}

/// Most packets come in by the port that leads back to their source.
fn aim(program: &Program, arrivals: &mut Arrivals, random: &mut SuiteRandom) {
    let second = Second { program };
    for (frame, port) in arrivals.frames.iter().zip(&mut arrivals.ports) {
        let rest = frame.bytes.get(14..).unwrap_or_default();
        let behind = match frame.bytes.get(12..14) {
            Some([8, 0]) => Ipv4HeaderSlice::from_slice(rest)
                .ok()
                .and_then(|ip| second.behind("routes", u32::from(ip.source_addr()).into())),
            Some([0x86, 0xdd]) => Ipv6HeaderSlice::from_slice(rest)
                .ok()
                .and_then(|ip| second.behind("routes6", ip.source_addr().into())),
            _ => None,
        };
        if let (Some(behind), false) = (behind, random.one_in(6)) {
            *port = behind as u16;
        }
    }
}

/// Source, destination and family of the IP packets.
fn addresses(arrivals: &Arrivals) -> Vec<(u128, u128, bool)> {
    let mut found = Vec::new();
    for frame in arrivals.frames.iter() {
        let Some(rest) = frame.bytes.get(14..) else { continue };
        if let (true, Ok(ip)) = (frame.bytes[12..14] == [8, 0], Ipv4HeaderSlice::from_slice(rest)) {
            let number = |address: Ipv4Addr| u128::from(u32::from(address));
            found.push((number(ip.source_addr()), number(ip.destination_addr()), true));
        } else if let (true, Ok(ip)) =
            (frame.bytes[12..14] == [0x86, 0xdd], Ipv6HeaderSlice::from_slice(rest))
        {
            found.push((ip.source_addr().into(), ip.destination_addr().into(), false));
        }
    }
    found
}

#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    cut: u64,
    answers: u64,
    withheld: u64,
    /// Sent without bytes that stood behind their end.
    trimmed: u64,
    fates: HashMap<&'static str, u64>,
}

/// Runs the packets through both and holds every packet against its fate.
fn compare(program: &Program, arrivals: &Arrivals, tally: &mut Tally) {
    let second = Second { program };
    let seen = see(program, BackendKind::Native, arrivals, PORTS, 256).expect("it loads");
    assert_eq!(seen.verdicts.len(), arrivals.ports.len());
    let cuts: HashMap<u32, (u32, u32)> =
        seen.resized.iter().filter_map(|(packet, _, cut)| Some((*packet, (*cut)?))).collect();
    let mut errors: HashMap<u32, &SeenPacket> = HashMap::new();
    for sent in &seen.sent {
        assert!(errors.insert(sent.1, sent).is_none(), "two errors about packet {}", sent.1);
    }
    let (mut answers, mut held) = (0, 0);
    for (index, frame) in arrivals.frames.iter().enumerate() {
        let (fate, end) = second.fate(frame.bytes, frame.wire, arrivals.ports[index]);
        let end = end.unwrap_or(usize::MAX);
        let whole = &frame.bytes[..end.min(frame.bytes.len())];
        let verdict = seen.verdicts[index];
        let reason = || program.reasons[usize::from(verdict.argument())].name.as_str();
        let shown = || {
            format!("packet {index}: {fate:?}, but {:?} {}: {:02x?}", verdict.kind(), reason(), frame.bytes)
        };
        let error = errors.remove(&(index as u32));
        let told = match &fate {
            Fate::Punt(reason) | Fate::Drop(reason) | Fate::Answer(reason, ..) => reason,
            Fate::Malformed => "malformed",
            Fate::Send { .. } => "sent",
        };
        *tally.fates.entry(told).or_default() += 1;
        match &fate {
            Fate::Punt(name) => {
                assert!(verdict.kind() == VerdictKind::Punt && reason() == *name, "{}", shown())
            }
            Fate::Drop(name) | Fate::Answer(name, ..) => {
                assert!(verdict.kind() == VerdictKind::Drop && reason() == *name, "{}", shown());
            }
            Fate::Malformed => {
                let malformed = reason().starts_with("short(") || reason().starts_with("invalid(");
                assert!(verdict.kind() == VerdictKind::Drop && malformed, "{}", shown());
            }
            Fate::Send { port, neighbour, own, mtu } => {
                assert!(verdict.kind() == VerdictKind::Send && verdict.argument() == *port, "{}", shown());
                let (bytes, wire) = &seen.bytes[index];
                let left = forwarded(whole, *neighbour, *own);
                same(bytes, &left, index);
                assert_eq!(*wire as usize, end.min(frame.wire as usize));
                tally.trimmed += u64::from(*wire < frame.wire);
                tally.sent += 1;
                let total = u16::from_be_bytes([frame.bytes[16], frame.bytes[17]]);
                if frame.bytes[12] == 8 && u32::from(total) > *mtu {
                    assert_eq!(cuts.get(&(index as u32)), Some(&(14, *mtu)), "{}", shown());
                    pieces(bytes, *wire, *mtu);
                    tally.cut += 1;
                } else {
                    assert_eq!(cuts.get(&(index as u32)), None, "{}", shown());
                }
            }
        }
        if !matches!(fate, Fate::Send { .. }) {
            assert_eq!(seen.bytes[index].0, whole, "{}", shown());
        }
        match (&fate, error) {
            (Fate::Answer(_, kind, code, mtu), Some(sent)) => {
                assert_eq!((sent.0, sent.5), (arrivals.ports[index], false), "{}", shown());
                let own = second.row("interfaces", sent.0.into()).expect("only ports with an address answer");
                check_error(frame.bytes, &sent.2, sent.3, own, *kind, *code, *mtu);
                answers += 1;
            }
            (Fate::Answer(..), None) => held += 1,
            (_, None) => {}
            (_, Some(_)) => panic!("nothing answers {}", shown()),
        }
    }
    let counted = |name: &str| {
        let counter =
            program.counters.iter().position(|counter| counter.name == name).expect("it is counted");
        seen.counters[counter][0].0
    };
    assert_eq!((counted("errors_sent"), counted("errors_withheld")), (answers, held));
    tally.answers += answers;
    tally.withheld += held;
}

/// The packet as it has to leave: other addresses, TTL or hop limit one less, a new checksum.
fn forwarded(frame: &[u8], neighbour: u64, own: u64) -> Vec<u8> {
    let mut left = frame.to_vec();
    left[..6].copy_from_slice(&neighbour.to_be_bytes()[2..]);
    left[6..12].copy_from_slice(&own.to_be_bytes()[2..]);
    if frame[12] == 8 {
        left[22] -= 1;
        left[24..26].fill(0);
        let header = usize::from(left[14] & 15) * 4;
        let check = sum(&left[14..14 + header]).to_be_bytes();
        left[24..26].copy_from_slice(&check);
    } else {
        left[21] -= 1;
    }
    left
}

/// Asserts that two packets are the same; 0 and 0xffff are one checksum.
fn same(left: &[u8], wanted: &[u8], index: usize) {
    let mut left = left.to_vec();
    if left[12] == 8 && left[24..26] == [0xff, 0xff] && wanted[24..26] == [0, 0] {
        left[24..26].fill(0);
    }
    assert_eq!(left, wanted, "packet {index} left with other bytes");
}

/// The pieces of a packet hold its data once each, and have right headers.
fn pieces(bytes: &[u8], wire: u32, mtu: u32) {
    let Some(cut) = Pieces::of(bytes, wire, Fragmenting { at: 14, mtu }) else { return };
    let whole = Ipv4HeaderSlice::from_slice(&bytes[14..]).expect("it was forwarded");
    let (mut next, mut piece) = (usize::from(whole.fragments_offset().value()) * 8, Vec::new());
    let first = next;
    for index in 0..cut.count() {
        cut.write(bytes, index, &mut piece);
        let ip = Ipv4HeaderSlice::from_slice(&piece[14..]).expect("a piece is a packet");
        assert_eq!(sum(ip.slice()), 0, "checksum of piece {index}");
        assert!(u32::from(ip.total_len()) <= mtu && ip.ttl() == whole.ttl());
        assert_eq!(usize::from(ip.fragments_offset().value()) * 8, next);
        let header = usize::from(ip.ihl()) * 4;
        let data = usize::from(ip.total_len()) - header;
        let from = 14 + usize::from(whole.ihl()) * 4 + next - first;
        let captured = bytes.get(from..).unwrap_or_default();
        let captured = &captured[..captured.len().min(data)];
        assert_eq!(&piece[14 + header..], captured, "data of piece {index}");
        next += data;
        let last = index + 1 == cut.count();
        assert_eq!(ip.more_fragments(), !last || whole.more_fragments());
    }
    assert_eq!(next - first, usize::from(whole.total_len()) - usize::from(whole.ihl()) * 4);
}

/// An error has the addresses of the way back, right checksums, and quotes what fits of the packet. Its
/// header counts what is on the wire.
fn check_error(cause: &[u8], error: &[u8], wire: u32, own: &[u128], kind: u8, code: u8, mtu: u16) {
    assert_eq!(error[..6], cause[6..12]);
    assert_eq!(error[6..12], (own[0] as u64).to_be_bytes()[2..]);
    assert_eq!(error[12..14], cause[12..14]);
    let (at, room, total) = if cause[12] == 8 {
        let ip = Ipv4HeaderSlice::from_slice(&error[14..]).expect("an error is a packet");
        assert_eq!(sum(ip.slice()), 0);
        assert_eq!(ip.destination(), cause[26..30]);
        assert_eq!(ip.source(), (own[1] as u32).to_be_bytes());
        assert_eq!((ip.protocol().0, usize::from(ip.total_len())), (1, wire as usize - 14));
        if error.len() == wire as usize {
            assert_eq!(sum(&error[34..]), 0, "the checksum of an error");
        }
        (34, 548, usize::from(u16::from_be_bytes([cause[16], cause[17]])))
    } else {
        let ip = Ipv6HeaderSlice::from_slice(&error[14..]).expect("an error is a packet");
        assert_eq!(ip.destination(), cause[22..38]);
        assert_eq!(ip.source(), own[2].to_be_bytes());
        assert_eq!((ip.next_header().0, usize::from(ip.payload_length())), (58, wire as usize - 54));
        if error.len() == wire as usize {
            let pseudo = Sum16BitWords::new()
                .add_slice(&error[22..54])
                .add_4bytes((wire - 54).to_be_bytes())
                .add_2bytes([0, 58]);
            assert_eq!(pseudo.add_slice(&error[54..]).ones_complement(), 0, "the checksum of an error");
        }
        (54, 1232, usize::from(u16::from_be_bytes([cause[18], cause[19]])) + 40)
    };
    let [high, low] = mtu.to_be_bytes();
    assert_eq!(error[at..at + 2], [kind, code]);
    assert_eq!(error[at + 4..at + 8], [0, 0, high, low]);
    let quoted = total.min(room);
    assert_eq!(wire as usize, at + 8 + quoted);
    let captured = cause.len().min(14 + quoted);
    assert_eq!(&error[at + 8..], &cause[14..captured]);
}

/// Made traffic, damaged here and there, with unicast Ethernet addresses, some short TTLs, headers made
/// right again, and ports of control protocols.
fn made(seed: u64) -> Arrivals {
    let mut profile = Profile::sample1();
    (profile.packets, profile.flows) = (6_000, 300);
    (profile.tcp_share, profile.udp_share, profile.icmp_share) = (0.5, 0.3, 0.15);
    (profile.arp_share, profile.other_share) = (0.03, 0.02);
    (profile.web_share, profile.fragment_share) = (0.3, 0.05);
    (profile.ipv6_share, profile.vlan_share) = (0.4, 0.02);
    let mut generator = Generator::new(&profile, seed).expect("the profile is sound");
    let (mut random, mut control) = (SuiteRandom::new(seed), SuiteRandom::new(!seed));
    let (mut arrivals, mut frame) = (Arrivals::default(), Vec::new());
    let mut time = 0;
    while let Some(stamp) = generator.next(&mut frame) {
        time += 1_000_000;
        for _ in 0..if random.one_in(4) { random.between(1, 3) } else { 0 } {
            let at = random.below(frame.len().clamp(1, 80) as u64) as usize;
            if let Some(byte) = frame.get_mut(at) {
                *byte = random.number() as u8;
            }
        }
        if random.one_in(30) {
            frame.truncate(random.below(90) as usize);
        }
        if random.one_in(20) {
            let place = frame.len().saturating_sub(12);
            let at = random.between(place.min(42) as u64, place as u64) as usize;
            let texts: [&[u8]; 4] = [b"CMD.exe", b"cmd.ex_", b"/etc/passwd", &[0x90; 8]];
            let text = *random.pick(&texts);
            if let Some(room) = frame.get_mut(at..at + text.len()) {
                room.copy_from_slice(text);
            }
        }
        if random.one_in(6) {
            // What the header does not count.
            frame.extend((0..random.between(1, 30)).map(|_| random.number() as u8));
        }
        if frame.len() >= 54 && !random.one_in(40) {
            frame[0] &= 0xfe;
            let four = frame[12..14] == [8, 0];
            if random.one_in(8) {
                frame[if four { 22 } else { 21 }] = random.below(3) as u8;
            }
            let header = usize::from(frame[14] & 15) * 4;
            if four && header >= 20 && frame.len() >= 14 + header && !random.one_in(20) {
                if random.one_in(10) {
                    frame[20] ^= 0x40;
                }
                frame[24..26].fill(0);
                let check = sum(&frame[14..14 + header]).to_be_bytes();
                frame[24..26].copy_from_slice(&check);
            }
            let ports = if four { 14 + header } else { 54 };
            if control.one_in(4) && frame.len() >= ports + 4 {
                let at = ports + *control.pick(&[0, 2]);
                frame[at..at + 2].copy_from_slice(&control.pick(&[179u16, 3784, 4784]).to_be_bytes());
            }
            if four && frame[23] == 17 && control.one_in(8) && frame.len() >= ports + 4 {
                frame[ports..ports + 4].copy_from_slice(&[0, 67, 0, 68]);
            }
        }
        arrivals.push(
            &frame,
            stamp.wire.max(frame.len() as u32),
            time,
            random.between(1, PORTS.into()) as u16,
        );
    }
    arrivals
}

#[test]
fn made_packets_meet_the_fate_that_a_second_router_gives_them() {
    let mut tally = Tally::default();
    for seed in 1..=4 {
        let mut arrivals = made(seed);
        let program = router(seed, &addresses(&arrivals));
        aim(&program, &mut arrivals, &mut SuiteRandom::new(seed));
        compare(&program, &arrivals, &mut tally);
    }
    assert!(tally.sent > 2_000 && tally.cut > 30 && tally.answers > 500, "{tally:?}");
    assert!(tally.trimmed > 200, "{tally:?}");
    let met = |fate: &str| tally.fates.get(fate).copied().unwrap_or(0);
    for (fate, least) in [
        ("malformed", 50),
        ("ours", 20),
        ("control", 10),
        ("link_only", 15),
        ("unresolved", 20),
        ("own_source", 20),
        ("reverse_path", 200),
        ("directed_broadcast", 10),
    ] {
        assert!(met(fate) >= least, "{fate}: {tally:?}");
    }
}

/// A first fragment of IPv4 with this payload from a source, and bytes that stand behind its end.
fn first_fragment(src: [u8; 4], proto: u8, payload: &[u8], behind: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 8, 0];
    frame.extend([0x45, 0, 0, 20 + payload.len() as u8, 0, 7, 0x20, 0, 64, proto, 0, 0]);
    frame.extend(src.into_iter().chain([10, 2, 0, 1]));
    let check = sum(&frame[14..]).to_be_bytes();
    frame[24..26].copy_from_slice(&check);
    frame.extend(payload.iter().chain(behind));
    frame
}

#[test]
fn a_first_fragment_of_any_length_meets_the_fate_that_a_second_router_gives_it() {
    let mut tally = Tally::default();
    let program = plain();
    // From where a route leads back, and from a stranger.
    for src in [[10, 9, 0, 1], [203, 0, 113, 1]] {
        for (proto, offset, ports) in [1, 6, 17, 47]
            .into_iter()
            .flat_map(|proto| [(proto, 4, 80), (proto, 5, 68), (proto, 9, 68), (proto, 15, 80)])
        {
            let mut whole = [0; 64];
            whole[..4].copy_from_slice(&[0, 67, 0, ports]);
            whole[12] = offset << 4;
            let mut arrivals = Arrivals::default();
            for length in 0..=whole.len() {
                // What the link adds behind a short packet, and a capture that is cut.
                for (behind, cut) in [(0, 0), (26, 0), (0, 1), (0, 5)] {
                    let (payload, behind) =
                        (&whole[..length], &whole[length..][..behind.min(whole.len() - length)]);
                    let frame = first_fragment(src, proto, payload, behind);
                    let captured = frame.len() - cut.min(length);
                    // So that each error is sent.
                    let time = arrivals.ports.len() as u64 * 1_000_000_000;
                    arrivals.push(&frame[..captured], frame.len() as u32, time, 1);
                }
            }
            compare(&program, &arrivals, &mut tally);
        }
    }
    let met = |fate: &str| tally.fates.get(fate).copied().unwrap_or(0);
    for (fate, least) in [("malformed", 500), ("sent", 2_000), ("reverse_path", 2_000), ("link_only", 200)] {
        assert!(met(fate) >= least, "{fate}: {tally:?}");
    }
}

#[test]
fn errors_keep_to_their_rate() {
    let frame = |src: [u8; 4], dst: [u8; 4]| {
        let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 8, 0];
        frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 1, 99, 0, 0]);
        frame.extend(src.into_iter().chain(dst));
        let check = sum(&frame[14..]).to_be_bytes();
        frame[24..26].copy_from_slice(&check);
        frame
    };
    let mut arrivals = Arrivals::default();
    let one = frame([10, 9, 0, 1], [10, 2, 0, 1]);
    for _ in 0..150 {
        arrivals.push(&one, 34, 0, 1);
    }
    // Another port has its own rate; 30 ms are worth 30 errors.
    arrivals.push(&frame([10, 2, 0, 1], [10, 9, 0, 1]), 34, 0, 2);
    for _ in 0..50 {
        arrivals.push(&one, 34, 30_000_000, 1);
    }
    let mut tally = Tally::default();
    compare(&plain(), &arrivals, &mut tally);
    assert_eq!((tally.answers, tally.withheld), (100 + 1 + 30, 50 + 20));
}

#[test]
fn real_packets_meet_the_fate_that_a_second_router_gives_them() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    let mut tally = Tally::default();
    for path in files(&data.join("captures"), "zst").expect("captures/ is there") {
        if !path.to_string_lossy().ends_with(".pcap.zst") {
            continue;
        }
        let file = std::fs::File::open(&path).expect("a capture can be opened");
        let stream = captures::compressed::uncompressed(file).expect("it is packed");
        let mut capture = Capture::open(stream).expect("it is a capture");
        let mut arrivals = Arrivals::default();
        while arrivals.ports.len() < 20_000 {
            let Ok(Some(record)) = capture.next() else { break };
            let port = (arrivals.ports.len() % usize::from(PORTS)) as u16 + 1;
            arrivals.push(record.data, record.wire, record.time_ns, port);
        }
        let program = router(7, &addresses(&arrivals));
        aim(&program, &mut arrivals, &mut SuiteRandom::new(7));
        compare(&program, &arrivals, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.sent > 1_000, "{tally:?}");
}
