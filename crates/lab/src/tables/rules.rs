//! Rules over the five fields of IPv4 packets: sets like those of ClassBench, by size and by what they are
//! modelled on.

use super::bench::{Bench, Built, SEED, contents, cost, held, stem};
use super::contest::{Entry, InProcess, NONE, Way};
use super::peer::Library;
use crate::experiment::{Better, Figure, Row};
use cpu_time::ThreadTime;
use std::fs;
use std::path::{Path, PathBuf};
use tables::generate::rules::{Flavour, FlowRule, GeneratedRules, Network, RuleSetSpec};
use tables::generate::trace::{GeneratedTrace, TraceSpec};
use tables::generate::{Random, Weighted};
use tables::rules::{Linear, Rule, RuleField, Rules, RulesSpec, RulesTable};

/// Bits of source, destination, source port, destination port and protocol.
pub(crate) const WIDTHS: [u8; 5] = [32, 32, 16, 16, 8];
/// Queries of one pass.
const QUERIES: usize = 1 << 16;
/// So many queries the twin answers; more where the set is small, since it tries rule after rule.
const JUDGED: usize = 40_000_000;
/// From so many rules on, the twin and the slow peers take too long to wait for.
const LARGE: usize = 50_000;

/// A set with headers to classify.
pub(crate) struct Set {
    /// What it is called.
    pub(crate) name: String,
    /// The rules in order.
    pub(crate) rules: Vec<Rule>,
    /// Headers in order, five words each.
    pub(crate) trace: Vec<u64>,
    /// Of each header the first rule that fits, if the file says so.
    right: Vec<u32>,
}

/// The rows of all sets.
pub(super) fn rows(
    bench: &mut Bench,
    files: &[PathBuf],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    if files.is_empty() {
        let sizes: &[usize] = if bench.quick { &[200] } else { &[1000, 10_000] };
        let flavours = [("acl", Flavour::AccessList), ("fw", Flavour::Firewall), ("ipc", Flavour::Chains)];
        for &count in sizes {
            for (name, flavour) in flavours {
                rows.extend(one(bench, &made(name, flavour, count), progress)?);
            }
        }
    }
    for path in found(files)? {
        rows.extend(one(bench, &read(&path)?, progress)?);
    }
    Ok(rows)
}

