//! Pattern scanners against another library, and against what real traffic is known to hold.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/` and `rules/`; without it the second part has
//! nothing to do.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use proptest::prelude::*;
use std::io::Read;
use std::path::Path;
use tables::patterns::{BloomScanner, PatternMatch, Scanner, SearchPattern};

/// All occurrences as an automaton finds them, in the scanners' order.
fn automaton(patterns: &[SearchPattern]) -> impl Fn(&[u8]) -> Vec<PatternMatch> {
    let automaton = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .ascii_case_insensitive(true)
        .build(patterns.iter().map(|pattern| &pattern.bytes))
        .unwrap();
    move |haystack| {
        let mut found: Vec<PatternMatch> = automaton
            .find_overlapping_iter(haystack)
            .filter(|found| {
                let pattern = &patterns[found.pattern().as_usize()];
                let end = pattern.depth.map_or(usize::MAX, |depth| pattern.offset as usize + depth as usize);
                let same = pattern.nocase || haystack[found.range()] == pattern.bytes;
                same && found.start() >= pattern.offset as usize && found.end() <= end
            })
            .map(|found| PatternMatch {
                pattern: found.pattern().as_u32(),
                start: found.start() as u32,
                end: found.end() as u32,
            })
            .collect();
        found.sort_by_key(|found| (found.end, found.pattern));
        found
    }
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 1..20),
        "[a-cA-C./ ]{1,9}".prop_map(String::into_bytes),
        (prop::sample::select(vec![0, b'A', 0x90, b' ']), 1usize..12)
            .prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn pattern() -> impl Strategy<Value = SearchPattern> {
    (word(), any::<bool>(), prop_oneof![4 => Just((0, None)), 1 => (0u32..900, prop::option::of(0u32..400))])
        .prop_map(|(bytes, nocase, (offset, depth))| SearchPattern {
            nocase,
            offset,
            depth,
            ..SearchPattern::anywhere(bytes)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn hundreds_of_patterns_over_a_packet(
        patterns in prop::collection::vec(pattern(), 1..400),
        pieces in prop::collection::vec((any::<prop::sample::Index>(), word()), 0..120),
    ) {
        let mut haystack = Vec::new();
        for (which, filler) in pieces {
            haystack.extend(&patterns[which.index(patterns.len())].bytes);
            haystack.extend(filler);
        }
        let expected = automaton(&patterns)(&haystack);
        let scanner = Scanner::build(&patterns).unwrap();
        for image in scanner.open().forms() {
            let mut found = Vec::new();
            image.each(&haystack, &mut |one| found.push(one));
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(image.first(&haystack), expected.first().copied());
        }
    }
}

fn plain(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "zst") {
        ruzstd::decoding::StreamingDecoder::new(file).expect("it is zstd").read_to_end(&mut bytes).unwrap();
    } else {
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// The payload of TCP or UDP behind Ethernet and IPv4 or IPv6.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let word = |bytes: &[u8], at: usize| {
        Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
    };
    let ip = frame.get(14..)?;
    let (protocol, segment) = match word(frame, 12)? {
        0x0800 => (ip.get(9)?, ip.get(usize::from(ip.first()? & 15) * 4..word(ip, 2)?.min(ip.len()))?),
        0x86dd => (ip.get(6)?, ip.get(40..(40 + word(ip, 4)?).min(ip.len()))?),
        _ => return None,
    };
    match protocol {
        6 => segment.get(usize::from(segment.get(12)? >> 4) * 4..),
        17 => segment.get(8..),
        _ => None,
    }
}

#[test]
fn real_payloads_hold_what_they_are_known_to_hold() {
    let Some(data) = std::env::var_os("RAVELIN_DATA") else {
        println!("RAVELIN_DATA names no folder of captures: nothing was searched");
        return;
    };
    let data = Path::new(&data);
    let capture = plain(&data.join("captures/s1like.pcap.zst"));
    for (list, known) in [("snort-community", "snort"), ("et-a", "et-a")] {
        let text = String::from_utf8(plain(&data.join(format!("rules/literals-{list}.tsv.gz")))).unwrap();
        let literal = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            let bytes = (0..fields[3].len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&fields[3][at..at + 2], 16).unwrap());
            SearchPattern { nocase: fields[1] == "1", ..SearchPattern::anywhere(bytes.collect::<Vec<u8>>()) }
        };
        let patterns: Vec<SearchPattern> =
            text.lines().filter(|line| !line.starts_with('#')).map(literal).collect();
        let scanner = Scanner::build(&patterns).unwrap();
        let bloom = BloomScanner::build(&patterns).unwrap();
        let expected =
            String::from_utf8(plain(&data.join(format!("captures/s1like.dpi-{known}.tsv.gz")))).unwrap();
        let mut expected = expected.lines().filter(|line| !line.starts_with('#'));
        let mut packets = captures::Capture::open(&capture[..]).unwrap();
        let (mut number, mut hits) = (0, 0);
        while let Some(record) = packets.next().unwrap() {
            number += 1;
            let Some(payload) = payload(record.data) else { continue };
            let mut set = Vec::new();
            scanner.set(payload, &mut set);
            let count = scanner.count(payload);
            assert_eq!(bloom.count(payload), count, "{known}, packet {number}");
            for form in scanner.open().forms() {
                let mut each = 0;
                form.each(payload, &mut |_| each += 1);
                assert_eq!(each, count, "{known}, packet {number}");
            }
            if !set.is_empty() {
                hits += 1;
                let ids: Vec<String> = set.iter().map(u32::to_string).collect();
                let line = format!("{number}\t{count}\t{}\t{}", ids.len(), ids.join(","));
                assert_eq!(Some(line.as_str()), expected.next(), "{known}");
            }
        }
        assert_eq!(expected.next(), None, "{known}");
        println!("{known}: {number} packets, {hits} with occurrences, all as known");
        assert!(hits > 0, "{known}");
    }
}
