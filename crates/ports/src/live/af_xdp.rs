//! Ports of the kind AF_XDP: Linux writes packets into frames of a memory that all ports of a worker share,
//! and sends from there.
//!
//! ```text
//! memory: | frames of port 1 … | frames of port 2 … | copies that port 1 sends … | copies that port 2 sends … |
//! frame:  | 256 bytes: room to grow | the packet … |        an odd number of cache lines, or a power of two for drivers that need no copy
//! ```
//!
//! A packet that leaves by another port of the worker (or by its own) leaves from the frame it came in; its
//! frame goes home when the kernel has sent it. Other packets are copied into a frame of the port they leave
//! by, and long segments are cut there. Sockets that copy send packets with an open checksum, too, if the
//! kernel takes a description of it before the packet.

mod attach;
mod calls;
mod frames;
mod incoming;
mod interface;
mod memory;
mod metadata;
mod outlet;
mod port;
mod redirect;
mod ring;
mod socket;
mod wanted;

pub(crate) use attach::{attach, attach_all};
pub use redirect::{cross, pass};
pub use wanted::{Mode, Wishes, XdpError};

use frames::Marks;
use memory::Pages;
use std::ops::Range;
use std::sync::Arc;

/// Where the kernel puts a packet in its frame (XDP_PACKET_HEADROOM).
const FIRST: usize = 256;

/// The memory of a worker's ports, and who has which frame of it.
struct Pool {
    pages: Arc<Pages>,
    /// Bytes of a frame.
    chunk: usize,
    /// Bytes of the frames of one port, which lie from the beginning on, port by port.
    home: usize,
    homes: Vec<Arc<Marks>>,
}

impl Pool {
    /// The frame that a range of the memory lies in, by its home.
    fn frame(&self, range: &Range<usize>) -> Option<(&Marks, u32)> {
        let marks = self.homes.get(range.start / self.home)?;
        let (first, last) = (range.start % self.home / self.chunk, (range.end - 1) % self.home / self.chunk);
        (first == last && range.len() < self.chunk).then_some((marks.as_ref(), first as u32))
    }
}
