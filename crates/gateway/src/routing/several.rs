//! Routes that lead by several next hops: the groups of the program that distribute their flows, of which
//! only those neighbours are members that are known.
//!
//! Control says which next hop has which of the buckets of a group. When one goes, only its buckets get other
//! next hops, and one that comes takes its part by weight of the others'. A set of next hops that takes the
//! place of another in a route begins with the buckets of that, so that flows stay where they are.
//!
//! A neighbour that is not known is looked for when its group is made and then over and over, so that packets
//! need not be lost to find out. While it is not known it is no member, and its flows go to the others.

use super::effects::{self, Effects, Filled};
use super::neighbours::{Action, Neighbour};
use super::paths::Several;
use super::prefix::IpPrefix;
use super::rib::{Source, Way};
use super::router::{Packet, Router, StaticRoute};
use ir::Entry;
use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tables::group::GroupTable;

/// How long it takes until next hops that are not known are looked for again.
const LOOK_AGAIN: u64 = 10_000_000_000;

impl Router {
    /// A route of the file is there from the beginning. Its set, if it has one, stays as long as the router.
    pub(super) fn set_of_file(&mut self, route: &StaticRoute, effects: &mut Effects) {
        let way = self.several_after(route.via.clone(), effects, |_, _| (None, BTreeSet::new()));
        if let Some(Way::Several(several)) = way {
            self.paths.count(several, true);
            self.file_sets.insert(route.to, several);
        }
        self.rib.set(route.to, Source::Static, way);
    }

    /// A route of the file by several next hops counts while one of their links is up. Says which prefixes
    /// lead elsewhere now.
    pub(super) fn relink_sets_of_file(&mut self) -> Vec<IpPrefix> {
        let mut changed = Vec::new();
        for (prefix, several) in &self.file_sets {
            let members = self.paths.members(*several);
            let up = members.iter().any(|member| self.rib.is_up(member.port));
            let first = || members.first().map(|member| Way::Via(*member));
            let way = if up { Some(Way::Several(*several)) } else { first() };
            if self.rib.of(*prefix, Source::Static) != way {
                self.rib.set(*prefix, Source::Static, way);
                changed.push(*prefix);
            }
        }
        changed
    }

    /// The way of a route of the kernel by several next hops, each with its weight. Where the program has no
    /// room for more, it is that by the first of them whose link is up.
    pub(crate) fn several(
        &mut self,
        prefix: IpPrefix,
        members: Vec<(Neighbour, u32)>,
        effects: &mut Effects,
    ) -> Option<Way> {
        let mut buckets = match self.rib.of(prefix, Source::Kernel) {
            Some(Way::Several(before)) => self.paths.buckets(before).cloned(),
            _ => None,
        };
        self.several_after(members, effects, |router, several| {
            let known: BTreeSet<u32> = router.known_members(several).into_iter().map(u32::from).collect();
            if let Some(buckets) = &mut buckets {
                let there: BTreeSet<u32> = buckets.members().map(|(hop, _)| hop).collect();
                for hop in there.difference(&known) {
                    buckets.remove(*hop);
                }
            }
            (buckets, known)
        })
    }

    /// The same; `begin` says for a new set with which buckets it begins and who joins then.
    fn several_after(
        &mut self,
        members: Vec<(Neighbour, u32)>,
        effects: &mut Effects,
        begin: impl FnOnce(&Router, Several) -> (Option<GroupTable>, BTreeSet<u32>),
    ) -> Option<Way> {
        let first = members.iter().find(|(member, _)| self.has_link(member.port)).or(members.first());
        let first = first.map(|(member, _)| Way::Via(*member));
        let Some((several, new)) = self.paths.find(members) else { return first };
        if !new {
            return Some(Way::Several(several));
        }
        let members = self.paths.members(several).to_vec();
        for (count, member) in members.iter().enumerate() {
            if self.take(*member, effects).is_none() {
                members[..count].iter().for_each(|member| self.give_back(*member, effects));
                self.paths.remove(several);
                return first;
            }
        }
        for member in &members {
            self.count_router(*member, true);
        }
        for port in ports(&members) {
            effects.insert(effects::group_port(several.number(), port));
        }
        let (before, joining) = begin(self, several);
        let weights = self.weights(several);
        if let Some(buckets) = self.paths.buckets_mut(several) {
            if let Some(before) = before {
                *buckets = before;
                buckets.reweigh(|hop| weights.get(&hop).copied());
            }
            for hop in joining {
                // Whoever is a member already stays one; there are more buckets than members.
                let _ = buckets.add(hop, weights.get(&hop).copied().unwrap_or(1));
            }
        }
        for entry in self.bucket_entries(several) {
            effects.insert(entry);
        }
        self.look_at = 0;
        Some(Way::Several(several))
    }

