//! What is written of a policy decides the same about every packet: read again, it has no difference.

#[path = "export/files.rs"]
mod files;
#[path = "export/made.rs"]
mod made;
#[path = "kernel/random.rs"]
mod random;

use files::FILES;
use import::policies::{PolicyOptions, read, write_nft_json};
use made::{Shape, interfaces, policy};
use policy::{
    HookPoint, PacketField, Policy, PolicyRule, Reject, RuleAction, RuleCondition, Unreachable, Values,
    difference,
};
use random::Random;

/// The first difference between a policy and what is read of its text, if there is one.
fn first_difference(own: &Policy, text: &str, format: &str) -> Option<String> {
    let options = PolicyOptions { interfaces: interfaces(), ..PolicyOptions::default() };
    let again = read(text.as_bytes(), format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if let Some(refused) = again.refused.first() {
        return Some(format!("refused: {refused}"));
    }
    let found = difference(&told_by_protocol(own.clone()), &again.policy, 1).expect("it can be compared");
    found.classes.first().map(|class| format!("{class:?}"))
}

/// The same policy with each answer by protocol as two rules, which is how nftables has it.
fn told_by_protocol(mut policy: Policy) -> Policy {
    for group in &mut policy.groups {
        let both = |rule: PolicyRule| {
            if rule.action != RuleAction::Reject(Reject::ByProtocol) {
                return vec![rule];
            }
            let tcp = RuleCondition::Holds(PacketField::Protocol, vec![Values::exact(6)]);
            let other = RuleCondition::Not(Box::new(tcp.clone()));
            let ways = [(tcp, Reject::TcpReset), (other, Reject::Unreachable(Unreachable::Port))];
            let with = |(more, kind)| PolicyRule {
                condition: RuleCondition::All(vec![rule.condition.clone(), more]),
                action: RuleAction::Reject(kind),
                ..rule.clone()
            };
            ways.into_iter().map(with).collect()
        };
        group.rules = std::mem::take(&mut group.rules).into_iter().flat_map(both).collect();
    }
    policy
}

const EVERYWHERE: &[HookPoint] =
    &[HookPoint::Forward, HookPoint::In, HookPoint::ToGateway, HookPoint::FromGateway, HookPoint::Out];

#[test]
fn random_policies_are_the_same_when_nftables_has_them() {
    let mut random = Random(18);
    let shape = Shape { points: &[HookPoint::Forward], states: false, last: false };
    let shapes = [
        shape,
        Shape { states: true, ..shape },
        Shape { last: true, ..shape },
        Shape { points: EVERYWHERE, ..shape },
        Shape { points: &EVERYWHERE[1..], states: true, last: true },
    ];
    for shape in shapes {
        let (mut written, mut refused) = (0, std::collections::BTreeMap::new());
        for _ in 0..100 {
            let own = policy(&mut random, shape);
            match write_nft_json(&own) {
                Ok(text) => {
                    if let Some(first) = first_difference(&own, &text, "nft") {
                        panic!("{first}\n{own:?}\n{text}");
                    }
                    written += 1;
                }
                Err(error) => *refused.entry(error.what).or_insert(0) += 1,
            }
        }
        println!("{written} written; {refused:?}");
        assert!(written > 40, "{written} written; {refused:?}");
    }
}

#[test]
fn files_of_all_formats_are_the_same_when_nftables_has_them() {
    for (format, text) in FILES {
        let options = PolicyOptions { interfaces: interfaces(), ..PolicyOptions::default() };
        let own = read(text.as_bytes(), format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(own.refused, [], "{text}");
        let written = write_nft_json(&own.policy).unwrap_or_else(|error| panic!("{error}\n{text}"));
        if let Some(first) = first_difference(&own.policy, &written, "nft") {
            panic!("{first}\n{text}\n{written}");
        }
    }
}

#[test]
fn what_is_written_of_spoiled_files_is_read_again() {
    let (mut written, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut random = Random(seed);
        let (format, text) = random.one(&FILES);
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..1 + random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            let end = (at + random.below(12) as usize).min(bytes.len());
            let other = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.insert(at, random.one(b"{}()<>!=,;:\"\\#$/-. \n019aZ\xff")),
                2 => bytes.swap(at, other),
                _ => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(other..other, piece);
                }
            }
        }
        let options = PolicyOptions { interfaces: interfaces(), ..PolicyOptions::default() };
        let Ok(own) = read(&bytes, format, &options) else { continue };
        match write_nft_json(&own.policy) {
            Ok(text) => {
                written += 1;
                let mut rules = own.policy.groups.iter().flat_map(|group| &group.rules);
                if rules.any(|rule| rule.action == RuleAction::Keep) && own.policy.remembers.keeps() {
                    // What rules keep stands in marks, and no policy says these.
                    let again = read(text.as_bytes(), "nft", &options).expect("what is written is read");
                    let of_marks = again.refused.iter().all(|error| error.what.contains("mark"));
                    assert!(of_marks, "seed {seed}: {:?}\n{text}", again.refused);
                } else if seed % 16 == 0 {
                    assert_eq!(first_difference(&own.policy, &text, "nft"), None, "seed {seed}\n{text}");
                } else {
                    let again = read(text.as_bytes(), "nft", &options).expect("what is written is read");
                    assert_eq!(again.refused, [], "seed {seed}\n{text}");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(error.line > 0 && error.column > 0, "seed {seed}: {error}");
            }
        }
    }
    assert!(written > 200 && refused > 0, "{written} written, {refused} refused");
}
