//! The function that is being built: its blocks and instructions, and what is known where ways meet.

use super::env::{Env, Variable};
use super::seals::Sealed;
use crate::check::types::Type;
use ir::source::Span;
use ir::{Block, BlockId, ColumnKind, CompareOp, Function, Instruction, Op, Target, Terminator, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A way on that has not been taken yet: where it starts and what is known there.
pub(crate) type Exit = (BlockId, Env);

/// The ways on where a condition holds and where it does not; a way that cannot be taken is missing.
pub(crate) type Ways = (Option<Exit>, Option<Exit>);

/// The function that is being built, and what is known at the point where it goes on.
pub(crate) struct Builder<'p> {
    kinds: &'p dyn Fn(&Type) -> ColumnKind,
    pub(crate) function: Function,
    /// The block that is being filled; `None` behind a verdict.
    pub(crate) current: Option<BlockId>,
    pub(crate) env: Env,
    /// The expressions of several branches that enclose the place, the innermost last: the exits of the
    /// branches that are done.
    pub(super) ways: Vec<Vec<Exit>>,
}

/// A target without values.
pub(crate) fn to(block: BlockId) -> Target {
    Target { block, args: Vec::new() }
}

impl<'p> Builder<'p> {
    /// `kinds` says how values of a type are shown.
    pub(crate) fn new(kinds: &'p dyn Fn(&Type) -> ColumnKind) -> Self {
        Self { kinds, function: Function::default(), current: None, env: Env::default(), ways: Vec::new() }
    }
}

