//! The packet loop over a source that ends, such as a capture: receive, run, commit, transmit, one batch
//! after the other. With a device queue, packets wait there until a device runs many of them together.

use crate::commit::Ledger;
use crate::device_queue::{DeviceQueue, Run, Supply};
use crate::filter::selection::Selection;
use crate::transmit::Transmitter;
use exec::{AsyncBackend, Backend, Outputs};
use packet::{Batch, FragmentOrder};
use ports::{Receive, ReceiveError};
use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

/// Which parts of a run count as time in the packet loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedPart {
    /// Everything, receiving included: for packets in memory.
    Whole,
    /// Everything except receiving: for packets that are read, and perhaps decompressed, while the program
    /// runs.
    WithoutReceive,
}

/// Why a run ended before its source did.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No further packets can be received; those before were processed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// A packet could not be sent.
    #[error("a packet that leaves: {0}")]
    Transmit(#[from] io::Error),
}

/// How a run ended. Every packet that was received has been processed and is in the ledger.
#[derive(Debug)]
pub struct Finished {
    /// The time in the packet loop, according to the [`TimedPart`] of the call.
    pub packets: Duration,
    /// Why the run ended, if not because the source ended.
    pub error: Option<RunError>,
}

/// One back end with its ledger and, if packets are to be sent, its transmitter.
pub struct Worker<'a> {
    /// The program.
    pub backend: &'a mut dyn Backend,
    /// The accounting.
    pub ledger: &'a mut Ledger,
    /// The transmitter of packets that leave; `None` if they are only counted.
    pub transmitter: Option<&'a mut Transmitter<'a>>,
    /// The selection of packets that are reported; `None` for all.
    pub selection: Option<&'a mut Selection>,
    /// The device queue, in which packets wait until a device runs many of them together; without it each
    /// batch runs as it comes.
    pub device_queue: Option<&'a mut DeviceQueue>,
    /// What brings fragments into order before the program sees them, if the program
    /// [asks for it](crate::ordering::fragment_order). What waits is run when the source has ended.
    pub order: Option<&'a mut FragmentOrder>,
}

impl Worker<'_> {
    /// Runs every packet of the source, until it ends or something goes wrong.
    pub fn run(&mut self, source: &mut dyn Receive, clock: TimedPart) -> Finished {
        let mut batch = Batch::new();
        let mut inside = Duration::ZERO;
        let begin = Instant::now();
        let mut device_queue = self.device_queue.take();
        let mut order = self.order.take();
        let mut pass = Pass { worker: self, outputs: Outputs::default(), failed: None };
        let error = loop {
            let (memory, end) = match source.receive(&mut batch) {
                Ok(_) if batch.is_empty() => (None, None),
                Ok(memory) => (Some(memory), None),
                Err(error) => (None, Some(error.into())),
            };
            // This is tested now, since the run may remove all packets from the batch, and an empty batch
            // would look like the end of the source.
            let has_ended = memory.is_none();
            let received = Instant::now();
            let mut run = |memory: &mut [u8], batch: &mut Batch| pass.take(&mut device_queue, memory, batch);
            let Ok(()) = match (memory, &mut order) {
                (Some(memory), None) => run(memory, &mut batch),
                (Some(memory), Some(order)) => order.run(memory, &mut batch, run),
                (None, _) => Ok(()),
            };
            let failed = pass.failed.take();
            let is_over = failed.is_some() || has_ended;
            if let (true, Some(order)) = (is_over, &mut order) {
                let Ok(()) = order.finish(|memory, batch| pass.take(&mut device_queue, memory, batch));
            }
            if let (true, Some(device_queue)) = (is_over, &mut device_queue) {
                let Ok(_) = device_queue.run(&mut pass, Supply::Ended);
            }
            inside += received.elapsed();
            if is_over {
                break failed.or(pass.failed.take()).or(end);
            }
        };
        self.device_queue = device_queue;
        self.order = order;
        let packets = match clock {
            TimedPart::Whole => begin.elapsed(),
            TimedPart::WithoutReceive => inside,
        };
        Finished { packets, error }
    }
}

/// A worker in its loop.
struct Pass<'a, 'b> {
    worker: &'a mut Worker<'b>,
    outputs: Outputs,
    /// Why a packet could not be sent. After such an error packets are only counted.
    failed: Option<RunError>,
}

impl Pass<'_, '_> {
    /// Runs a batch, or puts it into the device queue.
    fn take(
        &mut self,
        device_queue: &mut Option<&mut DeviceQueue>,
        memory: &mut [u8],
        batch: &mut Batch,
    ) -> Result<(), Infallible> {
        match device_queue {
            None => self.batch(memory, batch),
            Some(device_queue) => device_queue.take(self, memory, batch),
        }
    }
}

impl Run for Pass<'_, '_> {
    type Error = Infallible;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.worker.backend.asynchronous()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        let Pass { worker: Worker { backend, ledger, transmitter, selection, .. }, outputs, failed } = self;
        outputs.clear();
        if let Some(selection) = selection {
            selection.before(memory, batch);
        }
        backend.run(memory, batch, outputs);
        ledger.commit(memory, batch, outputs);
        if let Some(selection) = selection {
            selection.keep(memory, batch, outputs);
        }
        if let Some(sending) = transmitter
            && let Err(error) = sending.transmit(ledger, memory, batch, outputs)
        {
            *failed = Some(error.into());
            *transmitter = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
