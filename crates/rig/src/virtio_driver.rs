//! The driver of a virtual network card, slow and simple: its memory is a file that it reads and writes by
//! calls, so that nothing of it is written by what is tested. It can do what no driver does, too.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Bytes of the header before a frame.
pub const HEADER: usize = 12;
/// Descriptors of each ring.
pub const SIZE: u16 = 256;
/// The first address of the memory at the machine.
pub const START: u64 = 1 << 30;
/// Logarithm of its bytes.
pub const MEMORY: u32 = 24;

/// Where the ring of what is received lies, behind the beginning of the memory.
pub const RECEIVE: RingAt = RingAt { descriptors: 0, available: 0x4000, used: 0x5000 };
/// That of what is sent.
pub const TRANSMIT: RingAt = RingAt { descriptors: 0x8000, available: 0xc000, used: 0xd000 };
/// Where the buffers of each begin, and how far they are apart.
const BUFFERS: [u64; 2] = [0x10_000, 0x410_000];
const BUFFER: u64 = 0x4000;

/// Where the parts of a ring lie, behind the beginning of the memory.
#[derive(Clone, Copy)]
pub struct RingAt {
    /// The descriptors.
    pub descriptors: u64,
    /// The ring of available chains.
    pub available: u64,
    /// The ring of used chains.
    pub used: u64,
}

/// A chain that the device has given back.
#[derive(Debug)]
pub struct UsedChain {
    /// How many bytes the device has written into it.
    pub written: u32,
    /// Its parts: addresses behind the beginning of the memory, and lengths.
    parts: Vec<(u64, u32)>,
}

/// What the driver knows of a ring.
#[derive(Clone)]
struct Ring {
    at: RingAt,
    buffers: u64,
    available: u16,
    seen: u16,
    next: u16,
    /// The chains that the device has, by head.
    chains: VecDeque<(u16, Vec<(u64, u32)>)>,
}

/// A driver of both rings.
pub struct Driver {
    memory: File,
    length: u64,
    receive: Ring,
    transmit: Ring,
}

impl Ring {
    fn new(at: RingAt, buffers: u64) -> Ring {
        Ring { at, buffers, available: 0, seen: 0, next: 0, chains: VecDeque::new() }
    }
}

