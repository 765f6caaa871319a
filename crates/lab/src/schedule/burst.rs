//! Bursts of a few packets on a device whose kernel keeps running, beside the same device with a launch for
//! each: how long one takes alone, and how many packets a second when they follow each other.
//!
//! The packets lie in the slots already, so that what is measured is the way there and back. A device whose
//! slots hold fewer packets than a burst gets it as several, one behind the other; it is back when the last
//! of them is. Every verdict of every burst is held against the interpreter's.

use crate::crossover::DeviceSource;
use crate::crossover::workload::{PORTS, Workload};
use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::SEED;
use crate::plan::Length;
use exec::kernel::Kernel;
use gpu::{Device, DeviceError, Setup, SlotMemory, Submission, WARP};
use hdrhistogram::Histogram;
use offload::{Offload, Whole};
use offload::{geometry, renew};
use packet::{BATCH, Batch, Verdict};
use std::time::{Duration, Instant};

/// Packets of a burst.
const BURSTS: [usize; 4] = [16, 32, 64, 128];
/// So many bursts are under way where they follow each other.
const UNDER_WAY: usize = 8;
/// What a delay of a burst alone is called.
pub(crate) const ALONE: &str = "delay of a burst alone";
/// What the rate of bursts that follow each other is called.
pub(crate) const RATE: &str = "packet rate of bursts that follow each other";

/// How long each figure is measured, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Often {
    pub(crate) runs: usize,
    pub(crate) length: Length,
    /// After this nothing further is begun.
    pub(crate) until: Option<Instant>,
}

/// One way to run bursts.
struct Way {
    name: String,
    device: Box<dyn Device>,
    offload: Offload,
    /// The most packets of a slot.
    most: usize,
    /// By run: seconds that half of the bursts alone did not exceed, and 99 % of them; packets a second of
    /// those that follow each other.
    runs: Vec<[f64; 3]>,
}

/// Rows of all bursts on a device that is called `name` in them: a kernel that keeps running, beside each way
/// to launch one that the device has. With what was left out.
pub(crate) fn rows(
    device_source: &dyn DeviceSource,
    name: &str,
    workload: &mut Workload,
    often: Often,
) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    let whole = format!("{name}, bursts");
    let refused = |case: &str, why: &str| Row::refused(case, ALONE, "µs", why);
    let mut kept = match Way::open(device_source, workload, Submission::Persistent) {
        Ok(way) => Some(way),
        Err(error @ DeviceError::Missing { .. }) => {
            rows.push(Row::absent(&whole, ALONE, &error.to_string()));
            None
        }
        Err(error) => return (vec![refused(&whole, &error.to_string())], left_out),
    };
    let mut launched = Vec::new();
    for submission in device_source.submissions() {
        match Way::open(device_source, workload, *submission) {
            Ok(way) => launched.push(way),
            // What the device does not have is left out.
            Err(DeviceError::Missing { .. }) => {}
            Err(error) => return (vec![refused(&whole, &error.to_string())], left_out),
        }
    }
    for burst in BURSTS {
        let case = format!("{whole}, {burst} packets");
        if often.until.is_some_and(|until| Instant::now() >= until) {
            left_out.push(case);
            continue;
        }
        match in_turn(kept.iter_mut().chain(&mut launched), workload, burst, often) {
            Ok(()) => rows.extend(launched.iter().flat_map(|way| beside(&case, kept.as_ref(), way))),
            Err(why) => rows.push(refused(&case, &why)),
        }
    }
    (rows, left_out)
}

/// Runs bursts of a size in all ways in turn.
fn in_turn<'a>(
    ways: impl Iterator<Item = &'a mut Way>,
    workload: &mut Workload,
    burst: usize,
    often: Often,
) -> Result<(), String> {
    let mut ways: Vec<&mut Way> = ways.collect();
    ways.iter_mut().for_each(|way| way.runs.clear());
    for round in 0..=often.runs {
        for way in &mut ways {
            let run = way.run(workload, burst, often.length).map_err(|why| format!("{}: {why}", way.name))?;
            // The first round warms up.
            if round > 0 {
                way.runs.push(run);
            }
        }
    }
    Ok(())
}

/// The rows of a kernel that keeps running beside one way to launch it; where there is none, of the launches
/// alone.
fn beside(case: &str, kept: Option<&Way>, launched: &Way) -> Vec<Row> {
    let parts = [
        (format!("{ALONE}, the middle one"), "µs", 1e6, Better::Less),
        (format!("{ALONE}, 99 % below"), "µs", 1e6, Better::Less),
        (RATE.to_owned(), "Mpps", 1e-6, Better::More),
    ];
    let rows = parts.into_iter().enumerate().map(|(place, (what, unit, scale, better))| {
        let figure = |way: &Way| Figure::of(way.runs.iter().map(|run| run[place] * scale));
        let case = format!("{case}, {}", kept.unwrap_or(launched).name);
        match kept {
            None => Row::alone(&case, &what, unit, figure(launched), None),
            Some(kept) => {
                let other = figure(launched).map(|other| Other::of(&launched.name, other));
                Row::alone(&case, &what, unit, figure(kept), None).against(other, better)
            }
        }
    });
    rows.collect()
}

