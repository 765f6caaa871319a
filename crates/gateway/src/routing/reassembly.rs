//! Reassembles fragmented packets for the gateway itself (RFC 791, 3.2; RFC 8200, 4.5).
//!
//! The pieces of a packet are kept by the place of their data. Since none of them overlap, a packet is whole
//! as soon as the lengths of its pieces add up to where the last one ends; no list of holes (RFC 815) is
//! needed. Where pieces do overlap, or contradict each other about the end, the packet is given up with all
//! that is still to come of it: RFC 5722 demands that of IPv6, and what is put together otherwise may be what
//! a filter has never seen.
//!
//! What waits is bounded in number, bytes and time, and each sender has a share; where there is no room the
//! oldest packet gives way.

use super::account::Fate;
use super::frame::{ETHERNET, ICMPV6, Ipv4, Ipv6, array, finish_ipv4};
use super::router::Packet;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// How long pieces wait for the others, in nanoseconds (RFC 1122, 3.3.2; RFC 8200, 4.5).
const PATIENCE: u64 = 60_000_000_000;
/// Packets of which pieces wait, and those of one sender.
const PACKETS: usize = 64;
const OF_SENDER: usize = 8;
/// Pieces of one packet: 65,535 bytes in pieces of 576 have 119.
const PIECES: usize = 128;
/// Bytes of all pieces, each with what it takes besides.
const BYTES: usize = 4 << 20;
const BESIDES: usize = 128;
/// The next header of a piece of IPv6 (RFC 8200, 4.5), and the length of what it stands for.
const FRAGMENT: u8 = 44;
const FRAGMENT_HEADER: usize = 8;
/// The longest that IP can say.
const LONGEST: usize = 65535;

/// What the pieces of one packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    /// Of IPv4; 0 for IPv6, whose numbers are the sender's for all protocols.
    protocol: u8,
    identification: u32,
}

/// One piece: where its data begins in the packet and in the frame, and how much that is.
#[derive(Clone, Debug)]
struct Piece {
    at: usize,
    begin: usize,
    length: usize,
    more: bool,
    packet: Packet,
}

impl Piece {
    fn data(&self) -> &[u8] {
        self.packet.bytes.get(self.begin..self.begin + self.length).unwrap_or_default()
    }

    fn end(&self) -> usize {
        self.at + self.length
    }

    fn bytes(&self) -> usize {
        self.packet.bytes.len() + BESIDES
    }
}

#[derive(Clone, Debug, Default)]
struct Partial {
    since: u64,
    number: u64,
    pieces: BTreeMap<usize, Piece>,
    /// Where the last piece ends.
    end: Option<usize>,
    /// Its pieces contradict each other.
    spoiled: bool,
}

/// What becomes of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// This is none.
    Other(Packet),
    /// It was the last: the whole packet, as if it had come so. It stands for that piece.
    Whole(Packet),
    /// So many pieces met a fate.
    Met(Fate, usize),
    /// The others never came; this is the first piece, whose sender may be told.
    Late(Packet),
}

/// All packets of which pieces wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    partial: HashMap<Key, Partial>,
    bytes: usize,
    count: u64,
}

