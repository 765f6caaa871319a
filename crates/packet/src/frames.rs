//! Many packets in memory: their frames one after the other in one region, their other properties in columns.

use crate::batch::{BATCH, Batch};
use crate::region::{HEADROOM, Region, SLACK, frame_boundary, frame_with_headroom};
use std::ops::Range;

/// Any number of packets held in memory. Each frame starts at a 64-byte boundary.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    region: Region,
    end: usize,
    /// Every frame has [`HEADROOM`] bytes before it.
    roomy: bool,
    offset: Vec<u64>,
    captured: Vec<u32>,
    wire: Vec<u32>,
    time: Vec<u64>,
}

/// One packet of [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The length on the wire, in bytes.
    pub wire: u32,
    /// The time of arrival, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
}

impl Frames {
    /// No packets.
    pub fn new() -> Frames {
        Frames::default()
    }

    /// No packets, and [`HEADROOM`] before each that comes, so that programs that make packets longer can run
    /// on them in their place.
    pub fn with_headroom() -> Frames {
        Frames { roomy: true, ..Frames::default() }
    }

    /// Appends a packet. A length on the wire smaller than the bytes given counts as their number.
    pub fn push(&mut self, bytes: &[u8], wire: u32, time: u64) {
        let last = self.offset.last().map(|&start| start as usize);
        let start = if self.roomy { frame_with_headroom(last, self.end) } else { frame_boundary(self.end) };
        let end = start + bytes.len();
        self.region.reserve(end + SLACK);
        self.region.bytes_mut()[start..end].copy_from_slice(bytes);
        self.end = end;
        // Frames come from captures, whose records are far below 4 GiB; a longer one keeps its first 4 GiB.
        let captured = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.offset.push(start as u64);
        self.captured.push(captured);
        self.wire.push(wire.max(captured));
        self.time.push(time);
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }

    /// Packet `i`, counted from 0.
    pub fn frame(&self, i: usize) -> Option<Frame<'_>> {
        let start = *self.offset.get(i)? as usize;
        let bytes = self.region.bytes().get(start..)?.get(..self.captured[i] as usize)?;
        Some(Frame { bytes, wire: self.wire[i], time: self.time[i] })
    }

    /// All packets in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        let memory = self.region.bytes();
        (0..self.len()).map(move |i| {
            let start = self.offset[i] as usize;
            Frame {
                bytes: &memory[start..start + self.captured[i] as usize],
                wire: self.wire[i],
                time: self.time[i],
            }
        })
    }

    /// The region that the frames lie in.
    pub fn memory(&self) -> &[u8] {
        self.region.bytes()
    }

    /// The region that the frames lie in, for a program to run on.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }

    /// The sum of the lengths on the wire, in bytes.
    pub fn wire_bytes(&self) -> u64 {
        self.wire.iter().map(|&wire| u64::from(wire)).sum()
    }

    /// Replaces the contents of `batch` by the packets of `range`, at most [`BATCH`] of them and only those
    /// there are; returns how many. The ports are left as they were, for the caller to fill; the verdicts are
    /// reset.
    pub fn fill(&self, batch: &mut Batch, range: Range<usize>) -> usize {
        let start = range.start.min(self.len());
        let n = range.end.min(self.len()).saturating_sub(start).min(BATCH);
        batch.frame[..n].copy_from_slice(&self.offset[start..start + n]);
        batch.captured[..n].copy_from_slice(&self.captured[start..start + n]);
        batch.wire[..n].copy_from_slice(&self.wire[start..start + n]);
        batch.time[..n].copy_from_slice(&self.time[start..start + n]);
        batch.verdict[..n].fill(crate::Verdict::PENDING);
        batch.len = n;
        batch.headroom = self.headroom();
        n
    }

    /// Replaces the contents of `batch` by packet `i` taken `n` times (at most [`BATCH`] times); returns how
    /// often, 0 where there is no such packet. The ports are left as they were, for the caller to fill; the
    /// verdicts are reset.
    pub fn fill_repeated(&self, batch: &mut Batch, i: usize, n: usize) -> usize {
        batch.len = 0;
        if i >= self.len() {
            return 0;
        }
        let n = n.min(BATCH);
        batch.headroom = self.headroom();
        batch.frame[..n].fill(self.offset[i]);
        batch.captured[..n].fill(self.captured[i]);
        batch.wire[..n].fill(self.wire[i]);
        batch.time[..n].fill(self.time[i]);
        batch.verdict[..n].fill(crate::Verdict::PENDING);
        batch.len = n;
        n
    }

    fn headroom(&self) -> u32 {
        if self.roomy { HEADROOM as u32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::FRAME_ALIGNMENT;

    fn three() -> Frames {
        let mut frames = Frames::new();
        frames.push(&[1; 60], 60, 10);
        frames.push(&[2; 65], 1500, 20);
        frames.push(&[3; 70], 5, 30);
        frames
    }

    #[test]
    fn frames_start_at_boundaries_and_come_back() {
        let frames = three();
        assert_eq!(frames.offset, [0, 64, 192]);
        assert_eq!(frames.memory().as_ptr().addr() % FRAME_ALIGNMENT, 0);
        assert!(frames.memory().len() >= 192 + 70 + SLACK);
        let all: Vec<_> = frames.iter().collect();
        assert_eq!(all[1], Frame { bytes: &[2; 65], wire: 1500, time: 20 });
        assert_eq!(all[2].wire, 70, "a wire length below the captured one counts as the captured one");
        assert_eq!(frames.frame(1), Some(all[1]));
        assert_eq!(frames.frame(3), None);
        assert_eq!(frames.wire_bytes(), 60 + 1500 + 70);
    }

    #[test]
    fn frames_with_headroom_have_it_to_themselves() {
        let mut frames = Frames::with_headroom();
        (0..20).for_each(|i| frames.push(&vec![i as u8; 30 * i], 0, 0));
        let mut batch = Batch::new();
        frames.fill(&mut batch, 0..20);
        assert_eq!(batch.headroom as usize, HEADROOM);
        let mut end = 0;
        for i in 0..20 {
            assert!(batch.frame[i] as usize >= end + HEADROOM);
            assert_eq!(batch.bytes(frames.memory(), i), Some(&vec![i as u8; 30 * i][..]));
            end = batch.frame[i] as usize + 30 * i;
        }
        three().fill(&mut batch, 0..3);
        assert_eq!(batch.headroom, 0);
    }

    #[test]
    fn a_batch_is_filled_from_a_range() {
        let frames = three();
        let mut batch = Batch::new();
        assert_eq!(frames.fill(&mut batch, 1..9), 2);
        assert_eq!(batch.bytes(frames.memory(), 0), Some(&[2; 65][..]));
        assert_eq!(batch.time[..2], [20, 30]);
        assert_eq!(frames.fill(&mut batch, 7..9), 0);
        assert_eq!(frames.fill_repeated(&mut batch, 2, 1000), BATCH);
        assert_eq!(batch.bytes(frames.memory(), 255), Some(&[3; 70][..]));
        assert_eq!(frames.fill_repeated(&mut batch, 3, 1), 0);
    }
}
