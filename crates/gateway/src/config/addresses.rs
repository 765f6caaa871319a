//! Reads the addresses of a gateway's file, and checks that they fit together before anything is applied.

use super::places::PortPlace;
use super::routes::{self, FileRoute};
use super::{At, ConfigError, FilePort, LONGEST_NAME, is_interface_name};
use crate::routing::{FollowedRoutes, InterfaceAddress, PortSettings, RoutingSettings};
use packet::PortNumber;
use ports::live::PortKind;
use serde::Deserialize;
use std::net::IpAddr;
use std::ops::Range;
use toml::Spanned;

/// What the gateway takes over from the Linux kernel.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileKernel {
    #[serde(default)]
    routes: Option<Spanned<FileFollowed>>,
}

/// Whose routes are followed.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`true`, `false`, or the interface of a port of `kind = \"vnic\"`")]
enum FileFollowed {
    /// Those of the machine, or nobody's.
    Machine(bool),
    /// Those of the container whose link this interface is.
    Container(String),
}

/// The places of the first addresses of IPv4 and IPv6.
type Firsts = [Option<Range<usize>>; 2];

/// The smallest MTU of IPv4 and of IPv6.
const SMALLEST: [u16; 2] = [68, 1280];

/// What the file says of ports and routes.
pub(super) struct InFile<'a> {
    pub(super) ports: &'a [FilePort],
    pub(super) places: &'a [PortPlace],
    pub(super) routes: &'a [FileRoute],
}

/// Reads the addresses and routes of the file, and the places of its first addresses of IPv4 and IPv6.
pub(super) fn read(
    file: &InFile<'_>,
    of_kernel: &FileKernel,
    at: &At<'_>,
) -> Result<(RoutingSettings, Firsts), ConfigError> {
    let (mut ports, mut first) = (Vec::new(), [None, None]);
    let mut known: Vec<(InterfaceAddress, usize)> = Vec::new();
    for (index, (port, place)) in file.ports.iter().zip(file.places).enumerate() {
        let mut addresses = Vec::new();
        for text in &port.addresses {
            let wrong = |message| Err(at(Some(text.span()), message));
            let own: InterfaceAddress = match text.get_ref().parse() {
                Ok(own) => own,
                Err(error) => return wrong(format!("{error}")),
            };
            if let Some(why) = unusable(own) {
                return wrong(format!("`{own}` cannot be an interface's address: {why}"));
            }
            for (other, owner) in &known {
                let (name, owner_name) = (own.prefix(), &file.places[*owner].name);
                if other.address == own.address {
                    return wrong(format!("`{}` is an address of `{owner_name}` already", own.address));
                }
                if *owner != index && other.prefix().overlaps(own.prefix()) {
                    return wrong(format!(
                        "{name} overlaps {}, the network at `{owner_name}`: a network is at one port",
                        other.prefix()
                    ));
                }
            }
            first[usize::from(own.address.is_ipv6())].get_or_insert(text.span());
            known.push((own, index));
            addresses.push(own);
        }
        let smallest = SMALLEST[usize::from(addresses.iter().any(|own| own.address.is_ipv6()))];
        if let Some(mtu) = port.mtu.as_ref().filter(|mtu| *mtu.get_ref() < smallest) {
            let message = format!("an MTU of {} is too small: at least {smallest} here", mtu.get_ref());
            return Err(at(Some(mtu.span()), message));
        }
        ports.push(PortSettings {
            interface: place.name.clone(),
            tagged_on: (place.name != place.interface).then(|| place.interface.clone()),
            addresses,
            mtu: port.mtu.as_ref().map(|mtu| *mtu.get_ref()),
            shared: file.ports[place.first].kind() == PortKind::Tap,
            host_interface: host((port, place), &ports, file, at)?,
        });
    }
    let kernel = of_kernel.routes.as_ref();
    let kernel = kernel.filter(|routes| !matches!(routes.get_ref(), FileFollowed::Machine(false)));
    let hosts = ports.iter().any(|port: &PortSettings| port.host_interface.is_some());
    if let Some(kernel) = kernel.filter(|_| known.is_empty() && !hosts) {
        let message = "a gateway that routes has addresses: add `addresses = [\"…\"]` to its ports";
        return Err(at(Some(kernel.span()), message.to_owned()));
    }
    let routes = routes::read(file.routes, &ports).map_err(|(span, message)| at(Some(span), message))?;
    // What daemons of the machine find out is for the gateway, too, unless the file says otherwise.
    let kernel = match of_kernel.routes.as_ref().map(|routes| (routes.get_ref(), routes.span())) {
        None if hosts => FollowedRoutes::Machine,
        None | Some((FileFollowed::Machine(false), _)) => FollowedRoutes::Nobody,
        Some((FileFollowed::Machine(true), _)) => FollowedRoutes::Machine,
        Some((FileFollowed::Container(name), span)) => {
            container(name, file).map_err(|why| at(Some(span), why))?
        }
    };
    Ok((RoutingSettings { ports, routes, kernel }, first))
}

