//! What was agreed on so far, request by request.
//!
//! ```text
//! features ─► memory ─► for both rings: size, addresses, eventfds, enabled ─► shares
//!                                                    ▲                               │
//!                                                    └── a ring stops, or the memory changes
//! ```
//!
//! Before the monitor hears that a ring has stopped, the gateway has let go of the memory.

use crate::message::Message;
use ports::live::vhost::limits::MOST_REGIONS;
use ports::live::vhost::{GuestRegion, RingPlace, Rings};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// VIRTIO_F_VERSION_1: frames stand behind a header of 12 bytes, and numbers are little-endian.
const VERSION_1: u64 = 1 << 32;
/// VHOST_USER_F_PROTOCOL_FEATURES.
const HAS_PROTOCOL_FEATURES: u64 = 1 << 30;
/// VHOST_USER_PROTOCOL_F_REPLY_ACK.
const REPLY_ACK: u64 = 1 << 3;

/// VIRTIO_NET_F_CSUM: the machine's packets may have open checksums.
const CHECKSUMS: u64 = 1;
/// VIRTIO_NET_F_HOST_TSO4 and VIRTIO_NET_F_HOST_TSO6: it may send long segments of TCP.
const SEGMENTS: u64 = 1 << 11 | 1 << 12;

/// The features that the card always has: none by which descriptors would be further away, or by which what
/// the machine receives would be unfinished.
pub const FEATURES: u64 = VERSION_1 | HAS_PROTOCOL_FEATURES;
/// Those that it has besides where the core finishes what the machine sends.
pub const UNFINISHED: u64 = CHECKSUMS | SEGMENTS;
/// Those of the protocol.
pub const PROTOCOL_FEATURES: u64 = REPLY_ACK;

/// In a message that hands a eventfd over: the number of the ring, and that there is no file.
const RING_BITS: u64 = 0xff;
const NO_FILE: u64 = 1 << 8;

/// The requests, by their names in the protocol.
mod request {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const RESET_OWNER: u32 = 4;
    pub(super) const SET_MEM_TABLE: u32 = 5;
    pub(super) const SET_VRING_NUM: u32 = 8;
    pub(super) const SET_VRING_ADDR: u32 = 9;
    pub(super) const SET_VRING_BASE: u32 = 10;
    pub(super) const GET_VRING_BASE: u32 = 11;
    pub(super) const SET_VRING_KICK: u32 = 12;
    pub(super) const SET_VRING_CALL: u32 = 13;
    pub(super) const SET_VRING_ERR: u32 = 14;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const SET_VRING_ENABLE: u32 = 18;
}

/// Why a request is refused, with which the connection ends.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// a request
    #[error("the monitor asks for {0}, which the gateway does not know")]
    Unknown(u32),
    /// a body
    #[error("request {request} is not as it must be: {what}")]
    Wrong {
        /// Its number.
        request: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// the gateway
    #[error("the gateway: {0}")]
    Gateway(#[from] io::Error),
}

/// Whoever is told what is shared.
pub trait Sharing {
    /// The machine shares this from now on, with a file for each region.
    ///
    /// # Errors
    /// The gateway is gone.
    fn share(&mut self, rings: &Rings, files: &[BorrowedFd<'_>]) -> io::Result<()>;

    /// Nothing is shared any more. Returns once nobody uses anything of it.
    ///
    /// # Errors
    /// The gateway is gone, or does not let go.
    fn take_back(&mut self) -> io::Result<()>;

    /// Tells the operator something.
    fn tell(&mut self, what: &str);
}

/// A region, as the monitor tells of it.
struct Region {
    shared: GuestRegion,
    /// Its first address at the monitor.
    at_monitor: u64,
    file: File,
}

/// A ring, as far as it is known. Addresses are those at the monitor.
#[derive(Default)]
struct Ring {
    size: u16,
    descriptors: u64,
    available: u64,
    used: u64,
    enabled: bool,
    /// By which the driver notifies the gateway.
    kick: Option<File>,
    /// By which the gateway interrupts the driver.
    call: Option<File>,
}

/// What was agreed on.
pub struct Negotiation {
    /// The features that are offered.
    offered: u64,
    regions: Vec<Region>,
    /// That of what the machine receives, and that of what it sends.
    rings: [Ring; 2],
    features: u64,
    protocol_features: u64,
    shares: bool,
}

/// Reads numbers off a body, in the byte order of the machine.
struct Numbers<'b> {
    request: u32,
    rest: &'b [u8],
}

impl Numbers<'_> {
    fn wrong(&self, what: &'static str) -> RequestError {
        RequestError::Wrong { request: self.request, what }
    }

    fn word(&mut self) -> Result<u32, RequestError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or_else(|| self.wrong("it is too short"))?;
        self.rest = rest;
        Ok(u32::from_ne_bytes(*first))
    }

    fn long(&mut self) -> Result<u64, RequestError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or_else(|| self.wrong("it is too short"))?;
        self.rest = rest;
        Ok(u64::from_ne_bytes(*first))
    }

    fn end(&self) -> Result<(), RequestError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong("it is too long")) }
    }
}

