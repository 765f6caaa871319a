//! Which packets two policies treat otherwise, in classes: one for each pair of what decides in the one and
//! in the other.

use crate::changed::{GroupChange, changed_packets, group_changes};
use crate::decisions::{AnalysisFault, PolicyDecision, decisions_within, memories};
use crate::diagram::Diagram;
use crate::diagram_description::{PacketBox, boxes};
use crate::left_over::leaves_others_over;
use crate::limits::{
    MOST_BOXES, MOST_COMPARED_PAIRS, MOST_LONG_SEARCHES, MOST_NODES, MOST_SEARCHED,
    MOST_SEARCHED_IN_COMPARISON, NODES_BESIDE_SEARCHES,
};
use crate::listed::is_listed;
use crate::listed_difference::{DecisionPair, ListedDifference};
use crate::model::{AskedFamilies, Policy, RuleAction};
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::search::Search;
use crate::searches::Searches;
use std::collections::HashMap;

/// How two policies differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyDifference {
    /// The classes that are told, those first that the new policy lets pass and the old one does not.
    pub classes: Vec<DifferenceClass>,
    /// How many classes there are that the new policy lets pass and the old one does not.
    pub opened: usize,
    /// How many classes there are that the old policy lets pass and the new one does not.
    pub closed: usize,
    /// How many other classes there are: packets are dropped by both, and senders are told otherwise; or both
    /// let them pass, and one keeps their connections.
    pub other: usize,
    /// How many of the other classes have packets whose connections the new policy keeps and the old one does
    /// not: their answers may pass, too.
    pub kept: usize,
    /// Whether conditions on earlier packets, such as rates, may hold for other packets than before, since
    /// rules have changed. The classes say nothing of this.
    pub left_over: bool,
}

/// Packets about which one thing decides in the old policy, and one thing in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceClass {
    /// What the old policy does.
    pub old: PolicyDecision,
    /// What the new policy does.
    pub new: PolicyDecision,
    /// One of the packets.
    pub witness: WitnessPacket,
    /// Conditions on earlier packets that hold for this packet, as the files have them: whether the class
    /// has a packet depends on them.
    pub may: Vec<String>,
    /// All of the packets in boxes, or some of them.
    pub boxes: Vec<PacketBox>,
    /// Whether the boxes are all of the class.
    pub whole: bool,
}

/// What counts as the same treatment of a packet: `Keep` is another one than `Pass` only where both policies
/// remember what they keep.
fn effect(action: RuleAction, both_keep: bool) -> RuleAction {
    if action == RuleAction::Keep && !both_keep { RuleAction::Pass } else { action }
}

/// Two policies in one space of packets.
pub(crate) struct Compared<'p> {
    /// The old policy and the new one, with the numbers of their conditions on earlier packets.
    pub(crate) policies: [(&'p Policy, Vec<usize>); 2],
    /// How their groups have changed; `None` if their hooks or their connections have.
    pub(crate) changes: Option<Vec<GroupChange>>,
}

impl<'p> Compared<'p> {
    pub(crate) fn of(
        space: &mut PacketSpace,
        [old, new]: [&'p Policy; 2],
    ) -> Result<Compared<'p>, AnalysisFault> {
        let policies = [(old, memories(space, old)?), (new, memories(space, new)?)];
        let [old, new] = policies.each_ref().map(|(policy, memories)| (*policy, &memories[..]));
        let changes = group_changes(space, old, new)?;
        Ok(Compared { policies, changes })
    }

    /// Whether packets are treated alike by two actions.
    pub(crate) fn is_alike(&self, one: RuleAction, other: RuleAction) -> bool {
        let both_keep = self.policies.iter().all(|(policy, _)| policy.remembers.keeps());
        effect(one, both_keep) == effect(other, both_keep)
    }
}

/// What is known of the packets that two policies treat otherwise.
enum Classes {
    /// Found by searches among the rules of lists.
    Listed(ListedDifference),
    /// A function that has the number of a class, from 1 on, for each of its packets.
    Decided { function: Diagram, pairs: Vec<DecisionPair> },
}

impl Classes {
    /// Those of these packets, by diagrams of what both policies decide.
    fn decided(
        space: &mut PacketSpace,
        compared: &Compared,
        within: Diagram,
    ) -> Result<Classes, AnalysisFault> {
        let of_old = decisions_within(space, compared.policies[0].0, within)?;
        let of_new = decisions_within(space, compared.policies[1].0, within)?;
        let mut pairs: Vec<DecisionPair> = Vec::new();
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        let function = space.diagrams.join(of_old.function, of_new.function, &mut |before, now| {
            let (Some(earlier), Some(later)) = (of_old.decision(before), of_new.decision(now)) else {
                return 0;
            };
            if compared.is_alike(earlier.action, later.action) {
                return 0;
            }
            *numbers.entry((before, now)).or_insert_with(|| {
                pairs.push((earlier, later));
                pairs.len() as u32
            })
        })?;
        Ok(Classes::Decided { function, pairs })
    }

    /// What decides about each class.
    fn pairs(&self) -> Vec<DecisionPair> {
        match self {
            Classes::Listed(listed) => listed.pairs(),
            Classes::Decided { pairs, .. } => pairs.clone(),
        }
    }

    /// The packets of the class at a place of [`Classes::pairs`].
    fn packets(&self, space: &mut PacketSpace, place: usize) -> Result<Diagram, AnalysisFault> {
        match self {
            Classes::Listed(listed) => listed.packets(space, place),
            Classes::Decided { function, .. } => Ok(space.diagrams.places_of(*function, place as u32 + 1)?),
        }
    }
}

/// What the searches of a comparison may do. What takes more is left to diagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchLimits {
    /// The most pairs of rules that are looked at.
    pub(crate) pairs: usize,
    /// The most nodes that are made.
    pub(crate) nodes: usize,
    /// The most nodes and sets that searches look at.
    pub(crate) searched: u64,
}

