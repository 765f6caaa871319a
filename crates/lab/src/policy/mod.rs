//! `lab policy`: a policy, with and without columns that may be absent, beside the same rules as a table, one
//! that keeps connections, and how long large policies take from their text to the first packet.

mod texts;

use crate::connections;
use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::{Contender, Group, Pass, SEED, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::{compile, compile_with_rules, compiled};
use crate::router::data::part;
use crate::router::packets::{self, Flow};
use crate::switch_apps::app_rows;
use crate::tables::rules::{Set, WIDTHS, made};
use crate::traffic::LabError;
use exec::BackendKind;
use ir::{Entry, Match, Program};
use lang::pipeline::Decode;
use packet::Frames;
use ports::Order;
use std::time::Instant;
use tables::generate::rules::Flavour;
use tables::rules::{RulesSpec, RulesTable};

/// How many rules are held against a table, and are loaded.
const RULES: [usize; 3] = [100, 1000, 10_000];
/// How many in a quick try.
const QUICK: [usize; 1] = [200];
/// How many rules the policy has that keeps connections, and how many connections are open.
const STATEFUL_RULES: usize = 1000;
const CONNECTIONS: u32 = 100_000;
const QUICK_CONNECTIONS: u32 = 2000;
/// Segments of open connections that are wanted a second, in millions.
const WANTED_SEGMENTS: u32 = 6;
/// The time that is wanted from the text of the most rules to the first packet, in milliseconds.
const WANTED_LOAD: u32 = 1000;
/// Packets that the interpreter judges.
const JUDGED: usize = 2048;
/// Of so many rules in order one blocks and the others pass.
const BLOCKS: usize = 4;

const STATELESS: &str = include_str!("stateless.rav");
const STATEFUL: &str = include_str!("../../../../programs/policy.rav");
const FROM_FILE: &str = include_str!("../../../../programs/rules/firewall.rav");

/// How packets were run.
pub(crate) fn mode() -> String {
    "one thread, its own time, packets in memory, native code; generated rules, of which every fourth blocks, and packets of 64 bytes made \
for them; connections without accounting"
        .to_owned()
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let counts = if plan.quick { &QUICK[..] } else { &RULES };
    let mut rows = Vec::new();
    for &count in counts {
        for (name, flavour) in [("acl", Flavour::AccessList), ("fw", Flavour::Firewall)] {
            let set = made(name, flavour, count);
            let case = format!("{count} rules ({})", set.name);
            progress(&format!("policy: {case}"));
            rows.extend(beside_table(plan, &case, &set)?);
        }
    }
    progress("policy: connections");
    rows.extend(keeping(plan)?);
    if let Some(&most) = counts.last() {
        let set = made("acl", Flavour::AccessList, most);
        progress(&format!("policy: from the text of {most} rules to the first packet"));
        rows.extend(loading(plan, &set)?);
    }
    Ok(rows)
}

fn passes(number: usize) -> bool {
    number % BLOCKS != BLOCKS - 1
}

/// The rates of a policy and of the same rules as a table, in turns.
fn beside_table(plan: &LabPlan, case: &str, set: &Set) -> Result<Vec<Row>, LabError> {
    let compile = |text: &str| compile("policy", text, Decode::Lazy).map_err(LabError::Program);
    let text = stateless(set).map_err(LabError::Program)?;
    let policy = compile(&text)?;
    let always_there = compile(&without_absent(&text).map_err(LabError::Program)?)?;
    let table = table(set, &policy).map_err(LabError::Program)?;
    let contenders = || -> Result<_, String> {
        Ok(vec![
            Contender::named("policy", &policy, BackendKind::Native, 2)?,
            Contender::named("firewall_rules", &table, BackendKind::Native, 2)?,
            Contender::named("policy without absent", &always_there, BackendKind::Native, 2)?,
        ])
    };
    let mut workload = Workload::new(frames(set, plan), Order::Replay, 2);
    workload.take_own_time();
    workload.judge_first(JUDGED);
    workload.enter_by(1);
    let measured = contenders().and_then(|contenders| {
        let mut groups = [(Group::new(contenders), 2)];
        rounds(&mut workload, &mut groups, plan).remove(0)
    });
    let policy_case = format!("{case}, policy");
    let mut rows = app_rows(&policy_case, measured.clone(), None);
    if let (Ok(measured), Some(row)) = (&measured, rows.first_mut()) {
        row.what = format!("{}; wanted: no less than the table", row.what);
        let of_table = |place: usize| ratio(&measured[place].passes, &measured[1].passes);
        let what = "packet rate as a part of the table's, run by run";
        rows.push(Row::alone(&policy_case, what, "×", of_table(0), None));
        let case = format!("{policy_case} without absent");
        rows.push(Row::alone(&case, what, "×", of_table(2), None));
    }
    Ok(rows)
}

/// What the rates of one are as parts of those of the other in the same run, which falls out less by what
/// else the machine does than either of them.
fn ratio(ours: &[Pass], theirs: &[Pass]) -> Option<Figure> {
    Figure::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours.mpps() / theirs.mpps()))
}