    /// Routes of the kernel led by these ways before, and lead by those now.
    pub(super) fn count_several(&mut self, before: Option<Way>, now: Option<Way>) {
        for (way, more) in [(now, true), (before, false)] {
            if let Some(Way::Several(several)) = way {
                self.paths.count(several, more);
            }
        }
    }

    /// Takes out the groups by which no route leads any more.
    pub(super) fn drop_unused(&mut self, effects: &mut Effects) {
        for several in self.paths.unused() {
            for entry in self.bucket_entries(several) {
                effects.remove(entry);
            }
            let members = self.paths.remove(several);
            for port in ports(&members) {
                effects.remove(effects::group_port(several.number(), port));
            }
            for member in members {
                self.count_router(member, false);
                self.give_back(member, effects);
            }
        }
    }

    /// A neighbour is known now, or no more, or its link came or went: it joins or leaves the groups that it
    /// is to be in. Whom somebody has set is known without a link, and no member then.
    pub(super) fn regroup(&mut self, neighbour: Neighbour, effects: &mut Effects) {
        let Some(hop) = self.numbers.of(neighbour) else { return };
        let joins = self.is_member(&neighbour);
        let of =
            |(several, members): (Several, &[Neighbour])| members.contains(&neighbour).then_some(several);
        for several in self.paths.all().filter_map(of).collect::<Vec<_>>() {
            self.join(several, hop, joins, effects);
        }
    }

    /// A member joins the group of a set, or leaves it.
    fn join(&mut self, several: Several, hop: u16, joins: bool, effects: &mut Effects) {
        let before: BTreeMap<u8, u16> = self.filled_buckets(several).collect();
        let weight = self.weights(several).get(&hop.into()).copied().unwrap_or(1);
        if let Some(buckets) = self.paths.buckets_mut(several) {
            // Whoever is a member already stays one, as after a reload.
            let _ = if joins { buckets.add(hop.into(), weight).ok() } else { buckets.remove(hop.into()) };
        }
        let now: BTreeMap<u8, u16> = self.filled_buckets(several).collect();
        for (bucket, hop) in before.iter().filter(|(bucket, _)| !now.contains_key(*bucket)) {
            effects.remove(effects::bucket(several.number(), *bucket, *hop));
        }
        for (bucket, hop) in now.iter().filter(|(bucket, hop)| before.get(*bucket) != Some(*hop)) {
            effects.insert(effects::bucket(several.number(), *bucket, *hop));
        }
    }

    /// The weights of the next hops of a set, by number.
    fn weights(&self, several: Several) -> BTreeMap<u32, u32> {
        let weighted = self.paths.weighted(several);
        weighted.filter_map(|(member, weight)| Some((self.numbers.of(member)?.into(), weight))).collect()
    }

