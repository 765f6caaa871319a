//! How much memory a program takes for what it remembers: every table, counter, meter, register, pool and
//! group, by what is allocated for it; and the memory in which fragments wait for their first.
//!
//! Exact tables, counters, meters, registers, pools and groups allocate by their declaration alone, so what
//! is told is what they take. Tables of prefixes and rules allocate by their entries too: what is told of
//! them is the most that they come to, full, whatever their entries; what they take with those that they have
//! is only known when they are made, see `exec::state::table_set::filled`. Tables of patterns hold what the
//! program lists, since packets make no patterns. What a program lists or takes from files counts besides,
//! once for all workers, since a program is kept while it runs.

use super::{Column, Entry, Eviction, GroupMember, Match, Program, Table, TableKind, fragment_order};
use tables::deadlines::Deadlines;
use tables::exact::ExactSpec;
use tables::group::GroupTable;
use tables::lpm::{LpmSpec, Prefix};
use tables::meter::MeterSpec;
use tables::patterns::Scanner;
use tables::pool::PoolSpec;
use tables::rules::RulesSpec;
use tables::sizes;

/// Bytes of a cell of a counter, and of a number that an entry counts by.
const COUNTER_BYTES: u64 = 16;
/// Bytes of when an entry was found first and last.
const TIMES_BYTES: u64 = 16;

/// What one declaration takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it is, such as "table".
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// How many of its parts there are.
    pub count: u64,
    /// What these are, such as "entries".
    pub parts: &'static str,
    /// All bytes, with one worker.
    pub bytes: u64,
    /// Those of them that are there once, however many workers there are.
    pub shared: u64,
    /// Whether it takes less with fewer entries, or with other ones.
    pub by_entries: bool,
}

/// What every declaration of a program takes, tables first, each kind in order of declaration.
pub fn footprint(program: &Program) -> Vec<MemoryUse> {
    let part = |what, name: &String, count: u64, parts, bytes| MemoryUse {
        what,
        name: name.clone(),
        count,
        parts,
        bytes,
        ..MemoryUse::default()
    };
    let mut all = Vec::new();
    for table in &program.tables {
        let shared = listed(table);
        let bytes = table_bytes(program, table).saturating_add(shared);
        let by_entries = matches!(table.kind, TableKind::Lpm | TableKind::Rules { .. });
        let table = part("table", &table.name, table.capacity.into(), "entries", bytes);
        all.push(MemoryUse { shared, by_entries, ..table });
    }
    for counter in &program.counters {
        let cells = u64::from(counter.size);
        all.push(part("counter", &counter.name, cells, "cells", cells.saturating_mul(COUNTER_BYTES)));
    }
    for meter in &program.meters {
        all.push(part("meter", &meter.name, meter.size.into(), "cells", MeterSpec::allocated(meter.size)));
    }
    for register in &program.registers {
        let cells = u64::from(register.size);
        all.push(part("register", &register.name, cells, "cells", cells.saturating_mul(8)));
    }
    for pool in &program.pools {
        all.push(part("pool", &pool.name, pool.items(), "items", PoolSpec::allocated(pool.items())));
    }
    for group in &program.groups {
        let (size, capacity) = (u64::from(group.size), u64::from(group.capacity));
        // A member's words, its mark and, where packets go to all, its port; lists of them grow by doubling.
        let ports =
            if group.multicast { 8 * u64::from(group.capacity).next_power_of_two().max(4) + 24 } else { 0 };
        let members = size.saturating_mul(capacity);
        let room = members.checked_next_power_of_two().unwrap_or(u64::MAX).max(8);
        let each = GroupTable::allocated(group.buckets, group.capacity).saturating_add(ports);
        let bytes = size
            .saturating_mul(each)
            .saturating_add(room.saturating_mul(8 * words(&group.columns) as u64 + 1))
            .saturating_add(group.members.iter().map(member_bytes).sum());
        let shared = group.members.iter().map(member_bytes).sum::<u64>() / 2;
        all.push(MemoryUse { shared, ..part("group", &group.name, size, "groups", bytes) });
    }
    if program.orders_fragments {
        let name = "fragments".to_string();
        all.push(part(
            "order",
            &name,
            fragment_order::BYTES.into(),
            "bytes that wait",
            fragment_order::ALLOCATED,
        ));
    }
    all
}

/// All bytes of a footprint with one worker.
pub fn total(footprint: &[MemoryUse]) -> u64 {
    total_of(footprint, 1)
}

/// All bytes of a footprint with so many workers, each of which has for itself what the program remembers.
pub fn total_of(footprint: &[MemoryUse], workers: u16) -> u64 {
    let bytes = |part: &MemoryUse| {
        (part.bytes - part.shared).saturating_mul(workers.into()).saturating_add(part.shared)
    };
    footprint.iter().fold(0, |sum: u64, part| sum.saturating_add(bytes(part)))
}

