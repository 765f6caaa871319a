//! Addresses and prefixes as text, IPv4 (RFC 4632) and IPv6 (RFC 4291, printed as RFC 5952 wants it).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The kind of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressFamily {
    /// IPv4, 32 bits.
    #[default]
    V4,
    /// IPv6, 128 bits.
    V6,
}

impl AddressFamily {
    /// The width of an address, in bits.
    pub fn width(self) -> u8 {
        match self {
            AddressFamily::V4 => 32,
            AddressFamily::V6 => 128,
        }
    }

    /// The family whose addresses have `width` bits.
    pub fn of_width(width: u8) -> Option<Self> {
        [AddressFamily::V4, AddressFamily::V6].into_iter().find(|family| family.width() == width)
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            AddressFamily::V4 => "IPv4",
            AddressFamily::V6 => "IPv6",
        }
    }
}

/// Why a text is no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefixFault {
    /// The part before `/` is no address.
    Address,
    /// The part behind `/` is no length of the family.
    Length(AddressFamily),
    /// Bits behind the length are set.
    HostBits(AddressFamily),
}

impl fmt::Display for PrefixFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixFault::Address => formatter.write_str("is no prefix"),
            PrefixFault::Length(family) => {
                write!(formatter, "has no length from 0 to {} behind its `/`", family.width())
            }
            PrefixFault::HostBits(_) => formatter.write_str("has bits behind its length"),
        }
    }
}

/// Reads an address.
pub fn parse(text: &[u8]) -> Option<(AddressFamily, u128)> {
    if let Some(address) = parse_v4(text) {
        return Some((AddressFamily::V4, address.into()));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<Ipv6Addr>().ok().map(|address| (AddressFamily::V6, address.into()))
}

/// Reads four decimal numbers; leading zeros are refused, as some read them as octal.
pub(crate) fn parse_v4(text: &[u8]) -> Option<u32> {
    let (mut address, mut part, mut digits, mut parts) = (0u32, 0u32, 0, 1);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                if digits == 3 || (digits > 0 && part == 0) {
                    return None;
                }
                part = part * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 256 && parts < 4 => {
                address = address << 8 | part;
                (part, digits, parts) = (0, 0, parts + 1);
            }
            _ => return None,
        }
    }
    (parts == 4 && digits > 0 && part < 256).then_some(address << 8 | part)
}

/// Reads `address/length`, or an address alone as its longest prefix.
pub(crate) fn parse_prefix(text: &[u8]) -> Result<(AddressFamily, u128, u8), PrefixFault> {
    let slash = text.iter().position(|byte| *byte == b'/');
    let (family, bits) = parse(&text[..slash.unwrap_or(text.len())]).ok_or(PrefixFault::Address)?;
    let Some(slash) = slash else { return Ok((family, bits, family.width())) };
    let fault = PrefixFault::Length(family);
    let length = match text[slash + 1..] {
        [ones @ b'0'..=b'9'] => u32::from(ones - b'0'),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => u32::from(tens - b'0') * 10 + u32::from(ones - b'0'),
        [b'1', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            100 + u32::from(tens - b'0') * 10 + u32::from(ones - b'0')
        }
        _ => return Err(fault),
    };
    let length = u8::try_from(length).ok().filter(|length| *length <= family.width()).ok_or(fault)?;
    if bits & host_mask(family.width(), length) != 0 {
        return Err(PrefixFault::HostBits(family));
    }
    Ok((family, bits, length))
}

/// The ones behind a prefix of `length` bits in an address of `width` bits.
pub(crate) fn host_mask(width: u8, length: u8) -> u128 {
    let host = u32::from(width.saturating_sub(length));
    u128::MAX.checked_shr(128 - host).unwrap_or(0)
}

/// Reads an Ethernet address: six pairs of digits with colons between them.
pub(crate) fn parse_mac(text: &str) -> Option<u128> {
    let octet = |part: &str| if part.len() == 2 { u8::from_str_radix(part, 16).ok() } else { None };
    let octets: Vec<u8> = text.split(':').map(octet).collect::<Option<_>>()?;
    (octets.len() == 6).then(|| octets.iter().fold(0, |mac, octet| mac << 8 | u128::from(*octet)))
}

/// The address as text.
pub fn print(family: AddressFamily, address: u128) -> String {
    match family {
        // The upper bits of an IPv4 address are zero.
        AddressFamily::V4 => Ipv4Addr::from(address as u32).to_string(),
        AddressFamily::V6 => Ipv6Addr::from(address).to_string(),
    }
}

/// The prefix as text.
pub fn print_prefix(family: AddressFamily, bits: u128, length: u8) -> String {
    format!("{}/{length}", print(family, bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_reach_both_ends() {
        assert_eq!(host_mask(32, 32), 0);
        assert_eq!(host_mask(32, 24), 0xff);
        assert_eq!(host_mask(32, 0), 0xffff_ffff);
        assert_eq!(host_mask(128, 0), u128::MAX);
        assert_eq!(host_mask(128, 128), 0);
    }

    #[test]
    fn faults_are_told_apart() {
        use PrefixFault::{Address, HostBits, Length};
        for (text, fault) in [
            ("1.2.3", Address),
            ("1.2.3.4.5", Address),
            ("1.2.3.256", Address),
            ("1.2.3.04", Address),
            ("1.2..3", Address),
            ("", Address),
            ("/8", Address),
            ("::g/8", Address),
            ("1.2.3.4/", Length(AddressFamily::V4)),
            ("1.2.3.4/33", Length(AddressFamily::V4)),
            ("1.2.3.4/032", Length(AddressFamily::V4)),
            ("1.2.3.4/+8", Length(AddressFamily::V4)),
            ("::/129", Length(AddressFamily::V6)),
            ("1.2.3.4/31", Length(AddressFamily::V4)),
        ] {
            let found = parse_prefix(text.as_bytes());
            if text == "1.2.3.4/31" {
                assert_eq!(found, Ok((AddressFamily::V4, 0x0102_0304, 31)));
            } else {
                assert_eq!(found, Err(fault), "{text}");
            }
        }
        assert_eq!(parse_prefix(b"1.2.3.5/31"), Err(HostBits(AddressFamily::V4)));
        assert_eq!(parse_prefix(b"::1/127"), Err(HostBits(AddressFamily::V6)));
    }

    proptest! {
        #[test]
        fn four_numbers_are_read_as_the_standard_library_reads_them(text in "[0-9.]{0,16}") {
            let standard = text.parse::<Ipv4Addr>().ok().map(u32::from);
            prop_assert_eq!(parse_v4(text.as_bytes()), standard);
        }

        #[test]
        fn what_is_printed_is_read(bits: u128, length in 0u8..=128, four: bool) {
            let (family, width) = if four { (AddressFamily::V4, 32) } else { (AddressFamily::V6, 128) };
            let length = length.min(width);
            let bits = (bits & host_mask(width, 0)) & !host_mask(width, length);
            let text = print_prefix(family, bits, length);
            prop_assert_eq!(parse_prefix(text.as_bytes()), Ok((family, bits, length)));
        }
    }
}
