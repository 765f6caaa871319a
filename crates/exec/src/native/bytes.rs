//! Big-endian loads and stores of 1 to 16 packet bytes, in as few machine accesses as the proven length
//! allows.

use super::arithmetic::words;
use crate::arithmetic::largest;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::FunctionBuilder;

/// A place in a packet: a base address, and how many bytes from there on are known to be captured.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Address of the base.
    pub(super) address: Value,
    /// A number that is added to offsets: the position of the base, if that is a constant.
    pub(super) lead: u32,
    /// The number of captured bytes from the base on.
    pub(super) proven: u32,
    /// How the accesses may be combined.
    pub(super) flags: MemFlagsData,
}

/// Loads `bytes` bytes (1 to 16) at `offset` from the base.
pub(super) fn load(bx: &mut FunctionBuilder<'_>, place: Place, offset: u32, bytes: u8) -> Value {
    if bytes > 8 {
        let high = load(bx, place, offset, bytes - 8);
        let low = load(bx, place, offset + u32::from(bytes) - 8, 8);
        return bx.ins().iconcat(low, high);
    }
    if bytes.is_power_of_two() {
        return load_power(bx, place, offset, bytes);
    }
    let whole = bytes.next_power_of_two();
    let (length, width) = (u32::from(bytes), bytes * 8);
    if offset.saturating_add(whole.into()) <= place.proven {
        let loaded = load_power(bx, place, offset, whole);
        return bx.ins().ushr_imm_u(loaded, i64::from(whole - bytes) * 8);
    }
    if offset + length >= u32::from(whole) {
        let loaded = load_power(bx, place, offset + length - u32::from(whole), whole);
        let mask = bx.ins().iconst(types::I64, largest(width) as i64);
        return bx.ins().band(loaded, mask);
    }
    let first = whole / 2;
    let high = load_power(bx, place, offset, first);
    let low = load(bx, place, offset + u32::from(first), bytes - first);
    let high = bx.ins().ishl_imm_u(high, i64::from(bytes - first) * 8);
    bx.ins().bor(high, low)
}

/// Stores the low `bytes` bytes (1 to 16) of a value at `offset` from the base.
pub(super) fn store(bx: &mut FunctionBuilder<'_>, place: Place, offset: u32, bytes: u8, value: Value) {
    let (low, high) = words(bx, value);
    if bytes > 8 {
        store_word(bx, place, offset, bytes - 8, high);
        store_word(bx, place, offset + u32::from(bytes) - 8, 8, low);
    } else {
        store_word(bx, place, offset, bytes, low);
    }
}

fn store_word(bx: &mut FunctionBuilder<'_>, place: Place, offset: u32, bytes: u8, value: Value) {
    let mut left = bytes;
    let mut at = offset;
    while left > 0 {
        let take = 1 << left.ilog2();
        let rest = left - take;
        let part = if rest == 0 { value } else { bx.ins().ushr_imm_u(value, i64::from(rest) * 8) };
        let (address, at_lead) = reach(bx, place, at);
        match take {
            1 => {
                bx.ins().istore8(place.flags, part, address, at_lead);
            }
            8 => {
                let swapped = bx.ins().bswap(part);
                bx.ins().store(place.flags, swapped, address, at_lead);
            }
            _ => {
                let narrow = bx.ins().ireduce(if take == 2 { types::I16 } else { types::I32 }, part);
                let swapped = bx.ins().bswap(narrow);
                bx.ins().store(place.flags, swapped, address, at_lead);
            }
        }
        at += u32::from(take);
        left = rest;
    }
}

/// Loads 1, 2, 4 or 8 bytes.
fn load_power(bx: &mut FunctionBuilder<'_>, place: Place, offset: u32, bytes: u8) -> Value {
    let (address, offset) = reach(bx, place, offset);
    let kind = match bytes {
        1 => return bx.ins().uload8(types::I64, place.flags, address, offset),
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    };
    let loaded = bx.ins().load(kind, place.flags, address, offset);
    let swapped = bx.ins().bswap(loaded);
    if bytes == 8 { swapped } else { bx.ins().uextend(types::I64, swapped) }
}

/// The address and the constant offset of an access. An offset that does not fit into an instruction is added
/// to the address.
pub(super) fn reach(bx: &mut FunctionBuilder<'_>, place: Place, offset: u32) -> (Value, i32) {
    let offset = u64::from(place.lead) + u64::from(offset);
    if let Ok(offset) = i32::try_from(offset) {
        return (place.address, offset);
    }
    let far = bx.ins().iconst(types::I64, offset as i64);
    (bx.ins().iadd(place.address, far), 0)
}
