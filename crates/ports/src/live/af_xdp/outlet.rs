//! The sending half of an AF_XDP lane: it sends a packet from the frame in which the packet came in, if
//! possible, else from a copy.
//!
//! A port that does not send any more, as one without a carrier whose driver uses the frames themselves,
//! keeps what it was given. So each takes only so many frames of others that all together never have more
//! than half of those that a port receives into; further packets are copied.

use super::memory::Part;
use super::metadata;
use super::port::Port;
use super::ring::{Consumer, Producer};
use super::{FIRST, FRAMES, Pool, TRANSMIT, calls};
use crate::live::clock::{Clock, MachineClock};
use crate::live::sys::Shared;
use crate::live::{Offloads, SendLosses, Sender};
use packet::VirtioHeader;
use packet::segment::Segments;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The shortest packet that may leave: an Ethernet header.
const SHORTEST: usize = 14;

/// After so many nanoseconds packets that the interface had no room for are handed over again.
const AGAIN: u64 = 1_000_000;

/// Where the packets of a lane leave.
pub(super) struct Exit {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) transmit: Producer<Shared, 2>,
    pub(super) completed: Consumer<Shared, 1>,
    /// Whether bytes before a packet may describe it.
    pub(super) metadata: bool,
}

/// What the interface is found to be when something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On,
    /// The last attempt to send said so.
    Off,
    /// The socket has none any more.
    Gone,
}

/// The half by which they leave.
pub(super) struct Outlet {
    exit: Exit,
    pool: Arc<Pool>,
    /// Frames for what is copied, and which of them are free.
    part: Part,
    free: Vec<u32>,
    /// Its number among the ports of the worker, by which frames that it took are known.
    number: u32,
    /// How many of them are on their way, and how many may be.
    taken: u32,
    most: u32,
    state: State,
    /// Whether the rings are this process's own, rather than still those of another one.
    pub(super) owns_rings: bool,
    /// How many packets this socket had found that are none, before that.
    not_taken_before: u64,
    /// Whether a port that is not on was looked at since the last batch.
    looked: bool,
    /// When to hand over again what the interface had no room for (the program's time).
    again: Option<u64>,
    losses: SendLosses,
    port: Arc<Port>,
    lane: usize,
    /// Goes after the socket: until that is closed, the interface may read the frames.
    _loans: Loans,
}

/// Frames of other ports of the worker, which go home with it: those ports go on.
struct Loans {
    pool: Arc<Pool>,
    number: u32,
}

impl Drop for Loans {
    fn drop(&mut self) {
        for marks in &self.pool.homes {
            marks.give_back_all(self.number);
        }
    }
}

impl Outlet {
    pub(super) fn new(
        exit: Exit,
        pool: Arc<Pool>,
        part: Part,
        port: Arc<Port>,
        lane: usize,
        number: u32,
    ) -> Outlet {
        Outlet {
            exit,
            part,
            free: (0..TRANSMIT).rev().collect(),
            number,
            taken: 0,
            most: FRAMES / 2 / pool.homes.len().max(1) as u32,
            _loans: Loans { pool: pool.clone(), number },
            pool,
            state: State::On,
            owns_rings: true,
            not_taken_before: 0,
            looked: false,
            again: None,
            losses: SendLosses::default(),
            port,
            lane,
        }
    }

    /// Takes back what the kernel has sent.
    fn complete(&mut self) {
        while let Some([at]) = self.exit.completed.pop() {
            let at = at as usize;
            match at.checked_sub(self.part.start()).filter(|_| at < self.part.end()) {
                Some(within) => self.free.push((within / self.pool.layout.chunk) as u32),
                None => {
                    if let Some((marks, frame)) = self.pool.frame(&(at..at + 1))
                        && marks.give_back(frame, self.number)
                    {
                        self.taken -= 1;
                    }
                }
            }
        }
        self.exit.completed.free();
    }

