//! From runs to rows: rates, delays and where the time went.

use super::original::{self, Printed};
use super::spans::{Run, Spans};
use super::ways::Came;
use crate::experiment::{Better, Figure, Other, Row};
use std::time::Duration;

/// What rows are called.
pub(super) const RATE: &str = "packet rate";
pub(super) const LEGACY: &str = "the original's \"Gbps\", which are";
pub(super) const PROCESSING: &str = "processing time of a batch";
pub(super) const KERNEL: &str = "rate of the kernel alone";
/// Delays of packets: which share of them is below.
pub(super) const DELAYS: [(&str, f64); 4] =
    [("delay, least", 0.0), ("delay, median", 0.5), ("delay, 99 % below", 0.99), ("delay, most", 1.0)];
/// Delays where packets come one by one, the mean over batches.
pub(super) const FIRST: &str = "delay of the first packet of a batch";
pub(super) const LAST: &str = "delay of the last packet of a batch";
const SUM: &str = "sum of the parts";
const BESIDE: &str = "of the device's time, beside other parts";
/// Bits of a frame of 64 bytes, and with preamble and gap.
const FRAME_BITS: f64 = 512.0;
const WIRE_BITS: f64 = 672.0;

/// A part of the time with its name.
type Part = (&'static str, fn(&Spans) -> Duration);

/// All parts, in the order in which a batch passes them.
pub(super) const PARTS: [Part; 6] = [
    ("gather", |spans| spans.gather),
    ("copy in", |spans| spans.parts.copy_in),
    ("kernel", |spans| spans.parts.kernel),
    ("copy out", |spans| spans.parts.copy_out),
    ("driver", |spans| spans.driver),
    ("scatter", |spans| spans.scatter),
];

/// The rows of a way at a batch, beside what the original measured; with a wrong verdict, one that says so
/// and nothing else.
pub(super) fn of(case: &str, came: &Came, paper: Printed) -> Vec<Row> {
    let runs = match came {
        Came::Runs(runs) => runs,
        Came::Absent(why) => return vec![Row::absent(case, RATE, why)],
        Came::Refused(why) => return vec![Row::refused(case, RATE, "Mpps", why)],
    };
    let figure = |value: &dyn Fn(&Run) -> f64| figure_of(runs, value);
    let rate = |what: &str, unit: &str, factor: f64, paper: Option<f64>| {
        let ours = figure(&|run| run.mpps(run.spans.wall) * factor);
        Row::alone(case, what, unit, ours, paper)
    };
    let wire = figure(&|run| run.mpps(run.spans.wall) * WIRE_BITS / 1000.0);
    let bits = rate("bits of frames", "Gbit/s", FRAME_BITS / 1000.0, None);
    let mut rows = vec![
        rate(RATE, "Mpps", 1.0, paper.megabytes.map(original::packets)),
        Row { other: wire.map(|wire| Other::of("bits on the wire", wire)), ..bits },
        rate(LEGACY, "MB/s", 64.0, paper.megabytes),
        Row::alone(case, PROCESSING, "µs", figure(&|run| run.each(run.spans.processing)), None),
    ];
    rows.extend(kernel(case, runs));
    for (what, share) in DELAYS {
        let delay = |run: &Run| run.delays.value_at_quantile(share) as f64 / 1e3;
        rows.push(Row::alone(case, what, "µs", figure(&delay), None));
    }
    let ends = runs.iter().map(|run| run.spans.ends.map(|ends| ends.map(|end| run.each(end))));
    if let Some(ends) = ends.collect::<Option<Vec<[f64; 2]>>>() {
        for (end, what, paper) in [(0, FIRST, paper.first), (1, LAST, paper.last)] {
            let ours = Figure::of(ends.iter().map(|ends| five_digits(ends[end])));
            rows.push(Row::alone(case, what, "µs", ours, paper));
        }
    }
    rows.extend(parts(case, runs));
    rows
}

/// The figure of some runs, in five digits.
fn figure_of(runs: &[Run], value: &dyn Fn(&Run) -> f64) -> Option<Figure> {
    Figure::of(runs.iter().map(|run| five_digits(value(run))))
}

/// A number with five digits that count.
fn five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

/// Whether a row is told of steps of the ladder, too.
pub(super) fn is_of_ladder(what: &str) -> bool {
    what == KERNEL
        || what == PROCESSING
        || what == DELAYS[1].0
        || what.starts_with("part: ")
        || what == SUM
        || what == BESIDE
}

/// The row of the kernel's own rate, where a clock tells it.
pub(super) fn kernel(case: &str, runs: &[Run]) -> Option<Row> {
    let known = runs.iter().all(|run| !run.spans.kernel.is_zero());
    let ours = figure_of(runs, &|run| run.mpps(run.spans.kernel));
    known.then(|| Row::alone(case, KERNEL, "Mpps", ours, None))
}

/// The rows of where the time went.
pub(super) fn parts(case: &str, runs: &[Run]) -> Vec<Row> {
    let figure = |value: &dyn Fn(&Run) -> f64| figure_of(runs, value);
    let mut rows: Vec<Row> = PARTS
        .iter()
        .map(|(name, part)| {
            let ours = figure(&|run| run.each(part(&run.spans)));
            Row::alone(case, &format!("part: {name}"), "µs", ours, None)
        })
        .collect();
    let wall = figure(&|run| run.each(run.spans.wall)).map(|wall| Other::of("by the clock", wall));
    let sum = figure(&|run| run.each(run.spans.sum()));
    rows.push(Row::alone(case, SUM, "µs", sum, None).against(wall, Better::Less));
    if runs.iter().any(|run| !run.spans.beside.is_zero()) {
        rows.push(Row::alone(case, BESIDE, "µs", figure(&|run| run.each(run.spans.beside)), None));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_batches_have_rows_where_packets_come_one_by_one() {
        let rows = |ends: &[Option<[u64; 2]>]| {
            let run = |ends: &Option<[u64; 2]>| {
                let spans =
                    Spans { ends: ends.map(|ends| ends.map(Duration::from_micros)), ..Spans::default() };
                Run { spans, batches: 2, ..Run::new(8) }
            };
            let came = Came::Runs(ends.iter().map(run).collect());
            let rows = of("case", &came, Printed { first: Some(2773.0), ..Printed::default() });
            let ends = rows.into_iter().filter(|row| row.what == FIRST || row.what == LAST);
            ends.map(|row| (row.what, row.ours.map(|ours| ours.values), row.paper)).collect::<Vec<_>>()
        };
        assert!(rows(&[None, None]).is_empty());
        // A packet may leave within the tick of the clock in which it came.
        let first = (FIRST.to_owned(), Some(vec![3.0, 1.0]), Some(2773.0));
        let last = (LAST.to_owned(), Some(vec![0.0, 0.0]), None);
        assert_eq!(rows(&[Some([6, 0]), Some([2, 0])]), [first, last]);
    }
}
