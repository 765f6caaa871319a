//! Rule sets from outside: `RAVELIN_DATA=DIRECTORY` names a folder with `acl/`. In it `classbench.tar.zst`
//! has sets of rules with traces whose last column is the verified first rule; `stanford-backbone.tar.zst`
//! has configurations of routers and `iptables-real.tar.zst` dumps of firewalls, whose rules are held against
//! linear search. Without it there is nothing to do. In a release build the first is a measurement too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tables::generate::Random;
use tables::rules::{HygieneKind, Linear, NONE, Rule, RuleField, Rules, RulesSpec, RulesTable, hygiene};

/// Sets of more rules are not judged for rules that cannot be hit; that compares rules in pairs.
const MOST_JUDGED: usize = 11_000;

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("RAVELIN_DATA").map(PathBuf::from);
    if data.is_none() {
        println!("RAVELIN_DATA names no folder of rule sets: nothing was run");
    }
    data
}

#[test]
fn every_header_of_every_set_hits_its_rule() {
    let Some(data) = data() else { return };
    let files = files(&data.join("acl").join("classbench.tar.zst"));
    let mut sets = 0;
    for (name, rules) in files.iter().filter_map(|(name, text)| Some((name.strip_suffix(".rules")?, text))) {
        let trace = files.get(&format!("{name}.trace")).expect("a set has a trace");
        check(name, rules, trace);
        sets += 1;
    }
    assert!(sets > 0, "no rule set was found under {}", data.display());
}

fn check(name: &str, rules: &[u8], trace: &[u8]) {
    let set = import::classbench::read(rules, &Default::default()).expect("a set can be read");
    let headers = import::classbench::read_trace(trace).expect("a trace can be read");
    let widths = set.widths();
    let rules: Vec<Rule> = set.rules.into_iter().map(|rule| rule.rule).collect();
    let numbered: Vec<(u64, Rule, u32)> =
        rules.iter().enumerate().map(|(at, rule)| (at as u64, rule.clone(), at as u32)).collect();
    let keys: Vec<u64> = headers.iter().flat_map(|header| header.key).map(u64::from).collect();
    let wanted: Vec<u32> = headers
        .iter()
        .map(|header| header.last.map_or(NONE, |last| u32::try_from(last).unwrap_or(NONE)))
        .collect();

    let spec = RulesSpec { widths, capacity: rules.len() };
    let start = Instant::now();
    let mut table = RulesTable::build(&spec, numbered).expect("the rules have room");
    let built = start.elapsed();
    let statistics = table.statistics();
    assert!(statistics.bytes <= statistics.limit);

    let mut values = vec![0; wanted.len()];
    let bulk = rate(wanted.len(), || table.find_bulk(&keys, &mut values));
    assert!(values == wanted, "{name}: in bulk");
    let words = table.image().key_words();
    let single = rate(wanted.len(), || {
        for (key, value) in keys.chunks_exact(words).zip(&mut values) {
            *value = table.find_value(key);
        }
    });
    assert!(values == wanted, "{name}: one at a time");

    // Every tenth rule goes and comes back, so the answers must be the same again.
    let mut longest = Duration::ZERO;
    for at in (0..rules.len()).step_by(10) {
        let start = Instant::now();
        assert_eq!(table.remove(at as u64), Some(at as u32));
        longest = longest.max(start.elapsed());
    }
    for at in (0..rules.len()).step_by(10) {
        let start = Instant::now();
        table.insert(at as u64, &rules[at], at as u32).expect("it was there before");
        longest = longest.max(start.elapsed());
    }
    table.find_bulk(&keys, &mut values);
    assert!(values == wanted, "{name}: after changes");
    println!(
        "{name:11} rules {:6} trees {} build {:8.1} ms bytes {:9} bulk {bulk:6.1} single {single:6.1} M/s change {:6.2} ms",
        rules.len(),
        statistics.trees,
        built.as_secs_f64() * 1e3,
        statistics.bytes,
        longest.as_secs_f64() * 1e3,
    );

    if rules.len() <= MOST_JUDGED {
        let start = Instant::now();
        let findings = hygiene(&spec, &rules).expect("the rules suit the columns");
        let count = |wanted: fn(&HygieneKind) -> bool| {
            findings.iter().filter(|finding| wanted(&finding.kind)).count()
        };
        for finding in &findings {
            let hit = table.find(&finding.witness).expect("a witness fits some rule");
            assert_eq!(
                hit.order == finding.rule as u64,
                finding.kind == HygieneKind::Reachable,
                "{name}: {finding:?}"
            );
        }
        for &hit in wanted.iter().filter(|&&hit| hit != NONE) {
            let kind = &findings[hit as usize].kind;
            assert!(
                matches!(kind, HygieneKind::Reachable | HygieneKind::Undecided),
                "{name}: a header hits rule {hit}: {kind:?}"
            );
        }
        println!(
            "{name:11} duplicate {} shadowed {} undecided {} in {:.1} ms",
            count(|kind| matches!(kind, HygieneKind::Duplicate { .. })),
            count(|kind| matches!(kind, HygieneKind::Shadowed { .. })),
            count(|kind| *kind == HygieneKind::Undecided),
            start.elapsed().as_secs_f64() * 1e3,
        );
    }
}

