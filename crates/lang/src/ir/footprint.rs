//! How much memory a program takes for what it remembers: every table, counter, meter, register, pool and group, by what is allocated for it.
//!
//! Exact tables, counters, meters, registers, pools and groups allocate by their declaration alone, so what is told is what they take. Tables of
//! prefixes, rules and patterns allocate by their entries too: what is told of them is the most they may come to. What a program lists or takes from
//! files counts besides, since a program is kept while it runs.

use super::{BytePattern, Column, Entry, Evict, GroupMember, Match, Program, Table, TableKind};
use tables::exact::ExactSpec;
use tables::group::Group;
use tables::lpm::LpmSpec;
use tables::meter::MeterSpec;
use tables::pool::PoolSpec;
use tables::rules::RulesSpec;

/// Bytes of a cell of a counter, and of a number that an entry counts by.
const COUNTER_BYTES: u64 = 16;
/// Bytes that a rule's or prefix's values take beside their words: their number, their holders, and how equal ones are found.
const ROW_BYTES: u64 = 80;
/// Bytes that a rule takes beside the image: its fields as they were written, twice, and its place in the order.
const RULE_BYTES: u64 = 256;
/// Bytes that a pattern takes beside its own: its strings, places and entries, and what they were made of.
const PATTERN_BYTES: u64 = 512;
/// Bytes of the filters that a table of patterns has before it holds any.
const FILTER_BYTES: u64 = 64 << 10;
/// Bytes for each byte of a pattern: in the image and as it was written.
const PATTERN_COPIES: u64 = 8;

/// What one declaration takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What it is, such as "table".
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// How many of its parts there are.
    pub count: u64,
    /// What these are, such as "entries".
    pub parts: &'static str,
    /// All bytes.
    pub bytes: u64,
}

/// What every declaration of a program takes, tables first, each kind in order of declaration.
pub fn footprint(program: &Program) -> Vec<Memory> {
    let part = |what, name: &String, count: u64, parts, bytes| Memory {
        what,
        name: name.clone(),
        count,
        parts,
        bytes,
    };
    let mut all = Vec::new();
    for table in &program.tables {
        let bytes = table_bytes(program, table).saturating_add(table.entries.iter().map(entry_bytes).sum());
        all.push(part("table", &table.name, table.capacity.into(), "entries", bytes));
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
        let each = Group::allocated(group.buckets, group.capacity).saturating_add(ports);
        let bytes = size
            .saturating_mul(each)
            .saturating_add(room.saturating_mul(8 * words(&group.columns) as u64 + 1))
            .saturating_add(group.members.iter().map(member_bytes).sum());
        all.push(part("group", &group.name, size, "groups", bytes));
    }
    all
}

/// All bytes of a footprint.
pub fn total(footprint: &[Memory]) -> u64 {
    footprint.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes))
}

/// Bytes of an entry as the program lists it, which is kept.
fn entry_bytes(entry: &Entry) -> u64 {
    let patterns = entry.key.iter().map(|key| match key {
        Match::Bytes(pattern) => size_of::<BytePattern>() + pattern.bytes.len(),
        _ => 0,
    });
    let own = size_of_val(entry) + size_of_val(&entry.key[..]) + size_of_val(&entry.value[..]);
    (own + patterns.sum::<usize>()) as u64
}

/// Bytes of a member as the program lists it, which is kept with the program and with the group.
fn member_bytes(member: &GroupMember) -> u64 {
    2 * (size_of_val(member) + size_of_val(&member.1[..])) as u64
}

fn table_bytes(program: &Program, table: &Table) -> u64 {
    let capacity = u64::from(table.capacity);
    let row = ROW_BYTES + 16 * words(&table.values) as u64 + if table.counted { COUNTER_BYTES } else { 0 };
    match table.kind {
        TableKind::Exact => {
            let spec = ExactSpec {
                key_words: words(&table.keys),
                value_words: words(&table.values),
                capacity: table.capacity as usize,
                idle: table.idle,
                age: table.age,
                evict: match table.evict {
                    Evict::Lru => tables::exact::Evict::Lru,
                    Evict::Refuse => tables::exact::Evict::Refuse,
                },
                seed: 0,
            };
            let pool = table.releases.and_then(|pool| program.pools.get(pool as usize));
            spec.allocated().saturating_add(pool.map_or(0, |pool| spec.allocated_for_items(pool.items())))
        }
        TableKind::Lpm => {
            let width = table.keys.iter().map(|column| u32::from(column.width)).sum::<u32>();
            let spec = LpmSpec { width: width.min(128) as u8, capacity: table.capacity as usize };
            spec.allocated().saturating_add(capacity.saturating_mul(row))
        }
        TableKind::Rules { .. } => {
            let widths = table.keys.iter().map(|column| column.width).collect();
            let spec = RulesSpec { widths, capacity: table.capacity as usize };
            let fields = 64 * table.keys.len() as u64;
            spec.largest_image().saturating_add(capacity.saturating_mul(RULE_BYTES + row + fields))
        }
        TableKind::Patterns(_) => {
            let own = table.entries.iter().flat_map(|entry| &entry.key).map(|key| match key {
                Match::Bytes(pattern) => pattern.bytes.len() as u64,
                _ => 0,
            });
            let own: u64 = own.sum();
            let each = PATTERN_BYTES + row;
            FILTER_BYTES.saturating_add(capacity.saturating_mul(each)).saturating_add(own * PATTERN_COPIES)
        }
    }
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
