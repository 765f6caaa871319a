//! One worker: every port in turn, each batch to its end before the next, and between two rounds what control asks for.
//!
//! A batch is what has come, be it one packet or 256: the loop never waits for more, unless a policy holds packets for a device. A port that always has more gets one batch a round, as the others
//! do. The loop sleeps only when no port has anything, until one has, until a bell rings, or for a tick, by which the program's time goes on without packets.

use super::measure::{Stop, Stopwatch};
use super::watch::Watches;
use super::{Generation, Injected, Line, PortLosses, PuntQueue, Request, now};
use crate::hold::{Run, Supply};
use crate::{Ledger, Transmitter, pieces};
use exec::{Outputs, Processor};
use packet::{Batch, Offload};
use ports::live::{Lane, LiveOut, Receiver, Waiter};
use ports::{Departure, Transmit};
use std::io;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

/// How long the loop sleeps at most while no packet comes.
const TICK: Duration = Duration::from_millis(1);

/// The loop with its lanes.
pub struct LiveWorker {
    receivers: Vec<Box<dyn Receiver>>,
    out: LiveOut,
    waiter: Waiter,
    requests: mpsc::Receiver<Request>,
    batch: Box<Batch>,
    outputs: Outputs,
    punts: Option<PuntQueue>,
    watches: Watches,
    stopwatch: Stopwatch,
}

impl LiveWorker {
    /// A loop over these lanes, the first of which belongs to port 1, and the way to it.
    pub(super) fn new(lanes: Vec<Lane>) -> io::Result<(LiveWorker, Line)> {
        let (receivers, senders): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|lane| (lane.receive, lane.send)).unzip();
        let descriptors: Vec<_> = receivers.iter().map(|port| port.descriptor()).collect();
        let waiter = Waiter::new(&descriptors)?;
        let (sender, requests) = mpsc::channel();
        let line = Line { requests: sender, bell: waiter.bell() };
        let worker = LiveWorker {
            receivers,
            out: LiveOut::new(senders),
            waiter,
            requests,
            batch: Box::new(Batch::new()),
            outputs: Outputs::default(),
            punts: None,
            watches: Watches::default(),
            stopwatch: Stopwatch::default(),
        };
        Ok((worker, line))
    }

    /// Runs programs, one after the other, until it is told to stop; returns the last one.
    ///
    /// # Errors
    /// The kernel refuses to wait for packets.
    pub fn run(mut self, mut generation: Generation) -> io::Result<Generation> {
        loop {
            match self.rounds(&mut generation)? {
                Some(Request::Replace(takeover)) => {
                    let lost = losses(&mut self.receivers, &self.out);
                    takeover.perform(&mut generation, lost);
                }
                _ => return Ok(generation),
            }
        }
    }

    /// The loop. Runs one program until something is asked that ends it; `None` where nobody can ask any more.
    fn rounds(&mut self, generation: &mut Generation) -> io::Result<Option<Request>> {
        let LiveWorker { receivers, out, waiter, requests, batch, outputs, punts, watches, stopwatch } = self;
        let transmitter = Transmitter::new(&generation.program.clone(), out);
        let mut hold = generation.hold.take();
        let mut way = Way { generation, outputs, punts, watches, stopwatch, transmitter };
        // The port whose turn it was when there was no room to hold more.
        let mut first = 0;
        let asked = loop {
            let mut idle = true;
            for turn in 0..receivers.len() {
                let index = (first + turn) % receivers.len();
                if hold.as_ref().is_some_and(|hold| !hold.has_room()) {
                    first = index;
                    break;
                }
                let port = &mut receivers[index];
                let memory = port.receive(batch, now());
                if batch.is_empty() {
                    continue;
                }
                idle = false;
                way.stopwatch.lap(Stop::Receive);
                match &mut hold {
                    None => way.batch(memory, batch)?,
                    Some(hold) => {
                        hold.take(&mut way, memory, batch)?;
                        way.stopwatch.lap(Stop::Run);
                    }
                }
            }
            if let Some(hold) = &mut hold {
                idle &= !hold.run(&mut way, Supply::Unknown)?;
                way.stopwatch.lap(Stop::Run);
            }
            match requests.try_recv() {
                Err(TryRecvError::Empty) if idle => {
                    way.stopwatch.lap(Stop::Receive);
                    match &hold {
                        // A device has packets: it is asked again soon.
                        Some(hold) if hold.is_under_way() => std::thread::yield_now(),
                        _ => {
                            let sink = way.transmitter.sink();
                            let due = receivers.iter().filter_map(|port| port.due()).chain(sink.due());
                            let held = hold.as_ref().and_then(|hold| hold.due(Instant::now()));
                            let held = held.map_or(u64::MAX, |due| due.as_nanos() as u64);
                            waiter.wait(patience(due.min()).min(held))?;
                        }
                    }
                    // For packets that are held it is still the time when they came.
                    if hold.as_ref().is_none_or(|hold| hold.is_empty()) {
                        way.pass_time()?;
                    }
                    way.stopwatch.lap(Stop::Idle);
                }
                Err(TryRecvError::Empty) => way.stopwatch.lap(Stop::Control),
                Err(TryRecvError::Disconnected) => break None,
                Ok(request @ (Request::Replace(_) | Request::Stop)) => break Some(request),
                Ok(Request::Ask(question)) => {
                    let now = losses(receivers, way.transmitter.sink());
                    let before = &way.generation.lost_before;
                    let since =
                        now.into_iter().zip(before).map(|(now, &then)| now - then).collect::<Vec<_>>();
                    question(way.generation, &since);
                }
                Ok(Request::Send(frames)) => {
                    inject(frames, &mut way.generation.ledger, way.transmitter.sink())?;
                }
                Ok(Request::Punts(queue)) => *way.punts = Some(queue),
                Ok(Request::Watch(watcher)) => way.watches.add(*watcher),
                Ok(Request::Measure(measuring)) => way.stopwatch.start(*measuring, way.generation),
            }
        };
        if let Some(hold) = &mut hold {
            hold.run(&mut way, Supply::Ended)?;
        }
        way.generation.hold = hold;
        Ok(asked)
    }
}