#[test]
fn every_access_list_of_the_routers_is_as_linear_search() {
    let Some(data) = data() else { return };
    let (mut lists, mut rules) = (0, 0);
    for (name, text) in files(&data.join("acl").join("stanford-backbone.tar.zst")) {
        if !name.ends_with("_config.txt") {
            continue;
        }
        let all = import::cisco::access_lists(&text, &Default::default()).expect("all lines can be kept");
        for list in &all {
            as_linear_search(&format!("{name}, {}", list.name), &list.rules);
            lists += 1;
            rules += list.rules.rules.len();
        }
    }
    println!("{lists} access lists, {rules} rules");
    assert!(lists == 258 && rules >= 1_926, "{lists} access lists, {rules} rules");
}

#[test]
fn every_chain_of_the_firewalls_is_as_linear_search() {
    let Some(data) = data() else { return };
    let (mut dumps, mut chains, mut rules) = (BTreeSet::new(), 0, 0);
    for (name, text) in files(&data.join("acl").join("iptables-real.tar.zst")) {
        // Beside the dumps there is a text about them.
        if !text.starts_with(b"#") && !text.starts_with(b"*") || name.ends_with(".md") {
            continue;
        }
        for (table, chain) in import::iptables::chains(&text).expect("a dump is whole") {
            for first_packets in [false, true] {
                let options = import::iptables::ChainOptions {
                    table: table.clone(),
                    chain: Some(chain.clone()),
                    first_packets,
                    lenient: true,
                    ..Default::default()
                };
                let set = import::iptables::read(&text, &options).expect("what cannot be kept is left out");
                as_linear_search(&format!("{name}, {table} {chain}"), &set);
                dumps.insert(name.clone());
                chains += 1;
                rules += set.rules.len();
            }
        }
    }
    println!("{} dumps, {chains} chains, {rules} rules", dumps.len());
    assert!(dumps.len() == 9 && rules > 5_000, "{} dumps, {rules} rules", dumps.len());
}

