//! The host device: threads of the host take packets warp by warp, as a GPU does, and run the kernel's twin
//! on each packet. It is meant for trials and tests, and is not fast.
//!
//! A submitted slot is copied together with the tables, so later changes do not affect its warps. Warps
//! return their results, and the caller who polls the slot puts the results together. Threads wait only on
//! condition variables.

use crate::device::{Device, DeviceError, Geometry, Input, SlotOutput};
use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets of a warp.
pub const WARP: usize = 32;
/// A slot that takes longer than this counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kernel that threads run.
pub trait HostWarp: Send + Sync {
    /// Runs one packet over the tables' words and returns its verdict, of as many bits as there are room for.
    fn run(&self, lane: HostLane<'_>, tables: &[Arc<Vec<u32>>]) -> u32;
}

/// One packet of a warp.
pub struct HostLane<'a> {
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// Those of all packets, as they went over.
    pub all: &'a [u8],
    /// Its columns.
    pub columns: &'a [u32],
    /// Its record, as the slot has it.
    pub record: &'a mut [u32],
}

/// The host device: a kernel on threads.
pub struct Host {
    geometry: Geometry,
    slots: Vec<Slot>,
    tables: Vec<Arc<Vec<u32>>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Slot {
    bytes: Vec<u8>,
    columns: Vec<u32>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
    under_way: bool,
}

struct Shared {
    geometry: Geometry,
    warp: Box<dyn HostWarp>,
    state: Mutex<State>,
    /// There is something to do, or the end has come.
    work: Condvar,
    /// A batch is done.
    done: Condvar,
    /// Of each slot, whether a batch is done: so that whoever only asks is not in the way of those who work.
    ready: Box<[AtomicBool]>,
}

struct State {
    /// Batches whose warps have not all been taken, each with the first packet of the next.
    open: VecDeque<(Arc<Batch>, usize)>,
    /// What is done of each slot.
    slots: Vec<Done>,
    /// Threads that wait for something to do.
    idle: usize,
    /// Whether anybody waits for a batch.
    awaited: bool,
    ended: bool,
}

#[derive(Default)]
struct Done {
    left: usize,
    warps: Vec<Finished>,
    failed: bool,
}

/// What goes over.
struct Batch {
    slot: usize,
    packets: usize,
    bytes: Vec<u8>,
    columns: Vec<u32>,
    records: Vec<u32>,
    tables: Vec<Arc<Vec<u32>>>,
}

/// What a warp leaves: packets from `first` on, the record of each in one piece.
struct Finished {
    first: usize,
    bytes: Vec<u8>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
}

impl Host {
    /// So many threads for a kernel (none: one less than the machine has processors, as whoever hands batches
    /// over needs one, too; at least one).
    ///
    /// # Errors
    /// The machine gives no thread.
    pub fn new(
        warp: Box<dyn HostWarp>,
        geometry: Geometry,
        threads: Option<NonZero<usize>>,
    ) -> Result<Host, DeviceError> {
        let slot = || Slot {
            bytes: vec![0; geometry.packets * geometry.stride],
            columns: vec![0; geometry.packets * geometry.columns],
            verdicts: vec![0; geometry.packets],
            records: vec![0; geometry.packets * geometry.record_words],
            under_way: false,
        };
        let state = State {
            open: VecDeque::new(),
            slots: (0..geometry.slots).map(|_| Done::default()).collect(),
            idle: 0,
            awaited: false,
            ended: false,
        };
        let shared = Arc::new(Shared {
            geometry,
            warp,
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            ready: (0..geometry.slots).map(|_| AtomicBool::new(false)).collect(),
        });
        let mut host = Host {
            geometry,
            slots: (0..geometry.slots).map(|_| slot()).collect(),
            tables: vec![Arc::default(); geometry.tables],
            shared,
            threads: Vec::new(),
        };
        let beside =
            || std::thread::available_parallelism().map_or(1, |all| all.get().saturating_sub(1).max(1));
        let wanted = threads.map_or_else(beside, NonZero::get);
        for number in 0..wanted {
            let shared = Arc::clone(&host.shared);
            let thread =
                std::thread::Builder::new().name(format!("warp {number}")).spawn(move || shared.work());
            host.threads.push(thread.map_err(|error| host.failed("start a thread", error.to_string()))?);
        }
        Ok(host)
    }

    fn failed(&self, doing: &'static str, cause: String) -> DeviceError {
        DeviceError::Failed { device: self.name(), doing, cause }
    }