    /// The buckets of a set that have a next hop.
    fn filled_buckets(&self, several: Several) -> impl Iterator<Item = (u8, u16)> + '_ {
        let buckets = self.paths.buckets(several).map_or(&[][..], GroupTable::buckets);
        (0..).zip(buckets).filter_map(|(bucket, hop)| Some((bucket, u16::try_from(*hop).ok()?)))
    }

    fn bucket_entries(&self, several: Several) -> Vec<(Filled, Entry)> {
        let of = several.number();
        self.filled_buckets(several).map(|(bucket, hop)| effects::bucket(of, bucket, hop)).collect()
    }

    /// The numbers of those of a set that are known.
    fn known_members(&self, several: Several) -> Vec<u16> {
        let known = self.paths.members(several).iter().filter(|member| self.is_member(member));
        known.filter_map(|member| self.numbers.of(*member)).collect()
    }

    /// The next hop for a packet that the program found none for: one that is known, or is being asked.
    pub(super) fn one_of(&self, several: Several) -> Option<Neighbour> {
        let members = self.paths.members(several);
        let up = |member: &&Neighbour| self.has_link(member.port);
        let known = members.iter().find(|member| self.is_member(member));
        let asked = || members.iter().find(|member| up(member) && self.neighbours.has(**member));
        known.or_else(asked).or_else(|| members.iter().find(up)).copied()
    }

    /// Looks for the next hops that are not known, if it is time.
    pub(super) fn look(&mut self, now: u64, actions: &mut Vec<Action<Packet>>) {
        if self.paths.is_empty() || self.look_at > now {
            return;
        }
        self.look_at = now + LOOK_AGAIN;
        let all: BTreeSet<Neighbour> = self.paths.all().flat_map(|(_, members)| members).copied().collect();
        for member in all.into_iter().filter(|member| self.has_link(member.port)).collect::<Vec<_>>() {
            self.neighbours.look_for(member, now, actions);
        }
    }

    /// Whether a next hop of a set gets flows.
    fn is_member(&self, neighbour: &Neighbour) -> bool {
        self.known.contains(neighbour) && self.has_link(neighbour.port)
    }

    fn has_link(&self, port: PortNumber) -> bool {
        self.port(port).and_then(|port| port.link).is_some_and(|link| link.up)
    }

    /// When that is to be done next.
    pub(super) fn look_due(&self) -> Option<u64> {
        (!self.paths.is_empty()).then_some(self.look_at)
    }

    /// What belongs into the program's groups, and into the table of their ports.
    pub(super) fn group_entries(&self) -> impl Iterator<Item = (Filled, Entry)> + '_ {
        self.paths.all().flat_map(|(several, members)| {
            let of_ports = ports(members).into_iter();
            let of_ports = of_ports.map(move |port| effects::group_port(several.number(), port));
            self.bucket_entries(several).into_iter().chain(of_ports)
        })
    }

    /// Every group with its members, and whether each is known.
    pub(super) fn groups_shown(&self) -> BTreeMap<Several, Vec<(Neighbour, bool)>> {
        let shown =
            |members: &[Neighbour]| members.iter().map(|member| (*member, self.is_member(member))).collect();
        self.paths.all().map(|(several, members)| (several, shown(members))).collect()
    }

    /// The kernel's routes of another router by ports that stay, by the groups that this one has.
    pub(super) fn succeed_routes(&mut self, old: &Router, staying: &HashSet<PortNumber>) {
        let mut effects = Effects::default();
        for (prefix, source, way, _) in old.rib.all().filter(|(_, source, ..)| *source == Source::Kernel) {
            if way.port().is_some_and(|port| !staying.contains(&port)) {
                continue;
            }
            let way = match way {
                Way::Several(several) => self.succeed_several(old, several, staying, &mut effects),
                way => Some(way),
            };
            self.rib.set(prefix, source, way);
            self.count_several(None, way);
        }
    }

    /// The sets of the file's routes, with the buckets that they have in another router.
    pub(super) fn succeed_sets_of_file(&mut self, old: &Router, staying: &HashSet<PortNumber>) {
        for (prefix, several) in self.file_sets.clone() {
            if let Some(before) = old.file_sets.get(&prefix) {
                self.inherit(several, old, *before, staying);
            }
        }
        self.relink_sets_of_file();
    }

    /// A set of another router, with the buckets that its next hops have there.
    fn succeed_several(
        &mut self,
        old: &Router,
        several: Several,
        staying: &HashSet<PortNumber>,
        effects: &mut Effects,
    ) -> Option<Way> {
        let members = old.paths.weighted(several).filter(|(member, _)| staying.contains(&member.port));
        let way = self.several_after(members.collect(), effects, |_, _| (None, BTreeSet::new()));
        if let Some(Way::Several(new)) = way {
            self.inherit(new, old, several, staying);
        }
        way
    }

    /// A set whose buckets nobody has yet begins with those that its next hops have in a set of another
    /// router.
    fn inherit(&mut self, several: Several, old: &Router, before: Several, staying: &HashSet<PortNumber>) {
        let of = |router: &Router, member| router.numbers.of(member).map(u32::from);
        let stays = self.paths.members(several).iter().filter(|member| staying.contains(&member.port));
        let numbers: BTreeMap<u32, u32> =
            stays.filter_map(|member| Some((of(old, *member)?, of(self, *member)?))).collect();
        let weights = self.weights(several);
        let (before, buckets) = (old.paths.buckets(before), self.paths.buckets_mut(several));
        let fresh = buckets.filter(|buckets| buckets.members().next().is_none());
        if let (Some(before), Some(buckets)) = (before, fresh) {
            *buckets = before.renumbered(|hop| numbers.get(&hop).copied());
            buckets.reweigh(|hop| weights.get(&hop).copied());
        }
    }
}

/// The ports of neighbours, each once.
fn ports(members: &[Neighbour]) -> BTreeSet<PortNumber> {
    members.iter().map(|member| member.port).collect()
}
