//! The kernel's twin: runs one packet of a kernel in Rust, directly from the IR, over the same words that
//! devices get.
//!
//! The twin stops where the text stops, and gives the same result word, record and bytes. It shares with the
//! text the plan, the places of effects and the rule where a device gives up, but not how a step is done: it
//! uses the interpreter's arithmetic. So a difference between the two is a fault of the text, of a device's
//! compiler, or of this file.

use super::plan::{Effect, KernelPlan, PacketColumn};
use super::results::ResultPlace;
use super::searches::{DEFAULT, KernelSearch};
use super::shape::Shape;
use super::{CopiedPart, Kernel, instructions::key_bits, packed};
use crate::arithmetic::{binary, compare, largest};
use crate::pack::Packing;
use ir::{
    Answer, BlockId, Function, Instruction, NO_SUCH_PORT, Op, Program, TableKind, Target, Terminator, Value,
};
use packet::verdict::{Verdict, VerdictKind};
use tables::device::patterns::Occurrences;
use tables::device::{self, NONE};

/// A kernel that the host runs packet by packet.
#[derive(Clone, Debug)]
pub struct Twin {
    program: Program,
    shape: Shape,
    plan: KernelPlan,
    ports: u16,
}

impl Twin {
    /// The twin of a program's kernel; `ports` is what the kernel was made with.
    pub fn new(kernel: &Kernel, program: &Program, ports: u16) -> Twin {
        let shape = Shape::new(program, kernel.plan.has_least());
        Twin { program: program.clone(), shape, plan: kernel.plan.clone(), ports }
    }

    /// Runs one packet and returns its result. Arguments are its bytes, as many as the plan's stride, its
    /// columns in the plan's order, its record, and the words of the plan's tables. For frames in place, the
    /// bytes are in `all` instead.
    ///
    /// # Panics
    /// If there are fewer columns, words or tables than the plan says, or if words are no table's image.
    pub fn run(
        &self,
        bytes: &mut [u8],
        all: &[u8],
        columns: &[u32],
        record: &mut [u32],
        tables: &[&[u32]],
    ) -> u32 {
        let place = self.plan.columns.iter().position(|column| *column == PacketColumn::Place);
        if let Some(place) = place {
            let frame = all.get(columns[place] as usize * 16..).unwrap_or_default();
            let mut own = frame[..frame.len().min(self.plan.stride as usize)].to_vec();
            return self.run_one(&mut own, columns, record, tables);
        }
        self.run_one(bytes, columns, record, tables)
    }

    fn run_one(&self, bytes: &mut [u8], columns: &[u32], record: &mut [u32], tables: &[&[u32]]) -> u32 {
        let function = &self.program.functions[0];
        let lane = Lane {
            twin: self,
            function,
            values: vec![0; function.widths.len()],
            done: vec![0; self.plan.mask_words() as usize],
            marks: 0,
            bytes,
            columns,
            record,
            tables,
        };
        lane.run().unwrap_or(self.plan.results.again())
    }
}

/// The host must run the packet again.
struct Again;

/// A packet that is running.
struct Lane<'a> {
    twin: &'a Twin,
    function: &'a Function,
    values: Vec<u128>,
    /// The words of the record that say which effects happened.
    done: Vec<u32>,
    /// The bits of the result for effects.
    marks: u32,
    bytes: &'a mut [u8],
    columns: &'a [u32],
    record: &'a mut [u32],
    tables: &'a [&'a [u32]],
}

