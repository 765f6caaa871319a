//! The numbers of a device's model, from the device itself: single batches of several sizes, and some that
//! follow each other.
//!
//! The idea: a batch that one worker runs in one go takes `fixed + slope · packets`, from when it has been
//! handed over until it can be committed. Larger ones are cut; with every further round of pieces they take
//! longer by what a worker takes from piece to piece. Where that is less than a piece alone, a part of the
//! fixed one is only on the way and keeps no worker busy; where it is more, workers are in each other's way,
//! as threads that share processors. Of a single worker, that gets all in one go, batches that follow each
//! other say the same.

use super::due::Due;
use super::live::Station;
use super::simulate::{Line, Model};
use super::used::Used;
use crate::crossover::regression::{Form, Regression};
use crate::device_workload::DeviceWorkload;
use crate::experiment::Figure;
use crate::load_result::LoadResult;
use offload::device_queue::Schedule;
use offload::policy::BatchingPolicy;
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
    /// Whether how long a worker is busy was found from batches that follow each other, so that their
    /// simulation says nothing new.
    pub(crate) fitted: bool,
    /// Nanoseconds a packet of the laboratory's own work in the loop: [`Station::laboratory`].
    pub(crate) laboratory: [f64; 3],
    /// Packets a second where the largest batches follow each other.
    pub(crate) rate: f64,
    /// How long the largest batch takes alone, from when it is taken until it is committed.
    pub(crate) full: Duration,
}

/// Times by size, as packets and the middle nanoseconds, and what follows of them.
#[derive(Clone, Debug, Default)]
struct Times {
    /// What a [`Single`](super::live::Single) consists of.
    parts: [Vec<(f64, f64)>; 4],
    /// The processor itself.
    here: Vec<(f64, f64)>,
}

/// Finds them, in about so much time for each size.
pub(crate) fn calibrate(
    used: &Used<'_>,
    station: &mut Station,
    workload: &mut DeviceWorkload,
    time: Duration,
) -> Result<Calibrated, String> {
    let mut times = Times::default();
    let mut carried = LoadResult::new()?;
    for size in SIZES.into_iter().filter(|size| *size <= used.most) {
        let mut device_queue = station.hold(fixed(size))?;
        let mut runs: [Vec<f64>; 4] = Default::default();
        let begin = Instant::now();
        while runs[0].len() < REPEATS.0 || runs[0].len() < REPEATS.1 && begin.elapsed() < time {
            let parts = station.single(workload, &mut device_queue, size, &mut carried)?;
            runs.iter_mut().zip(parts).for_each(|(runs, part)| runs.push(part));
        }
        for (points, runs) in times.parts.iter_mut().zip(runs) {
            points.push((size as f64, median(runs)));
        }
        let mut runs = Vec::new();
        let begin = Instant::now();
        while runs.len() < REPEATS.0 || runs.len() < REPEATS.1 && begin.elapsed() < time {
            let (packets, took) = station.here(workload, size)?;
            if packets == size {
                runs.push(took.as_nanos() as f64);
            }
        }
        times.here.push((size as f64, median(runs)));
    }
    let mut device_queue = station.hold(fixed(used.most))?;
    let follow = station.carry(workload, &mut device_queue, Due::Always(4 * time.as_nanos() as u64))?;
    let apart = used.most as f64 * 1e9 / follow.rate().max(1.0);
    let found = times.model(station.workers, piece(station.workers, used.most), apart);
    let laboratory = station.laboratory(workload)?;
    let found = found.map(|found| Calibrated { laboratory, ..found });
    found.ok_or_else(|| "too few sizes to fit anything to".to_owned())
}

/// The most packets that one of some workers runs in one go, of a device that gets so many together.
fn piece(workers: usize, most: usize) -> usize {
    // Where one worker has it all, a batch is not cut.
    if workers > 1 { gpu::WARP.min(most) } else { most }
}

impl Times {
    /// The model of so many workers that run so many packets in one go; the largest batches follow each other
    /// so many nanoseconds apart.
    fn model(&self, workers: usize, piece: usize, apart: f64) -> Option<Calibrated> {
        let [take, begin, away, commit] = &self.parts;
        let (whole, cut): (Vec<_>, Vec<_>) =
            away.iter().copied().partition(|(size, _)| *size <= piece as f64);
        let fit = Regression::of(Form::Sum, &whole)?;
        let [take, begin, commit, here] = [take, begin, commit, &self.here].map(|points| line(points));
        // From piece to piece of one worker.
        let rounds = |size: f64| (size / (piece * workers) as f64).ceil();
        let seen = match (cut.first(), cut.last()) {
            (Some((one, early)), Some((more, late))) if rounds(*more) > rounds(*one) => {
                Some((late - early) / (rounds(*more) - rounds(*one)))
            }
            _ => None,
        };
        let crowded = seen.map_or(1.0, |next| (next / fit.time(piece as f64)).max(1.0));
        let next = seen.unwrap_or(workers as f64 * apart);
        let busy = (next - fit.slope * piece as f64).clamp(0.0, fit.fixed);
        let model = Model {
            workers,
            piece,
            service: Line { fixed: busy as u64, slope: (fit.slope * 1000.0) as u64 },
            crowded: (crowded * 1000.0) as u64,
            way: (fit.fixed - busy) as u64,
            take,
            begin,
            commit,
            here,
        };
        let full = self.parts.iter().filter_map(|points| points.last()).map(|(_, time)| *time).sum::<f64>();
        let largest = away.last().map_or(0.0, |(size, _)| *size);
        let away = away.iter().map(|(size, time)| (*size as usize, *time)).collect();
        Some(Calibrated {
            model,
            error: fit.error,
            away,
            fitted: seen.is_none(),
            laboratory: [0.0; 3],
            rate: largest * 1e9 / apart.max(1.0),
            full: Duration::from_nanos(full as u64),
        })
    }
}

