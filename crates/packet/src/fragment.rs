//! IPv4 fragmentation: cuts one packet into several that fit an MTU (RFC 791, sections 2.3 and 3.2).
//!
//! ```text
//! | before | header, options | data 0 .. a | data a .. b | data b .. end | behind the total length |
//! | before | header, options | data 0 .. a |                                  first: all options, MF
//! | before | header, copied options | data a .. b |                           then: options whose copied bit is set, MF
//! | before | header, copied options | data b .. end |                         last: MF as it was
//! ```
//!
//! Every piece but the last holds a multiple of eight bytes of data, since offsets count eight bytes. What
//! lies behind the total length (the padding of short Ethernet frames) goes with no piece. Of a packet that
//! was not captured whole, each piece has the captured bytes it would have got.

use crate::checksum::{folded, sum};

/// The smallest MTU that packets can be cut to: the longest header and eight bytes (RFC 791: "every internet
/// module must be able to forward a datagram of 68 octets without further fragmentation").
pub const SMALLEST_MTU: u32 = 68;

/// How a packet is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragmenting {
    /// Where its IPv4 header begins, in bytes from the packet's first.
    pub at: u32,
    /// The longest total length a piece may have, in bytes; less than [`SMALLEST_MTU`] counts as that.
    pub mtu: u32,
}

/// The pieces of a packet that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    at: usize,
    /// Lengths of the first header and of the later ones.
    headers: [usize; 2],
    /// Data in the first piece and in each of the later ones; the last may have less.
    steps: [usize; 2],
    data: usize,
    /// The first word of flags and offset.
    offset: u16,
}

/// The bits of the word of flags and offset that hold the offset.
const OFFSET: u16 = 0x1fff;
/// More fragments follow.
const MORE: u16 = 0x2000;
/// The option that ends the list, and fills it up.
const END: u8 = 0;
/// The option that says nothing.
const NOTHING: u8 = 1;
/// The bit of an option's kind that lets every fragment carry it.
const COPIED: u8 = 0x80;

impl Pieces {
    /// How a packet of these captured bytes and this length on the wire is cut; `None` if it fits as it is or
    /// if no IPv4 header that could be repeated was captured there.
    pub fn of(bytes: &[u8], wire: u32, fragmenting: Fragmenting) -> Option<Pieces> {
        let at = fragmenting.at as usize;
        let ip = bytes.get(at..)?;
        let first = *ip.first()?;
        let header = usize::from(first & 15) * 4;
        if first >> 4 != 4 || header < 20 || ip.len() < header {
            return None;
        }
        let total = usize::from(word(ip, 2)).min((wire as usize).saturating_sub(at));
        let mtu = fragmenting.mtu.max(SMALLEST_MTU) as usize;
        if total <= mtu || total <= header {
            return None;
        }
        let copied: usize = copied_options(&ip[20..header]).map(<[u8]>::len).sum();
        let later = 20 + copied.next_multiple_of(4);
        let pieces = Pieces {
            at,
            headers: [header, later],
            steps: [(mtu - header) / 8 * 8, (mtu - later) / 8 * 8],
            data: total - header,
            offset: word(ip, 6),
        };
        let last = pieces.range(pieces.count() - 1).0;
        (usize::from(pieces.offset & OFFSET) + last / 8 <= usize::from(OFFSET)).then_some(pieces)
    }

    /// How many there are: at least two.
    pub fn count(&self) -> usize {
        1 + (self.data - self.steps[0]).div_ceil(self.steps[1])
    }

    /// The sum of their lengths on the wire, in bytes.
    pub fn wire(&self) -> u64 {
        let later = self.count() - 1;
        ((self.at + self.headers[0]) + later * (self.at + self.headers[1]) + self.data) as u64
    }

    /// Puts the captured bytes of a piece in place of what `piece` holds, and returns the piece's length on
    /// the wire. `bytes` are those that the pieces were made for.
    pub fn write(&self, bytes: &[u8], index: usize, piece: &mut Vec<u8>) -> u32 {
        piece.clear();
        let (from, to) = self.range(index);
        let ip = bytes.get(self.at..).unwrap_or_default();
        let (first, last) = (index == 0, to == self.data);
        let header = self.headers[usize::from(!first)];
        piece.extend_from_slice(&bytes[..self.at.min(bytes.len())]);
        if first {
            piece.extend_from_slice(ip.get(..header).unwrap_or_default());
        } else {
            piece.extend_from_slice(ip.get(..20).unwrap_or_default());
            for option in copied_options(ip.get(20..self.headers[0]).unwrap_or_default()) {
                piece.extend_from_slice(option);
            }
            piece.resize(self.at + header, END);
        }
        if let Some(written) = piece.get_mut(self.at..self.at + header) {
            written[0] = 4 << 4 | (header / 4) as u8;
            written[2..4].copy_from_slice(&((header + to - from) as u16).to_be_bytes());
            let more = if last { 0 } else { MORE };
            let offset = (self.offset & OFFSET) + (from / 8) as u16;
            written[6..8].copy_from_slice(&(self.offset & !OFFSET | more | offset).to_be_bytes());
            written[10..12].fill(0);
            let check = with_error(!sum(written), sum(ip.get(..self.headers[0]).unwrap_or_default()));
            written[10..12].copy_from_slice(&check.to_be_bytes());
        }
        let data = ip.get(self.headers[0]..).unwrap_or_default();
        piece.extend_from_slice(&data[from.min(data.len())..to.min(data.len())]);
        (self.at + header + to - from) as u32
    }

    /// The data of a piece: its first byte and the one behind its last.
    fn range(&self, index: usize) -> (usize, usize) {
        let start = |index: usize| match index {
            0 => 0,
            _ => (self.steps[0] + (index - 1) * self.steps[1]).min(self.data),
        };
        (start(index), start(index + 1))
    }
}

/// The options that every fragment carries: those whose first bit is set. Options that make no sense end the
/// list.
fn copied_options(options: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = options;
    let all = std::iter::from_fn(move || {
        let length = match *left.first()? {
            END => return None,
            NOTHING => 1,
            _ => left.get(1).copied().filter(|length| *length >= 2)?.into(),
        };
        let (option, rest) = left.split_at_checked(length)?;
        left = rest;
        Some(option)
    });
    all.filter(|option| option[0] & COPIED != 0)
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// A right checksum, made as wrong as that of a header with this sum: what damaged the packet on its way
/// shows in every piece.
fn with_error(check: u16, sum: u16) -> u16 {
    if sum == 0xffff { check } else { folded(u64::from(check) + u64::from(sum)) }
}

#[cfg(test)]
mod tests;