impl Builder<'_> {
    pub(crate) fn new_block(&mut self, span: Span) -> BlockId {
        self.function.blocks.push(Block {
            params: Vec::new(),
            instructions: Vec::new(),
            terminator: Terminator::Done,
            span,
        });
        BlockId((self.function.blocks.len() - 1) as u32)
    }

    pub(crate) fn new_value(&mut self, width: u8) -> Value {
        self.function.widths.push(width.max(1));
        Value((self.function.widths.len() - 1) as u32)
    }

    pub(crate) fn block_param(&mut self, block: BlockId, width: u8) -> Value {
        let value = self.new_value(width);
        self.function.blocks[block.0 as usize].params.push(value);
        value
    }

    pub(crate) fn name_value(&mut self, value: Value, name: &str, ty: &Type) {
        let kind = (self.kinds)(ty);
        self.function.names.push((value, name.to_string(), kind));
    }

    pub(crate) fn push(&mut self, results: Vec<Value>, op: Op, span: Span) {
        if let Some(block) = self.current {
            self.function.blocks[block.0 as usize].instructions.push(Instruction { results, op, span });
        }
    }

    /// An instruction with one result.
    pub(crate) fn emit(&mut self, width: u8, op: Op, span: Span) -> Value {
        let value = self.new_value(width);
        self.push(vec![value], op, span);
        value
    }

    /// An instruction without results.
    pub(crate) fn effect(&mut self, op: Op, span: Span) {
        self.push(Vec::new(), op, span);
    }

    pub(crate) fn constant(&mut self, value: u128, width: u8, span: Span) -> Value {
        self.emit(width, Op::Const(value), span)
    }

    /// The smaller one of two values of a width.
    pub(crate) fn smaller(&mut self, one: Value, other: Value, span: Span) -> Value {
        let fits = self.emit(1, Op::Compare(CompareOp::Le, one, other), span);
        self.emit(self.function.width(one), Op::Select(fits, one, other), span)
    }

    /// The larger one of two values of a width.
    pub(crate) fn larger(&mut self, one: Value, other: Value, span: Span) -> Value {
        let less = self.emit(1, Op::Compare(CompareOp::Lt, one, other), span);
        self.emit(self.function.width(one), Op::Select(less, other, one), span)
    }

    /// Ends the current block; nothing is current behind it.
    pub(crate) fn terminate(&mut self, terminator: Terminator, span: Span) {
        if let Some(block) = self.current.take() {
            let block = &mut self.function.blocks[block.0 as usize];
            block.terminator = terminator;
            block.span = span;
        }
    }

    pub(crate) fn drop_block(&mut self, reason: u16, span: Span) -> BlockId {
        let block = self.new_block(span);
        self.function.blocks[block.0 as usize].terminator = Terminator::Drop(reason);
        block
    }

    /// Goes on at an exit.
    pub(crate) fn resume(&mut self, exit: Exit) {
        self.current = Some(exit.0);
        self.env = exit.1;
    }

    /// Takes the current point as an exit; `None` behind a verdict.
    pub(crate) fn suspend(&mut self) -> Option<Exit> {
        self.current.take().map(|block| (block, std::mem::take(&mut self.env)))
    }

    /// Goes on where all exits meet; behind no exit nothing is current.
    pub(crate) fn join(&mut self, exits: Vec<Exit>, span: Span) {
        let mut exits = exits;
        match exits.len() {
            0 => {
                self.current = None;
                self.env = Env::default();
            }
            1 => {
                if let Some(exit) = exits.pop() {
                    self.resume(exit);
                }
            }
            _ => {
                self.note_nothing(&mut exits, span);
                let block = self.new_block(span);
                let (env, varying) = self.merge(&exits, block);
                for (from, known) in exits {
                    let args: Vec<Value> = varying.iter().map(|variable| known.values[variable]).collect();
                    self.current = Some(from);
                    self.terminate(Terminator::Jump(Target { block, args }), span);
                }
                self.resume((block, env));
            }
        }
    }

    /// Where one exit has a change of a checksum noted, the others get one of zero.
    fn note_nothing(&mut self, exits: &mut [Exit], span: Span) {
        let noted: BTreeSet<Variable> = exits.iter().flat_map(|(_, env)| env.sums()).collect();
        for (block, env) in exits.iter_mut() {
            for &sum in &noted {
                if !env.values.contains_key(&sum) {
                    self.current = Some(*block);
                    env.values.insert(sum, self.constant(0, 64, span));
                }
            }
        }
        self.current = None;
    }

    /// What is known where exits meet, and the variables that become parameters of the block there.
    fn merge(&mut self, exits: &[Exit], block: BlockId) -> (Env, Vec<Variable>) {
        let mut env = exits[0].1.clone();
        for (_, other) in &exits[1..] {
            env = env.common(other);
        }
        env.sealed = met(exits);
        let mut varying = Vec::new();
        // Only what differs is looked at, and only the first exit has what could be known at all of them.
        let first = &exits[0].1.values;
        let mut differing: BTreeMap<Variable, bool> = BTreeMap::new();
        for (_, other) in &exits[1..] {
            for (variable, _, there) in first.differences(&other.values) {
                *differing.entry(variable).or_insert(true) &= there.is_some();
            }
        }
        env.values = first.clone();
        for (variable, everywhere) in differing {
            let Some(&value) = first.get(&variable) else { continue };
            if everywhere {
                let param = self.block_param(block, self.function.width(value));
                varying.push(variable);
                env.values.insert(variable, param);
            } else {
                env.values.remove(&variable);
            }
        }
        (env, varying)
    }

    /// Makes two ways on from a one-bit value, or one if its outcome is known here.
    pub(crate) fn fork(&mut self, condition: Value, span: Span) -> Ways {
        if self.current.is_none() {
            return (None, None);
        }
        match self.env.decided.get(&condition) {
            Some(true) => return (self.suspend(), None),
            Some(false) => return (None, self.suspend()),
            None => {}
        }
        let (yes, no) = (self.new_block(span), self.new_block(span));
        let env = std::mem::take(&mut self.env);
        self.terminate(Terminator::Branch(condition, to(yes), to(no)), span);
        let (mut held, mut failed) = (env.clone(), env);
        held.decided.insert(condition, true);
        failed.decided.insert(condition, false);
        (Some((yes, held)), Some((no, failed)))
    }
}

/// What is sealed where ways meet.
fn met(exits: &[Exit]) -> Option<Sealed> {
    let mut sealed = exits.iter().filter_map(|(_, env)| env.sealed.clone());
    let first = sealed.next()?;
    Some(sealed.fold(first, |met, other| met.and(&other)))
}
