//! Unrolled chains decide as a walk through the chains does, packet by packet.

use super::*;
use crate::region::Set;
use crate::ruleset::{ImportedRules, Part};
use proptest::prelude::*;

const COLUMNS: [Part; 2] = [Part::Protocol, Part::TcpFlags];

/// Two ends of a range, whether there is one, a value and its mask.
type Draft = (u8, u8, bool, u8, u8);

fn steps() -> impl Strategy<Value = (Vec<Draft>, u8, u8)> {
    let one_box = (
        any::<u8>(),
        any::<u8>(),
        any::<bool>(),
        any::<u8>(),
        prop::sample::select(vec![0u8, 0x12, 0x05, 0x80]),
    );
    (prop::collection::vec(one_box, 1..3), 0u8..6, any::<u8>())
}

/// Chains that jump only to later ones.
fn chains() -> impl Strategy<Value = Vec<Chain>> {
    prop::collection::vec(prop::collection::vec(steps(), 0..5), 1..5).prop_map(|chains| {
        let count = chains.len();
        let chain = |(index, steps): (usize, Vec<_>)| Chain {
            name: format!("chain {index}"),
            policy: Some(index % 2 == 0),
            steps: (1..).zip(steps).map(|(line, step)| step_of(line, step, index, count)).collect(),
        };
        chains.into_iter().enumerate().map(chain).collect()
    })
}

fn step_of(line: u32, (boxes, kind, next): (Vec<Draft>, u8, u8), index: usize, count: usize) -> Step {
    let region = |&(one, other, all, value, mask): &Draft| {
        let (low, high) = (one.min(other).into(), one.max(other).into());
        let region =
            Region::any(AddressFamily::V4).with(Part::TcpFlags, Set::masked(8, value.into(), mask.into()));
        if all { region } else { region.with(Part::Protocol, Set::Range { low, high }) }
    };
    let later = index + 1 + usize::from(next) % (count - index).max(1);
    let target = match kind {
        0 => Target::Decide(true),
        1 => Target::Decide(false),
        2 | 3 => Target::Return,
        4 if later < count => Target::Jump(later),
        _ if later < count => Target::Goto(later),
        _ => Target::Return,
    };
    let rule = Ok((boxes.iter().map(region).collect(), target));
    Step { line, column: 1, text: "".into(), log: false, rule }
}

fn fits(region: &Region, packet: [u128; 2]) -> bool {
    COLUMNS.iter().zip(packet).all(|(part, value)| {
        region.set(*part).is_none_or(|set| match set {
            Set::Range { low, high } => (low..=high).contains(&value),
            Set::Masked { value: wanted, mask } => value & mask == wanted,
        })
    })
}

/// What a chain decides; `None` if the packet goes on behind the jump that led there.
fn walk(chains: &[Chain], index: usize, packet: [u128; 2]) -> Option<bool> {
    for step in &chains[index].steps {
        let (boxes, target) = step.rule.as_ref().expect("all can be kept");
        if !boxes.iter().any(|region| fits(region, packet)) {
            continue;
        }
        match *target {
            Target::Decide(allow) => return Some(allow),
            Target::Return => return None,
            Target::Goto(next) => return walk(chains, next, packet),
            Target::Jump(next) => {
                if let Some(allow) = walk(chains, next, packet) {
                    return Some(allow);
                }
            }
        }
    }
    None
}

fn how(lenient: bool, limit: usize) -> ChainOptions {
    ChainOptions { lenient, limit, ..ChainOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_list_decides_as_the_chains_do(chains in chains()) {
        let policy = chains[0].policy;
        let (decisions, _) = unroll(&chains, 0, &how(false, 100_000)).unwrap();
        let mut region = Region::any(AddressFamily::V4);
        // Both columns are there even if no rule uses them.
        region = region.with(Part::TcpFlags, Set::exact(300)).with(Part::Protocol, Set::exact(300));
        let never = Decision { region, allow: None, log: false, line: 0, text: "".into() };
        let rules = ImportedRules::of(AddressFamily::V4, decisions.into_iter().chain([never]).collect(), policy);
        for protocol in (0..256).step_by(7) {
            for flags in [0u128, 0x12, 0x02, 0x10, 0x05, 0x80, 0x97, 0xff] {
                let walked = walk(&chains, 0, [protocol, flags]).or(policy);
                prop_assert_eq!(rules.allows(&[0, 0, 0, 0, protocol, flags]), walked);
            }
        }
    }
}

fn chain(name: &str, steps: Vec<(u32, Result<Target, ImportError>)>) -> Chain {
    let step = |(line, target): (u32, Result<Target, ImportError>)| Step {
        line,
        column: 3,
        text: "".into(),
        log: false,
        rule: target.map(|target| (vec![Region::any(AddressFamily::V4)], target)),
    };
    Chain { name: name.to_owned(), policy: None, steps: steps.into_iter().map(step).collect() }
}

#[test]
fn a_circle_is_refused_at_the_jump_that_closes_it() {
    let chains = [chain("a", vec![(1, Ok(Target::Jump(1)))]), chain("b", vec![(2, Ok(Target::Jump(0)))])];
    let error = unroll(&chains, 0, &how(true, 100)).unwrap_err();
    assert_eq!((error.line, error.column), (2, 3));
    assert!(error.what.contains("the jump to a leads in a circle"), "{error}");
}

#[test]
fn only_what_the_chain_leads_to_is_refused() {
    let refused = |line| Err(ImportError::new(line, 1, "no", "yes"));
    let chains = [
        chain("a", vec![(5, Ok(Target::Jump(1))), (6, refused(6))]),
        chain("b", vec![(2, refused(2))]),
        chain("c", vec![(1, refused(1))]),
    ];
    assert_eq!(unroll(&chains, 0, &how(false, 100)).unwrap_err().line, 2);
    let (_, left_out) = unroll(&chains, 0, &how(true, 100)).unwrap();
    assert_eq!(left_out.iter().map(|error| error.line).collect::<Vec<u32>>(), [2, 6]);
}

#[test]
fn what_grows_too_large_ends_with_its_line() {
    // Each chain jumps to the next twice.
    let count = 40;
    let mut chains: Vec<Chain> = (1..count)
        .map(|next| {
            chain("a", vec![(next as u32, Ok(Target::Jump(next))), (next as u32, Ok(Target::Jump(next)))])
        })
        .collect();
    chains.push(chain("z", vec![]));
    assert!(unroll(&chains, 0, &how(false, 1000)).unwrap_err().what.contains("more than 1000 rules"));
    let deep: Vec<Chain> =
        (1..=DEEPEST + 1).map(|next| chain("a", vec![(next as u32, Ok(Target::Jump(next)))])).collect();
    let deep: Vec<Chain> = deep.into_iter().chain([chain("z", vec![])]).collect();
    let error = unroll(&deep, 0, &how(false, 1000)).unwrap_err();
    assert!(error.what.contains("deeper than 64"), "{error}");
    assert_eq!(error.line as usize, DEEPEST);
}
