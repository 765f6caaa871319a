//! Operations of bytecode that read or change tables, memory, outputs and the packet's size.

use super::machine::Run;
use crate::outputs::{self, Cause, appended};
use crate::pack::{MAX_WORDS, Packing, WIDEST_KEY};
use crate::state::rows::RowHit;
use crate::state::table_set::TablePlace;
use ir::{Answer, Entry, Instruction, KeyPart, Match, Op, Value, checksum};
use packet::fragment::Fragmenting;
use tables::exact::{Exact, Learned};

impl Run<'_, '_> {
    /// Runs an operation.
    pub(super) fn operation(&mut self, instruction: &Instruction) {
        let Instruction { results, op, .. } = instruction;
        let done = match op {
            Op::Lookup { table, key } => return self.lookup(*table, key, results),
            Op::Scan { table, start, end } => return self.scan(*table, *start, *end, results),
            Op::Take { pool, hint } => return self.take(*pool, *hint, results),
            Op::Choose { group, index, hash } => {
                let (index, hash) = (self.cell(*index), self.number(*hash) as u32);
                let memory = &self.state.memory;
                let found = memory.choose(*group, index, hash);
                return give(self.values, results, memory.packing(*group), found);
            }
            Op::Member { group, index, place } => {
                let memory = &self.state.memory;
                let found = memory.member(*group, cell(self.values, *index), *place);
                return give(self.values, results, memory.packing(*group), found);
            }
            Op::Learn { table, key, value } => self.learn(*table, key, value),
            Op::Insert { table, key, priority, value } => {
                let entry =
                    Entry { key: self.made_key(*table, key), value: self.all(value), priority: *priority };
                let now = self.state.now;
                let accepted = self.state.tables.insert(*table, &entry, Some(now)).is_ok();
                self.state.wake_for(*table);
                accepted.into()
            }
            Op::HasRoom(keys) => {
                self.held.clear();
                for (table, key) in keys {
                    let (words, length) = self.key::<MAX_WORDS>(*table, key);
                    let is_held = match self.state.tables.places[*table as usize] {
                        TablePlace::Exact(place) => {
                            self.state.tables.exact[place].peek(&words[..length]).is_some()
                        }
                        _ => false,
                    };
                    self.held.push((*table, is_held));
                }
                self.state.has_room(self.held).into()
            }
            Op::Join { group, index, member } => {
                let values = &*self.values;
                let member = member.iter().map(|value| values[value.0 as usize]);
                self.state.memory.join(*group, cell(values, *index), member).into()
            }
            Op::Mark { meter, index, before } => {
                let before = before.map_or(0, |before| self.number(before) as u8);
                let (cell, wire, now) = (self.cell(*index), self.packet.bytes.wire(), self.state.now);
                self.state.memory.mark(*meter, cell, before, wire, now).into()
            }
            Op::ReadRegister { register, index } => {
                self.state.memory.read(*register, self.cell(*index)).into()
            }
            Op::Checksum { base, bytes, more } => {
                let start = self.number(*base) as usize;
                let more = more.map_or(0, |more| self.number(more) as usize);
                let frame = self.packet.bytes.bytes();
                let end = (start + *bytes as usize + more).min(frame.len());
                checksum::sum(frame.get(start..end).unwrap_or_default()).into()
            }
            Op::PushBytes { at, template, values } => {
                let (template, at) = (&self.templates[*template as usize], self.number(*at) as usize);
                let numbers = &*self.values;
                let values = values.iter().map(|value| numbers[value.0 as usize]);
                outputs::push(&mut self.packet.bytes, at, template, values).into()
            }
            _ => return self.change(op),
        };
        if let Some(result) = results.first() {
            self.set(result.0, done);
        }
    }

