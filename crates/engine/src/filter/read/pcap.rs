//! The spelling of pcap-filter: `host`, `net`, `port` and their kin, each as conditions on the headers of the
//! standard library.
//!
//! Two things differ from libpcap on purpose: headers are found behind VLAN tags too, without `vlan` before
//! them, and names of hosts are not looked up.

use super::error::{FilterError, UNDERSTOOD};
use super::expression::{Expression, Header, Parser, Piece};
use super::words::Word;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a primitive says before its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    protocol: Option<Protocol>,
    direction: Option<Direction>,
    kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Ether,
    Ip,
    Ip6,
    Arp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Source,
    Destination,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

const PROTOCOLS: [(&str, Protocol); 9] = [
    ("ether", Protocol::Ether),
    ("ip", Protocol::Ip),
    ("ip6", Protocol::Ip6),
    ("arp", Protocol::Arp),
    ("tcp", Protocol::Tcp),
    ("udp", Protocol::Udp),
    ("sctp", Protocol::Sctp),
    ("icmp", Protocol::Icmp),
    ("icmp6", Protocol::Icmp6),
];

const KINDS: [(&str, Kind); 5] = [
    ("host", Kind::Host),
    ("net", Kind::Net),
    ("port", Kind::Port),
    ("portrange", Kind::PortRange),
    ("proto", Kind::Proto),
];

/// Primitives of pcap-filter that there is another way to say here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("inbound", "name the port: `port == 1`"),
    ("outbound", "name the way out: `out_port == 2`"),
    ("gateway", "say `ether host …` and not `host …`"),
    ("rarp", "say `ether proto 0x8035`"),
    ("mpls", "say `ether proto 0x8847`"),
    ("pppoed", "say `ether proto 0x8863`"),
    ("pppoes", "say `ether proto 0x8864`"),
    ("protochain", "headers are found behind extension headers by themselves: say `tcp`"),
    ("ifname", "name the port: `port == 1`"),
];

/// Names of ports (IANA) that filters often hold.
const SERVICES: [(&str, u16); 20] = [
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("pop3", 110),
    ("ntp", 123),
    ("imap", 143),
    ("snmp", 161),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("syslog", 514),
    ("imaps", 993),
    ("mysql", 3306),
    ("postgresql", 5432),
];

/// Reads a primitive, or `None` where the next words are none.
pub(super) fn primitive(parser: &mut Parser<'_>) -> Result<Option<Expression>, FilterError> {
    let Some(word) = parser.peek().cloned() else { return Ok(None) };
    let behind = parser.peek_behind().map(|word| word.text.clone()).unwrap_or_default();
    if word.quoted || compares(&behind) && word.text != "vlan" {
        // `port == 2` and `len > 100` are of the language.
        return Ok(None);
    }
    if behind == "[" {
        let help = "name the field: `ipv4.ttl < 5`, `tcp.flags.syn`, `icmp.type == 8`";
        return Err(
            parser.fault(format!("bytes by their place, as in `{}[…]`, are not understood", word.text), help)
        );
    }
    if let Some((_, help)) = ELSEWHERE.iter().find(|(name, _)| *name == word.text) {
        return Err(parser.fault(format!("`{}` is not understood", word.text), *help));
    }
    match word.text.as_str() {
        "vlan" if !compares(&behind) => return vlan(parser).map(Some),
        "less" | "greater" => return length(parser).map(Some),
        "broadcast" | "multicast" => return group(parser, None).map(Some),
        _ => {}
    }
    let mut found = Qualifiers::default();
    let start = parser.peek().map(|word| word.span.start);
    if let Some((_, protocol)) = PROTOCOLS.iter().find(|(name, _)| *name == word.text) {
        found.protocol = Some(*protocol);
        parser.take();
        if parser.peek().is_some_and(|word| matches!(word.text.as_str(), "broadcast" | "multicast")) {
            return group(parser, found.protocol).map(Some);
        }
    }
    found.direction = direction(parser);
    if let Some(word) = parser.peek().cloned()
        && let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == word.text)
    {
        found.kind = Some(*kind);
        parser.take();
    }
    if found == Qualifiers::default() {
        let repeated = parser.last.filter(|_| starts_value(&word));
        return match repeated {
            Some(last) => of(parser, last).map(Some),
            None if looks_like_an_address(&word) => {
                Err(parser
                    .fault(format!("`{}` alone says nothing", word.text), "say `host` or `net` before it"))
            }
            None => Ok(None),
        };
    }
    if let (Some(protocol), None, None) = (found.protocol, found.direction, found.kind) {
        let ends = parser
            .peek()
            .is_none_or(|word| word.quoted || matches!(word.text.as_str(), "and" | "or" | "&&" | "||" | ")"));
        if ends {
            return Ok(Some(present(parser, protocol, start)?));
        }
    }
    parser.last = Some(found);
    of(parser, found).map(Some)
}