/// The routes of the container whose link this interface is.
fn container(name: &str, file: &InFile<'_>) -> Result<FollowedRoutes, String> {
    let at = file.places.iter().position(|place| place.interface == name);
    let port = at.map(|at| (at, &file.ports[file.places[at].first]));
    let Some((at, port)) = port.filter(|(_, port)| port.kind() == PortKind::Vnic) else {
        return Err(format!(
            "`{name}` is no port of `kind = \"vnic\"`: routes are followed of the machine (`true`), or of the container at such a port"
        ));
    };
    if port.has_guest() {
        return Err(format!(
            "the router at `{name}` is in a virtual machine, and nobody else sees its routes: leave out `guest`, or write `true` for the routes of the machine"
        ));
    }
    Ok(FollowedRoutes::Container(at as PortNumber + 1))
}

/// The interface by which the machine is to be a host at a port, if it is. Its name differs from those of all
/// ports, and of the host interfaces of the `earlier` ones.
fn host(
    (port, place): (&FilePort, &PortPlace),
    earlier: &[PortSettings],
    file: &InFile<'_>,
    at: &At<'_>,
) -> Result<Option<String>, ConfigError> {
    let wrong = |span, message: String| Err(at(Some(span), message));
    let Some(demand) = port.host.as_ref().filter(|host| *host.get_ref()) else {
        return match &port.host_interface {
            Some(name) => wrong(name.span(), "`host_interface` is for a port with `host = true`".to_owned()),
            None => Ok(None),
        };
    };
    if file.ports[place.first].kind() == PortKind::Tap {
        let message = "the machine is behind a TAP port, and so no host at it: leave out `host`";
        return wrong(demand.span(), message.to_owned());
    }
    let (name, span) = match &port.host_interface {
        Some(name) => (name.get_ref().clone(), name.span()),
        None => (host_name(&place.name), demand.span()),
    };
    if !is_interface_name(&name) {
        return wrong(span, format!("`{name}` cannot be the name of an interface"));
    }
    let is_port = file.places.iter().any(|port| port.interface == name || port.name == name);
    let is_host = earlier.iter().any(|port| port.host_interface.as_ref() == Some(&name));
    if is_port || is_host {
        let message = format!(
            "`{name}` is the interface of another port or its host interface: name another by `host_interface`"
        );
        return wrong(span, message);
    }
    Ok(Some(name))
}

/// The name of a port's host interface where the file gives none: `h-` and the port's interface, as much of
/// it as there is room for.
fn host_name(interface: &str) -> String {
    let mut name = format!("h-{interface}");
    while name.len() > LONGEST_NAME {
        name.pop();
    }
    name
}

