//! Who may have another slot when few are left: those who have less than an equal share. The share counts one
//! more than those who have slots, for who comes next.

use std::collections::HashMap;
use std::hash::Hash;

/// Slots by who has them.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    held: HashMap<K, usize>,
}

impl<K: Hash + Eq> Shares<K> {
    /// Counts the holders of these slots.
    pub(crate) fn of(holders: impl Iterator<Item = K>) -> Shares<K> {
        let mut held = HashMap::new();
        for holder in holders {
            *held.entry(holder).or_default() += 1;
        }
        Shares { held }
    }

    /// Whether this one may have another of `all` slots: one is always within its share.
    pub(crate) fn allow(&self, who: &K, all: usize) -> bool {
        let own = self.held.get(who).copied().unwrap_or(0);
        own < (all / (self.held.len() + 1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_an_equal_part_and_one_slot_at_least() {
        let shares = Shares::of([1, 1, 1, 2].into_iter());
        assert!(shares.allow(&1, 12) && shares.allow(&2, 12));
        assert!(!shares.allow(&1, 9), "3 of 9 are a third of them");
        assert!(shares.allow(&2, 9) && shares.allow(&3, 9));
        assert!(Shares::of((0..100).map(|one| (one, ()))).allow(&(200, ()), 10));
        assert!(!Shares::of((0..100).map(|one| (one, ()))).allow(&(5, ()), 10));
    }
}
