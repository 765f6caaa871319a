//! `lab transfer`: the four iterations of the CMU study of a router on a GPU (2012), with its algorithms and
//! with ours, over batches of 8 to 65,536 packets of 64 bytes, beside one core and all cores; and the first
//! three with packets that come and go by sockets one at a time, as they did there.
//!
//! Ways take turns. Every verdict of every batch is held against the interpreter's, and one that is wrong
//! takes the figures of its way and batch away.

mod charts;
mod device;
pub(crate) mod functions;
mod host;
mod ladder;
mod naive;
mod original;
pub(crate) mod page;
mod rows;
mod sockets;
mod spans;
mod view;
mod ways;

use crate::device_run::{ChosenDevice, DeviceSource, LabClock, Wall};
use crate::experiment::Row;
use crate::plan::LabPlan;
use crate::traffic::LabError;
use device::{Loaded, Setting};
use exec::kernel::{Back, CopiedPart, KernelOptions};
use functions::{Function, FunctionData};
use gpu::{SlotMemory, study};
use host::Cores;
use ladder::Ladder;
use naive::Naive;
use original::{Of, Printed};
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
pub use view::{Pivot, pivots};
use ways::{Contender, in_turn};

/// Batches that are measured; the original measured all of them but the first.
pub(crate) const BATCHES: [usize; 12] = [8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536];
/// With `--quick`.
pub(crate) const QUICK_BATCHES: [usize; 3] = [8, 512, 4096];
/// Batches of the ladder, and with `--quick`.
const LADDER: [usize; 3] = [512, 8192, 65_536];
const QUICK_LADDER: [usize; 1] = [4096];
/// Prefixes of a whole Internet table, as the original wanted; and with `--quick`.
const ROUTES: [usize; 2] = [900_000, 2000];

/// Why a row of a plan with an end may have no figure.
pub(crate) const OVER: &str = "the time is over";

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

    /// Its kernel and tables.
    fn loaded(self, data: &FunctionData, naive: &Arc<Naive>) -> Result<Loaded, String> {
        match self {
            Algorithm::Original => Ok(Loaded::naive(naive)),
            _ => Loaded::program(&data.whole, false, &self.options()),
        }
    }

    fn options(self) -> KernelOptions {
        KernelOptions { linear_rules: self == Algorithm::Linear, ..KernelOptions::default() }
    }

    /// Its ways on the processor. Rules one by one are the original's there.
    fn processors<'a>(self, data: &FunctionData, naive: &Arc<Naive>) -> Vec<Contender<'a>> {
        let on = |cores| match self {
            Algorithm::Best => Cores::native(data, cores),
            _ => Ok(Cores::naive(data, naive, cores)),
        };
        match (self, cores()) {
            (Algorithm::Linear, _) => Vec::new(),
            (_, 1) => vec![Contender::new("one core", Some(Of::Host(4)), on(1))],
            (_, all) => vec![
                Contender::new("one core", Some(Of::Host(4)), on(1)),
                Contender::new(format!("all {all} cores"), None, on(all)),
            ],
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

/// The iterations of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// 4 KiB go over for every packet.
    Naive,
    /// The headers alone.
    Headers,
    /// From and to memory that the device reaches itself.
    Mapped,
    /// As the headers alone, of a batch that lies ready, and nothing is done with the verdicts.
    Ready,
}

impl Iteration {
    /// All, in order.
    pub(crate) const ALL: [Iteration; 4] =
        [Iteration::Naive, Iteration::Headers, Iteration::Mapped, Iteration::Ready];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Iteration::Naive => "1 naive",
            Iteration::Headers => "2 headers only",
            Iteration::Mapped => "3 mapped memory",
            Iteration::Ready => "4 no gather and send",
        }
    }

    /// It on a device, with its name.
    fn contender<'a>(
        self,
        loaded: &Loaded,
        device_source: &dyn DeviceSource,
        clock: &'a dyn LabClock,
        batch: usize,
    ) -> Contender<'a> {
        let number = 1 + Iteration::ALL.iter().position(|known| *known == self).unwrap_or(0);
        let way = loaded.on(device_source, clock, self.setting(), batch);
        Contender::new(self.name(), Some(Of::Device(number)), way)
    }

    /// What it is.
    pub(crate) fn setting(self) -> Setting {
        Setting {
            over: if self == Iteration::Naive { CopiedPart::Page } else { CopiedPart::Header },
            back: Back::Word,
            memory: if self == Iteration::Mapped { SlotMemory::Mapped } else { study::PAGEABLE },
            submission: study::SERIAL,
            depth: 1,
            ready: self == Iteration::Ready,
        }
    }
}

