//! Checksums of headers that the program need not have decoded: a header with a pseudo header changes, and the header behind it covers that.
//!
//! The layouts say where that header is: `next` names it by a number and perhaps a condition. Headers in between that have a `next` of their own
//! (extension headers) are passed, in a loop that uses up fuel. Where nothing is found, or not all of it was captured, nothing is written.

use super::covered::Change;
use super::env::{Env, Variable};
use super::{Exit, Lowering, to};
use crate::check::hir::{Group, HeaderId, Layout};
use crate::flow::collect::Read;
use crate::ir::{BinaryOp, BlockId, CompareOp, Op, Target, Terminator, Value};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The way to the header behind.
struct Search {
    change: Change,
    /// Headers whose checksums cover the one that is found.
    covering: Vec<HeaderId>,
    /// What is known where the way begins.
    env: Env,
    /// For every layout that is passed, the block where that begins, and the position there.
    heads: BTreeMap<usize, (BlockId, Value)>,
    /// Layouts whose blocks are still empty.
    open: Vec<usize>,
    exits: Vec<Exit>,
}

/// What a layout is on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It has a checksum over the pseudo header.
    Found,
    /// Something may follow.
    Passed,
    /// The way ends.
    End,
}

impl Lowering<'_> {
    /// Adds what was noted to the checksum of the header behind this one.
    pub(super) fn write_behind(&mut self, header: HeaderId, span: Span) {
        let change = self.take_change(Variable::Behind(header), span);
        let covering = self.covering_behind(header);
        let outer = self.own.replace(header);
        let position = self.end_of(header, span);
        let mut search = Search {
            change,
            covering,
            env: self.env.clone(),
            heads: BTreeMap::new(),
            open: Vec::new(),
            exits: Vec::new(),
        };
        self.follow(header, position, &mut search, span);
        while let Some(index) = search.open.pop() {
            let (block, position) = search.heads[&index];
            self.resume((block, search.env.clone()));
            self.pass(index, position, &mut search, span);
        }
        self.own = outer;
        self.join(search.exits, span);
        self.forget_behind(header);
    }

    /// Goes where `next` says; `position` is behind the header.
    fn follow(&mut self, header: HeaderId, position: Value, search: &mut Search, span: Span) {
        let layout = self.layout(header).clone();
        let Some(next) = &layout.next else { return search.exits.extend(self.suspend()) };
        if let Some(when) = &next.when {
            let (yes, no) = self.condition(when);
            search.exits.extend(no);
            let Some(exit) = yes else { return };
            self.resume(exit);
        }
        let (selector, _) = self.load_field(header, next.selector, span);
        let mut cases: Vec<(u128, Target)> = Vec::new();
        let mut found: Vec<(usize, BlockId)> = Vec::new();
        for (values, name) in &next.targets {
            let Some(index) = self.source.layouts.iter().position(|layout| layout.name == *name) else {
                continue;
            };
            let target = match self.step(index) {
                Step::End => continue,
                Step::Passed => {
                    let (head, _) = match search.heads.get(&index) {
                        Some(head) => *head,
                        None => {
                            let head = self.new_block(span);
                            let head = (head, self.block_param(head, 32));
                            search.heads.insert(index, head);
                            search.open.push(index);
                            head
                        }
                    };
                    Target { block: head, args: vec![position] }
                }
                Step::Found => {
                    let block = self.new_block(span);
                    found.push((index, block));
                    to(block)
                }
            };
            for value in values {
                if cases.iter().all(|(other, _)| other != value) {
                    cases.push((*value, target.clone()));
                }
            }
        }
        if cases.is_empty() {
            return search.exits.extend(self.suspend());
        }
        let none = self.new_block(span);
        let env = self.env.clone();
        self.terminate(Terminator::Switch(selector, cases, to(none)), span);
        search.exits.push((none, env.clone()));
        for (index, block) in found {
            let Some(checksum) = self.source.layouts[index].checksum else { continue };
            self.resume((block, env.clone()));
            let bytes = checksum.offset + 2;
            search.exits.extend(self.need_or_pass(position, bytes, None, span));
            let covering = search.covering.clone();
            self.write_checksum(position, checksum, bytes, search.change, &covering, span);
            search.exits.extend(self.suspend());
        }
    }

    /// Passes a header of this layout. It is not decoded by the program, so that one that is cut short or against its constraints ends the way
    /// and drops nothing.
    fn pass(&mut self, index: usize, position: Value, search: &mut Search, span: Span) {
        let header = HeaderId(self.source.headers.len() + index);
        let layout = self.layout(header).clone();
        let reason = self.reason(
            &format!("too_deep({})", layout.name),
            "the packet has more such headers than bytes for them",
        );
        let (slot, again, out) = (self.new_slot(), self.new_block(span), self.drop_block(reason, span));
        let cap = super::LONGEST_PACKET / layout.smallest.max(1) + 1;
        self.terminate(Terminator::Fuel { slot, cap, ok: to(again), out: to(out) }, span);
        self.current = Some(again);
        self.own = Some(header);
        let mut end = position;
        for (number, group) in layout.groups.iter().enumerate() {
            self.env.values.insert(Variable::Place(Read::Group(header, number)), end);
            match group {
                Group::Fixed { bytes, fields } => {
                    search.exits.extend(self.need_or_pass(end, *bytes, None, span));
                    for &field in fields {
                        self.pass_if_right(header, field, search, span);
                    }
                    end = self.with_constant(BinaryOp::Add, end, (*bytes).into(), span);
                }
                Group::Variable { length, .. } => {
                    let (length, _) = self.value(length);
                    search.exits.extend(self.need_or_pass(end, 0, Some(length), span));
                    self.env.values.insert(Variable::Place(Read::Length(header, number)), length);
                    end = self.emit(32, Op::Binary(BinaryOp::Add, end, length), span);
                }
                Group::Conditional { .. } => return search.exits.extend(self.suspend()),
            }
        }
        self.follow(header, end, search, span);
    }

    fn pass_if_right(&mut self, header: HeaderId, field: usize, search: &mut Search, span: Span) {
        let Some((low, high)) = self.layout(header).fields[field].constraint else { return };
        let (value, _) = self.load_field(header, field, span);
        let width = self.function.width(value);
        for (op, bound, wanted) in [(CompareOp::Lt, low, false), (CompareOp::Le, high, true)] {
            let bound = self.constant(bound, width, span);
            let outcome = self.emit(1, Op::Compare(op, value, bound), span);
            let (yes, no) = self.fork(outcome, span);
            let (on, off) = if wanted { (yes, no) } else { (no, yes) };
            search.exits.extend(off);
            if let Some(exit) = on {
                self.resume(exit);
            }
        }
    }

    /// Before a loop that writes to a header: what checksums will be is not known.
    pub(super) fn forget_checksums(&mut self, header: HeaderId) {
        for other in (0..self.source.headers.len()).map(HeaderId) {
            if let Some(checksum) = self.layout(other).checksum {
                self.forget_field(other, checksum.field);
            }
        }
        if self.layout(header).pseudo.is_some() {
            self.forget_behind(header);
        }
    }

    /// What was known of the header behind, under any name, may no longer hold.
    fn forget_behind(&mut self, header: HeaderId) {
        for other in (0..self.source.headers.len()).map(HeaderId) {
            if let Some(checksum) = self.layout(other).checksum.filter(|checksum| checksum.pseudo) {
                self.forget_field(other, checksum.field);
            }
        }
        for other in self.overlaid(header) {
            self.env.forget_header(other);
        }
        if !self.walks.is_empty() {
            self.forget_walked(header);
        }
    }

    /// May a field show a checksum that is not written yet? Its own, or bytes behind a header that another layout describes.
    pub(crate) fn shows_noted(&self, header: HeaderId, field: usize) -> bool {
        let noted = |one: &&Variable| super::covered::is_sum(**one);
        self.env.values.keys().filter(noted).any(|noted| match noted {
            _ if self.layout(header).checksum.is_some_and(|checksum| checksum.field == field) => true,
            Variable::Behind(before) => self.overlaid(*before).contains(&header),
            _ => false,
        })
    }

    /// What a layout is on the way to a checksum: one that leads to none ends it.
    fn step(&self, index: usize) -> Step {
        let layouts = &self.source.layouts;
        let first = step_of(&layouts[index]);
        let (mut seen, mut open) = (BTreeSet::from([index]), vec![index]);
        while let Some(next) = open.pop().filter(|_| first == Step::Passed) {
            let targets = layouts[next].next.iter().flat_map(|next| &next.targets);
            for (_, name) in targets {
                let Some(behind) = layouts.iter().position(|layout| layout.name == *name) else { continue };
                match step_of(&layouts[behind]) {
                    Step::Found => return Step::Passed,
                    Step::Passed if seen.insert(behind) => open.push(behind),
                    _ => {}
                }
            }
        }
        if first == Step::Passed { Step::End } else { first }
    }

    /// Headers that may lie where a search behind a header finds its checksum, and have another layout than it takes them for.
    fn overlaid(&self, header: HeaderId) -> BTreeSet<HeaderId> {
        let stages = &self.source.stages;
        let step = |header: HeaderId| self.step(self.source.headers[header.0].layout.0);
        let on_the_way = |last: &HeaderId| *last == header || step(*last) == Step::Passed;
        let strange = |index: &usize| {
            let own = stages[*index].header.filter(|own| step(*own) == Step::End);
            own.is_some() && self.flow.last[*index].iter().any(on_the_way)
        };
        let mut open: Vec<usize> = (0..stages.len()).filter(strange).collect();
        let mut seen: BTreeSet<usize> = open.iter().copied().collect();
        while let Some(stage) = open.pop() {
            for transfer in &self.flow.facts[stage].transfers {
                if seen.insert(transfer.to.0) {
                    open.push(transfer.to.0);
                }
            }
        }
        seen.into_iter().filter_map(|stage| stages[stage].header).filter(|other| *other != header).collect()
    }
}

/// What a layout is on the way, by itself.
fn step_of(layout: &Layout) -> Step {
    let conditional = layout.groups.iter().any(|group| matches!(group, Group::Conditional { .. }));
    match layout.checksum {
        Some(checksum) if checksum.pseudo => Step::Found,
        None if layout.next.is_some() && layout.pseudo.is_none() && !conditional && layout.smallest > 0 => {
            Step::Passed
        }
        _ => Step::End,
    }
}
