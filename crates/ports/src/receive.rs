//! Sources of packets that end: captures and memory.

use packet::{Batch, Frames, LinkType};

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

/// Why a source can give no more packets.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// {name}: {source}
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
