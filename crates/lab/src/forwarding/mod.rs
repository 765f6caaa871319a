//! `lab forwarding`: two hosts with a gateway between them, and how fast ours is beside others on the same
//! cables.
//!
//! Gateways take turns, round by round and in the opposite order every other round. Each gets fresh networks,
//! starts, and is measured by programs that know nothing of it.

pub mod delay;
pub mod drain;
pub mod gateways;
pub(crate) mod latency;
pub mod load;
pub mod net;
mod programs;

use crate::experiment::{Better, Figure, Other, Row};
use crate::needed::{IPERF3, PING, require};
use crate::plan::{LabPlan, Length};
use crate::traffic::LabError;
use drain::drain;
use gateways::{Gateway, Make};
use load::{Processors, SentAs, StreamEnds, TrafficDirection, cuts_bursts, flood, ping, tcp};
use net::{B, CableOffloads, Net, Way};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Frames of a flood differ in their source ports.
pub(crate) const FLOWS: u16 = 64;
/// The port to which they go (RFC 863).
pub(crate) const DISCARD: u16 = 9;
/// Lengths of frames with their check sequences.
const SIZES: [usize; 3] = [64, 512, 1460];
/// Numbers of rules.
const RULES: [usize; 3] = [0, 100, 1000];
/// How long a flood runs before it is counted.
pub(crate) const BEFORE: Duration = Duration::from_millis(200);
const PINGS: u32 = 100;
/// How often in a turn a ring is filled and emptied.
const DRAINS: usize = 20;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    TcpThere(bool),
    TcpBack(bool),
    Udp(usize),
    /// What the sender of a flood got rid of: where it is no more than what arrives, the gateway could carry
    /// more.
    Offered(usize),
    /// How quickly a ring that was filled while the gateway was stopped is emptied, and what of it did not
    /// arrive.
    Drain,
    Undrained,
    Ping,
}

impl Measure {
    fn case(self) -> String {
        let offloads = |on| if on { "offloads on" } else { "offloads off" };
        match self {
            Measure::TcpThere(on) => format!("TCP with {}, one stream a to b", offloads(on)),
            Measure::TcpBack(on) => format!("TCP with {}, one stream b to a", offloads(on)),
            Measure::Udp(size) | Measure::Offered(size) => format!("UDP of {size} bytes"),
            Measure::Drain | Measure::Undrained => format!("Full ring of UDP of {} bytes", SIZES[0]),
            Measure::Ping => "ping".to_owned(),
        }
    }

    fn unit(self) -> (&'static str, &'static str, Better) {
        match self {
            Measure::TcpThere(_) | Measure::TcpBack(_) => ("TCP payload", "Gbit/s of TCP", Better::More),
            Measure::Udp(_) => ("packets that arrive", "Mpps", Better::More),
            Measure::Offered(_) => ("packets that were sent", "Mpps", Better::More),
            Measure::Drain => ("packets that arrive, nobody sending", "Mpps", Better::More),
            Measure::Undrained => ("packets that do not arrive", "packets", Better::Less),
            Measure::Ping => ("round trip", "µs", Better::Less),
        }
    }
}

/// What a gateway showed, and why where it did not.
#[derive(Default)]
struct Shown {
    samples: BTreeMap<Measure, Vec<f64>>,
    failed: BTreeMap<Measure, String>,
    said: String,
    absent: Option<String>,
}

