//! Judges a frame by what it claims, written without looking at the source guard: it is the judge at an
//! independent tap, and the slow twin of the guard in a test.
//!
//! A frame is taken apart into the addresses that whoever hears it would believe ([`Claims`]). It is the
//! router's if each of them is one of the router's. What cannot be taken apart is nobody's.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A router, by its addresses.
#[derive(Clone, Debug)]
pub struct RouterAddresses {
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
    /// Its addresses of IPv4.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its addresses of IPv6 beside the link-local one.
    pub ipv6: Vec<Ipv6Addr>,
    /// The longest packet, in bytes.
    pub mtu: usize,
    /// Whether it may advertise itself as a router.
    pub advertises: bool,
    /// Whether it may ask for an address by DHCP.
    pub dhcp_client: bool,
}

/// What a frame has others believe.
#[derive(Debug, Default)]
struct Claims {
    stations: Vec<[u8; 6]>,
    hosts4: Vec<Ipv4Addr>,
    hosts6: Vec<Ipv6Addr>,
    /// Addresses that it asks about from no address, as one who is about to take them.
    probed4: Vec<Ipv4Addr>,
    /// It asks by DHCP from no address.
    asks_for_address: bool,
    /// It says that its sender is a router; the address that says so has to be the link-local one.
    router: Option<Ipv6Addr>,
    /// It says so in ICMP of IPv4.
    router4: bool,
}

impl RouterAddresses {
    /// The link-local address of its Ethernet address.
    pub fn link_local(&self) -> Ipv6Addr {
        let mut octets = [0; 16];
        (octets[0], octets[1]) = (0xfe, 0x80);
        octets[8..11].copy_from_slice(&self.ethernet[..3]);
        octets[8] ^= 0b10;
        (octets[11], octets[12]) = (0xff, 0xfe);
        octets[13..].copy_from_slice(&self.ethernet[3..]);
        octets.into()
    }

    /// Why a frame is not one of this router; nothing if it is.
    pub fn violation(&self, frame: &[u8]) -> Option<String> {
        if frame.len() > self.mtu + 14 {
            return Some(format!("{} bytes", frame.len()));
        }
        let claims = match claims(frame) {
            Ok(claims) => claims,
            Err(why) => return Some(why.to_owned()),
        };
        let foreign = claims.stations.iter().find(|station| **station != self.ethernet);
        if let Some(station) = foreign {
            return Some(format!("claims the station {station:02x?}"));
        }
        if let Some(host) = claims.hosts4.iter().find(|host| !self.ipv4.contains(host)) {
            return Some(format!("claims {host}"));
        }
        // Whoever asks for an address may be given any.
        let probed = claims.probed4.iter().find(|host| !self.ipv4.contains(host));
        if let Some(host) = probed.filter(|_| !self.dhcp_client) {
            return Some(format!("probes {host}"));
        }
        let own = |host: &Ipv6Addr| *host == self.link_local() || self.ipv6.contains(host);
        if let Some(host) = claims.hosts6.iter().find(|host| !own(host)) {
            return Some(format!("claims {host}"));
        }
        if claims.asks_for_address && !self.dhcp_client {
            return Some("asks for an address".to_owned());
        }
        let routes = claims.router.is_some() || claims.router4;
        if routes && !self.advertises {
            return Some("says that it is a router".to_owned());
        }
        if claims.router.is_some_and(|from| from != self.link_local()) {
            return Some("says that it is a router from another address".to_owned());
        }
        None
    }
}

/// Reads bytes one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        if count > self.0.len() {
            return Err("is cut off");
        }
        let (taken, left) = self.0.split_at(count);
        self.0 = left;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<usize, &'static str> {
        let two = self.take(2)?;
        Ok(usize::from(two[0]) << 8 | usize::from(two[1]))
    }

    fn station(&mut self) -> Result<[u8; 6], &'static str> {
        let mut station = [0; 6];
        station.copy_from_slice(self.take(6)?);
        Ok(station)
    }

    fn host4(&mut self) -> Result<Ipv4Addr, &'static str> {
        let four = self.take(4)?;
        Ok(Ipv4Addr::new(four[0], four[1], four[2], four[3]))
    }

    fn host6(&mut self) -> Result<Ipv6Addr, &'static str> {
        let mut octets = [0; 16];
        octets.copy_from_slice(self.take(16)?);
        Ok(octets.into())
    }
}

