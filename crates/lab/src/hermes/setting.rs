//! One system under one load: who runs what how often, and the figures of it.

use super::baseline::Baseline;
use super::hardware::Hardware;
use super::simulate::{Load, Outcome, simulate};
use super::source::Source;
use super::work::{Application, Work};
use crate::experiment::Figure;
use gpu::hermes::{Settings, SettingsError, WARP};

/// Warps that a core may run at once, as the publication varies them.
pub(crate) const WARPS: [u8; 4] = [8, 16, 24, 32];

/// Everything that is varied besides load and application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    /// The device.
    pub(crate) hardware: Hardware,
    /// The scheduler.
    pub(crate) scheduler: Settings,
    /// The other system.
    pub(crate) baseline: Baseline,
    /// Packets of a run.
    pub(crate) packets: usize,
    /// How much more comes in a burst than Hermes can take: 2 is twice as much.
    pub(crate) overload: f64,
    /// By what the instructions of the search for patterns are divided: 1 as they are in our kernel.
    pub(crate) lighter: u32,
}

/// An application's packets.
pub(crate) struct Traffic {
    pub(crate) application: Application,
    pub(crate) works: Vec<Work>,
}

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Hermes,
    Serial,
    Overlapped,
}

/// Figures of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measures {
    /// Bits of frames a nanosecond.
    pub(crate) throughput: f64,
    /// Mean delay in microseconds.
    pub(crate) mean: f64,
    /// The range in which the middle half of all delays lies, in microseconds.
    pub(crate) spread: f64,
    /// The mean delay without a commit queue.
    pub(crate) unordered: f64,
    /// Half of all delays are at most this.
    pub(crate) median: f64,
    /// 99 of 100 are.
    pub(crate) most: f64,
    /// The most tasks in the commit queue.
    pub(crate) commits: f64,
}

impl Setting {
    /// That of the publication, where it says one.
    pub(crate) fn published(packets: usize) -> Setting {
        Setting {
            hardware: Hardware::published(),
            scheduler: Settings::default(),
            baseline: Baseline::published(),
            packets,
            overload: 2.0,
            lighter: 1,
        }
    }

    /// The same with something otherwise.
    ///
    /// # Errors
    /// There is no such thing, or not so much of it; the names, or the limit, are told.
    pub(crate) fn set(&mut self, name: &str, number: u32) -> Result<(), String> {
        let small = || {
            u16::try_from(number)
                .map_err(|_| format!("{name}: {number} is not possible; at most {}", u16::MAX))
        };
        match name {
            "cores" => {
                self.scheduler.cores = small()?;
                self.hardware.cores = small()?;
            }
            "registers" => self.hardware.registers = number,
            "shared" => self.hardware.shared = number,
            "channels" => self.hardware.channels = small()?.min(255) as u8,
            "bandwidth" => self.hardware.bandwidth = number,
            "latency" => self.hardware.latency = number.into(),
            "fifo" => self.scheduler.tasks = small()?,
            "queue" => self.scheduler.commits = small()?,
            "batch" => self.baseline.batch = number.max(1) as usize,
            "bus" => self.baseline.bus = number.max(1).into(),
            "packets" => self.packets = number.clamp(1, 10_000_000) as usize,
            _ => {
                return Err(format!(
                    "`{name}` is nothing of the simulated device; there are cores, registers, shared, channels, bandwidth, latency, fifo, queue, \
                     batch, bus and packets"
                ));
            }
        }
        self.scheduler.check().map_err(|error| error.to_string())
    }

    /// As many warps as the publication has at most and the kernel's registers allow.
    ///
    /// # Errors
    /// Not even the least of them; the limit is named.
    pub(crate) fn most_warps(&self, application: Application) -> Result<u8, SettingsError> {
        let most = WARPS.into_iter().rev().find(|warps| self.check(application, *warps).is_ok());
        most.map_or_else(|| self.check(application, WARPS[0]).map(|()| WARPS[0]), Ok)
    }

    /// Whether an application runs with so many warps on a core.
    ///
    /// # Errors
    /// It does not; the limit is named.
    pub(crate) fn check(&self, application: Application, warps: u8) -> Result<(), SettingsError> {
        self.hardware.check(warps, WARP, application.registers(), application.shared())
    }