fn compares(word: &str) -> bool {
    matches!(
        word,
        "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "=" | "&" | "|" | "^" | "+" | "-" | "*" | "%" | "as"
    )
}

fn starts_value(word: &Word) -> bool {
    word.text.starts_with(|first: char| first.is_ascii_digit() || first == ':') || looks_like_an_address(word)
}

fn looks_like_an_address(word: &Word) -> bool {
    word.text.contains(':') || word.text.parse::<Ipv4Addr>().is_ok()
}

fn direction(parser: &mut Parser<'_>) -> Option<Direction> {
    let first = match parser.peek()?.text.as_str() {
        "src" => Direction::Source,
        "dst" => Direction::Destination,
        _ => return None,
    };
    let joint = parser.peek_behind().map(|word| word.text.clone());
    parser.take();
    if joint.as_deref() == Some("or")
        && parser.peek_behind().is_some_and(|word| matches!(word.text.as_str(), "dst" | "src"))
    {
        parser.take();
        parser.take();
        return Some(Direction::Both);
    }
    Some(first)
}

/// What a primitive is about, with its value.
fn of(parser: &mut Parser<'_>, found: Qualifiers) -> Result<Expression, FilterError> {
    let kind = match found.kind {
        Some(kind) => kind,
        None if parser.peek_behind().is_some_and(|word| word.text == "/") => Kind::Net,
        None => Kind::Host,
    };
    match kind {
        Kind::Host | Kind::Net if found.protocol == Some(Protocol::Ether) => ether(parser, found),
        Kind::Host => {
            let word = value(parser, "an address")?;
            if let Ok(address) = word.text.parse::<Ipv4Addr>() {
                addresses(parser, found, &word, &format!("== {address}"), false)
            } else if let Ok(address) = word.text.parse::<Ipv6Addr>() {
                addresses(parser, found, &word, &format!("== {}", plain(address)), true)
            } else {
                Err(refused(
                    parser,
                    &word,
                    "is not an address",
                    "names are not looked up: write the address, such as 10.0.0.1 or fd00::1",
                ))
            }
        }
        Kind::Net => net(parser, found),
        Kind::Port | Kind::PortRange => ports(parser, found, kind),
        Kind::Proto => proto(parser, found),
    }
}

/// An address as the language writes it: without the dotted end that some have.
fn plain(address: Ipv6Addr) -> String {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => segments.map(|segment| format!("{segment:x}")).join(":"),
        _ => address.to_string(),
    }
}

fn value(parser: &mut Parser<'_>, what: &str) -> Result<Word, FilterError> {
    match parser.peek().cloned() {
        Some(word)
            if !word.quoted
                && word.text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':') =>
        {
            parser.take();
            Ok(word)
        }
        _ => Err(parser.fault(format!("{what} is missing here"), UNDERSTOOD)),
    }
}

fn refused(parser: &Parser<'_>, word: &Word, message: &str, help: &str) -> FilterError {
    FilterError::new(parser.text, word.span.clone(), format!("`{}` {message}", word.text), help)
}

fn number<T: TryFrom<u64>>(word: &Word) -> Option<T> {
    let text = word.text.as_str();
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    T::try_from(number.ok()?).ok()
}

