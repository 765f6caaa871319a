//! Tables apart from programs: lookups a second, building, changing and memory of each kind, beside the
//! libraries that a professional would have taken instead.
//!
//! Everything is measured on the same data: made from a seed, or read from files that are named. Before
//! anything is timed, all contenders answer all queries and must agree.

mod contest;
mod exact;
pub(crate) mod lpm;
mod packets;
pub(crate) mod patterns;
mod peer;
pub(crate) mod rules;

use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::{LabPlan, Length};
use crate::traffic::LabError;
use contest::Contest;
use cpu_time::ThreadTime;
use peer::{Library, Peer, Workshop};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The seed of all data that is made.
const SEED: u64 = 1;
/// The fewest runs of each figure, unless it is only to be seen that it works.
const RUNS: usize = 11;
/// The longest run, in seconds: many short ones in turn are steadier than few long ones.
const SECONDS: f64 = 0.05;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedTable {
    /// Longest prefixes.
    Lpm,
    /// Rules in order.
    Rules,
    /// Exact keys.
    Exact,
    /// Patterns in payload.
    Patterns,
}

/// Which tables are measured, on what data and against what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TablesPlan {
    /// The kinds; all if none is named.
    pub kinds: Vec<ComparedTable>,
    /// Whether other libraries take part.
    pub peers: bool,
    /// Files of routes, each `prefix next-hop` a line, instead of tables that are made.
    pub routes: Vec<PathBuf>,
    /// ClassBench files `NAME.rules`, each with its `NAME.trace`, or directories of them, instead of rules
    /// that are made.
    pub rules: Vec<PathBuf>,
    /// A file of patterns, a pattern a line, instead of patterns that are made.
    pub patterns: Option<PathBuf>,
    /// A capture whose payload is searched, instead of payload that is made.
    pub payload: Option<PathBuf>,
}

/// What all tables are measured with.
struct Bench {
    workshop: Workshop,
    peers: bool,
    quick: bool,
    runs: usize,
    seconds: f64,
}

/// Something that was built once or several times.
struct Built<T> {
    what: T,
    seconds: Figure,
}

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

impl Bench {
    /// A contest of this length, whose one pass is `amount` units.
    fn contest<'a>(
        &self,
        case: &'a str,
        amount: f64,
        unit: &'a str,
        right: &'a [u32],
        goals: &'a [(&'a str, f64)],
    ) -> Contest<'a> {
        Contest { case, amount, unit, right, runs: self.runs, seconds: self.seconds, goals }
    }

    /// Starts a library on data, if libraries take part and it is there.
    fn peer(
        &mut self,
        library: Library,
        data: &Path,
        more: &[&str],
    ) -> Result<Option<Rc<RefCell<Peer>>>, String> {
        if self.peers { self.workshop.start(library, data, more) } else { Ok(None) }
    }

    /// Builds something as often as a quick build needs for a figure, and keeps the last one.
    fn build<T>(&self, mut build: impl FnMut() -> Result<T, String>) -> Result<Built<T>, String> {
        let mut seconds = Vec::new();
        loop {
            let start = ThreadTime::now();
            let what = build()?;
            seconds.push(start.elapsed().as_secs_f64());
            let whole: f64 = seconds.iter().sum();
            if seconds.len() >= self.runs.min(3) || whole > 10.0 {
                let figure = Figure::of(seconds).ok_or("nothing was built")?;
                return Ok(Built { what, seconds: figure });
            }
        }
    }
}

/// One figure of ours that is held against single figures of others, or stands alone.
fn held(
    case: &str,
    what: &str,
    unit: &str,
    ours: Figure,
    others: &[(String, f64)],
    better: Better,
) -> Vec<Row> {
    let row = || Row::alone(case, what, unit, Some(ours), None);
    if others.is_empty() {
        return vec![row()];
    }
    let against = |(name, value): &(String, f64)| {
        let figure = Figure { median: *value, low: *value, high: *value };
        row().against(Some(Other::of(name, figure)), better)
    };
    others.iter().map(against).collect()
}

/// The rows of building and of memory, ours against those of others.
fn cost(case: &str, seconds: Figure, bytes: u64, peers: &[(Library, &Rc<RefCell<Peer>>)]) -> Vec<Row> {
    let scaled = |figure: Figure, by: f64| Figure {
        median: figure.median * by,
        low: figure.low * by,
        high: figure.high * by,
    };
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let each = |value: &dyn Fn(&Peer) -> f64| -> Vec<(String, f64)> {
        peers.iter().map(|(library, peer)| (library.name().to_owned(), value(&peer.borrow()))).collect()
    };
    let builds = each(&|peer| peer.build * 1e3);
    let sizes = each(&|peer| mebibytes(peer.bytes));
    let mut rows = held(&format!("{case}, build"), "time", "ms", scaled(seconds, 1e3), &builds, Better::Less);
    let size = mebibytes(bytes);
    let size = Figure { median: size, low: size, high: size };
    rows.extend(held(&format!("{case}, memory"), "size", "MiB", size, &sizes, Better::Less));
    rows
}

/// A whole file, unpacked if it is packed with gzip.
fn contents(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let why = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(why)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).map_err(why)?;
    Ok(unpacked)
}

/// A file's name without its directories and all that follows the first dot.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Commas separate the parts of a case.
    name.split('.').next().unwrap_or_default().replace(',', "_")
}
