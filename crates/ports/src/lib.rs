//! Where packets enter and leave: capture files, memory, the generator, and directories of captures.

#![deny(unsafe_code)]

pub mod capture_in;
pub mod capture_out;
pub mod files;
pub mod generator_in;
pub mod ingress;
#[cfg(target_os = "linux")]
pub mod live;
pub mod memory_in;
pub mod null_out;

pub use capture_in::{CaptureLinks, CaptureSource, OpenError};
pub use capture_out::CaptureOut;
pub use generator_in::GeneratorSource;
pub use ingress::{Ingress, IngressPolicy};
pub use memory_in::{MemorySource, Order};
pub use null_out::NullOut;

use packet::{Batch, CaptureError, Frames, LinkType, PortNumber, VirtioHeader};
use std::io;

/// Where packets come from.
pub trait Receive {
    /// Replaces the contents of `batch` by the next packets, up to [`packet::BATCH`], and returns the memory
    /// that their frames lie in. An empty batch is the end. What was received before an error has been handed
    /// out before it; after it there is nothing more.
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError>;
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// By which port; [`packet::NO_PORT`] is where dropped packets go.
    pub port: PortNumber,
    /// The bytes of it that are known.
    pub bytes: &'a [u8],
    /// How many bytes it has on the wire.
    pub wire: u32,
    /// When, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// What is left to do with it.
    pub virtio: VirtioHeader,
    /// Why a dropped packet was dropped.
    pub comment: Option<&'a str>,
}

/// Where packets go.
pub trait Transmit {
    /// Sends a packet. It may wait with others until [`flush`](Transmit::flush).
    fn transmit(&mut self, departure: &Departure<'_>) -> io::Result<()>;

    /// Sends everything that waits.
    fn flush(&mut self) {}
}

/// Why no further packets can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// {name}: {source}
    #[error("{name}: {source}")]
    Capture {
        /// The path of the capture, or "standard input".
        name: String,
        /// What is wrong with it.
        source: CaptureError,
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

/// All packets of a source in memory, and the error that ended them if one did.
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
