//! Packets that are held until many of them can be run together: copies of their frames, in order of arrival, from when they came until they are run.
//!
//! ```text
//!               take                        run                            run, again
//!   packets ──────────► open convoy ──────────────► waiting convoys ──────────────► batch by batch, to whoever runs them
//!                        (fills up)   a policy says   with the device, or
//!                                     when and where  for the processor
//! ```
//!
//! A convoy is as many batches as go over together. Convoys are run in the order in which their packets came, so what packets mean does not
//! depend on where they are run.

use exec::{Beginning, Processor, Room};
use gpu::placement::{Decision, Place, Placement, Policy, Waiting};
use packet::{BATCH, Batch};
use ports::arena::Arena;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of memory for each packet of a convoy. Where packets are longer, a convoy has fewer.
const PACKET_BYTES: usize = 2048;

/// Whether further packets will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// At once: there is no need to run fewer together than go.
    Plenty,
    /// Nobody knows when.
    Unknown,
    /// None.
    Ended,
}

/// Whoever runs packets that are held.
pub trait Run {
    /// What may go wrong.
    type Error;

    /// What runs them.
    fn processor(&mut self) -> &mut dyn Processor;

    /// Runs a batch, to the end.
    ///
    /// # Errors
    /// What went wrong; no further batch is run then.
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Self::Error>;
}

/// Packets that are run together.
struct Convoy {
    arena: Arena,
    batches: Vec<Batch>,
    /// So many batches hold packets.
    filled: usize,
    packets: usize,
    /// Since when the first packet waits.
    oldest: Instant,
    place: Place,
    /// When it was placed.
    placed: Instant,
}

impl Convoy {
    fn new(room: Room, now: Instant) -> Convoy {
        Convoy {
            arena: Arena::sized(room.packets * PACKET_BYTES),
            batches: Vec::new(),
            filled: 0,
            packets: 0,
            oldest: now,
            place: Place::Processor,
            placed: now,
        }
    }

    fn clear(&mut self) {
        self.arena.clear();
        (self.filled, self.packets) = (0, 0);
    }

    /// Takes a copy of a packet of a batch that came at `now`; says whether there was room.
    fn push(&mut self, memory: &[u8], batch: &Batch, index: usize, now: Instant) -> bool {
        if self.filled == 0 || self.batches[self.filled - 1].is_full() {
            if self.filled == self.batches.len() {
                self.batches.push(Batch::new());
            }
            self.batches[self.filled].clear();
            self.filled += 1;
        }
        let last = &mut self.batches[self.filled - 1];
        let bytes = batch.bytes(memory, index).unwrap_or_default();
        if !self.arena.push(last, bytes, batch.wire[index], batch.time[index]) {
            return false;
        }
        last.port[last.len - 1] = batch.port[index];
        last.leave_unfinished(batch.offload(index));
        if self.packets == 0 {
            self.oldest = now;
        }
        self.packets += 1;
        true
    }

    /// The frames of its packets, and its batches, to be run one after the other.
    fn parts(&mut self) -> (&mut [u8], &mut [Batch]) {
        let filled = self.batches[..self.filled].iter().take_while(|batch| !batch.is_empty()).count();
        (self.arena.memory_mut(), &mut self.batches[..filled])
    }
}

/// Packets that are held, and the policy by which they are.
pub struct Hold {
    room: Room,
    placement: Placement,
    open: Convoy,
    /// Whether a packet found no room in the open convoy.
    full: bool,
    waiting: VecDeque<Convoy>,
    spare: Vec<Convoy>,
    /// When packets were last done.
    last_done: Option<Instant>,
}

impl Hold {
    /// Nothing is held. `room` is the processor's; of it the policy may want less.
    pub fn new(room: Room, policy: Policy, now: Instant) -> Hold {
        let room = Room { packets: room.packets.min(policy.packets()), ..room };
        Hold {
            room,
            placement: Placement::new(policy),
            open: Convoy::new(room, now),
            full: false,
            waiting: VecDeque::with_capacity(room.convoys),
            spare: Vec::new(),
            last_done: None,
        }
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.open.packets == 0 && self.waiting.is_empty()
    }

