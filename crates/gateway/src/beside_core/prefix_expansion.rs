//! Controlled prefix expansion (Srinivasan and Varghese, 1999) of prefixes that are shorter than those that a
//! confined core changes while packets run, such as that of a default route. In the place of such a prefix
//! stand all prefixes of the shortest length that the core does change.
//!
//! ```text
//! wanted:  0.0.0.0/0 → 7                  10.0.0.0/8 → 5
//! core:    0.0.0.0/8 → 7  1.0.0.0/8 → 7 … 10.0.0.0/8 → 5  11.0.0.0/8 → 7 …
//! ```

use super::confined_loop::Held;
use crate::routing::Change;
use ir::{Entry, Table, TableKind};
use messages::control::{EntryChange, EntryOperation};
use std::collections::{BTreeMap, BTreeSet};

/// The short prefixes that are wanted, and which prefixes of the shortest length are wanted themselves.
#[derive(Debug, Default)]
pub(super) struct ExpandedPrefixes {
    /// Short prefixes with their values: by table, length and bits.
    short: BTreeMap<(u32, u8, u128), Vec<u128>>,
    /// By table, prefixes of the shortest length that are wanted themselves.
    wanted_at_shortest: BTreeSet<(u32, u128)>,
}

/// The shortest prefix that is changed in a table, and how many bits its keys have; nothing where all are.
fn shortest(table: &Table) -> Option<(u8, u8)> {
    let bits = u8::try_from(table.key_bits()).ok()?;
    let shortest = u8::try_from(table.shortest_changed()).ok()?;
    (table.kind == TableKind::Lpm && shortest > 0).then_some((shortest, bits))
}

/// The first bits, so many, of a key of so many.
fn network_bits(key: u128, length: u8, bits: u8) -> u128 {
    let behind = u32::from(bits - length.min(bits));
    key.checked_shr(behind).and_then(|first| first.checked_shl(behind)).unwrap_or(0)
}

/// The prefixes of the shortest length under a shorter one.
fn expansions(key: u128, length: u8, least: u8, bits: u8) -> impl Iterator<Item = u128> {
    (0..1_u128 << (least - length)).map(move |piece| key | piece << (bits - least))
}

impl ExpandedPrefixes {
    /// An entry of a table is wanted.
    pub(super) fn insert(&mut self, number: u32, table: &Table, entry: &Entry) {
        let Some((least, _)) = shortest(table) else { return };
        let (bits, length) = table.joined_key(&entry.key);
        if length < least {
            self.short.insert((number, length, bits), entry.value.clone());
        } else if length == least {
            self.wanted_at_shortest.insert((number, bits));
        }
    }

    /// Whether a change of an entry may be one of several prefixes, or of one that covers what it had.
    pub(super) fn concerns(table: &Table, entry: &Entry) -> bool {
        shortest(table).is_some_and(|(least, _)| table.joined_key(&entry.key).1 <= least)
    }

    /// Whether a prefix stands in the place of a shorter one.
    pub(super) fn is_expansion(&self, number: u32, table: &Table, (key, length): (u128, u8)) -> bool {
        let Some((least, bits)) = shortest(table) else { return false };
        length == least
            && !self.wanted_at_shortest.contains(&(number, key))
            && self.longest_covering(number, key, least, bits).is_some()
    }

    /// Whether an entry that is wanted is held: the entry itself, or all prefixes that stand in its place.
    pub(super) fn is_held(&self, number: u32, table: &Table, entry: &Entry, held: &Held) -> bool {
        let (key, length) = table.joined_key(&entry.key);
        let has = |key, length| held.get(&(key, length)).is_some_and(|held| held.value == entry.value);
        let Some((least, bits)) = shortest(table).filter(|(least, _)| length < *least) else {
            return has(key, length);
        };
        expansions(key, length, least, bits).all(|piece| {
            let covering = self.longest_covering(number, piece, least, bits).map(|(length, _)| length);
            covering != Some(length)
                || self.wanted_at_shortest.contains(&(number, piece))
                || has(piece, least)
        })
    }

    /// What the core has to change for a change of a table.
    pub(super) fn changes_for(&mut self, number: u32, table: &Table, change: &Change) -> Vec<EntryChange> {
        let (key, length) = table.joined_key(&change.entry.key);
        let value = change.insert.then(|| change.entry.value.clone());
        let one = |key, length, value: Option<Vec<u128>>| {
            let operation = value.map_or(EntryOperation::Remove, EntryOperation::Insert);
            EntryChange { table: number, length, bits: key, operation }
        };
        let Some((least, bits)) = shortest(table).filter(|(least, _)| length <= *least) else {
            return vec![one(key, length, value)];
        };
        if length == least {
            if value.is_some() {
                self.wanted_at_shortest.insert((number, key));
            } else {
                self.wanted_at_shortest.remove(&(number, key));
            }
            let stands = value.or_else(|| Some(self.longest_covering(number, key, least, bits)?.1.clone()));
            return vec![one(key, length, stands)];
        }
        match &value {
            Some(value) => drop(self.short.insert((number, length, key), value.clone())),
            None => drop(self.short.remove(&(number, length, key))),
        }
        let mut changes = Vec::new();
        for piece in expansions(key, length, least, bits)
            .filter(|piece| !self.wanted_at_shortest.contains(&(number, *piece)))
        {
            match self.longest_covering(number, piece, least, bits) {
                // A longer one stands there, which is short, too.
                Some((over, _)) if over > length => {}
                over => changes.push(one(piece, least, over.map(|(_, value)| value.clone()))),
            }
        }
        changes
    }

