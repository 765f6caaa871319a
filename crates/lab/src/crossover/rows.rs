//! From times to rows: both places by batch, the formulas that fit, where the device becomes faster; and
//! policies by load.

use super::place::Usage;
use super::regression::{Form, Regression, crossing, crossing_of};
use crate::experiment::{Better, Figure, Other, Row};
use crate::load_result::LoadResult;
use offload::policy::ExecutionPlace;
use std::time::Duration;

/// What a time of a batch is called.
pub(super) const TIME: &str = "time of a batch";
/// What a rate under load is called.
pub(super) const CARRIED: &str = "packets done";
/// What the middle delay is called.
pub(super) const DELAY: &str = "median delay";
pub(super) const MICROS: &str = "µs";
pub(super) const MPPS: &str = "Mpps";
/// A policy that carries such a part of what the best one carries has the load in hand.
const CARRIES: f64 = 0.98;

/// Both places by batch.
pub(super) struct Batches {
    /// Sizes, each with the seconds of a batch on the processor and on the device, run by run.
    pub(super) times: Vec<(usize, [Vec<f64>; 2])>,
    /// How the device is used.
    pub(super) usage: Usage,
    /// The share of the packets which the device got that it finished.
    pub(super) finished: f64,
}

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Host,
    Device,
    Model,
}

impl Named {
    pub(super) const ALL: [Named; 3] = [Named::Host, Named::Device, Named::Model];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Named::Host => "processor only",
            Named::Device => "device only",
            Named::Model => "cost model",
        }
    }
}

/// Policies by load.
pub(super) struct Loads {
    /// Packets a second, each with what came of it by policy, run by run.
    pub(super) loads: Vec<(f64, [Vec<LoadResult>; 3])>,
    /// The most packets that go to the device at once.
    pub(super) full: usize,
    /// How long the device-only policy waits for them.
    pub(super) timeout: Duration,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Figure::of(values).map_or(0.0, |figure| figure.median)
}

impl Batches {
    /// Seconds of a batch of a size that was measured.
    pub(super) fn seconds(&self, place: ExecutionPlace, size: usize) -> f64 {
        let found = self.times.iter().find(|(known, _)| *known == size);
        found.map_or(0.0, |(_, runs)| median(runs[place as usize].iter().copied()))
    }

    fn packets_a_second(&self, place: ExecutionPlace, size: usize) -> f64 {
        size as f64 / self.seconds(place, size).max(1e-12)
    }

    /// The highest rate of all batches.
    pub(super) fn rate(&self, place: ExecutionPlace) -> f64 {
        self.times.iter().map(|(size, _)| self.packets_a_second(place, *size)).fold(0.0, f64::max)
    }

    /// The smallest batch that comes to such a part of the highest rate.
    pub(super) fn enough(&self, place: ExecutionPlace, part: f64) -> usize {
        let wanted = part * self.rate(place);
        let enough = self.times.iter().find(|(size, _)| self.packets_a_second(place, *size) >= wanted);
        enough.or(self.times.last()).map_or(1, |(size, _)| *size)
    }

    fn points(&self, place: ExecutionPlace) -> Vec<(f64, f64)> {
        self.times.iter().map(|(size, _)| (*size as f64, self.seconds(place, *size) * 1e6)).collect()
    }

    pub(super) fn rows(&self, name: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (size, runs) in &self.times {
            let case = format!("{name}, batch {size}");
            let of = |place: ExecutionPlace, value: &dyn Fn(f64) -> f64| {
                Figure::of(runs[place as usize].iter().map(|seconds| value(*seconds)))
            };
            let row = |what: &str, unit: &str, better, value: &dyn Fn(f64) -> f64| {
                let core = of(ExecutionPlace::Host, value).map(|figure| Other::of("one core", figure));
                Row::alone(&case, what, unit, of(ExecutionPlace::Device, value), None).against(core, better)
            };
            rows.push(row(TIME, MICROS, Better::Less, &|seconds| seconds * 1e6));
            rows.push(row("packet rate", MPPS, Better::More, &|seconds| *size as f64 / seconds / 1e6));
        }
        rows.extend(self.summary(name));
        rows
    }

    fn summary(&self, name: &str) -> Vec<Row> {
        let case = format!("{name}, crossover");
        let runs = self.times.first().map_or(0, |(_, runs)| runs[0].len());
        let of_run = |run: usize| -> Vec<_> {
            let times = self.times.iter().map(|(size, runs)| (*size as f64, runs[0][run], runs[1][run]));
            times.collect()
        };
        let at_best =
            |run: usize| of_run(run).iter().map(|(_, core, device)| core / device).fold(0.0, f64::max);
        let best = self.times.iter().max_by(|(one, _), (other, _)| {
            let gain = |size| {
                self.seconds(ExecutionPlace::Host, size)
                    / self.seconds(ExecutionPlace::Device, size).max(1e-12)
            };
            gain(*one).total_cmp(&gain(*other))
        });
        let medians: Vec<_> = self
            .times
            .iter()
            .map(|(size, _)| {
                (
                    *size as f64,
                    self.seconds(ExecutionPlace::Host, *size),
                    self.seconds(ExecutionPlace::Device, *size),
                )
            })
            .collect();
        let faster = medians.iter().rev().take_while(|(_, core, device)| device < core).last();
        let mut rows = Vec::new();
        let what = match (faster, best) {
            (Some((from, ..)), _) => {
                format!("the device is faster from batch {from} on ({})", self.usage.line())
            }
            (None, Some((size, _))) => {
                format!(
                    "the device is faster at no batch, and nearest to one core at {size} ({})",
                    self.usage.line()
                )
            }
            (None, None) => return rows,
        };
        let ratio = Figure::of((0..runs).map(at_best));
        rows.push(Row::alone(&case, &what, "× one core at best", ratio, None));
        let crossings = Figure::of((0..runs).filter_map(|run| crossing(&of_run(run))));
        if let (Some(_), Some(median), Some(range)) = (faster, crossing(&medians), crossings) {
            let (low, high) = (range.low.min(median), range.high.max(median));
            let figure = Some(Figure { median, low, high, ..range });
            rows.push(Row::alone(&case, "both take the same time at", "packets", figure, None));
        }
        rows.extend(self.fits(&case));
        let share = 100.0 * self.finished;
        let share = Figure::exactly(share);
        rows.push(Row::alone(&case, "finished of what the device got", "%", Some(share), None));
        rows
    }

