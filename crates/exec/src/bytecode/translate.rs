//! Translates functions of the IR into bytecode.
//!
//! Blocks follow one another in the order of the IR. The arguments of an edge are moved where the edge
//! leaves; since all are assigned at the same time, those that a move would overwrite go through places of
//! their own.

use super::step::{Code, Place, Step};
use ir::{BlockId, Function, Instruction, Op, Target, Terminator, Value};
use packet::verdict::Verdict;
use std::collections::HashSet;

/// The bytecode of a function of a verified program.
pub(super) fn function(function: &Function) -> Code {
    let mut values = vec![0; function.widths.len()];
    let (zero, no_limit) = (values.len() as Place, values.len() as Place + 1);
    values.extend([0, u128::MAX]);
    let params = function.blocks.first().map_or(&[][..], |block| &block.params);
    let params = params.iter().map(|param| param.0).collect();
    let code = Code { steps: Vec::new(), operations: Vec::new(), cases: Vec::new(), params, values };
    let uses = uses(function);
    let mut translation =
        Translation { function, code, zero, no_limit, uses, begins: Vec::new(), jumps: Vec::new() };
    for (index, block) in (0..).zip(&function.blocks) {
        let here = translation.here();
        translation.begins.push(here);
        let (last, before) = match block.instructions.split_last() {
            Some((last, before)) if decides(last, &block.terminator) => (Some(last), before),
            _ => (None, &block.instructions[..]),
        };
        before.iter().for_each(|instruction| translation.instruction(instruction));
        translation.terminator(&block.terminator, last, BlockId(index + 1));
    }
    translation.finish()
}

/// How often each value is used.
fn uses(function: &Function) -> Vec<u32> {
    let mut uses = vec![0; function.widths.len()];
    let mut note = |value: Value| uses[value.0 as usize] += 1;
    for block in &function.blocks {
        block.instructions.iter().for_each(|instruction| instruction.op.operands(&mut note));
        block.terminator.operands(&mut note);
    }
    uses
}

/// Whether an instruction is the comparison on which the end of its block depends.
fn decides(last: &Instruction, terminator: &Terminator) -> bool {
    matches!((&last.op, terminator), (Op::Compare(..), Terminator::Branch(value, ..)) if last.results == [*value])
}

struct Translation<'f> {
    function: &'f Function,
    code: Code,
    /// Places that hold 0 and a number that is larger than any position.
    zero: Place,
    no_limit: Place,
    /// How often each value is used.
    uses: Vec<u32>,
    /// The first step of each block so far.
    begins: Vec<u32>,
    /// Jumps to blocks: the step, and the block.
    jumps: Vec<(usize, BlockId)>,
}

