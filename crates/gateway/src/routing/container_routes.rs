//! Follows the routes of a router in a container: decides what to ask in its network and when, and where the
//! prefixes lead. Other modules send and receive.
//!
//! ```text
//!             lost: a change was missed, or a link or address changed, with which routes go silently
//!             ┌──────────────────────────────────────────────────────────────────────────────┐
//!             ▼                                                                              │
//! waits ──► numbered next hops ──► routes of IPv4 ──► routes of IPv6 ──► known ──────────────┘
//!   a second after the beginning of the round before, at least
//! ```
//!
//! Root of the container may say anything, as often as he likes. So all is bounded: what is known, the
//! routers that are led to, the routes that change at once, and the rounds of questions in a time. A route
//! has one next hop here, so that sets of next hops, of which a program has few, are left to others. A next
//! hop is at the port in whose network it lies, since the container's own interfaces are none of the
//! gateway's.

use super::effects::Effects;
use super::kernel::{KernelTable, Ports, Resolved};
use super::neighbours::Neighbour;
use super::prefix::{InterfaceAddress, IpPrefix};
use super::rib::{Unmeant, Way};
use super::router::Router;
use super::rtnetlink::{Hop, Object, RouteNews, Told, Wanted};
use crate::limits::{BETWEEN_LISTINGS, CONTAINER_HOPS_OF_PREFIX, CONTAINER_NEXT_HOPS, CONTAINER_ROUTERS};
use packet::PortNumber;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Instant;

/// How many prefixes are told of at once: neighbours wait for the changes of their entries.
const AT_ONCE: usize = 256;
/// What is asked for in a round, the last first.
const ROUND: [Wanted; 3] = [Wanted::Ipv6Routes, Wanted::Ipv4Routes, Wanted::NextHops];

/// What is known of the routes.
pub(crate) struct ContainerRoutes {
    table: KernelTable,
    /// What is being asked for.
    asking: Option<Wanted>,
    /// What is to be asked for next, the last first.
    next: Vec<Wanted>,
    /// Everything is to be asked for again when this round is over.
    again: bool,
    /// When the next round may begin.
    not_before: Instant,
    /// Prefixes that may lead elsewhere now.
    pending: BTreeSet<IpPrefix>,
    /// How many prefixes lead to each router.
    routers: HashMap<Neighbour, usize>,
    /// Prefixes that would lead to one router more, and whether one has gone since.
    left_out: BTreeSet<IpPrefix>,
    has_room: bool,
}

impl ContainerRoutes {
    /// Nothing is known yet.
    pub(crate) fn new(now: Instant) -> ContainerRoutes {
        let mut routes = ContainerRoutes {
            table: KernelTable::with_room(CONTAINER_NEXT_HOPS, CONTAINER_HOPS_OF_PREFIX),
            asking: None,
            next: Vec::new(),
            again: false,
            not_before: now,
            pending: BTreeSet::new(),
            routers: HashMap::new(),
            left_out: BTreeSet::new(),
            has_room: false,
        };
        routes.begin();
        routes
    }

    fn begin(&mut self) {
        (self.again, self.next) = (false, ROUND.to_vec());
        self.table.begin();
    }

    /// Changes were lost.
    pub(crate) fn lost(&mut self) {
        match self.asking {
            Some(_) => self.again = true,
            None => self.begin(),
        }
    }

    /// What is to be asked now; it is not asked again.
    pub(crate) fn question(&mut self, now: Instant) -> Option<Wanted> {
        let begins = self.next.len() == ROUND.len();
        if self.asking.is_some() || begins && now < self.not_before {
            return None;
        }
        if begins {
            self.not_before = now + BETWEEN_LISTINGS;
        }
        self.asking = self.next.pop();
        self.asking
    }

    /// Whether all that was asked for has been told, and told of.
    pub(crate) fn is_settled(&self) -> bool {
        self.asking.is_none() && self.next.is_empty() && self.pending.is_empty()
    }

