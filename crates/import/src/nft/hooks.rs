//! Chains at the hooks that a packet of the wanted one passes: each of them may drop it, or change what rules
//! ask.
//!
//! Another chain is left aside only if it lets everything pass and changes nothing for which rules have a
//! column; otherwise the place is refused at which it does so, or may do so.

use super::document::{ChainObject, RuleObject, Source};
use super::read::Objects;
use crate::ImportError;
use crate::text::shown;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// Statements after which no packet is dropped that would have passed without them.
const DROP_NOTHING: [&str; 18] = [
    "match",
    "accept",
    "return",
    "jump",
    "goto",
    "continue",
    "counter",
    "comment",
    "log",
    "limit",
    "quota",
    "last",
    "set",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "notrack",
    "flow",
];

/// Statements that translate addresses, which other hooks than the wanted one may do.
pub(crate) const TRANSLATIONS: [&str; 4] = ["dnat", "snat", "masquerade", "redirect"];

/// What a packet has besides what rules may ask, and may be changed: the kind of key, and its parts.
const NO_COLUMNS: [(&str, &str, &str); 18] = [
    ("meta", "key", "mark"),
    ("meta", "key", "priority"),
    ("meta", "key", "nftrace"),
    ("meta", "key", "secmark"),
    ("ct", "key", "mark"),
    ("ct", "key", "label"),
    ("ct", "key", "event"),
    ("ct", "key", "zone"),
    ("ct", "key", "secmark"),
    ("ip", "field", "dscp"),
    ("ip", "field", "ecn"),
    ("ip", "field", "ttl"),
    ("ip6", "field", "dscp"),
    ("ip6", "field", "ecn"),
    ("ip6", "field", "flowlabel"),
    ("ip6", "field", "hoplimit"),
    ("tcp option", "name", "maxseg"),
    ("vlan", "field", "pcp"),
];

/// Whether a `mangle` statement changes something for which rules have no column.
fn changes_no_column(body: &Value) -> bool {
    let Some(key) = body.get("key") else { return false };
    NO_COLUMNS.iter().any(|(kind, part, name)| {
        let (object, is_kind) = match *part {
            "field" => {
                let payload = key.get("payload");
                (payload, payload.and_then(|payload| payload.get("protocol")?.as_str()) == Some(*kind))
            }
            _ => (key.get(*kind), true),
        };
        is_kind && object.and_then(|object| object.get(*part)?.as_str()) == Some(*name)
    })
}

/// Whether every packet at a hook passes the chains that a family has at another. A device's own chains, and
/// those of bridges, see packets that the tables of `ip` see as well.
fn passes(wanted: &str, family: &str, hook: &str) -> bool {
    let hooks: &[&str] = match (wanted, family) {
        ("forward", "bridge") => &["prerouting", "input", "output", "postrouting"],
        ("input", "bridge") => &["prerouting", "input"],
        ("output", "bridge") => &["output", "postrouting"],
        ("forward", _) => &["ingress", "prerouting", "forward", "postrouting", "egress"],
        ("input", _) => &["ingress", "prerouting", "input"],
        ("output", _) => &["output", "postrouting", "egress"],
        ("prerouting", _) => &["ingress", "prerouting"],
        ("postrouting", _) => &["postrouting", "egress"],
        _ => return hook == wanted,
    };
    hooks.contains(&hook)
}

const ADVICE: &str = "put both into one chain, or take the other one out of the ruleset";

/// Refuses a ruleset in which another chain that the packets of the chain `start` pass may drop them, or
/// change what rules ask.
pub(super) fn others_decide_nothing(
    source: Source<'_>,
    objects: &Objects<'_>,
    start: usize,
) -> Result<(), ImportError> {
    let Some(wanted) = &objects.chains[start].0.hook else { return Ok(()) };
    let own = objects.chains.iter().enumerate().filter(|(index, _)| *index != start).map(|(_, chain)| chain);
    for (chain, body) in own.chain(&objects.other_chains) {
        let Some(hook) = chain.hook.as_ref().filter(|hook| passes(wanted, &chain.family, hook)) else {
            continue;
        };
        if chain.policy.as_deref() == Some("drop") {
            let what = format!(
                "the chain `{}` decides about the same packets as well, and its policy is drop",
                shown(&chain.name)
            );
            return Err(source.error(body, what, ADVICE));
        }
        let may_translate = chain.kind.as_deref() == Some("nat") && hook != wanted;
        let translates: &[&str] = if may_translate { &TRANSLATIONS } else { &[] };
        let rules = objects.rules.iter().chain(&objects.other_rules).map(|(_, rule)| rule);
        changes_nothing(source, rules, chain, translates)?;
    }
    Ok(())
}

/// Refuses the first statement of a chain, or of one that it leads to, that may drop a packet or change what
/// rules ask.
pub(crate) fn changes_nothing<'a, 'b: 'a>(
    source: Source<'_>,
    all: impl Iterator<Item = &'a RuleObject<'b>>,
    first: &ChainObject,
    translates: &[&str],
) -> Result<(), ImportError> {
    let mut rules: BTreeMap<&str, Vec<&RuleObject<'_>>> = BTreeMap::new();
    for rule in all.filter(|rule| (&rule.family, &rule.table) == (&first.family, &first.table)) {
        rules.entry(&rule.chain).or_default().push(rule);
    }
    let (mut seen, mut open) = (BTreeSet::from([first.name.clone()]), vec![first.name.clone()]);
    while let Some(chain) = open.pop() {
        let statements = rules.get(chain.as_str()).into_iter().flatten().flat_map(|rule| &rule.expr);
        for raw in statements.copied() {
            let (kind, body) = statement(source, raw)?;
            if kind == "mangle" && !changes_no_column(&body) {
                let what = format!(
                    "the chain `{}` changes the same packets, and `mangle` may change here what rules ask",
                    shown(&first.name)
                );
                return Err(source.error(raw, what, ADVICE));
            }
            if kind != "mangle" && !DROP_NOTHING.contains(&&*kind) && !translates.contains(&&*kind) {
                let what = format!(
                    "the chain `{}` decides about the same packets as well, here by `{}`",
                    shown(&first.name),
                    shown(&kind)
                );
                return Err(source.error(raw, what, ADVICE));
            }
            if let Some(next) = body.get("target").and_then(Value::as_str)
                && seen.insert(next.to_owned())
            {
                open.push(next.to_owned());
            }
        }
    }
    Ok(())
}

/// The kind of a statement, and what it says.
pub(crate) fn statement(source: Source<'_>, raw: &RawValue) -> Result<(String, Value), ImportError> {
    let object: BTreeMap<String, Value> = source.object(raw, "statement")?;
    source.only(raw, object, "statement")
}
