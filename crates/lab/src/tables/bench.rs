//! What all tables are measured with: libraries beside ours, builds that are timed, and rows of cost.

use super::contest::{Contest, Entry};
use super::peer::{Library, Method, Peer, Workshop};
use crate::experiment::{Better, Figure, Other, Row};
use cpu_time::ThreadTime;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// The seed of all data that is made.
pub(super) const SEED: u64 = 1;

/// What all tables are measured with.
pub(super) struct Bench {
    pub(super) workshop: Workshop,
    pub(super) peers: bool,
    pub(super) quick: bool,
    pub(super) runs: usize,
    pub(super) seconds: f64,
}

/// Something that was built once or several times.
pub(super) struct Built<T> {
    pub(super) what: T,
    pub(super) seconds: Figure,
}

impl Bench {
    /// A contest of this length, whose one pass is `amount` units.
    pub(super) fn contest<'a>(
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
    pub(super) fn peer(
        &mut self,
        library: Library,
        data: &Path,
        more: &[&str],
    ) -> Result<Option<Rc<RefCell<Peer>>>, String> {
        if self.peers { self.workshop.start(library, data, more) } else { Ok(None) }
    }

    /// Enters all ways to ask a library into a contest over queries that a file holds.
    pub(super) fn enter(
        &self,
        peer: &Rc<RefCell<Peer>>,
        queries: &Path,
        entries: &mut Vec<Entry<'_>>,
    ) -> Result<(), String> {
        peer.borrow_mut().queries(queries)?;
        let methods = Method::all(peer, &self.workshop).into_iter();
        entries.extend(methods.map(|method| Entry::other(method.way(), method)));
        Ok(())
    }

    /// Builds something as often as a quick build needs for a figure, and keeps the last one.
    pub(super) fn build<T>(&self, mut build: impl FnMut() -> Result<T, String>) -> Result<Built<T>, String> {
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
pub(super) fn held(
    case: &str,
    what: &str,
    unit: &str,
    ours: Figure,
    others: &[(String, f64)],
    better: Better,
) -> Vec<Row> {
    let row = || Row::alone(case, what, unit, Some(ours.clone()), None);
    if others.is_empty() {
        return vec![row()];
    }
    let against = |(name, value): &(String, f64)| {
        let figure = Figure::exactly(*value);
        row().against(Some(Other::of(name, figure)), better)
    };
    others.iter().map(against).collect()
}

/// The rows of building and of memory, ours against those of libraries.
pub(super) fn cost(
    case: &str,
    seconds: Figure,
    bytes: u64,
    peers: &[(Library, &Rc<RefCell<Peer>>)],
) -> Vec<Row> {
    let cost = |(library, peer): &(Library, &Rc<RefCell<Peer>>)| {
        let peer = peer.borrow();
        (library.name().to_owned(), peer.build, peer.bytes)
    };
    cost_beside(case, seconds, bytes, &peers.iter().map(cost).collect::<Vec<_>>())
}

/// The same against others with their names, seconds and bytes.
pub(super) fn cost_beside(
    case: &str,
    seconds: Figure,
    bytes: u64,
    others: &[(String, f64, u64)],
) -> Vec<Row> {
    let scaled = |figure: Figure, by: f64| Figure {
        median: figure.median * by,
        low: figure.low * by,
        high: figure.high * by,
        values: figure.values.iter().map(|value| value * by).collect(),
        is_mean: figure.is_mean,
    };
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let builds: Vec<_> = others.iter().map(|(name, build, _)| (name.clone(), build * 1e3)).collect();
    let sizes: Vec<_> = others.iter().map(|(name, _, bytes)| (name.clone(), mebibytes(*bytes))).collect();
    let mut rows = held(&format!("{case}, build"), "time", "ms", scaled(seconds, 1e3), &builds, Better::Less);
    let size = mebibytes(bytes);
    let size = Figure::exactly(size);
    rows.extend(held(&format!("{case}, memory"), "size", "MiB", size, &sizes, Better::Less));
    rows
}

/// A whole file, unpacked if it is packed with gzip.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, String> {
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
