//! Several ports at one interface, told apart by the VLAN tags of frames (IEEE 802.1Q).
//!
//! ```text
//! destination 6 | source 6 | 0x8100 | priority 3, drop 1, VLAN 12 | type 2 | …        a frame with a tag
//!
//!                 ┌─► the port without `vlan`: frames without a tag
//! interface ──►───┼─► the port of VLAN 20: frames with its tag, which is taken out
//!                 └─► nobody: frames of other VLANs, counted
//! ```
//!
//! The first port of the interface has the interface's receiving half. The batches of this half hold packets
//! of all its ports: each gets the number of its port where it lies. Only for a port whose middleware looks
//! at incoming packets they are copied to a queue, from which the port takes them. The ports share the
//! sending half by a lock, for which nobody waits, since all of them belong to one worker.

use super::clock::Now;
use super::held::{Frame, Held};
use super::{Attached, Lane, ReceiveLosses, Receiver, SendLosses, Sender, VlanPlace, WantedPort};
use packet::{Arena, Batch, PortNumber, VirtioHeader};
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a tag, where it begins, and the type that says that it is one.
const TAG: usize = 4;
const AT: usize = 12;
const TYPE: u16 = 0x8100;
/// The type of the outer of two tags (IEEE 802.1ad). No port has such a tag.
const OUTER: u16 = 0x88a8;
/// Every number that fits into a tag.
const NUMBERS: usize = 1 << 12;

/// Bytes that may wait for the middleware of a port: a batch of the longest packets.
const WAITING: usize = 32 << 20;
/// Bytes of frames with tags that are handed to the interface together at most.
const TOGETHER: usize = 256 << 10;

/// The tag of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tagged {
    /// None.
    No,
    /// That of a VLAN, or one of another kind that no port has.
    Vlan(u16),
    Other,
}

impl Tagged {
    /// Ports take out tags without the number of a VLAN before.
    fn of(frame: &[u8]) -> Tagged {
        let Some(&[a, b, c, d]) = frame.get(AT..).and_then(|rest| rest.first_chunk()) else {
            return Tagged::No;
        };
        match (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]) & 0x0fff) {
            (TYPE, vlan) if vlan != 0 => Tagged::Vlan(vlan),
            (TYPE | OUTER, _) => Tagged::Other,
            _ => Tagged::No,
        }
    }
}

/// Makes ports of an interface that has been attached with the settings of its first port, in their order.
///
/// # Errors
/// The file of a trace cannot be made.
pub(super) fn divide(
    ports: &[(PortNumber, &WantedPort)],
    interface: Attached,
) -> Result<Vec<Attached>, (PortNumber, io::Error)> {
    let Attached { mode, lanes, presence, .. } = interface;
    presence.stands_behind(", divided by VLANs");
    let mut divided: Vec<Vec<Lane>> = ports.iter().map(|_| Vec::with_capacity(lanes.len())).collect();
    let mut receivers = Vec::with_capacity(lanes.len());
    for Lane { receive, send } in lanes {
        let send = Arc::new(Mutex::new(send));
        let mut ways = Ways::default();
        for (place, ((number, wanted), lanes)) in ports.iter().zip(&mut divided).enumerate() {
            let queue = wanted.middleware.looks_inwards().then(|| Queue::new(WAITING));
            ways.add(wanted.vlan, Way { port: *number, queue: queue.clone() });
            let receive: Box<dyn Receiver> = match queue {
                None => Box::new(Nothing),
                Some(queue) => Box::new(Queued { queue, port: *number, arena: Arena::new() }),
            };
            let send = Box::new(Outlet::new(send.clone(), wanted.vlan, place == 0));
            lanes.push(Lane { receive, send });
        }
        receivers.push((receive, ways));
    }
    let wrapped = ports.iter().zip(divided).map(|((number, wanted), lanes)| {
        let frames = match wanted.vlan {
            VlanPlace::Tag(vlan) => format!("{mode}, VLAN {vlan}"),
            VlanPlace::Alone | VlanPlace::Untagged => format!("{mode}, frames without a tag"),
        };
        let port = Attached { name: wanted.name(), mode: frames, lanes, presence: presence.clone() };
        wanted.middleware.wrap(port).map_err(|error| (*number, error))
    });
    let mut divided: Vec<Attached> = wrapped.collect::<Result<_, _>>()?;
    for (lane, (inner, ways)) in divided.iter_mut().flat_map(|first| &mut first.lanes).zip(receivers) {
        let own = std::mem::replace(&mut lane.receive, Box::new(Nothing));
        lane.receive = Box::new(Divided { inner, own, ways, losses: ReceiveLosses::default() });
    }
    Ok(divided)
}

