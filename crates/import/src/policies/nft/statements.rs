//! The statements of a rule as rules of a group.
//!
//! Statements act one after the other. What is logged or counted before a further match becomes a rule of its
//! own that goes on; a map of verdicts becomes a rule for each verdict.
//!
//! Linux that follows no connections compares the payload of a later fragment as if it were a header. Whether
//! it fits cannot be known, so that nothing passes here that might be dropped there: a rule about a header
//! that blocks, or may lead to one, blocks later fragments that meet the rest of it; one that passes passes
//! none.

use super::conditions::{all, any, has_ports, names, needs, values};
use super::fields::Context;
use super::limits;
use super::matches::{Asked, Matcher};
use super::ruleset::{Families, Reached, Rule, Ruleset, Ways, not_translated};
use crate::ImportError;
use crate::nft::document::Source;
use crate::nft::hooks::TRANSLATIONS;
use crate::nft::operands::{self, Refusal, plain};
use crate::rates::ONE_PACKET;
use crate::text::shown;
use policy::{PacketField, PolicyRule, Reject, RuleAction, RuleCondition, RulePlace, Unreachable, Values};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

const ADVICE: &str = "a rule of a policy asks fields of a packet and its connection, and passes, drops, rejects, jumps, logs or counts";

/// Reads a rule of a chain that packets reach; one rule may become several.
///
/// # Errors
/// The first statement that a policy cannot say.
pub(super) fn rules(
    source: Source<'_>,
    ruleset: &Ruleset<'_>,
    ways: &Ways,
    reached: &Reached,
    rule: &Rule<'_>,
    matcher: &mut Matcher,
) -> Result<Vec<PolicyRule>, ImportError> {
    let ImportError { line, column, .. } = source.error(rule.raw, "", "");
    let families = ruleset.chains[rule.chain].families;
    let place = RulePlace { line, column };
    let mut reader = Reader {
        ruleset,
        ways,
        context: Context { families, reached, sets: ruleset.sets(rule.chain), place },
        chain: rule.chain,
        matcher,
        text: rule.raw.get().into(),
        conditions: Vec::new(),
        of_fragments: Vec::new(),
        header: false,
        any_ports: false,
        lacks_ports: false,
        remembers: false,
        log: false,
        count: false,
        decided: false,
        rules: Vec::new(),
    };
    for (raw, kind, body) in &rule.statements {
        if TRANSLATIONS.contains(&&**kind) || kind == "tproxy" {
            return Err(not_translated(source, raw, kind));
        }
        reader
            .statement(raw, kind, body)
            .map_err(|Refusal { what, advice }| source.error(raw, what, advice.unwrap_or(ADVICE)))?;
    }
    if !reader.decided {
        reader.put_last(RuleAction::Continue, None);
    }
    if reader.asks_other_icmp() {
        let what = "the rule asks for the ICMP messages of one family in packets of the other";
        return Err(source.error(rule.raw, what, "leave out one of both"));
    }
    if reader.lacks_ports {
        let what = "the rule asks for ports where the protocol need not have any";
        let advice = "ask for `tcp dport` and the like, or for `meta l4proto { tcp, udp }` besides";
        return Err(source.error(rule.raw, what, advice));
    }
    Ok(reader.rules)
}

struct Reader<'a> {
    ruleset: &'a Ruleset<'a>,
    ways: &'a Ways,
    context: Context<'a>,
    chain: usize,
    matcher: &'a mut Matcher,
    text: Arc<str>,
    /// What the statements so far ask, in their order.
    conditions: Vec<RuleCondition>,
    /// The same of a later fragment, without what is asked of a header.
    of_fragments: Vec<RuleCondition>,
    header: bool,
    /// Whether ports are asked for of whatever protocol there is.
    any_ports: bool,
    /// Whether that is so of protocols that need not have any.
    lacks_ports: bool,
    /// Whether the statements so far depend on earlier packets.
    remembers: bool,
    log: bool,
    count: bool,
    decided: bool,
    rules: Vec<PolicyRule>,
}