/// Bytes of the entries that a program lists for a table, or takes from files.
pub fn listed(table: &Table) -> u64 {
    (table.entries.len() * size_of::<Entry>()) as u64
        + table.entries.iter().map(Entry::allocated).sum::<u64>()
}

/// Bytes of a member as the program lists it, which is kept with the program and with the group.
fn member_bytes(member: &GroupMember) -> u64 {
    2 * (size_of_val(member) + size_of_val(&member.1[..])) as u64
}

fn table_bytes(program: &Program, table: &Table) -> u64 {
    let capacity = u64::from(table.capacity);
    match table.kind {
        TableKind::Exact => {
            let spec = ExactSpec {
                key_words: words(&table.keys),
                value_words: words(&table.values),
                capacity: table.capacity as usize,
                idle: table.idle,
                age: table.age,
                lifetimes: table.lifetimes,
                evict: match table.evict {
                    Eviction::Lru => tables::exact::Evict::Lru,
                    Eviction::Refuse => tables::exact::Evict::Refuse,
                },
                seed: 0,
            };
            let pool = table.releases.and_then(|pool| program.pools.get(pool as usize));
            let ending = table.expires.map_or(0, |_| Deadlines::allocated(spec.key_words, capacity));
            spec.allocated()
                .saturating_add(ending)
                .saturating_add(pool.map_or(0, |pool| spec.allocated_for_items(pool.items())))
        }
        TableKind::Lpm => {
            let width = table.keys.iter().map(|column| u32::from(column.width)).sum::<u32>();
            let spec = LpmSpec { width: width.min(128) as u8, capacity: table.capacity as usize };
            spec.at_most()
                .saturating_add(rows(table, capacity))
                .saturating_add(ending::<Prefix>(table.age, capacity))
        }
        TableKind::Rules { .. } => {
            let widths = table.keys.iter().map(|column| column.width).collect();
            let spec = RulesSpec { widths, capacity: table.capacity as usize };
            // A key is kept once, behind a pointer with two counts, and where the rules with it stand.
            let key = 2 * size_of::<usize>()
                + size_of::<(Vec<Match>, u32)>()
                + size_of::<Match>() * table.keys.len();
            let places = sizes::ordered_at_most::<usize, Vec<u64>>(capacity)
                .saturating_add(capacity.saturating_mul(key as u64 + 16))
                .saturating_add(sizes::ordered_at_most::<u64, usize>(capacity));
            spec.at_most()
                .saturating_add(places)
                .saturating_add(rows(table, capacity))
                .saturating_add(ending::<u64>(table.age, capacity))
                .saturating_add(table.age.map_or(0, |_| sizes::grown::<u64>(capacity + 1)))
        }
        TableKind::Patterns(_) => {
            let own = table.entries.iter().flat_map(|entry| &entry.key).map(|key| match key {
                Match::Bytes(pattern) => pattern.bytes.len(),
                _ => 0,
            });
            let listed = listed(table).saturating_add(4 * table.entries.len() as u64);
            Scanner::at_most(own)
                .saturating_add(listed)
                .saturating_add(rows(table, table.entries.len() as u64))
        }
    }
}

/// The most bytes of the values of so many entries: their words, how many entries hold each, and how equal
/// ones are found; or what each counts.
fn rows(table: &Table, entries: u64) -> u64 {
    if entries == 0 {
        return 0;
    }
    // One more while an entry gets another value.
    let (rows, words) = (entries + 1, words(&table.values) as u64);
    let kept = sizes::grown::<u64>(rows.saturating_mul(words)).saturating_add(2 * sizes::grown::<u32>(rows));
    if table.counted {
        let count = if table.times { COUNTER_BYTES + TIMES_BYTES } else { COUNTER_BYTES };
        return kept.saturating_add(2 * rows.saturating_mul(count));
    }
    kept.saturating_add(sizes::ordered_at_most::<Vec<u64>, u32>(rows)).saturating_add(rows * 8 * words)
}

/// The most bytes of when entries end.
fn ending<K>(age: Option<u64>, entries: u64) -> u64 {
    let ordered = || sizes::ordered_at_most::<(u64, K), ()>(entries);
    age.map_or(0, |_| ordered().saturating_add(sizes::ordered_at_most::<K, (u64, u32)>(entries)))
}

/// The 64-bit words that columns take: one never straddles two, and one wider than 64 bits has two to itself.
pub fn words(columns: &[Column]) -> usize {
    let (mut words, mut free) = (0, 0);
    for column in columns {
        let width = u32::from(column.width);
        if width > 64 {
            (words, free) = (words + 2, 0);
            continue;
        }
        if width > free {
            (words, free) = (words + 1, 64);
        }
        free -= width;
    }
    words
}
