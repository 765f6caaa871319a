//! `lab host-traffic`: a TCP stream between a host and the gateway's own address, and what becomes of packets
//! that the gateway forwards meanwhile.
//!
//! ```text
//! host a: UDP ────────────► to-a  gateway  to-b ────────────► host b counts
//!                                   to-c ── h-to-c, the machine's
//!                                    │
//! host c: iperf3 ────────────────────┘      a stream by the gateway
//!         iperf3 ─────────────────── Linux  the same stream over a cable of its own, past the gateway
//! ```
//!
//! Both streams take the same processors from the gateway; what only the first one costs is the gateway's.

use crate::experiment::{Better, Figure, Other, Row};
use crate::forwarding::delay::delays;
use crate::forwarding::load::{Processors, SentAs, StreamEnds, TrafficDirection, flood, tcp};
use crate::forwarding::net::{CableOffloads, Net, SINK, TO_A, TO_B, Way};
use crate::forwarding::{BEFORE, DISCARD, FLOWS, no_networks, processors, steady, whole_seconds};
use crate::hosted::{HostedGateway, HostedPort, START, until};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use rig::Namespace;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Kinds of ports, as a gateway's file has them.
const KINDS: [&str; 2] = ["af_packet", "af_xdp"];
/// The length of forwarded frames with their check sequences.
const SIZE: usize = 512;
/// The part of what the gateway carries that is sent where it is to carry all of it, in per cent.
const PART: u32 = 50;
/// A stream is there for so long before packets are sent, and ends after them.
const LEAD: Duration = Duration::from_millis(300);
/// So long it may take until a stream begins.
const BEGINS: Duration = Duration::from_millis(50);

/// Addresses of host c and of the gateway on their link, and of host c and of Linux on theirs.
const C: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 1);
const TO_C: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 254);
const C_BESIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 4, 1);
const LINUX: Ipv4Addr = Ipv4Addr::new(10, 0, 4, 254);

/// What is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Forwarded {
    Nothing,
    Part,
    Flood,
}

const FORWARDED: [Forwarded; 3] = [Forwarded::Nothing, Forwarded::Part, Forwarded::Flood];

/// With whom host c has a stream: `There` is towards them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Gateway(TrafficDirection),
    Linux(TrafficDirection),
}

/// Those by the gateway stand before those past it.
const STREAMS: [Stream; 4] = [
    Stream::Gateway(TrafficDirection::There),
    Stream::Linux(TrafficDirection::There),
    Stream::Gateway(TrafficDirection::Back),
    Stream::Linux(TrafficDirection::Back),
];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    Tcp,
    Arrived,
    Lost,
    MiddleDelay,
    LongDelay,
}

impl Forwarded {
    fn case(self) -> String {
        match self {
            Forwarded::Nothing => "nothing forwarded".to_owned(),
            Forwarded::Part => format!("UDP of {SIZE} bytes, {PART} % of what the gateway carries"),
            Forwarded::Flood => format!("UDP of {SIZE} bytes, as much as can be sent"),
        }
    }

    /// What is measured of the packets.
    fn measures(self) -> &'static [Measure] {
        match self {
            Forwarded::Nothing => &[],
            Forwarded::Part => &[Measure::Lost, Measure::MiddleDelay, Measure::LongDelay],
            Forwarded::Flood => &[Measure::Arrived],
        }
    }
}

impl Measure {
    fn unit(self) -> (&'static str, &'static str, Better) {
        match self {
            Measure::Tcp => ("TCP payload", "Gbit/s of TCP", Better::More),
            Measure::Arrived => ("packets that arrive", "Mpps", Better::More),
            Measure::Lost => ("packets lost", "%", Better::Less),
            Measure::MiddleDelay => ("delay of 50 %", "µs", Better::Less),
            Measure::LongDelay => ("delay of 99 %", "µs", Better::Less),
        }
    }
}

/// In words, beside what something was measured.
fn beside(stream: Option<Stream>) -> &'static str {
    match stream {
        None => "no stream",
        Some(Stream::Gateway(TrafficDirection::There) | Stream::Linux(TrafficDirection::There)) => {
            "one TCP stream to the machine"
        }
        Some(Stream::Gateway(TrafficDirection::Back) | Stream::Linux(TrafficDirection::Back)) => {
            "one TCP stream from the machine"
        }
    }
}

/// What is measured in a plan: all, or a little of it where it is to be quick.
struct Extent {
    kinds: &'static [&'static str],
    forwarded: &'static [Forwarded],
    streams: &'static [Stream],
    /// So many seconds of a stream do not count, and so many do.
    omitted: u64,
    counted: u64,
}

impl Extent {
    fn of(plan: &LabPlan) -> Extent {
        let (kinds, forwarded, streams, omitted) = match plan.quick {
            true => (&KINDS[..1], &FORWARDED[..2], &STREAMS[..2], 0),
            false => (&KINDS[..], &FORWARDED[..], &STREAMS[..], 1),
        };
        Extent { kinds, forwarded, streams, omitted, counted: whole_seconds(plan) }
    }
}

