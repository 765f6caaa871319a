//! Entries of a table that can never be found: duplicate, shadowed, hidden, always beaten.
//!
//! Rules are boxes in the space of keys: one that earlier rules cover, alone or together, never decides; the
//! `tables` crate subtracts them. A prefix is hidden if longer ones cover all of it: halve it until one is
//! met or none is left. A pattern never answers first if another one lies inside it and ends before.

use ir::{Answer, BytePattern, Column, ColumnKind, Entry, Match, TableKind};
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::rules::{HygieneKind, Rule, RulesSpec, hygiene};

/// An entry that is never found, and what is found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableFinding {
    /// The entry, by its place.
    pub entry: usize,
    /// What is found instead, or some of it.
    pub by: Vec<usize>,
    /// Why, in words.
    pub label: &'static str,
    /// A key that the entry fits, where there is one to show it.
    pub witness: Option<String>,
}

/// The entries of a table of this kind that are never found, in their order.
pub fn never_found(kind: TableKind, keys: &[Column], entries: &[Entry]) -> Vec<UnreachableFinding> {
    match kind {
        TableKind::Rules { .. } => shadowed_rules(keys, entries),
        TableKind::Lpm => hidden_prefixes(keys, entries),
        TableKind::Patterns(Answer::First) => beaten_patterns(entries),
        _ => Vec::new(),
    }
}

fn shadowed_rules(keys: &[Column], entries: &[Entry]) -> Vec<UnreachableFinding> {
    // The order in which rules are tried: by priority, then as they stand; a stable sort keeps the rest.
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(entries[index].priority));
    let widths: Vec<u8> = keys.iter().map(|column| column.width).collect();
    let rules: Vec<Rule> = order
        .iter()
        .map(|&index| Rule { fields: entries[index].key.iter().map(Match::field).collect() })
        .collect();
    let spec = RulesSpec { widths: widths.clone(), capacity: rules.len() };
    let mut findings = Vec::new();
    for found in hygiene(&spec, &rules).unwrap_or_default() {
        let (by, label) = match found.kind {
            HygieneKind::Duplicate { of } => (vec![order[of]], "an entry before it asks for the same"),
            HygieneKind::Shadowed { by } if by.len() == 1 => {
                (vec![order[by[0]]], "an entry before it takes all that fits it")
            }
            HygieneKind::Shadowed { by } => (
                by.into_iter().map(|by| order[by]).collect(),
                "entries before it together take all that fits it",
            ),
            HygieneKind::Reachable | HygieneKind::Undecided => continue,
        };
        let mut words = found.witness.iter().copied();
        let mut parts = Vec::new();
        for column in keys {
            let mut word = || words.next().map_or(0, u128::from);
            let value = if column.width > 64 { word() << 64 | word() } else { word() };
            let shown = shown(&column.kind, value);
            parts.push(if column.name.is_empty() { shown } else { format!("{} {shown}", column.name) });
        }
        findings.push(UnreachableFinding {
            entry: order[found.rule],
            by,
            label,
            witness: Some(parts.join(", ")),
        });
    }
    findings.sort_by_key(|finding| finding.entry);
    findings
}

