//! `lab availability`: one TCP stream between two hosts while something around the core of the gateway
//! floods, stops, dies or is full, and what that costs the stream.
//!
//! ```text
//! host a: iperf3 ─── core ─── host b: iperf3
//!                     │ ╲ control, compile: stopped, killed; the disk: full
//!            container: floods, or takes all memory
//! ```
//!
//! Hosts, container and gateway share the processors of one machine here. Therefore what a flood costs by
//! being made, wherever it goes, is measured beside it: the same frames into a link that leads nowhere, and a
//! process that only counts.
//!
//! Each disturbance comes right behind the same stream without one, and all take turns, in the opposite order
//! every other round. The figure is the ratio of the two.

use super::gateways::{Between, Joined, ROUTER_PORT};
use super::policies;
use super::signing::{Filled, Signing};
use super::{is_wanted, prepared};
use crate::experiment::{Better, Figure, Other, Row};
use crate::forwarding::load::{StreamEnds, TrafficDirection, tcp};
use crate::forwarding::net::B;
use crate::forwarding::{processors, steady, whole_seconds};
use crate::hosted::{Daemon, START, children, until};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use rig::{Process, Stopped};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// With which of the nine policies: the one with state that blocks what it does not know.
const POLICY: usize = 1;
/// The disturbance begins so long before the stream, and the next stream so long after it.
const SETTLE: Duration = Duration::from_millis(200);
/// From one kill to the next of a process that is started again by itself.
const BETWEEN_KILLS: Duration = Duration::from_millis(20);
/// The same of a process that a signal starts.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(250);
/// How often is looked for a process that is to be killed: some run for milliseconds.
const LOOK: Duration = Duration::from_millis(1);
/// How long is waited for a process that is to be killed.
const STARTS: Duration = Duration::from_millis(500);
const CONTROL: &str = "ravelin-control";
const COMPILE: &str = "ravelin-compile";
/// Frames of a flood: more than are sent in any time.
const ENDLESS: &str = "1000000000000";

/// What happens beside the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    /// A process of the container counts.
    Busy,
    /// The container sends garbage into its own loopback interface.
    FloodNowhere,
    /// The same into the VNIC: the guard refuses most of it.
    FloodOfGarbage,
    /// The container sends right datagrams, which the policy drops.
    FloodOfDatagrams,
    ControlStopped,
    ControlKilled,
    CompileKilled,
    /// Another version of the policy takes over, and is kept.
    OtherPolicy,
    /// The same while the disk is full.
    FullDisk,
    /// Processes of the container take as much memory as they get.
    FullHeap,
}

impl Disturbance {
    const ALL: [Disturbance; 10] = [
        Disturbance::Busy,
        Disturbance::FloodNowhere,
        Disturbance::FloodOfGarbage,
        Disturbance::FloodOfDatagrams,
        Disturbance::ControlStopped,
        Disturbance::ControlKilled,
        Disturbance::CompileKilled,
        Disturbance::OtherPolicy,
        Disturbance::FullDisk,
        Disturbance::FullHeap,
    ];

    fn name(self) -> &'static str {
        match self {
            Disturbance::Busy => "a busy process in the container",
            Disturbance::FloodNowhere => "a flood in the container that leads nowhere",
            Disturbance::FloodOfGarbage => "a flood from the VNIC that the guard refuses",
            Disturbance::FloodOfDatagrams => "a flood from the VNIC that the policy drops",
            Disturbance::ControlStopped => "a stopped control",
            Disturbance::ControlKilled => "a control that is killed again and again",
            Disturbance::CompileKilled => "a compile that is killed again and again",
            Disturbance::OtherPolicy => "another version of the policy",
            Disturbance::FullDisk => "another version of the policy, and a full disk",
            Disturbance::FullHeap => "a container that takes all memory it gets",
        }
    }
}

/// A gateway, and who signs for it.
struct Gateway {
    // Before the disk that it uses goes.
    joined: Joined,
    signing: Signing,
    folder: std::path::PathBuf,
    version: u64,
}

/// What goes on until this is dropped.
#[derive(Default)]
struct Going {
    _programs: Vec<Daemon>,
    _stopped: Option<Stopped>,
    _killed: Option<Killing>,
    _filled: Option<Filled>,
}

/// Kills processes of a name again and again, and has them started again if need be.
struct Killing {
    ends: Arc<AtomicBool>,
    work: Option<JoinHandle<()>>,
}

impl Killing {
    fn start(gateway: u32, name: &'static str, wake: Option<Signal>) -> Killing {
        let ends = Arc::new(AtomicBool::new(false));
        let over = ends.clone();
        let work = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if let Some(signal) = wake {
                    tell(gateway, signal);
                }
                // One that was not heard of is started anew by the next signal, and would never be killed.
                let end = Instant::now() + STARTS;
                while named(gateway, name).is_empty() && Instant::now() < end {
                    thread::sleep(LOOK);
                }
                named(gateway, name).into_iter().for_each(|process| tell(process, Signal::KILL));
                thread::sleep(if wake.is_some() { BETWEEN_SIGNALS } else { BETWEEN_KILLS });
            }
        });
        Killing { ends, work: Some(work) }
    }
}