/// The conditions on both addresses of every header that has them.
fn addresses(
    parser: &Parser<'_>,
    found: Qualifiers,
    word: &Word,
    condition: &str,
    six: bool,
) -> Result<Expression, FilterError> {
    let headers: &[(Header, &str, &str)] = match (found.protocol, six) {
        (None, false) => {
            &[(Header::Ipv4, "ipv4.src", "ipv4.dst"), (Header::Arp, "arp.sender_ip", "arp.target_ip")]
        }
        (Some(Protocol::Ip), false) => &[(Header::Ipv4, "ipv4.src", "ipv4.dst")],
        (Some(Protocol::Arp), false) => &[(Header::Arp, "arp.sender_ip", "arp.target_ip")],
        (None | Some(Protocol::Ip6), true) => &[(Header::Ipv6, "ipv6.src", "ipv6.dst")],
        _ => {
            return Err(refused(
                parser,
                word,
                "is no address of this protocol",
                "`host` and `net` go with `ip` and `arp` (IPv4), `ip6` (IPv6), `ether` (MAC), or none; join others by `and`: `tcp and host 10.0.0.1`",
            ));
        }
    };
    let each = headers.iter().map(|&(header, source, destination)| {
        both(found.direction, |from| {
            Expression::made(header, format!("{} {condition}", if from { source } else { destination }))
        })
    });
    Ok(Expression::joined(each.collect(), Expression::Any))
}

fn both(direction: Option<Direction>, made: impl Fn(bool) -> Expression) -> Expression {
    match direction {
        Some(Direction::Source) => made(true),
        Some(Direction::Destination) => made(false),
        Some(Direction::Both) | None => Expression::Any(vec![made(true), made(false)]),
    }
}

fn ether(parser: &mut Parser<'_>, found: Qualifiers) -> Result<Expression, FilterError> {
    let word = value(parser, "an Ethernet address")?;
    let bytes: Vec<&str> = word.text.split(':').collect();
    if bytes.len() != 6 || bytes.iter().any(|byte| byte.len() > 2 || u8::from_str_radix(byte, 16).is_err()) {
        return Err(refused(
            parser,
            &word,
            "is not an Ethernet address",
            "write six bytes: `ether host 02:00:00:00:00:01`",
        ));
    }
    let address = bytes.iter().map(|byte| format!("{byte:0>2}")).collect::<Vec<_>>().join(":").to_lowercase();
    Ok(both(found.direction, |from| {
        let field = if from { "src" } else { "dst" };
        Expression::made(Header::Ethernet, format!("ethernet.{field} == {address}"))
    }))
}

fn net(parser: &mut Parser<'_>, found: Qualifiers) -> Result<Expression, FilterError> {
    let word = value(parser, "a network")?;
    let help = "write `net 10.0.0.0/8`, `net 10.0.0.0 mask 255.0.0.0`, `net 10.1` or `net fd00::/8`";
    if let Ok(address) = word.text.parse::<Ipv6Addr>() {
        let length = length_of(parser, 128, help)?.unwrap_or(128);
        if length < 128 && u128::from(address) << length != 0 {
            return Err(refused(parser, &word, &format!("has bits set behind its first {length}"), help));
        }
        return addresses(parser, found, &word, &format!("in {}/{length}", plain(address)), true);
    }
    let parts: Option<Vec<u8>> = word.text.split('.').map(|part| part.parse().ok()).collect();
    let Some(parts) = parts.filter(|parts| parts.len() <= 4) else {
        return Err(refused(parser, &word, "is not a network", help));
    };
    let mut bytes = [0; 4];
    bytes[..parts.len()].copy_from_slice(&parts);
    let address = Ipv4Addr::from(bytes);
    let length = if parser.taken("mask") {
        let mask = value(parser, "a mask")?;
        let bits = mask.text.parse::<Ipv4Addr>().map(u32::from);
        match bits {
            Ok(bits) if bits.leading_ones() + bits.trailing_zeros() == 32 || bits == 0 => {
                bits.leading_ones() as u8
            }
            _ => return Err(refused(parser, &mask, "is not a mask of leading bits", help)),
        }
    } else {
        length_of(parser, 32, help)?.unwrap_or(8 * parts.len() as u8)
    };
    if length < 32 && u32::from(address) << length != 0 {
        return Err(refused(parser, &word, &format!("has bits set behind its first {length}"), help));
    }
    addresses(parser, found, &word, &format!("in {address}/{length}"), false)
}

