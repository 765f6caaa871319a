//! The source that repeats packets from memory, at almost no cost for each packet.

use crate::ingress::Ingress;
use crate::{Receive, ReceiveError};
use packet::Arena;
use packet::{BATCH, Batch, Frames};

/// In which order packets are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All packets, then all packets again.
    Replay,
    /// Each packet as often as wanted, then the next packet.
    Each,
}

/// The packets of [`Frames`], repeated. Times are those of the frames at every repeat.
pub struct MemorySource {
    frames: Frames,
    order: Order,
    repeat: u64,
    ingress: Ingress,
    /// Where frames are copied to before each use, if they are to be the same at every repeat.
    copies: Option<Arena>,
    /// The next packet in the order of the frames.
    next: usize,
    /// How often all packets (or the next packet) have been handed out.
    round: u64,
}

impl MemorySource {
    /// Hands out every packet of `frames` `repeat` times. With `restore`, a program that changes bytes finds
    /// them unchanged at the next repeat, for the price of a copy; without, it gets the frames themselves.
    pub fn new(frames: Frames, order: Order, repeat: u64, restore: bool, ingress: Ingress) -> MemorySource {
        let copies = restore.then(Arena::new);
        MemorySource { frames, order, repeat, ingress, copies, next: 0, round: 0 }
    }

    /// How many packets there are in all, repeats included.
    pub fn packets(&self) -> u64 {
        (self.frames.len() as u64).saturating_mul(self.repeat)
    }

    /// Ends the source and gives the frames back.
    pub fn into_frames(self) -> Frames {
        self.frames
    }

    #[inline]
    fn fill(&mut self, batch: &mut Batch) {
        batch.clear();
        if self.round >= self.repeat || self.next >= self.frames.len() {
            return;
        }
        match self.order {
            Order::Replay => {
                self.next += self.frames.fill(batch, self.next..self.next + BATCH);
                if self.next >= self.frames.len() {
                    self.next = 0;
                    self.round += 1;
                }
            }
            Order::Each => {
                let left = usize::try_from(self.repeat - self.round).unwrap_or(BATCH);
                self.round += self.frames.fill_repeated(batch, self.next, left) as u64;
                if self.round >= self.repeat {
                    self.next += 1;
                    self.round = 0;
                }
            }
        }
    }

    /// Copies the frames of the batch into the arena, as many as it takes, and takes the rest of them back.
    fn copy(&mut self, batch: &mut Batch) {
        let (Some(arena), memory) = (&mut self.copies, self.frames.memory()) else {
            return;
        };
        let wanted = batch.len;
        arena.replace_frames(memory, batch);
        self.take_back(wanted - batch.len);
    }

    /// Makes the last `n` packets be handed out again.
    fn take_back(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        match self.order {
            Order::Replay if self.next == 0 => {
                self.next = self.frames.len() - n;
                self.round -= 1;
            }
            Order::Replay => self.next -= n,
            Order::Each if self.round == 0 => {
                self.next -= 1;
                self.round = self.repeat - n as u64;
            }
            Order::Each => self.round -= n as u64,
        }
    }
}

impl Receive for MemorySource {
    #[inline]
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        self.fill(batch);
        if self.copies.is_some() {
            self.copy(batch);
        }
        let memory = match &mut self.copies {
            Some(arena) => arena.memory_mut(),
            None => self.frames.memory_mut(),
        };
        self.ingress.assign(memory, batch);
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IngressPolicy;

    fn frames(n: u32, length: usize) -> Frames {
        let mut frames = Frames::new();
        for i in 0..n {
            let mut bytes = vec![0; length];
            bytes[..4].copy_from_slice(&i.to_le_bytes());
            frames.push(&bytes, 9, u64::from(i));
        }
        frames
    }

    /// The numbers of the packets in the order they come, with their ports; each is overwritten once seen.
    fn drain(mut source: MemorySource) -> Vec<(u32, u16)> {
        let mut batch = Batch::new();
        let mut seen = Vec::new();
        loop {
            let memory = source.receive(&mut batch).expect("memory does not fail");
            if batch.is_empty() {
                return seen;
            }
            for i in 0..batch.len {
                let start = batch.frame[i] as usize;
                let number = u32::from_le_bytes(memory[start..start + 4].try_into().expect("four bytes"));
                assert_eq!(batch.time[i], u64::from(number));
                seen.push((number, batch.port[i]));
            }
            if let Some(copies) = &mut source.copies {
                copies.memory_mut().fill(0xff);
            }
        }
    }

    fn expected(n: u32, repeat: u32, order: Order) -> Vec<(u32, u16)> {
        (0..n * repeat)
            .map(|i| (if order == Order::Replay { i % n } else { i / repeat }, (i % 3) as u16 + 1))
            .collect()
    }

    #[test]
    fn both_orders_with_and_without_copies() {
        for order in [Order::Replay, Order::Each] {
            for (n, repeat) in [(1, 1), (5, 3), (256, 2), (700, 1), (3, 1000), (257, 257)] {
                for restore in [false, true] {
                    let ingress = Ingress::new(IngressPolicy::RoundRobin, 3);
                    let source = MemorySource::new(frames(n, 60), order, repeat.into(), restore, ingress);
                    assert_eq!(source.packets(), u64::from(n * repeat));
                    assert_eq!(drain(source), expected(n, repeat, order), "{order:?} {n} {repeat} {restore}");
                }
            }
        }
    }

    #[test]
    fn frames_too_long_for_one_copy_of_the_batch_come_in_shorter_batches() {
        for order in [Order::Replay, Order::Each] {
            let ingress = Ingress::new(IngressPolicy::RoundRobin, 3);
            let source = MemorySource::new(frames(40, 200_000), order, 30, true, ingress);
            assert_eq!(drain(source), expected(40, 30, order), "{order:?}");
        }
    }

    #[test]
    fn nothing_stays_nothing() {
        let ingress = Ingress::new(IngressPolicy::RoundRobin, 3);
        assert_eq!(drain(MemorySource::new(Frames::new(), Order::Replay, 9, false, ingress.clone())), []);
        assert_eq!(drain(MemorySource::new(frames(3, 60), Order::Each, 0, false, ingress)), []);
    }

    #[test]
    fn without_copies_a_change_stays() {
        let ingress = Ingress::new(IngressPolicy::Port(1), 1);
        let mut source = MemorySource::new(frames(1, 60), Order::Replay, 2, false, ingress);
        let mut batch = Batch::new();
        source.receive(&mut batch).expect("memory does not fail")[59] = 7;
        assert_eq!(source.receive(&mut batch).expect("memory does not fail")[59], 7);
    }
}
