//! Pools: numbered items (addresses, ports) that are taken and given back, found by the first free one at or
//! after a hint.
//!
//! The idea: one bit an item says that it is free; over each 64 bits stands one bit of the next level that
//! says whether any of them is set, up to a single word. A search masks the hint's word, climbs until a level
//! has a set bit to the right, and walks down along the first set bits: two steps a level, and 2^32 items
//! have six levels. Taking and giving write a word a level, and stop at the first level that does not change.
//!
//! ```text
//! level 0: bit i of word j = item 64 j + i is free           (items / 64 words, rounded up)
//! level n: bit i of word j = word 64 j + i of level n-1 is not 0        … until a level has one word
//! all levels lie one after the other in one array of 64-bit words, level 0 first
//! ```

/// The most items a pool has.
pub const MAX_ITEMS: u32 = 1 << 31;

/// The shape of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Items, 1 to [`MAX_ITEMS`]; they are numbered from 0.
    pub items: u32,
}

/// Why a pool cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// No items or too many.
    #[error("a pool of {items} items; it has 1 to {MAX_ITEMS}: declare another number")]
    Items {
        /// The items asked for.
        items: u32,
    },
    /// The machine has no room for it.
    #[error("no memory for a pool of {items} items ({bytes} bytes): declare fewer")]
    Memory {
        /// The items asked for.
        items: u32,
        /// The bytes of its bits.
        bytes: usize,
    },
}

/// A pool whose items are all free at first; nothing is allocated after it is made.
///
/// ```
/// use tables::pool::{PoolSpec, PoolTable};
///
/// let mut ports = PoolTable::new(PoolSpec { items: 100 })?;
/// assert_eq!(ports.take(7), Some(7));
/// assert_eq!(ports.take(7), Some(8));
/// assert!(ports.give(7));
/// assert!(!ports.give(7));
/// assert_eq!(ports.free(), 99);
/// # Ok::<(), tables::pool::PoolError>(())
/// ```
pub struct PoolTable {
    items: u32,
    free: u32,
    /// Where each level begins in `words`.
    levels: Vec<usize>,
    words: Vec<u64>,
}

impl PoolSpec {
    /// Bytes that a pool of so many items allocates: a bit an item, and one for each 64 of the level below.
    pub fn allocated(items: u64) -> u64 {
        let (mut count, mut words) = (items, 0_u64);
        while count > 1 || words == 0 {
            count = count.div_ceil(64);
            words += count;
        }
        words * 8
    }
}

impl PoolTable {
    /// A pool of free items.
    pub fn new(spec: PoolSpec) -> Result<PoolTable, PoolError> {
        if spec.items == 0 || spec.items > MAX_ITEMS {
            return Err(PoolError::Items { items: spec.items });
        }
        let (mut levels, mut count, mut total) = (Vec::new(), spec.items as usize, 0);
        while count > 1 || levels.is_empty() {
            count = count.div_ceil(64);
            levels.push(total);
            total += count;
        }
        let mut words = Vec::new();
        words
            .try_reserve_exact(total)
            .map_err(|_| PoolError::Memory { items: spec.items, bytes: total * size_of::<u64>() })?;
        let mut bits = spec.items as usize;
        for _ in &levels {
            words.extend(std::iter::repeat_n(u64::MAX, bits / 64));
            if !bits.is_multiple_of(64) {
                words.push((1 << (bits % 64)) - 1);
            }
            bits = bits.div_ceil(64);
        }
        Ok(PoolTable { items: spec.items, free: spec.items, levels, words })
    }

    /// How many items there are, taken or free.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// How many items are free.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// Takes the first free item at or after `hint` modulo the number of items, going on from item 0; `None`
    /// if none is free.
    pub fn take(&mut self, hint: u32) -> Option<u32> {
        let hint = if hint < self.items { hint } else { hint % self.items };
        let item = self.first_from(hint).or_else(|| self.first_from(0))?;
        self.clear(item);
        Some(item)
    }

    /// Takes this item; false if it is taken or does not exist.
    pub fn take_item(&mut self, item: u32) -> bool {
        let taken = self.is_free(item);
        if taken {
            self.clear(item);
        }
        taken
    }

    /// Gives an item back; false, and no effect, if it is free or does not exist.
    pub fn give(&mut self, item: u32) -> bool {
        if item >= self.items || self.is_free(item) {
            return false;
        }
        self.free += 1;
        let mut bit = item as usize;
        for level in &self.levels {
            let word = &mut self.words[level + bit / 64];
            let before = *word;
            *word |= 1 << (bit % 64);
            if before != 0 {
                break;
            }
            bit /= 64;
        }
        true
    }

