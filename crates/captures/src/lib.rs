//! Captures: reads them record by record from any byte stream, in memory that does not grow with the stream;
//! takes off a compression; writes them; and makes packets by a profile. This crate opens no files.

#![forbid(unsafe_code)]

pub mod compressed;
pub mod generate;
mod pcap;
mod pcapng;
mod timestamp;
mod window;
pub mod write;

#[cfg(test)]
mod tests;

use packet::{LinkType, MAXIMUM_CAPTURED};
use std::io::{self, Read};
use window::Window;

/// A capture in pcap or pcapng format, read as a stream.
///
/// ```
/// use captures::write::PcapWriter;
/// use captures::Capture;
/// use packet::LinkType;
///
/// let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET)?;
/// writer.write(1_000, 60, &[0; 60])?;
/// let file = writer.finish()?;
/// let mut capture = Capture::open(&file[..])?;
/// let record = capture.next()?.expect("one record");
/// assert_eq!((record.time_ns, record.wire, record.data.len()), (1_000, 60, 60));
/// assert!(capture.next()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Capture<R> {
    window: Window<R>,
    format: Format,
    finished: bool,
}

enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The captured bytes.
    pub data: &'a [u8],
    /// The length on the wire, in bytes; at least the number of captured bytes.
    pub wire: u32,
    /// The time of arrival, in nanoseconds since 1970-01-01 UTC; 0 where the record has none. Earlier times
    /// read as 0, times that do not fit as the largest number.
    pub time_ns: u64,
    /// What the bytes start with.
    pub link: LinkType,
    /// The number of the interface within its section of the file; 0 in pcap.
    pub interface: u32,
}

/// Why a capture cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// not a capture: it starts with {found}, and neither pcap nor pcapng does; check that the file is the
    /// one that was meant
    #[error(
        "not a capture: it starts with {found}, and neither pcap nor pcapng does; check that the file is the one that was meant"
    )]
    NotACapture {
        /// The first bytes, in words.
        found: String,
    },
    /// the capture is damaged at byte {offset}: {cause}
    #[error("the capture is damaged at byte {offset}: {cause}")]
    Damaged {
        /// Where the damaged record or block starts, in bytes of the uncompressed stream: the bytes before it
        /// are a whole capture.
        offset: u64,
        /// What is wrong with it.
        cause: Damage,
    },
    /// reading stopped at byte {offset} of the uncompressed data: {source}
    #[error("reading stopped at byte {offset} of the uncompressed data: {source}")]
    Read {
        /// Where the record or block starts that could not be read, in bytes of the uncompressed stream.
        offset: u64,
        /// What the stream said.
        source: io::Error,
    },
}

impl CaptureError {
    /// Where the readable part ends, in bytes of the uncompressed stream.
    pub fn offset(&self) -> u64 {
        match self {
            CaptureError::NotACapture { .. } => 0,
            CaptureError::Damaged { offset, .. } | CaptureError::Read { offset, .. } => *offset,
        }
    }
}

