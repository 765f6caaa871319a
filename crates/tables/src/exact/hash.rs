//! The seeded hash of a key's words.
//!
//! The idea: each word is combined with what came before and multiplied to 128 bits, whose halves are
//! combined again. The high half carries every bit of the input down to the low bits that choose the slot.
//! Both the start and the multiplier come from the seed. One such step maps keys at a regular distance to
//! homes at a regular distance, which for about one seed in a hundred is close to zero; so a last step, with
//! the two exchanged, follows. Whoever does not know the seed then knows no keys that are more likely than
//! others to meet.

/// A hash function chosen by a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash {
    start: u64,
    multiplier: u64,
}

impl Hash {
    pub(crate) fn new(seed: u64) -> Hash {
        let start = mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        Hash { start, multiplier: mixed(start) | 1 }
    }

    /// What the function starts with and what it multiplies by.
    #[cfg(feature = "device")]
    pub(crate) fn constants(&self) -> (u64, u64) {
        (self.start, self.multiplier)
    }

    /// Hash of the words; use its low bits.
    #[inline(always)]
    pub(crate) fn of(&self, words: &[u64]) -> u64 {
        let mut sum = self.start;
        for word in words {
            sum = folded(sum ^ word, self.multiplier);
        }
        folded(sum ^ self.multiplier, self.start | 1)
    }
}

/// The exclusive or of both halves of a product.
#[inline(always)]
pub(crate) fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

/// The seed that follows one whose keys have met too often.
pub(crate) fn next_seed(seed: u64) -> u64 {
    mixed(seed ^ 0xa076_1d64_78bd_642f)
}

/// The output function of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014).
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills 2^15 homes with 2^14 keys and returns the fullest home.
    fn fullest(keys: impl Iterator<Item = Vec<u64>>) -> usize {
        let hash = Hash::new(7);
        let mut homes = vec![0; 1 << 15];
        for key in keys.take(1 << 14) {
            homes[(hash.of(&key) & 0x7fff) as usize] += 1;
        }
        homes.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn regular_keys_spread_out() {
        // A random function puts at most 8 of 2^14 keys in one of 2^15 homes with probability above 0.999.
        for step in [0, 8, 16, 24, 32, 40, 48] {
            assert!(fullest((0..).map(|i: u64| vec![i << step])) <= 8, "step {step}");
            assert!(fullest((0..).map(|i: u64| vec![1, i << step])) <= 8, "second word, step {step}");
            assert!(fullest((0..).map(|i: u64| vec![i << step, 1])) <= 8, "first word, step {step}");
        }
    }

    #[test]
    fn keys_at_regular_distances_spread_out_whatever_the_seed() {
        for seed in 0..200 {
            let hash = Hash::new(seed);
            for step in [0, 16, 32, 48] {
                let mut homes = vec![0u32; 1 << 13];
                for key in (0..1u64 << 12).map(|i| i << step) {
                    homes[(hash.of(&[key]) & 0x1fff) as usize] += 1;
                }
                // A random function takes about 3223 of the homes. One multiplication takes 2 for some of
                // these seeds.
                let taken = homes.iter().filter(|keys| **keys > 0).count();
                assert!(taken > 2800, "seed {seed}, step {step}: {taken}");
            }
        }
    }

    #[test]
    fn seeds_choose_different_functions() {
        assert_ne!(Hash::new(1).of(&[5]), Hash::new(2).of(&[5]));
    }
}