/// The rows of a plan, and in words who took part and on which processors.
///
/// # Errors
/// Networks cannot be made here, or nobody can say whether hosts reach each other.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let failed = no_networks;
    require(&[PING])?;
    let no_streams = IPERF3.found().err();
    if let Some(why) = &no_streams {
        progress(&format!("forwarding: without streams of TCP, since {why}"));
    }
    rig::become_root().map_err(failed)?;
    let processors = processors();
    let cut = cuts_bursts(&Net::new(Way::Routed, CableOffloads::On).map_err(failed)?).map_err(failed)?;
    let sent = if cut { SentAs::InBursts } else { SentAs::Singly };
    let directory = tempfile::Builder::new().prefix("ravelin-lab-").tempdir().map_err(failed)?;
    let wanted = |gateway: &Gateway| {
        plan.gateways.is_empty() || plan.gateways.iter().any(|name| gateway.name.contains(name))
    };
    let gateways: Vec<Gateway> = gateways().into_iter().filter(wanted).collect();
    // Ours and the kernel's stand in pairs, and stay together.
    let some = plan.gateways.is_empty() || plan.gateways.iter().any(|name| name == "rules");
    let walls: Vec<Gateway> = if some { walls() } else { Vec::new() };
    let mut shown: Vec<Shown> = gateways.iter().chain(&walls).map(|_| Shown::default()).collect();
    for round in 0..plan.runs {
        let mut order: Vec<usize> = (0..shown.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let gateway = gateways.iter().chain(&walls).nth(index).filter(|_| shown[index].absent.is_none());
            let Some(gateway) = gateway else { continue };
            progress(&format!("forwarding: round {} of {}, {}", round + 1, plan.runs, gateway.name));
            let whole = index < gateways.len();
            let mut turn = Turn {
                gateway,
                plan,
                processors,
                sent,
                directory: directory.path(),
                no_streams: no_streams.as_deref(),
                shown: &mut shown[index],
            };
            if let Err(why) = turn.take(whole) {
                shown[index].absent = Some(why);
            }
        }
    }
    let mut rows = compared(&gateways, &shown);
    rows.extend(no_streams.iter().map(|why| Row::absent("TCP, every gateway", "TCP payload", why)));
    rows.extend(
        gateways.iter().chain(&walls).zip(&shown).flat_map(|(gateway, shown)| without(gateway, shown)),
    );
    rows.extend(walled(&walls, &shown[gateways.len()..]));
    let roll = roll(gateways.iter().chain(&walls).zip(&shown), processors, sent);
    Ok((rows, roll))
}

/// One gateway's turn.
struct Turn<'a> {
    gateway: &'a Gateway,
    plan: &'a LabPlan,
    processors: Processors,
    /// How the packets of floods are sent.
    sent: SentAs,
    directory: &'a Path,
    /// Why there are no streams of TCP.
    no_streams: Option<&'a str>,
    shown: &'a mut Shown,
}

impl Turn<'_> {
    /// Everything, or only what matters to rules.
    fn take(&mut self, whole: bool) -> Result<(), String> {
        for offloads in [CableOffloads::On, CableOffloads::Off] {
            let on = offloads == CableOffloads::On;
            if !whole && !on {
                break;
            }
            let make = if self.gateway.taps() { Net::apart } else { Net::new };
            let net = make(self.gateway.way, offloads).map_err(|error| error.to_string())?;
            let running = self.gateway.start(&net, self.processors, self.directory)?;
            self.shown.said.clone_from(&running.said);
            let whole_seconds = whole_seconds(self.plan);
            if on {
                let (time, processor) = (Duration::from_secs_f64(seconds(self.plan)), self.processors.sender);
                let checksums = |on| net.a.links()?.checksums("eth0", on);
                let (sent, bursts) = (self.sent, self.sent == SentAs::InBursts);
                if bursts {
                    checksums(false).map_err(|error| error.to_string())?;
                }
                for &size in if whole { &SIZES[..] } else { &SIZES[..1] } {
                    let frames = net.frames(size, FLOWS, DISCARD);
                    let mut offered = None;
                    self.keep(Measure::Udp(size), || {
                        let rates = flood(net.flood_ends(), &frames, sent, processor, BEFORE, time);
                        let rates = rates.map_err(|error| error.to_string())?;
                        offered = Some(rates.offered / 1e6);
                        Ok(rates.arrived / 1e6)
                    });
                    if let Some(offered) = offered {
                        self.keep(Measure::Offered(size), || Ok(offered));
                    }
                }
                if bursts {
                    checksums(true).map_err(|error| error.to_string())?;
                }
            }
            if whole
                && on
                && let Some(process) = running.process()
                && let Some(count) = self.gateway.ring()
            {
                let (frames, sender) = (net.frames(SIZES[0], FLOWS, DISCARD), self.processors.sender);
                for _ in 0..DRAINS {
                    let mut lost = None;
                    self.keep(Measure::Drain, || {
                        let drained = drain(&net, &frames, count, process, sender);
                        let drained = drained.map_err(|error| error.to_string())?;
                        lost = Some(drained.lost as f64);
                        Ok(drained.rate / 1e6)
                    });
                    if let Some(lost) = lost {
                        self.keep(Measure::Undrained, || Ok(lost));
                    }
                }
            }
            if whole && on {
                self.keep(Measure::Ping, || ping(&net, PINGS));
            }
            if whole && self.no_streams.is_none() {
                let ends = StreamEnds { client: &net.a, server: &net.b, address: B.1 };
                let stream = |direction| Ok(tcp(ends, direction, 0, whole_seconds)? / 1e9);
                self.keep(Measure::TcpThere(on), || stream(TrafficDirection::There));
                self.keep(Measure::TcpBack(on), || stream(TrafficDirection::Back));
            }
        }
        Ok(())
    }

    /// Keeps what is measured; what once could not be is not tried again.
    fn keep(&mut self, measure: Measure, taken: impl FnOnce() -> Result<f64, String>) {
        if self.shown.failed.contains_key(&measure) {
            return;
        }
        match taken() {
            Ok(value) => self.shown.samples.entry(measure).or_default().push(value),
            Err(why) => {
                self.shown.failed.insert(measure, why);
            }
        }
    }
}

