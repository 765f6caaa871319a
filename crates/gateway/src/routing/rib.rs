//! The routing information base: all routes of all sources, and for each prefix the route that is used.
//!
//! Of several routes to one prefix the source decides, in the order of [`Source`]; of several prefixes that
//! hold an address, the longest. What leads by a link that is down does not count: it gives way to the next
//! source, and to shorter prefixes. That holds for the kernel's routes, too, which keeps those whose link has
//! lost its carrier. A route is looked for prefix length by prefix length among those that there are, from
//! the longest on: control asks for few addresses, packets ask the program's own tables.

use super::neighbours::Neighbour;
use super::paths::Several;
use super::prefix::IpPrefix;
use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::net::IpAddr;

/// Where a route comes from; the first of several decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An address of the gateway itself.
    Own,
    /// The network of such an address.
    Connected,
    /// The gateway's file.
    Static,
    /// An address of the machine that the gateway runs on.
    Machine,
    /// The kernel's table.
    Kernel,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To the gateway itself.
    Itself,
    /// To all hosts of a link, the gateway itself included: packets end here.
    Broadcast(PortNumber),
    /// To the hosts of a link.
    Link(PortNumber),
    /// To another router.
    Via(Neighbour),
    /// To several other routers, at least one of them by a link that is up.
    Several(Several),
    /// Nowhere, and nothing is said.
    Blackhole,
    /// Nowhere, and the sender is told that the host is not reached.
    Unreachable,
    /// Nowhere, and the sender is told that this is not allowed.
    Prohibited,
    /// To the machine that the gateway runs on, whose kernel has the packet from elsewhere: nothing is asked
    /// or said about it.
    Machine,
    /// Nowhere, and the sender is told that the host is not reached: the kernel's route says what the gateway
    /// cannot do.
    Unmeant(Unmeant),
}

/// What keeps a route of the kernel from being used. It stands in the way of shorter prefixes as it does in
/// the kernel: what was to go through a tunnel does not leave bare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Unmeant {
    /// Packets are put into others.
    Encapsulates,
    /// It is of a type (RTN_… of linux/rtnetlink.h) that sends packets to other tables, or to the machine
    /// itself.
    Type(u8),
    /// It has an attribute of this number, which is not known.
    Attribute(u16),
    /// It leads by the interface of this number, which is no port.
    NoPort(u32),
    /// It is of a router in a container, and its next hop is in no network of a port.
    NoNetwork,
    /// It is of a router in a container, whose routes lead to as many routers as they may.
    TooManyRouters,
    /// No next hop of it is known.
    NoHop,
}

impl fmt::Display for Unmeant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const THROW: u8 = 9;
        match self {
            Unmeant::Encapsulates => write!(f, "it puts packets into others (encap)"),
            Unmeant::Type(THROW) => write!(f, "it leaves the choice to other tables (throw)"),
            Unmeant::Type(kind) => write!(f, "it is of type {kind} of the kernel's (RTN_*)"),
            Unmeant::Attribute(number) => write!(f, "its attribute {number} (RTA_* or NHA_*) is not known"),
            Unmeant::NoPort(index) => {
                write!(f, "it leaves by interface {index} of `ip link`, which is no port")
            }
            Unmeant::NoNetwork => write!(f, "its next hop is in no network that `addresses` of a port name"),
            Unmeant::TooManyRouters => {
                write!(f, "routes of the container lead to as many routers as they may")
            }
            Unmeant::NoHop => write!(f, "none of its next hops is there"),
        }
    }
}

impl Way {
    /// The port whose link it needs.
    pub(crate) fn port(self) -> Option<PortNumber> {
        match self {
            Way::Link(port) | Way::Broadcast(port) | Way::Via(Neighbour { port, .. }) => Some(port),
            Way::Itself
            | Way::Several(_)
            | Way::Blackhole
            | Way::Unreachable
            | Way::Prohibited
            | Way::Machine
            | Way::Unmeant(_) => None,
        }
    }
}

/// All routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rib {
    routes: BTreeMap<IpPrefix, Vec<(Source, Way)>>,
    count: usize,
    down: HashSet<PortNumber>,
    /// How many prefixes of each length there are, of IPv4 and IPv6.
    lengths: [BTreeMap<u8, usize>; 2],
    /// Prefixes with a route that cannot be used.
    unmeant: BTreeSet<IpPrefix>,
}

impl Rib {
    /// Sets, or with `None` removes, the route of a source to a prefix.
    pub(crate) fn set(&mut self, prefix: IpPrefix, source: Source, way: Option<Way>) {
        // Most prefixes have one route.
        let routes = self.routes.entry(prefix).or_insert_with(|| Vec::with_capacity(1));
        let (new, before) = (routes.is_empty(), routes.len());
        routes.retain(|(known, _)| *known != source);
        if let Some(way) = way {
            let place = routes.partition_point(|(known, _)| *known < source);
            routes.insert(place, (source, way));
        }
        self.count = self.count + routes.len() - before;
        if routes.iter().any(|(_, way)| matches!(way, Way::Unmeant(_))) {
            self.unmeant.insert(prefix);
        } else {
            self.unmeant.remove(&prefix);
        }
        let gone = routes.is_empty();
        let count = self.lengths[usize::from(!prefix.is_ipv4())].entry(prefix.length()).or_default();
        if gone {
            self.routes.remove(&prefix);
        }
        *count = *count + usize::from(new) - usize::from(gone);
    }

    /// The route of one source to a prefix.
    pub(crate) fn of(&self, prefix: IpPrefix, source: Source) -> Option<Way> {
        let routes = self.routes.get(&prefix)?;
        routes.iter().find(|(known, _)| *known == source).map(|(_, way)| *way)
    }

