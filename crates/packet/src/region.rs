//! A region of memory whose first byte lies at a 64-byte boundary, in which frames are laid out.

/// The boundary that every frame starts at, in bytes: one cache line.
pub const FRAME_ALIGNMENT: usize = 64;

/// How many bytes of a region lie behind the last frame at least, so that a wide load at the end of a frame
/// stays inside.
pub const SLACK: usize = 64;

/// How many free bytes a frame has before it where packets may grow.
pub const HEADROOM: usize = 2 * FRAME_ALIGNMENT;

/// Bytes that start at a 64-byte boundary of the machine's memory.
///
/// A vector gives no such promise, so the region keeps a few bytes more than it shows and starts where the
/// boundary falls.
#[derive(Debug, Default)]
pub struct Region {
    bytes: Vec<u8>,
    lead: usize,
    len: usize,
}

impl Region {
    /// A region of `len` zero bytes.
    pub fn zeroed(len: usize) -> Region {
        let bytes = vec![0; len + FRAME_ALIGNMENT];
        let lead = bytes.as_ptr().align_offset(FRAME_ALIGNMENT).min(FRAME_ALIGNMENT);
        Region { bytes, lead, len }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.lead..self.lead + self.len]
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.lead..self.lead + self.len]
    }

    /// Makes the region at least `len` bytes long, keeping what it holds; new bytes are zero. Grows by
    /// doubling.
    pub fn reserve(&mut self, len: usize) {
        if len > self.len {
            let mut grown = Region::zeroed(len.max(self.len * 2));
            grown.bytes_mut()[..self.len].copy_from_slice(self.bytes());
            *self = grown;
        }
    }
}

impl Clone for Region {
    fn clone(&self) -> Region {
        let mut copy = Region::zeroed(self.len);
        copy.bytes_mut().copy_from_slice(self.bytes());
        copy
    }
}

/// The first frame boundary at or after `offset`.
pub const fn frame_boundary(offset: usize) -> usize {
    offset.next_multiple_of(FRAME_ALIGNMENT)
}

/// Where the next frame with headroom starts: `last` is the start of the frame before it, if there is one,
/// and `end` its end. From frame to frame it is an odd number of cache lines: frames at distances of a power
/// of two would share few sets of a cache.
pub const fn frame_with_headroom(last: Option<usize>, end: usize) -> usize {
    let start = frame_boundary(end) + HEADROOM;
    match last {
        Some(last) if ((start - last) / FRAME_ALIGNMENT).is_multiple_of(2) => start + FRAME_ALIGNMENT,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_headroom_keep_apart() {
        assert_eq!(frame_with_headroom(None, 0), HEADROOM);
        for length in 0..2_000 {
            let next = frame_with_headroom(Some(HEADROOM), HEADROOM + length);
            assert!(next >= HEADROOM + length + HEADROOM);
            assert!(next <= HEADROOM + length + HEADROOM + 2 * FRAME_ALIGNMENT);
            assert!(!(next - HEADROOM).is_power_of_two() || next - HEADROOM == FRAME_ALIGNMENT);
        }
    }

    #[test]
    fn starts_at_a_boundary_and_keeps_its_bytes_when_it_grows() {
        let mut region = Region::zeroed(3);
        region.bytes_mut().copy_from_slice(&[1, 2, 3]);
        for len in [10, 1000, 100_000, 3_000_000] {
            region.reserve(len);
            assert!(region.len() >= len);
            assert_eq!(region.bytes().as_ptr().addr() % FRAME_ALIGNMENT, 0);
            assert_eq!(region.bytes()[..4], [1, 2, 3, 0]);
        }
        let copy = region.clone();
        assert_eq!(copy.bytes().as_ptr().addr() % FRAME_ALIGNMENT, 0);
        assert_eq!(copy.bytes(), region.bytes());
    }

    #[test]
    fn boundaries_round_up() {
        assert_eq!([0, 1, 64, 65].map(frame_boundary), [0, 64, 64, 128]);
    }
}
