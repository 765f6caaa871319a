//! Searches among the rules of lists beside the diagrams of what decides, over random policies.

use crate::analysis_tests::{forwarding, holds, rule, walked};
use crate::changed_tests::{changed, named};
use crate::decisions::AnalysisFault;
use crate::diagram::{ALL, Diagram, Diagrams, NONE};
use crate::difference::{Compared, SearchLimits, by_searches, difference};
use crate::evaluate::Step;
use crate::field::{PacketField, Values};
use crate::limits::{
    MOST_COMPARED_PAIRS, MOST_COMPARED_RULES, MOST_LONG_SEARCHES, MOST_NODES, MOST_PAIRS, MOST_SEARCHED,
    MOST_SEARCHED_IN_COMPARISON,
};
use crate::listed::ListedPolicy;
use crate::listed_difference::ListedDifference;
use crate::model::{HookPoint, MatchOrder, Path, Policy, PolicyRule, Remembers, RuleAction, RuleCondition};
use crate::order::OpposedLines;
use crate::packet_space::PacketSpace;
use crate::search::{Search, SearchFault};
use crate::searches::Searches;
use crate::toy::policies;
use crate::why::DecidedPolicy;
use proptest::prelude::*;

/// The policy as lists: the rules that decide, all of them in the first two groups, and one hook on each way.
fn as_lists(mut policy: Policy) -> Policy {
    for group in &mut policy.groups {
        group.rules.retain(|rule| rule.action.decides());
    }
    let last = policy.groups[2].rules.clone();
    policy.groups[0].rules.extend(last);
    let mut ways: Vec<Path> = Vec::new();
    policy.hooks.retain(|hook| {
        let own = [Path::Forwarded, Path::ToGateway, Path::FromGateway]
            .into_iter()
            .filter(|path| path.points().contains(&hook.point));
        let own: Vec<Path> = own.collect();
        let is_free = own.iter().all(|path| !ways.contains(path));
        if is_free {
            ways.extend(own);
        }
        is_free
    });
    if policy.hooks.iter().any(|hook| policy.remembers.asks(hook.point).is_some()) {
        policy.remembers = Remembers::KeptAndAsked;
    }
    policy
}

fn listed(policy: &Policy) -> ListedPolicy<'_> {
    ListedPolicy::of(policy).expect("small").expect("lists")
}

/// Whether the first line of a pair decides about its packet, and the second one would do the opposite.
fn is_witness(policy: &Policy, pair: &OpposedLines) -> bool {
    let lines = policy.lines();
    let mut without = policy.clone();
    for (group, index) in &lines[pair.first] {
        without.groups[*group].rules[*index].condition = RuleCondition::Any(Vec::new());
    }
    let decides = |policy: &Policy, line: usize| {
        let steps = walked(policy, &pair.witness).steps;
        let decider = steps.into_iter().rev().find(|step| matches!(step, Step::Rule(..) | Step::Default(_)));
        matches!(decider, Some(Step::Rule(group, rule)) if lines[line].contains(&(group, rule)))
    };
    decides(policy, pair.first) && decides(&without, pair.second)
}