impl<'a> Lane<'a> {
    fn run(mut self) -> Result<u32, Again> {
        let shape = &self.twin.shape;
        if self.captured() > u64::from(*self.twin.plan.lengths.end()) {
            return Err(Again);
        }
        let mut fuel = vec![0_u32; shape.slots.iter().max().map_or(0, |most| *most as usize + 1)];
        let mut block = BlockId(0);
        loop {
            let end = shape.cut[block.0 as usize];
            let code = self.function.block(block);
            for (index, instruction) in code.instructions.iter().take(end.unwrap_or(usize::MAX)).enumerate() {
                self.instruction(instruction, (block, index))?;
            }
            if end.is_some() {
                return Err(Again);
            }
            let target = match &code.terminator {
                Terminator::Jump(target) => target,
                Terminator::Branch(condition, yes, no) => {
                    if self.at(*condition) != 0 {
                        yes
                    } else {
                        no
                    }
                }
                Terminator::Switch(value, cases, default) => {
                    let value = self.at(*value);
                    cases.iter().find(|(case, _)| *case == value).map_or(default, |(_, target)| target)
                }
                Terminator::Need { ok, .. } if self.twin.plan.has_least() => ok,
                Terminator::Need { base, bytes, more, limit, ok, short } => {
                    let end = self.end(*base, *bytes, *more);
                    let within = limit.is_none_or(|limit| u128::from(end) <= self.at(limit));
                    if end <= self.captured() && within { ok } else { short }
                }
                Terminator::Fuel { slot, cap, ok, out } => {
                    let fuel = &mut fuel[*slot as usize];
                    *fuel += 1;
                    if *fuel > *cap { out } else { ok }
                }
                end => return Ok(self.finish(self.verdict(end))),
            };
            block = self.enter(target);
        }
    }

    /// Assigns the arguments to the block's parameters, all at the same time.
    fn enter(&mut self, target: &Target) -> BlockId {
        let handed: Vec<u128> = target.args.iter().map(|arg| self.at(*arg)).collect();
        for (param, value) in self.function.block(target.block).params.iter().zip(handed) {
            self.values[param.0 as usize] = value;
        }
        target.block
    }

    fn verdict(&self, end: &Terminator) -> Verdict {
        match end {
            Terminator::Send(port) => match self.at(*port) {
                port @ 1.. if port <= self.twin.ports.into() => Verdict::new(VerdictKind::Send, port as u16),
                _ => Verdict::drop(NO_SUCH_PORT),
            },
            Terminator::Flood => Verdict::FLOOD,
            Terminator::Multicast(set) => Verdict::multicast(*set as u16),
            Terminator::Drop(reason) => Verdict::drop(*reason),
            Terminator::Punt(reason) => Verdict::punt(*reason),
            _ => Verdict::PENDING,
        }
    }

    /// The result; which effects happened is in it or at the beginning of the record.
    fn finish(&mut self, verdict: Verdict) -> u32 {
        let result = self.twin.plan.results.of(verdict, self.marks);
        self.record[..self.done.len()].copy_from_slice(&self.done);
        result
    }

    fn at(&self, value: Value) -> u128 {
        self.values[value.0 as usize]
    }

    fn set(&mut self, value: Value, number: u128) {
        self.values[value.0 as usize] = number & largest(self.function.width(value));
    }

    fn column(&self, column: PacketColumn) -> u64 {
        let place = self.twin.plan.columns.iter().position(|one| *one == column);
        place.map_or(0, |place| self.columns[place].into())
    }

    fn captured(&self) -> u64 {
        self.column(PacketColumn::Captured)
    }

    fn end(&self, base: Value, bytes: u32, more: Option<Value>) -> u64 {
        self.at(base) as u64 + u64::from(bytes) + more.map_or(0, |more| self.at(more) as u64)
    }

    /// The packet's bytes from `from` to `end`. If the program reads beyond the copied bytes, the host runs
    /// the packet again.
    fn part(&mut self, from: u64, end: u64) -> Result<&mut [u8], Again> {
        let plan = &self.twin.plan;
        if plan.checks_reach() && end > plan.stride.into() {
            return Err(Again);
        }
        let (mut from, mut end) = (from as usize, end as usize);
        if from > end {
            return Ok(&mut []);
        }
        if plan.over == CopiedPart::Packed {
            let place = packed::place(&plan.ranges, from as u32).ok_or(Again)? as usize;
            (from, end) = (place, place + end - from);
        }
        self.bytes.get_mut(from..end).ok_or(Again)
    }

