//! `lab naming-path`: what gets from an initiator to a host behind its carrier's NAT, by waypoint and
//! gateway, beside other ways that lead there.
//!
//! Ways take turns, round by round and in the opposite order every other round. Each gets a small internet of
//! its own, starts, and is measured by programs that know nothing of it.

mod others;
mod ours;

use crate::experiment::{Better, Figure, Other, Row};
use crate::forwarding::load::{SentAs, StreamEnds, TrafficDirection, flood, stream_with_writes, tcp};
use crate::forwarding::net::{FloodEnds, udp};
use crate::forwarding::{BEFORE, no_networks, processors, seconds, steady, whole_seconds};
use crate::hosted::{START, until};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use others::{OtherWay, Running};
use ours::Ours;
use rig::SmallInternet;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// The service that every way leads to, by TCP and UDP: iperf3's.
pub(crate) const SERVICE: u16 = 5201;
/// Frames of a flood differ in their source ports.
const FLOWS: u16 = 16;
/// Bytes of UDP data: of the shortest frame, of the paper's short packets, and of the longest packet that
/// fits into the tunnel, where the paper has 1,464.
const DATA: [usize; 3] = [18, 48, 1_392];
/// Headers of Ethernet, IPv4 and UDP before them.
const HEADERS: usize = 42;
/// What the paper's prototype carried, in Mbit/s: UDP of 1,464 bytes, TCP, and TCP in writes of 48.
const PAPER_UDP: f64 = 96.0;
const PAPER_TCP: f64 = 80.0;
const PAPER_SHORT_TCP: f64 = 41.0;
const SHORT: u16 = 48;
/// Network cards of the first initiator and of the router that it sends to.
const CARDS: ([u8; 6], [u8; 6]) = ([2, 0, 2, 0, 113, 2], [2, 0, 1, 0, 113, 2]);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    Stream,
    ShortWrites,
    Packets(usize),
    /// The time of our two processes on all processors for each packet of a flood that arrives.
    Busy(usize),
}

impl Measure {
    const ALL: [Measure; 8] = [
        Measure::Stream,
        Measure::ShortWrites,
        Measure::Packets(DATA[0]),
        Measure::Packets(DATA[1]),
        Measure::Packets(DATA[2]),
        Measure::Busy(DATA[0]),
        Measure::Busy(DATA[1]),
        Measure::Busy(DATA[2]),
    ];

    fn case(self) -> String {
        match self {
            Measure::Stream => "TCP, one stream".to_owned(),
            Measure::ShortWrites => format!("TCP, one stream in writes of {SHORT} bytes"),
            Measure::Packets(data) | Measure::Busy(data) => {
                format!("UDP of {data} bytes, as much as can be sent")
            }
        }
    }

    fn unit(self) -> (&'static str, &'static str, Better) {
        match self {
            Measure::Stream | Measure::ShortWrites => ("payload", "Mbit/s", Better::More),
            Measure::Packets(data) if data == DATA[0] => ("packets that arrive", "k/s", Better::More),
            Measure::Packets(_) => ("payload that arrives", "Mbit/s", Better::More),
            Measure::Busy(_) => ("time of waypoint and gateway for each that arrives", "ns", Better::Less),
        }
    }

    fn paper(self) -> Option<f64> {
        match self {
            Measure::Stream => Some(PAPER_TCP),
            Measure::ShortWrites => Some(PAPER_SHORT_TCP),
            Measure::Packets(data) if data == DATA[2] => Some(PAPER_UDP),
            Measure::Packets(_) | Measure::Busy(_) => None,
        }
    }
}

/// What a way showed, and why it did not.
#[derive(Default)]
struct Shown {
    samples: BTreeMap<Measure, Vec<f64>>,
    failed: Option<String>,
}

