//! Follows the addresses, links, permanent neighbours and routes of the Linux kernel: decides what to ask and
//! when, and what the answers change. Other modules send and receive.
//!
//! First all links are asked for, all addresses and all neighbours, then, where the file wants it, all
//! numbered next hops and all routes of IPv4 and of IPv6; in between and afterwards changes come by
//! themselves. Whenever changes may have been lost, or routes may have gone silently with a link or an
//! address, everything is asked for again.

use super::effects::Effects;
use super::kernel::{KernelTable, Ports, by_interface};
use super::neighbours::{Mac, Neighbour};
use super::port::{Link, PortSettings, is_link_local};
use super::prefix::{InterfaceAddress, IpPrefix};
use super::router::{FollowedRoutes, Router, RoutingSettings};
use super::rtnetlink::{Condition, RouteNews, Ties, Told, Wanted};
use crate::limits::HOST_ADDRESSES;
use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// What is known of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// The interfaces of the ports, port 1 first.
    interfaces: Vec<OfPort>,
    /// Ports by the numbers of their interfaces: several where some are ports of VLANs.
    ports: HashMap<u32, Vec<PortNumber>>,
    links: HashMap<PortNumber, Link>,
    /// How all interfaces hang together, by number.
    ties: HashMap<u32, Ties>,
    /// The names of the ports' host interfaces.
    host_names: HashMap<String, PortNumber>,
    /// Ports by the numbers of their host interfaces.
    hosts: HashMap<u32, PortNumber>,
    /// The machine's addresses with their interfaces.
    addresses: HashMap<(u32, IpAddr), Held>,
    /// Permanent neighbours at host interfaces, each with the round that saw it last.
    neighbours: BTreeMap<(u32, IpAddr), (Mac, u64)>,
    table: KernelTable,
    /// What is being asked for.
    asking: Option<Wanted>,
    /// What is to be asked for next, the last first.
    next: Vec<Wanted>,
    /// Everything is to be asked for again when this round is over.
    again: bool,
    round: u64,
    /// Routes are followed, too.
    routes: bool,
    /// How often the kernel told more than found room.
    overruns: u64,
}

/// The interface of a port.
#[derive(Clone, Debug, PartialEq)]
struct OfPort {
    name: String,
    /// The machine is behind it rather than at it.
    behind: bool,
    /// The port is that of a VLAN: what the kernel sends by the interface itself has no tag.
    tagged: bool,
}

impl OfPort {
    fn of(port: &PortSettings) -> OfPort {
        OfPort {
            name: port.tagged_on.as_ref().unwrap_or(&port.interface).clone(),
            behind: port.shared,
            tagged: port.tagged_on.is_some(),
        }
    }
}

/// An address of the machine.
#[derive(Debug)]
struct Held {
    address: InterfaceAddress,
    usable: bool,
    /// The round that saw it last.
    seen: u64,
}

impl Follower {
    /// Follows the links of these ports, the machine's addresses and, if the file says so, routes. The first
    /// thing to ask is in [`question`](Follower::question).
    pub(crate) fn new(settings: &RoutingSettings, host_names: HashMap<String, PortNumber>) -> Follower {
        let interfaces = settings.ports.iter().map(OfPort::of).collect();
        let mut follower =
            Follower { interfaces, host_names, routes: are_followed(settings.kernel), ..Follower::default() };
        follower.begin();
        follower
    }

    /// The ports are others from now on. What is known of those that stay goes on; everything is asked for
    /// again.
    pub(crate) fn change_ports(
        &mut self,
        settings: &RoutingSettings,
        host_names: HashMap<String, PortNumber>,
    ) {
        let interfaces: Vec<OfPort> = settings.ports.iter().map(OfPort::of).collect();
        if interfaces == self.interfaces && host_names == self.host_names {
            return;
        }
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        let at = |all: &[OfPort], port: PortNumber| all.get(usize::from(port).wrapping_sub(1)).cloned();
        let stays = |port: &PortNumber| at(&before, *port) == at(&self.interfaces, *port);
        self.links.retain(|port, _| stays(port));
        self.hosts.retain(|_, port| stays(port));
        for ports in self.ports.values_mut() {
            ports.retain(stays);
        }
        self.ports.retain(|_, ports| !ports.is_empty());
        self.host_names = host_names;
        self.lost();
    }