fn fixed(packets: usize) -> Schedule {
    BatchingPolicy::FixedBatch { packets }.into()
}

fn median(values: Vec<f64>) -> f64 {
    // Nothing takes no time at all, and a fit divides by times.
    Figure::of(values).map_or(1.0, |figure| figure.median.max(1.0))
}

/// A line through times of sizes.
fn line(points: &[(f64, f64)]) -> Line {
    let fit = Regression::of(Form::Sum, points);
    fit.map_or(Line::default(), |fit| Line { fixed: fit.fixed as u64, slope: (fit.slope * 1000.0) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What batches take over which a formula rules.
    fn times(away: impl Fn(f64) -> f64) -> Times {
        let of = |time: &dyn Fn(f64) -> f64| SIZES.map(|size| (size as f64, time(size as f64))).to_vec();
        Times {
            parts: [
                of(&|size| 100.0 + 20.0 * size),
                of(&|size| 900.0 + 40.0 * size),
                of(&away),
                of(&|size| 300.0 + 30.0 * size),
            ],
            here: of(&|size| 50.0 + 100.0 * size),
        }
    }

    fn near(found: u64, wanted: u64) {
        assert!(found.abs_diff(wanted) <= 1 + wanted / 1000, "{found} and not {wanted}");
    }

    /// A batch's time on two workers, of which each is busy for so long from piece to piece.
    fn cut(size: f64, next: f64) -> f64 {
        12_000.0 + 700.0 * size.min(32.0) + next * ((size / 64.0).ceil() - 1.0)
    }

    #[test]
    fn lines_are_those_that_rule_and_what_is_only_on_the_way_keeps_no_worker_busy() {
        // A piece of 32 takes 34,400 ns alone; a worker has the next one done 26,400 later.
        let several = times(|size| cut(size, 26_400.0)).model(2, piece(2, 256), 0.0).expect("nine sizes");
        // So it is with one worker, where batches of 256 are 183,200 ns apart and not 191,200.
        let one =
            times(|size| 12_000.0 + 700.0 * size).model(1, piece(1, 256), 183_200.0).expect("nine sizes");
        for (found, workers, piece) in [(several, 2, 32), (one, 1, 256)] {
            // Batches that follow each other were asked where there is one worker.
            assert_eq!(found.fitted, workers == 1);
            let Model { service, way, crowded, take, begin, commit, here, .. } = found.model;
            for (line, fixed, slope) in
                [(take, 100, 20), (begin, 900, 40), (commit, 300, 30), (here, 50, 100), (service, 4000, 700)]
            {
                near(line.fixed, fixed);
                near(line.slope, slope * 1000);
            }
            near(way, 8000);
            assert_eq!((crowded, found.model.piece, found.model.workers), (1000, piece, workers));
            assert!(found.error < 1e-6 && found.away.len() == SIZES.len());
            near(found.full.as_nanos() as u64, found.away[8].1 as u64 + 1300 + 90 * 256);
        }
    }

    #[test]
    fn workers_that_are_in_each_other_s_way_are_slower_side_by_side() {
        let found = times(|size| cut(size, 51_600.0)).model(2, 32, 0.0).expect("nine sizes").model;
        near(found.crowded, 1500);
        assert_eq!(found.way, 0);
        near(found.service.fixed, 12_000);
        // One worker is in nobody's way, and of several that get a piece at a time nothing is seen but what
        // the loop hands over.
        let one = times(|size| 12_000.0 + 700.0 * size).model(1, 256, 1e9).expect("nine sizes").model;
        let whole = Times {
            parts: times(|size| 12_000.0 + 700.0 * size).parts.map(|mut points| {
                points.retain(|(size, _)| *size <= 32.0);
                points
            }),
            ..times(|_| 1.0)
        };
        let many = whole.model(100, 32, 1e6).expect("six sizes").model;
        for model in [one, many] {
            assert_eq!((model.crowded, model.way), (1000, 0));
        }
    }
}