/// A value as a program writes it.
fn shown(kind: &ColumnKind, value: u128) -> String {
    match kind {
        ColumnKind::Ip4 => Ipv4Addr::from_bits(value as u32).to_string(),
        ColumnKind::Ip6 => Ipv6Addr::from_bits(value).to_string(),
        ColumnKind::Mac => {
            let bytes = (value as u64).to_be_bytes();
            bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        ColumnKind::Bool => (value == 1).to_string(),
        _ => value.to_string(),
    }
}

/// A prefix of the whole key: its bits from the most significant one of 128 on, and how many count.
type Bits = (u128, u32);

/// So many of the prefixes that hide another one are named.
const HIDING_NAMED: usize = 4;

fn hidden_prefixes(keys: &[Column], entries: &[Entry]) -> Vec<UnreachableFinding> {
    let all: BTreeMap<Bits, usize> =
        entries.iter().enumerate().map(|(index, entry)| (bits(keys, entry), index)).collect();
    let width: u32 = keys.iter().map(|column| u32::from(column.width)).sum();
    let mut findings = Vec::new();
    for (entry, own) in entries.iter().map(|entry| bits(keys, entry)).enumerate() {
        let (low, length) = own;
        if length < width
            && covered((low, length + 1), width, &all)
            && covered((low | half(length), length + 1), width, &all)
        {
            let within = all.range((low, 0)..=(low | rest(length), u32::MAX));
            let longer = within.filter(|((_, other), _)| *other > length);
            let mut by: Vec<usize> = longer.map(|(_, &index)| index).take(HIDING_NAMED).collect();
            by.sort_unstable();
            let label = "longer prefixes together take all of it";
            findings.push(UnreachableFinding { entry, by, label, witness: None });
        }
    }
    findings
}

/// The bit behind the first `length`.
fn half(length: u32) -> u128 {
    (1 << 127) >> length
}

/// All bits behind the first `length`.
fn rest(length: u32) -> u128 {
    u128::MAX.checked_shr(length).unwrap_or(0)
}

/// Whether the prefixes cover all of this one.
fn covered(prefix: Bits, width: u32, all: &BTreeMap<Bits, usize>) -> bool {
    let (low, length) = prefix;
    if all.contains_key(&prefix) {
        return true;
    }
    let inside = all.range((low, 0)..=(low | rest(length), u32::MAX)).any(|((_, other), _)| *other > length);
    inside
        && length < width
        && covered((low, length + 1), width, all)
        && covered((low | half(length), length + 1), width, all)
}

fn bits(keys: &[Column], entry: &Entry) -> Bits {
    let (mut address, mut length, mut used) = (0_u128, 0, 0);
    for (part, column) in entry.key.iter().zip(keys) {
        let width = u32::from(column.width);
        let (value, counts) = match part {
            Match::Exact(number) => (*number, width),
            Match::Prefix { value, length } => (*value, u32::from(*length)),
            _ => (0, 0),
        };
        used += width;
        address |= value.checked_shl(128 - used).unwrap_or(0);
        length += counts;
    }
    (address, length)
}

fn beaten_patterns(entries: &[Entry]) -> Vec<UnreachableFinding> {
    let patterns: Vec<&BytePattern> = (entries.iter())
        .filter_map(
            |entry| if let [Match::Bytes(pattern)] = &entry.key[..] { Some(&**pattern) } else { None },
        )
        .collect();
    let label = "another one lies inside of it and is found before";
    let (by, _) = beaten(&patterns);
    let beaten = by.into_iter().enumerate().filter_map(|(entry, by)| Some((entry, by?)));
    beaten.map(|(entry, by)| UnreachableFinding { entry, by: vec![by], label, witness: None }).collect()
}

/// For every pattern the first other one that occurs in each of its occurrences and ends before it, or at its
/// end if it stands before it; and how many steps that took.
fn beaten(patterns: &[&BytePattern]) -> (Vec<Option<usize>>, usize) {
    let folded: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.bytes.to_ascii_lowercase()).collect();
    let anywhere = |pattern: &BytePattern| pattern.offset == 0 && pattern.depth.is_none();
    let winners = |nocase: bool| {
        (0..patterns.len())
            .filter(move |&index| patterns[index].nocase == nocase && anywhere(patterns[index]))
    };
    let mut exact = Inside::of(winners(false).map(|index| (index, &patterns[index].bytes[..])));
    let mut alike = Inside::of(winners(true).map(|index| (index, &folded[index][..])));
    let mut first = |entry: usize| {
        let by_alike = alike.first(&folded[entry], entry);
        // What asks for certain letters does not lie in what takes large and small ones.
        let by_exact = if patterns[entry].nocase { None } else { exact.first(&patterns[entry].bytes, entry) };
        by_alike.into_iter().chain(by_exact).min()
    };
    let by = (0..patterns.len()).map(&mut first).collect();
    (by, exact.steps + alike.steps)
}

/// An automaton after Aho and Corasick: it says which of many patterns lie in a text, in time linear in their
/// lengths.
#[derive(Default)]
struct Inside {
    /// From a state by a byte.
    next: HashMap<(usize, u8), usize>,
    /// The state of the longest proper end of a state's bytes; by state.
    shorter: Vec<usize>,
    /// The first pattern that the bytes of a state end with; by state.
    first: Vec<Option<usize>>,
    /// How often the automaton went from one state to another.
    steps: usize,
}

