//! The queue in which packets wait for a device; without the feature `devices`, one that there never is.

#[cfg(feature = "devices")]
pub use offload::device_queue::{DeviceQueue, Run, Schedule, Supply};

#[cfg(not(feature = "devices"))]
pub use never::{DeviceQueue, Run, Schedule, Supply};

/// The same names for engines that know no device. A type without a value has no queue in it.
#[cfg(not(feature = "devices"))]
mod never {
    use exec::{AsyncBackend, Backend};
    use packet::Batch;
    use std::time::{Duration, Instant};

    /// No schedule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Schedule {}

    /// No queue.
    pub enum DeviceQueue {}

    /// Whether further packets will come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Supply {
        /// It is not known when further packets come.
        Unknown,
        /// No further packets come.
        Ended,
    }

    /// The loop that runs packets.
    pub trait Run {
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

    impl DeviceQueue {
        pub(crate) fn new(_: &mut dyn Backend, schedule: Schedule, _: Instant) -> Option<DeviceQueue> {
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

        pub(crate) fn take<R: Run>(&mut self, _: &mut R, _: &mut [u8], _: &Batch) -> Result<(), R::Error> {
            match *self {}
        }

        pub(crate) fn run<R: Run>(&mut self, _: &mut R, _: Supply) -> Result<bool, R::Error> {
            match *self {}
        }

        pub(crate) fn due(&self, _: Instant) -> Option<Duration> {
            match *self {}
        }
    }
}
