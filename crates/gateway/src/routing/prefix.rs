//! Prefixes of IPv4 and IPv6 addresses, and addresses with the prefix length of their network.

use ir::Match;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// All addresses whose first bits are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IpPrefix {
    /// The first of them.
    address: IpAddr,
    /// How many bits they share.
    length: u8,
}

impl IpPrefix {
    /// The prefix of this length that holds an address; a length above the address's own counts as that.
    pub fn of(address: IpAddr, length: u8) -> IpPrefix {
        match address {
            IpAddr::V4(four) => {
                let length = length.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpPrefix { address: Ipv4Addr::from(u32::from(four) & mask).into(), length }
            }
            IpAddr::V6(six) => {
                let length = length.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpPrefix { address: Ipv6Addr::from(u128::from(six) & mask).into(), length }
            }
        }
    }

    /// One address alone.
    pub fn host(address: IpAddr) -> IpPrefix {
        IpPrefix::of(address, width(address))
    }

    /// The first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The last address.
    pub(crate) fn last(self) -> IpAddr {
        match self.address {
            IpAddr::V4(first) => {
                let others = u32::MAX.checked_shr(self.length.into()).unwrap_or(0);
                Ipv4Addr::from(u32::from(first) | others).into()
            }
            IpAddr::V6(first) => {
                let others = u128::MAX.checked_shr(self.length.into()).unwrap_or(0);
                Ipv6Addr::from(u128::from(first) | others).into()
            }
        }
    }

    /// How many bits its addresses share.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether it is one of IPv4.
    pub fn is_ipv4(self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether an address lies in it.
    pub fn contains(self, address: IpAddr) -> bool {
        self.is_ipv4() == address.is_ipv4() && IpPrefix::of(address, self.length) == self
    }

    /// Whether an address lies in both.
    pub fn overlaps(self, other: IpPrefix) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The same as the key of a table of longest prefixes.
    pub(crate) fn key(self) -> Match {
        Match::Prefix { value: number(self.address), length: self.length }
    }

    /// The prefix whose key this is, of IPv4 or IPv6.
    pub(crate) fn of_key(key: &Match, ipv4: bool) -> Option<IpPrefix> {
        let Match::Prefix { value, length } = *key else { return None };
        let address = if ipv4 {
            Ipv4Addr::from(u32::try_from(value).ok()?).into()
        } else {
            Ipv6Addr::from(value).into()
        };
        Some(IpPrefix { address, length })
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// What is wrong with the text of a prefix or address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// no address
    #[error("`{0}` is no address: write 10.0.1.1/24 or fd00:1::1/64")]
    Address(String),
    /// no length
    #[error("`{0}` does not say how long its network's part is: write `{0}/{1}`, say")]
    NoLength(String, u8),
    /// too long
    #[error("`{0}`: behind the stroke stands a number from 0 to {1}")]
    Length(String, u8),
    /// too many bits
    #[error("`{0}` has bits behind its length; the network is {1}")]
    HostBits(String, IpPrefix),
}

impl FromStr for IpPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<IpPrefix, PrefixError> {
        let InterfaceAddress { address, length } = text.parse()?;
        let prefix = IpPrefix::of(address, length);
        if prefix.address != address {
            return Err(PrefixError::HostBits(text.to_owned(), prefix));
        }
        Ok(prefix)
    }
}

/// An address of an interface, and how many of its bits are those of the network there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// How many bits it shares with its neighbours.
    pub length: u8,
}

impl InterfaceAddress {
    /// The network that it lies in.
    pub fn prefix(self) -> IpPrefix {
        IpPrefix::of(self.address, self.length)
    }

    /// The address that means all hosts of an IPv4 network (RFC 919); networks of one or two addresses have
    /// none (RFC 3021).
    pub fn broadcast(self) -> Option<IpAddr> {
        match self.prefix() {
            IpPrefix { address: IpAddr::V4(first), length: length @ 0..=30 } => {
                Some(Ipv4Addr::from(u32::from(first) | (u32::MAX >> length)).into())
            }
            _ => None,
        }
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for InterfaceAddress {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<InterfaceAddress, PrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address(text.to_owned()))?;
        let width = width(address);
        let Some(length) = length else {
            return Err(PrefixError::NoLength(text.to_owned(), if width == 32 { 24 } else { 64 }));
        };
        match length.parse() {
            Ok(length) if length <= width => Ok(InterfaceAddress { address, length }),
            _ => Err(PrefixError::Length(text.to_owned(), width)),
        }
    }
}

/// An address as a column of a table holds it.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => u32::from(four).into(),
        IpAddr::V6(six) => six.into(),
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> IpPrefix {
        text.parse().expect("a prefix")
    }

    #[test]
    fn bits_behind_the_length_do_not_count() {
        assert_eq!(IpPrefix::of("10.1.2.3".parse().expect("one"), 8), prefix("10.0.0.0/8"));
        assert_eq!(IpPrefix::of("10.1.2.3".parse().expect("one"), 0), prefix("0.0.0.0/0"));
        assert_eq!(IpPrefix::of("fd00::1:2".parse().expect("one"), 0), prefix("::/0"));
        assert_eq!(IpPrefix::of("fd00::1:2".parse().expect("one"), 64), prefix("fd00::/64"));
        let all = prefix("0.0.0.0/0");
        assert!(
            all.contains("255.1.1.1".parse().expect("one")) && !all.contains("::1".parse().expect("one"))
        );
        assert!(prefix("10.0.0.0/8").overlaps(prefix("10.9.0.0/16")));
        assert!(prefix("10.9.0.0/16").overlaps(prefix("10.0.0.0/8")));
        assert!(!prefix("10.9.0.0/16").overlaps(prefix("10.8.0.0/16")));
    }

    #[test]
    fn faults_say_what_to_write() {
        let error = |text: &str| text.parse::<IpPrefix>().expect_err(text).to_string();
        assert_eq!(error("10.0.0.1/8"), "`10.0.0.1/8` has bits behind its length; the network is 10.0.0.0/8");
        assert!(error("10.0.0.0").contains("write `10.0.0.0/24`"));
        assert!(error("fd00::").contains("write `fd00::/64`"));
        assert!(error("10.0.0.0/33").contains("from 0 to 32"));
        assert!(error("ten").contains("is no address"));
    }

    #[test]
    fn all_hosts_of_a_network_have_an_address_where_there_are_more_than_two() {
        let broadcast = |text: &str| text.parse::<InterfaceAddress>().expect("one").broadcast();
        assert_eq!(broadcast("10.0.1.1/24"), Some("10.0.1.255".parse().expect("one")));
        assert_eq!(broadcast("10.0.1.1/30"), Some("10.0.1.3".parse().expect("one")));
        assert_eq!(broadcast("10.0.1.1/0"), Some("255.255.255.255".parse().expect("one")));
        assert_eq!(broadcast("10.0.1.1/31"), None);
        assert_eq!(broadcast("fd00::1/64"), None);
    }
}
