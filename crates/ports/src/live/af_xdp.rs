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

mod adopted;
#[cfg(feature = "attach")]
mod attach;
#[cfg(feature = "attach")]
mod attached;
mod calls;
mod frames;
mod incoming;
#[cfg(feature = "open")]
mod interface;
mod memory;
mod metadata;
#[cfg(feature = "open")]
mod opened;
#[cfg(feature = "open")]
mod order;
mod outlet;
mod port;
#[cfg(feature = "open")]
mod redirect;
mod ring;
#[cfg(feature = "attach")]
mod sending;
mod shared;
mod socket;
#[cfg(feature = "open")]
mod wanted;

pub(super) use adopted::{Adopted, LaneFrames, adopt};
#[cfg(feature = "attach")]
pub(crate) use attach::{attach, attach_all};
#[cfg(feature = "open")]
pub use opened::FrameShare;
#[cfg(feature = "open")]
pub(super) use opened::OpenedXdp;
#[cfg(feature = "open")]
pub use redirect::{cross, pass};
#[cfg(feature = "attach")]
pub use sending::XdpSender;
pub use shared::XdpPort;
#[cfg(feature = "open")]
pub use wanted::{Mode, Wishes, XdpError};

use frames::Marks;
use memory::{Pages, Part};
use std::ops::Range;
use std::sync::Arc;

/// Where the kernel puts a packet in its frame (XDP_PACKET_HEADROOM).
const FIRST: usize = 256;

/// The longest frame that the kernel takes, in bytes.
const LONGEST_CHUNK: usize = 4096;

/// How many frames a lane of a port receives into: some milliseconds of a fast interface, for which its
/// thread may be off its processor. The rings by which packets come have so many entries.
const FRAMES: u32 = 4096;

/// How many frames it has for copies that it sends, and entries of the rings by which packets leave.
const TRANSMIT: u32 = 2048;

/// How many ports of another process share their frames at most: what a core says of them to the next one is
/// a message.
pub const MOST_SHARING: usize = 256;

/// How the frames of a worker's ports lie in its memory.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of a frame.
    chunk: usize,
    /// How many ports share the memory.
    sharing: usize,
}

impl Layout {
    /// Bytes of the frames that a port receives into. One frame more, so that what lies behind the last one
    /// is the port's own, too.
    fn home(&self) -> usize {
        (FRAMES as usize + 1) * self.chunk
    }

    /// Bytes of the parts of the memory, one behind the other.
    fn lengths(&self) -> Vec<usize> {
        let copies = (TRANSMIT as usize + 1) * self.chunk;
        [vec![self.home(); self.sharing], vec![copies; self.sharing]].concat()
    }

    /// The parts of each port: what it receives into, and what it copies into.
    fn by_port(&self, mut parts: Vec<Part>) -> impl Iterator<Item = [Part; 2]> {
        let copies = parts.split_off(self.sharing);
        parts.into_iter().zip(copies).map(<[Part; 2]>::from)
    }
}

/// The memory of a worker's ports, and who has which frame of it.
struct Pool {
    pages: Arc<Pages>,
    layout: Layout,
    /// The frames that ports receive into, which lie from the beginning on, port by port.
    homes: Vec<Arc<Marks>>,
}

impl Pool {
    /// The frame that a range of the memory lies in, by its home.
    fn frame(&self, range: &Range<usize>) -> Option<(&Marks, u32)> {
        let (home, chunk) = (self.layout.home(), self.layout.chunk);
        let marks = self.homes.get(range.start / home)?;
        let (first, last) = (range.start % home / chunk, (range.end - 1) % home / chunk);
        (first == last && range.len() < chunk).then_some((marks.as_ref(), first as u32))
    }
}
