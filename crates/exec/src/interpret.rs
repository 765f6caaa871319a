//! The interpreter, the reference for every other back end. Values are numbers of 128 bits, and every step
//! follows the definition of the IR.

mod memory;
mod observe;

pub use observe::{Observer, Silent};

use crate::arithmetic::{binary, compare, largest};
use crate::errors::LoadError;
use crate::execution::{Engine, Execution};
use crate::inspect::{Draft, Measurable, Measured};
use crate::one_by_one::{OneByOne, Packet};
use crate::outputs::{self, Cause, Outputs, appended};
use crate::pack::{Packing, WIDEST_KEY};
use crate::reports::BackendKind;
use crate::stages::StageClock;
use crate::state::reference::Reference;
use crate::state::table_set::{TableFamily, TablePlace};
use crate::state::{ProgramState, RunHandler};
use ir::{
    BlockId, Entry, Function, Instruction, Match, NO_SUCH_PORT, Op, Program, Terminator, Value, checksum,
};
use packet::batch::Batch;
use packet::fragment::Fragmenting;
use packet::verdict::Verdict;
use std::borrow::Borrow;
use tables::exact::{Exact, Learned};

/// A program run step by step.
pub type Interpreter<O = Silent> = Execution<Reference, AbstractMachine<O>>;

impl Interpreter {
    /// An interpreter without an observer; see [`crate::load()`] for the arguments.
    pub fn new(program: &Program, ports: u16, seed: u64) -> Result<Interpreter, LoadError> {
        Interpreter::with_observer(program, ports, seed, Silent)
    }
}

impl<O: Observer> Interpreter<O> {
    /// An interpreter whose every step is shown to `observer`.
    pub fn with_observer(program: &Program, ports: u16, seed: u64, observer: O) -> Result<Self, LoadError> {
        crate::verify::verify(program)?;
        let state = ProgramState::new(program, ports, seed)?;
        Ok(Interpreter { state, engine: AbstractMachine::new(program.clone(), ports, observer) })
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.engine.observer
    }
}

impl<F: TableFamily, O: Observer + Send, P: Borrow<Program> + Send> Engine<F> for AbstractMachine<O, P> {
    const BACK_END: BackendKind = BackendKind::Interpreter;

    fn run(
        &mut self,
        state: &mut ProgramState<F>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        self.run_all(state, memory, batch, outputs);
    }
}

impl<F: TableFamily, O: Observer + Send, P: Borrow<Program> + Send> Measurable<F> for AbstractMachine<O, P> {
    fn run_measured(
        &mut self,
        state: &mut ProgramState<F>,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool {
        clock.begin(batch.len);
        let program: &Program = self.program.borrow();
        Engine::run(
            &mut AbstractMachine::new(program, self.ports, &mut *clock),
            state,
            memory,
            batch,
            outputs,
        );
        clock.leave();
        true
    }

    /// The interpreter measures any program without a second variant.
    fn draft(&self) -> Option<Draft> {
        None
    }

    fn adopt(&mut self, _: Measured) {}
}

/// The interpreter's engine: it runs functions on a state that it does not own.
pub struct AbstractMachine<O, P = Program> {
    program: P,
    ports: u16,
    observer: O,
    slots: Vec<u64>,
    values: Vec<u128>,
}

impl<F: TableFamily, O: Observer, P: Borrow<Program>> OneByOne<F> for AbstractMachine<O, P> {
    fn run_packet(
        &mut self,
        state: &mut ProgramState<F>,
        packet: &mut Packet<'_>,
        outputs: &mut Outputs,
    ) -> Verdict {
        self.call(state, 0, &[], Some(packet), outputs)
    }

    fn begins(&mut self, index: usize, time: u64) {
        self.observer.packet(index, time);
    }

    fn ends(&mut self, index: usize) {
        self.observer.packet_end(index);
    }
}

impl<F: TableFamily, O: Observer, P: Borrow<Program>> RunHandler<F> for AbstractMachine<O, P> {
    fn run_handler(
        &mut self,
        state: &mut ProgramState<F>,
        function: u32,
        args: &[u128],
        outputs: &mut Outputs,
    ) {
        self.observer.handler(function, args, state.now);
        self.call(state, function, args, None, outputs);
    }
}

impl<O: Observer, P: Borrow<Program>> AbstractMachine<O, P> {
    /// One that has not run anything yet.
    pub(crate) fn new(program: P, ports: u16, observer: O) -> AbstractMachine<O, P> {
        let slots = vec![0; program.borrow().slots as usize];
        AbstractMachine { program, ports, observer, slots, values: Vec::new() }
    }

