//! The part `[names]` of the file: the zone that this process answers for, and where it is asked.
//!
//! ```toml
//! [names]
//! listen = ["192.0.2.53:53", "[2001:db8::53]:53"] # by UDP and TCP; at least one, but for `name_servers`
//! zone = "home.example"
//! contact = "hostmaster"          # the mailbox of who runs it, with a dot for `@`; this is the default
//! serial = 1                      # at the start, each change adds one; this is the default
//! ttl = 300                       # how long resolvers keep a record, in seconds; this is the default
//! negative_ttl = 60               # how long they remember that one is not there; this is the default
//! unverified = "prove-under-load" # when a source that could be forged proves itself; or "prove-first"
//! store = "names.store"           # the file that keeps names, bindings and epochs over a restart; none by default
//! replies_per_second = 20         # to one network, of one kind and about one name; 0 is no limit
//! waypoints = ["w1"]              # peers of tunnels that are asked for addresses, behind the own; none by default
//! name_servers = ["ns1"]          # peers of tunnels that ask this waypoint; none by default
//!
//! [[names.server]]                # at least one; the first is the one that is changed
//! name = "ns1"                    # below the zone; a dot at the end makes it whole
//! addresses = ["192.0.2.53"]      # needed for names in the zone
//!
//! [[names.record]]                # kinds: A, AAAA, TXT, SVCB
//! kind = "A"
//! name = "www"
//! address = "192.0.2.80"
//!
//! [[names.gateway]]               # who has hosts with private addresses behind it, and which
//! name = "home"
//! networks = ["192.168.1.0/24", "fd00:10::/64"]
//! names = ["printer", "*.lab"]    # that it may register: single ones, or all below one; none by default
//! peer = 1                        # its number in the tunnel; needed beside ports, whose packets go there
//!
//! [[names.host]]                  # a name that leads to such a host
//! name = "nas"
//! gateway = "home"
//! address = "192.168.1.10"
//! services = ["tcp/22", "tcp/443"]
//! ipv4 = "per-initiator"          # also "automatic", which is the default, "shared", "none", { dedicated = "203.0.113.7" }
//! ipv6 = "fd00:10::10"            # its address behind its gateway, one that everybody reaches, or "translated"
//! https = { alpn = ["h2"] }       # what browsers are told before they connect; nothing by default
//!
//! [names.waypoint]                # the public addresses that names share; without it no name is `per-initiator`
//! known = ["203.0.113.16/28"]     # for initiators that are known when a name is asked for
//! unknown = ["203.0.113.32/28"]   # for the others
//! hold = "whole"                  # how long one of these stays with its host: 65 s, the default; or "measured"
//! ipv6 = "2001:db8:100::/64"      # where hosts with an address of IPv6 behind their gateway have one for all
//! server_names = ["tcp/443"]      # where a client without a promise is led by the server name of TLS; nowhere
//! ```
//!
//! With hosts there are three keys more at the top: `shared_address`, at which names with different services
//! are, `binding_ttl`, for how many seconds a promise may be kept (0 to 5; 0 is the default), and `clients`,
//! networks whose hosts ask for themselves. `resolvers` are networks of resolvers that are believed when they
//! tell the whole address of a client. `machine_services` is what the machine itself listens at besides its
//! name server and tunnels, such as `["tcp/22"]`, which is the default: no name gets it at the machine's own
//! addresses.

