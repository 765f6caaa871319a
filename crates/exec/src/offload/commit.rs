//! Commit: what came back from a device becomes what the batch says and what the state holds, packet by packet in arrival order.

use super::{Offload, Whole};
use crate::kernel::{AGAIN, Effect, FIRST_EFFECT};
use crate::outputs::{Output, Outputs};
use crate::pack::MAX_WORDS;
use crate::state::State;
use crate::state::table_set::{Fast, TablePlace};
use packet::batch::Batch;
use packet::verdict::Verdict;
use tables::exact::Exact;

/// What came back.
pub struct Returned<'a> {
    /// Bytes of all packets that went over together.
    pub bytes: &'a [u8],
    /// Their verdict words.
    pub verdicts: &'a [u32],
    /// Their records.
    pub records: &'a [u32],
}

/// The verdict bits of a verdict word.
const VERDICT: u32 = 0x0700_ffff;

impl Offload {
    /// Commits a batch that a device ran: the part `whole` of what went over together. Afterwards everything is as if
    /// [`run`](crate::Processor::run) had run it.
    pub fn commit(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        (whole, returned): (Whole, &Returned<'_>),
        outputs: &mut Outputs,
    ) {
        let Whole { before, packets } = whole;
        let stride = self.kernel.plan.bytes.stride() as usize;
        let mut changed = self.is_stale();
        for i in 0..batch.len {
            let time = batch.time[i].max(self.native.state.now);
            if time >= self.native.state.next_wake {
                self.native.state.settle(time, &mut self.native.engine, outputs);
                changed = changed || self.is_stale();
            }
            let word = returned.verdicts[before + i];
            if word & AGAIN != 0 || changed {
                match word & AGAIN {
                    0 => self.tally.changed += 1,
                    _ => self.tally.again += 1,
                }
                self.native.engine.run_one(&mut self.native.state, memory, batch, i, outputs);
                changed = changed || self.is_stale();
                continue;
            }
            self.tally.device += 1;
            let state = &mut self.native.state;
            (state.now, state.cause) = (time, i as u32);
            batch.verdict[i] = Verdict::from_bits(word & VERDICT);
            let plan = &self.kernel.plan;
            if !plan.effects.is_empty() {
                let record = Record { returned, packets, packet: before + i, wire: batch.wire[i].into() };
                for (index, effect) in plan.effects.iter().enumerate() {
                    let done = match plan.mask_words() {
                        0 => word >> FIRST_EFFECT >> index,
                        _ => record.word(index as u32 / 32) >> (index % 32),
                    };
                    if done & 1 == 1 {
                        record.apply(state, effect);
                    }
                }
            }
            if plan.writes {
                let start = batch.frame[i] as usize;
                let length = stride.min(batch.captured[i] as usize);
                let back = &returned.bytes[(before + i) * stride..][..length];
                if let Some(frame) = memory.get_mut(start..start + length) {
                    frame.copy_from_slice(back);
                }
            }
            // Timers may have left more to do than is done before one packet.
            if self.native.state.has_queued() {
                self.native.state.handle_queued(&mut self.native.engine, outputs);
                changed = changed || self.is_stale();
            }
        }
        self.native.state.cause = Output::BETWEEN;
    }

    /// Runs a batch on the processor alone.
    pub fn run_here(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        self.tally.processor += batch.len as u64;
        crate::Processor::run(&mut self.native, memory, batch, outputs);
    }
}

/// The record of one packet.
struct Record<'a> {
    returned: &'a Returned<'a>,
    packets: usize,
    packet: usize,
    wire: u64,
}

impl Record<'_> {
    fn word(&self, word: u32) -> u32 {
        self.returned.records[word as usize * self.packets + self.packet]
    }

    /// So many 64-bit words from `first` on.
    fn words(&self, first: u32, count: usize) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        for (place, word) in words.iter_mut().take(count).enumerate() {
            let low = first + 2 * place as u32;
            *word = u64::from(self.word(low)) | u64::from(self.word(low + 1)) << 32;
        }
        words
    }

    fn apply(&self, state: &mut State<Fast>, effect: &Effect) {
        match *effect {
            Effect::Count { counter, word } => {
                let index = word.map_or(0, |word| self.word(word));
                state.count(counter, index.into(), self.wire);
            }
            Effect::Hit { table, key } => {
                let count = state.tables.shapes[table as usize].key.words;
                let words = self.words(key, count);
                if let TablePlace::Exact(place) = state.tables.places[table as usize] {
                    let now = state.now;
                    state.tables.exact[place].find(&words[..count], now);
                }
            }
            Effect::Confirm { table, key } => {
                let shape = &state.tables.shapes[table as usize];
                let (keys, values) = (shape.key.words, shape.value.words);
                let (key, value) = (self.words(key, keys), self.words(key + 2 * keys as u32, values));
                state.learn_releasing(table, &key[..keys], &value[..values]);
            }
            Effect::Row { table, word } => {
                let row = self.word(word);
                match state.tables.places[table as usize] {
                    TablePlace::Prefixes(place) => state.tables.prefixes[place].rows().count(row, self.wire),
                    TablePlace::Rules(place) => state.tables.rules[place].rows().count(row, self.wire),
                    TablePlace::Patterns(place) => {
                        state.tables.patterns[place].rows_mut().count(row, self.wire)
                    }
                    TablePlace::Exact(_) => {}
                }
            }
        }
    }
}
