//! Keeps the last packets that were dropped or punted, a few for each reason, at all times.
//!
//! Of every batch the first packet of a reason is kept. So a flood of drops costs one copy a batch, and a
//! drop that comes alone is always kept. What is kept are the first bytes of the packet as the program left
//! it.

use packet::{Batch, PortNumber, VerdictKind};

/// How many packets of a reason are kept.
pub const KEPT: usize = 8;
/// How many bytes of each.
pub const BYTES: usize = 128;

/// A packet that was dropped or punted.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// When it came in: the program's time, which [`Now::on_wall`](ports::live::clock::Now::on_wall) makes
    /// one for people.
    pub time: u64,
    /// The port that it came in by.
    pub port: PortNumber,
    /// Its length on the wire.
    pub wire: u32,
    /// Whether it was punted.
    pub punted: bool,
    length: u8,
    bytes: [u8; BYTES],
}

impl Example {
    const NONE: Example = Example { time: 0, port: 0, wire: 0, punted: false, length: 0, bytes: [0; BYTES] };

    /// Its first bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The last packets of one reason.
#[derive(Clone, Debug)]
struct Ring {
    /// How many there have been.
    count: u64,
    /// The last batch of which a packet was kept.
    batch: u64,
    examples: [Example; KEPT],
}

/// The last packets of every reason.
#[derive(Clone, Debug)]
pub struct Recent {
    rings: Vec<Ring>,
    batch: u64,
}

impl Recent {
    /// An empty store for so many reasons.
    pub(super) fn new(reasons: usize) -> Recent {
        Recent {
            rings: vec![Ring { count: 0, batch: 0, examples: [Example::NONE; KEPT] }; reasons],
            batch: 0,
        }
    }

    /// Keeps the first packet of each reason of a batch that has been run.
    #[inline]
    pub(super) fn keep(&mut self, memory: &[u8], batch: &Batch) {
        self.batch += 1;
        for (index, verdict) in batch.verdicts().iter().enumerate() {
            // The kinds of punt and drop have the largest numbers; for most packets nothing is to be done.
            if verdict.kind() as u8 >= VerdictKind::Punt as u8 {
                self.keep_one(memory, batch, index);
            }
        }
    }

    fn keep_one(&mut self, memory: &[u8], batch: &Batch, index: usize) {
        let verdict = batch.verdict[index];
        let Some(ring) = self.rings.get_mut(usize::from(verdict.argument())) else { return };
        if ring.batch == self.batch {
            return;
        }
        ring.batch = self.batch;
        let example = &mut ring.examples[(ring.count % KEPT as u64) as usize];
        ring.count += 1;
        let bytes = batch.bytes(memory, index).unwrap_or_default();
        let length = bytes.len().min(BYTES);
        example.bytes[..length].copy_from_slice(&bytes[..length]);
        example.length = length as u8;
        (example.time, example.port, example.wire) =
            (batch.time[index], batch.port[index], batch.wire[index]);
        example.punted = verdict.kind() == VerdictKind::Punt;
    }

    /// The kept packets with the number of their reason, oldest first within each reason.
    pub fn examples(&self) -> impl Iterator<Item = (usize, &Example)> {
        self.rings.iter().enumerate().flat_map(|(reason, ring)| {
            let kept = ring.count.min(KEPT as u64);
            (ring.count - kept..ring.count)
                .map(move |number| (reason, &ring.examples[(number % KEPT as u64) as usize]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Verdict;

    #[test]
    fn the_last_of_each_reason_are_kept_one_a_batch() {
        let memory: Vec<u8> = (0..=255).collect();
        let mut recent = Recent::new(3);
        for time in 0..20 {
            let mut batch = Batch::new();
            for (start, verdict) in [
                (0, Verdict::drop(1)),
                (10, Verdict::drop(1)),
                (20, Verdict::send(1)),
                (30, Verdict::punt(2)),
                (40, Verdict::drop(9)),
            ] {
                batch.push(start, 200, 1500, 4, time);
                batch.verdict[batch.len - 1] = verdict;
            }
            recent.keep(&memory, &batch);
        }
        let kept: Vec<_> =
            recent.examples().map(|(reason, example)| (reason, example.time, example.punted)).collect();
        let wanted = |reason, punted| (12..20).map(move |time| (reason, time, punted));
        assert_eq!(kept, wanted(1, false).chain(wanted(2, true)).collect::<Vec<_>>());
        let first = recent.examples().next().expect("is kept").1;
        assert_eq!((first.bytes(), first.wire, first.port), (&memory[..BYTES], 1500, 4));
    }
}