/// What was measured over a kind of port, by what was forwarded and by stream (0 for none, then those of
/// [`STREAMS`]).
#[derive(Default)]
struct Samples(BTreeMap<(Forwarded, usize, Measure), Vec<f64>>);

impl Samples {
    fn keep(&mut self, forwarded: Forwarded, stream: usize, measure: Measure, value: f64) {
        self.0.entry((forwarded, stream, measure)).or_default().push(value);
    }

    fn figure(&self, forwarded: Forwarded, stream: usize, measure: Measure) -> Option<Figure> {
        Figure::of(self.0.get(&(forwarded, stream, measure))?.iter().copied())
    }
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    crate::needed::require(&[crate::needed::PING, crate::needed::IPERF3])?;
    rig::become_root().map_err(no_networks)?;
    Net::new(Way::Routed, CableOffloads::On).map_err(no_networks)?;
    let directory = tempfile::Builder::new().prefix("ravelin-lab-").tempdir().map_err(no_networks)?;
    let (processors, extent) = (processors(), Extent::of(plan));
    let mut samples: Vec<Samples> = extent.kinds.iter().map(|_| Samples::default()).collect();
    let mut failed: Vec<Option<String>> = extent.kinds.iter().map(|_| None).collect();
    for round in 0..plan.runs {
        let mut order: Vec<usize> = (0..extent.kinds.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let kind = extent.kinds[index];
            progress(&format!("host-traffic: {kind}, round {} of {}", round + 1, plan.runs));
            let folder = directory.path().join(format!("{kind}-{round}"));
            let setting = Setting::start(&folder, kind, processors);
            let run = setting.and_then(|setting| setting.run(&extent, round, &mut samples[index]));
            failed[index] = run.err().or(failed[index].take());
        }
    }
    let mut rows = Vec::new();
    for ((kind, samples), failed) in extent.kinds.iter().zip(&samples).zip(failed) {
        match failed {
            Some(why) => rows.push(Row::refused(kind, "host traffic", "Gbit/s of TCP", &why)),
            None => rows.extend(of(kind, &extent, samples)),
        }
    }
    let mode = format!(
        "`router` with a worker on processor {}, UDP packets sent by one thread on processor {}, each due at a time that does not depend on the ones before it unless as many are sent as can be; \
everything else where the system puts it; {}",
        processors.gateway,
        processors.sender,
        steady()
    );
    Ok((rows, mode))
}

fn of(kind: &str, extent: &Extent, samples: &Samples) -> Vec<Row> {
    let mut rows = Vec::new();
    for &forwarded in extent.forwarded {
        let row = |stream: Option<Stream>, measure: Measure, number: usize| {
            let case = format!("{kind}, {}, {}", forwarded.case(), beside(stream));
            let (what, unit, _) = measure.unit();
            Row::alone(&case, what, unit, samples.figure(forwarded, number, measure), None)
        };
        rows.extend(forwarded.measures().iter().map(|measure| row(None, *measure, 0)));
        for (number, &stream) in (1..).zip(extent.streams).step_by(2) {
            for measure in [Measure::Tcp].iter().chain(forwarded.measures()) {
                let linux = samples.figure(forwarded, number + 1, *measure);
                let linux =
                    linux.map(|figure| Other::of("the same stream with Linux, past the gateway", figure));
                rows.push(row(Some(stream), *measure, number).against(linux, measure.unit().2));
            }
        }
    }
    rows
}

/// A gateway between its hosts, and Linux beside it.
struct Setting {
    _gateway: HostedGateway,
    net: Net,
    c: Namespace,
    linux: Namespace,
    processors: Processors,
}

impl Setting {
    fn start(folder: &Path, kind: &str, processors: Processors) -> Result<Setting, String> {
        let system = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(system)?;
        let net = Net::new(Way::Routed, CableOffloads::On).map_err(system)?;
        let [c, linux] = [Namespace::new().map_err(system)?, Namespace::new().map_err(system)?];
        let cable = |from: (&Namespace, &str, u8), to: (&str, u8)| -> io::Result<()> {
            let (here, there) = (from.0.links()?, c.links()?);
            here.cable((from.1, [2, 0, 0, 0, 1, from.2]), (to.0, [2, 0, 0, 0, 1, to.1]), &c)?;
            here.up(from.1)?;
            there.up(to.0)
        };
        cable((&net.gateway, "to-c", 1), ("eth0", 2)).map_err(system)?;
        cable((&linux, "eth0", 3), ("eth1", 4)).map_err(system)?;
        let address = |of: &Namespace, interface, own| of.links()?.address(interface, own, 24);
        address(&c, "eth0", C).map_err(system)?;
        address(&c, "eth1", C_BESIDE).map_err(system)?;
        address(&linux, "eth0", LINUX).map_err(system)?;
        let port = |interface, own| HostedPort { interface, own, others: "", kind };
        let ports = [port("to-a", TO_A.1), port("to-b", TO_B.1), port("to-c", TO_C)];
        let top = format!("workers = 1\ncores = [{}]\n", processors.gateway);
        let gateway = HostedGateway::start(&net.gateway, folder, &top, &ports)?;
        net.gateway.links().and_then(|links| links.neighbour("h-to-b", SINK.1, SINK.0)).map_err(system)?;
        let answers = |from: &Namespace, to: Ipv4Addr| {
            let ping = from.run("ping", &["-n", "-c", "1", "-W", "1", &to.to_string()], "").ok()?;
            ping.status.success().then_some(())
        };
        until(START, "the gateway's machine answers host c", || answers(&c, TO_C))?;
        until(START, "Linux answers host c", || answers(&c, LINUX))?;
        Ok(Setting { _gateway: gateway, net, c, linux, processors })
    }

