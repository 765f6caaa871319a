//! Rules as nftables: the text that `nft -f` takes, and the JSON that `nft -j -f` takes.
//!
//! A rule says what the key of a packet holds, and where a packet has no ports, types or flags, the
//! key holds 0.
//! nftables has no such key: it reads a header, and reads on in the payload of a later fragment. So later
//! fragments go to a chain of their own, in which only those rules stand that 0 fits; and in the main chain a
//! rule that looks into a header is written once for each kind of header that it may meet.

use crate::ImportError;
use crate::address::{self, AddressFamily};
use crate::conditions::WITH_PORTS;
use crate::region::Set;
use crate::ruleset::{ImportedRule, ImportedRules, Part};
use crate::text::shown;
use serde_json::{Value, json};
use tables::rules::RuleField;

/// Where the rules go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportLayout {
    /// The table's name: letters, digits and `_`.
    pub table: String,
    /// The chain's name: letters, digits and `_`.
    pub chain: String,
    /// The hook that the chain is at, such as `forward`.
    pub hook: String,
    /// The protocols whose ports are in `sport` and `dport`; of others both are 0.
    pub with_ports: &'static [u8],
}

/// The protocols whose ports a program looks up, as `docs/import.md` says: TCP and UDP.
pub const PORTS_OF_PROGRAMS: &[u8] = &[6, 17];

impl Default for ExportLayout {
    fn default() -> Self {
        Self {
            table: "filter".to_owned(),
            chain: "forward".to_owned(),
            hook: "forward".to_owned(),
            with_ports: &WITH_PORTS,
        }
    }
}

/// A rule of nftables, and where it comes from.
struct Written {
    matches: Vec<Match>,
    log: bool,
    verdict: &'static str,
    line: u32,
}

/// The rules of the two chains.
struct Chains {
    main: Vec<Written>,
    /// What becomes of later fragments, if that is anything else.
    later: Option<Vec<Written>>,
}

/// One match: what is looked at, under a mask or whole, and what it must be.
#[derive(Clone)]
struct Match {
    left: Left,
    mask: Option<u128>,
    not: bool,
    right: Right,
    part: Part,
}

/// The longest name of an interface in Linux.
const LONGEST_INTERFACE: usize = 15;

