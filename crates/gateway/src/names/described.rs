//! What follows from the description of a name: its services, and the entries by which packets reach its
//! host.

use super::parts::Amount;
use super::stable::StableHost;
use naming::dns::{NameDescription, Zone};
use naming::{Initiators, PathKey, Service, Services};
use std::net::Ipv6Addr;

/// What the host of a name offers.
pub(super) fn services(described: &NameDescription) -> Option<Services> {
    let parsed: Result<Vec<Service>, _> = described.services.iter().map(|text| text.parse()).collect();
    Services::new(parsed.ok()?).ok()
}

/// The host of a name with an address of the waypoint's network of IPv6.
pub(super) fn stable_host(
    described: &NameDescription,
    gateway: &str,
    inside: Ipv6Addr,
) -> Option<StableHost> {
    let (at, services) = (described.ipv6?, services(described)?);
    Some(StableHost { at, gateway: gateway.to_owned(), host: inside, services })
}

/// The entries that packets have of a name.
pub(super) fn entries(standing: &[PathKey], stable: Option<&StableHost>) -> Amount {
    let stable = stable.map_or(0, |host| host.services.iter().count());
    Amount { standing: standing.len(), stable, ..Amount::default() }
}

/// The entries by which the address that a name shares or has for itself leads to its host.
pub(super) fn standing_keys(zone: &Zone, described: &NameDescription) -> Vec<PathKey> {
    let name = zone.name(&described.name).ok();
    let address = name.and_then(|name| zone.standing_address(&name));
    let (Some(address), Some(services)) = (address, services(described)) else { return Vec::new() };
    services.iter().map(|service| PathKey { address, service, initiators: Initiators::Any }).collect()
}
