//! IR made from scratch: functions out of every instruction there is, over tables and memory of every kind.
//!
//! A function grows block by block. What a block may use is known where it begins: values made on every way
//! to it, and how many bytes behind which of them are captured. Branches may meet again in a block that was
//! opened before them, and loops go back to one whose terminator uses up fuel. So what is made is well
//! formed, and a program that the verifier refuses is a fault of one of both.

mod declarations;
mod instructions;
mod ran;

pub use ran::{INSTRUCTIONS, instructions, probed};

use crate::packet_generator::Arrivals;
use crate::random::SuiteRandom;
use declarations::{byte, width};
use ir::source::Span;
use ir::verify::derive_manifest;
use ir::{Block, BlockId, Function, Instruction, Op, Program, Target, Terminator, Value};
use std::collections::BTreeMap;

/// Blocks of a function, about.
const BLOCKS: usize = 24;

/// How deep branches and loops lie in each other.
const DEPTH: u32 = 6;

/// A program.
pub fn generate(random: &mut SuiteRandom) -> Program {
    let mut program = declarations::made(random);
    let mut slots = 0;
    let mut functions = vec![function(&program, random, "packet", None, 0, &mut slots)];
    for number in 0..program.events.len() {
        let widths: Vec<u8> = program.events[number].params.iter().map(|param| param.width).collect();
        let name = format!("event{number}");
        functions.push(function(&program, random, &name, Some(&widths), number + 1, &mut slots));
    }
    functions.push(function(&program, random, "every", Some(&[]), 0, &mut slots));
    (program.functions, program.slots) = (functions, slots);
    // A probe in every block would hide what machine code keeps in registers from block to block.
    if random.one_in(2) {
        ran::probe(&mut program);
    }
    program.manifest = derive_manifest(&program);
    program
}

/// Packets of few different bytes, of every length up to a few headers.
pub fn packets(random: &mut SuiteRandom, count: usize, ports: u16) -> Arrivals {
    let mut arrivals = Arrivals::default();
    let mut time = 1_000_000_000;
    for _ in 0..count {
        let length = if random.one_in(4) { random.below(200) } else { random.below(70) };
        let bytes: Vec<u8> = (0..length).map(|_| byte(random)).collect();
        time += *random.pick(&[0, 1, 1_000, 900_000, 7_000_000]);
        let more = if random.one_in(4) { random.below(1_000) } else { 0 };
        let port = random.between(1, ports.into()) as u16;
        arrivals.push(&bytes, (length + more) as u32, time, port);
    }
    arrivals
}

/// A block that may be gone to from where it is known: its parameters, each with how many bytes behind it
/// must be captured.
#[derive(Clone)]
struct Exit {
    block: BlockId,
    params: Vec<(u8, u32)>,
}

/// What is known at a place of a function.
#[derive(Clone)]
struct Scope {
    at: BlockId,
    values: Vec<Value>,
    /// By value: so many bytes from it on are captured.
    shown: BTreeMap<Value, u32>,
    /// Blocks that were opened before and may be gone to.
    exits: Vec<Exit>,
}

struct Maker<'a> {
    program: &'a Program,
    random: &'a mut SuiteRandom,
    function: Function,
    /// It is run for packets.
    packet: bool,
    /// Events that it may raise begin here: none that leads back to itself.
    raises: usize,
    /// It has instructions that change the packet's size.
    resizes: bool,
    slots: &'a mut u32,
}

/// A function; with parameters it is a handler.
fn function(
    program: &Program,
    random: &mut SuiteRandom,
    name: &str,
    handler: Option<&[u8]>,
    raises: usize,
    slots: &mut u32,
) -> Function {
    let resizes = handler.is_none() && random.one_in(3);
    let function = Function { name: name.to_owned(), ..Function::default() };
    let packet = handler.is_none();
    let mut maker = Maker { program, random, function, packet, raises, resizes, slots };
    let params: Vec<(u8, u32)> = handler.unwrap_or_default().iter().map(|width| (*width, 0)).collect();
    let entry = maker.open(&params);
    let scope = Scope { at: entry.block, values: Vec::new(), shown: BTreeMap::new(), exits: Vec::new() };
    let scope = maker.enter(&scope, &entry);
    maker.fill(scope, DEPTH);
    maker.function
}

