//! Translates one function of the IR into Cranelift's IR: blocks and values one to one, fuel counters as
//! variables, accesses to tables and outputs as calls of host functions.
//!
//! Fuel counters are SSA variables, so a pass of a loop costs an addition in a register. Loads of the packet
//! have an alias region of their own, so that equal loads become one although counters are written between
//! them.

use super::arithmetic::{binary, compare, constant, resize, select, type_of, word, words};
use super::bytes::{self, Place};
use super::call::{ASKED, Context, NOT_ASKED};
use super::early_lookups::{EarlyLookup, Part, first_effect};
use super::effects::Scratch;
use super::host::{ENTER_SITE, HostFunction, LEAVE_SITE};
use super::placements::Placement;
use crate::block_order::order;
use crate::pack::Packing;
use crate::stages::StageClock;
use crate::state::table_set::TablePlace;
use cranelift_codegen::ir::{
    self as clif, AliasRegionData, BlockArg, FuncRef, InstBuilder, MemFlagsData, Type, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use ir::{
    BinaryOp, Block, BlockId, Function, Instruction, NO_SUCH_PORT, Op, Program, Target, Terminator, Value,
    frame,
};
use packet::verdict::Verdict;
use std::collections::HashMap;
use std::mem::{offset_of, size_of};

/// What is the same for all functions of a program.
pub(super) struct Shared<'a> {
    pub(super) program: &'a Program,
    pub(super) ports: u16,
    /// Key and value packing of every table.
    pub(super) packings: &'a [(Packing, Packing)],
    /// For every table, what hits and learns write in addition to the value.
    pub(super) marks: &'a [u8],
    /// First cell of every counter, and the end.
    pub(super) first_cell: &'a [usize],
    /// Whether a table may ever have a default entry.
    pub(super) defaults: &'a [bool],
    /// The kind of every table, and its number among those of its kind.
    pub(super) places: &'a [TablePlace],
    /// The placements, by number.
    pub(super) placements: &'a [Placement],
    /// Whether stages report when they begin, and packets and handlers when they end.
    pub(super) measured: bool,
}

/// The host functions, as a function being compiled refers to them.
pub(super) struct Host<'a> {
    pub(super) module: &'a mut JITModule,
    pub(super) declared: &'a HashMap<&'static str, FuncId>,
    pub(super) used: HashMap<&'static str, FuncRef>,
}

impl Host<'_> {
    /// Calls a host function and gives its results.
    pub(super) fn call<const TAKEN: usize, const GIVEN: usize>(
        &mut self,
        bx: &mut FunctionBuilder<'_>,
        HostFunction(name): HostFunction<TAKEN, GIVEN>,
        args: [clif::Value; TAKEN],
    ) -> [clif::Value; GIVEN] {
        let Host { module, declared, used } = self;
        let function =
            *used.entry(name).or_insert_with(|| module.declare_func_in_func(declared[name], bx.func));
        let call = bx.ins().call(function, &args);
        let results = bx.inst_results(call);
        std::array::from_fn(|index| results[index])
    }
}

/// Translates a part of function `index` into `into`, whose signature is set.
pub(super) fn translate(
    shared: &Shared<'_>,
    index: usize,
    part: Part<'_>,
    host: Host<'_>,
    into: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
) {
    let function = &shared.program.functions[index];
    let config = host.module.target_config();
    let mut bx = FunctionBuilder::new(into, builder);
    let region = |bx: &mut FunctionBuilder<'_>, id, name: &'static str| {
        let region = AliasRegionData { user_id: id, description: name.into() };
        MemFlagsData::new().with_notrap().with_alias_region(Some(bx.func.dfg.alias_regions.insert(region)))
    };
    let packet = region(&mut bx, 1, "packet");
    let counters = region(&mut bx, 2, "counters");
    let blocks: Vec<clif::Block> = function.blocks.iter().map(|_| bx.create_block()).collect();
    for (block, compiled) in function.blocks.iter().zip(&blocks) {
        if is_failed_check(shared.program, block) {
            bx.set_cold_block(*compiled);
        }
    }
    let entry = bx.create_block();
    bx.append_block_params_for_function_params(entry);
    bx.switch_to_block(entry);
    let &[context, frame, captured, in_port] = bx.block_params(entry) else { unreachable_signature() };
    let slots = slots_of(function).into_iter().map(|slot| (slot, bx.declare_var(types::I64))).collect();
    let packet_moves = index == 0 && shared.program.manifest.resizes_packet;
    let moving = packet_moves.then(|| {
        [frame, captured].map(|value| {
            let variable = bx.declare_var(types::I64);
            bx.def_var(variable, value);
            variable
        })
    });
    let mut body = Body {
        shared,
        function,
        host,
        bx,
        blocks,
        values: vec![None; function.widths.len()],
        constants: vec![None; function.widths.len()],
        slots,
        context,
        frame,
        captured,
        moving,
        in_port,
        is_packet: index == 0,
        goes_on: matches!(part, Part::Before(_)),
        packet,
        counters,
        scratch: Scratch::default(),
        longest_list: frame::longest_list(function).0,
    };
    body.part(index, part);
    body.bx.seal_all_blocks();
    body.bx.finalize(config);
}

