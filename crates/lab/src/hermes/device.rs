//! The simulated device as a [`Device`]: the kernel's twin says what a slot's packets become, and the
//! simulation when the slot is done.
//!
//! Time is its own, in cycles, and passes in three ways only: asking for a slot lets the next thing happen,
//! waiting for one lets things happen until it is done, and [`until`](Simulated::until) lets time pass up to
//! a moment. So whoever uses it meets slots that are done in the order in which a loaded device would be done
//! with them, and the same again meets the same.
//!
//! ```text
//!  slot     0     1     2     …     cores     cores + 1   …          core = slot mod cores, place on it = slot / cores
//!  core    0,0   1,0   2,0          0,1        1,1                    more packets than a warp has run one warp behind the other
//!
//!  submit ─► the twin runs the packets; their first warp begins ─► … last warp finishes ─► poll says so ─► output
//! ```

use super::hardware::{Hardware, Machine, together};
use super::work::Work;
use exec::kernel::Twin;
use gpu::{Device, DeviceError, Geometry, Input, SlotOutput};
use offload::hermes::{WARP, Warp};
use std::collections::VecDeque;

/// A kernel on the simulated device.
pub(crate) struct Simulated {
    geometry: Geometry,
    machine: Machine,
    cores: usize,
    kernel: Twin,
    /// What packets cost in the order in which they are handed over, again from the beginning where there are
    /// fewer.
    works: Vec<Work>,
    handed: usize,
    tables: Vec<Vec<u32>>,
    slots: Vec<Slot>,
    now: u64,
}

#[derive(Clone, Default)]
struct Slot {
    bytes: Vec<u8>,
    columns: Vec<u32>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
    /// Warps that have not begun.
    warps: VecDeque<Work>,
    under_way: bool,
}

impl Simulated {
    /// An idle device with so many warps a core. Packets cost `works`, of which there is at least one.
    ///
    /// # Errors
    /// There are more slots than places for warps.
    pub(crate) fn new(
        kernel: Twin,
        geometry: Geometry,
        hardware: &Hardware,
        warps: u8,
        works: Vec<Work>,
    ) -> Result<Simulated, DeviceError> {
        let places = usize::from(hardware.cores) * usize::from(warps);
        if geometry.slots > places {
            return Err(DeviceError::Failed {
                device: NAME.to_owned(),
                doing: "be made",
                cause: format!("it has places for {places} warps, and not for {} slots", geometry.slots),
            });
        }
        let Geometry { packets, stride, columns, record_words, .. } = geometry;
        let slot = Slot {
            bytes: vec![0; packets * stride],
            columns: vec![0; packets * columns],
            verdicts: vec![0; geometry.verdict_words(packets)],
            records: vec![0; packets * record_words],
            ..Slot::default()
        };
        Ok(Simulated {
            geometry,
            machine: Machine::new(hardware, warps),
            cores: hardware.cores.into(),
            kernel,
            works,
            handed: 0,
            tables: vec![Vec::new(); geometry.tables],
            slots: vec![slot; geometry.slots],
            now: 0,
        })
    }

