//! Those who look on at the loop, each of which costs a branch a batch while nobody does; without the feature
//! `observe`, nobody ever does.

#[cfg(feature = "observe")]
pub(super) use super::measure::{Stop, Stopwatch};
#[cfg(feature = "observe")]
pub(super) use super::subscribe::Subscribers;
#[cfg(feature = "observe")]
pub(super) use super::watch::Watches;

#[cfg(not(feature = "observe"))]
pub(super) use nobody::{Stop, Stopwatch, Subscribers, Watches};

/// The same names for loops at which nobody looks on.
#[cfg(not(feature = "observe"))]
mod nobody {
    use crate::live::Generation;
    use exec::Outputs;
    use packet::Batch;
    use ports::live::clock::Clock;
    use std::time::Duration;

    pub(in crate::live) enum Stop {
        Receive,
        Run,
        Commit,
        Control,
        Idle,
    }

    #[derive(Default)]
    pub(in crate::live) struct Stopwatch {}

    impl Stopwatch {
        pub(in crate::live) fn lap(&mut self, _: Stop) {}

        pub(in crate::live) fn left(&self) -> Option<Duration> {
            None
        }

        pub(in crate::live) fn sent(&mut self, _: &Batch, _: &dyn Clock) {}
    }

    #[derive(Default)]
    pub(in crate::live) struct Watches {}

    impl Watches {
        pub(in crate::live) fn is_empty(&self) -> bool {
            true
        }

        #[inline]
        pub(in crate::live) fn run(
            &mut self,
            _: &mut Stopwatch,
            generation: &mut Generation,
            memory: &mut [u8],
            batch: &mut Batch,
            outputs: &mut Outputs,
        ) {
            generation.backend.run(memory, batch, outputs);
        }

        pub(in crate::live) fn told(&mut self, _: &Generation, _: &Batch) {}
    }

    #[derive(Default)]
    pub(in crate::live) struct Subscribers {}

    impl Subscribers {
        pub(in crate::live) fn raised(&mut self, _: &Generation, _: &Outputs) {}

        pub(in crate::live) fn punted(&mut self, _: &Generation, _: &[u8], _: &Batch) {}
    }
}
