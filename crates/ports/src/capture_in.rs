//! The source that reads a capture as a stream, from a file or standard input, plain or compressed with gzip
//! or zstd.

use crate::ingress::Ingress;
use crate::{Receive, ReceiveError};
use captures::compressed::{Stream, uncompressed};
use captures::{Capture, CaptureError};
use packet::{Arena, BATCH, Batch, LinkType};
use std::fs::File;
use std::io;

/// Which link types are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CaptureLinks {
    /// Only Ethernet; a packet of another link type is an error.
    #[default]
    Ethernet,
    /// All, as they are.
    Any,
}

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

#[cfg(test)]
mod tests;