    /// The same with other warps on other cores.
    pub(crate) fn with(mut self, warps: u8, cores: u16) -> Setting {
        self.scheduler.warps = warps;
        self.scheduler.cores = cores;
        self.hardware.cores = cores;
        self
    }

    /// One run.
    ///
    /// # Errors
    /// A setting that cannot be.
    pub(crate) fn run(
        &self,
        system: System,
        traffic: &Traffic,
        source: &Source<'_>,
        seed: u64,
    ) -> Result<Outcome, SettingsError> {
        let lengths = traffic.works.iter().cycle().map(|work| work.bytes).take(self.packets);
        let arrivals = source.times(lengths, seed);
        let mut works = traffic.works.clone();
        if traffic.application == Application::Dpi {
            works.iter_mut().for_each(|work| work.instructions /= self.lighter);
        }
        let load = Load { arrivals: &arrivals, works: &works };
        match system {
            System::Hermes => simulate(&self.hardware, &self.scheduler, load),
            System::Serial => Ok(self.baseline.run(&self.hardware, &self.scheduler, load)),
            System::Overlapped => {
                let baseline = Baseline { overlapped: true, ..self.baseline };
                Ok(baseline.run(&self.hardware, &self.scheduler, load))
            }
        }
    }

    /// The overlapped baseline with the batch and the wait that have the least mean delay here; words come back, not frames.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn tuned(&self, traffic: &Traffic, source: &Source<'_>) -> Result<Measures, SettingsError> {
        let baseline = Baseline { frames_back: false, ..self.baseline };
        let of = |baseline| {
            let outcome = Setting { baseline, ..*self }.run(System::Overlapped, traffic, source, 0)?;
            Ok(Measures::of(&outcome))
        };
        let mut best = of(baseline)?;
        for batch in [32, 64, 128, 256, 512, 1024, 2048, 4096] {
            for timeout in [20_000, 200_000, 1_000_000] {
                let one = of(Baseline { batch, timeout, ..baseline })?;
                best = if one.mean < best.mean { one } else { best };
            }
        }
        Ok(best)
    }

    /// The figures of a run for each of some seeds.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn measures(
        &self,
        system: System,
        traffic: &Traffic,
        source: &Source<'_>,
        seeds: usize,
    ) -> Result<Vec<Measures>, SettingsError> {
        (0..seeds as u64).map(|seed| Ok(Measures::of(&self.run(system, traffic, source, seed)?))).collect()
    }

    /// Bits of a line, those around frames too, that a system takes in a nanosecond where packets never fail to be there.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn capacity(&self, system: System, traffic: &Traffic) -> Result<f64, SettingsError> {
        let outcome = self.run(system, traffic, &Source::Constant(1e6), 0)?;
        let around = 8.0 * 20.0 * self.packets as f64;
        Ok((outcome.bits as f64 + around) / outcome.end as f64)
    }
}

impl Traffic {
    /// The packets of an application, against its tables.
    ///
    /// # Errors
    /// Its program or data cannot be made.
    pub(crate) fn new(application: Application) -> Result<Traffic, String> {
        let job = application.job()?;
        // With Ethernet's check sequence.
        let work = |(frame, turns): (&Vec<u8>, &_)| application.work(*turns, frame.len() as u32 + 4);
        Ok(Traffic { application, works: job.frames.iter().zip(&job.turns).map(work).collect() })
    }
}

impl Measures {
    fn of(outcome: &Outcome) -> Measures {
        let micros = |nanos: f64| nanos / 1000.0;
        let mean = |values: &[u64]| micros(values.iter().sum::<u64>() as f64 / values.len().max(1) as f64);
        let mut sorted = outcome.delays.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            sorted.get((sorted.len() as f64 * share) as usize).map_or(0.0, |delay| micros(*delay as f64))
        };
        Measures {
            throughput: outcome.bits as f64 / outcome.end.max(1) as f64,
            mean: mean(&outcome.delays),
            spread: at(0.75) - at(0.25),
            unordered: mean(&outcome.unordered),
            median: at(0.5),
            most: at(0.99),
            commits: outcome.statistics.map_or(0.0, |counted| f64::from(counted.commits_most)),
        }
    }
}

/// The figure of one measure over all seeds.
pub(crate) fn figure(measures: &[Measures], of: impl Fn(&Measures) -> f64) -> Option<Figure> {
    Figure::of(measures.iter().map(of))
}
