//! One line of an access list: whom it permits or denies.

use super::object_group::{ObjectGroups, Service};
use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::conditions::Conditions;
use crate::region::Set;
use crate::ruleset::Part;
use crate::services;
use crate::text::{Line, Word, shown};
use std::sync::Arc;

pub(super) const EXTENDED: &str =
    "an extended line is written `permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS]`";

/// What one line decides.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) allow: bool,
    pub(crate) log: bool,
    pub(crate) line: u32,
    pub(crate) text: Arc<str>,
    /// The packets that the line fits: those of the first, and if there is a second one, later fragments.
    pub(crate) packets: Vec<Conditions>,
}

impl Entry {
    /// Whether both say the same about the same packets.
    pub(super) fn is_same(&self, other: &Entry) -> bool {
        self.allow == other.allow && self.packets == other.packets
    }
}

/// The words of a line that are not read yet.
pub(super) struct Words<'a, 'b> {
    line: Line<'a>,
    words: std::slice::Iter<'b, Word<'a>>,
}

impl<'a, 'b> Words<'a, 'b> {
    pub(super) fn new(line: Line<'a>, words: &'b [Word<'a>]) -> Self {
        Self { line, words: words.iter() }
    }

    pub(super) fn next(&mut self, what: &str) -> Result<Word<'a>, ImportError> {
        let missing = || self.line.error_at_end(format!("{what} is missing"), EXTENDED);
        self.words.next().copied().ok_or_else(missing)
    }

    /// The next word, which stays.
    pub(super) fn ahead(&self) -> Option<Word<'a>> {
        self.words.as_slice().first().copied()
    }

    fn peek(&self) -> Option<&'a str> {
        self.ahead().map(|word| word.text)
    }
}

