//! What a program computes from the packets of one class: the smallest and the largest value of everything,
//! found forwards along the edges that such a packet can take.
//!
//! The class says which bytes have which values, so most places are one number. A value may also be known as
//! the packet's length and a constant, since the length that IP says is the packet's.

use crate::arithmetic::{binary, largest};
use crate::bounds::arithmetic;
use ir::{BinaryOp, Block, BlockId, CompareOp, Function, Op, Target, Terminator, Value};
use packet::{KnownByte, OpenClass};
use std::ops::Range;

/// The number of rounds after which values that still change get all numbers of their width.
const ROUNDS: usize = 16;
/// The number of rounds after which nothing is shown.
const MOST_ROUNDS: usize = 256;

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u128,
    pub(crate) most: u128,
    /// The bits that may be set.
    bits: u128,
    /// It is the packet's length plus this.
    length: Option<i64>,
}

impl Bounds {
    fn exactly(number: u128) -> Bounds {
        Bounds { bits: number, ..Bounds::within(number, number) }
    }

    fn within(least: u128, most: u128) -> Bounds {
        let bits = u128::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        Bounds { least, most, bits, length: None }
    }

    fn any(width: u8) -> Bounds {
        Bounds::within(0, largest(width))
    }

    fn number(self) -> Option<u128> {
        (self.least == self.most).then_some(self.least)
    }

    /// What is known of a value that is one of both.
    fn or(self, other: Bounds) -> Bounds {
        Bounds {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            bits: self.bits | other.bits,
            length: self.length.filter(|_| self.length == other.length),
        }
    }
}

/// A function, run by all packets of a class at once.
pub(crate) struct Analysis<'a> {
    function: &'a Function,
    pub(crate) class: OpenClass,
    known: Vec<KnownByte>,
    /// How many bytes every packet has at least.
    shortest: usize,
    /// `None` before the analysis has seen the value.
    values: Vec<Option<Bounds>>,
    /// The blocks that a packet of the class can come to.
    pub(crate) reached: Vec<bool>,
    changed: bool,
    /// What changes now gets all numbers of its width.
    wide: bool,
}

