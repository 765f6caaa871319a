//! From the packet function to the text of one thread: blocks become labels, jumps become assignments and `goto`.

use super::instructions::Writer;
use super::names::{Type, constant, name};
use super::plan::{Bytes, Effect, FIRST_EFFECT, Plan};
use super::refusal::{self, Refusal};
use super::searches::Search;
use super::{AGAIN, Column, FEW_EFFECTS, Options, instructions, reach};
use crate::block_order::order;
use lang::ir::{BlockId, Function, NO_SUCH_PORT, Op, Program, Target, Terminator};
use packet::verdict::{Verdict, VerdictKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of the packet function, and its plan; no text where no packet can be finished.
pub(super) fn body(program: &Program, ports: u16, options: &Options) -> (Option<String>, Plan) {
    let function = &program.functions[0];
    let shape = Shape::new(program, function);
    let plan = shape.plan(program, function, options);
    if !shape.finishes(function) {
        return (None, plan);
    }
    let mut writer = Writer::new(program, function, &shape.sites, &plan);
    for &block in &shape.order {
        writer.line(&format!("b{}: ;", block.0));
        let end = shape.cut[block.0 as usize];
        for (index, instruction) in
            function.block(block).instructions.iter().take(end.unwrap_or(usize::MAX)).enumerate()
        {
            writer.instruction(instruction, (block, index));
        }
        match end {
            Some(_) => writer.line("goto again;"),
            None => terminator(&mut writer, &function.block(block).terminator, ports),
        }
    }
    let steps = writer.finish();
    (Some(whole(function, &shape, &plan, &steps)), plan)
}

/// The function around the steps.
fn whole(function: &Function, shape: &Shape, plan: &Plan, steps: &str) -> String {
    let mut text = String::from("INLINE void run_packet(PARAMETERS, const u32 packet)\n{\n");
    let _ = writeln!(text, "    GLOBAL u8 *frame = bytes + (u64)packet * {};", plan.bytes.stride());
    for (place, column) in plan.columns.iter().enumerate() {
        let _ = writeln!(text, "    const u32 {} = columns[{place}u * packets + packet];", column.name());
    }
    for word in 0..plan.mask_words().max(1) {
        let _ = writeln!(text, "    u32 done{word} = 0;");
    }
    text.push_str("    u32 verdict = 0;\n");
    for slot in &shape.slots {
        let _ = writeln!(text, "    u32 fuel{slot} = 0;");
    }
    for value in shape.values(function) {
        let kind = Type::of(function.width(value));
        let _ = writeln!(text, "    {} {} = {};", kind.name(), name(value), kind.zero());
    }
    if plan.bytes == Bytes::Frame {
        let _ = writeln!(text, "    if (captured > {}u) goto again;", plan.bytes.stride());
    }
    text.push_str(steps);
    text.push_str("finish: ;\n");
    match plan.mask_words() {
        0 => {
            let _ = writeln!(text, "    verdicts[packet] = verdict | done0 << {FIRST_EFFECT};");
        }
        words => {
            text.push_str("    verdicts[packet] = verdict;\n");
            for word in 0..words {
                let _ = writeln!(text, "    records[{word}u * packets + packet] = done{word};");
            }
        }
    }
    let _ = writeln!(text, "    return;\nagain: ;\n    verdicts[packet] = {AGAIN:#x}u;\n}}");
    text
}

/// What is known of the packet function before its text is written.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The instruction of each block that no device takes, if there is one.
    pub(super) cut: Vec<Option<usize>>,
    /// The blocks that packets come to on a device, each behind those that lead to it, loops aside.
    order: Vec<BlockId>,
    refusals: Vec<Refusal>,
    /// The effect of an instruction, by block and place.
    pub(super) sites: BTreeMap<(BlockId, usize), usize>,
    effects: Vec<Effect>,
    record_words: u32,
    /// Fuel slots in use.
    pub(super) slots: Vec<u32>,
}

