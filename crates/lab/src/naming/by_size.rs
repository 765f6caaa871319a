//! What a packet takes by its size: in the packet loop, in the programs of waypoint and gateway, each way,
//! and in the cipher of the tunnel; and how far that is from a straight line (figure 8 of the paper on AVES).

use super::ends::{End, Side, Traffic};
use crate::experiment::{Figure, Row};
use crate::measure::{Contender, Workload};
use crate::plan::LabPlan;
use crate::programs::compile;
use crate::traffic::LabError;
use cpu_time::ThreadTime;
use exec::BackendKind;
use lang::pipeline::Decode;
use ports::Order;
use std::net::SocketAddr;
use tunnel::limits::SECOND;
use tunnel::{CipherSuite, PeerId, PeerSetup, SecretKey, SendOutcome, Tunnel, TunnelPayload, TunnelSetup};

/// Bytes of a packet of IPv4. The first and the last are those of the paper.
const SIZES: [usize; 6] = [36, 256, 512, 768, 1_024, 1_464];
/// Connections that take turns.
const INITIATORS: u32 = 64;
/// Packets of a time.
const PACKETS: u32 = 256;
/// What the tunnel adds to a packet, at most.
const ROOM: usize = 64;
/// A program that does nothing but send: what is left is what the loop takes.
const SEND: &str = "start stage all() { send 1 }";

/// The sizes of the paper, at which figures are told in cycles, too.
const PAPER_SIZES: [usize; 2] = [36, 1_464];

/// What was measured of each size, one value a run; none in a run in which a packet did not get through.
pub(super) type Samples<T = f64> = Vec<Vec<Option<T>>>;

/// Runs it. `mhz` is how often the processor's clock ticks in a microsecond, where that is known.
pub(super) fn rows(plan: &LabPlan, mhz: Option<f64>) -> Result<Vec<Row>, LabError> {
    let turns = if plan.quick { 4 } else { 64 };
    let around = samples(plan.runs, |size| packet_loop(size, turns))?;
    let mut rows = each_size("packet loop", "around a program that sends each packet on", mhz, &around);
    let both = samples(plan.runs, |size| Ok(cipher(size, turns)))?;
    let [sealed, opened] = [0, 1].map(|way| each_run(&both, |both| both[way]));
    for side in Side::ALL {
        let programs = samples(plan.runs, |size| program(side, size, turns))?;
        rows.extend(each_size(side.case(), "in the program", mhz, &programs));
        let (what, ciphers) = match side.leaves_into_tunnel() {
            true => ("sum of loop, program and sealing", &sealed),
            false => ("sum of loop, opening and program", &opened),
        };
        rows.extend(each_size(side.case(), what, mhz, &sums(&[&around, &programs, ciphers])));
    }
    for (name, ciphers) in [("seal", &sealed), ("open", &opened)] {
        rows.extend(each_size(name, "in the tunnel with its cipher", mhz, ciphers));
    }
    Ok(rows)
}

/// Measures every size in every run, so that what else happens on the machine falls on all sizes.
pub(super) fn samples<T>(
    runs: usize,
    mut measure: impl FnMut(usize) -> Result<Option<T>, LabError>,
) -> Result<Samples<T>, LabError> {
    let mut samples: Samples<T> = SIZES.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for (size, samples) in SIZES.iter().zip(&mut samples) {
            samples.push(measure(*size)?);
        }
    }
    Ok(samples)
}

/// One of the values that were measured together.
fn each_run<T>(samples: &Samples<T>, of: impl Fn(&T) -> f64) -> Samples {
    samples.iter().map(|runs| runs.iter().map(|one| one.as_ref().map(&of)).collect()).collect()
}

/// What several parts take, added run by run; none in a run of which a part has no figure. The parts were
/// measured one after the other, and the loop around a program of its own, which sends each packet on.
fn sums(parts: &[&Samples]) -> Samples {
    let of_size = |place: usize| {
        let runs = parts.iter().map(|part| part[place].len()).min().unwrap_or(0);
        (0..runs).map(|run| parts.iter().map(|part| part[place][run]).sum()).collect()
    };
    (0..SIZES.len()).map(of_size).collect()
}

/// The figure of each size, for those of the paper in cycles, too, and how far all are from a straight line.
pub(super) fn each_size(name: &str, what: &str, mhz: Option<f64>, samples: &Samples) -> Vec<Row> {
    let (mut rows, mut medians) = (Vec::new(), Vec::new());
    for (size, samples) in SIZES.iter().zip(samples) {
        let figure = Figure::of(samples.iter().copied().flatten());
        medians.extend(figure.as_ref().map(|figure| (*size as f64, figure.median)));
        rows.push(Row::alone(&case(name, *size), what, "ns", figure, None));
        if let Some(mhz) = mhz.filter(|_| PAPER_SIZES.contains(size)) {
            let cycles = Figure::of(samples.iter().flatten().map(|time| time * mhz / 1e3));
            rows.push(Row::alone(&case(name, *size), what, "cycles", cycles, None));
        }
    }
    rows.push(straight(name, what, &medians));
    rows
}

