//! What a kernel that keeps running is worth on a device: a word on its way there and back, and small bursts
//! on it beside launches.

use crate::crossover::cases::{CASES, Contents};
use crate::device_run::{DeviceSource, LabClock};
use crate::experiment::{Figure, Row};
use crate::plan::LabPlan;
use crate::schedule::burst;
use crate::traffic::LabError;
use gpu::DeviceError;
use std::time::{Duration, Instant};

/// What the experiment is called.
pub(super) const NAME: &str = "persistent";
/// What rows of words are called.
pub(super) const WORD: &str = "a word in mapped memory";
/// Words of a run.
const WORDS: u32 = 10_000;
/// The same with `quick`.
const QUICK_WORDS: u32 = 100;
/// The programs that get bursts: one that looks a prefix up, and one that tries rules.
const PROGRAMS: [&str; 2] = ["lpm", "firewall_rules (trees)"];

/// The rows, how everything is run, and what was left out since the time was over.
///
/// # Errors
/// Tables cannot be made.
pub(super) fn rows(
    device_source: &dyn DeviceSource,
    clock: &dyn LabClock,
    plan: &LabPlan,
    until: Instant,
    progress: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String, Vec<String>), LabError> {
    progress("gpu: words to and fro");
    let mut rows = words(device_source, plan);
    let contents = Contents::new(plan)?;
    let often = burst::Often { runs: plan.runs, length: plan.length, until: Some(until) };
    let mut left_out = Vec::new();
    for case in CASES.iter().filter(|case| PROGRAMS.contains(&case.name)) {
        if Instant::now() >= until {
            left_out.push(format!("{}, bursts", case.name));
            continue;
        }
        progress(&format!("gpu: {}, bursts", case.name));
        let mut workload = case.workload(&contents).map_err(LabError::Program)?;
        let (own, later) = burst::rows(device_source, clock, case.name, &mut workload, often);
        rows.extend(own);
        left_out.extend(later);
    }
    let mode = format!(
        "words: one warp answers each word that the processor writes, with nothing launched in between; bursts: packets lie in the slots already, \
         one burst at a time for its delay, eight under way for the rate, every verdict held against the interpreter's; {}; device: {}",
        contents.line(),
        device_source.name()
    );
    Ok((rows, mode, left_out))
}

/// The time of a word, to the kernel and back.
fn words(device_source: &dyn DeviceSource, plan: &LabPlan) -> Vec<Row> {
    let count = if plan.quick { QUICK_WORDS } else { WORDS };
    let runs: Result<Vec<Vec<Duration>>, DeviceError> = (0..plan.runs.max(1))
        .map(|_| {
            let mut away = device_source.pings(count)?;
            away.sort();
            Ok(away)
        })
        .collect();
    let runs = match runs {
        Ok(runs) => runs,
        Err(error @ DeviceError::Missing { .. }) => {
            return vec![Row::absent(WORD, "there and back", &error.to_string())];
        }
        Err(error) => return vec![Row::refused(WORD, "there and back", "µs", &error.to_string())],
    };
    let parts = [("the quickest", 0.0), ("the middle one", 0.5), ("99 % below", 0.99)];
    let rows = parts.into_iter().map(|(what, part)| {
        let of = |run: &Vec<Duration>| run[((run.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
        Row::alone(WORD, &format!("there and back, {what}"), "µs", Figure::of(runs.iter().map(of)), None)
    });
    rows.collect()
}
