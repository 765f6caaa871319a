//! Files from outside: `RAVELIN_DATA=DIRECTORY` names a folder with `routes/` and `acl/`; without it there is
//! nothing to do.

use flate2::read::GzDecoder;
use import::address;
use import::routes::{self, ImportedRoutes};
use import::{ImportedRules, cisco, classbench, iptables};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tables::lpm::{Lpm, LpmModel, LpmSpec};

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("RAVELIN_DATA").map(PathBuf::from);
    if data.is_none() {
        println!("RAVELIN_DATA names no folder of files: nothing was read");
    }
    data
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path).expect("the file is there")).read_to_end(&mut bytes).expect("it is gzip");
    bytes
}

/// The files of an archive by their paths.
fn archive(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = File::open(path).expect("the archive is there");
    let stream = ruzstd::decoding::StreamingDecoder::new(file).expect("an archive is zstd");
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(stream).entries().expect("an archive is tar") {
        let mut entry = entry.expect("an archive is whole");
        let name = entry.path().expect("a file has a name").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("an archive is whole");
        files.insert(name, bytes);
    }
    files
}

#[test]
fn full_tables_are_kept_and_answer_their_queries() {
    let Some(data) = data() else { return };
    for (name, count) in [("rib4", 901_899), ("rib6", 160_147)] {
        let table = routes::read(&unpacked(&data.join(format!("routes/{name}-2022.txt.gz"))))
            .expect("a full table is kept");
        assert_eq!((table.entries.len(), table.next_hops.len()), (count, 64));
        let spec = LpmSpec { width: table.family.width(), capacity: count };
        let mut model = LpmModel::new(spec).expect("the table is possible");
        for (prefix, hop) in &table.entries {
            model.insert(*prefix, *hop).expect("each prefix is good");
        }
        answers(&unpacked(&data.join(format!("routes/{name}-queries.txt.gz"))), &table, &model);
    }
}

fn answers(queries: &[u8], table: &ImportedRoutes, model: &LpmModel) {
    let text = std::str::from_utf8(queries).expect("queries are text");
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (_, bits) = address::parse(words[0].as_bytes()).expect("a query is an address");
        let found = model.find_entry(bits).map(|(prefix, hop)| {
            let prefix = address::print_prefix(table.family, prefix.bits, prefix.length);
            vec![table.next_hops[hop as usize].clone(), prefix]
        });
        assert_eq!(found.unwrap_or(vec!["-".to_owned()]), words[1..], "{line}");
    }
}

#[test]
fn filters_answer_their_traces() {
    let Some(data) = data() else { return };
    let files = archive(&data.join("acl/classbench.tar.zst"));
    let (mut sets, mut headers) = (0, 0);
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".rules")) {
        let rules = classbench::read(text, &classbench::ClassBenchOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let trace = classbench::read_trace(&files[&name.replace(".rules", ".trace")]);
        let trace = trace.unwrap_or_else(|error| panic!("{name}: {error}"));
        // Slow and obviously right, so not every header of the large sets.
        let step = (rules.rules.len() * trace.len()).div_ceil(4_000_000);
        for header in trace.iter().step_by(step.max(1)) {
            let found = rules.first(&header.key.map(u128::from)).map_or(-1, |index| index as i64);
            assert_eq!(Some(found), header.last, "{name}: {:?}", header.key);
            headers += 1;
        }
        sets += 1;
        let flags = classbench::ClassBenchOptions { flags: true };
        let whole = classbench::read(text, &flags).expect("flags are kept as well");
        let again =
            classbench::read(classbench::write(&whole).expect("these are filters").as_bytes(), &flags)
                .expect("they are again");
        assert!(whole.rules.iter().zip(&again.rules).all(|(one, other)| one.rule == other.rule));
    }
    println!("{sets} sets of filters, {headers} headers");
    assert_eq!(sets, 27);
}

#[test]
fn dumps_are_kept_or_refused_line_by_line() {
    let Some(data) = data() else { return };
    let mut total = (0, 0);
    for (name, text) in archive(&data.join("acl/iptables-real.tar.zst")) {
        if !text.starts_with(b"#") && !text.starts_with(b"*") || name.ends_with(".md") {
            continue;
        }
        for first_packets in [false, true] {
            let (mut rules, mut hooks, mut kept, mut refused) = (0, 0, BTreeSet::new(), BTreeMap::new());
            for (table, chain) in iptables::chains(&text).unwrap_or_else(|error| panic!("{name}: {error}")) {
                let strict = iptables::ChainOptions {
                    table,
                    chain: Some(chain),
                    first_packets,
                    ..iptables::ChainOptions::default()
                };
                let lenient = iptables::ChainOptions { lenient: true, ..strict.clone() };
                let set = iptables::read(&text, &lenient).unwrap_or_else(|error| panic!("{name}: {error}"));
                match iptables::read(&text, &strict) {
                    Ok(whole) => assert_eq!((whole, set.refused.len()), (set.clone(), 0)),
                    Err(error) => assert_eq!(Some(&error), set.refused.first()),
                }
                // Another table at the same hook is a cause of its own: its lines are kept where they are
                // asked for.
                let of_others =
                    set.refused.iter().filter(|error| error.what.contains("decides about the same")).count();
                hooks += of_others;
                let own = set.refused.into_iter().skip(of_others);
                rules += set.rules.len();
                kept.extend(set.rules.iter().map(|rule| rule.line));
                refused.extend(own.map(|error| (error.line, error.what)));
            }
            let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
            for what in refused.values() {
                *causes.entry(what).or_default() += 1;
            }
            println!(
                "{name}, first packets {first_packets}: {rules} rules of {} lines, {hooks} chains beside another, {} lines refused {causes:?}",
                kept.len(),
                refused.len()
            );
            assert!(
                kept.iter().all(|line| !refused.contains_key(line)),
                "{name}: a line is kept and refused"
            );
            total = (total.0 + kept.len(), total.1 + refused.len());
        }
    }
    assert!(total.0 > 5_000 && total.1 > 1_000, "{total:?}");
}

#[test]
fn configurations_of_routers_are_kept_whole() {
    let Some(data) = data() else { return };
    let (mut lists, mut lines, mut routes) = (0, 0, 0);
    for (name, text) in archive(&data.join("acl/stanford-backbone.tar.zst")) {
        if name.ends_with("_route.txt") {
            // The files of this collection end with a whole line that has no end.
            routes += cisco::forwarding_table(&[&text[..], b"\n"].concat())
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .entries
                .len();
        }
        if name.ends_with("_config.txt") {
            let kept = cisco::access_lists(&text, &cisco::AccessListOptions::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            lists += kept.len();
            lines += kept.iter().map(|list| distinct_lines(&list.rules)).sum::<usize>();
        }
    }
    println!("{lists} access lists of {lines} lines, {routes} routes");
    assert_eq!((lists, lines, routes), (258, 1_926, 23_259));
}

fn distinct_lines(rules: &ImportedRules) -> usize {
    rules.rules.iter().map(|rule| rule.line).collect::<BTreeSet<u32>>().len()
}
