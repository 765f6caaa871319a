//! One `-A` line: its matches as boxes, its target as what happens.

use super::ChainOptions;
use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::chains::Target;
use crate::conditions::{Conditions, Fault, Interfaces, WITH_PORTS};
use crate::region::{Region, Set};
use crate::ruleset::Part;
use crate::services;
use crate::text::{Line, Word, number, shown};
use std::borrow::Cow;

/// A word of a rule, without its quotes.
#[derive(Clone, Debug)]
pub(super) struct Argument<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Argument<'_> {
    pub(super) fn error(&self, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.line, self.column, what, advice)
    }

    fn word(&self) -> Word<'_> {
        Word { line: self.line, column: self.column, text: &self.text }
    }
}

/// The words of a line; one in quotes may hold blanks, and `\` takes the next character as it is.
pub(super) fn words(line: Line<'_>) -> Result<Vec<Argument<'_>>, ImportError> {
    let mut words = Vec::new();
    let mut rest = line.text.char_indices().peekable();
    while let Some(&(start, first)) = rest.peek() {
        if first.is_ascii_whitespace() {
            rest.next();
            continue;
        }
        let argument = |text| Argument { text, line: line.number, column: number(start) };
        if first != '"' {
            let end = line.text[start..].find(|c: char| c.is_ascii_whitespace());
            let end = end.map_or(line.text.len(), |length| start + length);
            words.push(argument(Cow::Borrowed(&line.text[start..end])));
            while rest.next_if(|(index, _)| *index < end).is_some() {}
            continue;
        }
        rest.next();
        let mut text = String::new();
        loop {
            match rest.next() {
                Some((_, '"')) => break,
                Some((_, '\\')) => text.extend(rest.next().map(|(_, escaped)| escaped)),
                Some((_, plain)) => text.push(plain),
                None => return Err(line.error_at_end("the quotes do not end", "close them with `\"`")),
            }
        }
        words.push(argument(Cow::Owned(text)));
    }
    Ok(words)
}

/// What all rules of a dump share.
pub(super) struct Context<'a> {
    options: &'a ChainOptions,
    interfaces: Interfaces,
}

/// The conditions of a rule as they are read.
struct Matches {
    conditions: Conditions,
    /// The protocol, where the rule asks for one.
    protocol: Option<u8>,
}

/// The words of a rule that are not read yet.
struct Arguments<'a> {
    words: std::vec::IntoIter<Argument<'a>>,
    end: ImportError,
}

