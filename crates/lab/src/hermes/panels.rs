//! What is reported of the publication: the six panels of its Figure 3, its headlines, and its memory.

use super::setting::{LONGER, Measures, NEAR, SEEDS, SEEDS_NEAR, Setting, System, Traffic, WARPS, figure};
use super::source::Source;
use super::work::{Application, Job};
use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use offload::hermes::{HermesSettings, SettingsError, storage};

/// Packets of a run; and with `--quick`.
const PACKETS: [usize; 2] = [65_536, 8192];
/// Cores: meshes of 16, 25 and 36 places, of which 8 are channels of memory.
const CORES: [u16; 3] = [8, 17, 28];

/// Shares of the line that come in panel e.
const SPARSE: [f64; 4] = [0.1, 0.3, 0.5, 0.7];

const HEAD: &str = "headlines";
pub(super) const TIMES: &str = "times";
const RATE: &str = "Gb/s";
pub(super) const MICROS: &str = "µs";

/// What all panels need.
pub(super) struct Bench<'a> {
    pub(super) setting: Setting,
    pub(super) traffic: Vec<Traffic>,
    /// Whether few packets will do.
    pub(super) quick: bool,
    pub(super) rows: Vec<Row>,
    pub(super) progress: &'a mut dyn FnMut(&str),
}

/// Runs it; the text is what was simulated.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let mut setting = Setting::published(PACKETS[usize::from(plan.quick)]);
    for (name, number) in &plan.simulated {
        setting.set(name, *number).map_err(LabError::Tables)?;
    }
    // Before anything is made that takes long.
    for application in Application::ALL {
        setting.most_warps(application).map_err(|error| LabError::Tables(error.to_string()))?;
    }
    progress("hermes: tables and packets");
    let jobs: Result<Vec<Job>, String> = Application::ALL.into_iter().map(Application::job).collect();
    let jobs = jobs.map_err(LabError::Program)?;
    let traffic = Application::ALL.into_iter().zip(&jobs);
    let traffic = traffic.map(|(application, job)| Traffic::new(application, job)).collect();
    let captures = plan.captures.iter().map(|capture| capture.load(plan.quick));
    let captures: Vec<crate::traffic::Traffic> = captures.collect::<Result<_, _>>()?;
    let mut bench = Bench { setting, traffic, quick: plan.quick, rows: Vec::new(), progress };
    let ran = bench.all().and_then(|()| captures.iter().try_for_each(|capture| bench.capture(capture)));
    ran.map_err(|error| LabError::Tables(error.to_string()))?;
    bench.answers(&jobs)?;
    Ok((bench.rows, mode(&setting)))
}

/// How many runs each figure is the median of.
pub(crate) fn runs() -> usize {
    SEEDS
}

/// What was simulated, in words.
fn mode(setting: &Setting) -> String {
    let Setting { hardware, scheduler, baseline, packets, overload, .. } = setting;
    format!(
        "simulated: cores at 1 GHz with {} registers, warps of {} packets, {} channels of memory with {} bytes a ns together and {} ns latency; \
         FIFO {} and commit queue {} entries; the other system: batches of {} or {} µs, PCIe {} bytes a ns, {} µs a launch, frames both ways; \
         bursts of {packets} packets, {overload} times what Hermes takes; works of packets counted in our kernels, and {} instructions a sector of a packet that is cut (fragmentation) assumed; a range is that of {SEEDS} seeds, and of packets that come at random from {NEAR} up to 1 of a capacity of {SEEDS_NEAR} with {LONGER} times as many packets",
        hardware.registers,
        scheduler.warp,
        hardware.channels,
        hardware.bandwidth,
        hardware.latency,
        scheduler.tasks,
        scheduler.commits,
        baseline.batch,
        baseline.timeout / 1000,
        baseline.bus,
        baseline.launch / 1000,
        Application::Fragmentation.law().turn,
    )
}

pub(super) type Done = Result<(), SettingsError>;

