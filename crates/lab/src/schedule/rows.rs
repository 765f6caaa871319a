//! From what was measured and simulated to rows: every schedule at every load, the model of the device, and
//! what was wanted.

use super::calibrate::Calibrated;
use super::simulate::Line;
use crate::experiment::{Better, Figure, Other, Row};
use crate::load_result::LoadResult;
use crate::transfer::OVER;

pub(super) const MPPS: &str = "Mpps";
pub(super) const MICROS: &str = "µs";
/// What a rate is called.
pub(super) const DONE: &str = "packets done";
/// What the middle delay is called.
pub(super) const MEDIAN: &str = "median delay";
/// What delays of 90, 99 and 99.9 % are called.
pub(super) const WITHIN: [(f64, &str); 3] =
    [(0.9, "90 % of delays below"), (0.99, "99 % of delays below"), (0.999, "99.9 % of delays below")];
/// What the spread is called.
pub(super) const SPREAD: &str = "interquartile range of delays";
/// What is simulated is called so where it stands beside what was measured.
pub(super) const SIMULATED: &str = "simulated";
/// What is simulated over a model that was fitted to the same is called so.
pub(super) const FITTED: &str = "simulated, to which the model is fitted";

/// What the ratio of each round is called.
pub(super) const BY_ROUND: &str = "the ratio round by round";

/// What came of a schedule under a load, by run.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) measured: Vec<LoadResult>,
    pub(super) simulated: Vec<LoadResult>,
}

impl Cell {
    fn row(
        &self,
        case: &str,
        what: &str,
        unit: &str,
        better: Better,
        value: &dyn Fn(&LoadResult) -> f64,
    ) -> Row {
        let other = Figure::of(self.simulated.iter().map(value)).map(|other| Other::of(SIMULATED, other));
        let ours = Figure::of(self.measured.iter().map(value));
        Row::alone(case, what, unit, ours, None).against(other, better)
    }

    /// What was carried, and by whom. Where the model is fitted to this very figure, no ratio is made of it.
    pub(super) fn rates(&self, case: &str, fitted: bool) -> Vec<Row> {
        let share = |carried: &LoadResult| 100.0 * carried.share();
        let share = Row { ratio: None, ..self.row(case, "given to the device", "%", Better::More, &share) };
        let mut done = self.row(case, DONE, MPPS, Better::More, &|carried| carried.rate() / 1e6);
        if fitted {
            done.ratio = None;
            done.other = done.other.map(|other| Other { name: FITTED.to_owned(), ..other });
        }
        vec![done, share]
    }

    /// The same with delays.
    pub(super) fn rows(&self, case: &str) -> Vec<Row> {
        let delay = |what: &str, value: &dyn Fn(&LoadResult) -> f64| {
            self.row(case, what, MICROS, Better::Less, &|carried| value(carried) * 1e6)
        };
        let mut rows = self.rates(case, false);
        rows.push(delay(MEDIAN, &|carried| carried.within(0.5)));
        rows.extend(WITHIN.map(|(share, what)| delay(what, &|carried| carried.within(share))));
        rows.push(delay(SPREAD, &LoadResult::spread));
        rows
    }

    /// A figure of what was measured.
    pub(super) fn figure(&self, value: impl Fn(&LoadResult) -> f64) -> Option<Figure> {
        Figure::of(self.measured.iter().map(value))
    }
}

fn exact(case: &str, what: &str, unit: &str, value: f64) -> Row {
    Row::alone(case, what, unit, Some(Figure::exactly(value)), None)
}

/// What the simulation takes a device and the loop for.
pub(super) fn model(device: &str, calibrated: &Calibrated) -> Vec<Row> {
    let case = format!("{device}, model");
    let model = &calibrated.model;
    let row = |what: &str, unit: &str, value: f64| exact(&case, what, unit, value);
    let mut rows = vec![
        row("workers", "workers", model.workers as f64),
        row("the most packets that a worker runs in one go", "packets", model.piece as f64),
        row("a batch's time on the device, off the line by", "%", 100.0 * calibrated.error),
        row("a worker beside another one", "% longer", (model.crowded - 1000) as f64 / 10.0),
        row("there and back while no worker is busy with it", MICROS, model.way as f64 / 1e3),
    ];
    let parts: [(&str, Line); 5] = [
        ("a worker", model.service),
        ("taking packets", model.take),
        ("handing over", model.begin),
        ("committing", model.commit),
        ("the processor itself", model.here),
    ];
    for (what, line) in parts {
        rows.push(row(&format!("{what}: each time"), MICROS, line.fixed as f64 / 1e3));
        rows.push(row(&format!("{what}: a packet"), "ns", line.slope as f64 / 1e3));
    }
    let own = ["putting packets into memory", "holding verdicts against the interpreter's", "keeping delays"];
    for (what, nanoseconds) in own.into_iter().zip(calibrated.laboratory) {
        rows.push(row(
            &format!("the laboratory's own work in the loop: {what}: a packet"),
            "ns",
            nanoseconds,
        ));
    }
    for (size, time) in &calibrated.away {
        rows.push(row(&format!("{size} packets alone on the device"), MICROS, time / 1e3));
    }
    rows
}

/// Why there is nothing of two schedules beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// One of them failed.
    Failed(String),
    /// There was no time.
    Over,
}

/// Hermes beside the fixed batch by round: 99 % of the delays at half load, and the rate at saturation. A
/// ratio of middle figures may be made by few rounds; so the ratio of each round has its range, too.
pub(super) fn beside(
    device: &str,
    batch: &str,
    [half, saturated]: [Result<&[[LoadResult; 2]], Missed>; 2],
) -> Vec<Row> {
    let case = format!("{device}, hermes beside {batch}");
    let late = "99 % of delays below at load 0.50; on threads of this machine a ratio of 2 is wanted";
    let rate = "packets done at saturation; on threads of this machine a ratio of 0.9 is wanted";
    let mut rows =
        pair(&case, late, batch, MICROS, Better::Less, half, &|carried| carried.within(0.99) * 1e6);
    rows.extend(pair(&case, rate, batch, MPPS, Better::More, saturated, &|carried| carried.rate() / 1e6));
    rows
}

/// A figure of two schedules, and how much better the first is by round; or why there is none.
fn pair(
    case: &str,
    what: &str,
    batch: &str,
    unit: &str,
    better: Better,
    rounds: Result<&[[LoadResult; 2]], Missed>,
    value: &dyn Fn(&LoadResult) -> f64,
) -> Vec<Row> {
    let rounds = match rounds {
        Ok(rounds) => rounds,
        Err(Missed::Failed(why)) => return vec![Row::refused(case, what, unit, &why)],
        Err(Missed::Over) => return vec![Row::absent(case, what, OVER)],
    };
    let figure = |place: usize| Figure::of(rounds.iter().map(|round| value(&round[place])));
    let other = figure(1).map(|figure| Other::of(batch, figure));
    let ratios = rounds.iter().map(|round| {
        let [hermes, fixed] = round.each_ref().map(|carried| value(carried).max(f64::MIN_POSITIVE));
        match better {
            Better::More => hermes / fixed,
            Better::Less => fixed / hermes,
        }
    });
    vec![
        Row::alone(case, what, unit, figure(0), None).against(other, better),
        Row::alone(case, &format!("{what}: {BY_ROUND}"), "times", Figure::of(ratios), None),
    ]
}
