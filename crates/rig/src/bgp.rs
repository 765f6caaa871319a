//! A speaker of BGP (RFC 4271) that announces and withdraws IPv4 prefixes at one peer: as many as are wanted,
//! at once, and those of IPv6 (RFC 4760). It takes what the peer says for granted.
//!
//! ```text
//! message  16 × 0xff | length 2 | type 1 | body                                             all numbers big-endian
//! open     version 4 | own system 2 | hold time 2 | identifier 4 | length of options 1
//! update   length 2 | withdrawn prefixes | length 2 | attributes | announced prefixes
//! prefix   its length in bits 1 | as many bytes as hold them
//! IPv6     attribute 0x90 14 | length 2 | family 2 | 1 | 16 | next hop 16 | 0 | announced prefixes
//!          attribute 0x90 15 | length 2 | family 2 | 1 | withdrawn prefixes
//! ```
//!
//! The hold time is 0, so neither side has to say that it is still there.

use crate::namespace::Namespace;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 179;
const VERSION: u8 = 4;
/// Types of messages.
const OPEN: u8 = 1;
const UPDATE: u8 = 2;
const KEEPALIVE: u8 = 4;
const HEADER: usize = 19;
const LONGEST: usize = 4096;
/// The longest that a prefix is in a message, in bytes.
const LONGEST_PREFIX: usize = 5;
/// The same of IPv6.
const LONGEST_PREFIX6: usize = 17;
/// A parameter of OPEN with capabilities: prefixes of IPv4 and of IPv6 for unicast (RFC 5492, RFC 4760).
const CAPABILITIES: [u8; 14] = [2, 12, 1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1];
/// Where a route is from (an IGP), and the beginning of a path of one system.
const PATH: [u8; 9] = [0x40, 1, 1, 0, 0x40, 2, 4, 2, 1];

/// A prefix: its first address and how many bits it has.
pub type AnnouncedPrefix = (Ipv4Addr, u8);

/// A session with a peer.
#[derive(Debug)]
pub struct BgpSpeaker {
    stream: TcpStream,
    system: u16,
}