/// Asks the table, linear search and the importer for keys in every rule and just beside it, and for keys of
/// anywhere.
fn as_linear_search(name: &str, set: &import::ImportedRules) {
    let spec = RulesSpec { widths: set.widths(), capacity: set.rules.len() };
    let rules: Vec<(u64, Rule, u32)> =
        (0u32..).zip(&set.rules).map(|(at, rule)| (at.into(), rule.rule.clone(), at)).collect();
    let linear = Linear::build(&spec, &rules).expect("the rules have room");
    let mut table = RulesTable::build(&spec, rules.clone()).expect("the rules have room");
    let mut random = Random::new(rules.len() as u64);
    let mut keys: Vec<Vec<u128>> =
        rules.iter().flat_map(|(_, rule, _)| keys_about(rule, &spec.widths, &mut random)).collect();
    let anywhere = (0..100).map(|_| spec.widths.iter().map(|width| random.wide() >> (128 - width)).collect());
    keys.extend(anywhere);
    // The slow searches are asked for some keys of each rule of the large sets.
    let step = (keys.len() * rules.len()).div_ceil(4_000_000).max(1);
    let words: Vec<u64> = keys.iter().flat_map(|key| spec.key(key)).collect();
    let count = spec.key_words();
    let wanted: Vec<(usize, u32)> = (0..keys.len())
        .step_by(step)
        .map(|at| {
            let found = linear.find(&words[at * count..][..count]).map_or(NONE, |hit| hit.value);
            assert_eq!(
                set.first(&keys[at]).map_or(NONE, |rule| rule as u32),
                found,
                "{name}: {:?}",
                keys[at]
            );
            (at, found)
        })
        .collect();
    let mut values = vec![0; keys.len()];
    let agrees = |table: &RulesTable, values: &mut [u32], when: &str| {
        table.find_bulk(&words, values);
        for &(at, found) in &wanted {
            assert_eq!(values[at], found, "{name}: {when}, in bulk: {:?}", keys[at]);
            let single = table.find_value(&words[at * count..][..count]);
            assert_eq!(single, found, "{name}: {when}, one at a time: {:?}", keys[at]);
        }
    };
    agrees(&table, &mut values, "as built");
    for (order, _, value) in rules.iter().step_by(7) {
        assert_eq!(table.remove(*order), Some(*value));
    }
    for (order, rule, value) in rules.iter().step_by(7) {
        table.insert(*order, rule, *value).expect("it was there before");
    }
    agrees(&table, &mut values, "after changes");
}

/// Keys at both ends and somewhere within what a rule asks, and each of these with one column just outside.
fn keys_about(rule: &Rule, widths: &[u8], random: &mut Random) -> Vec<Vec<u128>> {
    let columns: Vec<(u128, u128, u128)> = rule
        .fields
        .iter()
        .zip(widths)
        .map(|(field, width)| {
            let ones = u128::MAX >> (128 - width);
            let wide = random.wide() & ones;
            let within = |mask: u128, value: u128| {
                (value & mask, value & mask | ones & !mask, value & mask | wide & !mask)
            };
            match *field {
                RuleField::Any => within(0, 0),
                RuleField::Exact(value) => (value, value, value),
                RuleField::Prefix { value, length } => {
                    within(ones & !ones.checked_shr(length.into()).unwrap_or(0), value)
                }
                RuleField::Ternary { value, mask } => within(mask, value),
                RuleField::Range { low, high } => (low, high, low + wide % (high - low + 1)),
            }
        })
        .collect();
    let inner: [Vec<u128>; 3] = [
        columns.iter().map(|column| column.0).collect(),
        columns.iter().map(|column| column.1).collect(),
        columns.iter().map(|column| column.2).collect(),
    ];
    let at = random.below(widths.len() as u64) as usize;
    let ones = u128::MAX >> (128 - widths[at]);
    let beside = |key: &Vec<u128>, by: u128| {
        let mut key = key.clone();
        key[at] = key[at].wrapping_add(by) & ones;
        key
    };
    let outer = [beside(&inner[0], u128::MAX), beside(&inner[1], 1), beside(&inner[2], ones / 2 + 1)];
    inner.into_iter().chain(outer).collect()
}

/// Million lookups a second of `work`, which does `lookups`.
fn rate(lookups: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    while done == 0 || start.elapsed() < Duration::from_millis(50) {
        work();
        done += lookups;
    }
    done as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn files(archive: &PathBuf) -> BTreeMap<String, Vec<u8>> {
    let file = std::io::BufReader::new(std::fs::File::open(archive).expect("the archive can be opened"));
    let stream = ruzstd::decoding::StreamingDecoder::new(file).expect("the archive is zstd");
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(stream).entries().expect("the archive is tar") {
        let mut entry = entry.expect("the archive is whole");
        let path = entry.path().expect("a file has a name").into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut text = Vec::new();
        entry.read_to_end(&mut text).expect("the archive is whole");
        files.insert(name, text);
    }
    files
}
