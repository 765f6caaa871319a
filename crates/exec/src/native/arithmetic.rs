//! Translates arithmetic into Cranelift's IR. Values of one bit are in 8 bits, values of up to 64 bits in 64,
//! wider values in 128; unused bits are zero.

use super::host::{DIVIDE, HostFunction, MULTIPLY_SATURATING, REMAINDER};
use super::translate::Host;
use crate::arithmetic::largest;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use ir::{BinaryOp, CompareOp};

/// The type that holds a value of this width.
pub(super) fn type_of(width: u8) -> Type {
    match width {
        1 => types::I8,
        2..=64 => types::I64,
        _ => types::I128,
    }
}

/// A constant of this width.
pub(super) fn constant(bx: &mut FunctionBuilder<'_>, width: u8, value: u128) -> Value {
    match type_of(width) {
        types::I128 => {
            let low = bx.ins().iconst(types::I64, value as i64);
            let high = bx.ins().iconst(types::I64, (value >> 64) as i64);
            bx.ins().iconcat(low, high)
        }
        one => bx.ins().iconst(one, value as i64),
    }
}

/// The value in 64 bits: zero-extended or truncated.
pub(super) fn word(bx: &mut FunctionBuilder<'_>, value: Value) -> Value {
    match bx.func.dfg.value_type(value) {
        types::I8 => bx.ins().uextend(types::I64, value),
        types::I128 => bx.ins().ireduce(types::I64, value),
        _ => value,
    }
}

/// The less significant and the more significant word of a value.
pub(super) fn words(bx: &mut FunctionBuilder<'_>, value: Value) -> (Value, Value) {
    if bx.func.dfg.value_type(value) == types::I128 {
        return bx.ins().isplit(value);
    }
    (word(bx, value), bx.ins().iconst(types::I64, 0))
}

/// A value of width `from`, zero-extended or truncated to width `to`.
pub(super) fn resize(bx: &mut FunctionBuilder<'_>, value: Value, from: u8, to: u8) -> Value {
    let (have, want) = (type_of(from), type_of(to));
    let value = if have == want {
        value
    } else if have.bits() < want.bits() {
        if want == types::I128 {
            let (low, high) = words(bx, value);
            return bx.ins().iconcat(low, high);
        }
        return bx.ins().uextend(want, value);
    } else {
        bx.ins().ireduce(want, value)
    };
    if to < from { cut(bx, value, to) } else { value }
}

/// The low `width` bits.
pub(super) fn cut(bx: &mut FunctionBuilder<'_>, value: Value, width: u8) -> Value {
    match width {
        64 | 128 => value,
        2..64 => mask_word(bx, value, width),
        _ => {
            let mask = constant(bx, width, largest(width));
            bx.ins().band(value, mask)
        }
    }
}

/// The second if the first is not zero, else the third. 128 bits are selected by halves: Cranelift would make
/// a maximum or minimum of a comparison and a selection, and has no code for those at 128 bits.
pub(super) fn select(bx: &mut FunctionBuilder<'_>, condition: Value, yes: Value, no: Value) -> Value {
    if bx.func.dfg.value_type(yes) != types::I128 {
        return bx.ins().select(condition, yes, no);
    }
    let ((yes_low, yes_high), (no_low, no_high)) = (bx.ins().isplit(yes), bx.ins().isplit(no));
    let low = bx.ins().select(condition, yes_low, no_low);
    let high = bx.ins().select(condition, yes_high, no_high);
    bx.ins().iconcat(low, high)
}

/// Whether the comparison holds, in 8 bits.
pub(super) fn compare(bx: &mut FunctionBuilder<'_>, op: CompareOp, a: Value, b: Value) -> Value {
    let condition = match op {
        CompareOp::Eq => IntCC::Equal,
        CompareOp::Ne => IntCC::NotEqual,
        CompareOp::Lt => IntCC::UnsignedLessThan,
        CompareOp::Le => IntCC::UnsignedLessThanOrEqual,
    };
    bx.ins().icmp(condition, a, b)
}

/// The result of an operation on two values of one width.
pub(super) fn binary(
    bx: &mut FunctionBuilder<'_>,
    host: &mut Host<'_>,
    op: BinaryOp,
    width: u8,
    a: Value,
    b: Value,
) -> Value {
    if width == 1 {
        // One bit is computed in a word, as the smallest width.
        let (a, b) = (word(bx, a), word(bx, b));
        let wide = narrow(bx, op, 1, a, b);
        return bx.ins().ireduce(types::I8, wide);
    }
    if width <= 64 { narrow(bx, op, width, a, b) } else { wide(bx, host, op, width, a, b) }
}

