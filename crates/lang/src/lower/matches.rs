//! `match`: arms are tried in order on every way that is still open; what a way already knows is not tested
//! again.

use super::Lowering;
use super::build::{Builder, Exit};
use super::env::Range;
use super::expressions::{Shape, scalar};
use crate::ast::BinaryOp;
use crate::check::hir::{Arm, HeaderId, Pattern};
use crate::check::types::largest;
use crate::flow::facts::Read;
use ir::source::Span;
use ir::{BlockId, Target, Terminator, Value};
use std::collections::BTreeMap;

/// More open ways than this are joined before the next arm.
const MOST_OPEN: usize = 6;
/// From so many single values on, arms become one switch.
const FEWEST_CASES: usize = 4;

impl Lowering<'_> {
    /// Lowers a `match` from the current point. `body` is called with each arm's body where the arm was
    /// taken; nothing is current afterwards unless `body` leaves it so: ways out are what `body` makes of
    /// them.
    pub(crate) fn match_arms<B>(
        &mut self,
        shape: &Shape,
        arms: &[Arm<B>],
        span: Span,
        mut body: impl FnMut(&mut Self, &B),
    ) {
        let mut open: Vec<Exit> = self.code.suspend().into_iter().collect();
        let mut first = 0;
        if let Some((entries, default, count)) = self.switch(shape, arms, &mut open, span) {
            for (arm, exit) in entries {
                self.code.resume(exit);
                body(self, &arms[arm].body);
            }
            open = vec![default];
            first = count;
        }
        for arm in &arms[first..] {
            let mut taken = Vec::new();
            let mut left = Vec::new();
            if open.len() > MOST_OPEN {
                self.join(std::mem::take(&mut open), span);
                open.extend(self.code.suspend());
            }
            for exit in open {
                self.code.resume(exit);
                let (fits, fails) = self.test(&arm.pattern, shape, arm.span);
                left.extend(fails);
                match &arm.guard {
                    None => taken.extend(fits),
                    Some(guard) => {
                        for exit in fits {
                            self.code.resume(exit);
                            let (yes, no) = self.condition(guard);
                            taken.extend(yes);
                            left.extend(no);
                        }
                    }
                }
            }
            open = left;
            if !taken.is_empty() {
                self.join(taken, arm.span);
                body(self, &arm.body);
            }
        }
        // The arms cover every value; an open way is one whose impossibility the ranges do not show.
        for exit in open {
            self.code.resume(exit);
            self.impossible(span);
        }
        self.code.current = None;
    }

    /// Ends a way that no value takes.
    fn impossible(&mut self, span: Span) {
        let end = if self.scope.handler { Terminator::Done } else { Terminator::Drop(ir::NO_SUCH_PORT) };
        self.code.terminate(end, span);
    }

    /// The leading arms as one switch, if they are enough single values without guards: entries of arms, the
    /// way on, how many arms were used.
    #[allow(clippy::type_complexity)]
    fn switch<B>(
        &mut self,
        shape: &Shape,
        arms: &[Arm<B>],
        open: &mut Vec<Exit>,
        span: Span,
    ) -> Option<(Vec<(usize, Exit)>, Exit, usize)> {
        let Shape::Scalar { value, range, subject } = shape else { return None };
        let lists: Vec<Vec<u128>> = arms
            .iter()
            .map_while(|arm| if arm.guard.is_none() { singles(&arm.pattern) } else { None })
            .collect();
        if lists.iter().map(Vec::len).sum::<usize>() < FEWEST_CASES || open.len() != 1 {
            return None;
        }
        let (block, mut env) = open.pop()?;
        let whole = subject
            .and_then(|subject| env.ranges.get(&subject))
            .and_then(|known| known.meet(*range))
            .unwrap_or(*range);
        let mut cases: BTreeMap<u128, BlockId> = BTreeMap::new();
        let mut entries = Vec::new();
        for (index, list) in lists.iter().enumerate() {
            let fresh: Vec<u128> = list.iter().copied().filter(|case| !cases.contains_key(case)).collect();
            if fresh.is_empty() {
                continue;
            }
            let entry = self.code.new_block(arms[index].span);
            let mut known = env.clone();
            if let (Some(subject), Some(low), Some(high)) = (subject, fresh.iter().min(), fresh.iter().max())
            {
                let these = Range::new(*low, *high);
                known.ranges.insert(*subject, whole.meet(these).unwrap_or(these));
            }
            cases.extend(fresh.into_iter().map(|case| (case, entry)));
            entries.push((index, (entry, known)));
        }
        if let (Some(subject), Some(left)) = (subject, without_ends(whole, &cases)) {
            env.ranges.insert(*subject, left);
        }
        let default = self.code.new_block(span);
        self.code.current = Some(block);
        let cases =
            cases.into_iter().map(|(case, block)| (case, Target { block, args: Vec::new() })).collect();
        self.code.terminate(Terminator::Switch(*value, cases, super::build::to(default)), span);
        Some((entries, (default, env), lists.len()))
    }

    /// The ways on where the pattern fits (names bound) and where it does not.
    fn test(&mut self, pattern: &Pattern, shape: &Shape, span: Span) -> (Vec<Exit>, Vec<Exit>) {
        match (pattern, shape) {
            (Pattern::Any, _) => (self.code.suspend().into_iter().collect(), Vec::new()),
            (Pattern::Bind(local), Shape::Scalar { value, range, subject }) => {
                let range = subject.map_or(*range, |subject| self.code.env.range_of(subject, *range));
                self.code.env.bind_local(*local, *value, range);
                (self.code.suspend().into_iter().collect(), Vec::new())
            }
            (Pattern::Bind(_), _) => (self.code.suspend().into_iter().collect(), Vec::new()),
            (Pattern::Range(low, high), Shape::Scalar { value, range, subject }) => {
                let range = subject.map_or(*range, |subject| self.code.env.range_of(subject, *range));
                self.code.test_range(*value, *low, *high, range, *subject, span)
            }
            (Pattern::Either(parts), _) => {
                let mut fits = Vec::new();
                let mut open: Vec<Exit> = self.code.suspend().into_iter().collect();
                for part in parts {
                    let mut left = Vec::new();
                    for exit in open {
                        self.code.resume(exit);
                        let (yes, no) = self.test(part, shape, span);
                        fits.extend(yes);
                        left.extend(no);
                    }
                    open = left;
                }
                (fits, open)
            }
            (Pattern::Tuple(patterns), Shape::Tuple(shapes)) => self.test_all(patterns, shapes, span),
            (Pattern::Some(inner), Shape::Option { present, inner: held }) => {
                self.test_present(*present, span, |lowering| lowering.test(inner, held, span))
            }
            (Pattern::Some(inner), Shape::Conditional { header, field }) => {
                let present = self.presence(*header, *field);
                self.test_present(present, span, |lowering| {
                    let held = lowering.conditional_inner(*header, *field, span);
                    lowering.test(inner, &held, span)
                })
            }
            (Pattern::None, Shape::Option { present, .. }) => self.code.test_absent(*present, span),
            (Pattern::None, Shape::Conditional { header, field }) => {
                let present = self.presence(*header, *field);
                self.code.test_absent(present, span)
            }
            (Pattern::Variant(number, patterns), Shape::Variants { table, columns }) => {
                let declared = &self.source.tables[table.0];
                let first = declared.variant_column(*number);
                let types: Vec<u128> = declared.value_columns().iter().map(|(_, ty)| ty.largest()).collect();
                let number = *number as u128;
                let (fits, mut fails) =
                    self.code.test_range(columns[0], number, number, Range::new(0, 255), None, span);
                let shapes: Vec<Shape> = (first..first + patterns.len())
                    .map(|column| scalar(columns[column], Range::new(0, types[column])))
                    .collect();
                let mut all = Vec::new();
                for exit in fits {
                    self.code.resume(exit);
                    let (yes, no) = self.test_all(patterns, &shapes, span);
                    all.extend(yes);
                    fails.extend(no);
                }
                (all, fails)
            }
            // Patterns and values that do not go together were reported.
            _ => (self.code.suspend().into_iter().collect(), Vec::new()),
        }
    }

    /// Whether a conditional field is there, as a one-bit value.
    fn presence(&mut self, header: HeaderId, field: usize) -> Value {
        let group = self.source.layout(header).fields[field].group;
        self.place(Read::Present(header, group))
    }

    /// The ways on where something is there and fits, and where not.
    fn test_present(
        &mut self,
        present: Value,
        span: Span,
        test: impl FnOnce(&mut Self) -> (Vec<Exit>, Vec<Exit>),
    ) -> (Vec<Exit>, Vec<Exit>) {
        let (yes, no) = self.code.fork(present, span);
        let (mut fits, mut fails) = (Vec::new(), no.into_iter().collect::<Vec<_>>());
        if let Some(exit) = yes {
            self.code.resume(exit);
            let (held_fits, held_fails) = test(self);
            fits = held_fits;
            fails.extend(held_fails);
        }
        (fits, fails)
    }

    fn test_all(&mut self, patterns: &[Pattern], shapes: &[Shape], span: Span) -> (Vec<Exit>, Vec<Exit>) {
        let mut fits: Vec<Exit> = self.code.suspend().into_iter().collect();
        let mut fails = Vec::new();
        for (pattern, shape) in patterns.iter().zip(shapes) {
            let mut going = Vec::new();
            for exit in fits {
                self.code.resume(exit);
                let (yes, no) = self.test(pattern, shape, span);
                going.extend(yes);
                fails.extend(no);
            }
            fits = going;
        }
        (fits, fails)
    }
}