fn one(bench: &mut Bench, set: &Set, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, String> {
    let case = format!("{} rules ({})", set.rules.len(), set.name);
    progress(&format!("{case}: build"));
    let spec = RulesSpec { widths: WIDTHS.to_vec(), capacity: set.rules.len() + set.rules.len() / 4 + 16 };
    let listed = || {
        let rules = set.rules.iter().enumerate();
        rules.map(|(place, rule)| (place as u64 * 2, rule.clone(), place as u32)).collect::<Vec<_>>()
    };
    let Built { what: mut table, seconds } =
        bench.build(|| RulesTable::build(&spec, listed()).map_err(|error| error.to_string()))?;
    let large = set.rules.len() >= LARGE;
    let peer = if large {
        None
    } else {
        let data: Vec<u8> = set.rules.iter().flat_map(record).collect();
        let data = bench.workshop.write("rules", &data)?;
        bench.peer(Library::Acl, &data, &[])?
    };
    let linear =
        if large { None } else { Some(Linear::build(&spec, &listed()).map_err(|error| error.to_string())?) };

    let headers = set.trace.len() / WIDTHS.len();
    let mut rows = Vec::new();
    for (traffic, order) in orders(headers) {
        let case = format!("{case}, {traffic}");
        progress(&case);
        let header = |place: &usize| &set.trace[place * WIDTHS.len()..][..WIDTHS.len()];
        let queries: Vec<u64> = order.iter().flat_map(|place| header(place).iter().copied()).collect();
        let right: Vec<u32> = if set.right.is_empty() {
            let judged = linear.as_ref().map_or(0, |_| JUDGED / set.rules.len().max(1));
            let value = |place: &usize| linear.as_ref()?.find(header(place)).map(|hit| hit.value);
            order.iter().take(judged).map(|place| value(place).unwrap_or(NONE)).collect()
        } else {
            order.iter().map(|place| set.right[*place]).collect()
        };
        let bulk =
            InProcess::new("bulk", &queries, WIDTHS.len(), |keys, answers| table.find_bulk(keys, answers));
        let single = InProcess::new("single", &queries, WIDTHS.len(), |keys, answers| {
            for (key, answer) in keys.chunks_exact(WIDTHS.len()).zip(answers) {
                *answer = table.find_value(key);
            }
        });
        let mut entries = vec![Entry::ours(Way::Bulk, bulk), Entry::ours(Way::Single, single)];
        if let Some(peer) = &peer {
            let data: Vec<u8> = queries.as_chunks().0.iter().flat_map(query).collect();
            let path = bench.workshop.write("queries", &data)?;
            bench.enter(peer, &path, &mut entries)?;
        }
        // What is wanted was said of sets of 1,000 and of 10,000 rules.
        let goals = [("", if set.rules.len() < 5000 { 1.0 } else { 1.2 })];
        let amount = order.len() as f64 / 1e6;
        rows.extend(bench.contest(&case, amount, "M/s", &right, &goals).rows(&mut entries));

        if let (Some(linear), "trace order") = (&linear, traffic) {
            let some =
                &queries[..(JUDGED / 40 / set.rules.len().max(1)).clamp(1, order.len()) * WIDTHS.len()];
            let search = InProcess::new("linear search", some, WIDTHS.len(), |keys, answers| {
                for (key, answer) in keys.chunks_exact(WIDTHS.len()).zip(answers) {
                    *answer = linear.find(key).map_or(NONE, |hit| hit.value);
                }
            });
            let amount = (some.len() / WIDTHS.len()) as f64 / 1e6;
            let contest = bench.contest(&case, amount, "M/s", &right, &[]);
            rows.extend(contest.rows(&mut [Entry::ours(Way::Single, search)]));
        }
    }
    let peers: Vec<_> = peer.iter().map(|peer| (Library::Acl, peer)).collect();
    let bytes = table.statistics().bytes as u64;
    rows.extend(cost(&case, seconds, bytes, &peers));
    rows.extend(changes(bench, &case, &mut table, &set.rules)?);
    Ok(rows)
}

/// The row of single rules that come and go.
fn changes(bench: &Bench, case: &str, table: &mut RulesTable, rules: &[Rule]) -> Result<Vec<Row>, String> {
    let mut random = Random::new(SEED);
    let mut times = Vec::new();
    for _ in 0..bench.runs * 10 {
        let place = random.below(rules.len() as u64) as usize;
        let start = ThreadTime::now();
        table.remove(place as u64 * 2);
        table.insert(place as u64 * 2, &rules[place], place as u32).map_err(|error| error.to_string())?;
        times.push(start.elapsed().as_secs_f64() * 1e3 / 2.0);
    }
    let figure = Figure::of(times).ok_or("nothing was changed")?;
    Ok(held(&format!("{case}, change of one rule"), "time", "ms", figure, &[], Better::Less))
}

/// Places of headers in the orders that are measured.
fn orders(headers: usize) -> Vec<(&'static str, Vec<usize>)> {
    let mut random = Random::new(SEED);
    let law = Weighted::zipf(headers as u32);
    vec![
        ("trace order", (0..QUERIES).map(|place| place % headers).collect()),
        ("uniform", (0..QUERIES).map(|_| random.below(headers as u64) as usize).collect()),
        ("Zipf", (0..QUERIES).map(|_| law.draw(&mut random)).collect()),
    ]
}

/// A set that is made, with its trace.
pub(crate) fn made(name: &str, flavour: Flavour, count: usize) -> Set {
    let made = GeneratedRules::new(&RuleSetSpec { flavour, count, seed: SEED });
    let trace = GeneratedTrace::new(&made, &TraceSpec { count: QUERIES, repeats: 1, random: 5, seed: SEED });
    let words = |header: &tables::generate::trace::TraceHeader| {
        let flow = header.flow;
        let ports = [flow.source_port, flow.destination_port].map(u64::from);
        [flow.source.into(), flow.destination.into(), ports[0], ports[1], flow.protocol.into()]
    };
    Set {
        name: format!("{name} generated"),
        rules: made.rules.iter().map(rule).collect(),
        trace: trace.headers.iter().flat_map(words).collect(),
        right: Vec::new(),
    }
}

fn rule(from: &FlowRule) -> Rule {
    let network =
        |network: Network| RuleField::Prefix { value: network.address.into(), length: network.length };
    let ports = |(low, high): (u16, u16)| RuleField::Range { low: low.into(), high: high.into() };
    let protocol = from.protocol.map_or(RuleField::Any, |protocol| RuleField::Exact(protocol.into()));
    let (sources, destinations) = (ports(from.source_ports), ports(from.destination_ports));
    Rule { fields: vec![network(from.source), network(from.destination), sources, destinations, protocol] }
}

/// The files of rules that paths name, those of directories in the order of their names.
pub(crate) fn found(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let why = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(why)? {
            inside.push(entry.map_err(why)?.path());
        }
        inside.retain(|path| path.extension().is_some_and(|extension| extension == "rules"));
        inside.sort();
        if inside.is_empty() {
            return Err(format!("{} holds no files of rules; their names end in .rules", path.display()));
        }
        files.extend(inside);
    }
    Ok(files)
}

