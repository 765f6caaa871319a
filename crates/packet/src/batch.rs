//! A batch: up to 256 packets in columns; their bytes are in a memory region that is passed together with the
//! batch.

use crate::region::{HEADROOM, SLACK};
use crate::segment::Segments;
use crate::verdict::{PortNumber, Verdict};
use crate::virtio_header::VirtioHeader;

/// The most bytes of a packet that are held, the largest snap length in use; a record of a capture that says
/// more is damage.
pub const MAXIMUM_CAPTURED: u32 = 262_144;

/// The largest number of packets in a batch.
pub const BATCH: usize = 256;

/// Up to [`BATCH`] packets, with one column for each property. Only the first `len` entries of a column have
/// a meaning.
///
/// The bytes of packet `i` are `memory[frame[i]..][..captured[i]]` of the region that goes with the batch;
/// the region reaches at least [`crate::region::SLACK`] bytes past the end of every frame. No two frames
/// overlap, headroom included, so a write to one frame cannot change another. A program that changes the size
/// of a packet changes the start of its frame and both lengths.
#[derive(Clone, Debug)]
pub struct Batch {
    /// How many packets there are.
    pub len: usize,
    /// The number of bytes before each frame that belong to this frame alone, so that the packet can grow.
    pub headroom: u32,
    /// Where each frame starts: a byte offset in the memory region, a multiple of 64 when it is received.
    pub frame: [u64; BATCH],
    /// How many bytes of each frame were captured and may be read.
    pub captured: [u32; BATCH],
    /// How many bytes each frame had on the wire; at least `captured`.
    pub wire: [u32; BATCH],
    /// The port each packet came in by.
    pub port: [PortNumber; BATCH],
    /// When each packet arrived, in nanoseconds since 1970-01-01 UTC.
    pub time: [u64; BATCH],
    /// The verdict on each packet.
    pub verdict: [Verdict; BATCH],
    /// Whether any packet has a virtio header; otherwise the next column has no meaning.
    pub unfinished: bool,
    /// The virtio header of each packet, and where its frame started when the header was set.
    pub virtio: [(VirtioHeader, u64); BATCH],
}

impl Batch {
    /// An empty batch.
    pub const fn new() -> Batch {
        Batch {
            len: 0,
            headroom: 0,
            frame: [0; BATCH],
            captured: [0; BATCH],
            wire: [0; BATCH],
            port: [0; BATCH],
            time: [0; BATCH],
            verdict: [Verdict::PENDING; BATCH],
            unfinished: false,
            virtio: [(VirtioHeader::NONE, 0); BATCH],
        }
    }

