//! A queue of frames that are held back for a while, in a ring buffer.
//!
//! ```text
//! free | first | second | … | last | free          or, once the end was reached:          … last | free | first | second | … | unused
//!      ▲ head                      ▲ tail                                                         ▲ tail  ▲ head
//! ```
//!
//! Every frame lies in one piece. What is left before the end and too short for the next frame stays unused;
//! since no frame is longer than [`LONGEST`], memory of the limit and one such frame always has a place for
//! what the limit admits.

use packet::VirtioHeader;
use std::collections::VecDeque;

/// The longest frame that can be held, in bytes: the longest packet of IP, with room for every header before
/// it.
pub(crate) const LONGEST: usize = (64 << 10) + 256;

/// A frame, and what is left to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// What is left to do with it.
    pub(crate) virtio: VirtioHeader,
    /// A number that whoever put it there gave it.
    pub(crate) mark: u64,
}

struct Place {
    start: usize,
    len: usize,
    virtio: VirtioHeader,
    mark: u64,
}

/// A queue of frames.
pub(crate) struct Held {
    memory: Vec<u8>,
    limit: usize,
    bytes: usize,
    tail: usize,
    places: VecDeque<Place>,
}

impl Held {
    /// Room for frames of `limit` bytes together.
    pub(crate) fn new(limit: usize) -> Held {
        // Zeros that nobody has touched cost the system nothing.
        Held {
            memory: vec![0; limit.saturating_add(LONGEST)],
            limit,
            bytes: 0,
            tail: 0,
            places: VecDeque::new(),
        }
    }

    /// Appends a frame; says whether there was room.
    pub(crate) fn push(&mut self, frame: Frame<'_>) -> bool {
        let len = frame.bytes.len();
        if len > LONGEST || self.bytes + len > self.limit {
            return false;
        }
        let start = match self.places.front() {
            None => 0,
            Some(head) if head.start <= self.tail && self.tail + len > self.memory.len() => 0,
            Some(_) => self.tail,
        };
        self.memory[start..start + len].copy_from_slice(frame.bytes);
        (self.tail, self.bytes) = (start + len, self.bytes + len);
        self.places.push_back(Place { start, len, virtio: frame.virtio, mark: frame.mark });
        true
    }

    /// The oldest frame.
    pub(crate) fn first(&self) -> Option<Frame<'_>> {
        let &Place { start, len, virtio, mark } = self.places.front()?;
        Some(Frame { bytes: &self.memory[start..start + len], virtio, mark })
    }

    /// Takes the oldest frame away.
    pub(crate) fn pop(&mut self) {
        if let Some(place) = self.places.pop_front() {
            self.bytes -= place.len;
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The mark of the youngest.
    pub(crate) fn last_mark(&self) -> Option<u64> {
        self.places.back().map(|place| place.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_queue_with_a_limit(limit in 0usize..200_000, steps in prop::collection::vec((0usize..70_000, any::<bool>()), 0..200)) {
            let mut held = Held::new(limit);
            let mut twin: VecDeque<(Vec<u8>, u64)> = VecDeque::new();
            for (number, (len, push)) in (0u64..).zip(steps) {
                // Short frames are as frequent as long ones.
                let len = if number % 2 == 0 { len } else { len % 100 };
                if push {
                    let bytes: Vec<u8> = (0..len).map(|at| (at as u64 + number) as u8).collect();
                    let waiting: usize = twin.iter().map(|(bytes, _)| bytes.len()).sum();
                    let fits = len <= LONGEST && waiting + len <= limit;
                    let frame = Frame { bytes: &bytes, virtio: VirtioHeader::NONE, mark: number };
                    prop_assert_eq!(held.push(frame), fits);
                    if fits {
                        twin.push_back((bytes, number));
                    }
                } else {
                    held.pop();
                    twin.pop_front();
                }
                prop_assert_eq!(held.len(), twin.len());
                prop_assert_eq!(held.is_empty(), twin.is_empty());
                let first = held.first().map(|frame| (frame.bytes.to_vec(), frame.mark));
                prop_assert_eq!(first, twin.front().cloned());
                prop_assert_eq!(held.last_mark(), twin.back().map(|(_, mark)| *mark));
            }
            while let Some((bytes, _)) = twin.pop_front() {
                prop_assert_eq!(held.first().map(|frame| frame.bytes.to_vec()), Some(bytes));
                held.pop();
            }
            prop_assert!(held.is_empty());
        }
    }
}
