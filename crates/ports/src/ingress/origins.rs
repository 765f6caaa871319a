//! Chooses the port by the origin of a packet: the network of its source address, or its source MAC address.

use packet::PortNumber;
use std::net::IpAddr;
use std::str::FromStr;

/// The most origins that one option may list: each packet is compared with all of them.
pub const MOST_ORIGINS: usize = 1024;

/// Which packets enter by which port, and by which port all others do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origins {
    by: By,
    other: PortNumber,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// Longest prefixes first. An IPv4 prefix counts for IPv4 packets alone.
    Subnets(Vec<(Prefix, PortNumber)>),
    MacAddresses(Vec<([u8; 6], PortNumber)>),
}

/// A network: its address as bits from the left, how many of them count, and whether it is of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    bits: u128,
    length: u8,
    is_ip4: bool,
}

/// A text that does not say where packets come from, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OriginsError(String);

impl Origins {
    /// Reads `10.0.1.0/24=1,2001:db8::/32=2,else=3`.
    ///
    /// # Errors
    /// What is not understood, or missing.
    pub fn subnets(text: &str) -> Result<Origins, OriginsError> {
        let (mut subnets, other) = list(text, Prefix::from_str)?;
        subnets.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.length));
        Ok(Origins { by: By::Subnets(subnets), other })
    }

    /// Reads `02:00:00:00:00:01=1,02:00:00:00:00:02=2,else=3`.
    ///
    /// # Errors
    /// What is not understood, or missing.
    pub fn mac_addresses(text: &str) -> Result<Origins, OriginsError> {
        let (addresses, other) = list(text, mac_address)?;
        Ok(Origins { by: By::MacAddresses(addresses), other })
    }

    /// The largest port that packets enter by.
    pub fn largest(&self) -> PortNumber {
        let listed = match &self.by {
            By::Subnets(subnets) => subnets.iter().map(|&(_, port)| port).max(),
            By::MacAddresses(addresses) => addresses.iter().map(|&(_, port)| port).max(),
        };
        listed.unwrap_or(0).max(self.other)
    }

    /// By which port a frame enters. The Ethernet payload begins at `payload` and is of `ether_type`; there
    /// is none in a frame that is too short.
    pub(super) fn port(&self, frame: &[u8], payload: Option<(u16, &[u8])>) -> PortNumber {
        let found = match &self.by {
            By::Subnets(subnets) => payload.and_then(|(ether_type, packet)| {
                let (bits, is_ip4) = source(ether_type, packet)?;
                subnets.iter().find(|(prefix, _)| prefix.holds(bits, is_ip4)).map(|&(_, port)| port)
            }),
            By::MacAddresses(addresses) => frame
                .get(6..12)
                .and_then(|source| addresses.iter().find(|(address, _)| address == source))
                .map(|&(_, port)| port),
        };
        found.unwrap_or(self.other)
    }
}

/// The source address of an IP packet as bits from the left, and whether it is of IPv4.
fn source(ether_type: u16, packet: &[u8]) -> Option<(u128, bool)> {
    match ether_type {
        0x0800 => {
            let bytes = packet.get(12..16)?.first_chunk()?;
            Some((u128::from(u32::from_be_bytes(*bytes)) << 96, true))
        }
        0x86dd => Some((u128::from_be_bytes(*packet.get(8..24)?.first_chunk()?), false)),
        _ => None,
    }
}

impl Prefix {
    fn holds(&self, bits: u128, is_ip4: bool) -> bool {
        is_ip4 == self.is_ip4 && bits & mask(self.length) == self.bits
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = OriginsError;

    fn from_str(text: &str) -> Result<Prefix, OriginsError> {
        let wrong =
            || OriginsError(format!("`{text}` is no network; write it as 10.0.1.0/24 or 2001:db8::/32"));
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let (address, length): (IpAddr, u8) =
            (address.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
        let (bits, most, is_ip4) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32, true),
            IpAddr::V6(address) => (u128::from(address), 128, false),
        };
        if length > most {
            return Err(wrong());
        }
        if bits & !mask(length) != 0 {
            return Err(OriginsError(format!(
                "`{text}` has bits behind its {length}; write the network's first address"
            )));
        }
        Ok(Prefix { bits, length, is_ip4 })
    }
}

fn mac_address(text: &str) -> Result<[u8; 6], OriginsError> {
    let wrong = || OriginsError(format!("`{text}` is no MAC address; write it as 02:00:00:00:00:01"));
    let mut parts = text.split(':');
    let mut address = [0; 6];
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
    }
    if parts.next().is_some() { Err(wrong()) } else { Ok(address) }
}