use super::constants::OURS;
use super::elsewhere::Elsewhere;
pub use super::hosts::HostPlace;
pub(crate) use super::hosts::Hosts;
use super::name_pattern::NamePattern;
use super::{At, ConfigError, server_names};
use crate::limits::{NAME_SERVER_ADDRESSES, NAMED_GATEWAYS, NAMED_RESOLVERS};
use crate::routing::IpPrefix;
use lang::settings::Settings;
use naming::control::is_gateway_name;
use naming::dns::{
    DnsPolicy, HttpsDescription, Ipv4Mode, MachineServices, NameDescription, NameServerDescription,
    RecordDescription, Unverified, Zone, ZoneDescription, ZoneError,
};
use naming::limits::{LONGEST_GATEWAY_NAME, MOST_ADDRESSES, MOST_NAMES_OF_GATEWAY};
use naming::{AddressPool, Hold, HostIpv6, HostIpv6Error, MOST_SERVICES, Service, StableNetwork, Waypoint};
use ports::live::WantedPort;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What a process does for names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamesConfig {
    /// Where it is asked by UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// The zone. Its responders are hosts by their numbers from 1.
    pub zone: ZoneDescription,
    /// The hosts.
    pub(crate) hosts: Hosts,
    /// The gateways.
    pub gateways: Vec<GatewayDescription>,
    /// The addresses of the waypoint of this process, if it is one.
    pub pool: Option<AddressPool>,
    /// For how long an address for unknown initiators is kept from other hosts.
    pub hold: Hold,
    /// The ports at which clients that nobody is promised to are led by the server name of TLS.
    pub server_names: BTreeSet<u16>,
    /// Line and column of `[names.waypoint]`.
    pub(crate) waypoint_place: (usize, usize),
    /// The network of IPv6 in which hosts behind gateways have addresses.
    pub(crate) network6: Option<StableNetwork>,
    /// By whole names: addresses behind the gateway of hosts that have one of this network.
    pub(crate) inside6: HashMap<String, Ipv6Addr>,
    /// The file that keeps over a restart what is to be kept, if there is to be one.
    pub store: Option<PathBuf>,
    /// How it treats those who ask.
    pub policy: DnsPolicy,
    /// Who has the other roles.
    pub elsewhere: Elsewhere,
}