impl Builder<'_> {
    /// The ways on where something is not there, and where it is.
    fn test_absent(&mut self, present: Value, span: Span) -> (Vec<Exit>, Vec<Exit>) {
        let (yes, no) = self.fork(present, span);
        (no.into_iter().collect(), yes.into_iter().collect())
    }

    fn test_range(
        &mut self,
        value: Value,
        low: u128,
        high: u128,
        range: Range,
        subject: Option<crate::flow::facts::Subject>,
        span: Span,
    ) -> (Vec<Exit>, Vec<Exit>) {
        let Some(inside) = range.meet(Range::new(low, high)) else {
            return (Vec::new(), self.suspend().into_iter().collect());
        };
        if inside == range {
            return (self.suspend().into_iter().collect(), Vec::new());
        }
        let width = self.function.width(value);
        let mut fails = Vec::new();
        let checks: Vec<(BinaryOp, u128)> = if low == high {
            vec![(BinaryOp::Eq, low)]
        } else {
            let below = (low > range.low).then_some((BinaryOp::Ge, low));
            let above = (high < range.high.min(largest(width))).then_some((BinaryOp::Le, high));
            below.into_iter().chain(above).collect()
        };
        for (op, bound) in checks {
            if self.current.is_none() {
                break;
            }
            let bound_value = self.constant(bound, width, span);
            let outcome = self.comparison(op, value, bound_value, span);
            let (yes, no) = self.fork(outcome, span);
            for (mut exit, op) in no.into_iter().map(|exit| (exit, op)) {
                if let Some(subject) = subject {
                    let rest = match op {
                        BinaryOp::Ge => range.meet(Range::new(0, bound.saturating_sub(1))),
                        BinaryOp::Le => range.meet(Range::new(bound.saturating_add(1), u128::MAX)),
                        _ if bound == range.low => range.meet(Range::new(bound.saturating_add(1), u128::MAX)),
                        _ if bound == range.high => range.meet(Range::new(0, bound.saturating_sub(1))),
                        _ => None,
                    };
                    if let Some(rest) = rest {
                        exit.1.ranges.insert(subject, rest);
                    }
                }
                fails.push(exit);
            }
            if let Some(exit) = yes {
                self.resume(exit);
            }
        }
        if let Some(subject) = subject
            && self.current.is_some()
        {
            self.env.ranges.insert(subject, inside);
        }
        (self.suspend().into_iter().collect(), fails)
    }
}

/// What is left of a range when cases at its ends are taken away; `None` if nothing is.
fn without_ends(range: Range, cases: &BTreeMap<u128, BlockId>) -> Option<Range> {
    let mut left = range;
    while cases.contains_key(&left.low) {
        left.low = left.low.checked_add(1).filter(|&low| low <= left.high)?;
    }
    while cases.contains_key(&left.high) {
        left.high = left.high.checked_sub(1).filter(|&high| high >= left.low)?;
    }
    Some(left)
}

/// The values of a pattern that is made of single values only.
fn singles(pattern: &Pattern) -> Option<Vec<u128>> {
    match pattern {
        Pattern::Range(low, high) if low == high => Some(vec![*low]),
        Pattern::Either(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(singles(part)?);
            }
            Some(all)
        }
        _ => None,
    }
}
