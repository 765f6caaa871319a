//! Translates instructions for tables of prefixes, rules and patterns, meters, registers, pools and groups
//! into calls of host functions.

use super::tables::{
    CHOOSE, GIVE, INSERT, JOIN, LEAVE, MARK, MEMBER, PREFIX, PREFIX32, READ_REGISTER, RULE, SCAN_ALL,
    SCAN_FIRST, SCAN_SET, TAKE, WITHDRAW, WRITE_REGISTER,
};
use super::translate::Body;
use crate::pack::Packing;
use crate::state::table_set::TablePlace;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::{Answer, KeyPart, Op, TableKind, Value};

impl Body<'_, '_> {
    /// Translates a search in a table of prefixes or rules; its result is the address of the entry's value,
    /// or zero.
    pub(super) fn search(&mut self, table: u32, key: &[Value]) -> clif::Value {
        let context = self.context;
        match self.shared.places[table as usize] {
            TablePlace::Prefixes(place) => {
                let place = self.iconst(place as u64);
                let widths: u32 = key.iter().map(|column| u32::from(self.function.width(*column))).sum();
                if widths <= 32 {
                    let packing = Packing::new(&self.shared.program.tables[table as usize].keys);
                    let address = self.pack(&packing, key);
                    return self.host.call(&mut self.bx, PREFIX32, [context, place, address[0]])[0];
                }
                let key = self.stored_key(table, key);
                self.host.call(&mut self.bx, PREFIX, [context, place, key])[0]
            }
            TablePlace::Rules(place) => {
                let place = self.iconst(place as u64);
                let key = self.stored_key(table, key);
                self.host.call(&mut self.bx, RULE, [context, place, key])[0]
            }
            _ => self.iconst(0),
        }
    }

    fn scan(&mut self, table: u32, start: Value, end: Value, results: &[Value]) {
        let TablePlace::Patterns(place) = self.shared.places[table as usize] else { return };
        let (start, end, place) = (self.word(start), self.word(end), self.iconst(place as u64));
        self.hand_over_packet();
        let context = self.context;
        let args = [context, place, start, end];
        match self.shared.program.tables[table as usize].kind {
            TableKind::Patterns(Answer::All) => {
                let count = self.host.call(&mut self.bx, SCAN_ALL, args)[0];
                results.iter().for_each(|result| self.set(*result, count));
            }
            TableKind::Patterns(Answer::Set) => {
                let halves = self.host.call(&mut self.bx, SCAN_SET, args);
                let bits = self.bx.ins().iconcat(halves[0], halves[1]);
                results.iter().for_each(|result| self.set(*result, bits));
            }
            _ => {
                let entry = self.host.call(&mut self.bx, SCAN_FIRST, args)[0];
                let packing = &self.shared.packings[table as usize].1;
                self.found(table, entry, packing, results);
            }
        }
    }

    /// The number of a [`Placement`](super::placements::Placement), and the values of which its key is made.
    fn placement(
        &mut self,
        table: u32,
        key: &[KeyPart],
        priority: u32,
        value: &[Value],
    ) -> (clif::Value, clif::Value) {
        let wanted = (table, key, priority);
        let known = self.shared.placements;
        let number =
            known.iter().position(|known| (known.table, known.key.as_slice(), known.priority) == wanted);
        let number = self.iconst(number.unwrap_or(0) as u64);
        let made = key.iter().filter_map(|part| match part {
            KeyPart::Exact(value) | KeyPart::Prefix(value, _) => Some(*value),
            KeyPart::Fixed(_) => None,
        });
        let values: Vec<Value> = made.chain(value.iter().copied()).collect();
        (number, self.stored_list(&values))
    }

    /// The index of a cell; 0 if the instruction names none.
    fn cell(&mut self, index: Option<Value>) -> clif::Value {
        match index {
            Some(index) => self.word(index),
            None => self.iconst(0),
        }
    }

