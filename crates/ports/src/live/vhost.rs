//! Ports of the kind vhost-user: the network card of a virtual machine, whose rings and frames lie in memory
//! that the machine's monitor shares.
//!
//! ```text
//! guest ─ its driver ─ rings ─ this port         frames, without a call of Linux
//! monitor ─ vhost-user ─ ravelin-vhost ─ launch  which memory there is, and where the rings lie
//!           events ───── ravelin-vhost ─ bell ─ this port
//! each frame: | virtio-net header, 12 bytes | the frame … |  (Virtual I/O Device 1.2, 5.1.6)
//! ```
//!
//! A frame is copied out of the memory before anybody looks at it, so that what was judged is what leaves.
//! What the machine sends may be unfinished where that was agreed on: long segments of TCP, and packets with
//! open checksums. A header that says anything else is refused. What it receives is finished.
//!
//! A bell is one end of a pair of sockets, at which neither side ever waits for the other one.

mod bell;
mod guest_memory;
pub mod limits;
pub(super) mod shared;
#[cfg(feature = "open")]
pub mod shared_files;
mod virtqueue;

use super::clock::Now;
use super::empty::Nothing;
use super::handed_over::another_kind;
use super::{
    Attached, HandedOver, Lane, Offloads, PortWay, Presence, ReceiveLosses, Receiver, SendLosses, Sender,
};
use bell::Bell;
use guest_memory::{GuestMemory, Part};
use limits::{BYTES_AT_ONCE, LONGEST_FRAME, STEPS_AT_ONCE};
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::{Batch, PortNumber, Region, VirtioHeader};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use virtqueue::{RingViolation, SharedPart, Virtqueue};

pub use bell::{BROKEN, NOTIFY};
pub use shared::{GuestRegion, RingPlace, Rings, VhostPort};

/// Bytes of the header before a frame.
const HEADER: usize = VirtioHeader::LEN + 2;
/// Bytes for the frames of a batch.
const MEMORY: usize = 1 << 20;

/// What the halves of all lanes share.
struct Port {
    name: String,
    bell: Bell,
    /// What the machine sends.
    transmit: Mutex<Option<Served>>,
    /// What it receives.
    receive: Mutex<Option<Served>>,
    /// The memory of both. It stays mapped until the port is handed over anew: to let go of much memory takes
    /// a while, which packets need not wait for.
    memory: Mutex<Option<Arc<GuestMemory>>>,
    presence: Arc<Presence>,
}

/// A ring of the machine of now.
struct Served {
    queue: Virtqueue,
    /// Which of the port's machines it is.
    machine: u64,
    /// Whether its frames may be unfinished.
    unfinished: bool,
}

/// Goes on with another machine, or without one.
pub(super) struct VhostRenewal {
    port: Arc<Port>,
    /// How many machines there were.
    machines: AtomicU64,
}

/// Makes a port of what another process agreed on with a machine's monitor.
///
/// # Errors
/// A descriptor is missing, or Linux gives no further one.
pub(super) fn adopt(
    vhost: &VhostPort,
    handed: &HandedOver,
    number: PortNumber,
    mut descriptors: Vec<OwnedFd>,
) -> io::Result<(Attached, VhostRenewal)> {
    let files = descriptors.split_off(descriptors.len().min(1));
    let bell = descriptors.pop().ok_or_else(|| wrong("its bell is missing"))?;
    let bell = Bell::of(bell)?;
    // What a machine shares that cannot be served is its own harm: the other ports begin.
    let served = vhost
        .rings
        .as_ref()
        .map(|rings| Machine::of(rings, handed.offloads, &files, 0).inspect_err(|_| bell.say(BROKEN)));
    let Machine { transmit, receive, memory } = served.and_then(Result::ok).unwrap_or_default();
    let port = Arc::new(Port {
        name: handed.interface.clone(),
        bell,
        transmit: Mutex::new(transmit),
        receive: Mutex::new(receive),
        memory: Mutex::new(memory),
        presence: Arc::default(),
    });
    let lane = |at| {
        let receive: Box<dyn Receiver> = match at {
            0 => Box::new(Incoming::new(port.clone(), number)),
            _ => Box::new(Nothing),
        };
        let send = Outlet { port: port.clone(), untold: false, losses: SendLosses::default() };
        Lane { receive, send: Box::new(send) }
    };
    let lanes = (0..vhost.lanes).map(lane).collect();
    let attached = Attached::alone(port.name.clone(), handed.mode.clone(), lanes, port.presence.clone());
    Ok((attached, VhostRenewal { port, machines: AtomicU64::new(0) }))
}

