//! How long one change of a table of rules takes: `cargo run --release -p tables --example rules_changes -- 10000`.

use std::time::Instant;
use tables::rules::{Rule, RuleField, Rules, RulesSpec, RulesTable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).ok_or("rules_changes RULES")?.parse()?;
    let mut seed = 1u64;
    let mut below = |bound: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % bound
    };
    let mut rules = Vec::new();
    for _ in 0..count {
        let mut address = || match below(4) {
            0 => RuleField::Any,
            1 => RuleField::Prefix { value: u128::from(below(1 << 32)), length: 24 + below(9) as u8 },
            _ => RuleField::Prefix { value: u128::from(below(256) << 8 | 10 << 24), length: 16 + below(17) as u8 },
        };
        let (from, to) = (address(), address());
        let mut port = || match below(4) {
            0 | 1 => RuleField::Any,
            2 => RuleField::Exact(u128::from(below(1024))),
            _ => RuleField::Range { low: 1024, high: 65535 },
        };
        let (source, target) = (port(), port());
        let protocol = if below(5) == 0 { RuleField::Any } else { RuleField::Exact(6 + 11 * u128::from(below(2))) };
        rules.push(Rule { fields: vec![from, to, source, target, protocol] });
    }
    let spec = RulesSpec { widths: vec![32, 32, 16, 16, 8], capacity: 2 * count as usize };
    for built in [false, true] {
        let given: Vec<_> =
            if built { rules.iter().enumerate().map(|(at, rule)| (3 * at as u64, rule.clone(), 1)).collect() } else { Vec::new() };
        let mut table = RulesTable::build(&spec, given)?;
        let mut times: Vec<u64> = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            let begun = Instant::now();
            if let Err(e) = table.insert(3 * at as u64 + 1, rule, 1) { println!("{e}"); break; }
            times.push(begun.elapsed().as_nanos() as u64);
        }
        report(built, "insert", times);
        let keys: Vec<u64> = (0..1 << 14).flat_map(|_| [below(256) << 8 | 10 << 24, below(1<<32), below(1024), below(65536), 6]).collect();
        let mut values = vec![0; 1 << 14];
        let begun = Instant::now();
        for _ in 0..10 { table.find_bulk(&keys, &mut values); }
        println!("{:?}; lookup {:.1} ns", table.statistics(), begun.elapsed().as_nanos() as f64 / (10 << 14) as f64);
        let mut times: Vec<u64> = Vec::new();
        for at in 0..rules.len() as u64 {
            let begun = Instant::now();
            table.remove(3 * at + 1);
            times.push(begun.elapsed().as_nanos() as u64);
        }
        report(built, "remove", times);
    }
    Ok(())
}

fn report(built: bool, what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let part = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    let above = times.iter().filter(|time| **time > 100_000).count();
    println!("{what}, {}: µs half {:.1}, 99 % {:.1}, 99.9 % {:.1}, longest {:.1}; {above} of {} above 100",
        if built { "beside as many of a build" } else { "into an empty table" }, part(0.5), part(0.99), part(0.999), part(1.0), times.len());
}