#[derive(Clone)]
enum Left {
    Payload(&'static str, &'static str),
    Extension(&'static str, &'static str),
    Meta(&'static str),
}

#[derive(Clone)]
enum Right {
    One(u128),
    Range(u128, u128),
    Prefix(u128, u8),
    Ranges(Vec<(u128, u128)>),
    Names(Vec<String>),
}

/// The rules as text for `nft -f`.
///
/// # Errors
/// The line of the first rule that nftables cannot say, or that decides nothing.
pub fn write_text(rules: &ImportedRules, layout: &ExportLayout) -> Result<String, ImportError> {
    check_names(rules, layout)?;
    let (family, policy) = (rules.family(), policy(rules)?);
    let chains = chains(rules, layout)?;
    let table = if family == AddressFamily::V4 { "ip" } else { "ip6" };
    let mut text = format!("table {table} {} {{\n", layout.table);
    if let Some(later) = &chains.later {
        text += &format!("\tchain {} {{\n", later_name(layout));
        later.iter().for_each(|rule| text += &rule.text(family));
        text += "\t}\n";
    }
    text += &format!("\tchain {} {{\n", layout.chain);
    text += &format!("\t\ttype filter hook {} priority filter; policy {policy};\n", layout.hook);
    if chains.later.is_some() {
        text += &format!("\t\t{} goto {}\n", is_later(family).text(family), later_name(layout));
    }
    chains.main.iter().for_each(|rule| text += &rule.text(family));
    text += "\t}\n}\n";
    Ok(text)
}

/// The rules as JSON for `nft -j -f`.
///
/// # Errors
/// As [`write_text`].
pub fn write_json(rules: &ImportedRules, layout: &ExportLayout) -> Result<String, ImportError> {
    check_names(rules, layout)?;
    let (family, policy) = (rules.family(), policy(rules)?);
    let chains = chains(rules, layout)?;
    let name = if family == AddressFamily::V4 { "ip" } else { "ip6" };
    let (table, chain, later) = (&layout.table, &layout.chain, &later_name(layout));
    let mut objects = vec![json!({"table": {"family": name, "name": table}})];
    if chains.later.is_some() {
        objects.push(json!({"chain": {"family": name, "table": table, "name": later}}));
    }
    objects.push(json!({"chain": {"family": name, "table": table, "name": chain, "type": "filter",
        "hook": layout.hook, "prio": 0, "policy": policy}}));
    let rule = |chain: &str, statements: Vec<Value>, comment: String| json!({"rule": {"family": name, "table": table, "chain": chain, "comment": comment, "expr": statements}});
    if chains.later.is_some() {
        let statements = vec![is_later(family).json(family), json!({"goto": {"target": later}})];
        objects.push(rule(chain, statements, "later fragments".to_owned()));
    }
    for (chain, rules) in [(chain, &chains.main), (later, chains.later.as_ref().unwrap_or(&Vec::new()))] {
        for one in rules {
            objects.push(rule(chain, one.statements(family), format!("line {}", one.line)));
        }
    }
    Ok(format!("{}\n", json!({"nftables": objects})))
}

fn later_name(layout: &ExportLayout) -> String {
    format!("{}_later", layout.chain)
}

/// Whether a packet is a later fragment.
fn is_later(family: AddressFamily) -> Match {
    let (left, mask) = match family {
        AddressFamily::V4 => (Left::Payload("ip", "frag-off"), Some(0x1fff)),
        AddressFamily::V6 => (Left::Extension("frag", "frag-off"), None),
    };
    Match { left, mask, not: true, right: Right::One(0), part: Part::Fragment }
}

impl Written {
    fn text(&self, family: AddressFamily) -> String {
        let mut text = "\t\t".to_owned();
        for one in &self.matches {
            text += &one.text(family);
            text.push(' ');
        }
        if self.log {
            text += "log ";
        }
        text + &format!("{} comment \"line {}\"\n", self.verdict, self.line)
    }

    fn statements(&self, family: AddressFamily) -> Vec<Value> {
        let mut statements: Vec<Value> = self.matches.iter().map(|one| one.json(family)).collect();
        if self.log {
            statements.push(json!({"log": null}));
        }
        statements.push(json!({self.verdict: null}));
        statements
    }
}

/// Names go into the text as they are, so they must be nothing else there.
fn check_names(rules: &ImportedRules, layout: &ExportLayout) -> Result<(), ImportError> {
    let identifier = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    for name in [&layout.table, &layout.chain, &layout.hook] {
        if !identifier(name) {
            let what = format!("`{}` is no name for nftables", shown(name));
            return Err(ImportError::new(
                1,
                1,
                what,
                "start it with a letter, and go on with letters, digits and `_`",
            ));
        }
    }
    for (name, _) in &rules.interfaces {
        if !is_interface(name) {
            let what = format!("`{}` is no name of an interface", shown(name));
            return Err(ImportError::new(
                1,
                1,
                what,
                "Linux takes at most 15 characters, and no blanks or quotes",
            ));
        }
    }
    Ok(())
}

/// Whether a name can be one of an interface of Linux, and stands for nothing else in a ruleset.
pub(crate) fn is_interface(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'*'));
    !name.is_empty() && name.len() <= LONGEST_INTERFACE && plain
}

fn policy(rules: &ImportedRules) -> Result<&'static str, ImportError> {
    match rules.default {
        Some(true) => Ok("accept"),
        Some(false) => Ok("drop"),
        None => Err(ImportError::new(
            1,
            1,
            "the rules do not say what happens to a packet that none fits",
            "a chain of nftables needs a policy; say whether such a packet may pass",
        )),
    }
}

fn verdict(rule: &ImportedRule) -> Result<&'static str, ImportError> {
    match rule.allow {
        Some(true) => Ok("accept"),
        Some(false) => Ok("drop"),
        None => Err(refuse(rule, "the rule does not say whether its packets may pass")),
    }
}