/// Takes a frame apart.
fn claims(frame: &[u8]) -> Result<Claims, &'static str> {
    let mut claims = Claims::default();
    let mut reader = Reader(frame);
    let to = reader.station()?;
    claims.stations.push(reader.station()?);
    let kind = reader.number()?;
    if to[..5] == [1, 0x80, 0xc2, 0, 0] && to[5] & 0xf0 == 0 {
        return Err("is for bridges alone");
    }
    // Frames are filled up to 60 bytes.
    let filled = frame.len() <= 60;
    match kind {
        0x0806 => arp(&mut claims, reader, filled)?,
        0x0800 => ipv4(&mut claims, reader, filled)?,
        0x86dd => ipv6(&mut claims, reader, filled)?,
        _ => return Err("is neither ARP nor IP"),
    }
    Ok(claims)
}

fn arp(claims: &mut Claims, mut message: Reader<'_>, filled: bool) -> Result<(), &'static str> {
    let about = (message.number()?, message.number()?, message.byte()?, message.byte()?);
    if about != (1, 0x0800, 6, 4) {
        return Err("is ARP of something else");
    }
    let operation = message.number()?;
    if !(1..=2).contains(&operation) {
        return Err("is ARP that neither asks nor answers");
    }
    claims.stations.push(message.station()?);
    let sender = message.host4()?;
    if operation == 2 || !sender.is_unspecified() {
        claims.hosts4.push(sender);
    }
    message.take(6)?;
    let target = message.host4()?;
    if operation == 1 && sender.is_unspecified() {
        claims.probed4.push(target);
    }
    if !message.0.is_empty() && !filled {
        return Err("is ARP with something behind it");
    }
    Ok(())
}

fn ipv4(claims: &mut Claims, mut packet: Reader<'_>, filled: bool) -> Result<(), &'static str> {
    let whole = packet.0;
    let first = packet.byte()?;
    packet.byte()?;
    let total = packet.number()?;
    packet.number()?;
    let place = packet.number()?;
    packet.byte()?;
    let protocol = packet.byte()?;
    packet.number()?;
    let (from, to) = (packet.host4()?, packet.host4()?);
    let words = usize::from(first & 15);
    if first >> 4 != 4 || words < 5 || total < words * 4 {
        return Err("has an IPv4 header that cannot be");
    }
    if whole.len() < total || (whole.len() != total && !filled) {
        return Err("says another length than it has");
    }
    let mut options = Reader(packet.take(words * 4 - 20)?);
    let mut sum = 0;
    let mut header = Reader(&whole[..words * 4]);
    while let Ok(number) = header.number() {
        sum = (sum + number) % 0xffff;
    }
    // All zeros have no sum of ones.
    if sum != 0 || whole[..words * 4].iter().all(|byte| *byte == 0) {
        return Err("has a wrong IPv4 checksum");
    }
    while let Ok(kind) = options.byte() {
        match kind {
            0 if options.0.iter().any(|byte| *byte != 0) => return Err("has something behind its options"),
            0 => break,
            1 => {}
            7 | 68 | 148 => {
                let length = usize::from(options.byte()?);
                options.take(length.checked_sub(2).ok_or("has an option without a length")?)?;
            }
            _ => return Err("has an option that is not known"),
        }
    }
    let payload = &whole[words * 4..total];
    let (reserved, more, offset) = (place >> 15 == 1, place >> 13 & 1 == 1, (place & 0x1fff) * 8);
    if reserved || (more && (!payload.len().is_multiple_of(8) || payload.is_empty())) {
        return Err("is a fragment that nobody makes");
    }
    if words * 4 + offset + payload.len() > 65_535 {
        return Err("is a fragment of too much");
    }
    let mut inner = Reader(payload);
    let asks = from.is_unspecified()
        && to.is_broadcast()
        && protocol == 17
        && !more
        && offset == 0
        && payload.len() >= 8
        && inner.number() == Ok(68)
        && inner.number() == Ok(67);
    if asks {
        claims.asks_for_address = true;
    } else {
        claims.hosts4.push(from);
    }
    if protocol == 1 && offset == 0 {
        match payload.first() {
            Some(5) => return Err("redirects"),
            Some(9) => claims.router4 = true,
            _ => {}
        }
    }
    Ok(())
}

fn ipv6(claims: &mut Claims, mut packet: Reader<'_>, filled: bool) -> Result<(), &'static str> {
    let first = packet.take(4)?[0];
    let length = packet.number()?;
    let (mut next, hops) = (packet.byte()?, packet.byte()?);
    let (from, to) = (packet.host6()?, packet.host6()?);
    if first >> 4 != 6 || packet.0.len() < length || (packet.0.len() != length && !filled) {
        return Err("has an IPv6 header that cannot be");
    }
    let mut rest = Reader(&packet.0[..length]);
    let (mut extensions, mut fragment) = (0, false);
    let upper = loop {
        let is_extension = [0, 43, 44, 51, 60, 135, 139, 140, 253, 254].contains(&next);
        if !is_extension {
            break Some(next);
        }
        if extensions == 8 {
            return Err("has more extension headers than anybody needs");
        }
        if next == 0 && extensions > 0 {
            return Err("has hop-by-hop options behind other headers");
        }
        extensions += 1;
        let header = next;
        match header {
            0 | 60 => {
                next = rest.byte()?;
                let units = usize::from(rest.byte()?);
                let mut options = Reader(rest.take(6 + units * 8)?);
                while let Ok(kind) = options.byte() {
                    match kind {
                        0 => {}
                        1 | 5 => {
                            let length = usize::from(options.byte()?);
                            options.take(length)?;
                        }
                        _ => return Err("has an option of IPv6 that is not known"),
                    }
                }
            }
            51 => {
                next = rest.byte()?;
                let words = usize::from(rest.byte()?);
                if words == 0 || words % 2 == 1 {
                    return Err("has an authentication header that cannot be");
                }
                rest.take(6 + words * 4)?;
            }
            44 if !fragment => {
                next = rest.byte()?;
                rest.byte()?;
                let place = rest.number()?;
                rest.take(4)?;
                let (offset, more, left) = (place / 8 * 8, place % 2 == 1, rest.0.len());
                if (more && (left == 0 || left % 8 != 0)) || offset + left > 65_535 {
                    return Err("is a fragment that nobody makes");
                }
                fragment = true;
                if offset != 0 {
                    break None;
                }
            }
            _ => return Err("has an extension header that is not known"),
        }
    };
    if upper == Some(59) && !rest.0.is_empty() {
        return Err("has something behind nothing");
    }
    if fragment && upper.is_some_and(|upper| upper != 59) && rest.0.len() < 8 {
        return Err("is a first fragment without its headers");
    }
    let unspecified = from.is_unspecified();
    if !unspecified {
        claims.hosts6.push(from);
    }
    if upper == Some(58) {
        let asks = icmpv6(claims, rest, (from, to), hops == 255 && extensions == 0)?;
        return if unspecified && !asks { Err("comes from no address") } else { Ok(()) };
    }
    if unspecified { Err("comes from no address") } else { Ok(()) }
}

/// Says whether it asks if somebody has an address.
fn icmpv6(
    claims: &mut Claims,
    mut message: Reader<'_>,
    (from, to): (Ipv6Addr, Ipv6Addr),
    heeded: bool,
) -> Result<bool, &'static str> {
    let (kind, code) = (message.byte()?, message.byte()?);
    message.take(2)?;
    if matches!(kind, 137 | 138 | 141 | 142 | 148 | 149) {
        return Err("redirects, or tells addresses in a way that is not known");
    }
    if !(133..=136).contains(&kind) {
        return Ok(false);
    }
    if kind == 134 {
        claims.router = Some(from);
    }
    if !heeded || code != 0 {
        return Err("is of Neighbour Discovery, and hosts ignore it");
    }
    message.take(if kind == 134 { 12 } else { 4 })?;
    let asks = kind == 135 && from.is_unspecified();
    if kind == 135 || kind == 136 {
        let target = message.host6()?;
        if target.is_multicast() {
            return Err("is about a group");
        }
        if kind == 136 || asks {
            claims.hosts6.push(target);
        }
    }
    let solicited = to.octets().starts_with(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff]);
    if asks && !solicited {
        return Err("asks others than those that could have the address");
    }
    while !message.0.is_empty() {
        let (option, units) = (message.byte()?, usize::from(message.byte()?));
        let mut body =
            Reader(message.take((units * 8).checked_sub(2).ok_or("has an option without a length")?)?);
        match option {
            1 if asks => return Err("tells a station from no address"),
            1 | 2 => {
                claims.stations.push(body.station()?);
                if !body.0.is_empty() {
                    return Err("tells a station that is none");
                }
            }
            4 => return Err("redirects"),
            _ => {}
        }
    }
    Ok(asks)
}
