//! One worker: every port in turn, each batch to its end before the next, and between two rounds what control asks for.
//!
//! A batch is what has come, be it one packet or 256: the loop never waits for more, unless a policy holds packets for a device. A port that always has more gets one batch a round, as the others
//! do. The loop sleeps only when no port has anything, until one has, until a bell rings, or for a tick, by which the program's time goes on without packets.

use super::measure::{Stop, Stopwatch};
use super::watch::Watches;
use super::{Generation, Injected, Line, PortLosses, PuntQueue, Request, now};
use crate::hold::{Hold, Supply};
use crate::{Ledger, Transmitter, pieces};
use exec::Outputs;
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
        let mut transmitter = Transmitter::new(&generation.program, out);
        // The port whose turn it was when there was no room to hold more.
        let mut first = 0;
        loop {
            let mut idle = true;
            for turn in 0..receivers.len() {
                let index = (first + turn) % receivers.len();
                if generation.hold.as_ref().is_some_and(|hold| !hold.has_room()) {
                    first = index;
                    break;
                }
                let port = &mut receivers[index];
                let memory = port.receive(batch, now());
                if batch.is_empty() {
                    continue;
                }
                idle = false;
                stopwatch.lap(Stop::Receive);
                let mut way = Way { outputs, punts, watches, stopwatch, transmitter: &mut transmitter };
                match &generation.hold {
                    None => way.batch(generation, memory, batch)?,
                    Some(_) => way.take(generation, memory, batch)?,
                }
            }
            if generation.hold.is_some() {
                let mut way = Way { outputs, punts, watches, stopwatch, transmitter: &mut transmitter };
                idle &= !way.convoys(generation, Supply::Unknown)?;
            }
            match requests.try_recv() {
                Err(TryRecvError::Empty) if idle => {
                    stopwatch.lap(Stop::Receive);
                    if generation.hold.as_ref().is_some_and(Hold::is_under_way) {
                        // A device has packets: it is asked again soon.
                        std::thread::yield_now();
                        stopwatch.lap(Stop::Idle);
                        continue;
                    }
                    let due = receivers.iter().filter_map(|port| port.due()).chain(transmitter.sink().due());
                    let held = generation.hold.as_ref().and_then(|hold| hold.due(Instant::now()));
                    let held = held.map_or(u64::MAX, |due| due.as_nanos() as u64);
                    waiter.wait(patience(due.min()).min(held))?;
                    // For packets that are held it is still the time when they came.
                    if generation.hold.as_ref().is_none_or(Hold::is_empty) {
                        outputs.clear();
                        generation.processor.advance(now(), outputs);
                        generation.ledger.commit_outputs(outputs);
                        transmitter.transmit_made(&generation.ledger, outputs)?;
                    }
                    stopwatch.lap(Stop::Idle);
                }
                Err(TryRecvError::Empty) => stopwatch.lap(Stop::Control),
                Err(TryRecvError::Disconnected) => {
                    let mut way = Way { outputs, punts, watches, stopwatch, transmitter: &mut transmitter };
                    way.convoys(generation, Supply::Ended)?;
                    return Ok(None);
                }
                Ok(request @ (Request::Replace(_) | Request::Stop)) => {
                    let mut way = Way { outputs, punts, watches, stopwatch, transmitter: &mut transmitter };
                    way.convoys(generation, Supply::Ended)?;
                    return Ok(Some(request));
                }
                Ok(Request::Ask(question)) => {
                    let now = losses(receivers, transmitter.sink());
                    let since = now.into_iter().zip(&generation.lost_before).map(|(now, &then)| now - then);
                    question(generation, &since.collect::<Vec<_>>());
                }
                Ok(Request::Send(frames)) => inject(frames, &mut generation.ledger, transmitter.sink())?,
                Ok(Request::Punts(queue)) => *punts = Some(queue),
                Ok(Request::Watch(watcher)) => watches.add(*watcher),
                Ok(Request::Measure(measuring)) => stopwatch.start(*measuring, generation),
            }
        }
    }
}

/// What a batch passes after it was received.
struct Way<'a, 'b> {
    outputs: &'a mut Outputs,
    punts: &'a mut Option<PuntQueue>,
    watches: &'a mut Watches,
    stopwatch: &'a mut Stopwatch,
    transmitter: &'a mut Transmitter<'b, LiveOut>,
}

impl Way<'_, '_> {
    /// Runs a batch, to the end.
    #[inline]
    fn batch(&mut self, generation: &mut Generation, memory: &mut [u8], batch: &mut Batch) -> io::Result<()> {
        let Way { outputs, punts, watches, stopwatch, transmitter } = self;
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

    /// Holds the packets of a batch.
    fn take(&mut self, generation: &mut Generation, memory: &[u8], batch: &Batch) -> io::Result<()> {
        let mut taken = 0;
        while let Some(hold) = &mut generation.hold {
            taken = hold.take(memory, batch, taken, Instant::now());
            if taken == batch.len {
                break;
            }
            self.convoys(generation, Supply::Plenty)?;
        }
        self.stopwatch.lap(Stop::Run);
        Ok(())
    }

    /// Runs the packets that were held and are ready; says whether there were any.
    fn convoys(&mut self, generation: &mut Generation, supply: Supply) -> io::Result<bool> {
        let mut any = false;
        while let Some(hold) = &mut generation.hold
            && let Some(mut convoy) = hold.ready(generation.processor.as_mut(), supply, Instant::now())
        {
            any = true;
            let (memory, batches) = convoy.parts();
            for batch in batches {
                self.batch(generation, memory, batch)?;
            }
            if let Some(hold) = &mut generation.hold {
                hold.done(convoy, Instant::now());
            }
        }
        self.stopwatch.lap(Stop::Run);
        Ok(any)
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