/// The text of the stateless program with the rules of a set.
fn stateless(set: &Set) -> Result<String, String> {
    let decision = |number| if passes(number) { "pass" } else { "block" };
    exchanged(STATELESS, "RULES\n", "    }", &texts::lines(&set.rules, decision))
}

/// The stateless program with the columns of `firewall_rules`: a packet without ports is asked with both
/// ports 0, and no column may be absent. The decisions about its packets are those of the table.
fn without_absent(text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for (with, without) in
        [("u16 absent", "u16"), ("0, false", "0"), ("l4.src, true", "l4.src"), ("l4.dst, true", "l4.dst")]
    {
        if !text.contains(with) {
            return Err(format!("a program has no {with:?}"));
        }
        text = text.replace(with, without);
    }
    Ok(text)
}

/// `text` with other words in place of all from `from` on up to `to`.
fn exchanged(text: &str, from: &str, to: &str, words: &str) -> Result<String, String> {
    let found = || {
        let start = text.find(from)?;
        let end = start + text[start..].find(to)?;
        Some((start, end))
    };
    let (start, end) = found().ok_or_else(|| format!("a program has no {from:?} before {to:?}"))?;
    Ok(format!("{}{words}{}", &text[..start], &text[end..]))
}

/// `firewall_rules` with the rules of a set, and a last one for what the default of the policy decides. Its
/// table is called as that of the policy, so that both count alike.
fn table(set: &Set, policy: &Program) -> Result<Program, String> {
    let mut program = compiled("firewall_rules", Decode::Lazy)?;
    let (Some(table), Some(of_policy)) = (program.tables.first_mut(), policy.tables.first()) else {
        return Err("a program has no table".to_owned());
    };
    let value = |passes: bool| vec![u128::from(!passes)];
    let rules = set.rules.iter().enumerate();
    let entry = |(number, rule): (usize, &tables::rules::Rule)| {
        let key = rule.fields.iter().zip(WIDTHS).map(|(field, width)| part(field, width)).collect();
        Entry { key, value: value(passes(number)), priority: 0 }
    };
    table.entries = rules.map(entry).collect();
    let key = vec![Match::Any; WIDTHS.len()];
    table.entries.push(Entry { key, value: value(false), priority: 0 });
    table.name.clone_from(&of_policy.name);
    Ok(program)
}

/// The headers of a set as packets.
fn frames(set: &Set, plan: &LabPlan) -> Frames {
    let count = set.trace.len() / WIDTHS.len();
    let headers = set.trace.chunks_exact(WIDTHS.len()).take(if plan.quick { count / 16 } else { count });
    packets::made(headers.map(|header| Flow {
        src: header[0] as u32,
        dst: header[1] as u32,
        ports: [header[2] as u16, header[3] as u16],
        proto: header[4] as u8,
    }))
}

