//! Measures a table of rules over ClassBench sets: `rules_speed DIRECTORY SET...`, where a set is `SET.rules`
//! and `SET.trace`.
//!
//! Prints a line a set: milliseconds to build, bytes, million lookups a second in bulk and one at a time (the
//! median of nine rounds of each, interleaved), milliseconds for a change of one rule (the longest of 200),
//! and how many answers were wrong.

use std::time::{Duration, Instant};
use tables::rules::{Rule, RuleField, Rules, RulesSpec, RulesTable};

const WORDS: usize = 5;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(30);
const CHANGES: usize = 200;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("rules_speed DIRECTORY SET...");
        std::process::exit(2);
    };
    for set in arguments {
        match measure(&directory, &set) {
            Some(line) => println!("{line}"),
            None => eprintln!("{set}: {directory}/{set}.rules and .trace are not ClassBench sets"),
        }
    }
}

fn measure(directory: &str, set: &str) -> Option<String> {
    let read = |ending: &str| std::fs::read_to_string(format!("{directory}/{set}.{ending}")).ok();
    let lines = read("rules")?;
    let rules: Option<Vec<_>> =
        lines.lines().enumerate().map(|(at, line)| Some((at as u64, rule(line)?, at as u32))).collect();
    let rules = rules?;
    let (mut keys, mut wanted) = (Vec::new(), Vec::new());
    for line in read("trace")?.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        keys.extend([address(words.first()?)? as u64, address(words.get(1)?)? as u64]);
        for word in words.get(2..5)? {
            keys.push(word.parse().ok()?);
        }
        wanted.push(words.get(6)?.parse::<i64>().ok()? as u32);
    }
    let spec = RulesSpec { widths: vec![32, 32, 16, 16, 8], capacity: rules.len() };
    let start = Instant::now();
    let mut table = RulesTable::build(&spec, rules.clone()).ok()?;
    let build = start.elapsed();

    let mut values = vec![0; wanted.len()];
    let (mut bulk, mut single) = (Vec::new(), Vec::new());
    let mut wrong = 0;
    for _ in 0..ROUNDS {
        bulk.push(rate(wanted.len(), || table.find_bulk(&keys, &mut values)));
        wrong += values.iter().zip(&wanted).filter(|(value, wanted)| value != wanted).count();
        single.push(rate(wanted.len(), || {
            for (key, value) in keys.chunks_exact(WORDS).zip(&mut values) {
                *value = table.find_value(key);
            }
        }));
        wrong += values.iter().zip(&wanted).filter(|(value, wanted)| value != wanted).count();
    }
    let statistics = table.statistics();

    let mut longest = Duration::ZERO;
    for change in 0..CHANGES.min(rules.len()) {
        let (order, rule, value) = &rules[change * 7919 % rules.len()];
        let start = Instant::now();
        table.remove(*order)?;
        longest = longest.max(start.elapsed());
        let start = Instant::now();
        table.insert(*order, rule, *value).ok()?;
        longest = longest.max(start.elapsed());
    }
    table.find_bulk(&keys, &mut values);
    wrong += values.iter().zip(&wanted).filter(|(value, wanted)| value != wanted).count();
    Some(format!(
        "{set:11} rules {:6} trees {} build {:8.1} ms bytes {:9} bulk {:6.1} single {:6.1} M/s change {:7.3} ms wrong {wrong}",
        statistics.rules,
        statistics.trees,
        build.as_secs_f64() * 1e3,
        statistics.bytes,
        median(bulk),
        median(single),
        longest.as_secs_f64() * 1e3,
    ))
}

/// Million lookups a second of `work`, which does `lookups`.
fn rate(lookups: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < ROUND {
        work();
        done += lookups;
    }
    done as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A line of a ClassBench set; the flags, which traces do not have, are left out.
fn rule(line: &str) -> Option<Rule> {
    let words: Vec<&str> = line.strip_prefix('@')?.split_whitespace().collect();
    let [source, destination, s_low, ":", s_high, d_low, ":", d_high, protocol, ..] = words[..] else {
        return None;
    };
    let prefix = |text: &str| {
        let (value, length) = text.split_once('/')?;
        Some(RuleField::Prefix { value: address(value)?, length: length.parse().ok()? })
    };
    let range =
        |low: &str, high: &str| Some(RuleField::Range { low: low.parse().ok()?, high: high.parse().ok()? });
    let hexadecimal = |text: &str| u128::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (value, mask) = protocol.split_once('/')?;
    let protocol = RuleField::Ternary { value: hexadecimal(value)?, mask: hexadecimal(mask)? };
    let fields =
        vec![prefix(source)?, prefix(destination)?, range(s_low, s_high)?, range(d_low, d_high)?, protocol];
    Some(Rule { fields })
}

fn address(text: &str) -> Option<u128> {
    let mut number = 0;
    for part in text.split('.') {
        number = number << 8 | u128::from(part.parse::<u8>().ok()?);
    }
    Some(number)
}