    /// Whether the item exists and is free.
    #[inline]
    pub fn is_free(&self, item: u32) -> bool {
        item < self.items && self.words[item as usize / 64] >> (item % 64) & 1 != 0
    }

    /// The items that are taken, ascending.
    pub fn taken(&self) -> impl Iterator<Item = u32> + '_ {
        let words = &self.words[..self.level_end(0)];
        let items = self.items;
        words.iter().zip((0..).step_by(64)).flat_map(move |(word, first)| {
            let mut taken = !word;
            std::iter::from_fn(move || {
                let bit = taken.trailing_zeros();
                taken &= taken.wrapping_sub(1);
                (bit < 64).then(|| first + bit)
            })
            .take_while(move |item| *item < items)
        })
    }

    /// The first free item at or after `item`, which exists.
    fn first_from(&self, item: u32) -> Option<u32> {
        let mut bit = item as usize;
        for (height, level) in self.levels.iter().enumerate() {
            // Climbing may leave `bit` just past the level's last word; then nothing of it is to the right.
            let word = self.words[*level..self.level_end(height)].get(bit / 64)?;
            let right = word & (u64::MAX << (bit % 64));
            if right != 0 {
                let mut found = bit / 64 * 64 + right.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    found = found * 64 + self.words[below + found].trailing_zeros() as usize;
                }
                return u32::try_from(found).ok();
            }
            bit = bit / 64 + 1;
        }
        None
    }

    fn level_end(&self, height: usize) -> usize {
        self.levels.get(height + 1).copied().unwrap_or(self.words.len())
    }

    /// Marks a free item as taken.
    fn clear(&mut self, item: u32) {
        self.free -= 1;
        let mut bit = item as usize;
        for level in &self.levels {
            let word = &mut self.words[level + bit / 64];
            *word &= !(1 << (bit % 64));
            if *word != 0 {
                break;
            }
            bit /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The free items in order.
    struct Model {
        items: u32,
        free: BTreeSet<u32>,
    }

    impl Model {
        fn take(&mut self, hint: u32) -> Option<u32> {
            let item = self.free.range(hint % self.items..).next().or(self.free.first()).copied()?;
            self.free.remove(&item);
            Some(item)
        }

        fn give(&mut self, item: u32) -> bool {
            item < self.items && self.free.insert(item)
        }
    }

    fn agree(items: u32, operations: &[(u8, u32)]) -> Result<(), TestCaseError> {
        let mut pool = PoolTable::new(PoolSpec { items }).expect("a valid spec");
        let mut model = Model { items, free: (0..items).collect() };
        for (what, number) in operations {
            match what {
                0..4 => prop_assert_eq!(pool.take(*number), model.take(*number)),
                4 => {
                    // A whole run of items, so that words and levels of the bitmap empty and fill.
                    for _ in 0..130 {
                        prop_assert_eq!(pool.take(*number), model.take(*number));
                    }
                }
                5 => {
                    for item in (*number..number.saturating_add(130)).rev() {
                        prop_assert_eq!(pool.give(item), model.give(item));
                    }
                }
                6 => prop_assert_eq!(pool.take_item(*number), model.free.remove(number)),
                _ => prop_assert_eq!(pool.give(*number), model.give(*number)),
            }
            prop_assert_eq!(pool.is_free(*number), model.free.contains(number));
            prop_assert_eq!(pool.free() as usize, model.free.len());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn pool_and_model_agree(
            items in prop_oneof![1..5u32, 60..70u32, 4090..4100u32, 262_140..262_150u32],
            operations in prop::collection::vec(
                (0..10u8, prop_oneof![0..140u32, 4000..4200u32, 262_000..262_200u32, any::<u32>()]),
                1..100,
            ),
        ) {
            agree(items, &operations)?;
        }
    }

    #[test]
    fn every_item_is_taken_once_and_then_none() {
        let mut pool = PoolTable::new(PoolSpec { items: 4097 }).expect("a valid spec");
        let taken: BTreeSet<u32> = (0..4097).filter_map(|i| pool.take(i * 31)).collect();
        assert_eq!(taken.len(), 4097);
        assert_eq!(pool.take(0), None);
        assert!(pool.give(4096));
        assert_eq!(pool.take(5), Some(4096));
    }

    #[test]
    fn empty_and_huge_pools_are_refused() {
        assert_eq!(PoolTable::new(PoolSpec { items: 0 }).err(), Some(PoolError::Items { items: 0 }));
        assert_eq!(
            PoolTable::new(PoolSpec { items: u32::MAX }).err(),
            Some(PoolError::Items { items: u32::MAX })
        );
    }
}
