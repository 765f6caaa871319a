//! The pcapng format: blocks, of which some give the byte order, some describe interfaces, and some hold
//! packets.
//!
//! ```text
//! any block                                        section header (type 0a0d0d0a), after the length
//!  0        4        8              n-4      n      +----------+-----+-----+----------------+---------+
//! +--------+--------+--------------+--------+      | 1a2b3c4d |major|minor| section length | options |
//! | type   |length n| body, padded |length n|      +----------+-----+-----+----------------+---------+
//! +--------+--------+--------------+--------+
//! interface description (1)                        enhanced packet (6)
//! +---------+-----+----------+---------+           +---------+---------+--------+--------+-------+------+---------+
//! |link type|  0  | snap len | options |           |interface|time high|time low|captured|on wire| data | options |
//! +---------+-----+----------+---------+           +---------+---------+--------+--------+-------+------+---------+
//! simple packet (3)                                packet (2, obsolete)
//! +--------+------+                                +---------+-----+---------+--------+--------+-------+------+---------+
//! |on wire | data |                                |interface|drops|time high|time low|captured|on wire| data | options |
//! +--------+------+                                +---------+-----+---------+--------+--------+-------+------+---------+
//! an option: code (2), length (2), value padded to 4; code 0 ends the list
//! ```
//!
//! Blocks of other types are skipped by their length, whatever it is
//! (<https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/>).

use super::timestamp::Clock;
use super::window::{LARGEST, Window};
use super::{CaptureError, Damage, Found, Order, damaged};
use packet::{LinkType, MAXIMUM_CAPTURED};
use std::io::Read;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Type and length at the start of a block.
const HEAD: usize = 8;
/// The length again at its end.
const TAIL: usize = 4;

/// The most interfaces of a section that are kept: far more than any machine has, and little memory.
const INTERFACES: usize = 65_536;

/// The code of the option that gives the unit of an interface's clock.
const IF_TSRESOL: u16 = 9;
/// The code of the option that gives the seconds to add to an interface's clock.
const IF_TSOFFSET: u16 = 14;

pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    /// The most bytes a packet was cut to; 0 for no limit.
    snap: u32,
    clock: Clock,
}

/// The head of a block.
#[derive(Clone, Copy)]
struct Block {
    kind: u32,
    length: u32,
    offset: u64,
}

/// Where the fields of a packet block are, counted from the start of the block. The obsolete kind has the
/// same fields in the same places; only its interface is half as wide, to make room for the count of drops.
const TIME: usize = 12;
const CAPTURED: usize = 20;
const DATA: usize = 28;

impl Pcapng {
    pub(super) fn open<R: Read>(window: &mut Window<R>) -> Result<Pcapng, CaptureError> {
        let mut pcapng = Pcapng { order: Order::Little, interfaces: Vec::new() };
        pcapng.section(window)?;
        Ok(pcapng)
    }