impl SearchLimits {
    /// Those of a comparison with at most so many nodes: one with fewer nodes also has less time.
    pub(crate) fn of(nodes: usize) -> SearchLimits {
        let part = |of: u64| u128::from(of) * nodes as u128 / MOST_NODES as u128;
        SearchLimits {
            pairs: usize::try_from(part(MOST_COMPARED_PAIRS)).unwrap_or(usize::MAX),
            nodes: nodes / NODES_BESIDE_SEARCHES,
            searched: u64::try_from(part(MOST_SEARCHED_IN_COMPARISON)).unwrap_or(u64::MAX),
        }
    }
}

/// Compares two policies for every possible packet, and tells at most `most` classes.
///
/// # Errors
/// One of them cannot be walked, only one of them is about IPv4 alone, or it is too much.
pub fn difference(old: &Policy, new: &Policy, most: usize) -> Result<PolicyDifference, AnalysisFault> {
    difference_within(old, new, most, MOST_NODES)
}

/// The same with diagrams of at most so many nodes.
///
/// # Errors
/// One of them cannot be walked, only one of them is about IPv4 alone, or it is too much.
pub fn difference_within(
    old: &Policy,
    new: &Policy,
    most: usize,
    nodes: usize,
) -> Result<PolicyDifference, AnalysisFault> {
    let families = [old.families, new.families];
    if families.contains(&AskedFamilies::Version4Alone) && families.contains(&AskedFamilies::Both) {
        return Err(AnalysisFault::Families);
    }
    let found = match by_searches([old, new], most, SearchLimits::of(nodes))? {
        Some(found) => found,
        None => by_diagrams([old, new], most, nodes)?,
    };
    Ok(PolicyDifference { left_over: leaves_others_over(old, new), ..found })
}

/// The classes of two policies, found out by diagrams of what decides, of at most so many nodes.
fn by_diagrams(policies: [&Policy; 2], most: usize, nodes: usize) -> Result<PolicyDifference, AnalysisFault> {
    let mut space = PacketSpace::with_limit(nodes)?;
    let compared = Compared::of(&mut space, policies)?;
    let changed = changed_packets(&mut space, compared.changes.as_deref())?;
    let classes = Classes::decided(&mut space, &compared, changed)?;
    told(&mut space, &classes, most)
}

/// The classes of two lists, found out by searches within these limits; `None` if they are no lists, or it is
/// too much for searches.
pub(crate) fn by_searches(
    policies: [&Policy; 2],
    most: usize,
    limits: SearchLimits,
) -> Result<Option<PolicyDifference>, AnalysisFault> {
    if !policies.iter().all(|policy| is_listed(policy)) {
        return Ok(None);
    }
    let found = || {
        let mut space = PacketSpace::with_limit(limits.nodes)?;
        let compared = Compared::of(&mut space, policies)?;
        let search = Search::with_limits(MOST_SEARCHED, limits.searched);
        let mut searches = Searches::with_limits(search, MOST_LONG_SEARCHES);
        let listed = ListedDifference::of(&mut space, &compared, &mut searches, limits.pairs)?;
        listed.map(|listed| told(&mut space, &Classes::Listed(listed), most)).transpose()
    };
    match found() {
        Err(AnalysisFault::TooLarge | AnalysisFault::TooManySearches) => Ok(None),
        found => found,
    }
}

/// Tells at most `most` of these classes.
fn told(space: &mut PacketSpace, classes: &Classes, most: usize) -> Result<PolicyDifference, AnalysisFault> {
    let pairs = classes.pairs();
    let mut found = PolicyDifference::default();
    for (earlier, later) in &pairs {
        *match (earlier.action.passes(), later.action.passes()) {
            (false, true) => &mut found.opened,
            (true, false) => &mut found.closed,
            _ => &mut found.other,
        } += 1;
        let keeps = later.action == RuleAction::Keep;
        found.kept += usize::from(keeps && earlier.action == RuleAction::Pass);
    }
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    let rank = |(earlier, later): &(PolicyDecision, PolicyDecision)| {
        (earlier.action.passes(), !later.action.passes())
    };
    order.sort_by_key(|index| (rank(&pairs[*index]), pairs[*index].1.by, pairs[*index].0.by));
    for index in order.into_iter().take(most) {
        let set = classes.packets(space, index)?;
        let Some(witness) = space.witness(set)? else { continue };
        let (boxes, whole) = boxes(space, set, MOST_BOXES);
        let may = witness.remembered.iter().map(|memory| space.memory_text(*memory).to_owned()).collect();
        let (old, new) = pairs[index];
        found.classes.push(DifferenceClass { old, new, witness, may, boxes, whole });
    }
    Ok(found)
}