impl Shown {
    fn figure(&self, measure: Measure) -> Option<Figure> {
        Figure::of(self.samples.get(&measure)?.iter().copied())
    }
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    rig::become_root().map_err(no_networks)?;
    SmallInternet::new(1, 1, true).map_err(no_networks)?;
    let directory = tempfile::Builder::new().prefix("ravelin-lab-").tempdir().map_err(no_networks)?;
    let wanted = |way: &OtherWay| {
        plan.gateways.is_empty() || plan.gateways.iter().any(|name| way.name().contains(name.as_str()))
    };
    let others: Vec<OtherWay> = OtherWay::ALL.into_iter().filter(wanted).collect();
    let mut shown: Vec<Shown> = (0..=others.len()).map(|_| Shown::default()).collect();
    for round in 0..plan.runs {
        let mut order: Vec<usize> = (0..shown.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let other = index.checked_sub(1).map(|place| others[place]);
            let name = other.map_or("Ravelin", OtherWay::name);
            progress(&format!("naming-path: round {} of {}, {name}", round + 1, plan.runs));
            let folder = directory.path().join(format!("{index}-{round}"));
            let shown = &mut shown[index];
            if shown.failed.is_none() {
                shown.failed = take(other, &folder, plan, shown).err();
            }
        }
    }
    let (ours, shown) = shown.split_first().unwrap_or_else(|| unreachable!("ours is always there"));
    let mut rows = Vec::new();
    for measure in Measure::ALL {
        let (what, unit, better) = measure.unit();
        let row = match &ours.failed {
            Some(why) => Row::refused(&measure.case(), what, unit, why),
            None => Row::alone(&measure.case(), what, unit, ours.figure(measure), measure.paper()),
        };
        if matches!(measure, Measure::Busy(_)) {
            rows.push(row);
            continue;
        }
        for (way, shown) in others.iter().zip(shown) {
            match &shown.failed {
                Some(why) => rows.push(Row::absent(&measure.case(), way.name(), why)),
                None => {
                    let other = shown.figure(measure).map(|figure| Other::of(way.name(), figure));
                    rows.push(row.clone().against(other, better));
                }
            }
        }
        if others.is_empty() {
            rows.push(row);
        }
    }
    let mode = format!(
        "one initiator, one host, each way by router, waypoint, router, carrier with NAT and gateway; UDP packets sent by one thread on processor {}, everything else where the system puts it; {}",
        processors().sender,
        steady()
    );
    Ok((rows, mode))
}

/// One turn of a way: of ours if there is no other.
fn take(other: Option<OtherWay>, folder: &Path, plan: &LabPlan, shown: &mut Shown) -> Result<(), String> {
    let system = |error: std::io::Error| error.to_string();
    fs::create_dir_all(folder).map_err(system)?;
    let internet = SmallInternet::new(1, 1, true).map_err(system)?;
    let (ours, _others, address) = match other {
        None => {
            let ours = Ours::start(&internet, folder)?;
            let address = ours.address;
            (Some(ours), None, address)
        }
        Some(way) => {
            let running = Running::start(way, &internet, folder)?;
            let address = running.address;
            (None, Some(running), address)
        }
    };
    let ends = StreamEnds { client: &internet.initiators[0], server: &internet.hosts[0], address };
    until(START, "a stream gets through", || tcp(ends, TrafficDirection::There, 0, 1).ok())?;
    let mut keep = |measure, value: f64| shown.samples.entry(measure).or_default().push(value);
    let counted = whole_seconds(plan);
    keep(Measure::Stream, tcp(ends, TrafficDirection::There, 1, counted)? / 1e6);
    keep(Measure::ShortWrites, stream_with_writes(ends, SHORT, counted)? / 1e6);
    // Nobody answers the flood.
    let quiet = "table ip quiet {\n chain in {\n  type filter hook prerouting priority raw\n  \
                 udp dport 5201 drop\n }\n}\n";
    let silenced = internet.hosts[0].run("nft", &["-f", "-"], quiet).map_err(system)?;
    if !silenced.status.success() {
        return Err(format!("nft: {}", String::from_utf8_lossy(&silenced.stderr).trim()));
    }
    for data in DATA {
        if let Some(ours) = &ours {
            // Who has just asked for a name may send.
            ours.ask(&internet)?;
        }
        let before = ours.as_ref().map(Ours::busy);
        let rate = packets(&internet, address, data, plan)?;
        let per_second = rate.arrived;
        let bits = per_second * data as f64 * 8.0 / 1e6;
        keep(Measure::Packets(data), if data == DATA[0] { per_second / 1e3 } else { bits });
        if let (Some(ours), Some(before)) = (&ours, before) {
            let busy = ours.busy().saturating_sub(before).as_nanos() as f64;
            keep(Measure::Busy(data), busy / (per_second * rate.seconds));
        }
    }
    Ok(())
}

/// What came of a flood, and how long it was in all.
struct FloodRate {
    arrived: f64,
    seconds: f64,
}

fn packets(
    internet: &SmallInternet,
    address: Ipv4Addr,
    data: usize,
    plan: &LabPlan,
) -> Result<FloodRate, String> {
    let addresses = (SmallInternet::initiator_address(0), address);
    let frames: Vec<Vec<u8>> =
        (0..FLOWS).map(|flow| udp(CARDS, addresses, (20_000 + flow, SERVICE), data + HEADERS)).collect();
    let ends = FloodEnds { from: (&internet.initiators[0], "eth0"), to: (&internet.hosts[0], "eth0") };
    let time = Duration::from_secs_f64(seconds(plan));
    let rates = flood(ends, &frames, SentAs::Singly, processors().sender, BEFORE, time);
    let rates = rates.map_err(|error| error.to_string())?;
    if rates.arrived < 1.0 {
        return Err(format!("no packet of {data} bytes arrives"));
    }
    Ok(FloodRate { arrived: rates.arrived, seconds: (BEFORE + time).as_secs_f64() })
}