/// Where the frames of one port go.
#[derive(Clone)]
struct Way {
    port: PortNumber,
    /// The queue before its middleware, if that looks at them.
    queue: Option<Queue>,
}

/// The ports of an interface.
struct Ways {
    /// For every number of a VLAN, and 0 for frames without a tag: one more than the place of its port below,
    /// or 0 where it has none.
    places: Box<[u16; NUMBERS]>,
    ports: Vec<Way>,
}

impl Default for Ways {
    fn default() -> Ways {
        Ways { places: Box::new([0; NUMBERS]), ports: Vec::new() }
    }
}

impl Ways {
    fn add(&mut self, at: VlanPlace, way: Way) {
        let number = match at {
            VlanPlace::Tag(vlan) => usize::from(vlan),
            VlanPlace::Alone | VlanPlace::Untagged => 0,
        };
        self.ports.push(way);
        if let Some(place) = self.places.get_mut(number) {
            *place = self.ports.len() as u16;
        }
    }

    #[inline]
    fn of(&self, vlan: u16) -> Option<&Way> {
        let place = usize::from(*self.places.get(usize::from(vlan))?);
        self.ports.get(place.wrapping_sub(1))
    }
}

/// Frames that wait for the middleware of their port.
#[derive(Clone)]
struct Queue(Arc<Mutex<Held>>);

