//! Packet I/O: sources and sinks of packets, which are capture files, memory and network interfaces (`live`).
//!
//! Packets of captures and of memory are the feature `offline`; ports that this process attaches for itself,
//! or opens for another one, are the features `attach` and `open`.

#![deny(unsafe_code)]

#[cfg(feature = "offline")]
pub mod capture_in;
#[cfg(feature = "offline")]
pub mod capture_out;
#[cfg(feature = "offline")]
pub mod files;
#[cfg(feature = "offline")]
pub mod ingress;
#[cfg(target_os = "linux")]
pub mod live;
#[cfg(feature = "offline")]
pub mod memory_in;

#[cfg(feature = "offline")]
pub use capture_in::{CaptureLinks, CaptureSource, OpenError};
#[cfg(feature = "offline")]
pub use capture_out::CaptureOut;
#[cfg(feature = "offline")]
pub use ingress::{Ingress, IngressPolicy};
#[cfg(feature = "offline")]
pub use memory_in::{MemorySource, Order};

use packet::{Batch, Frames, LinkType, PortNumber, VirtioHeader};
use std::io;

/// A source of packets.
pub trait Receive {
    /// Replaces the contents of `batch` by the next packets, up to [`packet::BATCH`], and returns the memory
    /// that holds their frames. An empty batch means that the source has ended. The source hands out all
    /// packets before it returns an error. After an error it has no more packets.
    ///
    /// # Errors
    /// The source is damaged, or holds a packet that programs cannot get.
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError>;
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// The port that it leaves by; [`packet::NO_PORT`] for dropped packets.
    pub port: PortNumber,
    /// The captured bytes: all of the packet, or its beginning.
    pub bytes: &'a [u8],
    /// The wire length, in bytes.
    pub wire: u32,
    /// The time at which it leaves, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// What the network card still has to do with it.
    pub virtio: VirtioHeader,
    /// The reason of a drop, for dropped packets.
    pub comment: Option<&'a str>,
}

/// A destination of packets.
pub trait Transmit {
    /// Sends a packet. The packet may wait in a buffer until [`flush`](Transmit::flush).
    fn transmit(&mut self, departure: &Departure<'_>) -> io::Result<()>;

    /// Sends all packets that wait in the buffer.
    fn flush(&mut self) {}
}

/// Why a source can give no more packets.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// {name}: {source}
    #[cfg(feature = "offline")]
    #[error("{name}: {source}")]
    Capture {
        /// The path of the capture, or "standard input".
        name: String,
        /// What is wrong with it.
        source: captures::CaptureError,
    },
    /// a packet of a link type that programs are not made for
    #[error(
        "{name}: packet {packet} is of interface {interface}, whose link type is {link}, and only Ethernet is understood; with `--link any` the program gets such packets as they are"
    )]
    LinkType {
        /// The path of the capture, or "standard input".
        name: String,
        /// The number of the packet, counted from 1.
        packet: u64,
        /// The number of the interface within its section of the capture.
        interface: u32,
        /// Its link type.
        link: LinkType,
    },
    /// a packet of an interface for which there is no port
    #[error(
        "{name}: packet {packet} is of interface {interface}, counted from 0, which would be port {}, and there are ports 1 to {ports}; --ports makes more",
        u64::from(*interface) + 1
    )]
    Interface {
        /// The path of the capture, or "standard input".
        name: String,
        /// The number of the packet, counted from 1.
        packet: u64,
        /// The number of the interface within its section of the capture.
        interface: u32,
        /// How many ports there are.
        ports: u16,
    },
}

/// Reads all packets of a source into memory. Returns them, and the error that ended the source if there was
/// one.
pub fn collect(source: &mut impl Receive) -> (Frames, Option<ReceiveError>) {
    let (mut frames, mut batch) = (Frames::new(), Batch::new());
    loop {
        let memory = match source.receive(&mut batch) {
            Ok(memory) => memory,
            Err(error) => return (frames, Some(error)),
        };
        if batch.is_empty() {
            return (frames, None);
        }
        for i in 0..batch.len {
            frames.push(batch.bytes(memory, i).unwrap_or_default(), batch.wire[i], batch.time[i]);
        }
    }
}