fn refuse(rule: &ImportedRule, what: impl Into<String>) -> ImportError {
    ImportError::new(rule.line, 1, what, "nftables cannot be told that; change the rule")
}

/// What a rule asks, column by column.
struct Asked<'a> {
    rule: &'a ImportedRule,
    rules: &'a ImportedRules,
    family: AddressFamily,
}

impl Asked<'_> {
    /// What a column must hold; `None` is anything.
    fn set(&self, part: Part) -> Option<Set> {
        let index = self.rules.column(part.name())?;
        match self.rule.rule.fields[index] {
            RuleField::Any => None,
            field => Some(Set::of(field, part.width(self.family))),
        }
    }

    fn holds(&self, part: Part, value: u128) -> bool {
        self.set(part).is_none_or(|set| set.holds(value))
    }

    /// The columns of headers that are asked for.
    fn of_transport(&self) -> Vec<Part> {
        Part::OF_TRANSPORT.into_iter().filter(|part| self.set(*part).is_some()).collect()
    }
}

/// The rules as nftables has them.
fn chains(rules: &ImportedRules, layout: &ExportLayout) -> Result<Chains, ImportError> {
    let (mut main, mut later, mut differs) = (Vec::new(), Vec::new(), false);
    for rule in &rules.rules {
        let verdict = verdict(rule)?;
        let asked = Asked { rule, rules, family: rules.family() };
        let Some(common) = common(&asked)? else { continue };
        let write = |own: Vec<Match>| {
            let matches = common.iter().cloned().chain(own).collect();
            Written { matches, log: rule.log, verdict, line: rule.line }
        };
        let parts = asked.of_transport();
        differs |= !parts.is_empty() || asked.set(Part::Fragment).is_some();
        let without = parts.iter().all(|part| asked.holds(*part, 0));
        if asked.holds(Part::Fragment, 1) && without {
            later.push(write(protocol(&asked, &|_| true)));
        }
        if !asked.holds(Part::Fragment, 0) {
            continue;
        }
        let headed = headed(&asked, &parts, layout);
        main.extend(
            headed.iter().filter_map(|protocols| of_header(&asked, &parts, protocols, layout)).map(write),
        );
        let is_headed = |number: u8| headed.iter().any(|protocols| protocols.contains(&number));
        let is_other = |number: u8| !is_headed(number);
        let others =
            (0..=u8::MAX).any(|number| is_other(number) && asked.holds(Part::Protocol, number.into()));
        if without && others {
            main.push(write(protocol(&asked, &is_other)));
        }
    }
    Ok(Chains { main, later: differs.then_some(later) })
}

/// The matches that do not depend on the kind of header; `None` if no packet fits.
fn common(asked: &Asked<'_>) -> Result<Option<Vec<Match>>, ImportError> {
    let ip = if asked.family == AddressFamily::V4 { "ip" } else { "ip6" };
    let mut matches = Vec::new();
    for column in &asked.rules.columns {
        let part = Part::named(column.name)
            .filter(|part| *part != Part::Flags)
            .ok_or_else(|| refuse(asked.rule, format!("nftables has no column `{}`", column.name)))?;
        let Some(set) = asked.set(part) else { continue };
        let left = match part {
            Part::Source => Left::Payload(ip, "saddr"),
            Part::Destination => Left::Payload(ip, "daddr"),
            Part::SourceMac => Left::Payload("ether", "saddr"),
            Part::InPort => Left::Meta("iifname"),
            Part::OutPort => Left::Meta("oifname"),
            _ => continue,
        };
        if !matches!(part, Part::InPort | Part::OutPort) {
            matches.push(plain(left, set, part, asked.family));
            continue;
        }
        match interfaces(set, &asked.rules.interfaces) {
            None => return Ok(None),
            Some((_, names)) if names.is_empty() => {}
            Some((not, names)) => {
                matches.push(Match { left, mask: None, not, right: Right::Names(names), part });
            }
        }
    }
    Ok(Some(matches))
}