impl Queue {
    fn new(bytes: usize) -> Queue {
        Queue(Arc::new(Mutex::new(Held::new(bytes))))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving half of the first port of an interface: it takes what comes for all of them.
struct Divided {
    inner: Box<dyn Receiver>,
    /// What the port's own middleware has ready.
    own: Box<dyn Receiver>,
    ways: Ways,
    losses: ReceiveLosses,
}

impl Receiver for Divided {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let Divided { inner, own, ways, losses } = self;
        let ready = own.receive(batch, now);
        if !batch.is_empty() {
            return ready;
        }
        let memory = inner.receive(batch, now);
        let mut kept = 0;
        for index in 0..batch.len {
            let (start, length) = (batch.frame[index] as usize, batch.captured[index] as usize);
            let Some(frame) = memory.get_mut(start..start + length) else {
                losses.unreadable += 1;
                continue;
            };
            let (way, later) = match Tagged::of(frame) {
                Tagged::No => (ways.of(0), 0),
                Tagged::Vlan(vlan) => (ways.of(vlan), TAG),
                Tagged::Other => (None, TAG),
            };
            let Some(way) = way else {
                *(if later == 0 { &mut losses.untagged } else { &mut losses.other_vlan }) += 1;
                continue;
            };
            if later != 0 {
                frame.copy_within(..AT, TAG);
                batch.frame[index] += TAG as u64;
                batch.captured[index] -= TAG as u32;
                batch.wire[index] -= TAG as u32;
            }
            if let Some(queue) = &way.queue {
                let (virtio, mark) = (batch.virtio(index), batch.time[index]);
                let waits = queue.held().push(Frame { bytes: &frame[later..], virtio, mark });
                losses.ring_full += u64::from(!waits);
                continue;
            }
            batch.port[index] = way.port;
            batch.keep(kept, index);
            kept += 1;
        }
        batch.len = kept;
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        self.own.due().into_iter().chain(self.inner.due()).min()
    }

    fn losses(&mut self) -> ReceiveLosses {
        let interface = self.inner.losses().each(self.losses, |inner, own| inner + own);
        interface.each(self.own.losses(), |interface, own| interface + own)
    }
}

/// No receiving half: what comes for the port is in the batches of another.
struct Nothing;

/// What poll(2) passes over.
const NO_DESCRIPTOR: RawFd = -1;

impl Receiver for Nothing {
    fn receive<'a>(&'a mut self, batch: &mut Batch, _: Now) -> &'a mut [u8] {
        batch.clear();
        &mut []
    }

    fn descriptor(&self) -> RawFd {
        NO_DESCRIPTOR
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// Takes frames of a port from its queue.
struct Queued {
    queue: Queue,
    port: PortNumber,
    arena: Arena,
}

impl Receiver for Queued {
    fn receive<'a>(&'a mut self, batch: &mut Batch, _: Now) -> &'a mut [u8] {
        batch.clear();
        self.arena.clear();
        let mut held = self.queue.held();
        while let Some(Frame { bytes, virtio, mark }) = held.first() {
            if !self.arena.push(batch, bytes, bytes.len() as u32, mark) {
                break;
            }
            batch.port[batch.len - 1] = self.port;
            batch.leave_unfinished(virtio);
            held.pop();
        }
        self.arena.memory_mut()
    }

    fn descriptor(&self) -> RawFd {
        NO_DESCRIPTOR
    }

    fn due(&self) -> Option<u64> {
        (!self.queue.held().is_empty()).then_some(0)
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// The sending half of one port.
struct Outlet {
    interface: Arc<Mutex<Box<dyn Sender>>>,
    /// The tag that every frame gets.
    tag: Option<[u8; TAG]>,
    /// The first port of the interface tells what is lost there, and when it wants to be flushed.
    first: bool,
    /// Frames with their tags, each up to its end.
    bytes: Vec<u8>,
    frames: Vec<(usize, VirtioHeader)>,
    /// Whether the interface has frames that are not flushed.
    unflushed: bool,
    /// Frames that are too short for a tag, or whose headers lie too far behind for one.
    refused: u64,
}

impl Outlet {
    fn new(interface: Arc<Mutex<Box<dyn Sender>>>, at: VlanPlace, first: bool) -> Outlet {
        let tag = match at {
            VlanPlace::Alone | VlanPlace::Untagged => None,
            VlanPlace::Tag(vlan) => {
                let ([a, b], [c, d]) = (TYPE.to_be_bytes(), vlan.to_be_bytes());
                Some([a, b, c, d])
            }
        };
        Outlet { interface, tag, first, bytes: Vec::new(), frames: Vec::new(), unflushed: false, refused: 0 }
    }

    fn interface(&self) -> MutexGuard<'_, Box<dyn Sender>> {
        self.interface.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the frames that got tags.
    fn hand_over(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let mut interface = self.interface.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = 0;
        for &(end, virtio) in &self.frames {
            interface.send(&self.bytes[start..end], virtio);
            start = end;
        }
        self.bytes.clear();
        self.frames.clear();
        self.unflushed = true;
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        let Some(tag) = self.tag else {
            self.unflushed = true;
            return self.interface().send(frame, virtio);
        };
        let (Some((stations, rest)), Some(virtio)) = (frame.split_at_checked(AT), virtio.moved(TAG as i32))
        else {
            self.refused += 1;
            return;
        };
        self.bytes.extend_from_slice(stations);
        self.bytes.extend_from_slice(&tag);
        self.bytes.extend_from_slice(rest);
        self.frames.push((self.bytes.len(), virtio));
        if self.bytes.len() > TOGETHER {
            self.hand_over();
        }
    }

    fn flush(&mut self) {
        self.hand_over();
        if std::mem::take(&mut self.unflushed) || self.first {
            self.interface().flush();
        }
    }

    fn due(&self) -> Option<u64> {
        if self.first { self.interface().due() } else { None }
    }

    fn losses(&self) -> SendLosses {
        let interface = if self.first { self.interface().losses() } else { SendLosses::default() };
        SendLosses { refused: interface.refused + self.refused, ..interface }
    }
}

#[cfg(test)]
mod tests;
