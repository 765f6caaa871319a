//! Patterns in payload: every occurrence of some thousand literals, some of them without regard to case.

use super::bench::{Bench, Built, SEED, contents, cost, cost_beside, stem};
use super::contest::{Contender, Entry, Timed, Way};
use super::packets::Payloads;
use super::peer::Library;
use crate::experiment::Row;
use cpu_time::ThreadTime;
use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use tables::generate::Random;
use tables::generate::payload::{Literals, PatternsSpec, Payload, PayloadLiteral, PayloadSpec};
use tables::patterns::{BloomScanner, PatternsModel, Scanner, SearchPattern};

/// Payload that is searched, in bytes.
const PAYLOAD: usize = 16 << 20;
/// Of so many bytes the slow scanners and the twin search the first ones only.
const SHORT: usize = 1 << 18;

/// What was found: how often something, and the sum over all of (pattern + 1) × (end + 1).
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u32,
    sum: u64,
}

/// Something of this process that searches payload.
struct Scan<'a, F> {
    name: &'a str,
    payloads: &'a Payloads,
    scan: F,
}

/// What aho-corasick and daachorse are given: literals in lower case, each once, and which patterns each
/// stands for.
struct Folded {
    literals: Vec<Vec<u8>>,
    owners: Vec<Vec<u32>>,
}

/// The rows of one set of patterns.
pub(super) fn rows(
    bench: &mut Bench,
    file: Option<&Path>,
    capture: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let most = if bench.quick { 1 << 20 } else { PAYLOAD };
    let (name, patterns) = match file {
        Some(path) => (stem(path), read(path)?),
        None => ("generated".to_owned(), made(if bench.quick { 300 } else { 4000 })),
    };
    let (place, payloads) = match capture {
        Some(path) => (stem(path), Payloads::of_capture(&path.to_string_lossy(), most)?),
        None => ("generated".to_owned(), planted(&patterns, most)),
    };
    let case = format!("{} patterns ({name}), payload {place}", patterns.len());
    progress(&format!("{case}: build"));
    let Built { what: scanner, seconds } =
        bench.build(|| Scanner::build(&patterns).map_err(|error| error.to_string()))?;
    let bytes = scanner.image().len() as u64;
    let mut others = Vec::new();

    let folded = Folded::new(&patterns);
    let peer =
        if bench.peers { bench.peer(Library::Hyperscan, &written(bench, &patterns)?, &[])? } else { None };
    let crates = if bench.peers { Some(automata(&folded, &mut others)?) } else { None };
    let scan = |haystack: &[u8]| {
        Tally::of(|tally| scanner.each(haystack, &mut |found| tally.add(found.pattern, found.end)))
    };
    let mut entries = vec![Entry::ours(Way::Scan, Scan { name: "scanner", payloads: &payloads, scan })];
    if let Some(peer) = &peer {
        let data: Vec<u8> = payloads.iter().flat_map(|payload| piece(payload, false)).collect();
        let path = bench.workshop.write("payload", &data)?;
        bench.enter(peer, &path, &mut entries)?;
    }
    if let Some((dense, double)) = &crates {
        let scan = |haystack: &[u8]| {
            Tally::of(|tally| {
                for found in dense.find_overlapping_iter(haystack) {
                    folded.tell(&patterns, found.pattern().as_usize(), haystack, found.end(), tally);
                }
            })
        };
        entries.push(Entry::other(Way::Scan, Scan { name: "aho-corasick DFA", payloads: &payloads, scan }));
        let scan = |haystack: &[u8]| {
            let lower = haystack.to_ascii_lowercase();
            Tally::of(|tally| {
                for found in double.find_overlapping_iter(&lower) {
                    folded.tell(&patterns, found.value() as usize, haystack, found.end(), tally);
                }
            })
        };
        entries.push(Entry::other(Way::Scan, Scan { name: "daachorse", payloads: &payloads, scan }));
    }
    progress(&case);
    let model = PatternsModel::build(&patterns).map_err(|error| error.to_string())?;
    let mut right = Vec::new();
    let mut searched = 0;
    for payload in payloads.iter().take_while(|payload| {
        searched += payload.len();
        searched < SHORT
    }) {
        right.push(model.count(payload) as u32);
    }
    let goals = [("aho-corasick", 3.0), ("hyperscan", 0.6)];
    let amount = payloads.bytes() as f64 * 8.0 / 1e9;
    let mut rows = bench.contest(&case, amount, "Gb/s", &right, &goals).rows(&mut entries);
    drop(entries);

    rows.extend(by_bloom_filter(bench, &case, &patterns, &payloads, &right)?);
    let peers: Vec<_> = peer.iter().map(|peer| (Library::Hyperscan, peer)).collect();
    rows.extend(cost(&case, seconds.clone(), bytes, &peers));
    for other in others {
        rows.extend(cost_beside(&case, seconds.clone(), bytes, &[other]));
    }
    Ok(rows)
}

/// The rows of Bloom filters. They are for devices that have a thousand threads; here they search only the
/// first payloads, whose answers are known.
fn by_bloom_filter(
    bench: &Bench,
    case: &str,
    patterns: &[SearchPattern],
    payloads: &Payloads,
    right: &[u32],
) -> Result<Vec<Row>, String> {
    let mut short = Payloads::default();
    payloads.iter().take(right.len()).for_each(|payload| short.push(payload));
    let bloom = BloomScanner::build(patterns).map_err(|error| error.to_string())?;
    let scan = |haystack: &[u8]| {
        Tally::of(|tally| bloom.each(haystack, &mut |found| tally.add(found.pattern, found.end)))
    };
    let mut entries = [Entry::ours(Way::Scan, Scan { name: "Bloom scanner", payloads: &short, scan })];
    let amount = short.bytes() as f64 * 8.0 / 1e9;
    Ok(bench.contest(case, amount, "Gb/s", right, &[]).rows(&mut entries))
}

