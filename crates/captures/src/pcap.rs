//! The pcap format: a file header, then records.
//!
//! ```text
//! file header (24 bytes)                          record
//!  0        4        8                            0        4        8        12       16
//! +--------+----+----+--------+--------+          +--------+--------+--------+--------+----------------+
//! | magic  |maj.|min.|      0 |      0 |          | seconds| part   |captured|on wire | captured bytes |
//! +--------+----+----+--------+--------+          +--------+--------+--------+--------+----------------+
//! |snap len|link type|                            the "modified" format of A. Kuznetzov has 8 bytes more
//! +--------+---------+                            in a record's header: interface (4), protocol (2), type (1), 0
//! ```
//!
//! The magic number tells the byte order and the flavour: a1b2c3d4 counts microseconds, a1b23c4d nanoseconds,
//! and a1b2cd34 is the modified format. Files before version 2.3 have the two lengths the other way round,
//! those of 2.3 either way (<https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/>).

use super::window::Window;
use super::{CaptureError, Damage, Found, Order, damaged};
use packet::{LinkType, MAXIMUM_CAPTURED};
use std::io::Read;

const FILE_HEADER: usize = 24;

/// What the magic number tells.
pub(super) struct Flavour {
    order: Order,
    /// How many nanoseconds the unit of the part of a second is.
    unit: u64,
    record_header: usize,
}

impl Flavour {
    /// The flavour with this magic number.
    pub(super) fn of(magic: [u8; 4]) -> Option<Flavour> {
        let known = |order, magic| {
            let (unit, record_header) = match magic {
                0xa1b2_c3d4 => (1_000, 16),
                0xa1b2_3c4d => (1, 16),
                0xa1b2_cd34 => (1_000, 24),
                _ => return None,
            };
            Some(Flavour { order, unit, record_header })
        };
        known(Order::Little, u32::from_le_bytes(magic))
            .or_else(|| known(Order::Big, u32::from_be_bytes(magic)))
    }
}

pub(super) struct Pcap {
    flavour: Flavour,
    lengths: Lengths,
    link: LinkType,
}

/// Which of the two lengths of a record comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    SmallerIsCaptured,
}

impl Pcap {
    pub(super) fn open<R: Read>(window: &mut Window<R>, flavour: Flavour) -> Result<Pcap, CaptureError> {
        window.need(FILE_HEADER, "file header")?;
        let header = window.peek();
        let (major, minor) = (flavour.order.u16(header, 4), flavour.order.u16(header, 6));
        let lengths = match (major, minor) {
            (2, 0..=2) => Lengths::WireFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            (2, 4..) => Lengths::CapturedFirst,
            _ => return Err(damaged(0, Damage::Version { format: "pcap", major, minor })),
        };
        // The upper half says how many check bytes the frames end with, if any.
        let link = LinkType(flavour.order.u32(header, 20) as u16);
        window.take(FILE_HEADER, 0);
        Ok(Pcap { flavour, lengths, link })
    }

    #[inline]
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<Option<Found>, CaptureError> {
        let Flavour { order, unit, record_header } = self.flavour;
        if window.fill(record_header)? == 0 {
            return Ok(None);
        }
        window.need(record_header, "record header")?;
        let header = window.peek();
        let (seconds, part) = (order.u32(header, 0), order.u32(header, 4));
        let (first, second) = (order.u32(header, 8), order.u32(header, 12));
        let (captured, wire) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        if captured > MAXIMUM_CAPTURED {
            return Err(damaged(window.offset(), Damage::CapturedTooLong { captured }));
        }
        let length = record_header + captured as usize;
        window.need(length, "record")?;
        window.take(length, record_header);
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(part) * unit;
        Ok(Some(Found { captured, wire, time_ns, link: self.link, interface: 0 }))
    }
}
