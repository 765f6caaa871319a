//! Commit: the host takes the results of a device into the batch and into the state of the program, packet by
//! packet in order of arrival.

use super::images::ImageChanges;
use super::{Offload, Whole};
use exec::kernel::{CopiedPart, Effect, KernelPlan, ResultPlace, key_bits};
use exec::native::Native;
use exec::pack::{MAX_WORDS, Packing, WIDEST_KEY};
use exec::{Backend, Outputs};
use gpu::SlotOutput;
use packet::batch::Batch;
use tables::device::exact::DeviceExact;

impl Offload {
    /// Commits a batch that a device ran: the part `whole` of what went over together. Afterwards everything
    /// is as if [`run`](Backend::run) had run it.
    pub fn commit(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        whole: Whole,
        returned: &SlotOutput<'_>,
        outputs: &mut Outputs,
    ) {
        let Whole { before, packets } = whole;
        let mut changes = self.changes();
        for i in 0..batch.len {
            let time = batch.time[i].max(self.native.state().now);
            if time >= self.native.state().next_wake {
                self.native.handle_due(time, outputs);
                changes = self.changes_beside(changes);
            }
            let plan = &self.kernel.plan;
            let result = plan.results.read(returned.verdicts, before + i);
            let wire = batch.wire[i].into();
            let (tables, mirrors) = (&plan.tables, &self.mirrors);
            let record = Record { returned, tables, mirrors, result, packets, packet: before + i, wire };
            let finished = plan.results.verdict(result).filter(|_| plan.lengths.contains(&batch.captured[i]));
            let holds = match changes {
                ImageChanges::None => true,
                ImageChanges::Entries => finished.is_some() && self.saw_what_is(&record),
                ImageChanges::Others => false,
            };
            let Some(verdict) = finished.filter(|_| holds) else {
                match finished {
                    Some(_) => self.tally.changed += 1,
                    None => self.tally.again += 1,
                }
                self.native.run_one(memory, batch, i, outputs);
                changes = self.changes_beside(changes);
                continue;
            };
            self.tally.device += 1;
            self.native.begin_packet(time, i);
            batch.verdict[i] = verdict;
            for (effect, done) in plan.effects.iter().zip(&plan.done) {
                if record.read(*done) != 0 {
                    record.apply(&mut self.native, effect);
                }
            }
            if plan.writes {
                let back = &returned.bytes[(before + i) * plan.stride as usize..][..plan.stride as usize];
                let frame = memory.get_mut(batch.frame[i] as usize..).unwrap_or_default();
                let captured = frame.len().min(batch.captured[i] as usize);
                bring(plan, back, &mut frame[..captured]);
            }
            // Timers may have left more to do than is done before one packet.
            if self.native.state().has_queued() {
                self.native.handle_queued(outputs);
                changes = self.changes_beside(changes);
            }
        }
        self.native.end_packets();
    }

    /// Whether the entries that a packet asked for on the device are those that there are now.
    fn saw_what_is(&self, record: &Record<'_>) -> bool {
        let (plan, shapes) = (&self.kernel.plan, &self.native.state().tables.shapes);
        plan.effects.iter().zip(&plan.done).filter(|(_, done)| record.read(**done) != 0).all(|(effect, _)| {
            let (table, words) = match *effect {
                Effect::Ask { table, key } => (table, Some(record.key(key, &shapes[table as usize].key))),
                Effect::Confirm { table, entry } => (table, record.entry(table, entry)),
                Effect::Count { .. } | Effect::Row { .. } => return true,
            };
            words.is_some_and(|words| self.was_sent(table, &words[..shapes[table as usize].key.words]))
        })
    }

    /// Runs a batch on the host alone.
    pub fn run_here(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        self.ran_here(batch.len);
        Backend::run(&mut self.native, memory, batch, outputs);
    }
}

/// Brings bytes back to a frame.
fn bring(plan: &KernelPlan, back: &[u8], frame: &mut [u8]) {
    if plan.over != CopiedPart::Packed {
        let length = frame.len().min(back.len());
        frame[..length].copy_from_slice(&back[..length]);
        return;
    }
    let mut place = 0;
    for range in &plan.ranges {
        let length = range.len();
        if let Some(part) = frame.get_mut(range.start as usize..) {
            let there = part.len().min(length);
            part[..there].copy_from_slice(&back[place..place + there]);
        }
        place += length;
    }
}

/// Words of a key, and of a value behind it.
type Words = [u64; WIDEST_KEY + MAX_WORDS];

/// What one packet left to be done.
struct Record<'a> {
    returned: &'a SlotOutput<'a>,
    /// The kernel's tables, and the images of exact ones as the device has them.
    tables: &'a [u32],
    mirrors: &'a [Option<DeviceExact>],
    result: u32,
    packets: usize,
    packet: usize,
    wire: u64,
}

impl Record<'_> {
    fn read(&self, place: ResultPlace) -> u32 {
        place.word.map_or(self.result, |word| self.word(word)) >> place.shift & place.most()
    }

    fn word(&self, word: u32) -> u32 {
        self.returned.records[word as usize * self.packets + self.packet]
    }

    /// The words of a key.
    fn key(&self, place: ResultPlace, packing: &Packing) -> Words {
        let mut words = [0; WIDEST_KEY + MAX_WORDS];
        if key_bits(packing).is_some() {
            words[0] = self.read(place).into();
            return words;
        }
        let first = place.word.unwrap_or(0);
        for (number, word) in words.iter_mut().take(packing.words).enumerate() {
            let low = first + 2 * number as u32;
            *word = u64::from(self.word(low)) | u64::from(self.word(low + 1)) << 32;
        }
        words
    }

    /// The words of an entry's key and value, which lie at the number that the packet tells.
    fn entry(&self, table: u32, place: ResultPlace) -> Option<Words> {
        let mirror = self.tables.iter().position(|one| *one == table)?;
        let held = self.mirrors[mirror].as_ref()?.entry(self.read(place))?;
        let mut words = [0; WIDEST_KEY + MAX_WORDS];
        words.iter_mut().zip(held).for_each(|(word, held)| *word = held);
        Some(words)
    }

    fn apply(&self, native: &mut Native, effect: &Effect) {
        match *effect {
            Effect::Count { counter, cell } => {
                let cell = cell.map_or(0, |cell| self.read(cell));
                native.count(counter, cell.into(), self.wire);
            }
            Effect::Ask { table, key } => {
                let packing = &native.state().tables.shapes[table as usize].key;
                let (words, count) = (self.key(key, packing), packing.words);
                native.ask(table, &words[..count]);
            }
            Effect::Confirm { table, entry } => {
                let Some(words) = self.entry(table, entry) else { return };
                let shape = &native.state().tables.shapes[table as usize];
                let (keys, values) = (shape.key.words, shape.value.words);
                native.learn_words(table, &words[..keys], &words[keys..keys + values]);
            }
            Effect::Row { table, row } => native.count_row(table, self.read(row), self.wire),
        }
    }
}
