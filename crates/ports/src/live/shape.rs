//! Shaping: keeps the packets that leave by a port below a rate, by a token bucket and a queue for packets
//! that are too early.
//!
//! A bucket of `burst` bytes fills at the rate; a frame leaves when the bucket holds as many bytes as it has
//! on the wire, and takes them out. One that is longer than the bucket leaves when that is full, and what
//! follows waits until the debt is paid. So within any time t no more leaves than rate · t + burst, and one
//! longer frame. The bucket is one number, the time when it will be full, which several workers change
//! without a lock (the virtual scheduling form of the generic cell rate algorithm, ITU-T I.371).

use super::held::{Frame, Held};
use super::middleware::Stage;
use super::{SendLosses, Sender};
use packet::VirtioHeader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How what leaves is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeSettings {
    /// Bits a second, at least 1.
    pub rate: u64,
    /// Bytes that may leave at once after a pause.
    pub burst: u64,
    /// Bytes that may wait; what comes beyond them is lost and counted.
    pub queue: usize,
}

/// Ticks in a nanosecond: time is counted finely enough for 64 bytes at 100 Gbit/s (5.12 ns), and 64 bits of
/// it last nine years.
const TICKS: u64 = 64;

/// A token bucket.
pub(crate) struct Bucket {
    shape: ShapeSettings,
    /// When it will be full, in ticks.
    full: AtomicU64,
}

impl Bucket {
    /// A full one.
    pub(crate) fn new(shape: ShapeSettings) -> Bucket {
        Bucket { shape, full: AtomicU64::new(0) }
    }

    /// How long the bucket takes to fill up by so many bytes, in ticks.
    fn ticks(&self, bytes: u64) -> u64 {
        const SECOND: u128 = 1_000_000_000 * TICKS as u128;
        let ticks = (u128::from(bytes) * 8 * SECOND).div_ceil(u128::from(self.shape.rate.max(1)));
        u64::try_from(ticks).unwrap_or(u64::MAX / 4)
    }

    /// Takes so many bytes out at `now` (nanoseconds), or says when that will be possible.
    fn take(&self, now: u64, bytes: u64) -> Result<(), u64> {
        let now = now.saturating_mul(TICKS);
        let depth = self.ticks(self.shape.burst);
        let cost = self.ticks(bytes);
        let mut full = self.full.load(Ordering::Relaxed);
        loop {
            let from = full.max(now);
            let ready = from.saturating_add(cost.min(depth)).saturating_sub(depth);
            if ready > now {
                return Err(ready.div_ceil(TICKS));
            }
            let next = from.saturating_add(cost);
            match self.full.compare_exchange_weak(full, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => full = changed,
            }
        }
    }
}

/// One worker's part of a shaped port: its queue, at the bucket of all.
pub(crate) struct Shaper {
    bucket: Arc<Bucket>,
    queue: Held,
    due: Option<u64>,
    lost: u64,
}

impl Shaper {
    /// An empty queue that holds `share` bytes.
    pub(crate) fn new(bucket: Arc<Bucket>, share: usize) -> Shaper {
        Shaper { bucket, queue: Held::new(share), due: None, lost: 0 }
    }
}

impl Stage for Shaper {
    fn pass(&mut self, now: u64, frame: &[u8], virtio: VirtioHeader, out: &mut dyn Sender) {
        if self.queue.is_empty() {
            match self.bucket.take(now, virtio.wire_bytes(frame)) {
                Ok(()) => return out.send(frame, virtio),
                Err(ready) => self.due = Some(ready),
            }
        }
        if !self.queue.push(Frame { bytes: frame, virtio, mark: 0 }) {
            self.lost += 1;
            self.due = self.due.filter(|_| !self.queue.is_empty());
        }
    }

