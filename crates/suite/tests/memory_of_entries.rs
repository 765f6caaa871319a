//! What `ravelin check` tells of tables of prefixes, rules and patterns, whose memory depends on their
//! entries, beside what is really taken. One test, since an allocator counts for all of a process.

mod counted;

use exec::state::table_set::filled;
use exec::{Backend, BackendKind, load};
use ir::footprint::{footprint, listed, total};
use ir::{BytePattern, Entry, Match, Program};
use lang::pipeline::{CompileOptions, compile};
use tables::generate::payload::{Literals, PatternsSpec};
use tables::generate::routes::{GeneratedRoutes, RoutesSpec};
use tables::generate::rules::{Flavour, GeneratedRules, RuleSetSpec};
use tables::generate::{Random, Version};

/// What names, code and the like take, which nobody adds up.
const BESIDE: f64 = 8192.0;

fn program(declaration: &str, entries: Vec<Entry>) -> Program {
    let text = format!("{declaration}\nstart stage all() {{ flood }}\n");
    let compiled = compile("case.rav", &text, &|_| None, &CompileOptions::default());
    let mut program = compiled.program.unwrap_or_else(|| panic!("{declaration}: {:?}", compiled.diagnostics));
    program.tables.iter_mut().zip([entries]).for_each(|(table, entries)| table.entries = entries);
    program
}

/// Bytes of memory that images have been given: the system maps it, no allocator, and is told whether to give
/// large pages.
fn mapped() -> i64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let (mut resident, mut all) = (0, 0);
    for line in maps.lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            resident = rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
        } else if line
            .strip_prefix("VmFlags:")
            .is_some_and(|flags| flags.split(' ').any(|flag| ["hg", "nh"].contains(&flag)))
        {
            all += resident * 1024;
        }
    }
    all
}

/// What a program takes that is kept and run, beyond one that remembers nothing.
fn taken(program: &Program, nothing: i64) -> (Box<dyn Backend>, i64) {
    let before = mapped();
    let ((made, kept), bytes) = counted::held(|| {
        let kept = program.clone();
        (load(&kept, BackendKind::Native, 64, 1).expect("it loads"), kept)
    });
    let bytes = bytes + mapped() - before - nothing;
    drop(kept);
    (made, bytes)
}

fn routes(version: Version, count: usize) -> Vec<Entry> {
    let spec = RoutesSpec { version, count, next_hops: 60, seed: 5 };
    let entry = |route: &tables::generate::routes::Route| Entry {
        key: vec![Match::Prefix { value: route.bits, length: route.length }],
        value: vec![route.next_hop.into()],
        priority: 0,
    };
    GeneratedRoutes::new(&spec).routes.iter().map(entry).collect()
}

fn rules(flavour: Flavour, count: usize) -> Vec<Entry> {
    let set = GeneratedRules::new(&RuleSetSpec { flavour, count, seed: 5 });
    let network = |network: tables::generate::rules::Network| match network.length {
        0 => Match::Any,
        length => Match::Prefix { value: network.address.into(), length },
    };
    let ports = |(low, high): (u16, u16)| match (low, high) {
        (0, u16::MAX) => Match::Any,
        (low, high) if low == high => Match::Exact(low.into()),
        (low, high) => Match::Range { low: low.into(), high: high.into() },
    };
    let entry = |(rule, number): (&tables::generate::rules::FlowRule, u128)| Entry {
        key: vec![
            network(rule.source),
            network(rule.destination),
            ports(rule.source_ports),
            ports(rule.destination_ports),
            rule.protocol.map_or(Match::Any, |protocol| Match::Exact(protocol.into())),
        ],
        value: vec![number % 7],
        priority: 0,
    };
    set.rules.iter().zip(0..).map(entry).collect()
}

fn pattern(bytes: Vec<u8>, nocase: bool, number: u128) -> Entry {
    let key = vec![Match::Bytes(Box::new(BytePattern { bytes, nocase, offset: 0, depth: None }))];
    Entry { key, value: vec![number % 7], priority: 0 }
}

fn patterns(count: usize) -> Vec<Entry> {
    let literals = Literals::new(&PatternsSpec { count, nocase: 30, seed: 5 }).literals;
    literals.into_iter().zip(0..).map(|(one, number)| pattern(one.bytes, one.nocase, number)).collect()
}

const RULES: &str = "rules(u32, u32, u16, u16, u8) -> u32";

