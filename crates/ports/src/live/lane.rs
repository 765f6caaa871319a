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
    /// How the port is attached, as a text for people.
    pub mode: String,
    /// One lane for each worker. Packets of one flow come by the same lane, and so do those of its other
    /// direction, except with AF_XDP, where the interface itself divides packets among its queues.
    pub lanes: Vec<Lane>,
    /// Whether its interface is there.
    pub presence: Arc<Presence>,
}

/// One worker's part of a port.
pub struct Lane {
    /// Where packets come in.
    pub receive: Box<dyn Receiver>,
    /// Where they leave.
    pub send: Box<dyn Sender>,
}

/// The half of a live port by which packets come in.
pub trait Receiver: Send {
    /// Replaces the contents of `batch` by packets that have come, without waiting, and returns the memory of
    /// their frames. The frames of the batch before are no longer available. Packets carry their time of
    /// arrival (the program's time), which is `now` if no better time is known.
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8];

    /// A file descriptor that is readable when there is a packet. Its number stays the same as long as the
    /// port exists, but the socket behind it may be replaced, so every wait passes it anew (as `poll` does).
    fn descriptor(&self) -> RawFd;

    /// When [`receive`](Receiver::receive) is to be called again although nothing more comes (the program's
    /// time); `None` if nothing waits.
    fn due(&self) -> Option<u64> {
        None
    }

    /// The packets that were lost before the program.
    fn losses(&mut self) -> ReceiveLosses;
}

/// The half of a live port by which packets leave.
pub trait Sender: Send {
    /// Sends a frame after the earlier ones. The frame may wait in a buffer until [`flush`](Sender::flush).
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader);

    /// Sends all frames that wait in the buffer.
    fn flush(&mut self);

    /// When [`flush`](Sender::flush) is to be called again although nothing more is sent (the program's
    /// time); `None` if nothing waits.
    fn due(&self) -> Option<u64> {
        None
    }

    /// The packets that were lost after the program.
    fn losses(&self) -> SendLosses;
}
