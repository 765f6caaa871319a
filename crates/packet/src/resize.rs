//! A packet whose size changes in place: bytes are inserted and removed, and only the bytes before them move.
//!
//! ```text
//! memory   | headroom          | headers      | payload                    |
//! push 4   | headroom    | headers | 4 new | payload                      |      the payload stays where it is
//! pop 4    | headroom              | headers  | payload                    |
//! ```

use crate::fragment::Fragmenting;

/// A packet in memory with free bytes before it.
#[derive(Debug)]
pub struct Resizable<'m> {
    /// The free bytes, then the captured bytes to their end.
    memory: &'m mut [u8],
    /// Where the packet starts in it.
    start: usize,
    wire: u32,
    fragmenting: Option<Fragmenting>,
}

impl<'m> Resizable<'m> {
    /// A packet that starts `start` bytes after the beginning of `memory` (at its end if that is shorter) and
    /// extends to the end; it had `wire` bytes on the wire.
    pub fn new(memory: &'m mut [u8], start: usize, wire: u32) -> Resizable<'m> {
        let start = start.min(memory.len());
        Resizable { memory, start, wire, fragmenting: None }
    }

    /// The captured bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// The captured bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }

    /// Where the packet starts in the memory it was given.
    pub fn start(&self) -> usize {
        self.start
    }

    /// How many bytes are captured.
    pub fn captured(&self) -> usize {
        self.memory.len() - self.start
    }

    /// How many bytes it has on the wire.
    pub fn wire(&self) -> u32 {
        self.wire
    }

    /// How the packet is fragmented when it leaves; `None` if it leaves in one piece.
    pub fn fragmenting(&self) -> Option<Fragmenting> {
        self.fragmenting
    }

    /// Sets how the packet is fragmented when it leaves.
    pub fn set_fragmenting(&mut self, fragmenting: Option<Fragmenting>) {
        self.fragmenting = fragmenting;
    }

    /// Inserts `count` bytes before the byte at `at` (at the end, if the packet is shorter), and returns
    /// them; the caller must write all of them. Returns `None` and changes nothing if there are not enough
    /// free bytes.
    pub fn push(&mut self, at: usize, count: usize) -> Option<&mut [u8]> {
        let before = self.start.checked_sub(count)?;
        let wire = self.wire.checked_add(u32::try_from(count).ok()?)?;
        let at = at.min(self.captured());
        self.memory.copy_within(self.start..self.start + at, before);
        (self.start, self.wire) = (before, wire);
        if let Some(fragmenting) = &mut self.fragmenting
            && fragmenting.at as usize >= at
        {
            // A place beyond the packet stays beyond it.
            fragmenting.at = fragmenting.at.saturating_add(count as u32);
        }
        self.memory.get_mut(before + at..before + at + count)
    }

    /// Removes `count` bytes from `at` on, as many of them as are captured. If the packet loses a byte of the
    /// header at which it was to be fragmented, it leaves in one piece.
    pub fn pop(&mut self, at: usize, count: usize) {
        let at = at.min(self.captured());
        let count = count.min(self.captured() - at);
        self.memory.copy_within(self.start..self.start + at, self.start + count);
        self.start += count;
        self.wire -= count as u32;
        self.fragmenting = self.fragmenting.and_then(|fragmenting| match fragmenting.at as usize {
            header if header >= at + count => {
                Some(Fragmenting { at: (header - count) as u32, ..fragmenting })
            }
            header if header < at => Some(fragmenting),
            _ => None,
        });
    }

    /// Removes everything from byte `length` on, captured or not.
    pub fn truncate(&mut self, length: u32) {
        let left = self.captured().min(length as usize);
        let memory = std::mem::take(&mut self.memory);
        self.memory = &mut memory[..self.start + left];
        self.wire = self.wire.min(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_before_moves() {
        let mut memory = *b"....abcdef";
        let mut packet = Resizable::new(&mut memory, 4, 100);
        packet.push(2, 3).expect("room").copy_from_slice(b"XYZ");
        assert_eq!((packet.bytes(), packet.wire(), packet.start()), (&b"abXYZcdef"[..], 103, 1));
        assert!(packet.push(0, 2).is_none(), "one byte is left");
        assert_eq!((packet.bytes(), packet.wire()), (&b"abXYZcdef"[..], 103));
        packet.pop(1, 2);
        assert_eq!((packet.bytes(), packet.wire(), packet.start()), (&b"aYZcdef"[..], 101, 3));
        packet.pop(4, 100);
        assert_eq!((packet.bytes(), packet.wire()), (&b"aYZc"[..], 98));
        assert_eq!(&memory[6..], b"aYZc");
    }

    #[test]
    fn positions_behind_the_end_are_the_end() {
        let mut memory = *b"..ab";
        let mut packet = Resizable::new(&mut memory, 2, 2);
        packet.push(9, 1).expect("room").fill(b'!');
        packet.pop(9, 9);
        assert_eq!((packet.bytes(), packet.wire()), (&b"ab!"[..], 3));
        assert_eq!(Resizable::new(&mut [], 9, 0).captured(), 0);
    }

    #[test]
    fn what_was_not_captured_is_cut_off_too() {
        let mut memory = *b"abcdef";
        let mut packet = Resizable::new(&mut memory, 0, 100);
        packet.truncate(50);
        assert_eq!((packet.captured(), packet.wire()), (6, 50));
        packet.truncate(2);
        assert_eq!((packet.bytes(), packet.wire()), (&b"ab"[..], 2));
        packet.truncate(9);
        assert_eq!((packet.bytes(), packet.wire()), (&b"ab"[..], 2));
    }

    #[test]
    fn the_header_to_be_fragmented_is_followed() {
        let mut memory = [0; 100];
        let mut packet = Resizable::new(&mut memory, 50, 50);
        let at = |packet: &Resizable<'_>| packet.fragmenting().map(|fragmenting| fragmenting.at);
        packet.set_fragmenting(Some(Fragmenting { at: 14, mtu: 68 }));
        packet.push(14, 4);
        assert_eq!(at(&packet), Some(18));
        packet.push(38, 4);
        assert_eq!(at(&packet), Some(18));
        packet.pop(38, 4);
        assert_eq!(at(&packet), Some(18));
        packet.pop(0, 18);
        assert_eq!(at(&packet), Some(0));
        packet.pop(0, 1);
        assert_eq!(at(&packet), None);
    }
}
