//! A split virtqueue, as its device sees it (Virtual I/O Device 1.2, 2.7). The driver, at the other side, is
//! not trusted: each of its words is read once and checked before it is used, and every walk has an end.
//!
//! ```text
//!              written by the driver                                      written by the device
//! descriptors  | address: 8 | length: 4 | flags: 2 | next: 2 | …
//! available    | flags: 2 | index: 2 | head: 2 | …                used    | flags: 2 | index: 2 | head: 4, length: 4 | …
//! ```
//!
//! (All little-endian.) The driver puts the head of a chain of descriptors into the next place of the ring of
//! available ones and counts its index up; the device uses chains in this order, and tells them likewise. So
//! the index of the used ones is all that has to be known to go on where another device ended.

use super::guest_memory::GuestMemory;
use super::limits::{LARGEST_RING, LONGEST_CHAIN};
use super::shared::RingPlace;
use std::sync::Arc;

/// The chain goes on (VIRTQ_DESC_F_NEXT).
const NEXT: u16 = 1;
/// The device is to write there (VIRTQ_DESC_F_WRITE).
const WRITE: u16 = 2;
/// Of the ring of available ones: the driver wants no interrupts (VIRTQ_AVAIL_F_NO_INTERRUPT).
const NO_INTERRUPT: u16 = 1;
/// Of the ring of used ones: the device wants no notifications (VIRTQ_USED_F_NO_NOTIFY).
const NO_NOTIFY: u32 = 1;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;

/// What a driver has done that no driver does. Nothing of its ring is used after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RingViolation {
    /// the index of available chains
    #[error("more chains are available than the ring has places")]
    Available,
    /// a number of a descriptor
    #[error("a chain names a descriptor that the ring does not have")]
    Descriptor,
    /// flags
    #[error("a descriptor has flags that were not agreed on")]
    Flags,
    /// the direction
    #[error("a descriptor is to be written that was to be read, or the other way round")]
    Direction,
    /// an address
    #[error("a descriptor lies outside of the memory that is shared")]
    Address,
    /// a loop
    #[error("a chain has more descriptors than the ring, or than {LONGEST_CHAIN}")]
    Endless,
    /// a ring
    #[error("a ring does not lie in the memory that is shared, or has a size that no ring has")]
    Place,
}

/// A chain that was taken off the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    head: u16,
    /// Its bytes.
    pub(super) bytes: u64,
    /// Its descriptors.
    pub(super) steps: u32,
}

/// Memory that both sides write at any moment.
pub(super) trait SharedMemory {
    /// Some of its bytes.
    type Part<'m>: SharedPart
    where
        Self: 'm;

    /// The bytes at an address, if all of them are shared.
    fn part(&self, address: u64, length: u32) -> Option<Self::Part<'_>>;

    /// What this side wrote before is seen by whoever passes this later, or this side sees what he wrote.
    fn fence();
}

/// Bytes of such memory.
pub(super) trait SharedPart: Sized {
    /// The word of 16 bits, little-endian, this many bytes behind the beginning, which lies at a multiple of
    /// two. What the other side wrote before it is visible then.
    fn half(&self, offset: usize) -> u16;

    /// Writes a word of 32 bits, little-endian, this many bytes behind the beginning, which lies at a
    /// multiple of four. What was written before is visible to whoever sees it.
    fn set_word(&self, offset: usize, word: u32);

    /// What follows the first so many bytes.
    fn skip(&self, bytes: usize) -> Self;

    /// Copies bytes to `to`, as many as both have.
    fn read(&self, to: &mut [u8]);
}

/// A ring with its memory.
pub(super) struct Virtqueue<M = GuestMemory> {
    memory: Arc<M>,
    place: RingPlace,
    /// The place behind the last chain that was taken, counted on without end; `None` before the first.
    next: Option<u16>,
    /// The flags of the ring of used ones; `None` where they may be those of a device before this one.
    flags: Option<u32>,
}

impl<M: SharedMemory> Virtqueue<M> {
    /// The ring at this place. It goes on where the driver was told that the device has come to.
    ///
    /// # Errors
    /// It does not lie in the memory, or has a size that no ring has.
    pub(super) fn new(memory: &Arc<M>, place: RingPlace) -> Result<Virtqueue<M>, RingViolation> {
        let queue = Virtqueue { memory: memory.clone(), place, next: None, flags: None };
        let is_size = place.size.is_power_of_two() && place.size <= LARGEST_RING;
        let at = [(place.descriptors, DESCRIPTOR as u64), (place.available, 2), (place.used, 4)];
        let aligned = at.iter().all(|(address, boundary)| address % boundary == 0);
        match is_size && aligned {
            true => queue.descriptors().and(queue.available()).and(queue.used()).map(drop)?,
            false => return Err(RingViolation::Place),
        }
        Ok(queue)
    }

