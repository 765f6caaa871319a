//! Middleware between a program and a port: shaping, impairment, traces. Each kind wraps the halves of a lane
//! and has the same interface as a half.
//!
//! ```text
//! program ──► shape ──► impair ──► trace ──► port            as a bottleneck before a bad line, seen at its near end
//! program ◄──────────── impair ◄── trace ◄── port
//! ```

use super::clock::{Clock, MachineClock, Now};
use super::held::{Frame, Held};
use super::impair::{Impair, Impairer};
use super::shape::{Bucket, ShapeSettings, Shaper};
use super::trace::{self, PortTrace, Recorder};
use super::{Attached, Lane, ReceiveLosses, Receiver, SendLosses, Sender};
use packet::Arena;
use packet::{Batch, PortNumber, VirtioHeader};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The middleware of a port; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Middleware {
    /// Shapes what leaves.
    pub shape: Option<ShapeSettings>,
    /// Impairs what leaves.
    pub impair_out: Option<Impair>,
    /// Impairs what comes in.
    pub impair_in: Option<Impair>,
    /// Writes a trace of what passes.
    pub trace: Option<PortTrace>,
}

impl Middleware {
    /// Wraps a port in this middleware. Several lanes have equal parts of the queues, share the rate as they
    /// need it, and each has random numbers of its own.
    ///
    /// # Errors
    /// The file of the trace cannot be made; then nothing else was done.
    pub fn wrap(&self, port: Attached) -> io::Result<Attached> {
        let Attached { name, mut mode, lanes, presence, divided, tunnel } = port;
        let count = lanes.len();
        let recorders = match &self.trace {
            None => Vec::new(),
            Some(trace) => trace::start(trace, &name, 2 * count, presence.clone())?,
        };
        let mut recorders = recorders.into_iter();
        let bucket =
            self.shape.map(|shape| (Arc::new(Bucket::new(shape)), shape.queue.div_ceil(count.max(1))));
        let started = Instant::now();
        let mut wrapped = Vec::with_capacity(count);
        for (number, Lane { mut receive, mut send }) in (0u64..).zip(lanes) {
            let own = |impair: Impair, direction: u64| Impair {
                seed: impair.seed.wrapping_add((2 * number + direction).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                queue: impair.queue.div_ceil(count.max(1)),
                ..impair
            };
            if let (Some(incoming), Some(outgoing)) = (recorders.next(), recorders.next()) {
                receive = Box::new(TracedReceiver { inner: receive, recorder: incoming });
                send = Box::new(TracedSender { inner: send, recorder: outgoing });
            }
            if let Some(impair) = self.impair_in {
                receive = Box::new(Impeded::new(receive, Impairer::new(own(impair, 1), true), started));
            }
            if let Some(impair) = self.impair_out {
                send = Box::new(Staged::new(send, Impairer::new(own(impair, 0), false), started));
            }
            if let Some((bucket, share)) = &bucket {
                send = Box::new(Staged::new(send, Shaper::new(bucket.clone(), *share), started));
            }
            wrapped.push(Lane { receive, send });
        }
        let words: String = self.describe().iter().map(|what| format!(", {what}")).collect();
        presence.stands_behind(&words);
        mode.push_str(&words);
        Ok(Attached { name, mode, lanes: wrapped, presence, divided, tunnel })
    }

    /// Whether it does something with packets that come in.
    pub(super) fn looks_inwards(&self) -> bool {
        self.impair_in.is_some() || self.trace.is_some()
    }

    /// What it does, in words.
    fn describe(&self) -> Vec<String> {
        let shape = self.shape.map(|shape| format!("shaped to {} bit/s", shape.rate));
        let impaired = match (self.impair_in, self.impair_out) {
            (Some(_), Some(_)) => Some("impaired in both directions"),
            (Some(_), None) => Some("impaired inwards"),
            (None, Some(_)) => Some("impaired outwards"),
            (None, None) => None,
        };
        let trace = self.trace.as_ref().map(|trace| format!("traced to {}", trace.file.display()));
        shape.into_iter().chain(impaired.map(str::to_owned)).chain(trace).collect()
    }
}

/// A stage that may hold frames back, lose, change or duplicate them. It has no clock: `now` is the time in
/// nanoseconds since some moment, and never goes back.
pub(crate) trait Stage: Send {
    /// Takes a frame.
    fn pass(&mut self, now: u64, frame: &[u8], virtio: VirtioHeader, out: &mut dyn Sender);

    /// Releases the frames that are due.
    fn release(&mut self, now: u64, out: &mut dyn Sender);

    /// The time when the next frame will be due.
    fn due(&self) -> Option<u64>;

    /// Whether it does the same with a frame whose checksum is open.
    fn takes_open_checksums(&self) -> bool {
        false
    }

