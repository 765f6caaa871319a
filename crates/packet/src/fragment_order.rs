//! Puts fragments into order: one that comes before the first of its packet waits, and goes on right behind
//! it.
//!
//! ```text
//!   batch ─► no fragment, first fragment, later one behind its first ───────────► run
//!                               │ those that wait for it follow it                 ▲
//!        └─► later fragment, its first has not come ─► waits ── time is up ────────┤
//!                               └─ no room to wait ────────────────────────────────┘
//! ```
//!
//! Only the first fragment holds ports, so what decides by ports needs it first. Nothing is dropped here: a
//! fragment whose first does not come goes on as it is, as one that comes behind it would.
//!
//! What a packet costs is bounded: a search looks at the eight places of a set, and a fragment is copied once
//! when it begins to wait and once when it goes on. Memory is allocated at the beginning alone.

mod datagram;
mod places;
#[cfg(test)]
mod tests;
mod waiting;

use crate::{Arena, Batch};
use datagram::{Datagram, fragment};
use places::{Came, Places};
use waiting::{Arrived, CELL, NONE, Waiting};

/// How much may wait, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Of how many packets it is remembered which fragments came.
    pub packets: u32,
    /// How many bytes of frames wait at most; each frame counts as a multiple of 256.
    pub bytes: u32,
    /// How many of them are of one source: an address of IPv4, or the first 64 bits of one of IPv6. Sources
    /// are bounded in 256 groups, so two of them may share this.
    pub bytes_of_source: u32,
    /// How long a fragment waits for its first, in nanoseconds.
    pub wait: u64,
    /// How long it is remembered that a first fragment came, in nanoseconds.
    pub remember: u64,
}

impl FragmentLimits {
    /// Bytes that are allocated for this.
    pub const fn allocated(&self) -> usize {
        Places::allocated(self.packets as usize)
            + Waiting::allocated(self.bytes as usize / CELL)
            + Arena::SMALLEST
            + 2 * size_of::<Batch>()
    }
}

/// Fragments in order: what waits, and what is known of the packets that it belongs to.
pub struct FragmentOrder {
    places: Places,
    waiting: Waiting,
    wait: u64,
    /// The largest time of a packet so far; time never goes back.
    now: u64,
    /// A part of a batch.
    part: Box<Batch>,
    /// Frames that have waited, on their way.
    released: Box<Batch>,
    arena: Arena,
}

impl FragmentOrder {
    /// Nothing waits. Nobody who does not know the seed can choose packets that share a set of places.
    pub fn new(limits: FragmentLimits, seed: u64) -> FragmentOrder {
        let FragmentLimits { packets, bytes, bytes_of_source, wait, remember } = limits;
        FragmentOrder {
            places: Places::new(packets as usize, remember, seed),
            waiting: Waiting::new(bytes as usize / CELL, bytes_of_source as usize / CELL, seed),
            wait,
            now: 0,
            part: Box::default(),
            released: Box::default(),
            arena: Arena::sized(0),
        }
    }

    /// When the next fragment has waited long enough, in nanoseconds; `None` if none waits.
    pub fn due(&self) -> Option<u64> {
        self.waiting.oldest().map(|frame| self.waiting.arrived(frame).until)
    }

    /// Runs the packets of a batch in order, with what has waited in its place. Without fragments, and while
    /// nothing is due, the batch itself is run; otherwise parts of it, and it has no meaning afterwards.
    ///
    /// # Errors
    /// What `run` returns; what was not run then is lost.
    #[inline]
    pub fn run<E>(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        mut run: impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let latest = batch.time[..batch.len].iter().fold(self.now, |latest, &time| latest.max(time));
        let is_due = self.due().is_some_and(|due| due <= latest);
        let any = |index| batch.bytes(memory, index).is_some_and(|bytes| fragment(bytes).is_some());
        if !is_due && !(0..batch.len).any(any) {
            self.now = latest;
            return run(memory, batch);
        }
        self.divide(memory, batch, &mut run)
    }

    #[cold]
    fn divide<E>(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.part.clear();
        self.part.headroom = batch.headroom;
        for index in 0..batch.len {
            self.now = self.now.max(batch.time[index]);
            if self.due().is_some_and(|due| due <= self.now) {
                self.run_part(memory, run)?;
                self.run_due(run)?;
            }
            let found = batch.bytes(memory, index).and_then(|bytes| Some((bytes, fragment(bytes)?)));
            if let Some((bytes, (datagram, false))) = found
                && self.waits(bytes, &datagram, batch, index)
            {
                continue;
            }
            let Batch { frame, captured, wire, port, time, .. } = &*batch;
            self.part.push(frame[index], captured[index], wire[index], port[index], time[index]);
            self.part.leave_unfinished(batch.virtio(index));
            if let Some((_, (datagram, true))) = found {
                let first = self.came_first(&datagram);
                if first != NONE {
                    self.run_part(memory, run)?;
                    self.run_waiting(first, self.now, run)?;
                }
            }
        }
        self.run_part(memory, run)
    }