impl Shape {
    pub(super) fn new(program: &Program, function: &Function) -> Shape {
        let loops = in_loops(function);
        let causes = |block: usize| {
            let instructions = function.blocks[block].instructions.iter().enumerate();
            let mut causes = instructions.map(|(index, instruction)| {
                (index, refusal::cause(program, instruction, loops[block]), instruction.span)
            });
            causes.find_map(|(index, cause, span)| cause.map(|cause| (index, cause, span)))
        };
        let mut found: Vec<_> = (0..function.blocks.len()).map(causes).collect();
        let cut: Vec<Option<usize>> =
            found.iter().map(|found| found.as_ref().map(|(index, ..)| *index)).collect();
        let order = order(function, BlockId(0), |block| cut[block.0 as usize].is_some());
        let stages = stages(function, &order);
        let mut refusals = Vec::new();
        for block in &order {
            if let Some((index, cause, span)) = found[block.0 as usize].take() {
                let own = function.block(*block).instructions[..index].iter().rev();
                let entered =
                    own.filter_map(|one| if let Op::EnterStage(stage) = one.op { Some(stage) } else { None });
                let stage = entered.chain(stages[block.0 as usize]).next();
                refusals.push(Refusal { stage, cause, span });
            }
        }
        let mut shape = Shape {
            cut,
            order,
            refusals,
            sites: BTreeMap::new(),
            effects: Vec::new(),
            record_words: 0,
            slots: Vec::new(),
        };
        shape.find_effects(program, function);
        shape
    }

    /// The instructions of a block up to where no device goes on.
    fn instructions<'f>(&self, function: &'f Function, block: BlockId) -> &'f [lang::ir::Instruction] {
        let all = &function.block(block).instructions;
        &all[..self.cut[block.0 as usize].unwrap_or(all.len())]
    }

    fn find_effects(&mut self, program: &Program, function: &Function) {
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
        let mut next =
            if self.effects.len() > FEW_EFFECTS { self.effects.len().div_ceil(32) as u32 } else { 0 };
        for effect in &mut self.effects {
            next = instructions::place(program, effect, next);
        }
        self.record_words = next;
    }

    /// Whether any packet gets a verdict on a device.
    fn finishes(&self, function: &Function) -> bool {
        self.order.iter().any(|block| {
            self.cut[block.0 as usize].is_none() && function.block(*block).terminator.targets().is_empty()
        })
    }

    fn plan(&self, program: &Program, function: &Function, options: &Options) -> Plan {
        let mut kept = vec![false; function.blocks.len()];
        self.order.iter().for_each(|block| kept[block.0 as usize] = true);
        let used = || self.order.iter().flat_map(|block| self.instructions(function, *block));
        let uses = |wanted: fn(&Op) -> bool| used().any(|instruction| wanted(&instruction.op));
        let mut columns = vec![Column::Captured];
        if uses(|op| matches!(op, Op::WireLength)) {
            columns.push(Column::Wire);
        }
        if uses(|op| matches!(op, Op::InPort)) {
            columns.push(Column::Port);
        }
        if uses(|op| matches!(op, Op::Now)) {
            columns.extend([Column::TimeLow, Column::TimeHigh]);
        }
        let mut tables: Vec<u32> =
            used().filter_map(|instruction| instructions::table(&instruction.op)).collect();
        tables.sort_unstable();
        tables.dedup();
        Plan {
            bytes: reach::reach(function, &kept, &self.cut),
            columns,
            searches: tables
                .iter()
                .map(|table| Search::of(&program.tables[*table as usize], options))
                .collect(),
            tables,
            effects: self.effects.clone(),
            record_words: self.record_words,
            writes: uses(|op| matches!(op, Op::Store { .. })),
            refusals: self.refusals.clone(),
        }
    }

    /// Every value that the text names.
    fn values(&self, function: &Function) -> Vec<lang::ir::Value> {
        let of = |block: &BlockId| {
            let results =
                self.instructions(function, *block).iter().flat_map(|instruction| &instruction.results);
            function.block(*block).params.iter().chain(results).copied().collect::<Vec<_>>()
        };
        self.order.iter().flat_map(of).collect()
    }
}