fn length_of(parser: &mut Parser<'_>, most: u8, help: &str) -> Result<Option<u8>, FilterError> {
    if !parser.taken("/") {
        return Ok(None);
    }
    let word = value(parser, "the length of the prefix")?;
    match number::<u8>(&word).filter(|&length| length <= most) {
        Some(length) => Ok(Some(length)),
        None => Err(refused(parser, &word, &format!("is not a length of at most {most}"), help)),
    }
}

fn ports(parser: &mut Parser<'_>, found: Qualifiers, kind: Kind) -> Result<Expression, FilterError> {
    let headers: &[(Header, &str)] = match found.protocol {
        None => &[(Header::Tcp, "tcp"), (Header::Udp, "udp"), (Header::Sctp, "sctp")],
        Some(Protocol::Tcp) => &[(Header::Tcp, "tcp")],
        Some(Protocol::Udp) => &[(Header::Udp, "udp")],
        Some(Protocol::Sctp) => &[(Header::Sctp, "sctp")],
        Some(_) => {
            return Err(
                parser.fault("this protocol has no ports", "`port` goes with `tcp`, `udp`, `sctp` or none")
            );
        }
    };
    let first = port(parser)?;
    let condition = if parser.peek().is_some_and(|word| word.text == "-") {
        if kind == Kind::Port {
            return Err(parser.fault("a range of ports is a `portrange`", "write `portrange 80-90`"));
        }
        parser.take();
        let last = port(parser)?;
        format!("in {}..{}", first.min(last), first.max(last))
    } else {
        format!("== {first}")
    };
    let each = headers.iter().map(|&(header, name)| {
        both(found.direction, |from| {
            Expression::made(header, format!("{name}.{} {condition}", if from { "src" } else { "dst" }))
        })
    });
    Ok(Expression::joined(each.collect(), Expression::Any))
}

fn port(parser: &mut Parser<'_>) -> Result<u16, FilterError> {
    let word = value(parser, "the number of a port")?;
    let named = SERVICES.iter().find(|(name, _)| *name == word.text).map(|&(_, port)| port);
    match named.or_else(|| number(&word)) {
        Some(port) => Ok(port),
        None => Err(refused(
            parser,
            &word,
            "is not the number of a port",
            "ports go from 0 to 65535; of names only the best known are understood, such as http and domain; the gateway's ports are `port == 1`",
        )),
    }
}

/// Behind an IP header: the protocol of this number.
fn ip_protocol(number: u8, header: Option<Header>) -> Expression {
    let mut parts = vec![
        Expression::made(Header::Ipv4, format!("ipv4.proto == {number}")),
        Expression::made(Header::Ipv6, format!("ipv6.next == {number}")),
        Expression::made(Header::Fragment, format!("fragment.next == {number}")),
    ];
    parts.extend(header.map(|header| Expression::made(header, "true")));
    Expression::Any(parts)
}

fn kind(number: u16) -> Expression {
    let text = Piece::Text(format!(" == {number:#06x}"), 0..0);
    Expression::of([Header::Kind], vec![Piece::Kind, text])
}

/// A protocol alone.
fn present(parser: &Parser<'_>, protocol: Protocol, start: Option<usize>) -> Result<Expression, FilterError> {
    Ok(match protocol {
        Protocol::Ether => {
            let start = start.unwrap_or(0);
            let message = "`ether` alone says nothing";
            return Err(FilterError::new(
                parser.text,
                start..start + 5,
                message,
                "say `ether host …` or `ether proto …`",
            ));
        }
        Protocol::Ip => kind(0x0800),
        Protocol::Ip6 => kind(0x86dd),
        Protocol::Arp => kind(0x0806),
        Protocol::Tcp => ip_protocol(6, Some(Header::Tcp)),
        Protocol::Udp => ip_protocol(17, Some(Header::Udp)),
        Protocol::Sctp => ip_protocol(132, Some(Header::Sctp)),
        Protocol::Icmp => Expression::made(Header::Ipv4, "ipv4.proto == 1"),
        Protocol::Icmp6 => Expression::Any(vec![
            Expression::made(Header::Ipv6, "ipv6.next == 58"),
            Expression::made(Header::Fragment, "fragment.next == 58"),
            Expression::made(Header::Icmpv6, "true"),
        ]),
    })
}

