//! What came of packets that fell due, measured or simulated: how many were done, and their delays.

use hdrhistogram::Histogram;

/// The longest delay that is told apart: ten minutes.
const LONGEST: u64 = 600_000_000_000;

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct LoadResult {
    packets: u64,
    on_device: u64,
    nanoseconds: u64,
    delays: Histogram<u64>,
}

impl LoadResult {
    /// Nothing yet.
    ///
    /// # Errors
    /// A histogram cannot be made.
    pub(crate) fn new() -> Result<LoadResult, String> {
        let delays = Histogram::new_with_bounds(1, LONGEST, 3).map_err(|error| error.to_string())?;
        Ok(LoadResult { packets: 0, on_device: 0, nanoseconds: 0, delays })
    }

    /// A packet is done so long after it fell due.
    #[inline]
    pub(crate) fn delay(&mut self, nanoseconds: u64) {
        self.delays.saturating_record(nanoseconds);
    }

    /// So many packets are done, each so long after it fell due.
    pub(crate) fn delay_each(&mut self, packets: u64, nanoseconds: u64) {
        self.delays.saturating_record_n(nanoseconds, packets);
    }

    /// So many packets were done in all, a part of them by the device, in so many nanoseconds.
    pub(crate) fn end(&mut self, packets: u64, on_device: u64, nanoseconds: u64) {
        (self.packets, self.on_device, self.nanoseconds) = (packets, on_device, nanoseconds);
    }

    /// Packets a second.
    pub(crate) fn rate(&self) -> f64 {
        self.packets as f64 / (self.nanoseconds.max(1) as f64 / 1e9)
    }

    /// The share of the packets that the device ran.
    pub(crate) fn share(&self) -> f64 {
        self.on_device as f64 / self.packets.max(1) as f64
    }

    /// Seconds that such a share of the packets did not exceed.
    pub(crate) fn within(&self, share: f64) -> f64 {
        self.delays.value_at_quantile(share) as f64 / 1e9
    }

    /// Seconds between what a quarter and what three quarters of the packets did not exceed.
    pub(crate) fn spread(&self) -> f64 {
        self.within(0.75) - self.within(0.25)
    }
}