    /// Whether convoys wait for the device, or to be run.
    pub fn is_under_way(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether packets can be taken before a convoy has been run: a whole batch, if convoys are no smaller than that.
    pub fn has_room(&self) -> bool {
        !self.full
            && (self.waiting.len() < self.room.convoys || self.open.packets + BATCH <= self.room.packets)
    }

    /// Takes copies of the packets of a batch, and where there is no room left has packets run until there is.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn take<R: Run>(&mut self, run: &mut R, memory: &[u8], batch: &Batch) -> Result<(), R::Error> {
        let mut taken = 0;
        loop {
            taken = self.copy(memory, batch, taken, Instant::now());
            if taken == batch.len {
                return Ok(());
            }
            self.run(run, Supply::Plenty)?;
        }
    }

    /// Begins with what the policy says is to be begun with, and has the packets run that are ready; says whether there were any. With [`Supply::Plenty`]
    /// and no room left, and with [`Supply::Ended`], it waits for those that a device has yet to finish.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn run<R: Run>(&mut self, run: &mut R, supply: Supply) -> Result<bool, R::Error> {
        let mut any = false;
        while let Some(mut convoy) = self.ready(run.processor(), supply, Instant::now()) {
            any = true;
            let (memory, batches) = convoy.parts();
            batches.iter_mut().try_for_each(|batch| run.batch(memory, batch))?;
            self.done(convoy, Instant::now());
        }
        Ok(any)
    }

    /// Copies the packets of a batch from `from` on. Says how far it came: where that is not the end of the batch, there is no room.
    fn copy(&mut self, memory: &[u8], batch: &Batch, from: usize, now: Instant) -> usize {
        for index in from..batch.len {
            if self.open.packets >= self.room.packets || !self.open.push(memory, batch, index, now) {
                self.full = true;
                return index;
            }
        }
        self.full = self.open.packets >= self.room.packets;
        batch.len
    }

    /// A convoy that is to be run now, if there is one.
    fn ready(&mut self, processor: &mut dyn Processor, supply: Supply, now: Instant) -> Option<Convoy> {
        self.place(processor, supply, now);
        let front = self.waiting.front()?;
        let wanted = match supply {
            Supply::Plenty => self.full,
            Supply::Unknown => false,
            Supply::Ended => true,
        };
        if front.place == Place::Processor || wanted || processor.ahead().is_none_or(|ahead| ahead.is_ready())
        {
            return self.waiting.pop_front();
        }
        None
    }

    /// A convoy has been run.
    fn done(&mut self, mut convoy: Convoy, now: Instant) {
        // While one was under way the next has waited for it.
        let begun = self.last_done.map_or(convoy.placed, |done| done.max(convoy.placed));
        self.placement.learn(convoy.place, convoy.packets, now.saturating_duration_since(begun));
        self.last_done = Some(now);
        convoy.clear();
        self.spare.push(convoy);
    }

    /// When the policy wants to be asked again though no packet comes; none while it waits for packets alone.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        match self.decide(now) {
            Decision::Wait(time) => time,
            Decision::Run(..) => Some(Duration::ZERO),
        }
    }

    fn decide(&self, now: Instant) -> Decision {
        let oldest = now.saturating_duration_since(self.open.oldest);
        self.placement.decide(Waiting { packets: self.open.packets, oldest })
    }

    /// Ends the open convoy if the policy says so, and lets the device begin with it if it is to.
    fn place(&mut self, processor: &mut dyn Processor, supply: Supply, now: Instant) {
        // What the processor is to run waits for those before; nothing is begun behind it until then.
        let stopped = self.waiting.back().is_some_and(|last| last.place == Place::Processor);
        if self.open.packets == 0 || stopped || self.waiting.len() >= self.room.convoys {
            return;
        }
        // Nobody waits for a device that is gone.
        let is_gone = processor.ahead().is_none();
        let place = match (self.decide(now), supply) {
            (_, Supply::Plenty) if !self.full => return,
            (Decision::Run(place, _), _) => place,
            (Decision::Wait(_), Supply::Ended) => Place::Device,
            (Decision::Wait(_), _) if self.full || is_gone => Place::Device,
            (Decision::Wait(_), _) => return,
        };
        let (memory, batches) = self.open.parts();
        self.open.place = match processor.ahead().filter(|_| place == Place::Device) {
            None => Place::Processor,
            Some(ahead) => match ahead.begin(memory, batches) {
                Beginning::Begun => Place::Device,
                Beginning::Later => return,
                Beginning::Never => Place::Processor,
            },
        };
        self.open.placed = now;
        let next = self.spare.pop().unwrap_or_else(|| Convoy::new(self.room, now));
        self.waiting.push_back(std::mem::replace(&mut self.open, next));
        self.full = false;
    }
}
