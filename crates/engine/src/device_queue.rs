//! The queue in which packets wait for a device; without the feature `devices`, one that there never is.

#[cfg(feature = "devices")]
pub use offload::device_queue::{DeviceQueue, Run, Schedule, Supply};

#[cfg(not(feature = "devices"))]
pub use never::{NoQueue as DeviceQueue, NoRun as Run, NoSchedule as Schedule, NoSupply as Supply};

/// What stands for a queue in an engine that knows no device. There is no value of its types, so that nothing
/// of this is ever run.
#[cfg(not(feature = "devices"))]
mod never {
    use exec::{AsyncBackend, Backend};
    use packet::Batch;
    use std::time::{Duration, Instant};

    /// No schedule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NoSchedule {}

    /// No queue.
    pub enum NoQueue {}

    /// Whether further packets will come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NoSupply {
        /// It is not known when further packets come.
        Unknown,
        /// No further packets come.
        Ended,
    }

    /// The loop that runs packets.
    pub trait NoRun {
        /// The error of running a batch.
        type Error;

        /// The device.
        fn device(&mut self) -> Option<&mut dyn AsyncBackend>;

        /// The present time.
        fn now(&self) -> Instant;

        /// Runs a batch, to the end.
        ///
        /// # Errors
        /// What went wrong; no further batch is run then.
        fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Self::Error>;
    }

    impl NoQueue {
        pub(crate) fn new(_: &mut dyn Backend, schedule: NoSchedule, _: Instant) -> Option<NoQueue> {
            match schedule {}
        }

        pub(crate) fn is_empty(&self) -> bool {
            match *self {}
        }

        pub(crate) fn is_under_way(&self) -> bool {
            match *self {}
        }

        pub(crate) fn has_room(&self) -> bool {
            match *self {}
        }

        pub(crate) fn take<R: NoRun>(&mut self, _: &mut R, _: &mut [u8], _: &Batch) -> Result<(), R::Error> {
            match *self {}
        }

        pub(crate) fn run<R: NoRun>(&mut self, _: &mut R, _: NoSupply) -> Result<bool, R::Error> {
            match *self {}
        }

        pub(crate) fn due(&self, _: Instant) -> Option<Duration> {
            match *self {}
        }
    }
}
