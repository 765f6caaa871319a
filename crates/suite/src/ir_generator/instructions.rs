//! The instructions of a made block, each as likely as the tests of back ends need it.

use super::declarations::{matched, width};
use super::{Maker, Scope};
use ir::{Answer, BinaryOp, Column, CompareOp, KeyPart, Op, TableKind, Value};

const BINARY: [BinaryOp; 13] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::AddSaturate,
    BinaryOp::SubSaturate,
    BinaryOp::MulSaturate,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRight,
];

const COMPARE: [CompareOp; 4] = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le];

fn widths(columns: &[Column]) -> Vec<u8> {
    columns.iter().map(|column| column.width).collect()
}

impl Maker<'_> {
    /// One more instruction, and those that make what it needs.
    pub(super) fn instruction(&mut self, scope: &mut Scope) {
        match self.random.below(10) {
            0..=2 => self.computed(scope),
            3 | 4 if self.packet => self.access(scope),
            5 if self.packet => self.asked_of_packet(scope),
            6 if self.packet && self.resizes => self.resized(scope),
            6 | 7 => self.table(scope),
            8 => self.memory(scope),
            _ => self.output(scope),
        }
    }

    fn computed(&mut self, scope: &mut Scope) {
        let width = width(self.random);
        match self.random.below(10) {
            0 => {
                let number = self.random.value(width);
                self.number(scope, width, number);
            }
            1..=4 => {
                let (left, right) = (self.value(scope, width), self.value(scope, width));
                let op = *self.random.pick(&BINARY);
                self.emit(scope, &[width], Op::Binary(op, left, right));
            }
            5 | 6 => {
                let (left, right) = (self.value(scope, width), self.value(scope, width));
                let op = *self.random.pick(&COMPARE);
                self.emit(scope, &[1], Op::Compare(op, left, right));
            }
            7 => {
                let condition = self.value(scope, 1);
                let (yes, no) = (self.value(scope, width), self.value(scope, width));
                self.emit(scope, &[width], Op::Select(condition, yes, no));
            }
            8 => {
                let from = match scope.values.is_empty() {
                    true => self.value(scope, width),
                    false => *self.random.pick(&scope.values),
                };
                self.emit(scope, &[width], Op::Resize(from));
            }
            _ => {
                self.emit(scope, &[64], Op::Now);
            }
        }
    }

    /// Bytes that are known to be captured, up to the last of them.
    fn access(&mut self, scope: &mut Scope) {
        let shown: Vec<(Value, u32)> = scope
            .shown
            .iter()
            .filter(|(_, known)| **known > 0)
            .map(|(base, known)| (*base, *known))
            .collect();
        if shown.is_empty() {
            return self.asked_of_packet(scope);
        }
        let (base, known) = *self.random.pick(&shown);
        if self.random.one_in(5) {
            let more = self.random.one_in(2).then(|| self.position(scope));
            let bytes = self.random.between(0, known.into()) as u32;
            let bytes = if more.is_some() { bytes & !1 } else { bytes };
            self.emit(scope, &[16], Op::Checksum { base, bytes, more });
            return;
        }
        let bytes = self.random.between(1, known.min(16).into()) as u32;
        let offset = match self.random.one_in(3) {
            true => known - bytes,
            false => self.random.between(0, (known - bytes).into()) as u32,
        };
        let proven = self.random.between((offset + bytes).into(), known.into()) as u32;
        let (width, bytes) = (bytes as u8 * 8, bytes as u8);
        if self.random.one_in(3) {
            let value = self.value(scope, width);
            self.emit(scope, &[], Op::Store { base, offset, bytes, value, proven });
        } else {
            self.emit(scope, &[width], Op::Load { base, offset, bytes, proven });
        }
    }

    fn asked_of_packet(&mut self, scope: &mut Scope) {
        let (width, op) = match self.random.below(5) {
            0 => (16, Op::InPort),
            1 => (32, Op::WireLength),
            2 => (32, Op::Captured),
            3 => {
                // Behind nothing that is known to be captured a sum has no bytes.
                let (base, more) = (self.position(scope), Some(self.position(scope)));
                (16, Op::Checksum { base, bytes: 0, more })
            }
            _ => return self.scan(scope),
        };
        self.emit(scope, &[width], op);
    }

    fn scan(&mut self, scope: &mut Scope) {
        let place = self.random.between(4, 6) as usize;
        let table = &self.program.tables[place];
        let due = match table.kind {
            TableKind::Patterns(Answer::All) => vec![32],
            TableKind::Patterns(Answer::Set) => vec![128],
            _ => [vec![1], widths(&table.values)].concat(),
        };
        let (start, end) = (self.position(scope), self.position(scope));
        self.emit(scope, &due, Op::Scan { table: place as u32, start, end });
    }

    fn resized(&mut self, scope: &mut Scope) {
        let at = self.position(scope);
        match self.random.below(8) {
            0 | 1 => {
                let template = self.random.below(self.program.templates.len() as u64) as u32;
                let values = self.holes(scope, template);
                self.emit(scope, &[1], Op::PushBytes { at, template, values });
            }
            2 | 3 => {
                let bytes = self.position(scope);
                self.emit(scope, &[], Op::PopBytes { at, bytes });
            }
            4 | 5 => {
                self.emit(scope, &[], Op::Truncate(at));
            }
            _ => {
                let mtu = self.value(scope, 32);
                self.emit(scope, &[], Op::Fragment { at, mtu });
                return;
            }
        }
        scope.shown.clear();
    }

    fn holes(&mut self, scope: &mut Scope, template: u32) -> Vec<Value> {
        let holes = &self.program.templates[template as usize].holes;
        let widths: Vec<u8> = holes.iter().map(|hole| hole.width).collect();
        self.values(scope, &widths)
    }

    fn table(&mut self, scope: &mut Scope) {
        let exact = *self.random.pick(&[0, 0, 1, 7]);
        let pairs = *self.random.pick(&[2, 3]);
        let chosen = if self.random.one_in(2) { exact } else { pairs };
        let of = |place: usize| {
            let table = &self.program.tables[place];
            (widths(&table.keys), widths(&table.values))
        };
        let (number, (keys, values)) = (chosen as u32, of(chosen));
        match self.random.below(12) {
            0..=3 => {
                let key = self.values(scope, &keys);
                let due = [vec![1], values].concat();
                self.emit(scope, &due, Op::Lookup { table: number, key });
            }
            4 | 5 => {
                let (keys, values) = of(exact);
                let (key, value) = (self.values(scope, &keys), self.values(scope, &values));
                let ends = self.program.tables[exact].lifetimes && self.random.one_in(2);
                self.emit(scope, &[1], Op::Learn { table: exact as u32, key: key.clone(), value });
                if ends {
                    let after = self.value(scope, 64);
                    self.emit(scope, &[], Op::EndAfter { table: exact as u32, key, after });
                }
            }
            6 => {
                let key = self.values(scope, &of(exact).0);
                self.emit(scope, &[], Op::Remove { table: exact as u32, key });
            }
            7 => {
                let listed = (0..self.random.below(4))
                    .map(|_| {
                        let place = *self.random.pick(&[0, 1, 7]);
                        (place as u32, self.values(scope, &of(place).0))
                    })
                    .collect();
                self.emit(scope, &[1], Op::HasRoom(listed));
            }
            8 => {
                let value = self.values(scope, &values);
                self.emit(scope, &[], Op::SetDefault { table: number, value });
            }
            9 => {
                self.emit(scope, &[], Op::ClearDefault(number));
            }
            more => {
                let (key, priority) = (self.key_parts(scope, pairs), self.random.below(3) as u32);
                let table = pairs as u32;
                if more == 10 {
                    let value = self.values(scope, &of(pairs).1);
                    self.emit(scope, &[1], Op::Insert { table, key, priority, value });
                } else {
                    self.emit(scope, &[], Op::Withdraw { table, key, priority });
                }
            }
        }
    }

    fn key_parts(&mut self, scope: &mut Scope, place: usize) -> Vec<KeyPart> {
        let table = &self.program.tables[place];
        let last = table.keys.len() - 1;
        (table.keys.iter().enumerate())
            .map(|(part, column)| match self.random.below(3) {
                0 => KeyPart::Fixed(matched(self.random, table.kind, column.width, part == last)),
                1 if part == last || table.kind != TableKind::Lpm => {
                    let length = self.random.between(0, column.width.into()) as u8;
                    KeyPart::Prefix(self.value(scope, column.width), length)
                }
                _ => KeyPart::Exact(self.value(scope, column.width)),
            })
            .collect()
    }

    /// A cell, perhaps one that is not there; where there is one alone, perhaps without a number.
    fn cell(&mut self, scope: &mut Scope, size: u32) -> Option<Value> {
        if size == 1 && self.random.one_in(2) {
            return None;
        }
        if self.random.one_in(4) {
            return Some(self.value(scope, 32));
        }
        let number = self.random.below(u64::from(size) + 1);
        Some(self.number(scope, 32, number.into()))
    }

    fn memory(&mut self, scope: &mut Scope) {
        let program = self.program;
        match self.random.below(10) {
            0 => {
                let meter = self.random.below(program.meters.len() as u64) as u32;
                let index = self.cell(scope, program.meters[meter as usize].size);
                let before = self.random.one_in(2).then(|| self.value(scope, 2));
                self.emit(scope, &[2], Op::Mark { meter, index, before });
            }
            more @ 1..=3 => {
                let register = self.random.below(program.registers.len() as u64) as u32;
                let (size, width) = {
                    let register = &program.registers[register as usize];
                    (register.size, register.column.width)
                };
                let index = self.cell(scope, size);
                if more == 1 {
                    let value = self.value(scope, width);
                    self.emit(scope, &[], Op::WriteRegister { register, index, value });
                } else {
                    self.emit(scope, &[width], Op::ReadRegister { register, index });
                }
            }
            more @ 4..=5 => {
                let pool = self.random.below(program.pools.len() as u64) as u32;
                let columns = widths(&program.pools[pool as usize].columns);
                if more == 4 {
                    let hint = self.position(scope);
                    let due = [vec![1], columns].concat();
                    self.emit(scope, &due, Op::Take { pool, hint });
                } else {
                    let item = self.values(scope, &columns);
                    self.emit(scope, &[], Op::Give { pool, item });
                }
            }
            more => {
                let group = if more == 6 { 0 } else { self.random.below(program.groups.len() as u64) as u32 };
                let declared = &program.groups[group as usize];
                let index = self.cell(scope, declared.size);
                let columns = widths(&declared.columns);
                let due = [vec![1], columns.clone()].concat();
                match more {
                    6 => {
                        let place = self.random.below(4) as u32;
                        self.emit(scope, &due, Op::Member { group, index, place });
                    }
                    7 => {
                        let hash = self.value(scope, 32);
                        self.emit(scope, &due, Op::Choose { group, index, hash });
                    }
                    8 => {
                        let member = self.member(scope, group, &columns);
                        self.emit(scope, &[1], Op::Join { group, index, member });
                    }
                    _ => {
                        let member = self.member(scope, group, &columns);
                        self.emit(scope, &[], Op::Leave { group, index, member });
                    }
                }
            }
        }
    }

    /// A member; of the group of ports mostly a port that there is.
    fn member(&mut self, scope: &mut Scope, group: u32, columns: &[u8]) -> Vec<Value> {
        match group {
            0 => vec![self.port(scope)],
            _ => self.values(scope, columns),
        }
    }

    fn output(&mut self, scope: &mut Scope) {
        let program = self.program;
        match self.random.below(8) {
            0 => {
                let counter = self.random.between(1, program.counters.len() as u64 - 1) as u32;
                let index = self.cell(scope, program.counters[counter as usize].size);
                self.emit(scope, &[], Op::Count { counter, index });
            }
            1 if self.raises < program.events.len() => {
                let event = self.random.between(self.raises as u64, program.events.len() as u64 - 1) as u32;
                let args = self.values(scope, &widths(&program.events[event as usize].params));
                let delay = self.random.one_in(2).then(|| {
                    let delay = self.random.below(20_000_000);
                    self.number(scope, 64, delay.into())
                });
                self.emit(scope, &[], Op::Raise { event, args, delay });
            }
            2 if self.packet => {
                let port = self.port(scope);
                self.emit(scope, &[], Op::Copy(port));
            }
            3 if self.packet => {
                let base = self.position(scope);
                let name = "shown".to_owned();
                self.emit(scope, &[], Op::Header { layout: 0, base, name });
            }
            4 => {
                let stage = self.random.below(program.stages.len() as u64) as u32;
                self.emit(scope, &[], Op::EnterStage(stage));
            }
            5 if !scope.values.is_empty() => {
                let value = *self.random.pick(&scope.values);
                self.emit(scope, &[], Op::Keep(value));
            }
            _ => {
                let template = self.random.below(program.templates.len() as u64) as u32;
                let values = self.holes(scope, template);
                let tail = (self.packet && self.random.one_in(2)).then(|| self.position(scope));
                let limit = self.random.one_in(3).then(|| self.position(scope));
                let port = self.port(scope);
                self.emit(scope, &[], Op::Emit { template, values, tail, limit, port });
            }
        }
    }
}
