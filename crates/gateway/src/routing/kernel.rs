//! The main routing table of the Linux kernel, built from the messages of rtnetlink.
//!
//! Messages come in the order of what happened, answers to questions among them, so they are taken in as they
//! come; a route that was there before an answer to "all routes" and is not in it is gone. Of routes to one
//! prefix that with the smallest metric counts, and of several next hops all that lead to routers, or
//! the first whose link is up. Next
//! hops with a number go with every route by them, of which the kernel says nothing. A route for some of the
//! packets to its prefix alone (of a type of service, from a source) is known but not used: the others have
//! ways of their own.

use super::neighbours::Neighbour;
use super::prefix::IpPrefix;
use super::rib::{Unmeant, Way};
use super::rtnetlink::{Condition, Hop, Key, Object};
use packet::PortNumber;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The kernel's main table.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelTable {
    /// By metric; each next hop with the round of questions that saw it last.
    routes: HashMap<IpPrefix, BTreeMap<u32, Vec<(Hop, u64)>>>,
    /// Routes for some packets alone.
    conditional: BTreeMap<Key, u64>,
    /// Next hops that have numbers.
    objects: HashMap<u32, (Object, u64)>,
    /// Those of them that went, or changed, since the routes by them were looked for last.
    gone: HashSet<u32>,
    altered: HashSet<u32>,
    round: u64,
}

/// The ports' interfaces as they are now.
pub(crate) struct Ports<'a> {
    /// Ports by the numbers of their interfaces.
    pub(crate) ports: &'a HashMap<u32, PortNumber>,
    /// Whether a port's link is up.
    pub(crate) up: &'a dyn Fn(PortNumber) -> bool,
}

impl KernelTable {
    /// Everything is asked for anew from here on.
    pub(crate) fn begin(&mut self) {
        self.round += 1;
    }

    /// A route came or went.
    pub(crate) fn route(&mut self, key: Key, hops: &[Hop], there: bool, replaces: bool) {
        let Key { prefix, condition, metric } = key;
        if condition.is_some() {
            if there {
                self.conditional.insert(key, self.round);
            } else {
                self.conditional.remove(&key);
            }
            return;
        }
        let metrics = self.routes.entry(prefix).or_default();
        let known = metrics.entry(metric).or_default();
        if replaces {
            known.clear();
        }
        for hop in hops {
            match known.iter_mut().find(|(known, _)| known == hop) {
                Some(known) if there => known.1 = self.round,
                None if there => known.push((*hop, self.round)),
                _ => known.retain(|(known, _)| known != hop),
            }
        }
        if known.is_empty() {
            metrics.remove(&metric);
        }
        if metrics.is_empty() {
            self.routes.remove(&prefix);
        }
    }

    /// A next hop with a number came, changed or went. The routes by it are found by
    /// [`settled`](KernelTable::settled), many such changes at once. Says which prefixes had to change
    /// before.
    pub(crate) fn object(&mut self, number: u32, object: Option<Object>) -> Vec<IpPrefix> {
        let Some(object) = object else {
            self.objects.remove(&number);
            self.gone.insert(number);
            return Vec::new();
        };
        // Routes by the one that had the number before went with it.
        let changed = if self.gone.contains(&number) { self.settled() } else { Vec::new() };
        let before = self.objects.insert(number, (object.clone(), self.round));
        if before.map(|(before, _)| before) != Some(object) {
            self.altered.insert(number);
        }
        changed
    }

    /// Takes out the routes by numbered next hops that went. Says which prefixes lead elsewhere now.
    pub(crate) fn settled(&mut self) -> Vec<IpPrefix> {
        let (gone, mut altered) = (std::mem::take(&mut self.gone), std::mem::take(&mut self.altered));
        if gone.is_empty() && altered.is_empty() {
            return Vec::new();
        }
        altered.extend(&gone);
        for (number, (object, _)) in &self.objects {
            if matches!(object, Object::Group(members) if members.iter().any(|member| altered.contains(member)))
            {
                altered.insert(*number);
            }
        }
        self.without(
            |hop| matches!(hop, Hop::Object(number) if gone.contains(number)),
            |hop| matches!(hop, Hop::Object(number) if altered.contains(number)),
        )
    }

    /// Everything has been told: what was not among it is gone. Says which prefixes that changes.
    pub(crate) fn end(&mut self) -> Vec<IpPrefix> {
        let round = self.round;
        self.conditional.retain(|_, seen| *seen == round);
        self.objects.retain(|_, (_, seen)| *seen == round);
        let mut changed = HashSet::new();
        self.routes.retain(|prefix, metrics| {
            metrics.retain(|_, hops| {
                let before = hops.len();
                hops.retain(|(_, seen)| *seen == round);
                if hops.len() != before {
                    changed.insert(*prefix);
                }
                !hops.is_empty()
            });
            !metrics.is_empty()
        });
        changed.into_iter().collect()
    }

