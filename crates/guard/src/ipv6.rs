//! Judges IPv6 (RFC 8200): its header, and the extension headers up to what they stand before.

use crate::bounds::ends;
use crate::bounds::pair;
use crate::icmpv6;
use crate::own::OwnAddresses;
use crate::refusal::SourceRefusal;

/// Bytes of the header.
const HEADER: usize = 40;
/// The most extension headers.
const MOST_HEADERS: usize = 8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;
const NOTHING: u8 = 59;
const DESTINATION: u8 = 60;
/// Extension headers that are not known here (IANA, IPv6 Extension Header Types): behind them, others than
/// this guard would find what it did not see.
const UNKNOWN: [u8; 5] = [135, 139, 140, 253, 254];

/// What the headers say of a packet.
pub(crate) struct Headed<'a> {
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) hops: u8,
    /// Whether it has any extension headers, and whether one says that it is a fragment.
    pub(crate) extended: bool,
    pub(crate) fragment: bool,
    /// What follows the headers.
    pub(crate) payload: &'a [u8],
}

pub(crate) fn judge(own: &OwnAddresses, packet: &[u8]) -> Result<(), SourceRefusal> {
    let fixed = packet.first_chunk::<HEADER>().ok_or(SourceRefusal::Ipv6Form)?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if fixed[0] >> 4 != 6 || !ends(packet, HEADER + length) {
        return Err(SourceRefusal::Ipv6Form);
    }
    let payload = packet.get(HEADER..HEADER + length).ok_or(SourceRefusal::Ipv6Form)?;
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source.copy_from_slice(&fixed[8..24]);
    destination.copy_from_slice(&fixed[24..40]);
    let unspecified = source == [0; 16];
    if !unspecified && !own.has_ipv6(source) {
        return Err(SourceRefusal::Ipv6Source);
    }
    let headed = Headed { source, destination, hops: fixed[7], extended: false, fragment: false, payload };
    match walk(fixed[6], headed)? {
        (Some(ICMPV6), headed) => icmpv6::judge(own, &headed),
        // From no address a host asks whether somebody has one, and nothing else.
        _ if unspecified => Err(SourceRefusal::Ipv6Source),
        _ => Ok(()),
    }
}

/// Walks through the extension headers. Returns the protocol behind them, or none of a later fragment, whose
/// bytes are of something that the first one says.
fn walk(mut next: u8, mut headed: Headed<'_>) -> Result<(Option<u8>, Headed<'_>), SourceRefusal> {
    for number in 0..=MOST_HEADERS {
        let missing =
            if headed.fragment { SourceRefusal::Ipv6Fragment } else { SourceRefusal::ExtensionHeaders };
        match next {
            HOP_BY_HOP if number > 0 => return Err(SourceRefusal::ExtensionHeaders),
            HOP_BY_HOP | DESTINATION => {
                let (header, rest) = cut(headed.payload, 8, 8).ok_or(missing)?;
                options(header.get(2..).unwrap_or_default())?;
                (next, headed.payload) = (header[0], rest);
            }
            AUTHENTICATION => {
                let (header, rest) = cut(headed.payload, 4, 8).ok_or(missing)?;
                // Its fixed part has three words, and a number of bytes that is a multiple of eight.
                if header.len() < 12 || !header.len().is_multiple_of(8) {
                    return Err(SourceRefusal::ExtensionHeaders);
                }
                (next, headed.payload) = (header[0], rest);
            }
            ROUTING => return Err(SourceRefusal::SourceRoute),
            FRAGMENT if headed.fragment => return Err(SourceRefusal::Ipv6Fragment),
            FRAGMENT => {
                let (&[after, _, _, _, ..], rest) =
                    headed.payload.split_first_chunk::<8>().ok_or(SourceRefusal::Ipv6Fragment)?;
                let place = pair(headed.payload, 2).ok_or(SourceRefusal::Ipv6Fragment)?;
                let (offset, more) = (usize::from(place & 0xfff8), place & 1 != 0);
                let ill_cut = more && (rest.is_empty() || !rest.len().is_multiple_of(8));
                if ill_cut || offset + rest.len() > usize::from(u16::MAX) {
                    return Err(SourceRefusal::Ipv6Fragment);
                }
                (next, headed.payload, headed.fragment) = (after, rest, true);
                if offset > 0 {
                    headed.extended = true;
                    return Ok((None, headed));
                }
            }
            _ if UNKNOWN.contains(&next) => return Err(SourceRefusal::ExtensionHeaders),
            NOTHING if !headed.payload.is_empty() => return Err(SourceRefusal::ExtensionHeaders),
            // The first fragment holds what decides about the packet.
            _ if headed.fragment && next != NOTHING && headed.payload.len() < 8 => {
                return Err(SourceRefusal::Ipv6Fragment);
            }
            _ => return Ok((Some(next), headed)),
        }
        headed.extended = true;
    }
    Err(SourceRefusal::ExtensionHeaders)
}

/// Cuts a header off that says in its second byte how many units it has beyond the first bytes.
fn cut(payload: &[u8], unit: usize, first: usize) -> Option<(&[u8], &[u8])> {
    payload.split_at_checked(first + usize::from(*payload.get(1)?) * unit)
}

/// Judges the options of a header. One would name another source (RFC 6275, 6.3), another a length of its own
/// (RFC 2675): only those are known that do neither.
fn options(mut left: &[u8]) -> Result<(), SourceRefusal> {
    const PADDING: u8 = 1;
    const ROUTER_ALERT: u8 = 5;
    while let [kind, rest @ ..] = left {
        left = match *kind {
            0 => rest,
            PADDING | ROUTER_ALERT => {
                let length = rest.first().map(|&length| 2 + usize::from(length));
                length.and_then(|length| left.get(length..)).ok_or(SourceRefusal::ExtensionHeaders)?
            }
            _ => return Err(SourceRefusal::ExtensionHeaders),
        };
    }
    Ok(())
}
