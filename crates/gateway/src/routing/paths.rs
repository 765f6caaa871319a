//! Sets of several next hops, each with a group of the program while a route leads by it.
//!
//! A set has the number of its group as long as it is used. Where no group is left, or a set has more next
//! hops than a group holds, its route leads by some of them; that is noted, so that it can be tried again.

use super::neighbours::Neighbour;
use std::collections::{BTreeMap, HashMap};
use tables::group::GroupTable;

/// The number of the first group of several next hops; the following groups have the next numbers.
const FIRST_GROUP: u16 = 65_100;
/// The most groups of several next hops.
pub(crate) const GROUPS: u16 = 400;
/// How many buckets a group has.
pub(crate) const BUCKETS: u8 = 64;
/// The most next hops of a group.
pub(crate) const MEMBERS: usize = 16;

/// A set of several next hops, by the place of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Several(u16);

impl Several {
    /// Its number in the program's tables of routes.
    pub(crate) fn number(self) -> u16 {
        FIRST_GROUP + self.0
    }
}

/// All sets that are used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// How many groups the program has.
    groups: u16,
    places: HashMap<Vec<(Neighbour, u32)>, Several>,
    sets: BTreeMap<Several, Set>,
    /// Places that were used and are free again.
    free: Vec<u16>,
    /// A set found no place since one became free.
    refused: bool,
}

#[derive(Clone, Debug)]
struct Set {
    members: Vec<Neighbour>,
    /// Of each of them, without common factors.
    weights: Vec<u32>,
    uses: usize,
    /// Which of those that are known has which bucket, by number.
    buckets: GroupTable,
}

impl Paths {
    /// With so many groups.
    pub(crate) fn new(groups: u16) -> Paths {
        Paths { groups, ..Paths::default() }
    }

    /// The set of these next hops, as far as a group holds them, and whether it is new. `None` where no group
    /// is left, or one next hop alone.
    pub(crate) fn find(&mut self, members: Vec<(Neighbour, u32)>) -> Option<(Several, bool)> {
        let mut summed = BTreeMap::<Neighbour, u32>::new();
        for (member, weight) in members {
            let sum = summed.entry(member).or_default();
            *sum = sum.saturating_add(weight);
        }
        if summed.len() < 2 {
            return None;
        }
        let mut members: Vec<(Neighbour, u32)> = summed.into_iter().take(MEMBERS).collect();
        let common = members.iter().fold(0, |common, (_, weight)| common_factor(common, *weight)).max(1);
        members.iter_mut().for_each(|(_, weight)| *weight /= common);
        if let Some(several) = self.places.get(&members) {
            return Some((*several, false));
        }
        // Places that were given and are not free are those of sets.
        let fresh = (self.sets.len() + self.free.len()) as u16;
        let Some(place) = self.free.pop().or_else(|| (fresh < self.groups).then_some(fresh)) else {
            self.refused = true;
            return None;
        };
        let buckets = GroupTable::new(BUCKETS.into()).ok()?;
        self.places.insert(members.clone(), Several(place));
        let (members, weights) = members.into_iter().unzip();
        self.sets.insert(Several(place), Set { members, weights, uses: 0, buckets });
        Some((Several(place), true))
    }

    /// The next hops of a set, in their order.
    pub(crate) fn members(&self, several: Several) -> &[Neighbour] {
        self.sets.get(&several).map_or(&[], |set| &set.members)
    }

