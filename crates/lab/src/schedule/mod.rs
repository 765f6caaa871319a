//! `lab schedule`: the schedules by which packets are held for a device, on the devices that there are and in
//! simulated time, at equal loads; and bursts on a kernel that keeps running beside launches.
//!
//! What is measured goes through the engine's own hold and its own program on a device; every verdict is held
//! against the interpreter's, and a wrong one takes all figures of its schedule on that device away. What is
//! simulated goes through the same device queue in virtual time, over costs that were measured just before.

pub(crate) mod burst;
mod calibrate;
mod carrier;
mod due;
mod live;
mod page;
mod policies;
mod processors;
mod rows;
mod simulate;
mod used;
mod waiting;

pub(crate) use page::section;

use crate::crossover::cases::{CASES, Contents};
use crate::device_run::{Wall, find};
use crate::device_workload::DeviceWorkload;
use crate::experiment::Row;
use crate::load_result::LoadResult;
use crate::plan::{DeviceChoice, LabPlan, Length};
use crate::traffic::LabError;
use crate::transfer::OVER;
use carrier::{Carrier, Lane, Load};
use due::Pattern;
use gpu::{Setup, SlotMemory, Submission, WARP};
use live::{Refusal, Station};
use packet::BATCH;
use policies::Named;
use rows::{DONE, MPPS, Missed};
use simulate::Simulated;
use std::time::{Duration, Instant};
pub use used::Used;

/// The programs that are run, and what rows call them: one does little with a packet, a router's look-up over
/// a whole table, and one does much, a firewall that tries its rules one by one.
const PROGRAMS: [(&str, &str); 2] = [("lpm", "lpm"), ("firewall_rules (one by one)", "rules")];
/// Loads, as parts of what the fixed batch carries at saturation.
const LOADS: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
/// With `--quick`.
const QUICK_LOADS: [f64; 2] = [0.25, 0.5];
/// Loads at which packets come evenly spaced as well.
const EVEN_LOADS: [f64; 2] = [0.5, 0.9];
/// The load of what is wanted.
const HALF: f64 = 0.5;
/// A load lasts so many times as long as the plan says, and each size of a single batch such a part of it.
const LOAD_TIME: f64 = 7.0;
const SINGLE_TIME: f64 = 0.5;
/// What is wanted is measured so many times as often as the plan says, for shorter than other loads: a
/// machine that takes a loop off its processor now and then spoils some of many short rounds, where it would
/// spoil all of a few long ones.
const WANTED_OFTEN: usize = 17;
const WANTED_TIME: f64 = 1.0;
/// For so many programs on devices there is time in full.
const IN_FULL: f64 = 1.5;
/// After this time the experiment begins nothing further.
const LONGEST: Duration = Duration::from_secs(235);

/// What is measured.
pub struct ScheduleBench<'a> {
    /// Devices.
    pub used: &'a [Used<'a>],
    /// Only programs that are called so; all if there is none.
    pub only: &'a [&'a str],
    /// After this nothing further is begun, if it is said.
    pub until: Option<Instant>,
}