impl Tally {
    /// What a search counts.
    #[inline]
    fn of(search: impl FnOnce(&mut Tally)) -> Tally {
        let mut tally = Tally::default();
        search(&mut tally);
        tally
    }

    #[inline]
    fn add(&mut self, pattern: u32, end: u32) {
        self.count += 1;
        let weight = (u64::from(pattern) + 1).wrapping_mul(u64::from(end) + 1);
        self.sum = self.sum.wrapping_add(weight);
    }
}

impl<F: FnMut(&[u8]) -> Tally> Contender for Scan<'_, F> {
    fn name(&self) -> &str {
        self.name
    }

    fn answers(&mut self) -> Result<Vec<u32>, String> {
        Ok(self.payloads.iter().map(|payload| (self.scan)(payload).count).collect())
    }

    fn passes(&mut self, _batch: usize, passes: u64) -> Result<Timed, String> {
        let mut pass = || {
            let mut sum = 0_u64;
            for payload in self.payloads.iter() {
                sum = sum.wrapping_add(black_box((self.scan)(payload)).sum);
            }
            sum
        };
        pass();
        let start = ThreadTime::now();
        let mut sum = 0_u64;
        for _ in 0..passes {
            sum = sum.wrapping_add(pass());
        }
        Ok(Timed { seconds: start.elapsed().as_secs_f64(), sum })
    }
}

impl Folded {
    fn new(patterns: &[SearchPattern]) -> Folded {
        let mut folded = Folded { literals: Vec::new(), owners: Vec::new() };
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let literal = pattern.bytes.to_ascii_lowercase();
            let place = *known.entry(literal).or_insert_with_key(|literal| {
                folded.literals.push(literal.clone());
                folded.owners.push(Vec::new());
                folded.literals.len() - 1
            });
            folded.owners[place].push(index as u32);
        }
        folded
    }

    /// Adds the patterns that a literal stands for, those with regard to case only if the bytes are theirs.
    #[inline]
    fn tell(
        &self,
        patterns: &[SearchPattern],
        literal: usize,
        haystack: &[u8],
        end: usize,
        tally: &mut Tally,
    ) {
        for &owner in &self.owners[literal] {
            let pattern = &patterns[owner as usize];
            if pattern.nocase || haystack[end - pattern.bytes.len()..end] == pattern.bytes[..] {
                tally.add(owner, end as u32);
            }
        }
    }
}

/// The automata of the crates, and of each its name, build time and size.
type Automata = (aho_corasick::AhoCorasick, daachorse::DoubleArrayAhoCorasick<u32>);

fn automata(folded: &Folded, costs: &mut Vec<(String, f64, u64)>) -> Result<Automata, String> {
    let start = ThreadTime::now();
    let dense = aho_corasick::AhoCorasick::builder()
        .kind(Some(aho_corasick::AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(&folded.literals)
        .map_err(|error| error.to_string())?;
    let built = start.elapsed().as_secs_f64();
    costs.push(("aho-corasick DFA".to_owned(), built, dense.memory_usage() as u64));
    let start = ThreadTime::now();
    let double =
        daachorse::DoubleArrayAhoCorasick::new(&folded.literals).map_err(|error| error.to_string())?;
    let built = start.elapsed().as_secs_f64();
    costs.push(("daachorse".to_owned(), built, double.heap_bytes() as u64));
    Ok((dense, double))
}

/// A piece of bytes as other libraries' programs read it.
fn piece(bytes: &[u8], nocase: bool) -> Vec<u8> {
    let mut piece = Vec::with_capacity(bytes.len() + 8);
    piece.extend((bytes.len() as u32).to_le_bytes());
    piece.extend(u32::from(nocase).to_le_bytes());
    piece.extend_from_slice(bytes);
    piece
}

fn written(bench: &Bench, patterns: &[SearchPattern]) -> Result<std::path::PathBuf, String> {
    let data: Vec<u8> = patterns.iter().flat_map(|pattern| piece(&pattern.bytes, pattern.nocase)).collect();
    bench.workshop.write("patterns", &data)
}

/// A file of literals: number, whether case is ignored, length, bytes in hexadecimal digits, and what
/// follows.
fn read(path: &Path) -> Result<Vec<SearchPattern>, String> {
    import::literals::read(&contents(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// So many patterns that are made.
pub(crate) fn made(count: usize) -> Vec<SearchPattern> {
    let literals = Literals::new(&PatternsSpec { count, nocase: 60, seed: SEED }).literals;
    let pattern = |literal: PayloadLiteral| SearchPattern {
        nocase: literal.nocase,
        ..SearchPattern::anywhere(literal.bytes)
    };
    literals.into_iter().map(pattern).collect()
}

/// Payload in packets of up to 1,460 bytes, with some of the patterns planted.
fn planted(patterns: &[SearchPattern], length: usize) -> Payloads {
    let literal =
        |pattern: &SearchPattern| PayloadLiteral { bytes: pattern.bytes.clone(), nocase: pattern.nocase };
    let literals = Literals { literals: patterns.iter().map(literal).collect() };
    let payload = Payload::new(&literals, &PayloadSpec { length, planted: 1, opaque: 40, seed: SEED });
    let mut random = Random::new(SEED);
    let mut payloads = Payloads::default();
    let mut rest = &payload.bytes[..];
    while !rest.is_empty() {
        let length = rest.len().min(random.between(32, 1460) as usize);
        let (packet, behind) = rest.split_at(length);
        payloads.push(packet);
        rest = behind;
    }
    payloads
}