impl<'a> Arguments<'a> {
    fn value(&mut self, option: &Argument<'_>) -> Result<Argument<'a>, ImportError> {
        self.words.next().ok_or_else(|| ImportError {
            what: format!("`{}` has no value", shown(&option.text)),
            ..self.end.clone()
        })
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(options: &'a ChainOptions) -> Self {
        Self { options, interfaces: Interfaces::new(&options.interfaces) }
    }

    pub(super) fn into_interfaces(self) -> Interfaces {
        self.interfaces
    }

    /// What the words behind the chain's name mean.
    pub(super) fn rule(
        &mut self,
        line: Line<'_>,
        words: Vec<Argument<'_>>,
        chain: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<(Vec<Region>, Target), ImportError> {
        let end = line.error_at_end("", "a rule is written `-A CHAIN match… -j TARGET`");
        let mut arguments = Arguments { words: words.into_iter(), end };
        let mut matches = Matches { conditions: Conditions::new(self.options.family), protocol: None };
        let mut target = None;
        let mut not = None;
        while let Some(option) = arguments.words.next() {
            if option.text == "!" {
                not = Some(option);
                continue;
            }
            match &*option.text {
                "-j" | "--jump" | "-g" | "--goto" => {
                    let goto = option.text.starts_with("-g") || option.text == "--goto";
                    target = Some(target_of(&arguments.value(&option)?, goto, chain)?);
                }
                "--reject-with" if target.is_some() => drop(arguments.value(&option)?),
                _ => self.option(&option, not.take().is_some(), &mut arguments, &mut matches)?,
            }
            if let Some(not) = not.take() {
                return Err(not.error("`!` stands before nothing that can be turned round", "remove it"));
            }
        }
        let Some(target) = target else {
            let advice = "a rule decides something; remove the line if its count is not needed";
            return Err(line.error_at_end("the rule only counts packets", advice));
        };
        let regions = matches.conditions.regions(self.options.limit).map_err(|fault| match fault {
            Fault::Mixed(part) => {
                let what = format!("two matches on {} meet in no range, prefix or mask", part.name());
                ImportError::new(line.number, 1, what, "write them as one")
            }
            Fault::TooMany => {
                let what = format!("the line makes more than {} rules", self.options.limit);
                ImportError::new(line.number, 1, what, "split the line")
            }
            Fault::NoPorts => {
                ImportError::new(line.number, 1, "ports are asked for of a protocol without", "name it")
            }
        })?;
        Ok((regions, target))
    }

    fn option(
        &mut self,
        option: &Argument<'_>,
        not: bool,
        arguments: &mut Arguments<'_>,
        matches: &mut Matches,
    ) -> Result<(), ImportError> {
        let mut value = || arguments.value(option);
        match &*option.text {
            "-m" | "--match" => {
                let module = value()?;
                return self.module(&module, matches);
            }
            "--comment" => return value().map(drop),
            "-p" | "--protocol" => return protocol(&value()?, not, matches),
            "-s" | "--source" => {
                matches.conditions.is(address_set(&value()?, self.options.family)?, Part::Source, not)
            }
            "-d" | "--destination" => {
                matches.conditions.is(address_set(&value()?, self.options.family)?, Part::Destination, not);
            }
            "--src-range" => {
                matches.conditions.is(address_range(&value()?, self.options.family)?, Part::Source, not)
            }
            "--dst-range" => {
                matches.conditions.is(address_range(&value()?, self.options.family)?, Part::Destination, not)
            }
            // A piece behind the first; `! -f` is a whole packet or a first piece.
            "-f" | "--fragment" => matches.conditions.is(Set::exact(1), Part::Fragment, not),
            "-i" | "--in-interface" => return self.interface(&value()?, Part::InPort, not, matches),
            "-o" | "--out-interface" => return self.interface(&value()?, Part::OutPort, not, matches),
            "--sport" | "--source-port" => {
                return ports(&value()?, &[Part::SourcePort], not, matches);
            }
            "--dport" | "--destination-port" => {
                return ports(&value()?, &[Part::DestinationPort], not, matches);
            }
            "--sports" | "--source-ports" => return ports(&value()?, &[Part::SourcePort], not, matches),
            "--dports" | "--destination-ports" => {
                return ports(&value()?, &[Part::DestinationPort], not, matches);
            }
            "--ports" => return ports(&value()?, &[Part::SourcePort, Part::DestinationPort], not, matches),
            "--mac-source" => matches.conditions.is(mac(&value()?)?, Part::SourceMac, not),
            "--tcp-flags" => {
                looks_into(6, option, matches)?;
                let (mask, value) = (tcp_flags(&value()?)?, tcp_flags(&value()?)?);
                let Some(set) = flags_set(value, mask) else {
                    // Flags that must be set and are not looked at: the kernel compares, and finds a
                    // difference.
                    if !not {
                        matches.conditions.never();
                    }
                    return Ok(());
                };
                matches.conditions.is(set, Part::TcpFlags, not);
            }
            "--syn" => {
                looks_into(6, option, matches)?;
                matches.conditions.is(Set::masked(8, 0x02, 0x17), Part::TcpFlags, not);
            }
            "--icmp-type" => return icmp(&value()?, false, not, matches),
            "--icmpv6-type" => return icmp(&value()?, true, not, matches),
            "--ctproto" if self.options.first_packets => return protocol(&value()?, not, matches),
            "--ctorigsrc" if self.options.first_packets => {
                matches.conditions.is(address_set(&value()?, self.options.family)?, Part::Source, not);
            }
            "--ctorigsrcport" if self.options.first_packets => {
                return ports(&value()?, &[Part::SourcePort], not, matches);
            }
            "--state" | "--ctstate" if self.options.first_packets => {
                // No connection is known before its first packet; a packet that starts none is not read for.
                let fits = value()?.text.split(',').any(|state| state == "NEW");
                if fits == not {
                    matches.conditions.never();
                }
            }
            _ => return Err(unknown(option)),
        }
        Ok(())
    }

    fn module(&self, module: &Argument<'_>, matches: &mut Matches) -> Result<(), ImportError> {
        let cause = match &*module.text {
            // These fit no later fragment, even where they ask for nothing.
            "tcp" => return looks_into(6, module, matches),
            "udp" => return looks_into(17, module, matches),
            "dccp" => return looks_into(33, module, matches),
            "sctp" => return looks_into(132, module, matches),
            "udplite" => return looks_into(136, module, matches),
            "icmp" => return looks_into(1, module, matches),
            "icmp6" | "icmpv6" => return looks_into(58, module, matches),
            "multiport" => {
                matches.conditions.header();
                return Ok(());
            }
            "iprange" | "mac" | "comment" => return Ok(()),
            "state" | "conntrack" if self.options.first_packets => return Ok(()),
            "state" | "conntrack" | "connbytes" | "connlabel" | "connlimit" | "connmark" | "helper"
            | "cluster" => "asks what is known of the packet's connection",
            "limit" | "hashlimit" | "recent" | "rateest" | "quota" | "nfacct" => "remembers earlier packets",
            "statistic" => "leaves the answer to chance or to a count",
            "owner" | "cgroup" | "socket" => "asks for a process of this machine",
            "addrtype" | "rpfilter" => "asks for this machine's own addresses and routes",
            "set" => "asks for a set that is not in the dump",
            "string" | "bpf" | "u32" => "looks into the packet's bytes",
            "mark" | "devgroup" | "physdev" | "policy" | "realm" => "asks what was done to the packet before",
            "time" => "asks for the time of day",
            _ => "looks at something for which there is no column",
        };
        let what = format!("the match `{}` {cause}", shown(&module.text));
        Err(module.error(what, "a stateless rule sees addresses, protocol, ports, flags and interfaces only"))
    }

    fn interface(
        &mut self,
        name: &Argument<'_>,
        part: Part,
        not: bool,
        matches: &mut Matches,
    ) -> Result<(), ImportError> {
        let sets = match name.text.strip_suffix('+') {
            Some(start) => self.interfaces.starting(start),
            None => self.interfaces.one(&name.text).map(|set| vec![set]),
        };
        let sets = sets.map_err(|fault| {
            let (what, advice) = fault.words(&name.text);
            name.error(what, advice)
        })?;
        matches.conditions.one_of(&sets, &[part], not);
        Ok(())
    }
}

fn target_of(
    name: &Argument<'_>,
    goto: bool,
    chain: &dyn Fn(&str) -> Option<usize>,
) -> Result<Target, ImportError> {
    if let Some(number) = chain(&name.text) {
        return Ok(if goto { Target::Goto(number) } else { Target::Jump(number) });
    }
    let cause = match &*name.text {
        "ACCEPT" if !goto => return Ok(Target::Decide(true)),
        "DROP" | "REJECT" if !goto => return Ok(Target::Decide(false)),
        "RETURN" if !goto => return Ok(Target::Return),
        "LOG" | "NFLOG" | "ULOG" | "TRACE" | "AUDIT" => "writes a log and decides nothing",
        "DNAT" | "SNAT" | "MASQUERADE" | "NETMAP" | "REDIRECT" | "TPROXY" => "changes addresses",
        "MARK" | "CONNMARK" | "SECMARK" | "CONNSECMARK" | "CLASSIFY" => "marks the packet for others",
        "TCPMSS" | "TOS" | "DSCP" | "TTL" | "HL" | "ECN" | "CHECKSUM" | "TCPOPTSTRIP" => "changes the packet",
        "NOTRACK" | "CT" | "SYNPROXY" => "tells how connections are followed",
        "SET" => "changes a set",
        "QUEUE" | "NFQUEUE" => "leaves the decision to a process",
        _ => {
            let what = format!("there is no chain or target `{}`", shown(&name.text));
            return Err(name.error(what, "declare the chain with a line `:NAME - [0:0]`"));
        }
    };
    let what = format!("the target {} {cause}", shown(&name.text));
    Err(name.error(what, "a rule means ACCEPT, DROP, REJECT, RETURN or a jump to a chain"))
}

fn unknown(option: &Argument<'_>) -> ImportError {
    let cause = match &*option.text {
        "--ctorigdst" | "--ctorigdstport" => "asks where the packet was sent to before it was redirected",
        "--tcp-option" => "looks into the options of the TCP header, for which there is no column",
        _ => "is not known here",
    };
    let what = format!("`{}` {cause}", shown(&option.text));
    option.error(what, "a stateless rule sees addresses, protocol, ports, flags and interfaces only")
}

fn protocol(name: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let number = match name.word().number(255, "protocol") {
        Ok(number) => number as u8,
        Err(_) if name.text == "all" => 0,
        Err(_) => services::protocol(&name.text.to_ascii_lowercase()).ok_or_else(|| {
            name.error(format!("the protocol `{}` is not known", shown(&name.text)), "write its number")
        })?,
    };
    match (number, not) {
        // 0 is any protocol here, not the hop-by-hop header of IPv6.
        (0, false) => {}
        (0, true) => matches.conditions.never(),
        _ => {
            matches.protocol = (!not).then_some(number);
            matches.conditions.is(Set::exact(number.into()), Part::Protocol, not);
        }
    }
    Ok(())
}

fn address_set(value: &Argument<'_>, family: AddressFamily) -> Result<Set, ImportError> {
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
        Some(mask) => match mask.parse::<u8>().ok().filter(|length| *length <= width) {
            Some(length) => host_mask(width, 0) & !host_mask(width, length),
            None => of_family(mask).ok_or_else(wrong)?,
        },
    };
    // As iptables does, bits of the address that the mask does not look at are left aside.
    Ok(Set::masked(width, bits & mask, mask))
}

fn address_range(value: &Argument<'_>, family: AddressFamily) -> Result<Set, ImportError> {
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

fn ports(value: &Argument<'_>, parts: &[Part], not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    if !matches.protocol.is_some_and(|protocol| WITH_PORTS.contains(&protocol)) {
        let advice = "put `-p tcp`, `-p udp` or another protocol with ports before it";
        return Err(value.error("ports are asked for where the protocol need not have any", advice));
    }
    matches.conditions.header();
    let port = |word: Word<'_>, empty: u64| {
        if word.text.is_empty() {
            return Ok(empty);
        }
        match services::port(word.text, matches.protocol) {
            Some(number) => Ok(number.into()),
            None => word.number(0xffff, "port"),
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

fn mac(value: &Argument<'_>) -> Result<Set, ImportError> {
    address::parse_mac(&value.text).map(Set::exact).ok_or_else(|| {
        let what = format!("`{}` is no MAC address", shown(&value.text));
        value.error(what, "write six pairs of digits, as in 02:00:00:00:00:01")
    })
}

/// The rule looks into the header of a protocol, which the rule must have asked for, and which later
/// fragments have not.
fn looks_into(protocol: u8, word: &Argument<'_>, matches: &mut Matches) -> Result<(), ImportError> {
    matches.conditions.header();
    if matches.protocol == Some(protocol) {
        return Ok(());
    }
    let what = format!("`{}` is asked for where the protocol need not be {protocol}", shown(&word.text));
    Err(word.error(what, format!("put `-p {protocol}` before it")))
}

fn tcp_flags(value: &Argument<'_>) -> Result<u8, ImportError> {
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

fn icmp(value: &Argument<'_>, v6: bool, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let (protocol, named) = (if v6 { 58 } else { 1 }, if v6 { "ipv6-icmp" } else { "icmp" });
    if matches.protocol != Some(protocol) {
        let what = format!("an ICMP type is asked for where the protocol need not be {named}");
        return Err(value.error(what, format!("put `-p {named}` before it")));
    }
    matches.conditions.header();
    let (kind, code) = match value.word().split('/') {
        _ if value.text == "any" && !v6 => (ANY_ICMP_TYPE, None),
        Some((kind, code)) => {
            (kind.number(255, "ICMP type")? as u8, Some(code.number(255, "ICMP code")? as u8))
        }
        None => match services::icmp(&value.text, v6) {
            Some(message) => message,
            None => (value.word().number(255, "ICMP type")? as u8, None),
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
