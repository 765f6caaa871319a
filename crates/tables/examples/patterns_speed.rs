//! Measures pattern scanners over the TCP and UDP payloads of a capture, in turn within one run.
//!
//! `patterns_speed CAPTURE PATTERNS [--rounds N] [--oracle FILE] [--peer COMMAND]`
//!
//! PATTERNS has a line a pattern: number, 1 for nocase, length, bytes in hexadecimal, anything. FILE has a
//! line a packet that has occurrences: its number, occurrences, patterns, their numbers; it is compared with
//! what the scanner finds. COMMAND is started with the names of two files, the payloads (length as u32,
//! bytes) and PATTERNS; for each empty line it is sent, it searches all payloads and answers with nanoseconds
//! and occurrences.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;
use tables::patterns::{BloomScanner, Scanner, SearchPattern};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(capture), Some(list)) = (arguments.next(), arguments.next()) else {
        return Err(
            "usage: patterns_speed CAPTURE PATTERNS [--rounds N] [--oracle FILE] [--peer COMMAND]".into()
        );
    };
    let (mut rounds, mut oracle, mut peer) = (7usize, None, None);
    while let (Some(option), Some(value)) = (arguments.next(), arguments.next()) {
        match option.as_str() {
            "--rounds" => rounds = value.parse()?,
            "--oracle" => oracle = Some(value),
            "--peer" => peer = Some(value),
            _ => return Err(format!("no such option: {option}").into()),
        }
    }
    let packets = payloads(&capture)?;
    let patterns = patterns(&list)?;
    let bytes: usize = packets.iter().map(|(_, payload)| payload.len()).sum();
    println!("{} packets with payload, {bytes} bytes, {} patterns", packets.len(), patterns.len());
    let begun = Instant::now();
    let scanner = Scanner::build(&patterns)?;
    println!("scanner: built in {:?}, {} bytes", begun.elapsed(), scanner.image().len());
    let begun = Instant::now();
    let bloom = BloomScanner::build(&patterns)?;
    println!("bloom:   built in {:?}, {} bytes", begun.elapsed(), bloom.bytes());
    if let Some(oracle) = oracle {
        compare(&scanner, &packets, &oracle)?;
    }
    let begun = Instant::now();
    let automaton = aho_corasick::AhoCorasick::builder()
        .kind(Some(aho_corasick::AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(patterns.iter().map(|pattern| &pattern.bytes))?;
    println!("aho-corasick DFA: built in {:?}, {} bytes", begun.elapsed(), automaton.memory_usage());
    let mut peer = peer.map(|command| Peer::start(&command, &packets, &list)).transpose()?;
    let image = scanner.open();
    type Search<'a> = Box<dyn FnMut(&[u8]) -> u64 + 'a>;
    let mut searches: Vec<(&str, Search<'_>)> = vec![
        (
            "each",
            Box::new(|payload| {
                let mut count = 0;
                image.each(payload, &mut |found| count += 1 + u64::from(found.end == 0));
                count
            }),
        ),
        ("count", Box::new(|payload| image.count(payload))),
        ("first", Box::new(|payload| u64::from(image.first(payload).is_some()))),
        ("bloom count", Box::new(|payload| bloom.count(payload))),
        (
            "aho-corasick",
            Box::new(|payload| {
                let same = |found: &aho_corasick::Match| {
                    let pattern = &patterns[found.pattern().as_usize()];
                    pattern.nocase || payload[found.range()] == pattern.bytes
                };
                automaton.find_overlapping_iter(payload).filter(same).count() as u64
            }),
        ),
    ];
    for (name, form) in ["each, second form", "each, third form"].into_iter().zip(image.forms().skip(1)) {
        let search = move |payload: &[u8]| {
            let mut count = 0;
            form.each(payload, &mut |_| count += 1);
            count
        };
        searches.push((name, Box::new(search)));
    }
    let mut times: Vec<(String, Vec<f64>, u64)> =
        searches.iter().map(|(name, _)| (name.to_string(), vec![], 0)).collect();
    if peer.is_some() {
        times.push(("peer".into(), vec![], 0));
    }
    for _ in 0..rounds {
        for ((_, search), (_, times, count)) in searches.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            *count = packets.iter().map(|(_, payload)| search(payload)).sum();
            times.push(begun.elapsed().as_secs_f64());
        }
        if let (Some(peer), Some((_, times, count))) = (&mut peer, times.last_mut()) {
            let (seconds, found) = peer.round()?;
            times.push(seconds);
            *count = found;
        }
    }
    let speed = |times: &[f64]| {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        bytes as f64 * 8e-9 / times[times.len() / 2]
    };
    let ours = speed(&times[0].1);
    for (name, times, count) in &times {
        let of_this = speed(times);
        println!("{name:17} {of_this:7.2} Gb/s  {count:8} found  each / this {:5.2}", ours / of_this);
    }
    Ok(())
}