    /// Runs a function to its end; [`Verdict::PENDING`] for a handler.
    fn call<F: TableFamily>(
        &mut self,
        state: &mut ProgramState<F>,
        index: u32,
        args: &[u128],
        packet: Option<&mut Packet<'_>>,
        outputs: &mut Outputs,
    ) -> Verdict {
        let AbstractMachine { program, ports, observer, slots, values } = self;
        let program: &Program = (*program).borrow();
        let function = &program.functions[index as usize];
        slots.fill(0);
        values.clear();
        values.resize(function.widths.len(), 0);
        for (param, arg) in function.blocks[0].params.iter().zip(args) {
            values[param.0 as usize] = *arg;
        }
        let mut run =
            Run { program, ports: *ports, observer, slots, values, function, index, state, packet, outputs };
        let mut block = BlockId(0);
        loop {
            for instruction in &function.block(block).instructions {
                run.instruction(instruction);
            }
            let next = run.terminator(&function.block(block).terminator);
            run.observer.terminator(index, block, next.as_ref().map(|target| target.block).ok());
            match next {
                Ok(target) => {
                    block = target.block;
                    run.enter(target);
                }
                Err(verdict) => return verdict,
            }
        }
    }
}

/// One run of one function.
struct Run<'a, 'p, O, F: TableFamily> {
    program: &'a Program,
    ports: u16,
    observer: &'a mut O,
    slots: &'a mut [u64],
    values: &'a mut [u128],
    function: &'a Function,
    index: u32,
    state: &'a mut ProgramState<F>,
    packet: Option<&'a mut Packet<'p>>,
    outputs: &'a mut Outputs,
}

impl<O: Observer, F: TableFamily> Run<'_, '_, O, F> {
    fn value(&self, value: Value) -> u128 {
        self.values[value.0 as usize]
    }

    fn all(&self, values: &[Value]) -> Vec<u128> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn captured(&self) -> usize {
        self.packet.as_ref().map_or(0, |packet| packet.bytes.captured())
    }

    fn wire(&self) -> u32 {
        self.packet.as_ref().map_or(0, |packet| packet.bytes.wire())
    }

    /// The captured bytes at `base + offset`; the verifier has shown that they are there.
    fn bytes(&mut self, base: Value, offset: u32, bytes: u8) -> &mut [u8] {
        let start = self.value(base) as usize + offset as usize;
        let packet =
            self.packet.as_mut().expect("the verifier admits loads and stores in the packet function only");
        &mut packet.bytes.bytes_mut()[start..start + usize::from(bytes)]
    }

    fn packed(&self, packing: &Packing, columns: &[Value]) -> ([u64; WIDEST_KEY], usize) {
        let mut words = [0; WIDEST_KEY];
        packing.pack(columns.iter().map(|&column| self.value(column)), &mut words[..packing.words]);
        (words, packing.words)
    }

    fn key(&self, table: u32, columns: &[Value]) -> ([u64; WIDEST_KEY], usize) {
        self.packed(&self.state.tables.shapes[table as usize].key, columns)
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let results = self.op(instruction);
        for (result, value) in instruction.results.iter().zip(&results) {
            self.values[result.0 as usize] = *value;
        }
        self.observer.instruction(self.index, instruction, &results);
    }

