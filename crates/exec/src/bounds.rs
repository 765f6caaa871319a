//! The smallest and the largest number that an operation can result in, from those of its operands.

use crate::arithmetic::{binary, largest};
use ir::BinaryOp;

/// The smallest and the largest number that a value can be.
pub(crate) type Bounds = (u128, u128);

/// The bounds of a result; `None` if it may wrap around.
pub(crate) fn arithmetic(
    op: BinaryOp,
    width: u8,
    (low, high): Bounds,
    (low_b, high_b): Bounds,
) -> Option<Bounds> {
    let full = largest(width);
    let fits = |least: Option<u128>, most: Option<u128>| Some((least?, most.filter(|most| *most <= full)?));
    match op {
        BinaryOp::Add => fits(low.checked_add(low_b), high.checked_add(high_b)),
        BinaryOp::Mul => fits(low.checked_mul(low_b), high.checked_mul(high_b)),
        BinaryOp::Sub => fits(low.checked_sub(high_b), high.checked_sub(low_b)),
        BinaryOp::AddSaturate => {
            Some((low.saturating_add(low_b).min(full), high.saturating_add(high_b).min(full)))
        }
        BinaryOp::MulSaturate => {
            Some((low.saturating_mul(low_b).min(full), high.saturating_mul(high_b).min(full)))
        }
        BinaryOp::SubSaturate => Some((low.saturating_sub(high_b), high.saturating_sub(low_b))),
        BinaryOp::Div => Some((0, high)),
        BinaryOp::Rem | BinaryOp::And => Some((0, high.min(high_b))),
        BinaryOp::Or | BinaryOp::Xor => Some((0, u128::MAX >> (high | high_b).leading_zeros().min(127))),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight if low_b == high_b => {
            let moved = |number| binary(op, width, number, low_b);
            let lost =
                op == BinaryOp::ShiftLeft && binary(BinaryOp::ShiftRight, width, moved(high), low_b) != high;
            (!lost).then(|| (moved(low), moved(high)))
        }
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stay_within_the_bounds_of_what_they_are_made_of() {
        let bounds = [(0, 0), (0, 5), (3, 9), (200, 255), (0, 255), (1, 1), (7, 7)];
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::AddSaturate,
            BinaryOp::SubSaturate,
            BinaryOp::MulSaturate,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::ShiftLeft,
            BinaryOp::ShiftRight,
        ];
        let mut bounded = 0;
        for op in ops {
            for (a, b) in bounds.iter().flat_map(|a| bounds.iter().map(move |b| (*a, *b))) {
                let Some((least, most)) = arithmetic(op, 8, a, b) else { continue };
                bounded += 1;
                for (x, y) in (a.0..=a.1).flat_map(|x| (b.0..=b.1).map(move |y| (x, y))) {
                    let result = binary(op, 8, x, y);
                    assert!(
                        least <= result && result <= most,
                        "{op:?} {x} {y}: {result} not in {least}..={most}"
                    );
                }
            }
        }
        assert!(bounded > 300, "{bounded}");
    }
}