impl Translation<'_> {
    fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    fn push(&mut self, step: Step) {
        self.code.steps.push(step);
    }

    /// Resolves the jumps.
    fn finish(mut self) -> Code {
        for (step, block) in self.jumps {
            self.code.steps[step] = Step::Jump(self.begins[block.0 as usize]);
        }
        self.code
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let to = instruction.results.first().map_or(0, |result| result.0);
        let width = |value: Value| self.function.width(value);
        let step = match &instruction.op {
            Op::Const(value) => {
                self.code.values[to as usize] = *value;
                return;
            }
            Op::Keep(_) | Op::EnterStage(_) | Op::Header { .. } => return,
            Op::Binary(op, a, b) if width(*a) <= 64 => {
                Step::Narrow { op: *op, width: width(*a), to, a: a.0, b: b.0 }
            }
            Op::Binary(op, a, b) => Step::Wide { op: *op, width: width(*a), to, a: a.0, b: b.0 },
            Op::Compare(op, a, b) => Step::Compare { op: *op, to, a: a.0, b: b.0 },
            Op::Select(condition, yes, no) => {
                Step::Select { to, condition: condition.0, yes: yes.0, no: no.0 }
            }
            Op::Resize(value) => {
                let width = instruction.results.first().map_or(128, |result| width(*result));
                Step::Resize { to, value: value.0, width }
            }
            Op::Load { base, offset, bytes, .. } if *bytes <= 8 => {
                Step::Load { to, base: base.0, offset: *offset, bytes: *bytes }
            }
            Op::Load { base, offset, bytes, .. } => {
                Step::LoadWide { to, base: base.0, offset: *offset, bytes: *bytes }
            }
            Op::InPort => Step::InPort { to },
            Op::WireLength => Step::WireLength { to },
            Op::Captured => Step::Captured { to },
            Op::Now => Step::Now { to },
            _ => {
                self.code.operations.push(instruction.clone());
                Step::Operation(self.code.operations.len() as u32 - 1)
            }
        };
        self.push(step);
    }

    /// The end of a block; `last` is the comparison that it depends on, and `next` the block behind it.
    fn terminator(&mut self, terminator: &Terminator, last: Option<&Instruction>, next: BlockId) {
        match terminator {
            Terminator::Jump(target) => self.edge(target, Some(next)),
            Terminator::Branch(value, yes, no) => {
                let compared = last.map(|last| &last.op);
                let fork = match compared {
                    Some(Op::Compare(op, a, b)) => {
                        let (op, a, b) = (*op, a.0, b.0);
                        if self.uses[value.0 as usize] > 1 {
                            self.push(Step::Compare { op, to: value.0, a, b });
                        }
                        Step::Unless { op, a, b, otherwise: 0 }
                    }
                    _ => Step::Branch { value: value.0, otherwise: 0 },
                };
                self.fork(fork, yes, no, next);
            }
            Terminator::Switch(value, cases, default) => {
                let switch = self.code.steps.len();
                self.push(Step::End(Verdict::PENDING));
                let mut listed = Vec::with_capacity(cases.len());
                for (case, target) in cases {
                    listed.push((*case, self.here()));
                    self.edge(target, None);
                }
                let otherwise = self.here();
                self.edge(default, Some(next));
                listed.sort_unstable();
                let (first, count) = (self.code.cases.len() as u32, listed.len() as u32);
                self.code.cases.extend(listed);
                self.code.steps[switch] = Step::Switch { value: value.0, first, count, otherwise };
            }
            Terminator::Need { base, bytes, more, limit, ok, short } => {
                let more = more.map_or(self.zero, |more| more.0);
                let limit = limit.map_or(self.no_limit, |limit| limit.0);
                self.fork(Step::Need { base: base.0, bytes: *bytes, more, limit, short: 0 }, ok, short, next);
            }
            Terminator::Fuel { slot, cap, ok, out } => {
                self.fork(Step::Fuel { slot: *slot, cap: *cap, out: 0 }, ok, out, next);
            }
            Terminator::Send(port) => self.push(Step::Send(port.0)),
            Terminator::Flood => self.push(Step::End(Verdict::FLOOD)),
            Terminator::Multicast(set) => self.push(Step::End(Verdict::multicast(*set as u16))),
            Terminator::Drop(reason) => self.push(Step::End(Verdict::drop(*reason))),
            Terminator::Punt(reason) => self.push(Step::End(Verdict::punt(*reason))),
            Terminator::Done => self.push(Step::End(Verdict::PENDING)),
        }
    }

    /// A step that goes on to the one edge or away to the other.
    fn fork(&mut self, step: Step, on: &Target, away: &Target, next: BlockId) {
        let at = self.code.steps.len();
        self.push(step);
        self.edge(on, None);
        let there = self.here();
        self.edge(away, Some(next));
        let (Step::Unless { otherwise: to, .. }
        | Step::Branch { otherwise: to, .. }
        | Step::Need { short: to, .. }
        | Step::Fuel { out: to, .. }) = &mut self.code.steps[at]
        else {
            return;
        };
        *to = there;
    }

    /// Goes along an edge; no jump is needed where the block `next` follows.
    fn edge(&mut self, target: &Target, next: Option<BlockId>) {
        let params = &self.function.block(target.block).params;
        let mut moves: Vec<(Place, Place)> =
            params.iter().zip(&target.args).map(|(to, from)| (to.0, from.0)).collect();
        moves.retain(|(to, from)| to != from);
        let mut written = HashSet::new();
        let mut overwritten = |index: &usize| {
            let (to, from) = moves[*index];
            let before = written.contains(&from);
            written.insert(to);
            before
        };
        let kept: Vec<usize> = (0..moves.len()).filter(&mut overwritten).collect();
        for index in kept {
            let place = self.code.values.len() as Place;
            self.code.values.push(0);
            self.push(Step::Move { to: place, from: moves[index].1 });
            moves[index].1 = place;
        }
        moves.into_iter().for_each(|(to, from)| self.push(Step::Move { to, from }));
        if next != Some(target.block) {
            self.jumps.push((self.code.steps.len(), target.block));
            self.push(Step::Jump(0));
        }
    }
}
