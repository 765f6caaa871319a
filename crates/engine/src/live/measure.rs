//! Measures on demand where the packet loop spends its time: by stop, by stage of the program and by size of
//! batch, and how long packets stay in the loop.
//!
//! While nobody measures, each stop of a batch costs the loop one branch. A stopwatch that runs reads the
//! cycle counter of the core at each stop. It adds the time that each sent packet has spent in the loop to a
//! histogram of logarithmic buckets (Tene, HdrHistogram), exact to three digits.

use super::generation::Generation;
use super::stage_costs::{ProgramCosts, Sampling, StageCosts};
use super::{Remote, Request};
use exec::{BackendKind, Draft, Outputs};
use hdrhistogram::Histogram;
use packet::{Batch, VerdictKind};
use ports::live::clock::Clock;
use ports::live::cycles;
use serde::Serialize;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// The longest time that the histogram distinguishes from longer ones, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// The parts of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Taking packets from the ports.
    Receive,
    /// Running the program.
    Run,
    /// Updating the account, and copying packets for observers.
    Commit,
    /// Sending.
    Transmit,
    /// Looking for requests of the control plane, and handling them.
    Control,
    /// Sleeping, and the program's timers meanwhile.
    Idle,
    /// The cost of measuring the program's stages.
    Measure,
}

/// In the order of the loop, with the names that people see.
const STOPS: [(Stop, &str); 7] = [
    (Stop::Receive, "receive"),
    (Stop::Run, "run"),
    (Stop::Commit, "commit"),
    (Stop::Transmit, "transmit"),
    (Stop::Control, "control"),
    (Stop::Idle, "idle"),
    (Stop::Measure, "measure"),
];

/// The number of classes of batch sizes, by their binary logarithm: 1, 2 to 3, and so on up to 256.
const SIZES: usize = 9;

/// The running measurements, one for each request: mostly none.
#[derive(Default)]
pub(super) struct Stopwatch {
    going: Vec<Measuring>,
    /// The cycles that measuring stages took in the present batch.
    spent: u64,
}

impl Stopwatch {
    pub(super) fn start(&mut self, mut measuring: Measuring, generation: &mut Generation) {
        measuring.sampling.start(generation);
        measuring.begun = Instant::now();
        (measuring.first, measuring.last) = (cycles(), cycles());
        self.going.push(measuring);
    }

    /// Runs the program over a batch.
    #[inline]
    pub(super) fn run(
        &mut self,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        if self.going.is_empty() || !self.run_measured(generation, memory, batch, outputs) {
            generation.backend.run(memory, batch, outputs);
        }
    }

    #[cold]
    fn run_measured(
        &mut self,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool {
        let mut each = self.going.iter_mut();
        let spent = each.find_map(|measuring| {
            measuring.sampling.run(measuring.packets, generation, memory, batch, outputs)
        });
        self.spent = spent.unwrap_or(0);
        spent.is_some()
    }

    /// The time since the last lap was spent at this stop.
    #[inline]
    pub(super) fn lap(&mut self, stop: Stop) {
        if !self.going.is_empty() {
            let spent = std::mem::take(&mut self.spent);
            self.going.iter_mut().for_each(|measuring| measuring.lap(stop, spent));
            if matches!(stop, Stop::Control | Stop::Idle) {
                let over = |measuring: &mut Measuring| measuring.begun.elapsed() >= measuring.duration;
                self.going.extract_if(.., over).for_each(|measuring| measuring.end());
            }
        }
    }

    /// The time until the first measurement ends.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = |going: &Measuring| going.duration.saturating_sub(going.begun.elapsed());
        self.going.iter().map(left).min()
    }

    /// A batch has been sent.
    #[inline]
    pub(super) fn sent(&mut self, batch: &Batch, clock: &dyn Clock) {
        self.going.iter_mut().for_each(|measuring| measuring.sent(batch, clock.program()));
    }
}

