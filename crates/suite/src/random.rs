//! Random numbers that a seed repeats on every machine.

/// Xorshift64* (Marsaglia 2003, Vigna 2016), started by one round of SplitMix64 so that seeds near each other
/// differ.
#[derive(Clone, Debug)]
pub struct SuiteRandom(u64);

impl SuiteRandom {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> SuiteRandom {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        SuiteRandom((mixed ^ (mixed >> 31)) | 1)
    }

    /// Any number of 64 bits but zero.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 up to but without `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(n)) >> 64) as u64
    }

    /// A number between these, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these; they must not be empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// A number of `width` bits (1 to 128): small, near the largest, a single bit, or any.
    pub fn value(&mut self, width: u8) -> u128 {
        let top = u128::MAX >> (128 - u32::from(width));
        let value = match self.below(6) {
            0 | 1 => u128::from(self.below(5)),
            2 => top.saturating_sub(u128::from(self.below(3))),
            3 => 1 << self.below(u64::from(width)),
            _ => u128::from(self.number()) << 64 | u128::from(self.number()),
        };
        value & top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let numbers = |seed| {
            let mut random = SuiteRandom::new(seed);
            (0..100).map(|_| random.number()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        let mut random = SuiteRandom::new(3);
        let seen: std::collections::BTreeSet<u64> = (0..1000).map(|_| random.between(3, 9)).collect();
        assert_eq!(seen, (3..=9).collect());
        for width in 1..=128 {
            assert!((0..50).all(|_| random.value(width).checked_shr(width.into()).unwrap_or(0) == 0));
        }
    }
}