pub(crate) fn seconds(plan: &LabPlan) -> f64 {
    match plan.length {
        Length::Seconds(seconds) => seconds,
        // So many repeats say nothing of packets that come from elsewhere.
        Length::Repeat(_) => 1.0,
    }
}

/// The same for programs that know whole seconds only.
pub(crate) fn whole_seconds(plan: &LabPlan) -> u64 {
    (seconds(plan).round() as u64).max(1)
}

/// The sender's is the first one that may be used, the gateway's the last.
pub(crate) fn processors() -> Processors {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let (first, last) = (cores.first().map_or(0, |core| core.id), cores.last().map_or(0, |core| core.id));
    Processors { sender: first, gateway: last }
}

pub(crate) fn no_networks(error: std::io::Error) -> LabError {
    LabError::Tables(format!(
        "no networks can be made here: {error}; run as root, or let users have namespaces"
    ))
}

/// How busy the machine is, in words.
pub(crate) fn steady() -> String {
    // Only Linux has this file, and only Linux comes here.
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("load average at the end: {}", load.split_whitespace().next().unwrap_or("unknown"))
}

/// testpmd's ports with as large a ring as ours have, and as they, past the queueing discipline.
const PACKET_DEVICE: &str = "net_af_packet,iface={},framesz=2048,framecnt=8192,qdisc_bypass=1";

/// Everybody who is to stand between the hosts.
fn gateways() -> Vec<Gateway> {
    let ours = |kind, name: &str, segments, program: String, way| {
        let note = if segments == "whole" { ", segments whole" } else { "" };
        let name = format!("Ravelin {name} over {kind}{note}");
        Gateway { name, make: Make::Ravelin { kind, segments, program }, way }
    };
    let mut all = Vec::new();
    for kind in ["af_packet", "af_xdp", "tap"] {
        all.push(ours(kind, "wire", "cut", programs::shipped("wire"), Way::Switched));
        all.push(ours(kind, "router", "cut", programs::router(), Way::Routed));
        let headers = programs::router_of_headers();
        all.push(ours(kind, "router without signatures", "cut", headers, Way::Routed));
    }
    all.insert(1, ours("af_packet", "wire", "whole", programs::shipped("wire"), Way::Switched));
    let other = |name: &str, make, way| Gateway { name: name.to_owned(), make, way };
    let routing = |steered| Make::Routing { steered, rules: None };
    all.extend([
        other("Linux routing", routing(false), Way::Routed),
        other("Linux routing on its own processor", routing(true), Way::Routed),
        other("Linux bridge", Make::Bridge, Way::Switched),
        other("XDP redirect", Make::Xdp, Way::Switched),
        other("testpmd over af_packet", Make::Testpmd { device: PACKET_DEVICE }, Way::Switched),
        other("testpmd over af_xdp", Make::Testpmd { device: "net_af_xdp,iface={}" }, Way::Switched),
        other("testpmd over tap", Make::Testpmd { device: "net_tap,iface={}" }, Way::Switched),
    ]);
    all
}

/// Firewalls: ours and nftables, with the same rules.
fn walls() -> Vec<Gateway> {
    let mut all = Vec::new();
    for count in RULES {
        let rules = programs::rules(count);
        let program = programs::firewall(&rules);
        all.push(Gateway {
            name: format!("Ravelin firewall_rules with {count} rules"),
            make: Make::Ravelin { kind: "af_packet", segments: "cut", program },
            way: Way::Switched,
        });
        let rules = Some(programs::nftables(&rules));
        all.push(Gateway {
            name: format!("nftables with {count} rules"),
            make: Make::Routing { steered: false, rules },
            way: Way::Routed,
        });
    }
    all
}

