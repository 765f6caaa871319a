//! Free runs of places: what is given back joins its free neighbours, and the shortest run that suffices is
//! taken.

use crate::sizes;
use std::collections::{BTreeMap, BTreeSet};

/// Runs of places that nobody uses; no two of them touch.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeRuns {
    /// The length of each run by its start.
    lengths: BTreeMap<u32, u32>,
    /// Length and start of each run.
    shortest: BTreeSet<(u32, u32)>,
}

impl FreeRuns {
    /// The start of `length` places that are free no more; `None` if no run is as long.
    pub(super) fn take(&mut self, length: u32) -> Option<u32> {
        let &(held, start) = self.shortest.range((length, 0)..).next()?;
        self.forget(start, held);
        if held > length {
            self.note(start + length, held - length);
        }
        Some(start)
    }

    /// Makes `length` places from `start` free, and answers start and length of the run that they are now
    /// part of.
    pub(super) fn give(&mut self, mut start: u32, mut length: u32) -> (u32, u32) {
        if let Some((&before, &held)) = self.lengths.range(..start).next_back()
            && before + held == start
        {
            self.forget(before, held);
            (start, length) = (before, held + length);
        }
        if let Some(&held) = self.lengths.get(&(start + length)) {
            self.forget(start + length, held);
            length += held;
        }
        self.note(start, length);
        (start, length)
    }

    /// Takes out a run that [`FreeRuns::give`] has answered.
    pub(super) fn forget(&mut self, start: u32, length: u32) {
        self.lengths.remove(&start);
        self.shortest.remove(&(length, start));
    }

    /// Start and length of each run.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<(u32, u32)> {
        self.lengths.iter().map(|(&start, &length)| (start, length)).collect()
    }

    fn note(&mut self, start: u32, length: u32) {
        self.lengths.insert(start, length);
        self.shortest.insert((length, start));
    }

    /// The most bytes of the runs among so many places.
    pub(super) fn at_most(places: u64) -> u64 {
        let runs = places.div_ceil(2);
        sizes::ordered_at_most::<u32, u32>(runs)
            .saturating_add(sizes::ordered_at_most::<(u32, u32), ()>(runs))
    }

    /// The most bytes of the runs that there are.
    pub(super) fn allocated(&self) -> u64 {
        let runs = self.lengths.len() as u64;
        sizes::ordered_at_most::<u32, u32>(runs) + sizes::ordered_at_most::<(u32, u32), ()>(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::FreeRuns;
    use proptest::prelude::*;

    proptest! {
        /// Beside one flag a place: nothing is given out twice, neighbours are joined, and the shortest run
        /// that suffices is taken.
        #[test]
        fn runs_are_what_flags_say(steps in prop::collection::vec((any::<u16>(), 1u32..9), 1..200)) {
            let mut used = vec![true; 256];
            let mut runs = FreeRuns::default();
            let mut given: Vec<(u32, u32)> = (0..32).map(|at| (8 * at, 8)).collect();
            for (number, length) in steps {
                if number % 2 == 0 && !given.is_empty() {
                    let (start, length) = given.swap_remove(usize::from(number) % given.len());
                    used[start as usize..][..length as usize].fill(false);
                    let (begin, held) = runs.give(start, length);
                    let run = &used[begin as usize..][..held as usize];
                    prop_assert!(begin <= start && start + length <= begin + held && run.iter().all(|used| !used));
                    prop_assert!(begin == 0 || used[begin as usize - 1], "joined with what is before");
                    prop_assert!(used.get((begin + held) as usize) != Some(&false), "and with what is behind");
                    continue;
                }
                let free = free(&used);
                let wanted = free.iter().filter(|run| run.1 >= length).map(|run| (run.1, run.0)).min();
                let taken = runs.take(length);
                prop_assert_eq!(taken, wanted.map(|run| run.1));
                if let Some(start) = taken {
                    used[start as usize..][..length as usize].fill(true);
                    given.push((start, length));
                }
            }
            prop_assert_eq!(runs.all(), free(&used));
        }
    }

    /// Start and length of each run without a use.
    fn free(used: &[bool]) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for at in (0..used.len() as u32).filter(|&at| !used[at as usize]) {
            match runs.last_mut() {
                Some(run) if run.0 + run.1 == at => run.1 += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }
}
