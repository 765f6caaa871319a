//! Workers stand still: whatever has come is run, nothing waits within the loop, and packets that come from
//! now on wait at the ports. So another process can go on with them exactly there.
//!
//! ```text
//! Remote::rest ─► what ports hold is run ─► what crosses is run ─► fragments are run ─► turns ─► the loop
//!                                            all workers together                        goes on
//! ```

use super::rest::{Halves, ParcelExchange, Rest, drain};
use super::worker::LivePass;
use crate::device_queue::{DeviceQueue, Supply};
use packet::Batch;
use ports::Transmit;
use ports::live::Receiver;
use std::io;

/// A worker's ways to the others, and theirs to it.
struct WorkerExchange<'b, 'p, 'l> {
    pass: &'b mut LivePass<'p, 'l>,
    device_queue: Option<&'b mut DeviceQueue>,
}

impl ParcelExchange for WorkerExchange<'_, '_, '_> {
    fn take(&mut self) -> io::Result<()> {
        self.pass.take_over(true, self.device_queue.as_deref_mut()).map(|_| ())
    }

    fn send_all(&mut self) -> bool {
        self.pass.crossing.send_all()
    }

    fn nothing_arrives(&self) -> bool {
        self.pass.crossing.nothing_arrives()
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
        let Rest { rounds, workers, turns } = rest;
        for port in receivers.iter_mut() {
            // What was cut of a segment and is not run yet. Nothing is taken off the port for that.
            while port.due() == Some(0) {
                let memory = port.receive(batch, self.clock.now());
                self.received(memory, batch, device_queue.as_deref_mut())?;
            }
        }
        let mut exchange = WorkerExchange { pass: self, device_queue: device_queue.as_deref_mut() };
        drain(&*rounds, workers, &mut exchange)?;
        self.in_order(device_queue.as_deref_mut(), |order, run| order.finish(run))?;
        if let Some(device_queue) = device_queue {
            device_queue.run(self, Supply::Ended)?;
        }
        let out = self.transmitter.sink();
        out.flush();
        for turn in &turns {
            turn(self.generation, Halves { receive: &mut *receivers, send: out.ports() });
        }
        Ok(())
    }
}
