//! A zone as a person or a file writes it.

use crate::expectation::Initiators;
use crate::service::{Service, Services};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A zone. Names that end with a dot are whole, `@` is the zone itself, and others are below the zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneDescription {
    /// The name of the zone, such as `home.example`.
    pub zone: String,
    /// The mailbox of who runs it, with a dot for `@`.
    #[serde(default = "hostmaster")]
    pub contact: String,
    /// The serial number at the start. Each change adds one.
    #[serde(default = "one")]
    pub serial: u32,
    /// How long resolvers keep what does not change, in seconds.
    #[serde(default = "five_minutes")]
    pub ttl: u32,
    /// How long they remember that a name or record is not there, in seconds.
    #[serde(default = "minute")]
    pub negative_ttl: u32,
    /// How long they keep an address that was promised for one look-up, in seconds.
    #[serde(default)]
    pub binding_ttl: u32,
    /// The servers of the zone.
    pub name_servers: Vec<NameServerDescription>,
    /// The public address that names with different services share.
    pub shared_address: Option<Ipv4Addr>,
    /// What no name gets, since the machine of the waypoint listens there itself.
    #[serde(skip)]
    pub machine: MachineServices,
    /// Hosts that are reached by this zone.
    #[serde(default)]
    pub names: Vec<NameDescription>,
    /// Other records.
    #[serde(default)]
    pub records: Vec<RecordDescription>,
}

/// What a machine listens at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineServices {
    /// Protocols and ports.
    pub services: BTreeSet<Service>,
    /// Its addresses: first bits and how many.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

impl MachineServices {
    /// Whether the machine has this address.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|&(network, length)| Initiators::Prefix(network, length).contain(address))
    }

    /// A service that the machine has at this address itself, if there is one among these.
    pub(crate) fn meets(&self, address: Ipv4Addr, services: &Services) -> Option<Service> {
        services.iter().find(|service| self.services.contains(service)).filter(|_| self.has(address))
    }
}

impl ZoneDescription {
    /// A zone of this name with what holds where nothing else is written, and without servers.
    pub fn new(zone: String) -> ZoneDescription {
        ZoneDescription {
            zone,
            contact: hostmaster(),
            serial: one(),
            ttl: five_minutes(),
            negative_ttl: minute(),
            binding_ttl: 0,
            name_servers: Vec::new(),
            shared_address: None,
            machine: MachineServices::default(),
            names: Vec::new(),
            records: Vec::new(),
        }
    }
}

/// A server of the zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameServerDescription {
    /// Its name.
    pub name: String,
    /// Its addresses, if the name is in the zone.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

/// How a host is reached by IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv4Mode {
    /// By the shared address where nobody else has its services there, else by a promise for each initiator.
    #[default]
    Automatic,
    /// By the shared address.
    Shared,
    /// By a promise for each initiator.
    PerInitiator,
    /// By an address of its own.
    Dedicated(Ipv4Addr),
    /// Not at all.
    None,
}

/// A name that leads to a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameDescription {
    /// The name.
    pub name: String,
    /// The number of the host.
    pub responder: u32,
    /// What it offers, such as `tcp/22`, `udp/53`, `icmp` or `protocol/47`.
    pub services: Vec<String>,
    /// The address that always leads to the host.
    pub ipv6: Option<Ipv6Addr>,
    /// How it is reached by IPv4.
    #[serde(default)]
    pub ipv4: Ipv4Mode,
    /// What browsers are told before they connect.
    pub https: Option<HttpsDescription>,
}

/// A service binding for web browsers (RFC 9460).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpsDescription {
    /// Protocols such as `h2`.
    #[serde(default)]
    pub alpn: Vec<String>,
    /// The port, if it is not 443.
    pub port: Option<u16>,
}

/// A record that leads to no host behind a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum RecordDescription {
    /// An address of IPv4.
    A {
        /// The name.
        name: String,
        /// The address.
        address: Ipv4Addr,
    },
    /// An address of IPv6.
    #[serde(rename = "AAAA")]
    Aaaa {
        /// The name.
        name: String,
        /// The address.
        address: Ipv6Addr,
    },
    /// Text.
    #[serde(rename = "TXT")]
    Txt {
        /// The name.
        name: String,
        /// The text, cut into strings of 255 bytes where it is longer.
        text: String,
    },
    /// A service binding of any service, such as `_dns.resolver`.
    #[serde(rename = "SVCB")]
    Svcb {
        /// The name.
        name: String,
        /// The smallest is taken first; 0 makes it an alias without parameters.
        priority: u16,
        /// The host that offers the service.
        target: String,
        /// Protocols.
        #[serde(default)]
        alpn: Vec<String>,
        /// The port.
        port: Option<u16>,
    },
}

fn hostmaster() -> String {
    "hostmaster".to_owned()
}

fn one() -> u32 {
    1
}

fn minute() -> u32 {
    60
}

fn five_minutes() -> u32 {
    300
}
