//! Link types: what a captured frame starts with, by the numbers of the tcpdump project.

use std::fmt;

/// A link type number (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet (IEEE 802.3).
    pub const ETHERNET: LinkType = LinkType(1);
    /// A bare IPv4 or IPv6 packet.
    pub const RAW: LinkType = LinkType(101);
    /// The "cooked" header of Linux, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);

    /// The name, or `None` for a number that is not one of the common ones.
    pub fn name(self) -> Option<&'static str> {
        NAMES.lines().find_map(|line| {
            let (number, name) = line.split_once(' ')?;
            (number.parse() == Ok(self.0)).then_some(name)
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Numbers and names, a line each.
const NAMES: &str = include_str!("link.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_unknown_numbers_stay_numbers() {
        let number = |line: &str| line.split_once(' ').and_then(|(number, _)| number.parse::<u16>().ok());
        assert!(NAMES.lines().map(number).is_sorted_by(|one, next| one.is_some() && one < next));
        assert_eq!(LinkType::ETHERNET.to_string(), "1 (Ethernet)");
        assert_eq!(LinkType(276).to_string(), "276 (Linux cooked v2)");
        assert_eq!(LinkType(60_000).to_string(), "60000");
    }
}
