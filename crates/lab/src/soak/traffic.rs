//! Numbered packets at a rate from host a to host b, and what of them is missing or out of order.

use crate::forwarding::DISCARD;
use crate::forwarding::net::Net;
use rig::{FrameReceiver, FrameSender, hold};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many flows there are.
const FLOWS: u16 = 64;
/// The length of a frame with its check sequence.
const SIZE: usize = 64;
/// Where in a frame the source port of its flow stands, less this it is the number of the flow; and the
/// number of the packet.
const PORT: usize = 34;
const FIRST_PORT: u16 = 1024;
const NUMBER: usize = 42;
/// Frames that are handed over at a call.
const AT_ONCE: usize = 64;
/// How often it is looked whether packets are due.
const TICK: Duration = Duration::from_micros(500);
/// A sender that was held up makes up for so much time at most: more at once would be another load than the
/// one that was asked for.
const MADE_UP: Duration = Duration::from_millis(10);
/// After so long without a packet, nothing is on its way any more.
const SILENCE: Duration = Duration::from_millis(500);

/// What host b saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Packets that came.
    pub(super) packets: u64,
    /// Packets that were sent and did not come.
    pub(super) missing: u64,
    /// Packets that its interface counted and that were not watched, since whoever watches was too slow.
    pub(super) unseen: u64,
    /// Packets that came after a later one of their flow.
    pub(super) late: u64,
}

/// The way from host a to host b.
pub(super) struct Traffic<'a> {
    pub(super) net: &'a Net,
    /// The processor that sends.
    pub(super) processor: usize,
}

impl Traffic<'_> {
    /// A packet of every flow.
    pub(super) fn frames(&self) -> Vec<Vec<u8>> {
        self.net.frames(SIZE, FLOWS, DISCARD)
    }

    /// Sends so many packets a second for a time, while `meanwhile` is done again and again, and waits for
    /// what is on its way. How many were sent, and what arrived.
    pub(super) fn run(
        &self,
        rate: f64,
        time: Duration,
        mut meanwhile: impl FnMut() -> Result<(), String>,
    ) -> Result<(u64, Arrived), String> {
        let system = |error: io::Error| error.to_string();
        let sender = FrameSender::new(&self.net.a, "eth0").map_err(system)?;
        let mut receiver = FrameReceiver::new(&self.net.b, "eth0", None).map_err(system)?;
        let counted = || self.net.arrived().map(|counters| counters.received).map_err(system);
        let before = counted()?;
        let sending = AtomicBool::new(true);
        let frames = self.frames();
        thread::scope(|scope| {
            let sent = scope.spawn(|| {
                let sent = hold(self.processor).map_err(system).map(|()| send(&sender, frames, rate, time));
                sending.store(false, Ordering::Relaxed);
                sent
            });
            // The gateway's processor is left to the gateway.
            let arrived = scope
                .spawn(|| hold(self.processor).and_then(|()| watch(&mut receiver, &sending)).map_err(system));
            let mut asked = Ok(());
            while sending.load(Ordering::Relaxed) && asked.is_ok() {
                asked = meanwhile();
                thread::sleep(Duration::from_millis(5));
            }
            let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let mut arrived = arrived.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            arrived.missing = sent.saturating_sub(arrived.packets);
            arrived.unseen = (counted()? - before).saturating_sub(arrived.packets);
            asked.map(|()| (sent, arrived))
        })
    }
}

/// How many packets went out.
fn send(sender: &FrameSender, mut frames: Vec<Vec<u8>>, rate: f64, time: Duration) -> u64 {
    let (start, mut sent) = (Instant::now(), 0u64);
    // What was due while the sender was held up, and is not made up for.
    let (mut left_out, most) = (0.0, rate * MADE_UP.as_secs_f64());
    loop {
        let elapsed = start.elapsed();
        if elapsed >= time {
            return sent;
        }
        let behind = rate * elapsed.as_secs_f64() - left_out - sent as f64;
        left_out += (behind - most).max(0.0);
        let due = rate * elapsed.as_secs_f64() - left_out;
        if sent as f64 >= due {
            thread::sleep(TICK);
            continue;
        }
        let wanted = (due - sent as f64).min(AT_ONCE as f64) as usize;
        let wanted = wanted.max(1);
        // Flows take turns, so the number of a packet in its flow follows from how many went out.
        let volley: Vec<usize> =
            (0..wanted).map(|next| ((sent + next as u64) % u64::from(FLOWS)) as usize).collect();
        for (next, &flow) in volley.iter().enumerate() {
            let number = (sent + next as u64) / u64::from(FLOWS);
            frames[flow][NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
        }
        let bytes: Vec<&[u8]> = volley.iter().map(|&flow| &frames[flow][..]).collect();
        // What the kernel did not take did not go out.
        sent += sender.send(&bytes).unwrap_or(0) as u64;
    }
}

/// Looks at what arrives until nothing is sent any more and nothing comes.
fn watch(receiver: &mut FrameReceiver, sending: &AtomicBool) -> io::Result<Arrived> {
    let mut arrived = Arrived::default();
    let mut next = [0u64; FLOWS as usize];
    let mut last = Instant::now();
    loop {
        let came = receiver.receive(|_, frame| {
            let Some((flow, number)) = read(frame) else { return };
            arrived.packets += 1;
            arrived.late += u64::from(number < next[flow]);
            next[flow] = next[flow].max(number + 1);
        })?;
        if came > 0 || sending.load(Ordering::Relaxed) {
            last = Instant::now();
        }
        if came == 0 {
            if last.elapsed() > SILENCE {
                return Ok(arrived);
            }
            thread::sleep(TICK);
        }
    }
}

/// The flow and the number of a packet of ours.
fn read(frame: &[u8]) -> Option<(usize, u64)> {
    let port = u16::from_be_bytes(*frame.get(PORT..)?.first_chunk()?);
    let number = u64::from_be_bytes(*frame.get(NUMBER..)?.first_chunk()?);
    let flow = usize::from(port.checked_sub(FIRST_PORT)?);
    (flow < usize::from(FLOWS)).then_some((flow, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_tells_its_flow_and_number() {
        let mut frame = vec![0; SIZE - 4];
        frame[PORT..PORT + 2].copy_from_slice(&(FIRST_PORT + 7).to_be_bytes());
        frame[NUMBER..NUMBER + 8].copy_from_slice(&9u64.to_be_bytes());
        assert_eq!(read(&frame), Some((7, 9)));
        frame[PORT] = 0;
        assert_eq!(read(&frame), None);
        assert_eq!(read(&frame[..40]), None);
    }
}