type Listed<T> = (Vec<(T, PortNumber)>, PortNumber);

/// Reads `ORIGIN=PORT,…,else=PORT`.
fn list<T: PartialEq>(
    text: &str,
    origin: impl Fn(&str) -> Result<T, OriginsError>,
) -> Result<Listed<T>, OriginsError> {
    let (mut listed, mut other) = (Vec::new(), None);
    for part in text.split(',') {
        let wrong = || OriginsError(format!("`{part}`: write ORIGIN=PORT, with ports from 1"));
        let (name, port) = part.split_once('=').ok_or_else(wrong)?;
        let port: PortNumber = port.parse().ok().filter(|&port| port != packet::NO_PORT).ok_or_else(wrong)?;
        let twice = || OriginsError(format!("`{name}` stands there twice"));
        if name == "else" {
            if other.replace(port).is_some() {
                return Err(twice());
            }
            continue;
        }
        let origin = origin(name)?;
        if listed.iter().any(|(before, _)| *before == origin) {
            return Err(twice());
        }
        if listed.len() == MOST_ORIGINS {
            return Err(OriginsError(format!(
                "more than {MOST_ORIGINS} origins; put the others under `else`"
            )));
        }
        listed.push((origin, port));
    }
    let missing = || OriginsError("say by which port all other packets enter: add `,else=PORT`".to_owned());
    Ok((listed, other.ok_or_else(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip4(source: [u8; 4]) -> Vec<u8> {
        [&[0x45; 12][..], &source, &[0; 4]].concat()
    }

    #[test]
    fn the_longest_network_decides() {
        let origins =
            Origins::subnets("10.0.0.0/8=1,10.0.1.0/24=2,2001:db8::/32=3,0.0.0.0/0=5,else=4").unwrap();
        let port = |ether_type, packet: &[u8]| origins.port(&[], Some((ether_type, packet)));
        assert_eq!(port(0x0800, &ip4([10, 0, 1, 7])), 2);
        assert_eq!(port(0x0800, &ip4([10, 9, 1, 7])), 1);
        assert_eq!(port(0x0800, &ip4([11, 0, 1, 7])), 5);
        let mut ip6 = vec![0; 40];
        ip6[8..12].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        assert_eq!(port(0x86dd, &ip6), 3);
        ip6[8] = 0x30;
        assert_eq!((port(0x86dd, &ip6), port(0x0806, &ip6), port(0x0800, &[0x45; 15])), (4, 4, 4));
        assert_eq!(origins.port(&[], None), 4);
        assert_eq!(origins.largest(), 5);
    }

    #[test]
    fn mac_addresses_are_those_of_the_source() {
        let origins = Origins::mac_addresses("02:00:00:00:00:0a=1,02:00:00:00:00:0b=2,else=3").unwrap();
        let port = |last| origins.port(&[&[9; 6][..], &[2, 0, 0, 0, 0, last]].concat(), None);
        assert_eq!((port(10), port(11), port(12)), (1, 2, 3));
        assert_eq!(origins.port(&[2; 11], None), 3);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_a_way_out() {
        for (text, said) in [
            ("10.0.0.0/8=1", "else=PORT"),
            ("10.0.0.1/8=1,else=1", "first address"),
            ("10.0.0.0/33=1,else=1", "no network"),
            ("10.0.0.0=1,else=1", "no network"),
            ("10.0.0.0/8=0,else=1", "ports from 1"),
            ("10.0.0.0/8,else=1", "ORIGIN=PORT"),
            ("10.0.0.0/8=1,10.0.0.0/8=2,else=1", "twice"),
            ("else=1,else=2", "twice"),
            ("", "ORIGIN=PORT"),
        ] {
            let error = Origins::subnets(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        for text in ["2:0:0:0:0:1=1,else=1", "02:00:00:00:00=1,else=1", "02:00:00:00:00:01:02=1,else=1"] {
            let error = Origins::mac_addresses(text).expect_err(text).to_string();
            assert!(error.contains("no MAC address"), "{text}: {error}");
        }
        let many: Vec<String> =
            (0..=MOST_ORIGINS).map(|i| format!("10.{}.{}.0/24=1", i >> 8, i & 255)).collect();
        let error =
            Origins::subnets(&format!("{},else=1", many.join(","))).expect_err("too many").to_string();
        assert!(error.contains("more than 1024 origins"), "{error}");
    }
}
