//! Replacing a program by another one: what may go over from what the old one remembers (G12).
//!
//! Everything is known again by its name, and goes over if its shape is the same. The shape of a table is its
//! kind, whether it is secret, and the widths and kinds of all columns in their order; where it differs,
//! somebody has to say that the old entries are given up: nothing is guessed. Groups and their members are
//! treated alike. What packets left in meters, registers, pools, counters and delayed events is worth less
//! than a program that can be replaced: where a shape differs, it begins anew, and that is said. So does
//! the table of a hook of a policy: packets make no rows in it, and its first rule with a limit changes its
//! shape.

use super::{Column, ColumnKind, Counter, Event, Group, Meter, Pool, Program, Rates, Register, Table};

impl Table {
    /// The shape of the table as text: two tables with one shape can hold each other's entries.
    pub fn shape(&self) -> String {
        let (keys, values) = (columns_in_words(&self.keys), columns_in_words(&self.values));
        let secret = if self.secret { "secret " } else { "" };
        format!("{secret}{} key{keys} value{values}", self.kind.name())
    }
}

impl Group {
    /// The shape of the group as text: two groups with one shape can hold each other's members.
    pub fn shape(&self) -> String {
        "group".to_string() + &columns_in_words(&self.columns)
    }
}

impl Meter {
    /// The shape of the meter as text: levels of its cells mean the same in another one of this shape.
    pub fn shape(&self) -> String {
        let unit = if self.packets { "packets" } else { "bytes" };
        let time = if self.period == 1 { "s".to_owned() } else { format!("{} s", self.period) };
        let rates = match self.rates {
            Rates::Single { committed, burst, excess } => {
                format!("single rate {committed}/{time}, burst {burst}, excess {excess}")
            }
            Rates::Two { committed, burst, peak, peak_burst } => {
                format!("two rates {committed}/{time}, burst {burst}, peak {peak}/{time}, burst {peak_burst}")
            }
        };
        format!("{}, {rates}, in {unit}", cells(self.size))
    }
}

impl Register {
    /// The shape of the register as text: numbers in its cells mean the same in another one of this shape.
    pub fn shape(&self) -> String {
        cells(self.size) + " of" + &columns_in_words(std::slice::from_ref(&self.column))
    }
}

impl Pool {
    /// The shape of the pool as text: items of another one of this shape mean the same, where both have them.
    pub fn shape(&self) -> String {
        "items of".to_string() + &columns_in_words(&self.columns)
    }
}

impl Counter {
    /// The shape of the counter as text.
    pub fn shape(&self) -> String {
        cells(self.size)
    }
}

impl Event {
    /// The shape of the event as text: arguments of another one of this shape mean the same.
    pub fn shape(&self) -> String {
        "arguments".to_string() + &columns_in_words(&self.params)
    }
}

fn cells(size: u32) -> String {
    if size == 1 { "1 cell".to_string() } else { format!("{size} cells") }
}

/// Names of columns do not count, but those of variants and members do: they are what the numbers mean.
fn columns_in_words(columns: &[Column]) -> String {
    let in_words = |column: &Column| match &column.kind {
        ColumnKind::Names(names) => {
            let names: Vec<String> = names.iter().map(|(number, name)| format!("{number}={name}")).collect();
            format!(" names({}):{}", names.join(","), column.width)
        }
        kind => format!(" {kind:?}:{}", column.width),
    };
    columns.iter().map(in_words).collect()
}

/// What becomes of what a program remembers when it is replaced, each by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    /// Of every table.
    pub tables: Vec<(String, Fate)>,
    /// Of every group.
    pub groups: Vec<(String, Fate)>,
    /// Of every meter.
    pub meters: Vec<(String, Fate)>,
    /// Of every register.
    pub registers: Vec<(String, Fate)>,
    /// Of every pool.
    pub pools: Vec<(String, Fate)>,
    /// Of every counter.
    pub counters: Vec<(String, Fate)>,
    /// Of every event: those of it that are delayed.
    pub events: Vec<(String, Fate)>,
}

impl Replacement {
    /// Every kind with its word, in order.
    pub fn kinds(&self) -> [(&'static str, &[(String, Fate)]); 7] {
        [
            ("table", &self.tables),
            ("group", &self.groups),
            ("meter", &self.meters),
            ("register", &self.registers),
            ("pool", &self.pools),
            ("counter", &self.counters),
            ("event", &self.events),
        ]
    }
}

/// What becomes of one thing that a program remembers when it is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// What packets left in the old one goes over into the new one of this index.
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
    /// The shapes differ, and what the old one held is worth less than the replacement: the new one begins
    /// anew.
    Anew {
        /// The shape in the old program.
        old: String,
        /// The shape in the new program.
        new: String,
    },
    /// The shapes differ and nobody said that what the old one held is given up: the program cannot be
    /// replaced.
    Misfit {
        /// The shape in the old program.
        old: String,
        /// The shape in the new program.
        new: String,
    },
}

/// What becomes of everything that both programs remember, by name: what the new one has in order, then what
/// only the old one has. `discard` names what is given up.
pub fn replacement(old: &Program, new: &Program, discard: &[String]) -> Replacement {
    let of = |shapes: &dyn Fn(&Program) -> Vec<(String, String)>| fates(&shapes(old), &shapes(new), discard);
    let anew_if = |mut fates: Vec<(String, Fate)>, may: &dyn Fn(&str) -> bool| {
        for (name, fate) in &mut fates {
            if let Fate::Misfit { old, new } = fate
                && may(name)
            {
                *fate = Fate::Anew { old: std::mem::take(old), new: std::mem::take(new) };
            }
        }
        fates
    };
    let anew = |fates| anew_if(fates, &|_| true);
    let tables = of(&|program| shapes(&program.tables, |table| (&table.name, table.shape())));
    Replacement {
        tables: anew_if(tables, &is_of_policy),
        groups: of(&|program| shapes(&program.groups, |group| (&group.name, group.shape()))),
        meters: anew(of(&|program| shapes(&program.meters, |meter| (&meter.name, meter.shape())))),
        registers: anew(of(&|program| shapes(&program.registers, |one| (&one.name, one.shape())))),
        pools: anew(of(&|program| shapes(&program.pools, |pool| (&pool.name, pool.shape())))),
        counters: anew(of(&|program| shapes(&program.counters, |one| (&one.name, one.shape())))),
        events: anew(of(&|program| shapes(&program.events, |event| (&event.name, event.shape())))),
    }
}

/// Whether a table is that of a hook of a policy: no declaration has a dot in its name.
fn is_of_policy(table: &str) -> bool {
    table.contains('.')
}

fn shapes<T>(all: &[T], of: impl Fn(&T) -> (&String, String)) -> Vec<(String, String)> {
    let named = |one| {
        let (name, shape) = of(one);
        (name.clone(), shape)
    };
    all.iter().map(named).collect()
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