/// What a batch passes after it was received.
struct Way<'a, 'b> {
    generation: &'a mut Generation,
    outputs: &'a mut Outputs,
    punts: &'a mut Option<PuntQueue>,
    watches: &'a mut Watches,
    stopwatch: &'a mut Stopwatch,
    transmitter: Transmitter<'b, LiveOut>,
}

impl Way<'_, '_> {
    /// Lets the program's time go on without packets.
    fn pass_time(&mut self) -> io::Result<()> {
        let Way { generation, outputs, transmitter, .. } = self;
        outputs.clear();
        generation.processor.advance(now(), outputs);
        generation.ledger.commit_outputs(outputs);
        transmitter.transmit_made(&generation.ledger, outputs)
    }
}

impl Run for Way<'_, '_> {
    type Error = io::Error;

    fn processor(&mut self) -> &mut dyn Processor {
        self.generation.processor.as_mut()
    }

    #[inline]
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> io::Result<()> {
        let Way { generation, outputs, punts, watches, stopwatch, transmitter } = self;
        outputs.clear();
        watches.run(stopwatch, generation, memory, batch, outputs);
        stopwatch.lap(Stop::Run);
        generation.ledger.commit(memory, batch, outputs);
        generation.recent.keep(memory, batch);
        watches.told(generation, batch);
        if let Some(queue) = punts {
            queue.copy(memory, batch, &generation.reasons, &mut generation.punts_lost);
        }
        stopwatch.lap(Stop::Commit);
        restart_checksums(memory, batch, outputs);
        transmitter.transmit(&generation.ledger, memory, batch, outputs)?;
        stopwatch.sent(batch);
        Ok(())
    }
}

/// For how many nanoseconds the loop may sleep.
fn patience(due: Option<u64>) -> u64 {
    let tick = TICK.as_nanos() as u64;
    due.map_or(tick, |due| due.saturating_sub(now()).min(tick))
}

/// Long segments are cut on their way out, and whoever cuts them sums each piece: they get the sum to begin with. One that leaves in fragments of IP keeps
/// its finished sum. So does one in which the headers are not where they were any more, as in a tunnel that the program put it into: nobody can cut it, and
/// the interface refuses it where it is too long.
fn restart_checksums(memory: &mut [u8], batch: &mut Batch, outputs: &Outputs) {
    if !batch.unfinished {
        return;
    }
    let mut resized = outputs.resized.iter().peekable();
    for index in 0..batch.len {
        let offload = batch.offload(index);
        let change = resized.next_if(|change| change.packet as usize == index);
        if offload.is_none() || change.is_some_and(|change| pieces::of(memory, batch, change).is_some()) {
            continue;
        }
        let start = batch.frame[index] as usize;
        let frame = memory.get_mut(start..start + batch.captured[index] as usize);
        if !frame.is_some_and(|frame| offload.restart(frame)) {
            batch.leave_as_it_is(index);
        }
    }
}

/// Sends what control made.
fn inject(frames: Vec<Injected>, ledger: &mut Ledger, out: &mut LiveOut) -> io::Result<()> {
    for Injected { port, mut bytes, offload } in frames {
        let offload = if offload.restart(&mut bytes) { offload } else { Offload::NONE };
        let wire = bytes.len() as u32;
        ledger.commit_injected(port, wire);
        out.transmit(&Departure { port, bytes: &bytes, wire, time: now(), offload, comment: None })?;
    }
    out.flush();
    Ok(())
}

fn losses(receivers: &mut [Box<dyn Receiver>], out: &LiveOut) -> Vec<PortLosses> {
    receivers
        .iter_mut()
        .zip(out.losses())
        .map(|(port, send)| PortLosses { receive: port.losses(), send })
        .collect()
}
