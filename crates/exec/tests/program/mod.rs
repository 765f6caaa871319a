//! Builds IR programs, runs them on all back ends, and compares everything that can be seen.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test binary uses its part")]

use exec::{Backend, BackendKind, Outputs, load};
use ir::source::Span;
use ir::*;
use packet::{BATCH, Batch, Frames, Verdict};

/// Xorshift numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    pub fn wide(&mut self) -> u128 {
        let value = u128::from(self.next()) << 64 | u128::from(self.next());
        match self.below(6) {
            0 => 0,
            1 => u128::MAX,
            2 => value >> self.below(128),
            3 => u128::from(self.below(140)),
            4 => 1 << self.below(128),
            _ => value,
        }
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A function being built; instructions go to the current block.
pub struct Build {
    pub function: Function,
    pub current: usize,
}

impl Build {
    pub fn new(name: &str) -> Build {
        let mut build =
            Build { function: Function { name: name.to_string(), ..Function::default() }, current: 0 };
        build.block();
        build
    }

    pub fn block(&mut self) -> BlockId {
        let block = Block {
            params: Vec::new(),
            instructions: Vec::new(),
            terminator: Terminator::Done,
            span: Span::default(),
        };
        self.function.blocks.push(block);
        BlockId(self.function.blocks.len() as u32 - 1)
    }

    pub fn value(&mut self, width: u8) -> Value {
        self.function.widths.push(width);
        Value(self.function.widths.len() as u32 - 1)
    }

    pub fn param(&mut self, block: BlockId, width: u8) -> Value {
        let value = self.value(width);
        self.function.blocks[block.0 as usize].params.push(value);
        value
    }

    pub fn at(&mut self, block: BlockId) {
        self.current = block.0 as usize;
    }

    pub fn all(&mut self, op: Op, widths: &[u8]) -> Vec<Value> {
        let results: Vec<Value> = widths.iter().map(|width| self.value(*width)).collect();
        let instruction = Instruction { results: results.clone(), op, span: Span::default() };
        self.function.blocks[self.current].instructions.push(instruction);
        results
    }

    pub fn one(&mut self, op: Op, width: u8) -> Value {
        self.all(op, &[width])[0]
    }

    pub fn none(&mut self, op: Op) {
        self.all(op, &[]);
    }

    pub fn end(&mut self, terminator: Terminator) {
        self.function.blocks[self.current].terminator = terminator;
    }

    pub fn constant(&mut self, width: u8, value: u128) -> Value {
        self.one(Op::Const(value & (u128::MAX >> (128 - u32::from(width)))), width)
    }

    /// `bytes` bytes from the start are there, else the packet is dropped for reason 1.
    pub fn need(&mut self, base: Value, bytes: u32) {
        let (ok, short) = (self.block(), self.block());
        self.end(Terminator::Need { base, bytes, more: None, limit: None, ok: to(ok), short: to(short) });
        self.at(short);
        self.end(Terminator::Drop(1));
        self.at(ok);
    }
}

pub fn to(block: BlockId) -> Target {
    Target { block, args: Vec::new() }
}

pub fn columns(widths: &[u8]) -> Vec<Column> {
    widths.iter().map(|&width| Column { name: String::new(), kind: ColumnKind::Uint, width }).collect()
}

pub fn table(keys: &[u8], values: &[u8], capacity: u32, evict: Eviction) -> Table {
    Table {
        name: format!("t{keys:?}{values:?}"),
        keys: columns(keys),
        values: columns(values),
        capacity,
        idle: None,
        age: None,
        lifetimes: false,
        evict,
        kind: ir::TableKind::Exact,
        counted: false,
        times: false,
        secret: false,
        releases: None,
        expires: None,
        entries: Vec::new(),
        file: None,
        default: None,
        span: Span::default(),
    }
}

/// A program of these functions, the first for packets, with the rights it needs.
pub fn program(functions: Vec<Build>) -> Program {
    let reason = |name: &str| Reason { name: name.to_string(), help: "it happened".to_string() };
    Program {
        name: "test".to_string(),
        reasons: vec![reason("no_such_port"), reason("short"), reason("other")],
        functions: functions.into_iter().map(|build| build.function).collect(),
        ..Program::default()
    }
}

/// Gives the program its rights.
pub fn allowed(mut program: Program) -> Program {
    program.manifest = ir::verify::derive_manifest(&program);
    program
}

