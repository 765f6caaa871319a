//! One system under one load: who runs what how often, and the figures of it.

use super::baseline::Baseline;
use super::hardware::{Hardware, MOST_BANDWIDTH, MOST_CHANNELS};
use super::simulate::{Load, Outcome, simulate};
use super::source::Source;
use super::work::{Application, Job, Turns, Work};
use crate::experiment::Figure;
use offload::hermes::{HermesSettings, Rate, SettingsError, WARP};
use packet::Frames;
use packet::frames::Frame;
use std::panic::resume_unwind;

/// Bytes of a segment of memory. A lane's sector takes one, and so do so many bytes of whole frames.
const SEGMENT: u32 = 128;
/// Seeds of every figure, and of those near saturation, where runs have very different delays.
pub(super) const SEEDS: usize = 3;
pub(super) const SEEDS_NEAR: usize = 8;
/// From this share of a capacity up to all of it, a system is near saturation.
pub(super) const NEAR: f64 = 0.8;
/// Runs near saturation have so many times as many packets: queues grow for long before they shrink again.
pub(super) const LONGER: usize = 4;
/// Warps that a core may run at once, as the publication varies them.
pub(crate) const WARPS: [u8; 4] = [8, 16, 24, 32];

/// What can be set by name: what it is, the least and the most of it.
pub(super) const NAMES: [(&str, &str, u32, u32); 18] = [
    ("cores", "cores", 1, 1024),
    ("registers", "registers of a core", 1, 1 << 24),
    ("shared", "bytes of shared memory of a core", 0, 1 << 24),
    ("channels", "channels of memory", 1, MOST_CHANNELS as u32),
    ("bandwidth", "bytes of memory a ns", 1, MOST_BANDWIDTH),
    ("latency", "ns of memory latency", 0, 1_000_000),
    ("fifo", "entries of the task FIFO", 1, 1 << 15),
    ("queue", "entries of the commit queue", 1, 1 << 15),
    ("flush", "quarters of a warp arrival time until a flush", 0, 4096),
    ("batch", "packets of a batch", 1, 1 << 20),
    ("wait", "µs that a batch waits at most", 0, 1_000_000),
    ("launch", "µs of a launch", 0, 1_000_000),
    ("bus", "bytes of the bus a ns", 1, 4096),
    ("transfer", "1 if frames take memory on their way in and out, 0 if not", 0, 1),
    ("packets", "packets of a run", 1, 10_000_000),
    ("overload", "percent of what Hermes takes that come in a burst", 101, 10_000),
    ("load", "percent of what Hermes takes that come from sources and captures", 1, 100),
    ("line", "Gb/s that come from sources and captures; 0 is as much as load says", 0, 100_000),
];

/// Everything that is varied besides load and application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    /// The device.
    pub(crate) hardware: Hardware,
    /// The scheduler.
    pub(crate) scheduler: HermesSettings,
    /// The other system.
    pub(crate) baseline: Baseline,
    /// Packets of a run.
    pub(crate) packets: usize,
    /// Whether Hermes' frames take memory on their way in and out. Those of the baselines take the bus.
    pub(crate) transfer: bool,
    /// How much more comes in a burst than Hermes can take: 2 is twice as much.
    pub(crate) overload: f64,
    /// Whether packets of a burst come evenly, and not at random.
    pub(crate) even: bool,
    /// Whether the last packets are waited behind, as if others could follow.
    pub(crate) waits_at_end: bool,
    /// Whether the scheduler is told how fast packets come, and does not have to learn it.
    pub(crate) rate_known: bool,
    /// What share of its capacity comes from sources and captures, in percent.
    pub(crate) load: u32,
    /// Or so many bits a nanosecond, if it is not 0.
    pub(crate) line: u32,
    /// What of the packets is otherwise.
    pub(crate) altered: Altered,
}

/// What of an application's packets is otherwise than they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Altered {
    /// By what the instructions of the search for patterns are divided.
    pub(crate) lighter: u32,
    /// All have so many bytes.
    pub(crate) bytes: Option<u32>,
    /// The classifier has so many quarters of the rules to try.
    pub(crate) rules: u32,
    /// The route lookup walks so many nodes more.
    pub(crate) nodes: u32,
    /// They come sorted by what they cost, so that the lanes of a warp take equally long.
    pub(crate) alike: bool,
    /// A lane whose TTL counts down has the instructions of one whose TTL is used up besides.
    pub(crate) both_ways: bool,
}

