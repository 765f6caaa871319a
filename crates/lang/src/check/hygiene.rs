//! Entries of the program text that can never be found: duplicate, shadowed, hidden, always beaten (G8).
//!
//! Rules are boxes in the space of keys: one that earlier rules cover, alone or together, never decides; the `tables` crate subtracts them.
//! A prefix is hidden if longer ones cover all of it: halve it until one is met or none is left. A pattern never answers first if another
//! one lies inside it and ends before.

use super::Checker;
use super::hir::Table;
use super::types::Type;
use crate::diagnostic::Diagnostic;
use crate::ir::{Answer, BytePattern, Entry, Match, TableKind};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::rules::{Kind, Rule, RulesSpec, hygiene};

/// So many findings of one table are told.
const MOST_TOLD: usize = 20;

impl Checker<'_> {
    /// Warns of entries that are never found.
    pub(super) fn unreachable_entries(&mut self) {
        for index in 0..self.program.tables.len() {
            let table = self.program.tables[index].clone();
            let findings = match table.kind {
                TableKind::Rules { .. } => shadowed_rules(&table),
                TableKind::Lpm => hidden_prefixes(&table),
                TableKind::Patterns(Answer::First) => beaten_patterns(&table),
                _ => Vec::new(),
            };
            for finding in findings.into_iter().take(MOST_TOLD) {
                let Finding { entry, by, label, witness } = finding;
                let mut warning = Diagnostic::warning(
                    "W0409",
                    format!("this entry of `{}` is never found", table.name),
                    table.entry_spans[entry],
                    label,
                );
                for other in by {
                    warning = warning.place(table.entry_spans[other], "this one is found instead");
                }
                if let Some(witness) = witness {
                    warning = warning.help(format!("for example for {witness}"));
                }
                self.report(warning);
            }
        }
    }
}

/// An entry that is never found, and what is found instead.
struct Finding {
    entry: usize,
    by: Vec<usize>,
    label: &'static str,
    witness: Option<String>,
}

fn shadowed_rules(table: &Table) -> Vec<Finding> {
    // The order in which rules are tried: by priority, then as they stand; a stable sort keeps the rest.
    let mut order: Vec<usize> = (0..table.entries.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(table.entries[index].priority));
    let widths: Vec<u8> = table.keys.iter().map(|(_, ty)| ty.width().unwrap_or(1)).collect();
    let rules: Vec<Rule> = order
        .iter()
        .map(|&index| Rule { fields: table.entries[index].key.iter().map(Match::field).collect() })
        .collect();
    let spec = RulesSpec { widths: widths.clone(), capacity: rules.len() };
    let mut findings = Vec::new();
    for found in hygiene(&spec, &rules).unwrap_or_default() {
        let (by, label) = match found.kind {
            Kind::Duplicate { of } => (vec![order[of]], "an entry before it asks for the same"),
            Kind::Shadowed { by } if by.len() == 1 => {
                (vec![order[by[0]]], "an entry before it takes all that fits it")
            }
            Kind::Shadowed { by } => (
                by.into_iter().map(|by| order[by]).collect(),
                "entries before it together take all that fits it",
            ),
            Kind::Reachable | Kind::Undecided => continue,
        };
        let mut words = found.witness.iter().copied();
        let mut parts = Vec::new();
        for ((name, ty), width) in table.keys.iter().zip(&widths) {
            let mut word = || words.next().map_or(0, u128::from);
            let value = if *width > 64 { word() << 64 | word() } else { word() };
            let shown = shown(ty, value);
            parts.push(if name.is_empty() { shown } else { format!("{name} {shown}") });
        }
        findings.push(Finding { entry: order[found.rule], by, label, witness: Some(parts.join(", ")) });
    }
    findings.sort_by_key(|finding| finding.entry);
    findings
}

/// A value as a program writes it.
fn shown(ty: &Type, value: u128) -> String {
    match ty {
        Type::Ip4 => Ipv4Addr::from_bits(value as u32).to_string(),
        Type::Ip6 => Ipv6Addr::from_bits(value).to_string(),
        Type::Mac => {
            let bytes = (value as u64).to_be_bytes();
            bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        Type::Bool => (value == 1).to_string(),
        _ => value.to_string(),
    }
}

/// A prefix of the whole key: its bits from the most significant one of 128 on, and how many count.
type Bits = (u128, u32);

fn hidden_prefixes(table: &Table) -> Vec<Finding> {
    let all: BTreeSet<Bits> = table.entries.iter().map(|entry| bits(table, entry)).collect();
    let width: u32 = table.keys.iter().map(|(_, ty)| u32::from(ty.width().unwrap_or(1))).sum();
    let mut findings = Vec::new();
    for (entry, own) in table.entries.iter().map(|entry| bits(table, entry)).enumerate() {
        let (low, length) = own;
        if length < width
            && covered((low, length + 1), width, &all)
            && covered((low | half(length), length + 1), width, &all)
        {
            let inside = |other: &Bits| other.1 > length && (other.0 ^ low) & !rest(length) == 0;
            let by = (0..table.entries.len())
                .filter(|&other| inside(&bits(table, &table.entries[other])))
                .take(4)
                .collect();
            findings.push(Finding {
                entry,
                by,
                label: "longer prefixes together take all of it",
                witness: None,
            });
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
fn covered(prefix: Bits, width: u32, all: &BTreeSet<Bits>) -> bool {
    let (low, length) = prefix;
    if all.contains(&prefix) {
        return true;
    }
    let inside = all.range((low, 0)..=(low | rest(length), u32::MAX)).any(|other| other.1 > length);
    inside
        && length < width
        && covered((low, length + 1), width, all)
        && covered((low | half(length), length + 1), width, all)
}

fn bits(table: &Table, entry: &Entry) -> Bits {
    let (mut address, mut length, mut used) = (0_u128, 0, 0);
    for (part, (_, ty)) in entry.key.iter().zip(&table.keys) {
        let width = u32::from(ty.width().unwrap_or(1));
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

fn beaten_patterns(table: &Table) -> Vec<Finding> {
    let patterns: Vec<&BytePattern> = (table.entries.iter())
        .filter_map(
            |entry| if let [Match::Bytes(pattern)] = &entry.key[..] { Some(&**pattern) } else { None },
        )
        .collect();
    let mut findings = Vec::new();
    for (entry, pattern) in patterns.iter().enumerate() {
        let beats = |(other, winner): &(usize, &&BytePattern)| {
            let anywhere = winner.offset == 0 && winner.depth.is_none();
            let alike = winner.nocase || !pattern.nocase;
            *other != entry && anywhere && alike && ends_first(winner, pattern, *other < entry)
        };
        if let Some((other, _)) = patterns.iter().enumerate().find(beats) {
            let label = "another one lies inside of it and is found before";
            findings.push(Finding { entry, by: vec![other], label, witness: None });
        }
    }
    findings
}

/// Whether the winner occurs in every occurrence of the pattern and ends before it, or at its end if it stands before it.
fn ends_first(winner: &BytePattern, pattern: &BytePattern, stands_before: bool) -> bool {
    let same = |a: &[u8], b: &[u8]| if winner.nocase { a.eq_ignore_ascii_case(b) } else { a == b };
    let latest = if stands_before { pattern.bytes.len() } else { pattern.bytes.len() - 1 };
    (winner.bytes.len()..=latest)
        .any(|end| same(&pattern.bytes[end - winner.bytes.len()..end], &winner.bytes))
}