/// What was seen of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub verdicts: Vec<Verdict>,
    pub packets: Vec<(Vec<u8>, u32)>,
    pub resized: Vec<(u32, exec::Resized)>,
    pub sent: Vec<(u16, u32, Vec<u8>, u32, u64, bool)>,
    pub raised: Vec<(u32, u64, u64, u32, Vec<u128>)>,
    pub tables: Vec<exec::TableReport>,
    pub entries: Vec<Vec<(ir::Entry, exec::EntryCount)>>,
    pub counters: Vec<Vec<(u64, u64)>>,
    pub events: Vec<u64>,
    pub lost: u64,
}

/// Runs all frames in batches of `size`; packet i enters at port i mod 4 + 1.
pub fn run(program: &Program, back_end: BackendKind, frames: &Frames, size: usize) -> Seen {
    let mut backend = load(program, back_end, 4, 7).unwrap_or_else(|error| panic!("{error}\n{program}"));
    let mut frames = frames.clone();
    let mut seen = Seen {
        verdicts: Vec::new(),
        packets: Vec::new(),
        resized: Vec::new(),
        sent: Vec::new(),
        raised: Vec::new(),
        tables: Vec::new(),
        entries: Vec::new(),
        counters: Vec::new(),
        events: Vec::new(),
        lost: 0,
    };
    let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
    for first in (0..frames.len()).step_by(size.min(BATCH)) {
        frames.fill(&mut batch, first..first + size.min(BATCH));
        for i in 0..batch.len {
            batch.port[i] = ((first + i) % 4) as u16 + 1;
        }
        outputs.clear();
        backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        seen.verdicts.extend_from_slice(batch.verdicts());
        let bytes = |i| batch.bytes(frames.memory(), i).unwrap_or_default().to_vec();
        seen.packets.extend((0..batch.len).map(|i| (bytes(i), batch.wire[i])));
        seen.resized.extend(
            outputs
                .resized
                .iter()
                .map(|change| (change.packet + first as u32, exec::Resized { packet: 0, ..*change })),
        );
        see(program, &outputs, first as u32, &mut seen);
    }
    finish(program, &*backend, &mut seen);
    seen
}

fn see(program: &Program, outputs: &Outputs, first: u32, seen: &mut Seen) {
    let cause = |cause: u32| if cause == exec::Output::BETWEEN { cause } else { cause + first };
    for sent in &outputs.packets {
        let bytes = outputs.bytes_of(sent).to_vec();
        seen.sent.push((sent.port, cause(sent.cause), bytes, sent.wire, sent.time, sent.copy));
    }
    for raised in &outputs.raised {
        let length = program.events[raised.event as usize].params.len();
        let args = outputs.arguments[raised.first as usize..][..length].to_vec();
        seen.raised.push((raised.event, raised.time, raised.delay, cause(raised.cause), args));
    }
}

fn finish(program: &Program, backend: &dyn Backend, seen: &mut Seen) {
    seen.tables = backend.tables();
    seen.entries = (0..program.tables.len() as u32).map(|table| backend.entries(table)).collect();
    seen.counters = (0..program.counters.len() as u32).map(|counter| backend.counter(counter)).collect();
    seen.events = backend.events();
    seen.lost = backend.lost_events();
}

/// All back ends see the same; gives what they saw. Without native code, tables have the forms that they have
/// in a confined core.
pub fn agree(program: &Program, frames: &Frames) -> Seen {
    let judge = run(program, BackendKind::Interpreter, frames, BATCH);
    let others = BackendKind::ALL.into_iter().filter(|kind| *kind != BackendKind::Interpreter);
    for (kind, size) in others.flat_map(|kind| [1, 7, BATCH].map(|size| (kind, size))) {
        let other = run(program, kind, frames, size);
        if other != judge {
            assert_eq!(other.verdicts, judge.verdicts, "verdicts, {kind:?}, batches of {size}\n{program}");
            assert_eq!(other.raised, judge.raised, "events, {kind:?}, batches of {size}\n{program}");
            assert_eq!(other.entries, judge.entries, "entries, {kind:?}, batches of {size}\n{program}");
            panic!("{kind:?}, batches of {size}: {other:?}\nbut the judge: {judge:?}\n{program}");
        }
    }
    judge
}
