//! When packets fall due: at times that are fixed beforehand, the same for what is measured and what is
//! simulated, or all at once.

use crate::hermes::Source;

/// Bits that a packet of 64 bytes takes on a line, with which [`Source`] counts.
const BITS: f64 = 672.0;
/// A packet of 64 bytes.
const BYTES: u32 = 64;

/// How packets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Independently of each other.
    Poisson,
    /// All equally far apart.
    Even,
}

impl Pattern {
    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pattern::Poisson => "Poisson",
            Pattern::Even => "evenly spaced",
        }
    }

    /// Nanoseconds at which so many packets fall due, so many a second in the mean.
    pub(crate) fn times(self, rate: f64, count: usize, seed: u64) -> Vec<u64> {
        let bits = rate * BITS / 1e9;
        let source = match self {
            Pattern::Poisson => Source::Poisson(bits),
            Pattern::Even => Source::Constant(bits),
        };
        source.times(std::iter::repeat_n(BYTES, count), seed)
    }
}

/// Packets that fall due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due<'a> {
    /// At these nanoseconds, in order.
    At(&'a [u64]),
    /// As many as are taken, until so many nanoseconds have passed.
    Always(u64),
}

impl Due<'_> {
    /// How many packets are due that nobody has taken, at most so many, where `taken` have been.
    pub(crate) fn waiting(&self, taken: usize, now: u64, most: usize) -> usize {
        match *self {
            Due::At(times) => times[taken..].iter().take(most).take_while(|time| **time <= now).count(),
            Due::Always(until) if now < until => most,
            Due::Always(_) => 0,
        }
    }

    /// When the packet of this number falls due, if it is known.
    pub(crate) fn time(&self, number: usize) -> Option<u64> {
        match self {
            Due::At(times) => times.get(number).copied(),
            Due::Always(_) => None,
        }
    }

    /// Whether all packets have been taken.
    pub(crate) fn is_over(&self, taken: usize, now: u64) -> bool {
        match *self {
            Due::At(times) => taken == times.len(),
            Due::Always(until) => now >= until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_fall_due_at_the_rate_and_the_same_again() {
        for pattern in [Pattern::Poisson, Pattern::Even] {
            let times = pattern.times(250_000.0, 100_000, 3);
            let last = times[times.len() - 1] as f64;
            assert!((last / 4e8 - 1.0).abs() < 0.02, "{pattern:?}: {last}");
            assert_eq!(times, pattern.times(250_000.0, 100_000, 3));
        }
        let due = Due::At(&[5, 5, 9]);
        assert_eq!([4, 5, 8, 9].map(|now| due.waiting(0, now, 256)), [0, 2, 2, 3]);
        assert_eq!((due.waiting(0, 9, 1), due.waiting(2, 9, 256), due.time(2)), (1, 1, Some(9)));
        assert!(due.is_over(3, 0) && !due.is_over(2, 100));
        assert_eq!(
            (Due::Always(7).waiting(1000, 6, 256), Due::Always(7).waiting(0, 7, 256)),
            (256, 0),
            "until the time is over"
        );
    }
}
