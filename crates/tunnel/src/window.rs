//! Which counters of a session have been received: a bitmap of 2,048 counters up to the greatest one, in a
//! ring of words (RFC 6479).

/// Counters that may come late.
pub(crate) const WINDOW: u64 = 2_048;

/// One word more than the window needs, so that moving on clears whole words.
const WORDS: u64 = WINDOW / 64 + 1;

pub(crate) struct ReplayWindow {
    /// One more than the greatest counter received; 0 before the first.
    end: u64,
    bits: [u64; WORDS as usize],
}

impl ReplayWindow {
    pub(crate) fn new() -> ReplayWindow {
        ReplayWindow { end: 0, bits: [0; WORDS as usize] }
    }

    /// Whether a message with this counter may be taken.
    pub(crate) fn is_open(&self, counter: u64) -> bool {
        if counter >= self.end {
            return counter != u64::MAX;
        }
        self.end - counter <= WINDOW && self.bits[word(counter)] & bit(counter) == 0
    }

    /// Remembers a counter that is open. Returns whether it is greater than all before.
    pub(crate) fn mark(&mut self, counter: u64) -> bool {
        let newest = counter >= self.end;
        if newest {
            // The words after that of the greatest counter, up to this one's, are used anew.
            let greatest = self.end.saturating_sub(1) / 64;
            let steps = (counter / 64 - greatest).min(WORDS);
            for step in 1..=steps {
                self.bits[((greatest + step) % WORDS) as usize] = 0;
            }
            self.end = counter + 1;
        }
        self.bits[word(counter)] |= bit(counter);
        newest
    }
}

fn word(counter: u64) -> usize {
    (counter / 64 % WORDS) as usize
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tables::generate::Random;

    /// The window's slow twin: all counters ever received.
    #[derive(Default)]
    struct Slow(BTreeSet<u64>);

    impl Slow {
        fn is_open(&self, counter: u64) -> bool {
            let late =
                self.0.last().is_some_and(|&greatest| counter < greatest && greatest - counter >= WINDOW);
            counter != u64::MAX && !late && !self.0.contains(&counter)
        }
    }

    #[test]
    fn it_agrees_with_the_set_of_all_counters() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut window, mut slow) = (ReplayWindow::new(), Slow::default());
            let mut around = if seed % 4 == 0 { u64::MAX - 9_000 } else { random.below(5_000) };
            for step in 0..2_000 {
                around = match random.below(40) {
                    0 => around.saturating_add(random.below(3 * WINDOW)),
                    _ => around.saturating_add(random.below(3)),
                };
                let late = [70, WINDOW + 70][random.below(2) as usize];
                let counter = around.saturating_sub(random.below(late));
                assert_eq!(
                    window.is_open(counter),
                    slow.is_open(counter),
                    "seed {seed}, step {step}: {counter}"
                );
                if slow.is_open(counter) {
                    let newest = slow.0.last().is_none_or(|&greatest| counter > greatest);
                    assert_eq!(window.mark(counter), newest, "seed {seed}, step {step}: {counter}");
                    slow.0.insert(counter);
                }
            }
        }
    }

    #[test]
    fn the_oldest_that_may_come_is_2047_behind() {
        let mut window = ReplayWindow::new();
        window.mark(WINDOW);
        assert!(window.is_open(1));
        assert!(!window.is_open(0));
    }
}