    /// Takes next hops out; says which prefixes had one of these or of the others that are `looked` for.
    fn without(&mut self, gone: impl Fn(&Hop) -> bool, looked: impl Fn(&Hop) -> bool) -> Vec<IpPrefix> {
        let mut changed = Vec::new();
        self.routes.retain(|prefix, metrics| {
            if metrics.values().flatten().any(|(hop, _)| looked(hop)) {
                changed.push(*prefix);
                metrics.retain(|_, hops| {
                    hops.retain(|(hop, _)| !gone(hop));
                    !hops.is_empty()
                });
            }
            !metrics.is_empty()
        });
        changed
    }

    /// Every prefix.
    pub(crate) fn prefixes(&self) -> Vec<IpPrefix> {
        self.routes.keys().copied().collect()
    }

    /// The routers that a prefix leads to by ports, if there are several such next hops, all of them lead to
    /// routers, and one by a port whose link is up.
    pub(crate) fn several(&self, prefix: IpPrefix, ports: &Ports<'_>) -> Option<Vec<Neighbour>> {
        let (_, hops) = self.routes.get(&prefix)?.first_key_value()?;
        if let [(Hop::By(..) | Hop::Nowhere(_), _)] = hops[..] {
            return None;
        }
        let (mut routers, mut up) = (Vec::new(), false);
        for hop in hops.iter().flat_map(|(hop, _)| self.resolved(*hop)) {
            let Hop::By(index, gateway) = hop else { continue };
            if let Some(&port) = ports.ports.get(&index) {
                routers.push(Neighbour { port, address: gateway? });
                up |= (ports.up)(port);
            }
        }
        (routers.len() > 1 && up).then_some(routers)
    }

    /// The way of a prefix that the kernel has a route to: the first next hop by a port whose link is up,
    /// then the first by a port, then what leads nowhere.
    pub(crate) fn way(&self, prefix: IpPrefix, ports: &Ports<'_>) -> Option<Way> {
        let (_, hops) = self.routes.get(&prefix)?.first_key_value()?;
        let mut best: Option<(u8, Way)> = None;
        for hop in hops.iter().flat_map(|(hop, _)| self.resolved(*hop)) {
            let way = match hop {
                Hop::Nowhere(way) => way,
                Hop::Object(_) => Way::Unmeant(Unmeant::NoHop),
                Hop::By(index, gateway) => match ports.ports.get(&index) {
                    None => Way::Unmeant(Unmeant::NoPort(index)),
                    Some(&port) => {
                        gateway.map_or(Way::Link(port), |address| Way::Via(Neighbour { port, address }))
                    }
                },
            };
            let rank = match way.port() {
                Some(port) if (ports.up)(port) => 0,
                Some(_) => 1,
                None => 2,
            };
            if best.is_none_or(|(known, _)| rank < known) {
                best = Some((rank, way));
            }
        }
        // A group of which every next hop has gone.
        Some(best.map_or(Way::Unmeant(Unmeant::NoHop), |(_, way)| way))
    }

    /// What a next hop is, if it has a number: one, or those of a group (a group is in no group).
    fn resolved(&self, hop: Hop) -> Vec<Hop> {
        let Hop::Object(number) = hop else { return vec![hop] };
        match self.objects.get(&number) {
            None => vec![hop],
            Some((Object::One(hop), _)) => vec![*hop],
            Some((Object::Group(members), _)) => {
                let one = |member: &u32| match self.objects.get(member) {
                    Some((Object::One(hop), _)) => Some(*hop),
                    _ => None,
                };
                members.iter().filter_map(one).collect()
            }
        }
    }

