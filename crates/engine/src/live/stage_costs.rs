//! Measures what the stages of the program cost: decides which batches are measured, and makes the report.
//!
//! The program has a second variant that measures its stages (see [`exec::StageClock`]). A measurement runs
//! its first packets in this variant, so that it has results under light load, too. After that it runs one
//! packet in eight, so that it costs little under heavy load.

use super::generation::Generation;
use crate::places::place;
use exec::stages::sites;
use exec::{Measured, Outputs, StageClock};
use ir::Program;
use ir::source::Sources;
use packet::Batch;
use ports::live::cycles;
use serde::Serialize;
use std::sync::Arc;

/// The number of packets at the beginning of a measurement that are all measured.
const FIRST: u64 = 2048;
/// After that, one packet in so many is measured.
const ONE_IN: u64 = 8;

/// A worker's part of measuring the stages of a program.
pub(super) struct Sampling {
    /// The generation of the program.
    generation: u64,
    clock: StageClock,
    /// The second variant of the program, if the worker does not have it yet.
    measured: Option<Measured>,
}

impl Sampling {
    pub(super) fn new(generation: u64, program: &Program, measured: Option<Measured>) -> Sampling {
        Sampling { generation, clock: StageClock::new(program, cycles), measured }
    }

    /// Gives the running program its second variant, if it lacks it.
    pub(super) fn start(&mut self, generation: &mut Generation) {
        if let (Some(measured), Some(inspect)) = (self.measured.take(), generation.backend.inspect()) {
            inspect.adopt(measured);
        }
    }

    /// Runs a batch through the second variant, if it is this batch's turn after `packets` packets. Returns
    /// the cycles that measuring took.
    pub(super) fn run(
        &mut self,
        packets: u64,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> Option<u64> {
        let (taken, spent) = (self.clock.packets(), self.clock.spent());
        let wanted = taken < FIRST || taken * ONE_IN <= packets;
        if !wanted || generation.number != self.generation {
            return None;
        }
        let run = generation.backend.inspect()?.run_measured(&mut self.clock, memory, batch, outputs);
        run.then(|| self.clock.spent() - spent)
    }

    pub(super) fn end(self) -> StageCosts {
        StageCosts { generation: self.generation, clock: self.clock, told: None }
    }
}

/// What the stages of a program cost.
#[derive(Clone, Debug)]
pub(super) struct StageCosts {
    generation: u64,
    clock: StageClock,
    told: Option<(Arc<Program>, Arc<Sources>)>,
}

impl StageCosts {
    /// Adds the costs at another worker.
    pub(super) fn add(&mut self, other: &StageCosts) {
        if self.generation == other.generation {
            self.clock.add(&other.clock);
        }
    }

    /// Sets the program to which these costs belong.
    pub(super) fn tell_of(&mut self, generation: u64, program: Arc<Program>, sources: Arc<Sources>) {
        if self.generation == generation {
            self.told = Some((program, sources));
        }
    }

    /// The costs in the form of the report.
    pub(super) fn costs(&self, cycles_per_nanosecond: f64) -> ProgramCosts {
        let whole = self.clock.costs().iter().map(|cost| cost.cycles).sum::<u64>().max(1) as f64;
        let packets = self.clock.packets().max(1) as f64;
        let sites = self.told.iter().flat_map(|(program, sources)| {
            sites(program).into_iter().map(|site| (site.span.map(|span| place(sources, span)), site))
        });
        let stages = sites.zip(self.clock.costs()).map(|((place, site), cost)| {
            let cycles_per_packet = cost.cycles as f64 / packets;
            MeasuredStage {
                kind: match (&site.name, site.handler) {
                    (None, _) => "between",
                    (_, true) => "handler",
                    _ => "stage",
                },
                name: site.name.unwrap_or_default(),
                place: place.unwrap_or_default(),
                entered: cost.entered,
                cycles: cost.cycles,
                cycles_per_packet,
                nanoseconds_per_packet: cycles_per_packet / cycles_per_nanosecond,
                share: cost.cycles as f64 / whole,
                p50: cost.quantile(0.5),
                p99: cost.quantile(0.99),
            }
        });
        ProgramCosts {
            generation: self.generation,
            packets: self.clock.packets(),
            measuring_cycles: self.clock.spent(),
            stages: stages.collect(),
        }
    }
}

/// The costs of a program, by stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramCosts {
    /// The generation: how many programs had taken over, this one included.
    pub generation: u64,
    /// The number of measured packets.
    pub packets: u64,
    /// Cycles that measuring took and that are in no stage.
    pub measuring_cycles: u64,
    /// The work between packets, then stages and decoders, then handlers, each in the order of the program.
    pub stages: Vec<MeasuredStage>,
}