/// A gateway, with hosts behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayDescription {
    /// Its name.
    pub name: String,
    /// The networks behind it.
    pub networks: Vec<IpPrefix>,
    /// The names that it may register.
    pub names: Vec<NamePattern>,
    /// Its number in the tunnel, by which packets are sent to it.
    pub peer: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGateway {
    name: Spanned<String>,
    networks: Vec<Spanned<String>>,
    #[serde(default)]
    names: Vec<Spanned<String>>,
    peer: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHost {
    name: String,
    gateway: Spanned<String>,
    address: Spanned<Ipv4Addr>,
    services: Vec<String>,
    #[serde(default)]
    ipv4: Ipv4Mode,
    ipv6: Option<Spanned<String>>,
    https: Option<HttpsDescription>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileWaypoint {
    #[serde(default)]
    known: Vec<Spanned<String>>,
    #[serde(default)]
    unknown: Vec<Spanned<String>>,
    hold: Option<Spanned<Hold>>,
    ipv6: Option<Spanned<String>>,
    #[serde(default)]
    server_names: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileNames {
    listen: Option<Spanned<Vec<Spanned<String>>>>,
    zone: Spanned<String>,
    contact: Option<String>,
    serial: Option<u32>,
    ttl: Option<u32>,
    negative_ttl: Option<u32>,
    unverified: Option<Unverified>,
    replies_per_second: Option<u32>,
    store: Option<PathBuf>,
    shared_address: Option<Spanned<Ipv4Addr>>,
    binding_ttl: Option<u32>,
    #[serde(default)]
    clients: Vec<Spanned<String>>,
    #[serde(default)]
    resolvers: Vec<Spanned<String>>,
    machine_services: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    waypoints: Vec<Spanned<String>>,
    #[serde(default)]
    name_servers: Vec<Spanned<String>>,
    #[serde(default, rename = "gateway")]
    gateways: Vec<FileGateway>,
    #[serde(default, rename = "host")]
    hosts: Vec<Spanned<FileHost>>,
    waypoint: Option<Spanned<FileWaypoint>>,
    #[serde(default, rename = "server")]
    servers: Vec<Spanned<NameServerDescription>>,
    #[serde(default, rename = "record")]
    records: Vec<Spanned<RecordDescription>>,
}

/// A name server asks by control messages. Whoever has its key is to reach nothing by packets, unless it is
/// one of the gateways.
fn control_alone(file: &FileNames, ports: &[WantedPort], at: &At<'_>) -> Result<(), ConfigError> {
    let peers = || ports.iter().filter_map(|port| port.tunnel.as_ref()).flat_map(|tunnel| &tunnel.peers);
    let is_gateway = |number| {
        let mut numbers = file.gateways.iter().filter_map(|gateway| gateway.peer.as_ref());
        numbers.any(|peer| *peer.get_ref() == number)
    };
    for server in &file.name_servers {
        let name = server.get_ref();
        if peers().any(|peer| peer.name == *name && peer.packets && !is_gateway(peer.number)) {
            let message = format!(
                "`{name}` asks by control messages alone: write `packets = false` in its `[[port.peer]]`"
            );
            return Err(at(Some(server.span()), message));
        }
    }
    Ok(())
}

/// Checks the part, and gives what is wrong at its place. `beside` it the process may carry packets; `peers`
/// are the names of all peers of tunnels.
pub(super) fn read(
    file: FileNames,
    beside: Option<(&[WantedPort], &Settings)>,
    peers: &[&str],
    at: &At<'_>,
) -> Result<NamesConfig, ConfigError> {
    let ports = beside.is_some();
    let elsewhere = Elsewhere::read(&file.waypoints, &file.name_servers, peers);
    let elsewhere = elsewhere.map_err(|(span, message)| at(Some(span), message))?;
    if let Some(first) = file.name_servers.first().filter(|_| !ports || file.waypoint.is_none()) {
        let message = "name servers ask a waypoint: it has ports, and addresses in `[names.waypoint]`";
        return Err(at(Some(first.span()), message.to_owned()));
    }
    control_alone(&file, beside.map_or(&[], |(ports, _)| ports), at)?;
    let listen = match &file.listen {
        Some(addresses) => listen(addresses, at)?,
        None if !file.name_servers.is_empty() => Vec::new(),
        None => {
            let message = "`listen` says where names are asked for, such as [\"192.0.2.53:53\"]; only a waypoint whose name server is elsewhere (`name_servers`) does without";
            return Err(at(Some(file.zone.span()), message.to_owned()));
        }
    };
    let whole = file.zone.span();
    let wrong = |span: &Range<usize>, error: ZoneError| at(Some(span.clone()), error.to_string());
    let mut described = ZoneDescription::new(file.zone.into_inner());
    described.contact = file.contact.unwrap_or(described.contact);
    described.serial = file.serial.unwrap_or(described.serial);
    described.ttl = file.ttl.unwrap_or(described.ttl);
    described.negative_ttl = file.negative_ttl.unwrap_or(described.negative_ttl);
    described.binding_ttl = file.binding_ttl.unwrap_or(0);
    described.shared_address = file.shared_address.as_ref().map(|address| *address.get_ref());
    described.machine = machine_services(file.machine_services.as_deref(), &listen, beside, at)?;
    if file.servers.is_empty() {
        let message = "the zone needs a name server: add `[[names.server]]` with `name` and `addresses`";
        return Err(at(Some(whole), message.to_owned()));
    }
    // A server that is wrong is told from those before it that are not.
    for server in file.servers {
        let span = server.span();
        described.name_servers.push(server.into_inner());
        Zone::new(&described)
            .map_err(|error| wrong(if described.name_servers.len() == 1 { &whole } else { &span }, error))?;
    }
    let mut zone = Zone::new(&described).map_err(|error| wrong(&whole, error))?;
    for record in file.records {
        zone.add_record(record.get_ref()).map_err(|error| wrong(&record.span(), error))?;
        described.records.push(record.into_inner());
    }
    let waypoint = at(file.waypoint.as_ref().map(Spanned::span), String::new());
    let network6 = file.waypoint.as_ref().and_then(|waypoint| waypoint.get_ref().ipv6.as_ref());
    let network6 = network6.map(|text| network_of_ipv6(text, at)).transpose()?;
    let shares = file.shared_address.is_some();
    let hold = file.waypoint.as_ref().and_then(|waypoint| waypoint.get_ref().hold.as_ref());
    if let Some(hold) = hold.filter(|hold| *hold.get_ref() == Hold::Measured && described.binding_ttl > 0) {
        let message = "`hold = \"measured\"` counts from the answer, which resolvers keep for `binding_ttl`: leave one of them out";
        return Err(at(Some(hold.span()), message.to_owned()));
    }
    let hold = hold.map_or(Hold::default(), |hold| *hold.get_ref());
    let texts = file.waypoint.as_ref().map(|waypoint| &waypoint.get_ref().server_names[..]);
    let server_names =
        server_names::read(texts.unwrap_or_default()).map_err(|(span, message)| at(Some(span), message))?;
    let pool = file.waypoint.map(|waypoint| pool(waypoint, shares, at)).transpose()?;
    let in_pool = |address: Ipv4Addr| pool.as_ref().is_some_and(|pool| contains(pool, address));
    if let Some(shared) = file.shared_address.filter(|shared| in_pool(*shared.get_ref())) {
        let message = format!("{} is in the pool of `[names.waypoint]`: it has one owner", shared.get_ref());
        return Err(at(Some(shared.span()), message));
    }
    let of_machine = |pool: &AddressPool| {
        pool.known.iter().chain(&pool.unknown).find(|one| described.machine.has(**one)).copied()
    };
    if let Some(own) = pool.as_ref().and_then(of_machine) {
        let message = format!(
            "{own} in the pool of `[names.waypoint]` is the machine's own: names share it as `shared_address`, which takes none of its services"
        );
        return Err(ConfigError { message, ..waypoint });
    }
    let gateways = gateways(file.gateways, (&zone, ports && pool.is_some()), at)?;
    let (mut hosts, mut inside6) = (Hosts::default(), HashMap::new());
    for host in file.hosts {
        let span = host.span();
        let host = host.into_inner();
        let place = HostPlace { gateway: host.gateway.get_ref().clone(), address: *host.address.get_ref() };
        let gateway = served(&gateways, &place).map_err(|(of_gateway, message)| {
            at(Some(if of_gateway { host.gateway.span() } else { host.address.span() }), message)
        })?;
        let wrong = |message: String| at(Some(span.clone()), message);
        own(pool.as_ref(), host.ipv4).map_err(wrong)?;
        let ipv6 = host.ipv6.map(|text| {
            let wrong = |message: String| at(Some(text.span()), message);
            let told: HostIpv6 =
                text.get_ref().parse().map_err(|error: HostIpv6Error| wrong(error.to_string()))?;
            let inside = told.behind_gateway(*host.address.get_ref());
            outside(network6, gateway, inside).map_err(wrong).map(|ipv6| (ipv6, inside))
        });
        let ipv6 = ipv6.transpose()?;
        let named = NameDescription {
            name: host.name,
            responder: hosts.number(place),
            services: host.services,
            ipv6: ipv6.map(|(ipv6, _)| ipv6),
            ipv4: host.ipv4,
            https: host.https,
        };
        zone.add_described(&named).map_err(|error| wrong(error.to_string()))?;
        if let (Some((_, inside)), Ok(name)) =
            (ipv6.filter(|(ipv6, inside)| ipv6 != inside), zone.name(&named.name))
        {
            inside6.insert(name.to_string(), inside);
        }
        reachable(&zone, &named.name, pool.is_some() || !elsewhere.waypoints.is_empty()).map_err(wrong)?;
        described.names.push(named);
    }
    let clients = prefixes(&file.clients, at)?;
    let clients = clients.into_iter().filter_map(|prefix| match prefix.address() {
        IpAddr::V4(address) => Some((address, prefix.length())),
        IpAddr::V6(_) => None,
    });
    let default = DnsPolicy::default();
    let policy = DnsPolicy {
        unverified: file.unverified.unwrap_or(default.unverified),
        replies_per_second: file.replies_per_second.unwrap_or(default.replies_per_second),
        clients: clients.collect(),
        resolvers: resolvers(&file.resolvers, at)?,
    };
    let waypoint_place = (waypoint.line, waypoint.column);
    Ok(NamesConfig {
        listen,
        zone: described,
        hosts,
        gateways,
        pool,
        hold,
        server_names,
        waypoint_place,
        network6,
        inside6,
        store: file.store,
        policy,
        elsewhere,
    })
}

impl NamesConfig {
    /// The same with the path of its store relative to the working directory.
    pub(super) fn in_directory(self, directory: &Path) -> NamesConfig {
        NamesConfig { store: self.store.map(|store| directory.join(store)), ..self }
    }
}

/// The gateway that a host's address is behind. An error says whether the gateway is what is wrong, and why.
pub(crate) fn served<'a>(
    gateways: &'a [GatewayDescription],
    place: &HostPlace,
) -> Result<&'a GatewayDescription, (bool, String)> {
    let HostPlace { gateway: name, address } = place;
    let Some(gateway) = gateways.iter().find(|gateway| gateway.name == *name) else {
        return Err((true, format!("there is no gateway `{name}`: describe it by `[[names.gateway]]`")));
    };
    if gateway.networks.iter().any(|network| network.contains(IpAddr::V4(*address))) {
        return Ok(gateway);
    }
    let networks: Vec<String> = gateway.networks.iter().map(ToString::to_string).collect();
    let networks = networks.join(", ");
    Err((false, format!("nobody serves {address}: behind the gateway `{name}` there is {networks}")))
}

/// The address by which everybody reaches a host that has this address of IPv6: one of the waypoint's network
/// if its gateway serves it, else the same.
pub(crate) fn outside(
    network: Option<StableNetwork>,
    gateway: &GatewayDescription,
    host: Ipv6Addr,
) -> Result<Ipv6Addr, String> {
    let served = is_behind(gateway, host);
    match network {
        Some(network) if served => Ok(network.address(&gateway.name, host)),
        None if served => Err(format!(
            "{host} is behind the gateway `{}`, and nobody leads there: give `[names.waypoint]` a network by `ipv6 = \"2001:db8:100::/64\"`",
            gateway.name
        )),
        Some(network) if network.contains(host) => Err(format!(
            "{host} is of the waypoint's own network: write the address that the host has behind `{}`, which is in `networks`",
            gateway.name
        )),
        _ if host.to_ipv4_mapped().is_some() => {
            Err(format!("nobody serves {host} behind `{}`", gateway.name))
        }
        _ => Ok(host),
    }
}

/// Whether a host with this address of IPv6, or mapped one of IPv4, is in a network of the gateway.
pub(crate) fn is_behind(gateway: &GatewayDescription, host: Ipv6Addr) -> bool {
    gateway.networks.iter().any(|prefix| prefix.contains(IpAddr::V6(host).to_canonical()))
}

/// What to do for a gateway whose number in the tunnel is not known.
pub(crate) fn no_peer(gateway: &str) -> String {
    format!(
        "packets cannot be sent to the gateway `{gateway}`: give it `peer = 1`, or whatever its number in the tunnel is"
    )
}

/// What is wrong if a gateway of names has another number than the peer of its name: what it registers would
/// go to somebody else.
pub(super) fn other_number(names: &NamesConfig, ports: &[WantedPort]) -> Option<String> {
    let peers = || ports.iter().filter_map(|port| port.tunnel.as_ref()).flat_map(|tunnel| &tunnel.peers);
    let numbered = names.gateways.iter().filter_map(|gateway| Some((gateway, gateway.peer?)));
    let other = |(gateway, number): (&GatewayDescription, u32)| {
        peers().find(|peer| peer.name == gateway.name && peer.number != number)
    };
    let peer = numbered.filter_map(other).next()?;
    Some(format!(
        "the gateway `{0}` of names has another number than the peer `{0}` of a tunnel, which is {1}: what it registers would go to somebody else",
        peer.name, peer.number
    ))
}

fn contains(pool: &AddressPool, address: Ipv4Addr) -> bool {
    pool.known.contains(&address) || pool.unknown.contains(&address)
}

/// Whether the address that a name has for itself is nobody else's.
pub(crate) fn own(pool: Option<&AddressPool>, mode: Ipv4Mode) -> Result<(), String> {
    match (pool, mode) {
        (Some(pool), Ipv4Mode::Dedicated(address)) if contains(pool, address) => {
            Err(format!("{address} is in the pool of `[names.waypoint]` and cannot be for one name alone"))
        }
        _ => Ok(()),
    }
}

/// Whether somebody can promise the address of a name that needs it.
pub(crate) fn reachable(zone: &Zone, name: &str, has_waypoint: bool) -> Result<(), String> {
    let mode = zone.name(name).ok().and_then(|name| zone.mode(&name));
    if mode != Some(Ipv4Mode::PerInitiator) || has_waypoint {
        return Ok(());
    }
    Err(format!(
        "{name} needs an address for each initiator, and nobody promises any: add `[names.waypoint]` or `waypoints`, or let it have `ipv4 = \"shared\"`, an address of its own or \"none\""
    ))
}

fn gateways(
    files: Vec<FileGateway>,
    (zone, need_peers): (&Zone, bool),
    at: &At<'_>,
) -> Result<Vec<GatewayDescription>, ConfigError> {
    let mut gateways: Vec<GatewayDescription> = Vec::with_capacity(files.len());
    for file in files {
        let name = file.name.get_ref().clone();
        if gateways.iter().any(|known| known.name == name) {
            return Err(at(Some(file.name.span()), format!("gateway `{name}` stands above already")));
        }
        if !is_gateway_name(&name) {
            let message = format!("a gateway's name has 1 to {LONGEST_GATEWAY_NAME} bytes");
            return Err(at(Some(file.name.span()), message));
        }
        if gateways.len() >= NAMED_GATEWAYS {
            return Err(at(Some(file.name.span()), format!("there are at most {NAMED_GATEWAYS} gateways")));
        }
        let peer = file.peer.as_ref().map(|peer| *peer.get_ref());
        if need_peers && peer.is_none() {
            return Err(at(Some(file.name.span()), no_peer(&name)));
        }
        if let Some(own) = file.peer.filter(|peer| !(1..1 << 24).contains(peer.get_ref())) {
            let message = "`peer`: between 1 and 16777215; number 0 is the waypoint itself";
            return Err(at(Some(own.span()), message.to_owned()));
        }
        if let Some(other) = gateways.iter().find(|known| peer.is_some() && known.peer == peer) {
            let message =
                format!("gateway `{}` has this `peer` already: each has a number of its own", other.name);
            return Err(at(Some(file.name.span()), message));
        }
        if let Some(many) = file.names.get(MOST_NAMES_OF_GATEWAY) {
            let message =
                format!("a gateway has at most {MOST_NAMES_OF_GATEWAY} `names`: write `*.` and a name");
            return Err(at(Some(many.span()), message));
        }
        let pattern = |text: &Spanned<String>| {
            NamePattern::parse(text.get_ref(), zone).map_err(|message| at(Some(text.span()), message))
        };
        let names = file.names.iter().map(pattern).collect::<Result<_, _>>()?;
        gateways.push(GatewayDescription { name, networks: networks(&file.networks, at)?, names, peer });
    }
    Ok(gateways)
}

/// What the machine itself listens at, and at which addresses: those of its name server and of its tunnels,
/// and those that the file says that the program shares (`OURS`).
fn machine_services(
    texts: Option<&[Spanned<String>]>,
    listen: &[SocketAddr],
    beside: Option<(&[WantedPort], &Settings)>,
    at: &At<'_>,
) -> Result<MachineServices, ConfigError> {
    let mut machine = MachineServices::default();
    for text in texts.unwrap_or_default() {
        let service = text
            .get_ref()
            .parse()
            .map_err(|error: naming::ServiceTextError| at(Some(text.span()), error.to_string()))?;
        machine.services.insert(service);
    }
    if texts.is_none() {
        machine.services.insert(Service { protocol: 6, port: 22 });
    }
    let ports = beside.map_or(&[][..], |(ports, _)| ports);
    let tunnels = ports.iter().filter_map(|port| Some(port.tunnel.as_ref()?.listen));
    let (udp, tcp) = (|port| Service { protocol: 17, port }, |port| Service { protocol: 6, port });
    machine.services.extend(listen.iter().flat_map(|one| [udp(one.port()), tcp(one.port())]));
    machine.services.extend(tunnels.clone().map(|one| udp(one.port())));
    if machine.services.len() > MOST_SERVICES {
        let message = format!("a machine has at most {MOST_SERVICES} services of its own beside names");
        return Err(at(texts.and_then(|texts| Some(texts.last()?.span())), message));
    }
    let specified = listen.iter().copied().chain(tunnels).filter_map(|one| match one.ip() {
        IpAddr::V4(address) if !address.is_unspecified() => Some((address, 32)),
        _ => None,
    });
    machine.addresses.extend(specified);
    let set = beside.and_then(|(_, settings)| settings.value(OURS));
    let shared: Option<IpPrefix> = set.and_then(|text| text.trim_matches('"').parse().ok());
    if let Some((IpAddr::V4(address), length)) = shared.map(|one| (one.address(), one.length())) {
        machine.addresses.push((address, length));
    }
    Ok(machine)
}

/// Networks of resolvers that are believed. Everybody cannot be: this is what the list is for.
fn resolvers(texts: &[Spanned<String>], at: &At<'_>) -> Result<Vec<(IpAddr, u8)>, ConfigError> {
    let wrong = |text: &Spanned<String>, message: String| Err(at(Some(text.span()), message));
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        if all.len() >= NAMED_RESOLVERS {
            return wrong(text, format!("there are at most {NAMED_RESOLVERS} networks of `resolvers`"));
        }
        match network(text) {
            Some(prefix) if prefix.length() > 0 => all.push((prefix.address(), prefix.length())),
            Some(_) => {
                let message =
                    "whoever asks would be believed about other clients: write the resolvers that are yours";
                return wrong(text, message.to_owned());
            }
            None => {
                let message = format!(
                    "`{}` is not an address or a network of resolvers, such as 192.0.2.53",
                    text.get_ref()
                );
                return wrong(text, message);
            }
        }
    }
    Ok(all)
}