    fn fits(&self, case: &str) -> Vec<Row> {
        let points = self.points(ExecutionPlace::Device);
        let alone = |what: &str, unit: &str, value: f64| {
            let figure = Figure::exactly(value);
            Row::alone(case, what, unit, Some(figure), None)
        };
        let (Some(sum), Some(max)) = (Regression::of(Form::Sum, &points), Regression::of(Form::Max, &points))
        else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let better = if max.error < sum.error { Form::Max } else { Form::Sum };
        for fit in [sum, max] {
            let form = if fit.form == Form::Sum { "T0 + B · slope" } else { "max(T0, B · slope)" };
            let fits = if fit.form == better { "fits better" } else { "fits worse" };
            rows.push(alone(&format!("T = {form} {fits}: off by"), "%", 100.0 * fit.error));
            rows.push(alone(&format!("T = {form}: T0"), MICROS, fit.fixed));
            rows.push(alone(&format!("T = {form}: slope"), "ns a packet", 1e3 * fit.slope));
        }
        let core = Regression::better(&self.points(ExecutionPlace::Host));
        let device = if better == Form::Max { max } else { sum };
        let most = points.last().map_or(1.0, |point| point.0);
        if let Some(packets) = core.and_then(|core| crossing_of(&core, &device, most)) {
            rows.push(alone("by the formulas, both take the same time at", "packets", packets));
        }
        rows
    }
}

impl Loads {
    pub(super) fn rows(&self, name: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut off = [0.0_f64; 2];
        for (rate, runs) in &self.loads {
            let case = |named: Named| format!("{name}, load {:.3} Mpps, {}", rate / 1e6, named.name());
            let of = |named: Named, value: &dyn Fn(&LoadResult) -> f64| {
                Figure::of(runs[named as usize].iter().map(value))
            };
            let middle =
                |named, value: &dyn Fn(&LoadResult) -> f64| of(named, value).map_or(0.0, |one| one.median);
            let done = |carried: &LoadResult| carried.rate() / 1e6;
            let delay = |carried: &LoadResult| carried.within(0.5) * 1e6;
            let alone = [Named::Host, Named::Device];
            let most = alone.map(|named| middle(named, &done)).into_iter().fold(0.0, f64::max);
            let carriers = alone.map(|named| middle(named, &done) >= CARRIES * most);
            // Of two that carry the load, the one with the shorter delay is better; of one that does not,
            // delays mean nothing.
            let better = match carriers {
                [true, true] if middle(Named::Device, &delay) < middle(Named::Host, &delay) => Named::Device,
                [false, _] => Named::Device,
                _ => Named::Host,
            };
            let carried = most >= CARRIES * rate / 1e6;
            for named in Named::ALL {
                let held = |what: &str,
                            unit: &str,
                            order,
                            worst: Option<&mut f64>,
                            value: &dyn Fn(&LoadResult) -> f64| {
                    let ours = of(named, value);
                    if named != Named::Model {
                        return Row::alone(&case(named), what, unit, ours, None);
                    }
                    let other = of(better, value).map(|figure| Other::of(better.name(), figure));
                    let row = Row::alone(&case(named), what, unit, ours, None).against(other, order);
                    let by = (100.0 * (1.0 / row.ratio.unwrap_or(1.0) - 1.0)).max(0.0);
                    let Some(worst) = worst else { return row };
                    *worst = worst.max(by);
                    Row { what: format!("{what}, {by:.1} % off the better of the two"), ..row }
                };
                let [off_rate, off_delay] = &mut off;
                rows.push(held(CARRIED, MPPS, Better::More, Some(off_rate), &done));
                // Where nobody carries the load, a delay is as long as the load lasts.
                let off_delay = carried.then_some(off_delay);
                rows.push(held(DELAY, MICROS, Better::Less, off_delay, &delay));
                rows.push(held("99 % of delays below", MICROS, Better::Less, None, &|carried| {
                    carried.within(0.99) * 1e6
                }));
                let share = of(named, &|carried| 100.0 * carried.share());
                rows.push(Row::alone(&case(named), "given to the device", "%", share, None));
            }
        }
        if self.loads.is_empty() {
            return rows;
        }
        let alone = |what: String, value: f64| {
            let figure = Figure::exactly(value);
            Row::alone(&format!("{name}, all loads, cost model"), &what, "%", Some(figure), None)
        };
        let device = format!(
            "up to {} packets at once; device only: after {:.0} µs fewer",
            self.full,
            self.timeout.as_secs_f64() * 1e6
        );
        rows.push(alone(format!("packets done, off the better of the two at most ({device})"), off[0]));
        rows.push(alone(
            "median delay, off the better of the two at most, where the load is carried".to_owned(),
            off[1],
        ));
        rows
    }
}
