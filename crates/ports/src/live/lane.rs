//! A live port as workers see it: one lane for each worker, with a half that receives and a half that sends.
//!
//! The two halves are separate so that a packet can leave by one port while its bytes still lie in the memory
//! of another.

use super::clock::Now;
#[cfg(feature = "attach")]
use super::divided::DividedInterface;
use super::losses::{ReceiveLosses, SendLosses};
use super::presence::Presence;
#[cfg(feature = "attach")]
use super::tunnel::TunnelControl;
use packet::{Batch, OpenClasses, VirtioHeader};
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
    /// Its interface, if ports divide it by VLANs: further ones can join them.
    #[cfg(feature = "attach")]
    pub divided: Option<DividedInterface>,
    /// The tunnel that it is, if it is one: its peers can be changed.
    #[cfg(feature = "attach")]
    pub tunnel: Option<TunnelControl>,
}

impl Attached {
    /// A port that has an interface for itself and is no tunnel.
    pub(crate) fn alone(name: String, mode: String, lanes: Vec<Lane>, presence: Arc<Presence>) -> Attached {
        Attached {
            name,
            mode,
            lanes,
            presence,
            #[cfg(feature = "attach")]
            divided: None,
            #[cfg(feature = "attach")]
            tunnel: None,
        }
    }
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

    /// Whether the latest batch took all that there was room for, although it is not full, so that more
    /// packets may wait.
    fn has_more(&self) -> bool {
        false
    }

    /// Whether it looks who has sent a frame, since whoever is behind it may have been taken over. Such a
    /// port gets a share of the time while packets come by others.
    fn is_guarded(&self) -> bool {
        false
    }

    /// Says whether a checksum that a sender left open may stay so. Until that is said, and where a half
    /// looks at bytes itself, packets come with finished checksums.
    fn leave_checksums_open(&mut self, _open: bool) {}

    /// Its port is one of the loop from now on, or still is one after others have left it.
    fn joins(&mut self) {}

    /// Its port has left the loop. Ports that stay may take over what it has done for them.
    fn leaves(&mut self) {}

    /// Where this half stands, for another process that goes on with the same descriptors: numbers that only
    /// mean something to a half of the same [kind](super::PortKind). What came before is taken, and nothing
    /// is lent any more.
    fn checkpoint(&mut self) -> Vec<u32> {
        Vec::new()
    }

    /// Goes on where another process that had the same descriptors stood. Returns whether that can be; if
    /// not, nothing has changed.
    fn resume(&mut self, _checkpoint: &[u32]) -> bool {
        true
    }

    /// Says which segments need not be cut although the program is to get packets: those of these classes
    /// mean the same to it. Where a half looks at packets itself, or cuts none, that changes nothing.
    fn leave_segments_whole(&mut self, _classes: OpenClasses) {}

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

    /// Where this half stands, as [`Receiver::checkpoint`] says it. Nothing waits here any more.
    fn checkpoint(&mut self) -> Vec<u32> {
        Vec::new()
    }

    /// Goes on where another process stood, once the receiving halves of the worker do. Returns whether that
    /// can be; if not, nothing has changed.
    fn resume(&mut self, _checkpoint: &[u32]) -> bool {
        true
    }

    /// Whether packets that are not cut may leave with an open checksum, too.
    fn takes_open_checksums(&self) -> bool {
        false
    }

    /// Whether a segment that stands for its packets may leave as it is, or is cut further on without a
    /// difference.
    fn takes_segments(&self) -> bool {
        false
    }

    /// The packets that were lost after the program.
    fn losses(&self) -> SendLosses;
}

/// Exchanges some of the halves of lanes: `new` has one for each port that there is then, `None` where the
/// one that is there stays. Returns those that are not needed any more.
pub fn exchange<T>(halves: &mut Vec<T>, new: Vec<Option<T>>) -> Vec<T> {
    let mut removed = Vec::new();
    let mut old = std::mem::take(halves).into_iter();
    for new in new {
        match (new, old.next()) {
            (Some(new), own) => {
                removed.extend(own);
                halves.push(new);
            }
            (None, own) => halves.extend(own),
        }
    }
    removed.extend(old);
    removed
}
