//! The packet loop over live ports: every port in turn, each batch to its end before the next, and between two batches what control asks for.
//!
//! A batch is what has come, be it one packet or 256: the loop never waits for more. It sleeps only when no port has anything, until one has, until a
//! bell rings, or for a tick, by which the program's time goes on without packets.

mod punts;

pub use punts::{Injected, PuntQueue, Punted};

use crate::{Ledger, Transmitter, pieces};
use exec::replace::{Carried, ReplaceError, carry_over};
use exec::{Outputs, Processor};
use lang::ir::Program;
use packet::{Batch, Offload};
use ports::live::{Bell, Lane, LiveOut, ReceiveLosses, Receiver, SendLosses, Waiter};
use ports::{Departure, Transmit};
use serde::Serialize;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

/// How long the loop sleeps at most while no packet comes.
const TICK: Duration = Duration::from_millis(1);

/// One program with its tables and its account, from when it takes over to when it is replaced.
pub struct Generation {
    /// The program.
    pub program: Program,
    /// The same, loaded for the ports there are.
    pub processor: Box<dyn Processor>,
    /// What happened to its packets.
    pub ledger: Ledger,
    /// When it took over.
    pub since: Instant,
    /// Packets that it punted and that found no room on their way to control.
    pub punt_queue_full: u64,
    /// The names of its reasons.
    reasons: Vec<Arc<str>>,
}

impl Generation {
    /// A program that has not seen a packet.
    pub fn new(program: Program, processor: Box<dyn Processor>, ports: u16) -> Generation {
        let ledger = Ledger::new(&program, ports);
        let reasons = program.reasons.iter().map(|reason| Arc::from(reason.name.as_str())).collect();
        Generation { program, processor, ledger, since: Instant::now(), punt_queue_full: 0, reasons }
    }
}

/// A question to a generation that is asked between two batches.
pub type Question = Arc<dyn Fn(&mut Generation, &[PortLosses]) + Send + Sync>;

/// What is asked of the loop between two batches.
pub enum Request {
    /// To look at, or change, the state of the program.
    Ask(Question),
    /// To let another program take over, with what packets made in tables that both have. What went over and the generation that was replaced come
    /// back; where it does not fit, the old one goes on and the new one comes back.
    Replace(Box<Generation>, Vec<String>, mpsc::Sender<Replaced>),
    /// To send frames, in this order.
    Send(Vec<Injected>),
    /// To copy punted packets into this queue from now on, in place of the one before.
    Punts(PuntQueue),
    /// To stop.
    Stop,
}

/// How a replacement ended.
pub type Replaced = Result<(Carried, Box<Generation>), (ReplaceError, Box<Generation>)>;

/// What was lost at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortLosses {
    /// Before the program.
    #[serde(flatten)]
    pub receive: ReceiveLosses,
    /// Behind it.
    #[serde(flatten)]
    pub send: SendLosses,
}

/// Asks a loop that runs on another thread.
#[derive(Clone)]
pub struct Remote {
    requests: mpsc::Sender<Request>,
    bell: Bell,
}

impl Remote {
    /// Hands over a request. Says whether the loop still runs.
    pub fn request(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        self.bell.ring();
        sent
    }

    /// What `look` finds in, or does to, the generation that runs, one answer for each worker; `None` where the loop has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        look: impl Fn(&mut Generation, &[PortLosses]) -> T + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let (answer, answers) = mpsc::channel();
        let question: Question = Arc::new(move |generation, losses| {
            // Whoever asked may have gone.
            let _ = answer.send(look(generation, losses));
        });
        self.request(Request::Ask(question)).then(|| answers.recv().ok().map(|answer| vec![answer])).flatten()
    }

    /// Sends frames by ports, in this order and past the program. Says whether the loop still runs; a frame for a port that does not exist is lost.
    pub fn send(&self, frames: Vec<Injected>) -> bool {
        self.request(Request::Send(frames))
    }

    /// Copies of all packets that the program punts from now on; whoever asked before gets no more. A packet that finds no room is counted in
    /// [`Generation::punt_queue_full`].
    pub fn punts(&self) -> mpsc::Receiver<Punted> {
        let (queue, packets) = PuntQueue::new();
        self.request(Request::Punts(queue));
        packets
    }

    /// Lets another program take over; `None` where the loop has ended.
    pub fn replace(&self, generation: Generation, discard: Vec<String>) -> Option<Replaced> {
        let (answer, answers) = mpsc::channel();
        let request = Request::Replace(Box::new(generation), discard, answer);
        self.request(request).then(|| answers.recv().ok()).flatten()
    }
}

/// The loop with its ports.
pub struct LiveWorker {
    receivers: Vec<Box<dyn Receiver>>,
    out: LiveOut,
    waiter: Waiter,
    requests: mpsc::Receiver<Request>,
    batch: Box<Batch>,
    outputs: Outputs,
    punts: Option<PuntQueue>,
}