impl Negotiation {
    /// Nothing so far. `takes_unfinished` says whether the core finishes what the machine sends.
    pub fn new(takes_unfinished: bool) -> Negotiation {
        Negotiation {
            offered: FEATURES | if takes_unfinished { UNFINISHED } else { 0 },
            regions: Vec::new(),
            rings: Default::default(),
            features: 0,
            protocol_features: 0,
            shares: false,
        }
    }

    /// The files by which the driver notifies the gateway, while something is shared.
    pub fn kicks(&self) -> impl Iterator<Item = &File> {
        self.rings.iter().filter(|_| self.shares).filter_map(|ring| ring.kick.as_ref())
    }

    /// The files by which the gateway interrupts the driver, while something is shared.
    pub fn calls(&self) -> impl Iterator<Item = &File> {
        self.rings.iter().filter(|_| self.shares).filter_map(|ring| ring.call.as_ref())
    }

    /// The driver has done what no driver does: nothing is shared until the rings start again.
    ///
    /// # Errors
    /// The gateway is gone, or does not let go.
    pub fn break_off(&mut self, to: &mut impl Sharing) -> io::Result<()> {
        self.rings.iter_mut().for_each(|ring| ring.kick = None);
        self.stop(to)
    }

    /// Does what a message asks. Says what is answered, if anything is.
    ///
    /// # Errors
    /// It is refused.
    pub fn take(&mut self, message: Message, to: &mut impl Sharing) -> Result<Option<Vec<u8>>, RequestError> {
        let Message { request: asked, wants_answer, body, mut files } = message;
        let mut numbers = Numbers { request: asked, rest: &body };
        let wrong = |what| RequestError::Wrong { request: asked, what };
        let takes_files = matches!(
            asked,
            request::SET_MEM_TABLE
                | request::SET_VRING_KICK
                | request::SET_VRING_CALL
                | request::SET_VRING_ERR
        );
        if !takes_files && !files.is_empty() {
            return Err(wrong("it comes with descriptors"));
        }
        let mut answer = None;
        match asked {
            request::GET_FEATURES => answer = Some(self.offered.to_ne_bytes().to_vec()),
            request::SET_FEATURES => {
                let features = numbers.long()?;
                if features & !self.offered != 0 {
                    return Err(wrong("features that were not offered"));
                }
                if self.shares && features != self.features {
                    return Err(wrong("features are changed while rings are used"));
                }
                self.features = features;
            }
            request::SET_OWNER => {}
            request::RESET_OWNER => {
                self.stop(to)?;
                for ring in &mut self.rings {
                    (ring.kick, ring.enabled) = (None, false);
                }
            }
            request::SET_MEM_TABLE => {
                self.stop(to)?;
                self.regions = regions(&mut numbers, std::mem::take(&mut files))?;
            }
            request::SET_VRING_NUM => {
                let (ring, size) = (self.idle_ring(&mut numbers)?, numbers.word()?);
                ring.size = u16::try_from(size).map_err(|_| wrong("a ring of so many descriptors"))?;
            }
            request::SET_VRING_ADDR => {
                let ring = self.idle_ring(&mut numbers)?;
                if numbers.word()? != 0 {
                    return Err(wrong("a log of what is written"));
                }
                (ring.descriptors, ring.used, ring.available) =
                    (numbers.long()?, numbers.long()?, numbers.long()?);
                // An address of the log.
                numbers.long()?;
            }
            // The ring in the memory says the same.
            request::SET_VRING_BASE => {
                self.idle_ring(&mut numbers)?;
                numbers.word()?;
            }
            // The ring stops.
            request::GET_VRING_BASE => {
                let number = numbers.word()?;
                self.stop(to)?;
                numbers.word()?;
                let ring = self.ring(number, asked)?;
                ring.kick = None;
                let at = ring.used.checked_add(2);
                let base = at.and_then(|at| self.half_at(at)).map_or(0, u32::from);
                answer = Some([number.to_ne_bytes(), base.to_ne_bytes()].concat());
            }
            request::SET_VRING_KICK | request::SET_VRING_CALL | request::SET_VRING_ERR => {
                let number = numbers.long()?;
                if number & !(RING_BITS | NO_FILE) != 0 || files.len() != usize::from(number & NO_FILE == 0) {
                    return Err(wrong("not one file, or none although it is said"));
                }
                let file = files.pop().map(File::from);
                let ring = self.ring((number & RING_BITS) as u32, asked)?;
                match asked {
                    request::SET_VRING_KICK if file.is_none() => {
                        return Err(wrong("a ring that is to be looked at again and again"));
                    }
                    request::SET_VRING_KICK => ring.kick = file,
                    request::SET_VRING_CALL => ring.call = file,
                    _ => {}
                }
            }
            request::GET_PROTOCOL_FEATURES => answer = Some(PROTOCOL_FEATURES.to_ne_bytes().to_vec()),
            request::SET_PROTOCOL_FEATURES => {
                self.protocol_features = numbers.long()?;
                if self.protocol_features & !PROTOCOL_FEATURES != 0 {
                    return Err(wrong("features that were not offered"));
                }
            }
            request::SET_VRING_ENABLE => {
                let number = numbers.word()?;
                let enabled = numbers.word()?;
                if enabled == 0 {
                    self.stop(to)?;
                }
                self.ring(number, asked)?.enabled = enabled != 0;
            }
            other => return Err(RequestError::Unknown(other)),
        }
        numbers.end()?;
        self.start(asked, to)?;
        let acknowledges = wants_answer && self.protocol_features & REPLY_ACK != 0;
        let done = || acknowledges.then(|| 0u64.to_ne_bytes().to_vec());
        Ok(answer.or_else(done).map(|body| crate::message::answer(asked, &body)))
    }

