//! Writes captures: pcapng with named interfaces and comments, and classic pcap; both count nanoseconds and
//! are little endian.
//!
//! ```text
//! pcapng:  section header | interface description, one an interface | enhanced packet, one a packet
//! pcap:    file header    | record, one a packet
//! ```
//!
//! The blocks and records are drawn where they are read: `pcapng.rs` and `pcap.rs` beside this file.

use packet::LinkType;
use std::io::{self, Write};

/// The code of a comment, in any block.
const OPT_COMMENT: u16 = 1;
/// The code of the flags of a packet, of which the lowest two are its direction.
const EPB_FLAGS: u16 = 2;
/// The code of the name of the writing program, in a section header.
const SHB_USERAPPL: u16 = 4;
/// The code of an interface's name.
const IF_NAME: u16 = 2;
/// The code of the unit of an interface's clock.
const IF_TSRESOL: u16 = 9;

/// An interface of a capture to be written.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name, as programs that show the capture print it.
    pub name: &'a str,
    /// What its frames start with.
    pub link: LinkType,
}

/// Which way a packet passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It came in.
    In,
    /// It left.
    Out,
}

/// What is written beside a packet; nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureRemarks<'a> {
    /// Which way it passed.
    pub direction: Option<Direction>,
    /// What is shown beside it.
    pub comment: Option<&'a str>,
}

/// Writes a capture in pcapng format.
pub struct PcapngWriter<W> {
    write: W,
    written: u64,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture of these interfaces, which packets name by their place in the list.
    pub fn new(write: W, interfaces: &[Interface<'_>]) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter { write, written: 0, interfaces: 0, block: Vec::with_capacity(2048) };
        writer.start(0x0a0d_0d0a);
        writer.u32(0x1a2b_3c4d);
        writer.u32(1); // version 1.0: two bytes major, two minor
        writer.u32(u32::MAX); // the length of the section is not given: eight bytes of ones
        writer.u32(u32::MAX);
        writer.option(SHB_USERAPPL, b"Ravelin");
        writer.end_of_options();
        writer.end()?;
        for interface in interfaces {
            writer.interface(*interface)?;
        }
        Ok(writer)
    }

    /// Writes a packet. `interface` is its place in the list given at the start; `comment` is shown beside
    /// the packet.
    pub fn write(
        &mut self,
        interface: u32,
        time_ns: u64,
        wire: u32,
        data: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.write_with(interface, time_ns, wire, data, CaptureRemarks { comment, direction: None })
    }

    /// Writes a packet as [`write`](PcapngWriter::write) does, with more to say about it.
    pub fn write_with(
        &mut self,
        interface: u32,
        time_ns: u64,
        wire: u32,
        data: &[u8],
        remarks: CaptureRemarks<'_>,
    ) -> io::Result<()> {
        if interface >= self.interfaces {
            let text = format!(
                "the capture has {} interfaces, and the packet is of number {interface}",
                self.interfaces
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let captured = captured_length(data)?;
        self.start(6);
        self.u32(interface);
        self.u32((time_ns >> 32) as u32);
        self.u32(time_ns as u32);
        self.u32(captured);
        self.u32(wire.max(captured));
        self.padded(data);
        if let Some(comment) = remarks.comment {
            self.option(OPT_COMMENT, comment.as_bytes());
        }
        if let Some(direction) = remarks.direction {
            let flags = match direction {
                Direction::In => 1u32,
                Direction::Out => 2,
            };
            self.option(EPB_FLAGS, &flags.to_le_bytes());
        }
        if remarks.comment.is_some() || remarks.direction.is_some() {
            self.end_of_options();
        }
        self.end()
    }

    /// How many bytes the capture has so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Hands everything to the stream and makes that hand it on.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write.flush()
    }

    /// Ends the capture and gives the stream back, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.write.flush()?;
        Ok(self.write)
    }

    fn interface(&mut self, interface: Interface<'_>) -> io::Result<()> {
        self.start(1);
        self.u32(u32::from(interface.link.0));
        self.u32(packet::MAXIMUM_CAPTURED);
        self.option(IF_NAME, interface.name.as_bytes());
        self.option(IF_TSRESOL, &[9]);
        self.end_of_options();
        self.interfaces += 1;
        self.end()
    }

    fn start(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0);
    }

    /// Puts the length into both ends of the block and writes it.
    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() + 4) as u32;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.written += u64::from(length);
        self.write.write_all(&self.block)
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn padded(&mut self, data: &[u8]) {
        self.block.extend_from_slice(data);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Appends an option; a longer value than fits is cut, at the start of a character.
    fn option(&mut self, code: u16, value: &[u8]) {
        let mut length = value.len().min(usize::from(u16::MAX));
        while length < value.len() && length > 0 && value[length] & 0xc0 == 0x80 {
            length -= 1;
        }
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(length as u16).to_le_bytes());
        self.padded(&value[..length]);
    }

    fn end_of_options(&mut self) {
        self.u32(0);
    }
}

/// Writes a capture in classic pcap format, with nanoseconds.
pub struct PcapWriter<W> {
    write: W,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a capture of frames of one link type.
    pub fn new(mut write: W, link: LinkType) -> io::Result<PcapWriter<W>> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        header[4..6].copy_from_slice(&2_u16.to_le_bytes());
        header[6..8].copy_from_slice(&4_u16.to_le_bytes());
        header[16..20].copy_from_slice(&packet::MAXIMUM_CAPTURED.to_le_bytes());
        header[20..24].copy_from_slice(&u32::from(link.0).to_le_bytes());
        write.write_all(&header)?;
        Ok(PcapWriter { write })
    }

    /// Writes a packet. The format counts seconds in 32 bits; a later time (after 2106) is an error.
    pub fn write(&mut self, time_ns: u64, wire: u32, data: &[u8]) -> io::Result<()> {
        let captured = captured_length(data)?;
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| {
            let text = "pcap has no times after the year 2106; write pcapng instead";
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&captured.to_le_bytes());
        header[12..].copy_from_slice(&wire.max(captured).to_le_bytes());
        self.write.write_all(&header)?;
        self.write.write_all(data)
    }

    /// Ends the capture and gives the stream back, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.write.flush()?;
        Ok(self.write)
    }
}

/// The length of the bytes, if readers take so many.
fn captured_length(data: &[u8]) -> io::Result<u32> {
    match u32::try_from(data.len()) {
        Ok(captured) if captured <= packet::MAXIMUM_CAPTURED => Ok(captured),
        _ => {
            let text = format!(
                "a packet of {} bytes; a capture takes at most {}",
                data.len(),
                packet::MAXIMUM_CAPTURED
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}