/// A network, or an address as the network of itself.
fn network(text: &Spanned<String>) -> Option<IpPrefix> {
    text.get_ref().parse().map(IpPrefix::host).ok().or_else(|| text.get_ref().parse().ok())
}

/// Networks of both kinds.
fn networks(texts: &[Spanned<String>], at: &At<'_>) -> Result<Vec<IpPrefix>, ConfigError> {
    let read = |text: &Spanned<String>| {
        network(text).ok_or_else(|| {
            let message =
                format!("`{}` is not a network, such as 192.168.1.0/24 or fd00:10::/64", text.get_ref());
            at(Some(text.span()), message)
        })
    };
    texts.iter().map(read).collect()
}

/// The network in which hosts have addresses of IPv6.
fn network_of_ipv6(text: &Spanned<String>, at: &At<'_>) -> Result<StableNetwork, ConfigError> {
    let prefix: Option<IpPrefix> = text.get_ref().parse().ok();
    match prefix.map(|prefix| (prefix.address(), prefix.length())) {
        Some((IpAddr::V6(first), 64)) => Ok(StableNetwork::of(first)),
        _ => {
            let message = format!(
                "`{}` is not a network of IPv6 with 64 bits, such as 2001:db8:100::/64",
                text.get_ref()
            );
            Err(at(Some(text.span()), message))
        }
    }
}

