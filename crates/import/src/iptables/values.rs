//! What stands behind the options of matches: addresses, ports, flags and numbers.

use super::matches::Matches;
use super::numbers::{number, parse_number};
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::conditions::WITH_PORTS;
use crate::region::Set;
use crate::ruleset::Part;
use crate::services;
use crate::text::{Word, shown};
use policy::{HookPoint, PacketField, RuleCondition, Values};

pub(super) fn protocol(name: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let number = match number(name.word(), 255, "protocol") {
        Ok(number) => number as u8,
        Err(_) if name.text == "all" => 0,
        Err(_) => services::protocol(&name.text.to_ascii_lowercase()).ok_or_else(|| {
            name.error(format!("the protocol `{}` is not known", shown(&name.text)), "write its number")
        })?,
    };
    match (number, not) {
        // 0 is any protocol here, not the hop-by-hop header of IPv6.
        (0, false) => {}
        (0, true) => {
            let what = format!("`! -p {}` is no packet at all", shown(&name.text));
            return Err(name.error(what, "remove the line, as iptables refuses it, too"));
        }
        _ => {
            matches.protocol = (!not).then_some(number);
            matches.conditions.is(Set::exact(number.into()), Part::Protocol, not);
        }
    }
    Ok(())
}

/// The protocol that the rule asks for, wherever it stands: matches need it that stand before it.
pub(super) fn protocol_asked(words: &[Argument<'_>], family: AddressFamily) -> Option<u8> {
    let is_option = |word: &Argument<'_>| matches!(&*word.text, "-p" | "--protocol");
    let at = words.iter().position(is_option)?;
    let not = at > 0 && words[at - 1].text == "!";
    let mut asked = Matches::new(family);
    protocol(words.get(at + 1).filter(|_| !not)?, false, &mut asked).ok()?;
    asked.protocol
}

pub(super) fn address_set(value: &Argument<'_>, family: AddressFamily) -> Result<Set, ImportError> {
    let width = family.width();
    let wrong = || {
        let what = format!("`{}` is no {} address or prefix", shown(&value.text), family.name());
        value.error(what, "write an address, a prefix as in 10.0.0.0/8, or a mask as in 10.0.0.0/255.0.0.0")
    };
    let (address, mask) = match value.text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (&*value.text, None),
    };
    let of_family =
        |text: &str| address::parse(text.as_bytes()).filter(|(own, _)| *own == family).map(|(_, bits)| bits);
    let bits = of_family(address).ok_or_else(wrong)?;
    let mask = match mask {
        None => host_mask(width, 0),
        Some(mask) => match parse_number(mask)
            .and_then(|length| u8::try_from(length).ok())
            .filter(|length| *length <= width)
        {
            Some(length) => host_mask(width, 0) & !host_mask(width, length),
            None => of_family(mask).ok_or_else(wrong)?,
        },
    };
    // As iptables does, bits of the address that the mask does not look at are left aside.
    Ok(Set::masked(width, bits & mask, mask))
}

pub(super) fn address_range(value: &Argument<'_>, family: AddressFamily) -> Result<Set, ImportError> {
    let ends = value.text.split_once('-').and_then(|(low, high)| {
        let (low, high) = (address::parse(low.as_bytes())?, address::parse(high.as_bytes())?);
        (low.0 == family && high.0 == family && low.1 <= high.1).then_some((low.1, high.1))
    });
    let (low, high) = ends.ok_or_else(|| {
        let what = format!("`{}` is no range of {} addresses", shown(&value.text), family.name());
        value.error(what, "write the smaller address first, as in 10.0.0.1-10.0.0.9")
    })?;
    Ok(Set::Range { low, high })
}

/// What `--sport` and `--dport` ask of the header of TCP, UDP and the like. iptables takes a range of UDP
/// whose first port is the larger one, and Linux finds no port in it.
pub(super) fn ports_of_header(
    value: &Argument<'_>,
    part: Part,
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    if matches.protocol == Some(17)
        && let Some((low, high)) = value.text.split_once(':')
        && let (Some(low), Some(high)) = (parse_number(low), parse_number(high))
        && high < low
        && low <= 0xffff
    {
        matches.header();
        if !not {
            matches.conditions.never();
        }
        return Ok(());
    }
    one_port(value, part, not, matches)
}

/// One port or range, of an option that takes no list.
pub(super) fn one_port(
    value: &Argument<'_>,
    part: Part,
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    if value.text.contains(',') {
        let what = format!("`{}` is no port or range", shown(&value.text));
        return Err(value.error(what, "ask for a list by `-m multiport --dports`"));
    }
    ports(value, &[part], not, matches)
}

