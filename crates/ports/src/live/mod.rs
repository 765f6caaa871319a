//! Live ports: network interfaces of this machine, each in two halves so that a packet can leave by one port
//! while its bytes still lie at another.

mod af_packet;
mod af_xdp;
mod attach;
pub mod clock;
mod frame_ring;
mod held;
pub mod impair;
mod mailbox;
pub mod middleware;
mod netlink;
mod out;
mod presence;
mod segments;
pub mod shape;
pub mod sys;
mod tap;
pub mod trace;
mod untagged;
mod wait;
mod watch;

pub use af_xdp::{Mode as XdpMode, Wishes as XdpWishes, XdpError, cross, pass};
pub use attach::{AttachError, Offloads, PortKind, WantedPort, attach, attach_all};
pub use middleware::Middleware;
pub use netlink::{LinkChanges, Netlink};
pub use out::LiveOut;
pub use presence::{Heard, Presence};
pub use sys::{cycles, keep_off, pin};
pub use tap::TapError;
pub use wait::{Bell, Waiter};

use clock::Now;
use packet::{Batch, VirtioHeader};
use serde::Serialize;
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

/// Packets that came to a port but not to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveLosses {
    /// Came while the ring was full, or are of a kind that no virtio-net header can tell of.
    pub ring_full: u64,
    /// Were longer than a frame of the ring, so that only a part of them is there.
    pub too_long: u64,
    /// Were there, but could not be handed over: the kernel had none after all, or a segment is of an unknown
    /// kind or would become more packets than any kernel makes of one.
    pub unreadable: u64,
    /// Were meant for other stations of the link, at a port that does not take those.
    pub foreign: u64,
    /// Were lost by [`impair`](middleware::Middleware::impair_in).
    #[serde(rename = "impaired_in")]
    pub impaired: u64,
    /// Came once more than they came: copies that `impair` made, no loss.
    #[serde(rename = "doubled_in")]
    pub doubled: u64,
    /// Came with a bit changed by `impair`, no loss.
    #[serde(rename = "damaged_in")]
    pub damaged: u64,
    /// Are held back by `impair` now, no loss.
    #[serde(rename = "waiting_in")]
    pub waiting: u64,
    /// Are missing in the trace, no loss.
    #[serde(rename = "untraced_in")]
    pub untraced: u64,
}

impl ReceiveLosses {
    /// Each count of this with the same count of another, put together by `of`.
    pub fn each(self, other: ReceiveLosses, of: impl Fn(u64, u64) -> u64) -> ReceiveLosses {
        ReceiveLosses {
            ring_full: of(self.ring_full, other.ring_full),
            too_long: of(self.too_long, other.too_long),
            unreadable: of(self.unreadable, other.unreadable),
            foreign: of(self.foreign, other.foreign),
            impaired: of(self.impaired, other.impaired),
            doubled: of(self.doubled, other.doubled),
            damaged: of(self.damaged, other.damaged),
            waiting: of(self.waiting, other.waiting),
            untraced: of(self.untraced, other.untraced),
        }
    }
}

/// Packets that the program sent but that did not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendLosses {
    /// The interface had no room for them.
    pub busy: u64,
    /// The interface did not take them: they are longer than its MTU, or are left unfinished in a way that
    /// nobody can finish.
    pub refused: u64,
    /// The interface was off, without a carrier, or gone.
    pub down: u64,
    /// The queue of [`shape`](middleware::Middleware::shape) was full.
    pub shaped: u64,
    /// Were lost by [`impair`](middleware::Middleware::impair_out).
    pub impaired: u64,
    /// Left once more than they were sent: copies that `impair` made, no loss.
    pub doubled: u64,
    /// Left with a bit changed by `impair`, no loss.
    pub damaged: u64,
    /// Are held back by `shape` or `impair` now, no loss yet.
    pub waiting: u64,
    /// Are missing in the trace, no loss.
    pub untraced: u64,
}

impl SendLosses {
    /// Each count of this with the same count of another, put together by `of`.
    pub fn each(self, other: SendLosses, of: impl Fn(u64, u64) -> u64) -> SendLosses {
        SendLosses {
            busy: of(self.busy, other.busy),
            refused: of(self.refused, other.refused),
            down: of(self.down, other.down),
            shaped: of(self.shaped, other.shaped),
            impaired: of(self.impaired, other.impaired),
            doubled: of(self.doubled, other.doubled),
            damaged: of(self.damaged, other.damaged),
            waiting: of(self.waiting, other.waiting),
            untraced: of(self.untraced, other.untraced),
        }
    }
}