impl Reader<'_> {
    fn statement(&mut self, raw: &RawValue, kind: &str, body: &Value) -> Result<(), Refusal> {
        if self.decided {
            return Refusal::new("there is a statement behind the decision");
        }
        match kind {
            "match" => {
                self.before_condition()?;
                let asked = self.matcher.asked(body, raw.get(), self.context)?;
                self.add(asked);
            }
            "limit" | "quota" | "meter" | "set" | "map" | "ct count" => {
                self.before_condition()?;
                let rate = if kind == "limit" { limits::rate(body)? } else { Err(ONE_PACKET.into()) };
                let seen = self.sees_fragments();
                let remembered = self.matcher.limited(raw.get(), self.context.place, rate, seen);
                self.conditions.push(remembered);
                self.remembers = true;
            }
            "log" => self.log = true,
            "counter" => self.count = true,
            // The time of the last packet is no part of a decision, and a trace is for who looks at it.
            "last" | "comment" => {}
            "mangle" if sets_trace(body) => {}
            "reject" => {
                let (reject, needs) = self.reject(body)?;
                self.conditions.extend(needs.clone());
                self.of_fragments.extend(needs);
                self.decide(RuleAction::Reject(reject))?;
            }
            "vmap" => self.map(body)?,
            _ => match self.verdict(kind, body)? {
                Some(action) => self.decide(action)?,
                None => {
                    let what = format!("the statement `{}` {}", shown(kind), operands::cause(kind));
                    return Refusal::new(what);
                }
            },
        }
        Ok(())
    }

    /// Whether a message of ICMP is asked for besides the family that has no such messages: nft compares
    /// nothing of the family then, and Linux does not say so.
    fn asks_other_icmp(&self) -> bool {
        let asks = |protocol: u128, version: u128| {
            let fields =
                [PacketField::IcmpType, PacketField::IcmpCode, PacketField::IcmpRest, PacketField::Checksum];
            fields.iter().any(|field| self.conditions.iter().any(|condition| names(condition, *field)))
                && self.conditions.iter().any(|condition| needs(condition, PacketField::Protocol, protocol))
                && self.conditions.iter().any(|condition| needs(condition, PacketField::Family, version))
        };
        asks(1, 6) || asks(58, 4)
    }

    fn add(&mut self, asked: Asked) {
        self.any_ports |= asked.any_ports;
        self.remembers |= asked.remembers;
        self.header |= asked.of_fragments.is_some();
        self.matcher.unsure_of_fragments |= asked.of_fragments.is_some() && self.sees_fragments();
        self.of_fragments.push(asked.of_fragments.unwrap_or_else(|| asked.condition.clone()));
        self.conditions.push(asked.condition);
    }

    /// What has been logged or counted so far was so for packets that need not meet what comes.
    fn before_condition(&mut self) -> Result<(), Refusal> {
        if !self.log && !self.count {
            return Ok(());
        }
        if self.remembers {
            return Refusal::new(
                "the rule asks of earlier packets, logs or counts, and asks again behind that",
            );
        }
        self.put(RuleAction::Continue, None)?;
        (self.log, self.count) = (false, false);
        Ok(())
    }

    fn decide(&mut self, action: RuleAction) -> Result<(), Refusal> {
        if self.blocks_fragments(action) {
            self.put_for_fragments()?;
        }
        self.put_last(action, None);
        self.decided = true;
        Ok(())
    }

    /// Adds a rule for packets that meet the conditions, and one more, and counts its copy of the conditions.
    fn put(&mut self, action: RuleAction, more: Option<RuleCondition>) -> Result<(), Refusal> {
        self.matcher.fields.count(self.conditions.iter().map(values).sum::<usize>().max(1))?;
        self.put_last(action, more);
        Ok(())
    }

    /// Adds the last rule, whose conditions were counted when they were read.
    fn put_last(&mut self, action: RuleAction, more: Option<RuleCondition>) {
        let condition = all(self.conditions.iter().cloned().chain(more).collect());
        self.lacks_ports |= self.any_ports && !has_ports(&condition);
        let rule = PolicyRule {
            place: self.context.place,
            text: self.text.clone(),
            condition,
            action,
            decides_at_once: false,
            log: self.log,
            count: self.count,
        };
        self.rules.push(rule);
    }

    /// Adds the rule that blocks later fragments of which it is not known whether they meet the conditions.
    fn put_for_fragments(&mut self) -> Result<(), Refusal> {
        self.matcher.fields.count(self.of_fragments.iter().map(values).sum::<usize>().max(1))?;
        let [v4, v6] = self.followed();
        let mut conditions = vec![RuleCondition::Holds(PacketField::LaterFragment, vec![Values::exact(1)])];
        let unfollowed = [(v4, 4), (v6, 6)].into_iter().filter(|(followed, _)| !followed);
        if v4 || v6 {
            let versions = unfollowed.map(|(_, version)| Values::exact(version));
            conditions.push(RuleCondition::Holds(PacketField::Family, versions.collect()));
        }
        conditions.extend(self.of_fragments.iter().cloned());
        self.rules.push(PolicyRule {
            place: self.context.place,
            text: self.text.clone(),
            condition: all(conditions),
            action: RuleAction::Block,
            decides_at_once: false,
            log: false,
            count: false,
        });
        Ok(())
    }

    /// For IPv4 and IPv6, whether rules of this chain see no fragments.
    fn followed(&self) -> [bool; 2] {
        let early = self.context.reached.before_reassembly;
        self.matcher.followed.map(|followed| followed && !early)
    }

    /// Whether later fragments may come to rules of this chain.
    fn sees_fragments(&self) -> bool {
        let [v4, v6] = self.followed();
        match self.context.families {
            Families::V4 => !v4,
            Families::V6 => !v6,
            Families::Both => !v4 || !v6,
        }
    }

    fn blocks_fragments(&self, action: RuleAction) -> bool {
        if !self.header || !self.sees_fragments() {
            return false;
        }
        match action {
            RuleAction::Pass | RuleAction::Keep | RuleAction::Continue => false,
            RuleAction::Jump(group) => self.ways.may_block.get(group).is_none_or(|may_block| *may_block),
            _ => true,
        }
    }

    /// The action of a verdict; `None` if it is none.
    fn verdict(&self, kind: &str, body: &Value) -> Result<Option<RuleAction>, Refusal> {
        let group = || {
            let name = body.get("target").and_then(Value::as_str).unwrap_or_default();
            let chain = self.ruleset.beside(self.chain, name);
            let way = chain.and_then(|chain| self.ways.chains.get(&chain));
            way.map(|way| way.group).ok_or_else(|| Refusal {
                what: format!("there is no chain `{}` to jump to", shown(name)),
                advice: Some("print the whole ruleset"),
            })
        };
        Ok(Some(match kind {
            "accept" => RuleAction::Pass,
            "drop" => RuleAction::Block,
            "return" => RuleAction::Return,
            "continue" => RuleAction::Continue,
            "jump" => RuleAction::Jump(group()?),
            "goto" => RuleAction::Goto(group()?),
            _ => return Ok(None),
        }))
    }

    /// A map from keys to verdicts: a rule for each verdict in the order of the elements.
    fn map(&mut self, body: &Value) -> Result<(), Refusal> {
        self.before_condition()?;
        if self.remembers {
            return Refusal::new("the rule asks of earlier packets, and then decides by a map");
        }
        let (Some(key), Some(data)) = (body.get("key"), body.get("data")) else {
            return Refusal::new("the map has no key or no elements");
        };
        let (mut keys, mut actions) = (Vec::new(), Vec::new());
        for element in self.elements(data)? {
            let Some([key, verdict]) = element.as_array().map(Vec::as_slice) else {
                return Refusal::new("an element of the map is no key with a verdict");
            };
            let only = verdict.as_object().filter(|members| members.len() == 1);
            let action = match only.and_then(|members| members.iter().next()) {
                Some((kind, body)) => self.verdict(kind, body)?,
                None => None,
            };
            let Some(action) = action else {
                return Refusal::new("an element of the map has no verdict");
            };
            keys.push(plain(key)?);
            actions.push(action);
        }
        // What no other element fits comes last.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&index| keys[index] == "*");
        let keys: Vec<Value> = order.iter().map(|&index| keys[index].clone()).collect();
        let actions: Vec<RuleAction> = order.iter().map(|&index| actions[index]).collect();
        let (asked, each) = self.matcher.each_of(key, &keys, self.context)?;
        self.add(asked);
        if actions.iter().any(|action| self.blocks_fragments(*action)) {
            self.put_for_fragments()?;
        }
        // Elements side by side with one verdict are one rule.
        let mut together: Vec<(RuleAction, Vec<RuleCondition>)> = Vec::new();
        for (condition, action) in each.into_iter().zip(actions) {
            match together.last_mut() {
                Some((own, conditions)) if *own == action => conditions.push(condition),
                _ => together.push((action, vec![condition])),
            }
        }
        let last = together.pop();
        for (action, conditions) in together {
            self.put(action, Some(any(conditions)))?;
        }
        if let Some((action, conditions)) = last {
            self.put_last(action, Some(any(conditions)));
        }
        self.decided = true;
        Ok(())
    }

    /// The elements of a map.
    fn elements(&self, data: &Value) -> Result<Vec<Value>, Refusal> {
        let Some(name) = data.as_str().and_then(|name| name.strip_prefix('@')) else {
            return match data.get("set") {
                Some(Value::Array(elements)) => Ok(elements.clone()),
                _ => Refusal::new("the map has no elements"),
            };
        };
        let map = self.context.sets.and_then(|sets| sets.get(name)).filter(|map| map.is_map);
        match map {
            Some(map) if map.is_dynamic || map.ages => {
                Refusal::new(format!("the map `{}` changes by itself", shown(name)))
            }
            Some(map) => Ok(map.elements().to_vec()),
            None => Refusal::new(format!("there is no map `{}`", shown(name))),
        }
    }

    /// How the sender is told, and which packets that is about besides.
    fn reject(&self, body: &Value) -> Result<(Reject, Option<RuleCondition>), Refusal> {
        let of = |field, value| Some(RuleCondition::Holds(field, vec![Values::exact(value)]));
        let kind = body.get("type").map(|kind| kind.as_str().unwrap_or("?"));
        let code = body.get("expr").map_or("port-unreachable", |code| code.as_str().unwrap_or("?"));
        let unknown = || Refusal {
            what: format!("`reject with {} {}` is not known here", shown(kind.unwrap_or("")), shown(code)),
            advice: Some("reject with icmp, icmpv6, icmpx or tcp reset"),
        };
        let named = |names: &[(&str, u8)]| {
            names.iter().find(|(name, _)| *name == code).map(|(_, number)| *number).ok_or_else(unknown)
        };
        Ok(match kind {
            Some("tcp reset") => (Reject::TcpReset, of(PacketField::Protocol, 6)),
            Some("icmp") => (Reject::Icmp(named(&ICMP)?), of(PacketField::Family, 4)),
            Some("icmpv6") => (Reject::Icmpv6(named(&ICMPV6)?), of(PacketField::Family, 6)),
            None | Some("icmpx") => {
                let unreachable = match code {
                    "no-route" => Unreachable::NoRoute,
                    "host-unreachable" => Unreachable::Host,
                    "port-unreachable" => Unreachable::Port,
                    "admin-prohibited" => Unreachable::Prohibited,
                    _ => return Err(unknown()),
                };
                (Reject::Unreachable(unreachable), None)
            }
            Some(_) => return Err(unknown()),
        })
    }
}

/// The codes with which nftables rejects by ICMP (RFC 792, RFC 1122, RFC 1812).
pub(super) const ICMP: [(&str, u8); 7] = [
    ("net-unreachable", 0),
    ("host-unreachable", 1),
    ("prot-unreachable", 2),
    ("port-unreachable", 3),
    ("net-prohibited", 9),
    ("host-prohibited", 10),
    ("admin-prohibited", 13),
];

/// The same by ICMPv6 (RFC 4443, 3.1).
pub(super) const ICMPV6: [(&str, u8); 6] = [
    ("no-route", 0),
    ("admin-prohibited", 1),
    ("addr-unreachable", 3),
    ("port-unreachable", 4),
    ("policy-fail", 5),
    ("reject-route", 6),
];

/// Whether a statement only marks a packet for who watches it.
fn sets_trace(body: &Value) -> bool {
    body.get("key").and_then(|key| key.get("meta")?.get("key")?.as_str()) == Some("nftrace")
}
