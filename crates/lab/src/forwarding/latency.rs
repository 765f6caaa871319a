//! `lab latency`: how long packets take through a gateway at parts of the load that it can carry, by when the
//! packet loop takes what has come.
//!
//! The product's loop takes what has come at once, however little it is. The other ways stand beside it to be
//! compared: they let packets gather for a fixed time first, as a loop does that waits for full batches at a
//! low load. All run the same loop over the same ports; only the moment at which packets are shown to it
//! differs.

use super::delay::{Delays, delays};
use super::load::{Processors, SentAs, flood};
use super::net::{CableOffloads, Net, Way};
use super::{BEFORE, DISCARD, FLOWS, processors, seconds, steady};
use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::LabPlan;
use crate::programs::compiled;
use crate::traffic::LabError;
use engine::live::{Loaded, Remote, run, workers};
use exec::{Backend, BackendKind};
use lang::pipeline::Decode;
use packet::Batch;
use ports::live::clock::{Clock, MachineClock, Now};
use ports::live::{Lane, PortKind, ReceiveLosses, Receiver, WantedPort, attach_all};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Parts of the load that a gateway can carry, in per cent.
const LOADS: [u32; 6] = [10, 25, 50, 75, 90, 95];
/// Parts of all packets that are at least as quick, in per cent.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];
const SIZE: usize = 64;

/// When the loop is shown what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// At once.
    AtOnce,
    /// When the first of it has been there for so many microseconds, or longer.
    Gather(u64),
    /// The kernel's IP forwarding, which has no such loop.
    Kernel,
}

const POLICIES: [Policy; 4] = [Policy::AtOnce, Policy::Gather(50), Policy::Gather(200), Policy::Kernel];

impl Policy {
    fn name(self) -> String {
        match self {
            Policy::AtOnce => "Ravelin, what has come at once".to_owned(),
            Policy::Gather(time) => format!("Ravelin, gathered for {time} µs"),
            Policy::Kernel => "Linux routing".to_owned(),
        }
    }
}

/// What one policy showed: what it carried, and by load the delays at each percentile, round by round.
#[derive(Default)]
struct Shown {
    carried: Vec<f64>,
    delays: BTreeMap<u32, Vec<Taken>>,
}

/// One run at one load.
struct Taken {
    at: Vec<f64>,
    sender: f64,
    lost: f64,
}

/// The rows of a plan, and in words how they came about.
///
/// # Errors
/// Networks cannot be made here, a gateway does not start, or nobody can say whether hosts reach each other.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let failed = super::no_networks;
    crate::needed::require(&[crate::needed::PING])?;
    rig::become_root().map_err(failed)?;
    let processors = processors();
    let mut shown: Vec<Shown> = POLICIES.iter().map(|_| Shown::default()).collect();
    for round in 0..plan.runs {
        let mut order: Vec<usize> = (0..POLICIES.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let policy = POLICIES[index];
            progress(&format!("latency: round {} of {}, {}", round + 1, plan.runs, policy.name()));
            let way = if policy == Policy::Kernel { Way::Routed } else { Way::Switched };
            let net = Net::new(way, CableOffloads::On).map_err(failed)?;
            match policy {
                Policy::Kernel => {
                    super::gateways::routing(&net).map_err(failed)?;
                    take(&net, plan, processors, &mut shown[index]).map_err(failed)?;
                }
                Policy::AtOnce | Policy::Gather(_) => {
                    let hold = if let Policy::Gather(time) = policy { time } else { 0 };
                    let work = || take(&net, plan, processors, &mut shown[index]);
                    between(&net, hold, processors, work).map_err(LabError::Tables)?;
                }
            }
        }
    }
    let mode = format!(
        "hosts and gateway in networks of their own, joined by virtual cables; UDP packets of {SIZE} bytes, each due at a time that does not depend on the ones before it, and \
delays counted from then until the kernel has the packet at the other host; sent on processor {}, gateway on processor {}, Linux routing on the sender's; {}",
        processors.sender,
        processors.gateway,
        steady(),
    );
    Ok((told(&shown), mode))
}

/// What it can carry, and delays at parts of that.
fn take(net: &Net, plan: &LabPlan, processors: Processors, shown: &mut Shown) -> io::Result<()> {
    let time = Duration::from_secs_f64(seconds(plan));
    let frames = net.frames(SIZE, FLOWS, DISCARD);
    let most = flood(net.flood_ends(), &frames, SentAs::Singly, processors.sender, BEFORE, time)?.arrived;
    shown.carried.push(most);
    for load in LOADS {
        let rate = most * f64::from(load) / 100.0;
        let Delays { all, sender, sent, arrived } =
            delays(net, SIZE, rate.max(1.0), time, processors.sender)?;
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        // Where no packet arrived, no delay is told.
        let told = PERCENTILES.iter().filter(|_| !all.is_empty());
        let at = told.map(|&part| microseconds(all.value_at_percentile(part))).collect();
        let lost = 100.0 * sent.saturating_sub(arrived) as f64 / sent.max(1) as f64;
        let sender = microseconds(sender.value_at_percentile(99.0));
        shown.delays.entry(load).or_default().push(Taken { at, sender, lost });
    }
    Ok(())
}

