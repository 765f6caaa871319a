//! The packets about which two policies may decide otherwise, because a rule matches them that only one of
//! the policies has.
//!
//! A packet that no such rule matches meets the same rules in the same order in both. So a comparison need
//! not look at it.

use crate::diagram::{ALL, Diagram, TooManyNodes};
use crate::lines::RuleIndex;
use crate::model::{Policy, RuleAction};
use crate::packet_space::PacketSpace;
use std::collections::HashMap;

/// What is the same of rules that two policies have in common. An action leads to groups of the old policy.
type RuleMeaning = (Diagram, RuleAction, bool);

/// How a group differs from the group of the same name in the other policy.
pub(crate) struct GroupChange {
    /// The group of the old policy and that of the new one.
    pub(crate) groups: [usize; 2],
    /// The rules that both have, in one order: of each its place in both.
    pub(crate) common: Vec<(usize, usize)>,
    /// The packets that rules match which only one of them has.
    own: Vec<Diagram>,
}

/// How the groups differ that both policies have; `None` if their hooks or their connections differ. With
/// each policy there are the numbers of its conditions on earlier packets.
pub(crate) fn group_changes(
    space: &mut PacketSpace,
    (old, of_old): (&Policy, &[usize]),
    (new, of_new): (&Policy, &[usize]),
) -> Result<Option<Vec<GroupChange>>, TooManyNodes> {
    let Some(counterparts) = counterparts(old, new) else { return Ok(None) };
    let mut changes = Vec::new();
    for (group, counterpart) in counterparts.iter().enumerate() {
        // No rule in common leads to a group without a counterpart.
        let Some(counterpart) = *counterpart else { continue };
        let mut before = Vec::with_capacity(old.groups[counterpart].rules.len());
        for rule in 0..old.groups[counterpart].rules.len() {
            before.push(meaning(space, old, of_old, (counterpart, rule))?);
        }
        let mut now = Vec::with_capacity(new.groups[group].rules.len());
        for rule in 0..new.groups[group].rules.len() {
            let (set, action, at_once) = meaning(space, new, of_new, (group, rule))?;
            let action = match action {
                RuleAction::Jump(to) => counterparts[to].map(RuleAction::Jump),
                RuleAction::Goto(to) => counterparts[to].map(RuleAction::Goto),
                other => Some(other),
            };
            now.push((set, action.map(|action| (set, action, at_once))));
        }
        let meanings: Vec<Option<RuleMeaning>> = now.iter().map(|(_, meaning)| *meaning).collect();
        let common = in_common(&before, &meanings);
        let (mut only_old, mut only_new) = (vec![true; before.len()], vec![true; now.len()]);
        for (one, other) in &common {
            (only_old[*one], only_new[*other]) = (false, false);
        }
        let of_old = before.iter().zip(only_old).filter(|(_, is_own)| *is_own).map(|(meaning, _)| meaning.0);
        let of_new = now.iter().zip(only_new).filter(|(_, is_own)| *is_own).map(|((set, _), _)| *set);
        changes.push(GroupChange {
            groups: [counterpart, group],
            common,
            own: of_old.chain(of_new).collect(),
        });
    }
    Ok(Some(changes))
}

/// The packets that a rule matches which only one of the policies has; all packets if nothing is known of
/// their changes.
pub(crate) fn changed_packets(
    space: &mut PacketSpace,
    changes: Option<&[GroupChange]>,
) -> Result<Diagram, TooManyNodes> {
    let Some(changes) = changes else { return Ok(ALL) };
    let sets: Vec<Diagram> = changes.iter().flat_map(|change| change.own.iter().copied()).collect();
    space.diagrams.any(&sets)
}

/// The group of the old policy for each group of the new one: that of the same name and order. `None` if the
/// hooks or the connections differ, or a name is not the only one.
fn counterparts(old: &Policy, new: &Policy) -> Option<Vec<Option<usize>>> {
    let names = |policy: &Policy| {
        let names = policy.groups.iter().enumerate().map(|(index, group)| (group.name.clone(), index));
        let names: HashMap<String, usize> = names.collect();
        (names.len() == policy.groups.len()).then_some(names)
    };
    let (of_old, _) = (names(old)?, names(new)?);
    let counterpart = |group: usize| {
        let group = &new.groups[group];
        of_old.get(&group.name).copied().filter(|old_group| old.groups[*old_group].order == group.order)
    };
    let counterparts: Vec<Option<usize>> = (0..new.groups.len()).map(counterpart).collect();
    let alike = old.hooks.len() == new.hooks.len()
        && old.hooks.iter().zip(&new.hooks).all(|(one, other)| {
            one.point == other.point
                && one.default == other.default
                && counterparts[other.group] == Some(one.group)
        });
    (alike && old.remembers == new.remembers && old.follows_icmp == new.follows_icmp).then_some(counterparts)
}

fn meaning(
    space: &mut PacketSpace,
    policy: &Policy,
    memories: &[usize],
    (group, rule): RuleIndex,
) -> Result<RuleMeaning, TooManyNodes> {
    let rule = &policy.groups[group].rules[rule];
    Ok((space.set(&rule.condition, memories)?, rule.action, rule.decides_at_once))
}

/// Rules that both lists have in the same order: of each its place in both. The nth of several with one
/// meaning stands for the nth of the other list, and of these pairs the most are taken that are in order.
fn in_common(old: &[RuleMeaning], new: &[Option<RuleMeaning>]) -> Vec<(usize, usize)> {
    let mut places: HashMap<RuleMeaning, Vec<usize>> = HashMap::new();
    for (place, meaning) in old.iter().enumerate().rev() {
        places.entry(*meaning).or_default().push(place);
    }
    let pairs = new.iter().enumerate().filter_map(|(place, meaning)| {
        let old_place = places.get_mut(meaning.as_ref()?)?.pop()?;
        Some((old_place, place))
    });
    let pairs: Vec<(usize, usize)> = pairs.collect();
    // The longest run of places in order (Schensted 1961): the last pair of the best run of each length.
    let (mut last, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (pair, (old_place, _)) in pairs.iter().enumerate() {
        let length = last.partition_point(|ending: &usize| pairs[*ending].0 < *old_place);
        before.push(length.checked_sub(1).map(|shorter| last[shorter]));
        if length == last.len() { last.push(pair) } else { last[length] = pair }
    }
    let mut common = Vec::with_capacity(last.len());
    let mut next = last.last().copied();
    while let Some(pair) = next {
        common.push(pairs[pair]);
        next = before[pair];
    }
    common
}
