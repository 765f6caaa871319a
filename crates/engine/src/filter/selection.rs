//! Packets of a run that a filter holds for: all packets run, and afterwards the others are taken out of the
//! batch, with what leaves because of them.

use super::{Decided, Filter};
use crate::commit::Ledger;
use exec::Outputs;
use ir::Program;
use packet::Batch;

/// A filter over a run, and the account of the packets that it holds for.
pub struct Selection {
    filter: Filter,
    reasons: Vec<String>,
    /// Packets that it may hold for, by their number in the batch.
    chosen: Vec<u16>,
    /// Where their bytes end among the copies, and their lengths on the wire; empty where the filter needs no
    /// copies.
    copied: Vec<(usize, u32)>,
    copies: Vec<u8>,
    /// What happened to the packets that it holds for.
    pub ledger: Ledger,
}

impl Selection {
    /// Nothing chosen yet, from a run of a program on a gateway with `ports` ports.
    pub fn new(filter: Filter, program: &Program, ports: u16) -> Selection {
        Selection {
            filter,
            reasons: program.reasons.iter().map(|reason| reason.name.clone()).collect(),
            chosen: Vec::new(),
            copied: Vec::new(),
            copies: Vec::new(),
            ledger: Ledger::new(program, ports),
        }
    }

    /// The filter as it was written.
    pub fn text(&self) -> &str {
        self.filter.text()
    }

    /// Looks at packets before the program does.
    pub fn before(&mut self, memory: &mut [u8], batch: &mut Batch) {
        self.filter.choose(memory, batch, &mut self.chosen);
        self.copied.clear();
        self.copies.clear();
        if !self.filter.reads_outcome() {
            return;
        }
        for &index in &self.chosen {
            let index = usize::from(index);
            self.copies.extend_from_slice(batch.bytes(memory, index).unwrap_or_default());
            self.copied.push((self.copies.len(), batch.wire[index]));
        }
    }

    /// Keeps of the batch, which has been run and committed, and of `outputs`, what the filter holds for, and
    /// accounts for it. What no packet caused goes, too.
    pub fn keep(&mut self, memory: &[u8], batch: &mut Batch, outputs: &mut Outputs) {
        if self.filter.reads_outcome() {
            self.decide(batch);
        }
        for (kept, &index) in self.chosen.iter().enumerate() {
            let index = usize::from(index);
            batch.frame[kept] = batch.frame[index];
            batch.captured[kept] = batch.captured[index];
            batch.wire[kept] = batch.wire[index];
            batch.port[kept] = batch.port[index];
            batch.time[kept] = batch.time[index];
            batch.verdict[kept] = batch.verdict[index];
            batch.virtio[kept] = batch.virtio[index];
        }
        batch.len = self.chosen.len();
        let place = |index: u32| {
            let index = u16::try_from(index).ok()?;
            self.chosen.binary_search(&index).ok().map(|kept| kept as u32)
        };
        // What no packet caused has a number that no packet has.
        let moved = |index: &mut u32| place(*index).map(|kept| *index = kept).is_some();
        outputs.packets.retain_mut(|output| moved(&mut output.cause));
        outputs.resized.retain_mut(|change| moved(&mut change.packet));
        outputs.raised.retain_mut(|raised| moved(&mut raised.cause));
        self.ledger.commit(memory, batch, outputs);
    }

    /// Leaves those chosen for which the filter holds, now that what became of them is known.
    fn decide(&mut self, batch: &Batch) {
        let mut start = 0;
        let mut copied = self.copied.iter();
        self.chosen.retain(|&index| {
            let Some(&(end, wire)) = copied.next() else { return false };
            let bytes = &self.copies[start..end];
            start = end;
            let index = usize::from(index);
            let verdict = batch.verdict[index];
            let reason = verdict.reason().and_then(|number| self.reasons.get(usize::from(number)));
            let reason = reason.map(String::as_str);
            self.filter.holds(&Decided { bytes, wire, port: batch.port[index], verdict, reason })
        });
    }
}