    #[inline]
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<Option<Found>, CaptureError> {
        loop {
            if window.fill(HEAD)? == 0 {
                return Ok(None);
            }
            window.need(HEAD, "block header")?;
            let kind = self.order.u32(window.peek(), 0);
            if kind == SECTION_HEADER {
                self.section(window)?;
                continue;
            }
            let block = Block { kind, length: self.order.u32(window.peek(), 4), offset: window.offset() };
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET => return self.packet(window, block).map(Some),
                SIMPLE_PACKET => return self.simple_packet(window, block).map(Some),
                INTERFACE_DESCRIPTION => self.interface(window, block)?,
                _ => self.skip(window, block)?,
            }
        }
    }

    /// Reads a section header, which sets the byte order and forgets the interfaces.
    fn section<R: Read>(&mut self, window: &mut Window<R>) -> Result<(), CaptureError> {
        let offset = window.offset();
        window.need(12, "section header")?;
        let mark = Order::Little.u32(window.peek(), 8);
        self.order = match mark {
            0x1a2b_3c4d => Order::Little,
            0x4d3c_2b1a => Order::Big,
            found => return Err(damaged(offset, Damage::ByteOrder { found })),
        };
        let block = Block { kind: SECTION_HEADER, length: self.order.u32(window.peek(), 4), offset };
        block.check_length(28)?;
        window.need(16, "section header")?;
        let (major, minor) = (self.order.u16(window.peek(), 12), self.order.u16(window.peek(), 14));
        if major != 1 {
            return Err(damaged(offset, Damage::Version { format: "pcapng", major, minor }));
        }
        self.interfaces.clear();
        self.skip(window, block)
    }

    fn interface<R: Read>(&mut self, window: &mut Window<R>, block: Block) -> Result<(), CaptureError> {
        self.hold(window, block, 20)?;
        if self.interfaces.len() >= INTERFACES {
            return Err(damaged(block.offset, Damage::TooManyInterfaces { limit: INTERFACES }));
        }
        let bytes = &window.peek()[..block.length as usize - TAIL];
        let mut interface = Interface {
            link: LinkType(self.order.u16(bytes, 8)),
            snap: self.order.u32(bytes, 12),
            clock: Clock::MICROSECONDS,
        };
        let (mut resolution, mut seconds) = (6, 0);
        let mut rest = &bytes[16..];
        while rest.len() >= 4 {
            let (code, length) = (self.order.u16(rest, 0), self.order.u16(rest, 2));
            if code == 0 {
                break;
            }
            let Some(value) = rest.get(4..4 + usize::from(length)) else {
                return Err(damaged(block.offset, Damage::OptionOutsideBlock { code, length }));
            };
            let wrong_length =
                |name, expected| damaged(block.offset, Damage::OptionLength { name, length, expected });
            match (code, value) {
                (IF_TSRESOL, &[value]) => resolution = value,
                (IF_TSRESOL, _) => return Err(wrong_length("if_tsresol", 1)),
                (IF_TSOFFSET, value) => {
                    let Ok(raw) = <[u8; 8]>::try_from(value) else {
                        return Err(wrong_length("if_tsoffset", 8));
                    };
                    seconds = match self.order {
                        Order::Little => i64::from_le_bytes(raw),
                        Order::Big => i64::from_be_bytes(raw),
                    };
                }
                _ => {}
            }
            rest = rest.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        }
        interface.clock = Clock::new(resolution, seconds);
        self.interfaces.push(interface);
        window.take(block.length as usize, 0);
        Ok(())
    }

    #[inline]
    fn packet<R: Read>(&mut self, window: &mut Window<R>, block: Block) -> Result<Found, CaptureError> {
        self.hold(window, block, (DATA + TAIL) as u32)?;
        let bytes = window.peek();
        let number = match block.kind {
            OBSOLETE_PACKET => u32::from(self.order.u16(bytes, 8)),
            _ => self.order.u32(bytes, 8),
        };
        let interface = self.described(block, number)?;
        let captured = self.order.u32(bytes, CAPTURED);
        block.check_captured(captured, block.length - (DATA + TAIL) as u32)?;
        let wire = self.order.u32(bytes, CAPTURED + 4);
        let high = self.order.u32(bytes, TIME);
        let count = u64::from(high) << 32 | u64::from(self.order.u32(bytes, TIME + 4));
        window.take(block.length as usize, DATA);
        Ok(Found {
            captured,
            wire,
            time_ns: interface.clock.nanoseconds(count),
            link: interface.link,
            interface: number,
        })
    }

    /// Reads a packet block that says neither its interface, which is the first, nor its time, nor how many
    /// bytes were captured: that follows from the snap length.
    fn simple_packet<R: Read>(
        &mut self,
        window: &mut Window<R>,
        block: Block,
    ) -> Result<Found, CaptureError> {
        const SIMPLE_DATA: u32 = 12;
        self.hold(window, block, SIMPLE_DATA + TAIL as u32)?;
        let interface = self.described(block, 0)?;
        let wire = self.order.u32(window.peek(), 8);
        let captured = if interface.snap == 0 { wire } else { wire.min(interface.snap) };
        block.check_captured(captured, block.length - SIMPLE_DATA - TAIL as u32)?;
        window.take(block.length as usize, SIMPLE_DATA as usize);
        Ok(Found { captured, wire, time_ns: 0, link: interface.link, interface: 0 })
    }

    /// Skips a block that has been recognised, however long it is.
    fn skip<R: Read>(&self, window: &mut Window<R>, block: Block) -> Result<(), CaptureError> {
        block.check_length((HEAD + TAIL) as u32)?;
        window.skip(u64::from(block.length) - TAIL as u64, block.offset, "block")?;
        let have = match window.fill(TAIL) {
            Err(CaptureError::Read { source, .. }) => {
                return Err(CaptureError::Read { offset: block.offset, source });
            }
            have => have?,
        };
        if have < TAIL {
            return Err(damaged(block.offset, Damage::Ends { part: "block", missing: (TAIL - have) as u64 }));
        }
        block.check_trailing(self.order.u32(window.peek(), 0))?;
        window.take(TAIL, 0);
        Ok(())
    }

    /// Makes a whole block be there and checks its two lengths.
    #[inline]
    fn hold<R: Read>(&self, window: &mut Window<R>, block: Block, least: u32) -> Result<(), CaptureError> {
        block.check_length(least)?;
        let length = block.length as usize;
        if length > LARGEST {
            return Err(damaged(
                block.offset,
                Damage::BlockTooLong { block: block.kind, length: block.length },
            ));
        }
        window.need(length, "block")?;
        block.check_trailing(self.order.u32(window.peek(), length - TAIL))
    }

    #[inline]
    fn described(&self, block: Block, number: u32) -> Result<Interface, CaptureError> {
        self.interfaces.get(number as usize).copied().ok_or_else(|| {
            let described = self.interfaces.len();
            damaged(block.offset, Damage::UnknownInterface { interface: number, described })
        })
    }
}

impl Block {
    #[inline]
    fn check_length(self, least: u32) -> Result<(), CaptureError> {
        if self.length < least || !self.length.is_multiple_of(4) {
            let cause = Damage::BlockLength { block: self.kind, length: self.length, least };
            return Err(damaged(self.offset, cause));
        }
        Ok(())
    }

    #[inline]
    fn check_trailing(self, trailing: u32) -> Result<(), CaptureError> {
        if trailing != self.length {
            let cause = Damage::TrailingLength { block: self.kind, length: self.length, trailing };
            return Err(damaged(self.offset, cause));
        }
        Ok(())
    }

    #[inline]
    fn check_captured(self, captured: u32, room: u32) -> Result<(), CaptureError> {
        if captured > room {
            return Err(damaged(self.offset, Damage::PacketOutsideBlock { captured, room }));
        }
        if captured > MAXIMUM_CAPTURED {
            return Err(damaged(self.offset, Damage::CapturedTooLong { captured }));
        }
        Ok(())
    }
}
