//! From runs to rows: rates, delays and where the time went.

use super::ways::{Delays, Spans};
use crate::experiment::{Better, Figure, Other, Row};
use std::time::Duration;

/// What a rate is called.
pub(super) const RATE: &str = "packet rate";
/// What the sum of the parts is called, which stands beside the time by the clock.
const SUM: &str = "sum of the parts";
/// What the device's clock said beyond the time that there was.
const BEYOND: &str = "cut from what the device's clock said";
/// Bits of a frame of 64 bytes, and with preamble and gap.
const FRAME_BITS: f64 = 512.0;
const WIRE_BITS: f64 = 672.0;

/// Some batches, one after the other.
pub(crate) struct Run {
    pub(crate) spans: Spans,
    pub(crate) delays: Delays,
    pub(crate) batches: u64,
    pub(crate) batch: usize,
}

impl Run {
    /// Millions of packets a second.
    pub(crate) fn mpps(&self) -> f64 {
        (self.batches * self.batch as u64) as f64 / self.spans.wall.as_secs_f64().max(1e-9) / 1e6
    }

    /// Microseconds of a batch.
    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.batches.max(1) as f64
    }
}

/// A part of the time with its name.
type Part = (&'static str, fn(&Spans) -> Duration);

/// The rows of a way at a batch. `paper` is the original's figure in millions of bytes a second.
pub(super) fn of(case: &str, runs: &[Run], paper: Option<f64>, device: bool) -> Vec<Row> {
    let figure = |value: &dyn Fn(&Run) -> f64| Figure::of(runs.iter().map(value));
    let rate = |what: &str, unit: &str, factor: f64, paper: Option<f64>| {
        Row::alone(case, what, unit, figure(&|run| run.mpps() * factor), paper)
    };
    let mut rows = vec![
        rate(RATE, "Mpps", 1.0, paper.map(|paper| paper / 64.0)),
        rate("bits of frames", "Gbit/s", FRAME_BITS / 1000.0, None),
        rate("bits on the wire", "Gbit/s", WIRE_BITS / 1000.0, None),
    ];
    if paper.is_some() {
        rows.push(rate("the original's \"Gbps\", which are", "MB/s", 64.0, paper));
    }
    let work = |run: &Run| run.each(run.spans.wall.saturating_sub(run.spans.gather + run.spans.scatter));
    rows.push(Row::alone(case, "processing time of a batch", "µs", figure(&work), None));
    let mut delays = super::delays();
    // All have the same bounds.
    runs.iter().for_each(|run| delays.add(&run.delays).unwrap_or(()));
    let of = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let [low, median, high] = [delays.min(), delays.value_at_quantile(0.5), delays.max()].map(of);
    let late = of(delays.value_at_quantile(0.99));
    let latency = Row::alone(case, "delay of a packet", "µs", Some(Figure { median, low, high }), None);
    let late = Figure { median: late, low: late, high: late };
    rows.push(Row { other: Some(Other::of("99 % below", late)), ..latency });
    let parts: [Part; 6] = [
        ("gather", |spans| spans.gather),
        ("copy in", |spans| spans.parts.copy_in),
        ("kernel", |spans| spans.parts.kernel),
        ("copy out", |spans| spans.parts.copy_out),
        ("driver", |spans| spans.driver),
        ("scatter", |spans| spans.scatter),
    ];
    for (name, part) in parts {
        if device || !matches!(name, "copy in" | "copy out" | "driver") {
            let what = format!("part: {name}");
            rows.push(Row::alone(case, &what, "µs", figure(&|run| run.each(part(&run.spans))), None));
        }
    }
    let wall = figure(&|run| run.each(run.spans.wall)).map(|wall| Other::of("by the clock", wall));
    let sum = figure(&|run| run.each(run.spans.sum()));
    rows.push(Row::alone(case, SUM, "µs", sum, None).against(wall, Better::Less));
    if device {
        rows.push(Row::alone(case, BEYOND, "µs", figure(&|run| run.each(run.spans.beyond)), None));
    }
    rows
}
