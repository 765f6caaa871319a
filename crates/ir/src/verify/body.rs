//! Checks each instruction and edge by itself: indexes, single assignment, widths, and what only the packet
//! function may do.

use std::collections::HashSet;

use super::*;
use crate::limits::LARGEST_CAP;

/// Checks one function without regard to paths.
pub(super) fn check(program: &Program, index: usize, function: &Function, errors: &mut Vec<VerifyError>) {
    let mut checker = Checker {
        program,
        function,
        packet: index == 0,
        errors,
        place: FaultPlace { function: Some(index), ..FaultPlace::default() },
    };
    checker.values();
    for (index, block) in function.blocks.iter().enumerate() {
        checker.place.block = Some(BlockId(index as u32));
        for (index, instruction) in block.instructions.iter().enumerate() {
            checker.place.instruction = Some(index);
            checker.instruction(instruction);
        }
        checker.place.instruction = Some(block.instructions.len());
        checker.terminator(&block.terminator);
    }
}

pub(super) struct Checker<'a> {
    pub(super) program: &'a Program,
    function: &'a Function,
    packet: bool,
    errors: &'a mut Vec<VerifyError>,
    place: FaultPlace,
}

impl Checker<'_> {
    pub(super) fn report(&mut self, fault: Fault) {
        self.errors.push(VerifyError { place: self.place, fault });
    }

    /// Widths, the entry, and that each value is made at most once.
    fn values(&mut self) {
        for (index, &width) in self.function.widths.iter().enumerate() {
            if !(1..=128).contains(&width) {
                self.report(Fault::ValueWidth(Value(index as u32)));
            }
        }
        for (value, ..) in &self.function.names {
            self.width(*value);
        }
        match self.function.blocks.first() {
            None => self.report(Fault::NoBlocks),
            Some(entry) if self.packet && !entry.params.is_empty() => self.report(Fault::PacketParams),
            Some(_) => {}
        }
        let mut made = vec![false; self.function.widths.len()];
        for (index, block) in self.function.blocks.iter().enumerate() {
            self.place.block = Some(BlockId(index as u32));
            for value in block.params.iter().chain(block.instructions.iter().flat_map(|step| &step.results)) {
                match made.get_mut(value.0 as usize) {
                    None => self.report(Fault::NoSuchValue(*value)),
                    Some(true) => self.report(Fault::MadeTwice(*value)),
                    Some(made) => *made = true,
                }
            }
        }
        self.place.block = None;
    }

    /// The width of a value; reports and gives none if it does not exist.
    fn width(&mut self, value: Value) -> Option<u8> {
        let width = self.function.widths.get(value.0 as usize).copied();
        if width.is_none() {
            self.report(Fault::NoSuchValue(value));
        }
        width
    }

    pub(super) fn is_wide(&mut self, value: Value, due: u8) {
        if self.width(value).is_some_and(|width| width != due) {
            self.report(Fault::Width { value, due });
        }
    }

    pub(super) fn are_wide(&mut self, values: &[Value], due: &[u8]) {
        if values.len() != due.len() {
            self.report(Fault::Operands { due: due.len(), found: values.len() });
        }
        for (value, due) in values.iter().zip(due) {
            self.is_wide(*value, *due);
        }
    }

    pub(super) fn results(&mut self, results: &[Value], due: &[u8]) {
        if results.len() != due.len() {
            return self.report(Fault::Results { due: due.len(), found: results.len() });
        }
        // Results that do not exist were reported by `values`.
        for (&value, &due) in results.iter().zip(due) {
            if self.function.widths.get(value.0 as usize).is_some_and(|width| *width != due) {
                self.report(Fault::Width { value, due });
            }
        }
    }

    /// The only result with its width.
    fn result(&mut self, results: &[Value]) -> Option<u8> {
        if let [value] = results {
            return self.function.widths.get(value.0 as usize).copied();
        }
        self.report(Fault::Results { due: 1, found: results.len() });
        None
    }

    pub(super) fn packet_only(&mut self) {
        if !self.packet {
            self.report(Fault::PacketOnly);
        }
    }

    /// The widths of a table's key and value columns.
    pub(super) fn table(&mut self, index: u32) -> Option<(Vec<u8>, Vec<u8>)> {
        let Some(table) = self.program.tables.get(index as usize) else {
            self.report(Fault::NoSuch("table", index));
            return None;
        };
        Some((widths(&table.keys), widths(&table.values)))
    }

    pub(super) fn exists(&mut self, what: &'static str, index: u32, count: usize) -> bool {
        let exists = (index as usize) < count;
        if !exists {
            self.report(Fault::NoSuch(what, index));
        }
        exists
    }

    /// The values that fill the holes of a template.
    fn holes(&mut self, template: u32, values: &[Value]) {
        if self.exists("template", template, self.program.templates.len()) {
            let holes = &self.program.templates[template as usize].holes;
            self.are_wide(values, &holes.iter().map(|hole| hole.width).collect::<Vec<u8>>());
        }
    }

    /// Results of which the first one says whether there is something.
    pub(super) fn found(&mut self, results: &[Value], columns: &[u8]) {
        self.results(results, &[&[1], columns].concat());
    }

    fn access(&mut self, base: Value, bytes: u8) {
        self.packet_only();
        self.is_wide(base, 32);
        if !(1..=16).contains(&bytes) {
            self.report(Fault::AccessSize(bytes));
        }
    }

    // Longer than 80 lines: one flat match over all instructions.
    fn instruction(&mut self, instruction: &Instruction) {
        let results = &instruction.results[..];
        match &instruction.op {
            Op::Const(number) => {
                if self.result(results).is_some_and(|width| !fits(*number, width)) {
                    self.report(Fault::Constant(*number));
                }
            }
            Op::Binary(_, left, right) => {
                if let Some(width) = self.result(results) {
                    self.are_wide(&[*left, *right], &[width; 2]);
                }
            }
            Op::Compare(_, left, right) => {
                self.results(results, &[1]);
                if let Some(width) = self.width(*left) {
                    self.is_wide(*right, width);
                }
            }
            Op::Select(condition, yes, no) => {
                self.is_wide(*condition, 1);
                if let Some(width) = self.result(results) {
                    self.are_wide(&[*yes, *no], &[width; 2]);
                }
            }
            Op::Resize(value) => {
                self.width(*value);
                self.result(results);
            }
            Op::Load { base, bytes, .. } => {
                self.access(*base, *bytes);
                self.results(results, &[bytes.saturating_mul(8)]);
            }
            Op::Store { base, bytes, value, .. } => {
                self.access(*base, *bytes);
                self.is_wide(*value, bytes.saturating_mul(8));
                self.results(results, &[]);
            }
            Op::Checksum { base, bytes, more } => {
                self.packet_only();
                self.is_wide(*base, 32);
                more.iter().for_each(|more| self.is_wide(*more, 32));
                if more.is_some() && bytes % 2 == 1 {
                    self.report(Fault::OddSum(*bytes));
                }
                self.results(results, &[16]);
            }
            Op::InPort => {
                self.packet_only();
                self.results(results, &[16]);
            }
            Op::WireLength | Op::Captured => {
                self.packet_only();
                self.results(results, &[32]);
            }
            Op::Now => self.results(results, &[64]),
            Op::Lookup { table, key } => {
                self.kind_is(*table, |kind| !matches!(kind, TableKind::Patterns(_)));
                if let Some((keys, values)) = self.table(*table) {
                    self.are_wide(key, &keys);
                    self.found(results, &values);
                }
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
            | Op::Leave { .. } => self.memory(&instruction.op, results),
            Op::Learn { table, key, value } => {
                self.results(results, &[1]);
                self.kind_is(*table, |kind| kind == TableKind::Exact);
                if let Some((keys, values)) = self.table(*table) {
                    self.are_wide(key, &keys);
                    self.are_wide(value, &values);
                    let table_fields = &self.program.tables[*table as usize];
                    if table_fields.idle.is_none() && table_fields.age.is_none() {
                        self.report(Fault::NoExpiry(*table));
                    }
                }
            }
            Op::HasRoom(listed) => {
                self.results(results, &[1]);
                for (table, key) in listed {
                    self.kind_is(*table, |kind| kind == TableKind::Exact);
                    if let Some((keys, _)) = self.table(*table) {
                        self.are_wide(key, &keys);
                    }
                }
            }
            Op::Remove { table, key } => {
                self.kind_is(*table, |kind| kind == TableKind::Exact);
                self.results(results, &[]);
                if let Some((keys, _)) = self.table(*table) {
                    self.are_wide(key, &keys);
                }
            }
            Op::EndAfter { table, key, after } => {
                self.results(results, &[]);
                self.is_wide(*after, 64);
                if let Some((keys, _)) = self.table(*table) {
                    self.are_wide(key, &keys);
                    if !self.program.tables[*table as usize].lifetimes {
                        self.report(Fault::NoLifetimes(*table));
                    }
                }
            }
            Op::SetDefault { table, value } => {
                self.results(results, &[]);
                self.kind_is(*table, |kind| !matches!(kind, TableKind::Patterns(_)));
                if let Some((_, values)) = self.table(*table) {
                    self.are_wide(value, &values);
                }
            }
            Op::ClearDefault(table) => {
                self.results(results, &[]);
                self.kind_is(*table, |kind| !matches!(kind, TableKind::Patterns(_)));
                self.table(*table);
            }
            Op::Count { counter, index } => {
                self.results(results, &[]);
                if self.exists("counter", *counter, self.program.counters.len())
                    && index.is_none()
                    && self.program.counters[*counter as usize].size > 1
                {
                    self.report(Fault::NoIndex(*counter));
                }
                index.iter().for_each(|index| self.is_wide(*index, 32));
            }
            Op::Raise { event, args, delay } => {
                self.results(results, &[]);
                if self.exists("event", *event, self.program.events.len()) {
                    self.are_wide(args, &widths(&self.program.events[*event as usize].params));
                }
                delay.iter().for_each(|delay| self.is_wide(*delay, 64));
            }
            Op::Copy(port) => {
                self.packet_only();
                self.results(results, &[]);
                self.is_wide(*port, 16);
            }
            Op::Emit { template, values, tail, limit, port } => {
                self.results(results, &[]);
                self.holes(*template, values);
                if let Some(position) = tail {
                    self.packet_only();
                    self.is_wide(*position, 32);
                }
                limit.iter().for_each(|limit| self.is_wide(*limit, 32));
                self.is_wide(*port, 16);
            }
            Op::PushBytes { at, template, values } => {
                self.packet_only();
                self.results(results, &[1]);
                self.is_wide(*at, 32);
                self.holes(*template, values);
            }
            Op::PopBytes { at, bytes: other } | Op::Fragment { at, mtu: other } => {
                self.packet_only();
                self.results(results, &[]);
                self.are_wide(&[*at, *other], &[32; 2]);
            }
            Op::Truncate(length) => {
                self.packet_only();
                self.results(results, &[]);
                self.is_wide(*length, 32);
            }
            Op::Keep(value) => {
                self.results(results, &[]);
                self.width(*value);
            }
            Op::EnterStage(stage) => {
                self.results(results, &[]);
                self.exists("stage", *stage, self.program.stages.len());
            }
            Op::Header { layout, base, .. } => {
                self.packet_only();
                self.results(results, &[]);
                self.exists("layout", *layout, self.program.layouts.len());
                self.is_wide(*base, 32);
            }
        }
    }

    fn terminator(&mut self, terminator: &Terminator) {
        terminator.targets().into_iter().for_each(|target| self.target(target));
        match terminator {
            Terminator::Jump(_) => {}
            Terminator::Branch(condition, ..) => self.is_wide(*condition, 1),
            Terminator::Switch(value, cases, _) => {
                let Some(width) = self.width(*value) else { return };
                let mut listed = HashSet::new();
                for &(case, _) in cases {
                    if !listed.insert(case) || !fits(case, width) {
                        self.report(Fault::Case(case));
                    }
                }
            }
            Terminator::Need { base, more, limit, .. } => {
                self.packet_only();
                [Some(*base), *more, *limit].into_iter().flatten().for_each(|value| self.is_wide(value, 32));
            }
            Terminator::Fuel { slot, cap, .. } => {
                if *slot >= self.program.slots {
                    self.report(Fault::Slot(*slot));
                }
                if *cap > LARGEST_CAP {
                    self.report(Fault::Cap(*cap));
                }
            }
            Terminator::Send(port) => {
                self.verdict(true);
                self.is_wide(*port, 16);
            }
            Terminator::Flood => self.verdict(true),
            Terminator::Multicast(set) => {
                self.verdict(true);
                self.exists("set of ports", *set, self.program.port_sets.len());
            }
            Terminator::Drop(reason) | Terminator::Punt(reason) => {
                self.verdict(true);
                self.exists("reason", (*reason).into(), self.program.reasons.len());
            }
            Terminator::Done => self.verdict(false),
        }
    }

    fn verdict(&mut self, verdict: bool) {
        if self.packet != verdict {
            self.report(Fault::WrongEnd);
        }
    }

    fn target(&mut self, target: &Target) {
        if target.block.0 == 0 {
            self.report(Fault::EdgeToEntry);
        }
        let Some(block) = self.function.blocks.get(target.block.0 as usize) else {
            return self.report(Fault::NoSuchBlock(target.block));
        };
        let width = |value: &Value| self.function.widths.get(value.0 as usize).copied();
        let fits = |(arg, param): (&Value, &Value)| width(arg).is_some() && width(arg) == width(param);
        if target.args.len() != block.params.len() || !target.args.iter().zip(&block.params).all(fits) {
            self.report(Fault::Args(target.block));
        }
    }
}

pub(super) fn widths(columns: &[Column]) -> Vec<u8> {
    columns.iter().map(|column| column.width).collect()
}
