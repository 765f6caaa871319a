//! Random policies with the program that asks them, random packets, and what the program is to count.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use crate::program::Random;
use exec::Backend;
use policy::{
    Hook, HookPoint, MatchOrder, Packet, PacketField, Path, Policy, PolicyRule, Reject, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Step, Unreachable, Values, evaluate,
};
use std::fmt::Write;
use tables::meter::{MeterModel, MeterRates, MeterSpec, Unit};

/// The columns: their fields, their types, and which bit of `there` says that a packet has them.
const COLUMNS: [(PacketField, &str, Option<u8>); 9] = [
    (PacketField::Source, "ip6", None),
    (PacketField::Destination, "ip6", None),
    (PacketField::Protocol, "u8", None),
    (PacketField::SourcePort, "u16", Some(1)),
    (PacketField::DestinationPort, "u16", Some(2)),
    (PacketField::IcmpType, "u8", Some(4)),
    (PacketField::TcpFlags, "u8", Some(8)),
    (PacketField::State, "u3", None),
    (PacketField::InPort, "port", None),
];

/// What senders are told, as the language writes it, and its number.
const REJECTS: [(&str, Reject, usize); 4] = [
    ("tcp_reset", Reject::TcpReset, 0),
    ("prohibited", Reject::Unreachable(Unreachable::Prohibited), 5),
    ("icmp 3", Reject::Icmp(3), 259),
    ("icmpv6 4", Reject::Icmpv6(4), 516),
];

/// A policy, and the same in the language.
pub struct Draft {
    pub policy: Policy,
    /// The buckets of its limits, which are its memories.
    pub limits: Vec<MeterModel>,
    pub text: String,
}

fn written(field: PacketField, value: u128) -> String {
    match field {
        // The addresses 10.0.0.0 to 10.0.0.7.
        PacketField::Source | PacketField::Destination => format!("10.0.0.{value}"),
        _ => value.to_string(),
    }
}

/// The number of what is drawn as `value`.
fn number(field: PacketField, value: u128) -> u128 {
    match field {
        PacketField::Source | PacketField::Destination => (0xffff << 32) + (10 << 24) + value,
        _ => value,
    }
}

/// A run of values: one, a prefix or range, or a mask.
fn values(random: &mut Random, field: PacketField) -> (Values, String) {
    let value = u128::from(random.below(8));
    let address = matches!(field, PacketField::Source | PacketField::Destination);
    match random.below(3) {
        0 if address => {
            let low = value & !3;
            let run = Values::Range { low: number(field, low), high: number(field, low | 3) };
            (run, format!("{}/30", written(field, low)))
        }
        0 if field == PacketField::TcpFlags => {
            let mask = u128::from(1 + random.below(7));
            (Values::Masked { value: value & mask, mask }, format!("{} mask {mask}", value & mask))
        }
        0 if field != PacketField::InPort && field != PacketField::TcpFlags => {
            let high = u128::from(random.below(8)).max(value);
            (Values::Range { low: value, high }, format!("{value}..{high}"))
        }
        _ => (Values::exact(number(field, value)), written(field, value)),
    }
}

fn condition(random: &mut Random) -> (RuleCondition, String) {
    let (field, _, there) = random.pick(&COLUMNS);
    let name = field.name();
    if there.is_some() && random.below(5) == 0 {
        return (RuleCondition::Absent(field), format!("{name} absent"));
    }
    let runs: Vec<(Values, String)> = (0..1 + random.below(2)).map(|_| values(random, field)).collect();
    let text: Vec<&str> = runs.iter().map(|(_, text)| text.as_str()).collect();
    let text = text.join(" | ");
    let holds = RuleCondition::Holds(field, runs.iter().map(|(values, _)| *values).collect());
    if random.below(4) > 0 {
        return (holds, format!("{name} {text}"));
    }
    let there = RuleCondition::Holds(field, vec![Values::Range { low: 0, high: field.most() }]);
    (RuleCondition::All(vec![there, RuleCondition::Not(Box::new(holds))]), format!("{name} not {text}"))
}

