//! From the checked program to IR, stage by stage in the order of the stage graph.
//!
//! A stage becomes a block whose parameters are the places it needs and its own parameters; statements become
//! blocks behind it. While lowering, ranges of fields and locals are followed along every path (joined where
//! paths meet), and what must be proven with them is proven here: no overflow, no lost bits, divisors not
//! zero, constraints kept by writes, nothing decoded behind a later fragment.

mod arithmetic;
mod behind;
mod build;
mod conditions;
mod covered;
mod edit;
mod env;
mod expressions;
mod follows;
mod headers;
mod matches;
mod memory;
mod persistent;
mod sealed;
mod seals;
mod statements;
mod writes;
mod zero;

use crate::check::hir::{self, HeaderId, Program, StageId};
use crate::check::types::Type;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::Flow;
use crate::flow::facts::{Read, Subject};
use crate::limits::LONGEST_PACKET;
use build::{Builder, Exit, to};
use env::{Env, Range, Variable};
use follows::Follows;
use ir::limits::{MOST_PORT_SETS, MOST_REASONS, MOST_SLOTS};
use ir::source::Sources;
use ir::{BlockId, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// When fields are decoded; it changes the generated code, never the meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decode {
    /// A field is read where it is used.
    #[default]
    Lazy,
    /// Fields named by `extract` are read there, others where they are used.
    Declared,
    /// Every field of every header is read when the header is decoded.
    Full,
}

/// Lowers a program; diagnostics are what could not be proven.
pub fn lower(
    name: &str,
    program: &Program,
    kinds: &dyn Fn(&Type) -> ir::ColumnKind,
    flow: &Flow,
    decode: Decode,
    sources: &Sources,
) -> (ir::Program, Vec<Diagnostic>) {
    let mut lowering = Lowering {
        source: program,
        flow,
        decode,
        sources,
        program: declarations(name, program, kinds),
        numbers: Numbers {
            declared: program.reasons.iter().map(|(name, help)| (name.as_str(), help.as_str())).collect(),
            ..Numbers::default()
        },
        diagnostics: Findings::default(),
        code: Builder::new(kinds),
        entries: StageEntries { sealing: seals::sealing(program), ..StageEntries::default() },
        follows: Follows::default(),
        scope: Scope::default(),
        hop_slot: None,
        reads_payload: false,
        judges_host: false,
    };
    lowering.reason("no_such_port", "the program sends to a port that does not exist");
    lowering.packet_function();
    lowering.report_unsettled();
    lowering.handlers();
    let mut program = lowering.program;
    program.manifest = ir::verify::derive_manifest(&program);
    program.manifest.reads_payload |= lowering.reads_payload;
    program.manifest.judges_host = lowering.judges_host;
    (program, lowering.diagnostics.into_list())
}

/// A walk that encloses the statement being lowered: its exits by `break`.
pub(crate) struct Walk {
    pub(crate) header: HeaderId,
    /// The header whose bytes are walked; none for `payload`.
    pub(crate) inside: Option<HeaderId>,
    pub(crate) breaks: Vec<Exit>,
}

pub(crate) struct Lowering<'p> {
    pub(crate) source: &'p Program,
    pub(crate) flow: &'p Flow,
    pub(crate) decode: Decode,
    pub(crate) sources: &'p Sources,
    pub(crate) program: ir::Program,
    pub(crate) diagnostics: Findings,
    numbers: Numbers<'p>,
    /// The function that is being built.
    pub(crate) code: Builder<'p>,
    pub(crate) entries: StageEntries,
    pub(crate) follows: Follows,
    pub(crate) scope: Scope,
    pub(crate) hop_slot: Option<u32>,
    pub(crate) reads_payload: bool,
    pub(crate) judges_host: bool,
}

/// The numbers of what a verdict names.
#[derive(Default)]
struct Numbers<'p> {
    reasons: HashMap<String, u16>,
    /// Reasons with the words that the program declares for them.
    declared: HashMap<&'p str, &'p str>,
    port_sets: HashMap<Vec<u16>, u32>,
}

/// What is known where stages are entered.
#[derive(Default)]
pub(crate) struct StageEntries {
    pub(crate) blocks: HashMap<StageId, BlockId>,
    /// Ranges known at every transfer to a stage lowered so far.
    pub(crate) ranges: HashMap<StageId, BTreeMap<Subject, Range>>,
    /// Pushes before transfers to a stage lowered so far, whose checksums cover what follows.
    pub(crate) sealed: HashMap<StageId, seals::Sealed>,
    /// Stages with such pushes.
    pub(crate) sealing: BTreeMap<StageId, BTreeSet<seals::Breaks>>,
}

