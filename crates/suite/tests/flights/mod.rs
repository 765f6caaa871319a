//! Slots under way out of step: a device against the twin of its kernel, with tables that change between
//! batches, word by word.

use captures::generate::Profile;
use exec::Backend;
use exec::kernel::{Kernel, KernelOptions};
use gpu::{Device, Geometry};
use ir::Program;
use offload::host;
use offload::{Offload, Whole};
use packet::BATCH;
use packet::batch::Batch;
use suite::corpus::shipped;
use suite::outcome::SEED;
use suite::packet_generator::Arrivals;
use suite::traffic::traffic;

const PORTS: u16 = 5;

/// A program of `programs/`, packets for it, and its tables: as they are, and without entries.
pub(crate) struct Flights {
    program: Program,
    offload: Offload,
    arrivals: Arrivals,
    tables: [Vec<Vec<u32>>; 2],
}

impl Flights {
    /// None where the program has no kernel with these options.
    pub(crate) fn new(name: &str, options: &KernelOptions) -> Option<Flights> {
        let program = shipped(&format!("{name}.rav"));
        let arrivals = traffic(Profile::sample1(), 3_000, PORTS, 11);
        let mut offload = Offload::new(&program, PORTS, SEED, options).ok()?;
        let count = offload.kernel().plan.tables.len();
        let words = |offload: &mut Offload| {
            (0..count).map(|table| offload.table_words(table).expect("it has an image")).collect::<Vec<_>>()
        };
        let full = words(&mut offload);
        for table in offload.kernel().plan.tables.clone() {
            // A table that refuses stays as it is.
            let _ = offload.backend().control_mut().replace(table, Vec::new());
        }
        let empty = words(&mut offload);
        assert_ne!(full, empty, "{name}: no table changes");
        Some(Flights { program, offload, arrivals, tables: [full, empty] })
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        self.offload.kernel()
    }

    /// Fills, hands over and reads slots in an order that chance gives, and changes tables in between. How
    /// many batches told no times.
    pub(crate) fn agree(&mut self, what: &str, device: &mut dyn Device) -> usize {
        let Geometry { packets: most, slots, stride, verdict_bits: bits, .. } = *device.geometry();
        let Geometry { record_words, returns_bytes, .. } = *device.geometry();
        let mut twin =
            host(self.kernel(), &self.program, PORTS, *device.geometry()).expect("there are threads");
        let mut chance = 12_345_u32;
        let mut below = move |end: usize| {
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (chance >> 8) as usize % end
        };
        let mut under_way = vec![None; slots];
        let (mut without, mut at, mut together) = (0, 0, 0);
        self.upload(0, device, &mut twin);
        for round in 0..12 * slots {
            if round % 7 == 6 {
                self.upload(round % 2, device, &mut twin);
            }
            let slot = below(slots);
            let Some(count) = under_way[slot].take() else {
                let count = [1, 63, 64, 65, most, most, most, 1 + below(most)][below(8)].min(most);
                at = self.fill(slot, at, count, device);
                let (from, to) = (device.input(slot).expect(what), twin.input(slot).expect(what));
                to.bytes.copy_from_slice(from.bytes);
                to.columns.copy_from_slice(from.columns);
                device.submit(slot, count).unwrap_or_else(|error| panic!("{what}: {error}"));
                twin.submit(slot, count).expect(what);
                under_way[slot] = Some(count);
                together = together.max(under_way.iter().flatten().count());
                continue;
            };
            assert!(twin.poll(slot, true).expect(what));
            let is_done = device.poll(slot, round % 2 == 0).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(is_done || round % 2 == 1);
            assert!(is_done || device.poll(slot, true).expect(what));
            without += usize::from(device.parts(slot).is_none());
            let (seen, right) = (device.output(slot).expect(what), twin.output(slot).expect(what));
            // Behind the last verdict a word may hold anything.
            let verdict = |words: &[u32], packet: usize| {
                words[packet * bits / 32] >> (packet * bits % 32) & (u32::MAX >> (32 - bits))
            };
            for packet in 0..count {
                let (seen, right) = (verdict(seen.verdicts, packet), verdict(right.verdicts, packet));
                assert_eq!(seen, right, "{what}: packet {packet} of {count} in round {round}");
            }
            let words = count * record_words;
            assert_eq!(seen.records[..words], right.records[..words], "{what}: {count} in round {round}");
            let bytes = if returns_bytes { count * stride } else { 0 };
            assert!(seen.bytes[..bytes] == right.bytes[..bytes], "{what}: {count} in round {round}");
        }
        assert!(together >= slots.min(3), "{what}: only {together} slots were under way at once");
        without
    }

    fn upload(&self, which: usize, device: &mut dyn Device, twin: &mut dyn Device) {
        for (table, words) in self.tables[which].iter().enumerate() {
            device.upload(table, words).unwrap_or_else(|error| panic!("{error}"));
            twin.upload(table, words).expect("there is memory");
        }
    }

    /// Fills a slot with packets from `at` on; gives the next one.
    fn fill(&mut self, slot: usize, mut at: usize, count: usize, device: &mut dyn Device) -> usize {
        let mut input = device.input(slot).expect("it is at rest");
        let mut batch = Batch::new();
        let mut before = 0;
        while before < count {
            let last = (at + BATCH.min(count - before)).min(self.arrivals.frames.len());
            let filled = self.arrivals.frames.fill(&mut batch, at..last);
            batch.port[..filled].copy_from_slice(&self.arrivals.ports[at..last]);
            let whole = Whole { before, packets: count };
            self.offload.gather(self.arrivals.frames.memory(), &batch, whole, &mut input);
            before += filled;
            at = last % self.arrivals.frames.len();
        }
        at
    }
}