/// A policy that keeps connections: new ones, opened ones, and segments of open ones.
fn keeping(plan: &LabPlan) -> Result<Vec<Row>, LabError> {
    let rules = if plan.quick { QUICK[0] } else { STATEFUL_RULES };
    let count = if plan.quick { QUICK_CONNECTIONS } else { CONNECTIONS };
    let text = stateful(rules).map_err(LabError::Program)?;
    let program = connections::with_room("policy", &text, count).map_err(LabError::Program)?;
    let measured = connections::measure(&program, count, plan)?;
    let case = format!("{count} connections of TCP, policy of {rules} rules");
    let mut rows: Vec<Row> = connections::parts(&case, measured).collect();
    if let Some(row) = rows.last_mut() {
        row.what = format!("{}; wanted: {WANTED_SEGMENTS}", row.what);
    }
    Ok(rows)
}

/// `policy` with so many generated rules that keep, and a last one that keeps what comes from inside.
fn stateful(rules: usize) -> Result<String, String> {
    let set = made("acl", Flavour::AccessList, rules - 1);
    let lines = texts::lines(&set.rules, |_| "keep");
    let groups = format!("    group lines {{\n{lines}        keep in_port INSIDE\n    }}");
    let text = exchanged(STATEFUL, "    group lines {", "\n}\n\nstart decoder", &groups)?;
    Ok(text.replacen("capacity 1k", "capacity 2k", 1))
}

/// From text to the first packet: rules that the program says, and rules of a file beside it; beside the
/// build of the table alone, as `lab tables` measures it.
fn loading(plan: &LabPlan, set: &Set) -> Result<Vec<Row>, LabError> {
    let written = stateless(set).map_err(LabError::Program)?;
    let file = texts::dump(&set.rules, passes);
    let load = |path: &str| (path == "rules.v4").then(|| file.clone());
    let count = set.rules.len();
    let programs = [
        (format!("{count} rules in the program, policy"), written.as_str()),
        (format!("{count} rules of a file of iptables, rules/firewall"), FROM_FILE),
    ];
    let mut times: [[Vec<f64>; 2]; 2] = Default::default();
    let mut alone = Vec::new();
    let spec = RulesSpec { widths: WIDTHS.to_vec(), capacity: count + count / 4 };
    // The first round warms up.
    for round in 0..=plan.runs {
        for ((_, text), [front, whole]) in programs.iter().zip(&mut times) {
            let begin = Instant::now();
            let program = compile_with_rules(text, &load).map_err(LabError::Program)?;
            let to_program = begin.elapsed();
            let loaded = exec::load(&program, BackendKind::Native, 2, SEED);
            let to_packet = begin.elapsed();
            loaded.map_err(|error| LabError::Program(error.to_string()))?;
            if round > 0 {
                front.push(to_program.as_secs_f64() * 1e3);
                whole.push(to_packet.as_secs_f64() * 1e3);
            }
        }
        let rules = set.rules.iter().enumerate();
        let rules = rules.map(|(place, rule)| (place as u64, rule.clone(), place as u32)).collect();
        let begin = Instant::now();
        let built = RulesTable::build(&spec, rules);
        let took = begin.elapsed();
        built.map_err(|error| LabError::Tables(error.to_string()))?;
        if round > 0 {
            alone.push(took.as_secs_f64() * 1e3);
        }
    }
    let alone = Figure::of(alone).map(|figure| Other::of("a table of five columns alone", figure));
    let mut rows = Vec::new();
    for ((case, _), [front, whole]) in programs.into_iter().zip(times) {
        let what = format!("text to machine code and tables; wanted: {WANTED_LOAD}");
        let row = Row::alone(&case, &what, "ms", Figure::of(whole), None);
        rows.push(row.against(alone.clone(), Better::Less));
        rows.push(Row::alone(&case, "of that, text to IR", "ms", Figure::of(front), None));
    }
    Ok(rows)
}
