//! Judges ICMPv6: of Neighbour Discovery (RFC 4861), whoever hears it learns addresses.

use crate::ipv6::Headed;
use crate::own::OwnAddresses;
use crate::refusal::SourceRefusal;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
const ROUTER_RENUMBERING: u8 = 138;
/// Inverse discovery (RFC 3122), and certificates of routers (RFC 3971): they tell addresses, too.
const OTHER_DISCOVERY: [u8; 4] = [141, 142, 148, 149];
/// What a host asks is whether somebody has an address: to ff02::1:ff00:0/104.
const SOLICITED: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];

pub(crate) fn judge(own: &OwnAddresses, packet: &Headed<'_>) -> Result<(), SourceRefusal> {
    let message = packet.payload;
    let unspecified = packet.source == [0; 16];
    let &[kind, code, _, _, ..] = message else { return Err(SourceRefusal::NeighbourForm) };
    if unspecified && kind != NEIGHBOUR_SOLICITATION {
        return Err(SourceRefusal::Ipv6Source);
    }
    let fixed = match kind {
        REDIRECT => return Err(SourceRefusal::Redirect),
        ROUTER_ADVERTISEMENT if !own.advertises => return Err(SourceRefusal::RouterAdvertisement),
        ROUTER_RENUMBERING => return Err(SourceRefusal::NeighbourForm),
        _ if OTHER_DISCOVERY.contains(&kind) => return Err(SourceRefusal::NeighbourForm),
        ROUTER_SOLICITATION => 8,
        ROUTER_ADVERTISEMENT => 16,
        NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT => 24,
        _ => return Ok(()),
    };
    // Hosts ignore it from farther away (RFC 4861, 6.1 and 7.1) and in fragments (RFC 6980); no host needs
    // other headers before it.
    if code != 0 || packet.hops != 255 || packet.extended {
        return Err(SourceRefusal::NeighbourForm);
    }
    let (head, options) = message.split_at_checked(fixed).ok_or(SourceRefusal::NeighbourForm)?;
    if kind == ROUTER_ADVERTISEMENT && packet.source != own.link_local() {
        return Err(SourceRefusal::NeighbourForm);
    }
    let target = head.get(8..).and_then(|rest| rest.first_chunk::<16>());
    if let Some(target) = target.filter(|_| fixed == 24) {
        let tells = kind == NEIGHBOUR_ADVERTISEMENT || unspecified;
        if target[0] == 0xff || (tells && !own.has_ipv6(*target)) {
            return Err(SourceRefusal::NeighbourTarget);
        }
    }
    if unspecified && !packet.destination.starts_with(&SOLICITED) {
        return Err(SourceRefusal::NeighbourForm);
    }
    walk(own, options, unspecified)
}

/// Judges the options.
fn walk(own: &OwnAddresses, mut left: &[u8], unspecified: bool) -> Result<(), SourceRefusal> {
    const SOURCE: u8 = 1;
    const TARGET: u8 = 2;
    const REDIRECTED: u8 = 4;
    while !left.is_empty() {
        let &[kind, length, ..] = left else { return Err(SourceRefusal::NeighbourForm) };
        let length = usize::from(length) * 8;
        let (option, rest) =
            left.split_at_checked(length).filter(|_| length > 0).ok_or(SourceRefusal::NeighbourForm)?;
        match kind {
            SOURCE if unspecified => return Err(SourceRefusal::NeighbourForm),
            SOURCE | TARGET if option.get(2..) != Some(&own.ethernet[..]) => {
                return Err(SourceRefusal::NeighbourLinkLayer);
            }
            REDIRECTED => return Err(SourceRefusal::Redirect),
            _ => {}
        }
        left = rest;
    }
    Ok(())
}
