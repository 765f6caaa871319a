//! The four kinds of datagrams, byte by byte. Numbers are in network order.
//!
//! ```text
//!  initiation, 148 bytes               response, 96 bytes                  cookie reply, 64 bytes
//!  0    1  kind: 1                     0    1  kind: 2                     0    1  kind: 3
//!  1    3  zero                        1    3  zero                        1    3  zero
//!  4    4  session number of sender    4    4  session number of sender    4    4  number of receiver
//!  8   32  ephemeral key               8    4  number of receiver          8   24  nonce
//!  40  48  static key, sealed          12  32  ephemeral key               32  32  cookie, sealed
//!  88  28  payload, sealed             44  20  payload, sealed
//!  116 16  mac1                        64  16  mac1                        data, 32 bytes and the payload
//!  132 16  mac2                        80  16  mac2                        0    1  kind: 4
//!                                                                          1    3  zero
//!  its payload, 12 bytes               its payload, 4 bytes                4    4  number of receiver
//!  0    8  timestamp in nanoseconds    0    1  cipher chosen: 1 or 2       8    8  counter
//!  8    1  ciphers offered: 1 | 2      1    3  zero                        16   n  payload, sealed
//!  9    3  zero                                                                16  tag
//! ```
//!
//! Cipher 1 is ChaCha20-Poly1305, which every end has, and 2 is AES-256-GCM. The nonce of a data message is
//! its counter after four zero bytes. What a data message carries is told by its payload: an IP packet begins
//! with 4 or 6 in its first four bits, a control message with a zero byte, and a keepalive is empty. One that
//! asks for another one is the byte 1: it keeps a peer reachable, and shows whether it still has the session.
//! A packet costs 32 bytes, and an observer sees its length but not what it is.

use crate::noise;

/// The payload of a keepalive that asks for another one.
pub(crate) const QUESTION: &[u8] = &[1];

/// Bytes that the two handshake messages carry for the tunnel.
pub(crate) const INITIATION_PAYLOAD: usize = 12;
pub(crate) const RESPONSE_PAYLOAD: usize = 4;

pub(crate) const MAC: usize = 16;
pub(crate) const INITIATION: usize = 8 + noise::FIRST + 2 * MAC;
pub(crate) const RESPONSE: usize = 12 + noise::SECOND + 2 * MAC;
pub(crate) const COOKIE_REPLY: usize = 8 + 24 + 16 + MAC;

/// Bytes before the payload of a data message.
pub const DATA_HEADER: usize = 16;
/// Bytes after it.
pub const DATA_TAG: usize = 16;

/// What a datagram says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    Initiation = 1,
    Response = 2,
    CookieReply = 3,
    Data = 4,
}

impl MessageKind {
    /// The kind of a datagram, if its length is one that the kind can have.
    pub(crate) fn of(datagram: &[u8]) -> Option<MessageKind> {
        match (datagram.first_chunk()?, datagram.len()) {
            ([4, 0, 0, 0], DATA_OVERHEAD..) => Some(MessageKind::Data),
            ([1, 0, 0, 0], INITIATION) => Some(MessageKind::Initiation),
            ([2, 0, 0, 0], RESPONSE) => Some(MessageKind::Response),
            ([3, 0, 0, 0], COOKIE_REPLY) => Some(MessageKind::CookieReply),
            _ => None,
        }
    }
}

const DATA_OVERHEAD: usize = DATA_HEADER + DATA_TAG;

/// The four bytes at a place. The datagram has the length of its kind.
pub(crate) fn number(datagram: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| datagram[at + i]))
}

/// The counter of a data message.
pub(crate) fn counter(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|i| datagram[8 + i]))
}

pub(crate) fn put(datagram: &mut [u8], at: usize, bytes: &[u8]) {
    datagram[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Writes the header of a data message.
pub(crate) fn put_data_header(datagram: &mut [u8], receiver: u32, counter: u64) {
    put(datagram, 0, &[MessageKind::Data as u8, 0, 0, 0]);
    put(datagram, 4, &receiver.to_be_bytes());
    put(datagram, 8, &counter.to_be_bytes());
}

/// An initiation without its two macs.
pub(crate) fn initiation(sender: u32, noise: &[u8; noise::FIRST]) -> [u8; INITIATION] {
    let mut message = [0; INITIATION];
    message[0] = MessageKind::Initiation as u8;
    put(&mut message, 4, &sender.to_be_bytes());
    put(&mut message, 8, noise);
    message
}

/// A response without its two macs.
pub(crate) fn response(sender: u32, receiver: u32, noise: &[u8; noise::SECOND]) -> [u8; RESPONSE] {
    let mut message = [0; RESPONSE];
    message[0] = MessageKind::Response as u8;
    put(&mut message, 4, &sender.to_be_bytes());
    put(&mut message, 8, &receiver.to_be_bytes());
    put(&mut message, 12, noise);
    message
}

/// What the initiator says about itself.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) timestamp: u64,
    /// Bits of `CipherSuite`.
    pub(crate) ciphers: u8,
}

impl Offer {
    pub(crate) fn bytes(self) -> [u8; INITIATION_PAYLOAD] {
        let mut bytes = [0; INITIATION_PAYLOAD];
        put(&mut bytes, 0, &self.timestamp.to_be_bytes());
        bytes[8] = self.ciphers;
        bytes
    }

    pub(crate) fn read(bytes: [u8; INITIATION_PAYLOAD]) -> Offer {
        let timestamp = u64::from_be_bytes(std::array::from_fn(|i| bytes[i]));
        Offer { timestamp, ciphers: bytes[8] }
    }
}
