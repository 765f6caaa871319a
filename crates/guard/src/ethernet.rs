//! Judges the Ethernet header, and what follows by its type.

use crate::arp;
use crate::bounds::{HEADER, pair};
use crate::ipv4;
use crate::ipv6;
use crate::own::OwnAddresses;
use crate::refusal::SourceRefusal;

/// The types of VLAN tags: IEEE 802.1Q, 802.1ad, and the one that was used before it.
const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

pub(crate) fn judge(own: &OwnAddresses, frame: &[u8]) -> Result<(), SourceRefusal> {
    let destination = frame.first_chunk::<6>().ok_or(SourceRefusal::TooShort)?;
    let source = frame.get(6..12).ok_or(SourceRefusal::TooShort)?;
    let kind = pair(frame, 12).ok_or(SourceRefusal::TooShort)?;
    if frame.len() > HEADER + usize::from(own.mtu) {
        return Err(SourceRefusal::TooLong);
    }
    if source != own.ethernet {
        return Err(SourceRefusal::EthernetSource);
    }
    if let [0x01, 0x80, 0xc2, 0, 0, last] = *destination
        && last < 0x10
    {
        return Err(SourceRefusal::BridgeGroup);
    }
    let packet = frame.get(HEADER..).unwrap_or_default();
    match kind {
        0x0800 => ipv4::judge(own, packet),
        0x0806 => arp::judge(own, packet),
        0x86dd => ipv6::judge(own, packet),
        tag if TAGS.contains(&tag) => Err(SourceRefusal::VlanTag),
        _ => Err(SourceRefusal::EthernetType),
    }
}