    /// Takes everything back from a socket that has no interface any more. What it had not sent is lost.
    fn abandon(&mut self) {
        self.complete();
        self.losses.down += u64::from(self.exit.transmit.waiting());
        self.free.clear();
        self.free.extend((0..TRANSMIT).rev());
        for marks in &self.pool.homes {
            marks.give_back_all(self.number);
        }
        self.taken = 0;
        self.state = State::Gone;
    }

    /// Goes on with a socket of an interface that is there again.
    fn renew(&mut self, exit: Exit) {
        if self.state != State::Gone {
            self.abandon();
        }
        self.losses.refused += self.not_taken();
        self.not_taken_before = 0;
        self.exit = exit;
        self.state = State::On;
    }

    /// How many packets this socket has found that are none.
    fn not_taken(&self) -> u64 {
        let counted = calls::statistics(&self.exit.socket).map_or(0, |counts| counts.tx_invalid_descs);
        counted.saturating_sub(self.not_taken_before)
    }

    /// Whether there is room for a packet, made if need be.
    fn has_room(&mut self) -> bool {
        if !self.exit.transmit.has_room() {
            self.hand_over();
        }
        self.state == State::On && self.exit.transmit.has_room()
    }

    /// What is to stand before a packet; nothing if it is finished, or is to be.
    fn metadata(&self, virtio: &VirtioHeader) -> Option<[u8; metadata::LENGTH]> {
        if self.takes_open_checksums() { metadata::of(virtio) } else { None }
    }

    /// Makes a packet of so many bytes in a frame of this port, where `write` writes it and says what is left
    /// to do with it, and puts it into the ring.
    fn send_copy(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> VirtioHeader) {
        // The kernel wants this room before each packet, described or not.
        let before = if self.exit.metadata { metadata::LENGTH } else { 0 };
        if before + length > self.pool.layout.chunk {
            self.losses.refused += 1;
            return;
        }
        if self.free.is_empty() {
            self.hand_over();
        }
        match if self.has_room() { self.free.pop() } else { None } {
            Some(frame) => {
                let start = frame as usize * self.pool.layout.chunk + before;
                let packet = &mut self.part.bytes()[start..start + length];
                let left = write(packet);
                let metadata = self.metadata(&left);
                match metadata {
                    Some(metadata) => self.part.bytes()[start - before..start].copy_from_slice(&metadata),
                    None => drop(left.complete(&mut self.part.bytes()[start..start + length])),
                }
                self.exit.transmit.push(departing(self.part.start() + start, length, metadata.is_some()));
            }
            None if self.state == State::On => self.losses.busy += 1,
            None => self.losses.down += 1,
        }
    }

    /// Sends a packet from the frame that it lies in. Says whether it lies in one that may be taken, and is
    /// described there if need be.
    fn send_in_place(&mut self, bytes: &[u8], virtio: &VirtioHeader) -> bool {
        if self.taken >= self.most {
            return false;
        }
        let Some(range) = self.pool.pages.place(bytes) else { return false };
        let (open, described) = (virtio.is_open(), self.metadata(virtio).is_some());
        // The receiving half has described what is open where it lay. Whatever has moved is copied.
        if open && !(described && range.start % self.pool.layout.home() % self.pool.layout.chunk == FIRST)
            || self.exit.metadata
                && (range.start < metadata::LENGTH || metadata::LENGTH + range.len() > self.pool.layout.chunk)
        {
            return false;
        }
        let number = self.number;
        if !self.has_room()
            || !self.pool.frame(&range).is_some_and(|(marks, frame)| marks.take(frame, number))
        {
            return false;
        }
        self.taken += 1;
        self.exit.transmit.push(departing(range.start, range.len(), described))
    }