/// What is wrong with a record or block of a capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// the file ends inside a part
    #[error("the file ends {missing} bytes before the end of the {part}")]
    Ends {
        /// The part, such as "record".
        part: &'static str,
        /// How many bytes are missing at least.
        missing: u64,
    },
    /// a record holds more bytes than any capture has
    #[error("the record says that it holds {captured} bytes, and at most {MAXIMUM_CAPTURED} are possible")]
    CapturedTooLong {
        /// The length the record gives.
        captured: u32,
    },
    /// a version of a format that is not known
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        /// "pcap" or "pcapng".
        format: &'static str,
        /// The major version number.
        major: u16,
        /// The minor version number.
        minor: u16,
    },
    /// a section header whose byte-order mark is neither
    #[error("the byte-order mark of the section is {found:#010x} instead of 0x1a2b3c4d")]
    ByteOrder {
        /// The mark, read as little endian.
        found: u32,
    },
    /// a block length that cannot be
    #[error(
        "the block of type {block:#x} says that it is {length} bytes long; the length is at least {least} and a multiple of 4"
    )]
    BlockLength {
        /// The type of the block.
        block: u32,
        /// The length it gives.
        length: u32,
        /// The smallest length that this type can have.
        least: u32,
    },
    /// a block that has to be held in memory and is too long for it
    #[error(
        "the block of type {block:#x} says that it is {length} bytes long; at most {} are read",
        window::LARGEST
    )]
    BlockTooLong {
        /// The type of the block.
        block: u32,
        /// The length it gives.
        length: u32,
    },
    /// a block whose two lengths differ
    #[error("the block of type {block:#x} is {length} bytes long by its start and {trailing} by its end")]
    TrailingLength {
        /// The type of the block.
        block: u32,
        /// The length at the start.
        length: u32,
        /// The length at the end.
        trailing: u32,
    },
    /// a packet that does not fit into its block
    #[error("the packet is {captured} bytes long, and its block has room for {room}")]
    PacketOutsideBlock {
        /// The captured length.
        captured: u32,
        /// How many bytes the block has for it.
        room: u32,
    },
    /// an option that does not fit into its block
    #[error("option {code} is {length} bytes long and runs past the end of its block")]
    OptionOutsideBlock {
        /// The code of the option.
        code: u16,
        /// Its length.
        length: u16,
    },
    /// an option of the wrong length
    #[error("option {name} is {length} bytes long instead of {expected}")]
    OptionLength {
        /// The name of the option.
        name: &'static str,
        /// Its length.
        length: u16,
        /// The length it must have.
        expected: u16,
    },
    /// a packet of an interface that was not described
    #[error("the packet is of interface {interface}, and the section has described {described} so far")]
    UnknownInterface {
        /// The number the packet gives.
        interface: u32,
        /// How many interfaces there are.
        described: usize,
    },
    /// more interfaces than are kept
    #[error("the section describes more than {limit} interfaces")]
    TooManyInterfaces {
        /// How many are kept.
        limit: usize,
    },
}

impl<R: Read> Capture<R> {
    /// Starts to read a capture: recognises the format and reads its header.
    pub fn open(read: R) -> Result<Capture<R>, CaptureError> {
        let mut window = Window::new(read);
        let have = window.fill(4)?;
        let format = match *window.peek() {
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Format::Pcapng(pcapng::Pcapng::open(&mut window)?),
            [a, b, c, d, ..] if have >= 4 => match pcap::Flavour::of([a, b, c, d]) {
                Some(flavour) => Format::Pcap(pcap::Pcap::open(&mut window, flavour)?),
                None => return Err(not_a_capture(&[a, b, c, d])),
            },
            ref short => return Err(not_a_capture(short)),
        };
        Ok(Capture { window, format, finished: false })
    }

    /// The next packet, or `None` at the end. After an error there are no further packets.
    #[expect(
        clippy::should_implement_trait,
        reason = "a record borrows from the reader, which an iterator's item cannot"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.finished {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window),
        };
        match found {
            Ok(Some(found)) => Ok(Some(Record {
                data: self.window.taken(found.captured as usize),
                wire: found.wire.max(found.captured),
                time_ns: found.time_ns,
                link: found.link,
                interface: found.interface,
            })),
            Ok(None) => {
                self.finished = true;
                Ok(None)
            }
            Err(error) => {
                self.finished = true;
                Err(error)
            }
        }
    }
}

/// A record whose bytes the window has put aside.
struct Found {
    captured: u32,
    wire: u32,
    time_ns: u64,
    link: LinkType,
    interface: u32,
}

/// The byte order of a file or of a section of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The two bytes at `at`; 0 where there are none.
    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Order::Little => u16::from_le_bytes(raw),
            Order::Big => u16::from_be_bytes(raw),
        }
    }

    /// The four bytes at `at`; 0 where there are none.
    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Order::Little => u32::from_le_bytes(raw),
            Order::Big => u32::from_be_bytes(raw),
        }
    }
}

fn damaged(offset: u64, cause: Damage) -> CaptureError {
    CaptureError::Damaged { offset, cause }
}

fn not_a_capture(start: &[u8]) -> CaptureError {
    let found = if start.is_empty() {
        "nothing (it is empty)".to_owned()
    } else {
        let bytes: Vec<_> = start.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("the bytes {}", bytes.join(" "))
    };
    CaptureError::NotACapture { found }
}