/// What a machine shares, as it is served.
#[derive(Default)]
struct Machine {
    transmit: Option<Served>,
    receive: Option<Served>,
    memory: Option<Arc<GuestMemory>>,
}

impl Machine {
    /// The port's machine of this number. What it sends may be unfinished only where the port cuts segments.
    ///
    /// # Errors
    /// The memory cannot be had, or a ring does not lie in it.
    fn of(rings: &Rings, offloads: Offloads, files: &[OwnedFd], machine: u64) -> io::Result<Machine> {
        let memory = Arc::new(GuestMemory::map(&rings.regions, files)?);
        let served = |place| {
            let queue = Virtqueue::new(&memory, place).map_err(io::Error::other)?;
            let unfinished = rings.unfinished && offloads == Offloads::Cut;
            Ok::<_, io::Error>(Some(Served { queue, machine, unfinished }))
        };
        let (transmit, receive) = (served(rings.transmit)?, served(rings.receive)?);
        Ok(Machine { transmit, receive, memory: Some(memory) })
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl VhostRenewal {
    /// Goes on with these descriptors. When it returns, nothing of the memory before is used any more.
    ///
    /// # Errors
    /// A descriptor is missing; the memory or a ring is not as it must be. There is no machine then.
    pub(super) fn renew(&self, handed: &HandedOver, mut descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let PortWay::Vhost(vhost) = &handed.way else { return Err(another_kind()) };
        let VhostRenewal { port, machines } = self;
        let files = descriptors.split_off(descriptors.len().min(1));
        let bell = descriptors.pop().ok_or_else(|| wrong("its bell is missing"))?;
        // Nothing waits for this thread while the memory goes.
        let before =
            (locked(&port.transmit).take(), locked(&port.receive).take(), locked(&port.memory).take());
        drop(before);
        port.bell.replace(&bell)?;
        let Some(rings) = &vhost.rings else { return Ok(()) };
        let number = machines.fetch_add(1, Ordering::Relaxed) + 1;
        let machine =
            Machine::of(rings, handed.offloads, &files, number).inspect_err(|_| port.bell.say(BROKEN))?;
        *locked(&port.memory) = machine.memory;
        *locked(&port.receive) = machine.receive;
        let mut transmit = locked(&port.transmit);
        port.presence.back(handed.mode.clone());
        *transmit = machine.transmit;
        drop(transmit);
        // Whatever the device before it has not said of chains that came back.
        port.bell.say(NOTIFY);
        Ok(())
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    /// The driver of this machine has done what no driver does: nothing of its rings is used any more.
    fn broken(&self, machine: u64) {
        let is_its_own = |served: &mut Served| served.machine == machine;
        let transmit = locked(&self.transmit).take_if(is_its_own);
        let receive = locked(&self.receive).take_if(is_its_own);
        if transmit.is_some() || receive.is_some() {
            self.bell.say(BROKEN);
        }
    }
}

/// The half by which frames of the machine come in.
struct Incoming {
    port: Arc<Port>,
    number: PortNumber,
    memory: Region,
    /// Whether it is known that there is no machine.
    away: bool,
    /// Whether the driver was told to notify.
    listens: bool,
    has_more: bool,
    losses: ReceiveLosses,
}

impl Incoming {
    fn new(port: Arc<Port>, number: PortNumber) -> Incoming {
        let (memory, losses) = (Region::zeroed(MEMORY), ReceiveLosses::default());
        Incoming { port, number, memory, away: false, listens: true, has_more: false, losses }
    }

    /// Takes what is there, and tells the driver.
    fn fill(&mut self, served: &mut Served, batch: &mut Batch, now: Now) -> Result<(), RingViolation> {
        let Served { queue, unfinished, .. } = served;
        let memory = self.memory.bytes_mut();
        let (mut start, mut steps, mut bytes) = (frame_with_headroom(None, 0), 0, 0);
        self.has_more = true;
        while !batch.is_full()
            && steps < STEPS_AT_ONCE
            && bytes < BYTES_AT_ONCE
            && start + LONGEST_FRAME + SLACK <= memory.len()
        {
            let (mut header, mut copied) = ([0; HEADER], 0);
            let frame = &mut memory[start..start + LONGEST_FRAME];
            let is_worth = |header: &_| left_to_do(header, LONGEST_FRAME, *unfinished).is_some();
            let taken =
                queue.take(false, |part| copied += copy_in(part, copied, &mut header, frame, is_worth))?;
            let Some(chain) = taken else {
                self.has_more = false;
                break;
            };
            queue.give_back(chain, 0)?;
            (steps, bytes) = (steps + chain.steps, bytes + copied);
            if chain.bytes > (HEADER + LONGEST_FRAME) as u64 {
                self.losses.too_long += 1;
                continue;
            }
            let length = copied.saturating_sub(HEADER);
            let left = left_to_do(&header, length, *unfinished).filter(|_| length > 0);
            let finished = left.filter(|left| left.complete(&mut memory[start..start + length]));
            let Some(virtio) = finished else {
                self.losses.unreadable += 1;
                continue;
            };
            batch.push(start as u64, length as u32, length as u32, self.number, now.program);
            batch.leave_unfinished(virtio.without_checksum());
            start = frame_with_headroom(Some(start), start + length);
        }
        if steps > 0 && queue.tell()? {
            self.port.bell.say(NOTIFY);
        }
        Ok(())
    }

    /// As [`fill`](Incoming::fill); where nothing is there, the driver is to notify, and is looked at once
    /// more.
    fn fill_or_listen(
        &mut self,
        served: &mut Served,
        batch: &mut Batch,
        now: Now,
    ) -> Result<(), RingViolation> {
        self.fill(served, batch, now)?;
        if batch.is_empty() && !self.has_more {
            self.port.bell.silence();
            served.queue.listen(true)?;
            self.fill(served, batch, now)?;
        }
        self.listens = batch.is_empty() && !self.has_more;
        served.queue.listen(self.listens)
    }
}

/// What is left to do with a frame of this length, as its header says. Where no feature allows it, nothing
/// may be; a header that is not understood exactly would mean something else to whoever reads it next.
fn left_to_do(header: &[u8; HEADER], length: usize, unfinished: bool) -> Option<VirtioHeader> {
    if is_plain(header) {
        return Some(VirtioHeader::NONE);
    }
    let (first, _) = header.split_first_chunk().filter(|_| unfinished)?;
    VirtioHeader::judged(first, length, false)
}

/// Whether a header says that nothing is left to do.
fn is_plain(header: &[u8; HEADER]) -> bool {
    header[..VirtioHeader::LEN].iter().all(|byte| *byte == 0)
}

/// Copies a part of a chain of which so many bytes came before: to the header, and behind it to the frame, if
/// that is worth it behind such a header. Says how many bytes were copied.
fn copy_in(
    part: Part<'_>,
    before: usize,
    header: &mut [u8; HEADER],
    frame: &mut [u8],
    is_worth: impl Fn(&[u8; HEADER]) -> bool,
) -> usize {
    let to_header = &mut header[before.min(HEADER)..];
    let first = to_header.len().min(part.len());
    part.read(&mut to_header[..first]);
    let rest = part.skip(first);
    let to_frame = &mut frame[before.saturating_sub(HEADER)..];
    // A frame that is lost for its header need not be copied.
    let second = if is_worth(header) { to_frame.len().min(rest.len()) } else { 0 };
    rest.read(&mut to_frame[..second]);
    first + second
}

/// The same the other way.
fn copy_out(part: Part<'_>, before: usize, header: &[u8; HEADER], frame: &[u8]) -> usize {
    let from_header = &header[before.min(HEADER)..];
    let first = from_header.len().min(part.len());
    part.write(&from_header[..first]);
    let from_frame = &frame[before.saturating_sub(HEADER).min(frame.len())..];
    let second = from_frame.len().min(part.len() - first);
    part.skip(first).write(&from_frame[..second]);
    first + second
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        batch.headroom = HEADROOM as u32;
        let port = self.port.clone();
        let mut transmit = locked(&port.transmit);
        match transmit.as_mut() {
            Some(served) => {
                let machine = served.machine;
                self.away = false;
                if self.fill_or_listen(served, batch, now).is_err() {
                    drop(transmit);
                    self.losses.unreadable += 1;
                    self.listens = true;
                    port.broken(machine);
                }
            }
            None => {
                (self.has_more, self.listens) = (false, true);
                port.bell.silence();
                if !std::mem::replace(&mut self.away, true) {
                    port.presence.gone(now.program);
                }
            }
        }
        self.memory.bytes_mut()
    }

    fn descriptor(&self) -> RawFd {
        self.port.bell.descriptor()
    }

    /// At once while the driver was told to be quiet, also where whoever looks at frames next has left none.
    fn due(&self) -> Option<u64> {
        (!self.listens).then_some(0)
    }

    fn has_more(&self) -> bool {
        self.has_more
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.losses
    }
}

/// The half by which frames leave to the machine.
struct Outlet {
    port: Arc<Port>,
    /// Whether frames are there that the driver was not told of.
    untold: bool,
    losses: SendLosses,
}

/// What became of a frame.
enum Put {
    /// It is in a chain.
    Whole,
    /// The chain has less room; it came back without a byte.
    TooLong,
    /// There is no chain.
    NoRoom,
}

/// Puts a frame into the next chain.
fn put(queue: &mut Virtqueue, frame: &[u8]) -> Result<Put, RingViolation> {
    let mut header = [0; HEADER];
    // The number of chains that the frame has (num_buffers).
    header[VirtioHeader::LEN] = 1;
    let mut copied = 0;
    let taken = queue.take(true, |part| copied += copy_out(part, copied, &header, frame))?;
    let Some(chain) = taken else { return Ok(Put::NoRoom) };
    // Nobody waits for room.
    queue.listen(false)?;
    let whole = copied == HEADER + frame.len();
    queue.give_back(chain, if whole { copied as u32 } else { 0 })?;
    Ok(if whole { Put::Whole } else { Put::TooLong })
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], _: VirtioHeader) {
        let Outlet { port, untold, losses } = self;
        let mut receive = locked(&port.receive);
        let Some(Served { queue, machine, .. }) = receive.as_mut() else {
            losses.down += 1;
            return;
        };
        match put(queue, frame) {
            Ok(Put::Whole) => *untold = true,
            Ok(Put::TooLong) => {
                *untold = true;
                losses.refused += 1;
            }
            Ok(Put::NoRoom) => losses.busy += 1,
            Err(_) => {
                let machine = *machine;
                losses.down += 1;
                drop(receive);
                port.broken(machine);
            }
        }
    }

    fn flush(&mut self) {
        if !std::mem::take(&mut self.untold) {
            return;
        }
        let told = locked(&self.port.receive).as_mut().map(|served| (served.queue.tell(), served.machine));
        match told {
            Some((Ok(true), _)) => self.port.bell.say(NOTIFY),
            Some((Err(_), machine)) => self.port.broken(machine),
            Some((Ok(false), _)) | None => {}
        }
    }

    fn losses(&self) -> SendLosses {
        self.losses
    }
}

#[cfg(test)]
mod tests;
