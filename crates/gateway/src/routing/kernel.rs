//! The main routing table of the Linux kernel, built from the messages of rtnetlink.
//!
//! Messages come in the order of what happened, answers to questions among them, so they are taken in as they
//! come; a route that was there before a whole answer to "all routes" and is not in it is gone. Of routes to
//! one prefix that with the smallest metric counts, and of several next hops all that lead to routers, or the
//! first whose link is up. Of several routes of IPv4 with one metric the first counts; those of IPv6 are one
//! route, of which each message tells some next hops. Next hops with a number go with every route by them, of
//! which the kernel says nothing. A route for some of the packets to its prefix alone (of a type of service,
//! from a source) is known but not used: the others have ways of their own.

use super::listing::{Belief, Listing};
use super::neighbours::Neighbour;
use super::prefix::IpPrefix;
use super::rib::{Unmeant, Way};
use super::rtnetlink::{Condition, Hop, Key, Object, RouteNews};
use packet::PortNumber;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// The kernel's main table.
#[derive(Clone, Debug)]
pub(crate) struct KernelTable {
    /// The next hops of each prefix, the smallest metric first; those of one metric in the kernel's order.
    routes: HashMap<IpPrefix, Vec<KnownHop>>,
    /// How many next hops of routes are of each number.
    uses: HashMap<u32, usize>,
    /// Routes for some packets alone.
    conditional: BTreeMap<Key, u64>,
    /// Next hops that have numbers.
    objects: HashMap<u32, (Object, u64)>,
    /// Those of them that went, or changed, since the routes by them were looked for last.
    gone: HashSet<u32>,
    altered: HashSet<u32>,
    round: u64,
    /// How many next hops, numbered ones, and members of groups there are together, and how many there may
    /// be.
    size: usize,
    most: usize,
    /// How many next hops a prefix may have, of all its routes together.
    most_of_prefix: usize,
    /// Whether one was left out for want of room since everything was asked for.
    is_full: bool,
    /// What was told since everything was asked for, while the answers come.
    listing: Option<Listing>,
}

/// A next hop of a route.
#[derive(Clone, Copy, Debug)]
struct KnownHop {
    metric: u32,
    /// Which of the routes of this metric it belongs to.
    route: u32,
    hop: Hop,
    /// Its part of the flows, beside the weights of the others.
    weight: u32,
    /// The round of questions that saw it last.
    seen: u64,
}

/// Where a next hop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// At this port.
    Port(PortNumber),
    /// At none, for this reason.
    Unmeant(Unmeant),
    /// At the gateway: a router in a container sends to it what it has no route of its own for. Such a next
    /// hop says nothing.
    Gateway,
}

/// Resolves a next hop by the number of its interface and its address, if it has one.
pub(crate) type Resolves<'a> = dyn Fn(u32, Option<IpAddr>) -> Resolved + 'a;

/// Resolves next hops by the interfaces of ports.
pub(crate) fn by_interface(
    ports: &HashMap<u32, PortNumber>,
) -> impl Fn(u32, Option<IpAddr>) -> Resolved + '_ {
    |index, _| {
        ports.get(&index).map_or(Resolved::Unmeant(Unmeant::NoPort(index)), |port| Resolved::Port(*port))
    }
}

/// The ports as they are now.
pub(crate) struct Ports<'a> {
    /// Where a next hop is.
    pub(crate) resolve: &'a Resolves<'a>,
    /// Whether a port's link is up.
    pub(crate) up: &'a dyn Fn(PortNumber) -> bool,
}

impl Default for KernelTable {
    fn default() -> KernelTable {
        KernelTable::with_room(usize::MAX, usize::MAX)
    }
}

impl KernelTable {
    /// A table with room for so many next hops, numbered ones, and members of groups, and for so many next
    /// hops of a prefix.
    pub(crate) fn with_room(most: usize, most_of_prefix: usize) -> KernelTable {
        KernelTable {
            routes: HashMap::new(),
            uses: HashMap::new(),
            conditional: BTreeMap::new(),
            objects: HashMap::new(),
            gone: HashSet::new(),
            altered: HashSet::new(),
            round: 0,
            size: 0,
            most,
            most_of_prefix,
            is_full: false,
            listing: None,
        }
    }