/// The protocols that a rule may meet whose header holds something that it asks for, those together that are
/// asked alike.
fn headed(asked: &Asked<'_>, parts: &[Part], layout: &ExportLayout) -> Vec<Vec<u8>> {
    let asks = |wanted: &[Part]| parts.iter().any(|part| wanted.contains(part));
    let icmp = if asked.family == AddressFamily::V4 { 1 } else { 58 };
    let (tcp, others): (Vec<u8>, Vec<u8>) = layout.with_ports.iter().partition(|protocol| **protocol == 6);
    let mut all = Vec::new();
    match (asks(&[Part::SourcePort, Part::DestinationPort]), asks(&[Part::TcpFlags])) {
        (true, true) => all.extend([tcp, others]),
        (true, false) => all.push([tcp, others].concat()),
        (false, true) => all.push(vec![6]),
        (false, false) => {}
    }
    if asks(&[Part::IcmpType, Part::IcmpCode]) {
        all.push(vec![icmp]);
    }
    for protocols in &mut all {
        protocols.retain(|protocol| asked.holds(Part::Protocol, (*protocol).into()));
    }
    all.retain(|protocols| !protocols.is_empty());
    all
}

/// The matches for packets of these protocols; `None` if they lack something that the rule asks for and that
/// is not 0.
fn of_header(
    asked: &Asked<'_>,
    parts: &[Part],
    protocols: &[u8],
    layout: &ExportLayout,
) -> Option<Vec<Match>> {
    let (header, several) = match protocols {
        [1] => ("icmp", false),
        [58] => ("icmpv6", false),
        [6] => ("tcp", false),
        [17] => ("udp", false),
        [33] => ("dccp", false),
        [132] => ("sctp", false),
        [136] => ("udplite", false),
        _ => ("th", true),
    };
    let mut matches = Vec::new();
    if several {
        let numbers =
            protocols.iter().map(|protocol| (u128::from(*protocol), u128::from(*protocol))).collect();
        matches.push(of_protocol(Right::Ranges(numbers), false));
    }
    for part in parts {
        let field = match part {
            Part::SourcePort => "sport",
            Part::DestinationPort => "dport",
            Part::TcpFlags => "flags",
            Part::IcmpType => "type",
            _ => "code",
        };
        let has = match part {
            Part::SourcePort | Part::DestinationPort => {
                protocols.iter().all(|protocol| layout.with_ports.contains(protocol))
            }
            Part::TcpFlags => header == "tcp",
            _ => matches!(header, "icmp" | "icmpv6"),
        };
        if has {
            let set = asked.set(*part)?;
            matches.push(plain(Left::Payload(header, field), set, *part, asked.family));
        } else if !asked.holds(*part, 0) {
            return None;
        }
    }
    Some(matches)
}

/// The match on the protocols that a rule asks for, as far as they are wanted; none if that is all of them.
fn protocol(asked: &Asked<'_>, wanted: &dyn Fn(u8) -> bool) -> Vec<Match> {
    let holds = |number: u8| wanted(number) && asked.holds(Part::Protocol, number.into());
    let mut ranges: Vec<(u128, u128)> = Vec::new();
    for number in (0..=u8::MAX).filter(|number| holds(*number)).map(u128::from) {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == number => *high = number,
            _ => ranges.push((number, number)),
        }
    }
    let outside: Vec<(u128, u128)> =
        (0..=u8::MAX).filter(|number| !holds(*number)).map(|number| (number.into(), number.into())).collect();
    match (&ranges[..], &outside[..]) {
        ([(0, 255)], _) => Vec::new(),
        ([(low, high)], _) if low == high => vec![of_protocol(Right::One(*low), false)],
        ([(low, high)], _) => vec![of_protocol(Right::Range(*low, *high), false)],
        (_, outside) if outside.len() < ranges.len() => {
            vec![of_protocol(Right::Ranges(outside.to_vec()), true)]
        }
        _ => vec![of_protocol(Right::Ranges(ranges), false)],
    }
}

fn of_protocol(right: Right, not: bool) -> Match {
    Match { left: Left::Meta("l4proto"), mask: None, not, right, part: Part::Protocol }
}