fn case(what: &str, size: usize) -> String {
    format!("{what}, packets of {size} bytes")
}

/// The straight line through the figures of the sizes, and how far they are from it, at most.
fn straight(case: &str, what: &str, points: &[(f64, f64)]) -> Row {
    match line(points) {
        Some(Line { at_zero, per_byte, off }) => {
            let what = format!("{what}: {at_zero:.1} ns and {per_byte:.3} a byte; farthest from this line");
            Row::alone(case, &what, "%", Some(Figure::exactly(off)), None)
        }
        None => Row::refused(case, what, "%", "not every size has a figure"),
    }
}

/// A line through points, with the least squares.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Nanoseconds that each packet takes, and each of its bytes.
    at_zero: f64,
    per_byte: f64,
    /// How far the farthest point is from it, in per cent of the mean of all.
    off: f64,
}

/// The line through these points; none where they are too few, or of one size.
fn line(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let xx = mean(&|point| (point.0 - x).powi(2));
    let xy = mean(&|point| (point.0 - x) * (point.1 - y));
    let per_byte = xy / xx;
    let off = |point: &(f64, f64)| (point.1 - y - per_byte * (point.0 - x)).abs() / y * 100.0;
    let off = points.iter().map(off).fold(0.0, f64::max);
    let is_one = points.len() > 2 && xx > 0.0 && y > 0.0;
    is_one.then_some(Line { at_zero: y - per_byte * x, per_byte, off })
}

/// Nanoseconds that the packet loop takes around a program for a packet: it is copied, as from a port, handed
/// to a program that sends every packet on, and accounted for. None where one did not get through.
fn packet_loop(size: usize, turns: u32) -> Result<Option<f64>, LabError> {
    let program = compile("send", SEND, Decode::Lazy).map_err(LabError::Program)?;
    let initiators = (0..PACKETS).map(|number| number % INITIATORS);
    let frames = Traffic::of(Side::WaypointIn, initiators, size).into_frames();
    let mut workload = Workload::new(frames, Order::Replay, 2);
    workload.set_copies(true);
    workload.take_own_time();
    let mut contender = Contender::loaded(&program, BackendKind::Native, 2).map_err(LabError::Program)?;
    // The first time warms up.
    workload.pass(&mut contender, 1).map_err(LabError::Program)?;
    let pass = workload.pass(&mut contender, turns.into()).map_err(LabError::Program)?;
    let whole = pass.counts.forwarded.packets == u64::from(PACKETS) * u64::from(turns);
    Ok(whole.then(|| pass.nanoseconds()))
}

/// Nanoseconds a packet; none where one did not get through.
fn program(side: Side, size: usize, turns: u32) -> Result<Option<f64>, LabError> {
    let mut end = if side.is_of_waypoint() { End::waypoint(1 << 16)? } else { End::gateway()? };
    let mut first = match side.is_of_waypoint() {
        true => Traffic::binding(0..INITIATORS, size),
        false => Traffic::of(Side::GatewayIn, 0..INITIATORS, size),
    };
    let mut whole = end.run(&mut first).sent == first.len();
    let (mut time, mut packets) = (0.0, 0);
    for turn in 0..=turns {
        // Packets are changed where they stand.
        let mut traffic = Traffic::of(side, (0..PACKETS).map(|number| number % INITIATORS), size);
        let ran = end.run(&mut traffic);
        whole &= ran.sent == traffic.len();
        // The first time warms up.
        if turn > 0 {
            time += ran.time.as_nanos() as f64;
            packets += traffic.len();
        }
    }
    Ok(whole.then(|| time / packets as f64))
}

/// Where the end of this number is.
pub(super) fn address(of: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, of], 4_000))
}

/// One end of a tunnel. Nobody attacks it: its random bytes are a counter's.
fn end(own: u8, other: u8) -> Option<Tunnel> {
    let secrets = vec![SecretKey::new([own; 32])];
    let setup = TunnelSetup { secrets, aes: CipherSuite::aes_in_hardware(), now: 0, started: SECOND };
    let mut counter = u64::from(own);
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            counter = counter.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = (counter >> 56) as u8;
        }
    };
    let mut tunnel = Tunnel::new(setup, Box::new(random)).ok()?;
    let keys = vec![SecretKey::new([other; 32]).public()];
    let peer = PeerSetup { keys, address: Some(address(other)), keepalive: None, greatest_timestamp: 0 };
    tunnel.add_peer(PeerId(0), peer).ok()?;
    Some(tunnel)
}