/// How many classes of packets searches find that two lists treat otherwise, if they look at no more than so
/// many pairs of rules. A search that looks at more than `searched` nodes is answered by a diagram.
fn classes_of_lists(old: &Policy, new: &Policy, searched: u64, most: usize) -> Option<usize> {
    let mut space = PacketSpace::new().expect("small");
    let compared = Compared::of(&mut space, [old, new]).expect("small");
    let search = Search::with_limits(searched, u64::MAX);
    let mut searches = Searches::with_limits(search, MOST_LONG_SEARCHES);
    match ListedDifference::of(&mut space, &compared, &mut searches, most) {
        Err(AnalysisFault::TooManySearches) => None,
        found => found.expect("small").map(|found| found.pairs().len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lists_have_the_findings_of_diagrams(
        policy in policies().prop_map(as_lists),
        most in prop_oneof![Just(MOST_SEARCHED), 0..20u64],
    ) {
        let (mut listed, mut decided) = (listed(&policy), DecidedPolicy::new(&policy).expect("small"));
        // Beyond the limit of a search a diagram answers.
        listed.searches = Searches::with_limits(Search::with_limits(most, u64::MAX), usize::MAX);
        let unreached = decided.unreached().expect("small");
        prop_assert_eq!(listed.unreached().expect("small"), &unreached[..]);
        for line in policy.lines() {
            if line.iter().all(|rule| unreached.contains(rule)) {
                let why = decided.why_unreached(&line).expect("small");
                prop_assert_eq!(listed.why_unreached(&line).expect("small"), why);
            }
        }
        let of_diagrams = decided.order_findings(usize::MAX).expect("small");
        let of_lists = listed.order_findings(usize::MAX, MOST_PAIRS).expect("small");
        prop_assert_eq!(of_lists.redundant, of_diagrams.redundant);
        let (own, other) = (of_lists.pairs.expect("few"), of_diagrams.pairs.expect("few"));
        for (own, other) in [(own.correlated, other.correlated), (own.exceptions, other.exceptions)] {
            let lines = |pairs: &[OpposedLines]| -> Vec<(usize, usize)> {
                pairs.iter().map(|pair| (pair.first, pair.second)).collect()
            };
            prop_assert_eq!(lines(&own), lines(&other));
            prop_assert!(own.iter().all(|pair| is_witness(&policy, pair)), "{:?}", own);
            // A pair of single rules at a single hook has one place, and one least witness in it.
            if policy.hooks.len() == 1 && policy.lines().iter().all(|line| line.len() == 1) {
                prop_assert_eq!(own, other);
            }
        }
    }

    #[test]
    fn lists_differ_as_their_diagrams_do(
        old in policies().prop_map(as_lists).prop_map(named),
        changes in proptest::collection::vec((0..3usize, 0..49usize, any::<u8>()), 1..6),
        last in any::<bool>(),
        searched in 0..20u64,
    ) {
        let mut old = old;
        for group in old.groups.iter_mut().filter(|_| last) {
            group.order = MatchOrder::Last;
        }
        let new = changed(&old, &changes);
        // Groups of other names have nothing in common, so diagrams are made of all packets.
        let mut renamed = new.clone();
        for group in &mut renamed.groups {
            group.name.push('x');
        }
        let found = difference(&old, &new, usize::MAX).expect("small");
        prop_assert_eq!(&found, &difference(&old, &renamed, usize::MAX).expect("small"));
        let all = found.opened + found.closed + found.other;
        prop_assert_eq!(classes_of_lists(&old, &new, MOST_SEARCHED, usize::MAX), Some(all));
        let by_diagrams = classes_of_lists(&old, &new, searched, usize::MAX);
        prop_assert!(by_diagrams.is_none_or(|classes| classes == all));
    }

    #[test]
    fn a_search_finds_an_input_exactly_if_the_diagram_of_all_sets_has_one(
        sets in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<bool>()), 1..9),
        count in 0..3usize,
    ) {
        let mut diagrams = Diagrams::with_limit(10_000);
        let levels: Vec<u32> = (0..16).collect();
        let made: Vec<Diagram> = sets
            .iter()
            .map(|(one, other, masked)| match masked {
                // Few bits are compared, so that sets overlap.
                true => diagrams.masked(&levels, u128::from(one & other & 0x1111), u128::from(other & 0x1111)),
                false => diagrams.range(&levels, u128::from(*one.min(other)), u128::from(*one.max(other))),
            })
            .collect::<Result<_, _>>()
            .expect("small");
        let (inside, outside) = made.split_at(count.min(made.len()));
        let mut all = ALL;
        for set in inside {
            all = diagrams.both(all, *set).expect("small");
        }
        for set in outside {
            all = diagrams.without(all, *set).expect("small");
        }
        let mut search = Search::with_limits(1_000_000, u64::MAX);
        let nodes = outside.iter().copied();
        prop_assert_eq!(search.holds(&diagrams, inside, nodes.clone()), Ok(all != NONE));
        let least = search.least(&diagrams, inside, nodes).expect("short");
        let number = |way: Vec<(u32, bool)>| {
            way.into_iter().fold(0u32, |sum, (level, one)| sum | u32::from(one) << (15 - level))
        };
        prop_assert_eq!(least.map(number), diagrams.member(all).map(number));
    }
}

