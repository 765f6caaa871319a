//! Packets whose worker is another one go there: worker by worker, over a ring for each ordered pair of
//! workers.
//!
//! ```text
//!            lane of A                       lane of B
//!                │ received                      │ received
//!                ▼                               ▼
//!    steered: of A? ── no ──► parcel ══ ring ══► of B: run, committed, sent
//!                │ yes                           │
//!                ▼                               ▼
//!               run          ◄══ empty parcels ══
//! ```
//!
//! A packet is copied once, into a parcel, which is a batch with memory of its own. Parcels go to and fro
//! between their two workers, so nothing is allocated for a packet. Packets of one flow stay in their order.
//! Received is what a worker has run, so a packet that crosses counts once, at its own worker. One that finds
//! no room, or that its worker has not taken when it failed, is dropped for [`WORKER_BUSY`], and counts where
//! it came in.
//!
//! [`WORKER_BUSY`]: ir::steering::WORKER_BUSY

use super::Generation;
use super::host_packets;
use super::ring::{Giver, Sleeper, Taker, ring};
use exec::{Backend, BackendKind, LoadError, Outputs, load};
use ir::Program;
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::{Batch, Region, Verdict, VerdictKind};
use ports::live::Bell;
use std::sync::Arc;

/// Bytes of a parcel: room for the longest segment, or for fifty packets of 1,500 bytes.
const PARCEL: usize = 80 << 10;
/// How many parcels there are between two workers at most, and at least if there are many workers.
const MOST_PARCELS: usize = 32;
const LEAST_PARCELS: usize = 4;

/// With more parcels than these in a ring, the next one waits until it is full or the ring is emptier.
const MOST_UNDER_WAY: usize = 2;

/// How many parcels there are on the way from one of `workers` to another.
fn parcels_of_a_way(workers: usize) -> usize {
    (2 * MOST_PARCELS / workers.max(1)).clamp(LEAST_PARCELS, MOST_PARCELS)
}

/// How many parcels `workers` have between each other while a program steers their packets, and how many
/// bytes all of them take.
pub fn parcel_memory(workers: u16) -> (u64, u64) {
    let workers = usize::from(workers);
    let parcels = (workers * workers.saturating_sub(1) * parcels_of_a_way(workers)) as u64;
    (parcels, parcels * (PARCEL + size_of::<Batch>()) as u64)
}

/// What says for each of `workers` to which of them a packet goes; nothing if the program does not say so, or
/// if there is one worker.
///
/// # Errors
/// The back end cannot load the program that steers.
pub fn load_steering(
    program: &Program,
    back_end: BackendKind,
    workers: u16,
) -> Result<Vec<Box<dyn Backend>>, LoadError> {
    let Some(steering) = program.steering.as_deref().filter(|_| workers > 1) else { return Ok(Vec::new()) };
    // Each number that it may choose is a port that exists.
    (0..workers).map(|_| load(steering, back_end, u16::MAX, 0)).collect()
}

/// To which of `workers` the program that steers has assigned a packet.
pub fn worker_of(verdict: Verdict, workers: usize) -> usize {
    if verdict.kind() == VerdictKind::Send { usize::from(verdict.argument()) % workers.max(1) } else { 0 }
}

/// Packets on their way to another worker.
pub(super) struct Parcel {
    pub(super) memory: Region,
    pub(super) batch: Box<Batch>,
    /// Start and end of the last frame.
    last: Option<(usize, usize)>,
    /// The generation that has steered the first of them.
    generation: u64,
}

impl Parcel {
    fn new() -> Parcel {
        Parcel { memory: Region::zeroed(PARCEL), batch: Box::new(Batch::new()), last: None, generation: 0 }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.batch.headroom = HEADROOM as u32;
        self.last = None;
    }

    /// Appends a packet of a batch; whether there was room for it.
    fn push(&mut self, memory: &[u8], batch: &Batch, index: usize) -> bool {
        let Some(bytes) = batch.bytes(memory, index) else { return false };
        let (last, end) = self.last.map_or((None, 0), |(start, end)| (Some(start), end));
        let start = frame_with_headroom(last, end);
        let end = start + bytes.len();
        if end + SLACK > PARCEL
            || !self.batch.push(
                start as u64,
                bytes.len() as u32,
                batch.wire[index],
                batch.port[index],
                batch.time[index],
            )
        {
            return false;
        }
        self.memory.bytes_mut()[start..end].copy_from_slice(bytes);
        self.batch.leave_unfinished(batch.virtio(index));
        self.last = Some((start, end));
        true
    }
}

/// The way to another worker.
struct Way {
    ring: Giver<Parcel>,
    /// Where empty parcels come back.
    back: Taker<Parcel>,
    /// Parcels that have not been used yet; none before the first program that steers.
    fresh: Vec<Parcel>,
    /// How many are still to be made.
    parcels: usize,
    /// The parcel that is being filled.
    open: Option<Parcel>,
    /// Nothing more may be sent.
    closed: bool,
    sleeper: Arc<Sleeper>,
}