impl Reassembly {
    /// Takes a packet for an own address.
    pub(crate) fn take(&mut self, packet: Packet, now: u64, joined: &mut Vec<Joined>) {
        let (key, piece) = match piece(packet) {
            Ok(Some(found)) => found,
            Ok(None) => return joined.push(Joined::Met(Fate::Malformed, 1)),
            Err(packet) => return joined.push(Joined::Other(packet)),
        };
        if piece.at == 0 && !piece.more {
            // It is the whole packet, whatever else waits under its name (RFC 6946).
            let alone = Partial { pieces: BTreeMap::from([(0, piece)]), ..Partial::default() };
            return joined.push(whole(alone).map_or(Joined::Met(Fate::Malformed, 1), Joined::Whole));
        }
        if !self.partial.contains_key(&key) {
            let of_sender = self.partial.keys().filter(|known| known.source == key.source).count();
            if of_sender >= OF_SENDER {
                self.displace(|known| known.source == key.source, joined);
            } else if self.partial.len() >= PACKETS {
                self.displace(|_| true, joined);
            }
            self.count += 1;
            let (since, number) = (now, self.count);
            self.partial.insert(key, Partial { since, number, ..Partial::default() });
        }
        let Some(partial) = self.partial.get_mut(&key) else { return };
        if partial.spoiled {
            return joined.push(Joined::Met(Fate::Overlapping, 1));
        }
        if partial
            .pieces
            .get(&piece.at)
            .is_some_and(|known| known.more == piece.more && known.data() == piece.data())
        {
            return joined.push(Joined::Met(Fate::Joined, 1));
        }
        if partial.contradicts(&piece) {
            let count = 1 + partial.pieces.len();
            self.bytes -= partial.pieces.values().map(Piece::bytes).sum::<usize>();
            (partial.pieces, partial.spoiled) = (BTreeMap::new(), true);
            return joined.push(Joined::Met(Fate::Overlapping, count));
        }
        if partial.pieces.len() >= PIECES {
            let count = 1 + self.remove(key).map_or(0, |partial| partial.pieces.len());
            return joined.push(Joined::Met(Fate::PiecesFull, count));
        }
        if !piece.more {
            partial.end = Some(piece.end());
        }
        self.bytes += piece.bytes();
        partial.pieces.insert(piece.at, piece);
        let length: usize = partial.pieces.values().map(|piece| piece.length).sum();
        if partial.end == Some(length) {
            let Some(partial) = self.remove(key) else { return };
            let count = partial.pieces.len();
            return match whole(partial) {
                Some(packet) => joined.extend([Joined::Met(Fate::Joined, count - 1), Joined::Whole(packet)]),
                None => joined.push(Joined::Met(Fate::Malformed, count)),
            };
        }
        while self.bytes > BYTES {
            self.displace(|_| true, joined);
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: u64, joined: &mut Vec<Joined>) {
        let late = self.partial.iter().filter(|(_, partial)| partial.since + PATIENCE <= now);
        let mut late: Vec<_> = late.map(|(key, partial)| (partial.number, *key)).collect();
        late.sort_unstable_by_key(|(number, _)| *number);
        for (_, key) in late {
            let Some(mut partial) = self.remove(key) else { continue };
            if !partial.pieces.is_empty() {
                joined.push(Joined::Met(Fate::PiecesMissing, partial.pieces.len()));
            }
            joined.extend(partial.pieces.remove(&0).map(|first| Joined::Late(first.packet)));
        }
    }

    /// When [`advance`](Reassembly::advance) is to be called next.
    pub(crate) fn due(&self) -> Option<u64> {
        self.partial.values().map(|partial| partial.since + PATIENCE).min()
    }

    /// How many pieces wait.
    pub(crate) fn waiting(&self) -> usize {
        self.partial.values().map(|partial| partial.pieces.len()).sum()
    }

    /// The oldest packet of these gives way.
    fn displace(&mut self, of: impl Fn(&Key) -> bool, joined: &mut Vec<Joined>) {
        let these = self.partial.iter().filter(|(key, _)| of(key));
        let oldest = these.min_by_key(|(_, partial)| partial.number).map(|(key, _)| *key);
        let Some(partial) = oldest.and_then(|key| self.remove(key)) else { return };
        if !partial.pieces.is_empty() {
            joined.push(Joined::Met(Fate::PiecesFull, partial.pieces.len()));
        }
    }

    fn remove(&mut self, key: Key) -> Option<Partial> {
        let partial = self.partial.remove(&key)?;
        self.bytes -= partial.pieces.values().map(Piece::bytes).sum::<usize>();
        Some(partial)
    }
}

impl Partial {
    /// Whether a piece overlaps another, or they do not agree about the end.
    fn contradicts(&self, piece: &Piece) -> bool {
        let last = self.pieces.values().next_back().map_or(0, Piece::end);
        let before =
            self.pieces.range(..=piece.at).next_back().is_some_and(|(_, known)| known.end() > piece.at);
        let behind = self.pieces.range(piece.at..).next().is_some_and(|(at, _)| *at < piece.end());
        let end = match (self.end, piece.more) {
            (Some(end), true) => piece.end() > end,
            (Some(_), false) => true,
            (None, true) => false,
            (None, false) => piece.end() < last,
        };
        before || behind || end
    }
}

/// Reads a piece. The packet itself if it is none; `None` for a piece that cannot be.
fn piece(packet: Packet) -> Result<Option<(Key, Piece)>, Packet> {
    let found = match (Ipv4::read(&packet.bytes), Ipv6::read(&packet.bytes)) {
        (Some(ip), _) if ip.piece => fields4(&ip),
        (_, Some(ip)) if ip.next == FRAGMENT => fields6(&ip),
        _ => return Err(packet),
    };
    let Some((key, word, begin, length, besides)) = found else { return Ok(None) };
    // The offset counts eight bytes; in IPv6 three bits of other use stand behind it.
    let (at, more) = (usize::from(word.0) * 8, word.1);
    if length == 0 || (more && length % 8 != 0) || at + length + besides > LONGEST {
        return Ok(None);
    }
    Ok(Some((key, Piece { at, begin, length, more, packet })))
}

/// What identifies a piece, its offset and whether more follow, where its data begins in the frame, how long
/// that is, and what counts besides.
type Fields = (Key, (u16, bool), usize, usize, usize);

fn fields4(ip: &Ipv4<'_>) -> Option<Fields> {
    let (identification, word) = (array::<2>(ip.bytes, 4)?, u16::from_be_bytes(array(ip.bytes, 6)?));
    let header = ip.bytes.len() - ip.payload.len();
    let key = Key {
        source: ip.source.into(),
        destination: ip.destination.into(),
        protocol: ip.protocol,
        identification: u16::from_be_bytes(identification).into(),
    };
    Some((key, (word & 0x1fff, word & 0x2000 != 0), ETHERNET + header, ip.payload.len(), header))
}

fn fields6(ip: &Ipv6<'_>) -> Option<Fields> {
    let word = u16::from_be_bytes(array(ip.payload, 2)?);
    let key = Key {
        source: ip.source.into(),
        destination: ip.destination.into(),
        protocol: 0,
        identification: u32::from_be_bytes(array(ip.payload, 4)?),
    };
    let headers = ip.bytes.len() - ip.payload.len() + FRAGMENT_HEADER;
    Some((key, (word >> 3, word & 1 != 0), ETHERNET + headers, ip.payload.len() - FRAGMENT_HEADER, 0))
}

/// The packet that its pieces are parts of, with the headers of the first. `None` where it would be longer
/// than IP can say, or must not come in pieces.
fn whole(partial: Partial) -> Option<Packet> {
    let mut pieces = partial.pieces.into_values();
    let Piece { packet: first, begin, length, .. } = pieces.next()?;
    let Packet { port, mut bytes, virtio } = first;
    bytes.truncate(begin + length);
    let six = bytes[12..14] == [0x86, 0xdd];
    if six {
        let next = bytes[begin - FRAGMENT_HEADER];
        // Messages of neighbour discovery are never in pieces (RFC 6980).
        if next == ICMPV6 && matches!(bytes.get(begin), Some(133..=137)) {
            return None;
        }
        bytes.drain(begin - FRAGMENT_HEADER..begin);
        bytes[ETHERNET + 6] = next;
    }
    pieces.for_each(|piece| bytes.extend_from_slice(piece.data()));
    if six {
        let length = u16::try_from(bytes.len() - ETHERNET - 40).ok()?;
        bytes[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&length.to_be_bytes());
    } else {
        let total = u16::try_from(bytes.len() - ETHERNET).ok()?;
        let header = &mut bytes[ETHERNET..begin];
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[6..8].fill(0);
        finish_ipv4(header);
    }
    Some(Packet { port, bytes, virtio })
}

#[cfg(test)]
mod tests;
