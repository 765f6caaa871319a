//! The meaning of the IR's arithmetic operations and comparisons on numbers.

use ir::{BinaryOp, CompareOp};

/// The largest value of this width in bits, 1 to 128.
pub(crate) fn largest(width: u8) -> u128 {
    u128::MAX >> (128 - u32::from(width))
}

/// The result of an operation on two values of one width.
pub(crate) fn binary(op: BinaryOp, width: u8, a: u128, b: u128) -> u128 {
    let max = largest(width);
    match op {
        BinaryOp::Add => a.wrapping_add(b) & max,
        BinaryOp::Sub => a.wrapping_sub(b) & max,
        BinaryOp::Mul => a.wrapping_mul(b) & max,
        BinaryOp::AddSaturate => a.saturating_add(b).min(max),
        BinaryOp::SubSaturate => a.saturating_sub(b),
        BinaryOp::MulSaturate => a.saturating_mul(b).min(max),
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft if b < u128::from(width) => a << b & max,
        BinaryOp::ShiftRight if b < u128::from(width) => a >> b,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 0,
    }
}

/// Whether the comparison holds.
pub(crate) fn compare(op: CompareOp, a: u128, b: u128) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_total_and_stays_in_its_width() {
        let eight = |op, a, b| binary(op, 8, a, b);
        assert_eq!(eight(BinaryOp::Add, 200, 100), 44);
        assert_eq!(eight(BinaryOp::Sub, 1, 2), 255);
        assert_eq!(eight(BinaryOp::Mul, 16, 17), 16);
        assert_eq!(eight(BinaryOp::AddSaturate, 200, 100), 255);
        assert_eq!(eight(BinaryOp::SubSaturate, 1, 2), 0);
        assert_eq!(eight(BinaryOp::MulSaturate, 16, 17), 255);
        assert_eq!(eight(BinaryOp::Div, 7, 0), 0);
        assert_eq!(eight(BinaryOp::Rem, 7, 0), 0);
        assert_eq!(eight(BinaryOp::Rem, 7, 4), 3);
        assert_eq!(eight(BinaryOp::ShiftLeft, 0x81, 1), 2);
        assert_eq!(eight(BinaryOp::ShiftLeft, 1, 8), 0);
        assert_eq!(eight(BinaryOp::ShiftRight, 0x80, 7), 1);
        assert_eq!(binary(BinaryOp::ShiftRight, 128, u128::MAX, 128), 0);
        assert_eq!(binary(BinaryOp::MulSaturate, 128, 1 << 127, 2), u128::MAX);
    }
}
