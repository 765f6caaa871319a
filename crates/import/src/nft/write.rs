//! Rules as nftables: the text that `nft -f` takes, and the JSON that `nft -j -f` takes.

use crate::ImportError;
use crate::address::{self, Family};
use crate::region::Set;
use crate::ruleset::{ImportedRule, Part, RuleSet};
use crate::text::shown;
use serde_json::{Value, json};
use tables::rules::Field;

/// Where the rules go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The table's name: letters, digits and `_`.
    pub table: String,
    /// The chain's name: letters, digits and `_`.
    pub chain: String,
    /// The hook that the chain is at, such as `forward`.
    pub hook: String,
}

impl Default for Layout {
    fn default() -> Self {
        Self { table: "filter".to_owned(), chain: "forward".to_owned(), hook: "forward".to_owned() }
    }
}

/// One match: what is looked at, under a mask or whole, and what it must be.
struct Match {
    left: Left,
    mask: Option<u128>,
    not: bool,
    right: Right,
    part: Part,
}

/// The longest name of an interface in Linux.
const LONGEST_INTERFACE: usize = 15;

enum Left {
    Payload(&'static str, &'static str),
    Meta(&'static str),
}

enum Right {
    One(u128),
    Range(u128, u128),
    Prefix(u128, u8),
    Names(Vec<String>),
}

/// The rules as text for `nft -f`.
///
/// # Errors
/// The line of the first rule that nftables cannot say, or that decides nothing.
pub fn write_text(rules: &RuleSet, layout: &Layout) -> Result<String, ImportError> {
    check_names(rules, layout)?;
    let (family, policy) = (rules.family(), policy(rules)?);
    let table = if family == Family::V4 { "ip" } else { "ip6" };
    let mut text = format!("table {table} {} {{\n\tchain {} {{\n", layout.table, layout.chain);
    text += &format!("\t\ttype filter hook {} priority filter; policy {policy};\n", layout.hook);
    for rule in &rules.rules {
        let verdict = verdict(rule)?;
        let Some(matches) = matches(rule, rules)? else { continue };
        text += "\t\t";
        for one in &matches {
            text += &one.text(family);
            text.push(' ');
        }
        if rule.log {
            text += "log ";
        }
        text += &format!("{verdict} comment \"line {}\"\n", rule.line);
    }
    text += "\t}\n}\n";
    Ok(text)
}

/// The rules as JSON for `nft -j -f`.
///
/// # Errors
/// As [`write_text`].
pub fn write_json(rules: &RuleSet, layout: &Layout) -> Result<String, ImportError> {
    check_names(rules, layout)?;
    let (family, policy) = (rules.family(), policy(rules)?);
    let name = if family == Family::V4 { "ip" } else { "ip6" };
    let (table, chain) = (&layout.table, &layout.chain);
    let mut objects = vec![
        json!({"table": {"family": name, "name": table}}),
        json!({"chain": {"family": name, "table": table, "name": chain, "type": "filter", "hook": layout.hook,
            "prio": 0, "policy": policy}}),
    ];
    for rule in &rules.rules {
        let verdict = verdict(rule)?;
        let Some(matches) = matches(rule, rules)? else { continue };
        let mut statements: Vec<Value> = matches.iter().map(|one| one.json(family)).collect();
        if rule.log {
            statements.push(json!({"log": null}));
        }
        statements.push(json!({verdict: null}));
        let comment = format!("line {}", rule.line);
        objects.push(json!({"rule": {"family": name, "table": table, "chain": chain, "comment": comment,
            "expr": statements}}));
    }
    Ok(format!("{}\n", json!({"nftables": objects})))
}

/// Names go into the text as they are, so they must be nothing else there.
fn check_names(rules: &RuleSet, layout: &Layout) -> Result<(), ImportError> {
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
    for name in &rules.interfaces {
        let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'*'));
        if name.is_empty() || name.len() > LONGEST_INTERFACE || !plain {
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

fn policy(rules: &RuleSet) -> Result<&'static str, ImportError> {
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

/// The matches of a rule; `None` if no packet fits it.
fn matches(rule: &ImportedRule, rules: &RuleSet) -> Result<Option<Vec<Match>>, ImportError> {
    let field = |part: Part| rules.column(part.name()).map_or(Field::Any, |index| rule.rule.fields[index]);
    let protocol = match field(Part::Protocol) {
        Field::Exact(protocol) => Some(protocol),
        _ => None,
    };
    let mut matches = Vec::new();
    let mut protocol_is_said = false;
    for column in &rules.columns {
        let Some(part) = Part::named(column.name) else {
            return Err(refuse(rule, format!("nftables has no column `{}`", column.name)));
        };
        if field(part) == Field::Any || part == Part::Protocol {
            continue;
        }
        let (left, of_protocol) = left(part, rules.family(), protocol)
            .ok_or_else(|| refuse(rule, format!("`{}` is asked for without its protocol", column.name)))?;
        protocol_is_said |= of_protocol;
        let set = Set::of(field(part), column.width);
        if matches!(part, Part::InPort | Part::OutPort) {
            match interfaces(set, &rules.interfaces) {
                None => return Ok(None),
                Some((_, names)) if names.is_empty() => {}
                Some((not, names)) => {
                    matches.push(Match { left, mask: None, not, right: Right::Names(names), part });
                }
            }
            continue;
        }
        matches.push(plain(left, set, part, rules.family()));
    }
    if field(Part::Protocol) != Field::Any && !protocol_is_said {
        let set = Set::of(field(Part::Protocol), 8);
        matches.insert(0, plain(Left::Meta("l4proto"), set, Part::Protocol, rules.family()));
    }
    Ok(Some(matches))
}

/// What nftables looks at for a column, and whether that says the protocol as well.
fn left(part: Part, family: Family, protocol: Option<u128>) -> Option<(Left, bool)> {
    let ip = if family == Family::V4 { "ip" } else { "ip6" };
    let header = match protocol {
        Some(6) => Some("tcp"),
        Some(17) => Some("udp"),
        Some(33) => Some("dccp"),
        Some(132) => Some("sctp"),
        Some(136) => Some("udplite"),
        _ => None,
    };
    let of_header = |field| Some((Left::Payload(header.unwrap_or("th"), field), header.is_some()));
    let icmp = match (family, protocol) {
        (Family::V4, Some(1)) => Some("icmp"),
        (Family::V6, Some(58)) => Some("icmpv6"),
        _ => None,
    };
    match part {
        Part::Source => Some((Left::Payload(ip, "saddr"), false)),
        Part::Destination => Some((Left::Payload(ip, "daddr"), false)),
        Part::SourcePort => of_header("sport"),
        Part::DestinationPort => of_header("dport"),
        Part::TcpFlags if protocol == Some(6) => Some((Left::Payload("tcp", "flags"), true)),
        Part::IcmpType => icmp.map(|icmp| (Left::Payload(icmp, "type"), true)),
        Part::IcmpCode => icmp.map(|icmp| (Left::Payload(icmp, "code"), true)),
        Part::SourceMac => Some((Left::Payload("ether", "saddr"), false)),
        Part::InPort => Some((Left::Meta("iifname"), false)),
        Part::OutPort => Some((Left::Meta("oifname"), false)),
        Part::TcpFlags | Part::Protocol | Part::Flags => None,
    }
}

fn plain(left: Left, set: Set, part: Part, family: Family) -> Match {
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

/// The names that a set of numbers means: those in it, or, if it holds interfaces without a name, those that are
/// not; `None` if it holds nothing.
fn interfaces(set: Set, names: &[String]) -> Option<(bool, Vec<String>)> {
    let holds = |number: u128| match set {
        Set::Range { low, high } => (low..=high).contains(&number),
        Set::Masked { value, mask } => number & mask == value,
    };
    let not = holds(0);
    let names = (1..).zip(names).filter(|(number, _)| holds(*number) != not);
    let names: Vec<String> = names.map(|(_, name)| name.clone()).collect();
    (not || !names.is_empty()).then_some((not, names))
}

impl Match {
    fn value(&self, value: u128, family: Family) -> String {
        match self.part {
            Part::Source | Part::Destination => address::print(family, value),
            Part::SourceMac => {
                let octets = value.to_be_bytes();
                octets[10..].iter().map(|octet| format!("{octet:02x}")).collect::<Vec<String>>().join(":")
            }
            _ => value.to_string(),
        }
    }

    fn text(&self, family: Family) -> String {
        let mut text = match self.left {
            Left::Payload(protocol, field) => format!("{protocol} {field} "),
            Left::Meta(key) => format!("meta {key} "),
        };
        if let Some(mask) = self.mask {
            text += &format!("& {} == ", self.value(mask, family));
        }
        if self.not {
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
            Right::Names(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                text += &format!("{{ {} }}", quoted.join(", "));
            }
        }
        text
    }

    fn json(&self, family: Family) -> Value {
        let value = |value: u128| match self.part {
            Part::Source | Part::Destination | Part::SourceMac => Value::from(self.value(value, family)),
            // All other columns are at most 16 bits wide.
            _ => Value::from(value as u64),
        };
        let mut left = match self.left {
            Left::Payload(protocol, field) => json!({"payload": {"protocol": protocol, "field": field}}),
            Left::Meta(key) => json!({"meta": {"key": key}}),
        };
        if let Some(mask) = self.mask {
            left = json!({"&": [left, value(mask)]});
        }
        let right = match &self.right {
            Right::One(one) => value(*one),
            Right::Range(low, high) => json!({"range": [value(*low), value(*high)]}),
            Right::Prefix(bits, length) => json!({"prefix": {"addr": value(*bits), "len": length}}),
            Right::Names(names) => json!({"set": names}),
        };
        json!({"match": {"op": if self.not { "!=" } else { "==" }, "left": left, "right": right}})
    }
}
