//! How long packets take through a gateway at a load that does not depend on it.
//!
//! Packets are due at times that are fixed beforehand, and a delay is counted from when a packet was due:
//! what has to wait since the sender or the gateway was held up counts as waiting (no coordinated omission).
//! The kernel says when a packet arrives at the other host.

use super::DISCARD;
use super::net::Net;
use hdrhistogram::Histogram;
use rig::{FrameReceiver, FrameSender, hold};
use std::io;
use std::thread;
use std::time::{Duration, SystemTime};

/// Frames that are handed over at a call.
const AT_ONCE: usize = 64;
/// The port of packets whose delay is taken (RFC 862).
const PROBE: u16 = 7;
/// So many packets a second are probes at most: taking times must cost little beside sending.
const PROBES: f64 = 20_000.0;
/// Where a probe says when it was due.
const DUE: std::ops::Range<usize> = 42..50;
/// How long the last packets have to arrive, and a gateway to let the first ones of a flood through.
pub(super) const AFTER: Duration = Duration::from_secs(1);
const FLOWS: u16 = 64;

/// Delays at a load, in nanoseconds.
pub struct Delays {
    /// From when packets were due to when they arrived.
    pub all: Histogram<u64>,
    /// By how much the sender itself was late.
    pub sender: Histogram<u64>,
    /// Packets that were sent.
    pub sent: u64,
    /// Those of them that arrived.
    pub arrived: u64,
}

/// Sends so many packets a second of a size, evenly, for a time, and takes delays.
///
/// # Errors
/// What the kernel says.
pub fn delays(net: &Net, size: usize, rate: f64, time: Duration, processor: usize) -> io::Result<Delays> {
    let before = net.arrived()?.received;
    let sender = FrameSender::new(&net.a, "eth0")?;
    let receiver = FrameReceiver::new(&net.b, "eth0", Some(PROBE))?;
    let mut load = Load {
        sender,
        receiver,
        plain: net.frames(size, FLOWS, DISCARD),
        probes: net.frames(size, AT_ONCE as u16, PROBE),
        every: (rate / PROBES).ceil().max(1.0) as u64,
        rate,
        all: histogram()?,
        late: histogram()?,
    };
    let sent = thread::scope(|scope| {
        let work = || {
            hold(processor)?;
            load.run((rate * time.as_secs_f64()) as u64, &|| Ok(net.arrived()?.received - before))
        };
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let arrived = net.arrived()?.received - before;
    Ok(Delays { all: load.all, sender: load.late, sent, arrived })
}

struct Load {
    sender: FrameSender,
    receiver: FrameReceiver,
    plain: Vec<Vec<u8>>,
    probes: Vec<Vec<u8>>,
    every: u64,
    rate: f64,
    all: Histogram<u64>,
    late: Histogram<u64>,
}

impl Load {
    /// Sends packets when they are due and looks for probes that arrived while none is; says how many were
    /// sent.
    fn run(&mut self, packets: u64, arrived: &dyn Fn() -> io::Result<u64>) -> io::Result<u64> {
        let start = now() + 1_000_000;
        let due = |packet: u64| start + (packet as f64 / self.rate * 1e9) as u64;
        let rate = self.rate;
        let (mut next, mut sent) = (0, 0);
        while next < packets {
            let now = now();
            let passed = now.saturating_sub(start) as f64 * rate / 1e9;
            let until = if now < start { 0 } else { (passed as u64 + 1).min(packets) };
            let many = until.saturating_sub(next).min(AT_ONCE as u64);
            if many == 0 {
                collect(&mut self.receiver, &mut self.all)?;
                continue;
            }
            for (slot, packet) in (next..next + many).enumerate() {
                if packet % self.every == 0 {
                    let due = due(packet);
                    self.probes[slot][DUE].copy_from_slice(&due.to_be_bytes());
                    self.late.saturating_record(now.saturating_sub(due));
                }
            }
            let frames: Vec<&[u8]> = (next..next + many)
                .enumerate()
                .map(|(slot, packet)| match packet % self.every {
                    0 => self.probes[slot].as_slice(),
                    _ => self.plain[packet as usize % self.plain.len()].as_slice(),
                })
                .collect();
            // What finds no room is lost at the sender and not sent again: the time of the next ones does not
            // wait.
            sent += self.sender.send(&frames).unwrap_or(0) as u64;
            next += many;
        }
        let end = now() + AFTER.as_nanos() as u64;
        while now() < end && arrived()? < sent {
            collect(&mut self.receiver, &mut self.all)?;
        }
        while collect(&mut self.receiver, &mut self.all)? > 0 {}
        Ok(sent)
    }
}

fn collect(receiver: &mut FrameReceiver, all: &mut Histogram<u64>) -> io::Result<usize> {
    receiver.receive(|time, frame| {
        if let Some(due) = frame.get(DUE).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes) {
            all.saturating_record(time.saturating_sub(due));
        }
    })
}

/// From 100 ns to 10 s, by three digits.
fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(100, 10_000_000_000, 3).map_err(|error| io::Error::other(error.to_string()))
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
