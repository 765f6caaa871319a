//! Workers stand still: whatever has come is run, nothing waits within the loop, and packets that come from
//! now on wait at the ports. So another process can go on with them exactly there.
//!
//! ```text
//! Remote::rest ─► what ports hold is run ─► what crosses is run ─► fragments are run ─► turns ─► the loop
//!                                            all workers together                        goes on
//! ```

use super::rest::Rest;
use super::worker::LivePass;
use crate::device_queue::{DeviceQueue, Supply};
use packet::Batch;
use ports::Transmit;
use ports::live::Receiver;
use std::io;
use std::sync::atomic::Ordering;

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