/// A ClassBench set and the trace beside it.
pub(crate) fn read(path: &Path) -> Result<Set, String> {
    let at = |path: &Path, error: import::ImportError| format!("{}: {error}", path.display());
    let set = import::classbench::read(&contents(path)?, &import::classbench::ClassBenchOptions::default());
    let rules: Vec<Rule> =
        set.map_err(|error| at(path, error))?.rules.into_iter().map(|one| one.rule).collect();
    let beside = path.with_extension("trace");
    let headers = import::classbench::read_trace(&contents(&beside)?).map_err(|error| at(&beside, error))?;
    if rules.is_empty() || headers.is_empty() {
        return Err(format!("{} or its trace is empty", path.display()));
    }
    let right: Vec<u32> =
        headers.iter().filter_map(|header| Some(u32::try_from(header.last?).unwrap_or(NONE))).collect();
    let told = right.len() == headers.len();
    Ok(Set {
        name: stem(path),
        rules,
        trace: headers.iter().flat_map(|header| header.key.map(u64::from)).collect(),
        right: if told { right } else { Vec::new() },
    })
}

/// A rule as rte_acl's program reads it: addresses with lengths, ports from and to, the protocol and its
/// mask.
fn record(rule: &Rule) -> Vec<u8> {
    let network = |field: RuleField| match field {
        RuleField::Prefix { value, length } => [value as u32, u32::from(length)],
        RuleField::Exact(value) => [value as u32, 32],
        RuleField::Ternary { .. } | RuleField::Range { .. } | RuleField::Any => [0, 0],
    };
    let ports = |field: RuleField| match field {
        RuleField::Range { low, high } => [low as u32, high as u32],
        RuleField::Exact(value) => [value as u32; 2],
        RuleField::Prefix { .. } | RuleField::Ternary { .. } | RuleField::Any => [0, 0xffff],
    };
    let protocol = match rule.fields[4] {
        RuleField::Exact(value) => [value as u32, 0xff],
        RuleField::Ternary { value, mask } => [value as u32, mask as u32],
        RuleField::Prefix { .. } | RuleField::Range { .. } | RuleField::Any => [0, 0],
    };
    let fields = &rule.fields;
    let pairs = [network(fields[0]), network(fields[1]), ports(fields[2]), ports(fields[3]), protocol];
    pairs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// A header as rte_acl looks at it: the protocol, three bytes of nothing, and addresses and ports in the
/// order of the wire.
fn query(header: &[u64; 5]) -> [u8; 16] {
    let [source, destination, source_port, destination_port, protocol] = *header;
    let number = u128::from(protocol) << 120
        | u128::from(source) << 64
        | u128::from(destination) << 32
        | u128::from(source_port) << 16
        | u128::from(destination_port);
    number.to_be_bytes()
}
