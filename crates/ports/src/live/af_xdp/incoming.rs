//! The receiving half of an AF_XDP lane: it takes frames that Linux has filled, from one queue or several.

use super::calls;
use super::frames::Home;
use super::memory::Part;
use super::metadata;
use super::port::Port;
use super::ring::{Consumer, Producer};
use super::{FIRST, Pool};
use crate::live::clock::Now;
use crate::live::sys::{self, Shared};
use crate::live::{Offloads, ReceiveLosses, Receiver, untagged};
use packet::region::HEADROOM;
use packet::{Batch, VirtioHeader};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// One queue of an interface, as packets come in by it.
pub(super) struct Queue {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) fill: Producer<Shared, 1>,
    pub(super) received: Consumer<Shared, 2>,
    /// How many frames the kernel has, and how many it shall have.
    pub(super) held: usize,
    pub(super) share: usize,
}

/// Where the packets of a lane come in.
pub(super) struct Entrance {
    pub(super) queues: Vec<Queue>,
    /// What can be read when one of them can.
    pub(super) any: OwnedFd,
}

/// The half by which packets come in.
pub(super) struct Incoming {
    part: Part,
    home: Home,
    pool: Arc<Pool>,
    queues: Vec<Queue>,
    /// Keeps its number when other sockets take the place of these.
    any: OwnedFd,
    /// The queue that is looked at first next time.
    turn: usize,
    /// Whether checksums may stay open.
    open: bool,
    /// What was lost at sockets that others have replaced, and in frames that are none.
    losses: ReceiveLosses,
    /// What these sockets had counted before packets came in here.
    before: ReceiveLosses,
    port: Arc<Port>,
    lane: usize,
    /// Whether frames and rings are this process's own, rather than still those of another one.
    pub(super) owns_rings: bool,
}

impl Incoming {
    pub(super) fn new(
        entrance: Entrance,
        part: Part,
        home: Home,
        pool: Arc<Pool>,
        port: Arc<Port>,
        lane: usize,
    ) -> Incoming {
        let Entrance { queues, any } = entrance;
        let (losses, before, open) = (ReceiveLosses::default(), ReceiveLosses::default(), false);
        Incoming {
            part,
            home,
            pool,
            queues,
            any,
            turn: 0,
            open,
            losses,
            before,
            port,
            lane,
            owns_rings: true,
        }
    }