/// Networks of IPv4.
fn prefixes(texts: &[Spanned<String>], at: &At<'_>) -> Result<Vec<IpPrefix>, ConfigError> {
    let read = |text: &Spanned<String>| {
        network(text).filter(|prefix| prefix.is_ipv4()).ok_or_else(|| {
            let message = format!("`{}` is not a network of IPv4, such as 192.168.1.0/24", text.get_ref());
            at(Some(text.span()), message)
        })
    };
    texts.iter().map(read).collect()
}

/// The addresses of the waypoint, all of a network each.
fn pool(waypoint: Spanned<FileWaypoint>, shares: bool, at: &At<'_>) -> Result<AddressPool, ConfigError> {
    let whole = waypoint.span();
    let FileWaypoint { known, unknown, ipv6, .. } = waypoint.into_inner();
    if known.is_empty() && unknown.is_empty() && !shares && ipv6.is_none() {
        let message = "a waypoint has addresses: write `unknown`, `known` or both, or a `shared_address`";
        return Err(at(Some(whole), message.to_owned()));
    }
    let mut pool = AddressPool::default();
    for (texts, addresses) in [(&known, &mut pool.known), (&unknown, &mut pool.unknown)] {
        for (text, prefix) in texts.iter().zip(prefixes(texts, at)?) {
            let size = 1_u64 << (32 - u32::from(prefix.length()));
            let IpAddr::V4(first) = prefix.address() else { continue };
            if size > MOST_ADDRESSES as u64 {
                let message =
                    format!("{prefix} has {size} addresses, and a pool has at most {MOST_ADDRESSES}");
                return Err(at(Some(text.span()), message));
            }
            addresses.extend((0..size as u32).map(|more| Ipv4Addr::from_bits(first.to_bits() | more)));
        }
    }
    match Waypoint::new(pool.clone()) {
        Ok(_) => Ok(pool),
        Err(error) => Err(at(Some(whole), error.to_string())),
    }
}

fn listen(addresses: &Spanned<Vec<Spanned<String>>>, at: &At<'_>) -> Result<Vec<SocketAddr>, ConfigError> {
    let (all, whole) = (addresses.get_ref(), addresses.span());
    if all.is_empty() || all.len() > NAME_SERVER_ADDRESSES {
        let message =
            format!("`listen` has 1 to {NAME_SERVER_ADDRESSES} addresses, and this one has {}", all.len());
        return Err(at(Some(whole), message));
    }
    let mut read = Vec::with_capacity(all.len());
    for text in all {
        let wrong = |message: String| at(Some(text.span()), message);
        let address: SocketAddr = text.get_ref().parse().map_err(|_| {
            wrong(format!("`{}` is not an address with a port, such as 192.0.2.53:53", text.get_ref()))
        })?;
        if address.ip().is_unspecified() {
            return Err(wrong(format!(
                "{address} is every address of the machine, and a reply could leave from another one than was asked: write each address"
            )));
        }
        if read.contains(&address) {
            return Err(wrong(format!("{address} stands here twice")));
        }
        read.push(address);
    }
    Ok(read)
}
