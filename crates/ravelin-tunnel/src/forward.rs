//! Forwards packets between the core and the peers of a tunnel.
//!
//! ```text
//! worker of the core ─ frames ─► lane ─► tunnel ─► datagrams
//! first worker       ◄─ frames ─ lane ◄─ tunnel ◄─ datagrams
//! ```

use packet::Batch;
use ports::live::clock::MachineClock;
use ports::live::clock::{Clock, Now};
use ports::live::{Lane, Receiver, Sender, Waiter};
use std::convert::Infallible;
use std::io;

/// The longest wait, in nanoseconds: whatever is missed is found then.
const LONGEST_WAIT: u64 = 1_000_000_000;

/// Both sides, and what is waited for.
pub(crate) struct Forwarder {
    /// Each goes to a worker of the core.
    core: Vec<Lane>,
    peers: Lane,
    waiter: Waiter,
    batch: Batch,
}

impl Forwarder {
    /// Of what comes from peers the first lane to the core gets all: a program that says where packets belong
    /// has them brought there.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub(crate) fn new(core: Vec<Lane>, peers: Lane) -> io::Result<Forwarder> {
        let descriptors: Vec<_> = core.iter().chain([&peers]).map(|lane| lane.receive.descriptor()).collect();
        Ok(Forwarder { waiter: Waiter::new(&descriptors)?, core, peers, batch: Batch::new() })
    }

    /// Forwards packets until the process is ended.
    ///
    /// # Errors
    /// The system cannot wait.
    pub(crate) fn run(mut self) -> io::Result<Infallible> {
        loop {
            if self.turn() {
                continue;
            }
            let due = self.core.iter().chain([&self.peers]).filter_map(|lane| lane.receive.due()).min();
            let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(MachineClock.now().program));
            self.waiter.wait(wait.min(LONGEST_WAIT))?;
        }
    }

    /// Forwards what is there, at most a batch of each lane; says whether there was something.
    fn turn(&mut self) -> bool {
        let Forwarder { core, peers, batch, .. } = self;
        let (now, mut any) = (MachineClock.now(), false);
        for lane in core.iter_mut() {
            any |= pass(lane.receive.as_mut(), batch, now, peers.send.as_mut());
        }
        peers.send.flush();
        if let Some(first) = core.first_mut() {
            any |= pass(peers.receive.as_mut(), batch, now, first.send.as_mut());
            first.send.flush();
        }
        any
    }
}

/// Passes a batch on; says whether there was a packet.
fn pass(from: &mut dyn Receiver, batch: &mut Batch, now: Now, to: &mut dyn Sender) -> bool {
    let memory = from.receive(batch, now);
    for index in 0..batch.len {
        if let Some(frame) = batch.bytes(memory, index) {
            to.send(frame, batch.virtio(index));
        }
    }
    !batch.is_empty()
}
