//! Standard and extended access lists of IOS configurations, by number or by name.
//!
//! ```text
//! access-list 3 permit 10.0.0.0 0.255.255.255                  a standard list looks at the source only
//! access-list 101 deny tcp any host 192.0.2.1 range 137 139    an extended one at both ends
//! ip access-list extended inACL                                its lines follow, indented or not
//!  10 permit udp 10.0.0.0 0.0.255.255 eq domain any log        the number says its place in the list
//! ```
//!
//! A one in a wildcard mask is a bit that is not looked at. What no line permits is denied. Passed over are
//! remarks, comments, lists that are not of IPv4 ([`OTHER_LISTS`]), settings of lists ([`SETTINGS`]), and
//! commands that do not begin with the words of a list; a line with `permit` or `deny` that stands in no list
//! is refused.

use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::region::{Region, Set};
use crate::ruleset::{ChainPolicy, Decision, ImportedRules, Part};
use crate::services;
use crate::text::{Line, Word, lines, place, shown};
use std::collections::{BTreeMap, HashMap};

/// How strictly to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessListOptions {
    /// Lines that cannot be kept are left out and reported, instead of an error for all.
    pub lenient: bool,
}

/// An access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// Its number or name.
    pub name: String,
    /// Whether its lines look at more than the source.
    pub extended: bool,
    /// Its first line.
    pub line: u32,
    /// Its rules; what no line permits is denied.
    pub rules: ImportedRules,
}

/// Reads all access lists of a configuration, in the order in which they start.
///
/// # Errors
/// The first line of an access list that is none, or that means more than a rule can say; a last line without
/// an end that is not `end`, as the configuration may be cut there.
pub fn access_lists(text: &[u8], options: &AccessListOptions) -> Result<Vec<AccessList>, ImportError> {
    let mut lists = Lists { options: *options, open: Vec::new(), numbers: HashMap::new() };
    let mut mode = Mode::Elsewhere;
    let mut last = "";
    for line in lines(text)? {
        last = line.text;
        let words: Vec<Word<'_>> = line.words().collect();
        mode = lists.line(mode, line, &words)?;
    }
    if text.last().is_some_and(|byte| *byte != b'\n') && last.trim_end() != "end" {
        let (line, column) = place(text, text.len());
        let what = "the last line has no end: the configuration may be cut off here";
        return Err(ImportError::new(line, column, what, "end the line if it is whole"));
    }
    Ok(lists.finish())
}

/// Where in a configuration a line stands.
#[derive(Clone, Copy)]
enum Mode {
    /// Behind `ip access-list …`: lines are of this list, indented or not, until another command or `exit`.
    List(usize),
    /// Behind the start of a list of another kind, of which lines with `permit` and `deny` are as well.
    OtherList,
    /// Anywhere else: a line with `permit` or `deny` has no meaning.
    Elsewhere,
}

/// The starts of lists whose lines say `permit` or `deny` and are not about IPv4 packets.
const OTHER_LISTS: [[&str; 2]; 8] = [
    ["ipv6", "access-list"],
    ["mac", "access-list"],
    ["arp", "access-list"],
    ["ip", "community-list"],
    ["ip", "extcommunity-list"],
    ["ip", "prefix-list"],
    ["ipv6", "prefix-list"],
    ["ip", "as-path"],
];

/// What stands behind `ip access-list` or `access-list` and says nothing about packets: how often logs are
/// written, and how lists are kept in memory.
const SETTINGS: [&str; 3] = ["log-update", "logging", "compiled"];

const NO_LIST: &str = "put it behind the line `ip access-list standard|extended NAME` of its list";

const SHAPE: &str = "a line is written `access-list NUMBER permit|deny …`";
const EXTENDED: &str =
    "an extended line is written `permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS]`";

struct Open {
    list: AccessList,
    /// Its lines by their numbers, which say their order; a line without a number comes last.
    entries: BTreeMap<u64, Vec<Decision>>,
    refused: Vec<ImportError>,
}

/// The largest number of a line of a list, and the distance of those that IOS gives by itself.
const LARGEST: u64 = i32::MAX as u64;
const STEP: u64 = 10;

struct Lists {
    options: AccessListOptions,
    open: Vec<Open>,
    numbers: HashMap<String, usize>,
}

impl Lists {
    /// The list of a number, which says what kind it is.
    fn numbered(&mut self, name: Word<'_>) -> Result<usize, ImportError> {
        let number = name.number(9999, "number of an access list")?;
        let extended = match number {
            1..=99 | 1300..=1999 => false,
            100..=199 | 2000..=2699 => true,
            _ => {
                let what = format!("access list {number} is none of IP");
                return Err(name.error(what, "lists of IP are 1-199 and 1300-2699"));
            }
        };
        Ok(self.list(name.text, extended, name.line))
    }

