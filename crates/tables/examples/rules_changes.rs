//! How long one change of a table of rules takes, with rules of five columns that often leave one open:
//! `cargo run --release -p tables --example rules_changes -- 10000`.

use std::time::Instant;
use tables::generate::Random;
use tables::rules::{Rule, RuleField, Rules, RulesInsertError, RulesSpec, RulesTable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).ok_or("rules_changes RULES")?.parse()?;
    let mut random = Random::new(1);
    let rules: Vec<Rule> = (0..count).map(|_| rule(&mut random)).collect();
    let spec = RulesSpec { widths: vec![32, 32, 16, 16, 8], capacity: 2 * count };
    for built in [false, true] {
        let given = rules.iter().take(if built { count } else { 0 }).cloned();
        let given = (0..).zip(given).map(|(at, rule)| (2 * at, rule, 1)).collect();
        let mut table = RulesTable::build(&spec, given)?;
        let mut times = Vec::new();
        for (at, rule) in (0..).zip(&rules) {
            let begun = Instant::now();
            let inserted = table.insert(2 * at + 1, rule, 1);
            let time = begun.elapsed().as_nanos();
            match inserted {
                Err(error @ RulesInsertError::Spread { .. }) => {
                    println!("after {}: {error}", times.len());
                    break;
                }
                inserted => inserted?,
            }
            times.push(time);
        }
        let inserted = times.len() as u64;
        report(built, "insert", times);
        let keys: Vec<u64> = (0..1 << 14).flat_map(|_| key(&mut random)).collect();
        let mut values = vec![0; 1 << 14];
        let begun = Instant::now();
        (0..10).for_each(|_| table.find_bulk(&keys, &mut values));
        println!("{:?}; a lookup takes {} ns", table.statistics(), begun.elapsed().as_nanos() / (10 << 14));
        let removed = (0..inserted).map(|at| {
            let begun = Instant::now();
            table.remove(2 * at + 1);
            begun.elapsed().as_nanos()
        });
        report(built, "remove", removed.collect());
    }
    Ok(())
}

fn key(random: &mut Random) -> [u64; 5] {
    let mut below = |bound: u64| random.below(bound);
    [10 << 24 | below(256) << 8, below(1 << 32), below(1024), below(65_536), 6]
}

fn rule(random: &mut Random) -> Rule {
    let mut below = |bound: u64| u128::from(random.below(bound));
    let mut address = || match below(4) {
        0 => RuleField::Any,
        1 => RuleField::Prefix { value: below(1 << 32), length: 24 + below(9) as u8 },
        _ => RuleField::Prefix { value: 10 << 24 | below(256) << 8, length: 16 + below(17) as u8 },
    };
    let (source, target) = (address(), address());
    let mut port = || match below(4) {
        0 | 1 => RuleField::Any,
        2 => RuleField::Exact(below(1024)),
        _ => RuleField::Range { low: 1024, high: 65_535 },
    };
    let (from, to) = (port(), port());
    let protocol = if below(5) == 0 { RuleField::Any } else { RuleField::Exact(6 + 11 * below(2)) };
    Rule { fields: vec![source, target, from, to, protocol] }
}

fn report(built: bool, what: &str, mut times: Vec<u128>) {
    times.sort_unstable();
    let part = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    let above = times.iter().filter(|time| **time > 100_000).count();
    println!(
        "{what}, {}: µs half {:.1}, 99 % {:.1}, 99.9 % {:.1}, longest {:.1}; {above} of {} above 100",
        if built { "beside as many that were built" } else { "alone" },
        part(0.5),
        part(0.99),
        part(0.999),
        part(1.0),
        times.len()
    );
}