/// Runs something while the product's loop with the program `wire` stands between the hosts.
fn between(
    net: &Net,
    hold: u64,
    processors: Processors,
    work: impl FnOnce() -> io::Result<()>,
) -> Result<(), String> {
    let program = compiled("wire", Decode::Lazy)?;
    let backend = exec::load(&program, BackendKind::Native, 2, 0).map_err(|error| error.to_string())?;
    let wanted = ["to-a", "to-b"].map(|interface| WantedPort {
        interface: interface.to_owned(),
        vlan: ports::live::VlanPlace::Alone,
        kind: PortKind::AfPacket,
        offloads: ports::live::Offloads::default(),
        keep_from_kernel: true,
        promiscuous: true,
        xdp: ports::live::XdpWishes::default(),
        middleware: ports::live::Middleware::default(),
        tunnel: None,
        vnic: None,
    });
    let (started, starts) = mpsc::channel::<Result<Remote, String>>();
    thread::scope(|scope| {
        let gateway = scope.spawn(move || {
            let opened = net.gateway.inside(|| {
                let numbered: Vec<_> = (1..).zip(&wanted).collect();
                attach_all(&numbered, 1, &[])
                    .map_err(|(port, error)| io::Error::other(format!("port {port}: {error}")))
            });
            let lanes = |attached: Vec<(packet::PortNumber, ports::live::Attached)>| -> Vec<Lane> {
                attached
                    .into_iter()
                    .flat_map(|(_, port)| port.lanes)
                    .map(|lane| gathering(lane, hold))
                    .collect()
            };
            let ready = opened.and_then(|attached| {
                let clock: Arc<dyn Clock> = Arc::new(MachineClock);
                workers(vec![lanes(attached)], &clock)
            });
            match ready {
                Err(error) => started.send(Err(error.to_string())).map_err(drop).unwrap_or_default(),
                Ok((workers, remote)) => {
                    let loaded = Loaded {
                        program: Arc::new(program),
                        sources: Arc::default(),
                        backends: vec![backend as Box<dyn Backend>],
                        schedule: None,
                        steering: Vec::new(),
                    };
                    // Whoever waits for it is there until this ends.
                    let _ = started.send(Ok(remote.clone()));
                    let _ = run(workers, loaded.generations(2, 1), &remote, &[processors.gateway as u16]);
                }
            }
        });
        let remote = starts.recv().map_err(|_| "the gateway does not start".to_owned())??;
        let worked = work().map_err(|error| error.to_string());
        remote.stop();
        gateway.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked
    })
}

fn gathering(lane: Lane, hold: u64) -> Lane {
    if hold == 0 {
        return lane;
    }
    let receive =
        Box::new(Gathering { inner: lane.receive, hold: Duration::from_micros(hold), last: Instant::now() });
    Lane { receive, ..lane }
}

/// Shows nothing until a time has passed since it was last looked at what has come.
struct Gathering {
    inner: Box<dyn Receiver>,
    hold: Duration,
    last: Instant,
}

impl Receiver for Gathering {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        if self.last.elapsed() < self.hold {
            batch.clear();
            return &mut [];
        }
        self.last = Instant::now();
        self.inner.receive(batch, now)
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.inner.losses()
    }
}

/// Rows of all loads: ours at each percentile, the product's way against every other.
fn told(shown: &[Shown]) -> Vec<Row> {
    let mut rows = Vec::new();
    // Ravelin's rows are held against the kernel's figure; what has nothing to be held against is a row of
    // its own for each.
    let mut tell = |case: &str,
                    what: &str,
                    unit: &str,
                    better: Option<Better>,
                    figure: &dyn Fn(&Shown) -> Option<Figure>| {
        let kernel = POLICIES.iter().zip(shown).find(|(policy, _)| **policy == Policy::Kernel);
        let kernel = kernel.and_then(|(policy, shown)| Some(Other::of(&policy.name(), figure(shown)?)));
        for (policy, shown) in POLICIES.iter().zip(shown) {
            let own = format!("{case}, {}", policy.name());
            match (policy, better) {
                (Policy::Kernel, Some(_)) => {}
                (Policy::Kernel, None) => rows.push(Row::of_other(&own, what, unit, kernel.clone())),
                (_, None) => rows.push(Row::alone(&own, what, unit, figure(shown), None)),
                // Where no packet arrived there is no delay to tell.
                (_, Some(better)) => rows.extend(figure(shown).map(|ours| {
                    Row::alone(&own, what, unit, Some(ours), None).against(kernel.clone(), better)
                })),
            }
        }
    };
    let carried = |shown: &Shown| Figure::of(shown.carried.iter().map(|rate| rate / 1e6));
    tell("What it carries", "packets that arrive", "Mpps", Some(Better::More), &carried);
    for load in LOADS {
        let case = format!("{load} % of what it carries");
        let figure = |shown: &Shown, value: &dyn Fn(&Taken) -> Option<f64>| {
            Figure::of(shown.delays.get(&load).into_iter().flatten().filter_map(value))
        };
        for (number, part) in PERCENTILES.iter().enumerate() {
            let what = if *part == 100.0 { "longest delay".to_owned() } else { format!("delay of {part} %") };
            let delay = |shown: &Shown| figure(shown, &|taken| taken.at.get(number).copied());
            tell(&case, &what, "µs", Some(Better::Less), &delay);
        }
        tell(&case, "packets lost", "%", None, &|shown| figure(shown, &|taken| Some(taken.lost)));
        let late = |shown: &Shown| figure(shown, &|taken| Some(taken.sender));
        tell(&case, "lateness of 99 % at the sender, within the delay", "µs", None, &late);
    }
    rows
}
