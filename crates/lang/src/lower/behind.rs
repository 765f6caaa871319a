//! Checksums of headers that the program need not have decoded: a header with a pseudo header changes, and
//! the header behind it covers that.
//!
//! The layouts say where that header is: `next` names it by a number and perhaps a condition. Headers in
//! between that have a `next` of their own (extension headers) are passed, in a loop that uses up fuel. Where
//! nothing is found, or not all of it was captured, nothing is written.

use super::Lowering;
use super::build::{Exit, to};
use super::covered::Change;
use super::env::{Env, Variable};
use crate::ast::LengthOf;
use crate::check::hir::{Carrier, GoverningStep, Group, HeaderId, Next, Place, StageId};
use crate::diagnostic::Diagnostic;
use crate::flow;
use crate::flow::facts::Read;
use crate::limits::LONGEST_PACKET;
use ir::source::Span;
use ir::{BinaryOp, BlockId, CompareOp, Op, Target, Terminator, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The way to the header behind.
struct Search {
    change: Change,
    /// The part of the pseudo header that is known only where the way ends, if that goes in or out as a
    /// whole.
    part: Option<Part>,
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

/// What a pseudo header says of the header that is found.
#[derive(Clone, Copy)]
struct Part {
    /// It comes to be covered, or else is no longer.
    joins: bool,
    /// The number that led there.
    kind: bool,
    /// The bytes behind the header with the pseudo header, and the position where they begin.
    length: Option<(Value, Value)>,
}

impl Lowering<'_> {
    /// Adds what was noted to the checksum of the header behind this one.
    pub(super) fn write_behind(&mut self, header: HeaderId, span: Span) {
        let change = self.code.take_change(Variable::Behind(header), span);
        self.search_behind(header, change, None, span);
        self.forget_behind(header);
    }

    /// The header goes out: the checksum behind it covers it no longer.
    pub(super) fn leave_behind(&mut self, header: HeaderId, span: Span) {
        if let Some((change, part)) = self.part_of(header, false, span) {
            self.search_behind(header, change, Some(part), span);
            self.forget_behind(header);
        }
    }

    /// A header of this layout went in at a position: the checksum behind it, if there is one, covers it from
    /// here on.
    ///
    /// Refused where a header of the same push has a checksum of all that follows (`is_covered`): it has been
    /// written by then, and covers the checksum that changes here.
    pub(super) fn join_behind(
        &mut self,
        carrier: Carrier,
        place: Place,
        position: Value,
        is_covered: bool,
        span: Span,
    ) {
        let layout = &self.source.layouts[carrier.layout.0];
        let leads = |next: &Next| {
            let to = |announced: u128| next.targets.iter().find(|(values, _)| values.contains(&announced));
            let names = match carrier.announces {
                Some(announced) => to(announced).into_iter().collect(),
                None => next.targets.iter().collect::<Vec<_>>(),
            };
            names.iter().filter_map(|(_, name)| self.source.layout_named(name)).collect::<BTreeSet<usize>>()
        };
        let Some(targets) = layout.next.as_ref().map(leads) else { return };
        if self.code.current.is_none() || targets.iter().all(|index| self.step(*index) == GoverningStep::End)
        {
            return;
        }
        if is_covered {
            self.report(
                Diagnostic::error(
                    "E0436",
                    "the checksum of a pushed header could not be kept right",
                    span,
                    "one header of these has a checksum of all that follows, and the last one changes a checksum in that",
                )
                .help("push the last header first, and those around it in a statement behind"),
            );
            return;
        }
        // It has no name; while its way is followed it has that of its layout.
        let header = HeaderId(self.source.headers.len() + carrier.layout.0);
        let outer = self.scope.own.replace(header);
        let nothing = (self.code.constant(0, 64, span), 0);
        let mut search = self.begin_search(nothing, None, Vec::new());
        if self.enter(header, position, &mut search, span)
            && let Some((change, part)) = self.part_of(header, true, span)
        {
            (search.change, search.part) = (change, Some(part));
            let end = self.end_of(header, span);
            self.follow(header, end, &mut search, span);
        }
        self.follow_all(search, span);
        self.scope.own = outer;
        self.code.env.forget_header(header);
        self.code
            .env
            .values
            .retain(|variable| !matches!(variable, Variable::Place(read) if read.header() == Some(header)));
        self.forget_checksums(header);
        for header in (0..self.source.headers.len()).map(HeaderId) {
            if self.source.layout(header).pseudo.is_some() {
                self.forget_behind(header);
            }
        }
        for header in self.mistaken_behind(place, &targets) {
            self.code.env.forget_header(header);
        }
    }

    /// Decoded headers behind a place where a header was inserted that one of these layouts follows: all of
    /// them, unless the first one certainly has the only layout. A checksum may have been written there in
    /// bytes that belong to another field.
    fn mistaken_behind(&self, place: Place, targets: &BTreeSet<usize>) -> Vec<HeaderId> {
        let Some(stage) = self.scope.stage else { return Vec::new() };
        let behind = |first: HeaderId| self.decoded_behind(first);
        let before = |header: HeaderId| match place {
            Place::Start => false,
            Place::Before(place) => behind(header).contains(&place),
            Place::After(place) => header == place || behind(header).contains(&place),
        };
        let decoded = self.flow.decoded_in(self.source, stage).headers;
        let stays = |header: &HeaderId| !self.code.env.removed.contains(header) && !before(*header);
        let decoded: Vec<HeaderId> = decoded.into_iter().filter(stays).collect();
        let only = |first: HeaderId| targets.iter().eq([&self.source.headers[first.0].layout.0]);
        let leads =
            |first: HeaderId| decoded.iter().all(|other| *other == first || behind(first).contains(other));
        match decoded.iter().any(|first| only(*first) && leads(*first)) {
            true => Vec::new(),
            false => decoded,
        }
    }

    /// What a header is in the checksum behind it.
    fn part_of(&mut self, header: HeaderId, joins: bool, span: Span) -> Option<(Change, Part)> {
        let layout = self.source.layout(header);
        let pseudo = layout.pseudo.as_ref()?;
        let mut total: Change = (self.code.constant(0, 64, span), 0);
        for &field in &pseudo.fields {
            let (value, _) = self.load_field(header, field, span);
            let change = self.one_side(value, joins, span);
            total = (self.code.sum_of(total.0, change.0, span), total.1 + change.1);
        }
        let length = pseudo.length.then(|| {
            let end = self.end_of(header, span);
            let counted = layout.counting().next();
            let Some(field) = counted else {
                let wire = self.code.emit(32, Op::WireLength, span);
                return (self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, wire, end), span), end);
            };
            let (length, _) = self.load_field(header, field, span);
            let mut length = self.code.resized(length, 32, span);
            if layout.fields[field].length_of == Some(LengthOf::Both) {
                let begin = self.place(Read::Group(header, 0));
                let own = self.code.emit(32, Op::Binary(BinaryOp::Sub, end, begin), span);
                length = self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, length, own), span);
            }
            (length, end)
        });
        Some((total, Part { joins, kind: pseudo.kind, length }))
    }

    /// The change of a sum if a number comes to be covered, or is no longer.
    fn one_side(&mut self, value: Value, joins: bool, span: Span) -> Change {
        let zero = self.code.constant(0, self.code.function.width(value), span);
        let (old, new) = if joins { (zero, value) } else { (value, zero) };
        self.code.change(old, new, 0, span)
    }

    /// The change where the header at a position was found by this number.
    fn whole_change(&mut self, search: &Search, kind: Value, position: Value, span: Span) -> Change {
        let mut change = search.change;
        let Some(part) = search.part else { return change };
        let length = part.length.map(|(length, from)| {
            let between = self.code.emit(32, Op::Binary(BinaryOp::Sub, position, from), span);
            self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, length, between), span)
        });
        for value in part.kind.then_some(kind).into_iter().chain(length) {
            let one = self.one_side(value, part.joins, span);
            change = (self.code.sum_of(change.0, one.0, span), change.1 + one.1);
        }
        change
    }

    fn begin_search(&self, change: Change, part: Option<Part>, covering: Vec<HeaderId>) -> Search {
        let (heads, open, exits) = (BTreeMap::new(), Vec::new(), Vec::new());
        Search { change, part, covering, env: self.code.env.clone(), heads, open, exits }
    }

    fn search_behind(&mut self, header: HeaderId, change: Change, part: Option<Part>, span: Span) {
        let covering = self.covering_behind(header);
        let outer = self.scope.own.replace(header);
        let position = self.end_of(header, span);
        let mut search = self.begin_search(change, part, covering);
        self.follow(header, position, &mut search, span);
        self.follow_all(search, span);
        self.scope.own = outer;
    }

    /// Goes on from every layout that is passed, and to where all ways meet.
    fn follow_all(&mut self, mut search: Search, span: Span) {
        while let Some(index) = search.open.pop() {
            let (block, position) = search.heads[&index];
            self.code.resume((block, search.env.clone()));
            self.pass(index, position, &mut search, span);
        }
        self.join(search.exits, span);
    }

    /// Goes where `next` says; `position` is behind the header.
    fn follow(&mut self, header: HeaderId, position: Value, search: &mut Search, span: Span) {
        let layout = self.source.layout(header);
        let Some(next) = &layout.next else { return search.exits.extend(self.code.suspend()) };
        if let Some(when) = &next.when {
            let (yes, no) = self.condition(when);
            search.exits.extend(no);
            let Some(exit) = yes else { return };
            self.code.resume(exit);
        }
        let (selector, _) = self.load_field(header, next.selector, span);
        let mut cases: Vec<(u128, Target)> = Vec::new();
        let mut found: Vec<(usize, BlockId)> = Vec::new();
        for (values, name) in &next.targets {
            let Some(index) = self.source.layout_named(name) else { continue };
            let target = match self.step(index) {
                GoverningStep::End => continue,
                GoverningStep::Passed => {
                    let (head, _) = match search.heads.get(&index) {
                        Some(head) => *head,
                        None => {
                            let head = self.code.new_block(span);
                            let head = (head, self.code.block_param(head, 32));
                            search.heads.insert(index, head);
                            search.open.push(index);
                            head
                        }
                    };
                    Target { block: head, args: vec![position] }
                }
                GoverningStep::Found => {
                    let block = self.code.new_block(span);
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
            return search.exits.extend(self.code.suspend());
        }
        let none = self.code.new_block(span);
        let env = self.code.env.clone();
        self.code.terminate(Terminator::Switch(selector, cases, to(none)), span);
        search.exits.push((none, env.clone()));
        for (index, block) in found {
            let Some(checksum) = self.source.layouts[index].checksum else { continue };
            self.code.resume((block, env.clone()));
            let bytes = checksum.offset + 2;
            search.exits.extend(self.code.need_or_pass(position, bytes, None, span));
            let covering = search.covering.clone();
            let found = HeaderId(self.source.headers.len() + index);
            let change = self.whole_change(search, selector, position, span);
            self.write_checksum(found, position, bytes, change, &covering, span);
            search.exits.extend(self.code.suspend());
        }
    }

    /// Passes a header of this layout. It is not decoded by the program, so that one that is cut short or
    /// against its constraints ends the way and drops nothing.
    fn pass(&mut self, index: usize, position: Value, search: &mut Search, span: Span) {
        let header = HeaderId(self.source.headers.len() + index);
        let layout = self.source.layout(header);
        let reason = self.reason(
            &format!("too_deep({})", layout.name),
            "the packet has more such headers than bytes for them",
        );
        let (slot, again, out) =
            (self.new_slot(), self.code.new_block(span), self.code.drop_block(reason, span));
        let cap = LONGEST_PACKET / layout.smallest.max(1) + 1;
        self.code.terminate(Terminator::Fuel { slot, cap, ok: to(again), out: to(out) }, span);
        self.code.current = Some(again);
        self.scope.own = Some(header);
        if self.enter(header, position, search, span) {
            let end = self.end_of(header, span);
            self.follow(header, end, search, span);
        }
    }

    /// Finds the places of a header's fields where it is captured and as it must be; says whether it may be.
    fn enter(&mut self, header: HeaderId, position: Value, search: &mut Search, span: Span) -> bool {
        let layout = self.source.layout(header);
        let mut end = position;
        for (number, group) in layout.groups.iter().enumerate() {
            self.code.env.values.insert(Variable::Place(Read::Group(header, number)), end);
            match group {
                Group::Fixed { bytes, fields } => {
                    search.exits.extend(self.code.need_or_pass(end, *bytes, None, span));
                    for &field in fields {
                        self.pass_if_right(header, field, search, span);
                    }
                    end = self.code.with_constant(BinaryOp::Add, end, (*bytes).into(), span);
                }
                Group::Variable { length, .. } => {
                    let (length, _) = self.value(length);
                    search.exits.extend(self.code.need_or_pass(end, 0, Some(length), span));
                    self.code.env.values.insert(Variable::Place(Read::Length(header, number)), length);
                    end = self.code.emit(32, Op::Binary(BinaryOp::Add, end, length), span);
                }
                Group::Conditional { .. } => {
                    search.exits.extend(self.code.suspend());
                    return false;
                }
            }
        }
        self.code.current.is_some()
    }

    fn pass_if_right(&mut self, header: HeaderId, field: usize, search: &mut Search, span: Span) {
        let Some((low, high)) = self.source.layout(header).fields[field].constraint else { return };
        let (value, _) = self.load_field(header, field, span);
        let width = self.code.function.width(value);
        for (op, bound, wanted) in [(CompareOp::Lt, low, false), (CompareOp::Le, high, true)] {
            let bound = self.code.constant(bound, width, span);
            let outcome = self.code.emit(1, Op::Compare(op, value, bound), span);
            let (yes, no) = self.code.fork(outcome, span);
            let (on, off) = if wanted { (yes, no) } else { (no, yes) };
            search.exits.extend(off);
            if let Some(exit) = on {
                self.code.resume(exit);
            }
        }
    }

    /// Before a loop that writes to a header: what checksums will be is not known.
    pub(super) fn forget_checksums(&mut self, header: HeaderId) {
        for other in (0..self.source.headers.len()).map(HeaderId) {
            if let Some(checksum) = self.source.layout(other).checksum {
                self.code.env.forget_field(other, checksum.field);
            }
        }
        if self.source.layout(header).pseudo.is_some() {
            self.forget_behind(header);
        }
    }

    /// What was known of the header behind, under any name, may no longer hold.
    fn forget_behind(&mut self, header: HeaderId) {
        for other in (0..self.source.headers.len()).map(HeaderId) {
            if let Some(checksum) = self.source.layout(other).checksum.filter(|checksum| checksum.pseudo) {
                self.code.env.forget_field(other, checksum.field);
            }
        }
        for other in self.overlaid(header) {
            self.code.env.forget_header(other);
        }
        if !self.scope.walks.is_empty() {
            self.forget_walked(header);
        }
    }

    /// May a field show a checksum that is not written yet? Its own, or bytes behind a header that another
    /// layout describes.
    pub(crate) fn shows_noted(&self, header: HeaderId, field: usize) -> bool {
        self.code.env.sums().any(|noted| match noted {
            _ if self.source.layout(header).checksum.is_some_and(|checksum| checksum.field == field) => true,
            Variable::Behind(before) => self.overlaid(before).contains(&header),
            _ => false,
        })
    }

    /// What a layout is on the way to a checksum: one that leads to none ends it.
    fn step(&self, index: usize) -> GoverningStep {
        let layouts = &self.source.layouts;
        let first = layouts[index].governing_step();
        let (mut seen, mut open) = (BTreeSet::from([index]), vec![index]);
        while let Some(next) = open.pop().filter(|_| first == GoverningStep::Passed) {
            let targets = layouts[next].next.iter().flat_map(|next| &next.targets);
            for (_, name) in targets {
                let Some(behind) = self.source.layout_named(name) else { continue };
                match layouts[behind].governing_step() {
                    GoverningStep::Found => return GoverningStep::Passed,
                    GoverningStep::Passed if seen.insert(behind) => open.push(behind),
                    _ => {}
                }
            }
        }
        if first == GoverningStep::Passed { GoverningStep::End } else { first }
    }

    /// Headers that may lie where a search behind a header finds its checksum, and have another layout than
    /// it takes them for.
    fn overlaid(&self, header: HeaderId) -> BTreeSet<HeaderId> {
        let stages = &self.source.stages;
        let step = |header: HeaderId| self.step(self.source.headers[header.0].layout.0);
        let on_the_way = |last: &HeaderId| *last == header || step(*last) == GoverningStep::Passed;
        let leads = |last: HeaderId, own: HeaderId| {
            let mut targets = self.source.layout(last).next.iter().flat_map(|next| &next.targets);
            targets.any(|(_, name)| *name == self.source.layout(own).name)
        };
        let strange = |index: &usize| {
            let Some(own) = stages[*index].header else { return false };
            let mut before = self.flow.last[*index].iter().filter(|last| on_the_way(last));
            before.any(|last| step(own) == GoverningStep::End || !leads(*last, own))
        };
        let open: Vec<StageId> = (0..stages.len()).filter(strange).map(StageId).collect();
        let mut seen: BTreeSet<StageId> = open.iter().copied().collect();
        flow::reach(&self.flow.facts, &mut seen, open);
        seen.into_iter().filter_map(|stage| stages[stage.0].header).filter(|other| *other != header).collect()
    }
}
