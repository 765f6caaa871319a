//! `lab crossover`: from which batch and load on a device is faster than one core, by program, and whether
//! the cost model finds the better of the two by itself.
//!
//! The places take turns. Every verdict of every batch is held against the interpreter's; a wrong one takes
//! the figures of its program away where it was found.

pub(crate) mod cases;
mod curves;
mod load;
mod place;
pub(crate) mod regression;
mod rows;

pub(crate) use curves::plots;

use crate::device_run::{DeviceSource, LabClock, Wall, find};
use crate::device_workload::DeviceWorkload;
use crate::experiment::Row;
use crate::load_result::LoadResult;
use crate::plan::{LabPlan, Length};
use crate::traffic::LabError;
use crate::transfer::OVER;
use cases::{CASES, Contents};
use exec::kernel::{Back, CopiedPart, KernelOptions};
use gpu::{Setup, SlotMemory, Submission};
use load::carry;
use offload::policy::{BatchingPolicy, ExecutionPlace, OffloadPolicy};
use place::{Places, Usage};
use rows::{Batches, Loads, Named};
use std::time::{Duration, Instant};

/// Batches that are measured.
const BATCHES: [usize; 8] = [8, 32, 128, 512, 2048, 8192, 16_384, 65_536];
/// With `--quick`.
const QUICK_BATCHES: [usize; 5] = [8, 64, 512, 2048, 4096];
/// Loads, as parts of what the faster place carries.
const LOADS: [f64; 7] = [0.02, 0.1, 0.3, 0.6, 0.8, 0.9, 1.2];
/// With `--quick`.
const QUICK_LOADS: [f64; 3] = [0.1, 0.6, 1.2];
/// A load lasts so many times as long as a figure of batches.
const LOAD_TIME: f64 = 2.0;
/// A batch whose rate is such a part of the highest one is large enough.
const ENOUGH: f64 = 0.95;

/// After this time the experiment begins nothing further.
const LONGEST: Duration = Duration::from_secs(270);

/// Where it is measured.
pub struct CrossoverBench<'a> {
    /// The device.
    pub device_source: &'a dyn DeviceSource,
    /// The clock.
    pub clock: &'a dyn LabClock,
    /// Only programs whose names hold one of these; all if there is none.
    pub only: &'a [String],
    /// After this time of the clock nothing further is begun, if there is one.
    pub until: Option<Duration>,
}

impl CrossoverBench<'_> {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| self.clock.now() >= until)
    }
}

/// Runs it on the best device there is, by the machine's clock; the text is how everything is run.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let device_source = find(plan.device)?;
    let clock = Wall::default();
    let given = plan.until.map(|end| end.saturating_duration_since(Instant::now()));
    let until = Some(given.map_or(LONGEST, |given| given.min(LONGEST)));
    let bench = CrossoverBench { device_source: device_source.as_ref(), clock: &clock, only: &[], until };
    let (mut rows, mode, left_out) = measure(&bench, plan, progress)?;
    rows.extend(left_out.iter().map(|what| Row::absent(what, rows::TIME, OVER)));
    Ok((rows, mode))
}

/// Runs it: the rows, how everything is run, and the programs that were left out since the time was over.
///
/// # Errors
/// Data cannot be read. A device that fails or is wrong is a row without a figure.
pub fn measure(
    bench: &CrossoverBench<'_>,
    plan: &LabPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String, Vec<String>), LabError> {
    progress("crossover: making tables");
    let contents = Contents::new(plan)?;
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    let wanted = |name: &str| bench.only.is_empty() || bench.only.iter().any(|part| name.contains(part));
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        if bench.is_over() {
            left_out.push(case.name.to_owned());
            continue;
        }
        progress(&format!("crossover: {}, the interpreter", case.name));
        let mut workload = case.workload(&contents).map_err(LabError::Program)?;
        rows.extend(program(bench, plan, &mut workload, progress, &mut left_out));
    }
    let mode = format!(
        "64 bytes (60 in memory) unless a program says otherwise, {}; packets in memory, programs that change them get copies, and copying \
         counts; one core runs the processor's packets and all that a device needs; the device does what the program's kernel can, the \
         processor the rest; every verdict is held against the interpreter's; device: {}",
        contents.line(),
        bench.device_source.name()
    );
    Ok((rows, mode, left_out))
}

/// All about one program.
fn program(
    bench: &CrossoverBench<'_>,
    plan: &LabPlan,
    workload: &mut DeviceWorkload,
    progress: &mut dyn FnMut(&str),
    left_out: &mut Vec<String>,
) -> Vec<Row> {
    let name = workload.name;
    let refused = |what: &str, unit: &str, why: String| vec![Row::refused(name, what, unit, &why)];
    let mut places = match Places::new(bench.device_source, bench.clock, workload) {
        Ok(places) => places,
        Err(why) => return refused(rows::TIME, rows::MICROS, why),
    };
    progress(&format!("crossover: {name}, by batch"));
    let batches = match by_batch(bench, plan, &mut places, left_out) {
        Ok(batches) => batches,
        Err(why) => return refused(rows::TIME, rows::MICROS, why),
    };
    let mut rows = batches.rows(name);
    progress(&format!("crossover: {name}, by load"));
    match by_load(bench, plan, &mut places, &batches, left_out) {
        Ok(loads) => rows.extend(loads.rows(name)),
        Err(why) => rows.extend(refused(rows::CARRIED, rows::MPPS, why)),
    }
    rows
}