    /// Puts a slot together from what its warps left.
    fn collect(&mut self, slot: usize, warps: Vec<Finished>, packets: usize) {
        let Geometry { stride, verdict_bits, record_words, .. } = self.geometry;
        let slot = &mut self.slots[slot];
        for Finished { first, bytes, verdicts, records } in warps {
            slot.bytes[first * stride..][..bytes.len()].copy_from_slice(&bytes);
            // Verdicts of a warp fill whole words.
            let words = slot.verdicts[first * verdict_bits / 32..].iter_mut();
            for (word, verdicts) in words.zip(verdicts.chunks(32 / verdict_bits)) {
                let places = verdicts.iter().enumerate();
                *word = places.fold(0, |word, (place, verdict)| word | verdict << (place * verdict_bits));
            }
            for lane in 0..verdicts.len() {
                for word in 0..record_words {
                    slot.records[word * packets + first + lane] = records[lane * record_words + word];
                }
            }
        }
    }
}

impl Shared {
    /// A state that a panic left is whole: nothing panics while it is being changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread does until the end.
    fn work(&self) {
        let mut state = self.state();
        while !state.ended {
            let Some((batch, next)) = state.open.front_mut() else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            let (batch, first) = (Arc::clone(batch), *next);
            *next += WARP;
            if *next >= batch.packets {
                state.open.pop_front();
            }
            drop(state);
            // A kernel that panics costs the batch, not the thread: who waits for the slot is told.
            let finished = catch_unwind(AssertUnwindSafe(|| self.run(&batch, first)));
            state = self.state();
            let done = &mut state.slots[batch.slot];
            match finished {
                Ok(finished) => done.warps.push(finished),
                Err(_) => done.failed = true,
            }
            done.left -= 1;
            if done.left == 0 {
                self.ready[batch.slot].store(true, Ordering::Release);
                if std::mem::take(&mut state.awaited) {
                    self.done.notify_all();
                }
            }
        }
    }