/// The place in the program that is being lowered.
#[derive(Default)]
pub(crate) struct Scope {
    /// The statement, or the name of the stage.
    pub(crate) at: ir::source::Span,
    /// `None` in a handler.
    pub(crate) stage: Option<StageId>,
    /// The place is in an event or periodic handler.
    pub(crate) handler: bool,
    /// The header whose fields [`hir::ExprKind::Own`] means.
    pub(crate) own: Option<HeaderId>,
    /// The walks that enclose the place, the innermost last.
    pub(crate) walks: Vec<Walk>,
    /// Where the header in question is read.
    pub(crate) undecoded_read: ir::source::Span,
}

impl Lowering<'_> {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.report(diagnostic);
    }

    /// The number of a reason, made when first named.
    pub(crate) fn reason(&mut self, name: &str, help: &str) -> u16 {
        if let Some(&known) = self.numbers.reasons.get(name) {
            return known;
        }
        if self.program.reasons.len() == MOST_REASONS {
            self.too_many("reasons of drops and punts", MOST_REASONS);
        }
        // Beyond the limit, any number: the program is refused.
        let number = u16::try_from(self.program.reasons.len()).unwrap_or(u16::MAX);
        self.program.reasons.push(ir::Reason { name: name.to_string(), help: help.to_string() });
        self.numbers.reasons.insert(name.to_string(), number);
        number
    }

    /// The number of a reason the program names.
    pub(crate) fn named_reason(&mut self, name: &str, span: ir::source::Span) -> u16 {
        if let Some(&known) = self.numbers.reasons.get(name) {
            return known;
        }
        let help = match self.numbers.declared.get(name) {
            Some(help) => help.to_string(),
            None => format!("the program says so at {}", self.sources.place(span)),
        };
        self.reason(name, &help)
    }

    /// The number of a list of ports.
    pub(crate) fn port_set(&mut self, ports: &[u16]) -> u32 {
        if let Some(&known) = self.numbers.port_sets.get(ports) {
            return known;
        }
        if self.program.port_sets.len() == MOST_PORT_SETS {
            self.too_many("lists of ports for `multicast`", MOST_PORT_SETS);
        }
        let number = self.program.port_sets.len() as u32;
        self.program.port_sets.push(ports.to_vec());
        self.numbers.port_sets.insert(ports.to_vec(), number);
        number
    }

    /// Refuses what a verdict could not number, where it becomes too much.
    fn too_many(&mut self, what: &str, most: usize) {
        let fault = Diagnostic::error(
            "E0233",
            "the program is too large",
            self.scope.at,
            format!("with this there are more than {most} {what}, more than a verdict can number"),
        );
        self.report(fault.help("let several causes share a reason, and several places a list of ports"));
    }

    /// The number of a loop that counts its rounds.
    pub(crate) fn new_slot(&mut self) -> u32 {
        if self.program.slots as usize == MOST_SLOTS {
            let told = format!("with this there are more than {MOST_SLOTS} loops that count their rounds");
            let fault = Diagnostic::error("E0233", "the program is too large", self.scope.at, told);
            self.report(fault.help("let several places share a loop, by a function or a stage"));
        }
        self.program.slots += 1;
        self.program.slots - 1
    }

    fn packet_function(&mut self) {
        self.code.function = ir::Function { name: "packet".to_string(), ..ir::Function::default() };
        let Some(start) = self.source.start else { return };
        let span = self.source.stages[start.0].name_span;
        let entry = self.code.new_block(span);
        self.code.current = Some(entry);
        let zero = self.code.constant(0, 32, span);
        self.code.env.values.insert(Variable::Place(Read::Cursor), zero);
        self.transfer(start, &[], span);
        for index in 0..self.flow.order.len() {
            self.lower_stage(self.flow.order[index]);
        }
        let function = std::mem::take(&mut self.code.function);
        self.program.functions.insert(0, function);
    }

    /// Jumps to the start, the cursor at the first byte.
    pub(crate) fn transfer(&mut self, stage: StageId, args: &[Value], span: ir::source::Span) {
        let target = self.stage_target(stage, args);
        self.code.terminate(ir::Terminator::Jump(target), span);
    }

    /// The block of a stage with what is handed to it from here.
    pub(crate) fn stage_target(&mut self, stage: StageId, args: &[Value]) -> ir::Target {
        let block = self.stage_block(stage);
        let needs: Vec<Read> = self.flow.needs[stage.0].iter().copied().collect();
        let mut handed: Vec<Value> = Vec::new();
        for read in needs {
            if let Read::Group(header, group) = read {
                self.prove(header, group, self.source.stages[stage.0].name_span);
            }
            let value = self.code.handed_on(read);
            handed.push(value);
        }
        handed.extend(args);
        ir::Target { block, args: handed }
    }

    fn stage_block(&mut self, stage: StageId) -> BlockId {
        if let Some(&block) = self.entries.blocks.get(&stage) {
            return block;
        }
        let block = self.code.new_block(self.source.stages[stage.0].name_span);
        for read in &self.flow.needs[stage.0] {
            let width = if matches!(read, Read::Present(..)) { 1 } else { 32 };
            self.code.block_param(block, width);
        }
        for local in &self.source.stages[stage.0].params {
            let width = self.source.locals[local.0].ty.width().unwrap_or(1);
            self.code.block_param(block, width);
        }
        self.entries.blocks.insert(stage, block);
        block
    }

    fn lower_stage(&mut self, id: StageId) {
        let stage = &self.source.stages[id.0];
        let block = self.stage_block(id);
        let params = self.code.function.blocks[block.0 as usize].params.clone();
        self.scope.stage = Some(id);
        self.code.env = Env::default();
        let mut params = params.into_iter();
        for (read, value) in self.flow.needs[id.0].iter().zip(params.by_ref()) {
            self.code.env.values.insert(Variable::Place(*read), value);
        }
        for (local, value) in stage.params.iter().zip(params) {
            self.code.env.values.insert(Variable::Local(*local), value);
            let local = &self.source.locals[local.0];
            self.code.name_value(value, &local.name, &local.ty);
        }
        if !self.flow.cyclic[id.0]
            && let Some(ranges) = self.entries.ranges.remove(&id)
        {
            self.code.env.ranges = ranges.into_iter().collect();
        }
        self.code.env.sealed = self.sealed_at_entry(id);
        self.code.current = Some(block);
        self.code.effect(ir::Op::EnterStage(id.0 as u32), stage.name_span);
        self.scope.at = stage.name_span;
        self.limit_rounds(id);
        if let Some(header) = stage.header {
            let cursor = self.place(Read::Cursor);
            let end = self.decode_header(header, cursor, None, stage.name_span);
            self.code.env.values.insert(Variable::Place(Read::Cursor), end);
            if self.flow.covering.perhaps.contains(&header) {
                let there = self.code.with_constant(ir::BinaryOp::Add, cursor, 1, stage.name_span);
                self.code.env.values.insert(Variable::Place(Read::Perhaps(header)), there);
            }
        }
        self.block(&stage.body);
        // A path that ends without a verdict was reported; the IR needs an end all the same.
        if self.code.current.is_some() {
            self.code.terminate(ir::Terminator::Drop(ir::NO_SUCH_PORT), stage.span);
        }
    }

    /// Limits how often a packet passes a stage that lies on a cycle or has a cap.
    fn limit_rounds(&mut self, id: StageId) {
        let stage = &self.source.stages[id.0];
        let smallest = stage.header.map_or(0, |header| self.source.layout(header).smallest);
        let cap = match stage.cap {
            Some(cap) => cap,
            // Every round consumes the smallest header, and no packet is longer than this.
            None if self.flow.cyclic[id.0] && smallest > 0 => LONGEST_PACKET / smallest + 1,
            None => return,
        };
        let reason = self.reason(
            &format!("too_deep({})", stage.name),
            "the packet passes this stage more often than its cap allows",
        );
        self.use_fuel(cap, reason, stage.name_span);
    }

    /// Goes on at most so many times for one packet, and then drops it for a reason.
    pub(crate) fn use_fuel(&mut self, cap: u32, reason: u16, span: ir::source::Span) {
        let slot = self.new_slot();
        let out = self.code.drop_block(reason, span);
        let ok = self.code.new_block(span);
        self.code.terminate(ir::Terminator::Fuel { slot, cap, ok: to(ok), out: to(out) }, span);
        self.code.current = Some(ok);
    }

    fn handlers(&mut self) {
        self.scope.handler = true;
        for index in 0..self.source.events.len() {
            let event = &self.source.events[index];
            let handler = self.handler_function(&event.name, &event.params, &event.body, event.span);
            self.program.events[index].handler = handler;
        }
        for index in 0..self.source.every.len() {
            let (period, body) = &self.source.every[index];
            let handler = self.handler_function(&format!("every{index}"), &[], body, body.span);
            self.program.every.push(ir::Every { period: *period, handler });
        }
    }

    fn handler_function(
        &mut self,
        name: &str,
        params: &[hir::LocalId],
        body: &hir::Block,
        span: ir::source::Span,
    ) -> u32 {
        self.code.function = ir::Function { name: name.to_string(), ..ir::Function::default() };
        self.code.env = Env::default();
        self.scope.stage = None;
        let entry = self.code.new_block(span);
        self.code.current = Some(entry);
        for local in params {
            let ty = &self.source.locals[local.0].ty;
            let value = self.code.block_param(entry, ty.width().unwrap_or(1));
            self.code.env.values.insert(Variable::Local(*local), value);
            self.code.name_value(value, &self.source.locals[local.0].name, ty);
        }
        self.block(body);
        if self.code.current.is_some() {
            self.code.terminate(ir::Terminator::Done, span);
        }
        self.program.functions.push(std::mem::take(&mut self.code.function));
        (self.program.functions.len() - 1) as u32
    }
}