    /// Routes are followed from now on, or no more.
    pub(crate) fn follow_routes(&mut self, followed: FollowedRoutes) {
        let routes = are_followed(followed);
        if self.routes != routes {
            self.routes = routes;
            self.table = KernelTable::default();
            self.lost();
        }
    }

    /// Changes were lost.
    pub(crate) fn lost(&mut self) {
        match self.asking {
            Some(_) => self.again = true,
            None => self.begin(),
        }
    }

    /// Changes were lost, since the kernel told more than found room.
    pub(crate) fn overrun(&mut self) {
        self.overruns += 1;
        self.lost();
    }

    /// How often that was so.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    /// What is to be asked of the kernel now; it is not asked again.
    pub(crate) fn question(&mut self) -> Option<Wanted> {
        if self.asking.is_some() {
            return None;
        }
        self.asking = self.next.pop();
        self.asking
    }

    /// Whether the links, addresses and neighbours are known.
    pub(crate) fn knows_machine(&self) -> bool {
        !self.asking.iter().chain(&self.next).any(of_machine)
    }

    /// Whether all that was asked for has been told.
    pub(crate) fn is_settled(&self) -> bool {
        self.asking.is_none() && self.next.is_empty()
    }

    /// Routes for some packets to their prefix alone, which are not used.
    pub(crate) fn conditional(&self) -> impl Iterator<Item = (IpPrefix, Condition)> + '_ {
        self.table.conditional()
    }

    /// Takes in what the kernel told, in this order.
    pub(crate) fn take(&mut self, told: Vec<Told>, now: u64, router: &mut Router, effects: &mut Effects) {
        let mut changed: Vec<IpPrefix> = Vec::new();
        let (mut machine, mut neighbours, mut links) = (false, false, false);
        for told in told {
            match told {
                Told::Link { index, name, link, ties } => {
                    let before = match ties {
                        Some(ties) => self.ties.insert(index, ties),
                        None => self.ties.remove(&index),
                    };
                    machine |= before != ties;
                    if ties.is_none() {
                        self.addresses.retain(|(at, _), _| *at != index);
                        self.neighbours.retain(|(at, _), _| *at != index);
                    }
                    if self.host(index, &name, ties.is_some()) || self.link(index, &name, link) {
                        (machine, neighbours, links) = (true, true, true);
                    }
                    self.lost_if_idle();
                }
                Told::Address { index, address, usable, there } => {
                    let place = (index, address.address);
                    let held = Held { address, usable, seen: self.round };
                    let changed = if there {
                        let before = self.addresses.insert(place, held);
                        before.is_none_or(|before| (before.address, before.usable) != (address, usable))
                    } else {
                        self.addresses.remove(&place).is_some()
                    };
                    // Of an address with a lifetime the kernel tells each time that it begins anew.
                    if changed {
                        machine = true;
                        self.lost_if_idle();
                    }
                }
                Told::Neighbour { index, address, permanent } if self.hosts.contains_key(&index) => {
                    let place = (index, address);
                    let before = match permanent {
                        Some(mac) => self.neighbours.insert(place, (mac, self.round)),
                        None => self.neighbours.remove(&place),
                    };
                    neighbours |= before.map(|(before, _)| before) != permanent;
                }
                Told::Interrupted => self.again = true,
                Told::Route { key, hops, weights, news } if self.routes => {
                    // Linux begins a list of IPv6 anew when routes change, and leaves out as many as it has
                    // told, also for some of these that went.
                    self.again |= news == RouteNews::Went && self.lists_ipv6() && !key.prefix.is_ipv4();
                    let changed_hops = self.table.route(key, &hops, news);
                    if self.table.weigh(key, &hops, &weights, news) || changed_hops {
                        changed.push(key.prefix);
                    }
                }
                Told::Object { number, object } if self.routes => {
                    self.again |= object.is_none() && self.lists_ipv6();
                    changed.extend(self.table.object(number, object));
                }
                Told::Neighbour { .. } | Told::Route { .. } | Told::Object { .. } => {}
                Told::Done { broken } => {
                    self.again |= broken || self.table.is_doubtful();
                    match self.asking.take() {
                        Some(Wanted::Addresses) if !self.again => {
                            self.addresses.retain(|_, held| held.seen == self.round);
                            machine = true;
                        }
                        Some(Wanted::Neighbours) if !self.again => {
                            self.neighbours.retain(|_, (_, seen)| *seen == self.round);
                            neighbours = true;
                        }
                        Some(Wanted::Ipv6Routes) if !self.again => changed.extend(self.table.end()),
                        _ => {}
                    }
                    if self.next.is_empty() && self.again {
                        self.begin();
                    }
                }
            }
        }
        changed.extend(self.table.settled());
        if links {
            changed = self.table.prefixes();
        }
        for port in 1..=self.interfaces.len() as PortNumber {
            router.link(port, self.links.get(&port).copied(), now, effects);
        }
        if machine {
            for port in self.host_names.values() {
                router.readdress(*port, self.host_addresses(*port), now, effects);
            }
            router.machine(self.machine(), effects);
        }
        if neighbours {
            router.permanent(&self.permanent(), now, effects);
        }
        changed.sort_unstable();
        changed.dedup();
        let up = |port| self.links.get(&port).is_some_and(|link| link.up);
        // A route by a host interface is one by its port.
        let tagged = |port: PortNumber| self.of(port).is_some_and(|of| of.tagged);
        let untagged = self.ports.iter().filter_map(|(index, ports)| {
            ports.iter().copied().find(|port| !tagged(*port)).map(|port| (*index, port))
        });
        let by_host = self.hosts.iter().map(|(index, port)| (*index, *port));
        let by_index = untagged.chain(by_host).collect();
        let of = by_interface(&by_index);
        let ports = Ports { resolve: &of, up: &up };
        self.route(changed, &ports, router, effects);
        if router.has_groups_again() {
            self.route(self.table.prefixes(), &ports, router, effects);
        }
    }

    fn lists_ipv6(&self) -> bool {
        matches!(self.asking, Some(Wanted::Ipv6Routes))
    }

    /// Tells where these prefixes lead now.
    fn route(&self, changed: Vec<IpPrefix>, ports: &Ports<'_>, router: &mut Router, effects: &mut Effects) {
        let way = |prefix| match self.table.several(prefix, ports) {
            Some(members) => (prefix, router.several(prefix, members, effects)),
            None => (prefix, self.table.way(prefix, ports)),
        };
        let routes = changed.into_iter().map(way).collect();
        router.kernel_routes(routes, effects);
    }

    /// The permanent neighbours at ports where the machine is a host.
    fn permanent(&self) -> BTreeMap<Neighbour, Mac> {
        let at_port = |(&(index, address), &(mac, _)): (&(u32, IpAddr), &(Mac, u64))| {
            Some((Neighbour { port: *self.hosts.get(&index)?, address }, mac))
        };
        self.neighbours.iter().filter_map(at_port).collect()
    }

    /// How many permanent neighbours there are.
    pub(crate) fn permanent_count(&self) -> usize {
        self.neighbours.len()
    }

    /// The machine's addresses, but for those that packets reach by leaving through a port: at the other end
    /// of a virtual cable that begins at a port, behind a TAP port, and at whatever these are parts of.
    fn machine(&self) -> BTreeSet<IpAddr> {
        let mut beyond: BTreeSet<u32> = BTreeSet::new();
        for (index, ports) in &self.ports {
            if ports.iter().any(|port| self.of(*port).is_some_and(|of| of.behind)) {
                beyond.insert(*index);
            }
            let on = |index: &u32| self.ties.get(index).and_then(|ties| ties.on);
            beyond.extend(on(index).filter(|other| on(other) == Some(*index)));
        }
        loop {
            let known = beyond.len();
            for (index, ties) in &self.ties {
                if beyond.contains(index) {
                    beyond.extend(ties.part_of);
                } else if ties.on.is_some_and(|on| beyond.contains(&on)) && !self.ports.contains_key(index) {
                    beyond.insert(*index);
                }
            }
            if beyond.len() == known {
                break;
            }
        }
        let of_all = self.addresses.keys();
        let of_all = of_all.filter(|(index, _)| !beyond.contains(index) && !self.hosts.contains_key(index));
        of_all.map(|(_, address)| *address).filter(|own| !own.is_loopback() && !is_link_local(*own)).collect()
    }

    /// The addresses that the machine has as a host at a port, in an order that does not change.
    fn host_addresses(&self, port: PortNumber) -> Vec<InterfaceAddress> {
        let mut addresses: Vec<_> = self.at_host(port).collect();
        addresses.sort_unstable();
        addresses.truncate(HOST_ADDRESSES);
        addresses
    }

    /// All of them, also those that are too many.
    fn at_host(&self, port: PortNumber) -> impl Iterator<Item = InterfaceAddress> + '_ {
        let here = move |index: &u32| self.hosts.get(index) == Some(&port);
        let of_port = self.addresses.iter().filter(move |((index, _), held)| held.usable && here(index));
        of_port.map(|(_, held)| held.address)
    }

    /// A host interface with more addresses than become the gateway's, and how many it has.
    pub(crate) fn too_many(&self) -> Option<(&str, usize)> {
        let counted = self.host_names.iter().map(|(name, port)| (name.as_str(), self.at_host(*port).count()));
        counted.filter(|(_, count)| *count > HOST_ADDRESSES).max()
    }

    /// Notes which host interface a link is. Says whether that changes something.
    fn host(&mut self, index: u32, name: &str, there: bool) -> bool {
        let before = self.hosts.get(&index).copied();
        let port = self.host_names.get(name).copied().filter(|_| there);
        match port {
            Some(port) => self.hosts.insert(index, port),
            None => self.hosts.remove(&index),
        };
        before != port
    }

    /// The kernel takes routes away with a link or address without saying so. While links, addresses and
    /// neighbours are asked for, the routes are still to come.
    fn lost_if_idle(&mut self) {
        if self.routes && !self.asking.as_ref().is_some_and(of_machine) {
            self.lost();
        }
    }

    /// The interface of a port.
    fn of(&self, port: PortNumber) -> Option<&OfPort> {
        self.interfaces.get(usize::from(port).wrapping_sub(1))
    }

    fn begin(&mut self) {
        self.again = false;
        self.round += 1;
        self.table.begin();
        self.next = vec![Wanted::Neighbours, Wanted::Addresses, Wanted::Links];
        if self.routes {
            self.next.splice(..0, [Wanted::Ipv6Routes, Wanted::Ipv4Routes, Wanted::NextHops]);
        }
    }

    /// Notes what a link is. Says whether another interface is a port now, or is one whose link went up or
    /// down.
    fn link(&mut self, index: u32, name: &str, link: Option<Link>) -> bool {
        let state = |follower: &Follower| {
            let ports = follower.ports.get(&index).cloned().unwrap_or_default();
            let up = ports.first().and_then(|port| follower.links.get(port)).is_some_and(|link| link.up);
            (ports, up)
        };
        let before = state(self);
        let named = (1..).zip(&self.interfaces).filter(|(_, of)| of.name == name);
        let ports: Vec<PortNumber> = named.map(|(port, _)| port).collect();
        match link {
            Some(link) if !ports.is_empty() => {
                self.ports.retain(|known, of| *of != ports || *known == index);
                self.links.extend(ports.iter().map(|port| (*port, link)));
                self.ports.insert(index, ports);
            }
            _ => {
                // It has gone, or has another name now.
                for port in self.ports.remove(&index).unwrap_or_default() {
                    self.links.remove(&port);
                }
            }
        }
        before != state(self)
    }
}

