//! The source that reads a capture as a stream, from a file or standard input, plain or compressed with gzip
//! or zstd.

use crate::ingress::Ingress;
use crate::{Receive, ReceiveError};
use flate2::read::MultiGzDecoder;
use packet::Arena;
use packet::{BATCH, Batch, Capture, CaptureError, LinkType};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Which link types are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CaptureLinks {
    /// Only Ethernet; a packet of another link type is an error.
    #[default]
    Ethernet,
    /// All, as they are.
    Any,
}

/// The bytes of a capture, uncompressed.
pub type Stream = Box<dyn Read + Send>;

/// Why a capture cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// cannot open {name}: {source}
    #[error("cannot open {name}: {source}")]
    Open {
        /// The path of the capture, or "standard input".
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// {name}: {source}
    #[error("{name}: {source}")]
    Capture {
        /// The path of the capture, or "standard input".
        name: String,
        /// What is wrong with it.
        source: CaptureError,
    },
}

/// Packets of a capture, in order.
pub struct CaptureSource {
    name: String,
    capture: Capture<Stream>,
    links: CaptureLinks,
    ingress: Ingress,
    arena: Arena,
    received: u64,
    /// What went wrong behind the packets handed out last.
    failure: Option<ReceiveError>,
    ended: bool,
}

/// Opens the file at `path`, or standard input for `-`, and takes off a compression, which is recognised by
/// the first bytes.
pub fn open(path: &str) -> io::Result<Stream> {
    if path == "-" { uncompressed(io::stdin()) } else { uncompressed(File::open(path)?) }
}

/// The link type of the first packet of the capture at `path`; `None` if there is no packet that can be read.
pub fn first_link(path: &str) -> Option<LinkType> {
    let mut capture = Capture::open(open(path).ok()?).ok()?;
    Some(capture.next().ok()??.link)
}

/// Takes off a compression, which is recognised by the first bytes.
pub fn uncompressed(stream: impl Read + Send + 'static) -> io::Result<Stream> {
    let mut start = Vec::with_capacity(4);
    let mut stream = stream;
    // A pipe may give fewer than four bytes at once.
    (&mut stream).take(4).read_to_end(&mut start)?;
    let magic = <[u8; 4]>::try_from(&start[..]).unwrap_or_default();
    let whole = BufReader::with_capacity(128 << 10, io::Cursor::new(start).chain(stream));
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            Box::new(ZstdFrames { source: whole, decoder: FrameDecoder::new(), inside: false, damage: None })
        }
        _ => Box::new(whole),
    })
}

impl CaptureSource {
    /// Opens the capture at `path`, or standard input for `-`.
    pub fn open(path: &str, links: CaptureLinks, ingress: Ingress) -> Result<CaptureSource, OpenError> {
        let name = if path == "-" { "standard input" } else { path }.to_owned();
        match open(path) {
            Ok(stream) => CaptureSource::of_stream(name, stream, links, ingress),
            Err(source) => Err(OpenError::Open { name, source }),
        }
    }

    /// Reads a capture from a stream that is not compressed; `name` is for messages.
    pub fn of_stream(
        name: String,
        stream: Stream,
        links: CaptureLinks,
        ingress: Ingress,
    ) -> Result<CaptureSource, OpenError> {
        match Capture::open(stream) {
            Ok(capture) => {
                let arena = Arena::new();
                Ok(CaptureSource {
                    name,
                    capture,
                    links,
                    ingress,
                    arena,
                    received: 0,
                    failure: None,
                    ended: false,
                })
            }
            Err(source) => Err(OpenError::Capture { name, source }),
        }
    }

    /// Copies records into the arena until the batch is full, the capture ends or something is wrong.
    fn fill(&mut self, batch: &mut Batch) -> Result<(), ReceiveError> {
        while batch.len < BATCH && self.arena.has_room() {
            let record = match self.capture.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(source) => return Err(ReceiveError::Capture { name: self.name.clone(), source }),
            };
            if record.link != LinkType::ETHERNET && self.links == CaptureLinks::Ethernet {
                return Err(ReceiveError::LinkType {
                    name: self.name.clone(),
                    packet: self.received + 1,
                    interface: record.interface,
                    link: record.link,
                });
            }
            let port =
                self.ingress.of_interface(record.interface).map_err(|ports| ReceiveError::Interface {
                    name: self.name.clone(),
                    packet: self.received + 1,
                    interface: record.interface,
                    ports,
                })?;
            self.arena.push(batch, record.data, record.wire, record.time_ns);
            batch.port[batch.len - 1] = port;
            self.received += 1;
        }
        Ok(())
    }
}

impl Receive for CaptureSource {
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        batch.clear();
        self.arena.clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.ended {
            return Ok(self.arena.memory_mut());
        }
        if let Err(failure) = self.fill(batch) {
            self.ended = true;
            if batch.is_empty() {
                return Err(failure);
            }
            self.failure = Some(failure);
        }
        self.ingress.assign(self.arena.memory_mut(), batch);
        Ok(self.arena.memory_mut())
    }
}

/// The contents of all zstd frames of a stream, one after the other. Frames to be skipped (RFC 8878, section
/// 3.1.2) are.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
    /// What ended the data early; it is told behind everything that was decoded before.
    damage: Option<io::Error>,
}

/// A last block without content (RFC 8878, section 3.1.1.2), and room for a checksum. It ends a frame that
/// was cut off, and the decoder then hands out what it kept as its window.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.source, step) {
                    self.cut(broken_zstd(&error))?;
                }
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            match self.damage.take() {
                Some(damage) => return Err(damage),
                None => self.end_frame()?,
            }
        }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// Opens the next frame that holds something; says whether there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(broken_zstd(&error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame whose data end early, so that the whole blocks before are still handed out. What is
    /// damaged in another way is an error at once: what a damaged block has left in the decoder is not to be
    /// trusted.
    fn cut(&mut self, damage: io::Error) -> io::Result<()> {
        if damage.kind() != io::ErrorKind::UnexpectedEof {
            return Err(damage);
        }
        let end = self.decoder.decode_blocks(&END_OF_FRAME[..], BlockDecodingStrategy::All);
        end.map_err(|error| broken_zstd(&error))?;
        self.damage = Some(damage);
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.inside = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(said), Some(found)) if said != found => {
                let text = format!("the zstd checksum is {said:08x}, and the data has {found:08x}");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with zstd data, in words: the decoder's own errors name its parts and not the file.
fn broken_zstd(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(io.kind(), "the zstd data ends in the middle of a frame")
                }
                kind => io::Error::new(kind, io.to_string()),
            };
        }
        cause = error.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, "the zstd data is damaged")
}

#[cfg(test)]
mod tests;