    fn run(&self, extent: &Extent, round: usize, samples: &mut Samples) -> Result<(), String> {
        let carried = self.flood(Duration::from_secs(extent.counted))?;
        // Packets are sent until a stream ends.
        let time = Duration::from_secs(extent.omitted + extent.counted) + BEGINS - LEAD;
        for &forwarded in extent.forwarded {
            // The streams take turns, in the opposite order every other round.
            let mut order: Vec<usize> = (0..=extent.streams.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for number in order {
                let stream = number.checked_sub(1).map(|place| extent.streams[place]);
                let mut taken = |measure, value| samples.keep(forwarded, number, measure, value);
                let bits = self.with(stream, extent, || match forwarded {
                    Forwarded::Nothing => Ok(()),
                    Forwarded::Part => {
                        let rate = (carried * f64::from(PART) / 100.0).max(1.0);
                        let delays = delays(&self.net, SIZE, rate, time, self.processors.sender);
                        let delays = delays.map_err(|error| error.to_string())?;
                        let lost = delays.sent.saturating_sub(delays.arrived);
                        taken(Measure::Lost, 100.0 * lost as f64 / delays.sent.max(1) as f64);
                        let at = |part| delays.all.value_at_quantile(part) as f64 / 1e3;
                        taken(Measure::MiddleDelay, at(0.5));
                        taken(Measure::LongDelay, at(0.99));
                        Ok(())
                    }
                    Forwarded::Flood => {
                        taken(Measure::Arrived, self.flood(time.saturating_sub(BEFORE))? / 1e6);
                        Ok(())
                    }
                })?;
                if let Some(bits) = bits {
                    samples.keep(forwarded, number, Measure::Tcp, bits / 1e9);
                }
            }
        }
        Ok(())
    }

    /// Packets a second that arrive at host b where host a sends as many as it can.
    fn flood(&self, time: Duration) -> Result<f64, String> {
        let frames = self.net.frames(SIZE, FLOWS, DISCARD);
        let rates =
            flood(self.net.flood_ends(), &frames, SentAs::Singly, self.processors.sender, BEFORE, time);
        rates.map(|rates| rates.arrived).map_err(|error| error.to_string())
    }

    /// Does something while there is a stream, and says how many bits a second it carried.
    fn with(
        &self,
        stream: Option<Stream>,
        extent: &Extent,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<Option<f64>, String> {
        let Some(stream) = stream else { return work().map(|()| None) };
        let (server, address, direction) = match stream {
            Stream::Gateway(direction) => (&self.net.gateway, TO_C, direction),
            Stream::Linux(direction) => (&self.linux, LINUX, direction),
        };
        let ends = StreamEnds { client: &self.c, server, address };
        thread::scope(|scope| {
            let stream = scope.spawn(|| tcp(ends, direction, extent.omitted, extent.counted));
            thread::sleep(LEAD);
            let worked = work();
            let bits = stream.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            worked.and(bits).map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_by_the_gateway_stand_beside_those_past_it() {
        let mut samples = Samples::default();
        for (number, bits) in [(1, 1.5), (2, 6.0), (3, 4.0), (4, 8.0)] {
            samples.keep(Forwarded::Nothing, number, Measure::Tcp, bits);
        }
        samples.keep(Forwarded::Part, 1, Measure::Lost, 2.0);
        samples.keep(Forwarded::Part, 2, Measure::Lost, 1.0);
        let extent =
            Extent { kinds: &KINDS, forwarded: &FORWARDED, streams: &STREAMS, omitted: 1, counted: 1 };
        let rows = of("af_packet", &extent, &samples);
        assert_eq!(rows.len(), 2 + (3 + 2 * 4) + (1 + 2 * 2));
        let ratios: Vec<_> = rows[..2].iter().map(|row| (row.case.as_str(), row.ratio)).collect();
        let expected = [("to", 0.25), ("from", 0.5)].map(|(way, ratio)| {
            (format!("af_packet, nothing forwarded, one TCP stream {way} the machine"), Some(ratio))
        });
        assert_eq!(ratios, expected.each_ref().map(|(case, ratio)| (case.as_str(), *ratio)));
        // Less loss is better.
        let lost: Vec<_> =
            rows.iter().filter(|row| row.what == "packets lost" && row.ours.is_some()).collect();
        assert_eq!((lost.len(), lost[0].ratio), (1, Some(0.5)));
    }
}
