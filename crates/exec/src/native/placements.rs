//! What packets put into tables of prefixes and rules, or take out: each kind of entry has a number, and
//! compiled code names it by that number.

use super::words::whole;
use lang::ir::{KeyPart, Match, Op, Program, prefix_mask};

/// What a packet puts into a table of prefixes or rules, or takes out.
pub(super) struct Placement {
    /// The table.
    pub(super) table: u32,
    /// What its key is made of.
    pub(super) key: Vec<KeyPart>,
    /// Its priority.
    pub(super) priority: u32,
    widths: Vec<u8>,
}

/// Everything that a program puts into tables of prefixes and rules or takes out, each once.
pub(super) fn placements(program: &Program) -> Vec<Placement> {
    let mut found: Vec<Placement> = Vec::new();
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    for instruction in blocks.flat_map(|block| &block.instructions) {
        let (Op::Insert { table, key, priority, .. } | Op::Withdraw { table, key, priority }) =
            &instruction.op
        else {
            continue;
        };
        if !found.iter().any(|known| (known.table, &known.key, known.priority) == (*table, key, *priority)) {
            let widths = program.tables[*table as usize].keys.iter().map(|column| column.width).collect();
            found.push(Placement { table: *table, key: key.clone(), priority: *priority, widths });
        }
    }
    found
}

impl Placement {
    /// The key, made of these values, and how many of them it took.
    pub(super) fn key(&self, values: &[[u64; 2]]) -> (Vec<Match>, usize) {
        let mut taken = 0;
        let mut next = || {
            taken += 1;
            values.get(taken - 1).map_or(0, whole)
        };
        let key = (self.key.iter().zip(&self.widths))
            .map(|(part, width)| match part {
                KeyPart::Fixed(fixed) => fixed.clone(),
                KeyPart::Exact(_) => Match::Exact(next()),
                KeyPart::Prefix(_, length) => {
                    Match::Prefix { value: next() & prefix_mask(*width, *length), length: *length }
                }
            })
            .collect();
        (key, taken)
    }

    /// How many values it is made of.
    pub(super) fn made_of(&self) -> usize {
        self.key.iter().filter(|part| !matches!(part, KeyPart::Fixed(_))).count()
    }
}