fn decision(random: &mut Random) -> (RuleAction, String) {
    match random.below(4) {
        0 => (RuleAction::Pass, "pass".to_string()),
        1 => (RuleAction::Keep, "keep".to_string()),
        2 => (RuleAction::Block, "block".to_string()),
        _ => {
            let (text, reject, _) = random.pick(&REJECTS);
            (RuleAction::Reject(reject), format!("reject {text}"))
        }
    }
}

/// A limit: a bucket of its own, and its text. Some rates are those of other rules.
fn limit(random: &mut Random) -> (MeterModel, String) {
    let (unit, rate, burst) = if random.below(3) == 0 {
        (Unit::Bytes, 100 * (1 + random.below(10)), 50 * (1 + random.below(3)))
    } else {
        (Unit::Packets, 1 + random.below(3), 1 + random.below(3))
    };
    let word = if unit == Unit::Bytes { " bytes" } else { "" };
    let rates = MeterRates::Single { committed: rate, committed_burst: burst as u32, excess_burst: 0 };
    let (time, period) = random.pick(&[("s", 1), ("s", 1), ("min", 60), ("h", 3_600), ("day", 86_400)]);
    let bucket =
        MeterModel::new(MeterSpec { cells: 1, rates, period, unit, aware: false }).expect("it has a burst");
    (bucket, format!("limit {rate}{word}/{time} burst {burst} "))
}

/// A rule of a group; jumps lead to later groups.
fn rule(
    random: &mut Random,
    (group, order): (u64, MatchOrder),
    groups: u64,
    limits: &mut Vec<MeterModel>,
) -> (PolicyRule, String) {
    let (action, text) = match random.below(10) {
        0 | 1 if group + 1 < groups => {
            let to = group + 1 + random.below(groups - group - 1);
            (RuleAction::Jump(to as usize), format!("jump g{to}"))
        }
        2 => (RuleAction::Return, "return".to_string()),
        3 => (RuleAction::Continue, "count".to_string()),
        _ => decision(random),
    };
    let jumps = matches!(action, RuleAction::Jump(_));
    let decides = !jumps && !matches!(action, RuleAction::Return | RuleAction::Continue);
    let (log, decides_at_once) = (random.below(4) == 0, decides && random.below(4) == 0);
    let most = if jumps { 2 } else { 3 };
    let (mut conditions, texts): (Vec<_>, Vec<_>) =
        (0..random.below(most)).map(|_| condition(random)).unzip();
    let at_once = order == MatchOrder::First || decides_at_once || action == RuleAction::Continue;
    let mut limited = String::new();
    if at_once && random.below(4) == 0 {
        let (bucket, text) = limit(random);
        conditions.push(RuleCondition::Remembered(limits.len()));
        limits.push(bucket);
        limited = text;
    }
    let word = if log { "log " } else { "" };
    let last = if decides_at_once { " final" } else { "" };
    let written = format!("{limited}{word}{text}{last} {}", texts.join(", "));
    let rule = PolicyRule {
        place: RulePlace::default(),
        text: written.as_str().into(),
        condition: RuleCondition::All(conditions),
        action,
        decides_at_once,
        log,
        count: false,
    };
    (rule, written)
}

