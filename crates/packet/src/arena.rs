//! The arena: a bounded piece of memory for the frames of one batch or of several, which is reused again and
//! again.

use crate::region::{HEADROOM, SLACK, frame_with_headroom};
use crate::{BATCH, Batch, MAXIMUM_CAPTURED, NO_PORT, Region};

/// The default size of an arena in bytes: enough for a full batch of jumbo frames, or for some of the longest
/// frames.
const SIZE: usize = 4 << 20;

/// Memory for frames, each with [`HEADROOM`] before it.
pub struct Arena {
    region: Region,
    next: usize,
}

impl Arena {
    /// Bytes of the smallest arena: room for the longest frame.
    pub const SMALLEST: usize = HEADROOM + MAXIMUM_CAPTURED as usize + SLACK;

    /// Empty memory for a batch.
    pub fn new() -> Arena {
        Arena::sized(SIZE)
    }

    /// An empty arena of at least `bytes` bytes, and large enough for the longest frame. Pages that nobody
    /// writes to take no physical memory.
    pub fn sized(bytes: usize) -> Arena {
        Arena { region: Region::zeroed(bytes.max(Arena::SMALLEST)), next: HEADROOM }
    }

    /// Starts a new batch, whose frames replace the earlier ones.
    pub fn clear(&mut self) {
        self.next = HEADROOM;
    }

    /// Whether the longest frame possible still fits.
    pub fn has_room(&self) -> bool {
        self.has_room_of(MAXIMUM_CAPTURED as usize)
    }

    /// Whether a frame of so many bytes still fits.
    pub fn has_room_of(&self, length: usize) -> bool {
        self.next + length + SLACK <= self.region.len()
    }

    /// Appends a frame to the arena and to the batch (without a port). Returns whether both had room;
    /// otherwise nothing has changed.
    #[inline]
    pub fn push(&mut self, batch: &mut Batch, bytes: &[u8], wire: u32, time: u64) -> bool {
        self.push_filled(batch, bytes.len(), wire, time, |place| place.copy_from_slice(bytes))
    }

    /// As [`push`](Arena::push), of a frame of `length` bytes, which `fill` writes if there is room.
    #[inline]
    pub fn push_filled(
        &mut self,
        batch: &mut Batch,
        length: usize,
        wire: u32,
        time: u64,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let (start, end) = (self.next, self.next + length);
        if batch.len >= BATCH || end + SLACK > self.region.len() {
            return false;
        }
        fill(&mut self.region.bytes_mut()[start..end]);
        batch.push(start as u64, length as u32, wire, NO_PORT, time);
        batch.headroom = HEADROOM as u32;
        self.next = frame_with_headroom(Some(start), end);
        true
    }

    /// Replaces the contents of the arena by copies of the frames of a batch, which are in `memory`, and
    /// makes the batch point to the copies. Frames that do not fit are removed from the batch.
    #[inline]
    pub fn replace_frames(&mut self, memory: &[u8], batch: &mut Batch) {
        let size = self.region.len();
        let arena = self.region.bytes_mut();
        let mut next = HEADROOM;
        let mut copied = 0;
        while let Some(frame) = batch.bytes(memory, copied) {
            let end = next + frame.len();
            match arena.get_mut(next..end) {
                Some(place) if end + SLACK <= size => place.copy_from_slice(frame),
                _ => break,
            }
            batch.frame[copied] = next as u64;
            copied += 1;
            next = frame_with_headroom(Some(next), end);
        }
        batch.len = copied;
        batch.headroom = HEADROOM as u32;
        self.next = next;
    }

    /// The memory.
    pub fn memory(&self) -> &[u8] {
        self.region.bytes()
    }

    /// The memory, to be written.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }
}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_frames_until_the_longest_does_not_fit() {
        let (mut arena, mut batch) = (Arena::new(), Batch::new());
        let longest = vec![1; MAXIMUM_CAPTURED as usize];
        let mut taken = 0;
        while arena.has_room() {
            assert!(arena.push(&mut batch, &longest, 9, 0));
            taken += 1;
        }
        assert_eq!(taken, 15);
        assert!(!arena.push(&mut batch, &longest, 9, 0));
        assert_eq!(batch.len, taken);
        assert_eq!(batch.bytes(arena.memory_mut(), 14), Some(&longest[..]));
        batch.clear();
        arena.clear();
        while arena.push(&mut batch, &[2; 1500], 1500, 0) {}
        assert_eq!(batch.len, BATCH);
        assert!(arena.has_room());
    }
}