    /// Adds what it lost, changed, doubled and holds.
    fn count(&self, losses: &mut SendLosses);
}

/// The program's time when it will be `due` nanoseconds after `started`.
fn program_time(started: Instant, due: u64) -> u64 {
    let left = Duration::from_nanos(due).saturating_sub(started.elapsed());
    MachineClock.program() + left.as_nanos() as u64
}

/// A sending half after a stage.
struct Staged<S> {
    inner: Box<dyn Sender>,
    stage: S,
    started: Instant,
    /// The time of the first frame since the last flush, which is that of the others, too.
    now: Option<u64>,
}

impl<S: Stage> Staged<S> {
    fn new(inner: Box<dyn Sender>, stage: S, started: Instant) -> Staged<S> {
        Staged { inner, stage, started, now: None }
    }
}

impl<S: Stage> Sender for Staged<S> {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        let now = match self.now {
            Some(now) => now,
            None => {
                let now = self.started.elapsed().as_nanos() as u64;
                self.stage.release(now, self.inner.as_mut());
                *self.now.insert(now)
            }
        };
        self.stage.pass(now, frame, virtio, self.inner.as_mut());
    }

    fn flush(&mut self) {
        self.now = None;
        if self.stage.due().is_some() {
            self.stage.release(self.started.elapsed().as_nanos() as u64, self.inner.as_mut());
        }
        self.inner.flush();
    }

    fn due(&self) -> Option<u64> {
        let own = self.stage.due().map(|due| program_time(self.started, due));
        own.into_iter().chain(self.inner.due()).min()
    }

    fn takes_open_checksums(&self) -> bool {
        self.stage.takes_open_checksums() && self.inner.takes_open_checksums()
    }

    fn losses(&self) -> SendLosses {
        let mut losses = self.inner.losses();
        self.stage.count(&mut losses);
        losses
    }
}

/// A receiving half before a stage.
struct Impeded {
    inner: Box<dyn Receiver>,
    stage: Impairer,
    started: Instant,
    ready: Ready,
    arena: Arena,
    port: PortNumber,
}

/// The frames that the program will get next, and the count of those that found no room.
struct Ready {
    frames: Held,
    lost: u64,
}

/// Bytes that may be ready: a batch of the longest packets, twice.
const READY: usize = 64 << 20;

impl Impeded {
    fn new(inner: Box<dyn Receiver>, stage: Impairer, started: Instant) -> Impeded {
        let ready = Ready { frames: Held::new(READY), lost: 0 };
        Impeded { inner, stage, started, ready, arena: Arena::new(), port: packet::NO_PORT }
    }
}

impl Sender for Ready {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        self.lost += u64::from(!self.frames.push(Frame { bytes: frame, virtio, mark: 0 }));
    }

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

impl Receiver for Impeded {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let Impeded { inner, stage, started, ready, arena, port } = self;
        let elapsed = started.elapsed().as_nanos() as u64;
        // Ready frames leave first, so that they wait for a few batches at most.
        if ready.frames.is_empty() {
            stage.release(elapsed, ready);
            let memory = inner.receive(batch, now);
            for index in 0..batch.len {
                *port = batch.port[index];
                if let Some(frame) = batch.bytes(memory, index) {
                    stage.pass(elapsed, frame, batch.virtio(index), ready);
                }
            }
        }
        batch.clear();
        arena.clear();
        while let Some(frame) = ready.frames.first() {
            if !arena.push(batch, frame.bytes, frame.bytes.len() as u32, now.program) {
                break;
            }
            batch.port[batch.len - 1] = *port;
            batch.leave_unfinished(frame.virtio);
            ready.frames.pop();
        }
        arena.memory_mut()
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        let ready = (!self.ready.frames.is_empty()).then_some(0);
        let own = ready.or_else(|| self.stage.due().map(|due| program_time(self.started, due)));
        own.into_iter().chain(self.inner.due()).min()
    }

    fn has_more(&self) -> bool {
        !self.ready.frames.is_empty() || self.inner.has_more()
    }

    fn losses(&mut self) -> ReceiveLosses {
        let mut counted = SendLosses::default();
        self.stage.count(&mut counted);
        let mut losses = self.inner.losses();
        losses.impaired += counted.impaired + self.ready.lost;
        losses.doubled += counted.doubled;
        losses.damaged += counted.damaged;
        losses.waiting += counted.waiting + self.ready.frames.len() as u64;
        losses
    }
}

/// A receiving half with a trace.
struct TracedReceiver {
    inner: Box<dyn Receiver>,
    recorder: Recorder,
}

impl Receiver for TracedReceiver {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let memory = self.inner.receive(batch, now);
        for index in 0..batch.len {
            if let Some(frame) = batch.bytes(memory, index) {
                self.recorder.record(batch.time[index], now.on_wall(batch.time[index]), frame);
            }
        }
        self.recorder.hand_over();
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        self.recorder.due().into_iter().chain(self.inner.due()).min()
    }

    fn has_more(&self) -> bool {
        self.inner.has_more()
    }

    fn losses(&mut self) -> ReceiveLosses {
        let mut losses = self.inner.losses();
        losses.untraced += self.recorder.lost();
        losses
    }
}

/// A sending half with a trace.
struct TracedSender {
    inner: Box<dyn Sender>,
    recorder: Recorder,
}

impl Sender for TracedSender {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        let now = MachineClock.now();
        self.recorder.record(now.program, now.wall, frame);
        self.inner.send(frame, virtio);
    }

    fn flush(&mut self) {
        self.recorder.hand_over();
        self.inner.flush();
    }

    fn due(&self) -> Option<u64> {
        self.recorder.due().into_iter().chain(self.inner.due()).min()
    }

    fn losses(&self) -> SendLosses {
        let mut losses = self.inner.losses();
        losses.untraced += self.recorder.lost();
        losses
    }
}

#[cfg(test)]
pub(crate) mod tests;