pub(super) fn ports(
    value: &Argument<'_>,
    parts: &[Part],
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    if !matches.protocol.is_some_and(|protocol| WITH_PORTS.contains(&protocol)) {
        let advice = "put `-p tcp`, `-p udp` or another protocol with ports before it";
        return Err(value.error("ports are asked for where the protocol need not have any", advice));
    }
    matches.header();
    let port = |word: Word<'_>, empty: u64| {
        if word.text.is_empty() {
            return Ok(empty);
        }
        match services::port(word.text, matches.protocol) {
            Some(number) => Ok(number.into()),
            None => number(word, 0xffff, "port"),
        }
    };
    let mut sets = Vec::new();
    for word in value.word().parts(',') {
        let (low, high) = match word.split(':') {
            Some((low, high)) => (port(low, 0)?, port(high, 0xffff)?),
            None if word.text.is_empty() => {
                return Err(word.error("a port is missing", "write a number or a range as in 1024:2047"));
            }
            None => {
                let number = port(word, 0)?;
                (number, number)
            }
        };
        if low > high {
            let what = format!("the range {low}:{high} is empty");
            return Err(word.error(what, "write the smaller port first"));
        }
        sets.push(Set::Range { low: low.into(), high: high.into() });
    }
    matches.conditions.one_of(&sets, parts, not);
    Ok(())
}

pub(super) fn mac(value: &Argument<'_>) -> Result<Set, ImportError> {
    address::parse_mac(&value.text).map(Set::exact).ok_or_else(|| {
        let what = format!("`{}` is no MAC address", shown(&value.text));
        value.error(what, "write six pairs of digits, as in 02:00:00:00:00:01")
    })
}

/// The rule looks into the header of a protocol, which the rule must have asked for, and which later
/// fragments have not.
pub(super) fn looks_into(
    protocol: u8,
    word: &Argument<'_>,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    matches.header();
    if matches.protocol == Some(protocol) {
        return Ok(());
    }
    let what = format!("`{}` is asked for where the protocol need not be {protocol}", shown(&word.text));
    Err(word.error(what, format!("put `-p {protocol}` before it")))
}

fn tcp_flag_bits(value: &Argument<'_>) -> Result<u8, ImportError> {
    const NAMES: [(&str, u8); 8] = [
        ("NONE", 0),
        ("ALL", 0x3f),
        ("FIN", 0x01),
        ("SYN", 0x02),
        ("RST", 0x04),
        ("PSH", 0x08),
        ("ACK", 0x10),
        ("URG", 0x20),
    ];
    let mut flags = 0;
    for word in value.word().parts(',') {
        let Some((_, bits)) = NAMES.iter().find(|(name, _)| *name == word.text) else {
            let what = format!("`{}` is no TCP flag", shown(word.text));
            return Err(word.error(what, "flags are FIN, SYN, RST, PSH, ACK, URG, ALL and NONE"));
        };
        flags |= bits;
    }
    Ok(flags)
}

fn flags_set(value: u8, mask: u8) -> Option<Set> {
    (value & !mask == 0).then(|| Set::masked(8, value.into(), mask.into()))
}

/// To the kernel this type of ICMP is each type with each code, whatever code stands behind it
/// (`icmp_type_code_match`).
const ANY_ICMP_TYPE: u8 = 255;

pub(super) fn icmp(
    value: &Argument<'_>,
    v6: bool,
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    let (protocol, named) = (if v6 { 58 } else { 1 }, if v6 { "ipv6-icmp" } else { "icmp" });
    if matches.protocol != Some(protocol) {
        let what = format!("an ICMP type is asked for where the protocol need not be {named}");
        return Err(value.error(what, format!("put `-p {named}` before it")));
    }
    matches.header();
    let (kind, code) = match value.word().split('/') {
        _ if value.text == "any" && !v6 => (ANY_ICMP_TYPE, None),
        Some((kind, code)) => {
            (number(kind, 255, "ICMP type")? as u8, Some(number(code, 255, "ICMP code")? as u8))
        }
        None => match services::icmp(&value.text, v6) {
            Some(message) => message,
            None => (number(value.word(), 255, "ICMP type")? as u8, None),
        },
    };
    if kind == ANY_ICMP_TYPE && !v6 {
        if not {
            matches.conditions.never();
        }
        return Ok(());
    }
    let (kind, code) = (Set::exact(kind.into()), code.map(|code| Set::exact(code.into())));
    let code = code.map(|code| (Part::IcmpCode, code));
    let message = [(Part::IcmpType, kind)].into_iter().chain(code).collect();
    matches.conditions.any_of(vec![message], not);
    Ok(())
}