impl<'a> Analysis<'a> {
    /// Follows all packets of the class through the function; `None` if that takes too long.
    pub(crate) fn of(function: &'a Function, class: OpenClass) -> Option<Analysis<'a>> {
        Analysis::with(function, class, class.known(), class.lengths().0)
    }

    /// The same with packets of TCP whose header has so many words of four bytes, which are all there.
    pub(crate) fn of_headers(function: &'a Function, class: OpenClass, words: u8) -> Option<Analysis<'a>> {
        let mut known = class.known();
        let place = class.transport() + 12;
        known.retain(|byte| byte.place != place);
        known.push(KnownByte { place, least: words << 4, most: words << 4 | 15, bits: words << 4 | 15 });
        Analysis::with(function, class, known, class.transport() + 4 * usize::from(words))
    }

    fn with(
        function: &'a Function,
        class: OpenClass,
        known: Vec<KnownByte>,
        shortest: usize,
    ) -> Option<Analysis<'a>> {
        let mut analysis = Analysis {
            function,
            class,
            known,
            shortest,
            values: vec![None; function.widths.len()],
            reached: vec![false; function.blocks.len()],
            changed: false,
            wide: false,
        };
        analysis.settle()?;
        Some(analysis)
    }

    /// Follows the program until nothing changes; `None` if that takes too long.
    fn settle(&mut self) -> Option<()> {
        *self.reached.first_mut()? = true;
        let function = self.function;
        for round in 0..MOST_ROUNDS {
            (self.changed, self.wide) = (false, round >= ROUNDS);
            for (number, block) in function.blocks.iter().enumerate() {
                if self.reached[number] {
                    self.follow(block);
                }
            }
            if !self.changed {
                return Some(());
            }
        }
        None
    }

    /// What is known of a value.
    pub(crate) fn at(&self, value: Value) -> Bounds {
        self.values[value.0 as usize].unwrap_or_else(|| Bounds::any(self.function.width(value)))
    }

    fn learn(&mut self, value: Value, found: Bounds) {
        let width = self.function.width(value);
        let held = &mut self.values[value.0 as usize];
        let new = held.map_or(found, |held| held.or(found));
        if *held != Some(new) {
            *held = Some(if self.wide { Bounds::any(width) } else { new });
            self.changed = true;
        }
    }

    fn follow(&mut self, block: &Block) {
        for instruction in &block.instructions {
            for (place, result) in instruction.results.iter().enumerate() {
                let width = self.function.width(*result);
                let found = if place == 0 { self.result(&instruction.op, width) } else { None };
                self.learn(*result, found.unwrap_or(Bounds::any(width)));
            }
        }
        let end = &block.terminator;
        match end {
            Terminator::Branch(condition, yes, no) => {
                let condition = self.at(*condition);
                if condition.most == 1 {
                    self.enter(yes);
                }
                if condition.least == 0 {
                    self.enter(no);
                }
            }
            Terminator::Switch(value, cases, default) => {
                let Bounds { least, most, .. } = self.at(*value);
                let possible = cases.iter().filter(|(case, _)| (least..=most).contains(case));
                possible.clone().for_each(|(_, target)| self.enter(target));
                // Each value is listed once.
                if possible.count() as u128 <= most - least {
                    self.enter(default);
                }
            }
            Terminator::Need { base, bytes, more, limit, ok, short } => {
                self.enter(ok);
                if limit.is_some() || !self.are_there(*base, *bytes, *more) {
                    self.enter(short);
                }
            }
            _ => end.targets().into_iter().for_each(|target| self.enter(target)),
        }
    }

    /// Whether every packet of the class has these bytes.
    pub(crate) fn are_there(&self, base: Value, bytes: u32, more: Option<Value>) -> bool {
        self.summed(base, bytes, more).end <= self.shortest as u128
    }

    /// Where `bytes` bytes lie that begin `offset` bytes behind a position.
    pub(crate) fn place(&self, base: Value, offset: u32, bytes: u8) -> Range<u128> {
        let Bounds { least, most, .. } = self.at(base);
        least + u128::from(offset)..most + u128::from(offset) + u128::from(bytes)
    }

    /// Where `bytes` bytes from a position on and `more` behind them lie.
    pub(crate) fn summed(&self, base: Value, bytes: u32, more: Option<Value>) -> Range<u128> {
        let Bounds { least, most, .. } = self.at(base);
        least..most + u128::from(bytes) + more.map_or(0, |more| self.at(more).most)
    }

    /// Whether these bytes are neither covered by the checksum of TCP or UDP nor make the class.
    pub(crate) fn may_change(&self, place: &Range<u128>) -> bool {
        let fixed = self.known.iter().map(|known| known.place..known.place + 1);
        let covered = [self.class.addresses(), self.class.length().0];
        place.end <= self.class.transport() as u128
            && fixed.chain(covered).all(|range| beside(place, &wide(range)))
    }

    fn enter(&mut self, target: &Target) {
        let BlockId(number) = target.block;
        self.changed |= !std::mem::replace(&mut self.reached[number as usize], true);
        for (param, arg) in self.function.block(target.block).params.iter().zip(&target.args) {
            if let Some(handed) = self.values[arg.0 as usize] {
                self.learn(*param, handed);
            }
        }
    }

    /// What the first result of an operation can be; `None` if it can be anything.
    fn result(&self, op: &Op, width: u8) -> Option<Bounds> {
        let (shortest, longest) = (self.shortest, self.class.lengths().1);
        match op {
            Op::Const(number) => Some(Bounds::exactly(*number)),
            Op::WireLength | Op::Captured => {
                Some(Bounds { length: Some(0), ..Bounds::within(shortest as u128, longest as u128) })
            }
            Op::Resize(value) => {
                let value = self.at(*value);
                match value.number() {
                    Some(number) => Some(Bounds::exactly(number & largest(width))),
                    None if value.most <= largest(width) => Some(value),
                    None => {
                        let bits = value.bits & largest(width);
                        Some(Bounds { bits, ..Bounds::within(0, bits) })
                    }
                }
            }
            Op::Select(condition, yes, no) => match self.at(*condition).number() {
                Some(1) => Some(self.at(*yes)),
                Some(_) => Some(self.at(*no)),
                None => Some(self.at(*yes).or(self.at(*no))),
            },
            Op::Compare(op, a, b) => {
                compared(*op, self.at(*a), self.at(*b)).map(|holds| Bounds::exactly(holds.into()))
            }
            Op::Binary(op, a, b) => computed(*op, width, self.at(*a), self.at(*b)),
            Op::Load { base, offset, bytes, .. } => {
                let start = usize::try_from(self.at(*base).number()?).ok()? + *offset as usize;
                Some(self.loaded(start..start + usize::from(*bytes)))
            }
            _ => None,
        }
    }

    /// What is known of bytes of the packet.
    fn loaded(&self, place: Range<usize>) -> Bounds {
        let (length, besides) = self.class.length();
        if place == length {
            let bounds = Bounds::within((self.shortest - besides) as u128, u16::MAX.into());
            return Bounds { length: Some(-(besides as i64)), ..bounds };
        }
        place.fold(Bounds::exactly(0), |bounds, place| {
            let known = self.known.iter().find(|known| known.place == place);
            let (least, most, bits) =
                known.map_or((0, u8::MAX, u8::MAX), |known| (known.least, known.most, known.bits));
            Bounds {
                least: bounds.least << 8 | u128::from(least),
                most: bounds.most << 8 | u128::from(most),
                bits: bounds.bits << 8 | u128::from(bits),
                length: None,
            }
        })
    }
}

/// A range of bytes as the analysis has it.
pub(crate) fn wide(range: Range<usize>) -> Range<u128> {
    range.start as u128..range.end as u128
}

/// Whether two ranges have nothing in common.
pub(crate) fn beside(one: &Range<u128>, other: &Range<u128>) -> bool {
    one.end <= other.start || other.end <= one.start
}

/// Whether a comparison holds, if it always does or never.
fn compared(op: CompareOp, a: Bounds, b: Bounds) -> Option<bool> {
    if let Some((a, b)) = a.length.zip(b.length) {
        return Some(match op {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
        });
    }
    let apart = a.most < b.least || b.most < a.least;
    let equal = a.number().is_some() && a.number() == b.number();
    let (holds, fails) = match op {
        CompareOp::Eq => (equal, apart),
        CompareOp::Ne => (apart, equal),
        CompareOp::Lt => (a.most < b.least, a.least >= b.most),
        CompareOp::Le => (a.most <= b.least, a.least > b.most),
    };
    if holds || fails { Some(holds) } else { None }
}

/// The result of an operation on two values.
fn computed(op: BinaryOp, width: u8, a: Bounds, b: Bounds) -> Option<Bounds> {
    if let (Some(a), Some(b)) = (a.number(), b.number()) {
        return Some(Bounds::exactly(binary(op, width, a, b)));
    }
    let full = largest(width);
    if op == BinaryOp::And {
        let bits = a.bits & b.bits;
        return Some(Bounds { bits, ..Bounds::within(0, a.most.min(b.most).min(bits)) });
    }
    let (least, most) =
        arithmetic(op, width, (a.least, a.most), (b.least, b.most)).filter(|(_, most)| *most <= full)?;
    let offset = |bounds: Bounds| bounds.number().and_then(|number| i64::try_from(number).ok());
    let fits = a.most.checked_add(b.most).is_some_and(|most| most <= full);
    let length = match op {
        BinaryOp::Add | BinaryOp::AddSaturate if fits => match (a.length, b.length) {
            (Some(length), _) => offset(b).and_then(|more| length.checked_add(more)),
            (_, Some(length)) => offset(a).and_then(|more| length.checked_add(more)),
            _ => None,
        },
        BinaryOp::Sub | BinaryOp::SubSaturate if a.least >= b.most => {
            a.length.zip(offset(b)).and_then(|(length, less)| length.checked_sub(less))
        }
        _ => None,
    };
    Some(Bounds { length, ..Bounds::within(least, most) })
}
