//! `ravelin table patterns`: patterns, and what of them occurs in the payloads of a capture.

use super::figures::Figures;
use super::files::{import_failure, one_standard_input, output, read};
use super::payload;
use crate::arguments::table::{PatternFormat, PatternsArguments};
use crate::failure::Failure;
use crate::render::quantity::{bit_rate, bytes};
use captures::Capture;
use import::{ImportError, literals, snort};
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;
use tables::patterns::{BloomScanner, PatternMatch, PatternsModel, Scanner, SearchPattern};

/// The payloads of a capture, one after the other.
#[derive(Default)]
struct Payloads {
    bytes: Vec<u8>,
    /// The number of the packet from 1, and where its payload ends.
    ends: Vec<(u64, usize)>,
}

/// Runs the command.
pub(super) fn run(arguments: &PatternsArguments) -> Result<(), Failure> {
    one_standard_input(&arguments.lookup)?;
    let file = read(&arguments.lookup.file)?;
    let mut figures = Figures::new(&arguments.lookup);
    let path = &arguments.lookup.file;
    let patterns =
        figures.time("read", || load(&file, arguments)).map_err(|error| import_failure(path, &error))?;
    figures.note("patterns", patterns.len());
    let payloads = payloads(&arguments.lookup.lookup)?;
    figures.note("payloads", format!("{} of {}", payloads.ends.len(), bytes(payloads.bytes.len() as u64)));
    let full = |error: tables::patterns::PatternsBuildError| Failure::Finding(format!("{path}: {error}"));
    if arguments.linear {
        let model = figures.time("build", || PatternsModel::build(&patterns)).map_err(full)?;
        answer(&payloads, &mut figures, patterns.len(), |bytes, found| {
            model.each(bytes, &mut |one| found(one))
        })?;
    } else if arguments.bloom {
        let bloom = figures.time("build", || BloomScanner::build(&patterns)).map_err(full)?;
        figures.note_bytes(bloom.bytes());
        answer(&payloads, &mut figures, patterns.len(), |bytes, found| {
            bloom.each(bytes, &mut |one| found(one))
        })?;
    } else {
        let scanner = figures.time("build", || Scanner::build(&patterns)).map_err(full)?;
        figures.note_bytes(scanner.image().len());
        answer(&payloads, &mut figures, patterns.len(), |bytes, found| {
            scanner.each(bytes, &mut |one| found(one))
        })?;
    }
    figures.tell();
    Ok(())
}

/// The patterns of a file, and on standard error what of its rules they do not say.
fn load(file: &[u8], arguments: &PatternsArguments) -> Result<Vec<SearchPattern>, ImportError> {
    let is_list = |line: &str| line.bytes().next().is_some_and(|first| first.is_ascii_digit());
    let recognised = || {
        let text = String::from_utf8_lossy(file);
        let first = text.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
        if first.is_none_or(is_list) { PatternFormat::Literals } else { PatternFormat::Snort }
    };
    match arguments.format.unwrap_or_else(recognised) {
        PatternFormat::Literals => literals::read(file),
        PatternFormat::Snort if arguments.strict => snort::read_strictly(file).map(|rules| rules.patterns),
        PatternFormat::Snort => {
            let rules = snort::read(file)?;
            if let Some(first) = rules.unmeant.first() {
                anstream::eprintln!(
                    "left out: {} conditions that a search for strings cannot mean, so that more is found than the rules ask for; the first is on line {}, column {}: {}; --strict refuses it",
                    rules.unmeant.len(),
                    first.line,
                    first.column,
                    first.what
                );
            }
            Ok(rules.patterns)
        }
    }
}

fn payloads(path: &str) -> Result<Payloads, Failure> {
    let name = if path == "-" { "standard input" } else { path };
    let stream = ports::capture_in::open(path)
        .map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    let damaged = |error: captures::CaptureError| Failure::Finding(format!("{name}: {error}"));
    let mut capture = Capture::open(stream).map_err(damaged)?;
    let (mut payloads, mut number) = (Payloads::default(), 0);
    while let Some(record) = capture.next().map_err(damaged)? {
        number += 1;
        if let Some(payload) = payload::of(record.data, record.link).filter(|payload| !payload.is_empty()) {
            payloads.bytes.extend_from_slice(payload);
            payloads.ends.push((number, payloads.bytes.len()));
        }
    }
    Ok(payloads)
}

/// A line for each packet with a hit: its number, the occurrences, the different patterns and their ids.
fn answer(
    payloads: &Payloads,
    figures: &mut Figures,
    patterns: usize,
    scan: impl Fn(&[u8], &mut dyn FnMut(PatternMatch)),
) -> Result<(), Failure> {
    let mut output = output();
    let (mut seen, mut ids) = (vec![false; patterns], Vec::new());
    let mut start = 0;
    for (number, end) in &payloads.ends {
        let mut occurrences = 0u64;
        scan(&payloads.bytes[start..*end], &mut |found| {
            occurrences += 1;
            if !std::mem::replace(&mut seen[found.pattern as usize], true) {
                ids.push(found.pattern);
            }
        });
        start = *end;
        if occurrences == 0 {
            continue;
        }
        ids.sort_unstable();
        write!(output, "{number}\t{occurrences}\t{}\t", ids.len())?;
        for (index, id) in ids.iter().enumerate() {
            write!(output, "{}{id}", if index == 0 { "" } else { "," })?;
        }
        writeln!(output)?;
        ids.drain(..).for_each(|id| seen[id as usize] = false);
    }
    output.flush()?;
    if figures.wanted {
        let (begin, mut start) = (Instant::now(), 0);
        for (_, end) in &payloads.ends {
            scan(&payloads.bytes[start..*end], &mut |found| {
                black_box(found);
            });
            start = *end;
        }
        let bits = payloads.bytes.len() as f64 * 8.0;
        figures.note("searched", bit_rate(bits / begin.elapsed().as_secs_f64().max(1e-9) / 1e9));
    }
    Ok(())
}
