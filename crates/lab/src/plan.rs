//! Which experiments are run, on what and for how long.

use crate::kinds::ExperimentKind;
use crate::traffic::TrafficCapture;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// About so many seconds.
    Seconds(f64),
    /// Every packet so many times.
    Repeat(u64),
}

impl Length {
    /// Whether a run that has taken so much time, and has run its packets so many times, is long enough.
    pub(crate) fn is_over(self, time: Duration, times: u64) -> bool {
        match self {
            Length::Seconds(seconds) => time.as_secs_f64() >= seconds,
            Length::Repeat(repeat) => times >= repeat,
        }
    }

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
    /// How many prefixes `routes` announces, one after the other; its own choice if none is named.
    pub prefixes: Vec<u32>,
    /// The folder with the files of a package of Linux, from which `trusted` starts virtual machines; none
    /// takes part without it.
    pub guest: Option<PathBuf>,
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

/// What kind of device an experiment asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// An NVIDIA device by CUDA, else the best one by OpenCL, else threads of this machine.
    #[default]
    Best,
    /// The best one by OpenCL.
    OpenCl,
    /// The first one by CUDA.
    Cuda,
    /// Threads of this machine.
    Host,
}

impl DeviceChoice {
    /// Its name on the command line; the best one has none.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DeviceChoice::Best => "best",
            DeviceChoice::OpenCl => "opencl",
            DeviceChoice::Cuda => "cuda",
            DeviceChoice::Host => "host",
        }
    }
}
