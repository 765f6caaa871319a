//! Routing tables as route collectors publish them: MRT, type TABLE_DUMP_V2 (RFC 6396, with the records of
//! RFC 8050).
//!
//! ```text
//! record            0        4      6         8        12
//!                   ├─ time ─┼ type ┼ subtype ┼ length ┼─ body: length bytes …      all numbers big-endian
//!
//! peers   (1)       collector 4 │ name length 2 │ name │ count 2 │ count × peer
//! peer              kind 1 │ identifier 4 │ address 4 or 16 │ AS 2 or 4             kind: 1 IPv6, 2 four-byte AS
//! route   (2, 4)    sequence 4 │ bits 1 │ prefix ⌈bits/8⌉ │ count 2 │ count × path
//! path              peer 2 │ time 4 │ [path identifier 4: 8, 10] │ length 2 │ attributes
//! attribute         flags 1 │ kind 1 │ length 1, or 2 with flag 0x10 │ value        kind: 3 next hop, 14 reachable
//! ```
//!
//! A collector has a path from each of its peers and no opinion which is best; the first path of a route,
//! that of the peer with the smallest number, is taken.

#[cfg(test)]
mod tests;

use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::routes::{ImportedRoutes, refuse_duplicates};
use crate::text::number;
use std::collections::HashMap;
use tables::lpm::Prefix;

/// The routing tables of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The routes of IPv4.
    pub v4: ImportedRoutes,
    /// The routes of IPv6.
    pub v6: ImportedRoutes,
    /// How many peers the collector has.
    pub peers: u32,
}

const HEADER: usize = 12;
const TABLE_DUMP_V2: u16 = 13;

/// Reads a dump that is not compressed.
///
/// # Errors
/// The first record that is cut, contradicts itself, or is neither peers nor unicast routes; a path of a peer
/// that is not there or without a next hop; a prefix that is there twice.
pub fn read(bytes: &[u8]) -> Result<Dump, ImportError> {
    let mut dump = Dump {
        v6: ImportedRoutes { family: AddressFamily::V6, ..ImportedRoutes::default() },
        ..Dump::default()
    };
    let mut hops = [HashMap::new(), HashMap::new()];
    let mut peers = None;
    let mut rest = bytes;
    let mut record = 0;
    while !rest.is_empty() {
        record += 1;
        let mut file = Cursor { bytes: rest, start: bytes.len() - rest.len(), record };
        file.number(4, "the time of a record")?;
        let kind = file.number(2, "the type of a record")? as u16;
        let subtype = file.number(2, "the subtype of a record")? as u16;
        let length = file.number(4, "the length of a record")? as usize;
        let mut body = file.part(length, "a record")?;
        rest = file.bytes;
        if kind != TABLE_DUMP_V2 {
            let known = match kind {
                12 => "an old table dump",
                16 | 17 => "BGP messages",
                _ => "of another kind",
            };
            let what = format!("the record is of type {kind}: {known}");
            return Err(body.error_back(HEADER, what, "take a dump of type 13, TABLE_DUMP_V2"));
        }
        match subtype {
            1 if peers.is_some() => {
                return Err(body.error_back(HEADER, "the peers are there twice", "take one dump only"));
            }
            1 => peers = Some(body.peers()?),
            2 | 4 | 8 | 10 => {
                let Some(peers) = peers else {
                    let advice = "a dump starts with a record of its peers";
                    return Err(body.error_back(HEADER, "there are routes before the peers", advice));
                };
                let six = matches!(subtype, 4 | 10);
                let (routes, hops) =
                    if six { (&mut dump.v6, &mut hops[1]) } else { (&mut dump.v4, &mut hops[0]) };
                let (prefix, hop) = body.route(routes.family, peers, subtype >= 8)?;
                let next = routes.next_hops.len() as u32;
                let hop = *hops.entry(hop).or_insert_with(|| {
                    routes.next_hops.push(address::print(hop.0, hop.1));
                    next
                });
                routes.entries.push((prefix, hop));
                routes.lines.push(record);
            }
            _ => {
                let known = match subtype {
                    3 | 5 | 9 | 11 => "multicast routes",
                    6 | 12 => "routes of any kind",
                    7 => "places of peers",
                    _ => "something not known here",
                };
                let what = format!("the record has subtype {subtype}: {known}");
                return Err(body.error_back(HEADER, what, "take a dump of unicast routes"));
            }
        }
        if !body.bytes.is_empty() {
            let what = format!("the record goes on for {} bytes behind its end", body.bytes.len());
            return Err(body.error(what, "the dump is damaged; fetch it again"));
        }
    }
    dump.peers = peers.unwrap_or(0);
    for routes in [&dump.v4, &dump.v6] {
        refuse_duplicates(routes, "record").map_err(|error| error.in_binary())?;
    }
    Ok(dump)
}

/// Bytes that are not read yet.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    /// The place of the next byte in the file.
    start: usize,
    record: u32,
}

impl<'a> Cursor<'a> {
    fn error(&self, what: impl Into<String>, advice: &str) -> ImportError {
        self.error_back(0, what, advice)
    }