/// Everything of a program but its functions.
fn declarations(name: &str, program: &Program, kinds: &dyn Fn(&Type) -> ir::ColumnKind) -> ir::Program {
    let event = |event: &hir::Event| {
        let params = event.params.iter().map(|local| &program.locals[local.0]);
        let params = params.map(|local| column(&local.name, &local.ty, kinds)).collect();
        ir::Event { name: event.name.clone(), params, handler: 0 }
    };
    let stage = |stage: &hir::Stage| ir::Stage { name: stage.name.clone(), span: stage.name_span };
    let layouts = &program.layouts[..program.visible_layouts];
    ir::Program {
        name: name.to_string(),
        tables: program.tables.iter().map(|declared| table(declared, kinds)).collect(),
        counters: program.counters.clone(),
        meters: program.meters.clone(),
        registers: program.registers.iter().map(|(register, _)| register.clone()).collect(),
        pools: program.pools.iter().map(|(pool, _)| pool.clone()).collect(),
        groups: program.groups.iter().map(|(group, _)| group.clone()).collect(),
        events: program.events.iter().map(event).collect(),
        stages: program.stages.iter().map(stage).collect(),
        layouts: layouts.iter().map(|described| layout(described, kinds)).collect(),
        ..ir::Program::default()
    }
}