    /// Every prefix that has a route by a port.
    pub(crate) fn by(&self, port: PortNumber) -> impl Iterator<Item = IpPrefix> + '_ {
        let by = move |(_, routes): &(&IpPrefix, &Vec<(Source, Way)>)| {
            routes.iter().any(|(_, way)| way.port() == Some(port))
        };
        self.routes.iter().filter(by).map(|(prefix, _)| *prefix)
    }

    /// The link of a port is there, or down.
    pub(crate) fn set_link(&mut self, port: PortNumber, up: bool) {
        if up {
            self.down.remove(&port)
        } else {
            self.down.insert(port)
        };
    }

    /// Whether nothing says that the link of a port is down.
    pub(crate) fn is_up(&self, port: PortNumber) -> bool {
        !self.down.contains(&port)
    }

    /// What is known of the links of some ports goes on.
    pub(crate) fn succeed_links(&mut self, old: &Rib, stays: impl Fn(PortNumber) -> bool) {
        self.down = old.down.iter().copied().filter(|port| stays(*port)).collect();
    }

    /// The route to a prefix that counts.
    pub(crate) fn best(&self, prefix: IpPrefix) -> Option<(Source, Way)> {
        self.routes.get(&prefix).and_then(|routes| self.first(routes))
    }

    fn first(&self, routes: &[(Source, Way)]) -> Option<(Source, Way)> {
        routes.iter().copied().find(|(_, way)| way.port().is_none_or(|port| self.is_up(port)))
    }

    /// How many routes there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Prefixes with a route that cannot be used.
    pub(crate) fn unmeant(&self) -> &BTreeSet<IpPrefix> {
        &self.unmeant
    }

    /// Why the route of a prefix cannot be used.
    pub(crate) fn why_unmeant(&self, prefix: IpPrefix) -> Option<Unmeant> {
        self.routes.get(&prefix)?.iter().find_map(|(_, way)| match way {
            Way::Unmeant(why) => Some(*why),
            _ => None,
        })
    }

    /// The route that a packet to an address takes.
    pub(crate) fn lookup(&self, address: IpAddr) -> Option<(IpPrefix, Source, Way)> {
        let lengths = self.lengths[usize::from(!address.is_ipv4())].iter().rev();
        lengths.filter(|(_, count)| **count > 0).find_map(|(length, _)| {
            let prefix = IpPrefix::of(address, *length);
            self.best(prefix).map(|(source, way)| (prefix, source, way))
        })
    }

    /// Every route, in the order of prefixes and sources, and whether it is the one that counts.
    pub(crate) fn all(&self) -> impl Iterator<Item = (IpPrefix, Source, Way, bool)> + '_ {
        self.routes.iter().flat_map(|(prefix, routes)| {
            let best = self.first(routes);
            routes.iter().map(move |&(source, way)| (*prefix, source, way, best == Some((source, way))))
        })
    }

    /// Every prefix and the way that counts.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (IpPrefix, Way)> + '_ {
        self.routes.iter().filter_map(|(prefix, routes)| self.first(routes).map(|(_, way)| (*prefix, way)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_source_decides_and_the_next_one_takes_over() {
        let mut rib = Rib::default();
        let prefix: IpPrefix = "10.0.0.0/8".parse().expect("one");
        rib.set(prefix, Source::Kernel, Some(Way::Link(1)));
        rib.set(prefix, Source::Static, Some(Way::Link(2)));
        assert_eq!(rib.best(prefix), Some((Source::Static, Way::Link(2))));
        rib.set(prefix, Source::Static, None);
        assert_eq!(rib.best(prefix), Some((Source::Kernel, Way::Link(1))));
        rib.set(prefix, Source::Kernel, None);
        assert_eq!((rib.best(prefix), rib.lookup("10.1.1.1".parse().expect("one"))), (None, None));
    }

    proptest! {
        /// Beside a list that is searched from end to end.
        #[test]
        fn finds_what_a_search_through_all_finds(
            steps in proptest::collection::vec((any::<u32>(), 0u8..=32, 0usize..4, any::<bool>()), 0..60),
            asked in proptest::collection::vec(any::<u32>(), 0..20), down in any::<u64>(),
        ) {
            const SOURCES: [Source; 4] = [Source::Own, Source::Connected, Source::Static, Source::Kernel];
            let address = |bits: u32| IpAddr::from((bits & 0xc000_0003).to_be_bytes());
            let mut rib = Rib::default();
            let mut list: Vec<(IpPrefix, Source, Way)> = Vec::new();
            for (number, (bits, length, source, there)) in steps.into_iter().enumerate() {
                let prefix = IpPrefix::of(address(bits), length);
                let way = there.then_some(Way::Link(number as u16));
                rib.set(prefix, SOURCES[source], way);
                rib.set_link(number as u16, down >> number & 1 == 0);
                list.retain(|(known, from, _)| (*known, *from) != (prefix, SOURCES[source]));
                list.extend(way.map(|way| (prefix, SOURCES[source], way)));
            }
            prop_assert_eq!(rib.count(), list.len());
            let used = |(.., way): &(IpPrefix, Source, Way)| {
                !matches!(way, Way::Link(port) if down >> port & 1 == 1)
            };
            let mut all = list.clone();
            all.sort_unstable();
            prop_assert_eq!(rib.all().map(|(prefix, source, way, _)| (prefix, source, way)).collect::<Vec<_>>(), all);
            list.retain(used);
            for bits in asked {
                let fitting = list.iter().filter(|(prefix, ..)| prefix.contains(address(bits)));
                let wanted = fitting.max_by_key(|(prefix, source, _)| (prefix.length(), std::cmp::Reverse(*source)));
                prop_assert_eq!(rib.lookup(address(bits)), wanted.copied());
            }
        }
    }
}
