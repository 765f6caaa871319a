//! Random policies: a program decides, counts and logs on all back ends as the walk through the groups says.

mod policy_draft;
mod program;

use exec::{Backend, BackendKind, HitTimes, Outputs, load};
use lang::pipeline::{CompileOptions, compile};
use lang::policy_rows::{RowRole, rule_of};
use packet::Batch;
use policy::{Path, evaluate};
use policy_draft::{Draft, counts, differences, draft, expected, packet};
use program::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tables::meter::Colour;

/// When rows that decide were found for the rule of each number, first and last.
fn times(backend: &dyn Backend) -> BTreeMap<u32, HitTimes> {
    let mut times: BTreeMap<u32, HitTimes> = BTreeMap::new();
    for (row, count) in backend.entries(0) {
        let decides = row.value[0] < 4;
        if let (Some(new), (rule, RowRole::Acts), true) = (count.times, rule_of(&row), decides) {
            let known = times.entry(rule).or_insert(new);
            *known = HitTimes { first: known.first.min(new.first), last: known.last.max(new.last) };
        }
    }
    times
}

#[test]
fn random_policies_decide_as_the_walk_through_their_groups() {
    let (mut compiled_policies, mut timed, mut acts, mut logged) = (0, 0, [0; 4], 0);
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
        let mut backends = BackendKind::ALL.map(|kind| load(&program, kind, 9, seed).expect("it loads"));
        let mut before = counts(backends[0].as_ref());
        let mut decided: BTreeMap<u32, HitTimes> = BTreeMap::new();
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
            let rule = (0..64).find(|rule| wanted[1][*rule] > before[1][*rule]).expect("one decides");
            decided.entry(rule as u32).or_insert(HitTimes { first: time, last: time }).last = time;
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
        let [interpreter, others @ ..] = &backends;
        for other in others {
            assert_eq!(other.entries(0), interpreter.entries(0), "seed {seed}\n{text}");
        }
        if program.tables[0].times {
            timed += 1;
            assert_eq!(times(interpreter.as_ref()), decided, "seed {seed}\n{text}");
        } else {
            assert!(interpreter.entries(0).iter().all(|(_, count)| count.times.is_none()));
        }
        acts.iter_mut().zip(&before[0]).for_each(|(all, one)| *all += one);
        logged += before[3].iter().sum::<u64>();
    }
    let [beyond, within] = asked.into_inner();
    println!("{compiled_policies} of 200 policies; verdicts {acts:?}, logged {logged}");
    println!("{within} packets within limits, {beyond} beyond");
    assert!(
        compiled_policies >= 170 && timed >= 50 && acts.iter().all(|act| *act >= 500) && logged >= 500,
        "{acts:?}, {logged}"
    );
    assert!(beyond >= 500 && within >= 500, "{beyond} packets beyond limits, {within} within");
}

/// A program that asks about a port, and is told in two bytes whether there is one and which. Verdicts count
/// by their place in `acts`: pass, block, log.
fn asks_a_port(before: &str, policy: &str) -> ir::Program {
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
    for kind in BackendKind::ALL {
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
    for kind in BackendKind::ALL {
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
    use ir::{Entry, Match};
    let policy = "capacity 16  hook in { group lines default pass }
    group lines { limit 1/s burst 1 pass dport 80   block dport 81 }";
    let program = asks_a_port("", policy);
    let limit = 7;
    for kind in BackendKind::ALL {
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
    use ir::{Entry, Match};
    let row = |port: u128, value: [u128; 3], priority| {
        let key = vec![Match::Exact(port), Match::Exact(1)];
        Entry { key, value: value.to_vec(), priority }
    };
    let program =
        asks_a_port("", "capacity 16  hook in { group lines default pass } group lines { block dport 80 }");
    for kind in BackendKind::ALL {
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
