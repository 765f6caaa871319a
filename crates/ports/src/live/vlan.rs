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
//! One port of the interface, at first the first, has the interface's receiving half, and hands it on when it
//! goes. The batches of this half hold packets of all its ports: each gets the number of its port where it
//! lies. Only for a port whose middleware looks at incoming packets they are copied to a queue, from which
//! the port takes them. The ports share the sending half by a lock, for which nobody waits, since all of them
//! belong to one worker.

use super::clock::Now;
use super::divided::{DividedInterface, Queue, Trunk, Way, Ways, locked};
use super::empty::{NO_DESCRIPTOR, Nothing};
use super::held::Frame;
use super::{Attached, Lane, Presence, ReceiveLosses, Receiver, SendLosses, Sender, VlanPlace, WantedPort};
use packet::{Arena, Batch, PortNumber, VirtioHeader};
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of a tag, where it begins, and the type that says that it is one.
const TAG: usize = 4;
const AT: usize = 12;
const TYPE: u16 = 0x8100;
/// The type of the outer of two tags (IEEE 802.1ad). No port has such a tag.
const OUTER: u16 = 0x88a8;

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

impl DividedInterface {
    /// Divides an interface that has been attached.
    fn new(wanted: &WantedPort, attached: Attached) -> DividedInterface {
        let Attached { mode, lanes, presence, .. } = attached;
        let trunk = |Lane { receive, send }| {
            let (ways, lost_before) = (Ways::default(), Default::default());
            Arc::new(Mutex::new(Trunk { send, ways, receive: Some(receive), speaker: 0, lost_before }))
        };
        let trunks = lanes.into_iter().map(trunk).collect();
        DividedInterface { interface: wanted.interface.clone(), mode, trunks, presence }
    }

    /// Makes a port of it. Its frames come from when its lanes join a loop until they leave it.
    ///
    /// # Errors
    /// The file of a trace cannot be made.
    pub(super) fn port(&self, number: PortNumber, wanted: &WantedPort) -> io::Result<Attached> {
        let part = match wanted.vlan {
            VlanPlace::Tag(vlan) => format!(", VLAN {vlan}"),
            VlanPlace::Alone | VlanPlace::Untagged => ", frames without a tag".to_owned(),
        };
        let mode = format!("{}{part}", self.mode);
        let (mut lanes, mut ways) = (Vec::new(), Vec::new());
        for trunk in &self.trunks {
            let queue = wanted.middleware.looks_inwards().then(|| Queue::new(WAITING));
            ways.push(Way { port: number, queue: queue.clone() });
            let receive: Box<dyn Receiver> = match queue {
                None => Box::new(Nothing),
                Some(queue) => Box::new(Queued { queue, port: number, arena: Arena::new() }),
            };
            lanes.push(Lane { receive, send: Box::new(Outlet::new(trunk.clone(), wanted.vlan)) });
        }
        let (presence, divided) = (Presence::of_part(&self.presence, &part), Some(self.clone()));
        let mut port = wanted.middleware.wrap(Attached {
            name: wanted.name(),
            mode,
            lanes,
            presence,
            divided,
            tunnel: None,
        })?;
        for ((lane, trunk), way) in port.lanes.iter_mut().zip(&self.trunks).zip(ways) {
            let own = std::mem::replace(&mut lane.receive, Box::new(Nothing));
            let (trunk, none) = (trunk.clone(), ReceiveLosses::default());
            lane.receive = Box::new(Divided {
                at: wanted.vlan.number(),
                way,
                trunk,
                own,
                inner: None,
                was_full: false,
                open: false,
                losses: none,
            });
        }
        Ok(port)
    }
}

/// Makes ports of an interface that has been attached with the settings of its first port, in their order.
///
/// # Errors
/// The file of a trace cannot be made.
pub(super) fn divide(
    ports: &[(PortNumber, &WantedPort)],
    attached: Attached,
) -> Result<Vec<Attached>, (PortNumber, io::Error)> {
    let Some((_, first)) = ports.first() else { return Ok(Vec::new()) };
    let interface = DividedInterface::new(first, attached);
    ports
        .iter()
        .map(|(number, wanted)| interface.port(*number, wanted).map_err(|error| (*number, error)))
        .collect()
}

/// The receiving half of a port of an interface. One of them has that of the interface, and takes what comes
/// for all of them.
struct Divided {
    /// The number of its VLAN; 0 for frames without a tag.
    at: u16,
    way: Way,
    trunk: Arc<Mutex<Trunk>>,
    inner: Option<Box<dyn Receiver>>,
    /// Whether the latest batch of the interface was full before frames of other VLANs were taken out.
    was_full: bool,
    /// Whether checksums may stay open.
    open: bool,
    /// What the port's own middleware has ready.
    own: Box<dyn Receiver>,
    losses: ReceiveLosses,
}

