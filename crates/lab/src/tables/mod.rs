//! Tables apart from programs: lookups a second, building, changing and memory of each kind, beside the
//! libraries that a professional would have taken instead.
//!
//! Everything is measured on the same data: made from a seed, or read from files that are named. Before
//! anything is timed, all contenders answer all queries and must agree.

mod bench;
mod contest;
mod exact;
pub(crate) mod lpm;
mod packets;
pub(crate) mod patterns;
mod peer;
pub(crate) mod rules;

use crate::experiment::Row;
use crate::plan::{ComparedTable, LabPlan, Length};
use crate::traffic::LabError;
use bench::Bench;
pub(crate) use bench::stem;
use peer::Workshop;

/// The fewest runs of each figure, unless it is only to be seen that it works.
const RUNS: usize = 11;
/// The longest run, in seconds: many short ones in turn are steadier than few long ones.
const SECONDS: f64 = 0.05;

/// The rows of all tables of a plan, and in words which libraries took part.
///
/// # Errors
/// If a file cannot be read, or a library that is installed does not work.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let wanted = &plan.tables;
    let workshop = Workshop::new().map_err(LabError::Tables)?;
    let (runs, seconds) = (runs(plan), seconds(plan));
    let mut bench = Bench { workshop, peers: wanted.peers, quick: plan.quick, runs, seconds };
    let mut rows = Vec::new();
    let all = [ComparedTable::Lpm, ComparedTable::Rules, ComparedTable::Exact, ComparedTable::Patterns];
    for kind in all.iter().filter(|kind| wanted.kinds.is_empty() || wanted.kinds.contains(kind)) {
        let some = match kind {
            ComparedTable::Lpm => lpm::rows(&mut bench, &wanted.routes, progress),
            ComparedTable::Rules => rules::rows(&mut bench, &wanted.rules, progress),
            ComparedTable::Exact => exact::rows(&mut bench, progress),
            ComparedTable::Patterns => {
                patterns::rows(&mut bench, wanted.patterns.as_deref(), wanted.payload.as_deref(), progress)
            }
        };
        rows.extend(some.map_err(LabError::Tables)?);
    }
    let roll = if wanted.peers { bench.workshop.roll() } else { "no peers".to_owned() };
    Ok((rows, roll))
}

/// How many runs each figure is the median of.
pub(crate) fn runs(plan: &LabPlan) -> usize {
    if plan.quick { plan.runs } else { plan.runs.max(RUNS) }
}

/// How long a run is, in seconds.
pub(crate) fn seconds(plan: &LabPlan) -> f64 {
    match plan.length {
        Length::Seconds(seconds) => seconds.min(SECONDS),
        // So many repeats of packets say nothing of tables; this is the shortest run.
        Length::Repeat(_) => 0.0,
    }
}