    /// Runs an operation without results.
    fn change(&mut self, op: &Op) {
        match op {
            Op::Count { counter, index } => {
                let index = index.map_or(0, |index| self.number(index) as u64);
                self.state.count(*counter, index, self.packet.bytes.wire().into());
            }
            Op::Store { base, offset, bytes, value, .. } => {
                let (base, big_endian) = (self.number(*base), self.number(*value).to_be_bytes());
                let behind = &big_endian[16 - usize::from(*bytes)..];
                self.packet.slice(base, *offset, *bytes).copy_from_slice(behind);
            }
            Op::Remove { table, key } => {
                let (words, length) = self.key::<MAX_WORDS>(*table, key);
                self.state.remove_releasing(*table, &words[..length]);
            }
            Op::EndAfter { table, key, after } => {
                let (words, length) = self.key::<MAX_WORDS>(*table, key);
                let after = self.number(*after) as u64;
                self.state.end_after(*table, &words[..length], after);
            }
            Op::SetDefault { table, value } => {
                self.gather(value);
                self.state.set_default(*table, Some(self.columns));
            }
            Op::ClearDefault(table) => self.state.set_default(*table, None),
            Op::Withdraw { table, key, priority } => {
                let key = self.made_key(*table, key);
                self.state.tables.remove(*table, &key, *priority);
                self.state.wake_for_dead_rules();
            }
            Op::WriteRegister { register, index, value } => {
                let (cell, value) = (self.cell(*index), self.number(*value) as u64);
                self.state.memory.write(*register, cell, value);
            }
            Op::Give { pool, item } => {
                self.gather(item);
                self.state.give(*pool, self.columns);
            }
            Op::Leave { group, index, member } => {
                let values = &*self.values;
                let member = member.iter().map(|value| values[value.0 as usize]);
                self.state.memory.leave(*group, cell(values, *index), member);
            }
            Op::PopBytes { at, bytes } => {
                let (at, bytes) = (self.number(*at) as usize, self.number(*bytes) as usize);
                self.packet.bytes.pop(at, bytes);
            }
            Op::Truncate(length) => self.packet.bytes.truncate(self.number(*length) as u32),
            Op::Fragment { at, mtu } => {
                let fragmenting = Fragmenting { at: self.number(*at) as u32, mtu: self.number(*mtu) as u32 };
                self.packet.bytes.set_fragmenting(Some(fragmenting));
            }
            _ => self.output(op),
        }
    }

    /// Runs an operation that makes an output.
    fn output(&mut self, op: &Op) {
        let cause = Cause { packet: self.state.cause, time: self.state.now, wire: self.packet.bytes.wire() };
        match op {
            Op::Raise { event, args, delay } => {
                let delay = delay.map(|delay| self.number(delay) as u64);
                let values = &*self.values;
                let args = args.iter().map(|value| values[value.0 as usize]);
                self.state.raise(*event, args, delay, self.outputs);
            }
            Op::Copy(port) => {
                let port = self.number(*port) as u16;
                self.outputs.finish_checksum(cause.packet, self.packet.bytes.bytes_mut());
                self.outputs.copy(self.packet.bytes.bytes(), cause, port);
            }
            Op::Emit { template, values, tail, limit, port } => {
                let limit = limit.map_or(u32::MAX, |limit| self.number(limit) as u32);
                let port = self.number(*port) as u16;
                let tail = tail.map(|tail| self.number(tail) as usize);
                self.outputs.finish_checksum(cause.packet, self.packet.bytes.bytes_mut());
                let (rest, wire) = appended(self.packet.bytes.bytes(), cause.wire, tail, limit);
                let numbers = &*self.values;
                let values = values.iter().map(|value| numbers[value.0 as usize]);
                let template = &self.templates[*template as usize];
                self.outputs.emit(template, values, rest, Cause { wire, ..cause }, port);
            }
            _ => {}
        }
    }

    fn number(&self, value: Value) -> u128 {
        self.value(value.0)
    }

    fn all(&self, values: &[Value]) -> Vec<u128> {
        values.iter().map(|value| self.number(*value)).collect()
    }

    /// Puts values side by side into `columns`.
    fn gather(&mut self, values: &[Value]) {
        self.columns.clear();
        let numbers = &*self.values;
        self.columns.extend(values.iter().map(|value| numbers[value.0 as usize]));
    }

    /// The index of a cell; 0 if the operation names none.
    fn cell(&self, index: Option<Value>) -> u32 {
        cell(self.values, index)
    }

    fn hit(&self) -> RowHit {
        RowHit { bytes: self.packet.bytes.wire().into(), time: self.state.now }
    }

    /// The words of a key, and how many there are.
    fn key<const MOST: usize>(&self, table: u32, columns: &[Value]) -> ([u64; MOST], usize) {
        packed(self.values, &self.state.tables.shapes[table as usize].key, columns)
    }

