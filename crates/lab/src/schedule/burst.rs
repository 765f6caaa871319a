//! Bursts of a few packets on a device whose kernel keeps running, beside the same device with a launch for
//! each: how long one takes alone, and how many packets a second when they follow each other.
//!
//! The packets lie in the slots already, so that what is measured is the way there and back. A device whose
//! slots hold fewer packets than a burst gets it as several, one behind the other; it is back when the last
//! of them is. Every verdict of every burst is held against the interpreter's.

use crate::device_run::{DeviceRun, DeviceSource, LabClock, ProgramCode};
use crate::device_workload::{DeviceWorkload, PORTS};
use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::SEED;
use crate::plan::Length;
use gpu::{DeviceError, Setup, SlotMemory, Submission, WARP};
use hdrhistogram::Histogram;
use offload::Offload;
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
struct Way<'a> {
    name: String,
    run: DeviceRun<Offload>,
    clock: &'a dyn LabClock,
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
    clock: &dyn LabClock,
    name: &str,
    workload: &mut DeviceWorkload,
    often: Often,
) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    let whole = format!("{name}, bursts");
    let refused = |case: &str, why: &str| Row::refused(case, ALONE, "µs", why);
    let mut kept = match Way::open(device_source, clock, workload, Submission::Persistent) {
        Ok(way) => Some(way),
        Err(error @ DeviceError::Missing { .. }) => {
            rows.push(Row::absent(&whole, ALONE, &error.to_string()));
            None
        }
        Err(error) => return (vec![refused(&whole, &error.to_string())], left_out),
    };
    let mut launched = Vec::new();
    for submission in device_source.submissions() {
        match Way::open(device_source, clock, workload, *submission) {
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
fn in_turn<'w, 'c: 'w>(
    ways: impl Iterator<Item = &'w mut Way<'c>>,
    workload: &mut DeviceWorkload,
    burst: usize,
    often: Often,
) -> Result<(), String> {
    let mut ways: Vec<&mut Way<'_>> = ways.collect();
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
fn beside(case: &str, kept: Option<&Way<'_>>, launched: &Way<'_>) -> Vec<Row> {
    let parts = [
        (format!("{ALONE}, the middle one"), "µs", 1e6, Better::Less),
        (format!("{ALONE}, 99 % below"), "µs", 1e6, Better::Less),
        (RATE.to_owned(), "Mpps", 1e-6, Better::More),
    ];
    let rows = parts.into_iter().enumerate().map(|(place, (what, unit, scale, better))| {
        let figure = |way: &Way<'_>| Figure::of(way.runs.iter().map(|run| run[place] * scale));
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

impl<'a> Way<'a> {
    /// A device with room for bursts of every size.
    fn open(
        device_source: &dyn DeviceSource,
        clock: &'a dyn LabClock,
        workload: &DeviceWorkload,
        submission: Submission,
    ) -> Result<Way<'a>, DeviceError> {
        let offload = Offload::new(&workload.program, PORTS, SEED, &workload.options);
        let offload = offload.map_err(|error| DeviceError::Table(error.to_string()))?;
        let largest = BURSTS[BURSTS.len() - 1];
        let most = if submission == Submission::Persistent { WARP } else { largest };
        let slots = UNDER_WAY * largest.div_ceil(most);
        let setup = Setup { memory: SlotMemory::Mapped, submission, timed: false };
        let code = ProgramCode { kernel: offload.kernel(), program: &workload.program };
        let device = device_source.open(&code, offload::geometry(code.kernel, most, slots), setup)?;
        let mut run = DeviceRun { kernel: offload, device: Some(device) };
        run.upload()?;
        Ok(Way { name: submission.to_string(), run, clock, most, runs: Vec::new() })
    }

    /// A run of both kinds.
    fn run(
        &mut self,
        workload: &mut DeviceWorkload,
        burst: usize,
        length: Length,
    ) -> Result<[f64; 3], String> {
        let failed = |error: DeviceError| error.to_string();
        self.fill(workload, burst).map_err(failed)?;
        let over = |time: Duration, bursts: u64| bursts >= UNDER_WAY as u64 && length.is_over(time, bursts);
        let mut delays =
            Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).map_err(|error| error.to_string())?;
        let begin = self.clock.now();
        let mut bursts = 0;
        while !over(self.clock.now() - begin, bursts) {
            let start = self.clock.now();
            self.submit(0, burst).map_err(failed)?;
            self.wait(0, burst).map_err(failed)?;
            delays.saturating_record((self.clock.now() - start).as_nanos() as u64);
            self.check(workload, 0, burst)?;
            bursts += 1;
        }
        let begin = self.clock.now();
        let (mut given, mut back) = (0_u64, 0_u64);
        let mut ends = false;
        while !ends || back < given {
            if !ends && given - back < UNDER_WAY as u64 {
                self.submit(given as usize % UNDER_WAY, burst).map_err(failed)?;
                given += 1;
                ends = over(self.clock.now() - begin, given);
                continue;
            }
            self.wait(back as usize % UNDER_WAY, burst).map_err(failed)?;
            self.check(workload, back as usize % UNDER_WAY, burst)?;
            back += 1;
        }
        let rate = (back as usize * burst) as f64 / (self.clock.now() - begin).as_secs_f64();
        let within = |share: f64| delays.value_at_quantile(share) as f64 / 1e9;
        Ok([within(0.5), within(0.99), rate])
    }

    /// The slots of a burst, each with the number of its first packet and with how many packets it has.
    fn slots(&self, place: usize, burst: usize) -> impl Iterator<Item = (usize, u64, usize)> + use<> {
        let (most, slots) = (self.most, burst.div_ceil(self.most));
        (0..slots).map(move |slot| {
            let before = slot * most;
            (place * slots + slot, (place * burst + before) as u64, most.min(burst - before))
        })
    }

    /// Puts packets into all slots.
    fn fill(&mut self, workload: &mut DeviceWorkload, burst: usize) -> Result<(), DeviceError> {
        let mut batch = Batch::new();
        for place in 0..UNDER_WAY {
            for (slot, number, packets) in self.slots(place, burst) {
                workload.fill(&mut batch, number, packets);
                self.run.fill(slot, packets)?.push(workload.packets.frames.memory(), &batch);
            }
        }
        Ok(())
    }

    fn submit(&mut self, place: usize, burst: usize) -> Result<(), DeviceError> {
        let mut slots = self.slots(place, burst);
        slots.try_for_each(|(slot, _, packets)| self.run.submit(slot, packets))
    }

    fn wait(&mut self, place: usize, burst: usize) -> Result<(), DeviceError> {
        let mut slots = self.slots(place, burst);
        slots.try_for_each(|(slot, ..)| self.run.poll(slot, true).map(|_| ()))
    }

    fn check(&mut self, workload: &DeviceWorkload, place: usize, burst: usize) -> Result<(), String> {
        for (slot, number, packets) in self.slots(place, burst) {
            let verdicts = &mut [Verdict::PENDING; BATCH][..packets];
            self.run.results(slot, packets).map_err(|error| error.to_string())?.verdicts(verdicts);
            workload.wrong(number, verdicts).map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}