impl Remote {
    /// Measures where time goes at all workers, and waits until `duration` has passed; `None` if a worker has
    /// ended. If the second variant of the program, which measures stages, is missing, the caller's thread
    /// compiles it first.
    pub fn measure(&self, duration: Duration) -> Option<Measurement> {
        let parts = self.ask(|generation, _| {
            let Generation { number, program, sources, backend, .. } = generation;
            let kind = backend.back_end();
            let draft = backend.inspect().and_then(|inspect| inspect.draft());
            (*number, program.clone(), sources.clone(), draft, kind)
        })?;
        let (number, program, sources, kind) =
            parts.first().map(|(n, p, s, _, kind)| (*n, p.clone(), s.clone(), *kind))?;
        let mut unmeasured = (kind == BackendKind::Bytecode).then(|| {
            "bytecode does not tell where time goes: `--back-end native` and `interpreter` do".to_owned()
        });
        let mut samplings = Vec::with_capacity(parts.len());
        for (number, program, _, draft, _) in parts {
            let measured = draft.map(Draft::compile).transpose().unwrap_or_else(|error| {
                unmeasured = Some(error.to_string());
                None
            });
            samplings.push(Sampling::new(number, &program, measured));
        }
        let mut samplings = samplings.into_iter();
        let parts = self.gather(|answer| {
            let sampling = samplings.next()?;
            Some(Request::Measure(Box::new(Measuring::new(duration, sampling, Box::new(answer)))))
        })?;
        let mut measurement = parts.into_iter().reduce(|mut all, part| {
            all += part;
            all
        })?;
        measurement.stages.tell_of(number, program, sources);
        measurement.unmeasured = unmeasured;
        Some(measurement)
    }
}

/// A measurement at one worker that is going on.
pub(super) struct Measuring {
    duration: Duration,
    begun: Instant,
    first: u64,
    last: u64,
    cycles: [u64; STOPS.len()],
    packets: u64,
    batches: [u64; SIZES],
    latency: Histogram<u64>,
    sampling: Sampling,
    answer: Box<dyn FnOnce(Measurement) + Send>,
}

impl Measuring {
    fn new(duration: Duration, sampling: Sampling, answer: Box<dyn FnOnce(Measurement) + Send>) -> Measuring {
        Measuring {
            duration,
            begun: Instant::now(),
            first: 0,
            last: 0,
            cycles: [0; STOPS.len()],
            packets: 0,
            batches: [0; SIZES],
            latency: histogram(),
            sampling,
            answer,
        }
    }

    /// The time since the last lap was spent at this stop, but for `spent` cycles of measuring.
    fn lap(&mut self, stop: Stop, spent: u64) {
        let now = cycles();
        let passed = now.wrapping_sub(self.last);
        let spent = spent.min(passed);
        self.cycles[stop as usize] += passed - spent;
        self.cycles[Stop::Measure as usize] += spent;
        self.last = now;
    }

    fn sent(&mut self, batch: &Batch, now: u64) {
        self.lap(Stop::Transmit, 0);
        self.packets += batch.len as u64;
        if let Some(size) = batch.len.checked_ilog2() {
            self.batches[(size as usize).min(SIZES - 1)] += 1;
        }
        for (&time, verdict) in batch.time[..batch.len].iter().zip(batch.verdicts()) {
            if !matches!(verdict.kind(), VerdictKind::Drop | VerdictKind::Punt | VerdictKind::Pending) {
                self.latency.saturating_record(now.saturating_sub(time));
            }
        }
    }

    fn end(self) {
        let Measuring { begun, first, last, cycles, packets, batches, latency, sampling, answer, .. } = self;
        let elapsed = last.wrapping_sub(first);
        answer(Measurement {
            seconds: begun.elapsed().as_secs_f64(),
            elapsed,
            cycles,
            packets,
            batches,
            latency,
            stages: sampling.end(),
            unmeasured: None,
            workers: 1,
        });
    }
}