    /// Runs the part of the batch that is known.
    fn run_part<E>(
        &mut self,
        memory: &mut [u8],
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.part.is_empty() {
            return Ok(());
        }
        let headroom = self.part.headroom;
        let ran = run(memory, &mut self.part);
        self.part.clear();
        self.part.headroom = headroom;
        ran
    }

    /// Keeps a later fragment if its first has not come; whether it waits now.
    fn waits(&mut self, bytes: &[u8], datagram: &Datagram, batch: &Batch, index: usize) -> bool {
        let found = self.places.find(datagram, self.now);
        if matches!(found, Some((_, Came::First))) || !self.waiting.has_room(bytes.len(), datagram.source()) {
            return false;
        }
        let Some(place) = found.map(|(place, _)| place).or_else(|| self.places.take(datagram, self.now))
        else {
            return false;
        };
        let arrived = Arrived {
            captured: batch.captured[index],
            wire: batch.wire[index],
            port: batch.port[index],
            virtio: batch.virtio(index),
            until: self.now.saturating_add(self.wait),
            place: place as u32,
        };
        let frame = self.waiting.push(bytes, datagram.source(), arrived);
        let came = match found {
            Some((_, Came::Later { oldest, newest })) => {
                self.waiting.follow(newest, frame);
                Came::Later { oldest, newest: frame }
            }
            _ => Came::Later { oldest: frame, newest: frame },
        };
        self.places.set(place, came, self.now);
        true
    }

    /// Remembers that the first fragment of a packet came; the oldest that waits for it.
    fn came_first(&mut self, datagram: &Datagram) -> u32 {
        let found = self.places.find(datagram, self.now);
        let place = found.map(|(place, _)| place).or_else(|| self.places.take(datagram, self.now));
        if let Some(place) = place {
            self.places.set(place, Came::First, self.now);
        }
        if let Some((_, Came::Later { oldest, .. })) = found { oldest } else { NONE }
    }

    /// Lets time pass to `now`, in nanoseconds: fragments that have waited long enough go on, each at the
    /// time when it has.
    ///
    /// # Errors
    /// As for [`FragmentOrder::run`].
    pub fn advance<E>(
        &mut self,
        now: u64,
        mut run: impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.now = self.now.max(now);
        self.run_due(&mut run)
    }

    fn run_due<E>(&mut self, run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>) -> Result<(), E> {
        let now = self.now;
        self.run_oldest(run, |arrived| (arrived.until <= now).then_some(arrived.until))
    }

    /// Runs everything that waits, at the time of the last packet: no more packets come, or another program.
    ///
    /// # Errors
    /// As for [`FragmentOrder::run`].
    pub fn finish<E>(
        &mut self,
        mut run: impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = self.now;
        self.run_oldest(&mut run, |_| Some(now))
    }

    /// Runs the oldest frames, at the times that `at` says, until it says none.
    fn run_oldest<E>(
        &mut self,
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
        at: impl Fn(&Arrived) -> Option<u64>,
    ) -> Result<(), E> {
        while let Some(frame) = self.waiting.oldest() {
            let arrived = self.waiting.arrived(frame);
            let Some(time) = at(&arrived) else { break };
            // It is the oldest of its packet, too.
            let place = arrived.place as usize;
            let came = match (self.places.came(place), self.waiting.follower(frame)) {
                (_, NONE) => Came::Nothing,
                (Came::Later { newest, .. }, oldest) => Came::Later { oldest, newest },
                (came, _) => came,
            };
            self.places.set(place, came, time);
            self.release(frame, time, run)?;
        }
        self.run_released(run)
    }

    /// Runs a frame that waits and those of the same packet behind it.
    fn run_waiting<E>(
        &mut self,
        first: u32,
        time: u64,
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut frame = first;
        while frame != NONE {
            let follower = self.waiting.follower(frame);
            self.release(frame, time, run)?;
            frame = follower;
        }
        self.run_released(run)
    }

    /// Puts a frame that waits behind those that go on together, which are run when there is no room.
    fn release<E>(
        &mut self,
        frame: u32,
        time: u64,
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Arrived { captured, wire, port, virtio, .. } = self.waiting.arrived(frame);
        if self.released.is_full() || !self.arena.has_room_of(captured as usize) {
            self.run_released(run)?;
        }
        let waiting = &mut self.waiting;
        let fill = |to: &mut [u8]| waiting.take(frame, to);
        if self.arena.push_filled(&mut self.released, captured as usize, wire, time, fill) {
            let last = self.released.len - 1;
            self.released.port[last] = port;
            self.released.leave_unfinished(virtio);
        }
        Ok(())
    }

    fn run_released<E>(
        &mut self,
        run: &mut impl FnMut(&mut [u8], &mut Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.released.is_empty() {
            return Ok(());
        }
        let ran = run(self.arena.memory_mut(), &mut self.released);
        self.released.clear();
        self.arena.clear();
        ran
    }
}