    /// Whether nothing more is to be taken in before [`settle`](ContainerRoutes::settle).
    pub(crate) fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether routes are left out, since there are more than there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.table.is_full()
    }

    /// Takes in what the kernel told in the container's network, in this order.
    pub(crate) fn take(&mut self, told: Vec<Told>) {
        let mut changed = Vec::new();
        for told in told {
            match told {
                // Routes may have gone with it silently.
                Told::Link { .. } | Told::Address { .. } => self.lost(),
                Told::Interrupted => self.again = true,
                // Those for some packets alone are not used.
                Told::Route { key, hops, news, .. } if key.condition.is_none() => {
                    self.again |= news == RouteNews::Went && self.lists_ipv6() && !key.prefix.is_ipv4();
                    if self.table.route(key, few(&hops), news) {
                        changed.push(key.prefix);
                    }
                }
                Told::Object { number, object } => {
                    self.again |= object.is_none() && self.lists_ipv6();
                    changed.extend(self.table.object(number, object.map(of_few)));
                }
                Told::Neighbour { .. } | Told::Route { .. } => {}
                Told::Done { broken } => {
                    self.again |= broken || self.table.is_doubtful();
                    if self.asking.take() == Some(Wanted::Ipv6Routes) && !self.again {
                        changed.extend(self.table.end());
                    }
                    if self.next.is_empty() && self.again {
                        self.begin();
                    }
                }
            }
        }
        changed.extend(self.table.settled());
        self.pending.extend(changed);
    }

    /// Tells where some of the prefixes lead now that may lead elsewhere.
    pub(crate) fn settle(&mut self, router: &mut Router, effects: &mut Effects) {
        let networks = router.networks();
        // Others have next hops, too.
        let most_routers = CONTAINER_ROUTERS.min(router.most_next_hops() / 4);
        let mut routes = Vec::new();
        while routes.len() < AT_ONCE
            && let Some(prefix) = self.pending.pop_first()
        {
            let before = router.kernel_way(prefix);
            let way = self.way(prefix, &networks);
            self.left_out.remove(&prefix);
            let way = way.map(|way| self.counted((prefix, way), before, most_routers));
            if way.is_none() {
                self.leave(before);
            }
            routes.push((prefix, way));
        }
        if self.has_room && self.pending.is_empty() {
            self.has_room = false;
            self.pending = std::mem::take(&mut self.left_out);
        }
        router.kernel_routes(routes, effects);
    }

    /// Where a prefix leads. What lies within a network of a port is that port's.
    fn way(&self, prefix: IpPrefix, networks: &[(PortNumber, InterfaceAddress)]) -> Option<Way> {
        let is_of_port = |(_, own): &(PortNumber, InterfaceAddress)| {
            own.prefix().length() <= prefix.length() && own.prefix().contains(prefix.address())
        };
        if networks.iter().any(is_of_port) {
            return None;
        }
        let of = |_, next_hop| resolved(networks, next_hop);
        self.table.way(prefix, &Ports { resolve: &of, up: &|_| true })
    }

    /// The way of a prefix, unless it leads to one router more than there may be.
    fn counted(&mut self, (prefix, way): (IpPrefix, Way), before: Option<Way>, most_routers: usize) -> Way {
        if before == Some(way) {
            return way;
        }
        self.leave(before);
        let Way::Via(neighbour) = way else { return way };
        if !self.routers.contains_key(&neighbour) && self.routers.len() >= most_routers {
            self.left_out.insert(prefix);
            return Way::Unmeant(Unmeant::TooManyRouters);
        }
        *self.routers.entry(neighbour).or_default() += 1;
        way
    }

    /// A prefix leads by this way no more.
    fn leave(&mut self, before: Option<Way>) {
        let Some(Way::Via(neighbour)) = before else { return };
        if let Some(count) = self.routers.get_mut(&neighbour) {
            *count -= 1;
            if *count == 0 {
                self.routers.remove(&neighbour);
                self.has_room = true;
            }
        }
    }

    fn lists_ipv6(&self) -> bool {
        self.asking == Some(Wanted::Ipv6Routes)
    }
}

/// The first next hops of a route.
fn few(hops: &[Hop]) -> &[Hop] {
    &hops[..hops.len().min(CONTAINER_HOPS_OF_PREFIX)]
}

/// The same of a group.
fn of_few(object: Object) -> Object {
    match object {
        Object::Group(mut members) => {
            members.truncate(CONTAINER_HOPS_OF_PREFIX);
            Object::Group(members)
        }
        one => one,
    }
}

/// Where a next hop is, by the addresses of ports with their networks.
fn resolved(networks: &[(PortNumber, InterfaceAddress)], next_hop: Option<IpAddr>) -> Resolved {
    // What leads to no router leads to hosts of the container's own link, which is the gateway's port.
    let Some(next_hop) = next_hop else { return Resolved::Gateway };
    if networks.iter().any(|(_, own)| own.address == next_hop) {
        return Resolved::Gateway;
    }
    let at = networks.iter().find(|(_, own)| own.prefix().contains(next_hop));
    at.map_or(Resolved::Unmeant(Unmeant::NoNetwork), |(port, _)| Resolved::Port(*port))
}

#[cfg(test)]
mod tests;