/// What was measured, over all workers.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// How many workers there are.
    pub workers: u64,
    /// The duration of the measurement at each worker, in seconds.
    pub seconds: f64,
    /// Packets that came in.
    pub packets: u64,
    elapsed: u64,
    cycles: [u64; STOPS.len()],
    batches: [u64; SIZES],
    latency: Histogram<u64>,
    stages: StageCosts,
    /// Why the stages of the program could not be measured, if they were not.
    pub unmeasured: Option<String>,
}

impl AddAssign for Measurement {
    fn add_assign(&mut self, other: Measurement) {
        self.workers += other.workers;
        self.seconds = self.seconds.max(other.seconds);
        self.packets += other.packets;
        self.elapsed += other.elapsed;
        self.cycles.iter_mut().zip(other.cycles).for_each(|(cycles, more)| *cycles += more);
        self.batches.iter_mut().zip(other.batches).for_each(|(batches, more)| *batches += more);
        self.latency += other.latency;
        self.stages.add(&other.stages);
    }
}

/// What one stop of the loop cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopCost {
    /// `receive`, `run`, `commit`, `transmit`, `control`, `idle` or `measure`.
    pub name: &'static str,
    /// Cycles of the core's counter, all workers together.
    pub cycles: u64,
    /// Cycles a packet.
    pub cycles_per_packet: f64,
    /// Nanoseconds a packet.
    pub nanoseconds_per_packet: f64,
    /// Its share of all time.
    pub share: f64,
}

/// How long sent packets stayed in the gateway, in nanoseconds: from their arrival until their batch was
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// How many packets left.
    pub packets: u64,
    /// The shortest time.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl Measurement {
    /// What each stop cost, in the order of the loop.
    pub fn stops(&self) -> Vec<StopCost> {
        let elapsed = (self.elapsed as f64).max(1.0);
        let per_nanosecond = self.cycles_per_nanosecond();
        let packets = (self.packets as f64).max(1.0);
        STOPS
            .iter()
            .map(|&(stop, name)| {
                let cycles = self.cycles[stop as usize];
                let cycles_per_packet = cycles as f64 / packets;
                let nanoseconds_per_packet = cycles_per_packet / per_nanosecond;
                StopCost {
                    name,
                    cycles,
                    cycles_per_packet,
                    nanoseconds_per_packet,
                    share: cycles as f64 / elapsed,
                }
            })
            .collect()
    }

    /// What the stages of the program cost.
    pub fn program(&self) -> ProgramCosts {
        self.stages.costs(self.cycles_per_nanosecond())
    }

    fn cycles_per_nanosecond(&self) -> f64 {
        (self.elapsed as f64).max(1.0) / (self.seconds * 1e9 * self.workers as f64).max(1.0)
    }

    /// How many batches had 1 packet, 2 to 3, 4 to 7, … and 256, by the smallest size.
    pub fn batches(&self) -> Vec<(u64, u64)> {
        self.batches.iter().enumerate().map(|(size, &batches)| (1 << size, batches)).collect()
    }

    /// How long packets stayed.
    pub fn latency(&self) -> Latency {
        let at = |part| self.latency.value_at_quantile(part);
        Latency {
            packets: self.latency.len(),
            min: self.latency.min(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.latency.max(),
        }
    }
}

impl Serialize for Measurement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Batches {
            least: u64,
            batches: u64,
        }
        #[derive(Serialize)]
        struct Whole<'a> {
            workers: u64,
            seconds: f64,
            packets: u64,
            stops: Vec<StopCost>,
            program: ProgramCosts,
            #[serde(skip_serializing_if = "Option::is_none")]
            unmeasured: Option<&'a str>,
            batches: Vec<Batches>,
            latency: Latency,
        }
        Whole {
            workers: self.workers,
            seconds: self.seconds,
            packets: self.packets,
            stops: self.stops(),
            program: self.program(),
            unmeasured: self.unmeasured.as_deref(),
            batches: self.batches().into_iter().map(|(least, batches)| Batches { least, batches }).collect(),
            latency: self.latency(),
        }
        .serialize(serializer)
    }
}

fn histogram() -> Histogram<u64> {
    // The library accepts these bounds and digits, so this cannot fail.
    Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|error| unreachable!("{error}"))
}
