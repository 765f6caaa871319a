//! Messages of vhost-user.
//!
//! ```text
//! | request: 4 | flags: 4 | length: 4 | body: length |   in the byte order of the machine, with descriptors
//!              | version: 2 bits | is an answer: 1 | wants an answer: 1 | 0 … |
//! ```

use messages::{ChannelError, receive_first};
use ports::live::vhost::limits::MOST_REGIONS;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// The longest body, in bytes: that of as many regions of memory as there may be.
pub const LONGEST_BODY: usize = 8 + MOST_REGIONS * 32;
/// How many descriptors come with a message at most: one for each region.
pub const MOST_FILES: usize = MOST_REGIONS;

const HEADER: usize = 12;
const VERSION: u32 = 1;
const VERSION_BITS: u32 = 3;
const ANSWER: u32 = 4;
const WANTS_ANSWER: u32 = 8;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum VhostMessageError {
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
    /// the header
    #[error("a message of another version, or with flags that mean nothing")]
    Flags,
    /// the length
    #[error("a message of {0} bytes, of which at most {LONGEST_BODY} are taken")]
    TooLong(u32),
    /// its first bytes, and its descriptors
    #[error(transparent)]
    First(#[from] ChannelError),
}

/// A message of the monitor.
#[derive(Debug)]
pub struct Message {
    /// What it asks.
    pub request: u32,
    /// Whether it wants to know that it was done.
    pub wants_answer: bool,
    /// What it says.
    pub body: Vec<u8>,
    /// The descriptors that came with it.
    pub files: Vec<OwnedFd>,
}

/// Waits for the next message; `None` if the monitor is gone.
///
/// # Errors
/// What came is none. Nothing can be received after that.
pub fn receive(stream: &mut UnixStream) -> Result<Option<Message>, VhostMessageError> {
    let (mut header, mut files) = ([0; HEADER], Vec::new());
    let first = receive_first(stream, &mut header, &mut files, MOST_FILES)?;
    if first == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut header[first..])?;
    let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (request, flags, length) = (word(0), word(4), word(8));
    if flags & VERSION_BITS != VERSION || flags & !(VERSION_BITS | WANTS_ANSWER) != 0 {
        return Err(VhostMessageError::Flags);
    }
    if length as usize > LONGEST_BODY {
        return Err(VhostMessageError::TooLong(length));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok(Some(Message { request, wants_answer: flags & WANTS_ANSWER != 0, body, files }))
}

/// The bytes of an answer to a request.
pub(crate) fn answer(request: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    for word in [request, VERSION | ANSWER, body.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(body);
    bytes
}
