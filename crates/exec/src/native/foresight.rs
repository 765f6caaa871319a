//! Which table slots a packet will touch, known before it is run, so that large tables are fetched in time.
//!
//! The idea: many keys are bytes at a fixed place of the packet, such as a source address. Where the IR shows that a lookup or learn has such a key,
//! the place becomes a hint, and the batch loop computes the key of a packet some packets ahead and fetches its slot, or its cell in a table of prefixes. A hint is only a guess: a
//! packet that turns out to go another way has fetched a slot in vain, and its meaning does not change.

use lang::ir::{BinaryOp, Function, Op, Program, Terminator, Value};
use std::collections::HashMap;

/// A key that is made of bytes at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    /// The table: its place among those of its kind.
    pub(super) table: usize,
    /// It is a table with longest prefixes, else an exact one.
    pub(super) prefix: bool,
    /// The first of the eight bytes that hold the key.
    offset: usize,
    /// How far those eight bytes are moved down.
    shift: u32,
    /// The bits that are left.
    mask: u64,
}

/// More hints than these cost more than they bring.
const MOST_HINTS: usize = 4;
/// A value is followed through so many steps.
const FARTHEST: usize = 32;

impl Hint {
    /// The key of a packet with these captured bytes, if they hold it.
    #[inline(always)]
    pub(super) fn key(&self, captured: &[u8]) -> Option<u64> {
        let bytes = captured.get(self.offset..)?.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*bytes) >> self.shift & self.mask)
    }
}

/// The hints of a program, in the order of its text.
pub(super) fn hints(program: &Program) -> Vec<Hint> {
    let Some(function) = program.functions.first() else { return Vec::new() };
    let origins = Origins::new(function);
    let mut found: Vec<Hint> = Vec::new();
    for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
        let (Op::Lookup { table, key } | Op::Learn { table, key, .. }) = &instruction.op else { continue };
        let [column] = key.as_slice() else { continue };
        let Some(piece) = origins.piece(*column, FARTHEST) else { continue };
        let hint = Hint {
            table: *table as usize,
            prefix: false,
            offset: piece.offset as usize,
            shift: 64 - 8 * piece.bytes + piece.shift,
            mask: u64::MAX >> (64 - piece.width),
        };
        if !found.contains(&hint) && found.len() < MOST_HINTS {
            found.push(hint);
        }
    }
    found
}

/// Bytes at a fixed place, moved down by some bits and cut to a width.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    offset: u32,
    bytes: u32,
    shift: u32,
    width: u32,
}

/// Where the values of a function come from.
struct Origins<'a> {
    made: HashMap<Value, &'a Op>,
    handed: HashMap<Value, Vec<Value>>,
    function: &'a Function,
}

impl<'a> Origins<'a> {
    fn new(function: &'a Function) -> Self {
        let mut origins = Origins { made: HashMap::new(), handed: HashMap::new(), function };
        for block in &function.blocks {
            for instruction in &block.instructions {
                origins.made.extend(instruction.results.iter().map(|result| (*result, &instruction.op)));
            }
            for target in Terminator::targets(&block.terminator) {
                let params = &function.block(target.block).params;
                for (param, arg) in params.iter().zip(&target.args) {
                    origins.handed.entry(*param).or_default().push(*arg);
                }
            }
        }
        origins
    }

    /// What all values handed to a parameter are alike, if they are.
    fn alike<T: PartialEq>(&self, value: Value, what: impl Fn(Value) -> Option<T>) -> Option<T> {
        let mut handed = self.handed.get(&value)?.iter();
        let first = what(*handed.next()?)?;
        handed.all(|other| what(*other).as_ref() == Some(&first)).then_some(first)
    }

    fn piece(&self, value: Value, steps: usize) -> Option<Piece> {
        let steps = steps.checked_sub(1)?;
        let width = u32::from(self.function.width(value));
        let piece = match self.made.get(&value) {
            None => self.alike(value, |other| self.piece(other, steps))?,
            Some(Op::Load { base, offset, bytes, .. }) if *bytes <= 8 => {
                let offset = self.number(*base, steps)?.checked_add(u128::from(*offset))?;
                Piece { offset: u32::try_from(offset).ok()?, bytes: (*bytes).into(), shift: 0, width }
            }
            Some(Op::Resize(inner)) => self.piece(*inner, steps)?,
            Some(Op::Binary(BinaryOp::ShiftRight, inner, distance)) => {
                let inner = self.piece(*inner, steps)?;
                let shift = u32::try_from(self.number(*distance, steps)?).ok()?.checked_add(inner.shift)?;
                Piece { shift, ..inner }
            }
            Some(_) => return None,
        };
        let fits = piece.shift < 8 * piece.bytes;
        fits.then_some(Piece { width: piece.width.min(width), ..piece })
    }

    fn number(&self, value: Value, steps: usize) -> Option<u128> {
        let steps = steps.checked_sub(1)?;
        match self.made.get(&value) {
            None => self.alike(value, |other| self.number(other, steps)),
            Some(Op::Const(number)) => Some(*number),
            Some(Op::Binary(BinaryOp::Add, a, b)) => {
                self.number(*a, steps)?.checked_add(self.number(*b, steps)?)
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::pipeline::{Options, compile};

    fn hints_of(text: &str) -> Vec<Hint> {
        let compiled = compile("case.rav", text, &|_| None, &Options::default());
        hints(&compiled.program.expect("the case compiles"))
    }

    fn key(hint: Hint, bytes: std::ops::Range<u8>) -> Option<u64> {
        hint.key(&bytes.collect::<Vec<u8>>())
    }

    #[test]
    fn addresses_at_fixed_places_are_known_ahead() {
        let hints = hints_of(include_str!("../../../../programs/mac_switch.rav"));
        let keys: Vec<Option<u64>> = hints.iter().map(|&hint| key(hint, 0..60)).collect();
        assert_eq!(keys, [Some(0x0607_0809_0a0b), Some(0x0001_0203_0405)]);
        assert_eq!(key(hints[0], 0..13), None);
    }

    #[test]
    fn a_place_behind_a_fixed_header_is_known_through_stages() {
        let hints = hints_of(include_str!("../../../../programs/firewall.rav"));
        let keys: Vec<Option<u64>> = hints.iter().map(|&hint| key(hint, 0..60)).collect();
        assert_eq!(keys, [Some(0x1a1b_1c1d), Some(0x1e1f_2021)]);
    }

    #[test]
    fn a_place_behind_a_header_of_any_length_is_not() {
        let text = "
            table seen: exact(u16) { capacity 8 age 1s evict lru }
            layout first { size: u8 rest: bytes[size] }
            layout second { kind: u16 }
            start decoder one(a: first) { goto two }
            decoder two(b: second) { learn seen[b.kind] flood }";
        assert_eq!(hints_of(text), []);
    }

    #[test]
    fn bits_of_a_field_are_cut_out() {
        let text = "
            table seen: exact(u12) { capacity 8 age 1s evict lru }
            layout tag { priority: u3 flag: u1 id: u12 rest: bytes[48] }
            start decoder one(t: tag) { learn seen[t.id] flood }";
        let [hint] = hints_of(text)[..] else { panic!("one hint") };
        assert_eq!(hint.key(&[0xab, 0xcd, 0, 0, 0, 0, 0, 0]), Some(0xbcd));
    }
}