    /// Whether one was left out for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether there is room for so much more.
    fn has_room(&mut self, more: usize) -> bool {
        let has_room = self.most - self.size >= more;
        self.is_full |= !has_room;
        has_room
    }

    /// Everything is asked for anew from here on.
    pub(crate) fn begin(&mut self) {
        self.round += 1;
        self.is_full = false;
        self.listing = Some(Listing::default());
    }

    /// What changed while the answers came cannot be told from what was there: everything is to be asked for
    /// again.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.listing.as_ref().is_some_and(Listing::is_doubtful)
    }

    /// A route came or went. Says whether its prefix may lead elsewhere now: all that is told again after a
    /// loss changes little.
    pub(crate) fn route(&mut self, key: Key, hops: &[Hop], news: RouteNews) -> bool {
        let Key { prefix, condition, metric } = key;
        let (there, replaces) = (news != RouteNews::Went, news == RouteNews::Replaces);
        let believed: Vec<Hop>;
        let mut hops = hops;
        match (&mut self.listing, news) {
            (None, _) => {}
            (Some(_), RouteNews::Listed) => {
                believed = hops.iter().copied().filter(|hop| self.believes(key, *hop)).collect();
                if believed.is_empty() {
                    return false;
                }
                hops = &believed;
            }
            (Some(listing), RouteNews::Went) => hops.iter().for_each(|hop| listing.went(key, *hop)),
            (Some(listing), _) => hops.iter().for_each(|hop| listing.came(key, *hop, replaces)),
        }
        if condition.is_some() {
            if there {
                self.conditional.insert(key, self.round);
            } else {
                self.conditional.remove(&key);
            }
            return false;
        }
        let (mut room, mut is_full) = (self.most - self.size, false);
        // Most prefixes have one next hop.
        let known = self.routes.entry(prefix).or_insert_with(|| Vec::with_capacity(1));
        let before = known.len();
        let begin = known.partition_point(|known| known.metric < metric);
        let mut end = known.partition_point(|known| known.metric <= metric);
        let mut changed = false;
        // Of several routes of IPv4 the first is replaced.
        let first = known[begin..end].first().map(|one| one.route);
        let of_first = |one: &KnownHop| !prefix.is_ipv4() || Some(one.route) == first;
        let replaced = known[begin..end].iter().filter(|one| of_first(one)).map(|one| &one.hop);
        if let Some(listing) =
            self.listing.as_mut().filter(|_| replaces && replaced.clone().count() < end - begin)
        {
            // Until the list is at its end, the first may be one that has gone.
            listing.doubt();
        }
        if replaces && !replaced.eq(hops) {
            let mut at = 0;
            known.retain(|one| {
                let stays = !(begin..end).contains(&at) || !of_first(one);
                at += 1;
                if !stays {
                    count(&mut self.uses, one.hop, false);
                }
                stays
            });
            room += at - known.len();
            (end, changed) = (end - (at - known.len()), true);
        }
        let own = |one: &KnownHop| one.route + 1;
        let route = if prefix.is_ipv4() { known[begin..end].iter().map(own).max().unwrap_or(0) } else { 0 };
        let is_before = matches!(news, RouteNews::Came | RouteNews::Replaces);
        let mut at = if prefix.is_ipv4() && is_before { begin } else { end };
        let of = |hop: &Hop| known[begin..end].iter().find(|one| one.hop == *hop).map(|one| one.route);
        // Some may have been in routes of their own before something was missed.
        let joins = news == RouteNews::Listed && hops.windows(2).any(|two| of(&two[0]) != of(&two[1]));
        for hop in hops {
            let place = known[begin..end].iter().position(|known| known.hop == *hop);
            match place.map(|place| begin + place) {
                Some(place) if there => {
                    known[place].seen = self.round;
                    if joins {
                        (known[place].route, changed) = (route, true);
                    }
                }
                None if there && (room == 0 || known.len() >= self.most_of_prefix) => is_full = true,
                None if there => {
                    room -= 1;
                    known.insert(at, KnownHop { metric, route, hop: *hop, weight: 1, seen: self.round });
                    count(&mut self.uses, *hop, true);
                    (at, end, changed) = (at + 1, end + 1, true);
                }
                Some(place) => {
                    known.remove(place);
                    count(&mut self.uses, *hop, false);
                    (end, changed) = (end - 1, true);
                }
                None => {}
            }
        }
        self.size = self.size + known.len() - before;
        self.is_full |= is_full;
        if known.is_empty() {
            self.routes.remove(&prefix);
        }
        changed
    }

    /// The next hops of a route that came have these weights, or 1. Says whether some had others. Those of a
    /// route that was replaced while it was listed are known since.
    pub(crate) fn weigh(&mut self, key: Key, hops: &[Hop], weights: &[u32], news: RouteNews) -> bool {
        let Some(known) = self.routes.get_mut(&key.prefix).filter(|_| hops.len() > 1) else { return false };
        let listed = self.listing.as_ref().filter(|_| news == RouteNews::Listed);
        let mut changed = false;
        for (place, hop) in hops.iter().enumerate().filter(|_| news != RouteNews::Went) {
            if listed.is_some_and(|listing| listing.says(key, *hop) != Belief::There) {
                continue;
            }
            let weight = weights.get(place).copied().unwrap_or(1);
            for known in known.iter_mut().filter(|known| known.metric == key.metric && known.hop == *hop) {
                changed |= known.weight != weight;
                known.weight = weight;
            }
        }
        changed && key.condition.is_none()
    }

    /// Whether a listed next hop is there still. Of one whose route was replaced meanwhile nobody knows in
    /// IPv4: it may be what was replaced, or a spare one.
    fn believes(&mut self, key: Key, hop: Hop) -> bool {
        let Some(listing) = &mut self.listing else { return true };
        match listing.says(key, hop) {
            Belief::There => true,
            Belief::Gone => false,
            Belief::Replaced if !key.prefix.is_ipv4() => false,
            Belief::Replaced => {
                let same = |known: &KnownHop| known.metric == key.metric && known.hop == hop;
                let is_known = self.routes.get(&key.prefix).is_some_and(|known| known.iter().any(same));
                if !is_known {
                    listing.doubt();
                }
                is_known
            }
        }
    }

    /// A next hop with a number came, changed or went. The routes by it are found by
    /// [`settled`](KernelTable::settled), many such changes at once. Says which prefixes had to change
    /// before.
    pub(crate) fn object(&mut self, number: u32, object: Option<Object>) -> Vec<IpPrefix> {
        let Some(object) = object else {
            if let Some(listing) = &mut self.listing {
                listing.object_went(number);
            }
            self.size -= self.objects.remove(&number).map_or(0, |(object, _)| object.size());
            self.gone.insert(number);
            return Vec::new();
        };
        let more = object.size().saturating_sub(self.objects.get(&number).map_or(0, |(one, _)| one.size()));
        if more > 0 && !self.has_room(more) {
            // It is not what it was: a group of nobody stands for it.
            if let Some((known, seen)) = self.objects.get_mut(&number) {
                self.size -= known.size() - 1;
                (*known, *seen) = (Object::Group(Vec::new()), self.round);
                self.altered.insert(number);
            }
            return Vec::new();
        }
        // Routes by the one that had the number before went with it.
        let changed = if self.gone.contains(&number) { self.settled() } else { Vec::new() };
        self.size += object.size();
        let before = self.objects.insert(number, (object.clone(), self.round));
        self.size -= before.as_ref().map_or(0, |(before, _)| before.size());
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
            if matches!(object, Object::Group(members) if members.iter().any(|(member, _)| altered.contains(member)))
            {
                altered.insert(*number);
            }
        }
        if !altered.iter().any(|number| self.uses.contains_key(number)) {
            // One that has just come, or whose routes went before it: none need be looked for.
            return Vec::new();
        }
        let mut changed = Vec::new();
        let (uses, size) = (&mut self.uses, &mut self.size);
        self.routes.retain(|prefix, known| {
            let of = |known: &KnownHop, numbers: &HashSet<u32>| matches!(known.hop, Hop::Object(number) if numbers.contains(&number));
            if known.iter().any(|known| of(known, &altered)) {
                changed.push(*prefix);
                known.retain(|known| {
                    let stays = !of(known, &gone);
                    if !stays {
                        *size -= 1;
                        count(uses, known.hop, false);
                    }
                    stays
                });
            }
            !known.is_empty()
        });
        changed
    }

    /// Everything has been told: what was not among it is gone. Says which prefixes that changes.
    pub(crate) fn end(&mut self) -> Vec<IpPrefix> {
        let round = self.round;
        self.listing = None;
        let (mut changed, uses, size) = (Vec::new(), &mut self.uses, &mut self.size);
        self.conditional.retain(|_, seen| *seen == round);
        self.objects.retain(|_, (object, seen)| {
            *size -= if *seen == round { 0 } else { object.size() };
            *seen == round
        });
        self.routes.retain(|prefix, known| {
            let before = known.len();
            known.retain(|known| {
                let stays = known.seen == round;
                if !stays {
                    *size -= 1;
                    count(uses, known.hop, false);
                }
                stays
            });
            if known.len() != before {
                changed.push(*prefix);
            }
            !known.is_empty()
        });
        changed
    }

    /// Every prefix.
    pub(crate) fn prefixes(&self) -> Vec<IpPrefix> {
        self.routes.keys().copied().collect()
    }

    /// The routers that a prefix leads to by ports, each with its weight, if there are several such next
    /// hops, all of them lead to routers, and one by a port whose link is up.
    pub(crate) fn several(&self, prefix: IpPrefix, ports: &Ports<'_>) -> Option<Vec<(Neighbour, u32)>> {
        let known = self.routes.get(&prefix)?;
        if let [KnownHop { hop: Hop::By(..) | Hop::Nowhere(_), .. }] = known[..] {
            return None;
        }
        let (mut routers, mut up) = (Vec::new(), false);
        for (hop, weight) in first_route(known).flat_map(|(hop, weight)| self.resolved(hop, weight)) {
            let Hop::By(index, gateway) = hop else { continue };
            if let Resolved::Port(port) = (ports.resolve)(index, gateway) {
                routers.push((Neighbour { port, address: gateway? }, weight));
                up |= (ports.up)(port);
            }
        }
        (routers.len() > 1 && up).then_some(routers)
    }

    /// The way of a prefix that the kernel has a route to: the first next hop by a port whose link is up,
    /// then the first by a port, then what leads nowhere.
    pub(crate) fn way(&self, prefix: IpPrefix, ports: &Ports<'_>) -> Option<Way> {
        let known = self.routes.get(&prefix)?;
        let (mut best, mut says_nothing) = (None::<(u8, Way)>, false);
        for (hop, _) in first_route(known).flat_map(|(hop, weight)| self.resolved(hop, weight)) {
            let way = match hop {
                Hop::Nowhere(way) => way,
                Hop::Object(_) => Way::Unmeant(Unmeant::NoHop),
                Hop::By(index, gateway) => match (ports.resolve)(index, gateway) {
                    Resolved::Port(port) => {
                        gateway.map_or(Way::Link(port), |address| Way::Via(Neighbour { port, address }))
                    }
                    Resolved::Unmeant(why) => Way::Unmeant(why),
                    Resolved::Gateway => {
                        says_nothing = true;
                        continue;
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
        match best {
            Some((_, way)) => Some(way),
            None if says_nothing => None,
            // A group of which every next hop has gone.
            None => Some(Way::Unmeant(Unmeant::NoHop)),
        }
    }

    /// What a next hop of this weight is, if it has a number: one, or those of a group, which have weights of
    /// their own (a group is in no group, and alone in its route).
    fn resolved(&self, hop: Hop, weight: u32) -> Vec<(Hop, u32)> {
        let Hop::Object(number) = hop else { return vec![(hop, weight)] };
        match self.objects.get(&number) {
            None => vec![(hop, weight)],
            Some((Object::One(hop), _)) => vec![(*hop, weight)],
            Some((Object::Group(members), _)) => {
                let one = |(member, weight): &(u32, u32)| match self.objects.get(member) {
                    Some((Object::One(hop), _)) => Some((*hop, *weight)),
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

/// The next hops of the route that counts, with their weights.
fn first_route(known: &[KnownHop]) -> impl Iterator<Item = (Hop, u32)> + '_ {
    let of = |known: &KnownHop| (known.metric, known.route);
    let first = known.first().map(of);
    known.iter().filter(move |known| Some(of(known)) == first).map(|known| (known.hop, known.weight))
}

/// Counts the uses of a next hop that has a number.
fn count(uses: &mut HashMap<u32, usize>, hop: Hop, more: bool) {
    let Hop::Object(number) = hop else { return };
    let count = uses.entry(number).or_default();
    *count = if more { *count + 1 } else { *count - 1 };
    if *count == 0 {
        uses.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let of = by_interface(&known);
        let ports = Ports { resolve: &of, up: &|_| true };
        let mut table = KernelTable::default();
        let prefix = prefix("198.51.100.0/24");
        table.route(key(prefix, 100), &[by(7, "10.0.1.7"), by(8, "10.0.2.7")], RouteNews::Listed);
        assert_eq!(table.way(prefix, &ports), via(1, "10.0.1.7"));
        assert_eq!(table.way(prefix, &Ports { up: &|port| port == 2, ..ports }), via(2, "10.0.2.7"));
        table.route(key(prefix, 50), &[by(8, "10.0.2.9")], RouteNews::Listed);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.9"));
        table.route(key(prefix, 50), &[by(9, "10.0.3.9")], RouteNews::Replaces);
        let elsewhere = Some(Way::Unmeant(Unmeant::NoPort(9)));
        assert_eq!(table.way(prefix, &ports), elsewhere, "by an interface that is no port");
        table.route(key(prefix, 50), &[by(9, "10.0.3.9")], RouteNews::Went);
        table.route(key(prefix, 100), &[by(7, "10.0.1.7")], RouteNews::Went);
        assert_eq!(table.way(prefix, &ports), via(2, "10.0.2.7"));
        table.route(key(prefix, 0), &[Hop::Nowhere(Way::Blackhole)], RouteNews::Listed);
        assert_eq!(table.way(prefix, &ports), Some(Way::Blackhole));
    }

    #[test]
    fn what_is_not_told_again_is_gone() {
        let known = HashMap::from([(7, 1)]);
        let of = by_interface(&known);
        let ports = Ports { resolve: &of, up: &|_| true };
        let mut table = KernelTable::default();
        let [a, b] = ["10.1.0.0/16", "10.2.0.0/16"].map(prefix);
        let tos = Key { condition: Some(Condition::Tos(16)), ..key(a, 0) };
        table.begin();
        table.route(key(a, 0), &[Hop::By(7, None)], RouteNews::Listed);
        table.route(tos, &[Hop::By(7, None)], RouteNews::Listed);
        table.route(key(b, 0), &[Hop::By(7, None)], RouteNews::Listed);
        assert_eq!((table.end(), table.conditional().count()), (vec![], 1));
        table.begin();
        table.route(key(b, 0), &[Hop::By(7, None)], RouteNews::Listed);
        assert_eq!((table.end(), table.conditional().count()), (vec![a], 0));
        assert_eq!((table.way(a, &ports), table.way(b, &ports)), (None, Some(Way::Link(1))));
    }

    #[test]
    fn routes_go_with_the_numbered_next_hop_that_they_lead_by_and_change_with_it() {
        let known = HashMap::from([(7, 1), (8, 2)]);
        let of = by_interface(&known);
        let ports = Ports { resolve: &of, up: &|_| true };
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
        object(&mut table, 9, Some(Object::Group(vec![(71, 1), (81, 1)])));
        table.route(key(one, 0), &[Hop::Object(71)], RouteNews::Listed);
        table.route(key(many, 0), &[Hop::Object(9)], RouteNews::Listed);
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
        table.route(key(one, 0), &[Hop::Object(81)], RouteNews::Listed);
        assert_eq!(table.object(81, None), []);
        let mut changed = table.object(81, Some(Object::One(by(8, "10.0.2.8"))));
        changed.sort_unstable();
        assert_eq!(changed, [one, many]);
        assert_eq!((table.way(one, &ports), table.way(many, &ports)), (None, via(2, "10.0.2.8")));
        assert_eq!(object(&mut table, 9, None), [many]);
        assert_eq!(table.way(many, &ports), None);
        // A route by a number that is not known is one that cannot be meant.
        table.route(key(one, 0), &[Hop::Object(99)], RouteNews::Listed);
        assert_eq!(table.way(one, &ports), Some(Way::Unmeant(Unmeant::NoHop)));
    }

    #[test]
    fn a_table_that_is_full_keeps_what_it_has_and_says_so() {
        let mut table = KernelTable::with_room(3, usize::MAX);
        let prefixes = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16"].map(prefix);
        let [a, .., d] = prefixes;
        let hop = [by(7, "10.0.1.7")];
        let came = prefixes.map(|prefix| table.route(key(prefix, 0), &hop, RouteNews::Came));
        assert_eq!((came, table.is_full()), ([true, true, true, false], true));
        // In whichever order all is told again, what is there stays.
        table.begin();
        assert!(!table.is_full());
        for prefix in prefixes.iter().rev() {
            table.route(key(*prefix, 0), &hop, RouteNews::Listed);
        }
        assert_eq!((table.end(), table.is_full()), (vec![], true));
        let other = [by(7, "10.0.1.8")];
        assert!(table.route(key(a, 0), &other, RouteNews::Replaces), "it takes the room of the one before");
        assert!(table.route(key(a, 0), &other, RouteNews::Went));
        // A group counts with its members.
        let group = |members| Some(Object::Group(vec![(1, 1); members]));
        table.object(9, group(1));
        assert_eq!((table.objects.len(), table.size), (0, 2));
        table.object(9, Some(Object::One(hop[0])));
        assert_eq!((table.objects.len(), table.size), (1, 3));
        // What has no room as it is now is not what it was.
        table.object(9, group(1));
        assert_eq!(table.objects[&9].0, Object::Group(Vec::new()));
        assert_eq!((table.size, table.is_full()), (3, true));
        table.object(9, None);
        assert!(table.route(key(d, 0), &hop, RouteNews::Came));
        table.begin();
        assert_eq!((table.end().len(), table.size), (3, 0));
        // Of one prefix few are known, whatever their metrics are.
        let mut table = KernelTable::with_room(9, 2);
        for metric in [3, 2, 1] {
            table.route(Key { metric, ..key(a, 0) }, &hop, RouteNews::Came);
        }
        assert_eq!((table.size, table.is_full()), (2, true));
    }

    /// How a route of the kernel changes in a test.
    fn change(routes: &mut BTreeMap<usize, Vec<Hop>>, place: usize, hop: Hop, what: u8) -> Option<RouteNews> {
        let hops = routes.entry(place).or_default();
        let there = hops.contains(&hop);
        match what {
            0 if there => hops.retain(|known| *known != hop),
            1 if !there => hops.insert(0, hop),
            2 if !there && !hops.is_empty() => hops[0] = hop,
            _ => return None,
        }
        Some([RouteNews::Went, RouteNews::Came, RouteNews::Replaces][usize::from(what)])
    }

    proptest! {
        /// Whatever was known before, and whenever the parts of a list are put together and handed over: in
        /// the end the kernel's routes are known.
        #[test]
        fn a_list_never_brings_back_what_went_while_it_came(
            before in proptest::collection::vec((0usize..4, 0u32..3), 0..8),
            missed in proptest::collection::vec((0usize..4, 0u32..3, 0u8..3), 0..12),
            during in proptest::collection::vec((0usize..4, 0u32..3, 0u8..3, 0u8..3), 0..24),
        ) {
            let places: Vec<IpPrefix> = (0..4u8).map(|n| IpPrefix::of([10, n, 0, 0].into(), 16)).collect();
            let mut table = KernelTable::default();
            let mut routes = BTreeMap::<usize, Vec<Hop>>::new();
            for (place, hop) in before {
                if let Some(news) = change(&mut routes, place, Hop::By(hop, None), 1) {
                    table.route(key(places[place], 0), &[Hop::By(hop, None)], news);
                }
            }
            for (place, hop, what) in missed {
                change(&mut routes, place, Hop::By(hop, None), what);
            }
            table.begin();
            // Each part is the route to one prefix.
            let (mut listed, mut waiting) = (0, Vec::new());
            let list = |routes: &BTreeMap<usize, Vec<Hop>>, place: usize| {
                let hops = routes.get(&place).cloned().unwrap_or_default();
                hops.into_iter().map(|hop| (place, hop)).collect::<Vec<_>>()
            };
            for (place, hop, what, part) in during {
                if part == 1 && waiting.is_empty() && listed < places.len() {
                    waiting = list(&routes, listed);
                    listed += 1;
                }
                let hop = Hop::By(hop, None);
                if let Some(news) = change(&mut routes, place, hop, what) {
                    table.route(key(places[place], 0), &[hop], news);
                }
                if part == 2 {
                    for (place, hop) in waiting.drain(..) {
                        table.route(key(places[place], 0), &[hop], RouteNews::Listed);
                    }
                }
            }
            waiting.extend((listed..places.len()).flat_map(|place| list(&routes, place)));
            for (place, hop) in waiting {
                table.route(key(places[place], 0), &[hop], RouteNews::Listed);
            }
            if table.is_doubtful() {
                table.begin();
                for (place, hop) in (0..places.len()).flat_map(|place| list(&routes, place)) {
                    table.route(key(places[place], 0), &[hop], RouteNews::Listed);
                }
                prop_assert!(!table.is_doubtful());
            }
            table.end();
            prop_assert_eq!(table.size, table.routes.values().map(Vec::len).sum::<usize>());
            for (place, prefix) in places.iter().enumerate() {
                let sorted = |hops: &mut dyn Iterator<Item = Hop>| {
                    let mut hops: Vec<String> = hops.map(|hop| format!("{hop:?}")).collect();
                    hops.sort();
                    hops
                };
                let known = table.routes.get(prefix).map_or(&[][..], |known| known);
                let there = routes.get(&place).map_or(&[][..], |hops| hops);
                prop_assert_eq!(
                    sorted(&mut known.iter().map(|known| known.hop)),
                    sorted(&mut there.iter().copied()), "{}", prefix
                );
            }
        }
    }

    #[test]
    fn a_list_during_which_too_much_changed_is_doubtful() {
        let mut listing = Listing::with_room(2);
        let [a, b, c] = ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"].map(|text| key(prefix(text), 0));
        listing.went(a, Hop::By(7, None));
        listing.came(b, Hop::By(7, None), true);
        assert_eq!(listing.says(a, Hop::By(7, None)), Belief::Gone);
        assert_eq!(listing.says(b, Hop::By(8, None)), Belief::Replaced);
        assert_eq!(listing.says(a, Hop::By(8, None)), Belief::There);
        listing.came(a, Hop::By(7, None), false);
        assert_eq!(listing.says(a, Hop::By(7, None)), Belief::There);
        listing.object_went(9);
        assert_eq!((listing.is_doubtful(), listing.says(c, Hop::Object(9))), (false, Belief::Gone));
        listing.went(c, Hop::By(7, None));
        assert!(listing.is_doubtful());
    }
}