/// Both ends of a tunnel, with a session: the first is at address 1, the second at address 2.
pub(super) fn pair() -> Option<[Tunnel; 2]> {
    let mut ends = [end(1, 2)?, end(2, 1)?];
    let mut out = [0; 256];
    ends[0].send(0, PeerId(0), TunnelPayload::Control(b"begin"), &mut out).ok()?;
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let transmit = ends[from].transmit(0, &mut out)?;
        ends[to].receive(0, address(from as u8 + 1), &mut out[..transmit.length]).ok()?;
    }
    Some(ends)
}

/// Nanoseconds a packet, to seal and to open; none where one was not authentic.
fn cipher(size: usize, turns: u32) -> Option<[f64; 2]> {
    let mut ends = pair()?;
    let packet = vec![0x45; size];
    let mut buffers = vec![vec![0; size + ROOM]; PACKETS as usize];
    let mut lengths = vec![0; buffers.len()];
    let mut spent = [0.0; 2];
    for turn in 0..=turns {
        let begin = ThreadTime::now();
        for (buffer, length) in buffers.iter_mut().zip(&mut lengths) {
            match ends[0].send(SECOND, PeerId(0), TunnelPayload::Packet(&packet), buffer).ok()? {
                SendOutcome::Sealed(sealed) => *length = sealed.length,
                SendOutcome::Queued => return None,
            }
        }
        let sealing = begin.elapsed();
        let begin = ThreadTime::now();
        for (buffer, length) in buffers.iter_mut().zip(&lengths) {
            ends[1].receive(SECOND, address(1), &mut buffer[..*length]).ok()?;
        }
        // The first time warms up.
        if turn > 0 {
            spent[0] += sealing.as_nanos() as f64;
            spent[1] += begin.elapsed().as_nanos() as f64;
        }
    }
    Some(spent.map(|spent| spent / f64::from(turns * PACKETS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_on_their_line_or_as_far_from_it_as_the_farthest() {
        let one = line(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).expect("three points");
        assert!((one.per_byte - 2.0).abs() < 1e-9 && (one.at_zero - 1.0).abs() < 1e-9 && one.off < 1e-9);
        let one = line(&[(1.0, 3.0), (2.0, 9.0), (3.0, 3.0)]).expect("three points");
        assert!(one.per_byte.abs() < 1e-9 && (one.at_zero - 5.0).abs() < 1e-9);
        assert!((one.off - 80.0).abs() < 1e-9);
        assert!(line(&[(1.0, 3.0), (1.0, 3.0), (1.0, 3.0)]).is_none());
    }

    #[test]
    fn parts_are_added_run_by_run_where_each_has_a_figure() {
        let part = |one: f64| vec![vec![Some(one), Some(one + 1.0)]; SIZES.len()];
        assert_eq!(sums(&[&part(1.0), &part(20.0)]), vec![vec![Some(21.0), Some(23.0)]; SIZES.len()]);
        // Each lacks another run, so that both have as many figures.
        let (mut one, mut other) = (part(1.0), part(20.0));
        (one[0][0], other[0][1], other[1][0]) = (None, None, None);
        let sum = sums(&[&one, &other]);
        assert_eq!(sum[..3], [vec![None, None], vec![None, Some(23.0)], vec![Some(21.0), Some(23.0)]]);
    }

    #[test]
    fn a_run_keeps_its_place_whether_or_not_packets_got_through() {
        let mut count = 0;
        let both = samples(3, |size| {
            count += 1;
            Ok((count != 8).then_some([size as f64, 2.0 * size as f64]))
        });
        let both = both.expect("nothing fails");
        assert_eq!(count, 3 * SIZES.len(), "each size is measured once a run");
        let second = each_run(&both, |both| both[1]);
        let wanted = |place: usize| Some(2.0 * SIZES[place] as f64);
        assert_eq!(second[0], [wanted(0); 3]);
        assert_eq!(second[1], [wanted(1), None, wanted(1)]);
        let figure = each_size("c", "w", None, &second).remove(1).ours.expect("two runs have one");
        assert_eq!(figure.values, [512.0; 2]);
    }

    #[test]
    fn packets_of_each_size_get_through_each_way() {
        for size in SIZES {
            assert!(packet_loop(size, 1).expect("it compiles").is_some(), "{size}");
        }
        for side in Side::ALL {
            for size in SIZES {
                assert!(program(side, size, 1).expect("it compiles").is_some(), "{side:?}, {size}");
            }
        }
        assert!(cipher(1_464, 1).is_some());
    }
}
