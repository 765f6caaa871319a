//! What `control` may change of the tables of the program that runs, and what is there because of it: whether
//! a transaction of changes lies within the rights of the policy in force. Tables themselves are changed
//! elsewhere.
//!
//! ```text
//! changes ─► each is of a table with a right, under its prefixes, as its columns say ─┐
//!                no more entries than the right allows ─► no faster than it allows ─► admitted, all or none
//! ```
//!
//! Over any time, no more changes are admitted than the right allows for that time and one second more. A
//! program begins as if a second's changes had just been made, so that nobody gains by having one begin.

use bundle::{KeyPrefix, TableRight};
use ir::{Entry, Match, Program, Table, TableKind};
use messages::control::{EntryChange, EntryOperation};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why `control` may not change what it wants to. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// no such table
    #[error("the program that runs has no table {0}")]
    NoTable(u32),
    /// no right
    #[error(
        "the policy in force gives no right for the table `{0}`, so that its entries stay as they are: sign \
         one that does"
    )]
    NoRight(String),
    /// another key
    #[error(
        "the policy in force gives a right for the table `{0}`, but not for this key: sign one that does"
    )]
    Outside(String),
    /// no key
    #[error("that is no key of the table `{0}`")]
    Key(String),
    /// too many keys at once
    #[error(
        "packets would wait too long while a prefix of fewer than {shortest} bits changes in `{table}`: sign a \
         policy that has it"
    )]
    Short {
        /// The table.
        table: String,
        /// Bits of the shortest prefix.
        shortest: u32,
    },
    /// no value
    #[error("that is no value of the table `{0}`")]
    Value(String),
    /// items of a pool
    #[error("the entries of `{0}` hold items of a pool, which only packets take")]
    Items(String),
    /// one key with two changes
    #[error("a key of the table `{0}` changes twice at once")]
    Twice(String),
    /// too many entries
    #[error("the policy in force gives a right for {most} entries of the table `{table}`, and for no more")]
    TooMany {
        /// The table.
        table: String,
        /// The most entries.
        most: u32,
    },
    /// more than ever at once
    #[error(
        "the policy in force gives a right for {most} changes of the table `{table}` in a second, and {found} \
         are to be made at once"
    )]
    TooManyAtOnce {
        /// The table.
        table: String,
        /// The most changes in a second.
        most: u32,
        /// The changes.
        found: u32,
    },
    /// too soon
    #[error("the policy in force gives a right for {most} changes of the table `{table}` in a second")]
    TooFast {
        /// The table.
        table: String,
        /// The most changes in a second.
        most: u32,
        /// After which time they may be made, if no others are.
        wait: Duration,
    },
}

/// A change that is within the rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The number of the table.
    pub table: u32,
    key: KeyPrefix,
    /// The entry; without a value, the key of one that is to go.
    pub entry: Entry,
    /// Whether it is to be there.
    pub inserts: bool,
}

/// The rights over the tables of a program.
#[derive(Debug)]
pub struct Granted {
    program: Arc<Program>,
    tables: BTreeMap<u32, GrantedTable>,
}

/// The right over one table.
#[derive(Debug)]
struct GrantedTable {
    right: TableRight,
    /// What is there because of the right.
    held: BTreeSet<KeyPrefix>,
    /// When a second's changes may be made at once, if none is until then.
    full: Instant,
}

/// As many changes as may be made at once.
const BURST: Duration = Duration::from_secs(1);

impl Granted {
    /// These rights over a program that begins now. Each of them was found to be a right for it.
    pub fn new(program: Arc<Program>, rights: &[TableRight], now: Instant) -> Granted {
        let granted = |right: &TableRight| {
            let number = (0..).zip(&program.tables).find(|(_, table)| table.name == right.table)?.0;
            Some((number, GrantedTable { right: right.clone(), held: BTreeSet::new(), full: now + BURST }))
        };
        let tables = rights.iter().filter_map(granted).collect();
        Granted { program, tables }
    }

