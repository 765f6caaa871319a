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
//! A frame is copied out of the memory before anybody looks at it, so that what was judged is what leaves. No
//! offload is agreed on: a header that says more than nothing is refused.
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
use super::{Attached, HandedOver, Lane, Presence, ReceiveLosses, Receiver, SendLosses, Sender};
use bell::Bell;
use guest_memory::{GuestMemory, Part};
use limits::LONGEST_FRAME;
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::{Batch, PortNumber, Region, VirtioHeader};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use virtqueue::{RingViolation, Virtqueue};

pub use bell::{BROKEN, RING};
pub use shared::{GuestRegion, RingPlace, Rings, VhostPort};

/// Bytes of the header before a frame.
const HEADER: usize = VirtioHeader::LEN + 2;
/// Bytes for the frames of a batch.
const MEMORY: usize = 1 << 20;
/// How many descriptors are looked at for a batch: chains of many that carry little have no more of the time.
const STEPS_AT_ONCE: u32 = 2048;

/// What the halves of all lanes share.
struct Port {
    name: String,
    bell: Bell,
    /// What the machine sends.
    transmit: Mutex<Option<Virtqueue>>,
    /// What it receives.
    receive: Mutex<Option<Virtqueue>>,
    presence: Arc<Presence>,
}

/// Goes on with another machine, or without one.
#[derive(Clone)]
pub(super) struct VhostRenewal(Arc<Port>);

/// Makes a port of what another process agreed on with a machine's monitor.
///
/// # Errors
/// A descriptor is missing, or the memory cannot be had, as for [`VhostRenewal::renew`].
pub(super) fn adopt(
    handed: &HandedOver,
    number: PortNumber,
    mut descriptors: Vec<OwnedFd>,
) -> io::Result<(Attached, VhostRenewal)> {
    let vhost = handed.vhost.as_ref().ok_or_else(|| wrong("nothing is known of it"))?;
    let files = descriptors.split_off(descriptors.len().min(1));
    let bell = descriptors.pop().ok_or_else(|| wrong("its bell is missing"))?;
    let (transmit, receive) = queues(vhost.rings.as_ref(), &files)?;
    let port = Arc::new(Port {
        name: handed.interface.clone(),
        bell: Bell::of(bell)?,
        transmit: Mutex::new(transmit),
        receive: Mutex::new(receive),
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
    Ok((attached, VhostRenewal(port)))
}

/// Both queues: what the machine sends, and what it receives.
fn queues(rings: Option<&Rings>, files: &[OwnedFd]) -> io::Result<(Option<Virtqueue>, Option<Virtqueue>)> {
    let Some(rings) = rings else { return Ok((None, None)) };
    let memory = Arc::new(GuestMemory::map(&rings.regions, files)?);
    let queue = |place| Virtqueue::new(&memory, place).map(Some).map_err(io::Error::other);
    Ok((queue(rings.transmit)?, queue(rings.receive)?))
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
        let VhostRenewal(port) = self;
        let vhost = handed.vhost.as_ref().ok_or_else(|| wrong("nothing is known of it"))?;
        let files = descriptors.split_off(descriptors.len().min(1));
        let bell = descriptors.pop().ok_or_else(|| wrong("its bell is missing"))?;
        port.let_go();
        port.bell.replace(&bell)?;
        let (transmit, receive) =
            queues(vhost.rings.as_ref(), &files).inspect_err(|_| port.bell.say(BROKEN))?;
        if transmit.is_some() {
            port.presence.back(handed.mode.clone());
            *locked(&port.receive) = receive;
            *locked(&port.transmit) = transmit;
        }
        Ok(())
    }
}

fn locked(queue: &Mutex<Option<Virtqueue>>) -> MutexGuard<'_, Option<Virtqueue>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    /// Uses nothing of the machine's memory any more.
    fn let_go(&self) {
        *locked(&self.transmit) = None;
        *locked(&self.receive) = None;
    }

    /// The driver has done what no driver does.
    fn broken(&self) {
        self.let_go();
        self.bell.say(BROKEN);
    }
}

/// The half by which frames of the machine come in.
struct Incoming {
    port: Arc<Port>,
    number: PortNumber,
    memory: Region,
    /// Whether it is known that there is no machine.
    away: bool,
    has_more: bool,
    losses: ReceiveLosses,
}

impl Incoming {
    fn new(port: Arc<Port>, number: PortNumber) -> Incoming {
        let (memory, losses) = (Region::zeroed(MEMORY), ReceiveLosses::default());
        Incoming { port, number, memory, away: false, has_more: false, losses }
    }

