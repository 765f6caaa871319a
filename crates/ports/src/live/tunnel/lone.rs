//! A tunnel without a program: control messages of peers come and go, and their packets go nowhere.

use super::control::TunnelControl;
use super::incoming::Incoming;
use super::mailbox::Mailbox;
use super::own_end::Port;
use super::wanted::{TunnelError, TunnelWishes};
use crate::live::Receiver;
use crate::live::clock::{Clock, MachineClock};
use packet::Batch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The end of a tunnel of a process that has no ports. Nothing comes or goes but in its turns.
pub struct LoneTunnel {
    port: Arc<Port>,
    incoming: Incoming,
    batch: Batch,
}

impl LoneTunnel {
    /// Opens it.
    ///
    /// # Errors
    /// A key or the address is wrong.
    pub fn open(wishes: &TunnelWishes) -> Result<(LoneTunnel, TunnelControl), TunnelError> {
        let port = Arc::new(super::open(wishes)?);
        let control = Arc::<Mailbox>::default();
        let incoming = Incoming::new(port.clone(), 0, control.clone());
        let lone = LoneTunnel { port: port.clone(), incoming, batch: Batch::new() };
        Ok((lone, TunnelControl::new(port, control, wishes.peers.clone())))
    }

    /// Waits for datagrams or a date of the tunnel, at most so long, and does what there is to do. Says how
    /// many packets of peers went nowhere.
    pub fn turn(&mut self, longest: Duration) -> usize {
        let now = MachineClock.now().program;
        let wait = self
            .incoming
            .due()
            .map_or(longest, |due| Duration::from_nanos(due.saturating_sub(now)).min(longest));
        let at_most = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        // A fault only means that it is looked again, after the time.
        if poll(&mut [PollFd::new(&self.port.readable(), PollFlags::IN)], Some(&at_most)).is_err() {
            thread::sleep(wait);
        }
        self.incoming.receive(&mut self.batch, MachineClock.now());
        self.batch.len
    }
}
