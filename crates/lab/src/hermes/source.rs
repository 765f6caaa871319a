//! When packets come: evenly, at random, in bursts, seldom, or as in a capture.

use tables::generate::Random;

/// How packets come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source<'a> {
    /// One after the other at this many bits a nanosecond, as on a full line.
    Constant(f64),
    /// Independently of each other, so many bits a nanosecond in the mean.
    Poisson(f64),
    /// Bursts of so many packets on a line of so many bits a nanosecond, each followed by a pause so that the
    /// mean is a share of the line.
    Bursts {
        /// Packets of a burst.
        packets: u32,
        /// Bits a nanosecond within it.
        line: f64,
        /// The share, above 0 and up to 1.
        share: f64,
    },
    /// At the times of a capture in nanoseconds, drawn together or out so that the mean is this many bits a
    /// nanosecond.
    Capture(&'a [u64], f64),
}

/// Bytes around a frame on a line: preamble, start and gap (IEEE 802.3).
const AROUND: u32 = 20;

impl Source<'_> {
    /// Times of packets with these lengths, in order. `seed` draws what is drawn.
    pub(crate) fn times(&self, lengths: impl Iterator<Item = u32>, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let bits = |length: u32| f64::from((length + AROUND) * 8);
        match *self {
            Source::Constant(rate) => summed(lengths.map(|length| bits(length) / rate)),
            Source::Poisson(rate) => {
                let gap = |length| -bits(length) / rate * (1.0 - unit(&mut random)).ln();
                summed(lengths.map(gap))
            }
            Source::Bursts { packets, line, share } => {
                // What a pause has to make up for, over the burst before it.
                let pause = |length: u32| bits(length) / line * (1.0 / share - 1.0);
                let mut owed = 0.0;
                summed(lengths.enumerate().map(|(number, length)| {
                    owed += pause(length);
                    let first = (number as u32).is_multiple_of(packets.max(1));
                    bits(length) / line + if first { std::mem::take(&mut owed) } else { 0.0 }
                }))
            }
            Source::Capture(times, rate) => {
                let lengths: Vec<u32> = lengths.collect();
                let all: f64 = lengths.iter().map(|length| bits(*length)).sum();
                let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
                // A capture that is shorter than the run is followed by itself.
                let span = (last - first).max(1) as f64 * (1.0 + 1.0 / times.len() as f64);
                let rounds = lengths.len() as f64 / times.len() as f64;
                let scale = all / rate / (span * rounds);
                let time = |number: usize| {
                    let within = (times[number % times.len()] - first) as f64;
                    ((within + (number / times.len()) as f64 * span) * scale) as u64
                };
                (0..lengths.len()).map(time).collect()
            }
        }
    }
}

fn summed(gaps: impl Iterator<Item = f64>) -> Vec<u64> {
    gaps.scan(0.0, |sum, gap| {
        *sum += gap;
        Some(*sum as u64)
    })
    .collect()
}

/// A number from 0 to below 1.
fn unit(random: &mut Random) -> f64 {
    (random.word() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_the_rate_that_it_is_asked_for() {
        let count = 100_000;
        let lengths = || (0..count).map(|number| if number % 3 == 0 { 1500 } else { 64 });
        let bits: f64 = lengths().map(|length| f64::from((length + 20) * 8)).sum();
        let capture: Vec<u64> = (0..1000).map(|number| number * number).collect();
        for source in [
            Source::Constant(40.0),
            Source::Poisson(40.0),
            Source::Bursts { packets: 100, line: 100.0, share: 0.4 },
            Source::Capture(&capture, 40.0),
        ] {
            let times = source.times(lengths(), 7);
            assert!(times.is_sorted() && times.len() == count as usize);
            let rate = bits / times[times.len() - 1] as f64;
            assert!((rate / 40.0 - 1.0).abs() < 0.01, "{source:?}: {rate}");
            assert_eq!(times, source.times(lengths(), 7), "the same again");
        }
    }

    #[test]
    fn a_burst_is_as_fast_as_its_line() {
        let source = Source::Bursts { packets: 10, line: 0.672, share: 0.1 };
        let times = source.times((0..40).map(|_| 64), 0);
        let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.iter().enumerate().all(|(number, gap)| (*gap > 1100) == (number % 10 == 9)), "{gaps:?}");
    }
}
