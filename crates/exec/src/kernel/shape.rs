//! The analysis of the packet function before its text is written: which blocks run on a device, their
//! effects, and the form in which packets travel.

use super::form::{Back, CopiedPart, KernelOptions, NoForm, NoKernel};
use super::plan::{Bytes, Effect, FRAME_BYTES, KernelPlan, PAGE_BYTES, PacketColumn};
use super::refusal::{self, Refusal};
use super::results::{Laid, Results, Size, argument_bits, lay};
use super::searches::KernelSearch;
use super::{instructions, intervals, known, packed};
use crate::block_order::order_by;
use ir::{BlockId, Function, Instruction, NO_SUCH_PORT, Op, Program, Target, Terminator, Value};
use packet::verdict::Verdict;
use std::collections::BTreeMap;
use std::ops::Range;

/// The result of this analysis.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// For each block, the first instruction that no device takes, if there is one.
    pub(super) cut: Vec<Option<usize>>,
    /// The blocks that run on a device, each after its predecessors, except for the edges of loops.
    pub(super) order: Vec<BlockId>,
    refusals: Vec<Refusal>,
    /// The number of the effect of an instruction, by block and place.
    pub(super) sites: BTreeMap<(BlockId, usize), usize>,
    /// The effects and the sizes of their data; the places are not known yet.
    effects: Vec<(Effect, Size)>,
    /// Fuel slots in use.
    pub(super) slots: Vec<u32>,
    /// Whether every packet is long enough for all checks of the program.
    long: bool,
}

impl Shape {
    /// The shape of a program's kernel, and the plan.
    pub(super) fn planned(
        program: &Program,
        ports: u16,
        options: &KernelOptions,
    ) -> Result<(Shape, KernelPlan), NoKernel> {
        let function = &program.functions[0];
        let mut shape = Shape::new(program, false);
        if !shape.finishes(function) {
            let sentence = |refusal: &Refusal| refusal.sentence(program).to_string();
            return Err(NoKernel::Steps { sentences: shape.refusals.iter().map(sentence).collect() });
        }
        let (mut ranges, mut least) = (Vec::new(), 0);
        if options.over == CopiedPart::Packed {
            ranges = shape.ranges(function)?;
            if let Some(length) = shape.least(function, &ranges) {
                (shape, least) = (Shape::new(program, true), length);
                ranges = shape.ranges(function)?;
            }
        }
        let plan = shape.plan(program, ports, options, ranges, least)?;
        Ok((shape, plan))
    }

    /// The shape of a program's packet function; with `long`, every packet is long enough, and blocks for
    /// shorter packets are left out.
    pub(super) fn new(program: &Program, long: bool) -> Shape {
        let function = &program.functions[0];
        let loops = in_loops(function);
        let causes = |block: usize| {
            let instructions = function.blocks[block].instructions.iter().enumerate();
            let mut causes = instructions.map(|(index, instruction)| {
                (index, refusal::cause(program, instruction, loops[block]), instruction.span)
            });
            causes.find_map(|(index, cause, span)| cause.map(|cause| (index, cause, span)))
        };
        let mut found: Vec<_> = (0..function.blocks.len()).map(causes).collect();
        let mut shape = Shape {
            cut: found.iter().map(|found| found.as_ref().map(|(index, ..)| *index)).collect(),
            order: Vec::new(),
            refusals: Vec::new(),
            sites: BTreeMap::new(),
            effects: Vec::new(),
            slots: Vec::new(),
            long,
        };
        shape.order = order_by(function.blocks.len(), BlockId(0), |block| {
            shape.ways(function, block).iter().map(|target| target.block).collect()
        });
        let stages = stages(function, &shape.order);
        for block in &shape.order {
            if let Some((index, cause, span)) = found[block.0 as usize].take() {
                let own = function.block(*block).instructions[..index].iter().rev();
                let entered =
                    own.filter_map(|one| if let Op::EnterStage(stage) = one.op { Some(stage) } else { None });
                let stage = entered.chain(stages[block.0 as usize]).next();
                shape.refusals.push(Refusal { stage, cause, span });
            }
        }
        shape.find_effects(program);
        shape
    }

