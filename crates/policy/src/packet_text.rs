//! Packets as people write and read them, one line each.
//!
//! ```text
//! tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan out lan state new flags S
//! PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] [WORD VALUE]…
//! ```
//!
//! What a line leaves out may be anything, with four exceptions: the state is `new`, that on the way out is
//! the same, TCP has the flags of a first segment (`S`) where the state is `new`, and the packet is no later
//! fragment.

use crate::diagram_description::PacketBox;
use crate::field::{Packet, PacketField, State, Values};
use crate::header_fields;
use crate::model::{Path, RuleCondition, with_loopback};
use crate::packet_space::WitnessPacket;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The packets that a line speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPackets {
    /// Their way.
    pub path: Path,
    /// What holds for them.
    pub condition: RuleCondition,
}

const PROTOCOLS: [(&str, u8); 12] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];
/// FIN is the lowest bit.
const FLAGS: &str = "FSRPAUEC";

fn mapped(address: Ipv4Addr) -> u128 {
    u128::from(address.to_ipv6_mapped())
}

fn equals(field: PacketField, value: u128) -> RuleCondition {
    RuleCondition::Holds(field, vec![Values::exact(value)])
}

/// Reads a line. `interfaces` has the names of ports.
///
/// # Errors
/// What is not understood, and what to write instead.
pub fn read_packets(text: &str, interfaces: &[(String, u16)]) -> Result<DescribedPackets, String> {
    let mut words = text.split_whitespace().peekable();
    let mut all = Vec::new();
    let mut transport = None;
    let Some(first) = words.next() else {
        return Err("there is no packet: write one like `tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan`".to_owned());
    };
    if first != "any" {
        let named = PROTOCOLS.iter().find(|(name, _)| *name == first).map(|(_, number)| *number);
        let Some(number) = named.or_else(|| first.parse().ok()) else {
            let names = PROTOCOLS.map(|(name, _)| name).join(", ");
            return Err(format!("`{first}` is no protocol: write {names}, a number, or any"));
        };
        transport = Some(number);
        all.push(equals(PacketField::Protocol, number.into()));
    }
    if words.peek().is_some_and(|word| !is_word(word)) {
        let ends = [
            (PacketField::Source, PacketField::SourcePort),
            (PacketField::Destination, PacketField::DestinationPort),
        ];
        for (index, (address, port)) in ends.into_iter().enumerate() {
            if index == 1 && words.next() != Some(">") {
                return Err("`>` and the destination are missing behind the source".to_owned());
            }
            let Some(word) = words.next() else { return Err("an address is missing at the end".to_owned()) };
            all.extend(end(word, address, port)?);
        }
    }
    let (mut path, mut state, mut out_state) = (Path::Forwarded, None, None);
    let (mut flags, mut fragment) = (None, false);
    while let Some(word) = words.next() {
        if word == "fragment" {
            fragment = true;
            continue;
        }
        let Some(value) = words.next() else { return Err(format!("`{word}` has no value behind it")) };
        let number = |most: u128| -> Result<u128, String> {
            let wrong = || format!("`{value}` is no number up to {most} behind `{word}`");
            value.parse::<u128>().ok().filter(|number| *number <= most).ok_or_else(wrong)
        };
        match (word, value) {
            ("to", "gateway") => path = Path::ToGateway,
            ("from", "gateway") => path = Path::FromGateway,
            ("in" | "out", name) => {
                let field = if word == "in" { PacketField::InPort } else { PacketField::OutPort };
                let bound = with_loopback(interfaces).find(|(own, _)| *own == name);
                let bound = bound.map(|(_, port)| u128::from(port));
                let number = name.parse().ok().filter(|number| (1..=field.most()).contains(number));
                let Some(port) = bound.or(number) else {
                    return Err(format!("`{name}` is no port: write its number, or bind the name to one"));
                };
                all.push(equals(field, port));
            }
            ("state" | "out_state", name) => {
                let Some(named) = State::ALL.into_iter().find(|own| own.name() == name) else {
                    let names = State::ALL.map(State::name).join(", ");
                    return Err(format!("`{name}` is no state: write {names}"));
                };
                *(if word == "state" { &mut state } else { &mut out_state }) = Some(named);
            }
            ("mac", address) => {
                let Some(address) = read_mac(address) else {
                    return Err(format!(
                        "`{address}` is no address of Ethernet: write one like 02:00:5e:00:53:07"
                    ));
                };
                all.push(equals(PacketField::SourceMac, address));
            }
            ("flags", letters) => {
                let mut bits = 0u128;
                for letter in letters.chars().filter(|letter| *letter != '-') {
                    let Some(bit) = FLAGS.find(letter) else {
                        return Err(format!(
                            "`{letter}` is no flag of TCP: write letters of {FLAGS}, or - for none"
                        ));
                    };
                    bits |= 1 << bit;
                }
                flags = Some(bits);
            }
            ("type" | "code" | "dscp" | "ecn" | "ttl" | "length", _) => {
                let field = match word {
                    "type" => PacketField::IcmpType,
                    "code" => PacketField::IcmpCode,
                    "dscp" => PacketField::Dscp,
                    "ecn" => PacketField::Ecn,
                    "ttl" => PacketField::TimeToLive,
                    _ => PacketField::Length,
                };
                all.push(equals(field, number(field.most())?));
            }
            _ => match header_fields::named(word) {
                Some(field) => all.push(equals(field, number(field.most())?)),
                None => {
                    return Err(format!(
                        "`{word} {value}` is not understood: write in, out, to gateway, from gateway, state, out_state, \
                         flags, type, code, fragment, dscp, ecn, ttl, length, mac, or the name of a field of a header"
                    ));
                }
            },
        }
    }
    let in_state = state.unwrap_or(State::New);
    let new = in_state == State::New;
    if transport == Some(6) && !fragment && (new || flags.is_some()) {
        all.push(equals(PacketField::TcpFlags, flags.unwrap_or(2)));
    } else if flags.is_some() {
        return Err("only packets of tcp that are no later fragment have flags".to_owned());
    }
    all.push(equals(PacketField::State, in_state as u128));
    all.push(match out_state {
        Some(said) => equals(PacketField::OutState, said as u128),
        None => RuleCondition::Any(vec![
            RuleCondition::Absent(PacketField::OutState),
            equals(PacketField::OutState, in_state as u128),
        ]),
    });
    all.push(equals(PacketField::LaterFragment, fragment.into()));
    Ok(DescribedPackets { path, condition: RuleCondition::All(all) })
}