/// The number of a packet, from 1, and its payload.
type Payload = (u32, Vec<u8>);

/// Another program that searches the same payloads.
struct Peer {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &str, packets: &[Payload], list: &str) -> Result<Peer, Box<dyn Error>> {
        let file = std::env::temp_dir().join(format!("payloads-{}", std::process::id()));
        let mut all = Vec::new();
        for (_, payload) in packets {
            all.extend((payload.len() as u32).to_le_bytes());
            all.extend(payload);
        }
        std::fs::write(&file, all)?;
        let text = file.with_extension("tsv");
        std::fs::write(&text, contents(list)?)?;
        let mut child = Command::new(command)
            .arg(&file)
            .arg(&text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("the peer has no output")?);
        let mut peer = Peer { child, answers };
        peer.round()?;
        std::fs::remove_file(file)?;
        std::fs::remove_file(text)?;
        Ok(peer)
    }

    fn round(&mut self) -> Result<(f64, u64), Box<dyn Error>> {
        writeln!(self.child.stdin.as_mut().ok_or("the peer has no input")?)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let (Some(time), Some(found)) = (words.next(), words.next()) else {
            return Err("the peer is silent".into());
        };
        Ok((time.parse::<f64>()? * 1e-9, found.parse()?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Nothing is left to do for a peer that cannot be waited for.
        let _ = self.child.wait();
    }
}

fn contents(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = std::fs::read(path)?;
    if path.ends_with(".gz") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain)?;
        bytes = plain;
    }
    Ok(bytes)
}

fn patterns(path: &str) -> Result<Vec<SearchPattern>, Box<dyn Error>> {
    let mut patterns = Vec::new();
    for line in String::from_utf8(contents(path)?)?.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [number, nocase, _, hex, ..] = fields[..] else {
            return Err(format!("no pattern: {line}").into());
        };
        let digits = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
        let bytes = digits.collect::<Result<Vec<u8>, _>>()?;
        patterns.push(SearchPattern {
            nocase: nocase == "1",
            value: number.parse()?,
            ..SearchPattern::anywhere(bytes)
        });
    }
    Ok(patterns)
}

/// The payloads of TCP and UDP.
fn payloads(path: &str) -> Result<Vec<Payload>, Box<dyn Error>> {
    let bytes = contents(path)?;
    let mut capture = captures::Capture::open(&bytes[..])?;
    let (mut number, mut found) = (0, Vec::new());
    while let Some(record) = capture.next()? {
        number += 1;
        if let Some(payload) = payload(record.data).filter(|payload| !payload.is_empty()) {
            found.push((number, payload.to_vec()));
        }
    }
    Ok(found)
}

/// The payload behind Ethernet, VLAN tags, IPv4 or IPv6 without extensions, and TCP or UDP.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let word = |bytes: &[u8], at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let mut at = 12;
    while matches!(word(frame, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    let ip = frame.get(at + 2..)?;
    let (protocol, segment) = match word(frame, at)? {
        0x0800 => {
            let header = usize::from(ip.first()? & 15) * 4;
            let end = usize::from(word(ip, 2)?).min(ip.len());
            (*ip.get(9)?, ip.get(header..end.max(header))?)
        }
        0x86dd => (*ip.get(6)?, ip.get(40..(40 + usize::from(word(ip, 4)?)).min(ip.len()))?),
        _ => return None,
    };
    match protocol {
        6 => segment.get(usize::from(segment.get(12)? >> 4) * 4..),
        17 => segment.get(8..),
        _ => None,
    }
}

fn compare(scanner: &Scanner, packets: &[Payload], oracle: &str) -> Result<(), Box<dyn Error>> {
    let text = String::from_utf8(contents(oracle)?)?;
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut compared = 0;
    for (number, payload) in packets {
        let mut set = Vec::new();
        scanner.set(payload, &mut set);
        if set.is_empty() {
            continue;
        }
        let mut patterns: Vec<u32> = set.iter().filter_map(|&pattern| scanner.value(pattern)).collect();
        patterns.sort_unstable();
        let names: Vec<String> = patterns.iter().map(u32::to_string).collect();
        let line = format!("{number}\t{}\t{}\t{}", scanner.count(payload), set.len(), names.join(","));
        let expected = lines.next().unwrap_or("nothing");
        if line != expected {
            return Err(format!("packet {number}: found {line}, expected {expected}").into());
        }
        compared += 1;
    }
    match lines.next() {
        Some(line) => Err(format!("not found: {line}").into()),
        None => {
            println!("{compared} packets with occurrences, all as {oracle} says");
            Ok(())
        }
    }
}