impl Driver {
    /// One with so many bytes of memory, at least those of [`MEMORY`] if it is to send.
    pub fn new(length: u64) -> Driver {
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&memory, length).expect("as long");
        let [receive, transmit] = BUFFERS;
        Driver {
            memory: memory.into(),
            length,
            receive: Ring::new(RECEIVE, receive),
            transmit: Ring::new(TRANSMIT, transmit),
        }
    }

    /// Another handle of the same memory.
    pub fn again(&self) -> Driver {
        let memory = self.memory.try_clone().expect("another handle");
        Driver { memory, length: self.length, receive: self.receive.clone(), transmit: self.transmit.clone() }
    }

    /// The file of its memory.
    pub fn file(&self) -> OwnedFd {
        self.memory.try_clone().expect("another handle").into()
    }

    /// One with the same memory, whose rings begin anew.
    pub fn anew(&self) -> Driver {
        let [receive, transmit] = BUFFERS;
        let (receive, transmit) = (Ring::new(RECEIVE, receive), Ring::new(TRANSMIT, transmit));
        Driver { receive, transmit, ..self.again() }
    }

    /// The index of the chains that the device has used of what was sent.
    pub fn used_of_sent(&self) -> u16 {
        self.half(TRANSMIT.used + 2)
    }

    /// Whether the device has used all that was sent.
    pub fn is_settled(&self) -> bool {
        self.transmit.available == self.used_of_sent()
    }

    /// Bytes of the memory.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Seals the memory against shrinking, as monitors do.
    pub fn seal(&self) {
        fcntl_add_seals(&self.memory, SealFlags::SHRINK).expect("sealed");
    }

    /// Writes bytes so far behind the beginning of the memory.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).expect("written");
    }

    fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, at).expect("read");
        bytes
    }

    fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.read(at, 2).try_into().expect("two"))
    }

    /// Whether the device has said that it wants no notifications of what is sent.
    pub fn is_to_be_quiet(&self) -> bool {
        self.half(TRANSMIT.used) == 1
    }

    /// Says whether it wants to know of chains that come back.
    pub fn wants_interrupts(&self, wants: bool) {
        for at in [RECEIVE, TRANSMIT] {
            self.write(at.available, &u16::from(!wants).to_le_bytes());
        }
    }

    /// Whether the ring of what is sent has a place.
    pub fn has_room(&self) -> bool {
        self.transmit.available.wrapping_sub(self.used_of_sent()) < SIZE
    }

    /// Makes a frame available in a chain of so many descriptors, whose first begins `shift` bytes behind a
    /// word.
    pub fn transmit(&mut self, frame: &[u8], descriptors: usize, shift: usize) {
        let bytes = [&[0; HEADER], frame].concat();
        self.chain(bytes, descriptors, shift);
    }

    /// The same with another header.
    pub fn transmit_with(&mut self, header: [u8; HEADER], frame: &[u8]) {
        self.chain([&header, frame].concat(), 1, 0);
    }

    fn chain(&mut self, bytes: Vec<u8>, descriptors: usize, shift: usize) {
        let at = START + self.buffer(false) + shift as u64;
        self.write(at - START, &bytes);
        let parts = divided(at, bytes.len(), descriptors);
        self.add(false, &parts);
    }

    /// Makes a chain available in which one buffer of so many bytes comes again and again.
    pub fn transmit_repeated(&mut self, length: u32, times: usize) {
        let at = START + self.transmit.buffers;
        self.add(false, &vec![(at, length); times]);
    }

    /// Makes room for so many bytes with their header.
    pub fn supply(&mut self, descriptors: usize, bytes: usize, shift: usize) {
        let at = START + self.buffer(true) + shift as u64;
        self.add(true, &divided(at, bytes, descriptors));
    }

    fn buffer(&self, receives: bool) -> u64 {
        let ring = if receives { &self.receive } else { &self.transmit };
        ring.buffers + u64::from(ring.available % SIZE) * BUFFER
    }

    /// Makes a chain available. Descriptors are taken one after the other: no test has more on their way than
    /// a ring has.
    fn add(&mut self, receives: bool, parts: &[(u64, u32)]) {
        let ring = if receives { &self.receive } else { &self.transmit };
        let (at, head, available) = (ring.at, ring.next, ring.available);
        let mut own = head;
        for (number, (address, length)) in parts.iter().enumerate() {
            let next = (own + 1) % SIZE;
            let flags = u16::from(number + 1 < parts.len()) | if receives { 2 } else { 0 };
            self.write_descriptor(at, own, *address, *length, flags, next);
            own = next;
        }
        self.offer(at, available, head);
        let ring = if receives { &mut self.receive } else { &mut self.transmit };
        // Whoever does not look at what was used has it forgotten.
        if ring.chains.len() >= usize::from(SIZE) {
            ring.chains.pop_front();
            ring.seen = ring.seen.wrapping_add(1);
        }
        ring.chains.push_back((head, parts.iter().map(|(at, length)| (at - START, *length)).collect()));
        (ring.next, ring.available) = (own, available.wrapping_add(1));
        self.write(at.available + 2, &available.wrapping_add(1).to_le_bytes());
    }

    /// Writes a descriptor.
    pub fn write_descriptor(
        &self,
        at: RingAt,
        number: u16,
        address: u64,
        length: u32,
        flags: u16,
        next: u16,
    ) {
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.write(at.descriptors + 16 * u64::from(number), &bytes);
    }

    /// Puts a head into the place of the ring that a count stands for.
    pub fn offer(&self, at: RingAt, count: u16, head: u16) {
        self.write(at.available + 4 + 2 * u64::from(count % SIZE), &head.to_le_bytes());
    }

    /// The next chain that the device has given back of what was sent.
    pub fn transmitted(&mut self) -> Option<UsedChain> {
        self.used(false)
    }

    /// The next frame that the device has written, without its header; nothing at all in a chain without a
    /// byte.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        let UsedChain { written, parts } = self.used(true)?;
        let mut bytes = Vec::new();
        for (at, length) in parts {
            let left = (written as usize - bytes.len()).min(length as usize);
            bytes.extend(self.read(at, left));
        }
        if bytes.is_empty() {
            return Some(bytes);
        }
        assert_eq!(bytes[..HEADER], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        Some(bytes.split_off(HEADER))
    }

    fn used(&mut self, receives: bool) -> Option<UsedChain> {
        let ring = if receives { &self.receive } else { &self.transmit };
        let (at, seen) = (ring.at.used, ring.seen);
        if self.half(at + 2) == seen {
            return None;
        }
        let element = self.read(at + 4 + 8 * u64::from(seen % SIZE), 8);
        let word = |at: usize| u32::from_le_bytes(element[at..at + 4].try_into().expect("four"));
        let ring = if receives { &mut self.receive } else { &mut self.transmit };
        ring.seen = seen.wrapping_add(1);
        let (head, parts) = ring.chains.pop_front().expect("it was given");
        assert_eq!(word(0), u32::from(head), "in order");
        Some(UsedChain { written: word(4), parts })
    }
}

/// So many bytes at an address in so many parts, as equal as can be.
fn divided(at: u64, length: usize, parts: usize) -> Vec<(u64, u32)> {
    let (each, mut at) = (length / parts, at);
    (1..=parts)
        .map(|number| {
            let part = if number == parts { length - each * (parts - 1) } else { each };
            let here = at;
            at += part as u64;
            (here, part as u32)
        })
        .collect()
}