impl Drop for BgpSpeaker {
    fn drop(&mut self) {
        // The peer may have ended it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl BgpSpeaker {
    /// Opens a session from a namespace as this autonomous system, and as often as it takes until the limit:
    /// a peer that has just started may not listen yet, or may still have the session before.
    ///
    /// # Errors
    /// What stood in the way last.
    pub fn open(from: &Namespace, system: u16, peer: Ipv4Addr, limit: Duration) -> io::Result<BgpSpeaker> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match BgpSpeaker::once(from, system, peer, left) {
                Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
                opened => return opened,
            }
        }
    }

    fn once(from: &Namespace, system: u16, peer: Ipv4Addr, limit: Duration) -> io::Result<BgpSpeaker> {
        let address = SocketAddr::from((peer, PORT));
        let mut stream = from.inside(|| TcpStream::connect_timeout(&address, limit))?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        let SocketAddr::V4(own) = stream.local_addr()? else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut open = vec![VERSION];
        open.extend(system.to_be_bytes());
        open.extend([0, 0]);
        open.extend(own.ip().octets());
        open.push(CAPABILITIES.len() as u8);
        open.extend(CAPABILITIES);
        stream.write_all(&message(OPEN, &open))?;
        expect(&mut stream, OPEN)?;
        stream.write_all(&message(KEEPALIVE, &[]))?;
        expect(&mut stream, KEEPALIVE)?;
        stream.set_read_timeout(None)?;
        // What the peer says would otherwise fill its queue, and it would wait.
        let mut said = stream.try_clone()?;
        thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        Ok(BgpSpeaker { stream, system })
    }

    /// Announces prefixes by a next hop; returns when the kernel has taken all messages.
    ///
    /// # Errors
    /// The peer has ended the session.
    pub fn announce(&mut self, prefixes: &[AnnouncedPrefix], next_hop: Ipv4Addr) -> io::Result<()> {
        let mut attributes = PATH.to_vec();
        attributes.extend(self.system.to_be_bytes());
        attributes.extend([0x40, 3, 4]);
        attributes.extend(next_hop.octets());
        self.update(prefixes, |prefixes| {
            let mut body = vec![0, 0];
            body.extend((attributes.len() as u16).to_be_bytes());
            body.extend(&attributes);
            body.extend(prefixes);
            body
        })
    }

    /// Announces prefixes of IPv6 by a next hop.
    ///
    /// # Errors
    /// The peer has ended the session.
    pub fn announce6(&mut self, prefixes: &[(Ipv6Addr, u8)], next_hop: Ipv6Addr) -> io::Result<()> {
        let before = [&PATH[..], &self.system.to_be_bytes()].concat();
        let reach = [&[0, 2, 1, 16][..], &next_hop.octets(), &[0]].concat();
        self.update6(prefixes, &before, (14, &reach))
    }

    /// Withdraws prefixes of IPv6.
    ///
    /// # Errors
    /// The peer has ended the session.
    pub fn withdraw6(&mut self, prefixes: &[(Ipv6Addr, u8)]) -> io::Result<()> {
        self.update6(prefixes, &[], (15, &[0, 2, 1]))
    }

    /// Sends updates with as many prefixes as each holds, behind these attributes in one of this type that
    /// begins like this.
    fn update6(
        &mut self,
        prefixes: &[(Ipv6Addr, u8)],
        before: &[u8],
        (kind, begins): (u8, &[u8]),
    ) -> io::Result<()> {
        let body = |prefixes: &[u8]| {
            let length = ((begins.len() + prefixes.len()) as u16).to_be_bytes();
            let attributes = [before, &[0x90, kind], &length, begins, prefixes].concat();
            [&[0, 0][..], &(attributes.len() as u16).to_be_bytes(), &attributes].concat()
        };
        for part in prefixes.chunks((LONGEST - HEADER - body(&[]).len()) / LONGEST_PREFIX6) {
            let written = part.iter().flat_map(|(address, length)| written(&address.octets(), *length));
            self.stream.write_all(&message(UPDATE, &body(&written.collect::<Vec<_>>())))?;
        }
        Ok(())
    }

    /// Withdraws prefixes.
    ///
    /// # Errors
    /// The peer has ended the session.
    pub fn withdraw(&mut self, prefixes: &[AnnouncedPrefix]) -> io::Result<()> {
        self.update(prefixes, |prefixes| {
            let mut body = (prefixes.len() as u16).to_be_bytes().to_vec();
            body.extend(prefixes);
            body.extend([0, 0]);
            body
        })
    }

    /// Sends updates with as many prefixes as each holds.
    fn update(&mut self, prefixes: &[AnnouncedPrefix], body: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
        let room = (LONGEST - HEADER - body(&[]).len()) / LONGEST_PREFIX;
        for part in prefixes.chunks(room) {
            let written: Vec<u8> = part.iter().flat_map(prefix).collect();
            self.stream.write_all(&message(UPDATE, &body(&written)))?;
        }
        Ok(())
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend(((HEADER + body.len()) as u16).to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn prefix(&(address, length): &AnnouncedPrefix) -> Vec<u8> {
    written(&address.octets(), length)
}

/// A prefix of these bytes: its length in bits, and as many bytes as hold them.
fn written(address: &[u8], length: u8) -> Vec<u8> {
    let bytes = usize::from(length).div_ceil(8).min(address.len());
    [&[length.min(8 * address.len() as u8)], &address[..bytes]].concat()
}

/// Reads the next message, which is to be of this type.
fn expect(stream: &mut impl Read, kind: u8) -> io::Result<()> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
    let mut body = vec![0; length.saturating_sub(HEADER).min(LONGEST)];
    stream.read_exact(&mut body)?;
    if header[18] == kind {
        return Ok(());
    }
    Err(io::Error::other(format!("the peer sent a message of type {} for {kind}: {body:?}", header[18])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_standard_writes_them() {
        assert_eq!(message(KEEPALIVE, &[]), [&[0xff; 16][..], &[0, 19, 4]].concat());
        assert_eq!(prefix(&([20, 1, 2, 0].into(), 24)), [24, 20, 1, 2]);
        assert_eq!(prefix(&([20, 1, 128, 0].into(), 17)), [17, 20, 1, 128]);
        assert_eq!(prefix(&([0, 0, 0, 0].into(), 0)), [0]);
        let six: Ipv6Addr = "2001:db8:1:8000::".parse().expect("an address");
        assert_eq!(written(&six.octets(), 49), [49, 0x20, 1, 0x0d, 0xb8, 0, 1, 0x80]);
        let refusal = message(3, &[6, 5]);
        expect(&mut &refusal[..], OPEN).expect_err("it is a notification");
        expect(&mut &message(KEEPALIVE, &[])[..], KEEPALIVE).expect("it is one");
    }
}
