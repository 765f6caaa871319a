//! Which experiments are run, on what and for how long; and running them.

use crate::experiment::{Experiment, Row};
use crate::machine::Machine;
use crate::tables::TablesPlan;
use crate::traffic::{LabError, TrafficCapture};
use crate::transfer::DeviceChoice;
use crate::{
    compile, crossover, decode, hermes, learn, operations, router, schedule, switch_apps, tables, transfer,
};
use std::time::Instant;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentKind {
    /// Programs over captures: packet rate, data rate, throughput.
    SwitchApps,
    /// Partial against full decode.
    Decode,
    /// What single operations cost.
    Operations,
    /// A table of 65,536 entries, learned and looked up at random.
    Learn,
    /// From text to machine code.
    Compile,
    /// Tables apart from programs, beside other libraries.
    Tables,
    /// A router and its kin over whole tables, and what each stage of it costs.
    Router,
    /// A gateway between two hosts, beside others. It needs the right to make networks, so it is not among
    /// [`ALL`](ExperimentKind::ALL).
    Forwarding,
    /// Delays through a gateway by load; as [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Latency,
    /// A gateway under load for a long time; as [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Soak,
    /// What a device makes of batches, by how packets get there: the iterations of the CMU study of 2012. A
    /// device is asked for, so it is not among [`ALL`](ExperimentKind::ALL).
    Transfer,
    /// From which batch and load on a device is faster than one core; as
    /// [`Transfer`](ExperimentKind::Transfer), not among all.
    Crossover,
    /// Policies by which packets are held for a device, measured and simulated, by load; as
    /// [`Transfer`](ExperimentKind::Transfer), not among all.
    Schedule,
    /// Hermes (DAC 2011) on a simulated device. What it tells does not depend on the machine, so it is not
    /// among [`ALL`](ExperimentKind::ALL).
    Hermes,
}

impl ExperimentKind {
    /// All experiments in memory, in the order in which they are run.
    pub const ALL: [ExperimentKind; 7] = [
        ExperimentKind::SwitchApps,
        ExperimentKind::Decode,
        ExperimentKind::Operations,
        ExperimentKind::Learn,
        ExperimentKind::Compile,
        ExperimentKind::Tables,
        ExperimentKind::Router,
    ];

    /// Whether it runs over packets in memory, on one thread that is best held on one processor. The others
    /// start programs, which would be held there, too.
    pub fn in_memory(self) -> bool {
        ExperimentKind::ALL.contains(&self)
    }

    /// Whether it measures a device, in many short runs.
    pub fn on_device(self) -> bool {
        matches!(self, ExperimentKind::Transfer | ExperimentKind::Crossover | ExperimentKind::Schedule)
    }

    /// The experiment that has this name on the command line.
    pub fn named(name: &str) -> Option<ExperimentKind> {
        let others = [
            ExperimentKind::Forwarding,
            ExperimentKind::Latency,
            ExperimentKind::Soak,
            ExperimentKind::Transfer,
            ExperimentKind::Crossover,
            ExperimentKind::Schedule,
            ExperimentKind::Hermes,
        ];
        ExperimentKind::ALL.into_iter().chain(others).find(|kind| kind.name() == name)
    }

    /// What its page shows: the first sentence of the page.
    pub(crate) fn about(self) -> &'static str {
        match self {
            ExperimentKind::SwitchApps => {
                "Programs over captures on one core: packets a second, bits that came in and bits that were forwarded, beside the same programs written by hand in Rust."
            }
            ExperimentKind::Decode => {
                "What a packet costs where a program decodes only the fields that it reads, the headers that it names, or every field."
            }
            ExperimentKind::Operations => "What single operations of the language cost.",
            ExperimentKind::Learn => "A table of 65,536 entries that packets fill and look up at random.",
            ExperimentKind::Compile => "How long programs take from text to machine code.",
            ExperimentKind::Tables => {
                "Tables apart from programs, beside the libraries that one would have taken instead; all answers are compared."
            }
            ExperimentKind::Router => {
                "A router and its kin over whole tables, and what each of its stages costs."
            }
            ExperimentKind::Forwarding => {
                "A gateway between two hosts on virtual cables, beside Linux, DPDK's testpmd and nftables in the same place."
            }
            ExperimentKind::Latency => {
                "How long packets take through a gateway at parts of the load that it can carry, beside Linux routing."
            }
            ExperimentKind::Soak => {
                "A gateway for a long time at half load, while programs take over, and under more than it can carry: every packet is accounted for."
            }
            ExperimentKind::Transfer => {
                "What a device makes of batches, by the way that packets take to it: the iterations of a study of a router on a GPU (2012), with the study's figures."
            }
            ExperimentKind::Crossover => {
                "From which batch and from which load on a device is faster than one core."
            }
            ExperimentKind::Schedule => {
                "When packets that wait for a device are handed over: every schedule by load, measured and simulated."
            }
            ExperimentKind::Hermes => {
                "The evaluation of Hermes (DAC 2011) on a simulated device, with the paper's figures."
            }
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ExperimentKind::SwitchApps => "switch-apps",
            ExperimentKind::Decode => "decode",
            ExperimentKind::Operations => "operations",
            ExperimentKind::Learn => "learn",
            ExperimentKind::Compile => "compile",
            ExperimentKind::Tables => "tables",
            ExperimentKind::Router => "router",
            ExperimentKind::Forwarding => "forwarding",
            ExperimentKind::Latency => "latency",
            ExperimentKind::Soak => "soak",
            ExperimentKind::Transfer => "transfer",
            ExperimentKind::Crossover => "crossover",
            ExperimentKind::Schedule => "schedule",
            ExperimentKind::Hermes => "hermes",
        }
    }
}

