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
mod receive;

#[cfg(feature = "offline")]
pub use capture_in::{CaptureLinks, CaptureSource, OpenError};
#[cfg(feature = "offline")]
pub use capture_out::CaptureOut;
#[cfg(feature = "offline")]
pub use ingress::{Ingress, IngressPolicy};
#[cfg(feature = "offline")]
pub use memory_in::{MemorySource, Order};
#[cfg(feature = "offline")]
pub use receive::{Receive, ReceiveError, collect};

use packet::{PortNumber, VirtioHeader};
use std::io;

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
