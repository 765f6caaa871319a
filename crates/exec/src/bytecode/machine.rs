//! Runs the steps of a function.

use super::step::{Place, Step};
use crate::arithmetic::{binary, compare, largest};
use crate::one_by_one::Packet;
use crate::outputs::Outputs;
use crate::state::ProgramState;
use crate::state::table_set::Fast;
use ir::{BinaryOp, Instruction, NO_SUCH_PORT, Template};
use packet::resize::Resizable;
use packet::verdict::Verdict;

impl Packet<'_> {
    /// That of a handler: it has no bytes.
    pub(super) fn none() -> Packet<'static> {
        Packet { bytes: Resizable::new(&mut [], 0, 0), in_port: 0 }
    }

    /// The captured bytes from `start` on, `count` of them; the verifier has shown that they are there.
    pub(super) fn slice(&mut self, start: u128, offset: u32, count: u8) -> &mut [u8] {
        let start = start as usize + offset as usize;
        &mut self.bytes.bytes_mut()[start..start + usize::from(count)]
    }
}

/// One run of one function.
pub(super) struct Run<'a, 'p> {
    pub(super) operations: &'a [Instruction],
    pub(super) cases: &'a [(u128, u32)],
    pub(super) templates: &'a [Template],
    pub(super) ports: u16,
    pub(super) slots: &'a mut [u64],
    pub(super) values: &'a mut [u128],
    pub(super) columns: &'a mut Vec<u128>,
    pub(super) held: &'a mut Vec<(u32, bool)>,
    pub(super) state: &'a mut ProgramState<Fast>,
    pub(super) packet: &'a mut Packet<'p>,
    pub(super) outputs: &'a mut Outputs,
}

impl Run<'_, '_> {
    #[inline(always)]
    pub(super) fn value(&self, place: Place) -> u128 {
        self.values[place as usize]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, place: Place, value: u128) {
        self.values[place as usize] = value;
    }

    /// Runs from the first step to the end.
    pub(super) fn run(&mut self, steps: &[Step]) -> Verdict {
        let mut at = 0;
        loop {
            let step = steps[at];
            at += 1;
            match step {
                Step::Narrow { op, width, to, a, b } => {
                    let (a, b) = (self.value(a) as u64, self.value(b) as u64);
                    self.set(to, narrow(op, width, a, b).into());
                }
                Step::Wide { op, width, to, a, b } => {
                    self.set(to, binary(op, width, self.value(a), self.value(b)));
                }
                Step::Compare { op, to, a, b } => {
                    self.set(to, compare(op, self.value(a), self.value(b)).into());
                }
                Step::Unless { op, a, b, otherwise } => {
                    if !compare(op, self.value(a), self.value(b)) {
                        at = otherwise as usize;
                    }
                }
                Step::Select { to, condition, yes, no } => {
                    let chosen = if self.value(condition) == 1 { yes } else { no };
                    self.set(to, self.value(chosen));
                }
                Step::Resize { to, value, width } => self.set(to, self.value(value) & largest(width)),
                Step::Move { to, from } => self.set(to, self.value(from)),
                Step::Load { to, base, offset, bytes } => {
                    let loaded = self.packet.slice(self.value(base), offset, bytes);
                    let number = loaded.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
                    self.set(to, number.into());
                }
                Step::LoadWide { to, base, offset, bytes } => {
                    let loaded = self.packet.slice(self.value(base), offset, bytes);
                    let number = loaded.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
                    self.set(to, number);
                }
                Step::InPort { to } => self.set(to, self.packet.in_port.into()),
                Step::WireLength { to } => self.set(to, self.packet.bytes.wire().into()),
                Step::Captured { to } => self.set(to, self.packet.bytes.captured() as u128),
                Step::Now { to } => self.set(to, self.state.now.into()),
                Step::Operation(index) => {
                    let operations = self.operations;
                    self.operation(&operations[index as usize]);
                }
                Step::Jump(there) => at = there as usize,
                Step::Branch { value, otherwise } => {
                    if self.value(value) != 1 {
                        at = otherwise as usize;
                    }
                }
                Step::Switch { value, first, count, otherwise } => {
                    let cases = &self.cases[first as usize..(first + count) as usize];
                    let value = self.value(value);
                    let found = cases.binary_search_by_key(&value, |case| case.0);
                    at = found.map_or(otherwise, |found| cases[found].1) as usize;
                }
                Step::Need { base, bytes, more, limit, short } => {
                    let end = self.value(base) + u128::from(bytes) + self.value(more);
                    if end > self.packet.bytes.captured() as u128 || end > self.value(limit) {
                        at = short as usize;
                    }
                }
                Step::Fuel { slot, cap, out } => {
                    let slot = &mut self.slots[slot as usize];
                    *slot += 1;
                    if *slot > u64::from(cap) {
                        at = out as usize;
                    }
                }
                Step::Send(port) => {
                    let port = self.value(port) as u16;
                    let exists = (1..=self.ports).contains(&port);
                    return if exists { Verdict::send(port) } else { Verdict::drop(NO_SUCH_PORT) };
                }
                Step::End(verdict) => return verdict,
            }
        }
    }
}

/// As [`binary`], for values of at most 64 bits.
#[inline(always)]
fn narrow(op: BinaryOp, width: u8, a: u64, b: u64) -> u64 {
    let max = u64::MAX >> (64 - u32::from(width));
    match op {
        BinaryOp::Add => a.wrapping_add(b) & max,
        BinaryOp::Sub => a.wrapping_sub(b) & max,
        BinaryOp::Mul => a.wrapping_mul(b) & max,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft if b < u64::from(width) => a << b & max,
        BinaryOp::ShiftRight if b < u64::from(width) => a >> b,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 0,
        BinaryOp::AddSaturate => a.saturating_add(b).min(max),
        BinaryOp::SubSaturate => a.saturating_sub(b),
        BinaryOp::MulSaturate => a.saturating_mul(b).min(max),
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
    }
}
