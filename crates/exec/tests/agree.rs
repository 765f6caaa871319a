//! All back ends mean the same: every operation at every width, packet bytes, tables, outputs, and random
//! programs.

mod program;

use ir::*;
use packet::{Frames, VerdictKind};
use program::*;

const WIDTHS: [u8; 12] = [1, 7, 8, 16, 31, 32, 48, 63, 64, 65, 127, 128];

const OPERATIONS: [BinaryOp; 13] = [
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

const COMPARISONS: [CompareOp; 4] = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le];

fn random_frames(count: usize, length: usize, seed: u64) -> Frames {
    let mut random = Random(seed);
    let mut frames = Frames::with_headroom();
    for i in 0..count {
        let bytes: Vec<u8> = (0..length.div_ceil(16)).flat_map(|_| random.wide().to_be_bytes()).collect();
        let cut = if random.below(8) == 0 { random.below(length as u64) as usize } else { length };
        frames.push(&bytes[..cut], length as u32, 1000 + i as u64 * random.below(3));
    }
    frames
}

/// An event with one parameter of 128 bits whose handler does nothing.
fn with_event(mut packet: Build, finish: impl FnOnce(&mut Build)) -> Program {
    finish(&mut packet);
    let mut handler = Build::new("handler");
    handler.param(BlockId(0), 128);
    let mut program = program(vec![packet, handler]);
    program.events = vec![Event { name: "result".to_string(), params: columns(&[128]), handler: 1 }];
    program
}

fn show(build: &mut Build, value: Value) {
    let value = build.one(Op::Resize(value), 128);
    build.none(Op::Raise { event: 0, args: vec![value], delay: None });
}

#[test]
fn every_operation_at_every_width() {
    let mut build = Build::new("packet");
    let base = build.constant(32, 0);
    build.need(base, 32);
    let load = |build: &mut Build, offset| build.one(Op::Load { base, offset, bytes: 16, proven: 32 }, 128);
    let (first, second) = (load(&mut build, 0), load(&mut build, 16));
    let mut shown = 0;
    for width in WIDTHS {
        let a = build.one(Op::Resize(first), width);
        let b = build.one(Op::Resize(second), width);
        for op in OPERATIONS {
            let result = build.one(Op::Binary(op, a, b), width);
            show(&mut build, result);
            let constant = build.constant(width, 3);
            let result = build.one(Op::Binary(op, a, constant), width);
            show(&mut build, result);
            shown += 2;
        }
        for op in COMPARISONS {
            let result = build.one(Op::Compare(op, a, b), 1);
            show(&mut build, result);
            let selected = build.one(Op::Select(result, b, a), width);
            show(&mut build, selected);
            shown += 2;
        }
        for other in WIDTHS {
            let resized = build.one(Op::Resize(a), other);
            show(&mut build, resized);
            shown += 1;
        }
    }
    let program = allowed(with_event(build, |build| build.end(Terminator::Flood)));
    let frames = random_frames(300, 32, 1);
    let seen = agree(&program, &frames);
    let whole = seen.verdicts.iter().filter(|verdict| verdict.kind() == VerdictKind::Flood).count();
    assert!(whole > 200);
    assert_eq!(seen.raised.len(), whole * shown);
}

#[test]
fn every_length_of_load_and_store_at_every_proof() {
    let mut build = Build::new("packet");
    let zero = build.constant(32, 0);
    build.need(zero, 1);
    let eight = build.one(Op::Load { base: zero, offset: 0, bytes: 1, proven: 1 }, 8);
    let mask = build.constant(8, 31);
    let eight = build.one(Op::Binary(BinaryOp::And, eight, mask), 8);
    let moving = build.one(Op::Resize(eight), 32);
    for (base, stores) in [(zero, false), (moving, false), (moving, true)] {
        for bytes in 1..=16u8 {
            for offset in [0, 1, 5, 9] {
                for spare in [0, 1, 7] {
                    let proven = offset + u32::from(bytes) + spare;
                    build.need(base, proven);
                    let loaded = build.one(Op::Load { base, offset, bytes, proven }, bytes * 8);
                    if stores {
                        let one = build.constant(bytes * 8, 1);
                        let value = build.one(Op::Binary(BinaryOp::Mul, loaded, loaded), bytes * 8);
                        let value = build.one(Op::Binary(BinaryOp::Add, value, one), bytes * 8);
                        build.none(Op::Store { base, offset, bytes, value, proven });
                    }
                    show(&mut build, loaded);
                }
            }
        }
    }
    let program = allowed(with_event(build, |build| build.end(Terminator::Flood)));
    let seen = agree(&program, &random_frames(60, 64, 3));
    assert!(seen.raised.len() > 10_000);
}