impl Maker<'_> {
    fn value_of(&mut self, width: u8) -> Value {
        self.function.widths.push(width);
        Value(self.function.widths.len() as u32 - 1)
    }

    /// A new block.
    fn open(&mut self, params: &[(u8, u32)]) -> Exit {
        let values = params.iter().map(|(width, _)| self.value_of(*width)).collect();
        let block = Block {
            params: values,
            instructions: Vec::new(),
            terminator: if self.packet { Terminator::Drop(0) } else { Terminator::Done },
            span: Span::default(),
        };
        self.function.blocks.push(block);
        Exit { block: BlockId(self.function.blocks.len() as u32 - 1), params: params.to_vec() }
    }

    /// What is known where a block begins that is gone to from places where all of `before` is known, and
    /// perhaps later.
    fn enter(&self, before: &Scope, block: &Exit) -> Scope {
        let mut scope = Scope { at: block.block, ..before.clone() };
        if self.resizes {
            scope.shown.clear();
        }
        let params = &self.function.block(block.block).params;
        scope.values.extend(params);
        let known = params.iter().zip(&block.params).filter(|(_, (_, known))| *known > 0);
        scope.shown.extend(known.map(|(param, (_, known))| (*param, *known)));
        scope
    }

    /// The same where one edge alone leads to the block, so that what is captured still is.
    fn go_on(&mut self, before: &Scope) -> Scope {
        let block = self.open(&[]);
        Scope { at: block.block, ..before.clone() }
    }

    fn emit(&mut self, scope: &mut Scope, widths: &[u8], op: Op) -> Vec<Value> {
        let results: Vec<Value> = widths.iter().map(|width| self.value_of(*width)).collect();
        scope.values.extend(&results);
        let block = &mut self.function.blocks[scope.at.0 as usize];
        block.instructions.push(Instruction { results: results.clone(), op, span: Span::default() });
        results
    }

    fn end(&mut self, scope: &Scope, terminator: Terminator) {
        self.function.blocks[scope.at.0 as usize].terminator = terminator;
    }

    /// A constant.
    fn number(&mut self, scope: &mut Scope, width: u8, number: u128) -> Value {
        self.emit(scope, &[width], Op::Const(number))[0]
    }

    /// A value of this width: one that there is, or one made from it, or a constant.
    fn value(&mut self, scope: &mut Scope, width: u8) -> Value {
        let alike: Vec<Value> =
            scope.values.iter().copied().filter(|value| self.function.width(*value) == width).collect();
        if !alike.is_empty() && !self.random.one_in(5) {
            return *self.random.pick(&alike);
        }
        if !scope.values.is_empty() && self.random.one_in(2) {
            let value = *self.random.pick(&scope.values);
            return self.emit(scope, &[width], Op::Resize(value))[0];
        }
        let number = self.random.value(width);
        self.number(scope, width, number)
    }

    fn values(&mut self, scope: &mut Scope, widths: &[u8]) -> Vec<Value> {
        widths.iter().map(|width| self.value(scope, *width)).collect()
    }

    /// A position in a packet or a number of bytes, mostly a small one.
    fn position(&mut self, scope: &mut Scope) -> Value {
        match self.random.below(6) {
            0..=2 => {
                let number = self.random.below(48);
                self.number(scope, 32, number.into())
            }
            3 => {
                let narrow = self.random.between(3, 6) as u8;
                let value = self.value(scope, narrow);
                self.emit(scope, &[32], Op::Resize(value))[0]
            }
            4 if !scope.shown.is_empty() => {
                let bases: Vec<Value> = scope.shown.keys().copied().collect();
                *self.random.pick(&bases)
            }
            _ => self.value(scope, 32),
        }
    }

    /// Parameters of a new block that can be handed over here.
    fn params(&mut self, scope: &Scope) -> Vec<(u8, u32)> {
        let shown: Vec<u32> = scope.shown.values().copied().filter(|bytes| *bytes > 0).collect();
        let one = |random: &mut SuiteRandom| match shown.is_empty() || random.one_in(2) {
            true => (width(random), 0),
            false => {
                let most = *random.pick(&shown);
                (32, random.between(1, most.into()) as u32)
            }
        };
        (0..self.random.below(4)).map(|_| one(self.random)).collect()
    }

    /// The way to a block, if what it asks for can be handed over here.
    fn target(&mut self, scope: &mut Scope, exit: &Exit) -> Option<Target> {
        let mut args = Vec::new();
        for &(width, known) in &exit.params {
            if known == 0 {
                args.push(self.value(scope, width));
                continue;
            }
            let fit: Vec<Value> =
                scope.shown.iter().filter(|(_, bytes)| **bytes >= known).map(|(value, _)| *value).collect();
            if fit.is_empty() {
                return None;
            }
            args.push(*self.random.pick(&fit));
        }
        Some(Target { block: exit.block, args })
    }

    /// Fills a block, and all that it opens.
    fn fill(&mut self, mut scope: Scope, depth: u32) {
        for _ in 0..self.random.below(6) {
            self.instruction(&mut scope);
        }
        if depth == 0 || self.function.blocks.len() >= BLOCKS {
            return self.leaf(scope);
        }
        match self.random.below(12) {
            0 => self.leaf(scope),
            1 => {
                let params = self.params(&scope);
                let next = self.open(&params);
                let Some(target) = self.target(&mut scope, &next) else { return self.leaf(scope) };
                self.end(&scope, Terminator::Jump(target));
                // One edge leads there: what is captured still is.
                let shown = scope.shown.clone();
                let mut inside = self.enter(&scope, &next);
                inside.shown.extend(shown);
                self.fill(inside, depth - 1);
            }
            2 | 3 => {
                let condition = self.value(&mut scope, 1);
                self.arms(scope, depth, 2, |_, mut ways| {
                    let no = ways.pop().expect("two ways");
                    let yes = ways.pop().expect("two ways");
                    Terminator::Branch(condition, yes, no)
                });
            }
            4 => {
                let value = match scope.values.is_empty() {
                    true => self.value(&mut scope, 8),
                    false => *self.random.pick(&scope.values),
                };
                let width = self.function.width(value);
                let mut cases: Vec<u128> =
                    (0..self.random.below(4)).map(|_| self.random.value(width)).collect();
                cases.sort_unstable();
                cases.dedup();
                self.arms(scope, depth, cases.len() + 1, |_, mut ways| {
                    let default = ways.pop().expect("a way");
                    Terminator::Switch(value, cases.into_iter().zip(ways).collect(), default)
                });
            }
            5..=8 if self.packet => self.need(scope, depth),
            9 => {
                let (slot, cap) = self.fuel();
                self.arms(scope, depth, 2, |_, mut ways| {
                    let out = ways.pop().expect("two ways");
                    let ok = ways.pop().expect("two ways");
                    Terminator::Fuel { slot, cap, ok, out }
                });
            }
            _ => self.cycle(scope, depth),
        }
    }

    fn fuel(&mut self) -> (u32, u32) {
        let slot = self.random.below(u64::from(*self.slots) + 1) as u32;
        *self.slots = (*self.slots).max(slot + 1);
        (slot, self.random.below(6) as u32)
    }

    /// A block that several ways of the blocks inside may lead to; it is filled last.
    fn meeting(&mut self, scope: &mut Scope) -> Option<(Scope, Exit)> {
        if !self.random.one_in(2) {
            return None;
        }
        let params = self.params(scope);
        let block = self.open(&params);
        let inside = self.enter(scope, &block);
        scope.exits.push(block.clone());
        Some((inside, block))
    }

    /// Ways that end in `ways` blocks, which a terminator made of them leads to.
    fn arms(
        &mut self,
        mut scope: Scope,
        depth: u32,
        ways: usize,
        terminator: impl FnOnce(&mut Self, Vec<Target>) -> Terminator,
    ) {
        let meeting = self.meeting(&mut scope);
        let arms: Vec<Scope> = (0..ways).map(|_| self.go_on(&scope)).collect();
        let targets = arms.iter().map(|arm| Target { block: arm.at, args: Vec::new() }).collect();
        let terminator = terminator(self, targets);
        self.end(&scope, terminator);
        arms.into_iter().for_each(|arm| self.fill(arm, depth - 1));
        if let Some((inside, _)) = meeting {
            self.fill(inside, depth - 1);
        }
    }

    fn need(&mut self, mut scope: Scope, depth: u32) {
        let base = self.position(&mut scope);
        let bytes = self.random.below(24) as u32;
        let more = self.random.one_in(4).then(|| self.position(&mut scope));
        let limit = self.random.one_in(4).then(|| self.position(&mut scope));
        let meeting = self.meeting(&mut scope);
        let (mut good, bad) = (self.go_on(&scope), self.go_on(&scope));
        let [ok, short] = [good.at, bad.at].map(|block| Target { block, args: Vec::new() });
        self.end(&scope, Terminator::Need { base, bytes, more, limit, ok, short });
        if bytes > 0 {
            let known = good.shown.entry(base).or_insert(0);
            *known = (*known).max(bytes);
        }
        self.fill(good, depth - 1);
        self.fill(bad, depth.min(2) - 1);
        if let Some((inside, _)) = meeting {
            self.fill(inside, depth - 1);
        }
    }

    /// A loop: its first block uses up fuel, and ways inside go back there.
    fn cycle(&mut self, mut scope: Scope, depth: u32) {
        let params = self.params(&scope);
        let head = self.open(&params);
        let Some(target) = self.target(&mut scope, &head) else { return self.leaf(scope) };
        self.end(&scope, Terminator::Jump(target));
        let mut inside = self.enter(&scope, &head);
        for _ in 0..self.random.below(4) {
            self.instruction(&mut inside);
        }
        let (slot, cap) = self.fuel();
        let (mut body, after) = (self.go_on(&inside), self.go_on(&inside));
        let [ok, out] = [body.at, after.at].map(|block| Target { block, args: Vec::new() });
        self.end(&inside, Terminator::Fuel { slot, cap, ok, out });
        body.exits.push(head);
        self.fill(body, depth - 1);
        self.fill(after, depth - 1);
    }

    /// The end of a block that opens no other one: back, on, or a verdict.
    fn leaf(&mut self, mut scope: Scope) {
        if !scope.exits.is_empty() && !self.random.one_in(4) {
            let last = scope.exits.len() - 1;
            let place =
                if self.random.one_in(2) { last } else { self.random.below(last as u64 + 1) as usize };
            let exit = scope.exits[place].clone();
            if let Some(target) = self.target(&mut scope, &exit) {
                return self.end(&scope, Terminator::Jump(target));
            }
        }
        if !self.packet {
            return self.end(&scope, Terminator::Done);
        }
        let reasons = self.program.reasons.len() as u64;
        let terminator = match self.random.below(6) {
            0 | 1 => Terminator::Send(self.port(&mut scope)),
            2 => Terminator::Flood,
            3 => Terminator::Multicast(self.random.below(self.program.port_sets.len() as u64) as u32),
            4 => Terminator::Drop(self.random.below(reasons) as u16),
            _ => Terminator::Punt(self.random.below(reasons) as u16),
        };
        self.end(&scope, terminator);
    }

    /// A port, mostly one that there is.
    fn port(&mut self, scope: &mut Scope) -> Value {
        if self.random.one_in(3) {
            return self.value(scope, 16);
        }
        let number = self.random.between(1, 5);
        self.number(scope, 16, number.into())
    }
}

#[cfg(test)]
mod tests;
