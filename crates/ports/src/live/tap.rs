//! Ports of the kind TAP: an interface of this machine whose other end is the port, so that the machine
//! itself is one of the hosts behind the gateway.
//!
//! ```text
//! read and written at once: | virtio-net header, 10 bytes | the packet … |
//! ```
//!
//! (Linux, Documentation/networking/tuntap.rst.) The device is made when the port is attached, unless it is
//! there, and goes with the process. With several lanes it has as many queues, and the kernel shares packets
//! out by the hash of addresses and ports that AF_PACKET ports are shared out by, too.

mod calls;
#[cfg(feature = "attach")]
mod host;
#[cfg(feature = "open")]
mod opening;
#[cfg(feature = "open")]
mod opening_calls;
#[cfg(feature = "open")]
mod vnic;
mod vnic_wishes;

#[cfg(feature = "attach")]
pub use host::{HostInterface, HostMemory};
#[cfg(feature = "attach")]
pub(super) use opening::attach;
#[cfg(feature = "open")]
pub(super) use opening::{is_there, open_queues};
#[cfg(feature = "open")]
pub use vnic::guest_end;
#[cfg(feature = "open")]
pub(super) use vnic::{make_for_guest, open as open_vnic};
pub use vnic_wishes::{GuestLink, VnicWishes, station};

use super::clock::Now;
use super::{
    Attached, HandedOver, Lane, PortWay, Presence, ReceiveLosses, Receiver, SendLosses, Sender, sys, untagged,
};
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::segment::Segments;
use packet::{BATCH, Batch, PortNumber, Region, VirtioHeader};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The longest packet that is handed over uncut, with its headers.
const LONGEST: usize = (64 << 10) + 64;
/// Bytes for the packets of a batch: a full one of usual packets, or some long ones.
const MEMORY: usize = 1 << 20;
/// How long after a failed attempt a device that is gone is made again, in nanoseconds.
#[cfg(feature = "attach")]
const AGAIN: u64 = 200_000_000;

/// Why a TAP device cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// the right is missing
    #[error(
        "no right to make TAP device {0}: it needs CAP_NET_ADMIN (or root), or a device that was made for this user, as by `ip tuntap add {0} mode tap multi_queue user NAME`"
    )]
    Rights(String),
    /// the kernel has none
    #[error(
        "TAP device {0} cannot be made: there is no /dev/net/tun here, so this kernel (or container) has no TAP devices; `kind = \"af_packet\"` on one end of a pair of virtual interfaces (`ip link add {0} type veth peer name {0}-gw`) works instead"
    )]
    Missing(String),
    /// something else has this name, or somebody else has this device
    #[error(
        "{0} is in use: another process has that TAP device open, or interface {0} is no TAP device (`ip -d link show {0}` tells)"
    )]
    Taken(String),
    /// an interface has this name
    #[error(
        "there is an interface {0} already (`ip link show {0}`): remove it, or name another by `host_interface`"
    )]
    NameTaken(String),
    /// as many queues cannot be had
    #[error(
        "TAP device {0} was made without `multi_queue`, so that one worker alone can serve it: make it with `ip tuntap add {0} mode tap multi_queue`, or let the gateway make it"
    )]
    OneQueue(String),
}

/// What both halves of all lanes share.
struct Device {
    name: String,
    #[cfg_attr(not(feature = "open"), expect(dead_code, reason = "who opens queues needs it"))]
    lanes: usize,
    offloads: bool,
    /// Whether this process may open the device, and read what it has counted; otherwise another one does.
    owned: bool,
    /// Whether headers are judged, here and at the other end: a process writes them that may have been taken
    /// over.
    judges: bool,
    /// Whether tags that name no VLAN are left to whoever looks at frames next.
    keeps_tags: bool,
    presence: Arc<Presence>,
    /// How often it was deleted, as far as is known.
    deleted: AtomicU64,
    /// After how many deletions its return was told of last.
    #[cfg(feature = "attach")]
    told: AtomicU64,
    /// How many lanes are without a queue, as far as they know.
    away: AtomicUsize,
    /// How often another process has opened queues anew.
    renewed: AtomicU64,
}