impl Receiver for Divided {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let Divided { inner, own, trunk, losses, was_full, .. } = self;
        let ready = own.receive(batch, now);
        let Some(inner) = inner.as_mut().filter(|_| batch.is_empty()) else { return ready };
        let memory = inner.receive(batch, now);
        *was_full = batch.is_full();
        let ways = &locked(trunk).ways;
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
                // The middleware of that port looks at bytes.
                let (open, mark) = (batch.virtio(index), batch.time[index]);
                open.complete(&mut frame[later..]);
                let virtio = open.without_checksum();
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
        self.inner.as_ref().map_or(NO_DESCRIPTOR, |inner| inner.descriptor())
    }

    fn due(&self) -> Option<u64> {
        self.own.due().into_iter().chain(self.inner.as_ref().and_then(|inner| inner.due())).min()
    }

    fn has_more(&self) -> bool {
        let inner = self.inner.as_ref();
        self.own.has_more() || inner.is_some_and(|inner| self.was_full || inner.has_more())
    }

    fn leave_checksums_open(&mut self, open: bool) {
        self.open = open;
        if let Some(inner) = &mut self.inner {
            inner.leave_checksums_open(open);
        }
    }

    fn joins(&mut self) {
        let mut trunk = locked(&self.trunk);
        trunk.ways.set(self.at, self.way.clone());
        if let Some(mut inner) = trunk.receive.take() {
            inner.leave_checksums_open(self.open);
            trunk.speaker = self.at;
            self.inner = Some(inner);
        }
    }

    fn leaves(&mut self) {
        let mut trunk = locked(&self.trunk);
        trunk.ways.remove(self.at);
        // The last port goes with the interface, and tells what waited there.
        if trunk.ways.is_empty() {
            return;
        }
        if let Some(mut inner) = self.inner.take() {
            trunk.lost_before = (inner.losses(), trunk.send.losses());
            trunk.receive = Some(inner);
        }
    }

    fn losses(&mut self) -> ReceiveLosses {
        let interface = self.inner.as_mut().map(|inner| inner.losses()).unwrap_or_default();
        let before = if self.inner.is_some() { locked(&self.trunk).lost_before.0 } else { interface };
        let since = interface.each(before, u64::saturating_sub);
        let both = ReceiveLosses { waiting: interface.waiting, ..since }
            .each(self.losses, |interface, own| interface + own);
        both.each(self.own.losses(), |interface, own| interface + own)
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
        ReceiveLosses { waiting: self.queue.held().len() as u64, ..ReceiveLosses::default() }
    }
}

/// The sending half of one port.
struct Outlet {
    trunk: Arc<Mutex<Trunk>>,
    /// The number of its VLAN; 0 for frames without a tag.
    at: u16,
    /// The tag that every frame gets.
    tag: Option<[u8; TAG]>,
    /// Frames with their tags, each up to its end.
    bytes: Vec<u8>,
    frames: Vec<(usize, VirtioHeader)>,
    /// Whether the interface has frames that are not flushed.
    unflushed: bool,
    /// Frames that are too short for a tag, or whose headers lie too far behind for one.
    refused: u64,
}

impl Outlet {
    fn new(trunk: Arc<Mutex<Trunk>>, at: VlanPlace) -> Outlet {
        let tag = match at {
            VlanPlace::Alone | VlanPlace::Untagged => None,
            VlanPlace::Tag(vlan) => {
                let ([a, b], [c, d]) = (TYPE.to_be_bytes(), vlan.to_be_bytes());
                Some([a, b, c, d])
            }
        };
        let at = at.number();
        Outlet { trunk, at, tag, bytes: Vec::new(), frames: Vec::new(), unflushed: false, refused: 0 }
    }

    /// What the ports share, if this one speaks for their interface.
    fn speaks(&self) -> Option<MutexGuard<'_, Trunk>> {
        Some(locked(&self.trunk)).filter(|trunk| trunk.speaker == self.at)
    }

    /// Hands over the frames that got tags.
    fn hand_over(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let mut trunk = locked(&self.trunk);
        let mut start = 0;
        for &(end, virtio) in &self.frames {
            trunk.send.send(&self.bytes[start..end], virtio);
            start = end;
        }
        drop(trunk);
        self.bytes.clear();
        self.frames.clear();
        self.unflushed = true;
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        let Some(tag) = self.tag else {
            self.unflushed = true;
            return locked(&self.trunk).send.send(frame, virtio);
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
        let unflushed = std::mem::take(&mut self.unflushed);
        let mut trunk = locked(&self.trunk);
        if unflushed || trunk.speaker == self.at {
            trunk.send.flush();
        }
    }

    fn due(&self) -> Option<u64> {
        self.speaks()?.send.due()
    }

    fn takes_open_checksums(&self) -> bool {
        locked(&self.trunk).send.takes_open_checksums()
    }

    fn losses(&self) -> SendLosses {
        let interface = self.speaks().map(|trunk| trunk.losses()).unwrap_or_default();
        SendLosses { refused: interface.refused + self.refused, ..interface }
    }
}

#[cfg(test)]
mod tests;