    /// The next hops of a set with their weights, in their order.
    pub(crate) fn weighted(&self, several: Several) -> impl Iterator<Item = (Neighbour, u32)> + '_ {
        let set = self.sets.get(&several);
        set.into_iter().flat_map(|set| set.members.iter().copied().zip(set.weights.iter().copied()))
    }

    /// Which next hop has which bucket of a set.
    pub(crate) fn buckets(&self, several: Several) -> Option<&GroupTable> {
        self.sets.get(&several).map(|set| &set.buckets)
    }

    /// The same, to be changed.
    pub(crate) fn buckets_mut(&mut self, several: Several) -> Option<&mut GroupTable> {
        self.sets.get_mut(&several).map(|set| &mut set.buckets)
    }

    /// Every set with its next hops.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Several, &[Neighbour])> {
        self.sets.iter().map(|(several, set)| (*several, &set.members[..]))
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// A route leads by a set, or no more.
    pub(crate) fn count(&mut self, several: Several, more: bool) {
        if let Some(set) = self.sets.get_mut(&several) {
            set.uses = if more { set.uses + 1 } else { set.uses.saturating_sub(1) };
        }
    }

    /// The sets that no route leads by.
    pub(crate) fn unused(&self) -> Vec<Several> {
        self.sets.iter().filter(|(_, set)| set.uses == 0).map(|(several, _)| *several).collect()
    }

    /// A set goes; its place is free again.
    pub(crate) fn remove(&mut self, several: Several) -> Vec<Neighbour> {
        let Some(set) = self.sets.remove(&several) else { return Vec::new() };
        let key: Vec<(Neighbour, u32)> = set.members.iter().copied().zip(set.weights).collect();
        self.places.remove(&key);
        self.free.push(several.0);
        set.members
    }

    /// Whether a set that found no place may find one now. It says so once.
    pub(crate) fn is_worth_trying_again(&mut self) -> bool {
        let free = !self.free.is_empty() && self.refused;
        self.refused &= !free;
        free
    }
}

/// The largest number by which both can be divided.
fn common_factor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_factor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u8]) -> Vec<Neighbour> {
        members.iter().map(|last| Neighbour { port: 1, address: [10, 0, 0, *last].into() }).collect()
    }

    /// The same, each with weight 3.
    fn equal(members: &[u8]) -> Vec<(Neighbour, u32)> {
        set(members).into_iter().map(|member| (member, 3)).collect()
    }

    #[test]
    fn sets_with_the_same_parts_share_a_group_and_others_do_not() {
        let mut paths = Paths::new(3);
        let [a, b]: [Neighbour; 2] = set(&[1, 2]).try_into().expect("two");
        let first = paths.find(vec![(a, 4), (b, 6)]);
        assert!(matches!(first, Some((_, true))));
        let same = first.map(|(several, _)| (several, false));
        assert_eq!(paths.find(vec![(b, 3), (a, 2)]), same);
        assert_eq!(paths.find(vec![(b, 2), (a, 2), (b, 1)]), same, "one that is named twice");
        let second = paths.find(vec![(a, u32::MAX), (b, 1), (b, u32::MAX)]);
        assert!(matches!(second, Some((several, true)) if Some(several) != first.map(|(first, _)| first)));
        let weights: Vec<_> = first.into_iter().flat_map(|(several, _)| paths.weighted(several)).collect();
        assert_eq!(weights, [(a, 2), (b, 3)]);
        assert_eq!(second.map(|(several, _)| paths.remove(several).len()), Some(2));
        assert!(matches!(paths.find(vec![(a, 1), (b, 1)]), Some((_, true))));
    }

    #[test]
    fn a_set_has_one_place_while_it_is_used_and_there_are_no_more_than_groups() {
        let mut paths = Paths::new(2);
        assert_eq!(paths.find(equal(&[7])), None, "it is one");
        assert_eq!(paths.find(equal(&[7, 7])), None);
        let Some((first, true)) = paths.find(equal(&[1, 2])) else { panic!("there is room") };
        paths.count(first, true);
        assert_eq!(paths.find(equal(&[2, 1])), Some((first, false)), "in whatever order");
        let many: Vec<u8> = (10..40).rev().collect();
        let Some((second, true)) = paths.find(equal(&many)) else { panic!("there is room") };
        assert_eq!(paths.members(second), &set(&many[14..].iter().rev().copied().collect::<Vec<_>>())[..]);
        assert_eq!(paths.members(second).len(), MEMBERS, "as many as a group holds");
        paths.count(second, true);
        assert!(!paths.is_worth_trying_again());
        assert_eq!(paths.find(equal(&[8, 9])), None, "no group is left");
        assert!(!paths.is_worth_trying_again() && paths.unused().is_empty());
        paths.count(first, false);
        assert_eq!(paths.unused(), [first]);
        assert_eq!(paths.remove(first), set(&[1, 2]));
        assert!(paths.is_worth_trying_again() && !paths.is_worth_trying_again());
        assert_eq!(paths.find(equal(&[8, 9])), Some((first, true)));
        assert!(paths.members(first) == set(&[8, 9]) && paths.all().count() == 2);
    }

    #[test]
    fn a_program_without_groups_has_no_sets() {
        assert_eq!(Paths::default().find(equal(&[1, 2])), None);
    }
}