    /// Takes what is there, and tells the driver.
    fn fill(&mut self, queue: &mut Virtqueue, batch: &mut Batch, now: Now) -> Result<(), RingViolation> {
        let memory = self.memory.bytes_mut();
        let (mut start, mut steps) = (frame_with_headroom(None, 0), 0);
        self.has_more = true;
        while !batch.is_full() && steps < STEPS_AT_ONCE && start + LONGEST_FRAME + SLACK <= memory.len() {
            let (mut header, mut copied) = ([0; HEADER], 0);
            let frame = &mut memory[start..start + LONGEST_FRAME];
            let taken = queue.take(false, |part| copied += copy_in(part, copied, &mut header, frame))?;
            let Some(chain) = taken else {
                self.has_more = false;
                break;
            };
            queue.give_back(chain, 0)?;
            steps += chain.steps;
            // What no feature allows would mean something else to whoever reads it next.
            let plain = header[..VirtioHeader::LEN].iter().all(|byte| *byte == 0);
            if chain.bytes > (HEADER + LONGEST_FRAME) as u64 {
                self.losses.too_long += 1;
            } else if !plain || copied <= HEADER {
                self.losses.unreadable += 1;
            } else {
                let length = (copied - HEADER) as u32;
                batch.push(start as u64, length, length, self.number, now.program);
                start = frame_with_headroom(Some(start), start + copied - HEADER);
            }
        }
        if steps > 0 && queue.tell()? {
            self.port.bell.say(RING);
        }
        Ok(())
    }

    /// As [`fill`](Incoming::fill); where nothing is there, the driver is to notify, and is looked at once
    /// more.
    fn fill_or_listen(
        &mut self,
        queue: &mut Virtqueue,
        batch: &mut Batch,
        now: Now,
    ) -> Result<(), RingViolation> {
        self.fill(queue, batch, now)?;
        if batch.is_empty() && !self.has_more {
            self.port.bell.silence();
            queue.listen(true)?;
            self.fill(queue, batch, now)?;
        }
        queue.listen(batch.is_empty() && !self.has_more)
    }
}

/// Copies a part of a chain of which so many bytes came before: to the header, and behind it to the frame.
/// Says how many bytes were copied.
fn copy_in(part: Part<'_>, before: usize, header: &mut [u8; HEADER], frame: &mut [u8]) -> usize {
    let to_header = &mut header[before.min(HEADER)..];
    let first = to_header.len().min(part.len());
    part.read(&mut to_header[..first]);
    let rest = part.skip(first);
    let to_frame = &mut frame[before.saturating_sub(HEADER)..];
    let second = to_frame.len().min(rest.len());
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
        let filled = transmit.as_mut().map(|queue| self.fill_or_listen(queue, batch, now));
        drop(transmit);
        match filled {
            Some(Ok(())) => self.away = false,
            Some(Err(_)) => {
                self.losses.unreadable += 1;
                port.broken();
            }
            None => {
                self.has_more = false;
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

impl Outlet {
    /// Puts a frame into the next chain. Says whether there is one.
    fn put(&mut self, queue: &mut Virtqueue, frame: &[u8]) -> Result<bool, RingViolation> {
        let mut header = [0; HEADER];
        // The number of chains that the frame has (num_buffers).
        header[VirtioHeader::LEN] = 1;
        let mut copied = 0;
        let taken = queue.take(true, |part| copied += copy_out(part, copied, &header, frame))?;
        let Some(chain) = taken else { return Ok(false) };
        let whole = copied == HEADER + frame.len();
        // A chain without a byte carries nothing.
        queue.give_back(chain, if whole { copied as u32 } else { 0 })?;
        self.losses.refused += u64::from(!whole);
        self.untold = true;
        Ok(true)
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], _: VirtioHeader) {
        let port = self.port.clone();
        let mut receive = locked(&port.receive);
        let Some(queue) = receive.as_mut() else {
            self.losses.down += 1;
            return;
        };
        match self.put(queue, frame) {
            Ok(true) => {}
            Ok(false) => self.losses.busy += 1,
            Err(_) => {
                self.losses.down += 1;
                drop(receive);
                port.broken();
            }
        }
    }

    fn flush(&mut self) {
        if !std::mem::take(&mut self.untold) {
            return;
        }
        let told = locked(&self.port.receive).as_mut().map(Virtqueue::tell);
        match told {
            Some(Ok(true)) => self.port.bell.say(RING),
            Some(Err(_)) => self.port.broken(),
            Some(Ok(false)) | None => {}
        }
    }

    fn losses(&self) -> SendLosses {
        self.losses
    }
}

#[cfg(test)]
mod tests;