    fn named(&mut self, line: Line<'_>, words: &[Word<'_>]) -> Result<usize, ImportError> {
        const SHAPE: &str = "a list by name starts with `ip access-list standard|extended NAME`";
        let [kind, name] = words else {
            return Err(line.error_at_end("the line has not the words of a list's start", SHAPE));
        };
        let extended = match kind.text {
            "standard" => false,
            "extended" => true,
            _ => return Err(kind.error(format!("`{}` is no kind of list", shown(kind.text)), SHAPE)),
        };
        let list = self.list(name.text, extended, line.number);
        if self.open[list].list.extended != extended {
            let what = format!(
                "the list `{}` is of the other kind on line {}",
                shown(name.text),
                self.open[list].list.line
            );
            return Err(name.error(what, "give one of them another name"));
        }
        Ok(list)
    }

    fn list(&mut self, name: &str, extended: bool, line: u32) -> usize {
        if let Some(index) = self.numbers.get(name) {
            return *index;
        }
        let rules = ImportedRules::default();
        let list = AccessList { name: name.to_owned(), extended, line, rules };
        self.open.push(Open { list, entries: BTreeMap::new(), refused: Vec::new() });
        self.numbers.insert(name.to_owned(), self.open.len() - 1);
        self.open.len() - 1
    }

    /// Reads a line where it stands, and says where the next one does.
    fn line(&mut self, mode: Mode, line: Line<'_>, words: &[Word<'_>]) -> Result<Mode, ImportError> {
        let [first, rest @ ..] = words else { return Ok(mode) };
        let lower = |word: &Word<'_>| word.text.to_ascii_lowercase();
        let (command, second) = (lower(first), rest.first().map(lower).unwrap_or_default());
        let indented = line.text.starts_with([' ', '\t']);
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let of_list = |word: &str| matches!(word, "permit" | "deny" | "remark" | "evaluate" | "dynamic");
        match (&*command, &*second) {
            (comment, _) if comment.starts_with('!') => Ok(mode),
            ("end" | "exit", "") => Ok(Mode::Elsewhere),
            ("access-list", setting) if SETTINGS.contains(&setting) => Ok(Mode::Elsewhere),
            ("access-list", _) => {
                let Some((name, rest)) = rest.split_first() else {
                    return Err(line.error_at_end("the number of the list is missing", SHAPE));
                };
                let list = self.numbered(*name)?;
                self.entry(list, line, None, rest)?;
                Ok(Mode::Elsewhere)
            }
            ("ip", "access-list") if rest.get(1).is_some_and(|word| SETTINGS.contains(&word.text)) => {
                Ok(Mode::Elsewhere)
            }
            ("ip", "access-list") => Ok(Mode::List(self.named(line, &rest[1..])?)),
            ("no" | "default", _) => self.taken_away(mode, line, first, rest),
            _ if OTHER_LISTS.iter().any(|start| start[..] == [&*command, &*second]) => Ok(Mode::OtherList),
            ("ip", short) if is_short(short) => {
                Err(rest[0].error(format!("`{}` may mean `access-list`", shown(short)), "write the word out"))
            }
            (short, _) if is_short(short) => {
                Err(first.error(format!("`{}` may mean `access-list`", shown(short)), "write the word out"))
            }
            (word, next) => {
                let is_entry = of_list(word) || (is_number(word) && (of_list(next) || next.is_empty()));
                match mode {
                    Mode::List(list) if indented || is_entry || is_number(word) => {
                        let (number, words) =
                            if is_number(word) { (Some(*first), rest) } else { (None, words) };
                        self.entry(list, line, number, words)?;
                        Ok(mode)
                    }
                    Mode::Elsewhere if is_entry && !matches!(word, "remark" | "dynamic") => {
                        Err(first.error(format!("`{}` stands in no list", shown(first.text)), NO_LIST))
                    }
                    _ if indented || is_entry => Ok(mode),
                    _ => Ok(Mode::Elsewhere),
                }
            }
        }
    }

    /// A line that takes something away: what is not there may be taken away, and nothing else.
    fn taken_away(
        &mut self,
        mode: Mode,
        line: Line<'_>,
        first: &Word<'_>,
        rest: &[Word<'_>],
    ) -> Result<Mode, ImportError> {
        let words: Vec<&str> = rest.iter().map(|word| word.text).collect();
        let name = match words[..] {
            ["access-list", name, ..] => Some(name),
            ["ip", "access-list", _, name, ..] => Some(name),
            ["access-list", ..] | ["ip", "access-list", ..] => None,
            _ if matches!(mode, Mode::List(_)) => None,
            _ if line.text.starts_with([' ', '\t']) => return Ok(mode),
            _ => return Ok(Mode::Elsewhere),
        };
        match name {
            Some(name) if !self.numbers.contains_key(name) => Ok(Mode::Elsewhere),
            _ => {
                let what = format!("`{}` takes away what stands above", shown(line.text.trim()));
                Err(first.error(what, "write the list as it is to be, without lines that take others away"))
            }
        }
    }

    fn entry(
        &mut self,
        list: usize,
        line: Line<'_>,
        number: Option<Word<'_>>,
        words: &[Word<'_>],
    ) -> Result<(), ImportError> {
        let open = &mut self.open[list];
        let entered = entry(line, words, open.list.extended).and_then(|decisions| {
            let last = open.entries.last_key_value().map_or(0, |(last, _)| *last);
            let place = match number {
                Some(number) => number.number(LARGEST, "number of a line")?,
                None => last.saturating_add(STEP),
            };
            if decisions.is_empty() {
                return Ok(());
            }
            if let (Some(number), true) = (number, open.entries.contains_key(&place)) {
                return Err(
                    number.error(format!("the list has a line {place} already"), "number each line once")
                );
            }
            open.entries.insert(place, decisions);
            Ok(())
        });
        match entered {
            Err(error) if self.options.lenient => open.refused.push(error),
            other => return other,
        }
        Ok(())
    }

    fn finish(self) -> Vec<AccessList> {
        let finish = |open: Open| {
            // A list without lines lets everything pass in IOS; nobody writes one for that.
            let default = if open.entries.is_empty() && open.refused.is_empty() { None } else { Some(false) };
            let decisions = open.entries.into_values().flatten().collect();
            let mut rules = ImportedRules::of(AddressFamily::V4, decisions, default);
            rules.policy = default.map(|_| ChainPolicy {
                line: open.list.line,
                words: format!("what no line of the list {} permits is denied", shown(&open.list.name)),
            });
            rules.refused = open.refused;
            AccessList { rules, ..open.list }
        };
        self.open.into_iter().map(finish).collect()
    }
}

/// Whether a word is the start of `access-list`, as IOS takes it from a keyboard.
fn is_short(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    (3.."access-list".len()).contains(&word.len()) && "access-list".starts_with(&word)
}

/// The words of a line that are not read yet.
struct Words<'a, 'b> {
    line: Line<'a>,
    words: std::slice::Iter<'b, Word<'a>>,
}

impl<'a> Words<'a, '_> {
    fn next(&mut self, what: &str) -> Result<Word<'a>, ImportError> {
        let missing = || self.line.error_at_end(format!("{what} is missing"), EXTENDED);
        self.words.next().copied().ok_or_else(missing)
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.as_slice().first().map(|word| word.text)
    }
}

