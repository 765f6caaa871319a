//! Replacing a program by another one: what may go over from the tables of the old one (G12).
//!
//! A table is known again by its name. Its entries go over if its shape is the same: the kind, and the widths and kinds of all columns in
//! their order. Otherwise somebody has to say that the old entries are given up; nothing is guessed.

use super::{Column, Kind, Program, Table};
use std::fmt::Write;

impl Table {
    /// The shape of the table as text: two tables with one shape can hold each other's entries.
    pub fn shape(&self) -> String {
        let mut text = self.kind.name().to_string();
        for (what, columns) in [("key", &self.keys), ("value", &self.values)] {
            let _ = write!(text, " {what}");
            columns.iter().for_each(|column| write_column(&mut text, column));
        }
        text
    }

    /// A number for the shape: FNV-1a of its text (Fowler, Noll, Vo; 64 bits), the same on every machine.
    pub fn shape_hash(&self) -> u64 {
        self.shape().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

/// Names of columns do not count, but those of variants and members do: they are what the numbers mean.
fn write_column(text: &mut String, column: &Column) {
    let kind = match &column.kind {
        Kind::Names(names) => {
            let names: Vec<String> = names.iter().map(|(number, name)| format!("{number}={name}")).collect();
            format!("names({})", names.join(","))
        }
        kind => format!("{kind:?}"),
    };
    let _ = write!(text, " {kind}:{}", column.width);
}

/// What becomes of a table when a program is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// What packets put into the old one goes over into the new one of this index.
    Kept {
        /// The table in the old program.
        old: u32,
        /// The table in the new program.
        new: u32,
    },
    /// The old program has no such table.
    New,
    /// The new program has no such table, or somebody said that its entries are given up.
    Discarded,
    /// The shapes differ and nobody said that the old entries are given up: the program cannot be replaced.
    Misfit {
        /// The shape in the old program.
        old: String,
        /// The shape in the new program.
        new: String,
    },
}

/// What becomes of every table of both programs, by name: those of the new one in order, then those that only the old one has. `discard`
/// names tables whose old entries are given up.
pub fn replacement(old: &Program, new: &Program, discard: &[String]) -> Vec<(String, Fate)> {
    let mut fates = Vec::new();
    for (table, index) in new.tables.iter().zip(0..) {
        let known = (0..).zip(&old.tables).find(|(_, other)| other.name == table.name);
        let fate = match known {
            None => Fate::New,
            Some(_) if discard.contains(&table.name) => Fate::Discarded,
            Some((place, other)) if other.shape() == table.shape() => Fate::Kept { old: place, new: index },
            Some((_, other)) => Fate::Misfit { old: other.shape(), new: table.shape() },
        };
        fates.push((table.name.clone(), fate));
    }
    for table in old.tables.iter().filter(|table| !new.tables.iter().any(|other| other.name == table.name)) {
        fates.push((table.name.clone(), Fate::Discarded));
    }
    fates
}