    fn ring(&mut self, number: u32, request: u32) -> Result<&mut Ring, RequestError> {
        let wrong = RequestError::Wrong { request, what: "a ring that the card does not have" };
        self.rings.get_mut(number as usize).ok_or(wrong)
    }

    /// The ring whose number is next, which must not be in use.
    fn idle_ring(&mut self, numbers: &mut Numbers<'_>) -> Result<&mut Ring, RequestError> {
        if self.shares {
            return Err(numbers.wrong("a ring is changed while it is used"));
        }
        let number = numbers.word()?;
        self.ring(number, numbers.request)
    }

    /// Takes back what is shared.
    fn stop(&mut self, to: &mut impl Sharing) -> io::Result<()> {
        if std::mem::take(&mut self.shares) { to.take_back() } else { Ok(()) }
    }

    /// Shares what there is, once all is known.
    fn start(&mut self, request: u32, to: &mut impl Sharing) -> Result<(), RequestError> {
        // Without the features of the protocol, rings begin enabled.
        let all_enabled = self.features & HAS_PROTOCOL_FEATURES == 0;
        let ready = |ring: &Ring| {
            ring.size > 0 && ring.used > 0 && (ring.enabled || all_enabled) && ring.kick.is_some()
        };
        if self.shares || self.regions.is_empty() || !self.rings.iter().all(ready) {
            return Ok(());
        }
        let wrong = |what| RequestError::Wrong { request, what };
        if self.features & VERSION_1 == 0 {
            // That of a boot loader, perhaps; the next one may know it.
            to.tell("a driver that does not know VIRTIO_F_VERSION_1 has no link");
            return Ok(());
        }
        let [receive, transmit] = &self.rings;
        let place = |ring: &Ring| {
            let at = |address| self.at_machine(address).ok_or(wrong("a ring outside of the memory"));
            Ok::<_, RequestError>(RingPlace {
                size: ring.size,
                descriptors: at(ring.descriptors)?,
                available: at(ring.available)?,
                used: at(ring.used)?,
            })
        };
        let regions = self.regions.iter().map(|region| region.shared).collect();
        // Segments have open checksums, so without these there are none (Virtual I/O Device 1.2, 5.1.3.1).
        // Who has agreed on checksums alone and sends segments has them cut.
        let unfinished = self.features & CHECKSUMS != 0;
        let rings = Rings { regions, receive: place(receive)?, transmit: place(transmit)?, unfinished };
        let files: Vec<_> = self.regions.iter().map(|region| region.file.as_fd()).collect();
        to.share(&rings, &files)?;
        self.shares = true;
        Ok(())
    }

    /// The region of an address at the monitor, and how far behind its beginning it lies.
    fn find(&self, address: u64) -> Option<(&Region, u64)> {
        self.regions.iter().find_map(|region| {
            let offset = address.checked_sub(region.at_monitor)?;
            (offset < region.shared.length).then_some((region, offset))
        })
    }

    fn at_machine(&self, address: u64) -> Option<u64> {
        let (region, offset) = self.find(address)?;
        region.shared.start.checked_add(offset)
    }

    /// The number of 16 bits at an address at the monitor.
    fn half_at(&self, address: u64) -> Option<u16> {
        let (region, offset) = self.find(address)?;
        let mut half = [0; 2];
        region.file.read_exact_at(&mut half, region.shared.offset.checked_add(offset)?).ok()?;
        Some(u16::from_le_bytes(half))
    }
}

/// The regions that a message tells of, with their files.
fn regions(numbers: &mut Numbers<'_>, files: Vec<OwnedFd>) -> Result<Vec<Region>, RequestError> {
    let count = numbers.word()? as usize;
    numbers.word()?;
    if count == 0 || count > MOST_REGIONS || count != files.len() {
        return Err(numbers.wrong("not a file for each region of one to eight"));
    }
    let region = |file: OwnedFd| {
        let (start, length) = (numbers.long()?, numbers.long()?);
        let (at_monitor, offset) = (numbers.long()?, numbers.long()?);
        let shared = GuestRegion { start, length, offset };
        Ok(Region { shared, at_monitor, file: file.into() })
    };
    files.into_iter().map(region).collect()
}