/// For values of up to 64 bits, in a word.
fn narrow(bx: &mut FunctionBuilder<'_>, op: BinaryOp, width: u8, a: Value, b: Value) -> Value {
    let mask = largest(width) as i64;
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
            let result = match op {
                BinaryOp::Add => bx.ins().iadd(a, b),
                BinaryOp::Sub => bx.ins().isub(a, b),
                _ => bx.ins().imul(a, b),
            };
            mask_word(bx, result, width)
        }
        BinaryOp::AddSaturate => {
            let sum = bx.ins().iadd(a, b);
            let over = if width == 64 {
                bx.ins().icmp(IntCC::UnsignedLessThan, sum, a)
            } else {
                let max = bx.ins().iconst(types::I64, mask);
                bx.ins().icmp(IntCC::UnsignedGreaterThan, sum, max)
            };
            let max = bx.ins().iconst(types::I64, mask);
            bx.ins().select(over, max, sum)
        }
        BinaryOp::SubSaturate => {
            let difference = bx.ins().isub(a, b);
            let under = bx.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let zero = bx.ins().iconst(types::I64, 0);
            bx.ins().select(under, zero, difference)
        }
        BinaryOp::MulSaturate => {
            let product = bx.ins().imul(a, b);
            let max = bx.ins().iconst(types::I64, mask);
            let over = bx.ins().icmp(IntCC::UnsignedGreaterThan, product, max);
            let over = if width <= 32 {
                over
            } else {
                let high = bx.ins().umulhi(a, b);
                let zero = bx.ins().iconst(types::I64, 0);
                let carry = bx.ins().icmp(IntCC::NotEqual, high, zero);
                bx.ins().bor(over, carry)
            };
            bx.ins().select(over, max, product)
        }
        BinaryOp::Div | BinaryOp::Rem => {
            let (zero, one) = (bx.ins().iconst(types::I64, 0), bx.ins().iconst(types::I64, 1));
            let none = bx.ins().icmp(IntCC::Equal, b, zero);
            let divisor = bx.ins().select(none, one, b);
            if op == BinaryOp::Rem {
                // The remainder of a division by one is zero, as is defined for a division by zero.
                return bx.ins().urem(a, divisor);
            }
            let quotient = bx.ins().udiv(a, divisor);
            bx.ins().select(none, zero, quotient)
        }
        BinaryOp::And => bx.ins().band(a, b),
        BinaryOp::Or => bx.ins().bor(a, b),
        BinaryOp::Xor => bx.ins().bxor(a, b),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
            let moved = if op == BinaryOp::ShiftLeft {
                let moved = bx.ins().ishl(a, b);
                mask_word(bx, moved, width)
            } else {
                bx.ins().ushr(a, b)
            };
            let bits = bx.ins().iconst(types::I64, i64::from(width));
            let inside = bx.ins().icmp(IntCC::UnsignedLessThan, b, bits);
            let zero = bx.ins().iconst(types::I64, 0);
            bx.ins().select(inside, moved, zero)
        }
    }
}

/// For values of more than 64 bits.
fn wide(
    bx: &mut FunctionBuilder<'_>,
    host: &mut Host<'_>,
    op: BinaryOp,
    width: u8,
    a: Value,
    b: Value,
) -> Value {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
            let result = match op {
                BinaryOp::Add => bx.ins().iadd(a, b),
                BinaryOp::Sub => bx.ins().isub(a, b),
                _ => bx.ins().imul(a, b),
            };
            cut(bx, result, width)
        }
        BinaryOp::AddSaturate => {
            let sum = bx.ins().iadd(a, b);
            let max = constant(bx, width, largest(width));
            let over = if width == 128 {
                bx.ins().icmp(IntCC::UnsignedLessThan, sum, a)
            } else {
                bx.ins().icmp(IntCC::UnsignedGreaterThan, sum, max)
            };
            select(bx, over, max, sum)
        }
        BinaryOp::SubSaturate => {
            let difference = bx.ins().isub(a, b);
            let under = bx.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let zero = constant(bx, width, 0);
            select(bx, under, zero, difference)
        }
        BinaryOp::MulSaturate => {
            let product = by_host(bx, host, MULTIPLY_SATURATING, a, b);
            let max = constant(bx, width, largest(width));
            let over = bx.ins().icmp(IntCC::UnsignedGreaterThan, product, max);
            select(bx, over, max, product)
        }
        BinaryOp::Div => by_host(bx, host, DIVIDE, a, b),
        BinaryOp::Rem => by_host(bx, host, REMAINDER, a, b),
        BinaryOp::And => bx.ins().band(a, b),
        BinaryOp::Or => bx.ins().bor(a, b),
        BinaryOp::Xor => bx.ins().bxor(a, b),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
            let distance = word(bx, b);
            let moved = if op == BinaryOp::ShiftLeft {
                bx.ins().ishl(a, distance)
            } else {
                bx.ins().ushr(a, distance)
            };
            let moved = cut(bx, moved, width);
            let bits = constant(bx, width, width.into());
            let inside = bx.ins().icmp(IntCC::UnsignedLessThan, b, bits);
            let zero = constant(bx, width, 0);
            select(bx, inside, moved, zero)
        }
    }
}

/// An operation on two 128-bit numbers that a host function computes.
fn by_host(
    bx: &mut FunctionBuilder<'_>,
    host: &mut Host<'_>,
    function: HostFunction<4, 2>,
    a: Value,
    b: Value,
) -> Value {
    let ((a_low, a_high), (b_low, b_high)) = (bx.ins().isplit(a), bx.ins().isplit(b));
    let results = host.call(bx, function, [a_low, a_high, b_low, b_high]);
    bx.ins().iconcat(results[0], results[1])
}

fn mask_word(bx: &mut FunctionBuilder<'_>, value: Value, width: u8) -> Value {
    // For the width of a machine word a move is enough; a mask of 32 ones would be read from memory.
    let part = match width {
        64 => return value,
        32 => types::I32,
        16 => types::I16,
        8 => types::I8,
        _ => {
            let mask = bx.ins().iconst(types::I64, largest(width) as i64);
            return bx.ins().band(value, mask);
        }
    };
    let part = bx.ins().ireduce(part, value);
    bx.ins().uextend(types::I64, part)
}