    fn descriptors(&self) -> Result<M::Part<'_>, RingViolation> {
        self.part(self.place.descriptors, self.size() * DESCRIPTOR as u32)
    }

    fn available(&self) -> Result<M::Part<'_>, RingViolation> {
        self.part(self.place.available, 4 + 2 * self.size())
    }

    fn used(&self) -> Result<M::Part<'_>, RingViolation> {
        self.part(self.place.used, 4 + 8 * self.size())
    }

    fn part(&self, address: u64, length: u32) -> Result<M::Part<'_>, RingViolation> {
        self.memory.part(address, length).ok_or(RingViolation::Place)
    }

    fn size(&self) -> u32 {
        self.place.size.into()
    }

    /// The place of the ring that a count stands for.
    fn at(&self, count: u16) -> usize {
        usize::from(count & (self.place.size - 1))
    }

    /// The place of the next chain.
    fn next(&mut self) -> Result<u16, RingViolation> {
        match self.next {
            Some(next) => Ok(next),
            None => {
                let next = self.used()?.half(2);
                self.next = Some(next);
                Ok(next)
            }
        }
    }

    /// Takes the next chain, if there is one, and shows its bytes in order: those `to_write`, or to read.
    ///
    /// # Errors
    /// The driver has done what no driver does.
    pub(super) fn take(
        &mut self,
        to_write: bool,
        mut show: impl FnMut(M::Part<'_>),
    ) -> Result<Option<Chain>, RingViolation> {
        let next = self.next()?;
        let (available, descriptors) = (self.available()?, self.descriptors()?);
        let there = available.half(2).wrapping_sub(next);
        if there == 0 {
            return Ok(None);
        }
        if there > self.place.size {
            return Err(RingViolation::Available);
        }
        let head = available.half(4 + 2 * self.at(next));
        let (mut number, mut bytes) = (head, 0);
        for steps in 1..=self.size().min(LONGEST_CHAIN) {
            if number >= self.place.size {
                return Err(RingViolation::Descriptor);
            }
            let mut descriptor = [0; DESCRIPTOR];
            descriptors.skip(usize::from(number) * DESCRIPTOR).read(&mut descriptor);
            let [address @ .., l0, l1, l2, l3, f0, f1, n0, n1] = descriptor;
            let flags = u16::from_le_bytes([f0, f1]);
            if flags & !(NEXT | WRITE) != 0 {
                return Err(RingViolation::Flags);
            }
            if (flags & WRITE != 0) != to_write {
                return Err(RingViolation::Direction);
            }
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            let part = self.memory.part(u64::from_le_bytes(address), length);
            show(part.ok_or(RingViolation::Address)?);
            bytes += u64::from(length);
            if flags & NEXT == 0 {
                drop((available, descriptors));
                self.next = Some(next.wrapping_add(1));
                return Ok(Some(Chain { head, bytes, steps }));
            }
            number = u16::from_le_bytes([n0, n1]);
        }
        Err(RingViolation::Endless)
    }

    /// Gives the chain that was taken last back, into which so many bytes were written. The driver sees that
    /// once it is [told](Virtqueue::tell).
    ///
    /// # Errors
    /// The ring is not there.
    pub(super) fn give_back(&mut self, chain: Chain, written: u32) -> Result<(), RingViolation> {
        let last = self.next()?.wrapping_sub(1);
        let place = 4 + 8 * self.at(last);
        let used = self.used()?;
        used.set_word(place, chain.head.into());
        used.set_word(place + 4, written);
        Ok(())
    }

    /// Tells the driver of all chains that were given back. Says whether it wants an interrupt.
    ///
    /// # Errors
    /// The ring is not there.
    pub(super) fn tell(&mut self) -> Result<bool, RingViolation> {
        self.set_used_words()?;
        // The driver looks for chains after it has said that it wants interrupts: either it sees these, or
        // this sees what it has said.
        M::fence();
        Ok(self.available()?.half(0) & NO_INTERRUPT == 0)
    }

    /// Says whether the driver is to notify of chains that become available. Chains that were made available
    /// before it sees that have to be looked for once more.
    ///
    /// # Errors
    /// The ring is not there.
    pub(super) fn listen(&mut self, listens: bool) -> Result<(), RingViolation> {
        let flags = if listens { 0 } else { NO_NOTIFY };
        if self.flags != Some(flags) {
            self.flags = Some(flags);
            self.set_used_words()?;
            M::fence();
        }
        Ok(())
    }

    /// Flags and index of used chains, of which the driver writes none.
    fn set_used_words(&mut self) -> Result<(), RingViolation> {
        let word = self.flags.unwrap_or_default() | u32::from(self.next()?) << 16;
        self.used()?.set_word(0, word);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