    /// An error so many bytes before the next one.
    fn error_back(&self, back: usize, what: impl Into<String>, advice: &str) -> ImportError {
        ImportError::new(self.record, number(self.start.saturating_sub(back)), what, advice).in_binary()
    }

    /// The next bytes, to be read for themselves.
    fn part(&mut self, length: usize, what: &str) -> Result<Cursor<'a>, ImportError> {
        let Some((part, rest)) = self.bytes.split_at_checked(length) else {
            let what = format!("{what} needs {length} bytes, and there are {}", self.bytes.len());
            return Err(self.error(what, "the dump is cut or damaged; fetch it again"));
        };
        let part = Cursor { bytes: part, ..*self };
        (self.bytes, self.start) = (rest, self.start + length);
        Ok(part)
    }

    /// A number of at most 16 bytes.
    fn number(&mut self, length: usize, what: &str) -> Result<u128, ImportError> {
        let part = self.part(length, what)?;
        Ok(part.bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// How many peers there are.
    fn peers(&mut self) -> Result<u32, ImportError> {
        self.number(4, "the collector's identifier")?;
        let length = self.number(2, "the length of the view's name")? as usize;
        self.part(length, "the view's name")?;
        let count = self.number(2, "the number of peers")? as u32;
        for _ in 0..count {
            let kind = self.number(1, "the kind of a peer")?;
            let address = if kind & 1 == 0 { 4 } else { 16 };
            let system = if kind & 2 == 0 { 2 } else { 4 };
            self.part(4 + address + system, "a peer")?;
        }
        Ok(count)
    }

    /// A prefix and the next hop of its first path.
    fn route(
        &mut self,
        family: AddressFamily,
        peers: u32,
        with_identifiers: bool,
    ) -> Result<(Prefix, (AddressFamily, u128)), ImportError> {
        const DAMAGED: &str = "the dump is damaged; fetch it again";
        self.number(4, "the number of a route")?;
        let length = self.number(1, "the length of a prefix")? as u8;
        let width = family.width();
        if length > width {
            let what = format!("a prefix of {} has {length} bits", family.name());
            return Err(self.error_back(1, what, DAMAGED));
        }
        let octets = usize::from(length.div_ceil(8));
        let bits = self.number(octets, "a prefix")? << (usize::from(width) - 8 * octets).min(127);
        let bits = if octets == 0 { 0 } else { bits };
        if bits & host_mask(width, length) != 0 {
            return Err(self.error_back(octets, "the prefix has bits behind its length", DAMAGED));
        }
        let count = self.number(2, "the number of paths")?;
        let mut first = None;
        for _ in 0..count {
            let peer = self.number(2, "the peer of a path")?;
            if peer >= u128::from(peers) {
                return Err(self.error_back(2, format!("there is no peer {peer}"), DAMAGED));
            }
            self.number(4, "the time of a path")?;
            if with_identifiers {
                self.number(4, "the identifier of a path")?;
            }
            let length = self.number(2, "the length of attributes")? as usize;
            let hop = self.part(length, "the attributes of a path")?.next_hop()?;
            first = first.or(Some(hop));
        }
        let Some(hop) = first else { return Err(self.error_back(2, "the route has no path", DAMAGED)) };
        Ok((Prefix { bits, length }, hop))
    }

    /// The next hop among a path's attributes; one of the address family counts more than the IPv4 one.
    fn next_hop(&mut self) -> Result<(AddressFamily, u128), ImportError> {
        let start = *self;
        let (mut plain, mut reachable) = (None, None);
        while !self.bytes.is_empty() {
            let flags = self.number(1, "the flags of an attribute")?;
            let kind = self.number(1, "the kind of an attribute")?;
            let wide = if flags & 0x10 == 0 { 1 } else { 2 };
            let length = self.number(wide, "the length of an attribute")? as usize;
            let mut value = self.part(length, "an attribute")?;
            match kind {
                3 if length == 4 => plain = Some((AddressFamily::V4, value.number(4, "a next hop")?)),
                3 => {
                    return Err(
                        value.error("a next hop has not 4 bytes", "the dump is damaged; fetch it again")
                    );
                }
                14 => reachable = Some(value.reachable()?),
                _ => {}
            }
        }
        reachable
            .or(plain)
            .ok_or_else(|| start.error("the path has no next hop", "take a dump of whole routes"))
    }

    /// The next hop of the attribute MP_REACH_NLRI, which dumps hold without what stands around it; some
    /// writers keep the family before it, which starts with a zero.
    fn reachable(&mut self) -> Result<(AddressFamily, u128), ImportError> {
        if self.bytes.first() == Some(&0) {
            self.part(3, "the family of a next hop")?;
        }
        let length = self.number(1, "the length of a next hop")?;
        match length {
            4 => Ok((AddressFamily::V4, self.number(4, "a next hop")?)),
            // A second address is the one on the link.
            16 | 32 => Ok((AddressFamily::V6, self.number(16, "a next hop")?)),
            _ => {
                let what = format!("a next hop has {length} bytes");
                Err(self.error_back(1, what, "addresses have 4, 16 or twice 16"))
            }
        }
    }
}
