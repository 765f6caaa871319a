//! Ways on the processor: one core or all, by machine code or by the original's algorithms in Rust.
//!
//! The idea: packets are taken 256 at a time, or a batch where that is smaller, as a gateway's workers take
//! what has come. Cores share the units out in turn and wait for nobody, so larger batches bring them nothing
//! and cost them nothing.

use super::functions::{FunctionData, PACKETS};
use super::naive::Naive;
use super::spans::{Delays, Spans, delays};
use super::ways::Way;
use crate::device_workload::{PORTS, Packets};
use crate::measure::SEED;
use exec::{BackendKind, Outputs};
use packet::{BATCH, Batch, Verdict};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Packets that one call is to have at least, so that the last core is waited for seldom.
const STRETCH: usize = 16_384;

/// Gives a batch its verdicts.
type Work = Box<dyn FnMut(&mut [u8], &mut Batch) + Send>;

/// Some cores.
pub(super) struct Cores {
    workers: Vec<Worker>,
}

struct Worker {
    work: Work,
    /// Its own copy of the packets, as each would have its own port.
    packets: Packets,
    batch: Box<Batch>,
    delays: Delays,
}

/// What a worker spent, and when it began and ended.
struct Spent {
    gather: Duration,
    work: Duration,
    scatter: Duration,
    begin: Instant,
    end: Instant,
}

impl Cores {
    /// A program's machine code on so many cores.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub(super) fn native(data: &FunctionData, cores: usize) -> Result<Box<dyn Way>, String> {
        let one = || -> Result<Work, String> {
            let backend = exec::load(&data.whole.program, BackendKind::Native, PORTS, SEED);
            let mut backend = backend.map_err(|error| error.to_string())?;
            let mut outputs = Outputs::default();
            Ok(Box::new(move |memory: &mut [u8], batch: &mut Batch| backend.run(memory, batch, &mut outputs)))
        };
        let works = (0..cores).map(|_| one()).collect::<Result<_, _>>()?;
        Ok(Cores::of(data, works))
    }

    /// The original's algorithms on so many cores.
    pub(super) fn naive(data: &FunctionData, naive: &Arc<Naive>, cores: usize) -> Box<dyn Way> {
        let one = |_| -> Work {
            let naive = Arc::clone(naive);
            Box::new(move |memory: &mut [u8], batch: &mut Batch| {
                for place in 0..batch.len {
                    batch.verdict[place] = naive.verdict(batch.bytes(memory, place).unwrap_or_default());
                }
            })
        };
        Cores::of(data, (0..cores).map(one).collect())
    }

    fn of(data: &FunctionData, works: Vec<Work>) -> Box<dyn Way> {
        let worker = |work| Worker {
            work,
            packets: data.whole.packets.clone(),
            batch: Box::default(),
            delays: delays(),
        };
        Box::new(Cores { workers: works.into_iter().map(worker).collect() })
    }
}

impl Worker {
    /// Runs units of packets, each from a place on.
    fn run(&mut self, units: &mut [(usize, &mut [Verdict])]) -> Spent {
        let begin = Instant::now();
        let mut now = begin;
        let [mut gather, mut work, mut scatter] = [Duration::ZERO; 3];
        for (first, found) in units {
            let start = now;
            self.packets.fill(&mut self.batch, *first, found.len());
            let filled = Instant::now();
            (self.work)(self.packets.frames.memory_mut(), &mut self.batch);
            let worked = Instant::now();
            found.copy_from_slice(self.batch.verdicts());
            now = Instant::now();
            gather += filled - start;
            work += worked - filled;
            scatter += now - worked;
            self.delays.saturating_record_n((now - start).as_nanos() as u64, found.len() as u64);
        }
        Spent { gather, work, scatter, begin, end: now }
    }
}

impl Way for Cores {
    fn stretch(&self) -> usize {
        STRETCH
    }

    fn run(
        &mut self,
        _: &Packets,
        first: usize,
        batch: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        let cores = self.workers.len();
        let mut shares: Vec<Vec<(usize, &mut [Verdict])>> = (0..cores).map(|_| Vec::new()).collect();
        let size = batch.min(BATCH);
        for (unit, found) in found.chunks_mut(size).enumerate() {
            shares[unit % cores].push(((first + unit * size) % PACKETS, found));
        }
        let spent: Vec<Spent> = match (&mut self.workers[..], &mut shares[..]) {
            ([one], [units]) => vec![one.run(units)],
            (workers, shares) => {
                // The clock begins when all are there.
                let barrier = Barrier::new(cores);
                thread::scope(|scope| {
                    let threads: Vec<_> = workers
                        .iter_mut()
                        .zip(shares)
                        .map(|(worker, units)| {
                            let barrier = &barrier;
                            scope.spawn(move || {
                                barrier.wait();
                                worker.run(units)
                            })
                        })
                        .collect();
                    let joined = threads.into_iter().map(|thread| thread.join());
                    joined
                        .map(|spent| spent.map_err(|_| "a core panicked".to_owned()))
                        .collect::<Result<_, String>>()
                })?
            }
        };
        for worker in &mut self.workers {
            // All have the same bounds.
            delays.add(&worker.delays).unwrap_or(());
            worker.delays.reset();
        }
        let begin = spent.iter().map(|spent| spent.begin).min();
        let end = spent.iter().map(|spent| spent.end).max();
        let wall = end.zip(begin).map_or(Duration::ZERO, |(end, begin)| end - begin);
        let mean = |part: fn(&Spent) -> Duration| spent.iter().map(part).sum::<Duration>() / cores as u32;
        let (gather, work) = (mean(|spent| spent.gather), mean(|spent| spent.work));
        let scatter = mean(|spent| spent.scatter);
        // What a core waited for the last one is nobody's work.
        let driver = wall.saturating_sub(gather + work + scatter);
        let parts = gpu::Parts { kernel: work, ..gpu::Parts::default() };
        Ok(Spans { gather, parts, driver, scatter, wall, kernel: work, processing: work, ..Spans::default() })
    }
}