    /// Gives the kernel frames to receive into.
    pub(super) fn refill(&mut self) {
        self.home.settle();
        for queue in &mut self.queues {
            while queue.held < queue.share
                && let Some(frame) = self.home.next_free()
            {
                let place = self.part.start() + frame as usize * self.pool.layout.chunk;
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

    /// Goes on with other sockets if there are some.
    fn look_for_others(&mut self) {
        if let Some(entrance) = self.port.incoming[self.lane].take() {
            self.renew(entrance);
        }
    }

    /// Goes on with the sockets of an interface that is there again. Those before it are without one, so that
    /// the kernel does not write to the frames that they were given any more: it says that a socket has none
    /// only after its interface was switched off and nobody receives by it.
    fn renew(&mut self, entrance: Entrance) {
        // Others wait for the number; if that fails nothing has changed and the port stays away.
        if sys::replace(&self.any, &entrance.any).is_ok() {
            self.losses = self.counted();
            self.before = ReceiveLosses::default();
            self.queues = entrance.queues;
            self.home.reclaim();
        }
    }

    /// What was lost so far.
    fn counted(&self) -> ReceiveLosses {
        let since = self.at_sockets().each(self.before, u64::saturating_sub);
        self.losses.each(since, |own, since| own + since)
    }

    /// What the sockets have counted.
    fn at_sockets(&self) -> ReceiveLosses {
        let counted = self.queues.iter().filter_map(|queue| calls::statistics(&queue.socket).ok());
        counted.fold(ReceiveLosses::default(), |losses, counts| {
            let full = counts.rx_ring_full + counts.rx_fill_ring_empty_descs;
            ReceiveLosses {
                ring_full: losses.ring_full + full,
                // The kernel counts frames that find none free here, too.
                too_long: losses.too_long + counts.rx_dropped.saturating_sub(counts.rx_fill_ring_empty_descs),
                ..losses
            }
        })
    }
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        batch.headroom = HEADROOM as u32;
        if !self.owns_rings {
            return &mut [];
        }
        // What came by the sockets before comes first.
        if self.queues.iter_mut().all(|queue| queue.received.is_empty()) {
            self.look_for_others();
        }
        self.refill();
        let Incoming { part, home, pool, queues, turn, open, losses, port, .. } = self;
        let (start, offloads) = (part.start(), port.offloads != Offloads::Off);
        let chunk = pool.layout.chunk;
        let describe = *open && !chunk.is_power_of_two();
        let memory = part.bytes();
        let count = queues.len();
        for number in 0..count {
            let queue = &mut queues[(*turn + number) % count];
            while !batch.is_full()
                && let Some(entry) = queue.received.pop()
            {
                let Arrived { at, length } = Arrived::read(entry);
                let place = at.checked_sub(start).filter(|place| home.lend((place / chunk) as u32));
                let Some(place) = place else {
                    losses.unreadable += 1;
                    continue;
                };
                queue.held = queue.held.saturating_sub(1);
                let Some(bytes) = memory.get_mut(place..place + length) else {
                    losses.unreadable += 1;
                    continue;
                };
                let mut virtio = if offloads { VirtioHeader::unmarked(bytes) } else { VirtioHeader::NONE };
                if !*open {
                    virtio.complete(bytes);
                    virtio = VirtioHeader::NONE;
                }
                let later = untagged::take_out(bytes);
                let (place, length) = (place + later, length - later);
                if describe
                    && place % chunk == FIRST
                    && let Some(metadata) = metadata::of(&virtio)
                {
                    // For the port that sends it from this frame.
                    memory[place - metadata.len()..place].copy_from_slice(&metadata);
                }
                batch.push(place as u64, length as u32, length as u32, port.number, now.program);
                batch.leave_unfinished(virtio.moved(-(later as i32)).unwrap_or(VirtioHeader::NONE));
            }
            queue.received.free();
        }
        *turn = (*turn + 1) % count;
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.any.as_raw_fd()
    }

    fn leave_checksums_open(&mut self, open: bool) {
        self.open = open;
    }

    /// | how many frames the kernel has for a queue | … | what is said of a frame | … |
    ///
    /// There is one number for each queue, and one for each frame of the home, as [`Home::checkpoint`] says
    /// it.
    fn checkpoint(&mut self) -> Vec<u32> {
        // What came by an interface that has vanished since is lost with it.
        self.look_for_others();
        let held = self.queues.iter().map(|queue| queue.held as u32).collect();
        [held, self.home.checkpoint()].concat()
    }

    fn resume(&mut self, checkpoint: &[u32]) -> bool {
        let Some((held, frames)) = checkpoint.split_at_checked(self.queues.len()) else { return false };
        let can_be = held.iter().zip(&self.queues).all(|(&held, queue)| held as usize <= queue.share);
        let held_together = held.iter().map(|&held| held as usize).sum();
        if !can_be || !self.home.resume(frames, held_together, self.pool.homes.len() as u32) {
            return false;
        }
        for (queue, &held) in self.queues.iter_mut().zip(held) {
            queue.held = held as usize;
            queue.fill.resume();
            queue.received.resume();
        }
        self.before = self.at_sockets();
        self.owns_rings = true;
        true
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.counted()
    }
}

/// A received packet: where it lies in the memory, and its length.
struct Arrived {
    at: usize,
    length: usize,
}

impl Arrived {
    /// The entry of a ring: where its frame lies, by how much the packet begins behind it (in the upper 16
    /// bits where frames may lie anywhere), and the packet's length.
    fn read([place, length]: [u64; 2]) -> Arrived {
        let at = (place & ((1 << 48) - 1)) + (place >> 48);
        let bytes = length.to_ne_bytes();
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Arrived { at: at as usize, length: length as usize }
    }
}