/// How long one run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// About so many seconds.
    Seconds(f64),
    /// Every packet so many times.
    Repeat(u64),
}

impl Length {
    /// In words.
    pub fn line(&self) -> String {
        match self {
            Length::Seconds(seconds) => format!("about {seconds} s a run"),
            Length::Repeat(repeat) => format!("every packet {repeat} times a run"),
        }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LabPlan {
    /// The experiments.
    pub kinds: Vec<ExperimentKind>,
    /// The captures of those that run captures.
    pub captures: Vec<TrafficCapture>,
    /// Runs of each figure, at least one.
    pub runs: usize,
    /// How long each is.
    pub length: Length,
    /// Shortens made captures.
    pub quick: bool,
    /// What the experiment on tables does.
    pub tables: TablesPlan,
    /// Only gateways take part whose names hold one of these; all if none is named.
    pub gateways: Vec<String>,
    /// The device of those that measure one.
    pub device: DeviceChoice,
    /// When those that measure one end early, if they are to; what they leave out they say.
    pub until: Option<Instant>,
    /// What of the simulated device is otherwise: names and numbers, such as `cores` and 17.
    pub simulated: Vec<(String, u32)>,
}

impl LabPlan {
    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Holds this thread on the last processor it may use, so that it does not wander while it measures; gives
/// its number.
pub fn pin() -> Option<usize> {
    let core = core_affinity::get_core_ids()?.pop()?;
    core_affinity::set_for_current(core).then_some(core.id)
}

/// Runs experiments. `progress` hears what is being done.
///
/// # Errors
/// If a capture cannot be read. A program that does not do what it should is no error but a row without a
/// figure.
pub fn run(
    plan: &LabPlan,
    machine: &Machine,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Experiment>, LabError> {
    let mut experiments = Vec::new();
    for kind in &plan.kinds {
        let mut mode = "one thread, packets in memory, native code unless a row says otherwise".to_owned();
        let (mut runs, mut length) = (plan.runs, plan.length.line());
        let rows = match kind {
            ExperimentKind::SwitchApps => switch_apps::rows(plan, progress)?,
            ExperimentKind::Decode => decode::rows(plan, progress)?,
            ExperimentKind::Operations => operations::rows(plan, progress)?,
            ExperimentKind::Learn => learn::rows(plan, progress)?,
            ExperimentKind::Compile => compile::rows(plan, progress)?,
            ExperimentKind::Router => {
                mode = router::mode();
                router::rows(plan, progress)?
            }
            ExperimentKind::Forwarding | ExperimentKind::Latency | ExperimentKind::Soak => {
                let (rows, roll) = live(*kind, plan, progress)?;
                mode = roll;
                if *kind == ExperimentKind::Soak {
                    runs = 1;
                }
                rows
            }
            ExperimentKind::Transfer => {
                let (rows, told) = transfer::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Crossover => {
                let (rows, told) = crossover::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Schedule => {
                let (rows, told) = schedule::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Hermes => {
                let (rows, told) = hermes::rows(plan, progress)?;
                (mode, runs, length) = (told, hermes::runs(), "simulated time".to_owned());
                rows
            }
            ExperimentKind::Tables => {
                let (rows, roll) = tables::rows(plan, progress)?;
                mode = format!("one thread, its own time, queries in memory; {roll}");
                runs = tables::runs(plan);
                length = Length::Seconds(tables::seconds(plan)).line();
                rows
            }
        };
        let machine = Machine { runs, length, mode, ..machine.clone() };
        experiments.push(Experiment { experiment: kind.name().to_owned(), machine, rows });
    }
    Ok(experiments)
}

type Told = Result<(Vec<Row>, String), LabError>;

#[cfg(target_os = "linux")]
fn live(kind: ExperimentKind, plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Told {
    match kind {
        ExperimentKind::Latency => crate::forwarding::latency::rows(plan, progress),
        ExperimentKind::Soak => crate::soak::rows(plan, progress),
        _ => crate::forwarding::rows(plan, progress),
    }
}

/// Networks of its own are something that only Linux has.
#[cfg(not(target_os = "linux"))]
fn live(_: ExperimentKind, _: &LabPlan, _: &mut dyn FnMut(&str)) -> Told {
    Err(LabError::Tables("networks to measure gateways in can be made on Linux only".to_owned()))
}