/// A lane's place at the device. A device that is deleted is missed by each lane at another time, and counted
/// by the first.
#[derive(Default)]
struct Place {
    /// How often the device had been deleted when the lane got its queue.
    deleted: u64,
    /// The queue is gone.
    away: bool,
    /// How often queues had been opened anew when it was missed.
    renewed: u64,
    /// When it is asked for anew at the earliest.
    #[cfg(feature = "attach")]
    again: u64,
}

/// A port whose queues another process opened, each with a number that it keeps.
pub(super) struct Adopted {
    device: Arc<Device>,
    queues: Vec<Arc<OwnedFd>>,
}

impl Adopted {
    /// Goes on with other queues.
    ///
    /// # Errors
    /// They are not as many as those before; then nothing has changed.
    pub(super) fn renew(&self, handed: &HandedOver, queues: &[OwnedFd]) -> io::Result<()> {
        if queues.len() != self.queues.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not as many queues as before"));
        }
        self.queues.iter().zip(queues).try_for_each(|(queue, new)| sys::replace(queue, new))?;
        self.device.away.store(0, Ordering::Release);
        self.device.renewed.fetch_add(1, Ordering::AcqRel);
        self.device.presence.back(handed.mode.clone());
        Ok(())
    }
}

/// Makes a port of the queues of a device that another process opened.
pub(super) fn adopt(handed: &HandedOver, port: PortNumber, queues: Vec<OwnedFd>) -> (Attached, Adopted) {
    let mut device = Device::of(&handed.interface, queues.len() as u16, handed.offloads, false);
    device.keeps_tags = handed.keeps_tags;
    device.judges = handed.way == PortWay::Process;
    let (device, queues) = (Arc::new(device), queues.into_iter().map(Arc::new).collect::<Vec<_>>());
    let attached = attached(device.clone(), handed.mode.clone(), port, queues.clone());
    (attached, Adopted { device, queues })
}

/// A port over these queues.
fn attached(device: Arc<Device>, mode: String, port: PortNumber, queues: Vec<Arc<OwnedFd>>) -> Attached {
    let base = device.not_sent().unwrap_or(0);
    let lanes = queues.into_iter().enumerate().map(|(number, queue)| {
        let (losses, memory) = (ReceiveLosses::default(), Region::zeroed(MEMORY));
        let (queue_in, device_in) = (queue.clone(), device.clone());
        let (place, unsent) = (Place::default(), Unsent { base, ..Unsent::default() });
        let incoming = Incoming {
            queue: queue_in,
            device: device_in,
            place,
            port,
            number,
            open: false,
            memory,
            losses,
            unsent,
        };
        let (open, judged) = (device.offloads, device.judges);
        let outlet = Outlet { queue, open, judged, piece: Vec::new(), losses: SendLosses::default() };
        Lane { receive: Box::new(incoming), send: Box::new(outlet) }
    });
    Attached::alone(device.name.clone(), mode, lanes.collect(), device.presence.clone())
}

impl Device {
    fn of(name: &str, lanes: u16, offloads: super::Offloads, owned: bool) -> Device {
        Device {
            name: name.to_owned(),
            lanes: usize::from(lanes),
            offloads: offloads != super::Offloads::Off,
            owned,
            judges: false,
            keeps_tags: false,
            presence: Arc::default(),
            deleted: AtomicU64::new(0),
            #[cfg(feature = "attach")]
            told: AtomicU64::new(0),
            away: AtomicUsize::new(0),
            renewed: AtomicU64::new(0),
        }
    }

    /// How many packets the machine could not send by it, if it is there.
    fn not_sent(&self) -> Option<u64> {
        if !self.owned {
            return None;
        }
        not_sent(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, &self.name)
    }

    /// A lane has missed its queue: makes a device again that somebody has deleted, unless another lane has,
    /// under the number of the queue. Says whether the lane has one again.
    fn renew(&self, queue: &OwnedFd, place: &mut Place, now: u64) -> bool {
        self.missed(place, now);
        #[cfg(feature = "attach")]
        if self.owned && now >= place.again {
            return self.open_again(queue, place, now);
        }
        #[cfg(not(feature = "attach"))]
        let _ = queue;
        false
    }