    fn instruction(&mut self, instruction: &Instruction, site: (BlockId, usize)) -> Result<(), Again> {
        let number = match &instruction.op {
            Op::Const(number) => *number,
            Op::Binary(op, a, b) => binary(*op, self.function.width(*a), self.at(*a), self.at(*b)),
            Op::Compare(op, a, b) => compare(*op, self.at(*a), self.at(*b)).into(),
            Op::Select(condition, yes, no) => self.at(if self.at(*condition) != 0 { *yes } else { *no }),
            Op::Resize(value) => self.at(*value),
            Op::Load { base, offset, bytes, .. } => {
                let from = self.at(*base) as u64 + u64::from(*offset);
                let part = self.part(from, from + u64::from(*bytes))?;
                part.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
            }
            Op::Store { base, offset, bytes, value, .. } => {
                let (from, value) = (self.at(*base) as u64 + u64::from(*offset), self.at(*value));
                let count = usize::from(*bytes);
                let part = self.part(from, from + count as u64)?;
                part.copy_from_slice(&value.to_be_bytes()[16 - count..]);
                return Ok(());
            }
            Op::Checksum { base, bytes, more } => {
                let end = self.end(*base, *bytes, *more).min(self.captured());
                let from = self.at(*base) as u64;
                packet::checksum::sum(self.part(from, end)?).into()
            }
            Op::InPort => self.column(PacketColumn::Port).into(),
            Op::WireLength => self.column(PacketColumn::Wire).into(),
            Op::Captured => self.captured().into(),
            Op::Now => {
                (self.column(PacketColumn::TimeHigh) << 32 | self.column(PacketColumn::TimeLow)).into()
            }
            Op::Lookup { table, key } => {
                return self.lookup(*table, key, &instruction.results, site);
            }
            Op::Learn { table, key, value } => {
                self.learn(*table, key, value, site)?;
                1
            }
            Op::Remove { table, key } => match self.find_exact(*table, key) {
                (_, NONE) => 0,
                _ => return Err(Again),
            },
            Op::Scan { table, start, end } => {
                return self.scan(*table, *start, *end, &instruction.results, site);
            }
            Op::Count { counter, index } => {
                let size = self.twin.program.counters[*counter as usize].size;
                let index = index.map_or(0, |index| self.at(index));
                if index < u128::from(size) {
                    self.note(site, &[index as u64])?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(result) = instruction.results.first() {
            self.set(*result, number);
        }
        Ok(())
    }

    /// Notes that the effect of this instruction happened, with the data that commit needs.
    fn note(&mut self, site: (BlockId, usize), words: &[u64]) -> Result<(), Again> {
        let Some(&index) = self.twin.shape.sites.get(&site) else { return Ok(()) };
        let done = self.twin.plan.done[index];
        match done.word {
            Some(word) => self.done[word as usize] |= 1 << done.shift,
            None => self.marks |= 1 << done.shift,
        }
        match self.twin.plan.effects[index] {
            Effect::Count { cell: None, .. } => {}
            Effect::Count { cell: Some(place), .. }
            | Effect::Row { row: place, .. }
            | Effect::Confirm { entry: place, .. } => return self.put(place, words[0] as u32),
            Effect::Ask { table, key } => {
                if key_bits(&Packing::new(&self.twin.program.tables[table as usize].keys)).is_some() {
                    return self.put(key, words[0] as u32);
                }
                let halves = words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
                let record = &mut self.record[key.word.unwrap_or(0) as usize..];
                record.iter_mut().zip(halves).for_each(|(place, half)| *place = half);
            }
        }
        Ok(())
    }

    /// Stores a number at a place.
    fn put(&mut self, place: ResultPlace, number: u32) -> Result<(), Again> {
        match place.word {
            Some(word) => self.record[word as usize] = number,
            None if number > place.most() => return Err(Again),
            None => self.marks |= number << place.shift,
        }
        Ok(())
    }

    /// The words of a table, and how it is searched.
    fn table(&self, table: u32) -> (&'a [u32], KernelSearch) {
        let place = self.twin.plan.tables.iter().position(|one| *one == table).unwrap_or_default();
        (self.tables[place], self.twin.plan.searches[place])
    }

    fn packed(&self, packing: &Packing, columns: &[Value]) -> Vec<u64> {
        let mut words = vec![0; packing.words];
        packing.pack(columns.iter().map(|column| self.at(*column)), &mut words);
        words
    }

    /// The words of a key, and where the value of its entry begins in the table, or [`NONE`].
    fn find_exact(&self, table: u32, key: &[Value]) -> (Vec<u64>, u32) {
        let key = self.packed(&Packing::new(&self.twin.program.tables[table as usize].keys), key);
        let words = self.table(table).0;
        let at = match device::exact::find(&words[words[1] as usize..], &key) {
            NONE => NONE,
            at => words[1] + at,
        };
        (key, at)
    }

    fn lookup(
        &mut self,
        table: u32,
        key: &[Value],
        results: &[Value],
        site: (BlockId, usize),
    ) -> Result<(), Again> {
        let declared = &self.twin.program.tables[table as usize];
        let (words, search) = self.table(table);
        let image = &words[words[1] as usize..];
        let value = Packing::new(&declared.values);
        let (mut noted, row) = match search {
            KernelSearch::Exact => self.find_exact(table, key),
            KernelSearch::Prefixes => {
                let address = key.iter().fold(0, |address: u128, column| {
                    let width = self.function.width(*column);
                    address.checked_shl(width.into()).unwrap_or(0) | self.at(*column)
                });
                (Vec::new(), device::lpm::find(image, address))
            }
            _ => {
                let key = self.packed(&Packing::apart(&declared.keys), key);
                let linear = search == KernelSearch::RulesLinear;
                let find = if linear { device::rules::find_linear } else { device::rules::find };
                (Vec::new(), find(image, &key))
            }
        };
        let place = match (row, search) {
            (NONE, _) => (words[0] != 0).then_some(DEFAULT),
            (at, KernelSearch::Exact) => Some(at as usize),
            (row, _) => Some(words[2] as usize + row as usize * 2 * value.words),
        };
        if search != KernelSearch::Exact {
            noted = vec![row.into()];
        }
        // The absence of an entry can change, too, so it is reported as well.
        if row != NONE || search == KernelSearch::Exact {
            self.note(site, &noted)?;
        }
        self.unpack(words, place, &value, results);
        Ok(())
    }

    /// Assigns the results of a search, from the row at a place.
    fn unpack(&mut self, words: &[u32], place: Option<usize>, value: &Packing, results: &[Value]) {
        let [found, columns @ ..] = results else { return };
        self.set(*found, place.is_some().into());
        let row = place.map(|place| longs(&words[place..], value.words));
        for (place, column) in value.places.iter().zip(columns) {
            self.set(*column, row.as_ref().map_or(0, |row| Packing::unpack_one(place, row)));
        }
    }

    fn learn(
        &mut self,
        table: u32,
        key: &[Value],
        value: &[Value],
        site: (BlockId, usize),
    ) -> Result<(), Again> {
        let (key, at) = self.find_exact(table, key);
        let packing = Packing::new(&self.twin.program.tables[table as usize].values);
        let value = self.packed(&packing, value);
        if at == NONE || longs(&self.table(table).0[at as usize..], packing.words) != value {
            return Err(Again);
        }
        let at = at - self.table(table).0[1];
        self.note(site, &[device::exact::slot_of(at, key.len(), packing.words).into()])
    }

    fn scan(
        &mut self,
        table: u32,
        start: Value,
        end: Value,
        results: &[Value],
        site: (BlockId, usize),
    ) -> Result<(), Again> {
        let declared = &self.twin.program.tables[table as usize];
        let words = self.table(table).0;
        let end = self.at(end).min(self.captured().into()) as usize;
        let start = (self.at(start) as usize).min(end);
        let searched = self.bytes.get(start..end).unwrap_or_default();
        let occurrences = Occurrences::new(&words[words[1] as usize..], searched);
        match (declared.kind, results) {
            (TableKind::Patterns(Answer::All), [result]) => self.set(*result, occurrences.count().into()),
            (TableKind::Patterns(Answer::Set), [result]) => self.set(*result, occurrences.set()),
            _ => {
                let row = match occurrences.first() {
                    NONE => None,
                    pattern => Some(occurrences.value(pattern)),
                };
                let value = Packing::new(&declared.values);
                if let Some(row) = row {
                    self.note(site, &[row.into()])?;
                }
                let place = row.map(|row| words[2] as usize + row as usize * 2 * value.words);
                self.unpack(words, place, &value, results);
            }
        }
        Ok(())
    }
}

/// So many 64-bit words, the less significant half first.
fn longs(words: &[u32], count: usize) -> Vec<u64> {
    let halves = words[..2 * count].as_chunks().0;
    halves.iter().map(|[low, high]| u64::from(*low) | u64::from(*high) << 32).collect()
}