/// Whether routes of the machine are followed.
fn are_followed(routes: FollowedRoutes) -> bool {
    routes == FollowedRoutes::Machine
}

/// What is asked for before routes.
fn of_machine(wanted: &Wanted) -> bool {
    matches!(wanted, Wanted::Links | Wanted::Addresses | Wanted::Neighbours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::rib::{Source, Unmeant, Way};
    use crate::routing::rtnetlink::{Hop, Key, Object};

    fn link(index: u32, name: &str, there: bool) -> Told {
        let link = Link { index, mac: [2, 0, 0, 0, 0, index as u8], mtu: 1500, up: true };
        Told::Link { index, name: name.into(), link: there.then_some(link), ties: there.then(Ties::default) }
    }

    /// Port 1 at interface `x`, where the machine is `behind` or not.
    fn settings(behind: bool) -> RoutingSettings {
        let port = PortSettings { interface: "x".into(), shared: behind, ..PortSettings::default() };
        RoutingSettings { ports: vec![port], routes: Vec::new(), kernel: FollowedRoutes::Machine }
    }

    fn route(prefix: IpPrefix, index: u32) -> Told {
        let key = Key { prefix, condition: None, metric: 0 };
        Told::Route { key, hops: vec![Hop::By(index, None)], weights: Vec::new(), news: RouteNews::Came }
    }

    #[test]
    fn links_first_then_routes_and_all_again_when_something_was_lost() {
        let prefix: IpPrefix = "198.51.100.0/24".parse().expect("one");
        let mut router = Router::new(&RoutingSettings::default(), 10, 0);
        let mut follower = Follower::new(&settings(false), HashMap::new());
        let mut effects = Effects::default();
        let mut take = |follower: &mut Follower, router: &mut Router, told: Vec<Told>| {
            follower.take(told, 0, router, &mut effects);
        };
        let done = || vec![Told::Done { broken: false }];
        assert_eq!((follower.question(), follower.question()), (Some(Wanted::Links), None));
        take(&mut follower, &mut router, vec![link(7, "x", true), link(1, "lo", true)]);
        take(&mut follower, &mut router, done());
        assert!(!follower.knows_machine());
        assert_eq!(follower.question(), Some(Wanted::Addresses));
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Neighbours));
        take(&mut follower, &mut router, done());
        assert!(follower.knows_machine());
        assert_eq!(follower.question(), Some(Wanted::NextHops));
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv4Routes));
        take(&mut follower, &mut router, vec![route(prefix, 7)]);
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv6Routes));
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), None);
        assert_eq!(router.rib.best(prefix), Some((Source::Kernel, Way::Link(1))));

        // The link goes, and its routes with it, of which nothing is said.
        take(&mut follower, &mut router, vec![link(7, "x", false)]);
        let unmeant = Way::Unmeant(Unmeant::NoPort(7));
        assert_eq!(
            router.rib.best(prefix),
            Some((Source::Kernel, unmeant)),
            "it is no way by a port any more"
        );
        const ROUND: [Wanted; 6] = [
            Wanted::Links,
            Wanted::Addresses,
            Wanted::Neighbours,
            Wanted::NextHops,
            Wanted::Ipv4Routes,
            Wanted::Ipv6Routes,
        ];
        for wanted in ROUND {
            assert_eq!(follower.question(), Some(wanted));
            take(&mut follower, &mut router, done());
        }
        take(&mut follower, &mut router, vec![link(9, "x", true)]);
        assert_eq!(router.rib.best(prefix), None, "it was not told again");

        // An answer that broke off takes nothing away, and is asked for again.
        for wanted in &ROUND[..4] {
            assert_eq!(follower.question(), Some(*wanted));
            take(&mut follower, &mut router, done());
        }
        assert_eq!(follower.question(), Some(Wanted::Ipv4Routes));
        take(&mut follower, &mut router, vec![route(prefix, 9)]);
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv6Routes));
        take(&mut follower, &mut router, vec![Told::Done { broken: true }]);
        assert_eq!(router.rib.best(prefix), Some((Source::Kernel, Way::Link(1))));
        assert_eq!(follower.question(), Some(Wanted::Links));
    }

    /// Linux leaves out routes of IPv6 where others went while it listed them, and says nothing of it.
    #[test]
    fn a_list_during_which_routes_of_ipv6_went_takes_nothing_away() {
        let [stays, goes]: [IpPrefix; 2] =
            ["2001:db8:1::/48", "2001:db8:2::/48"].map(|text| text.parse().expect("one"));
        let mut router = Router::new(&RoutingSettings::default(), 10, 0);
        let mut follower = Follower::new(&settings(false), HashMap::new());
        let mut effects = Effects::default();
        let mut round = |follower: &mut Follower, router: &mut Router, listed: &[Told]| {
            while let Some(wanted) = follower.question() {
                let mut told = match wanted {
                    Wanted::Links => vec![link(7, "x", true)],
                    Wanted::Ipv6Routes => listed.to_vec(),
                    _ => Vec::new(),
                };
                told.push(Told::Done { broken: false });
                follower.take(told, 0, router, &mut effects);
                if wanted == Wanted::Ipv6Routes {
                    break;
                }
            }
        };
        let key = Key { prefix: goes, condition: None, metric: 0 };
        let went =
            Told::Route { key, hops: vec![Hop::By(7, None)], weights: Vec::new(), news: RouteNews::Went };
        round(&mut follower, &mut router, &[route(stays, 7), route(goes, 7)]);
        assert!(follower.is_settled());
        follower.lost();
        round(&mut follower, &mut router, &[went]);
        let way = Some((Source::Kernel, Way::Link(1)));
        assert_eq!((router.rib.best(stays), router.rib.best(goes)), (way, None));
        assert!(!follower.is_settled(), "it is asked for again");
        round(&mut follower, &mut router, &[Told::Interrupted]);
        assert_eq!(router.rib.best(stays), way, "a list that was interrupted takes nothing away");
        round(&mut follower, &mut router, &[]);
        assert_eq!((router.rib.best(stays), follower.is_settled()), (None, true));
    }

    #[test]
    fn addresses_of_the_machine_are_known_but_for_those_behind_a_port() {
        let address = |index, text: &str, there| Told::Address {
            index,
            address: InterfaceAddress { address: text.parse().expect("an address"), length: 24 },
            usable: true,
            there,
        };
        let tied = |told: Told, on, part_of| match told {
            Told::Link { index, name, link, .. } => {
                Told::Link { index, name, link, ties: Some(Ties { on, part_of }) }
            }
            other => other,
        };
        let own = |follower: &Follower| {
            follower.machine().iter().map(|address| address.to_string()).collect::<Vec<_>>()
        };
        for behind in [false, true] {
            let mut follower = Follower::new(&settings(behind), HashMap::new());
            let (mut router, mut effects) = (Router::new(&settings(behind), 10, 0), Effects::default());
            let mut take = |follower: &mut Follower, told: Vec<Told>| {
                follower.take(told, 0, &mut router, &mut effects);
            };
            assert_eq!(follower.question(), Some(Wanted::Links));
            // Port x is one end of a cable whose other end is in a bridge, and carries a VLAN.
            let links = vec![
                tied(link(7, "x", true), Some(8), None),
                tied(link(8, "y", true), Some(7), Some(9)),
                tied(link(9, "bridge", true), None, None),
                tied(link(10, "x.5", true), Some(7), None),
                tied(link(1, "lo", true), None, None),
                Told::Done { broken: false },
            ];
            take(&mut follower, links);
            assert_eq!(follower.question(), Some(Wanted::Addresses));
            let addresses = vec![
                address(1, "127.0.0.1", true),
                address(1, "192.0.2.9", true),
                address(7, "10.0.2.3", true),
                address(7, "fe80::7", true),
                address(8, "10.0.2.8", true),
                address(9, "10.0.2.9", true),
                address(10, "10.0.5.3", true),
                Told::Done { broken: false },
            ];
            take(&mut follower, addresses);
            let wanted: &[&str] =
                if behind { &["192.0.2.9"] } else { &["10.0.2.3", "10.0.5.3", "192.0.2.9"] };
            assert_eq!(own(&follower), wanted);
            take(&mut follower, vec![address(1, "192.0.2.9", false)]);
            assert!(!own(&follower).contains(&"192.0.2.9".to_owned()));
        }
    }

    #[test]
    fn an_address_that_is_told_again_asks_for_nothing() {
        let mut follower = Follower::new(&settings(false), HashMap::new());
        let (mut router, mut effects) = (Router::new(&settings(false), 10, 0), Effects::default());
        let address = |last: u8, there| Told::Address {
            index: 8,
            address: InterfaceAddress { address: [10, 1, 0, last].into(), length: 24 },
            usable: true,
            there,
        };
        let mut asks = |told: Vec<Told>| {
            follower.take(told, 0, &mut router, &mut effects);
            let asks = follower.question().is_some();
            // The whole round, of which only addresses are told.
            while !follower.is_settled() {
                let known =
                    if follower.asking == Some(Wanted::Addresses) { vec![address(1, true)] } else { vec![] };
                let told = known.into_iter().chain([Told::Done { broken: false }]).collect();
                follower.take(told, 0, &mut router, &mut effects);
                follower.question();
            }
            asks
        };
        assert!(asks(vec![address(1, true)]), "all is asked for at first");
        assert!(!asks(vec![address(1, true)]), "its lifetime begins anew");
        assert!(asks(vec![address(2, true)]) && asks(vec![address(1, false)]));
    }

    #[test]
    fn a_host_interface_gives_the_gateway_its_usable_addresses_up_to_a_limit() {
        let mut follower = Follower::new(&settings(false), HashMap::from([("h-x".to_owned(), 1)]));
        let (mut router, mut effects) = (Router::new(&settings(false), 10, 0), Effects::default());
        let address = |number: usize, usable, there| Told::Address {
            index: 8,
            address: InterfaceAddress {
                address: [10, 1, (number / 250) as u8, (number % 250) as u8].into(),
                length: 32,
            },
            usable,
            there,
        };
        let mut own = |follower: &mut Follower, told: Vec<Told>| {
            follower.take(told, 0, &mut router, &mut effects);
            router.rib.all().filter(|(_, source, ..)| *source == Source::Own).count()
        };
        let links = vec![link(7, "x", true), link(8, "h-x", true)];
        assert_eq!(own(&mut follower, links), 0);
        assert_eq!(own(&mut follower, vec![address(1, true, true), address(2, false, true)]), 1);
        assert_eq!(own(&mut follower, vec![address(2, true, true)]), 2, "nobody else has it");
        let all = (0..HOST_ADDRESSES + 9).map(|number| address(number, true, true)).collect();
        assert_eq!(own(&mut follower, all), HOST_ADDRESSES);
        assert_eq!(follower.too_many(), Some(("h-x", HOST_ADDRESSES + 9)));
        assert!(follower.machine().is_empty(), "none of them is one of the machine elsewhere");
        let gone = (0..HOST_ADDRESSES).map(|number| address(number, true, false)).collect();
        assert_eq!(own(&mut follower, gone), 9, "those that were too many come in");
        assert_eq!(follower.too_many(), None);
        assert_eq!(own(&mut follower, vec![link(8, "h-x", false)]), 0, "they go with it");
    }

    #[test]
    fn permanent_neighbours_at_host_interfaces_are_the_gateway_s_while_they_are_told() {
        let settings = settings(false);
        let mut follower = Follower::new(&settings, HashMap::from([("h-x".to_owned(), 1)]));
        let (mut router, mut effects) = (Router::new(&settings, 100, 0), Effects::default());
        const A: Mac = [2, 0, 0, 0, 0, 0xa];
        const B: Mac = [2, 0, 0, 0, 0, 0xb];
        let told = |index, last: u8, permanent| Told::Neighbour {
            index,
            address: [10, 1, 0, last].into(),
            permanent,
        };
        let of = |router: &Router, last: u8| {
            router.neighbours.mac(Neighbour { port: 1, address: [10, 1, 0, last].into() })
        };
        let mut take = |follower: &mut Follower, told: Vec<Told>| {
            follower.take(told, 0, &mut router, &mut effects);
            [1, 2, 3].map(|last| of(&router, last))
        };
        take(&mut follower, vec![link(7, "x", true), link(8, "h-x", true), link(9, "y", true)]);
        let mut round = |follower: &mut Follower, neighbours: &[Told], broken| {
            let mut known = [None; 3];
            while let Some(wanted) = follower.question() {
                let told = if wanted == Wanted::Neighbours { neighbours } else { &[] };
                let broken = broken && wanted == Wanted::Neighbours;
                known = take(follower, [told, &[Told::Done { broken }]].concat());
                if broken {
                    break;
                }
            }
            known
        };
        let all = [told(8, 1, Some(A)), told(8, 2, Some(A)), told(9, 3, Some(A))];
        assert_eq!(round(&mut follower, &all, false), [Some(A), Some(A), None], "one is at no port");
        follower.overrun();
        assert_eq!(round(&mut follower, &[], true), [Some(A), Some(A), None], "the answer broke off");
        assert_eq!(round(&mut follower, &[told(8, 1, Some(B))], false), [Some(B), None, None]);
        follower.overrun();
        assert_eq!(round(&mut follower, &[told(8, 1, None)], false), [None; 3]);
    }

    #[test]
    fn a_numbered_next_hop_that_went_takes_its_routes_along_and_what_cannot_be_meant_stands_in_the_way() {
        let mut follower = Follower::new(&settings(false), HashMap::new());
        let (mut router, mut effects) = (Router::new(&settings(false), 10, 0), Effects::default());
        let [by_number, wide]: [IpPrefix; 2] =
            ["203.0.113.0/24", "203.0.0.0/16"].map(|text| text.parse().expect("one"));
        let key = |prefix| Key { prefix, condition: None, metric: 0 };
        let plain = |hop| Told::Route {
            key: key(by_number),
            hops: vec![hop],
            weights: Vec::new(),
            news: RouteNews::Came,
        };
        let object = |object: Option<Hop>| Told::Object { number: 5, object: object.map(Object::One) };
        let told =
            vec![link(7, "x", true), route(wide, 7), object(Some(Hop::By(7, None))), plain(Hop::Object(5))];
        follower.take(told, 0, &mut router, &mut effects);
        let host = "203.0.113.1".parse().expect("one");
        assert_eq!(router.rib.lookup(host), Some((by_number, Source::Kernel, Way::Link(1))));
        follower.take(vec![object(None)], 0, &mut router, &mut effects);
        assert_eq!(
            router.rib.lookup(host),
            Some((wide, Source::Kernel, Way::Link(1))),
            "the kernel has no other"
        );
        let tunnel = Way::Unmeant(Unmeant::Encapsulates);
        follower.take(vec![plain(Hop::Nowhere(tunnel))], 0, &mut router, &mut effects);
        assert_eq!(
            router.rib.lookup(host),
            Some((by_number, Source::Kernel, tunnel)),
            "not bare by the wider one"
        );
        assert_eq!(router.rib.unmeant().len(), 1);
        // For some packets alone: the others have their own way.
        let of_tos = Told::Route {
            key: Key { prefix: wide, condition: Some(Condition::Tos(16)), metric: 0 },
            hops: vec![Hop::Nowhere(Way::Blackhole)],
            weights: Vec::new(),
            news: RouteNews::Came,
        };
        follower.take(vec![of_tos], 0, &mut router, &mut effects);
        assert_eq!(router.rib.best(wide), Some((Source::Kernel, Way::Link(1))));
        assert_eq!(follower.conditional().collect::<Vec<_>>(), [(wide, Condition::Tos(16))]);
    }
}
