//! A live port as workers see it: one lane for each worker, with a half that receives and a half that sends.
//!
//! The two halves are separate so that a packet can leave by one port while its bytes still lie in the memory
//! of another.

use super::clock::Now;
use super::losses::{ReceiveLosses, SendLosses};
use super::presence::Presence;
use packet::{Batch, VirtioHeader};
use std::os::fd::RawFd;
use std::sync::Arc;

/// A port that has been attached.
pub struct Attached {
    /// The interface's name.
    pub name: String,
    /// What was really obtained, for people.
    pub mode: String,
    /// One for each worker, as many as were asked for. Packets of one flow come by the same lane; so do those
    /// of its other direction, unless they come by AF_XDP from queues among which the interface itself shares
    /// them out.
    pub lanes: Vec<Lane>,
    /// Whether its interface is there.
    pub presence: Arc<Presence>,
}

/// A port as one worker has it to itself.
pub struct Lane {
    /// Where packets come in.
    pub receive: Box<dyn Receiver>,
    /// Where they leave.
    pub send: Box<dyn Sender>,
}

/// The half of a live port by which packets come in.
pub trait Receiver: Send {
    /// Replaces the contents of `batch` by what has come, without waiting, and returns the memory that the
    /// frames lie in. Nothing of the batch before it can be reached any more. Packets carry their time of
    /// arrival (the program's time), which is `now` where nobody knows better.
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8];

    /// What can be read when a packet is there. It is open, under this number, as long as the port is; what
    /// it stands for may be replaced, so it is asked for anew for every wait (as by `poll`).
    fn descriptor(&self) -> RawFd;

    /// When [`receive`](Receiver::receive) is to be called again although nothing more comes (the program's
    /// time); `None` if nothing waits.
    fn due(&self) -> Option<u64> {
        None
    }

    /// What did not get as far as the program.
    fn losses(&mut self) -> ReceiveLosses;
}

/// The half of a live port by which packets leave.
pub trait Sender: Send {
    /// Sends a frame after those before it. It may lie in a buffer until [`flush`](Sender::flush).
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader);

    /// Hands over everything that was sent.
    fn flush(&mut self);

    /// When [`flush`](Sender::flush) is to be called again although nothing more is sent (the program's
    /// time); `None` if nothing waits.
    fn due(&self) -> Option<u64> {
        None
    }

    /// What did not leave.
    fn losses(&self) -> SendLosses;
}
