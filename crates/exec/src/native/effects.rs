//! Translates instructions with effects into Cranelift's IR: tables, counters, events and outputs.

use super::arithmetic::{constant, type_of, word, words};
use super::call::{Context, MOST_FOUND};
use super::host::{
    COPY, EMIT, FIND, FIND1, FIND2, FRAGMENT, HOLDS, LEARN, LEARN11, POP, PUSH, RAISE, REMOVE, TRUNCATE,
};
use super::tables::{END_AFTER, FREE, LEARN_RELEASING, REMOVE_RELEASING};
use super::translate::Body;
use crate::arithmetic::largest;
use crate::pack::{MAX_WORDS, PackedPlace, Packing, WIDEST_KEY};
use crate::state::table_set::TablePlace;
use crate::state::{Cell, DefaultEntry};
use ::tables::exact::ExactTable;
use cranelift_codegen::ir::{
    self as clif, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, types,
};
use cranelift_frontend::FunctionBuilder;
use ir::{Op, Value};
use std::mem::{offset_of, size_of};

/// Stack slots for the words that are passed to host functions; each is made when it is first needed.
#[derive(Default)]
pub(super) struct Scratch {
    key: Option<StackSlot>,
    value: Option<StackSlot>,
    list: Option<StackSlot>,
    kept: Option<StackSlot>,
}

/// The slot of `words` words, which is made if it is not there yet.
fn slot(bx: &mut FunctionBuilder<'_>, place: &mut Option<StackSlot>, words: usize) -> StackSlot {
    *place.get_or_insert_with(|| {
        let bytes = words.max(1) as u32 * 8;
        bx.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
    })
}