/// What one line of a list decides: nothing for a remark.
fn entry(line: Line<'_>, words: &[Word<'_>], extended: bool) -> Result<Vec<Decision>, ImportError> {
    let mut words = Words { line, words: words.iter() };
    let action = words.next("`permit` or `deny`")?;
    let allow = match action.text {
        "permit" => true,
        "deny" => false,
        "remark" => return Ok(Vec::new()),
        other => {
            let what = format!("`{}` is neither `permit` nor `deny`", shown(other));
            return Err(action.error(what, "what a list evaluates or remembers besides is not known here"));
        }
    };
    let mut regions = vec![Region::any(AddressFamily::V4)];
    let mut log = false;
    if extended {
        log = extended_matches(&mut words, &mut regions, allow)?;
    } else {
        let source = address(&mut words, false)?;
        narrow(&mut regions, &[(Part::Source, source)]);
        if words.peek() == Some("log") {
            words.words.next();
            log = true;
        }
        if let Some(word) = words.words.next() {
            return Err(word.too_many("a standard line is written `permit|deny SOURCE [WILDCARD]`"));
        }
    }
    let text: std::sync::Arc<str> = line.text.trim().into();
    let decision =
        |region| Decision { region, allow: Some(allow), log, line: line.number, text: text.clone() };
    Ok(regions.into_iter().map(decision).collect())
}

fn narrow(regions: &mut Vec<Region>, alternatives: &[(Part, Set)]) {
    let narrowed = regions
        .iter()
        // Each column is asked for once in a line, so nothing meets there.
        .flat_map(|region| alternatives.iter().map(|(part, set)| region.with(*part, *set)))
        .collect();
    *regions = narrowed;
}