impl Way {
    /// A device with room for bursts of every size.
    fn open(
        device_source: &dyn DeviceSource,
        workload: &Workload,
        submission: Submission,
    ) -> Result<Way, DeviceError> {
        let offload = Offload::new(&workload.program, PORTS, SEED, &workload.options);
        let mut offload = offload.map_err(|error| DeviceError::Table(error.to_string()))?;
        let largest = BURSTS[BURSTS.len() - 1];
        let most = if submission == Submission::Persistent { WARP } else { largest };
        let slots = UNDER_WAY * largest.div_ceil(most);
        let setup = Setup { memory: SlotMemory::Mapped, submission, timed: false };
        let geometry = geometry(offload.kernel(), most, slots);
        let mut device = device_source.open(offload.kernel(), (&workload.program, PORTS), geometry, setup)?;
        renew(&mut offload, device.as_mut())?;
        Ok(Way { name: submission.to_string(), device, offload, most, runs: Vec::new() })
    }

    /// A run of both kinds.
    fn run(&mut self, workload: &mut Workload, burst: usize, length: Length) -> Result<[f64; 3], String> {
        self.fill(workload, burst)?;
        let failed = |error: DeviceError| error.to_string();
        let pieces = burst.div_ceil(self.most);
        let over = |time: Duration, bursts: u64| match length {
            Length::Seconds(seconds) => time.as_secs_f64() >= seconds && bursts >= UNDER_WAY as u64,
            Length::Repeat(repeat) => bursts >= repeat.max(UNDER_WAY as u64),
        };
        let mut delays =
            Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).map_err(|error| error.to_string())?;
        let begin = Instant::now();
        let mut bursts = 0;
        while !over(begin.elapsed(), bursts) {
            let start = Instant::now();
            self.submit(0, burst).map_err(failed)?;
            self.wait(0, pieces).map_err(failed)?;
            delays.saturating_record(start.elapsed().as_nanos() as u64);
            self.check(workload, 0, burst)?;
            bursts += 1;
        }
        let begin = Instant::now();
        let (mut given, mut back) = (0_u64, 0_u64);
        let mut ends = false;
        while !ends || back < given {
            if !ends && given - back < UNDER_WAY as u64 {
                self.submit(given as usize % UNDER_WAY, burst).map_err(failed)?;
                given += 1;
                ends = over(begin.elapsed(), given);
                continue;
            }
            self.wait(back as usize % UNDER_WAY, pieces).map_err(failed)?;
            self.check(workload, back as usize % UNDER_WAY, burst)?;
            back += 1;
        }
        let rate = (back as usize * burst) as f64 / begin.elapsed().as_secs_f64();
        let within = |share: f64| delays.value_at_quantile(share) as f64 / 1e9;
        Ok([within(0.5), within(0.99), rate])
    }

    /// The packets of a burst's parts: how many are before each, and how many it has.
    fn parts(&self, burst: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let most = self.most;
        (0..burst).step_by(most).map(move |before| (before, most.min(burst - before)))
    }

    /// The number of the first packet of a burst.
    fn first(place: usize, burst: usize) -> u64 {
        (place * burst) as u64
    }

    /// Puts packets into all slots.
    fn fill(&mut self, workload: &mut Workload, burst: usize) -> Result<(), String> {
        let mut batch = Batch::new();
        for place in 0..UNDER_WAY {
            for (piece, (before, packets)) in self.parts(burst).enumerate() {
                let slot = place * burst.div_ceil(self.most) + piece;
                workload.fill(&mut batch, Way::first(place, burst) + before as u64, packets.min(BATCH));
                let input = self.device.input(slot).map_err(|error| error.to_string())?;
                let whole = Whole { before: 0, packets };
                self.offload.gather(workload.bytes(), &batch, whole, input.bytes, input.columns);
            }
        }
        Ok(())
    }

    fn submit(&mut self, place: usize, burst: usize) -> Result<(), DeviceError> {
        for (piece, (_, packets)) in self.parts(burst).enumerate() {
            self.device.submit(place * burst.div_ceil(self.most) + piece, packets)?;
        }
        Ok(())
    }

    fn wait(&mut self, place: usize, pieces: usize) -> Result<(), DeviceError> {
        for piece in 0..pieces {
            self.device.poll(place * pieces + piece, true)?;
        }
        Ok(())
    }

    fn check(&mut self, workload: &Workload, place: usize, burst: usize) -> Result<(), String> {
        let kernel: &Kernel = self.offload.kernel();
        for (piece, (before, packets)) in self.parts(burst).enumerate() {
            let slot = place * burst.div_ceil(self.most) + piece;
            let output = self.device.output(slot).map_err(|error| error.to_string())?;
            let mut verdicts = [Verdict::PENDING; BATCH];
            for (packet, verdict) in verdicts[..packets].iter_mut().enumerate() {
                let result = kernel.plan.results.read(output.verdicts, packet);
                // What the processor is to run has no verdict, which is a wrong one here.
                *verdict = kernel.plan.results.verdict(result).unwrap_or(Verdict::PENDING);
            }
            let wrong = workload.wrong(Way::first(place, burst) + before as u64, &verdicts[..packets]);
            wrong.map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}