impl Drop for Killing {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // It ends within one turn.
        let _ = self.work.take().map(JoinHandle::join);
    }
}

/// The processes of this name that a process has started.
fn named(gateway: u32, name: &str) -> Vec<u32> {
    let is = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    children(gateway).into_iter().filter(is).collect()
}

/// Sends a signal to a process, which may have ended.
fn tell(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, signal);
    }
}

impl Gateway {
    fn start(between: Between, folder: &Path) -> Result<Gateway, String> {
        let binary = std::env::current_exe().map_err(|error| error.to_string())?;
        let signing = Signing::new(&binary, folder)?;
        let policy = policies::nine().swap_remove(POLICY);
        let joined = Joined::new(between, &policy, folder, processors().gateway, Some(&signing), None)?;
        Ok(Gateway { joined, signing, folder: folder.to_owned(), version: 1 })
    }

    fn process(&self) -> Result<u32, String> {
        self.joined.gateway().ok_or_else(|| "there is no gateway".to_owned())
    }

    /// Has the gateway take another version of its policy.
    fn other_policy(&mut self) -> Result<(), String> {
        self.version += 1;
        self.signing.sign(self.version)?;
        tell(self.process()?, Signal::HUP);
        Ok(())
    }

    /// Begins a disturbance.
    fn disturb(&mut self, disturbance: Disturbance) -> Result<Going, String> {
        let redteam = self.joined.binary.with_file_name("redteam");
        let flood = |interface: &str, attack: &str| {
            let mut command = self.joined.program(&redteam.to_string_lossy());
            command.args(["send", interface, attack, ENDLESS, "1"]);
            Daemon::start(&mut command).map_err(|error| error.to_string())
        };
        let script = |script: &str| {
            let mut command = self.joined.program("sh");
            Daemon::start(command.args(["-c", script])).map_err(|error| error.to_string())
        };
        let gateway = self.process()?;
        let going = match disturbance {
            Disturbance::Busy => {
                Going { _programs: vec![script("while :; do :; done")?], ..Going::default() }
            }
            Disturbance::FloodNowhere => {
                Going { _programs: vec![flood("lo", "garbage")?], ..Going::default() }
            }
            Disturbance::FloodOfGarbage => {
                Going { _programs: vec![flood(ROUTER_PORT, "garbage")?], ..Going::default() }
            }
            Disturbance::FloodOfDatagrams => {
                Going { _programs: vec![flood(ROUTER_PORT, "datagrams")?], ..Going::default() }
            }
            Disturbance::ControlStopped => {
                let found = || named(gateway, CONTROL).first().copied();
                let control = until(START, "a control runs", found)?;
                let stopped = Process(control).stop().map_err(|error| error.to_string())?;
                Going { _stopped: Some(stopped), ..Going::default() }
            }
            Disturbance::ControlKilled => {
                Going { _killed: Some(Killing::start(gateway, CONTROL, None)), ..Going::default() }
            }
            Disturbance::CompileKilled => {
                let killing = Killing::start(gateway, COMPILE, Some(Signal::HUP));
                Going { _killed: Some(killing), ..Going::default() }
            }
            Disturbance::OtherPolicy => {
                self.other_policy()?;
                Going::default()
            }
            Disturbance::FullDisk => {
                let filled = self.signing.fill()?;
                self.other_policy()?;
                Going { _filled: Some(filled), ..Going::default() }
            }
            Disturbance::FullHeap => {
                let takes = "while :; do head -c 1073741824 /dev/zero | tail -c 1073741824; done";
                Going { _programs: vec![script(takes)?], ..Going::default() }
            }
        };
        thread::sleep(SETTLE);
        Ok(going)
    }

    /// What the stream carries in Gbit/s.
    fn stream(&self, direction: TrafficDirection, seconds: u64) -> Result<f64, String> {
        let hosts = StreamEnds { client: &self.joined.net.a, server: &self.joined.net.b, address: B.1 };
        tcp(hosts, direction, 0, seconds).map(|bits| bits / 1e9)
    }

    /// Says why a disturbance was none, if that is so.
    fn was_disturbed(&self, disturbance: Disturbance) -> Result<(), String> {
        let words = match disturbance {
            Disturbance::OtherPolicy => format!("policy version {} is kept", self.version),
            Disturbance::FullDisk => format!("version {} is not on the disk", self.version),
            Disturbance::ControlKilled => "control was ended by signal 9".to_owned(),
            Disturbance::CompileKilled => "compile was ended by signal 9".to_owned(),
            _ => return Ok(()),
        };
        let told = || {
            let said = fs::read_to_string(self.folder.join("errors")).unwrap_or_default();
            said.contains(&words).then_some(())
        };
        until(START, &format!("the gateway tells `{words}`"), told)
    }
}

