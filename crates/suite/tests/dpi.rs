//! The programs `dpi` and `ids`, judged without their tables: over made packets by a naive search, over a
//! real capture by the answers of another search engine.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/` and `rules/`; without it the capture is left out.

use captures::Capture;
use engine::PacketBench;
use etherparse::{IpNumber, PacketBuilder};
use exec::BackendKind;
use ir::{Entry, Program};
use lang::pipeline::Decode;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use suite::corpus::{compile_file, root};
use suite::random::SuiteRandom;

/// A program with these entries in its first table instead of its own.
fn filled(name: &str, entries: impl FnOnce(&ir::Table) -> Vec<Entry>) -> Program {
    let path = root().join("programs").join(name).with_extension("rav");
    let compiled = compile_file(&path, Decode::Lazy).expect("the program can be read");
    let mut program = compiled.program.expect("the program compiles");
    program.tables[0].entries = entries(&program.tables[0]);
    program
}

fn dpi(entries: impl FnOnce(&ir::Table) -> Vec<Entry>) -> Program {
    filled("dpi", entries)
}

fn literals(text: &str) -> Program {
    dpi(|table| {
        import::entries::read(text.as_bytes(), "literals", &Default::default(), table)
            .expect("the list is sound")
            .entries
    })
}

/// How often each pattern was found, in the order of the list.
fn counts(bench: &PacketBench<'_>) -> Vec<u64> {
    bench.backend().entries(0).into_iter().map(|(_, count)| count.packets).collect()
}

/// What `found` said about a packet: how many occurrences.
fn occurrences(outcome: &engine::PacketOutcome) -> u64 {
    match &outcome.raised[..] {
        [] => 0,
        [(_, values)] => values[0] as u64,
        more => panic!("{} events for one packet", more.len()),
    }
}

struct Pattern {
    bytes: Vec<u8>,
    nocase: bool,
}

impl Pattern {
    /// Tries every place.
    fn occurs(&self, payload: &[u8]) -> u64 {
        let fits = |window: &&[u8]| {
            if self.nocase { window.eq_ignore_ascii_case(&self.bytes) } else { *window == &self.bytes[..] }
        };
        payload.windows(self.bytes.len()).filter(fits).count() as u64
    }
}

/// Few different bytes, so that patterns overlap and occur often.
fn bytes(random: &mut SuiteRandom, length: u64) -> Vec<u8> {
    (0..length).map(|_| *random.pick(b"abAB\0")).collect()
}

fn patterns(random: &mut SuiteRandom) -> Vec<Pattern> {
    let mut patterns = BTreeSet::new();
    while patterns.len() < 60 {
        let length = random.between(1, 6);
        let nocase = random.one_in(2);
        let mut bytes = bytes(random, length);
        if nocase {
            bytes.make_ascii_lowercase();
        }
        patterns.insert((bytes, nocase));
    }
    patterns.into_iter().map(|(bytes, nocase)| Pattern { bytes, nocase }).collect()
}

fn list(patterns: &[Pattern]) -> String {
    let line = |(id, pattern): (usize, &Pattern)| {
        let hex: String = pattern.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{id}\t{}\t{}\t{hex}\t{}\n", u8::from(pattern.nocase), pattern.bytes.len(), id + 1000)
    };
    patterns.iter().enumerate().map(line).collect()
}

/// A frame around a payload, filled up to 60 bytes with what could be patterns.
fn frame(random: &mut SuiteRandom, payload: &[u8]) -> Vec<u8> {
    let start = PacketBuilder::ethernet2([2; 6], [2, 0, 0, 0, 0, 1]);
    let (mut frame, failure) = (Vec::new(), "a frame can be written");
    let tagged = random.one_in(4);
    let four = !random.one_in(3);
    let ip = |four: bool| match four {
        true => etherparse::IpHeaders::Ipv4(
            etherparse::Ipv4Header::new(0, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2])
                .expect("it is short"),
            Default::default(),
        ),
        false => etherparse::IpHeaders::Ipv6(etherparse::Ipv6Header::default(), Default::default()),
    };
    let step = match tagged {
        true => start.single_vlan(etherparse::VlanId::try_new(7).expect("7 is a VLAN")).ip(ip(four)),
        false => start.ip(ip(four)),
    };
    match random.below(3) {
        0 => step.udp(5, 6).write(&mut frame, payload).expect(failure),
        1 => step.tcp(5, 6, 7, 8).write(&mut frame, payload).expect(failure),
        _ => {
            let options = [1, 1, 1, 0].repeat(random.between(1, 10) as usize);
            let step = step.tcp(5, 6, 7, 8).options_raw(&options).expect("forty bytes at most");
            step.write(&mut frame, payload).expect(failure);
        }
    }
    if frame.len() < 60 || random.one_in(8) {
        let fill = 60_u64.saturating_sub(frame.len() as u64) + random.below(9);
        frame.extend(bytes(random, fill));
    }
    frame
}

