//! A small internet: initiators and a resolver around a router, a waypoint, and hosts with private addresses
//! behind a gateway that itself has a private address of its carrier.
//!
//! ```text
//!  initiator 0  203.0.113.2  ─┐                            ┌─ public   198.51.100.0/27 ─ waypoint
//!  initiator 1  203.0.113.18 ─┤                            ├─ machine  192.0.2.34      ─ (the same)
//!  …                          ├──── router: .1 or .30 ─────┤
//!  resolver     192.0.2.2    ─┘     of each network        └─ carrier  192.0.2.50, translates
//!                                                               │ 100.64.0.1
//!                          host 0 10.0.0.80 ─┐                  │
//!                          host 1 10.0.0.81 ─┼─ lan ─ gateway ──┘ 100.64.0.2
//!                          host 2 10.0.0.82 ─┘        10.0.0.1
//! ```
//!
//! Initiators have an address of IPv6, too, 2001:db8:c:N::2, and hosts fd00:10::50 and further, with a route
//! to fd00:10::1. The router sends 2001:db8:100::/64 to the address on the link of the waypoint's interface.
//! What lies between has IPv4 alone.
//!
//! The interfaces `public` of the waypoint and `lan` of the gateway have no address: they are for a gateway's
//! ports. Every other interface is Linux'.

use crate::links::RigLinks;
use crate::namespace::Namespace;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The networks of initiators have four bits of 203.0.113.0/24 each.
pub const MOST_INITIATORS: usize = 16;

/// The Ethernet address of the router on the link `public`.
pub const ROUTER_ETHERNET: [u8; 6] = [2, 0, 0x5e, 0, 0, 0xfe];

/// The namespaces, and the addresses by which one speaks of them.
pub struct SmallInternet {
    /// Forwards between all that is public.
    pub router: Namespace,
    /// Each has one public address: [`SmallInternet::initiator_address`].
    pub initiators: Vec<Namespace>,
    /// 192.0.2.2.
    pub resolver: Namespace,
    /// 192.0.2.34 by `machine`; `public` has no address.
    pub waypoint: Namespace,
    /// Translates the addresses of the gateway to 192.0.2.50.
    pub carrier: Namespace,
    /// 100.64.0.2 by `uplink`; `lan` has no address.
    pub gateway: Namespace,
    /// 10.0.0.80 and further, with a route to 10.0.0.1.
    pub hosts: Vec<Namespace>,
    /// The switch of the private network.
    pub lan: Namespace,
    offloads: bool,
}

