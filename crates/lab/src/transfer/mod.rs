//! `lab transfer`: the four iterations of the CMU study of a router on a GPU (2012), with its algorithms and with ours, over batches of 8 to
//! 65,536 packets of 64 bytes, beside one core.
//!
//! Ways take turns. Every verdict of every batch is held against the interpreter's, and one that is wrong takes the figures of its way
//! and batch away.

pub(crate) mod ground;
mod naive;
mod original;
mod rows;
pub(crate) mod ways;

use crate::experiment::Row;
use crate::plan::{Length, Plan};
use crate::traffic::LabError;
use exec::kernel::Options;
use gpu::Found;
use ground::{Function, Ground, PACKETS};
use naive::Naive;
use packet::Verdict;
use rows::Run;
use ways::{Delays, Iteration, Loaded, Spans, Way};

/// Batches that are measured.
pub(crate) const BATCHES: [usize; 8] = [8, 32, 128, 512, 2048, 8192, 16_384, 65_536];
/// With `--quick`.
pub(crate) const QUICK_BATCHES: [usize; 3] = [8, 512, 4096];
/// Prefixes of a whole Internet table, as the original wanted; and with `--quick`.
const ROUTES: [usize; 2] = [900_000, 2000];

/// Whose algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// The original's: a binary trie, rules one by one.
    Original,
    /// Our tables, rules one by one.
    Linear,
    /// Our tables.
    Best,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::Original => "the original's algorithms",
            Algorithm::Linear => "our linear rules",
            Algorithm::Best => "our tables",
        }
    }

    /// Those of a function.
    fn of(function: Function) -> &'static [Algorithm] {
        match function {
            Function::Lpm => &[Algorithm::Original, Algorithm::Best],
            _ => &[Algorithm::Original, Algorithm::Linear, Algorithm::Best],
        }
    }
}

/// How many routes an experiment makes.
pub(crate) fn routes(plan: &Plan) -> usize {
    ROUTES[usize::from(plan.quick)]
}

/// The batches that are measured.
pub(crate) fn batches(plan: &Plan) -> &'static [usize] {
    if plan.quick { &QUICK_BATCHES } else { &BATCHES }
}

/// The device that is measured: an accelerator if there is one.
///
/// # Errors
/// There is none.
pub(crate) fn device() -> Result<Found, LabError> {
    let devices = gpu::opencl_devices().map_err(|error| LabError::Device(error.to_string()))?;
    devices
        .into_iter()
        .next()
        .ok_or_else(|| LabError::Device("OpenCL has no device: see `clinfo`".to_owned()))
}

/// Empty delays.
pub(crate) fn delays() -> Delays {
    // Up to ten minutes in three digits: bounds that are always accepted.
    Delays::new_with_bounds(1, 600_000_000_000, 3).unwrap_or_else(|_| unreachable!("the bounds are in order"))
}

/// Runs it; the text is how everything is run.
pub(crate) fn rows(plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let device = device()?;
    let mut rows = Vec::new();
    for function in Function::ALL {
        progress(&format!("transfer: {}", function.name()));
        let mut ground = Ground::new(function, routes(plan)).map_err(LabError::Program)?;
        for algorithm in Algorithm::of(function) {
            for &batch in batches(plan) {
                let case = format!("{}, {}", function.name(), algorithm.name());
                progress(&format!("transfer: {case}, {batch} packets at once"));
                let ways = ways(&ground, *algorithm, &device, batch).map_err(LabError::Program)?;
                rows.extend(measured(plan, &mut ground, (&case, *algorithm), ways, batch));
            }
        }
    }
    let mode = format!(
        "64 bytes (60 in memory), {} routes, 100 rules (TCP 75, UDP 14, ICMP 4, any 6, other 1 %), every verdict held against the interpreter's; \
         all of a batch is there at once; device: {}; the original: its figures for 100 rules on a laptop of 2012",
        routes(plan),
        device.name
    );
    Ok((rows, mode))
}

/// A way with its name, and its iteration if it is one.
type Named = (&'static str, Option<Iteration>, Box<dyn Way>);

fn ways(ground: &Ground, algorithm: Algorithm, device: &Found, batch: usize) -> Result<Vec<Named>, String> {
    let mut ways: Vec<Named> = Vec::new();
    let loaded = match algorithm {
        Algorithm::Original => {
            let loaded = Loaded::naive(&Naive::new(ground));
            ways.push(("one core", None, Box::new(ways::twin(Naive::new(ground)))));
            loaded
        }
        Algorithm::Linear => Loaded::program(ground, &Options { linear_rules: true, ..Options::default() })?,
        Algorithm::Best => {
            ways.push(("one core", None, Box::new(ways::native(ground)?)));
            Loaded::program(ground, &Options::default())?
        }
    };
    for iteration in Iteration::ALL {
        ways.push((iteration.name(), Some(iteration), Box::new(loaded.on(device, iteration, batch)?)));
    }
    Ok(ways)
}

/// Runs a way over batch after batch until `length` is over.
pub(crate) fn run(
    way: &mut dyn Way,
    ground: &mut Ground,
    batch: usize,
    length: Length,
) -> Result<Run, String> {
    let mut run = Run { spans: Spans::default(), delays: delays(), batches: 0, batch };
    let mut found = vec![Verdict::PENDING; batch];
    let mut first = 0;
    loop {
        found.fill(Verdict::PENDING);
        let spans = way.run(&mut ground.frames, first, &mut found, &mut run.delays)?;
        if let Some(wrong) = ground.wrong(first, &found) {
            return Err(wrong);
        }
        run.spans.add(&spans);
        run.batches += 1;
        if !way.repeats() {
            first = (first + batch) % PACKETS;
        }
        let over = match length {
            Length::Seconds(seconds) => run.spans.wall.as_secs_f64() >= seconds,
            Length::Repeat(repeat) => run.batches >= repeat,
        };
        if over {
            return Ok(run);
        }
    }
}

fn measured(
    plan: &Plan,
    ground: &mut Ground,
    (case, algorithm): (&str, Algorithm),
    mut ways: Vec<Named>,
    batch: usize,
) -> Vec<Row> {
    let mut results: Vec<Result<Vec<Run>, String>> = ways.iter().map(|_| Ok(Vec::new())).collect();
    // One round more than wanted: the first one warms up.
    for round in 0..=plan.runs {
        for ((_, _, way), result) in ways.iter_mut().zip(&mut results) {
            let Ok(runs) = result else { continue };
            match run(way.as_mut(), ground, batch, plan.length) {
                Ok(run) if round > 0 => runs.push(run),
                Ok(_) => (),
                Err(why) => *result = Err(why),
            }
        }
    }
    // The original's figures are those of rules, one by one.
    let compared = ground.function == Function::Firewall && algorithm == Algorithm::Original;
    let mut rows = Vec::new();
    for ((name, iteration, _), result) in ways.iter().zip(results) {
        let number = iteration
            .map(|iteration| 1 + Iteration::ALL.iter().position(|known| *known == iteration).unwrap_or(0));
        let paper = if compared { original::megabytes(number, batch) } else { None };
        let case = format!("{case}, {name}, batch {batch}");
        match result {
            Ok(runs) => rows.extend(rows::of(&case, &runs, paper, iteration.is_some())),
            Err(why) => rows.push(Row::refused(&case, rows::RATE, "Mpps", &why)),
        }
    }
    rows
}