/// How many routes an experiment makes.
pub(crate) fn routes(plan: &LabPlan) -> usize {
    ROUTES[usize::from(plan.quick)]
}

/// The batches that are measured.
pub(crate) fn batches(plan: &LabPlan) -> &'static [usize] {
    if plan.quick { &QUICK_BATCHES } else { &BATCHES }
}

/// All cores of this machine.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs it; the text is how everything is run.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let device = ChosenDevice::find(plan.device)?;
    let clock = Wall::default();
    let mut rows = Vec::new();
    for function in Function::ALL {
        if plan.is_over() {
            let case = format!("{}, every algorithm, every way", function.name());
            rows.push(Row::absent(&case, rows::RATE, OVER));
            continue;
        }
        progress(&format!("transfer: {}", function.name()));
        let data = FunctionData::new(function, routes(plan)).map_err(LabError::Program)?;
        let naive = Arc::new(Naive::new(&data));
        for algorithm in Algorithm::of(function) {
            let case = format!("{}, {}", function.name(), algorithm.name());
            // The original's figures are those of rules, one by one.
            let compared = function == Function::Firewall && *algorithm == Algorithm::Original;
            let loaded = algorithm.loaded(&data, &naive).map_err(LabError::Program)?;
            let mut processors = algorithm.processors(&data, &naive);
            for &batch in batches(plan) {
                if plan.is_over() {
                    rows.push(Row::absent(&format!("{case}, every way, batch {batch}"), rows::RATE, OVER));
                    continue;
                }
                progress(&format!("transfer: {case}, {batch} packets at once"));
                let mut iterations: Vec<Contender> = Iteration::ALL
                    .iter()
                    .map(|iteration| iteration.contender(&loaded, &device, &clock, batch))
                    .collect();
                let mut sockets = match compared {
                    true => sockets::contenders(&data, &naive, &loaded, &device, &clock, batch),
                    false => Vec::new(),
                };
                let ways = processors.iter_mut().chain(&mut iterations).chain(&mut sockets);
                let mut ways: Vec<&mut Contender> = ways.collect();
                let came = in_turn(&data, &mut ways, batch, plan.runs, plan.length);
                for (way, came) in ways.iter().zip(&came) {
                    let paper = way.paper.filter(|_| compared);
                    let paper = paper.map_or_else(Printed::default, |paper| Printed::at(paper, batch));
                    rows.extend(rows::of(&format!("{case}, {}, batch {batch}", way.name), came, paper));
                }
            }
            // Our tables for prefixes, and rules one by one, have rates that they are to reach.
            let wanted = match (function, algorithm) {
                (Function::Lpm, Algorithm::Best) => 40.0,
                (Function::Firewall, Algorithm::Linear) => 15.0,
                _ => continue,
            };
            let bare = data.workload(true);
            let bare = Loaded::program(bare, true, &algorithm.options()).map_err(LabError::Program)?;
            let ladder =
                Ladder { plan, data: &data, loaded: &bare, device: &device, clock: &clock, case: &case };
            let batches: &[usize] = if plan.quick { &QUICK_LADDER } else { &LADDER };
            for &batch in batches {
                if plan.is_over() {
                    rows.push(Row::absent(
                        &format!("{case}, the ladder, every way, batch {batch}"),
                        rows::RATE,
                        OVER,
                    ));
                    continue;
                }
                progress(&format!("transfer: {case}, the ladder, {batch} packets at once"));
                rows.extend(ladder.rows(batch, wanted));
            }
        }
    }
    let mode = format!(
        "64 bytes (60 in memory), {} routes, 100 rules (TCP 75, UDP 14, ICMP 4, any 6, other 1 %), every verdict held against the interpreter's; \
         all of a batch is there at once, or comes by a UDP socket packet by packet (`sockets:`); device: {}; the original: its figures for 100 rules on a laptop of 2012",
        routes(plan),
        device.name()
    );
    Ok((rows, mode))
}