impl ScheduleBench<'_> {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Runs it on all devices that there are, or on the one that is asked for; the text is how everything is run.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let choices = match plan.device {
        DeviceChoice::Best => vec![DeviceChoice::Host, DeviceChoice::OpenCl, DeviceChoice::Cuda],
        one => vec![one],
    };
    let (mut sites, mut rows) = (Vec::new(), Vec::new());
    for choice in choices {
        match find(choice) {
            Ok(device_source) => sites.push((choice, device_source)),
            Err(error) if plan.device == DeviceChoice::Best => {
                rows.push(Row::absent(choice.name(), DONE, &error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    let mut used = Vec::new();
    for (choice, device_source) in &sites {
        let device_source = device_source.as_ref();
        let one = |name: String, submission: Submission, most: usize| Used {
            name,
            device_source,
            setup: Setup { memory: SlotMemory::Mapped, submission, timed: false },
            most,
            wanted: *choice == DeviceChoice::Host,
        };
        used.push(one(choice.name().to_owned(), launched(*choice), BATCH));
        if *choice != DeviceChoice::Host {
            used.push(one(format!("{} persistent", choice.name()), Submission::Persistent, WARP));
        }
    }
    let longest = Instant::now() + LONGEST;
    let until = Some(plan.until.map_or(longest, |until| until.min(longest)));
    let bench = ScheduleBench { used: &used, only: &[], until };
    let (more, mode, left_out) = measure(&bench, plan, progress)?;
    rows.extend(more);
    rows.extend(left_out.iter().map(|what| Row::absent(what, DONE, OVER)));
    Ok((rows, mode))
}

/// How launches follow each other where a gateway runs them.
fn launched(choice: DeviceChoice) -> Submission {
    match choice {
        DeviceChoice::Cuda => Submission::Streams(2),
        _ => Submission::Queued,
    }
}

/// Runs it: the rows, how everything is run, and what was left out since the time was over.
///
/// # Errors
/// Data cannot be read. A device that fails or is wrong is a row without a figure.
pub fn measure(
    bench: &ScheduleBench<'_>,
    plan: &LabPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String, Vec<String>), LabError> {
    progress("schedule: making tables");
    let (contents, clock) = (Contents::new(plan)?, Wall::default());
    let (mut rows, mut left_out, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let wanted = |name: &str| bench.only.is_empty() || bench.only.contains(&name);
    let programs: Vec<_> = PROGRAMS.into_iter().filter(|(_, name)| wanted(name)).collect();
    let time = IN_FULL / (programs.len() * bench.used.len()).max(1) as f64;
    let mut of_bursts = Vec::new();
    for (number, (case, program)) in programs.into_iter().enumerate() {
        progress(&format!("schedule: {program}, the interpreter"));
        let case = CASES.iter().find(|known| known.name == case);
        let case = case.ok_or_else(|| LabError::Program(format!("there is no {program}")))?;
        let mut workload = case.workload(&contents).map_err(LabError::Program)?;
        // They are short, and nothing else is left out for them.
        let bursts = bench.used.iter().filter(|used| used.setup.submission == Submission::Persistent);
        for used in bursts.filter(|_| number == 0) {
            progress(&format!("schedule: {}, bursts", used.name));
            let often = burst::Often { runs: plan.runs, length: plan.length, until: bench.until };
            let name = used.name.split(' ').next().unwrap_or_default();
            let (bursts, left) = burst::rows(used.device_source, &clock, name, &mut workload, often);
            of_bursts.extend(bursts);
            left_out.extend(left);
        }
        for used in bench.used {
            let name = format!("{} {program}", used.name);
            if bench.is_over() {
                left_out.push(name);
                continue;
            }
            let mut told = Progress { progress: &mut *progress, left_out: &mut left_out, lines: &mut lines };
            match Measured::of(bench, plan, time.min(1.0), used, &name, &mut workload, &mut told) {
                Ok(measured) => rows.extend(measured.rows()),
                Err(Refusal::Absent(why)) => rows.push(Row::absent(&name, DONE, &why)),
                Err(Refusal::Failed(why)) => rows.push(Row::refused(&name, DONE, MPPS, &why)),
            }
            processors::together();
        }
    }
    rows.extend(of_bursts);
    let devices: Vec<String> =
        bench.used.iter().map(|used| format!("{}: {}", used.name, used.device_source.name())).collect();
    let mode = format!(
        "lpm, and rules one by one, over {}, 64 bytes (60 in memory); packets lie in memory and fall due by the clock; one thread takes, hands over and commits them, on a \
         processor of its own, as a worker of a gateway with `cores` does; delays are from when a packet was due until it is in the account; every verdict is held against the \
         interpreter's; a load is a part of what the fixed batch carries at saturation on the same device; simulated: the same arrivals and the \
         same code that decides, over costs measured before; {}; {}",
        contents.line(),
        devices.join("; "),
        lines.join("; "),
    );
    Ok((rows, mode, left_out))
}

/// What hears of what is being done, of what is left out, and of what names mean.
struct Progress<'a> {
    progress: &'a mut dyn FnMut(&str),
    left_out: &'a mut Vec<String>,
    lines: &'a mut Vec<String>,
}

/// All about one device.
struct Measured {
    device: String,
    calibrated: calibrate::Calibrated,
    lanes: Vec<(Named, Option<String>)>,
    loads: Vec<Load>,
    /// What came by round of Hermes and of the fixed batch, at half load and at saturation; none where the
    /// time was over, or one of them failed.
    beside: [Option<Vec<[LoadResult; 2]>>; 2],
}

impl Measured {
    fn of(
        bench: &ScheduleBench<'_>,
        plan: &LabPlan,
        part: f64,
        used: &Used<'_>,
        name: &str,
        workload: &mut DeviceWorkload,
        told: &mut Progress<'_>,
    ) -> Result<Measured, Refusal> {
        let time = match plan.length {
            Length::Seconds(seconds) => Duration::from_secs_f64(seconds),
            Length::Repeat(repeat) => Duration::from_millis(repeat.max(1)),
        };
        (told.progress)(&format!("schedule: {name}, single batches"));
        let batch = policies::batch(used);
        let mut stations = vec![Station::open(used, workload, policies::depth(used, batch.schedule))?];
        let calibrated = calibrate::calibrate(used, &mut stations[0], workload, time.mul_f64(SINGLE_TIME))
            .map_err(Refusal::Failed)?;
        if used.most > WARP {
            let depth = policies::depth(used, policies::hermes().schedule);
            stations.push(Station::open(used, workload, depth)?);
        }
        let mut lanes = Vec::new();
        for named in policies::all(used, calibrated.full) {
            let depth = policies::depth(used, named.schedule);
            let is_wide = depth == policies::depth(used, batch.schedule);
            let station = if is_wide { 0 } else { stations.len() - 1 };
            let device_queue = stations[station].hold(named.schedule).map_err(Refusal::Failed)?;
            let simulated = Simulated::new(calibrated.model, depth, named.schedule);
            if !named.line.is_empty() {
                told.lines.push(format!("{name}: {}", named.line));
            }
            lanes.push(Lane { named, station, depth, device_queue, simulated, failed: None });
        }
        let mut loads = Vec::new();
        let short = time.mul_f64(LOAD_TIME * part);
        let mut carrier = Carrier::new(used, workload, stations, lanes, plan.runs.max(1), short);
        (told.progress)(&format!("schedule: {name}, saturation"));
        let saturated = carrier.saturation();
        // What the device carried before says it where the fixed batch has failed since.
        let capacity = saturated.cells[0].figure(|carried| carried.rate());
        let capacity = capacity.map_or(calibrated.rate, |rate| rate.median);
        loads.push(saturated);
        let runs = plan.runs.max(1);
        let (rounds, time) =
            if used.wanted { (WANTED_OFTEN * runs, time.mul_f64(WANTED_TIME)) } else { (runs, short) };
        let beside = [Some(HALF * capacity), None].map(|rate| {
            (told.progress)(&format!("schedule: {name}, hermes beside {}", batch.name));
            if bench.is_over() { None } else { carrier.beside(rate, rounds, time) }
        });
        let parts: &[f64] = if plan.quick { &QUICK_LOADS } else { &LOADS };
        let even = parts.iter().filter(|part| EVEN_LOADS.contains(part) && !plan.quick);
        let patterns = parts.iter().map(|part| (*part, Pattern::Poisson));
        for (part, pattern) in patterns.chain(even.map(|part| (*part, Pattern::Even))) {
            let case = format!("{}, load {part:.2} of {:.3} Mpps", pattern.name(), capacity / 1e6);
            if bench.is_over() {
                told.left_out.push(format!("{name}, {case}"));
                continue;
            }
            (told.progress)(&format!("schedule: {name}, {case}"));
            loads.push(carrier.load(case, part, pattern, capacity));
        }
        Ok(Measured { device: name.to_owned(), calibrated, lanes: carrier.end(), loads, beside })
    }

    fn rows(&self) -> Vec<Row> {
        let device = &self.device;
        let mut rows = rows::model(device, &self.calibrated);
        for load in &self.loads {
            for ((named, failed), cell) in self.lanes.iter().zip(&load.cells) {
                let case = format!("{device}, {}, {}", load.case, named.name);
                rows.extend(match (failed, load.part) {
                    (Some(why), _) => vec![Row::refused(&case, DONE, MPPS, why)],
                    (None, None) => cell.rates(&case, self.calibrated.fitted && *named == self.lanes[0].0),
                    (None, Some(_)) => cell.rows(&case),
                });
            }
        }
        rows.extend(rows::beside(device, &self.lanes[0].0.name, self.beside()));
        rows
    }

    /// What came of Hermes, which is the last schedule, and of the first, which is the fixed batch; or why
    /// there is nothing.
    fn beside(&self) -> [Result<&[[LoadResult; 2]], Missed>; 2] {
        let mut ends = [self.lanes.last(), self.lanes.first()].into_iter().flatten();
        let failed = ends
            .find_map(|(named, failed)| failed.as_ref().map(|why| format!("{} failed: {why}", named.name)));
        self.beside.each_ref().map(|rounds| match (&failed, rounds) {
            (Some(why), _) => Err(Missed::Failed(why.clone())),
            (None, None) => Err(Missed::Over),
            (None, Some(rounds)) => Ok(&rounds[..]),
        })
    }
}
