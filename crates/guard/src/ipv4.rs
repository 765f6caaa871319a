//! Judges IPv4 (RFC 791).

use crate::bounds::ends;
use crate::bounds::pair;
use crate::own::OwnAddresses;
use crate::refusal::SourceRefusal;

/// Bytes of the header without options.
const SHORTEST: usize = 20;
const ICMP: u8 = 1;
const UDP: u8 = 17;

pub(crate) fn judge(own: &OwnAddresses, packet: &[u8]) -> Result<(), SourceRefusal> {
    let fixed = packet.first_chunk::<SHORTEST>().ok_or(SourceRefusal::Ipv4Form)?;
    let (version, header) = (fixed[0] >> 4, usize::from(fixed[0] & 0xf) * 4);
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if version != 4 || header < SHORTEST || total < header || !ends(packet, total) {
        return Err(SourceRefusal::Ipv4Form);
    }
    let head = packet.get(..header).ok_or(SourceRefusal::Ipv4Form)?;
    let payload = packet.get(header..total).ok_or(SourceRefusal::Ipv4Form)?;
    if !has_right_checksum(head) {
        return Err(SourceRefusal::Ipv4Checksum);
    }
    options(head.get(SHORTEST..).unwrap_or_default())?;
    let place = u16::from_be_bytes([fixed[6], fixed[7]]);
    let (reserved, more, offset) =
        (place & 0x8000 != 0, place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
    let ill_cut = more && (payload.is_empty() || !payload.len().is_multiple_of(8));
    if reserved || ill_cut || header + offset + payload.len() > usize::from(u16::MAX) {
        return Err(SourceRefusal::Ipv4Fragment);
    }
    let (protocol, first) = (fixed[9], offset == 0);
    let source = [fixed[12], fixed[13], fixed[14], fixed[15]];
    let destination = [fixed[16], fixed[17], fixed[18], fixed[19]];
    if !own.has_ipv4(source) {
        let asks = own.dhcp_client && source == [0; 4] && destination == [255; 4];
        let datagram = protocol == UDP && first && !more && payload.len() >= 8;
        let ports = (pair(payload, 0), pair(payload, 2)) == (Some(68), Some(67));
        if !(asks && datagram && ports) {
            return Err(SourceRefusal::Ipv4Source);
        }
    }
    match payload.first() {
        Some(5) if protocol == ICMP && first => Err(SourceRefusal::Redirect),
        // RFC 1256.
        Some(9) if protocol == ICMP && first && !own.advertises => Err(SourceRefusal::RouterAdvertisement),
        _ => Ok(()),
    }
}

/// Whether the sum over the header is that of a right one (RFC 1071).
fn has_right_checksum(head: &[u8]) -> bool {
    let sum: u32 = head.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    folded == 0xffff
}

/// Judges the options: their form, and that each is known.
fn options(mut left: &[u8]) -> Result<(), SourceRefusal> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    const RECORD_ROUTE: u8 = 7;
    const TIMESTAMP: u8 = 68;
    const ROUTER_ALERT: u8 = 148;
    while let [kind, rest @ ..] = left {
        match *kind {
            0 => {
                return if rest.iter().all(|&byte| byte == 0) {
                    Ok(())
                } else {
                    Err(SourceRefusal::Ipv4Options)
                };
            }
            1 => left = rest,
            LOOSE | STRICT => return Err(SourceRefusal::SourceRoute),
            RECORD_ROUTE | TIMESTAMP | ROUTER_ALERT => {
                let length = rest.first().map_or(0, |&length| usize::from(length));
                left = left.get(length..).filter(|_| length >= 2).ok_or(SourceRefusal::Ipv4Options)?;
            }
            _ => return Err(SourceRefusal::Ipv4Options),
        }
    }
    Ok(())
}