impl Inside {
    fn of<'p>(patterns: impl Iterator<Item = (usize, &'p [u8])>) -> Inside {
        let mut inside = Inside { shorter: vec![0], first: vec![None], ..Inside::default() };
        // States with the one before and the byte between, by how many bytes they stand for.
        let mut levels: Vec<Vec<(usize, usize, u8)>> = Vec::new();
        for (index, bytes) in patterns {
            let mut state = 0;
            for (depth, &byte) in bytes.iter().enumerate() {
                let fresh = inside.first.len();
                let next = *inside.next.entry((state, byte)).or_insert(fresh);
                if next == fresh {
                    inside.shorter.push(0);
                    inside.first.push(None);
                    levels.resize(levels.len().max(depth + 1), Vec::new());
                    levels[depth].push((next, state, byte));
                }
                state = next;
            }
            inside.first[state] = inside.first[state].or(Some(index));
        }
        for (state, before, byte) in levels.into_iter().skip(1).flatten() {
            let shorter = inside.step(inside.shorter[before], byte);
            inside.shorter[state] = shorter;
            inside.first[state] = inside.first[state].into_iter().chain(inside.first[shorter]).min();
        }
        inside
    }

    fn step(&mut self, mut state: usize, byte: u8) -> usize {
        loop {
            self.steps += 1;
            match self.next.get(&(state, byte)) {
                Some(&next) => return next,
                None if state == 0 => return 0,
                None => state = self.shorter[state],
            }
        }
    }

    /// The first pattern that ends before the end of these bytes, or at it if it stands before this entry.
    fn first(&mut self, bytes: &[u8], entry: usize) -> Option<usize> {
        let (mut state, mut first) = (0, None);
        for (place, &byte) in bytes.iter().enumerate() {
            state = self.step(state, byte);
            let last = place + 1 == bytes.len();
            let found = self.first[state].filter(|&found| !last || found < entry);
            first = first.into_iter().chain(found).min();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::beaten;
    use ir::BytePattern;

    fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// What the definition says, word by word.
    fn beats(winner: &BytePattern, pattern: &BytePattern, stands_before: bool) -> bool {
        let same = |a: &[u8], b: &[u8]| if winner.nocase { a.eq_ignore_ascii_case(b) } else { a == b };
        let latest = if stands_before { pattern.bytes.len() } else { pattern.bytes.len() - 1 };
        let anywhere = winner.offset == 0 && winner.depth.is_none();
        let inside = |end: usize| same(&pattern.bytes[end - winner.bytes.len()..end], &winner.bytes);
        anywhere && (winner.nocase || !pattern.nocase) && (winner.bytes.len()..=latest).any(inside)
    }

    #[test]
    fn beaten_patterns_are_those_of_the_definition() {
        let mut random = numbers(3);
        for _ in 0..400 {
            let patterns: Vec<BytePattern> = (0..random(12))
                .map(|_| BytePattern {
                    bytes: (0..=random(6)).map(|_| b"abAB"[random(4) as usize]).collect(),
                    nocase: random(3) == 0,
                    offset: u32::from(random(5) == 0),
                    depth: (random(6) == 0).then_some(9),
                })
                .collect();
            let patterns: Vec<&BytePattern> = patterns.iter().collect();
            let first = |entry: usize| {
                let mut others = (0..patterns.len()).filter(|&other| other != entry);
                others.find(|&other| beats(patterns[other], patterns[entry], other < entry))
            };
            let expected: Vec<Option<usize>> = (0..patterns.len()).map(first).collect();
            assert_eq!(beaten(&patterns).0, expected, "{patterns:?}");
        }
    }

    #[test]
    fn twice_the_patterns_take_twice_the_steps() {
        let steps = |size: usize| {
            let mut random = numbers(5);
            let bytes =
                |random: &mut dyn FnMut(u64) -> u64| (0..12).map(|_| b'a' + random(3) as u8).collect();
            let patterns: Vec<BytePattern> = (0..size)
                .map(|number| BytePattern {
                    bytes: bytes(&mut random),
                    nocase: number % 2 == 0,
                    offset: 0,
                    depth: None,
                })
                .collect();
            beaten(&patterns.iter().collect::<Vec<_>>()).1
        };
        let (small, large) = (steps(1_000), steps(2_000));
        // Every byte is entered once and read once by each automaton, and goes back no more often than forth.
        assert!(small <= 1_000 * 12 * 8, "{small} steps for {} bytes", 1_000 * 12);
        assert!(large <= 2_000 * 12 * 8 && large * 10 < small * 25, "{small} and {large} steps");
    }
}
