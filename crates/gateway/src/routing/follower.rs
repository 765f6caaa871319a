//! Following the kernel: what is asked of it and when, and what its answers change. Sending and receiving is somebody else's.
//!
//! First all links are asked for, then, where the file wants it, all routes of IPv4 and of IPv6; in between and afterwards changes come by
//! themselves. Whenever changes may have been lost, or routes may have gone silently with a link or an address, everything is asked for again.

use super::effects::Effects;
use super::kernel::{KernelTable, Told, Wanted};
use super::prefix::Prefix;
use super::router::{Link, Router};
use packet::PortNumber;
use std::collections::HashMap;

/// What is known of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// The interfaces of the ports, port 1 first.
    interfaces: Vec<String>,
    /// Ports by the numbers of their interfaces.
    ports: HashMap<u32, PortNumber>,
    links: HashMap<PortNumber, Link>,
    table: KernelTable,
    /// What is being asked for.
    asking: Option<Wanted>,
    /// What is to be asked for next, the last first.
    next: Vec<Wanted>,
    /// Everything is to be asked for again when this round is over.
    again: bool,
    /// Routes are followed, too.
    routes: bool,
    /// How often the kernel told more than found room.
    overruns: u64,
}

impl Follower {
    /// Follows the links of these ports and, if `routes` says so, routes. The first thing to ask is in [`question`](Follower::question).
    pub(crate) fn new(interfaces: Vec<String>, routes: bool) -> Follower {
        let mut follower = Follower { interfaces, routes, ..Follower::default() };
        follower.begin();
        follower
    }

    /// Routes are followed from now on, or no more.
    pub(crate) fn follow_routes(&mut self, routes: bool) {
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

    /// Whether the links are known.
    pub(crate) fn knows_links(&self) -> bool {
        self.asking != Some(Wanted::Links) && !self.next.contains(&Wanted::Links)
    }

    /// Takes in what the kernel told, in this order.
    pub(crate) fn take(&mut self, told: Vec<Told>, now: u64, router: &mut Router, effects: &mut Effects) {
        let mut changed: Vec<Prefix> = Vec::new();
        for told in told {
            match told {
                Told::Link { index, name, link } => {
                    if self.link(index, &name, link) {
                        changed.extend(self.table.prefixes());
                    }
                    self.lost_if_idle();
                }
                Told::Route { prefix, metric, hops, there, replaces } if self.routes => {
                    self.table.route(prefix, metric, &hops, there, replaces);
                    changed.push(prefix);
                }
                Told::Route { .. } => {}
                Told::Address => self.lost_if_idle(),
                Told::Done { broken } => {
                    self.again |= broken;
                    if self.asking.take() == Some(Wanted::Ipv6Routes) && !self.again {
                        changed.extend(self.table.end());
                    }
                    if self.next.is_empty() && self.again {
                        self.begin();
                    }
                }
            }
        }
        for port in 1..=self.interfaces.len() as PortNumber {
            router.link(port, self.links.get(&port).copied(), now, effects);
        }
        changed.sort_unstable();
        changed.dedup();
        let routes =
            changed.into_iter().map(|prefix| (prefix, self.table.way(prefix, &self.ports))).collect();
        router.kernel_routes(routes, effects);
    }

    /// The kernel takes routes away with a link or address without saying so.
    fn lost_if_idle(&mut self) {
        if self.routes && self.asking != Some(Wanted::Links) {
            self.lost();
        }
    }

    fn begin(&mut self) {
        self.again = false;
        self.table.begin();
        self.next = if self.routes {
            vec![Wanted::Ipv6Routes, Wanted::Ipv4Routes, Wanted::Links]
        } else {
            vec![Wanted::Links]
        };
    }

    /// Notes what a link is. Says whether another interface is a port now.
    fn link(&mut self, index: u32, name: &str, link: Option<Link>) -> bool {
        let port = (1..).zip(&self.interfaces).find(|(_, wanted)| *wanted == name).map(|(port, _)| port);
        let before = self.ports.get(&index).copied();
        match (port, link) {
            (Some(port), Some(link)) => {
                self.ports.retain(|known, of| *of != port || *known == index);
                self.links.insert(port, link);
                self.ports.insert(index, port);
            }
            _ => {
                // It has gone, or has another name now.
                if let Some(port) = self.ports.remove(&index) {
                    self.links.remove(&port);
                }
            }
        }
        before != self.ports.get(&index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::kernel::Hop;
    use crate::routing::rib::{Source, Way};
    use crate::routing::router::Settings;

    fn link(index: u32, name: &str, there: bool) -> Told {
        let link = Link { index, mac: [2, 0, 0, 0, 0, index as u8], mtu: 1500, up: true };
        Told::Link { index, name: name.into(), link: there.then_some(link) }
    }

    fn route(prefix: Prefix, index: u32) -> Told {
        Told::Route { prefix, metric: 0, hops: vec![Hop::By(index, None)], there: true, replaces: false }
    }

    #[test]
    fn links_first_then_routes_and_all_again_when_something_was_lost() {
        let prefix: Prefix = "198.51.100.0/24".parse().expect("one");
        let mut router = Router::new(&Settings::default(), 10);
        let mut follower = Follower::new(vec!["x".into()], true);
        let mut effects = Effects::default();
        let mut take = |follower: &mut Follower, router: &mut Router, told: Vec<Told>| {
            follower.take(told, 0, router, &mut effects);
        };
        let done = || vec![Told::Done { broken: false }];
        assert_eq!((follower.question(), follower.question()), (Some(Wanted::Links), None));
        take(&mut follower, &mut router, vec![link(7, "x", true), link(1, "lo", true)]);
        assert!(!follower.knows_links());
        take(&mut follower, &mut router, done());
        assert!(follower.knows_links());
        assert_eq!(follower.question(), Some(Wanted::Ipv4Routes));
        take(&mut follower, &mut router, vec![route(prefix, 7)]);
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv6Routes));
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), None);
        assert_eq!(router.rib.best(prefix), Some((Source::Kernel, Way::Link(1))));

        // The link goes, and its routes with it, of which nothing is said.
        take(&mut follower, &mut router, vec![link(7, "x", false)]);
        assert_eq!(router.rib.best(prefix), None, "it is no way by a port any more");
        for wanted in [Wanted::Links, Wanted::Ipv4Routes, Wanted::Ipv6Routes] {
            assert_eq!(follower.question(), Some(wanted));
            take(&mut follower, &mut router, done());
        }
        take(&mut follower, &mut router, vec![link(9, "x", true)]);
        assert_eq!(router.rib.best(prefix), None, "it was not told again");

        // An answer that broke off takes nothing away, and is asked for again.
        assert_eq!(follower.question(), Some(Wanted::Links));
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv4Routes));
        take(&mut follower, &mut router, vec![route(prefix, 9)]);
        take(&mut follower, &mut router, done());
        assert_eq!(follower.question(), Some(Wanted::Ipv6Routes));
        take(&mut follower, &mut router, vec![Told::Done { broken: true }]);
        assert_eq!(router.rib.best(prefix), Some((Source::Kernel, Way::Link(1))));
        assert_eq!(follower.question(), Some(Wanted::Links));
    }
}