fn proto(parser: &mut Parser<'_>, found: Qualifiers) -> Result<Expression, FilterError> {
    // pcap-filter has a backslash before names that are its keywords too.
    parser.taken("\\");
    let word = value(parser, "a protocol")?;
    let help = "write its number, or a name such as tcp, udp, icmp, icmp6, gre, esp, ospf; behind `ether` ip, ip6 or arp";
    if found.protocol == Some(Protocol::Ether) {
        let named = match word.text.as_str() {
            "ip" => Some(0x0800),
            "arp" => Some(0x0806),
            "rarp" => Some(0x8035),
            "ip6" => Some(0x86dd),
            _ => number::<u16>(&word),
        };
        return named.map(kind).ok_or_else(|| refused(parser, &word, "is not the type of a frame", help));
    }
    let named = match word.text.as_str() {
        "icmp" => Some(1),
        "igmp" => Some(2),
        "tcp" => Some(6),
        "udp" => Some(17),
        "gre" => Some(47),
        "esp" => Some(50),
        "ah" => Some(51),
        "icmp6" => Some(58),
        "ospf" => Some(89),
        "vrrp" => Some(112),
        "sctp" => Some(132),
        _ => number::<u8>(&word),
    };
    let Some(number) = named else { return Err(refused(parser, &word, "is not a protocol", help)) };
    match found.protocol {
        None => Ok(ip_protocol(number, None)),
        Some(Protocol::Ip) => Ok(Expression::made(Header::Ipv4, format!("ipv4.proto == {number}"))),
        Some(Protocol::Ip6) => Ok(Expression::Any(vec![
            Expression::made(Header::Ipv6, format!("ipv6.next == {number}")),
            Expression::made(Header::Fragment, format!("fragment.next == {number}")),
        ])),
        Some(_) => Err(refused(parser, &word, "does not stand behind this protocol", help)),
    }
}

fn vlan(parser: &mut Parser<'_>) -> Result<Expression, FilterError> {
    parser.take();
    let Some(word) =
        parser.peek().cloned().filter(|word| word.text.starts_with(|first: char| first.is_ascii_digit()))
    else {
        return Ok(Expression::made(Header::Vlan, "true"));
    };
    parser.take();
    match number::<u16>(&word).filter(|&id| id < 4096) {
        Some(id) => Ok(Expression::made(Header::Vlan, format!("vlan.id == {id}"))),
        None => Err(refused(parser, &word, "is not the number of a VLAN", "they go from 0 to 4095")),
    }
}

fn length(parser: &mut Parser<'_>) -> Result<Expression, FilterError> {
    let less = parser.take().is_some_and(|word| word.text == "less");
    let word = value(parser, "a length")?;
    let Some(bytes) = number::<u32>(&word) else {
        return Err(refused(parser, &word, "is not a length in bytes", "write `less 128` or `greater 1000`"));
    };
    let condition = if less { format!(" <= {bytes}") } else { format!(" >= {bytes}") };
    Ok(Expression::of([], vec![Piece::Length, Piece::Text(condition, word.span)]))
}

fn group(parser: &mut Parser<'_>, protocol: Option<Protocol>) -> Result<Expression, FilterError> {
    let broadcast = parser.peek().is_some_and(|word| word.text == "broadcast");
    let expression = match (protocol, broadcast) {
        (None | Some(Protocol::Ether), true) => {
            Expression::made(Header::Ethernet, "ethernet.dst == ff:ff:ff:ff:ff:ff")
        }
        (None | Some(Protocol::Ether), false) => Expression::made(Header::Ethernet, "is_group(ethernet.dst)"),
        (Some(Protocol::Ip), false) => Expression::made(Header::Ipv4, "ipv4.dst in 224.0.0.0/3"),
        (Some(Protocol::Ip6), false) => Expression::made(Header::Ipv6, "ipv6.dst in ff00::/8"),
        _ => {
            return Err(parser.fault(
                "this is not understood",
                "`ether broadcast`, `ether multicast`, `ip multicast` and `ip6 multicast` are",
            ));
        }
    };
    parser.take();
    Ok(expression)
}