    /// Forgets every packet.
    pub fn clear(&mut self) {
        self.len = 0;
        self.unfinished = false;
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no further packet fits.
    pub fn is_full(&self) -> bool {
        self.len >= BATCH
    }

    /// Appends a packet without a verdict, and says whether there was room for it.
    pub fn push(&mut self, frame: u64, captured: u32, wire: u32, port: PortNumber, time: u64) -> bool {
        let i = self.len;
        if i >= BATCH {
            return false;
        }
        self.frame[i] = frame;
        self.captured[i] = captured;
        self.wire[i] = wire;
        self.port[i] = port;
        self.time[i] = time;
        self.verdict[i] = Verdict::PENDING;
        self.len = i + 1;
        true
    }

    /// Replaces the contents by one packet, and returns memory that holds its frame alone.
    pub fn hold_one(&mut self, bytes: &[u8], wire: u32, port: PortNumber, time: u64) -> Vec<u8> {
        let memory = [&[0; HEADROOM][..], bytes, &[0; SLACK]].concat();
        self.clear();
        self.headroom = HEADROOM as u32;
        self.push(HEADROOM as u64, bytes.len() as u32, wire, port, time);
        memory
    }

    /// The captured bytes of packet `i`, or `None` where the batch has no such packet or the region does not
    /// hold it.
    pub fn bytes<'a>(&self, memory: &'a [u8], i: usize) -> Option<&'a [u8]> {
        if i >= self.len {
            return None;
        }
        let start = usize::try_from(self.frame[i]).ok()?;
        memory.get(start..)?.get(..self.captured[i] as usize)
    }

    /// The virtio header of packet `i`, adapted to the present place of its headers; [`VirtioHeader::NONE`]
    /// if they were removed.
    #[inline]
    pub fn virtio(&self, i: usize) -> VirtioHeader {
        if !self.unfinished {
            return VirtioHeader::NONE;
        }
        let (virtio, start) = self.virtio[i];
        virtio.moved(start.wrapping_sub(self.frame[i]) as i32).unwrap_or(VirtioHeader::NONE)
    }

    /// Sets the virtio header of the packet that was pushed last.
    pub fn leave_unfinished(&mut self, virtio: VirtioHeader) {
        let Some(last) = self.len.checked_sub(1) else { return };
        if !self.unfinished {
            if virtio.is_none() {
                return;
            }
            self.virtio[..last].fill((VirtioHeader::NONE, 0));
            self.unfinished = true;
        }
        self.virtio[last] = (virtio, self.frame[last]);
    }

    /// Finishes the checksum of packet `i` if it is open.
    #[inline]
    pub fn finish_checksum(&mut self, memory: &mut [u8], i: usize) {
        let virtio = self.virtio(i);
        if !virtio.is_open() {
            return;
        }
        let start = self.frame[i] as usize;
        if let Some(frame) = memory.get_mut(start..start + self.captured[i] as usize) {
            virtio.complete(frame);
        }
        self.virtio[i] = (virtio.without_checksum(), self.frame[i]);
    }

    /// Finishes the checksum of every packet in which it is open.
    #[inline]
    pub fn finish_checksums(&mut self, memory: &mut [u8]) {
        if self.unfinished {
            (0..self.len).for_each(|i| self.finish_checksum(memory, i));
        }
    }

    /// Lets packet `i` stand for the packets that it would be cut into, if it is a segment.
    #[inline]
    pub fn count_as_packets(&mut self, i: usize) {
        if self.unfinished {
            self.virtio[i] = (self.virtio(i).as_packets(), self.frame[i]);
        }
    }

    /// How packet `i` is cut, if it stands for the packets that it would be cut into.
    #[inline]
    pub fn packets_of(&self, memory: &[u8], i: usize) -> Option<Segments> {
        let virtio = self.virtio(i);
        if virtio.counts_as_packets() { Segments::of(self.bytes(memory, i)?, &virtio) } else { None }
    }

    /// Removes the virtio header of packet `i`.
    pub fn leave_as_it_is(&mut self, i: usize) {
        self.virtio[i] = (VirtioHeader::NONE, self.frame[i]);
    }

    /// Moves packet `from` to the place `to`, which is not behind it: whoever keeps some packets of a batch
    /// moves them to the front and then sets `len`.
    #[inline]
    pub fn keep(&mut self, to: usize, from: usize) {
        if to == from {
            return;
        }
        self.frame[to] = self.frame[from];
        self.captured[to] = self.captured[from];
        self.wire[to] = self.wire[from];
        self.port[to] = self.port[from];
        self.time[to] = self.time[from];
        self.verdict[to] = self.verdict[from];
        if self.unfinished {
            self.virtio[to] = self.virtio[from];
        }
    }

    /// The ports the packets came in by.
    pub fn ports(&self) -> &[PortNumber] {
        &self.port[..self.len]
    }

    /// The verdicts.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdict[..self.len]
    }

    /// The verdicts, to be written.
    pub fn verdicts_mut(&mut self) -> &mut [Verdict] {
        &mut self.verdict[..self.len]
    }

    /// The sum of the lengths on the wire, in bytes.
    pub fn wire_bytes(&self) -> u64 {
        self.wire[..self.len].iter().map(|&wire| u64::from(wire)).sum()
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_256_packets_and_no_more() {
        let mut batch = Batch::new();
        for i in 0..BATCH {
            assert!(batch.push(64 * i as u64, 1, 2, 3, 4));
        }
        assert!(batch.is_full());
        assert!(!batch.push(0, 1, 2, 3, 4));
        assert_eq!(batch.len, BATCH);
        assert_eq!(batch.wire_bytes(), 512);
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn a_push_resets_the_verdict_of_the_place() {
        let mut batch = Batch::new();
        batch.push(0, 1, 1, 1, 0);
        batch.verdicts_mut()[0] = Verdict::FLOOD;
        batch.clear();
        batch.push(0, 1, 1, 1, 0);
        assert_eq!(batch.verdicts(), [Verdict::PENDING]);
    }

    #[test]
    fn bytes_outside_the_region_are_none() {
        let mut batch = Batch::new();
        batch.push(2, 3, 3, 1, 0);
        batch.push(9, 3, 3, 1, 0);
        batch.push(u64::MAX, 3, 3, 1, 0);
        let memory = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(batch.bytes(&memory, 0), Some(&[2, 3, 4][..]));
        assert_eq!(batch.bytes(&memory, 1), None);
        assert_eq!(batch.bytes(&memory, 2), None);
        assert_eq!(batch.bytes(&memory, 3), None);
    }
}