    /// The longest short prefix over one of the shortest length, by its length, and its value.
    fn longest_covering(&self, number: u32, key: u128, least: u8, bits: u8) -> Option<(u8, &Vec<u128>)> {
        (0..least).rev().find_map(|length| {
            let value = self.short.get(&(number, length, network_bits(key, length, bits)))?;
            Some((length, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::Filled;
    use ir::Match;
    use lang::pipeline::{CompileOptions, compile};

    fn tables() -> Vec<Table> {
        let text = "table routes: lpm(ip4) -> u16 { capacity 1k }\ntable routes6: lpm(ip6) -> u16 { capacity 1k }\ntable next_hops: exact(u16) -> port { capacity 8 }\nstart stage all() { flood }\n";
        let program = compile("p.rav", text, &|_| None, &CompileOptions::default()).program;
        program.expect("compiles").tables
    }

    /// The value of the longest prefix over a key.
    fn longest(entries: &BTreeMap<(u8, u128), u128>, key: u128, bits: u8) -> Option<u128> {
        (0..=bits).rev().find_map(|length| entries.get(&(length, network_bits(key, length, bits))).copied())
    }

    #[test]
    fn packets_find_what_they_would_find_among_short_prefixes() {
        let tables = tables();
        for (number, table) in (0..2).zip(&tables) {
            let bits = table.key_bits() as u8;
            let (mut expanded, mut seed) = (ExpandedPrefixes::default(), 7_u64);
            let (mut wanted, mut core) = (BTreeMap::new(), BTreeMap::new());
            let mut choice = |below: u64| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                (seed >> 16) % below
            };
            for _ in 0..200 {
                let length = choice(11) as u8;
                let key = network_bits(u128::from(choice(1 << 12)) << (bits - 12), length, bits);
                let insert = choice(3) > 0;
                let value = u128::from(choice(60_000));
                let change = Change {
                    table: Filled::Routes,
                    entry: Entry {
                        key: vec![Match::Prefix { value: key, length }],
                        value: vec![value],
                        priority: 0,
                    },
                    insert,
                };
                if insert {
                    wanted.insert((length, key), value);
                } else {
                    wanted.remove(&(length, key));
                }
                for change in expanded.changes_for(number, table, &change) {
                    assert!(u32::from(change.length) >= table.shortest_changed());
                    match change.operation {
                        EntryOperation::Insert(value) => core.insert((change.length, change.bits), value[0]),
                        EntryOperation::Remove => core.remove(&(change.length, change.bits)),
                    };
                }
                for key in 0..1 << 10 {
                    let key = key << (bits - 10);
                    assert_eq!(longest(&core, key, bits), longest(&wanted, key, bits), "{key:x} of {bits}");
                }
                // Who begins with what is wanted now knows as much, and that nothing is to be changed.
                let entry = |key: u128, length: u8, value: u128| {
                    let key = vec![Match::Prefix { value: key, length }];
                    Entry { key, value: vec![value], priority: 0 }
                };
                let all: Vec<Entry> =
                    wanted.iter().map(|(&(length, key), &to)| entry(key, length, to)).collect();
                let mut begun = ExpandedPrefixes::default();
                all.iter().for_each(|entry| begun.insert(number, table, entry));
                let held = core.iter().map(|(&(length, key), &to)| ((key, length), entry(key, length, to)));
                let mut held: Held = held.collect();
                assert!(all.iter().all(|entry| begun.is_held(number, table, entry, &held)));
                if held.pop_first().is_some() {
                    assert!(!all.iter().all(|entry| begun.is_held(number, table, entry, &held)));
                }
                let known = (expanded.short.clone(), expanded.wanted_at_shortest.clone());
                assert_eq!((begun.short, begun.wanted_at_shortest), known);
            }
        }
    }

    #[test]
    fn other_changes_stay_as_they_are() {
        let (mut expanded, tables) = (ExpandedPrefixes::default(), tables());
        let entry = Entry { key: vec![Match::Exact(3)], value: vec![2], priority: 0 };
        let change = Change { table: Filled::NextHops, entry, insert: true };
        let made = expanded.changes_for(2, &tables[2], &change);
        let operation = EntryOperation::Insert(vec![2]);
        assert_eq!(made, [EntryChange { table: 2, length: 16, bits: 3, operation }]);
        assert!(!expanded.is_expansion(2, &tables[2], (3, 16)));
        assert!(!ExpandedPrefixes::concerns(&tables[2], &change.entry));
    }
}