/// Blocks that can come round to themselves.
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

/// The stage that each block begins in.
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

fn terminator(writer: &mut Writer<'_>, terminator: &Terminator, ports: u16) {
    match terminator {
        Terminator::Jump(target) => jump(writer, target),
        Terminator::Branch(condition, yes, no) => {
            branch(writer, &name(*condition), yes);
            jump(writer, no);
        }
        Terminator::Switch(value, cases, default) => {
            let width = writer.function.width(*value);
            for (case, target) in cases {
                let case = constant(width, *case);
                let condition = match Type::of(width) {
                    Type::Wide => format!("wide_eq({}, {case})", name(*value)),
                    _ => format!("{} == {case}", name(*value)),
                };
                branch(writer, &condition, target);
            }
            jump(writer, default);
        }
        Terminator::Need { base, bytes, more, limit, ok, short } => {
            let more = more.map(|more| format!(" + {}", name(more))).unwrap_or_default();
            let end = format!("(u64){} + {bytes}u{more}", name(*base));
            let limit = limit.map(|limit| format!(" && {end} <= {}", name(limit))).unwrap_or_default();
            branch(writer, &format!("{end} <= captured{limit}"), ok);
            jump(writer, short);
        }
        Terminator::Fuel { slot, cap, ok, out } => {
            writer.line(&format!("fuel{slot}++;"));
            branch(writer, &format!("fuel{slot} > {cap}u"), out);
            jump(writer, ok);
        }
        Terminator::Send(port) => {
            let (send, none) =
                (Verdict::new(VerdictKind::Send, 0).bits(), Verdict::drop(NO_SUCH_PORT).bits());
            let port = name(*port);
            writer.line(&format!(
                "verdict = {port} >= 1u && {port} <= {ports}u ? {send:#x}u | {port} : {none:#x}u; goto finish;"
            ));
        }
        Terminator::Flood => verdict(writer, Verdict::FLOOD),
        Terminator::Multicast(set) => verdict(writer, Verdict::multicast(*set as u16)),
        Terminator::Drop(reason) => verdict(writer, Verdict::drop(*reason)),
        Terminator::Punt(reason) => verdict(writer, Verdict::punt(*reason)),
        Terminator::Done => verdict(writer, Verdict::PENDING),
    }
}

fn verdict(writer: &mut Writer<'_>, verdict: Verdict) {
    writer.line(&format!("verdict = {:#x}u; goto finish;", verdict.bits()));
}

fn branch(writer: &mut Writer<'_>, condition: &str, target: &Target) {
    let go = going(writer, target);
    writer.line(&format!("if ({condition}) {{ {go} }}"));
}

fn jump(writer: &mut Writer<'_>, target: &Target) {
    let go = going(writer, target);
    writer.line(&go);
}

/// Hands the arguments over, all at once, and goes to the block.
fn going(writer: &Writer<'_>, target: &Target) -> String {
    let params = &writer.function.block(target.block).params;
    let moved = params.iter().zip(&target.args).filter(|(param, arg)| param != arg);
    let mut text = String::new();
    if let [(param, arg)] = moved.clone().collect::<Vec<_>>()[..] {
        let _ = write!(text, "{} = {}; ", name(*param), name(*arg));
    } else {
        for (place, (_, arg)) in moved.clone().enumerate() {
            let kind = Type::of(writer.function.width(*arg));
            let _ = write!(text, "{} m{place} = {}; ", kind.name(), name(*arg));
        }
        for (place, (param, _)) in moved.enumerate() {
            let _ = write!(text, "{} = m{place}; ", name(*param));
        }
    }
    let _ = write!(text, "goto b{};", target.block.0);
    if text.matches(';').count() > 2 { format!("{{ {text} }}") } else { text }
}