impl Bench<'_> {
    fn all(&mut self) -> Done {
        self.storage();
        let mut bursts = Vec::new();
        for place in 0..self.traffic.len() {
            bursts.push(self.burst(place)?);
        }
        self.headlines(&bursts[..Application::DRAWN]);
        for place in 0..self.traffic.len() {
            self.queue(place)?;
            self.sparse(place)?;
            self.cores(place)?;
            self.equal(place)?;
            self.sources(place)?;
            self.divergence(place)?;
        }
        self.sensitivity()?;
        self.speed()
    }

    pub(super) fn tell(&mut self, place: usize, what: &str) {
        let name = self.traffic[place].application.name();
        (self.progress)(&format!("hermes: {name}, {what}"));
    }

    /// The setting for an application with as many warps as can be.
    pub(super) fn best(&self, place: usize) -> Result<Setting, SettingsError> {
        let application = self.traffic[place].application;
        let warps = self.setting.most_warps(application)?;
        Ok(self.setting.with(warps, self.setting.hardware.cores))
    }

    pub(super) fn held(
        &mut self,
        case: &str,
        what: &str,
        unit: &str,
        ours: Option<Figure>,
        other: Option<Other>,
    ) {
        let better = if unit == RATE { Better::More } else { Better::Less };
        self.rows.push(Row::alone(case, what, unit, ours, None).against(other, better));
    }

    /// Bytes of the mechanism's memory.
    fn storage(&mut self) {
        for cores in CORES {
            let needed = storage(&HermesSettings { cores, ..self.setting.scheduler });
            let bytes = |bytes: u64| Figure::of([bytes as f64 / 1024.0]);
            let paper = (cores == 8 && self.setting.scheduler == HermesSettings::default()).then_some(5.5);
            let case = format!("storage, {cores} cores");
            let what = "FIFO, commit queue, table of warps";
            self.rows.push(Row::alone(&case, what, "KiB", bytes(needed.published()), paper));
            let what = "and done bits, packets of a warp, positions";
            self.rows.push(Row::alone(&case, what, "KiB", bytes(needed.complete()), None));
        }
    }

    /// Panels a to c: a burst that is more than can be taken, by warps of a core. The figures with the most
    /// warps, of Hermes and of the other two.
    fn burst(&mut self, place: usize) -> Result<[Vec<Measures>; 3], SettingsError> {
        self.tell(place, "burst");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let line = best.overload * best.capacity(System::Hermes, traffic)?;
        let source = best.burst(line);
        let of = |system| best.measures(system, traffic, &source);
        let all = [of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?];
        let name = traffic.application.name();
        let (mut ways, mut left_out) = (Vec::new(), Vec::new());
        for warps in WARPS {
            match self.setting.check(traffic.application, warps) {
                Err(SettingsError::Limit { most, .. }) => left_out.push((warps, most)),
                Err(error) => return Err(error),
                Ok(()) => {
                    let setting = self.setting.with(warps, self.setting.hardware.cores);
                    ways.push((warps, setting.measures(System::Hermes, traffic, &source)?));
                }
            }
        }
        self.rows.push(Row::alone(
            &format!("{name} in a burst, the line"),
            "a: throughput",
            RATE,
            Figure::of([line]),
            None,
        ));
        for (what, unit, of) in panels() {
            for (warps, measures) in &ways {
                let case = format!("{name} in a burst, Hermes with {warps} warps a core");
                for (other, measured) in [("serial", &all[1]), ("overlapped", &all[2])] {
                    let other = figure(measured, of).map(|figure| Other::of(other, figure));
                    self.held(&case, what, unit, figure(measures, of), other);
                }
            }
        }
        for (warps, most) in left_out {
            let case = format!("limits, {name}, {warps} warps a core are not possible");
            self.rows.push(Row::alone(
                &case,
                "most that registers allow",
                "warps",
                Figure::of([most as f64]),
                None,
            ));
        }
        Ok(all)
    }

    /// The publication's three numbers. Each is one of several applications there: the best one of
    /// throughput, and means.
    fn headlines(&mut self, bursts: &[[Vec<Measures>; 3]]) {
        for (other, name) in [(1, "serial"), (2, "overlapped")] {
            // The publication has the serial one alone.
            let paper = |number: f64| (other == 1).then_some(number);
            let ratios = |of: fn(&Measures) -> f64| {
                let ratio = |burst: &[Vec<Measures>; 3]| {
                    Some(figure(&burst[0], of)?.median / figure(&burst[other], of)?.median)
                };
                bursts.iter().filter_map(ratio).collect::<Vec<f64>>()
            };
            let times = ratios(|measures| measures.throughput);
            let case = format!("{HEAD}, against the {name} baseline");
            for (traffic, times) in self.traffic.iter().zip(&times) {
                let case = format!("{HEAD}, {}, against the {name} baseline", traffic.application.name());
                self.rows.push(Row::alone(&case, "throughput", TIMES, Figure::of([*times]), paper(5.0)));
            }
            for (what, of, number) in [
                ("less mean delay", (|measures| measures.mean) as fn(&Measures) -> f64, 81.2),
                ("less spread of delays", |measures| measures.spread, 72.9),
            ] {
                let cuts: Vec<f64> = ratios(of).iter().map(|ratio| 100.0 * (1.0 - ratio)).collect();
                let what = format!("{what}: mean and range of the applications");
                self.rows.push(Row::alone(&case, &what, "%", Figure::mean_of(cuts), paper(number)));
            }
        }
    }

    /// Panel d: what the order costs, under a burst and at shares of what can be taken.
    fn queue(&mut self, place: usize) -> Done {
        self.tell(place, "commit queue");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let name = traffic.application.name();
        let capacity = best.capacity(System::Hermes, traffic)?;
        for (load, what) in [(0.5, "half load"), (0.9, "load 0.9"), (best.overload, "a burst")] {
            let measures = best.measures_at(load, capacity, System::Hermes, traffic)?;
            let case = format!("order, {name}, {what}");
            let cost = figure(&measures, |measures| measures.mean / measures.unordered);
            self.rows.push(Row::alone(
                &case,
                "d: delay with the commit queue by that without",
                TIMES,
                cost,
                None,
            ));
            let most = figure(&measures, |measures| measures.commits);
            self.rows.push(Row::alone(&case, "most tasks in the commit queue", "tasks", most, None));
        }
        Ok(())
    }

    /// Panel e: traffic with pauses, in small bursts on a line that is as fast as Hermes.
    fn sparse(&mut self, place: usize) -> Done {
        self.tell(place, "sparse traffic");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let capacities = best.capacities(traffic)?;
        let line = capacities[0];
        let mut rows = Vec::new();
        for share in SPARSE {
            let source = Source::Bursts { packets: 64, line, share };
            let of = |system| best.measures(system, traffic, &source);
            let all = [of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?];
            let (name, percent) = (traffic.application.name(), 100.0 * share);
            rows.push((
                format!("{name} and sparse traffic, {percent} % of the line, Hermes"),
                all,
                share * line,
            ));
        }
        for (case, all, rate) in rows {
            for (what, unit, of) in panels() {
                let what = what.replace("a: ", "e: ").replace("b: ", "").replace("c: ", "");
                for (place, system) in [(1, System::Serial), (2, System::Overlapped)] {
                    let name = named(system, rate, capacities[place]);
                    let other = figure(&all[place], of).map(|figure| Other::of(&name, figure));
                    self.held(&case, &what, unit, figure(&all[0], of), other);
                }
            }
        }
        Ok(())
    }

    /// Panel f: more cores before the same memory and the same line.
    fn cores(&mut self, place: usize) -> Done {
        self.tell(place, "cores");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let name = traffic.application.name();
        let mut found = Vec::new();
        let line = best.overload * best.capacity(System::Hermes, traffic)?;
        for cores in CORES {
            let more = best.with(best.scheduler.warps, cores);
            let capacity = more.capacity(System::Hermes, traffic)?;
            let measures = more.measures(System::Hermes, traffic, &Source::Poisson(line))?;
            found.push((cores, capacity, figure(&measures, |measures| measures.throughput)));
        }
        let case = format!("{name} by cores, the line");
        self.rows.push(Row::alone(&case, "f: throughput", RATE, Some(Figure::exactly(line)), None));
        let first = found.first().map_or(1.0, |(_, capacity, _)| *capacity);
        for (cores, capacity, throughput) in found {
            let case = format!("{name} by cores, {cores} cores");
            self.rows.push(Row::alone(&case, "f: throughput", RATE, throughput, None));
            let times = Figure::of([capacity / first]);
            self.rows.push(Row::alone(&case, "f: capacity by that of 8 cores", TIMES, times, None));
        }
        Ok(())
    }
}

/// The name of a system under so many bits a nanosecond; what it cannot take is said with it, since delays
/// then grow with the length of the run.
pub(super) fn named(system: System, rate: f64, capacity: f64) -> String {
    let over = if rate >= capacity { ", overloaded" } else { "" };
    format!("{}{over}", system.name())
}

pub(super) type Of = fn(&Measures) -> f64;

/// Panels a to c.
fn panels() -> [(&'static str, &'static str, Of); 3] {
    [
        ("a: throughput", RATE, |measures| measures.throughput),
        ("b: mean delay", MICROS, |measures| measures.mean),
        ("c: spread of delays (interquartile range)", MICROS, |measures| measures.spread),
    ]
}