/// Both places at every batch, the device as it is used best.
fn by_batch(
    bench: &CrossoverBench<'_>,
    plan: &LabPlan,
    places: &mut Places<'_>,
    left_out: &mut Vec<String>,
) -> Result<Batches, String> {
    let sizes: &[usize] = if plan.quick { &QUICK_BATCHES } else { &BATCHES };
    let trial = sizes[sizes.len() / 2];
    let (seconds, usage) = best_usage(bench.device_source, places, trial, plan.length)?;
    let usage = best_form(places, seconds, usage, trial, plan.length)?;
    let mut times = Vec::new();
    for &size in sizes {
        // Of fewer than two batches nothing could be said.
        if bench.is_over() && times.len() >= 2 {
            left_out.push(format!("{}, batches from {size} on", places.name()));
            break;
        }
        places.open(usage, size)?;
        let mut runs = [Vec::new(), Vec::new()];
        for round in 0..=plan.runs {
            for place in [ExecutionPlace::Host, ExecutionPlace::Device] {
                let seconds = places.repeat(place, size, plan.length)?;
                if round > 0 {
                    runs[place as usize].push(seconds);
                }
            }
        }
        times.push((size, runs));
    }
    let (finished, all) = places.finished();
    Ok(Batches { times, usage, finished: finished as f64 / all.max(1) as f64 })
}

/// The memory with which batches of a size are run fastest, one at once; and the way in which two follow each
/// other, if that is faster. With the seconds of a batch.
fn best_usage(
    device_source: &dyn DeviceSource,
    places: &mut Places<'_>,
    size: usize,
    length: Length,
) -> Result<(f64, Usage), String> {
    let options = places.options();
    let mut best: Option<(f64, Usage)> = None;
    let mut refused = "the device can lie in no memory".to_owned();
    let mut attempt =
        |memory: SlotMemory, submission: Submission, slots: usize, best: &mut Option<(f64, Usage)>| {
            let usage = Usage { options, setup: Setup { memory, submission, timed: false }, slots };
            if let Err(why) = places.open(usage, size) {
                refused = why;
                return Ok(());
            }
            let seconds = tried(places, size, length)?;
            if best.is_none_or(|(least, _)| seconds < least) {
                *best = Some((seconds, usage));
            }
            Ok::<(), String>(())
        };
    for memory in device_source.memories() {
        attempt(*memory, Submission::Queued, 1, &mut best)?;
    }
    if let Some((_, usage)) = best {
        for submission in device_source.submissions() {
            attempt(usage.setup.memory, *submission, 2, &mut best)?;
        }
    }
    best.ok_or(refused)
}

/// The same with the form in which packets travel fastest. Afterwards the program is loaded with it.
fn best_form(
    places: &mut Places<'_>,
    mut least: f64,
    mut usage: Usage,
    size: usize,
    length: Length,
) -> Result<Usage, String> {
    let mut loaded = usage.options;
    for (form, back) in
        [(CopiedPart::Packed, Back::Word), (CopiedPart::Packed, Back::Half), (CopiedPart::Header, Back::Half)]
    {
        let options = KernelOptions { over: form, back, ..usage.options };
        if !places.reload(options)? {
            continue;
        }
        loaded = options;
        // What the device refuses is left out.
        if places.open(Usage { options, ..usage }, size).is_err() {
            continue;
        }
        let seconds = tried(places, size, length)?;
        if seconds < least {
            (least, usage) = (seconds, Usage { options, ..usage });
        }
    }
    if loaded != usage.options && !places.reload(usage.options)? {
        return Err("a kernel that there was is not there any more".to_owned());
    }
    Ok(usage)
}

/// Seconds of a batch on the device, behind a few that warm up.
fn tried(places: &mut Places<'_>, size: usize, length: Length) -> Result<f64, String> {
    places.repeat(ExecutionPlace::Device, size, Length::Repeat(4))?;
    places.repeat(ExecutionPlace::Device, size, length)
}

/// Every policy at every load.
fn by_load(
    bench: &CrossoverBench<'_>,
    plan: &LabPlan,
    places: &mut Places<'_>,
    batches: &Batches,
    left_out: &mut Vec<String>,
) -> Result<Loads, String> {
    let rates = [ExecutionPlace::Host, ExecutionPlace::Device].map(|place| batches.rate(place));
    let highest = rates[0].max(rates[1]);
    let full = batches.enough(ExecutionPlace::Device, ENOUGH);
    let timeout = Duration::from_secs_f64(batches.seconds(ExecutionPlace::Device, full));
    places.open(batches.usage, full)?;
    let time = match plan.length {
        Length::Seconds(seconds) => Duration::from_secs_f64(seconds * LOAD_TIME),
        Length::Repeat(repeat) => timeout * (2 * repeat as u32).max(8),
    };
    let policy = |policy: BatchingPolicy| Some(OffloadPolicy::new(policy));
    let mut policies = [
        (Named::Host, None),
        (Named::Device, policy(BatchingPolicy::BatchOrTimeout { packets: full, timeout })),
        (Named::Model, policy(BatchingPolicy::CostModel { packets: full })),
    ];
    let parts: &[f64] = if plan.quick { &QUICK_LOADS } else { &LOADS };
    let mut loads = Vec::new();
    for part in parts {
        if bench.is_over() {
            left_out.push(format!("{}, loads from {part} of the highest rate on", places.name()));
            break;
        }
        let rate = part * highest;
        let mut runs: [Vec<LoadResult>; 3] = Default::default();
        for round in 0..=plan.runs {
            for (number, (_, policy)) in policies.iter_mut().enumerate() {
                let carried = carry(places, policy, rate, time)?;
                // The first round warms up, and lets the cost model learn.
                if round > 0 {
                    runs[number].push(carried);
                }
            }
        }
        loads.push((rate, runs));
    }
    Ok(Loads { loads, full, timeout })
}
