//! The numbers of a device's model, from the device itself: single batches of several sizes, and some that follow each other.
//!
//! The idea: a batch alone takes `fixed + slope · packets` of a worker's largest share of it, from when it has been handed over until it can be committed.
//! Of the fixed part only as much keeps the worker busy as is seen when batches follow each other; the rest is on the way.

use super::Used;
use super::due::Due;
use super::live::Station;
use super::simulate::{Line, Model};
use crate::crossover::fit::{Fit, Form};
use crate::crossover::ground::Ground;
use crate::experiment::Figure;
use engine::hold::Schedule;
use gpu::placement::Policy;
use std::time::{Duration, Instant};

/// Sizes of single batches.
const SIZES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// At least so many batches of each size, and at most.
const REPEATS: (usize, usize) = (8, 400);

/// A model with how well it fits.
#[derive(Clone, Debug)]
pub(crate) struct Calibrated {
    /// The model.
    pub(crate) model: Model,
    /// The root of the mean square of the relative errors of a batch's time on the device.
    pub(crate) error: f64,
    /// Sizes with the middle nanoseconds that such a batch was on the device.
    pub(crate) away: Vec<(usize, f64)>,
    /// How long the largest batch takes alone, from when it is taken until it is committed.
    pub(crate) full: Duration,
}

/// Finds them, in about so much time for each size.
pub(crate) fn calibrate(
    used: &Used<'_>,
    station: &mut Station,
    ground: &mut Ground,
    time: Duration,
) -> Result<Calibrated, String> {
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= used.most).collect();
    let mut points: [Vec<(f64, f64)>; 4] = Default::default();
    let mut here = Vec::new();
    for size in &sizes {
        let mut hold = station.hold(fixed(*size))?;
        let mut runs: [Vec<f64>; 4] = Default::default();
        let begin = Instant::now();
        while runs[0].len() < REPEATS.0 || runs[0].len() < REPEATS.1 && begin.elapsed() < time {
            let parts = station.single(ground, &mut hold, *size)?;
            runs.iter_mut().zip(parts).for_each(|(runs, part)| runs.push(part));
        }
        for (points, runs) in points.iter_mut().zip(runs) {
            points.push((*size as f64, median(runs)));
        }
        let mut runs = Vec::new();
        let begin = Instant::now();
        while runs.len() < REPEATS.0 || runs.len() < REPEATS.1 && begin.elapsed() < time {
            let (packets, took) = station.here(ground, *size)?;
            if packets == *size {
                runs.push(took.as_nanos() as f64);
            }
        }
        here.push((*size as f64, median(runs)));
    }
    let full = points.iter().filter_map(|points| points.last()).map(|(_, time)| *time).sum::<f64>();
    let [take, begin, away, commit] = points;
    let workers = station.workers.max(1);
    // Where one worker has it all, a batch is not cut.
    let piece = if workers > 1 { gpu::WARP.min(used.most) } else { used.most };
    let share = |packets: f64| {
        let pieces = (packets / piece as f64).ceil();
        if pieces <= 1.0 { packets } else { (pieces / workers as f64).ceil() * piece as f64 }
    };
    let shares: Vec<(f64, f64)> = away.iter().map(|(size, time)| (share(*size), *time)).collect();
    let fit = Fit::of(Form::Sum, &shares).ok_or("too few sizes to fit anything to")?;
    let mut hold = station.hold(fixed(piece))?;
    let follow = station.carry(ground, &mut hold, Due::Always(4 * time.as_nanos() as u64))?;
    let apart = workers as f64 * piece as f64 * 1e9 / follow.rate().max(1.0);
    let busy = (apart - fit.slope * piece as f64).clamp(0.0, fit.fixed);
    let model = Model {
        workers,
        piece,
        service: Line { fixed: busy as u64, slope: (fit.slope * 1000.0) as u64 },
        way: (fit.fixed - busy) as u64,
        take: line(&take),
        begin: line(&begin),
        commit: line(&commit),
        here: line(&here),
    };
    let away = sizes.into_iter().zip(away).map(|(size, (_, time))| (size, time)).collect();
    Ok(Calibrated { model, error: fit.error, away, full: Duration::from_nanos(full as u64) })
}

fn fixed(packets: usize) -> Schedule {
    Policy::FixedBatch { packets }.into()
}

fn median(values: Vec<f64>) -> f64 {
    // Nothing takes no time at all, and a fit divides by times.
    Figure::of(values).map_or(1.0, |figure| figure.median.max(1.0))
}

/// A line through times of sizes.
fn line(points: &[(f64, f64)]) -> Line {
    let fit = Fit::of(Form::Sum, points);
    fit.map_or(Line::default(), |fit| Line { fixed: fit.fixed as u64, slope: (fit.slope * 1000.0) as u64 })
}