impl Way {
    /// Puts a packet into a parcel; whether there was room for it.
    fn push(&mut self, generation: u64, memory: &[u8], batch: &Batch, index: usize) -> bool {
        if self.closed {
            return false;
        }
        if self.open.as_mut().is_some_and(|open| open.push(memory, batch, index)) {
            return true;
        }
        self.send(true);
        if self.open.is_some() {
            return false;
        }
        let Some(mut parcel) = self.back.take().or_else(|| self.fresh.pop()) else { return false };
        parcel.clear();
        parcel.generation = generation;
        let room = parcel.push(memory, batch, index);
        self.open = Some(parcel);
        room
    }

    /// Sends the parcel that is being filled, unless it is empty or the ring is full. While parcels wait in
    /// the ring, it waits for more packets, unless `now`: small parcels would use up the ring.
    fn send(&mut self, now: bool) {
        if !now && self.ring.filled() > MOST_UNDER_WAY {
            return;
        }
        let Some(parcel) = self.open.take_if(|open| !open.batch.is_empty()) else { return };
        match self.ring.put(parcel) {
            Ok(()) => self.sleeper.wake(),
            Err(parcel) => self.open = Some(parcel),
        }
    }

    /// Whether packets wait for room in the ring.
    fn waits(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.batch.is_empty())
    }
}

/// What comes from another worker.
struct Arrivals {
    ring: Taker<Parcel>,
    back: Giver<Parcel>,
}

/// One worker's ways to the others, and theirs to it.
pub(super) struct Crossing {
    /// By worker; none to itself.
    ways: Vec<Option<Way>>,
    arrivals: Vec<Arrivals>,
    /// Whose turn it is.
    next: usize,
    sleeper: Arc<Sleeper>,
    /// Packets that found no room.
    refused: Box<Batch>,
    outputs: Outputs,
}

/// Ways between all workers; each has a bell.
pub(super) fn crossings(bells: &[Bell]) -> Vec<Crossing> {
    let workers = bells.len();
    let sleepers: Vec<_> = bells.iter().map(|bell| Arc::new(Sleeper::new(bell.clone()))).collect();
    let parcels = parcels_of_a_way(workers);
    let mut crossings: Vec<Crossing> = sleepers.iter().cloned().map(Crossing::new).collect();
    for from in 0..workers {
        for to in 0..workers {
            let way = (from != to).then(|| {
                let ((ring, arrive), (give_back, back)) = (self::ring(parcels), self::ring(parcels));
                crossings[to].arrivals.push(Arrivals { ring: arrive, back: give_back });
                let sleeper = sleepers[to].clone();
                Way { ring, back, fresh: Vec::new(), parcels, open: None, closed: false, sleeper }
            });
            crossings[from].ways.push(way);
        }
    }
    crossings
}

impl Crossing {
    /// Of a worker without others.
    pub(super) fn alone(bell: Bell) -> Crossing {
        Crossing::new(Arc::new(Sleeper::new(bell)))
    }

    fn new(sleeper: Arc<Sleeper>) -> Crossing {
        Crossing {
            ways: Vec::new(),
            arrivals: Vec::new(),
            next: 0,
            sleeper,
            refused: Box::new(Batch::new()),
            outputs: Outputs::default(),
        }
    }

    /// How many parcels it will have.
    #[cfg(test)]
    pub(super) fn parcels(&self) -> usize {
        self.ways.iter().flatten().map(|way| way.parcels).sum()
    }

    /// How many other workers there are.
    pub(super) fn others(&self) -> usize {
        self.arrivals.len()
    }

    /// Provides the parcels if the program steers its packets. They stay when another program takes over.
    pub(super) fn prepare(&mut self, generation: &mut Generation) {
        if generation.steering.is_some() {
            for way in self.ways.iter_mut().flatten() {
                let missing = std::mem::take(&mut way.parcels);
                way.fresh.extend((0..missing).map(|_| Parcel::new()));
            }
        }
        generation.has_parcels = self.others() > 0 && self.ways.iter().flatten().all(|way| way.parcels == 0);
    }

    /// Keeps those packets of a batch that are this worker's, and puts the others on their ways.
    #[inline]
    pub(super) fn steer(&mut self, generation: &mut Generation, memory: &mut [u8], batch: &mut Batch) {
        if let Some(mut steering) = generation.steering.take() {
            self.divide(steering.as_mut(), generation, memory, batch);
            generation.steering = Some(steering);
        }
    }

