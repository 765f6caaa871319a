//! Early lookups: finds where the packet function first searches a table of rules, or an exact table with
//! wide keys, and which values it needs afterwards.
//!
//! The idea: up to its first effect, the work of the function on a packet depends on that packet alone. So
//! the function can run up to there for many packets, before the first of them goes on. If the first effect
//! is such a lookup, the function is cut in two parts. The part before the lookup stores the key and the
//! values that are needed later; the part after the lookup goes on with the stored values. In between, all
//! keys are looked up together in a table of rules; of an exact table, which packets change, the slots of all
//! keys are fetched, and each packet looks its key up in its turn. Everything with an effect still happens
//! packet by packet.

use crate::block_order::order;
use crate::pack::Packing;
use crate::state::table_set::TablePlace;
use ir::{BlockId, Function, Op, Program, TableKind, Terminator, Value};
use std::collections::HashSet;

/// The largest number of early lookups of a program.
pub(super) const MOST_EARLY_LOOKUPS: usize = 8;
/// Keys of exact tables from so many words on are looked up early. Narrower ones mostly stand at a fixed
/// place of the packet, see [`super::prefetch_hints`].
const WIDE_KEY: usize = 3;
/// The largest number of words that are kept for a packet: the address of the entry that was found, values,
/// and fuel counters.
pub(super) const KEPT_WORDS: usize = 40;

/// What an early lookup searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// The table of rules with this place among those of rules.
    Rules(usize),
    /// The exact table with the first of these places among the exact ones. The others are tables in which
    /// the packet may look for the same key afterwards.
    Exact(Vec<usize>),
}

/// A lookup before which the packet function has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EarlyLookup {
    /// The block, and which of its instructions it is.
    pub(super) block: BlockId,
    pub(super) at: usize,
    /// The table.
    pub(super) searched: Searched,
    /// Values that are computed before the lookup and used after it.
    pub(super) kept: Vec<Value>,
    /// Constants among such values, which are made again instead of kept.
    pub(super) constants: Vec<(Value, u128)>,
    /// Fuel counters that are used after the lookup.
    pub(super) slots: Vec<u32>,
}

/// A part of a function that is compiled by itself.
#[derive(Clone, Copy)]
pub(super) enum Part<'q> {
    /// The whole function.
    Whole,
    /// The part before the first effect, which ends with one of these early lookups.
    Before(&'q [EarlyLookup]),
    /// The part after an early lookup.
    After(&'q EarlyLookup),
}

/// The early lookups of the packet function, if no packet and no handler can change their results while a
/// batch runs.
pub(super) fn early_lookups(program: &Program, places: &[TablePlace]) -> Vec<EarlyLookup> {
    let [function] = program.functions.as_slice() else { return Vec::new() };
    let mut found = Vec::new();
    for block in order(function, BlockId(0), |id| first_effect(function, id).is_some()) {
        let Some(at) = first_effect(function, block) else { continue };
        let Op::Lookup { table, key } = &function.block(block).instructions[at].op else { continue };
        let searched = match places[*table as usize] {
            TablePlace::Rules(place) if is_lasting(program, *table) => Searched::Rules(place),
            TablePlace::Exact(_) if is_wide(program, *table) => {
                Searched::Exact(tables_of_key(program, places, block, *table, key))
            }
            _ => continue,
        };
        if found.len() < MOST_EARLY_LOOKUPS {
            found.extend(lookup(function, block, at, searched));
        }
    }
    found
}

/// Whether the key of an exact table is wide.
fn is_wide(program: &Program, table: u32) -> bool {
    Packing::new(&program.tables[table as usize].keys).words >= WIDE_KEY
}

/// The places of a table and of others for which there is an instruction with the same key behind this block.
fn tables_of_key(
    program: &Program,
    places: &[TablePlace],
    block: BlockId,
    table: u32,
    key: &[Value],
) -> Vec<usize> {
    let function = &program.functions[0];
    let widths = |table: u32| program.tables[table as usize].keys.iter().map(|column| column.width);
    let mut found = Vec::new();
    let behind = order(function, block, |_| false);
    let others = behind.iter().flat_map(|id| &function.block(*id).instructions).filter_map(|instruction| {
        match &instruction.op {
            Op::Lookup { table, key: other } | Op::Learn { table, key: other, .. } if other == key => {
                Some(*table)
            }
            _ => None,
        }
    });
    for other in std::iter::once(table).chain(others) {
        if let TablePlace::Exact(place) = places[other as usize]
            && !found.contains(&place)
            && widths(other).eq(widths(table))
        {
            found.push(place);
        }
    }
    found
}

/// The first instruction of a block that has an effect, or whose result another packet may change.
pub(super) fn first_effect(function: &Function, block: BlockId) -> Option<usize> {
    function.block(block).instructions.iter().position(|instruction| {
        // The time is that of the packet's batch, and the same for the part that runs early.
        !(instruction.op.is_of_packet_alone() || matches!(instruction.op, Op::Now))
    })
}

/// Whether a table cannot change while packets run: no packet inserts or removes entries, and no entry
/// expires.
fn is_lasting(program: &Program, table: u32) -> bool {
    let rules = &program.tables[table as usize];
    let changes = program.functions[0].blocks.iter().flat_map(|block| &block.instructions).any(|instruction| {
        matches!(&instruction.op, Op::Insert { table: other, .. } | Op::Withdraw { table: other, .. } if *other == table)
    });
    matches!(rules.kind, TableKind::Rules { .. }) && rules.age.is_none() && !changes
}

/// An early lookup with what is needed after it; `None` if the lookup may be reached again from there, or if
/// too much is needed.
fn lookup(function: &Function, block: BlockId, at: usize, searched: Searched) -> Option<EarlyLookup> {
    let behind = order(function, block, |_| false);
    let again = |id: &BlockId| function.block(*id).terminator.targets().iter().any(|to| to.block == block);
    if behind.iter().any(again) {
        return None;
    }
    let (mut made, mut used) = (HashSet::new(), Vec::new());
    let mut slots = Vec::new();
    for &id in &behind {
        let (code, first) = (function.block(id), if id == block { at } else { 0 });
        if id != block {
            made.extend(code.params.iter().copied());
        }
        for (index, instruction) in code.instructions.iter().enumerate().skip(first) {
            made.extend(instruction.results.iter().copied());
            // The key itself is passed to the lookup, not kept.
            if id != block || index > at {
                instruction.op.operands(|value| used.push(value));
            }
        }
        code.terminator.operands(|value| used.push(value));
        if let Terminator::Fuel { slot, .. } = code.terminator {
            slots.push(slot);
        }
    }
    used.retain(|value| !made.contains(value));
    used.sort_unstable();
    used.dedup();
    slots.sort_unstable();
    slots.dedup();
    let constants: Vec<(Value, u128)> = (function.blocks.iter().flat_map(|block| &block.instructions))
        .filter_map(|instruction| match (&instruction.op, instruction.results.as_slice()) {
            (Op::Const(number), [value]) if used.binary_search(value).is_ok() => Some((*value, *number)),
            _ => None,
        })
        .collect();
    used.retain(|value| constants.iter().all(|(constant, _)| constant != value));
    let needed = 1 + slots.len() + used.iter().map(|value| words(function, *value)).sum::<usize>();
    let lookup = EarlyLookup { block, at, searched, kept: used, constants, slots };
    (needed <= KEPT_WORDS).then_some(lookup)
}

/// The words of a value when it is kept.
pub(super) fn words(function: &Function, value: Value) -> usize {
    1 + usize::from(function.width(value) > 64)
}
