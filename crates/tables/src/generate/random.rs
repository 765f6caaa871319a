//! The source of randomness of all generators, and choices by weight.

/// Random numbers that depend on the seed alone: SplitMix64 (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 128 bits.
    pub fn wide(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }

    /// A number below `end`; 0 if `end` is 0. Off from even by less than `end` in 2^64.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included; `low` if they are the wrong way round.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.word(),
        }
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; `None` of nothing.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// The repeats of a Pareto distribution with shape 1: 1 in half of the cases, `n` or more in one of `n`;
    /// at most `limit`.
    pub fn pareto(&mut self, limit: u64) -> u64 {
        (u64::MAX / (self.word() | 1)).clamp(1, limit.max(1))
    }
}

/// Choices by weight in constant time: the alias method (Walker 1977, Vose 1991), in whole numbers.
///
/// The idea: each of `n` columns is as high as the mean weight and holds a part of one item topped up with
/// one other; a draw picks a column and then one of the two parts. The table is made by pairing an item below
/// the mean with one above it.
#[derive(Clone, Debug)]
pub struct Weighted {
    total: u64,
    /// Of each column: where its own part ends (of `total`), and the item above it.
    columns: Vec<(u64, u32)>,
}

impl Weighted {
    /// Choices with these weights, whose sum times whose number must stay below 2^127 (it does for any that
    /// fit memory).
    pub fn new(weights: &[u64]) -> Weighted {
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        // Halving all weights until their sum fits 64 bits keeps their shares.
        let shift = 64u32.saturating_sub(total.leading_zeros().min(64));
        let weights: Vec<u64> = weights.iter().map(|weight| weight >> shift).collect();
        let total: u64 = weights.iter().sum();
        let count = weights.len() as u128;
        let mut scaled: Vec<u128> = weights.iter().map(|weight| u128::from(*weight) * count).collect();
        let mean = u128::from(total);
        let (mut low, mut high): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|item| scaled[*item as usize] < mean);
        let mut columns: Vec<(u64, u32)> = (0..weights.len() as u32).map(|item| (total, item)).collect();
        while let (Some(below), Some(above)) = (low.pop(), high.last().copied()) {
            let (below, large) = (below as usize, above as usize);
            columns[below] = (scaled[below] as u64, above);
            scaled[large] -= mean - scaled[below];
            if scaled[large] < mean {
                high.pop();
                low.push(above);
            }
        }
        Weighted { total, columns }
    }

    /// Zipf's law with exponent 1 over `count` items: item `i` (from 0) has weight 1 / (i + 1).
    pub fn zipf(count: u32) -> Weighted {
        let weights: Vec<u64> = (1..=u64::from(count)).map(|rank| (1 << 40) / rank).collect();
        Weighted::new(&weights)
    }

    /// The number of an item; 0 if there is none.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        let column = random.below(self.columns.len() as u64) as usize;
        let part = random.below(self.total);
        match self.columns.get(column) {
            Some((end, other)) if part >= *end => *other as usize,
            _ => column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_their_weights() {
        let mut random = Random::new(1);
        let weights = [0, 5, 1, 0, 94, 300, 600];
        let chosen = Weighted::new(&weights);
        let mut counts = [0u64; 7];
        for _ in 0..100_000 {
            counts[chosen.draw(&mut random)] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!(count.abs_diff(weight * 100) <= weight * 3 + 60, "{counts:?}");
            assert_eq!(*count == 0, weight == 0);
        }
    }

    #[test]
    fn huge_weights_and_none_at_all_are_drawn_from() {
        let mut random = Random::new(2);
        let halves = Weighted::new(&[u64::MAX, u64::MAX, u64::MAX]);
        let first = (0..3000).filter(|_| halves.draw(&mut random) == 0).count();
        assert!((900..1100).contains(&first), "{first}");
        assert_eq!(Weighted::new(&[]).draw(&mut random), 0);
    }

    #[test]
    fn the_law_of_zipf_gives_the_first_as_much_as_ranks_say() {
        let mut random = Random::new(3);
        let law = Weighted::zipf(1000);
        let mut counts = vec![0u64; 1000];
        for _ in 0..748_500 {
            counts[law.draw(&mut random)] += 1;
        }
        // The harmonic number of 1000 is 7.485, so rank r is drawn about 100,000 / r times.
        assert!(counts[0].abs_diff(100_000) < 1500, "{}", counts[0]);
        assert!(counts[9].abs_diff(10_000) < 500, "{}", counts[9]);
        assert!(counts[999].abs_diff(100) < 50, "{}", counts[999]);
    }

    #[test]
    fn repeats_are_heavy_tailed_and_bounded() {
        let mut random = Random::new(4);
        let draws: Vec<u64> = (0..100_000).map(|_| random.pareto(1000)).collect();
        let share = |least: u64| draws.iter().filter(|repeat| **repeat >= least).count();
        assert!(share(2).abs_diff(50_000) < 1000 && share(100).abs_diff(1000) < 150);
        assert_eq!(draws.iter().max(), Some(&1000));
    }
}