/// What one stage cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredStage {
    /// `between` packets, a `stage` or decoder, or a `handler` of events or of the clock.
    pub kind: &'static str,
    /// Its name; empty for the work between packets.
    pub name: String,
    /// Its file and line.
    pub place: String,
    /// How often it began.
    pub entered: u64,
    /// Cycles of the core's counter, all workers together.
    pub cycles: u64,
    /// Cycles for each measured packet.
    pub cycles_per_packet: f64,
    /// Nanoseconds for each measured packet.
    pub nanoseconds_per_packet: f64,
    /// Its share of the program.
    pub share: f64,
    /// The median of the cycles of a visit, with an error of at most an eighth.
    pub p50: u64,
    /// 99 % of them.
    pub p99: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Loaded;
    use exec::{BackendKind, load_measurable};
    use lang::pipeline::{CompileOptions, compile};

    /// Runs so many batches of 64 packets, and gives which of them were measured.
    fn taken(back_end: BackendKind, batches: u64) -> Vec<u64> {
        let compiled = compile("p.rav", "start stage all() { flood }", &|_| None, &CompileOptions::default());
        let program = Arc::new(compiled.program.expect("right"));
        let backend = load_measurable(&program, back_end, 2, 0).expect("loads");
        let loaded = Loaded {
            program: program.clone(),
            sources: Arc::new(compiled.sources),
            backends: vec![backend],
            schedule: None,
            steering: Vec::new(),
        };
        let mut generation = loaded.generations(2, 4).remove(0);
        let draft = generation.backend.inspect().and_then(|inspect| inspect.draft());
        let measured = draft.map(|draft| draft.compile().expect("compiles"));
        let mut sampling = Sampling::new(4, &program, measured);
        sampling.start(&mut generation);
        let (mut memory, mut batch) = (vec![0; 4096], Batch::new());
        (0..64).for_each(|_| {
            batch.push(0, 60, 60, 1, 5);
        });
        let mut outputs = Outputs::default();
        let runs = (0..batches).filter(|number| {
            let spent = sampling.run(number * 64, &mut generation, &mut memory, &mut batch, &mut outputs);
            spent.is_some()
        });
        let runs: Vec<u64> = runs.collect();
        generation.number = 5;
        let other = sampling.run(u64::MAX, &mut generation, &mut memory, &mut batch, &mut outputs);
        assert_eq!(other, None, "another program took over");
        let costs = sampling.end();
        assert_eq!(costs.clock.packets(), 64 * runs.len() as u64);
        runs
    }

    #[test]
    fn the_first_packets_are_measured_and_then_one_in_eight() {
        for back_end in [BackendKind::Native, BackendKind::Interpreter] {
            let runs = taken(back_end, 1000);
            let first = FIRST / 64;
            assert_eq!(runs[..first as usize], (0..first).collect::<Vec<_>>());
            assert_eq!(runs.len(), 125);
            assert_eq!(runs[first as usize..][..3], [first * 8, first * 8 + 8, first * 8 + 16]);
        }
    }
}
