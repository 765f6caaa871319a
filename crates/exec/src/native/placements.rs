//! Placements: the forms of entries that packets insert into tables of prefixes and rules, or remove. Each
//! form has a number, by which compiled code names it.

use super::words::whole;
use ir::{KeyPart, Match, Op, Program, prefix_mask};

/// A form of entries that packets insert into a table of prefixes or rules, or remove.
pub(super) struct Placement {
    /// The number of the table in the program.
    pub(super) table: u32,
    /// The parts of its key.
    pub(super) key: Vec<KeyPart>,
    /// Its priority.
    pub(super) priority: u32,
    widths: Vec<u8>,
}

/// All placements of a program, each once.
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
    /// The key with these values, and the number of values that it used.
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

    /// The number of values in the key.
    pub(super) fn made_of(&self) -> usize {
        self.key.iter().filter(|part| !matches!(part, KeyPart::Fixed(_))).count()
    }
}