/// Why an interface may not have this address (RFC 1122, 3.2.1.3; RFC 4291, 2).
fn unusable(own: InterfaceAddress) -> Option<&'static str> {
    let InterfaceAddress { address, length } = own;
    let host = if address.is_ipv4() { 31 } else { 127 };
    if address.is_multicast() {
        Some("it is that of a group")
    } else if address.is_loopback() || address.is_unspecified() {
        Some("it means the host itself")
    } else if matches!(address, IpAddr::V6(six) if six.segments()[0] & 0xffc0 == 0xfe80) {
        Some("addresses of the link come by themselves")
    } else if matches!(address, IpAddr::V4(four) if four.octets()[0] >= 240 || four.octets()[0] == 0) {
        Some("it is in no network")
    } else if length < host && own.prefix().address() == address {
        Some("it is that of the network as a whole")
    } else if own.broadcast() == Some(address) {
        Some("it means all hosts of the network")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::routing::FollowedRoutes;
    use std::path::Path;

    fn read(more: &str) -> Result<Config, String> {
        let text = format!(
            "program = \"a\"\n[[port]]\ninterface = \"x\"\naddresses = [\"10.0.1.1/24\", \"fd00:1::1/64\"]\n[[port]]\ninterface = \"y\"\n{more}"
        );
        Config::read(&text, Path::new("/etc")).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_routes_and_tables() {
        let config = read(
            "addresses = [\"10.0.2.1/24\"]\nmtu = 1400\n[[route]]\nto = \"0.0.0.0/0\"\nvia = \"10.0.2.7\"\n\
             [[route]]\nto = \"fd00:9::/32\"\nvia = \"fe80::7\"\nport = \"y\"\n[kernel]\nroutes = true\n\
             [[table]]\nname = \"acl\"\nfrom = \"rules.txt\"\nas = \"iptables\"\n",
        )
        .expect("is right");
        let routes: Vec<String> = config
            .routing
            .routes
            .iter()
            .map(|route| format!("{} {} {}", route.to, route.via[0].0.address, route.via[0].0.port))
            .collect();
        assert_eq!(
            routes,
            ["0.0.0.0/0 10.0.2.7 2", "fd00::/32 fe80::7 2"]
                .map(|text| text.replace("fd00::/32", "fd00:9::/32"))
        );
        assert_eq!(
            (config.routing.ports[1].mtu, config.routing.kernel),
            (Some(1400), FollowedRoutes::Machine)
        );
        assert_eq!(config.first_address, [Some((4, 14)), Some((4, 29))]);
        let table = &config.tables[0];
        assert_eq!((table.table.as_str(), table.format.as_str(), table.place), ("acl", "iptables", (19, 8)));
        assert_eq!(table.file, Path::new("/etc/rules.txt"));
        let more = "[[table]]\nname = \"own\"\nfrom = \"x\"\nas = \"nft\"\nfamily = \"ip6\"\ntable = \"t\"\nchain = \"input\"\nfirst_packets = true\n";
        let options = read(more).expect("is right").tables.remove(0).options;
        assert_eq!((options.family, options.first_packets), (Some(6), true));
        assert_eq!((options.table.as_deref(), options.chain.as_deref()), (Some("t"), Some("input")));
    }

    #[test]
    fn routes_of_a_container_are_those_at_its_port() {
        let vnic = "[[port]]\ninterface = \"v\"\nkind = \"vnic\"\n[port.vnic]\nethernet = \"02:00:00:00:01:01\"\naddresses = [\"10.0.1.3/24\"]\n";
        let config = read(&format!("{vnic}[kernel]\nroutes = \"v\"\n")).expect("is right");
        assert_eq!(config.routing.kernel, FollowedRoutes::Container(3));
    }

    #[test]
    fn a_host_interface_has_a_name_that_fits_and_its_packets_are_kept_from_the_kernel() {
        let hosts = |more: &str| {
            let config = read(more).expect("is right");
            let of = |port: &crate::routing::PortSettings| port.host_interface.clone();
            let kept = config.ports.iter().map(|port| (port.keep_from_kernel, port.promiscuous)).collect();
            (config.routing.ports.iter().map(of).collect::<Vec<_>>(), kept)
        };
        let (none, kept): (_, Vec<_>) = hosts("host = false\n");
        assert_eq!((none, kept), (vec![None, None], vec![(false, false), (false, true)]));
        let (one, kept) = hosts("host = true\n");
        assert_eq!((one, kept), (vec![None, Some("h-y".into())], vec![(false, false), (true, false)]));
        let (one, kept) = hosts("host = true\nhost_interface = \"uplink\"\nkeep_from_kernel = false\n");
        assert_eq!((one, kept), (vec![None, Some("uplink".into())], vec![(false, false); 2]));
        assert_eq!(super::host_name("fifteen-letters"), "h-fifteen-lette");
        let follows = |more: &str| read(more).expect("is right").routing.kernel;
        assert_eq!(
            [follows("host = true\n"), follows("host = true\n[kernel]\nroutes = false\n")],
            [FollowedRoutes::Machine, FollowedRoutes::Nobody]
        );
        assert_eq!(follows("host = false\n"), FollowedRoutes::Nobody);
        let running = read("host = true\n").expect("is right");
        let other = read("host = true\nhost_interface = \"uplink\"\n").expect("is right");
        let error = running.takes(&other).expect_err("it has another name").to_string();
        assert!(
            error.starts_with("line 6, column 13: `y` is port 2 of the running gateway, with other settings"),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        let cases = [
            ("addresses = [\"10.0.2.1\"]\n", "line 7, column 14: `10.0.2.1` does not say how long"),
            (
                "addresses = [\"10.0.2.0/24\"]\n",
                "line 7, column 14: `10.0.2.0/24` cannot be an interface's address: it is that of the network",
            ),
            (
                "addresses = [\"10.0.2.255/24\"]\n",
                "line 7, column 14: `10.0.2.255/24` cannot be an interface's address: it means all",
            ),
            (
                "addresses = [\"224.0.0.1/24\"]\n",
                "line 7, column 14: `224.0.0.1/24` cannot be an interface's address: it is that of a group",
            ),
            (
                "addresses = [\"fe80::1/64\"]\n",
                "line 7, column 14: `fe80::1/64` cannot be an interface's address: addresses of the link",
            ),
            ("addresses = [\"10.0.1.1/16\"]\n", "line 7, column 14: `10.0.1.1` is an address of `x` already"),
            (
                "addresses = [\"10.0.9.1/16\"]\n",
                "line 7, column 14: 10.0.0.0/16 overlaps 10.0.1.0/24, the network at `x`",
            ),
            (
                "addresses = [\"fd00:2::1/64\"]\nmtu = 1279\n",
                "line 8, column 7: an MTU of 1279 is too small: at least 1280",
            ),
            (
                "host_interface = \"h\"\n",
                "line 7, column 18: `host_interface` is for a port with `host = true`",
            ),
            (
                "host = true\nkind = \"tap\"\n",
                "line 7, column 8: the machine is behind a TAP port, and so no host at it",
            ),
            (
                "host = true\nhost_interface = \"a long interface\"\n",
                "line 8, column 18: `a long interface` cannot be the name of an interface",
            ),
            (
                "host = true\nhost_interface = \"x\"\n",
                "line 8, column 18: `x` is the interface of another port or its host interface",
            ),
            (
                "host = true\n[[port]]\ninterface = \"h-y\"\n",
                "line 7, column 8: `h-y` is the interface of another port or its host interface",
            ),
            (
                "host = true\n[[port]]\ninterface = \"z\"\nhost = true\nhost_interface = \"h-y\"\n",
                "line 11, column 18: `h-y` is the interface of another port or its host interface",
            ),
            ("mtu = 70000\n", "line 7, column 7: invalid value: integer `70000`"),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.2.7\"\n",
                "line 9, column 7: 10.0.2.7 is on no connected network",
            ),
            (
                "[[route]]\nto = \"10.9.0.1/16\"\nvia = \"10.0.1.7\"\n",
                "line 8, column 6: `10.9.0.1/16` has bits behind its length; the network is 10.9.0.0/16",
            ),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.1.1\"\n",
                "line 9, column 7: 10.0.1.1 is the gateway's own address",
            ),
            (
                "[[route]]\nto = \"10.0.1.0/24\"\nvia = \"10.0.1.7\"\n",
                "line 8, column 6: 10.0.1.0/24 is connected",
            ),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"fd00:1::7\"\n",
                "line 9, column 7: fd00:1::7 is of another family",
            ),
            (
                "[[route]]\nto = \"fd00:9::/32\"\nvia = \"fe80::7\"\n",
                "line 9, column 7: fe80::7 is an address of one link",
            ),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.1.7\"\nport = \"z\"\n",
                "line 10, column 8: there is no port with interface `z`",
            ),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.1.7\"\nport = \"y\"\n",
                "line 9, column 7: 10.0.1.7 is at `x`",
            ),
            (
                "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.1.7\"\n[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.1.8\"\n",
                "line 11, column 6: there is a route to 10.9.0.0/16 above already: write all its next hops in one list",
            ),
            ("[[route]]\nto = \"10.9.0.0/16\"\nvia = \"ten\"\n", "line 9, column 7: `ten` is no address"),
            (
                "[kernel]\nroutes = \"y\"\n",
                "line 8, column 10: `y` is no port of `kind = \"vnic\"`: routes are followed of the machine",
            ),
            ("[kernel]\nroutes = 3\n", "line 8, column 10: `true`, `false`, or the interface"),
            (
                "[kernel]\nroutes = \"v\"\n[[port]]\ninterface = \"v\"\nkind = \"vnic\"\n[port.vnic]\nethernet = \"02:00:00:00:01:01\"\nguest = \"tap\"\naddresses = [\"10.0.2.3/24\"]\n",
                "line 8, column 10: the router at `v` is in a virtual machine",
            ),
            ("[kernel]\nroute = true\n", "line 8, column 1: unknown field `route`"),
            (
                "[[table]]\nname = \"acl\"\nfrom = \"x\"\n[[table]]\nname = \"acl\"\nfrom = \"y\"\n",
                "line 11, column 8: table `acl` is filled above already",
            ),
            (
                "[[table]]\nname = \"acl\"\nfrom = \"x\"\nas = \"nft\"\ninterfaces = { eth0 = 2, eth1 = 3 }\n",
                "line 11, column 33: there is no port 3",
            ),
            (
                "[[table]]\nname = \"acl\"\nfrom = \"x\"\nas = \"routes\"\nchain = \"y\"\n",
                "line 11, column 9: `chain` is for files of iptables and nft",
            ),
            (
                "[[table]]\nname = \"acl\"\nfrom = \"x\"\nas = \"routes\"\ninterfaces = { eth0 = 1 }\n",
                "line 11, column 14: `interfaces` is for files of iptables and nft",
            ),
            (
                "[[table]]\nname = \"acl\"\nfrom = \"x\"\nas = \"nft\"\nfamily = \"inet\"\n",
                "line 11, column 10: `inet` is no family; write `ip4` or `ip6`",
            ),
        ];
        for (more, wanted) in cases {
            let error = read(more).expect_err(more);
            assert!(error.starts_with(wanted), "{more:?} gives {error}");
        }
        let none = "program = \"a\"\n[[port]]\ninterface = \"x\"\n[kernel]\nroutes = true\n";
        let error = Config::read(none, Path::new("/etc")).expect_err("needs addresses").to_string();
        assert!(error.starts_with("line 5, column 10: a gateway that routes has addresses"), "{error}");
    }
}