#[test]
fn a_search_beyond_its_limit_is_refused() {
    let mut diagrams = Diagrams::with_limit(1_000);
    let levels: Vec<u32> = (0..8).collect();
    let sets: Vec<Diagram> =
        (0..4).map(|bit| diagrams.masked(&levels, 1 << bit, 1 << bit).expect("small")).collect();
    let needed = (0..100)
        .find(|most| Search::with_limits(*most, u64::MAX).holds(&diagrams, &sets, [NONE]).is_ok())
        .expect("a short search");
    assert!(needed > 0);
    let within = |most| Search::with_limits(most, u64::MAX).holds(&diagrams, &sets, [NONE]);
    assert_eq!((within(needed), within(needed - 1)), (Ok(true), Err(SearchFault::TooLong)));
    // All searches together also count the sets that they are given.
    let whole = needed + sets.len() as u64 + 1;
    let mut all = Search::with_limits(needed, 2 * whole);
    for told in [Ok(true), Ok(true), Err(SearchFault::TooMany)] {
        assert_eq!(all.holds(&diagrams, &sets, [NONE]), told);
    }
    let mut fewer = Search::with_limits(needed, 2 * whole - 1);
    assert_eq!(fewer.holds(&diagrams, &sets, [NONE]), Ok(true));
    assert_eq!(fewer.holds(&diagrams, &sets, [NONE]), Err(SearchFault::TooMany));
}

#[test]
fn sets_that_say_at_once_that_there_is_nothing_are_counted() {
    let mut diagrams = Diagrams::with_limit(1_000);
    let sets: Vec<Diagram> =
        (0..8).map(|bit| diagrams.masked(&[bit], 1, 1).expect("small")).chain([NONE]).collect();
    let mut search = Search::with_limits(1_000, sets.len() as u64);
    assert_eq!(search.holds(&diagrams, &sets, []), Ok(false));
    assert_eq!(search.holds(&diagrams, &sets, []), Err(SearchFault::TooMany));
}

#[test]
fn a_comparison_with_an_eighth_of_the_nodes_has_an_eighth_of_the_time() {
    let limits = |nodes| {
        let SearchLimits { pairs, nodes, searched } = SearchLimits::of(nodes);
        (pairs as u64, nodes as u64, searched)
    };
    assert_eq!(limits(MOST_NODES), (MOST_COMPARED_PAIRS, MOST_NODES as u64 / 4, MOST_SEARCHED_IN_COMPARISON));
    assert_eq!(limits(8_000_000), (MOST_COMPARED_PAIRS / 8, 2_000_000, MOST_SEARCHED_IN_COMPARISON / 8));
    assert_eq!(limits(1_000_000), (156_250, 250_000, 15_625_000));
    assert_eq!(limits(usize::MAX).2, u64::MAX);
}

#[test]
fn an_analysis_whose_searches_look_at_too_much_is_refused() {
    let port = |low, high| holds(PacketField::DestinationPort, Values::Range { low, high });
    let rules = vec![rule(port(80, 90), RuleAction::Pass), rule(port(85, 95), RuleAction::Block)];
    let policy = forwarding(vec![rules, Vec::new()]);
    let unreached = |of_all| {
        let mut listed = listed(&policy);
        listed.searches = Searches::with_limits(Search::with_limits(MOST_SEARCHED, of_all), usize::MAX);
        listed.unreached()
    };
    assert_eq!(unreached(u64::MAX), Ok(Vec::new()));
    assert_eq!(unreached(0), Err(AnalysisFault::TooManySearches));
}