fn is_word(word: &str) -> bool {
    [
        "in",
        "out",
        "to",
        "from",
        "state",
        "out_state",
        "flags",
        "type",
        "code",
        "fragment",
        "dscp",
        "ecn",
        "ttl",
        "length",
        "mac",
    ]
    .contains(&word)
        || header_fields::named(word).is_some()
}

/// Six bytes in hexadecimal with colons between them.
fn read_mac(text: &str) -> Option<u128> {
    let mut bytes = text.split(':').map(|byte| {
        let digits = (1..=2).contains(&byte.len()) && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
        digits.then(|| u128::from_str_radix(byte, 16).ok()).flatten()
    });
    let address = bytes.by_ref().take(6).try_fold(0, |sum, byte| Some(sum << 8 | byte?))?;
    (bytes.next().is_none() && text.matches(':').count() == 5).then_some(address)
}

fn mac(number: u128) -> String {
    let bytes: Vec<String> = number.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// One end: an address or a prefix, perhaps with a port.
fn end(word: &str, field: PacketField, port_field: PacketField) -> Result<Vec<RuleCondition>, String> {
    let (address, port) = match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None if word.matches(':').count() == 1 => {
            word.split_once(':').map_or((word, None), |(address, port)| (address, Some(port)))
        }
        None => (word, None),
    };
    let mut all = Vec::new();
    if address != "any" {
        let wrong = || {
            format!(
                "`{word}` is no address: write one like 192.0.2.7:1024, [2001:db8::7]:22, 10.0.0.0/8 or any"
            )
        };
        let (address, length) = match address.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
            None => (address, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (bits, version, width) = match address {
            IpAddr::V4(four) => (mapped(four), 4, 32),
            IpAddr::V6(six) => (u128::from(six), 6, 128),
        };
        let host = width
            - length
                .filter(|length| *length <= width)
                .or(length.is_none().then_some(width))
                .ok_or_else(wrong)?;
        let host = u128::MAX.checked_shr(128 - host).unwrap_or(0);
        all.push(equals(PacketField::Family, version));
        all.push(RuleCondition::Holds(field, vec![Values::Range { low: bits & !host, high: bits | host }]));
    }
    if let Some(port) = port {
        let number: u16 = port.parse().map_err(|_| format!("`{port}` is no port number in `{word}`"))?;
        all.push(equals(port_field, number.into()));
    }
    Ok(all)
}

fn protocol(number: u128) -> String {
    let named = PROTOCOLS.iter().find(|(_, own)| u128::from(*own) == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

fn state(number: u128) -> String {
    let named = State::ALL.into_iter().find(|own| *own as u128 == number);
    named.map_or_else(|| number.to_string(), |state| state.name().to_owned())
}

fn flags(number: u128) -> String {
    let set: String =
        FLAGS.chars().enumerate().filter(|(bit, _)| number >> bit & 1 == 1).map(|(_, flag)| flag).collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

fn port(number: u128, interfaces: &[(String, u16)]) -> String {
    let named = with_loopback(interfaces).find(|(_, port)| u128::from(*port) == number);
    named.map_or_else(|| number.to_string(), |(name, _)| name.to_owned())
}

/// One packet as a line that [`read_packets`] reads.
pub fn packet_text(witness: &WitnessPacket, interfaces: &[(String, u16)]) -> String {
    let packet = &witness.packet;
    let has = |field: PacketField| packet.get(field);
    let mut text = has(PacketField::Protocol).map_or("any".to_owned(), protocol);
    for (lead, address, port) in [
        (" ", PacketField::Source, PacketField::SourcePort),
        (" > ", PacketField::Destination, PacketField::DestinationPort),
    ] {
        let address = address_text(has(address).unwrap_or(0), has(PacketField::Family) == Some(6));
        let _ = match has(port) {
            Some(port) if address.contains(':') => write!(text, "{lead}[{address}]:{port}"),
            Some(port) => write!(text, "{lead}{address}:{port}"),
            None => write!(text, "{lead}{address}"),
        };
    }
    if witness.path != Path::Forwarded {
        let _ = write!(text, " {}", path_text(witness.path));
    }
    tell_rest(&mut text, packet, interfaces);
    text
}

fn tell_rest(text: &mut String, packet: &Packet, interfaces: &[(String, u16)]) {
    let new = packet.get(PacketField::State) == Some(State::New as u128);
    for field in PacketField::ALL {
        let Some(value) = packet.get(field) else { continue };
        let told = match field {
            PacketField::InPort => format!("in {}", port(value, interfaces)),
            PacketField::OutPort => format!("out {}", port(value, interfaces)),
            PacketField::State if !new => format!("state {}", state(value)),
            PacketField::OutState if packet.get(PacketField::State) != Some(value) => {
                format!("out_state {}", state(value))
            }
            PacketField::SourceMac if value != 0 => format!("mac {}", mac(value)),
            PacketField::TcpFlags if !new || value != 2 => format!("flags {}", flags(value)),
            PacketField::IcmpType => format!("type {value}"),
            PacketField::IcmpCode => format!("code {value}"),
            PacketField::LaterFragment if value == 1 => "fragment".to_owned(),
            PacketField::Dscp if value != 0 => format!("dscp {value}"),
            PacketField::Ecn if value != 0 => format!("ecn {value}"),
            PacketField::TimeToLive if value != 64 => format!("ttl {value}"),
            PacketField::Length if value != 60 => format!("length {value}"),
            _ if header_fields::carried(field).is_some() && value != 0 => format!("{} {value}", field.name()),
            _ => continue,
        };
        text.push(' ');
        text.push_str(&told);
    }
}

fn address_text(bits: u128, version_6: bool) -> String {
    if version_6 { Ipv6Addr::from(bits).to_string() } else { Ipv4Addr::from(bits as u32).to_string() }
}

/// The way of packets in words.
pub fn path_text(path: Path) -> &'static str {
    match path {
        Path::Forwarded => "forwarded",
        Path::ToGateway => "to gateway",
        Path::FromGateway => "from gateway",
    }
}

/// A set of packets in words: what each field holds that is not any value.
pub fn box_text(packets: &PacketBox, interfaces: &[(String, u16)]) -> String {
    let mut parts: Vec<String> = packets.path.map(path_text).into_iter().map(str::to_owned).collect();
    let version_6 = packets.holds(PacketField::Family) == Some(&[(6, 6)]);
    for (field, values) in &packets.fields {
        let value = |value: u128| match field {
            PacketField::Source | PacketField::Destination => address_text(value, version_6),
            PacketField::Protocol => protocol(value),
            PacketField::State | PacketField::OutState => state(value),
            PacketField::SourceMac => mac(value),
            PacketField::TcpFlags => flags(value),
            PacketField::InPort | PacketField::OutPort => port(value, interfaces),
            _ => value.to_string(),
        };
        let range = |(low, high): &(u128, u128)| {
            let host = low ^ high;
            let address = matches!(field, PacketField::Source | PacketField::Destination);
            match () {
                () if low == high => value(*low),
                () if address && host & host.wrapping_add(1) == 0 && low & host == 0 => {
                    let width = if version_6 { 128 } else { 32 };
                    format!("{}/{}", value(*low), width - (128 - host.leading_zeros()))
                }
                () => format!("{}-{}", value(*low), value(*high)),
            }
        };
        let shown: Vec<String> = values.iter().take(SHOWN_RANGES).map(range).collect();
        let more = values.len().saturating_sub(SHOWN_RANGES);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        parts.push(format!("{} {}{more}", field.name(), shown.join(",")));
    }
    if packets.may {
        parts.push("depending on earlier packets".to_owned());
    }
    if parts.is_empty() { "every packet".to_owned() } else { parts.join(", ") }
}

/// So many ranges of a field are told.
const SHOWN_RANGES: usize = 6;