/// A function being translated.
pub(super) struct Body<'a, 'b> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) function: &'a Function,
    pub(super) host: Host<'a>,
    pub(super) bx: FunctionBuilder<'b>,
    blocks: Vec<clif::Block>,
    values: Vec<Option<clif::Value>>,
    constants: Vec<Option<u128>>,
    slots: HashMap<u32, Variable>,
    pub(super) context: clif::Value,
    /// The frame and its captured length when the packet function begins.
    frame: clif::Value,
    captured: clif::Value,
    /// The present frame and captured length, if the program changes sizes of packets.
    moving: Option<[Variable; 2]>,
    in_port: clif::Value,
    pub(super) is_packet: bool,
    /// The caller goes on with the packet after an early lookup, so the end of this part is not the end of
    /// the packet.
    goes_on: bool,
    packet: MemFlagsData,
    pub(super) counters: MemFlagsData,
    pub(super) scratch: Scratch,
    /// The largest number of values passed in one list.
    pub(super) longest_list: usize,
}

impl Body<'_, '_> {
    /// Translates the blocks of a part, each behind those that lead to it.
    fn part(&mut self, index: usize, part: Part<'_>) {
        match part {
            Part::Whole => {
                self.enter(index);
                order(self.function, BlockId(0), |_| false).into_iter().for_each(|block| self.block(block));
            }
            Part::Before(lookups) => {
                self.enter(index);
                for block in
                    order(self.function, BlockId(0), |block| first_effect(self.function, block).is_some())
                {
                    match first_effect(self.function, block) {
                        Some(end) => self.block_before(block, end, lookups),
                        None => self.block(block),
                    }
                }
            }
            Part::After(lookup) => {
                self.go_on(lookup);
                for block in order(self.function, lookup.block, |_| false).into_iter().skip(1) {
                    self.block(block);
                }
            }
        }
    }

    pub(super) fn value(&self, value: Value) -> clif::Value {
        self.values[value.0 as usize].expect("the verifier admits values only behind their definition")
    }

    pub(super) fn word(&mut self, value: Value) -> clif::Value {
        let value = self.value(value);
        word(&mut self.bx, value)
    }

    pub(super) fn set(&mut self, result: Value, value: clif::Value) {
        self.values[result.0 as usize] = Some(value);
    }

    pub(super) fn iconst(&mut self, value: u64) -> clif::Value {
        self.bx.ins().iconst(types::I64, value as i64)
    }

