//! A ring of frames shared with Linux (PACKET_MMAP): it lends consecutive full frames at a time.
//!
//! ```text
//! block 0 | block 1 | …          a block is 1 MiB and holds as many frames as fit
//! frame 0 | frame 1 | … | rest   the first word of a frame says whose it is
//! ```
//!
//! The ring lends frames from the oldest full one on, at most to the end of the ring. These frames are
//! consecutive in memory, and belong to this process alone until all of them are given back together, when
//! the next ones are requested.

#![allow(unsafe_code)]

use super::sys::{self, Shared};
use packet::region::FRAME_ALIGNMENT;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 1 << 20;

/// The least number of frames of a ring: enough for some milliseconds of a fast interface, in which the
/// worker may not be running.
const FRAMES: usize = 8192;

/// Where frames lie in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of a frame. An odd number of cache lines, so that the beginnings of frames do not all fall on
    /// the same few places of a cache.
    pub(crate) frame: usize,
    in_block: usize,
    pub(crate) blocks: usize,
}

impl Geometry {
    /// For frames of at least `bytes`.
    pub(crate) fn of(bytes: usize) -> Geometry {
        let frame = (bytes.div_ceil(FRAME_ALIGNMENT) | 1) * FRAME_ALIGNMENT;
        let in_block = (BLOCK / frame).max(1);
        let blocks = FRAMES.div_ceil(in_block);
        Geometry { frame, in_block, blocks }
    }

    /// How many there are.
    pub(crate) fn frames(&self) -> usize {
        self.in_block * self.blocks
    }

    #[inline]
    fn offset(&self, frame: usize) -> usize {
        frame / self.in_block * BLOCK + frame % self.in_block * self.frame
    }
}

/// The ring.
pub(crate) struct FrameRing {
    shared: Shared,
    geometry: Geometry,
    /// The frame that will be full next, and how many before it are lent.
    next: usize,
    lent: usize,
    /// Whether a frame behind the lent ones was full when these were lent.
    left_full: bool,
}

impl FrameRing {
    /// The ring of a packet socket that was asked for one of this geometry.
    pub(crate) fn map(socket: &OwnedFd, geometry: Geometry) -> io::Result<FrameRing> {
        let shared = Shared::map(socket, geometry.blocks * BLOCK, 0)?;
        Ok(FrameRing { shared, geometry, next: 0, lent: 0, left_full: false })
    }

    /// Bytes of a frame.
    #[cfg(feature = "open")]
    pub(crate) fn frame(&self) -> usize {
        self.geometry.frame
    }

    /// Whether no frame is full beside those that are lent.
    pub(crate) fn is_empty(&self) -> bool {
        let next = self.shared.word(self.geometry.offset(self.next));
        sys::taken_over(next) & libc::TP_STATUS_USER == 0
    }

    /// Whether frames were left in the ring that were full already when the lent ones were taken.
    pub(crate) fn left_full(&self) -> bool {
        self.left_full
    }

    /// Gives back the lent frames, and says which frame will be full next, for another process that goes on
    /// with the same ring.
    pub(crate) fn checkpoint(&mut self) -> u32 {
        self.give_back();
        // A ring has fewer frames than that.
        self.next as u32
    }

    /// Goes on at a frame, as the process says that has had this ring. Returns whether there is one.
    pub(crate) fn resume(&mut self, frame: u32) -> bool {
        let is_there = (frame as usize) < self.geometry.frames();
        if is_there {
            self.give_back();
            self.next = frame as usize;
        }
        is_there
    }

    fn give_back(&mut self) {
        let frames = self.geometry.frames();
        // The oldest frame first: if Linux found the ring full, it waits for that one.
        for back in (1..=self.lent).rev() {
            let frame = (self.next + frames - back) % frames;
            sys::hand_back(self.shared.word(self.geometry.offset(frame)), libc::TP_STATUS_KERNEL);
        }
        self.lent = 0;
    }

    /// Gives back the lent frames, and lends the next full ones: returns memory, and the place of each frame
    /// in it. Either none of them has the bit `mark` in its status, and there are at most `most`; or all have
    /// it, and there are at most `most_marked`.
    pub(crate) fn take(
        &mut self,
        most: usize,
        mark: u32,
        most_marked: usize,
    ) -> (&mut [u8], impl Iterator<Item = Range<usize>> + Clone + use<>) {
        self.give_back();
        let geometry = self.geometry;
        let frames = geometry.frames();
        let first = self.next;
        let status = |frame: usize| sys::taken_over(self.shared.word(geometry.offset(frame)));
        let wanted = status(first) & mark | libc::TP_STATUS_USER;
        let most = if wanted & mark == 0 { most } else { most_marked };
        let full = |&frame: &usize| status(frame) & (mark | libc::TP_STATUS_USER) == wanted;
        self.lent = (first..frames).take(most).take_while(full).count();
        let end = first + self.lent;
        self.next = end % frames;
        self.left_full = status(self.next) & libc::TP_STATUS_USER != 0;
        let start = geometry.offset(first);
        let stop = if self.lent == 0 { start } else { geometry.offset(end - 1) + geometry.frame };
        // The kernel handed over every lent frame by its word, whose reading acquired what was written to
        // the frame, and it writes to a frame only after the frame's word was stored as the kernel's. The
        // kernel may read the words meanwhile, which stay as they are: before every packet lie 60 bytes
        // more than its headroom. This side reads and stores words of lent frames only above, by `&mut` of
        // the ring, so after the borrow.
        // SAFETY: in the range lie only lent frames, which the kernel does not write, and the rests of
        // blocks, which nobody uses.
        let memory = unsafe { self.shared.own(start, stop) };
        let places = (first..end).map(move |frame| {
            let at = geometry.offset(frame) - start;
            at..at + geometry.frame
        });
        (memory, places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_blocks_and_none_crosses_an_end() {
        for bytes in [68, 1900, 9300, 66_000] {
            let geometry = Geometry::of(bytes);
            assert!(geometry.frame >= bytes);
            assert_eq!(geometry.frame / FRAME_ALIGNMENT % 2, 1, "{geometry:?}");
            assert_eq!(geometry.in_block, BLOCK / geometry.frame, "as the kernel counts them");
            assert!(geometry.frames() >= FRAMES);
            assert_eq!(Geometry::of(geometry.frame), geometry, "another process finds the same one by it");
            for frame in 0..geometry.frames() {
                let (start, end) = (geometry.offset(frame), geometry.offset(frame) + geometry.frame);
                assert_eq!(start / BLOCK, (end - 1) / BLOCK, "{frame} of {geometry:?}");
                assert!(frame == 0 || geometry.offset(frame - 1) + geometry.frame <= start);
            }
        }
    }
}