    fn release(&mut self, now: u64, out: &mut dyn Sender) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        while let Some(frame) = self.queue.first() {
            if let Err(ready) = self.bucket.take(now, frame.virtio.wire_bytes(frame.bytes)) {
                self.due = Some(ready);
                return;
            }
            out.send(frame.bytes, frame.virtio);
            self.queue.pop();
        }
    }

    fn due(&self) -> Option<u64> {
        self.due
    }

    fn takes_open_checksums(&self) -> bool {
        true
    }

    fn count(&self, losses: &mut SendLosses) {
        losses.shaped += self.lost;
        losses.waiting += self.queue.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::middleware::tests::Collected;
    use proptest::prelude::*;

    fn shape(rate: u64, burst: u64, queue: usize) -> ShapeSettings {
        ShapeSettings { rate, burst, queue }
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        // 8 Mbit/s are a byte a microsecond.
        let bucket = Arc::new(Bucket::new(shape(8_000_000, 2_500, 10_000)));
        let mut shaper = Shaper::new(bucket, 10_000);
        let mut out = Collected::default();
        for _ in 0..4 {
            shaper.pass(1_000_000_000, &[7; 1_000], VirtioHeader::NONE, &mut out);
        }
        assert_eq!(out.frames.len(), 2);
        assert_eq!(shaper.due(), Some(1_000_500_000), "500 bytes are there, 500 are missing");
        shaper.release(1_000_499_999, &mut out);
        assert_eq!(out.frames.len(), 2);
        shaper.release(1_000_500_000, &mut out);
        assert_eq!((out.frames.len(), shaper.due()), (3, Some(1_001_500_000)));
        shaper.release(2_000_000_000, &mut out);
        assert_eq!((out.frames.len(), shaper.due()), (4, None));
    }

    #[test]
    fn a_frame_longer_than_the_bucket_leaves_when_that_is_full_and_is_paid_for() {
        let bucket = Arc::new(Bucket::new(shape(8_000_000, 1_000, 100_000)));
        let mut shaper = Shaper::new(bucket, 100_000);
        let mut out = Collected::default();
        shaper.pass(0, &[1; 5_000], VirtioHeader::NONE, &mut out);
        shaper.pass(0, &[2; 100], VirtioHeader::NONE, &mut out);
        assert_eq!(out.frames.len(), 1);
        assert_eq!(shaper.due(), Some(4_100_000), "4000 bytes of debt and 100 more");
        shaper.release(4_100_000, &mut out);
        assert_eq!(out.frames.len(), 2);
    }

    #[test]
    fn segments_count_as_the_packets_they_become() {
        let bucket = Arc::new(Bucket::new(shape(8_000_000, 10_000, 0)));
        let mut shaper = Shaper::new(bucket.clone(), 0);
        let mut frame = vec![0; 54 + 3_000];
        frame[46] = 5 << 4;
        // TCP over IPv4, pieces of 1,000 bytes, headers of 54.
        let mut header = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&1_000u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        shaper.pass(0, &frame, VirtioHeader::read(&header), &mut Collected::default());
        assert_eq!(bucket.take(0, 10_000 - 3 * 1_054), Ok(()));
        assert_eq!(bucket.take(0, 1), Err(1_000));
    }

    proptest! {
        /// The twin counts tokens as a fraction of a byte, one nanosecond after the other in spirit: what
        /// left within any two moments is compared with what the rate allows, and every frame is somewhere.
        #[test]
        fn never_more_than_the_rate_allows_and_nothing_unaccounted(
            rate in 1_000u64..50_000_000_000,
            burst in 0u64..100_000,
            queue in 0usize..200_000,
            workers in 1usize..4,
            frames in prop::collection::vec((0u64..3_000_000, 14usize..3_000, 0usize..4), 1..150),
        ) {
            let bucket = Arc::new(Bucket::new(shape(rate, burst, queue)));
            let mut shapers: Vec<_> = (0..workers).map(|_| Shaper::new(bucket.clone(), queue)).collect();
            let (mut now, mut sent) = (0u64, 0u64);
            let mut left: Vec<(u64, u64)> = Vec::new();
            for (gap, len, who) in frames {
                now += gap;
                let mut out = Collected::default();
                for shaper in &mut shapers {
                    shaper.release(now, &mut out);
                }
                shapers[who % workers].pass(now, &vec![0; len], VirtioHeader::NONE, &mut out);
                sent += 1;
                left.extend(out.frames.iter().map(|(bytes, _)| (now, bytes.len() as u64)));
                let mut losses = SendLosses::default();
                shapers.iter().for_each(|shaper| shaper.count(&mut losses));
                prop_assert_eq!(sent, left.len() as u64 + losses.shaped + losses.waiting);
                for shaper in &shapers {
                    prop_assert_eq!(shaper.due().is_some(), !shaper.queue.is_empty());
                }
            }
            // Waiting until each is due empties the queues.
            for _ in 0..2 * sent {
                let Some(due) = shapers.iter().filter_map(|shaper| shaper.due()).min() else { break };
                now = now.max(due);
                let mut out = Collected::default();
                shapers.iter_mut().for_each(|shaper| shaper.release(now, &mut out));
                left.extend(out.frames.iter().map(|(bytes, _)| (now, bytes.len() as u64)));
            }
            prop_assert!(shapers.iter().all(|shaper| shaper.queue.is_empty()));
            for (first, &(start, _)) in left.iter().enumerate() {
                let (mut bytes, mut longest) = (0, 0);
                for &(end, len) in &left[first..] {
                    bytes += len;
                    longest = longest.max(len);
                    let allowed = (end - start) as u128 * u128::from(rate) / 8_000_000_000;
                    let most = allowed + u128::from(burst) + u128::from(longest.saturating_sub(burst)) + 1;
                    prop_assert!(u128::from(bytes) <= most, "{} bytes within {} ns, at most {}", bytes, end - start, most);
                }
            }
        }
    }
}