    fn divide(
        &mut self,
        steering: &mut dyn Backend,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
    ) {
        steering.run(memory, batch, &mut self.outputs);
        self.refused.clear();
        let (mut own, workers) = (0, self.ways.len());
        for index in 0..batch.len {
            match self.ways.get_mut(worker_of(batch.verdict[index], workers)) {
                None | Some(None) => {
                    batch.keep(own, index);
                    batch.verdict[own] = Verdict::PENDING;
                    own += 1;
                }
                Some(Some(way)) => {
                    if !way.push(generation.number, memory, batch, index) {
                        let Batch { frame, captured, wire, port, time, .. } = batch;
                        self.refused.push(
                            frame[index],
                            captured[index],
                            wire[index],
                            port[index],
                            time[index],
                        );
                    }
                }
            }
        }
        batch.len = own;
        self.ways.iter_mut().flatten().for_each(|way| way.send(false));
        if !self.refused.is_empty() {
            drop_refused(generation, memory, &mut self.refused);
        }
    }

    /// Takes the next parcel that has come, with the place to give it back to.
    pub(super) fn arrived(&mut self) -> Option<(usize, Parcel)> {
        let count = self.arrivals.len();
        (0..count).find_map(|step| {
            let from = (self.next + step) % count;
            let parcel = self.arrivals[from].ring.take()?;
            self.next = (from + 1) % count;
            Some((from, parcel))
        })
    }

    /// Whether parcels of another worker pile up.
    pub(super) fn has_more(&self, from: usize) -> bool {
        self.arrivals[from].ring.filled() >= MOST_UNDER_WAY
    }

    /// Steers packets again that an earlier program has steered.
    pub(super) fn steer_again(&mut self, generation: &mut Generation, parcel: &mut Parcel) {
        if parcel.generation != generation.number {
            self.steer(generation, parcel.memory.bytes_mut(), &mut parcel.batch);
        }
    }

    /// Gives a parcel back, to be filled again.
    pub(super) fn give_back(&mut self, from: usize, parcel: Parcel) {
        // There is a slot for every parcel; if its worker has ended, nobody needs it.
        let _ = self.arrivals[from].back.put(parcel);
    }

    /// Sends what waits, where a ring has room again; whether anything still waits.
    pub(super) fn send_waiting(&mut self) -> bool {
        self.ways.iter_mut().flatten().fold(false, |waits, way| {
            way.send(false);
            waits | way.waits()
        })
    }

    /// Sends what waits, full or not; whether anything still waits for room.
    pub(super) fn send_all(&mut self) -> bool {
        self.ways.iter_mut().flatten().fold(false, |waits, way| {
            way.send(true);
            waits | way.waits()
        })
    }

    /// Whether all that was sent here has been taken.
    pub(super) fn nothing_arrives(&self) -> bool {
        self.arrivals.iter().all(|arrivals| arrivals.ring.is_empty())
    }

    /// The worker is about to sleep: whether it may, since nothing has come.
    pub(super) fn may_sleep(&mut self) -> bool {
        self.sleeper.lies_down();
        let may = self.nothing_arrives();
        if !may {
            self.wakes();
        }
        may
    }

    /// The worker does not sleep any more.
    pub(super) fn wakes(&self) {
        self.sleeper.gets_up();
    }

    /// The worker ends and receives nothing more: sends what waits, then says that nothing more will come.
    /// Returns whether all has come from the others, too.
    pub(super) fn ends(&mut self) -> bool {
        let mut sent = true;
        for way in self.ways.iter_mut().flatten() {
            way.send(true);
            // A worker that has left has ended because of an error.
            if way.waits() && !way.ring.is_left() {
                sent = false;
            } else if !way.closed {
                way.closed = true;
                way.ring.close();
            }
        }
        sent && self.arrivals.iter().all(|arrivals| arrivals.ring.is_over())
    }

    /// The worker has ended, perhaps because of an error: it takes nothing more, and nothing more will come
    /// from it.
    pub(super) fn leaves(&mut self) {
        self.arrivals.iter_mut().for_each(|arrivals| arrivals.ring.leave());
        self.ways.iter_mut().flatten().for_each(|way| way.ring.close());
    }

    /// All workers have ended: drops the packets that no other worker has taken, and counts them.
    pub(super) fn drop_untaken(&mut self, generation: &mut Generation) {
        for way in self.ways.iter_mut().flatten() {
            while let Some(mut parcel) = way.ring.take_back().or_else(|| way.open.take()) {
                drop_refused(generation, parcel.memory.bytes(), &mut parcel.batch);
            }
        }
    }
}

/// Drops packets that found no room on their way, and counts them.
#[cold]
fn drop_refused(generation: &mut Generation, memory: &[u8], refused: &mut Batch) {
    refused.verdicts_mut().fill(Verdict::drop(generation.worker_busy));
    host_packets::forget(refused);
    generation.ledger.commit(memory, refused, &Outputs::default());
    generation.recent.keep(memory, refused);
}