    fn lookup(&mut self, table: u32, key: &[Value], results: &[Value]) {
        let hit = self.hit();
        let packing = &self.state.tables.shapes[table as usize].value;
        let default = &self.state.defaults[table as usize];
        let default = (default.present == 1).then_some(&default.words[..packing.words]);
        match self.state.tables.places[table as usize] {
            TablePlace::Exact(place) => {
                let (words, length) = self.key::<MAX_WORDS>(table, key);
                let found = self.state.tables.exact[place].find(&words[..length], hit.time);
                give(self.values, results, packing, found.or(default));
            }
            TablePlace::Prefixes(place) => {
                let values = &*self.values;
                let prefixes = &mut self.state.tables.prefixes[place];
                let address = prefixes.address(key.iter().map(|value| values[value.0 as usize]));
                let row = prefixes.find(address);
                row.into_iter().for_each(|row| prefixes.rows_mut().count(row, hit));
                give(self.values, results, packing, row.map(|row| prefixes.rows().words(row)).or(default));
            }
            TablePlace::Rules(place) => {
                let (words, length) = self.key::<WIDEST_KEY>(table, key);
                let rules = &mut self.state.tables.rules[place];
                let row = rules.find(&words[..length]);
                row.into_iter().for_each(|row| rules.rows_mut().count(row, hit));
                give(self.values, results, packing, row.map(|row| rules.rows().words(row)).or(default));
            }
            TablePlace::Patterns(_) => give(self.values, results, packing, default),
        }
    }

    fn learn(&mut self, table: u32, key: &[Value], value: &[Value]) -> u128 {
        let shape = &self.state.tables.shapes[table as usize];
        let (key, length) = packed::<MAX_WORDS>(self.values, &shape.key, key);
        let (value, width) = packed::<MAX_WORDS>(self.values, &shape.value, value);
        let (key, value) = (&key[..length], &value[..width]);
        let plain = shape.releases.is_none() && shape.expires.is_none();
        let learned = match self.state.tables.places[table as usize] {
            TablePlace::Exact(place) if plain => {
                self.state.tables.exact[place].learn(key, value, self.state.now)
            }
            _ => self.state.learn_releasing(table, key, value),
        };
        (learned != Learned::Refused).into()
    }

    fn scan(&mut self, table: u32, start: Value, end: Value, results: &[Value]) {
        let TablePlace::Patterns(place) = self.state.tables.places[table as usize] else { return };
        let hit = self.hit();
        let (start, end) = (self.number(start) as usize, self.number(end) as usize);
        let frame = self.packet.bytes.bytes();
        let bytes = frame.get(start..end.min(frame.len())).unwrap_or_default();
        let tables = &mut self.state.tables;
        let set = &mut tables.patterns[place];
        let answer = match tables.declared[table as usize].kind {
            ir::TableKind::Patterns(Answer::All) => set.all(bytes, hit).into(),
            ir::TableKind::Patterns(Answer::Set) => set.set(bytes, hit),
            _ => {
                let found = set.first(bytes, hit).map(|row| set.rows().words(row));
                return give(self.values, results, &tables.shapes[table as usize].value, found);
            }
        };
        if let Some(result) = results.first() {
            self.set(result.0, answer);
        }
    }

    fn take(&mut self, pool: u32, hint: Value, results: &[Value]) {
        let hint = self.number(hint) as u32;
        let item = self.state.take(pool, hint);
        let Some((found, columns)) = results.split_first() else { return };
        self.values[found.0 as usize] = item.is_some().into();
        let mut item = item.into_iter().flatten();
        columns.iter().for_each(|column| self.values[column.0 as usize] = item.next().unwrap_or(0));
    }

    /// The key that these parts make.
    fn made_key(&self, table: u32, parts: &[KeyPart]) -> Vec<Match> {
        let columns = &self.state.tables.declared[table as usize].keys;
        let filled = |(part, column): (&KeyPart, _)| part.filled(column, |value| self.number(value));
        parts.iter().zip(columns).map(filled).collect()
    }
}

fn cell(values: &[u128], index: Option<Value>) -> u32 {
    index.map_or(0, |index| values[index.0 as usize] as u32)
}

/// The words of these columns, and how many there are.
#[inline]
fn packed<const MOST: usize>(values: &[u128], packing: &Packing, columns: &[Value]) -> ([u64; MOST], usize) {
    let mut words = [0; MOST];
    let columns = columns.iter().map(|column| values[column.0 as usize]);
    packing.pack(columns, &mut words[..packing.words]);
    (words, packing.words)
}

/// Writes the results of a search: whether it found something, and its columns, or zeros.
#[inline]
fn give(values: &mut [u128], results: &[Value], packing: &Packing, words: Option<&[u64]>) {
    let Some((found, columns)) = results.split_first() else { return };
    values[found.0 as usize] = words.is_some().into();
    for (column, place) in columns.iter().zip(&packing.places) {
        values[column.0 as usize] = words.map_or(0, |words| Packing::unpack_one(place, words));
    }
}
