//! Workers stand still: whatever has come is run, nothing waits within the loop, and packets that come from
//! now on wait at the ports. So another process can go on with them exactly there.
//!
//! ```text
//! Remote::rest ─► what ports hold is run ─► what crosses is run ─► fragments are run ─► turns ─► the loop goes on
//!                                            all workers together                      (each, go_on, replace)
//! ```

use super::{Generation, LivePass, Remote, Replaced, Request};
use crate::device_queue::{DeviceQueue, Supply};
use packet::Batch;
use ports::Transmit;
use ports::live::Receiver;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// What a worker that stands still does with its generation and its ports.
type Turn = Box<dyn FnOnce(&mut Generation, &mut [Box<dyn Receiver>]) + Send>;

/// One worker's part of a rest.
pub(super) struct Rest {
    /// How many workers have put everything on its way that they had for others.
    sent: Arc<AtomicUsize>,
    workers: usize,
    turns: mpsc::Receiver<Turn>,
}

/// Workers that stand still, or are about to. They go on when this is dropped.
pub struct Resting {
    remote: Remote,
    turns: Vec<mpsc::Sender<Turn>>,
}

impl Remote {
    /// Lets all workers stand still between two batches. Requests that are made later wait until they go on.
    pub fn rest(&self) -> Resting {
        let (workers, sent) = (self.workers(), Arc::new(AtomicUsize::new(0)));
        let mut all = Vec::new();
        // One that has ended does not answer.
        let _ = self.each(|_| {
            let (turns, taken) = mpsc::channel();
            all.push(turns);
            Some(Request::Rest(Rest { sent: sent.clone(), workers, turns: taken }))
        });
        Resting { remote: self.clone(), turns: all }
    }
}

impl Resting {
    /// Runs `turn` on each worker's generation and ports, with one argument for each worker, and returns the
    /// results worker by worker; `None` if a worker has ended.
    pub fn each<S: Send + 'static, T: Send + 'static>(
        &self,
        meant: Vec<S>,
        turn: impl Fn(&mut Generation, &mut [Box<dyn Receiver>], S) -> T + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let turn = Arc::new(turn);
        let answers: Vec<_> = self
            .turns
            .iter()
            .zip(meant)
            .map(|(turns, meant)| {
                let (turn, (answer, answers)) = (turn.clone(), mpsc::channel());
                // Whoever asked may have gone, and the worker may have ended.
                let asked: Turn =
                    Box::new(move |generation, ports| drop(answer.send(turn(generation, ports, meant))));
                let _ = turns.send(asked);
                answers
            })
            .collect();
        answers.into_iter().map(|answers| answers.recv().ok()).collect()
    }

    /// Lets another program take over before the first packet, as [`Remote::replace`] does, and the workers go
    /// on.
    pub fn replace(self, generations: Vec<Generation>) -> Option<Replaced> {
        let Resting { remote, turns } = self;
        remote.replace_when(generations, Vec::new(), Vec::new(), || drop(turns))
    }
}

impl LivePass<'_, '_> {
    /// Runs everything that has been taken off the ports, and stands still until the loop is to go on.
    pub(super) fn rest(
        &mut self,
        rest: Rest,
        receivers: &mut [Box<dyn Receiver>],
        batch: &mut Batch,
        mut device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<()> {
        let Rest { sent, workers, turns } = rest;
        for port in receivers.iter_mut() {
            // What was cut of a segment and is not run yet. Nothing is taken off the port for that.
            while port.due() == Some(0) {
                let memory = port.receive(batch, self.clock.now());
                self.received(memory, batch, device_queue.as_deref_mut())?;
            }
        }
        let mut has_sent = false;
        loop {
            let any = self.take_over(true, device_queue.as_deref_mut())?;
            if !has_sent && !self.crossing.send_all() {
                has_sent = true;
                sent.fetch_add(1, Ordering::AcqRel);
            }
            // Whoever takes is counted first: what the others had sent before that has come.
            let all = sent.load(Ordering::Acquire) >= workers;
            if all && !any && self.crossing.nothing_arrives() {
                break;
            }
            std::thread::yield_now();
        }
        self.in_order(device_queue.as_deref_mut(), |order, run| order.finish(run))?;
        if let Some(device_queue) = device_queue {
            device_queue.run(self, Supply::Ended)?;
        }
        self.transmitter.sink().flush();
        turns.iter().for_each(|turn| turn(self.generation, receivers));
        Ok(())
    }
}