/// By tier, disturbance and direction: the stream with it and without.
type Pairs = BTreeMap<(Between, Disturbance, bool), Vec<(f64, f64)>>;
type Failed = BTreeMap<(Between, Disturbance), String>;

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let directory = prepared()?;
    let tiers: Vec<Between> = [Between::ContainedNative, Between::Contained]
        .into_iter()
        .filter(|between| is_wanted(plan, between))
        .collect();
    let (mut pairs, mut failed) = (Pairs::new(), Failed::new());
    for round in 0..plan.runs {
        for &between in &tiers {
            let folder = directory.path().join(format!("{between:?}-{round}"));
            let of = format!("availability: round {} of {}, {}", round + 1, plan.runs, between.name());
            let gateway = fs::create_dir_all(&folder).map_err(|error| error.to_string());
            let mut gateway = match gateway.and_then(|()| Gateway::start(between, &folder)) {
                Ok(gateway) => gateway,
                Err(why) => {
                    failed.extend(Disturbance::ALL.map(|disturbance| ((between, disturbance), why.clone())));
                    continue;
                }
            };
            let mut order = Disturbance::ALL;
            if round % 2 == 1 {
                order.reverse();
            }
            for disturbance in order {
                progress(&format!("{of}, {}", disturbance.name()));
                if let Err(why) = take(&mut gateway, (between, disturbance), plan, &mut pairs) {
                    failed.insert((between, disturbance), why);
                }
            }
        }
    }
    let mode = format!(
        "one stream of iperf3 between two hosts on virtual cables, offloads off everywhere; all processes of a gateway on processor {}, \
everything else, the container too, where the system puts it; {}",
        processors().gateway,
        steady()
    );
    Ok((told(&tiers, &pairs, &failed), mode))
}

/// One turn: the stream without the disturbance, and then with it.
fn take(
    gateway: &mut Gateway,
    (between, disturbance): (Between, Disturbance),
    plan: &LabPlan,
    pairs: &mut Pairs,
) -> Result<(), String> {
    let seconds = whole_seconds(plan);
    for (direction, back) in [(TrafficDirection::There, false), (TrafficDirection::Back, true)] {
        if back && plan.quick {
            continue;
        }
        thread::sleep(SETTLE);
        let alone = gateway.stream(direction, seconds)?;
        let going = gateway.disturb(disturbance)?;
        let beside = gateway.stream(direction, seconds)?;
        let disturbed = gateway.was_disturbed(disturbance);
        drop(going);
        disturbed?;
        pairs.entry((between, disturbance, back)).or_default().push((beside, alone));
    }
    Ok(())
}

/// The rows: of each disturbance the stream beside the one before it, and the ratio of each two.
fn told(tiers: &[Between], pairs: &Pairs, failed: &Failed) -> Vec<Row> {
    let mut rows = Vec::new();
    for &between in tiers {
        for disturbance in Disturbance::ALL {
            if let Some(why) = failed.get(&(between, disturbance)) {
                let case = format!("{}, {}", disturbance.name(), between.name());
                rows.push(Row::refused(&case, "TCP payload", "Gbit/s of TCP", why));
                continue;
            }
            for (back, way) in [(false, "a to b"), (true, "b to a")] {
                let Some(pairs) = pairs.get(&(between, disturbance, back)) else { continue };
                let case = format!("one stream {way}, {}, {}", disturbance.name(), between.name());
                let beside = Figure::of(pairs.iter().map(|pair| pair.0));
                let alone = Figure::of(pairs.iter().map(|pair| pair.1));
                let ratios = Figure::of(pairs.iter().map(|(beside, alone)| beside / alone));
                let row = Row::alone(&case, "TCP payload", "Gbit/s of TCP", beside, None);
                let alone = alone.map(|figure| Other::of("undisturbed", figure));
                rows.push(row.against(alone, Better::More));
                rows.push(Row::alone(
                    &case,
                    "of the undisturbed stream right before it",
                    "times",
                    ratios,
                    None,
                ));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disturbance_is_told_by_pairs_and_what_failed_says_why() {
        let (tier, flood) = (Between::ContainedNative, Disturbance::FloodOfGarbage);
        let pairs = Pairs::from([((tier, flood, false), vec![(4.0, 5.0), (1.0, 2.0), (9.0, 10.0)])]);
        let failed = Failed::from([((tier, Disturbance::FullDisk), "it was not full".to_owned())]);
        let rows = told(&[tier], &pairs, &failed);
        assert_eq!(rows.len(), 3);
        let median = |row: &Row| row.ours.as_ref().map(|figure| (figure.low, figure.median, figure.high));
        assert_eq!(median(&rows[0]), Some((1.0, 4.0, 9.0)));
        assert_eq!(rows[0].ratio, Some(0.8));
        assert_eq!(median(&rows[1]), Some((0.5, 0.8, 0.9)));
        assert!(rows[2].is_missing() && rows[2].what.contains("it was not full"));
    }
}