fn column(name: &str, ty: &Type, kinds: &dyn Fn(&Type) -> ir::ColumnKind) -> ir::Column {
    ir::Column { name: name.to_string(), kind: kinds(ty), width: ty.width().unwrap_or(1) }
}

fn table(table: &hir::Table, kinds: &dyn Fn(&Type) -> ir::ColumnKind) -> ir::Table {
    let columns = |columns: &[(String, Type)]| -> Vec<ir::Column> {
        columns.iter().map(|(name, ty)| column(name, ty, kinds)).collect()
    };
    let mut values = columns(&table.value_columns());
    if let (hir::TableValue::Variants(variants), Some(first)) = (&table.value, values.first_mut()) {
        let names = (0..).zip(variants).map(|(number, (name, _))| (number, name.clone()));
        first.kind = ir::ColumnKind::Names(names.collect());
    }
    ir::Table {
        name: table.name.clone(),
        kind: table.kind,
        keys: columns(&table.keys),
        values,
        capacity: table.capacity,
        idle: table.idle,
        age: table.age,
        lifetimes: false,
        evict: table.evict,
        counted: table.counted,
        times: table.times,
        secret: table.secret,
        releases: table.releases,
        expires: table.expires,
        entries: table.entries.clone(),
        file: table.file.clone(),
        default: table.default.clone(),
        span: table.span,
    }
}

fn layout(layout: &hir::Layout, kinds: &dyn Fn(&Type) -> ir::ColumnKind) -> ir::Layout {
    let field = |field: &hir::Field| {
        let is_number = field.ty != Type::View && !field.conditional;
        ir::LayoutField {
            name: field.name.clone(),
            kind: kinds(&field.ty),
            bit: (is_number && field.group == 0).then_some(field.bit),
            width: field.ty.width().filter(|_| is_number).map(u32::from),
        }
    };
    ir::Layout { name: layout.name.clone(), fields: layout.fields.iter().map(field).collect() }
}
