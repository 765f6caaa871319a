//! The gateway's own addresses and those of its machine: the routes that follow from them, which change with
//! them, and what the program is told of each port.
//!
//! The routes of all own addresses are computed anew when one comes or goes, and the difference is applied.

use super::effects::{self, Effects, Filled};
use super::neighbours::{Action, Neighbour, NeighbourState};
use super::port::{Port, is_link_local};
use super::prefix::{InterfaceAddress, IpPrefix};
use super::rib::{Source, Way};
use super::router::{Packet, Router, is_on_link};
use ir::Entry;
use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Router {
    /// The addresses of the machine that the gateway runs on, as far as no port leads there: its kernel has
    /// packets for them from its own sockets, so nobody is asked for them, and their senders are told
    /// nothing.
    pub(crate) fn machine(&mut self, addresses: BTreeSet<IpAddr>, effects: &mut Effects) {
        if addresses == self.machine {
            return;
        }
        let before = std::mem::replace(&mut self.machine, addresses);
        let changed = before.symmetric_difference(&self.machine).copied().map(IpPrefix::host);
        let changed: Vec<IpPrefix> = changed.collect();
        for prefix in &changed {
            let way = self.machine.contains(&prefix.address()).then_some(Way::Machine);
            self.rib.set(*prefix, Source::Machine, way);
            self.update(*prefix, effects);
        }
        self.settle_hosts_in(&changed, effects);
    }

    /// Whether packets for an address end at the machine's kernel.
    pub(super) fn is_machine(&self, address: IpAddr) -> bool {
        self.machine.contains(&address) && matches!(self.rib.lookup(address), Some((_, _, Way::Machine)))
    }

    /// The addresses that the machine has as a host at a port, which are the gateway's own there.
    pub(crate) fn readdress(
        &mut self,
        number: PortNumber,
        addresses: Vec<InterfaceAddress>,
        now: u64,
        effects: &mut Effects,
    ) {
        let before: Vec<_> = self.interfaces().collect();
        let Some(port) = self.ports.get_mut(usize::from(number).wrapping_sub(1)) else { return };
        let (of_link, mut others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|own| is_link_local(own.address));
        port.link_locals = of_link.iter().map(|own| own.address).collect();
        // Errors come from the first: those of the file go first, in its order.
        let in_file = &port.settings.addresses;
        let place = |own: &InterfaceAddress| in_file.iter().position(|known| known == own);
        others.sort_by_key(|own| (place(own).unwrap_or(usize::MAX), *own));
        if port.addresses == others {
            return;
        }
        port.addresses = others;
        for prefix in self.set_own() {
            self.update(prefix, effects);
        }
        let actions = self.forget_strangers();
        self.act(actions, now, effects);
        self.settle_hosts(effects);
        let now: Vec<_> = self.interfaces().collect();
        for (before, now) in before.into_iter().zip(now).filter(|(before, now)| before != now) {
            match (before, now) {
                (_, Some(entry)) => effects.insert(entry),
                (Some(entry), None) => effects.remove(entry),
                (None, None) => {}
            }
        }
    }

    /// Brings the routes that follow from own addresses in line with them. Says which prefixes that changes.
    /// A network that is at several ports is at the first.
    pub(super) fn set_own(&mut self) -> Vec<IpPrefix> {
        let mut wanted = BTreeMap::new();
        for (number, port) in (1..).zip(&self.ports) {
            for own in &port.addresses {
                wanted.entry((IpPrefix::host(own.address), Source::Own)).or_insert(Way::Itself);
                wanted.entry((own.prefix(), Source::Connected)).or_insert(Way::Link(number));
                if let Some(broadcast) = own.broadcast() {
                    let all = (IpPrefix::host(broadcast), Source::Connected);
                    wanted.entry(all).or_insert(Way::Broadcast(number));
                }
            }
        }
        let before = std::mem::replace(&mut self.own, wanted);
        let changes = |from: &BTreeMap<_, _>, to: &BTreeMap<_, _>| {
            from.iter()
                .filter(|(key, way)| to.get(*key) != Some(*way))
                .map(|(key, _)| *key)
                .collect::<Vec<_>>()
        };
        let mut changed = changes(&before, &self.own);
        changed.extend(changes(&self.own, &before));
        for (prefix, source) in &changed {
            self.rib.set(*prefix, *source, self.own.get(&(*prefix, *source)).copied());
        }
        changed.into_iter().map(|(prefix, _)| prefix).collect()
    }

    /// The addresses of the ports, with the networks that they are in.
    pub(crate) fn networks(&self) -> Vec<(PortNumber, InterfaceAddress)> {
        let of_port = |(number, port): (PortNumber, &Port)| {
            port.addresses.iter().map(move |own| (number, *own)).collect::<Vec<_>>()
        };
        (1..).zip(&self.ports).flat_map(of_port).collect()
    }

    /// Forgets those that are no neighbours any more.
    pub(super) fn forget_strangers(&mut self) -> Vec<Action<Packet>> {
        let vias: HashSet<Neighbour> = self.vias();
        let (ports, rib, mut actions) = (&self.ports, &self.rib, Vec::new());
        let stays = |known: &Neighbour| is_on_link(ports, rib, *known) || vias.contains(known);
        let set = |known: &Neighbour, state| {
            let port = ports.get(usize::from(known.port).wrapping_sub(1));
            state == NeighbourState::Permanent && port.is_some_and(Port::has_host)
        };
        self.neighbours.forget_where(|known, state| !stays(known) && !set(known, state), &mut actions);
        actions
    }

    /// What the program is told of each port.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = Option<(Filled, Entry)>> {
        (1..=self.ports.len() as PortNumber).map(|number| self.interface(number))
    }

    pub(super) fn interface(&self, number: PortNumber) -> Option<(Filled, Entry)> {
        let port = self.port(number)?;
        let mac = port.link?.mac;
        let (four, six) = (self.own_ipv4(number), self.own_ipv6(number));
        (four.is_some() || six.is_some()).then(|| {
            let four = four.unwrap_or(Ipv4Addr::UNSPECIFIED);
            effects::interface(number, mac, four, six.unwrap_or(Ipv6Addr::UNSPECIFIED))
        })
    }

    /// The address that errors about packets of a port come from: its own, or that of another port (RFC 1812,
    /// 4.3.2.4).
    pub(super) fn own_ipv4(&self, number: PortNumber) -> Option<Ipv4Addr> {
        self.own_address(number, |address| match address {
            IpAddr::V4(four) => Some(four),
            IpAddr::V6(_) => None,
        })
    }

    /// The same of IPv6.
    pub(super) fn own_ipv6(&self, number: PortNumber) -> Option<Ipv6Addr> {
        self.own_address(number, |address| match address {
            IpAddr::V6(six) => Some(six),
            IpAddr::V4(_) => None,
        })
    }

    fn own_address<T>(&self, number: PortNumber, of: impl Fn(IpAddr) -> Option<T>) -> Option<T> {
        let first = |port: &Port| port.addresses.iter().find_map(|address| of(address.address));
        self.port(number).and_then(first).or_else(|| self.ports.iter().find_map(first))
    }
}
