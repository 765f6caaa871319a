//! Why a zone is refused.

use crate::dns::name::{DnsName, DnsNameError};
use crate::limits::{LONGEST_BINDING_TTL, LONGEST_TEXT, MOST_NAME_SERVERS, MOST_NAMES, MOST_RECORDS_AT_NAME};
use crate::service::{Service, ServiceTextError, TooManyServices};
use std::net::Ipv4Addr;

/// Why a zone or a change of it is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// Not a name.
    #[error(transparent)]
    Name(#[from] DnsNameError),
    /// Not a service.
    #[error("{0}: {1}")]
    Service(DnsName, ServiceTextError),
    /// Too many services.
    #[error("{0}: {1}")]
    Services(DnsName, TooManyServices),
    /// A name of another zone.
    #[error("{0} is not in the zone {1}: leave its last dot out to put it below the zone")]
    Outside(DnsName, DnsName),
    /// The name leads to a host already.
    #[error("{0} leads to a host already: remove it first")]
    Taken(DnsName),
    /// No such name.
    #[error("{0} leads to no host of this zone")]
    Absent(DnsName),
    /// The zone's own name leads to no host.
    #[error("{0} is the zone itself, which leads to no host: choose a name below it")]
    Apex(DnsName),
    /// Two names want the same service of the shared address.
    #[error(
        "{0} and {1} offer the same service at the shared address: give one of them `per-initiator` or \
         another port"
    )]
    Overlap(DnsName, DnsName),
    /// The machine of the waypoint has this service itself.
    #[error(
        "{0} offers {1}, and the machine itself listens there at {2}: give it `per-initiator`, another address or \
         another port, or change `machine_services`"
    )]
    OfMachine(DnsName, Service, Ipv4Addr),
    /// The mode needs an address that the zone does not have.
    #[error("{0} wants the shared address, and the zone has none: set `shared_address`")]
    NoSharedAddress(DnsName),
    /// Two owners of one address.
    #[error("{0} is not for {1} alone: {2} has it already")]
    AddressTaken(Ipv4Addr, DnsName, DnsName),
    /// The zone's shared address cannot belong to one name.
    #[error("{0} is the shared address of the zone, and cannot be for {1} alone")]
    AddressShared(Ipv4Addr, DnsName),
    /// A name has an address from its host and a record beside it.
    #[error("{0} leads to a host and has records of addresses beside it: remove one of the two")]
    TwoAddresses(DnsName),
    /// No name server, or too many of them or of their addresses.
    #[error(
        "a zone has 1 to {MOST_NAME_SERVERS} name servers with up to as many addresses, and this one has {0}"
    )]
    NameServers(usize),
    /// A server of the zone itself whose address nobody could find.
    #[error("{0} is a name server in its own zone and has no address: write its `addresses`")]
    NoGlue(DnsName),
    /// Resolvers would keep a promise for too long.
    #[error("`binding_ttl` is {0}, and at most {LONGEST_BINDING_TTL} seconds: a promise is for one look-up")]
    LongBinding(u32),
    /// More than the DNS can say (RFC 2181, 8).
    #[error("a time to live is at most 2147483647 seconds, and this one is {0}")]
    LongTtl(u32),
    /// Too much text, or of the wrong kind.
    #[error("{0}: a text has at most {LONGEST_TEXT} bytes and a protocol 1 to 255")]
    Text(DnsName),
    /// Too many names.
    #[error("a zone has at most {MOST_NAMES} names")]
    TooManyNames,
    /// Too many records at one name.
    #[error("{0} has at most {MOST_RECORDS_AT_NAME} records")]
    TooManyRecords(DnsName),
}