#[test]
fn what_tables_take_with_their_entries_is_told_and_never_exceeds_what_they_take_at_most() {
    let empty = program("", Vec::new());
    drop(load(&empty, BackendKind::Native, 64, 1));
    let (made, nothing) = counted::held(|| load(&empty, BackendKind::Native, 64, 1).expect("it loads"));
    drop(made);
    let mut wrong = Vec::new();
    let mut compare = |what: &str, kind: &str, capacity: usize, entries: Vec<Entry>| {
        let count = entries.len();
        let program = program(&format!("table t: {kind} {{ capacity {capacity} }}"), entries);
        let now = filled(&program).expect("it can be made")[0].expect("it depends on its entries");
        let (now, most) = ((now + listed(&program.tables[0])) as f64, total(&footprint(&program)) as f64);
        let (made, bytes) = taken(&program, nothing);
        drop(made);
        let bytes = bytes as f64;
        let (ratio, factor) = (now / bytes, most / bytes);
        println!(
            "{now:>11} told {bytes:>11} taken {ratio:5.2}  at most {most:>11} {factor:6.2} times  {count} of {capacity} {what}"
        );
        if (now - bytes).abs() > bytes / 10.0 + BESIDE {
            wrong.push(format!("{count} {what}: {now} bytes are told and {bytes} are taken"));
        }
        if most < bytes - BESIDE {
            wrong.push(format!("{count} {what}: {most} bytes are told as the most and {bytes} are taken"));
        }
    };
    for count in [1, 100, 2_000, 10_000] {
        compare("routes of IPv4", "lpm(u32) -> u32", count, routes(Version::V4, count));
        compare("routes of IPv6", "lpm(u128) -> u32", count, routes(Version::V6, count));
        compare("patterns", "patterns(bytes) -> u32", count, patterns(count));
    }
    compare("routes of IPv4", "lpm(u32) -> u32", 200_000, routes(Version::V4, 2_000));
    compare("routes of IPv6", "lpm(u128) -> u32", 200_000, routes(Version::V6, 2_000));
    for (name, flavour) in [
        ("rules of access lists", Flavour::AccessList),
        ("rules of firewalls", Flavour::Firewall),
        ("rules of chains", Flavour::Chains),
    ] {
        for count in [1, 100, 2_000] {
            compare(name, RULES, count, rules(flavour, count));
        }
    }
    compare("rules of firewalls", RULES, 10_000, rules(Flavour::Firewall, 100));
    // Those that take most: each entry is far from all others, has a value of its own, and is counted.
    let mut random = Random::new(9);
    let apart = |number: u128, bits: u128| Entry {
        key: vec![Match::Prefix { value: bits, length: 128 }],
        value: vec![number],
        priority: 0,
    };
    compare(
        "hosts apart",
        "lpm(u128) -> u32",
        20_000,
        (0..20_000).map(|n| apart(n, random.wide())).collect(),
    );
    let narrow = |number: u128, bits: u32| Entry {
        key: vec![Match::Prefix { value: bits.into(), length: 32 }],
        value: vec![number],
        priority: 0,
    };
    let hosts = (0..20_000_u32).map(|n| narrow(n.into(), n.wrapping_mul(0x9e37_79b1))).collect();
    compare("hosts apart", "lpm(u32) -> u32", 20_000, hosts);
    let long = |number: u128| {
        let bytes = (0..300).map(|_| random.below(256) as u8).collect();
        pattern(bytes, false, number)
    };
    compare("long patterns", "patterns(bytes) -> u32", 500, (0..500).map(long).collect());
    let short = |number: u128| pattern((number as u16).to_be_bytes().to_vec(), false, number);
    compare("short patterns", "patterns(bytes) -> u32", 3_000, (0..3_000).map(short).collect());
    // Changed again and again, none takes more than is told either.
    for (kind, entries) in [
        ("lpm(u32) -> u32", routes(Version::V4, 3_000)),
        ("lpm(u128) -> u32", routes(Version::V6, 3_000)),
        (RULES, rules(Flavour::Firewall, 600)),
    ] {
        let half = entries.len() / 2;
        let program =
            program(&format!("table t: {kind} {{ capacity {half} counted }}"), entries[..half].to_vec());
        let most = total(&footprint(&program)) as i64;
        let before = mapped();
        let (made, bytes) = counted::held(|| {
            let kept = program.clone();
            let mut made = load(&kept, BackendKind::Native, 64, 1).expect("it loads");
            for round in 0..4 {
                let gone = entries.iter().skip(if round % 2 == 0 { 0 } else { half });
                gone.take(half).for_each(|entry| assert!(made.remove(0, &entry.key, 0)));
                let come = entries.iter().skip(if round % 2 == 0 { half } else { 0 });
                come.take(half).for_each(|entry| made.insert(0, entry).expect("room"));
            }
            (made, kept)
        });
        let bytes = bytes + mapped() - before - nothing;
        drop(made);
        println!("{bytes:>11} taken, {most:>11} at most, changed  {kind}");
        if most < bytes - BESIDE as i64 {
            wrong.push(format!("{kind}, changed: {most} bytes are told as the most and {bytes} are taken"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