#[test]
fn what_is_no_list_is_left_to_diagrams() {
    let port = |low| holds(PacketField::DestinationPort, Values::exact(low));
    let web = || rule(port(80), RuleAction::Pass);
    let is_listed = |policy: &Policy| ListedPolicy::of(policy).expect("small").is_some();
    let list = |rules: Vec<PolicyRule>| forwarding(vec![rules, Vec::new()]);
    assert!(is_listed(&list(vec![web()])));
    assert!(!is_listed(&list(vec![web(), rule(port(1), RuleAction::Jump(1))])));
    assert!(!is_listed(&list(vec![web(), rule(port(1), RuleAction::Continue)])));
    assert!(!is_listed(&Policy { remembers: Remembers::Kept, ..list(vec![web()]) }));
    let mut two = list(vec![web()]);
    two.hooks.push(two.hooks[0].clone());
    two.hooks[1].point = HookPoint::Out;
    assert!(!is_listed(&two));
    two.hooks[1].point = HookPoint::ToGateway;
    assert!(is_listed(&two));
    let blocked = || rule(RuleCondition::Any(Vec::new()), RuleAction::Block);
    assert!(!is_listed(&list((0..=MOST_COMPARED_RULES).map(|_| blocked()).collect())));
}

#[test]
fn beyond_the_limit_of_pairs_lists_tell_redundant_lines_alone() {
    let blocked = |number| rule(holds(PacketField::Protocol, Values::exact(number)), RuleAction::Block);
    let mut rules: Vec<PolicyRule> = (1..=10).map(blocked).collect();
    rules.push(rule(holds(PacketField::Length, Values::Range { low: 0, high: 99 }), RuleAction::Pass));
    rules.push(rule(holds(PacketField::Dscp, Values::exact(1)), RuleAction::Block));
    for (rule, line) in rules.iter_mut().zip(1..) {
        (rule.place.line, rule.place.column) = (line, 1);
    }
    let policy = forwarding(vec![rules]);
    let within = |pairs| listed(&policy).order_findings(usize::MAX, pairs).expect("short");
    let (all, fewer) = (within(11), within(10));
    assert_eq!(all.pairs.map(|pairs| pairs.correlated_count), Ok(11));
    assert_eq!(fewer.pairs, Err(AnalysisFault::TooManyPairs));
    assert_eq!(fewer.redundant, all.redundant);
    assert_eq!(all.redundant.iter().map(|line| line.line).collect::<Vec<usize>>(), [11]);
}

#[test]
fn beyond_the_limit_of_compared_pairs_diagrams_answer() {
    let port = |port| rule(holds(PacketField::DestinationPort, Values::exact(port)), RuleAction::Pass);
    let policy = |ports: &[u128]| named(forwarding(vec![ports.iter().copied().map(port).collect()]));
    let (old, new) = (policy(&[1, 2, 3]), policy(&[1, 3, 4, 5]));
    // Three rules are in one list alone, of five that there are.
    assert_eq!(classes_of_lists(&old, &new, MOST_SEARCHED, 15), Some(3));
    assert_eq!(classes_of_lists(&old, &new, MOST_SEARCHED, 14), None);
    let found = difference(&old, &new, 8).expect("small");
    assert_eq!((found.opened, found.closed, found.other), (2, 1, 0));
    let all = SearchLimits { pairs: 15, nodes: 100_000, searched: u64::MAX };
    let within = |limits| by_searches([&old, &new], 8, limits).expect("small");
    assert_eq!(within(all), Some(found));
    // Searches that look at too many pairs, or make or look at too many nodes leave it to diagrams.
    for limits in [
        SearchLimits { pairs: 14, ..all },
        SearchLimits { nodes: 10, ..all },
        SearchLimits { searched: 10, ..all },
    ] {
        assert_eq!(within(limits), None, "{limits:?}");
    }
}