    /// Counts a deletion that no other lane has counted, and a lane that is away.
    fn missed(&self, place: &mut Place, now: u64) {
        // Another process may have opened queues since it was missed last.
        let renewed = self.renewed.load(Ordering::Acquire);
        if std::mem::replace(&mut place.renewed, renewed) != renewed {
            (place.away, place.deleted) = (false, self.deleted.load(Ordering::Acquire));
        }
        if !std::mem::replace(&mut place.away, true) {
            self.away.fetch_add(1, Ordering::AcqRel);
            let (before, once_more) = (place.deleted, place.deleted + 1);
            match self.deleted.compare_exchange(before, once_more, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => self.presence.gone(now),
                Err(_) => self.presence.away(now),
            }
        }
    }
}

/// The half by which packets come in.
struct Incoming {
    queue: Arc<OwnedFd>,
    device: Arc<Device>,
    place: Place,
    port: PortNumber,
    /// Of the lane.
    number: usize,
    /// Whether checksums may stay open.
    open: bool,
    memory: Region,
    losses: ReceiveLosses,
    unsent: Unsent,
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        batch.headroom = HEADROOM as u32;
        let memory = self.memory.bytes_mut();
        let (mut start, mut unreadable) = (frame_with_headroom(None, 0), 0);
        // Who writes what nobody can read does not keep this half from its end.
        while !batch.is_full() && unreadable < BATCH && start + LONGEST + SLACK <= memory.len() {
            let mut header = [0; VirtioHeader::LEN];
            let packet = match calls::read(&self.queue, &mut header, &mut memory[start..start + LONGEST]) {
                Ok(length) => &mut memory[start..start + length],
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    unreadable += 1;
                    continue;
                }
                Err(error) => {
                    // The device was deleted.
                    if error.raw_os_error() == Some(libc::EBADFD)
                        && self.device.renew(&self.queue, &mut self.place, now.program)
                        && self.number == 0
                    {
                        self.unsent.renew(self.device.not_sent().unwrap_or(0));
                    }
                    break;
                }
            };
            let Some(mut virtio) = left_to_do(&header, packet.len(), self.device.judges) else {
                unreadable += 1;
                continue;
            };
            if !self.open {
                virtio.complete(packet);
                virtio = virtio.without_checksum();
            }
            let end = start + packet.len();
            let later = if self.device.keeps_tags { 0 } else { untagged::take_out(packet) };
            let length = packet.len() - later;
            batch.push((start + later) as u64, length as u32, length as u32, self.port, now.program);
            let virtio =
                if later > 0 { virtio.moved(-(later as i32)).unwrap_or(VirtioHeader::NONE) } else { virtio };
            batch.leave_unfinished(virtio);
            start = frame_with_headroom(Some(start), end);
        }
        self.losses.unreadable += unreadable as u64;
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.queue.as_raw_fd()
    }

    fn leave_checksums_open(&mut self, open: bool) {
        self.open = open && self.device.offloads;
    }

    /// What found no room is counted for the device as a whole, and told by its first lane.
    fn losses(&mut self) -> ReceiveLosses {
        if self.number == 0
            && let Some(figure) = self.device.not_sent()
        {
            self.losses.ring_full = self.unsent.of(figure);
        }
        self.losses
    }
}

/// What a header leaves to do with a packet of this length; `None` if it is to be judged and means nothing,
/// or more work than it may.
fn left_to_do(header: &[u8; VirtioHeader::LEN], length: usize, judges: bool) -> Option<VirtioHeader> {
    match judges && header.iter().any(|byte| *byte != 0) {
        true => VirtioHeader::judged(header, length, true),
        false => Some(VirtioHeader::read(header)),
    }
}

/// What found no room at the devices that the port has had, each of which counts by itself.
#[derive(Default)]
struct Unsent {
    /// What the device of now had counted before it was the port's.
    base: u64,
    /// Of those before it.
    carried: u64,
    all: u64,
}

impl Unsent {
    /// Of all together, where the device of now says so many. Where another lane has a queue of the next one
    /// already, that may say less.
    fn of(&mut self, figure: u64) -> u64 {
        self.all = self.all.max(self.carried + figure.saturating_sub(self.base));
        self.all
    }

    /// There is another device, which says so many.
    fn renew(&mut self, base: u64) {
        (self.base, self.carried) = (base, self.all);
    }
}

/// How many packets the machine could not send by an interface, since it is there (proc_pid_net(5), `dev`).
fn not_sent(text: &str, interface: &str) -> Option<u64> {
    let figures =
        text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    figures.split_ascii_whitespace().nth(11)?.parse().ok()
}

