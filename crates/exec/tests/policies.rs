//! Random policies: a program decides, counts and logs on both back ends as the walk through the groups says.

mod program;

use exec::{Backend, BackendKind, Outputs, load};
use lang::pipeline::{CompileOptions, compile};
use packet::Batch;
use policy::{
    Hook, HookPoint, MatchOrder, Packet, PacketField, Path, Policy, PolicyRule, Reject, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Step, Unreachable, Values, evaluate,
};
use program::Random;
use std::cell::RefCell;
use std::fmt::Write;
use tables::meter::{Colour, MeterModel, MeterRates, MeterSpec, Unit};

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
struct Draft {
    policy: Policy,
    /// The buckets of its limits, which are its memories.
    limits: Vec<MeterModel>,
    text: String,
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
    let bucket = MeterModel::new(MeterSpec { cells: 1, rates, unit, aware: false }).expect("it has a burst");
    (bucket, format!("limit {rate}{word}/s burst {burst} "))
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

fn draft(random: &mut Random) -> Draft {
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
fn packet(random: &mut Random) -> (Packet, Vec<u8>, u16) {
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
fn counts(backend: &dyn Backend) -> Vec<Vec<u64>> {
    (0..4).map(|counter| backend.counter(counter).iter().map(|(packets, _)| *packets).collect()).collect()
}

/// What the counters are to say after a packet.
fn expected(
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
fn differences(are: &[Vec<u64>], should: &[Vec<u64>]) -> Vec<(usize, usize, u64, u64)> {
    let mut found = Vec::new();
    for (counter, (are, should)) in are.iter().zip(should).enumerate() {
        let cells = are.iter().zip(should).enumerate().filter(|(_, (is, should))| is != should);
        found.extend(cells.map(|(cell, (is, should))| (counter, cell, *is, *should)));
    }
    found
}

#[test]
fn random_policies_decide_as_the_walk_through_their_groups() {
    let (mut compiled_policies, mut acts, mut logged) = (0, [0; 4], 0);
    let asked = RefCell::new([0; 2]);
    for seed in 1..=200u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Draft { policy, limits, text } = draft(&mut random);
        let limits = RefCell::new(limits);
        let compiled = compile("policy.rav", &text, &|_| None, &CompileOptions::default());
        let Some(program) = compiled.program else {
            // Jumps can multiply rules beyond the bound, and a range can meet a mask; nothing else is wrong.
            let limits: Vec<&str> = compiled.diagnostics.iter().map(|found| found.code).collect();
            assert!(
                !limits.is_empty() && limits.iter().all(|code| ["E0555", "E0558"].contains(code)),
                "seed {seed}: {:#?}\n{text}",
                compiled.diagnostics
            );
            continue;
        };
        compiled_policies += 1;
        let [declared] = &compiled.policies[..] else { panic!("one policy is declared:\n{text}") };
        let model = declared.policy.as_ref().unwrap_or_else(|sentence| panic!("{sentence}\n{text}"));
        let mut backends = [BackendKind::Interpreter, BackendKind::Native]
            .map(|kind| load(&program, kind, 9, seed).expect("it loads"));
        let mut before = counts(backends[0].as_ref());
        for number in 0..200 {
            let (packet, mut bytes, port) = packet(&mut random);
            for within in [false, true] {
                let [drafted, modelled] =
                    [&policy, model].map(|policy| evaluate(policy, Path::Forwarded, &packet, &|_| within));
                assert_eq!(modelled, drafted, "seed {seed}, packet {number}: {packet:?}\n{text}");
            }
            let (length, time) = (bytes.len() as u32, 1_000 + number * 30_000_000);
            let within = |limit: usize| {
                let colour = limits.borrow_mut()[limit].mark(0, length, Colour::Green, time);
                asked.borrow_mut()[usize::from(colour == Colour::Green)] += 1;
                colour == Colour::Green
            };
            let wanted = expected(&before, &policy, &packet, &within);
            bytes.resize(128, 0);
            for backend in &mut backends {
                let mut batch = Batch::new();
                batch.push(0, length, length, port, time);
                backend.run(&mut bytes, &mut batch, &mut Outputs::default());
                let counted = counts(backend.as_ref());
                let differ = differences(&counted, &wanted);
                assert!(
                    differ.is_empty(),
                    "seed {seed}, packet {number} by port {port}: {packet:?}\n\
                     counter, cell, what it is, what it should be: {differ:?}\n{text}"
                );
            }
            before = wanted;
        }
        acts.iter_mut().zip(&before[0]).for_each(|(all, one)| *all += one);
        logged += before[3].iter().sum::<u64>();
    }
    let [beyond, within] = asked.into_inner();
    println!("{compiled_policies} of 200 policies; verdicts {acts:?}, logged {logged}");
    println!("{within} packets within limits, {beyond} beyond");
    assert!(
        compiled_policies >= 170 && acts.iter().all(|act| *act >= 500) && logged >= 500,
        "{acts:?}, {logged}"
    );
    assert!(beyond >= 500 && within >= 500, "{beyond} packets beyond limits, {within} within");
}

/// A program that asks about a port, and is told in two bytes whether there is one and which. Verdicts count
/// by their place in `acts`: pass, block, log.
fn asks_a_port(before: &str, policy: &str) -> lang::ir::Program {
    let text = format!(
        "{before}
layout probe {{ dport: u8 there: u8 }}
counter acts[3]
counter rules[16]
policy edge(dport: u8 absent, mark: u8 carried) {{
    pass => {{ count acts[0] count rules[rule & 15] flood }}
    block => {{ count acts[1] count rules[rule & 15] flood }}
    {policy}
}}
start decoder frame(p: probe) {{ goto edge.in(p.dport, p.there == 1, 7) }}
"
    );
    let compiled = compile("port.rav", &text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:#?}\n{text}", compiled.diagnostics))
}

/// How often each verdict was counted, and each rule, after a packet to each of these ports.
fn verdicts(backend: &mut dyn Backend, ports: &[Option<u8>]) -> [Vec<u64>; 2] {
    for port in ports {
        let mut bytes = [port.unwrap_or_default(), port.is_some().into()].to_vec();
        bytes.resize(128, 0);
        let mut batch = Batch::new();
        batch.push(0, 2, 2, 1, 1_000);
        backend.run(&mut bytes, &mut batch, &mut Outputs::default());
    }
    [0, 1].map(|counter| backend.counter(counter).iter().map(|(packets, _)| *packets).collect())
}

#[test]
fn names_of_the_program_mean_nothing_in_what_a_policy_is_written_out_as() {
    let constants = "const does: u8 = 2\nconst kind: u16 = 3\nconst rule: u32 = 7\nconst below: u32 = 9";
    let policy = "hook in { group lines default block }
    log => { let dport: u8 = 43  let mark: u8 = dport  if mark != 43 { count acts[0] }  count acts[2] }
    group lines { log dport 80   pass dport 80 }";
    let program = asks_a_port(constants, policy);
    for kind in [BackendKind::Interpreter, BackendKind::Native] {
        let mut backend = load(&program, kind, 2, 0).expect("it loads");
        let [acts, rules] = verdicts(backend.as_mut(), &[Some(80), Some(43), None]);
        assert_eq!((&acts[..], &rules[..3]), (&[1, 2, 1][..], &[2, 0, 1][..]));
    }
}

#[test]
fn a_limit_is_that_of_its_rule_wherever_a_packet_meets_it() {
    // The program means something else by the names of colours.
    let enums = "enum colour: u8 { green = 2, yellow = 1, red = 0 }  const FEW: u16 = 1  const TWO: u64 = 2";
    let policy = "hook in { group lines default block }
    log => count acts[2]
    group lines { jump few dport 80 | 81   jump few dport 81 | 82   limit FEW/s burst TWO log dport 83 }
    group few { limit FEW/s burst 3 pass dport 80..82 }";
    let program = asks_a_port(enums, policy);
    assert_eq!(program.meters.len(), 2);
    for kind in [BackendKind::Interpreter, BackendKind::Native] {
        let mut backend = load(&program, kind, 2, 0).expect("it loads");
        // Ports 80 and 82 share what the rule has; one beyond it asks a second time by port 81.
        let [acts, rules] = verdicts(backend.as_mut(), &[80, 82, 81, 81, 80].map(Some));
        assert_eq!((&acts[..], rules[4]), (&[3, 2, 0][..], 3));
        let [acts, _] = verdicts(backend.as_mut(), &[83, 83, 83, 83].map(Some));
        assert_eq!(acts, [3, 6, 2]);
    }
}

#[test]
fn a_row_from_outside_without_a_meter_is_beyond_its_limit() {
    use lang::ir::{Entry, Match};
    let policy = "capacity 16  hook in { group lines default pass }
    group lines { limit 1/s burst 1 pass dport 80   block dport 81 }";
    let program = asks_a_port("", policy);
    let limit = 7;
    for kind in [BackendKind::Interpreter, BackendKind::Native] {
        let mut backend = load(&program, kind, 2, 0).expect("it loads");
        for number in [1, u128::from(u32::MAX)] {
            // Within the limit it would go on before the rule that blocks, beyond it behind it.
            let below = Match::Range { low: 1_001, high: u32::MAX.into() };
            let key = vec![Match::Exact(81), Match::Exact(1), below];
            let row = Entry { key, value: vec![limit, 0, 9, 1_000, 50, number], priority: 1_000 };
            backend.insert(0, &row).expect("there is room");
            let [before, _] = verdicts(backend.as_mut(), &[]);
            let [acts, _] = verdicts(backend.as_mut(), &[Some(81)]);
            assert_eq!((acts[0] - before[0], acts[1] - before[1]), (1, 0));
        }
    }
}

#[test]
fn rows_from_outside_decide_where_they_stand() {
    use lang::ir::{Entry, Match};
    let row = |port: u128, value: [u128; 3], priority| {
        let key = vec![Match::Exact(port), Match::Exact(1)];
        Entry { key, value: value.to_vec(), priority }
    };
    let program =
        asks_a_port("", "capacity 16  hook in { group lines default pass } group lines { block dport 80 }");
    for kind in [BackendKind::Interpreter, BackendKind::Native] {
        let mut backend = load(&program, kind, 2, 0).expect("it loads");
        let ask = |backend: &mut dyn Backend, port: u8| {
            let [before, rules] = verdicts(backend, &[]);
            let [acts, after] = verdicts(backend, &[Some(port)]);
            let one = |after: &[u64], before: &[u64]| {
                after.iter().zip(before).position(|(after, before)| after > before)
            };
            (one(&acts, &before), one(&after, &rules))
        };
        assert_eq!(ask(backend.as_mut(), 80), (Some(1), Some(1)));
        assert_eq!(ask(backend.as_mut(), 22), (Some(0), Some(0)));
        // The policy has nothing for `reject`, 3, nor for a number that is no action: both block.
        for (port, action, rule) in [(22, 3, 9), (23, 200, 10), (24, 1, 11)] {
            backend.insert(0, &row(port, [action, 0, rule], 50)).expect("there is room");
            assert_eq!(ask(backend.as_mut(), port as u8), (Some(1), Some(rule as usize)));
        }
        // Before the rule, and behind it.
        backend.insert(0, &row(80, [0, 0, 12], 50)).expect("there is room");
        assert_eq!(ask(backend.as_mut(), 80), (Some(1), Some(1)));
        backend.insert(0, &row(80, [0, 0, 13], 150)).expect("there is room");
        assert_eq!(ask(backend.as_mut(), 80), (Some(0), Some(13)));
        // Without the row of the default its verdict is that of the text.
        assert!(backend.remove(0, &[Match::Any, Match::Any], 0), "the default has a row");
        assert_eq!(ask(backend.as_mut(), 99), (Some(0), Some(0)));
    }
}
