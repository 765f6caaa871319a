//! Prefetch hints: which table slots a packet will probably touch, known before it is run, so that large
//! tables are fetched in time.
//!
//! The idea: many keys are bytes at a fixed place of the packet, such as a source address. Where the IR shows
//! that a lookup or learn has such a key, the place becomes a hint, and the batch loop computes the key of a
//! packet some packets ahead and fetches its slot, or its cell in a table of prefixes. A hint is only a
//! guess: if the packet takes another path, a slot was fetched in vain, and the result does not change.

use crate::block_order::order;
use ir::{BinaryOp, BlockId, Function, Op, Program, Terminator, Value};
use std::collections::HashMap;

/// A key that is made of bytes at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    /// The number of the table among those of its kind.
    pub(super) table: usize,
    /// Whether it is a table with longest prefixes; otherwise it is an exact one.
    pub(super) prefix: bool,
    /// The first of the eight bytes that hold the key.
    offset: usize,
    /// By how many bits those eight bytes are shifted right.
    shift: u32,
    /// The mask of the key's bits after the shift.
    mask: u64,
}

/// The largest number of hints; more cost more than they save.
const MOST_HINTS: usize = 4;

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
    let origins = origins(function);
    let mut found: Vec<Hint> = Vec::new();
    for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
        let (Op::Lookup { table, key } | Op::Learn { table, key, .. }) = &instruction.op else { continue };
        let [column] = key.as_slice() else { continue };
        let Origin::Piece(piece) = origins[column.0 as usize] else { continue };
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

/// Bytes at a fixed place, shifted right by some bits and truncated to a width.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    offset: u32,
    bytes: u32,
    shift: u32,
    width: u32,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Number(u128),
    Piece(Piece),
    /// The value does not come from one fixed place.
    Other,
}

/// The origins of a function's values, by value, in one pass: blocks come after their predecessors, and an
/// argument that a loop passes back counts as another place.
fn origins(function: &Function) -> Vec<Origin> {
    let mut origins = vec![Origin::Other; function.widths.len()];
    // The common origin of all values passed to a parameter so far.
    let mut handed: HashMap<Value, Origin> = HashMap::new();
    let mut pending = vec![0_u32; function.blocks.len()];
    let order = order(function, BlockId(0), |_| false);
    for target in order.iter().flat_map(|id| Terminator::targets(&function.block(*id).terminator)) {
        pending[target.block.0 as usize] += 1;
    }
    for id in order {
        let block = function.block(id);
        for param in &block.params {
            let alike = (pending[id.0 as usize] == 0).then(|| handed.get(param).copied()).flatten();
            origins[param.0 as usize] = cut(alike.unwrap_or(Origin::Other), function.width(*param));
        }
        for instruction in &block.instructions {
            let [result] = instruction.results.as_slice() else { continue };
            let origin = of_instruction(&instruction.op, &origins, function.width(*result));
            origins[result.0 as usize] = cut(origin, function.width(*result));
        }
        for target in Terminator::targets(&block.terminator) {
            pending[target.block.0 as usize] -= 1;
            for (param, arg) in function.block(target.block).params.iter().zip(&target.args) {
                let origin = origins[arg.0 as usize];
                let alike = handed.entry(*param).or_insert(origin);
                if *alike != origin {
                    *alike = Origin::Other;
                }
            }
        }
    }
    origins
}

/// The origin of an instruction's result.
fn of_instruction(op: &Op, origins: &[Origin], width: u8) -> Origin {
    let from = |value: &Value| origins[value.0 as usize];
    match op {
        Op::Const(number) => Origin::Number(*number),
        Op::Resize(inner) if matches!(from(inner), Origin::Piece(_)) => from(inner),
        Op::Load { base, offset, bytes, .. } if *bytes <= 8 => {
            let Origin::Number(base) = from(base) else { return Origin::Other };
            let offset = base.checked_add(u128::from(*offset)).and_then(|offset| u32::try_from(offset).ok());
            let piece = |offset| Piece { offset, bytes: (*bytes).into(), shift: 0, width: width.into() };
            offset.map_or(Origin::Other, |offset| Origin::Piece(piece(offset)))
        }
        Op::Binary(BinaryOp::Add, a, b) => match (from(a), from(b)) {
            (Origin::Number(a), Origin::Number(b)) => a.checked_add(b).map_or(Origin::Other, Origin::Number),
            _ => Origin::Other,
        },
        Op::Binary(BinaryOp::ShiftRight, inner, distance) => match (from(inner), from(distance)) {
            (Origin::Piece(inner), Origin::Number(distance)) => {
                let shift =
                    u32::try_from(distance).ok().and_then(|distance| distance.checked_add(inner.shift));
                shift.map_or(Origin::Other, |shift| Origin::Piece(Piece { shift, ..inner }))
            }
            _ => Origin::Other,
        },
        _ => Origin::Other,
    }
}

/// The origin of a value that is truncated to this width.
fn cut(origin: Origin, width: u8) -> Origin {
    match origin {
        Origin::Piece(piece) if piece.shift >= 8 * piece.bytes => Origin::Other,
        Origin::Piece(piece) => Origin::Piece(Piece { width: piece.width.min(width.into()), ..piece }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::pipeline::{CompileOptions, compile};

    fn hints_of(text: &str) -> Vec<Hint> {
        let compiled = compile("case.rav", text, &|_| None, &CompileOptions::default());
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

    /// Each of 60 stages has three ways to the next one, which makes 3 to the power of 60 paths.
    #[test]
    fn stages_with_many_paths_are_looked_at_once() {
        let stage = |i: u32| {
            let next = i + 1;
            format!("stage s{i}() {{ match p.way {{ {i} => s{next}, 9 => s{next}, else => s{next} }} }}\n")
        };
        let text = format!(
            "table seen: exact(u32) {{ capacity 8 age 1s evict lru }}
            layout plain {{ way: u8 key: u32 rest: bytes[8] }}
            start decoder first(p: plain) {{ goto s10 }}
            {}
            stage s70() {{ learn seen[p.key] flood }}",
            (10..70).map(stage).collect::<String>()
        );
        let [hint] = hints_of(&text)[..] else { panic!("one hint") };
        assert_eq!(key(hint, 0..60), Some(0x0102_0304));
    }
}