/// Ours held against others. What hands on as they are is held against everybody, a router against routers.
fn compared(gateways: &[Gateway], shown: &[Shown]) -> Vec<Row> {
    let measures =
        [Measure::TcpThere(false), Measure::TcpBack(false), Measure::TcpThere(true), Measure::TcpBack(true)];
    let measures = measures.into_iter().chain(SIZES.map(Measure::Udp)).chain([Measure::Drain, Measure::Ping]);
    let mut rows = Vec::new();
    let figure = |index: usize, measure| {
        shown[index].samples.get(&measure).and_then(|values| Figure::of(values.iter().copied()))
    };
    for measure in measures {
        let beside = match measure {
            Measure::Udp(size) => Some(Measure::Offered(size)),
            Measure::Drain => Some(Measure::Undrained),
            _ => None,
        };
        if let Some(offered) = beside {
            let (what, unit, _) = offered.unit();
            let sent = (0..gateways.len()).filter_map(|index| Some((index, figure(index, offered)?)));
            rows.extend(sent.map(|(index, sent)| {
                let gateway = &gateways[index];
                let case = format!("{}, {}", offered.case(), gateway.name);
                if gateway.ours() {
                    Row::alone(&case, what, unit, Some(sent), None)
                } else {
                    Row::of_other(&case, what, unit, Some(Other::of(&gateway.name, sent)))
                }
            }));
        }
        let (what, unit, better) = measure.unit();
        for (index, ours) in gateways.iter().enumerate().filter(|(_, gateway)| gateway.ours()) {
            let Some(mine) = figure(index, measure) else { continue };
            let case = format!("{}, {}", measure.case(), ours.name);
            let others = gateways.iter().enumerate().filter(|(_, other)| !other.ours());
            let others = others.filter(|(_, other)| ours.way == Way::Switched || other.way == Way::Routed);
            let before = rows.len();
            for (number, other) in others {
                if let Some(theirs) = figure(number, measure) {
                    let row = Row::alone(&case, what, unit, Some(mine.clone()), None);
                    rows.push(row.against(Some(Other::of(&other.name, theirs)), better));
                }
            }
            if rows.len() == before {
                rows.push(Row::alone(&case, what, unit, Some(mine), None));
            }
        }
    }
    rows
}

/// Rows without figures, each with its reason. Of others they are no fault: they need not be installed.
fn without(gateway: &Gateway, shown: &Shown) -> Vec<Row> {
    let row = |case: String, (what, unit): (&str, &str), why: &str| {
        if gateway.ours() { Row::refused(&case, what, unit, why) } else { Row::absent(&case, what, why) }
    };
    let failed = shown.failed.iter().map(|(measure, why)| {
        let (what, unit, _) = measure.unit();
        row(format!("{}, {}", measure.case(), gateway.name), (what, unit), why)
    });
    let whole = shown.absent.iter().map(|why| row(gateway.name.clone(), ("every measure", "Mpps"), why));
    failed.chain(whole).collect()
}

/// Rules: ours against nftables with as many, and against ours without.
fn walled(walls: &[Gateway], shown: &[Shown]) -> Vec<Row> {
    let measure = Measure::Udp(SIZES[0]);
    let figure = |index: usize| {
        let values = shown.get(index)?.samples.get(&measure)?;
        Figure::of(values.iter().copied())
    };
    let (what, unit, better) = measure.unit();
    let mut rows = Vec::new();
    for ours in (0..walls.len()).step_by(2) {
        let Some(mine) = figure(ours) else { continue };
        let row = || {
            Row::alone(
                &format!("Rules and {}, {}", measure.case(), walls[ours].name),
                what,
                unit,
                Some(mine.clone()),
                None,
            )
        };
        let mut others = vec![ours + 1];
        if ours > 0 {
            others.push(0);
        }
        let against =
            |&other: &usize| Some(row().against(Some(Other::of(&walls[other].name, figure(other)?)), better));
        rows.extend(others.iter().filter_map(against));
    }
    rows
}

/// Who took part and how, and who did not and why.
fn roll<'a>(
    all: impl Iterator<Item = (&'a Gateway, &'a Shown)>,
    processors: Processors,
    sent: SentAs,
) -> String {
    let bursts = if sent == SentAs::InBursts { ", in bursts of a flow that the kernel cuts" } else { "" };
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for (gateway, shown) in all {
        let name = &gateway.name;
        for (measure, why) in &shown.failed {
            absent.push(format!("{name} in {} ({why})", measure.case()));
        }
        match &shown.absent {
            Some(why) => absent.push(format!("{name} ({why})")),
            None if shown.said.is_empty() => present.push(name.clone()),
            None => present.push(format!("{name} ({})", shown.said)),
        }
    }
    let absent = if absent.is_empty() { "nobody".to_owned() } else { absent.join("; ") };
    format!(
        "hosts and gateway in networks of their own, joined by virtual cables; UDP packets sent by one thread on processor {}{bursts}, gateways that are programs \
held on processor {}, the kernel's ways on the processor that sends unless a row says otherwise, and there the sender's work and theirs share it; hosts of \
TCP streams where the system puts them; took part: {}; {}; absent: {absent}",
        processors.sender,
        processors.gateway,
        present.join("; "),
        steady(),
    )
}