/// An application's packets.
pub(crate) struct Traffic {
    pub(crate) application: Application,
    /// What each makes of the kernel's loop, and its bytes with Ethernet's check sequence.
    pub(crate) packets: Vec<(Turns, u32)>,
    /// The words of the kernel's table, none if it has none.
    pub(crate) image: Vec<u32>,
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
            scheduler: HermesSettings::default(),
            baseline: Baseline::published(),
            packets,
            transfer: true,
            overload: 2.0,
            even: false,
            waits_at_end: false,
            rate_known: false,
            load: 50,
            line: 0,
            altered: Altered { lighter: 1, bytes: None, rules: 4, nodes: 0, alike: false, both_ways: false },
        }
    }

    /// The same with something otherwise.
    ///
    /// # Errors
    /// There is no such thing, or not so much of it; the names, or the limit, are told.
    pub(crate) fn set(&mut self, name: &str, number: u32) -> Result<(), String> {
        let Some((_, what, least, most)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = NAMES.iter().map(|(known, ..)| *known).collect();
            return Err(format!("`{name}` is nothing of the simulation; there are {}", names.join(", ")));
        };
        if !(least..=most).contains(&&number) {
            return Err(format!("{name}={number} is not possible; from {least} to {most} {what}"));
        }
        // Limits are those of the types, or below.
        let (small, micros) = (number as u16, u64::from(number) * 1000);
        match name {
            "cores" => (self.scheduler.cores, self.hardware.cores) = (small, small),
            "registers" => self.hardware.registers = number,
            "shared" => self.hardware.shared = number,
            "channels" => self.hardware.channels = number as u8,
            "bandwidth" => self.hardware.bandwidth = number,
            "latency" => self.hardware.latency = number.into(),
            "fifo" => self.scheduler.tasks = small,
            "queue" => self.scheduler.commits = small,
            "flush" => self.scheduler.flush.quarters = number,
            "batch" => self.baseline.batch = number as usize,
            "wait" => self.baseline.timeout = micros,
            "launch" => self.baseline.launch = micros,
            "bus" => self.baseline.bus = number.into(),
            "transfer" => self.transfer = number == 1,
            "packets" => self.packets = number as usize,
            "overload" => self.overload = f64::from(number) / 100.0,
            "load" => self.load = number,
            _ => self.line = number,
        }
        self.scheduler.check().map_err(|error| error.to_string())
    }

    /// Bits a nanosecond that come from sources and captures, where a system takes so many.
    pub(crate) fn rate(&self, capacity: f64) -> f64 {
        if self.line > 0 { f64::from(self.line) } else { self.share(capacity) * capacity }
    }

    /// The same as a share of what the system takes.
    pub(crate) fn share(&self, capacity: f64) -> f64 {
        if self.line > 0 { f64::from(self.line) / capacity } else { f64::from(self.load) / 100.0 }
    }

    /// The same in words.
    pub(crate) fn rate_line(&self) -> String {
        match (self.line, self.load) {
            (0, 50) => "half load".to_owned(),
            (0, percent) => format!("{percent} % load"),
            (line, _) => format!("{line} Gb/s"),
        }
    }

    /// A burst of so many bits a nanosecond.
    pub(crate) fn burst(&self, line: f64) -> Source<'static> {
        if self.even { Source::Constant(line) } else { Source::Poisson(line) }
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
        let works = self.works_on(system, traffic);
        let lengths = works.iter().cycle().map(|work| work.bytes).take(self.packets);
        let arrivals = source.times(lengths, seed);
        let load = Load { waits_at_end: self.waits_at_end, ..Load::new(&arrivals, &works) };
        let mut scheduler = self.scheduler;
        if let (true, [first, .., last]) = (self.rate_known, &arrivals[..]) {
            let gap = ((last - first) * 1000 / (arrivals.len() as u64 - 1)).max(1);
            scheduler.flush.rate = Rate::Fixed { gap };
        }
        match system {
            System::Hermes => simulate(&self.hardware, &scheduler, load),
            System::Serial => Ok(self.baseline.run(&self.hardware, &self.scheduler, load)),
            System::Overlapped => {
                let baseline = Baseline { overlapped: true, ..self.baseline };
                Ok(baseline.run(&self.hardware, &self.scheduler, load))
            }
        }
    }

    /// What each packet costs on a system.
    pub(crate) fn works_on(&self, system: System, traffic: &Traffic) -> Vec<Work> {
        let mut works = self.works(traffic);
        if self.transfer && system == System::Hermes {
            works.iter_mut().for_each(|work| work.own += (2 * work.bytes).div_ceil(SEGMENT));
        }
        works
    }

    /// What each packet costs, its way in and out aside.
    pub(crate) fn works(&self, traffic: &Traffic) -> Vec<Work> {
        let Altered { lighter, bytes: all, rules, nodes, alike, both_ways } = self.altered;
        let work = |(turns, bytes): &(Turns, u32)| {
            let mut turns = *turns;
            match (traffic.application, all) {
                (Application::Dpi, Some(bytes)) => turns = Turns::of_payload(bytes),
                (Application::Classifier, _) => turns.loops = (turns.loops * rules).div_ceil(4),
                (Application::Route, _) => turns.loops += nodes,
                _ => {}
            }
            let mut work = traffic.application.work(turns, all.unwrap_or(*bytes));
            if traffic.application == Application::Dpi {
                work.instructions /= lighter;
            }
            if both_ways {
                work.instructions += traffic.application.law().once;
            }
            work
        };
        let mut works: Vec<Work> = traffic.packets.iter().map(work).collect();
        if alike {
            works.sort_by_key(|work| work.instructions);
        }
        works
    }

    /// The same with the batch and the wait with which the overlapped baseline has the least mean delay here,
    /// by one run of each; words come back, not frames.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn tuned(&self, traffic: &Traffic, source: &Source<'_>) -> Result<Setting, SettingsError> {
        let baseline = Baseline { frames_back: false, ..self.baseline };
        let of = |baseline| {
            let setting = Setting { baseline, ..*self };
            Ok((Measures::of(&setting.run(System::Overlapped, traffic, source, 0)?).mean, setting))
        };
        let mut best = of(baseline)?;
        for batch in [32, 64, 128, 256, 512, 1024, 2048, 4096] {
            for timeout in [20_000, 200_000, 1_000_000] {
                let one = of(Baseline { batch, timeout, ..baseline })?;
                best = if one.0 < best.0 { one } else { best };
            }
        }
        Ok(best.1)
    }

    /// The figures of a run for each seed.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn measures(
        &self,
        system: System,
        traffic: &Traffic,
        source: &Source<'_>,
    ) -> Result<Vec<Measures>, SettingsError> {
        self.measures_of(SEEDS, system, traffic, source)
    }

    /// The same of packets that come at random at this share of `capacity`: near saturation, and below it, of
    /// more and longer runs.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn measures_at(
        &self,
        share: f64,
        capacity: f64,
        system: System,
        traffic: &Traffic,
    ) -> Result<Vec<Measures>, SettingsError> {
        let source = Source::Poisson(share * capacity);
        if !(NEAR..1.0).contains(&share) {
            return self.measures(system, traffic, &source);
        }
        let longer = Setting { packets: self.packets * LONGER, ..*self };
        longer.measures_of(SEEDS_NEAR, system, traffic, &source)
    }

    fn measures_of(
        &self,
        seeds: usize,
        system: System,
        traffic: &Traffic,
        source: &Source<'_>,
    ) -> Result<Vec<Measures>, SettingsError> {
        let run = |seed| Ok(Measures::of(&self.run(system, traffic, source, seed)?));
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..seeds as u64).map(|seed| scope.spawn(move || run(seed))).collect();
            // A run that panics is a bug, as it would be without threads.
            runs.into_iter().map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// Bits of a line, those around frames too, that a system takes in a nanosecond where packets never fail
    /// to be there.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn capacity(&self, system: System, traffic: &Traffic) -> Result<f64, SettingsError> {
        let outcome = self.run(system, traffic, &Source::Constant(1e6), 0)?;
        let around = 8.0 * 20.0 * self.packets as f64;
        Ok((outcome.bits as f64 + around) / outcome.end as f64)
    }

    /// The capacities of Hermes, the serial baseline and the overlapped one.
    ///
    /// # Errors
    /// As [`run`](Setting::run).
    pub(crate) fn capacities(&self, traffic: &Traffic) -> Result<[f64; 3], SettingsError> {
        let of = |system| self.capacity(system, traffic);
        Ok([of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?])
    }
}

impl System {
    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::Hermes => "Hermes",
            System::Serial => "serial",
            System::Overlapped => "overlapped",
        }
    }
}

impl Traffic {
    /// The packets of an application.
    pub(crate) fn new(application: Application, job: &Job) -> Traffic {
        let lengths = job.frames.iter().map(|frame| frame.len() as u32 + 4);
        let packets = job.turns.iter().copied().zip(lengths).collect();
        Traffic { application, packets, image: job.image.clone() }
    }

    /// The packets of a capture, against the same tables. What was not captured of a payload is searched too.
    pub(crate) fn of_capture(&self, frames: &Frames) -> Traffic {
        let packet = |frame: Frame<'_>| {
            let bytes = frame.wire.max(60) + 4;
            match self.application {
                Application::Dpi => (Turns::of_payload(bytes), bytes),
                application => (application.turns(frame.bytes, &self.image), bytes),
            }
        };
        let packets = frames.iter().map(packet).collect();
        Traffic { application: self.application, packets, image: Vec::new() }
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