    /// Routes for some packets alone, which are not used.
    pub(crate) fn conditional(&self) -> impl Iterator<Item = (IpPrefix, Condition)> + '_ {
        self.conditional.keys().filter_map(|key| Some((key.prefix, key.condition?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(index: u32, gateway: &str) -> Hop {
        Hop::By(index, Some(gateway.parse().expect("an address")))
    }

    fn prefix(text: &str) -> IpPrefix {
        text.parse().expect("a prefix")
    }

    fn key(prefix: IpPrefix, metric: u32) -> Key {
        Key { prefix, condition: None, metric }
    }

    fn via(port: PortNumber, address: &str) -> Option<Way> {
        Some(Way::Via(Neighbour { port, address: address.parse().expect("an address") }))
    }

    #[test]
    fn the_smallest_metric_and_the_first_next_hop_whose_link_is_up_count() {
        let known = HashMap::from([(7, 1), (8, 2)]);
        let ports = Ports { ports: &known, up: &|_| true };
        let mut table = KernelTable::default();
        let prefix = prefix("198.51.100.0/24");
        table.route(key(prefix, 100), &[by(7, "10.0.1.7"), by(8, "10.0.2.7")], true, false);
        assert_eq!(table.way(prefix, &ports), via(1, "10.0.1.7"));
        assert_eq!(table.way(prefix, &Ports { up: &|port| port == 2, ..ports }), via(2, "10.0.2.7"));
        table.route(key(prefix, 50), &[by(8, "10.0.2.9")], true, false);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.9"));
        table.route(key(prefix, 50), &[by(9, "10.0.3.9")], true, true);
        let elsewhere = Some(Way::Unmeant(Unmeant::NoPort(9)));
        assert_eq!(table.way(prefix, &ports), elsewhere, "by an interface that is no port");
        table.route(key(prefix, 50), &[by(9, "10.0.3.9")], false, false);
        table.route(key(prefix, 100), &[by(7, "10.0.1.7")], false, false);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.7"));
        table.route(key(prefix, 0), &[Hop::Nowhere(Way::Blackhole)], true, false);
        assert_eq!(table.way(prefix, &ports), Some(Way::Blackhole));
    }

    #[test]
    fn what_is_not_told_again_is_gone() {
        let known = HashMap::from([(7, 1)]);
        let ports = Ports { ports: &known, up: &|_| true };
        let mut table = KernelTable::default();
        let [a, b] = ["10.1.0.0/16", "10.2.0.0/16"].map(prefix);
        let tos = Key { condition: Some(Condition::Tos(16)), ..key(a, 0) };
        table.begin();
        table.route(key(a, 0), &[Hop::By(7, None)], true, false);
        table.route(tos, &[Hop::By(7, None)], true, false);
        table.route(key(b, 0), &[Hop::By(7, None)], true, false);
        assert_eq!((table.end(), table.conditional().count()), (vec![], 1));
        table.begin();
        table.route(key(b, 0), &[Hop::By(7, None)], true, false);
        assert_eq!((table.end(), table.conditional().count()), (vec![a], 0));
        assert_eq!((table.way(a, &ports), table.way(b, &ports)), (None, Some(Way::Link(1))));
    }

    #[test]
    fn routes_go_with_the_numbered_next_hop_that_they_lead_by_and_change_with_it() {
        let known = HashMap::from([(7, 1), (8, 2)]);
        let ports = Ports { ports: &known, up: &|_| true };
        let mut table = KernelTable::default();
        let [one, many] = ["10.1.0.0/16", "10.2.0.0/16"].map(prefix);
        let object = |table: &mut KernelTable, number, object: Option<Object>| {
            let mut changed = table.object(number, object);
            changed.extend(table.settled());
            changed.sort_unstable();
            changed
        };
        object(&mut table, 71, Some(Object::One(by(7, "10.0.1.7"))));
        object(&mut table, 81, Some(Object::One(by(8, "10.0.2.7"))));
        object(&mut table, 9, Some(Object::Group(vec![71, 81])));
        table.route(key(one, 0), &[Hop::Object(71)], true, false);
        table.route(key(many, 0), &[Hop::Object(9)], true, false);
        assert_eq!(
            (table.way(one, &ports), table.way(many, &ports)),
            (via(1, "10.0.1.7"), via(1, "10.0.1.7"))
        );
        let changed = object(&mut table, 71, Some(Object::One(by(7, "10.0.1.17"))));
        assert_eq!(changed, [one, many], "what leads by it, alone or in a group");
        assert_eq!(
            (table.way(one, &ports), table.way(many, &ports)),
            (via(1, "10.0.1.17"), via(1, "10.0.1.17"))
        );
        assert_eq!(object(&mut table, 71, None), [one, many]);
        assert_eq!((table.way(one, &ports), table.way(many, &ports)), (None, via(2, "10.0.2.7")));
        // The number is given again before anybody looked: the route by the one before stays gone.
        table.route(key(one, 0), &[Hop::Object(81)], true, false);
        assert_eq!(table.object(81, None), []);
        let mut changed = table.object(81, Some(Object::One(by(8, "10.0.2.8"))));
        changed.sort_unstable();
        assert_eq!(changed, [one, many]);
        assert_eq!((table.way(one, &ports), table.way(many, &ports)), (None, via(2, "10.0.2.8")));
        assert_eq!(object(&mut table, 9, None), [many]);
        assert_eq!(table.way(many, &ports), None);
        // A route by a number that is not known is one that cannot be meant.
        table.route(key(one, 0), &[Hop::Object(99)], true, false);
        assert_eq!(table.way(one, &ports), Some(Way::Unmeant(Unmeant::NoHop)));
    }
}