    /// The program begins now.
    pub fn begin(&mut self, now: Instant) {
        self.tables.values_mut().for_each(|granted| granted.full = now + BURST);
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The right over a table, and how many entries are there because of it.
    pub fn right(&self, table: u32) -> Option<(&TableRight, usize)> {
        self.tables.get(&table).map(|granted| (&granted.right, granted.held.len()))
    }

    /// The keys of the entries that are there because of rights, with their tables.
    pub fn held(&self) -> impl Iterator<Item = (u32, KeyPrefix)> {
        self.tables.iter().flat_map(|(table, granted)| granted.held.iter().map(|key| (*table, *key)))
    }

    /// Whether a change is of an entry that is there because of a right.
    pub(crate) fn holds(&self, change: &Admitted) -> bool {
        self.tables.get(&change.table).is_some_and(|granted| granted.held.contains(&change.key))
    }

    /// The tables over which there are rights.
    pub(crate) fn tables(&self) -> impl Iterator<Item = u32> {
        self.tables.keys().copied()
    }

    /// Whether all of these changes may be made now; they count as made in time.
    ///
    /// # Errors
    /// The first reason why not; then none of them counts.
    pub fn admit(&mut self, changes: &[EntryChange], now: Instant) -> Result<Vec<Admitted>, ChangeRefusal> {
        let (admitted, counts) = self.judge(changes)?;
        let mut full = Vec::new();
        for (table, count) in counts {
            let Some(GrantedTable { right, full: before, .. }) = self.tables.get(&table) else { continue };
            let (table_name, most) = (|| right.table.clone(), right.changes_per_second);
            if count > most {
                return Err(ChangeRefusal::TooManyAtOnce { table: table_name(), most, found: count });
            }
            let after = (*before).max(now) + cost(count, most);
            match after.saturating_duration_since(now + BURST) {
                Duration::ZERO => full.push((table, after)),
                wait => return Err(ChangeRefusal::TooFast { table: table_name(), most, wait }),
            }
        }
        for (table, after) in full {
            self.tables.entry(table).and_modify(|granted| granted.full = after);
        }
        Ok(admitted)
    }

    /// The change, if it may be made at whatever time: another core has made it.
    pub fn admit_before(&self, change: &EntryChange) -> Vec<Admitted> {
        self.judge(std::slice::from_ref(change)).map(|(admitted, _)| admitted).unwrap_or_default()
    }

    /// Notes that this was done.
    pub fn made(&mut self, admitted: &[Admitted]) {
        for Admitted { table, key, inserts, .. } in admitted {
            let Some(granted) = self.tables.get_mut(table) else { continue };
            match inserts {
                true => granted.held.insert(*key),
                false => granted.held.remove(key),
            };
        }
    }

    /// These changes, with their number in each table, unless one is not within the rights, whenever it is
    /// made.
    fn judge(&self, changes: &[EntryChange]) -> Result<(Vec<Admitted>, BTreeMap<u32, u32>), ChangeRefusal> {
        let (mut admitted, mut counts, mut keys) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        for change in changes {
            let one = self.judge_one(change)?;
            if !keys.insert((one.table, one.key)) {
                return Err(ChangeRefusal::Twice(self.program.tables[one.table as usize].name.clone()));
            }
            *counts.entry(one.table).or_insert(0) += 1;
            admitted.push(one);
        }
        for (number, GrantedTable { right, held, .. }) in &self.tables {
            let of_table = || admitted.iter().filter(|one| one.table == *number);
            let more = of_table().filter(|one| one.inserts && !held.contains(&one.key)).count();
            let fewer = of_table().filter(|one| !one.inserts && held.contains(&one.key)).count();
            let most = right.most_entries;
            if held.len() + more - fewer > most as usize {
                return Err(ChangeRefusal::TooMany { table: right.table.clone(), most });
            }
        }
        Ok((admitted, counts))
    }

    fn judge_one(&self, change: &EntryChange) -> Result<Admitted, ChangeRefusal> {
        let &EntryChange { table: number, length, bits, ref operation } = change;
        let Some(table) = self.program.tables.get(number as usize) else {
            return Err(ChangeRefusal::NoTable(number));
        };
        let name = || table.name.clone();
        let Some(granted) = self.tables.get(&number) else { return Err(ChangeRefusal::NoRight(name())) };
        // Whoever activates a policy has found the keys to have these bits.
        let width = u8::try_from(table.key_bits()).unwrap_or(0);
        let given = KeyPrefix::new(width, length, bits).and_then(|key| Some((key, parts(table, key)?)));
        let (key, parts) = given.ok_or_else(|| ChangeRefusal::Key(name()))?;
        if !granted.right.covers(key) {
            return Err(ChangeRefusal::Outside(name()));
        }
        let shortest = table.shortest_changed();
        if u32::from(length) < shortest {
            return Err(ChangeRefusal::Short { table: name(), shortest });
        }
        let value = match operation {
            EntryOperation::Insert(_) if table.releases.is_some() => {
                return Err(ChangeRefusal::Items(name()));
            }
            EntryOperation::Insert(value) if !table.takes_value(value) => {
                return Err(ChangeRefusal::Value(name()));
            }
            EntryOperation::Insert(value) => value.clone(),
            EntryOperation::Remove => Vec::new(),
        };
        let inserts = matches!(operation, EntryOperation::Insert(_));
        Ok(Admitted { table: number, key, entry: Entry { key: parts, value, priority: 0 }, inserts })
    }
}

/// The time that so many changes stand for.
fn cost(count: u32, most: u32) -> Duration {
    Duration::from_nanos((u64::from(count) * 1_000_000_000).div_ceil(u64::from(most.max(1))))
}

/// The columns of a key, where it is one of the table.
pub(crate) fn parts(table: &Table, key: KeyPrefix) -> Option<Vec<Match>> {
    let (mut left, mut behind) = (key.length(), key.width());
    let parts = table.keys.iter().map(|column| {
        let given = left.min(column.width);
        left -= given;
        behind = behind.checked_sub(column.width)?;
        let ones = u128::MAX.checked_shr(128 - u32::from(column.width))?;
        let value = key.bits().checked_shr(behind.into())? & ones;
        Some(match given {
            0 => Match::Any,
            given if given == column.width => Match::Exact(value),
            length => Match::Prefix { value, length },
        })
    });
    let parts = parts.collect::<Option<Vec<Match>>>()?;
    (matches!(table.kind, TableKind::Exact | TableKind::Lpm) && table.kind.takes(&table.keys, &parts))
        .then_some(parts)
}
