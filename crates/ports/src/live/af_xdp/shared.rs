//! What has to be known of an AF_XDP port beside its descriptors.

use serde::{Deserialize, Serialize};

/// An AF_XDP port that was opened for another process.
///
/// ```text
/// descriptors of a lane: | file of the frames | what can be read when a socket can | socket of a queue | … |
/// ```
///
/// The first socket of a lane sends, too. The file is the same for all ports of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpPort {
    /// Bytes of a frame: a power of two where a driver may use the frames themselves.
    pub chunk: u32,
    /// How many ports share the memory of frames.
    pub sharing: u16,
    /// Which of them it is, from 0 on.
    pub index: u16,
    /// How many queues each lane has.
    pub queues: Vec<u16>,
    /// Whether bytes before a packet may describe it.
    pub metadata: bool,
}
