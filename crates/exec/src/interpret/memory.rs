//! The interpreter's instructions for tables of prefixes, rules and patterns, meters, registers, pools and
//! groups.

use super::*;
use crate::state::rows::RowHit;
use ir::{Answer, KeyPart, TableKind};

impl<O: Observer, F: TableFamily> Run<'_, '_, O, F> {
    /// The value columns of the entry that a key finds, or of the default entry.
    pub(super) fn find(&mut self, table: u32, key: &[Value]) -> Option<Vec<u128>> {
        let (words, length) = self.key(table, key);
        let columns = self.all(key);
        let hit = self.hit();
        let tables = &mut self.state.tables;
        let packing = &tables.shapes[table as usize].value;
        let found = match tables.places[table as usize] {
            TablePlace::Exact(place) => {
                tables.exact[place].find(&words[..length], hit.time).map(|words| packing.unpack(words))
            }
            TablePlace::Prefixes(place) => {
                let prefixes = &mut tables.prefixes[place];
                let address = prefixes.address(columns);
                let row = prefixes.find(address);
                row.map(|row| {
                    prefixes.rows_mut().count(row, hit);
                    packing.unpack(prefixes.rows().words(row))
                })
            }
            TablePlace::Rules(place) => {
                let rules = &mut tables.rules[place];
                let row = rules.find(&words[..length]);
                row.map(|row| {
                    rules.rows_mut().count(row, hit);
                    packing.unpack(rules.rows().words(row))
                })
            }
            TablePlace::Patterns(_) => None,
        };
        let default = &self.state.defaults[table as usize];
        found.or_else(|| (default.present == 1).then(|| packing.unpack(&default.words)))
    }

    /// The packet as one that finds an entry.
    fn hit(&self) -> RowHit {
        RowHit { bytes: self.wire().into(), time: self.state.now }
    }

    /// Whether an exact table holds a key.
    pub(super) fn held(&self, table: u32, words: &[u64]) -> bool {
        match self.state.tables.places[table as usize] {
            TablePlace::Exact(place) => self.state.tables.exact[place].peek(words).is_some(),
            _ => false,
        }
    }

    /// The results of a search: whether an entry was found, then `width` columns (zeros if none was found).
    pub(super) fn optional(&self, columns: Option<Vec<u128>>, width: usize) -> Vec<u128> {
        let mut results = vec![u128::from(columns.is_some())];
        results.extend(columns.unwrap_or_else(|| vec![0; width]));
        results
    }

    /// The captured bytes from one position up to the other, limited to those that there are.
    fn view(&self, start: Value, end: Value) -> &[u8] {
        let frame: &[u8] = self.packet.as_ref().map_or(&[], |packet| packet.bytes.bytes());
        let end = (self.value(end) as usize).min(frame.len());
        frame.get(self.value(start) as usize..end).unwrap_or_default()
    }

    fn scan(&mut self, table: u32, start: Value, end: Value) -> Vec<u128> {
        let TablePlace::Patterns(place) = self.state.tables.places[table as usize] else { return Vec::new() };
        let bytes = self.view(start, end).to_vec();
        let hit = self.hit();
        let set = &mut self.state.tables.patterns[place];
        match self.program.tables[table as usize].kind {
            TableKind::Patterns(Answer::All) => vec![u128::from(set.all(&bytes, hit))],
            TableKind::Patterns(Answer::Set) => vec![set.set(&bytes, hit)],
            _ => {
                let packing = &self.state.tables.shapes[table as usize].value;
                let set = &mut self.state.tables.patterns[place];
                let columns = set.first(&bytes, hit).map(|row| packing.unpack(set.rows().words(row)));
                let width = packing.places.len();
                self.optional(columns, width)
            }
        }
    }

    /// The key that these parts make.
    fn made_key(&self, table: u32, parts: &[KeyPart]) -> Vec<Match> {
        let columns = &self.program.tables[table as usize].keys;
        let filled = |(part, column): (&KeyPart, _)| part.filled(column, |value| self.value(value));
        parts.iter().zip(columns).map(filled).collect()
    }

    /// The index of a cell; 0 if the instruction names none.
    fn cell(&self, index: Option<Value>) -> u32 {
        index.map_or(0, |index| self.value(index) as u32)
    }

    pub(super) fn memory_op(&mut self, op: &Op) -> Vec<u128> {
        match op {
            Op::Scan { table, start, end } => self.scan(*table, *start, *end),
            Op::Insert { table, key, priority, value } => {
                let entry =
                    Entry { key: self.made_key(*table, key), value: self.all(value), priority: *priority };
                let now = self.state.now;
                let accepted = self.state.tables.insert(*table, &entry, Some(now)).is_ok();
                self.state.wake_for(*table);
                vec![u128::from(accepted)]
            }
            Op::Withdraw { table, key, priority } => {
                let key = self.made_key(*table, key);
                self.state.tables.remove(*table, &key, *priority);
                Vec::new()
            }
            Op::Mark { meter, index, before } => {
                let before = before.map_or(0, |before| self.value(before) as u8);
                let (cell, wire, now) = (self.cell(*index), self.wire(), self.state.now);
                vec![self.state.memory.mark(*meter, cell, before, wire, now).into()]
            }
            Op::ReadRegister { register, index } => {
                vec![self.state.memory.read(*register, self.cell(*index)).into()]
            }
            Op::WriteRegister { register, index, value } => {
                let (cell, value) = (self.cell(*index), self.value(*value) as u64);
                self.state.memory.write(*register, cell, value);
                Vec::new()
            }
            Op::Take { pool, hint } => {
                let hint = self.value(*hint) as u32;
                let columns = self.state.take(*pool, hint).map(|columns| columns.collect());
                self.optional(columns, self.program.pools[*pool as usize].columns.len())
            }
            Op::Give { pool, item } => {
                let columns = self.all(item);
                self.state.give(*pool, &columns);
                Vec::new()
            }
            Op::Choose { group, index, hash } => {
                let (index, hash) = (self.cell(*index), self.value(*hash) as u32);
                let packing = self.state.memory.packing(*group);
                let columns =
                    self.state.memory.choose(*group, index, hash).map(|words| packing.unpack(words));
                self.optional(columns, packing.places.len())
            }
            Op::Member { group, index, place } => {
                let packing = self.state.memory.packing(*group);
                let member = self.state.memory.member(*group, self.cell(*index), *place);
                self.optional(member.map(|words| packing.unpack(words)), packing.places.len())
            }
            Op::Join { group, index, member } => {
                let (index, member) = (self.cell(*index), self.all(member));
                vec![u128::from(self.state.memory.join(*group, index, member))]
            }
            Op::Leave { group, index, member } => {
                let (index, member) = (self.cell(*index), self.all(member));
                self.state.memory.leave(*group, index, member);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}