#[test]
fn needs_hold_on_every_side_of_their_bounds() {
    let mut build = Build::new("packet");
    let zero = build.constant(32, 0);
    build.need(zero, 8);
    let word = |build: &mut Build, offset| {
        let small = build.one(Op::Load { base: zero, offset, bytes: 1, proven: 8 }, 8);
        build.one(Op::Resize(small), 32)
    };
    let (base, more, limit) = (word(&mut build, 0), word(&mut build, 1), word(&mut build, 2));
    let huge = build.constant(32, u128::from(u32::MAX));
    for (base, more, limit) in [
        (base, Some(more), Some(limit)),
        (base, None, Some(limit)),
        (base, Some(huge), None),
        (huge, Some(more), None),
    ] {
        let (ok, short) = (build.block(), build.block());
        build.end(Terminator::Need { base, bytes: 5, more, limit, ok: to(ok), short: to(short) });
        build.at(ok);
        show(&mut build, base);
        build.end(Terminator::Jump(to(short)));
        build.at(short);
    }
    let program = allowed(with_event(build, |build| build.end(Terminator::Punt(2))));
    let mut frames = Frames::with_headroom();
    let mut random = Random(5);
    for i in 0..2000 {
        let bytes: Vec<u8> = (0..40).map(|_| random.below(48) as u8).collect();
        frames.push(&bytes, 40, i);
    }
    let seen = agree(&program, &frames);
    assert!(seen.raised.len() > 500 && seen.raised.len() < 4000);
}