#[test]
fn a_naive_search_over_the_payload_finds_the_same() {
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(21);
        let patterns = patterns(&mut random);
        let program = literals(&list(&patterns));
        let mut bench = PacketBench::new(&program, back_end, 2, 0).expect("it loads");
        let (mut expected, mut without) = (vec![0_u64; patterns.len()], 0);
        for number in 0..1_500 {
            let length = random.below(60);
            let payload = bytes(&mut random, length);
            let frame = frame(&mut random, &payload);
            let outcome = bench.packet(1, &frame, number);
            assert_eq!(outcome.left, [(2, frame.clone())], "the packet passes as it was");
            let mut all = 0;
            for (cell, pattern) in expected.iter_mut().zip(&patterns) {
                let found = pattern.occurs(&payload);
                *cell += found;
                all += found;
            }
            assert_eq!(occurrences(&outcome), all, "packet {number}: {payload:02x?} in {frame:02x?}");
            without += u64::from(all == 0);
        }
        assert_eq!(counts(&bench), expected);
        assert!(without > 20, "{without} packets without an occurrence");
        assert!(expected.iter().filter(|count| **count > 0).count() > 50, "{expected:?}");
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = ports::capture_in::open(&path.display().to_string()).expect("the file can be opened");
    stream.read_to_end(&mut bytes).expect("the file can be read");
    bytes
}

/// For packets counted from 1: occurrences, and the patterns found.
fn oracle(path: &Path) -> BTreeMap<u64, (u64, Vec<usize>)> {
    let text = String::from_utf8(unpacked(path)).expect("the oracle is text");
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let ids: Vec<usize> = columns[3].split(',').map(|id| number(id) as usize).collect();
        assert_eq!(number(columns[2]), ids.len() as u64);
        (number(columns[0]), (number(columns[1]), ids))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

#[test]
fn counts_over_a_real_capture_are_those_of_another_search() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    for (list, answers) in [
        ("rules/literals-snort-community.tsv.gz", "captures/s1like.dpi-snort.tsv.gz"),
        ("rules/literals-et-a.tsv.gz", "captures/s1like.dpi-et-a.tsv.gz"),
    ] {
        let expected = oracle(&data.join(answers));
        let list = unpacked(&data.join(list));
        let program = dpi(|table| {
            import::entries::read(&list, "literals", &Default::default(), table)
                .expect("the list is sound")
                .entries
        });
        let mut bench = PacketBench::new(&program, BackendKind::Native, 2, 0).expect("it loads");
        let capture = unpacked(&data.join("captures/s1like.pcap.zst"));
        let mut capture = Capture::open(&capture[..]).expect("it is a capture");
        let (mut packet, mut before) = (0, counts(&bench));
        while let Some(record) = capture.next().expect("the capture is whole") {
            packet += 1;
            let outcome = bench.packet(1, record.data, record.time_ns);
            assert_eq!(outcome.left.len(), 1, "packet {packet} passes");
            let Some((all, ids)) = expected.get(&packet) else {
                assert_eq!(occurrences(&outcome), 0, "packet {packet}");
                continue;
            };
            assert_eq!(occurrences(&outcome), *all, "packet {packet}");
            let after = counts(&bench);
            let found: Vec<usize> = (0..after.len()).filter(|id| after[*id] > before[*id]).collect();
            assert_eq!(found, *ids, "packet {packet}");
            before = after;
        }
        assert_eq!(before, counts(&bench));
        assert_eq!(before.iter().sum::<u64>(), expected.values().map(|(all, _)| all).sum::<u64>());
        let counter = |name: &str| {
            let place =
                program.counters.iter().position(|counter| counter.name == name).expect("it is declared");
            bench.backend().counter(place as u32)[0].0
        };
        assert_eq!(counter("searched"), 8_522, "packets with payload, as the oracle says");
        assert_eq!(counter("hits"), expected.len() as u64);
        assert_eq!(counter("searched") + counter("unsearched"), packet);
        println!("{packet} packets, {} with a pattern", expected.len());
    }
}

#[test]
fn the_monitor_gets_what_another_search_found() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    let expected = oracle(&data.join("captures/s1like.dpi-snort.tsv.gz"));
    let list = unpacked(&data.join("rules/literals-snort-community.tsv.gz"));
    let mut ids = filled("ids", |_| Vec::new());
    let signatures = ids.tables.iter().position(|table| table.name == "signatures").expect("it is declared");
    // The numbers of the list are no classes: all patterns are of the first.
    let mut unvalued = ids.tables[signatures].clone();
    unvalued.values.clear();
    let mut entries = import::entries::read(&list, "literals", &Default::default(), &unvalued)
        .expect("the list is sound")
        .entries;
    entries.iter_mut().for_each(|entry| entry.value = vec![0]);
    ids.tables[signatures].entries = entries;
    let mut bench = PacketBench::new(&ids, BackendKind::Native, 3, 0).expect("it loads");
    let capture = unpacked(&data.join("captures/s1like.pcap.zst"));
    let mut capture = Capture::open(&capture[..]).expect("it is a capture");
    let (mut packet, mut alarms, mut copies) = (0, Vec::new(), 0);
    while let Some(record) = capture.next().expect("the capture is whole") {
        packet += 1;
        let outcome = bench.packet(1, record.data, record.time_ns);
        let mut left = outcome.left.clone();
        left.sort();
        assert_eq!(left[0], (2, record.data.to_vec()), "packet {packet} goes on as it was");
        assert!(left[1..].iter().all(|copy| *copy == (3, record.data.to_vec())), "a copy is the packet");
        copies += left.len() - 1;
        if !outcome.raised.is_empty() {
            assert_eq!(left.len(), 2, "packet {packet} alarms, so the monitor gets it");
            alarms.push(packet);
        }
    }
    assert_eq!(alarms, expected.keys().copied().collect::<Vec<u64>>());
    println!("{} alarms, {copies} copies", alarms.len());
}