impl Body<'_, '_> {
    /// Translates an operation with an effect outside the function.
    pub(super) fn effect(&mut self, op: &Op, results: &[Value]) {
        match op {
            Op::Lookup { table, key } => self.lookup(*table, key, results),
            Op::Learn { table, key, value } => self.learn(*table, key, value, results),
            Op::HasRoom(keys) => self.has_room(keys, results),
            Op::Remove { table, key } if self.releases(*table) => {
                let (number, key) = (self.iconst(u64::from(*table)), self.stored_key(*table, key));
                let context = self.context;
                self.host.call(&mut self.bx, REMOVE_RELEASING, [context, number, key]);
            }
            Op::Remove { table, key } => {
                let (table_address, key) = (self.table(*table), self.stored_key(*table, key));
                self.host.call(&mut self.bx, REMOVE, [table_address, key]);
            }
            Op::EndAfter { table, key, after } => {
                let (number, after) = (self.iconst(u64::from(*table)), self.word(*after));
                let (context, key) = (self.context, self.stored_key(*table, key));
                self.host.call(&mut self.bx, END_AFTER, [context, number, key, after]);
            }
            Op::SetDefault { table, value } => {
                let packing = &self.shared.packings[*table as usize].1;
                let packed = self.pack(packing, value);
                let entry = self.default_entry(*table);
                let present = self.iconst(1);
                let flags = MemFlagsData::trusted();
                self.bx.ins().store(flags, present, entry, offset_of!(DefaultEntry, present) as i32);
                for (index, value) in packed.into_iter().enumerate() {
                    let offset = offset_of!(DefaultEntry, words) + index * 8;
                    self.bx.ins().store(flags, value, entry, offset as i32);
                }
            }
            Op::ClearDefault(table) => {
                let (entry, zero) = (self.default_entry(*table), self.iconst(0));
                let flags = MemFlagsData::trusted();
                self.bx.ins().store(flags, zero, entry, offset_of!(DefaultEntry, present) as i32);
            }
            Op::Count { counter, index } => self.count(*counter, *index),
            Op::Raise { event, args, delay } => {
                let args = self.stored_list(args);
                let length = self.shared.program.events[*event as usize].params.len() as u64;
                let (event, length) = (self.iconst(u64::from(*event)), self.iconst(length));
                let delayed = self.iconst(delay.is_some().into());
                let delay = match delay {
                    Some(delay) => self.word(*delay),
                    None => self.iconst(0),
                };
                let context = self.context;
                self.host.call(&mut self.bx, RAISE, [context, event, args, length, delay, delayed]);
            }
            Op::Copy(port) => {
                let port = self.value(*port);
                self.hand_over_packet();
                let context = self.context;
                self.host.call(&mut self.bx, COPY, [context, port]);
            }
            Op::Emit { template, values, tail, limit, port } => {
                let port = self.value(*port);
                let list = self.stored_list(values);
                let template = self.iconst(u64::from(*template));
                let tail = match tail {
                    Some(tail) => self.word(*tail),
                    None => self.iconst(u64::MAX),
                };
                let limit = match limit {
                    Some(limit) => self.word(*limit),
                    None => self.iconst(u32::MAX.into()),
                };
                self.hand_over_packet();
                let context = self.context;
                self.host.call(&mut self.bx, EMIT, [context, template, list, tail, limit, port]);
            }
            Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) | Op::Fragment { .. } => {
                self.resize(op, results);
            }
            other => self.memory(other, results),
        }
    }

    /// Translates a change of the packet's size; afterwards the code reads the packet's new place.
    fn resize(&mut self, op: &Op, results: &[Value]) {
        let context = self.context;
        match op {
            Op::PushBytes { at, template, values } => {
                let (at, list) = (self.value(*at), self.stored_list(values));
                let template = self.iconst(u64::from(*template));
                let done = self.host.call(&mut self.bx, PUSH, [context, at, template, list])[0];
                if let Some(result) = results.first() {
                    let done = self.bx.ins().ireduce(types::I8, done);
                    self.set(*result, done);
                }
            }
            Op::PopBytes { at, bytes } => {
                let (at, bytes) = (self.value(*at), self.value(*bytes));
                self.host.call(&mut self.bx, POP, [context, at, bytes]);
            }
            Op::Truncate(length) => {
                let length = self.value(*length);
                self.host.call(&mut self.bx, TRUNCATE, [context, length]);
            }
            Op::Fragment { at, mtu } => {
                let (at, mtu) = (self.value(*at), self.value(*mtu));
                self.host.call(&mut self.bx, FRAGMENT, [context, at, mtu]);
            }
            _ => {}
        }
        self.find_packet();
    }

    /// Makes sure that a value is computed.
    pub(super) fn keep(&mut self, value: clif::Value) {
        let slot = slot(&mut self.bx, &mut self.scratch.kept, 1);
        self.stored(slot, &[value]);
    }

    fn lookup(&mut self, table: u32, key: &[Value], results: &[Value]) {
        let shared = self.shared;
        let (key_packing, value_packing) = &shared.packings[table as usize];
        if !matches!(shared.places[table as usize], TablePlace::Exact(_)) {
            let entry = self.search(table, key);
            return self.found(table, entry, value_packing, results);
        }
        let (address, now) = (self.table(table), self.fixed(offset_of!(Context<'_>, now)));
        let entry = match key_packing.words {
            1 => {
                let key = self.pack(key_packing, key);
                let function = FIND1[self.marks(table)];
                self.host.call(&mut self.bx, function, [address, key[0], now])[0]
            }
            2 => {
                let key = self.pack(key_packing, key);
                self.host.call(&mut self.bx, FIND2, [address, key[0], key[1], now])[0]
            }
            _ => {
                let key = self.stored_key(table, key);
                self.host.call(&mut self.bx, FIND, [address, key, now])[0]
            }
        };
        self.found(table, entry, value_packing, results);
    }

    /// Assigns the results of a lookup: those of the entry at this address or, if the address is zero, of the
    /// default entry, if there is one.
    pub(super) fn found(&mut self, table: u32, entry: clif::Value, packing: &Packing, results: &[Value]) {
        let mut entry = entry;
        if self.shared.defaults[table as usize] {
            let default = self.default_entry(table);
            let offset = offset_of!(DefaultEntry, present) as i32;
            let present = self.bx.ins().load(types::I64, MemFlagsData::trusted(), default, offset);
            let first = self.iconst(offset_of!(DefaultEntry, words) as u64);
            let first = self.bx.ins().iadd(default, first);
            let none = self.iconst(0);
            let otherwise = self.bx.ins().select(present, first, none);
            entry = self.bx.ins().select(entry, entry, otherwise);
        }
        self.optional(entry, packing, results);
    }

    /// Whether an address is not zero, then the columns of the words there.
    pub(super) fn optional(&mut self, entry: clif::Value, packing: &Packing, results: &[Value]) {
        let none = self.iconst(0);
        let found = self.bx.ins().icmp(clif::condcodes::IntCC::NotEqual, entry, none);
        let Some((first, columns)) = results.split_first() else { return };
        self.set(*first, found);
        if columns.is_empty() {
            return;
        }
        debug_assert!(packing.words <= MOST_FOUND, "words are read where there are no zeros");
        // If nothing is found, the columns are read from zeros, which needs no branch.
        let zeros = self.iconst(offset_of!(Context<'_>, zeros) as u64);
        let zeros = self.bx.ins().iadd(self.context, zeros);
        let entry = self.bx.ins().select(found, entry, zeros);
        for (place, column) in packing.places.iter().zip(columns) {
            let value = self.unpack(packing, place, entry);
            self.set(*column, value);
        }
    }

    fn learn(&mut self, table: u32, key: &[Value], value: &[Value], results: &[Value]) {
        let (key_packing, value_packing) = &self.shared.packings[table as usize];
        let (address, now) = (self.table(table), self.fixed(offset_of!(Context<'_>, now)));
        let accepted = if self.releases(table) {
            let key = self.stored_key(table, key);
            let packed = self.pack(value_packing, value);
            let slot = slot(&mut self.bx, &mut self.scratch.value, MAX_WORDS);
            let value = self.stored(slot, &packed);
            let (context, number) = (self.context, self.iconst(u64::from(table)));
            self.host.call(&mut self.bx, LEARN_RELEASING, [context, number, key, value])[0]
        } else if (key_packing.words, value_packing.words) == (1, 1) {
            let (key, value) = (self.pack(key_packing, key), self.pack(value_packing, value));
            let function = LEARN11[self.marks(table)];
            self.host.call(&mut self.bx, function, [address, key[0], value[0], now])[0]
        } else {
            let key = self.stored_key(table, key);
            let packed = self.pack(value_packing, value);
            let slot = slot(&mut self.bx, &mut self.scratch.value, MAX_WORDS);
            let value = self.stored(slot, &packed);
            self.host.call(&mut self.bx, LEARN, [address, key, value, now])[0]
        };
        if let Some(result) = results.first() {
            let accepted = self.bx.ins().ireduce(types::I8, accepted);
            self.set(*result, accepted);
        }
    }

    fn has_room(&mut self, keys: &[(u32, Vec<Value>)], results: &[Value]) {
        let mut fits = constant(&mut self.bx, 1, 1);
        let mut done: Vec<u32> = Vec::new();
        for (table, _) in keys {
            let refuses = self.shared.program.tables[*table as usize].evict == ir::Eviction::Refuse;
            if !refuses || done.contains(table) {
                continue;
            }
            done.push(*table);
            let address = self.table(*table);
            let mut new = self.iconst(0);
            for (_, key) in keys.iter().filter(|(other, _)| other == table) {
                let key = self.stored_key(*table, key);
                let held = self.host.call(&mut self.bx, HOLDS, [address, key])[0];
                let one = self.iconst(1);
                let missing = self.bx.ins().isub(one, held);
                new = self.bx.ins().iadd(new, missing);
            }
            // The number of free places is never below zero, so there is room if no key is new.
            let context = self.context;
            let number = self.iconst(u64::from(*table));
            let free = self.host.call(&mut self.bx, FREE, [context, number, new])[0];
            let enough = self.bx.ins().icmp(clif::condcodes::IntCC::UnsignedLessThanOrEqual, new, free);
            fits = self.bx.ins().band(fits, enough);
        }
        if let Some(result) = results.first() {
            self.set(*result, fits);
        }
    }

    fn count(&mut self, counter: u32, index: Option<Value>) {
        let first = self.shared.first_cell[counter as usize];
        let size = self.shared.first_cell[counter as usize + 1] - first;
        let cells = self.fixed(offset_of!(Context<'_>, cells));
        let start = self.iconst((first * size_of::<Cell>()) as u64);
        let start = self.bx.ins().iadd(cells, start);
        let Some(index) = index else {
            if size > 0 {
                self.add_to_cell(start);
            }
            return;
        };
        let index = self.word(index);
        let size = self.iconst(size as u64);
        let inside = self.bx.ins().icmp(clif::condcodes::IntCC::UnsignedLessThan, index, size);
        self.if_true(inside, |body| {
            let offset = body.bx.ins().ishl_imm_u(index, i64::from(size_of::<Cell>().ilog2()));
            let cell = body.bx.ins().iadd(start, offset);
            body.add_to_cell(cell);
        });
    }

    fn add_to_cell(&mut self, cell: clif::Value) {
        let flags = self.counters;
        let offset = offset_of!(Cell, packets) as i32;
        let packets = self.bx.ins().load(types::I64, flags, cell, offset);
        let packets = self.bx.ins().iadd_imm_u(packets, 1);
        self.bx.ins().store(flags, packets, cell, offset);
        if self.is_packet {
            let wire = self.wire();
            let offset = offset_of!(Cell, bytes) as i32;
            let bytes = self.bx.ins().load(types::I64, flags, cell, offset);
            let bytes = self.bx.ins().iadd(bytes, wire);
            self.bx.ins().store(flags, bytes, cell, offset);
        }
    }

    fn if_true(&mut self, condition: clif::Value, then: impl FnOnce(&mut Self)) {
        let (yes, after) = (self.bx.create_block(), self.bx.create_block());
        self.bx.ins().brif(condition, yes, &[], after, &[]);
        self.bx.switch_to_block(yes);
        then(self);
        self.bx.ins().jump(after, &[]);
        self.bx.switch_to_block(after);
    }

    /// Stores the packet's address and length in the context, where host functions that send read them.
    pub(super) fn hand_over_packet(&mut self) {
        if self.is_packet {
            let flags = MemFlagsData::trusted();
            let (frame, captured, context) = (self.frame(), self.captured(), self.context);
            self.bx.ins().store(flags, frame, context, offset_of!(Context<'_>, frame) as i32);
            self.bx.ins().store(flags, captured, context, offset_of!(Context<'_>, captured) as i32);
        }
    }

    /// Whether entries of a table hold items of a pool, or raise an event when they end: the host learns and
    /// removes them.
    fn releases(&self, table: u32) -> bool {
        let table = &self.shared.program.tables[table as usize];
        table.releases.is_some() || table.expires.is_some()
    }

    /// What hits and learns of a table write in addition to the value, as bits.
    fn marks(&self, table: u32) -> usize {
        match self.shared.places[table as usize] {
            TablePlace::Exact(place) => usize::from(self.shared.marks[place]),
            _ => 0,
        }
    }

    fn table(&mut self, table: u32) -> clif::Value {
        let tables = self.fixed(offset_of!(Context<'_>, tables));
        let place = match self.shared.places[table as usize] {
            TablePlace::Exact(place) => place,
            _ => 0,
        };
        let offset = self.iconst(place as u64 * size_of::<ExactTable>() as u64);
        self.bx.ins().iadd(tables, offset)
    }

    fn default_entry(&mut self, table: u32) -> clif::Value {
        let defaults = self.fixed(offset_of!(Context<'_>, defaults));
        let offset = self.iconst(u64::from(table) * size_of::<DefaultEntry>() as u64);
        self.bx.ins().iadd(defaults, offset)
    }

    /// The words of these columns.
    pub(super) fn pack(&mut self, packing: &Packing, columns: &[Value]) -> Vec<clif::Value> {
        let mut packed: Vec<Option<clif::Value>> = vec![None; packing.words];
        for (place, column) in packing.places.iter().zip(columns) {
            let column = self.value(*column);
            if place.is_wide() {
                let (low, high) = words(&mut self.bx, column);
                (packed[place.word], packed[place.word + 1]) = (Some(high), Some(low));
                continue;
            }
            let mut part = word(&mut self.bx, column);
            if place.shift > 0 {
                part = self.bx.ins().ishl_imm_u(part, i64::from(place.shift));
            }
            packed[place.word] = Some(match packed[place.word] {
                Some(before) => self.bx.ins().bor(before, part),
                None => part,
            });
        }
        packed.into_iter().map(|word| word.unwrap_or_else(|| self.iconst(0))).collect()
    }

    /// One column of the words at an address.
    fn unpack(&mut self, packing: &Packing, place: &PackedPlace, words: clif::Value) -> clif::Value {
        let flags = MemFlagsData::trusted();
        let mut load = |word: usize| self.bx.ins().load(types::I64, flags, words, word as i32 * 8);
        if place.is_wide() {
            let (high, low) = (load(place.word), load(place.word + 1));
            return self.bx.ins().iconcat(low, high);
        }
        let mut value = load(place.word);
        if place.shift > 0 {
            value = self.bx.ins().ushr_imm_u(value, i64::from(place.shift));
        }
        if packing.places.iter().any(|other| other.word == place.word && other.shift > place.shift) {
            let mask = self.iconst(largest(place.width) as u64);
            value = self.bx.ins().band(value, mask);
        }
        if type_of(place.width) == types::I8 { self.bx.ins().ireduce(types::I8, value) } else { value }
    }

    /// The address of a key's words on the stack.
    pub(super) fn stored_key(&mut self, table: u32, key: &[Value]) -> clif::Value {
        let packed = self.pack(&self.shared.packings[table as usize].0, key);
        let slot = slot(&mut self.bx, &mut self.scratch.key, WIDEST_KEY);
        self.stored(slot, &packed)
    }

    fn stored(&mut self, slot: StackSlot, values: &[clif::Value]) -> clif::Value {
        let address = self.bx.ins().stack_addr(types::I64, slot, 0);
        for (index, value) in values.iter().enumerate() {
            self.bx.ins().store(MemFlagsData::trusted(), *value, address, index as i32 * 8);
        }
        address
    }

    /// The address of values on the stack as pairs of words, the less significant first.
    pub(super) fn stored_list(&mut self, values: &[Value]) -> clif::Value {
        let mut pairs = Vec::with_capacity(values.len() * 2);
        for value in values {
            let value = self.value(*value);
            let (low, high) = words(&mut self.bx, value);
            pairs.extend([low, high]);
        }
        let slot = slot(&mut self.bx, &mut self.scratch.list, self.longest_list * 2);
        self.stored(slot, &pairs)
    }
}