#[test]
fn random_programs_mean_the_same() {
    let rounds: u64 = std::env::var("EXEC_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut hits = 0;
    for seed in 1..=rounds {
        let program = allowed(Generator::new(seed).program());
        let seen = agree(&program, &random_frames(120, 48, seed));
        hits += usize::from(seen.tables.iter().any(|table| table.inserts > 0));
    }
    assert!(hits as u64 * 2 > rounds, "only {hits} of {rounds} programs learned anything");
}

/// Makes random well-formed programs.
struct Generator {
    random: Random,
    build: Build,
    /// Values that dominate the current place.
    known: Vec<Value>,
    zero: Value,
    slots: u32,
    tables: Vec<Table>,
    /// Whether packet bytes may be used.
    packet: bool,
}

impl Generator {
    fn new(seed: u64) -> Generator {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let shapes: [(&[u8], &[u8]); 6] = [
            (&[32], &[16]),
            (&[48, 12], &[]),
            (&[64, 64], &[1, 9]),
            (&[128, 8], &[128, 7]),
            (&[1], &[64]),
            (&[8, 8], &[65]),
        ];
        let tables = (0..3).map(|_| {
            let (keys, values) = random.pick(&shapes);
            let evict = random.pick(&[Eviction::Lru, Eviction::Refuse]);
            let mut table = table(keys, values, random.pick(&[1, 3, 40]), evict);
            (table.idle, table.age) =
                random.pick(&[(Some(20), None), (None, Some(30)), (Some(0), None), (Some(20), Some(30))]);
            table.lifetimes = table.age.is_some() && random.below(2) == 0;
            let entry = |random: &mut Random, widths: &[u8]| -> Vec<u128> {
                widths.iter().map(|width| random.wide() >> (128 - u32::from(*width))).collect()
            };
            if random.below(2) == 0 {
                table.default = Some(entry(&mut random, values));
            }
            if random.below(2) == 0 {
                let (key, value) = (entry(&mut random, keys), entry(&mut random, values));
                table.entries.push(ir::Entry::exact(&key, &value));
            }
            table
        });
        let tables = tables.collect();
        Generator {
            random,
            build: Build::new("packet"),
            known: Vec::new(),
            zero: Value(0),
            slots: 0,
            tables,
            packet: true,
        }
    }

    fn program(mut self) -> Program {
        self.zero = self.build.constant(32, 0);
        self.build.need(self.zero, 40);
        for (offset, bytes) in [(0, 1), (1, 6), (7, 16), (23, 2), (25, 4), (29, 8)] {
            let load = Op::Load { base: self.zero, offset, bytes, proven: 40 };
            let value = self.build.one(load, bytes * 8);
            self.known.push(value);
        }
        let port = self.build.one(Op::InPort, 16);
        let wire = self.build.one(Op::WireLength, 32);
        let captured = self.build.one(Op::Captured, 32);
        self.known.extend([port, wire, captured]);
        self.steps(14, 2);
        let terminator = match self.random.below(6) {
            0 => Terminator::Flood,
            1 => Terminator::Multicast(0),
            2 => Terminator::Drop(2),
            3 => Terminator::Punt(1),
            _ => Terminator::Send(self.of(16)),
        };
        self.build.end(terminator);
        let packet = std::mem::replace(&mut self.build, Build::new("handler"));
        self.packet = false;
        self.known = vec![self.build.param(BlockId(0), 65), self.build.param(BlockId(0), 16)];
        self.steps(5, 1);
        self.build.end(Terminator::Done);
        let handler = std::mem::replace(&mut self.build, Build::new("every"));
        self.known = vec![self.build.constant(64, 77)];
        self.steps(3, 1);
        self.build.end(Terminator::Done);
        let mut program = program(vec![packet, handler, self.build]);
        program.tables = self.tables;
        program.slots = self.slots;
        program.port_sets = vec![vec![1, 2]];
        program.counters = vec![
            Counter { name: "one".to_string(), size: 1, indexed: false },
            Counter { name: "many".to_string(), size: 7, indexed: true },
        ];
        program.events = vec![Event { name: "event".to_string(), params: columns(&[65, 16]), handler: 1 }];
        program.every = vec![Every { period: 1 + self.random.below(90), handler: 2 }];
        program.templates = vec![Template {
            bytes: vec![0xa5; 24],
            holes: vec![Hole { bit: 3, width: 48 }, Hole { bit: 60, width: 127 }],
            sums: vec![
                Sum { at: 20, from: 7, end: Some(24), plus: 6, never_zero: true, ..Sum::default() },
                Sum { at: 2, from: 5, besides: vec![(0, 3), (9, 4)], length: true, ..Sum::default() },
            ],
        }];
        program
    }

    /// A known value resized to this width, or a constant.
    fn of(&mut self, width: u8) -> Value {
        if self.random.below(6) == 0 {
            let value = self.random.wide();
            return self.build.constant(width, value);
        }
        let value = self.random.pick(&self.known);
        if self.build.function.width(value) == width {
            value
        } else {
            self.build.one(Op::Resize(value), width)
        }
    }

    /// A small number, so that keys meet again.
    fn key(&mut self, table: usize) -> Vec<Value> {
        let widths: Vec<u8> = self.tables[table].keys.iter().map(|column| column.width).collect();
        widths
            .into_iter()
            .map(|width| {
                let value = self.of(width);
                let mask = self.build.constant(width, 3);
                self.build.one(Op::Binary(BinaryOp::And, value, mask), width)
            })
            .collect()
    }

    fn values(&mut self, table: usize) -> Vec<Value> {
        let widths: Vec<u8> = self.tables[table].values.iter().map(|column| column.width).collect();
        widths.into_iter().map(|width| self.of(width)).collect()
    }

    fn steps(&mut self, count: usize, depth: u32) {
        for _ in 0..count {
            self.step(depth);
        }
    }

    fn step(&mut self, depth: u32) {
        let width = self.random.pick(&WIDTHS);
        let table = self.random.below(3) as usize;
        let index = table as u32;
        match self.random.below(23) {
            0..=3 => {
                let (op, a, b) = (self.random.pick(&OPERATIONS), self.of(width), self.of(width));
                let value = self.build.one(Op::Binary(op, a, b), width);
                self.known.push(value);
            }
            4 => {
                let (op, a, b) = (self.random.pick(&COMPARISONS), self.of(width), self.of(width));
                let value = self.build.one(Op::Compare(op, a, b), 1);
                self.known.push(value);
            }
            5 => {
                let (condition, a, b) = (self.of(1), self.of(width), self.of(width));
                let value = self.build.one(Op::Select(condition, a, b), width);
                self.known.push(value);
            }
            6 | 7 => {
                let key = self.key(table);
                let values = self.tables[table].values.iter().map(|column| column.width);
                let widths: Vec<u8> = std::iter::once(1).chain(values).collect();
                let results = self.build.all(Op::Lookup { table: index, key }, &widths);
                self.known.extend(results);
            }
            8 | 9 => {
                let (key, value) = (self.key(table), self.values(table));
                let accepted = self.build.one(Op::Learn { table: index, key: key.clone(), value }, 1);
                if self.tables[table].lifetimes && self.random.below(2) == 0 {
                    let after = self.of(64);
                    let mask = self.build.constant(64, 63);
                    let after = self.build.one(Op::Binary(BinaryOp::And, after, mask), 64);
                    self.build.none(Op::EndAfter { table: index, key, after });
                }
                self.known.push(accepted);
            }
            10 => {
                let keys = (0..3).map(|_| {
                    let table = self.random.below(3) as usize;
                    (table as u32, self.key(table))
                });
                let keys = keys.collect();
                let fits = self.build.one(Op::HasRoom(keys), 1);
                self.known.push(fits);
            }
            11 => {
                let op = match self.random.below(3) {
                    0 => Op::Remove { table: index, key: self.key(table) },
                    1 => Op::SetDefault { table: index, value: self.values(table) },
                    _ => Op::ClearDefault(index),
                };
                self.build.none(op);
            }
            12 => {
                let value = self.of(32);
                let mask = self.build.constant(32, 7);
                let cell = self.build.one(Op::Binary(BinaryOp::And, value, mask), 32);
                self.build.none(Op::Count { counter: 1, index: Some(cell) });
                self.build.none(Op::Count { counter: 0, index: None });
            }
            13 => {
                let args = vec![self.of(65), self.of(16)];
                // A handler that raises its own event at once would run to its bound after each packet.
                let delay = (!self.packet || self.random.below(2) == 0).then(|| {
                    let delay = self.random.below(60) + if self.packet { 0 } else { 40 };
                    self.build.constant(64, delay.into())
                });
                self.build.none(Op::Raise { event: 0, args, delay });
            }
            14 => {
                let port = self.of(16);
                let mask = self.build.constant(16, 7);
                let port = self.build.one(Op::Binary(BinaryOp::And, port, mask), 16);
                let values = vec![self.of(48), self.of(127)];
                let tail = (self.packet && self.random.below(2) == 0).then(|| {
                    let at = self.random.below(60);
                    self.build.constant(32, at.into())
                });
                let limit = (self.random.below(2) == 0).then(|| {
                    let most = self.random.below(40);
                    self.build.constant(32, most.into())
                });
                self.build.none(Op::Emit { template: 0, values, tail, limit, port });
                if self.packet {
                    self.build.none(Op::Copy(port));
                }
            }
            15 if self.packet => {
                let bytes = 1 + self.random.below(16) as u8;
                let offset = self.random.below(u64::from(41 - bytes)) as u32;
                let value = self.of(bytes * 8);
                self.build.none(Op::Store { base: self.zero, offset, bytes, value, proven: 40 });
                let loaded =
                    self.build.one(Op::Load { base: self.zero, offset, bytes, proven: 40 }, bytes * 8);
                self.known.push(loaded);
            }
            16 if self.packet && self.random.below(3) > 0 => {
                let more = (self.random.below(2) == 0).then(|| self.of(32));
                let bytes = self.random.below(41) as u32 & if more.is_some() { !1 } else { !0 };
                let sum = self.build.one(Op::Checksum { base: self.zero, bytes, more }, 16);
                self.known.push(sum);
            }
            16 => {
                let now = self.build.one(Op::Now, 64);
                self.build.none(Op::Keep(now));
                self.known.push(now);
            }
            20 | 21 if self.packet => self.resize(),
            22 if self.packet => {
                let captured = self.build.one(Op::Captured, 32);
                let wire = self.build.one(Op::WireLength, 32);
                self.known.extend([captured, wire]);
            }
            17 if depth > 0 => self.diamond(depth),
            18 if depth > 0 => self.cases(depth),
            19 if depth > 0 => self.repeat(depth),
            _ => {}
        }
    }

    /// Changes the size of the packet; behind it 40 bytes are shown again.
    fn resize(&mut self) {
        let at = self.random.below(70);
        let at = self.build.constant(32, at.into());
        let number = self.random.below(100);
        let number = self.build.constant(32, number.into());
        match self.random.below(4) {
            0 => {
                let values = vec![self.of(48), self.of(127)];
                let done = self.build.one(Op::PushBytes { at, template: 0, values }, 1);
                self.known.push(done);
            }
            1 => self.build.none(Op::PopBytes { at, bytes: number }),
            2 => self.build.none(Op::Truncate(number)),
            _ => self.build.none(Op::Fragment { at, mtu: number }),
        }
        self.build.need(self.zero, 40);
    }

    fn diamond(&mut self, depth: u32) {
        let condition = self.of(1);
        let (yes, no, join) = (self.build.block(), self.build.block(), self.build.block());
        let width = self.random.pick(&WIDTHS);
        let param = self.build.param(join, width);
        self.build.end(Terminator::Branch(condition, to(yes), to(no)));
        self.arms(&[yes, no], join, width, depth);
        self.known.push(param);
    }

    fn cases(&mut self, depth: u32) {
        let width = self.random.pick(&WIDTHS[1..]);
        let value = self.of(width);
        let mask = self.build.constant(width, 7);
        let value = self.build.one(Op::Binary(BinaryOp::And, value, mask), width);
        let (one, two, other, join) =
            (self.build.block(), self.build.block(), self.build.block(), self.build.block());
        let param = self.build.param(join, 48);
        let direct = self.of(48);
        let straight = Target { block: join, args: vec![direct] };
        self.build.end(Terminator::Switch(
            value,
            vec![(0, to(one)), (3, to(two)), (4, to(one)), (7, straight)],
            to(other),
        ));
        self.arms(&[one, two, other], join, 48, depth);
        self.known.push(param);
    }

    fn arms(&mut self, arms: &[BlockId], join: BlockId, width: u8, depth: u32) {
        let known = self.known.len();
        for arm in arms {
            self.build.at(*arm);
            self.steps(3, depth - 1);
            let value = self.of(width);
            self.build.end(Terminator::Jump(Target { block: join, args: vec![value] }));
            self.known.truncate(known);
        }
        self.build.at(join);
    }

    fn repeat(&mut self, depth: u32) {
        let (slot, cap) = (self.slots, self.random.below(6) as u32);
        self.slots += 1;
        let (head, body, out) = (self.build.block(), self.build.block(), self.build.block());
        let width = self.random.pick(&WIDTHS);
        let start = self.of(width);
        let param = self.build.param(head, width);
        self.build.end(Terminator::Jump(Target { block: head, args: vec![start] }));
        self.build.at(head);
        self.build.end(Terminator::Fuel { slot, cap, ok: to(body), out: to(out) });
        self.known.push(param);
        let known = self.known.len();
        self.build.at(body);
        self.steps(3, depth - 1);
        let next = self.of(width);
        self.build.end(Terminator::Jump(Target { block: head, args: vec![next] }));
        self.known.truncate(known);
        self.build.at(out);
    }
}