impl SmallInternet {
    /// Where the resolver is.
    pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    /// Where the waypoint's machine itself is.
    pub const WAYPOINT_MACHINE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 34);
    /// Where the gateway's datagrams come from on the public side of its carrier.
    pub const CARRIER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 50);
    /// Where the gateway's machine is, on the private side of its carrier.
    pub const GATEWAY_MACHINE: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
    /// The gateway as its hosts see it.
    pub const LAN_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    /// The same by IPv6.
    pub const LAN_GATEWAY6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 1);
    /// The network of IPv6 that is routed to the waypoint, of 64 bits.
    pub const STABLE_NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0);

    /// Makes all of it. Forwarding begins at once; nothing else runs in it. The carrier translates by `nft`.
    /// Without `offloads` every packet on every cable has its checksums, and is no longer than the cable
    /// takes.
    ///
    /// # Errors
    /// The kernel refuses, `nft` is missing, or more than [`MOST_INITIATORS`] are wanted.
    pub fn new(initiators: usize, hosts: u8, offloads: bool) -> io::Result<SmallInternet> {
        if initiators > MOST_INITIATORS || usize::from(hosts) > MOST_INITIATORS {
            let message = format!("a small internet has at most {MOST_INITIATORS} initiators and hosts");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let many = |count: usize| (0..count).map(|_| Namespace::new()).collect::<io::Result<Vec<_>>>();
        let internet = SmallInternet {
            router: Namespace::new()?,
            initiators: many(initiators)?,
            resolver: Namespace::new()?,
            waypoint: Namespace::new()?,
            carrier: Namespace::new()?,
            gateway: Namespace::new()?,
            hosts: many(hosts.into())?,
            lan: Namespace::new()?,
            offloads,
        };
        for (index, initiator) in internet.initiators.iter().enumerate() {
            let own = SmallInternet::initiator_address(index);
            let name = format!("initiator{index}");
            internet.attach(&name, initiator, "eth0", own)?;
            let own = SmallInternet::initiator_address6(index);
            let first = Ipv6Addr::from_bits(own.to_bits() & !0xffff | 1);
            internet.router.links()?.address(&name, first, 64)?;
            let there = initiator.links()?;
            there.address("eth0", own, 64)?;
            there.default_route(first)?;
        }
        internet.attach("resolver", &internet.resolver, "eth0", SmallInternet::RESOLVER)?;
        internet.attach("machine", &internet.waypoint, "machine", SmallInternet::WAYPOINT_MACHINE)?;
        internet.attach("carrier", &internet.carrier, "public", SmallInternet::CARRIER)?;
        internet.public_link()?;
        internet.private_side()?;
        internet.private_network()?;
        internet.router.set("ipv4/ip_forward", "1")?;
        internet.router.set("ipv6/conf/all/forwarding", "1")?;
        internet.carrier.set("ipv4/ip_forward", "1")?;
        let rules = "table ip carrier {\n chain out {\n  type nat hook postrouting priority srcnat\n  oifname \"public\" masquerade\n }\n}\n";
        let output = internet.carrier.run("nft", &["-f", "-"], rules)?;
        if !output.status.success() {
            return Err(io::Error::other(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim())));
        }
        Ok(internet)
    }

    /// The address of an initiator.
    pub fn initiator_address(index: usize) -> Ipv4Addr {
        // There are 16 of them, 16 addresses apart.
        Ipv4Addr::new(203, 0, 113, (index * 16 + 2) as u8)
    }

    /// The address of IPv6 of an initiator.
    pub fn initiator_address6(index: usize) -> Ipv6Addr {
        // There are 16 of them.
        Ipv6Addr::new(0x2001, 0xdb8, 0xc, index as u16, 0, 0, 0, 2)
    }

    /// The address of IPv6 of a host.
    pub fn host_address6(index: usize) -> Ipv6Addr {
        // There are 16 of them.
        Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0x50 + index as u16)
    }

    /// The address of a host.
    pub fn host_address(index: usize) -> Ipv4Addr {
        // There are 16 of them.
        Ipv4Addr::new(10, 0, 0, 80 + index as u8)
    }

    /// Lays a cable from the router to somebody with this address in a network of 16, of which the router
    /// has the first, and who sends everything there.
    fn attach(&self, name: &str, to: &Namespace, interface: &str, own: Ipv4Addr) -> io::Result<()> {
        let network = own.to_bits() & !15;
        let first = Ipv4Addr::from_bits(network + 1);
        let [.., third, fourth] = own.octets();
        let here = self.router.links()?;
        here.cable((name, [2, 0, 1, 0, third, fourth]), (interface, [2, 0, 2, 0, third, fourth]), to)?;
        here.address(name, first, 28)?;
        self.on(&here, name)?;
        let there = to.links()?;
        there.up("lo")?;
        there.address(interface, own, 28)?;
        self.on(&there, interface)?;
        there.default_route(first)
    }

    /// Switches on an end of a cable.
    fn on(&self, links: &RigLinks<'_>, interface: &str) -> io::Result<()> {
        links.offloads(interface, self.offloads)?;
        links.up(interface)
    }

    /// The link on which the addresses of the waypoint are.
    fn public_link(&self) -> io::Result<()> {
        let here = self.router.links()?;
        here.cable(("public", ROUTER_ETHERNET), ("public", [2, 0, 0x5e, 0, 0, 1]), &self.waypoint)?;
        here.address("public", Ipv4Addr::new(198, 51, 100, 30), 27)?;
        self.on(&here, "public")?;
        self.on(&self.waypoint.links()?, "public")?;
        // The address that follows from the Ethernet address (RFC 4291, appendix A).
        let waypoint = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x5eff, 0xfe00, 1);
        here.route6((SmallInternet::STABLE_NETWORK, 64), waypoint, "public")
    }

    /// The gateway behind its carrier.
    fn private_side(&self) -> io::Result<()> {
        let carrier = self.carrier.links()?;
        let gateway = self.gateway.links()?;
        carrier.cable(("customer", [2, 0, 3, 0, 0, 1]), ("uplink", [2, 0, 3, 0, 0, 2]), &self.gateway)?;
        carrier.address("customer", Ipv4Addr::new(100, 64, 0, 1), 24)?;
        self.on(&carrier, "customer")?;
        gateway.up("lo")?;
        gateway.address("uplink", SmallInternet::GATEWAY_MACHINE, 24)?;
        self.on(&gateway, "uplink")?;
        gateway.default_route(Ipv4Addr::new(100, 64, 0, 1))
    }

    /// The hosts behind the gateway.
    fn private_network(&self) -> io::Result<()> {
        let lan = self.lan.links()?;
        lan.bridge("switch")?;
        lan.cable(("gateway", [2, 0, 4, 0, 0, 1]), ("lan", [2, 0, 4, 0, 0, 2]), &self.gateway)?;
        lan.plug("gateway", "switch")?;
        self.on(&lan, "gateway")?;
        self.on(&self.gateway.links()?, "lan")?;
        for (index, host) in self.hosts.iter().enumerate() {
            let name = format!("host{index}");
            // There are 16 of them.
            let last = index as u8;
            lan.cable((&name, [2, 0, 4, 0, 1, last]), ("eth0", [2, 0, 4, 0, 2, last]), host)?;
            lan.plug(&name, "switch")?;
            self.on(&lan, &name)?;
            let there = host.links()?;
            there.up("lo")?;
            there.address("eth0", SmallInternet::host_address(index), 24)?;
            self.on(&there, "eth0")?;
            there.default_route(SmallInternet::LAN_GATEWAY)?;
            there.address("eth0", SmallInternet::host_address6(index), 64)?;
            there.default_route(SmallInternet::LAN_GATEWAY6)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_is_reached_and_what_is_private_is_not() {
        let Ok(internet) = SmallInternet::new(2, 3, true) else {
            eprintln!("not run, since network namespaces cannot be made here, or nft is missing");
            return;
        };
        let ping = |from: &Namespace, to: Ipv4Addr| {
            let answered = from.run("ping", &["-c", "1", "-W", "2", &to.to_string()], "");
            answered.expect("ping runs").status.success()
        };
        let first = &internet.initiators[0];
        assert!(ping(first, SmallInternet::initiator_address(1)));
        assert!(ping(first, SmallInternet::RESOLVER));
        assert!(ping(first, SmallInternet::WAYPOINT_MACHINE));
        assert!(ping(&internet.gateway, SmallInternet::WAYPOINT_MACHINE), "through the carrier");
        assert!(ping(&internet.hosts[0], SmallInternet::host_address(2)));
        let ping6 = |from: &Namespace, to: Ipv6Addr| {
            let answered = from.run("ping", &["-6", "-c", "1", "-W", "2", &to.to_string()], "");
            answered.expect("ping runs").status.success()
        };
        assert!(ping6(first, SmallInternet::initiator_address6(1)));
        assert!(ping6(&internet.hosts[0], SmallInternet::host_address6(2)));
        assert!(!ping6(first, SmallInternet::host_address6(0)));
        assert!(!ping(first, SmallInternet::GATEWAY_MACHINE));
        assert!(!ping(first, SmallInternet::host_address(0)));
    }

    #[test]
    fn there_are_as_many_as_their_addresses() {
        assert!(SmallInternet::new(MOST_INITIATORS + 1, 1, true).is_err());
        assert!(SmallInternet::new(1, MOST_INITIATORS as u8 + 1, true).is_err());
    }
}
