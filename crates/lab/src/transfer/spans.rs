//! Where the time of batches went, part by part, and how long their packets were under way.

use gpu::Parts;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Delays of packets, in nanoseconds.
pub(crate) type Delays = Histogram<u64>;

/// Empty delays.
pub(crate) fn delays() -> Delays {
    // Up to ten minutes in three digits: bounds that are always accepted.
    Delays::new_with_bounds(1, 600_000_000_000, 3).unwrap_or_else(|_| unreachable!("the bounds are in order"))
}

/// Where the time of some batches went: every nanosecond belongs to one part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spans {
    /// Fetching packets from their memory to where they are worked on or go over from.
    pub(crate) gather: Duration,
    /// What the device's clock says of the time in which nothing else went on, or for the processor the work
    /// alone.
    pub(crate) parts: Parts,
    /// What belongs to no other part between handing over and having it back: launching, waking.
    pub(crate) driver: Duration,
    /// Bringing verdicts to the batches.
    pub(crate) scatter: Duration,
    /// All of it by the clock.
    pub(crate) wall: Duration,
    /// What the device's clock said beyond the time that the processor spent on handing over and waiting: it
    /// went on beside other parts.
    pub(crate) beside: Duration,
    /// What the device's clock says the kernel took, all of it.
    pub(crate) kernel: Duration,
    /// From handing batches over until their verdicts were there, whatever went on beside.
    pub(crate) processing: Duration,
    /// From when the first packet of each batch came until it left, and the same of the last; where packets
    /// come one by one.
    pub(crate) ends: Option<[Duration; 2]>,
}

impl Spans {
    /// A batch that was fetched for `gather`, then handed over and waited for during `away`, then brought
    /// back for `scatter`. `parts` is what the device's clock says of it, which is cut in proportion where it
    /// is more than `away`.
    pub(crate) fn of(gather: Duration, away: Duration, parts: Parts, scatter: Duration) -> Spans {
        let said = parts.copy_in + parts.kernel + parts.copy_out;
        let beside = said.saturating_sub(away);
        let cut = |part: Duration| match beside.is_zero() {
            true => part,
            // Rounded down, so that the sum is never more than there was.
            false => Duration::from_nanos((part.as_nanos() * away.as_nanos() / said.as_nanos()) as u64),
        };
        let kernel = parts.kernel;
        let parts =
            Parts { copy_in: cut(parts.copy_in), kernel: cut(parts.kernel), copy_out: cut(parts.copy_out) };
        let driver = away - (parts.copy_in + parts.kernel + parts.copy_out);
        let wall = gather + away + scatter;
        let processing = away;
        Spans { gather, parts, driver, scatter, wall, beside, kernel, processing, ..Spans::default() }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: &Spans) {
        self.gather += other.gather;
        self.parts.copy_in += other.parts.copy_in;
        self.parts.kernel += other.parts.kernel;
        self.parts.copy_out += other.parts.copy_out;
        self.driver += other.driver;
        self.scatter += other.scatter;
        self.wall += other.wall;
        self.beside += other.beside;
        self.kernel += other.kernel;
        self.processing += other.processing;
        self.ends = match (self.ends, other.ends) {
            (Some([first, last]), Some(more)) => Some([first + more[0], last + more[1]]),
            (one, other) => one.or(other),
        };
    }

    /// The sum of the parts.
    pub(crate) fn sum(&self) -> Duration {
        let Parts { copy_in, kernel, copy_out } = self.parts;
        self.gather + copy_in + kernel + copy_out + self.driver + self.scatter
    }
}

/// Some batches of one size.
pub(crate) struct Run {
    pub(crate) spans: Spans,
    pub(crate) delays: Delays,
    pub(crate) batches: u64,
    pub(crate) batch: usize,
}

impl Run {
    /// Nothing yet.
    pub(crate) fn new(batch: usize) -> Run {
        Run { spans: Spans::default(), delays: delays(), batches: 0, batch }
    }

    /// Adds later batches of the same size.
    pub(crate) fn add(&mut self, later: &Run) {
        self.spans.add(&later.spans);
        // Both have the same bounds.
        self.delays.add(&later.delays).unwrap_or(());
        self.batches += later.batches;
    }

    /// Millions of packets a second, if `time` is what all batches took.
    pub(crate) fn mpps(&self, time: Duration) -> f64 {
        (self.batches * self.batch as u64) as f64 / time.as_secs_f64().max(1e-9) / 1e6
    }

    /// Microseconds of a batch.
    pub(crate) fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.batches.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_belongs_to_one_part_whatever_the_device_says() {
        let time = Duration::from_nanos;
        for (copy_in, kernel, copy_out) in
            [(0, 0, 0), (10, 20, 30), (333, 333, 334), (7, 1999, 1), (1000, 0, 7)]
        {
            let parts = Parts { copy_in: time(copy_in), kernel: time(kernel), copy_out: time(copy_out) };
            let spans = Spans::of(time(11), time(1000), parts, time(13));
            assert_eq!(spans.wall, time(1024));
            assert_eq!(spans.sum(), spans.wall, "{spans:?}");
            let said = copy_in + kernel + copy_out;
            assert_eq!(spans.beside, time(said.saturating_sub(1000)));
            // What fits is left as the device said it; what does not is cut in proportion, to the nanosecond
            // below.
            let kept = if said <= 1000 { kernel } else { kernel * 1000 / said };
            assert_eq!((spans.parts.kernel, spans.kernel), (time(kept), time(kernel)));
        }
    }

    #[test]
    fn delays_of_the_ends_of_batches_add_up_where_there_are_any() {
        let time = Duration::from_nanos;
        let by_sockets = |first, last| Spans { ends: Some([time(first), time(last)]), ..Spans::default() };
        let mut all = Spans::default();
        all.add(&Spans::default());
        assert_eq!(all.ends, None);
        all.add(&by_sockets(30, 10));
        all.add(&by_sockets(3, 0));
        assert_eq!(all.ends, Some([time(33), time(10)]));
    }
}
