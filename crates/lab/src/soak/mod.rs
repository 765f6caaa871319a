//! `lab soak`: a gateway that runs for a long time between two hosts: at half load, while programs take over,
//! and under more than it can carry.
//!
//! Every packet carries the number that it has in its flow, so that host b sees what is missing and what
//! comes out of order. What the gateway says of itself is held against what was sent and what arrived.

mod rows;
mod setting;
mod traffic;

use crate::experiment::Row;
use crate::forwarding::load::{LoadRates, SentAs, flood};
use crate::forwarding::net::{CableOffloads, Net, Way};
use crate::forwarding::{BEFORE as WARM_UP, no_networks, processors, seconds, steady};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use setting::{Setting, broken, lost};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use traffic::Arrived;

/// A switch that takes so long over a packet that more can be sent than it can carry: the longer, the more
/// often its loop does what it does.
const SLOW: &str = include_str!("slow.rav");
const WORK: &str = "        count work\n";
/// How often that is to begin with, and at most: more would take longer to compile than a takeover may.
const LINES: (usize, usize) = (1, 16);
/// Several times what the program lets a gateway carry can be sent; less and its loop does more. More than
/// what is sent under overload, since then host b is watched, too.
const SENDABLE: f64 = 4.0;

/// Parts of what it can carry that are sent.
const HALF: f64 = 0.5;
const TAKEOVER_LOAD: f64 = 0.8;
/// What is too much: so many times what it can carry at least, and a little more is aimed at.
const OVERLOAD: f64 = 3.0;
const AIMED_AT: f64 = 3.3;

/// By which names ports lose packets before a program, and behind it.
const BEFORE: [&str; 3] = ["ring_full", "too_long", "unreadable"];
const BEHIND: [&str; 3] = ["busy", "refused", "down"];

/// How often another program takes over.
const TAKEOVER: Duration = Duration::from_millis(100);
/// How often control is asked under overload: it shares its processor with whoever sends.
const ASKED: Duration = Duration::from_millis(25);
/// After an overload, service is to be normal within this time.
const RECOVERY: Duration = Duration::from_secs(1);

/// What takes over again and again, and what is too much, lasts at most this long; half load as long as asked
/// for.
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

/// What a gateway can carry when nobody watches.
#[derive(Clone, Debug)]
struct Capacity {
    /// The program with which it can.
    program: String,
    /// Packets a second, of five times: that were sent, and that arrived.
    rates: Vec<LoadRates>,
}

impl Capacity {
    /// The middle of what arrived.
    fn carried(&self) -> f64 {
        let mut arrived: Vec<f64> = self.rates.iter().map(|rates| rates.arrived).collect();
        arrived.sort_by(f64::total_cmp);
        arrived[arrived.len() / 2]
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
    /// Resident memory in KiB, at a tenth of the time and then every second.
    resident: RangeInclusive<u64>,
    /// Open descriptors at the start and at the end.
    descriptors: (u64, u64),
}

/// Programs that take over.
#[derive(Clone, Debug)]
struct Takeovers {
    /// Packets a second that the gateway can carry.
    capacity: f64,
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
    /// Resident memory in KiB.
    resident: RangeInclusive<u64>,
    /// What host b saw at half load, from a second after the overload on.
    after: Arrived,
}

/// The rows of a plan, and in words how they came about.
///
/// # Errors
/// Networks cannot be made here, a gateway does not start, or does not answer.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    crate::needed::require(&[crate::needed::PING])?;
    rig::become_root().map_err(no_networks)?;
    Net::new(Way::Switched, CableOffloads::On).map_err(no_networks)?;
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
    progress("soak: what the gateway carries");
    let capacity = capacity(plan, directory.path())?;
    progress("soak: half load");
    let half_load = half_load(plan, directory.path(), plan.time, &capacity)?;
    progress("soak: programs take over");
    let takeovers = takeovers(plan, directory.path(), short, &capacity)?;
    progress("soak: overload");
    let overload = overload(plan, directory.path(), short, &capacity)?;
    Ok([capacity.rows(), half_load.rows(), takeovers.rows(), overload.rows()].concat())
}