    /// A field of the context that does not change while a function runs.
    pub(super) fn fixed(&mut self, offset: usize) -> clif::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.bx.ins().load(types::I64, flags, self.context, offset as i32)
    }

    /// The address of the packet's first byte.
    pub(super) fn frame(&mut self) -> clif::Value {
        self.moving.map_or(self.frame, |[frame, _]| self.bx.use_var(frame))
    }

    /// The number of captured bytes of the packet.
    pub(super) fn captured(&mut self) -> clif::Value {
        self.moving.map_or(self.captured, |[_, captured]| self.bx.use_var(captured))
    }

    /// The packet's length on the wire.
    pub(super) fn wire(&mut self) -> clif::Value {
        let offset = offset_of!(Context<'_>, wire);
        match self.moving {
            None => self.fixed(offset),
            Some(_) => self.bx.ins().load(types::I64, MemFlagsData::trusted(), self.context, offset as i32),
        }
    }

    /// Reads the packet's place from the context, after a host function changed its size.
    pub(super) fn find_packet(&mut self) {
        let Some([frame, captured]) = self.moving else { return };
        let flags = MemFlagsData::trusted();
        for (variable, offset) in
            [(frame, offset_of!(Context<'_>, frame)), (captured, offset_of!(Context<'_>, captured))]
        {
            let value = self.bx.ins().load(types::I64, flags, self.context, offset as i32);
            self.bx.def_var(variable, value);
        }
    }

    /// The beginning of a function: sets fuel counters to zero, loads the arguments of a handler, and jumps
    /// to the first block.
    fn enter(&mut self, index: usize) {
        if self.shared.measured && !self.is_packet {
            self.enter_site(StageClock::handler(self.shared.program.stages.len(), index as u32));
        }
        let variables: Vec<Variable> = self.slots.values().copied().collect();
        let zero = self.iconst(0);
        for variable in variables {
            self.bx.def_var(variable, zero);
        }
        let params = &self.function.blocks[0].params;
        let mut args: Vec<BlockArg> = Vec::new();
        for (index, param) in params.iter().enumerate() {
            let at = index as i32 * 16;
            let width = self.function.width(*param);
            let flags = MemFlagsData::trusted();
            let low = self.bx.ins().load(types::I64, flags, self.frame, at);
            let value = match type_of(width) {
                types::I128 => {
                    let high = self.bx.ins().load(types::I64, flags, self.frame, at + 8);
                    self.bx.ins().iconcat(low, high)
                }
                types::I8 => self.bx.ins().ireduce(types::I8, low),
                _ => low,
            };
            args.push(value.into());
        }
        let first = self.blocks[0];
        self.bx.ins().jump(first, &args);
    }

    fn block(&mut self, id: BlockId) {
        let block = self.function.block(id);
        self.begin(id);
        for instruction in &block.instructions {
            self.instruction(instruction);
        }
        self.terminator(&block.terminator);
    }

    fn begin(&mut self, id: BlockId) {
        let to = self.blocks[id.0 as usize];
        self.bx.switch_to_block(to);
        for param in &self.function.block(id).params {
            let kind: Type = type_of(self.function.width(*param));
            let value = self.bx.append_block_param(to, kind);
            self.set(*param, value);
        }
    }

    /// Translates a block up to its first effect. If this effect is not an early lookup, the packet runs from
    /// the beginning when it is its turn.
    fn block_before(&mut self, id: BlockId, end: usize, lookups: &[EarlyLookup]) {
        self.begin(id);
        let instructions = &self.function.block(id).instructions;
        for instruction in &instructions[..end] {
            self.instruction(instruction);
        }
        let asked = lookups.iter().position(|lookup| lookup.block == id);
        let answer = match (asked, &instructions[end].op) {
            (Some(number), Op::Lookup { table, key }) => {
                self.ask(*table, key, number);
                self.keep_values(&lookups[number]);
                ASKED | number as u64
            }
            _ => NOT_ASKED,
        };
        let answer = self.iconst(answer);
        self.bx.ins().return_(&[answer]);
    }

    /// Stores the key of an early lookup among those of the other packets.
    fn ask(&mut self, table: u32, key: &[Value], number: usize) {
        let packed = self.pack(&self.shared.packings[table as usize].0, key);
        let offset = offset_of!(Context<'_>, asked) + number * size_of::<*mut u64>();
        let place = self.fixed(offset);
        for (index, word) in packed.into_iter().enumerate() {
            self.bx.ins().store(MemFlagsData::trusted(), word, place, index as i32 * 8);
        }
    }

    /// Stores the values that are needed after an early lookup.
    fn keep_values(&mut self, lookup: &EarlyLookup) {
        let place = self.fixed(offset_of!(Context<'_>, kept));
        let flags = MemFlagsData::trusted();
        let mut at = 8;
        for slot in &lookup.slots {
            let Some(variable) = self.slots.get(slot).copied() else { continue };
            let used = self.bx.use_var(variable);
            self.bx.ins().store(flags, used, place, at);
            at += 8;
        }
        for value in &lookup.kept {
            let wide = self.function.width(*value) > 64;
            let value = self.value(*value);
            let (low, high) = words(&mut self.bx, value);
            self.bx.ins().store(flags, low, place, at);
            at += 8;
            if wide {
                self.bx.ins().store(flags, high, place, at);
                at += 8;
            }
        }
    }

    /// Loads the kept values and the result of an early lookup, and translates the rest of its block.
    fn go_on(&mut self, lookup: &EarlyLookup) {
        let place = self.fixed(offset_of!(Context<'_>, kept));
        let flags = MemFlagsData::trusted();
        let entry = self.bx.ins().load(types::I64, flags, place, 0);
        let zero = self.iconst(0);
        let mut at = 8;
        for slot in slots_of(self.function) {
            let Some(variable) = self.slots.get(&slot).copied() else { continue };
            self.bx.def_var(variable, zero);
            if lookup.slots.contains(&slot) {
                let used = self.bx.ins().load(types::I64, flags, place, at);
                self.bx.def_var(variable, used);
                at += 8;
            }
        }
        for kept in &lookup.kept {
            let width = self.function.width(*kept);
            let low = self.bx.ins().load(types::I64, flags, place, at);
            at += 8;
            let value = match type_of(width) {
                types::I128 => {
                    let high = self.bx.ins().load(types::I64, flags, place, at);
                    at += 8;
                    self.bx.ins().iconcat(low, high)
                }
                types::I8 => self.bx.ins().ireduce(types::I8, low),
                _ => low,
            };
            self.set(*kept, value);
        }
        for (made, number) in &lookup.constants {
            self.constants[made.0 as usize] = Some(*number);
            let value = constant(&mut self.bx, self.function.width(*made), *number);
            self.set(*made, value);
        }
        let block = self.function.block(lookup.block);
        if let Some((asked, rest)) = block.instructions[lookup.at..].split_first() {
            if let Op::Lookup { table, .. } = &asked.op {
                let packing = &self.shared.packings[*table as usize].1;
                self.found(*table, entry, packing, &asked.results);
            }
            rest.iter().for_each(|instruction| self.instruction(instruction));
        }
        self.terminator(&block.terminator);
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let result = instruction.results.first().copied();
        let width = result.map_or(64, |result| self.function.width(result));
        let value = match &instruction.op {
            Op::Const(value) => {
                if let Some(result) = result {
                    self.constants[result.0 as usize] = Some(*value);
                }
                constant(&mut self.bx, width, *value)
            }
            Op::Binary(op, a, b) => {
                let (a, b) = (self.value(*a), self.value(*b));
                binary(&mut self.bx, &mut self.host, *op, width, a, b)
            }
            Op::Compare(op, a, b) => {
                let (a, b) = (self.value(*a), self.value(*b));
                compare(&mut self.bx, *op, a, b)
            }
            Op::Select(condition, yes, no) => {
                let (condition, yes, no) = (self.value(*condition), self.value(*yes), self.value(*no));
                select(&mut self.bx, condition, yes, no)
            }
            Op::Resize(from) => {
                let have = self.function.width(*from);
                let from = self.value(*from);
                resize(&mut self.bx, from, have, width)
            }
            Op::Load { base, offset, bytes, proven } => {
                let place = self.place(*base, *proven);
                bytes::load(&mut self.bx, place, *offset, *bytes)
            }
            Op::Store { base, offset, bytes, value, proven } => {
                let (place, value) = (self.place(*base, *proven), self.value(*value));
                bytes::store(&mut self.bx, place, *offset, *bytes, value);
                return;
            }
            Op::Checksum { base, bytes, more } => self.checksum(*base, *bytes, *more),
            Op::InPort => self.in_port,
            Op::WireLength => self.wire(),
            Op::Captured => self.captured(),
            Op::Now => self.fixed(offset_of!(Context<'_>, now)),
            Op::Keep(kept) => {
                let kept = self.value(*kept);
                let (low, high) = words(&mut self.bx, kept);
                let kept = self.bx.ins().bor(low, high);
                self.keep(kept);
                return;
            }
            Op::EnterStage(stage) => {
                if self.shared.measured {
                    self.enter_site(StageClock::stage(*stage));
                }
                return;
            }
            Op::Header { .. } => return,
            effect => return self.effect(effect, &instruction.results),
        };
        if let Some(result) = result {
            self.set(result, value);
        }
    }

    /// The place of the bytes at `base`.
    pub(super) fn place(&mut self, base: Value, proven: u32) -> Place {
        let flags = self.packet;
        if let Some(base) = self.constants[base.0 as usize] {
            return Place { address: self.frame(), lead: base as u32, proven, flags };
        }
        let (base, frame) = (self.value(base), self.frame());
        Place { address: self.bx.ins().iadd(frame, base), lead: 0, proven, flags }
    }

    fn target(&self, target: &Target) -> (clif::Block, Vec<BlockArg>) {
        let args = target.args.iter().map(|arg| self.value(*arg).into()).collect();
        (self.blocks[target.block.0 as usize], args)
    }

    /// Translates a branch both ways of which only compute a few values and lead to the same block: computes
    /// both and selects, since the processor cannot predict every branch. Returns whether the branch is one.
    fn choose(&mut self, condition: clif::Value, yes: &Target, no: &Target) -> bool {
        let function = self.function;
        let ((yes_way, yes), (no_way, no)) = (quick_way(function, yes), quick_way(function, no));
        if yes.block != no.block {
            return false;
        }
        yes_way.iter().chain(no_way).for_each(|instruction| self.instruction(instruction));
        let mut args: Vec<BlockArg> = Vec::with_capacity(yes.args.len());
        for (yes, no) in yes.args.iter().zip(&no.args) {
            let (yes, no) = (self.value(*yes), self.value(*no));
            let chosen = if yes == no { yes } else { select(&mut self.bx, condition, yes, no) };
            args.push(chosen.into());
        }
        let to = self.blocks[yes.block.0 as usize];
        self.bx.ins().jump(to, &args);
        true
    }

    fn branch(&mut self, condition: clif::Value, yes: &Target, no: &Target) {
        let ((yes, yes_args), (no, no_args)) = (self.target(yes), self.target(no));
        self.bx.ins().brif(condition, yes, &yes_args, no, &no_args);
    }

    fn terminator(&mut self, terminator: &Terminator) {
        match terminator {
            Terminator::Jump(target) => {
                let (block, args) = self.target(target);
                self.bx.ins().jump(block, &args);
            }
            Terminator::Branch(condition, yes, no) => {
                let condition = self.value(*condition);
                if !self.choose(condition, yes, no) {
                    self.branch(condition, yes, no);
                }
            }
            Terminator::Switch(value, cases, default) => self.switch(*value, cases, default),
            Terminator::Need { base, bytes, more, limit, ok, short } => {
                let base = self.value(*base);
                let bytes = self.iconst(u64::from(*bytes));
                let mut end = self.bx.ins().iadd(base, bytes);
                if let Some(more) = more {
                    let more = self.value(*more);
                    end = self.bx.ins().iadd(end, more);
                }
                let captured = self.captured();
                let mut fits = compare(&mut self.bx, ir::CompareOp::Le, end, captured);
                if let Some(limit) = limit {
                    let limit = self.value(*limit);
                    let inside = compare(&mut self.bx, ir::CompareOp::Le, end, limit);
                    fits = self.bx.ins().band(fits, inside);
                }
                self.branch(fits, ok, short);
            }
            Terminator::Fuel { slot, cap, ok, out } => {
                let variable = self.slots[slot];
                let used = self.bx.use_var(variable);
                let used = self.bx.ins().iadd_imm_u(used, 1);
                self.bx.def_var(variable, used);
                let cap = self.iconst(u64::from(*cap));
                let fits = compare(&mut self.bx, ir::CompareOp::Le, used, cap);
                self.branch(fits, ok, out);
            }
            Terminator::Send(port) => {
                let port = self.value(*port);
                let exists = self.has_port(port);
                let send = self.iconst(Verdict::send(0).bits().into());
                let send = self.bx.ins().bor(port, send);
                let drop = self.iconst(Verdict::drop(NO_SUCH_PORT).bits().into());
                let verdict = self.bx.ins().select(exists, send, drop);
                self.leave();
                self.bx.ins().return_(&[verdict]);
            }
            Terminator::Flood => self.end(Verdict::FLOOD),
            Terminator::Multicast(set) => self.end(Verdict::multicast(*set as u16)),
            Terminator::Drop(reason) => self.end(Verdict::drop(*reason)),
            Terminator::Punt(reason) => self.end(Verdict::punt(*reason)),
            Terminator::Done => self.end(Verdict::PENDING),
        }
    }

    fn end(&mut self, verdict: Verdict) {
        let verdict = self.iconst(verdict.bits().into());
        self.leave();
        self.bx.ins().return_(&[verdict]);
    }

    /// Reports that a decoder, stage or handler begins.
    fn enter_site(&mut self, site: usize) {
        let site = self.iconst(site as u64);
        self.host.call(&mut self.bx, ENTER_SITE, [self.context, site]);
    }

    /// Reports that the function ends, if stages are measured and the packet does not go on after an early
    /// lookup.
    fn leave(&mut self) {
        if self.shared.measured && !self.goes_on {
            self.host.call(&mut self.bx, LEAVE_SITE, [self.context]);
        }
    }

    /// Whether there is such a port.
    pub(super) fn has_port(&mut self, port: clif::Value) -> clif::Value {
        let one = self.iconst(1);
        let from_zero = self.bx.ins().isub(port, one);
        let ports = self.iconst(self.shared.ports.into());
        compare(&mut self.bx, ir::CompareOp::Lt, from_zero, ports)
    }

    fn switch(&mut self, value: Value, cases: &[(u128, Target)], default: &Target) {
        let width = self.function.width(value);
        let value = self.value(value);
        let value = if width == 1 { word(&mut self.bx, value) } else { value };
        let mut switch = Switch::new();
        // A case of a switch cannot have arguments, so each case gets a block that passes them.
        let mut hand_over = Vec::with_capacity(cases.len() + 1);
        for (case, target) in cases {
            let block = self.bx.create_block();
            switch.set_entry(*case, block);
            hand_over.push((block, target));
        }
        let otherwise = self.bx.create_block();
        hand_over.push((otherwise, default));
        switch.emit(&mut self.bx, value, otherwise);
        for (block, target) in hand_over {
            self.bx.switch_to_block(block);
            let (block, args) = self.target(target);
            self.bx.ins().jump(block, &args);
        }
    }
}

/// Whether the block drops packets that fail a check of the compiler itself. Such packets are rare, so their
/// code is placed away from the hot path. The names of these reasons contain parentheses, which a name in a
/// program cannot contain.
fn is_failed_check(program: &Program, block: &Block) -> bool {
    let Terminator::Drop(reason) = block.terminator else { return false };
    let reason = program.reasons.get(usize::from(reason));
    block.instructions.is_empty() && reason.is_some_and(|reason| reason.name.contains('('))
}

/// The most instructions of a way of a branch that is computed in any case.
const QUICK_WAY: usize = 3;

/// Where a branch leads after a block that only computes a few values, and the instructions of that block; or
/// where it leads at once.
fn quick_way<'f>(function: &'f Function, target: &'f Target) -> (&'f [Instruction], &'f Target) {
    let block = function.block(target.block);
    let is_quick = |op: &Op| {
        matches!(op, Op::Const(_) | Op::Compare(..) | Op::Select(..) | Op::Resize(_))
            || matches!(op, Op::Binary(op, ..) if QUICK.contains(op))
    };
    match &block.terminator {
        Terminator::Jump(join)
            if block.params.is_empty()
                && block.instructions.len() <= QUICK_WAY
                && block.instructions.iter().all(|instruction| is_quick(&instruction.op)) =>
        {
            (&block.instructions, join)
        }
        _ => (&[], target),
    }
}

/// Operations that take about as long as a selection.
const QUICK: [BinaryOp; 7] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRight,
];

/// The fuel counters a function uses.
fn slots_of(function: &Function) -> Vec<u32> {
    let used = function.blocks.iter().filter_map(|block| match block.terminator {
        Terminator::Fuel { slot, .. } => Some(slot),
        _ => None,
    });
    let mut slots: Vec<u32> = used.collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Every function is declared with four parameters.
fn unreachable_signature() -> ! {
    unreachable!("every function is declared with four parameters")
}