pub fn draft(random: &mut Random) -> Draft {
    let groups = 1 + random.below(5);
    let (default, default_text) = decision(random);
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(field, ty, there)| {
            let absent = if there.is_some() { " absent" } else { "" };
            format!("{}: {ty}{absent}", field.name())
        })
        .collect();
    let mut text = format!(
        "layout probe {{ src: ip6 dst: ip6 proto: u8 sport: u16 dport: u16 icmp: u8 flags: u8 state: u8 there: u8 }}
        counter acts[4]
        counter rules[64]
        counter kinds[1024]
        counter logged[64]
        policy edge({}) {{
            hook forward {{ group g0 default {default_text} }}
            pass => {{ count acts[0] count rules[rule & 63] flood }}
            keep => {{ count acts[1] count rules[rule & 63] flood }}
            block => {{ count acts[2] count rules[rule & 63] flood }}
            reject => {{ count acts[3] count rules[rule & 63] count kinds[(kind as u16) & 1023] flood }}
            log => count logged[rule & 63]
        ",
        columns.join(", ")
    );
    if random.below(2) == 0 {
        text += "counted times\n";
    }
    let hook = Hook { point: HookPoint::Forward, group: 0, default, place: RulePlace::default() };
    let mut policy = Policy { hooks: vec![hook], ..Policy::default() };
    let mut limits = Vec::new();
    for group in 0..groups {
        let (order, word) = random.pick(&[(MatchOrder::First, ""), (MatchOrder::Last, "last ")]);
        let _ = writeln!(text, "group g{group} {word}{{");
        let mut rules = Vec::new();
        for _ in 0..random.below(7) {
            let (rule, written) = rule(random, (group, order), groups, &mut limits);
            let _ = writeln!(text, "{written}");
            rules.push(rule);
        }
        text += "}\n";
        policy.groups.push(RuleGroup { name: format!("g{group}"), order, rules });
    }
    text += "}
        start decoder frame(p: probe) {
            goto edge.forward(
                p.src, p.dst, p.proto, p.sport, p.there & 1 == 1, p.dport, p.there & 2 == 2,
                p.icmp, p.there & 4 == 4, p.flags, p.there & 8 == 8, p.state as% u3, in_port
            )
        }\n";
    Draft { policy, limits, text }
}

/// A packet as its fields, its bytes and its port.
pub fn packet(random: &mut Random) -> (Packet, Vec<u8>, u16) {
    let there = random.below(16) as u8;
    let mut packet = Packet::default();
    let mut bytes = Vec::new();
    let mut port = 1;
    for (field, ty, bit) in COLUMNS {
        // A value that is not there is handed over all the same.
        let mut value = u128::from(random.below(8));
        match ty {
            "ip6" => bytes.extend(number(field, value).to_be_bytes()),
            "u16" => bytes.extend((value as u16).to_be_bytes()),
            "port" => {
                value = value.max(1);
                port = value as u16;
            }
            _ => bytes.push(value as u8),
        }
        let present = bit.is_none_or(|bit| there & bit != 0);
        packet = packet.with(field, present.then(|| number(field, value)));
    }
    bytes.push(there);
    (packet, bytes, port)
}

/// What the counters of a program say.
pub fn counts(backend: &dyn Backend) -> Vec<Vec<u64>> {
    (0..4).map(|counter| backend.counter(counter).iter().map(|(packets, _)| *packets).collect()).collect()
}

/// What the counters are to say after a packet.
pub fn expected(
    before: &[Vec<u64>],
    policy: &Policy,
    packet: &Packet,
    within: &dyn Fn(usize) -> bool,
) -> Vec<Vec<u64>> {
    let verdict = evaluate(policy, Path::Forwarded, packet, within).expect("no circle");
    let first: Vec<usize> = policy
        .groups
        .iter()
        .scan(1, |next, group| {
            *next += group.rules.len();
            Some(*next - group.rules.len())
        })
        .collect();
    let mut counts = before.to_vec();
    let mut decided = 0;
    for step in &verdict.steps {
        let Step::Rule(group, index) = *step else { continue };
        let (rule, number) = (&policy.groups[group].rules[index], first[group] + index);
        counts[3][number] += u64::from(rule.log);
        if !matches!(rule.action, RuleAction::Jump(_) | RuleAction::Return | RuleAction::Continue) {
            decided = number;
        }
    }
    counts[1][decided] += 1;
    match verdict.action {
        RuleAction::Pass => counts[0][0] += 1,
        RuleAction::Keep => counts[0][1] += 1,
        RuleAction::Block => counts[0][2] += 1,
        RuleAction::Reject(reject) => {
            counts[0][3] += 1;
            let known = REJECTS.iter().find(|(_, kind, _)| *kind == reject).expect("one of those drawn");
            counts[2][known.2] += 1;
        }
        other => panic!("no verdict: {other:?}"),
    }
    counts
}

/// The cells that are not as they should be.
pub fn differences(are: &[Vec<u64>], should: &[Vec<u64>]) -> Vec<(usize, usize, u64, u64)> {
    let mut found = Vec::new();
    for (counter, (are, should)) in are.iter().zip(should).enumerate() {
        let cells = are.iter().zip(should).enumerate().filter(|(_, (is, should))| is != should);
        found.extend(cells.map(|(cell, (is, should))| (counter, cell, *is, *should)));
    }
    found
}