/// As much as can be sent is sent, and what arrives is counted by host b's interface, before and behind:
/// nobody watches meanwhile, neither there nor at the gateway. The program gets slower until the gateway is
/// what limits it.
fn capacity(plan: &SoakPlan, directory: &Path) -> Result<Capacity, String> {
    let system = |error: io::Error| error.to_string();
    let mut lines = LINES.0;
    loop {
        let program = SLOW.replace(WORK, &WORK.repeat(lines));
        let setting = Setting::start(plan, directory, &program)?;
        let frames = setting.traffic().frames();
        let once = |time| {
            flood(setting.net.flood_ends(), &frames, SentAs::Singly, plan.processors.0, WARM_UP, time)
                .map_err(system)
        };
        let first = once(Duration::from_millis(500))?;
        let times = first.offered / first.arrived.max(1.0);
        if times < SENDABLE && lines < LINES.1 {
            lines = ((lines as f64 * SENDABLE / times * 1.1).ceil() as usize).clamp(lines + 1, LINES.1);
            continue;
        }
        let rates = (0..5).map(|_| once(Duration::from_secs(1))).collect::<Result<_, _>>()?;
        return Ok(Capacity { program, rates });
    }
}

fn half_load(
    plan: &SoakPlan,
    directory: &Path,
    time: Duration,
    capacity: &Capacity,
) -> Result<Steady, String> {
    let setting = Setting::start(plan, directory, &capacity.program)?;
    let capacity = capacity.carried();
    let wanted = capacity * HALF;
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

fn takeovers(
    plan: &SoakPlan,
    directory: &Path,
    time: Duration,
    capacity: &Capacity,
) -> Result<Takeovers, String> {
    let setting = Setting::start(plan, directory, &capacity.program)?;
    let capacity = capacity.carried();
    let wanted = capacity * TAKEOVER_LOAD;
    let mut control = setting.control().map_err(broken)?;
    let (mut programs, mut slowest) = (0, Duration::ZERO);
    let mut next = Instant::now();
    let (sent, arrived) = setting.traffic().run(wanted, time, || {
        if Instant::now() >= next {
            next += TAKEOVER;
            let start = Instant::now();
            let answer = control.ask("reload").map_err(broken)?;
            slowest = slowest.max(start.elapsed());
            if answer["done"].is_null() {
                return Err(format!("a program did not take over: {answer}"));
            }
            programs += 1;
        }
        Ok(())
    })?;
    let picture = control.told("picture").map_err(broken)?;
    let lost = (
        lost(&picture, "/ports/0/since_attached", &BEFORE),
        lost(&picture, "/ports/1/since_attached", &BEHIND),
    );
    let (seconds, slowest_answer_ms) = (time.as_secs_f64(), slowest.as_secs_f64() * 1e3);
    let rate = sent as f64 / seconds;
    Ok(Takeovers { capacity, rate, seconds, programs, slowest_answer_ms, sent, lost, arrived })
}

fn overload(
    plan: &SoakPlan,
    directory: &Path,
    time: Duration,
    capacity: &Capacity,
) -> Result<Overload, String> {
    let setting = Setting::start(plan, directory, &capacity.program)?;
    let capacity = capacity.carried();
    let mut control = setting.control().map_err(broken)?;
    let mut slowest = Duration::ZERO;
    let sampled = AtomicBool::new(true);
    let (resident, seen) = thread::scope(|scope| {
        let samples = scope.spawn(|| setting.resident(time / 10, &sampled));
        let traffic = setting.traffic();
        let mut next = Instant::now();
        let seen = (|| {
            let (over, _) = traffic.run(AIMED_AT * capacity, time, || {
                let start = Instant::now();
                if start >= next {
                    next = start + ASKED;
                    control.ask("picture").map_err(broken)?;
                    slowest = slowest.max(start.elapsed());
                }
                Ok(())
            })?;
            let (before, _) = traffic.run(capacity * HALF, RECOVERY, || Ok(()))?;
            let (after, arrived) = traffic.run(capacity * HALF, 2 * RECOVERY, || Ok(()))?;
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
