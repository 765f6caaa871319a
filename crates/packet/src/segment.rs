//! Long segments of TCP and UDP: cutting one into the packets that a network card would make of it, and
//! joining such packets again.
//!
//! ```text
//! | Ethernet, IP, TCP | data 0 .. size | data size .. 2 size | … | rest |
//! | headers 1 | data 0 .. size |   | headers 2 | data size .. 2 size |   …   | headers n | rest |
//!   IP: length and checksum of the piece, identification counted on      TCP: sequence number counted on, FIN and PSH only in the last, CWR only in
//!   the first, checksum of the piece                                      UDP: length and checksum of the piece
//! ```
//!
//! Packets are joined only if cutting the result gives the same packets again, byte for byte: consecutive,
//! with the same headers otherwise, right checksums, and all of one size but the last, which may be shorter.
//! What a program or a capture sees of a segment is then the same on both sides.

use crate::checksum::{folded, sum};
use crate::virtio_header::{SegmentKind, VirtioHeader, ip_header, protocol_at};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bits of TCP's flags.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// The longest packet of IP, and so the longest that is joined, without its Ethernet header.
const LONGEST: usize = 0xffff;
/// A packet with less data than this is not worth joining others to, in bytes.
const WORTHWHILE: usize = 256;
/// The least data of TCP in a packet but the last, in bytes: Linux takes no segment size below 48 from the
/// other host (TCP_MIN_SND_MSS), of which options have 40 at most, and counts on it (TCP_MIN_GSO_SIZE). A
/// segment of 64 KiB that says less would become tens of thousands of packets.
const LEAST_TCP: usize = 8;
/// The most datagrams that Linux takes as one (UDP_MAX_SEGMENTS).
const MOST_UDP: usize = 128;

/// Where the headers of a TCP or UDP packet lie, and where its data ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Headers {
    ip: usize,
    transport: usize,
    data: usize,
    end: usize,
    protocol: u8,
}

impl Headers {
    /// Those of a frame whose transport header is at `transport`, or directly behind the IP header without
    /// options.
    fn of(frame: &[u8], transport: Option<usize>) -> Option<Headers> {
        let ip = ip_header(frame)?;
        let four = frame[ip] >> 4 == 4;
        let transport = transport.unwrap_or(ip + if four { 20 } else { 40 });
        let protocol = protocol_at(frame, transport)?;
        let total = match four {
            true => usize::from(pair(frame, ip + 2)?),
            false => 40 + usize::from(pair(frame, ip + 4)?),
        };
        // A longer packet than the field can tell of says nothing there (RFC 2675 for IPv6; hosts do it with
        // IPv4, too).
        let end = if total == if four { 0 } else { 40 } { frame.len() } else { ip + total };
        let data = match protocol {
            TCP => transport + 4 * usize::from(frame.get(transport + 12)? >> 4),
            UDP => transport + 8,
            _ => return None,
        };
        let least = transport + if protocol == TCP { 20 } else { 8 };
        (least <= data && data <= end && end <= frame.len()).then_some(Headers {
            ip,
            transport,
            data,
            end,
            protocol,
        })
    }

    fn is_ipv4(&self, frame: &[u8]) -> bool {
        frame[self.ip] >> 4 == 4
    }

    /// Where the checksum of TCP or UDP stands.
    fn field(&self) -> usize {
        self.transport + if self.protocol == TCP { 16 } else { 6 }
    }

    /// Writes the lengths for a frame of `length` bytes, and the checksum of IP.
    fn write_lengths(&self, frame: &mut [u8], length: usize) {
        if self.protocol == UDP {
            put(frame, self.transport + 4, (length - self.transport) as u16);
        }
        if self.is_ipv4(frame) {
            put(frame, self.ip + 2, (length - self.ip) as u16);
            put(frame, self.ip + 10, 0);
            let header = self.ip..self.ip + 4 * usize::from(frame[self.ip] & 15);
            let right = !sum(&frame[header]);
            put(frame, self.ip + 10, right);
        } else {
            put(frame, self.ip + 4, (length - self.ip - 40) as u16);
        }
    }

    /// The sum of the pseudo header of a frame of `length` bytes.
    fn pseudo_header(&self, frame: &[u8], length: usize) -> u16 {
        let addresses =
            if self.is_ipv4(frame) { self.ip + 12..self.ip + 20 } else { self.ip + 8..self.ip + 40 };
        let rest = (length - self.transport) as u64 + u64::from(self.protocol);
        folded(u64::from(sum(&frame[addresses])) + rest)
    }

    /// The sum over pseudo header, header and data of a frame; 0xffff if its checksum is right.
    fn sum(&self, frame: &[u8]) -> u16 {
        let pseudo = self.pseudo_header(frame, frame.len());
        folded(u64::from(pseudo) + u64::from(sum(&frame[self.transport..])))
    }
}

fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn sequence(frame: &[u8], transport: usize) -> u32 {
    let at = transport + 4;
    u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The packets that a long segment is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    headers: Headers,
    /// Bytes of data in each but the last.
    size: usize,
    count: usize,
}

impl Segments {
    /// How a frame is cut of which that is left to do; `None` if it is not to be cut, or nobody could, or
    /// into more packets than any kernel would make.
    pub fn of(frame: &[u8], virtio: &VirtioHeader) -> Option<Segments> {
        let (kind, size) = virtio.cutting()?;
        let headers = Headers::of(frame, virtio.transport())?;
        let protocol = match kind {
            SegmentKind::Tcp => TCP,
            SegmentKind::Udp => UDP,
        };
        let longest = headers.data - headers.ip + size;
        if headers.protocol != protocol || size == 0 || longest > LONGEST {
            return None;
        }
        let count = (headers.end - headers.data).div_ceil(size).max(1);
        let too_many = match kind {
            SegmentKind::Tcp => size < LEAST_TCP,
            SegmentKind::Udp => count > MOST_UDP,
        };
        if too_many {
            return None;
        }
        Some(Segments { headers, size, count })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The sum of their lengths, headers included, in bytes.
    pub fn wire_bytes(&self) -> u64 {
        let Headers { data, end, .. } = self.headers;
        (self.count * data + end - data) as u64
    }

    /// Whether the packets have the checksum of IP that the frame has, or would have if it were as long: what
    /// cuts puts a right one into each, whatever the frame says.
    pub fn is_headed_right(&self, frame: &[u8]) -> bool {
        let Headers { ip, .. } = self.headers;
        !self.headers.is_ipv4(frame)
            || frame.get(ip..ip + 4 * usize::from(frame[ip] & 15)).is_some_and(|header| sum(header) == 0xffff)
    }

    /// The length of one of them, headers included.
    pub fn length(&self, index: usize) -> usize {
        let Headers { data, end, .. } = self.headers;
        let start = (data + index * self.size).min(end);
        data + self.size.min(end - start)
    }

    /// Writes one of them into `piece`, which has its [`length`](Segments::length).
    ///
    /// # Panics
    /// The frame is another one, or `piece` too short.
    pub fn write(&self, frame: &[u8], index: usize, piece: &mut [u8]) {
        self.write_open(frame, index, piece).complete(&mut piece[..self.length(index)]);
    }

    /// Writes one of them as [`write`](Segments::write) does, but leaves its checksum open; returns what is
    /// left to do with it.
    ///
    /// # Panics
    /// The frame is another one, or `piece` too short.
    pub fn write_open(&self, frame: &[u8], index: usize, piece: &mut [u8]) -> VirtioHeader {
        let headers = self.headers;
        let (length, start) = (self.length(index), headers.data + index * self.size);
        piece[..headers.data].copy_from_slice(&frame[..headers.data]);
        piece[headers.data..length].copy_from_slice(&frame[start..start + length - headers.data]);
        let piece = &mut piece[..length];
        if headers.is_ipv4(piece) {
            let counted = pair(frame, headers.ip + 4).unwrap_or_default().wrapping_add(index as u16);
            put(piece, headers.ip + 4, counted);
        }
        if headers.protocol == TCP {
            let counted = sequence(frame, headers.transport).wrapping_add((index * self.size) as u32);
            piece[headers.transport + 4..headers.transport + 8].copy_from_slice(&counted.to_be_bytes());
            let flags = &mut piece[headers.transport + 13];
            if index + 1 < self.count {
                *flags &= !(FIN | PSH);
            }
            if index > 0 {
                *flags &= !CWR;
            }
        }
        headers.write_lengths(piece, length);
        let field = headers.field();
        // Zero says that there is none (RFC 768).
        if headers.protocol == UDP && piece[field..field + 2] == [0, 0] {
            return VirtioHeader::NONE;
        }
        put(piece, field, headers.pseudo_header(piece, length));
        VirtioHeader::of_open(headers.transport, field - headers.transport)
    }
}

/// A segment that packets are being joined to.
#[derive(Debug, Default)]
pub struct Joined {
    bytes: Vec<u8>,
    /// Where the headers of the first packet lie, how much data it has, and how many there are.
    first: Option<(Headers, usize)>,
    count: usize,
    /// What is left to do with the first while it is alone.
    alone: VirtioHeader,
    /// The last one was the last that could be.
    closed: bool,
}

impl Joined {
    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many packets are there.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether nothing can be joined to it any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Begins with a packet, if that is one that others can be joined to; says whether it did. `virtio` is
    /// what is left to do with it. What was there goes.
    pub fn begin(&mut self, frame: &[u8], virtio: VirtioHeader) -> bool {
        self.clear();
        let Some(headers) = joinable(frame, virtio) else { return false };
        let size = headers.end - headers.data;
        if size < WORTHWHILE || flags(frame, &headers) & PSH != 0 {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        (self.first, self.count, self.alone) = (Some((headers, size)), 1, virtio);
        true
    }

    /// Joins a packet to those that are there, if it follows them; says whether it did. `virtio` is what is
    /// left to do with it.
    pub fn join(&mut self, frame: &[u8], virtio: VirtioHeader) -> bool {
        let Some((headers, size)) = self.first.filter(|_| !self.closed) else { return false };
        if !same_headers(&self.bytes, frame, &headers) {
            return false;
        }
        let Some(next) = joinable(frame, virtio) else { return false };
        let data = next.end - next.data;
        let begun = self.bytes.len() - headers.data;
        let follows = sequence(frame, next.transport)
            == sequence(&self.bytes, headers.transport).wrapping_add(begun as u32)
            && (!headers.is_ipv4(frame)
                || pair(frame, next.ip + 4)
                    == pair(&self.bytes, headers.ip + 4).map(|first| first.wrapping_add(self.count as u16)));
        if next != (Headers { end: next.end, ..headers })
            || data > size
            || !follows
            || self.bytes.len() + data - headers.ip > LONGEST
        {
            return false;
        }
        self.bytes.extend_from_slice(&frame[next.data..]);
        self.count += 1;
        let pushed = flags(frame, &next) & PSH;
        self.bytes[headers.transport + 13] |= pushed;
        self.closed = pushed != 0 || data < size;
        true
    }

    /// What has become of them: one frame, and what is left to do with it. Nothing if nothing was begun.
    pub fn finish(&mut self) -> Option<(&[u8], VirtioHeader)> {
        let (headers, size) = self.first?;
        if self.count == 1 {
            return Some((&self.bytes, self.alone));
        }
        let length = self.bytes.len();
        headers.write_lengths(&mut self.bytes, length);
        let pseudo = headers.pseudo_header(&self.bytes, length);
        put(&mut self.bytes, headers.field(), pseudo);
        let six = !headers.is_ipv4(&self.bytes);
        Some((&self.bytes, VirtioHeader::of_tcp(six, headers.transport, headers.data, size)))
    }

    /// Forgets what is there.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.first, self.count, self.closed) = (None, 0, false);
    }
}

fn flags(frame: &[u8], headers: &Headers) -> u8 {
    frame[headers.transport + 13]
}

/// The headers of a packet that may be joined to others: TCP with data in one piece, nothing behind it, and
/// right checksums. An open one is right if it is the sum of the pseudo header.
fn joinable(frame: &[u8], virtio: VirtioHeader) -> Option<Headers> {
    const FRAGMENT: u16 = 0x3fff;
    let headers = Headers::of(frame, None)?;
    let four = headers.is_ipv4(frame);
    let plain = headers.protocol == TCP
        && headers.end == frame.len()
        && headers.end > headers.data
        && flags(frame, &headers) & !PSH == ACK
        && (!four || pair(frame, headers.ip + 6)? & FRAGMENT == 0);
    let right = |sum: u16| sum == 0xffff;
    let of_data = || match virtio.transport() {
        None => right(headers.sum(frame)),
        Some(_) => {
            let (transport, field) = (headers.transport, headers.field());
            virtio == VirtioHeader::of_open(transport, field - transport)
                && pair(frame, field) == Some(headers.pseudo_header(frame, frame.len()))
        }
    };
    (plain && (!four || right(sum(&frame[headers.ip..headers.transport]))) && of_data()).then_some(headers)
}

/// Whether two packets have the same headers but for what counts on from one to the next. The second may be
/// shorter than its headers.
fn same_headers(first: &[u8], second: &[u8], headers: &Headers) -> bool {
    let Headers { ip, transport, data, .. } = *headers;
    if second.len() <= data {
        return false;
    }
    let same = |range: std::ops::Range<usize>| first[range.clone()] == second[range];
    // Behind the kind of service come length and identification of IPv4, behind the flow the length of IPv6;
    // then what must be the same again.
    let network = match headers.is_ipv4(first) {
        true => same(0..ip + 2) && same(ip + 6..ip + 10) && same(ip + 12..transport),
        false => same(0..ip + 4) && same(ip + 6..transport),
    };
    let (flags, sum) = (transport + 13, transport + 16);
    network
        && same(transport..transport + 4)
        && same(transport + 8..flags)
        && first[flags] | PSH == second[flags] | PSH
        && same(flags + 1..sum)
        && same(sum + 2..data)
}

#[cfg(test)]
mod tests;
