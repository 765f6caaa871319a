//! `lab soak`: a gateway that runs for a long time between two hosts: at half load, while programs take over, and under more than it can carry.
//!
//! Every packet carries the number that it has in its flow, so that host b sees what is missing and what comes out of order. What the gateway says of
//! itself is held against what was sent and what arrived.

mod told;
mod traffic;

use crate::experiment::Row;
use crate::forwarding::net::{Net, Offloads, Way};
use crate::forwarding::{no_networks, processors, seconds, steady};
use crate::plan::Plan;
use crate::traffic::LabError;
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use traffic::{Arrived, Traffic};

/// A program that sends on what it gets by the other port, and learns.
const SWITCH: &str = include_str!("../../../../programs/mac_switch.rav");
/// One that takes so long over a packet that more can be sent than it can carry.
const SLOW: &str = include_str!("slow.rav");

/// By which names ports lose packets before a program, and behind it.
const BEFORE: [&str; 3] = ["ring_full", "too_long", "unreadable"];
const BEHIND: [&str; 3] = ["busy", "refused", "down"];

/// How long a gateway may take to begin, and what is on its way to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often another program takes over.
const TAKEOVER: Duration = Duration::from_millis(100);
/// After an overload, service is to be normal within this time.
const RECOVERY: Duration = Duration::from_secs(1);

/// What takes over again and again, and what is too much, lasts at most this long; half load as long as asked for.
const SHORT_PARTS: Duration = Duration::from_secs(60);

/// What is to be done.
struct SoakPlan {
    /// The `ravelin` binary.
    binary: PathBuf,
    /// How long half load lasts.
    time: Duration,
    /// Which processors send, and serve.
    processors: (usize, usize),
}

/// Packets of one part, from where they were sent to where they arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Sent by host a.
    sent: u64,
    /// Lost by the gateway's ports before its program, under their names.
    lost_before: u64,
    /// Received by the program.
    received: u64,
    /// Forwarded, dropped and punted by it.
    forwarded: u64,
    /// Dropped by it.
    dropped: u64,
    /// Punted by it.
    punted: u64,
    /// Handed to the port towards host b.
    transmitted: u64,
    /// Lost by the gateway's ports behind its program, under their names.
    lost_behind: u64,
    /// Counted by host b's interface.
    arrived: u64,
}

impl Account {
    /// Whether every packet is somewhere.
    fn exact(&self) -> bool {
        self.sent == self.received + self.lost_before
            && self.received == self.forwarded + self.dropped + self.punted
            && self.transmitted == self.arrived + self.lost_behind
    }
}

/// A long time at half load.
#[derive(Clone, Debug)]
struct Steady {
    /// Packets a second that the gateway can carry.
    capacity: f64,
    /// Packets a second that were sent.
    rate: f64,
    /// For how long.
    seconds: f64,
    /// Where they went.
    account: Account,
    /// What host b saw.
    arrived: Arrived,
    /// Resident memory in KiB, at a tenth of the time and then every second: least and most.
    resident: (u64, u64),
    /// Open descriptors at the start and at the end.
    descriptors: (u64, u64),
}

/// Programs that take over.
#[derive(Clone, Debug)]
struct Takeovers {
    /// Packets a second that were sent.
    rate: f64,
    /// For how long.
    seconds: f64,
    /// Programs that took over.
    programs: u64,
    /// The longest time from asking for one until it had taken over, in milliseconds.
    slowest_answer_ms: f64,
    /// Packets sent.
    sent: u64,
    /// Lost by the gateway's ports under their names, before and behind all of the programs.
    lost: (u64, u64),
    /// What host b saw.
    arrived: Arrived,
}

/// More than a gateway can carry.
#[derive(Clone, Debug)]
struct Overload {
    /// Packets a second that the gateway can carry with this program.
    capacity: f64,
    /// Packets a second that were sent.
    rate: f64,
    /// For how long.
    seconds: f64,
    /// Where they went.
    account: Account,
    /// The longest time that control took to answer, in milliseconds.
    slowest_answer_ms: f64,
    /// Resident memory in KiB: least and most.
    resident: (u64, u64),
    /// What host b saw at half load, from a second after the overload on.
    after: Arrived,
}

/// The rows of a plan, and in words how they came about.
///
/// # Errors
/// Networks cannot be made here, a gateway does not start, or does not answer.
pub(crate) fn rows(plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    ports::live::rig::become_root().map_err(no_networks)?;
    Net::new(Way::Switched, Offloads::On).map_err(no_networks)?;
    let processors = processors();
    let binary =
        std::env::current_exe().map_err(|error| LabError::Tables(format!("our own program: {error}")))?;
    let time = Duration::from_secs_f64(seconds(plan));
    let soak = SoakPlan { binary, time, processors: (processors.sender, processors.gateway) };
    let rows = parts(&soak, progress).map_err(LabError::Tables)?;
    let mode = format!(
        "a gateway between two hosts in networks of their own, joined by virtual cables; numbered UDP packets of 64 bytes of 64 flows; sent and watched on processor {}, the \
packet loop on processor {}; {}",
        processors.sender,
        processors.gateway,
        steady(),
    );
    Ok((rows, mode))
}

