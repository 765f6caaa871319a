//! Replacing a program by another one: what may go over from the tables and groups of the old one (G12).
//!
//! A table is known again by its name. Its entries go over if its shape is the same: the kind, and the widths and kinds of all columns in
//! their order. Otherwise somebody has to say that the old entries are given up; nothing is guessed. Groups and
//! their members are treated alike.

use super::{Column, Group, Kind, Program, Table};
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

impl Group {
    /// The shape of the group as text: two groups with one shape can hold each other's members.
    pub fn shape(&self) -> String {
        let mut text = "group".to_string();
        self.columns.iter().for_each(|column| write_column(&mut text, column));
        text
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

/// What becomes of the tables and groups when a program is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Of every table by its name.
    pub tables: Vec<(String, Fate)>,
    /// Of every group by its name.
    pub groups: Vec<(String, Fate)>,
}

/// What becomes of a table or group when a program is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// What packets put into the old one goes over into the new one of this index.
    Kept {
        /// Its index in the old program.
        old: u32,
        /// Its index in the new program.
        new: u32,
    },
    /// The old program has none of this name.
    New,
    /// The new program has none of this name, or somebody said that what it held is given up.
    Discarded,
    /// The shapes differ and nobody said that what the old one held is given up: the program cannot be replaced.
    Misfit {
        /// The shape in the old program.
        old: String,
        /// The shape in the new program.
        new: String,
    },
}

/// What becomes of every table and every group of both programs, by name: those of the new one in order, then those that only the old one has.
/// `discard` names those whose old entries or members are given up.
pub fn replacement(old: &Program, new: &Program, discard: &[String]) -> Replacement {
    let tables = |program: &Program| -> Vec<(String, String)> {
        program.tables.iter().map(|table| (table.name.clone(), table.shape())).collect()
    };
    let groups = |program: &Program| -> Vec<(String, String)> {
        program.groups.iter().map(|group| (group.name.clone(), group.shape())).collect()
    };
    Replacement {
        tables: fates(&tables(old), &tables(new), discard),
        groups: fates(&groups(old), &groups(new), discard),
    }
}

/// Of names with shapes.
fn fates(old: &[(String, String)], new: &[(String, String)], discard: &[String]) -> Vec<(String, Fate)> {
    let mut fates = Vec::new();
    for ((name, shape), index) in new.iter().zip(0..) {
        let known = (0..).zip(old).find(|(_, (other, _))| other == name);
        let fate = match known {
            None => Fate::New,
            Some(_) if discard.contains(name) => Fate::Discarded,
            Some((place, (_, other))) if other == shape => Fate::Kept { old: place, new: index },
            Some((_, (_, other))) => Fate::Misfit { old: other.clone(), new: shape.clone() },
        };
        fates.push((name.clone(), fate));
    }
    let gone = old.iter().filter(|(name, _)| !new.iter().any(|(other, _)| other == name));
    fates.extend(gone.map(|(name, _)| (name.clone(), Fate::Discarded)));
    fates
}