/// The flags to look at, and those among them that must be set.
pub(super) fn tcp_flags(
    option: &Argument<'_>,
    not: bool,
    arguments: &mut Arguments<'_>,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    looks_into(6, option, matches)?;
    let mask = tcp_flag_bits(&arguments.value(option)?)?;
    let value = tcp_flag_bits(&arguments.value(option)?)?;
    match flags_set(value, mask) {
        Some(set) => matches.conditions.is(set, Part::TcpFlags, not),
        // Flags that must be set and are not looked at: the kernel compares, and finds a difference.
        None if !not => matches.conditions.never(),
        None => {}
    }
    Ok(())
}

/// A field that only policies know holds one of these, or none of them.
pub(super) fn holds(field: PacketField, mut ranges: Vec<(u128, u128)>, not: bool, matches: &mut Matches) {
    if not {
        let (mut outside, mut next) = (Vec::new(), 0);
        ranges.sort_unstable();
        for (low, high) in ranges {
            if low > next {
                outside.push((next, low - 1));
            }
            next = next.max(high + 1);
        }
        if next <= field.most() {
            outside.push((next, field.most()));
        }
        ranges = outside;
    }
    let values = ranges.into_iter().map(|(low, high)| Values::Range { low, high }).collect();
    matches.also(RuleCondition::Holds(field, values));
}

/// A number or a range `LOW:HIGH`, of which either end may be missing.
fn number_range(value: &Argument<'_>, most: u64, what: &str) -> Result<(u128, u128), ImportError> {
    let (low, high) = match value.word().split(':') {
        Some((low, high)) => {
            let low = if low.text.is_empty() { 0 } else { number(low, most, what)? };
            (low, if high.text.is_empty() { most } else { number(high, most, what)? })
        }
        None => {
            let number = number(value.word(), most, what)?;
            (number, number)
        }
    };
    if low > high {
        return Err(value.error(format!("the range {low}:{high} is empty"), "write the smaller number first"));
    }
    Ok((low.into(), high.into()))
}

pub(super) fn length(value: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let range = number_range(value, 0xffff, "length")?;
    holds(PacketField::Length, vec![range], not, matches);
    Ok(())
}

/// The time to live as it is when the packet comes in. Linux takes one away before it asks chains about
/// packets that it forwards, so a chain at FORWARD sees one less.
pub(super) fn time_to_live(
    option: &Argument<'_>,
    not: bool,
    arguments: &mut Arguments<'_>,
    points: &[HookPoint],
    matches: &mut Matches,
) -> Result<(), ImportError> {
    let value = arguments.value(option)?;
    let number = u128::from(number(value.word(), 255, "time to live")?);
    if not && (option.text.ends_with("-lt") || option.text.ends_with("-gt")) {
        return Err(cannot_be_turned(option));
    }
    let (low, high) = match option.text.rsplit('-').next() {
        Some("lt") if number == 0 => return no_time_to_live(&value, "below 0"),
        Some("lt") => (0, number - 1),
        Some("gt") if number == 255 => return no_time_to_live(&value, "above 255"),
        Some("gt") => (number + 1, 255),
        _ => (number, number),
    };
    let forwarded = points.contains(&HookPoint::Forward);
    if points.contains(&HookPoint::Out)
        || (forwarded && points.iter().any(|point| *point != HookPoint::Forward))
    {
        let what = "packets that Linux forwards have one less here than others, and both come to this chain";
        return Err(option.error(what, "ask in a chain for forwarded packets alone, or for others alone"));
    }
    let range = match (forwarded, low) {
        (false, _) => (low, high),
        (true, 255) => {
            if !not {
                matches.conditions.never();
            }
            return Ok(());
        }
        (true, 0) => (0, (high + 1).min(255)),
        (true, _) => (low + 1, (high + 1).min(255)),
    };
    holds(PacketField::TimeToLive, vec![range], not, matches);
    Ok(())
}

/// The error that `!` stands before an option that has no opposite.
pub(super) fn cannot_be_turned(option: &Argument<'_>) -> ImportError {
    option.error(format!("`{}` cannot be turned round", shown(&option.text)), "remove the `!`")
}

fn no_time_to_live(value: &Argument<'_>, what: &str) -> Result<(), ImportError> {
    Err(value.error(format!("no time to live is {what}"), "remove the line, or ask for another one"))
}