fn parts(plan: &SoakPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, String> {
    let system = |error: io::Error| error.to_string();
    let directory = tempfile::Builder::new().prefix("ravelin-soak-").tempdir().map_err(system)?;
    let short = plan.time.min(SHORT_PARTS);
    progress("soak: half load");
    let half_load = half_load(plan, directory.path(), plan.time)?;
    progress("soak: programs take over");
    let takeovers = takeovers(plan, directory.path(), short, half_load.capacity)?;
    progress("soak: overload");
    let overload = overload(plan, directory.path(), short)?;
    Ok([half_load.rows(), takeovers.rows(), overload.rows()].concat())
}

fn half_load(plan: &SoakPlan, directory: &Path, time: Duration) -> Result<Steady, String> {
    let capacity = capacity(plan, directory, SWITCH)?;
    let setting = Setting::start(plan, directory, SWITCH)?;
    let wanted = capacity / 2.0;
    let descriptors = setting.descriptors()?;
    let sampled = AtomicBool::new(true);
    let (resident, seen) = thread::scope(|scope| {
        let samples = scope.spawn(|| setting.resident(time / 10, &sampled));
        let seen = setting.traffic().run(wanted, time, || Ok(()));
        sampled.store(false, Ordering::Relaxed);
        (samples.join(), seen)
    });
    let (sent, arrived) = seen?;
    let account = setting.account(sent)?;
    let resident = resident.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let descriptors = (descriptors, setting.descriptors()?);
    let seconds = time.as_secs_f64();
    let rate = sent as f64 / seconds;
    Ok(Steady { capacity, rate, seconds, account, arrived, resident, descriptors })
}

fn takeovers(plan: &SoakPlan, directory: &Path, time: Duration, capacity: f64) -> Result<Takeovers, String> {
    let setting = Setting::start(plan, directory, SWITCH)?;
    let wanted = capacity * 0.8;
    let mut control = setting.control()?;
    let (mut programs, mut slowest) = (0, Duration::ZERO);
    let mut next = Instant::now();
    let (sent, arrived) = setting.traffic().run(wanted, time, || {
        if Instant::now() >= next {
            next += TAKEOVER;
            let start = Instant::now();
            let answer = control.ask("reload")?;
            slowest = slowest.max(start.elapsed());
            if answer["done"].is_null() {
                return Err(format!("a program did not take over: {answer}"));
            }
            programs += 1;
        }
        Ok(())
    })?;
    let picture = control.ask("picture")?["picture"].take();
    let lost = (
        lost(&picture, "/ports/0/since_attached", &BEFORE),
        lost(&picture, "/ports/1/since_attached", &BEHIND),
    );
    let (seconds, slowest_answer_ms) = (time.as_secs_f64(), slowest.as_secs_f64() * 1e3);
    let rate = sent as f64 / seconds;
    Ok(Takeovers { rate, seconds, programs, slowest_answer_ms, sent, lost, arrived })
}

fn overload(plan: &SoakPlan, directory: &Path, time: Duration) -> Result<Overload, String> {
    let capacity = capacity(plan, directory, SLOW)?;
    let setting = Setting::start(plan, directory, SLOW)?;
    let mut control = setting.control()?;
    let mut slowest = Duration::ZERO;
    let sampled = AtomicBool::new(true);
    let (resident, seen) = thread::scope(|scope| {
        let samples = scope.spawn(|| setting.resident(time / 10, &sampled));
        let traffic = setting.traffic();
        let seen = (|| {
            let (over, _) = traffic.run(3.0 * capacity, time, || {
                let start = Instant::now();
                control.ask("picture")?;
                slowest = slowest.max(start.elapsed());
                Ok(())
            })?;
            let (before, _) = traffic.run(capacity / 2.0, RECOVERY, || Ok(()))?;
            let (after, arrived) = traffic.run(capacity / 2.0, 2 * RECOVERY, || Ok(()))?;
            Ok::<_, String>((over, over + before + after, arrived))
        })();
        sampled.store(false, Ordering::Relaxed);
        (samples.join(), seen)
    });
    let (over, sent, after) = seen?;
    let account = setting.account(sent)?;
    let resident = resident.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let seconds = time.as_secs_f64();
    let slowest_answer_ms = slowest.as_secs_f64() * 1e3;
    Ok(Overload {
        capacity,
        rate: over as f64 / seconds,
        seconds,
        account,
        slowest_answer_ms,
        resident,
        after,
    })
}

/// How many packets a part of a picture says were lost, by all of these names.
fn lost(picture: &Value, place: &str, names: &[&str]) -> u64 {
    let named = |name: &&str| picture.pointer(&format!("{place}/{name}")).and_then(Value::as_u64);
    names.iter().filter_map(named).sum()
}

/// Packets a second that arrive when as many are sent as can be: the middle of five times.
fn capacity(plan: &SoakPlan, directory: &Path, program: &str) -> Result<f64, String> {
    let setting = Setting::start(plan, directory, program)?;
    let mut rates = Vec::new();
    for _ in 0..5 {
        let before = setting.arrived()?;
        let start = Instant::now();
        setting.traffic().run(f64::INFINITY, Duration::from_secs(1), || Ok(()))?;
        rates.push((setting.arrived()? - before) as f64 / start.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[rates.len() / 2])
}

/// A gateway between its hosts.
struct Setting<'a> {
    plan: &'a SoakPlan,
    net: Net,
    gateway: Child,
    socket: PathBuf,
    /// What host b's interface had counted before the first packet.
    before: u64,
}

impl Drop for Setting<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

impl<'a> Setting<'a> {
    fn start(plan: &'a SoakPlan, directory: &Path, program: &str) -> Result<Setting<'a>, String> {
        let system = |error: io::Error| error.to_string();
        let net = Net::new(Way::Switched, Offloads::On).map_err(system)?;
        let socket = directory.join("control.sock");
        let text = format!(
            "program = \"program.rav\"\ncontrol = {:?}\ncores = [{}]\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n",
            socket.display().to_string(),
            plan.processors.1,
        );
        fs::write(directory.join("program.rav"), program).map_err(system)?;
        fs::write(directory.join("gateway.toml"), text).map_err(system)?;
        let mut command = net.gateway.command(&plan.binary, None);
        command.arg("serve").arg(directory.join("gateway.toml"));
        let gateway = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(system)?;
        let mut setting = Setting { plan, net, gateway, socket, before: 0 };
        let end = Instant::now() + PATIENCE;
        while let Err(error) = setting.control().and_then(|mut control| control.ask("picture")) {
            if Instant::now() > end {
                return Err(format!("the gateway does not begin: {error}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        setting.before = setting.arrived()?;
        Ok(setting)
    }

    fn traffic(&self) -> Traffic<'_> {
        Traffic { net: &self.net, processor: self.plan.processors.0 }
    }

    fn control(&self) -> Result<Control, String> {
        let stream = UnixStream::connect(&self.socket).map_err(|error| format!("control: {error}"))?;
        Ok(Control(BufReader::new(stream)))
    }

    /// How many frames host b has counted.
    fn arrived(&self) -> Result<u64, String> {
        self.net.arrived().map(|counters| counters.received).map_err(|error| error.to_string())
    }

    fn account(&self, sent: u64) -> Result<Account, String> {
        let picture = self.control()?.ask("picture")?["picture"].take();
        let number = |place: &str| picture.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        let sum = |place: &str| -> u64 {
            let all = picture.pointer(place).and_then(Value::as_object);
            all.into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
        };
        Ok(Account {
            sent,
            lost_before: lost(&picture, "/ports/0", &BEFORE),
            received: number("/report/received/packets"),
            forwarded: number("/report/forwarded/packets"),
            dropped: sum("/report/drops"),
            punted: sum("/report/punts"),
            transmitted: number("/report/ports/1/transmitted"),
            lost_behind: lost(&picture, "/ports/1", &BEHIND),
            arrived: self.arrived()? - self.before,
        })
    }

    /// The gateway's resident memory from a time on until it is told to stop: least and most, in KiB.
    fn resident(&self, from: Duration, on: &AtomicBool) -> Result<(u64, u64), String> {
        let path = format!("/proc/{}/status", self.gateway.id());
        let (start, mut range) = (Instant::now(), (u64::MAX, 0));
        while on.load(Ordering::Relaxed) || range.1 == 0 {
            thread::sleep(Duration::from_millis(200));
            if start.elapsed() < from && on.load(Ordering::Relaxed) {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
            range = (range.0.min(now), range.1.max(now));
        }
        Ok(range)
    }

    fn descriptors(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/fd", self.gateway.id());
        let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(entries.count() as u64)
    }
}

/// A connection to a gateway.
struct Control(BufReader<UnixStream>);

impl Control {
    fn ask(&mut self, what: &str) -> Result<Value, String> {
        let question = format!("{{\"ask\":\"{what}\"}}\n");
        let broken = |error: io::Error| format!("control: {error}");
        self.0.get_mut().write_all(question.as_bytes()).map_err(broken)?;
        let mut line = String::new();
        self.0.read_line(&mut line).map_err(broken)?;
        serde_json::from_str(&line).map_err(|error| format!("control: {error}"))
    }
}