fn plain(left: Left, set: Set, part: Part, family: AddressFamily) -> Match {
    let width = part.width(family);
    let is_address = matches!(part, Part::Source | Part::Destination);
    let (mask, right) = match (set, set.as_mask(width)) {
        (Set::Masked { value, mask }, _) => (Some(mask), Right::One(value)),
        (Set::Range { low, high }, _) if low == high => (None, Right::One(low)),
        (_, Some((value, mask))) if is_address => (None, Right::Prefix(value, mask.count_ones() as u8)),
        // Flags have no order for nftables; a mask says the same.
        (_, Some((value, mask))) if part == Part::TcpFlags => (Some(mask), Right::One(value)),
        (Set::Range { low, high }, _) => (None, Right::Range(low, high)),
    };
    Match { left, mask, not: false, right, part }
}

/// The names that a set of numbers means: those in it, or, if it holds interfaces without a name, those that
/// are not; `None` if it holds nothing.
fn interfaces(set: Set, names: &[(String, u16)]) -> Option<(bool, Vec<String>)> {
    let not = set.holds(0);
    let names = names.iter().filter(|(_, number)| set.holds((*number).into()) != not);
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    (not || !names.is_empty()).then_some((not, names))
}

impl Match {
    fn value(&self, value: u128, family: AddressFamily) -> String {
        match self.part {
            Part::Source | Part::Destination => address::print(family, value),
            Part::SourceMac => {
                let octets = value.to_be_bytes();
                octets[10..].iter().map(|octet| format!("{octet:02x}")).collect::<Vec<String>>().join(":")
            }
            _ => value.to_string(),
        }
    }

    fn text(&self, family: AddressFamily) -> String {
        let mut text = match self.left {
            Left::Payload(protocol, field) => format!("{protocol} {field} "),
            Left::Extension(header, field) => format!("{header} {field} "),
            Left::Meta(key) => format!("meta {key} "),
        };
        if let Some(mask) = self.mask {
            text += &format!("& {} {} ", self.value(mask, family), if self.not { "!=" } else { "==" });
        } else if self.not {
            text += "!= ";
        } else if self.part == Part::TcpFlags && self.mask.is_none() {
            text += "== ";
        }
        match &self.right {
            Right::One(value) => text += &self.value(*value, family),
            Right::Range(low, high) => {
                text += &format!("{}-{}", self.value(*low, family), self.value(*high, family));
            }
            Right::Prefix(value, length) => text += &address::print_prefix(family, *value, *length),
            Right::Ranges(ranges) => {
                let one = |(low, high): &(u128, u128)| {
                    if low == high { low.to_string() } else { format!("{low}-{high}") }
                };
                text += &format!("{{ {} }}", ranges.iter().map(one).collect::<Vec<String>>().join(", "));
            }
            Right::Names(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                text += &format!("{{ {} }}", quoted.join(", "));
            }
        }
        text
    }

    fn json(&self, family: AddressFamily) -> Value {
        let value = |value: u128| match self.part {
            Part::Source | Part::Destination | Part::SourceMac => Value::from(self.value(value, family)),
            // All other columns are at most 16 bits wide.
            _ => Value::from(value as u64),
        };
        let mut left = match self.left {
            Left::Payload(protocol, field) => json!({"payload": {"protocol": protocol, "field": field}}),
            Left::Extension(header, field) => json!({"exthdr": {"name": header, "field": field}}),
            Left::Meta(key) => json!({"meta": {"key": key}}),
        };
        if let Some(mask) = self.mask {
            left = json!({"&": [left, value(mask)]});
        }
        let right = match &self.right {
            Right::One(one) => value(*one),
            Right::Range(low, high) => json!({"range": [value(*low), value(*high)]}),
            Right::Prefix(bits, length) => json!({"prefix": {"addr": value(*bits), "len": length}}),
            Right::Ranges(ranges) => {
                let one = |(low, high): &(u128, u128)| {
                    if low == high { value(*low) } else { json!({"range": [value(*low), value(*high)]}) }
                };
                json!({"set": ranges.iter().map(one).collect::<Vec<Value>>()})
            }
            Right::Names(names) => json!({"set": names}),
        };
        json!({"match": {"op": if self.not { "!=" } else { "==" }, "left": left, "right": right}})
    }
}