    /// Runs an instruction and returns its results.
    fn op(&mut self, instruction: &Instruction) -> Vec<u128> {
        let one = |value: u128| vec![value];
        match &instruction.op {
            Op::Const(value) => one(*value),
            Op::Binary(op, a, b) => one(binary(*op, self.function.width(*a), self.value(*a), self.value(*b))),
            Op::Compare(op, a, b) => one(compare(*op, self.value(*a), self.value(*b)).into()),
            Op::Select(condition, yes, no) => {
                one(if self.value(*condition) == 1 { self.value(*yes) } else { self.value(*no) })
            }
            Op::Resize(value) => {
                let width = instruction.results.first().map_or(128, |result| self.function.width(*result));
                one(self.value(*value) & largest(width))
            }
            Op::Load { base, offset, bytes, .. } => {
                let loaded = self.bytes(*base, *offset, *bytes);
                one(loaded.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
            }
            Op::Store { base, offset, bytes, value, .. } => {
                let big_endian = self.value(*value).to_be_bytes();
                self.bytes(*base, *offset, *bytes).copy_from_slice(&big_endian[16 - usize::from(*bytes)..]);
                Vec::new()
            }
            Op::Checksum { base, bytes, more } => {
                let start = self.value(*base) as usize;
                let more = more.map_or(0, |more| self.value(more) as usize);
                let end = (start + *bytes as usize + more).min(self.captured());
                let frame: &[u8] = self.packet.as_ref().map_or(&[], |packet| packet.bytes.bytes());
                one(checksum::sum(frame.get(start..end).unwrap_or_default()).into())
            }
            Op::InPort => one(self.packet.as_ref().map_or(0, |packet| packet.in_port).into()),
            Op::WireLength => one(self.wire().into()),
            Op::Captured => one(self.captured() as u128),
            Op::Now => one(self.state.now.into()),
            Op::Count { counter, index } => {
                let index = index.map_or(0, |index| self.value(index) as u64);
                let wire = self.wire();
                self.state.count(*counter, index, wire.into());
                Vec::new()
            }
            Op::Keep(_) => Vec::new(),
            Op::EnterStage(stage) => {
                self.observer.stage(*stage);
                Vec::new()
            }
            Op::Header { layout, base, name } => {
                let base = self.value(*base) as u32;
                self.observer.header(*layout, base, name);
                Vec::new()
            }
            Op::Lookup { .. }
            | Op::Learn { .. }
            | Op::HasRoom(_)
            | Op::Remove { .. }
            | Op::EndAfter { .. }
            | Op::SetDefault { .. }
            | Op::ClearDefault(_) => self.table_op(&instruction.op),
            Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) | Op::Fragment { .. } => {
                self.resize(&instruction.op)
            }
            Op::Raise { .. } | Op::Copy(_) | Op::Emit { .. } => {
                self.output(&instruction.op);
                Vec::new()
            }
            Op::Scan { .. }
            | Op::Insert { .. }
            | Op::Withdraw { .. }
            | Op::Mark { .. }
            | Op::ReadRegister { .. }
            | Op::WriteRegister { .. }
            | Op::Take { .. }
            | Op::Give { .. }
            | Op::Choose { .. }
            | Op::Member { .. }
            | Op::Join { .. }
            | Op::Leave { .. } => self.memory_op(&instruction.op),
        }
    }