    /// A result of one bit from a word that is 0 or 1.
    fn set_bit(&mut self, results: &[Value], word: clif::Value) {
        if let Some(result) = results.first() {
            let bit = self.bx.ins().ireduce(types::I8, word);
            self.set(*result, bit);
        }
    }

    /// A result of up to 64 bits from a word.
    fn set_word(&mut self, results: &[Value], word: clif::Value) {
        if let Some(result) = results.first() {
            let narrow =
                if self.function.width(*result) == 1 { self.bx.ins().ireduce(types::I8, word) } else { word };
            self.set(*result, narrow);
        }
    }

    pub(super) fn memory(&mut self, op: &Op, results: &[Value]) {
        let context = self.context;
        match op {
            Op::Scan { table, start, end } => self.scan(*table, *start, *end, results),
            Op::Insert { table, key, priority, value } => {
                let (number, list) = self.placement(*table, key, *priority, value);
                let accepted = self.host.call(&mut self.bx, INSERT, [context, number, list])[0];
                self.set_bit(results, accepted);
            }
            Op::Withdraw { table, key, priority } => {
                let (number, list) = self.placement(*table, key, *priority, &[]);
                self.host.call(&mut self.bx, WITHDRAW, [context, number, list]);
            }
            Op::Mark { meter, index, before } => {
                let (meter, cell) = (self.iconst(u64::from(*meter)), self.cell(*index));
                let before = match before {
                    Some(before) => self.word(*before),
                    None => self.iconst(0),
                };
                let colour = self.host.call(&mut self.bx, MARK, [context, meter, cell, before])[0];
                self.set_word(results, colour);
            }
            Op::ReadRegister { register, index } => {
                let (register, cell) = (self.iconst(u64::from(*register)), self.cell(*index));
                let held = self.host.call(&mut self.bx, READ_REGISTER, [context, register, cell])[0];
                self.set_word(results, held);
            }
            Op::WriteRegister { register, index, value } => {
                let (register, cell) = (self.iconst(u64::from(*register)), self.cell(*index));
                let value = self.word(*value);
                self.host.call(&mut self.bx, WRITE_REGISTER, [context, register, cell, value]);
            }
            Op::Take { pool, hint } => {
                let hint = self.word(*hint);
                let columns = &self.shared.program.pools[*pool as usize].columns;
                let packing = Packing::apart(columns);
                let pool = self.iconst(u64::from(*pool));
                let item = self.host.call(&mut self.bx, TAKE, [context, pool, hint])[0];
                self.optional(item, &packing, results);
            }
            Op::Give { pool, item } => {
                let (pool, item) = (self.iconst(u64::from(*pool)), self.stored_list(item));
                self.host.call(&mut self.bx, GIVE, [context, pool, item]);
            }
            Op::Choose { group, index, hash } => {
                let (cell, hash) = (self.cell(*index), self.word(*hash));
                let packing = Packing::new(&self.shared.program.groups[*group as usize].columns);
                let group = self.iconst(u64::from(*group));
                let member = self.host.call(&mut self.bx, CHOOSE, [context, group, cell, hash])[0];
                self.optional(member, &packing, results);
            }
            Op::Member { group, index, place } => {
                let cell = self.cell(*index);
                let packing = Packing::new(&self.shared.program.groups[*group as usize].columns);
                let (group, place) = (self.iconst(u64::from(*group)), self.iconst(u64::from(*place)));
                let member = self.host.call(&mut self.bx, MEMBER, [context, group, cell, place])[0];
                self.optional(member, &packing, results);
            }
            Op::Join { group, index, member } => {
                let (cell, member) = (self.cell(*index), self.stored_list(member));
                let group = self.iconst(u64::from(*group));
                let joined = self.host.call(&mut self.bx, JOIN, [context, group, cell, member])[0];
                self.set_bit(results, joined);
            }
            Op::Leave { group, index, member } => {
                let (cell, member) = (self.cell(*index), self.stored_list(member));
                let group = self.iconst(u64::from(*group));
                self.host.call(&mut self.bx, LEAVE, [context, group, cell, member]);
            }
            _ => {}
        }
    }
}
