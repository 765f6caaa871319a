//! Network interfaces through AF_XDP sockets: the kernel puts packets into frames of one memory that all ports of a worker share, and sends from there.
//!
//! ```text
//! memory: | frames of port 1 … | frames of port 2 … | copies that port 1 sends … | copies that port 2 sends … |
//! frame:  | 256 bytes: room to grow | the packet … |        an odd number of cache lines, or a power of two for drivers that need no copy
//! ```
//!
//! A packet that leaves by another port of the worker (or by its own) leaves from the frame it came in; its frame goes home when the kernel has sent it.
//! Other packets are copied into a frame of the port they leave by, and long segments are cut there: such sockets send finished packets only.

mod attach;
mod calls;
mod frames;
mod memory;
mod redirect;
mod ring;
mod socket;

pub use attach::{Mode, Wishes, XdpError};
pub(crate) use attach::{attach, attach_all};
pub(crate) use redirect::{cross, pass};

use super::{Presence, ReceiveLosses, Receiver, SendLosses, Sender, sys, sys::Shared};
use frames::{Home, Marks};
use memory::{Pages, Part};
use packet::region::HEADROOM;
use packet::segment::Segments;
use packet::{Batch, Offload, PortNumber};
use redirect::Redirect;
use ring::{Consumer, Producer};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Where the kernel puts a packet in its frame (XDP_PACKET_HEADROOM).
const FIRST: usize = 256;
/// The shortest packet that may leave: an Ethernet header.
const SHORTEST: usize = 14;

/// The memory of a worker's ports, and who has which frame of it.
struct Pool {
    pages: Arc<Pages>,
    /// Bytes of a frame.
    chunk: usize,
    /// Bytes of the frames of one port, which lie from the beginning on, port by port.
    home: usize,
    homes: Vec<Arc<Marks>>,
}

impl Pool {
    /// The frame that a range of the memory lies in, by its home.
    fn frame(&self, range: &Range<usize>) -> Option<(&Marks, u32)> {
        let marks = self.homes.get(range.start / self.home)?;
        let (first, last) = (range.start % self.home / self.chunk, (range.end - 1) % self.home / self.chunk);
        (first == last && range.len() < self.chunk).then_some((marks.as_ref(), first as u32))
    }
}

/// One queue of an interface, as packets come in by it.
struct Queue {
    socket: Arc<OwnedFd>,
    fill: Producer<Shared, 1>,
    received: Consumer<Shared, 2>,
    /// How many frames the kernel has, and how many it shall have.
    held: usize,
    share: usize,
}

/// The half by which packets come in.
struct Incoming {
    part: Part,
    home: Home,
    chunk: usize,
    queues: Vec<Queue>,
    /// The queue that is looked at first next time.
    turn: usize,
    /// What can be read when one of several queues can.
    any: Option<OwnedFd>,
    port: PortNumber,
    offloads: bool,
    losses: ReceiveLosses,
    /// The interface.
    interface: Arc<Attachment>,
}

/// What holds a port at its interface.
struct Attachment {
    index: u32,
    /// By which it takes packets that are meant for others, and is asked about.
    socket: Arc<OwnedFd>,
    _redirect: Redirect,
    presence: Arc<Presence>,
    gone: AtomicBool,
}

impl Attachment {
    /// Looks whether the interface is there. Once it is gone it stays so: one of the same name is another interface.
    fn look(&self) {
        if !self.gone.load(Ordering::Relaxed)
            && !sys::interface_exists(&self.socket, self.index)
            && !self.gone.swap(true, Ordering::Relaxed)
        {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.presence.gone(now.as_nanos() as u64);
        }
    }
}

impl Incoming {
    /// Gives the kernel frames to receive into.
    fn refill(&mut self) {
        self.home.settle();
        for queue in &mut self.queues {
            while queue.held < queue.share
                && let Some(frame) = self.home.next_free()
            {
                let place = self.part.start() + frame as usize * self.chunk;
                if !queue.fill.push([place as u64]) {
                    self.home.put_back(frame);
                    break;
                }
                queue.held += 1;
            }
            queue.fill.publish();
            if queue.fill.wants_wakeup() {
                calls::kick_receive(&queue.socket);
            }
        }
    }
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: u64) -> &'a mut [u8] {
        batch.clear();
        batch.headroom = HEADROOM as u32;
        self.refill();
        let Incoming { part, home, chunk, queues, turn, port, offloads, .. } = self;
        let start = part.start();
        let memory = part.bytes();
        let count = queues.len();
        for number in 0..count {
            let queue = &mut queues[(*turn + number) % count];
            while !batch.is_full()
                && let Some(entry) = queue.received.pop()
            {
                queue.held = queue.held.saturating_sub(1);
                let Arrived { at, length } = Arrived::read(entry);
                let Some(frame) = at.checked_sub(start).map(|at| (at / *chunk) as u32) else { continue };
                let place = at - start;
                let Some(bytes) = memory.get_mut(place..place + length) else { continue };
                if !home.lend(frame) {
                    continue;
                }
                if *offloads {
                    Offload::unmarked(bytes).complete(bytes);
                }
                batch.push(place as u64, length as u32, length as u32, *port, now);
            }
            queue.received.free();
        }
        *turn = (*turn + 1) % count;
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.any.as_ref().map_or_else(|| self.queues[0].socket.as_raw_fd(), |any| any.as_raw_fd())
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.interface.look();
        let counted = self.queues.iter().filter_map(|queue| calls::statistics(&queue.socket).ok());
        self.losses = counted.fold(ReceiveLosses::default(), |losses, counts| {
            let full = counts.rx_ring_full + counts.rx_fill_ring_empty_descs;
            ReceiveLosses {
                ring_full: losses.ring_full + full,
                // The kernel counts frames that find none free here, too.
                too_long: losses.too_long + counts.rx_dropped.saturating_sub(counts.rx_fill_ring_empty_descs),
                ..losses
            }
        });
        self.losses
    }
}