/// What one line of a list decides: nothing for a remark.
pub(super) fn entry(
    line: Line<'_>,
    words: &[Word<'_>],
    extended: bool,
    groups: &ObjectGroups,
) -> Result<Option<Entry>, ImportError> {
    let mut words = Words::new(line, words);
    let action = words.next("`permit` or `deny`")?;
    let allow = match action.text {
        "permit" => true,
        "deny" => false,
        "remark" => return Ok(None),
        other => {
            let what = format!("`{}` is neither `permit` nor `deny`", shown(other));
            return Err(action.error(what, "what a list evaluates or remembers besides is not known here"));
        }
    };
    let mut packets = vec![Conditions::new(AddressFamily::V4)];
    let mut log = false;
    if extended {
        log = extended_matches(&mut words, &mut packets, allow, groups)?;
    } else {
        let source = addresses(&mut words, false, groups)?;
        packets[0].one_of(&source, &[Part::Source], false);
        if words.peek() == Some("log") {
            words.next("`log`")?;
            log = true;
        }
        if let Some(word) = words.ahead() {
            return Err(word.too_many("a standard line is written `permit|deny SOURCE [WILDCARD]`"));
        }
    }
    Ok(Some(Entry { allow, log, line: line.number, text: line.text.trim().into(), packets }))
}

/// Narrows the packets to what a line of an extended list says. Ports, types and flags are not in later
/// fragments: a line that permits takes those whose addresses and protocol fit, a line that denies takes none
/// (Cisco, "Access Control Lists and IP Fragments").
fn extended_matches(
    words: &mut Words<'_, '_>,
    packets: &mut Vec<Conditions>,
    allow: bool,
    groups: &ObjectGroups,
) -> Result<bool, ImportError> {
    let mut pieces = Conditions::new(AddressFamily::V4);
    let whole = &mut packets[0];
    let (mut protocol, mut looks_into) = (None, false);
    let by_services = words.peek() == Some("object-group");
    if by_services {
        words.next("`object-group`")?;
        let services = groups.services(words.next("the name of the object group")?)?;
        looks_into = services.iter().any(Service::looks_into_header);
        whole.any_of(services.iter().map(Service::of_whole_packets).collect(), false);
        pieces.any_of(services.iter().filter_map(Service::of_later_fragments).collect(), false);
    } else {
        let name = words.next("the protocol")?;
        protocol = match name.text {
            "ip" => None,
            text => Some(
                services::protocol(text)
                    .map_or_else(|| name.number(255, "protocol").map(|number| number as u8), Ok)?,
            ),
        };
        if let Some(protocol) = protocol {
            whole.is(Set::exact(protocol.into()), Part::Protocol, false);
            pieces.is(Set::exact(protocol.into()), Part::Protocol, false);
        }
    }
    for (address_part, port_part) in
        [(Part::Source, Part::SourcePort), (Part::Destination, Part::DestinationPort)]
    {
        let sets = addresses(words, true, groups)?;
        whole.one_of(&sets, &[address_part], false);
        pieces.one_of(&sets, &[address_part], false);
        if let Some(sets) = ports(words, protocol)? {
            looks_into = true;
            whole.one_of(&sets, &[port_part], false);
        }
    }
    if let Some(message) = icmp(words, protocol == Some(1))? {
        looks_into = true;
        whole.any_of(vec![message], false);
    }
    let (mut log, mut flags, mut fragments) = (false, Vec::new(), None);
    while let Some(word) = words.words.next().copied() {
        let flag = |bits: u128| vec![(Part::TcpFlags, Set::masked(8, bits, bits))];
        match (word.text, protocol) {
            ("log" | "log-input", _) => log = true,
            ("fragments", _) => fragments = Some(word),
            ("established", Some(6)) => flags.extend([flag(0x10), flag(0x04)]),
            ("fin", Some(6)) => flags.push(flag(0x01)),
            ("syn", Some(6)) => flags.push(flag(0x02)),
            ("rst", Some(6)) => flags.push(flag(0x04)),
            ("psh", Some(6)) => flags.push(flag(0x08)),
            ("ack", Some(6)) => flags.push(flag(0x10)),
            ("urg", Some(6)) => flags.push(flag(0x20)),
            (text, _) => {
                let what = format!("`{}` asks for something for which there is no column", shown(text));
                return Err(
                    word.error(what, "a rule sees addresses, protocol, ports, ICMP types and TCP flags")
                );
            }
        }
    }
    if !flags.is_empty() {
        looks_into = true;
        whole.any_of(flags, false);
    }
    match (fragments, looks_into) {
        (Some(word), true) => {
            let advice = "later fragments have neither; ask for addresses and protocol alone";
            return Err(word.error("`fragments` stands behind ports, types or flags", advice));
        }
        (Some(_), false) => whole.is(Set::exact(1), Part::Fragment, false),
        (None, true) => {
            if !by_services {
                whole.header();
                pieces.is(Set::exact(1), Part::Fragment, false);
            }
            if allow {
                packets.push(pieces);
            }
        }
        (None, false) => {}
    }
    Ok(log)
}

/// The addresses that a line asks for at one end.
fn addresses(
    words: &mut Words<'_, '_>,
    wildcard_needed: bool,
    groups: &ObjectGroups,
) -> Result<Vec<Set>, ImportError> {
    const ADVICE: &str = "write `any`, `host ADDRESS` or `ADDRESS WILDCARD`";
    let parse = |word: Word<'_>| ip4(word, ADVICE);
    let first = words.next("an address")?;
    match first.text {
        "any" => Ok(vec![Set::prefix(32, 0, 0)]),
        "host" => Ok(vec![Set::exact(parse(words.next("the address of the host")?)?)]),
        "object-group" => groups.addresses(words.next("the name of the object group")?),
        _ => {
            let address = parse(first)?;
            let is_address = words.peek().is_some_and(|text| address::parse_v4(text.as_bytes()).is_some());
            if !wildcard_needed && !is_address {
                return Ok(vec![Set::exact(address)]);
            }
            let wildcard = parse(words.next("the wildcard mask")?)?;
            Ok(vec![Set::masked(32, address & !wildcard, !wildcard & host_mask(32, 0))])
        }
    }
}

/// An address of IPv4.
pub(super) fn ip4(word: Word<'_>, advice: &str) -> Result<u128, ImportError> {
    let wrong = || word.error(format!("`{}` is no IPv4 address", shown(word.text)), advice);
    address::parse_v4(word.text.as_bytes()).map(u128::from).ok_or_else(wrong)
}

/// The ports that a line asks for; `None` if it does not.
pub(super) fn ports(
    words: &mut Words<'_, '_>,
    protocol: Option<u8>,
) -> Result<Option<Vec<Set>>, ImportError> {
    let Some(operator) = words.peek().filter(|text| matches!(*text, "eq" | "neq" | "lt" | "gt" | "range"))
    else {
        return Ok(None);
    };
    let word = words.next("an operator")?;
    if !matches!(protocol, Some(6 | 17)) {
        return Err(word.error("ports are asked for where the protocol is neither tcp nor udp", EXTENDED));
    }
    let number = |word: Word<'_>| match services::port(word.text, protocol) {
        Some(port) => Ok(u128::from(port)),
        None => word.number(0xffff, "port").map(u128::from),
    };
    let word = words.next("the port")?;
    let first = number(word)?;
    let empty = |what: &str| Err(word.error(what.to_owned(), "remove the line, or ask for other ports"));
    let sets = match operator {
        "neq" => Set::exact(first).complement(16),
        "lt" if first == 0 => return empty("no port is below 0"),
        "lt" => vec![Set::Range { low: 0, high: first - 1 }],
        "gt" if first == 0xffff => return empty("no port is above 65535"),
        "gt" => vec![Set::Range { low: first + 1, high: 0xffff }],
        "range" => {
            let last = number(words.next("the last port")?)?;
            // IOS puts the smaller one first by itself.
            vec![Set::Range { low: first.min(last), high: first.max(last) }]
        }
        _ => {
            let mut sets = vec![Set::exact(first)];
            // `eq` takes a list.
            while let Some(next) = words.ahead() {
                let Ok(port) = number(next) else { break };
                sets.push(Set::exact(port));
                words.words.next();
            }
            sets
        }
    };
    Ok(Some(sets))
}

/// The message of ICMP that a line asks for.
pub(super) fn icmp(
    words: &mut Words<'_, '_>,
    is_icmp: bool,
) -> Result<Option<Vec<(Part, Set)>>, ImportError> {
    let Some(word) = words.ahead().filter(|_| is_icmp) else { return Ok(None) };
    let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
    let (kind, mut code) = match services::icmp(word.text, false) {
        Some(message) => message,
        None if is_number => (word.number(255, "ICMP type")? as u8, None),
        None => return Ok(None),
    };
    words.words.next();
    if let (true, Some(next)) = (is_number, words.ahead())
        && next.text.bytes().all(|byte| byte.is_ascii_digit())
    {
        code = Some(next.number(255, "ICMP code")? as u8);
        words.words.next();
    }
    let kind = (Part::IcmpType, Set::exact(kind.into()));
    let code = code.map(|code| (Part::IcmpCode, Set::exact(code.into())));
    Ok(Some([kind].into_iter().chain(code).collect()))
}