    /// The slot in which a warp of this name runs.
    pub(crate) fn slot(&self, core: u16, slot: u8) -> usize {
        usize::from(slot) * self.cores + usize::from(core)
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<u64> {
        self.machine.next()
    }

    /// Lets time pass up to a moment, with all that happens before it.
    pub(crate) fn until(&mut self, now: u64) {
        while self.next().is_some_and(|next| next < now) {
            self.step();
        }
        self.now = self.now.max(now);
    }

    /// Lets the next thing happen; the slot that is done by it.
    pub(crate) fn step(&mut self) -> Option<usize> {
        self.now = self.next()?.max(self.now);
        let Warp { core, slot, .. } = self.machine.advance()?;
        let number = self.slot(core, slot);
        match self.slots[number].warps.pop_front() {
            Some(work) => {
                self.begin(number, work);
                None
            }
            None => {
                self.slots[number].under_way = false;
                Some(number)
            }
        }
    }

    /// Cycles that cores were issuing.
    pub(crate) fn busy(&self) -> u64 {
        self.machine.busy
    }

    fn begin(&mut self, slot: usize, work: Work) {
        let (core, place) = ((slot % self.cores) as u16, (slot / self.cores) as u8);
        self.machine.start(self.now, Warp { core, slot: place, first: 0, packets: WARP }, work);
    }

    /// Runs the packets of a slot. Their results are nobody's until it is done.
    fn run(&mut self, slot: usize, packets: usize) {
        let Geometry { stride, columns, record_words, verdict_bits, .. } = self.geometry;
        let tables: Vec<&[u32]> = self.tables.iter().map(Vec::as_slice).collect();
        let Slot { bytes, columns: words, verdicts, records, .. } = &mut self.slots[slot];
        let all = bytes.clone();
        let (mut own, mut record) = (vec![0; columns], vec![0; record_words]);
        verdicts.fill(0);
        for packet in 0..packets {
            own.iter_mut().enumerate().for_each(|(place, word)| *word = words[place * packets + packet]);
            for (place, word) in record.iter_mut().enumerate() {
                *word = records[place * packets + packet];
            }
            let bytes = &mut bytes[packet * stride..][..stride];
            let verdict = self.kernel.run(bytes, &all, &own, &mut record, &tables);
            let bit = packet * verdict_bits;
            verdicts[bit / 32] |= verdict << (bit % 32);
            for (place, word) in record.iter().enumerate() {
                records[place * packets + packet] = *word;
            }
        }
    }

    fn failed(doing: &'static str, cause: String) -> DeviceError {
        DeviceError::Failed { device: NAME.to_owned(), doing, cause }
    }
}

const NAME: &str = "a simulated device";

impl Device for Simulated {
    fn name(&self) -> String {
        format!("{NAME} of {} cores", self.cores)
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn workers(&self) -> usize {
        // Further warps of a core compute while these wait for memory.
        self.cores.min(self.geometry.slots)
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        // What is under way has been run over the words that it went over with.
        self.tables[table] = words.to_vec();
        Ok(())
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        let place = self.tables[table].get_mut(first..first.saturating_add(words.len()));
        let Some(place) = place else {
            return Err(Simulated::failed("change a table", format!("it has no word {first}")));
        };
        place.copy_from_slice(words);
        Ok(())
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        let Slot { bytes, columns, .. } = &mut self.slots[slot];
        Ok(Input { bytes, columns })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let packets = packets.min(self.geometry.packets);
        if packets == 0 {
            return Ok(());
        }
        self.run(slot, packets);
        let work = |packet: usize| self.works[packet % self.works.len()];
        let first = self.handed;
        let warps = (first..first + packets).step_by(WARP.into());
        let end = |from: usize| (from + usize::from(WARP)).min(first + packets);
        let mut warps: VecDeque<Work> = warps.map(|from| together((from..end(from)).map(work))).collect();
        self.handed += packets;
        let begun = warps.pop_front().unwrap_or_default();
        (self.slots[slot].warps, self.slots[slot].under_way) = (warps, true);
        self.begin(slot, begun);
        Ok(())
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        while self.slots[slot].under_way {
            if self.next().is_none() {
                return Err(Simulated::failed("finish a slot", "nothing happens on it any more".to_owned()));
            }
            self.step();
            if !wait {
                break;
            }
        }
        Ok(!self.slots[slot].under_way)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        let Slot { bytes, verdicts, records, .. } = &self.slots[slot];
        Ok(SlotOutput { bytes, verdicts, records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_workload::PORTS;
    use crate::measure::SEED;
    use crate::programs::compiled;
    use exec::kernel::KernelOptions;
    use lang::pipeline::Decode;
    use offload::Offload;
    use offload::geometry;

    #[test]
    fn slots_are_done_when_the_simulation_says_so() {
        let program = compiled("wire", Decode::Lazy).expect("it ships");
        let offload =
            Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
        let hardware = Hardware { cores: 2, latency: 0, bandwidth: 4096, ..Hardware::published() };
        let work = |instructions| Work { instructions, trips: 1, bytes: 64, ..Work::default() };
        let make = |slots| {
            let twin = Twin::new(offload.kernel(), &program, PORTS);
            let works = [99, 9, 49].map(work).to_vec();
            Simulated::new(twin, geometry(offload.kernel(), 40, slots), &hardware, 2, works)
        };
        let error = make(5).err().expect("it has fewer places").to_string();
        assert!(error.contains("places for 4 warps, and not for 5 slots"), "{error}");
        let mut device = make(4).expect("it is made");
        assert_eq!((device.next(), device.poll(0, false)), (None, Ok(true)));
        // Slots 0 and 2 share a core; slot 1 has the other to itself.
        for slot in [0, 1, 2] {
            device.submit(slot, 1).expect("it can be handed over");
        }
        let mut order = Vec::new();
        while let Some(now) = device.next() {
            order.extend(device.step().map(|slot| (slot, now)));
        }
        assert_eq!(order, [(1, 10), (0, 100), (2, 149)]);
        // Asked for and not waited for, time passes step by step; waited for, until the slot is done. 40
        // packets are two warps.
        device.submit(3, 40).expect("it can be handed over");
        assert_eq!(device.poll(3, false), Ok(false));
        assert_eq!(device.poll(3, true), Ok(true));
        assert_eq!(device.now, 149 + 100 + 100);
        device.until(1000);
        device.submit(0, 1).expect("it can be handed over");
        assert!(device.next().is_some_and(|next| next > 1000));
    }
}