/// A received packet: where it lies in the memory, and its length.
struct Arrived {
    at: usize,
    length: usize,
}

impl Arrived {
    /// The entry of a ring: where its frame lies, by how much the packet begins behind it (in the upper 16 bits where frames may lie anywhere), and the
    /// packet's length.
    fn read([place, length]: [u64; 2]) -> Arrived {
        let at = (place & ((1 << 48) - 1)) + (place >> 48);
        let bytes = length.to_ne_bytes();
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Arrived { at: at as usize, length: length as usize }
    }
}

/// The entry of a ring for a packet to be sent.
fn departing(at: usize, length: usize) -> [u64; 2] {
    let [a, b, c, d] = (length as u32).to_ne_bytes();
    [at as u64, u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])]
}

/// The half by which they leave.
struct Outlet {
    socket: Arc<OwnedFd>,
    transmit: Producer<Shared, 2>,
    completed: Consumer<Shared, 1>,
    pool: Arc<Pool>,
    /// Frames for what is copied, and which of them are free.
    part: Part,
    free: Vec<u32>,
    /// The interface is off, as the last attempt to send said.
    off: bool,
    losses: SendLosses,
}

impl Outlet {
    /// Takes back what the kernel has sent.
    fn complete(&mut self) {
        while let Some([at]) = self.completed.pop() {
            let at = at as usize;
            match at.checked_sub(self.part.start()) {
                Some(within) => self.free.push((within / self.pool.chunk) as u32),
                None => {
                    if let Some((marks, frame)) = self.pool.frame(&(at..at + 1)) {
                        marks.give_back(frame);
                    }
                }
            }
        }
        self.completed.free();
    }

    /// Whether there is room for a packet, made if need be.
    fn has_room(&mut self) -> bool {
        if self.transmit.has_room() {
            return true;
        }
        self.flush();
        self.transmit.has_room()
    }

    /// Makes a packet of so many bytes in a frame of this port, where `write` writes it, and puts it into the ring.
    fn send_copy(&mut self, length: usize, write: impl FnOnce(&mut [u8])) {
        if length > self.pool.chunk {
            self.losses.refused += 1;
            return;
        }
        if self.free.is_empty() {
            self.flush();
        }
        let Some(frame) = (if self.has_room() { self.free.pop() } else { None }) else {
            self.losses.busy += 1;
            return;
        };
        let start = frame as usize * self.pool.chunk;
        write(&mut self.part.bytes()[start..start + length]);
        self.transmit.push(departing(self.part.start() + start, length));
    }

    /// Sends a packet from the frame that it lies in. Says whether it lies in one that may be taken.
    fn send_in_place(&mut self, bytes: &[u8]) -> bool {
        let Some(range) = self.pool.pages.place(bytes) else { return false };
        if !self.has_room() || !self.pool.frame(&range).is_some_and(|(marks, frame)| marks.take(frame)) {
            return false;
        }
        self.transmit.push(departing(range.start, range.len()))
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], offload: Offload) {
        if self.off {
            self.losses.down += 1;
        } else if offload.segments() {
            let Some(segments) = Segments::of(frame, &offload) else {
                self.losses.refused += 1;
                return;
            };
            for index in 0..segments.count() {
                self.send_copy(segments.length(index), |piece| segments.write(frame, index, piece));
            }
        } else if frame.len() < SHORTEST {
            self.losses.refused += 1;
        } else if !self.send_in_place(frame) {
            self.send_copy(frame.len(), |place| place.copy_from_slice(frame));
        }
    }

    fn flush(&mut self) {
        self.transmit.publish();
        // A driver that takes packets by itself empties the ring once its interface is on again, and nothing below asks then.
        self.off = false;
        let mut before = self.transmit.waiting();
        while before > 0 && self.transmit.wants_wakeup() {
            let kicked = calls::kick_transmit(&self.socket);
            self.complete();
            let waiting = self.transmit.waiting();
            match kicked.as_ref().map_err(io::Error::raw_os_error) {
                // One packet was taken off the ring, and the interface did not take it.
                Err(Some(libc::EBUSY)) => self.losses.refused += 1,
                Err(Some(libc::ENETDOWN | libc::ENXIO)) => {
                    self.off = true;
                    return;
                }
                _ if waiting == before => return,
                _ => {}
            }
            before = waiting;
        }
        self.complete();
    }

    fn losses(&self) -> SendLosses {
        let refused = calls::statistics(&self.socket).map_or(0, |counts| counts.tx_invalid_descs);
        SendLosses { refused: self.losses.refused + refused, ..self.losses }
    }
}