    /// Hands over what is in the ring, by another socket if there is one, and finds out whether the interface
    /// takes it.
    fn hand_over(&mut self) {
        if let Some(exit) = self.port.outgoing[self.lane].take() {
            self.renew(exit);
        }
        self.again = None;
        if self.state == State::Gone {
            return;
        }
        self.exit.transmit.publish();
        // A driver that takes packets by itself empties the ring once its interface is on again, and nothing
        // below asks then.
        self.state = State::On;
        let mut before = self.exit.transmit.waiting();
        while before > 0 && self.exit.transmit.wants_wakeup() {
            let kicked = calls::kick_transmit(&self.exit.socket);
            self.complete();
            let waiting = self.exit.transmit.waiting();
            match kicked {
                // One packet was taken off the ring, and the interface did not take it.
                Err(Errno::BUSY) => self.losses.refused += 1,
                // Drivers say the second of an interface that is not ready, too.
                Err(Errno::NXIO) if !calls::is_bound(&self.exit.socket) => {
                    self.abandon();
                    return;
                }
                Err(Errno::NETDOWN | Errno::NXIO) => {
                    self.state = State::Off;
                    return;
                }
                // It has no room now. Nothing says when it has some again.
                _ if waiting == before => {
                    self.again = (waiting > 0).then(|| MachineClock.program() + AGAIN);
                    return;
                }
                _ => {}
            }
            before = waiting;
        }
        self.complete();
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        // It may be on again: that is asked before the first packet of a batch is lost.
        if self.state != State::On && !std::mem::replace(&mut self.looked, true) {
            self.hand_over();
        }
        if self.state != State::On {
            self.losses.down += 1;
        } else if virtio.segments() {
            let Some(segments) = Segments::of(frame, &virtio) else {
                self.losses.refused += 1;
                return;
            };
            for index in 0..segments.count() {
                self.send_copy(segments.length(index), |piece| segments.write_open(frame, index, piece));
            }
        } else if frame.len() < SHORTEST {
            self.losses.refused += 1;
        } else if !self.send_in_place(frame, &virtio) {
            self.send_copy(frame.len(), |place| {
                place.copy_from_slice(frame);
                virtio
            });
        }
    }

    fn flush(&mut self) {
        if self.owns_rings {
            self.hand_over();
        }
        self.looked = false;
    }

    /// | a frame that is free for copies | … |
    ///
    /// Packets that are on their way stay there.
    fn checkpoint(&mut self) -> Vec<u32> {
        self.flush();
        self.free.clone()
    }

    fn resume(&mut self, checkpoint: &[u32]) -> bool {
        let mut is_free = vec![false; TRANSMIT as usize];
        let can_be = checkpoint.iter().all(|&frame| {
            is_free.get_mut(frame as usize).is_some_and(|is_free| !std::mem::replace(is_free, true))
        });
        if !can_be {
            return false;
        }
        self.free = checkpoint.to_vec();
        self.taken = self.pool.homes.iter().map(|marks| marks.taken_by(self.number)).sum();
        self.exit.transmit.resume();
        self.exit.completed.resume();
        self.not_taken_before = 0;
        self.not_taken_before = self.not_taken();
        self.owns_rings = true;
        // Whoever had it waited for room.
        self.again = (self.exit.transmit.waiting() > 0).then(|| MachineClock.program());
        true
    }

    fn due(&self) -> Option<u64> {
        self.again
    }

    fn takes_open_checksums(&self) -> bool {
        self.exit.metadata && self.port.offloads != Offloads::Off
    }

    fn takes_segments(&self) -> bool {
        true
    }

    fn losses(&self) -> SendLosses {
        SendLosses { refused: self.losses.refused + self.not_taken(), ..self.losses }
    }
}

/// The entry of a ring for a packet to be sent, and whether it is described.
fn departing(at: usize, length: usize, described: bool) -> [u64; 2] {
    let [a, b, c, d] = (length as u32).to_ne_bytes();
    let [e, f, g, h] = if described { libc::XDP_TX_METADATA } else { 0 }.to_ne_bytes();
    [at as u64, u64::from_ne_bytes([a, b, c, d, e, f, g, h])]
}

#[cfg(test)]
mod tests;