    fn table_op(&mut self, op: &Op) -> Vec<u128> {
        match op {
            Op::Lookup { table, key } => {
                let columns = self.find(*table, key);
                let key = self.all(key);
                self.observer.lookup(*table, &key, columns.as_deref());
                self.optional(columns, self.state.tables.shapes[*table as usize].value.places.len())
            }
            Op::Learn { table, key, value } => {
                let (key_words, key_length) = self.key(*table, key);
                let (words, length) = self.packed(&self.state.tables.shapes[*table as usize].value, value);
                let learned = self.state.learn_releasing(*table, &key_words[..key_length], &words[..length]);
                let (key, value) = (self.all(key), self.all(value));
                self.observer.learn(*table, &key, &value, learned);
                vec![u128::from(learned != Learned::Refused)]
            }
            Op::HasRoom(keys) => {
                let listed = keys.iter().map(|(table, key)| {
                    let (words, length) = self.key(*table, key);
                    (*table, self.held(*table, &words[..length]))
                });
                let listed: Vec<(u32, bool)> = listed.collect();
                vec![u128::from(self.state.has_room(&listed))]
            }
            Op::Remove { table, key } => {
                let (words, length) = self.key(*table, key);
                self.state.remove_releasing(*table, &words[..length]);
                Vec::new()
            }
            Op::EndAfter { table, key, after } => {
                let (words, length) = self.key(*table, key);
                let after = self.value(*after) as u64;
                self.state.end_after(*table, &words[..length], after);
                Vec::new()
            }
            Op::SetDefault { table, value } => {
                let columns = self.all(value);
                self.state.set_default(*table, Some(&columns));
                Vec::new()
            }
            Op::ClearDefault(table) => {
                self.state.set_default(*table, None);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn resize(&mut self, op: &Op) -> Vec<u128> {
        let number = |value: &Value| self.values[value.0 as usize];
        let Some(packet) = &mut self.packet else { return Vec::new() };
        match op {
            Op::PushBytes { at, template, values } => {
                let template = &self.program.templates[*template as usize];
                let at = number(at) as usize;
                let done = outputs::push(&mut packet.bytes, at, template, values.iter().map(number));
                if done {
                    self.observer.resized(packet.bytes.bytes());
                }
                vec![done.into()]
            }
            Op::PopBytes { at, bytes } => {
                packet.bytes.pop(number(at) as usize, number(bytes) as usize);
                self.observer.resized(packet.bytes.bytes());
                Vec::new()
            }
            Op::Truncate(length) => {
                packet.bytes.truncate(number(length) as u32);
                self.observer.resized(packet.bytes.bytes());
                Vec::new()
            }
            Op::Fragment { at, mtu } => {
                let fragmenting = Fragmenting { at: number(at) as u32, mtu: number(mtu) as u32 };
                packet.bytes.set_fragmenting(Some(fragmenting));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Bytes of the packet are to be sent.
    fn finish_checksum(&mut self) {
        if let Some(packet) = &mut self.packet {
            self.outputs.finish_checksum(self.state.cause, packet.bytes.bytes_mut());
        }
    }

    fn output(&mut self, op: &Op) {
        let cause = Cause { packet: self.state.cause, time: self.state.now, wire: self.wire() };
        match op {
            Op::Raise { event, args, delay } => {
                let args = self.all(args);
                let delay = delay.map(|delay| self.value(delay) as u64);
                self.state.raise(*event, args.into_iter(), delay, self.outputs);
            }
            Op::Copy(port) => {
                let port = self.value(*port) as u16;
                self.finish_checksum();
                let frame: &[u8] = self.packet.as_ref().map_or(&[], |packet| packet.bytes.bytes());
                self.outputs.copy(frame, cause, port);
            }
            Op::Emit { template, values, tail, limit, port } => {
                let limit = limit.map_or(u32::MAX, |limit| self.value(limit) as u32);
                let port = self.value(*port) as u16;
                let (values, tail) = (self.all(values), tail.map(|tail| self.value(tail) as usize));
                self.finish_checksum();
                let frame: &[u8] = self.packet.as_ref().map_or(&[], |packet| packet.bytes.bytes());
                let (rest, wire) = appended(frame, cause.wire, tail, limit);
                let template = &self.program.templates[*template as usize];
                self.outputs.emit(template, values, rest, Cause { wire, ..cause }, port);
            }
            _ => {}
        }
    }

    /// Runs the end of a block: the next block with its arguments, or the verdict.
    fn terminator<'t>(&mut self, terminator: &'t Terminator) -> Result<&'t ir::Target, Verdict> {
        match terminator {
            Terminator::Jump(target) => Ok(target),
            Terminator::Branch(condition, yes, no) => Ok(if self.value(*condition) == 1 { yes } else { no }),
            Terminator::Switch(value, cases, default) => {
                let value = self.value(*value);
                Ok(cases.iter().find(|(case, _)| *case == value).map_or(default, |(_, target)| target))
            }
            Terminator::Need { base, bytes, more, limit, ok, short } => {
                let more = more.map_or(0, |more| self.value(more));
                let end = self.value(*base) + u128::from(*bytes) + more;
                let fits =
                    end <= self.captured() as u128 && limit.is_none_or(|limit| end <= self.value(limit));
                Ok(if fits { ok } else { short })
            }
            Terminator::Fuel { slot, cap, ok, out } => {
                let slot = &mut self.slots[*slot as usize];
                *slot += 1;
                Ok(if *slot > u64::from(*cap) { out } else { ok })
            }
            Terminator::Send(port) => {
                let port = self.value(*port) as u16;
                Err(if has_port(self.ports, port) {
                    Verdict::send(port)
                } else {
                    Verdict::drop(NO_SUCH_PORT)
                })
            }
            Terminator::Flood => Err(Verdict::FLOOD),
            Terminator::Multicast(set) => Err(Verdict::multicast(*set as u16)),
            Terminator::Drop(reason) => Err(Verdict::drop(*reason)),
            Terminator::Punt(reason) => Err(Verdict::punt(*reason)),
            Terminator::Done => Err(Verdict::PENDING),
        }
    }

    /// Assigns the arguments to the block's parameters, all at the same time.
    fn enter(&mut self, target: &ir::Target) {
        let args = self.all(&target.args);
        for (param, arg) in self.function.block(target.block).params.iter().zip(args) {
            self.values[param.0 as usize] = arg;
        }
    }
}

/// Whether there is such a port.
fn has_port(ports: u16, port: u16) -> bool {
    (1..=ports).contains(&port)
}
