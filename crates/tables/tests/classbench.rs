//! Rule sets from outside: `RAVELIN_DATA=DIRECTORY` names a folder with `acl/classbench.tar.zst`, sets of rules with traces whose
//! last column is the verified first rule. Without it there is nothing to do. In a release build it is a measurement too.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tables::rules::{Kind, NONE, Rule, Rules, RulesSpec, Table, hygiene};

/// Sets of more rules are not judged for rules that cannot be hit; that compares rules in pairs.
const MOST_JUDGED: usize = 11_000;

#[test]
fn every_header_of_every_set_hits_its_rule() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of rule sets: nothing was run");
        return;
    };
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
    let mut table = Table::build(&spec, numbered).expect("the rules have room");
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
        let count =
            |wanted: fn(&Kind) -> bool| findings.iter().filter(|finding| wanted(&finding.kind)).count();
        for finding in &findings {
            let hit = table.find(&finding.witness).expect("a witness fits some rule");
            assert_eq!(
                hit.order == finding.rule as u64,
                finding.kind == Kind::Reachable,
                "{name}: {finding:?}"
            );
        }
        for &hit in wanted.iter().filter(|&&hit| hit != NONE) {
            let kind = &findings[hit as usize].kind;
            assert!(
                matches!(kind, Kind::Reachable | Kind::Undecided),
                "{name}: a header hits rule {hit}: {kind:?}"
            );
        }
        println!(
            "{name:11} duplicate {} shadowed {} undecided {} in {:.1} ms",
            count(|kind| matches!(kind, Kind::Duplicate { .. })),
            count(|kind| matches!(kind, Kind::Shadowed { .. })),
            count(|kind| *kind == Kind::Undecided),
            start.elapsed().as_secs_f64() * 1e3,
        );
    }
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