    fn run(&self, batch: &Batch, first: usize) -> Finished {
        let Geometry { stride, columns, record_words, .. } = self.geometry;
        let lanes = WARP.min(batch.packets - first);
        let mut bytes = batch.bytes[first * stride..][..lanes * stride].to_vec();
        let mut records = vec![0; lanes * record_words];
        let mut own = vec![0; columns];
        let verdicts = (0..lanes).map(|lane| {
            let packet = first + lane;
            for (column, word) in own.iter_mut().enumerate() {
                *word = batch.columns[column * batch.packets + packet];
            }
            let record = &mut records[lane * record_words..][..record_words];
            for (place, word) in record.iter_mut().enumerate() {
                *word = batch.records[place * batch.packets + packet];
            }
            let bytes = &mut bytes[lane * stride..][..stride];
            self.warp.run(HostLane { bytes, all: &batch.bytes, columns: &own, record }, &batch.tables)
        });
        let verdicts = verdicts.collect();
        Finished { first, bytes, verdicts, records }
    }
}

impl Device for Host {
    fn name(&self) -> String {
        format!("threads of this machine ({})", self.threads.len())
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn workers(&self) -> usize {
        self.threads.len()
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.tables[table] = Arc::new(words.to_vec());
        Ok(())
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        // What is under way keeps the words that it went over with.
        match Arc::make_mut(&mut self.tables[table]).get_mut(first..first.saturating_add(words.len())) {
            Some(place) => place.copy_from_slice(words),
            None => return Err(self.failed("change a table", format!("it has no word {first}"))),
        }
        Ok(())
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: &mut slot.bytes, columns: &mut slot.columns })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let packets = packets.min(self.geometry.packets);
        let own = &mut self.slots[slot];
        own.under_way = packets > 0;
        if !own.under_way {
            return Ok(());
        }
        let batch = Batch {
            slot,
            packets,
            bytes: own.bytes[..packets * self.geometry.stride].to_vec(),
            columns: own.columns[..packets * self.geometry.columns].to_vec(),
            records: own.records[..packets * self.geometry.record_words].to_vec(),
            tables: self.tables.clone(),
        };
        let mut state = self.shared.state();
        state.slots[slot] = Done { left: packets.div_ceil(WARP), ..Done::default() };
        state.open.push_back((Arc::new(batch), 0));
        self.shared.ready[slot].store(false, Ordering::Relaxed);
        // Waking costs a call of the system even where nobody sleeps.
        match (state.idle, packets) {
            (0, _) => {}
            (_, ..=WARP) => self.shared.work.notify_one(),
            _ => self.shared.work.notify_all(),
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        if !self.slots[slot].under_way {
            return Ok(true);
        }
        if !wait && !self.shared.ready[slot].load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut state = self.shared.state();
        let begin = Instant::now();
        while state.slots[slot].left > 0 {
            state.awaited = true;
            let Some(left) = PATIENCE.checked_sub(begin.elapsed()) else {
                let milliseconds = PATIENCE.as_millis() as u64;
                return Err(DeviceError::Stalled { device: self.name(), milliseconds });
            };
            state = self.shared.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let Done { warps, failed, .. } = std::mem::take(&mut state.slots[slot]);
        drop(state);
        self.slots[slot].under_way = false;
        if failed {
            return Err(self.failed("run a batch", "a thread panicked".to_owned()));
        }
        let packets = warps.iter().map(|warp| warp.verdicts.len()).sum();
        self.collect(slot, warps, packets);
        Ok(true)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        let Slot { bytes, verdicts, records, .. } = &self.slots[slot];
        Ok(SlotOutput { bytes, verdicts, records })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.ended = true;
        state.open.clear();
        drop(state);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // What it panicked with, if it did, has been told already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the first word of table 0 to a packet's first byte, says its column, and records the byte; a byte
    /// of 255 panics.
    struct Adds;

    impl HostWarp for Adds {
        fn run(&self, lane: HostLane<'_>, tables: &[Arc<Vec<u32>>]) -> u32 {
            assert!(lane.bytes[0] < 255, "a packet of the test's own");
            lane.bytes[0] += tables[0][0] as u8;
            lane.record[1] = lane.bytes[0].into();
            lane.columns[0]
        }
    }

    fn host(threads: usize) -> Host {
        let geometry = Geometry {
            packets: 100,
            stride: 16,
            columns: 1,
            verdict_bits: 32,
            record_words: 2,
            returns_bytes: true,
            slots: 2,
            tables: 1,
        };
        Host::new(Box::new(Adds), geometry, NonZero::new(threads)).unwrap()
    }

    fn fill(host: &mut Host, slot: usize, packets: usize, from: u8) {
        let input = host.input(slot).unwrap();
        for packet in 0..packets {
            input.bytes[packet * 16] = from + packet as u8;
            input.columns[packet] = 1000 + packet as u32;
        }
        host.submit(slot, packets).unwrap();
    }

    #[test]
    fn slots_in_flight_keep_the_tables_that_they_went_over_with() {
        for threads in [1, 3] {
            let mut host = host(threads);
            assert_eq!(host.workers(), threads);
            host.upload(0, &[5, 6]).unwrap();
            for round in 0..50 {
                host.patch(0, 0, &[5]).unwrap();
                fill(&mut host, 0, 70 + round % 30, 1);
                host.patch(0, 0, &[9]).unwrap();
                fill(&mut host, 1, 33, 100);
                for (slot, packets, from, added) in [(1, 33, 100, 9), (0, 70 + round % 30, 1, 5)] {
                    assert!(host.poll(slot, true).unwrap());
                    let output = host.output(slot).unwrap();
                    for packet in 0..packets {
                        let byte = from + packet as u8 + added;
                        assert_eq!(output.verdicts[packet], 1000 + packet as u32);
                        assert_eq!(output.bytes[packet * 16], byte);
                        assert_eq!(output.records[packets + packet], byte.into());
                    }
                }
            }
        }
    }

    #[test]
    fn a_kernel_that_panics_is_an_error_and_the_next_batch_runs() {
        let mut host = host(2);
        host.upload(0, &[0]).unwrap();
        fill(&mut host, 0, 3, 253);
        assert!(matches!(host.poll(0, true), Err(DeviceError::Failed { .. })));
        fill(&mut host, 0, 3, 1);
        assert!(host.poll(0, true).unwrap());
        assert_eq!(host.output(0).unwrap().verdicts[..3], [1000, 1001, 1002]);
        assert!(host.patch(0, 1, &[7]).is_err());
    }

    #[test]
    fn a_device_that_goes_with_work_left_ends_its_threads() {
        let mut host = host(2);
        host.upload(0, &[0]).unwrap();
        fill(&mut host, 0, 100, 1);
        fill(&mut host, 1, 100, 1);
        let shared = Arc::clone(&host.shared);
        drop(host);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