/// The half by which they leave.
struct Outlet {
    queue: Arc<OwnedFd>,
    /// Whether packets may leave with an open checksum.
    open: bool,
    /// Whether headers are judged at the other end.
    judged: bool,
    /// Room for a packet of a segment that is cut.
    piece: Vec<u8>,
    losses: SendLosses,
}

impl Outlet {
    fn write(&mut self, frame: &[u8], virtio: VirtioHeader) {
        if let Err(error) = calls::write(&self.queue, &virtio.write(), frame) {
            match error.raw_os_error() {
                Some(libc::EIO | libc::EBADFD) => self.losses.down += 1,
                Some(libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS) => self.losses.busy += 1,
                _ => self.losses.refused += 1,
            }
        }
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        // A network card may hand over a segment whose checksum is right, which no judge takes.
        if !self.judged || !virtio.segments() || virtio.is_open() {
            return self.write(frame, virtio);
        }
        let Some(segments) = Segments::of(frame, &virtio) else {
            self.losses.refused += 1;
            return;
        };
        let mut piece = std::mem::take(&mut self.piece);
        for number in 0..segments.count() {
            piece.resize(segments.length(number), 0);
            segments.write(frame, number, &mut piece);
            self.write(&piece, VirtioHeader::NONE);
        }
        self.piece = piece;
    }

    fn flush(&mut self) {}

    fn takes_open_checksums(&self) -> bool {
        self.open
    }

    fn takes_segments(&self) -> bool {
        self.open
    }

    fn losses(&self) -> SendLosses {
        self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Offloads;

    #[test]
    fn a_deletion_is_counted_once_whichever_lanes_miss_it_and_when() {
        let device = Device::of("tap0", 3, Offloads::Off, true);
        let mut places = [Place::default(), Place::default(), Place::default()];
        let find = |place: &mut Place| device.found(place, device.deleted.load(Ordering::Acquire), None);
        let presence = &device.presence;
        let (hears, heard) = std::sync::mpsc::channel();
        presence.tell(move |mode| hears.send(mode.to_owned()).expect("heard")).expect("a thread");
        for place in &mut places {
            device.missed(place, 5);
            device.missed(place, 6);
        }
        assert_eq!((presence.vanished(), presence.gone_since()), (1, Some(5)));
        for (number, place) in (1..).zip(&mut places) {
            find(place);
            assert_eq!(presence.gone_since().is_none(), number == 3, "back once all lanes are");
        }
        // The first lane misses the next one and has a queue again before the others look, and then one more;
        // the last one sees but one.
        let [first, second, last] = &mut places;
        device.missed(first, 7);
        find(first);
        device.missed(second, 8);
        find(second);
        device.missed(first, 9);
        device.missed(last, 10);
        device.missed(second, 11);
        assert_eq!((presence.vanished(), presence.gone_since()), (3, Some(9)));
        [first, second, last].into_iter().for_each(find);
        assert_eq!((presence.vanished(), presence.gone_since()), (3, None));
        assert_eq!(presence.mode().as_deref(), Some("tap, 3 queues, offloads not used"));
        drop(device);
        assert_eq!(heard.iter().count(), 3, "of each return once");
    }

    #[test]
    fn what_found_no_room_adds_up_over_devices() {
        let mut unsent = Unsent { base: 1000, ..Unsent::default() };
        assert_eq!((unsent.of(1000), unsent.of(1007)), (0, 7), "it was made beforehand");
        assert_eq!(unsent.of(2), 7, "the next one, of which another lane has a queue");
        unsent.renew(0);
        assert_eq!((unsent.of(0), unsent.of(2), unsent.of(2000)), (7, 9, 2007));
        unsent.renew(2000);
        assert_eq!(unsent.of(2001), 2008, "the same figure does not make the same device");
    }

    #[test]
    fn what_found_no_room_is_found() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n tap01: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n tap0:  10 20 30 40 50 60 70 80 90 100 110 120 130 140 150 160\n";
        assert_eq!(not_sent(text, "tap0"), Some(120));
        assert_eq!(not_sent(text, "tap01"), Some(12));
        assert_eq!(not_sent(text, "tap"), None);
    }
}
