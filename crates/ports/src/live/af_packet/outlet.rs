//! The sending half of an AF_PACKET lane: one system call sends many short frames; long frames are sent one
//! by one, without a copy.
//!
//! Frames go to the interface directly, past its queueing discipline, as long as that works. The direct way
//! does not cut segments: where the interface cannot do it either, the first segment is refused, and from
//! then on everything takes the way through the queueing discipline, where the kernel cuts. Everything, since
//! one way is faster than the other and packets of one flow must not overtake each other. Each way has a
//! socket of its own, so that a process that may change no socket can take the other one, too.

use super::port::Port;
use super::sockets::SendSockets;
use crate::live::sys::{self, Outgoing};
use crate::live::{Offloads, SendLosses, Sender};
use packet::{BATCH, VirtioHeader};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What leaves.
pub(super) struct Outlet {
    sockets: SendSockets,
    /// Whether frames go past the queueing discipline.
    direct: bool,
    queue: Queue,
    losses: SendLosses,
    port: Arc<Port>,
    lane: usize,
}

impl Outlet {
    pub(super) fn new(sockets: SendSockets, port: Arc<Port>, lane: usize) -> Outlet {
        Outlet { sockets, direct: true, queue: Queue::default(), losses: SendLosses::default(), port, lane }
    }

    /// The socket of the way that frames take.
    fn socket(&self) -> &OwnedFd {
        if self.direct { &self.sockets.direct } else { &self.sockets.queued }
    }

    /// Whether the interface has a carrier; where nobody may ask, it counts as having one.
    fn has_carrier(&self) -> bool {
        #[cfg(feature = "attach")]
        if self.port.asks {
            let name = &self.port.wanted.interface;
            return sys::interface_has_carrier(self.socket(), name).unwrap_or(true);
        }
        true
    }

    /// Sees to a frame that was not taken. Says whether it is to be tried again.
    fn again(&mut self, error: &io::Error, segments: bool, carrier: &mut Option<bool>) -> bool {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.losses.down += 1,
            Some(libc::EAGAIN) => self.losses.busy += 1,
            Some(libc::ENOBUFS) => {
                if !*carrier.get_or_insert_with(|| self.has_carrier()) {
                    self.losses.down += 1;
                } else if segments && self.direct {
                    self.direct = false;
                    return true;
                } else {
                    self.losses.busy += 1;
                }
            }
            _ => self.losses.refused += 1,
        }
        false
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        if frame.len() <= Queue::SHORT {
            if self.queue.push(frame, virtio) {
                self.flush();
            }
            return;
        }
        self.flush();
        let header = virtio.write();
        let mut carrier = None;
        while let Err(error) =
            sys::send_frames(self.socket(), std::iter::once(Outgoing { header: &header, frame }))
            && self.again(&error, virtio.segments(), &mut carrier)
        {}
    }

    fn flush(&mut self) {
        if let Some(sockets) = self.port.outgoing[self.lane].take() {
            (self.sockets, self.direct) = (sockets, true);
        }
        let (mut first, mut carrier) = (0, None);
        while first < self.queue.frames.len() {
            match sys::send_frames(self.socket(), self.queue.outgoing(first)) {
                Ok(sent) => first += sent.max(1),
                Err(error) => {
                    let segments = self.queue.segments(first);
                    first += usize::from(!self.again(&error, segments, &mut carrier));
                }
            }
        }
        self.queue.clear();
    }

    fn takes_open_checksums(&self) -> bool {
        self.port.wanted.offloads != Offloads::Off
    }

    fn takes_segments(&self) -> bool {
        self.takes_open_checksums()
    }

    fn losses(&self) -> SendLosses {
        self.losses
    }
}

/// Short frames on their way out, copied so that many can leave at a call; a long one is worth a call of its
/// own.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    frames: Vec<Queued>,
}

/// A frame in the queue with its header before it, which the kernel then takes in one piece: `bytes` up to
/// `end`, from where the one before it ends.
struct Queued {
    segments: bool,
    end: usize,
}

impl Queue {
    /// The longest frame that is copied, in bytes.
    const SHORT: usize = 2048;

    /// Appends a frame; says whether it is full now.
    fn push(&mut self, frame: &[u8], virtio: VirtioHeader) -> bool {
        self.bytes.extend_from_slice(&virtio.write());
        self.bytes.extend_from_slice(frame);
        self.frames.push(Queued { segments: virtio.segments(), end: self.bytes.len() });
        self.frames.len() >= BATCH
    }

    fn outgoing(&self, first: usize) -> impl Iterator<Item = Outgoing<'_>> {
        (first..self.frames.len()).map(|index| {
            let start = index.checked_sub(1).map_or(0, |before| self.frames[before].end);
            Outgoing { header: &[], frame: &self.bytes[start..self.frames[index].end] }
        })
    }

    /// Whether a frame is to be cut into segments.
    fn segments(&self, index: usize) -> bool {
        self.frames[index].segments
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}
