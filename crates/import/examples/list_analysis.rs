//! How long `check` and `diff` take for filter sets of ClassBench (decisions 58 and 71): processor time and
//! the most memory so far, without reading the file.
//!
//! ```text
//! cargo run --release -p import --example list_analysis -- [--seed N] FILE...
//! ```
//!
//! Half of the rules let pass and half block, at random; the default blocks. `diff` compares with the same
//! list after one change of a rule in a hundred: turned, moved or gone.

use import::ImportedRules;
use import::address::AddressFamily;
use import::classbench::{self, ClassBenchOptions};
use policy::{
    Hook, HookPoint, MAPPED, MatchOrder, PacketField, Policy, PolicyRule, RuleAction, RuleCondition,
    RuleGroup, RulePlace, Values, difference, findings,
};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use tables::rules::RuleField;

/// Of each kind of finding, and of differences, so many are told, as by `ravelin policy`.
const TOLD: usize = 20;

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// What a field of a filter asks of a packet, if it asks anything.
fn condition(name: &str, field: &RuleField) -> Option<RuleCondition> {
    let of = match name {
        "src" => PacketField::Source,
        "dst" => PacketField::Destination,
        "sport" => PacketField::SourcePort,
        "dport" => PacketField::DestinationPort,
        _ => PacketField::Protocol,
    };
    let base = if matches!(name, "src" | "dst") { MAPPED } else { 0 };
    let values = match *field {
        RuleField::Any => return None,
        RuleField::Exact(value) => Values::exact(base | value),
        RuleField::Range { low, high } => Values::Range { low: base | low, high: base | high },
        RuleField::Prefix { value, length } => {
            let width = AddressFamily::V4.width();
            let host = (1u128 << (width - length)) - 1;
            Values::Range { low: base | value, high: base | value | host }
        }
        RuleField::Ternary { value, mask } => Values::Masked { value, mask },
    };
    Some(RuleCondition::Holds(of, vec![values]))
}

fn policy_of(rules: &ImportedRules, random: &mut Random) -> Policy {
    let list = rules.rules.iter().map(|imported| {
        let fields = imported.rule.fields.iter().zip(&rules.columns);
        let parts = fields.filter_map(|(field, column)| condition(column.name, field)).collect();
        PolicyRule {
            place: RulePlace { line: imported.line, column: 1 },
            text: imported.text.as_ref().into(),
            condition: RuleCondition::All(parts),
            action: if random.below(2) == 0 { RuleAction::Pass } else { RuleAction::Block },
            decides_at_once: true,
            log: false,
            count: false,
        }
    });
    let group = RuleGroup { name: "list".to_owned(), order: MatchOrder::First, rules: list.collect() };
    let place = RulePlace::default();
    let hook = Hook { point: HookPoint::Forward, group: 0, default: RuleAction::Block, place };
    Policy { hooks: vec![hook], groups: vec![group], ..Policy::default() }
}

/// The policy after a change of one rule in a hundred.
fn changed(policy: &Policy, random: &mut Random) -> Policy {
    let mut policy = policy.clone();
    let rules = &mut policy.groups[0].rules;
    for _ in 0..rules.len().div_ceil(100) {
        let place = random.below(rules.len());
        match random.below(3) {
            0 => {
                let action = &mut rules[place].action;
                *action = if action.passes() { RuleAction::Block } else { RuleAction::Pass };
            }
            1 => {
                let moved = rules.remove(place);
                rules.insert(random.below(rules.len() + 1), moved);
            }
            _ if rules.len() > 1 => drop(rules.remove(place)),
            _ => {}
        }
    }
    policy
}

/// Processor time of this process in seconds: the 14th and 15th word of `/proc/self/stat`, in hundredths
/// (proc(5)).
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let words: Vec<u64> = behind_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    words.iter().sum::<u64>() as f64 / 100.0
}

/// The most memory that this process has had, in MiB.
fn most_memory() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() / 1024
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = processor_time();
    let result = work();
    (result, processor_time() - before)
}

fn row(path: &str, seed: u64) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let rules = classbench::read(&text, &ClassBenchOptions::default());
    let rules = rules.map_err(|error| format!("{path}: {error}"))?;
    let mut random = Random(seed);
    let old = policy_of(&rules, &mut random);
    let new = changed(&old, &mut random);
    let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (found, seconds) = timed(|| difference(&old, &new, TOLD));
    let said = match found {
        Ok(found) => format!("{} opened, {} closed, {} other", found.opened, found.closed, found.other),
        Err(fault) => format!("refused: {fault}"),
    };
    println!("{name}, {} rules: diff {seconds:.2} s, {} MiB: {said}", rules.rules.len(), most_memory());
    let (found, seconds) = timed(|| findings(&old, TOLD));
    let said = match found {
        Ok(found) => format!("{} never decide", found.unreached.len()),
        Err(fault) => format!("refused: {fault}"),
    };
    println!("{name}, {} rules: check {seconds:.2} s, {} MiB: {said}", rules.rules.len(), most_memory());
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seed, files) = match &arguments[..] {
        [option, seed, files @ ..] if option == "--seed" => (seed.parse().ok(), files),
        files => (Some(1), files),
    };
    let (Some(seed), false) = (seed, files.is_empty()) else {
        eprintln!("usage: list_analysis [--seed N] FILE...");
        return ExitCode::from(2);
    };
    for path in files {
        if let Err(error) = row(path, seed) {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
