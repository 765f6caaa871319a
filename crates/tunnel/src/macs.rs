//! The two macs of handshake messages, and cookies (J. A. Donenfeld, *WireGuard: Next Generation Kernel
//! Network Tunnel*, NDSS 2017, 5.3 and 5.4.7).
//!
//! mac1 shows that the sender knows the receiver's public key, and costs one hash. mac2 shows that it has
//! received a cookie at its address: a mac of the address under a secret that only the receiver has. A cookie
//! reply is sealed with a key made of the receiver's public key, and bound to mac1 of the message that it
//! answers, so only somebody who saw this message can make one up.

use crate::keys::PublicKey;
use crate::limits::COOKIE_SECRET_LIFE;
use crate::message::{COOKIE_REPLY, MAC, MessageKind, number, put};
use blake2::digest::consts::U16;
use blake2::digest::{Digest, KeyInit, Mac};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use std::net::{IpAddr, SocketAddr};

const MAC1_LABEL: &[u8] = b"ravelin tunnel 1 mac1";
const COOKIE_LABEL: &[u8] = b"ravelin tunnel 1 cookie";

/// A mac, 128 bits of keyed BLAKE2s.
pub(crate) type MacBytes = [u8; MAC];

/// The keys that follow from a public key.
#[derive(Clone)]
pub(crate) struct MacKeys {
    mac1: [u8; 32],
    cookie: [u8; 32],
}

fn keyed(key: &[u8], of: &[u8]) -> Blake2sMac<U16> {
    let mut mac = <Blake2sMac<U16> as KeyInit>::new_from_slice(key).expect("a key has 16 or 32 bytes");
    mac.update(of);
    mac
}

fn mac(key: &[u8], of: &[u8]) -> MacBytes {
    keyed(key, of).finalize().into_bytes().into()
}

/// In constant time.
fn is_mac(key: &[u8], of: &[u8], mac: &[u8]) -> bool {
    keyed(key, of).verify_slice(mac).is_ok()
}

impl MacKeys {
    pub(crate) fn new(key: &PublicKey) -> MacKeys {
        let derive =
            |label: &[u8]| Blake2s256::new().chain_update(label).chain_update(key.0).finalize().into();
        MacKeys { mac1: derive(MAC1_LABEL), cookie: derive(COOKIE_LABEL) }
    }

    /// Fills in the last two fields of a message to the owner of the public key. Returns mac1.
    pub(crate) fn finish(&self, message: &mut [u8], cookie: Option<MacBytes>) -> MacBytes {
        let at = message.len() - 2 * MAC;
        let mac1 = mac(&self.mac1, &message[..at]);
        put(message, at, &mac1);
        if let Some(cookie) = cookie {
            let mac2 = mac(&cookie, &message[..at + MAC]);
            put(message, at + MAC, &mac2);
        }
        mac1
    }

    /// Whether mac1 of a message to the owner of the public key is right.
    pub(crate) fn check(&self, message: &[u8]) -> bool {
        let at = message.len() - 2 * MAC;
        is_mac(&self.mac1, &message[..at], &message[at..at + MAC])
    }

    /// Answers a handshake message to the owner of the public key with a cookie.
    pub(crate) fn reply(&self, message: &[u8], cookie: MacBytes, nonce: [u8; 24]) -> [u8; COOKIE_REPLY] {
        let mut reply = [0; COOKIE_REPLY];
        reply[0] = MessageKind::CookieReply as u8;
        put(&mut reply, 4, &number(message, 4).to_be_bytes());
        put(&mut reply, 8, &nonce);
        let mut sealed = cookie;
        let at = message.len() - 2 * MAC;
        let tag = self
            .cookie_cipher()
            .encrypt_in_place_detached(&XNonce::from(nonce), &message[at..at + MAC], &mut sealed)
            .expect("16 bytes are not too long");
        put(&mut reply, 32, &sealed);
        put(&mut reply, 48, &tag);
        reply
    }

    /// The cookie in a reply to a message that had this mac1 and went to the owner of the public key.
    pub(crate) fn open_reply(&self, reply: &[u8], mac1: &MacBytes) -> Option<MacBytes> {
        let nonce: [u8; 24] = reply[8..32].try_into().ok()?;
        let mut cookie: MacBytes = reply[32..48].try_into().ok()?;
        let tag: [u8; 16] = reply[48..64].try_into().ok()?;
        self.cookie_cipher()
            .decrypt_in_place_detached(&XNonce::from(nonce), mac1, &mut cookie, &Tag::from(tag))
            .ok()?;
        Some(cookie)
    }

    fn cookie_cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.cookie))
    }
}

/// What mac2 of a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mac2 {
    /// There is none.
    Absent,
    /// The sender has a cookie for its address.
    Proved,
    /// It was made with no cookie that is valid.
    Wrong,
}

/// The secret behind the cookies of this end.
pub(crate) struct CookieSecret {
    current: [u8; 32],
    previous: [u8; 32],
    since: u64,
}

impl CookieSecret {
    pub(crate) fn new(current: [u8; 32], previous: [u8; 32], now: u64) -> CookieSecret {
        CookieSecret { current, previous, since: now }
    }

    /// Whether the secret is to be replaced.
    pub(crate) fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.since) >= COOKIE_SECRET_LIFE
    }

    pub(crate) fn replace(&mut self, by: [u8; 32], now: u64) {
        // A secret that has long been too old is not kept as the previous one.
        let keep = now.saturating_sub(self.since) < 2 * COOKIE_SECRET_LIFE;
        self.previous = if keep { self.current } else { by };
        self.current = by;
        self.since = now;
    }

    /// The cookie of an address.
    pub(crate) fn cookie(&self, from: SocketAddr) -> MacBytes {
        mac(&self.current, &address_bytes(from))
    }

    pub(crate) fn check(&self, message: &[u8], from: SocketAddr) -> Mac2 {
        let at = message.len() - MAC;
        if message[at..] == [0; MAC] {
            return Mac2::Absent;
        }
        let address = address_bytes(from);
        let proves = |secret: &[u8; 32]| is_mac(&mac(secret, &address), &message[..at], &message[at..]);
        if proves(&self.current) || proves(&self.previous) { Mac2::Proved } else { Mac2::Wrong }
    }
}

fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    put(&mut bytes, 0, &ip.octets());
    put(&mut bytes, 16, &address.port().to_be_bytes());
    bytes
}