    /// The edges from a block to others.
    pub(super) fn ways<'f>(&self, function: &'f Function, block: BlockId) -> Vec<&'f Target> {
        match &function.block(block).terminator {
            _ if self.cut[block.0 as usize].is_some() => Vec::new(),
            Terminator::Need { ok, .. } if self.long => vec![ok],
            terminator => terminator.targets(),
        }
    }

    /// The instructions of a block that run on a device.
    pub(super) fn instructions<'f>(&self, function: &'f Function, block: BlockId) -> &'f [Instruction] {
        let all = &function.block(block).instructions;
        &all[..self.cut[block.0 as usize].unwrap_or(all.len())]
    }

    /// The numbers of values that are the same for every packet.
    pub(super) fn known(&self, function: &Function) -> Vec<Option<u128>> {
        let block = |block: &BlockId| (self.instructions(function, *block), self.ways(function, *block));
        known::known(function, &self.order.iter().map(block).collect::<Vec<_>>())
    }

    /// All values that the text names.
    pub(super) fn values(&self, function: &Function) -> Vec<Value> {
        let of = |block: &BlockId| {
            let results =
                self.instructions(function, *block).iter().flat_map(|instruction| &instruction.results);
            function.block(*block).params.iter().chain(results).copied().collect::<Vec<_>>()
        };
        self.order.iter().flat_map(of).collect()
    }

    fn used<'f>(&'f self, function: &'f Function) -> impl Iterator<Item = &'f Instruction> {
        self.order.iter().flat_map(|block| self.instructions(function, *block))
    }

    /// The ends of packets that a device finishes.
    fn ends<'f>(&'f self, function: &'f Function) -> impl Iterator<Item = &'f Terminator> {
        let whole = self.order.iter().filter(|block| self.cut[block.0 as usize].is_none());
        let terminators = whole.map(|block| &function.block(*block).terminator);
        terminators.filter(|terminator| terminator.targets().is_empty())
    }

    fn find_effects(&mut self, program: &Program) {
        let function = &program.functions[0];
        for &block in &self.order {
            for (index, instruction) in self.instructions(function, block).iter().enumerate() {
                if let Some(effect) = instructions::effect(program, &instruction.op) {
                    self.sites.insert((block, index), self.effects.len());
                    self.effects.push(effect);
                }
            }
            if let Terminator::Fuel { slot, .. } = function.block(block).terminator
                && !self.slots.contains(&slot)
            {
                self.slots.push(slot);
            }
        }
    }

    /// Whether any packet gets a verdict on a device.
    fn finishes(&self, function: &Function) -> bool {
        self.ends(function).next().is_some()
    }

    /// The ranges of bytes that are read and written.
    fn ranges(&self, function: &Function) -> Result<Vec<Range<u32>>, NoForm> {
        packed::ranges(self.used(function), &self.known(function))
    }

    /// The length from which on a packet passes all length checks of the program, if it only checks lengths
    /// that are the same for every packet, and none beyond the ranges that it reads.
    fn least(&self, function: &Function, ranges: &[Range<u32>]) -> Option<u32> {
        if self.used(function).any(|instruction| matches!(instruction.op, Op::Captured)) {
            return None;
        }
        let known = self.known(function);
        let mut least = 1;
        for block in self.order.iter().filter(|block| self.cut[block.0 as usize].is_none()) {
            if let Terminator::Need { base, bytes, more, limit, .. } = &function.block(*block).terminator {
                let more = more.map_or(Some(0), |more| known[more.0 as usize])?;
                let end = known[base.0 as usize]? + u128::from(*bytes) + more;
                least = least.max(u32::try_from(end).ok().filter(|_| limit.is_none())?);
            }
        }
        let end = ranges.iter().map(|range| range.end).max()?;
        (least <= end).then_some(least)
    }

    /// The verdicts with which packets can end; for a port that is computed, the largest one.
    fn verdicts(&self, function: &Function, ports: u16) -> (Vec<Verdict>, bool) {
        let known = self.known(function);
        let (mut verdicts, mut computed) = (Vec::new(), false);
        for end in self.ends(function) {
            let verdict = match end {
                Terminator::Send(port) => match known[port.0 as usize] {
                    Some(port @ 1..) if port <= ports.into() => Verdict::send(port as u16),
                    Some(_) => Verdict::drop(NO_SUCH_PORT),
                    None => {
                        computed = true;
                        verdicts.push(Verdict::drop(NO_SUCH_PORT));
                        Verdict::send(ports)
                    }
                },
                Terminator::Flood => Verdict::FLOOD,
                Terminator::Multicast(set) => Verdict::multicast(*set as u16),
                Terminator::Drop(reason) => Verdict::drop(*reason),
                Terminator::Punt(reason) => Verdict::punt(*reason),
                _ => Verdict::PENDING,
            };
            verdicts.push(verdict);
        }
        verdicts.sort_by_key(|verdict| verdict.bits());
        verdicts.dedup();
        (verdicts, computed)
    }

    /// Whether a packet may have both of two effects, by their numbers.
    fn together(&self, function: &Function) -> impl Fn(usize, usize) -> bool {
        let blocks: Vec<BlockId> = self.sites.keys().map(|(block, _)| *block).collect();
        let from = |block: &BlockId| {
            let next = |block| self.ways(function, block).iter().map(|target| target.block).collect();
            order_by(function.blocks.len(), *block, next)
        };
        let mut of = vec![BlockId(0); self.effects.len()];
        self.sites.iter().for_each(|((block, _), effect)| of[*effect] = *block);
        let reached: BTreeMap<BlockId, Vec<BlockId>> =
            blocks.iter().map(|block| (*block, from(block))).collect();
        move |one, other| reached[&of[one]].contains(&of[other]) || reached[&of[other]].contains(&of[one])
    }

    /// The meaning of a result's bits, and the places of effects.
    fn results(&self, function: &Function, ports: u16, back: Back) -> Result<(Results, Laid), NoForm> {
        let (verdicts, computed) = self.verdicts(function, ports);
        let mut outcomes = [Verdict::PENDING; 2];
        if back == Back::Bit {
            match verdicts[..] {
                _ if computed => return Err(NoForm::ComputedPort),
                [one] => outcomes = [one, one],
                [one, other] => outcomes = [one, other],
                _ => return Err(NoForm::Outcomes(verdicts.len())),
            }
        }
        let needed = argument_bits(verdicts);
        let results = Results::new(back, needed, !self.effects.is_empty(), outcomes);
        let sizes: Vec<Size> = self.effects.iter().map(|(_, size)| *size).collect();
        let laid = lay(&results.free(), &sizes, self.together(function));
        if back != Back::Word && laid.record_words > 0 {
            return Err(NoForm::Effects(back));
        }
        Ok((results, laid))
    }

    fn plan(
        &self,
        program: &Program,
        ports: u16,
        options: &KernelOptions,
        ranges: Vec<Range<u32>>,
        least: u32,
    ) -> Result<KernelPlan, NoForm> {
        let function = &program.functions[0];
        let uses = |wanted: fn(&Op) -> bool| self.used(function).any(|instruction| wanted(&instruction.op));
        let mut columns = Vec::new();
        if least == 0 {
            columns.push(PacketColumn::Captured);
        }
        if uses(|op| matches!(op, Op::WireLength)) {
            columns.push(PacketColumn::Wire);
        }
        if uses(|op| matches!(op, Op::InPort)) {
            columns.push(PacketColumn::Port);
        }
        if uses(|op| matches!(op, Op::Now)) {
            columns.extend([PacketColumn::TimeLow, PacketColumn::TimeHigh]);
        }
        let over = options.over;
        let writes = uses(|op| matches!(op, Op::Store { .. }));
        if over == CopiedPart::InPlace {
            if writes {
                return Err(NoForm::Writes);
            }
            columns.push(PacketColumn::Place);
        }
        let mut tables: Vec<u32> =
            self.used(function).filter_map(|instruction| instructions::table(&instruction.op)).collect();
        tables.sort_unstable();
        tables.dedup();
        let bytes = intervals::header_bytes(function, self);
        let packed = ranges.iter().map(|range| range.end - range.start).sum::<u32>();
        let stride = match over {
            CopiedPart::Header => bytes.stride(),
            CopiedPart::Frame | CopiedPart::InPlace => FRAME_BYTES,
            CopiedPart::Page => PAGE_BYTES,
            CopiedPart::Packed => packed.next_multiple_of(4).max(4),
        };
        let most = match (over, bytes) {
            (CopiedPart::Packed, _) | (_, Bytes::All(_)) | (CopiedPart::Header, Bytes::Part(_)) => u32::MAX,
            _ => stride,
        };
        let (results, laid) = self.results(function, ports, options.back)?;
        let effects = self.effects.iter().zip(&laid.left);
        let plan = KernelPlan {
            over,
            bytes,
            ranges,
            stride,
            lengths: least..=most,
            columns,
            searches: tables
                .iter()
                .map(|table| KernelSearch::of(&program.tables[*table as usize], options))
                .collect(),
            keyed: tables
                .iter()
                .map(|table| instructions::tells_keys(program, *table, self.used(function)))
                .collect(),
            tables,
            results,
            effects: effects.map(|((effect, _), place)| effect.at(*place)).collect(),
            done: laid.done,
            record_words: laid.record_words,
            writes,
            refusals: self.refusals.clone(),
        };
        let gives_up = plan.checks_reach()
            || self.order.iter().any(|block| self.cut[block.0 as usize].is_some())
            || uses(|op| matches!(op, Op::Learn { .. } | Op::Remove { .. }));
        if options.back == Back::Bit && gives_up {
            return Err(NoForm::GivesUp);
        }
        Ok(plan)
    }
}

/// The blocks from which they themselves can be reached again.
fn in_loops(function: &Function) -> Vec<bool> {
    let successors =
        |block: BlockId| function.block(block).terminator.targets().into_iter().map(|target| target.block);
    let comes_round = |start: usize| {
        let start = BlockId(start as u32);
        let mut seen = vec![false; function.blocks.len()];
        let mut open: Vec<BlockId> = successors(start).collect();
        while let Some(block) = open.pop() {
            if block == start {
                return true;
            }
            if !std::mem::replace(&mut seen[block.0 as usize], true) {
                open.extend(successors(block));
            }
        }
        false
    };
    (0..function.blocks.len()).map(comes_round).collect()
}

/// The stage in which each block begins.
fn stages(function: &Function, order: &[BlockId]) -> Vec<Option<u32>> {
    let mut stages = vec![None; function.blocks.len()];
    for &block in order {
        let mut stage = stages[block.0 as usize];
        for instruction in &function.block(block).instructions {
            if let Op::EnterStage(entered) = instruction.op {
                stage = Some(entered);
            }
        }
        for target in function.block(block).terminator.targets() {
            let next = &mut stages[target.block.0 as usize];
            *next = next.or(stage);
        }
    }
    stages
}