/// Narrows the regions to what a line of an extended list says. Ports, types and flags are not in later
/// fragments: a line that permits takes those whose addresses and protocol fit, a line that denies takes none
/// (Cisco, "Access Control Lists and IP Fragments").
fn extended_matches(
    words: &mut Words<'_, '_>,
    regions: &mut Vec<Region>,
    allow: bool,
) -> Result<bool, ImportError> {
    let mut pieces = vec![Region::any(AddressFamily::V4)];
    let name = words.next("the protocol")?;
    let protocol = match name.text {
        "ip" => None,
        text => Some(
            services::protocol(text)
                .map_or_else(|| name.number(255, "protocol").map(|number| number as u8), Ok)?,
        ),
    };
    if let Some(protocol) = protocol {
        narrow(regions, &[(Part::Protocol, Set::exact(protocol.into()))]);
        narrow(&mut pieces, &[(Part::Protocol, Set::exact(protocol.into()))]);
    }
    for (address_part, port_part) in
        [(Part::Source, Part::SourcePort), (Part::Destination, Part::DestinationPort)]
    {
        let set = address(words, true)?;
        narrow(regions, &[(address_part, set)]);
        narrow(&mut pieces, &[(address_part, set)]);
        if let Some(sets) = ports(words, protocol)? {
            let alternatives: Vec<(Part, Set)> = sets.into_iter().map(|set| (port_part, set)).collect();
            narrow(regions, &alternatives);
        }
    }
    if protocol == Some(1) {
        icmp(words, regions)?;
    }
    let (mut log, mut flags, mut fragments) = (false, Vec::new(), None);
    while let Some(word) = words.words.next().copied() {
        let flag = |bits: u128| (Part::TcpFlags, Set::masked(8, bits, bits));
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
        narrow(regions, &flags);
    }
    let looks_into = |region: &Region| Part::OF_TRANSPORT.iter().any(|part| region.set(*part).is_some());
    let looks_into = regions.iter().any(looks_into);
    let only = |later: u128| [(Part::Fragment, Set::exact(later))];
    match (fragments, looks_into) {
        (Some(word), true) => {
            let advice = "later fragments have neither; ask for addresses and protocol alone";
            return Err(word.error("`fragments` stands behind ports, types or flags", advice));
        }
        (Some(_), false) => narrow(regions, &only(1)),
        (None, true) => {
            narrow(regions, &only(0));
            if allow {
                narrow(&mut pieces, &only(1));
                regions.extend(pieces);
            }
        }
        (None, false) => {}
    }
    Ok(log)
}

fn address(words: &mut Words<'_, '_>, wildcard_needed: bool) -> Result<Set, ImportError> {
    const ADVICE: &str = "write `any`, `host ADDRESS` or `ADDRESS WILDCARD`";
    let parse = |word: Word<'_>| {
        let wrong = || word.error(format!("`{}` is no IPv4 address", shown(word.text)), ADVICE);
        address::parse_v4(word.text.as_bytes()).map(u128::from).ok_or_else(wrong)
    };
    let first = words.next("an address")?;
    match first.text {
        "any" => Ok(Set::prefix(32, 0, 0)),
        "host" => Ok(Set::exact(parse(words.next("the address of the host")?)?)),
        _ => {
            let address = parse(first)?;
            let is_address = words.peek().is_some_and(|text| address::parse_v4(text.as_bytes()).is_some());
            if !wildcard_needed && !is_address {
                return Ok(Set::exact(address));
            }
            let wildcard = parse(words.next("the wildcard mask")?)?;
            Ok(Set::masked(32, address & !wildcard, !wildcard & host_mask(32, 0)))
        }
    }
}

/// The ports that a line asks for; `None` if it does not.
fn ports(words: &mut Words<'_, '_>, protocol: Option<u8>) -> Result<Option<Vec<Set>>, ImportError> {
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
            while let Some(next) = words.words.as_slice().first() {
                let Ok(port) = number(*next) else { break };
                sets.push(Set::exact(port));
                words.words.next();
            }
            sets
        }
    };
    Ok(Some(sets))
}

fn icmp(words: &mut Words<'_, '_>, regions: &mut Vec<Region>) -> Result<(), ImportError> {
    let Some(word) = words.words.as_slice().first().copied() else { return Ok(()) };
    let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
    let (kind, mut code) = match services::icmp(word.text, false) {
        Some(message) => message,
        None if is_number => (word.number(255, "ICMP type")? as u8, None),
        None => return Ok(()),
    };
    words.words.next();
    if let (true, Some(next)) = (is_number, words.words.as_slice().first().copied())
        && next.text.bytes().all(|byte| byte.is_ascii_digit())
    {
        code = Some(next.number(255, "ICMP code")? as u8);
        words.words.next();
    }
    narrow(regions, &[(Part::IcmpType, Set::exact(kind.into()))]);
    if let Some(code) = code {
        narrow(regions, &[(Part::IcmpCode, Set::exact(code.into()))]);
    }
    Ok(())
}
