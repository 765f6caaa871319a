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
    places: HashMap<Vec<Neighbour>, Several>,
    sets: BTreeMap<Several, Set>,
    /// Places that were used and are free again.
    free: Vec<u16>,
    /// A set found no place since one became free.
    refused: bool,
}

#[derive(Clone, Debug)]
struct Set {
    members: Vec<Neighbour>,
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
    pub(crate) fn find(&mut self, mut members: Vec<Neighbour>) -> Option<(Several, bool)> {
        members.sort_unstable();
        members.dedup();
        members.truncate(MEMBERS);
        if members.len() < 2 {
            return None;
        }
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
        self.sets.insert(Several(place), Set { members, uses: 0, buckets });
        Some((Several(place), true))
    }

    /// The next hops of a set, in their order.
    pub(crate) fn members(&self, several: Several) -> &[Neighbour] {
        self.sets.get(&several).map_or(&[], |set| &set.members)
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
        self.places.remove(&set.members);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u8]) -> Vec<Neighbour> {
        members.iter().map(|last| Neighbour { port: 1, address: [10, 0, 0, *last].into() }).collect()
    }

    #[test]
    fn a_set_has_one_place_while_it_is_used_and_there_are_no_more_than_groups() {
        let mut paths = Paths::new(2);
        assert_eq!(paths.find(set(&[7])), None, "it is one");
        assert_eq!(paths.find(set(&[7, 7])), None);
        let Some((first, true)) = paths.find(set(&[1, 2])) else { panic!("there is room") };
        paths.count(first, true);
        assert_eq!(paths.find(set(&[2, 1, 2])), Some((first, false)), "in whatever order");
        let many: Vec<u8> = (10..40).rev().collect();
        let Some((second, true)) = paths.find(set(&many)) else { panic!("there is room") };
        assert_eq!(paths.members(second), &set(&many[14..].iter().rev().copied().collect::<Vec<_>>())[..]);
        assert_eq!(paths.members(second).len(), MEMBERS, "as many as a group holds");
        paths.count(second, true);
        assert!(!paths.is_worth_trying_again());
        assert_eq!(paths.find(set(&[8, 9])), None, "no group is left");
        assert!(!paths.is_worth_trying_again() && paths.unused().is_empty());
        paths.count(first, false);
        assert_eq!(paths.unused(), [first]);
        assert_eq!(paths.remove(first), set(&[1, 2]));
        assert!(paths.is_worth_trying_again() && !paths.is_worth_trying_again());
        assert_eq!(paths.find(set(&[8, 9])), Some((first, true)));
        assert!(paths.members(first) == set(&[8, 9]) && paths.all().count() == 2);
    }

    #[test]
    fn a_program_without_groups_has_no_sets() {
        assert_eq!(Paths::default().find(set(&[1, 2])), None);
    }
}