impl LiveWorker {
    /// A loop over one lane of every port, the first of which is of port 1, and how to ask it.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub fn new(lanes: Vec<Lane>) -> io::Result<(LiveWorker, Remote)> {
        let (receivers, senders): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|lane| (lane.receive, lane.send)).unzip();
        let descriptors: Vec<_> = receivers.iter().map(|port| port.descriptor()).collect();
        let waiter = Waiter::new(&descriptors)?;
        let (sender, requests) = mpsc::channel();
        let remote = Remote { requests: sender, bell: waiter.bell() };
        let out = LiveOut::new(senders);
        let (batch, outputs) = (Box::new(Batch::new()), Outputs::default());
        Ok((LiveWorker { receivers, out, waiter, requests, batch, outputs, punts: None }, remote))
    }

    /// Runs programs, one after the other, until it is told to stop; returns the last one.
    ///
    /// # Errors
    /// The kernel refuses to wait for packets.
    pub fn run(mut self, mut generation: Generation) -> io::Result<Generation> {
        loop {
            match self.generation(&mut generation)? {
                Some(Request::Replace(mut new, discard, answer)) => {
                    let old = (generation.processor.as_ref(), &generation.program);
                    let Generation { program, processor, .. } = new.as_mut();
                    let replaced = match carry_over(old, (processor.as_mut(), program), &discard, now()) {
                        Ok(carried) => {
                            new.since = Instant::now();
                            std::mem::swap(&mut generation, &mut new);
                            Ok((carried, new))
                        }
                        Err(error) => Err((error, new)),
                    };
                    // Whoever asked may have gone.
                    let _ = answer.send(replaced);
                }
                _ => return Ok(generation),
            }
        }
    }

    /// Runs one program until something is asked that ends it; `None` where nobody can ask any more.
    fn generation(&mut self, generation: &mut Generation) -> io::Result<Option<Request>> {
        let LiveWorker { receivers, out, waiter, requests, batch, outputs, punts } = self;
        let mut transmitter = Transmitter::new(&generation.program, out);
        loop {
            let mut idle = true;
            for port in receivers.iter_mut() {
                let memory = port.receive(batch, now());
                if batch.is_empty() {
                    continue;
                }
                idle = false;
                outputs.clear();
                generation.processor.run(memory, batch, outputs);
                generation.ledger.commit(memory, batch, outputs);
                if let Some(queue) = punts {
                    generation.punt_queue_full += queue.copy(memory, batch, &generation.reasons);
                }
                restart_checksums(memory, batch, outputs);
                transmitter.transmit(&generation.ledger, memory, batch, outputs)?;
            }
            match requests.try_recv() {
                Ok(Request::Ask(question)) => question(generation, &losses(receivers, transmitter.sink())),
                Ok(Request::Send(frames)) => inject(frames, transmitter.sink())?,
                Ok(Request::Punts(queue)) => *punts = Some(queue),
                Ok(request @ (Request::Replace(..) | Request::Stop)) => return Ok(Some(request)),
                Err(mpsc::TryRecvError::Disconnected) => return Ok(None),
                Err(mpsc::TryRecvError::Empty) if idle => {
                    waiter.wait(TICK.as_nanos() as u64)?;
                    outputs.clear();
                    generation.processor.advance(now(), outputs);
                    generation.ledger.commit_outputs(outputs);
                    transmitter.transmit_made(&generation.ledger, outputs)?;
                }
                Err(mpsc::TryRecvError::Empty) => {}
            }
        }
    }
}

/// Long segments are cut on their way out, and whoever cuts them sums each piece: they get the sum to begin with. One that leaves in fragments of IP keeps
/// its finished sum.
fn restart_checksums(memory: &mut [u8], batch: &Batch, outputs: &Outputs) {
    if !batch.unfinished {
        return;
    }
    for index in 0..batch.len {
        let offload = batch.offload(index);
        let mut changes = outputs.resized.iter().filter(|change| change.packet as usize == index);
        if offload.is_none() || changes.any(|change| pieces::of(memory, batch, change).is_some()) {
            continue;
        }
        let start = batch.frame[index] as usize;
        if let Some(frame) = memory.get_mut(start..start + batch.captured[index] as usize) {
            offload.restart(frame);
        }
    }
}

/// Sends what control made.
fn inject(frames: Vec<Injected>, out: &mut LiveOut) -> io::Result<()> {
    for Injected { port, mut bytes, offload } in frames {
        let offload = if offload.restart(&mut bytes) { offload } else { Offload::NONE };
        let wire = bytes.len() as u32;
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

/// Nanoseconds since 1970-01-01 UTC.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
