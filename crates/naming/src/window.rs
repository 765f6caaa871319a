//! How long an expectation has its slot to itself: twice the time within which 99 of 100 first packets came.
//!
//! Delays are counted in 64 classes of 100 ms. Every 1,024 delays all counts are halved, so that old ones
//! fade.

use crate::limits::{EXCLUSIVE, EXCLUSIVE_AT_FIRST};

const CLASSES: usize = 64;
const CLASS: u64 = 100_000_000;
const FADE: u32 = 1_024;
/// Fewer delays say nothing about one of a hundred.
const LEAST: u32 = 100;

#[derive(Debug)]
pub(crate) struct Window {
    counts: [u32; CLASSES],
    all: u32,
    since_fading: u32,
}

impl Default for Window {
    fn default() -> Window {
        Window { counts: [0; CLASSES], all: 0, since_fading: 0 }
    }
}

impl Window {
    /// A first packet came so long after the answer.
    pub(crate) fn note(&mut self, delay: u64) {
        let class = usize::try_from(delay / CLASS).map_or(CLASSES - 1, |class| class.min(CLASSES - 1));
        self.counts[class] += 1;
        self.all += 1;
        self.since_fading += 1;
        if self.since_fading == FADE {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            (self.all, self.since_fading) = (self.counts.iter().sum(), 0);
        }
    }

    /// The time, in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        if self.all < LEAST {
            return EXCLUSIVE_AT_FIRST;
        }
        let wanted = u64::from(self.all) * 99;
        let mut seen = 0;
        let class = self.counts.iter().position(|&count| {
            seen += u64::from(count) * 100;
            seen >= wanted
        });
        let edge = (class.unwrap_or(CLASSES - 1) as u64 + 1) * CLASS;
        (2 * edge).clamp(*EXCLUSIVE.start(), *EXCLUSIVE.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_was_measured() {
        let mut window = Window::default();
        (0..99).for_each(|_| window.note(10_000_000));
        assert_eq!(window.length(), EXCLUSIVE_AT_FIRST);
        (0..900).for_each(|_| window.note(10_000_000));
        assert_eq!(window.length(), *EXCLUSIVE.start());
        (0..100).for_each(|_| window.note(1_950_000_000));
        assert_eq!(window.length(), 4_000_000_000);
        (0..20_000).for_each(|_| window.note(10_000_000));
        assert_eq!(window.length(), *EXCLUSIVE.start());
        (0..20_000).for_each(|_| window.note(u64::MAX));
        assert_eq!(window.length(), *EXCLUSIVE.end());
    }
}
