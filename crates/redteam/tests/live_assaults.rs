//! A gateway whose policies, whose `control` and `compile`, and whose link in a container are attacked: the
//! policy stays, no frame passes against it, and nothing is seen of what hosts say to each other. A policy
//! that lets more pass shows that the judge sees it.
//!
//! Where the rights to make namespaces are missing, a test says so and ends.
#![cfg(target_os = "linux")]

mod laboratory;

use laboratory::{REDTEAM, unless};
use redteam::{
    ATTACKS, Attack, COMPILE_ATTACKS, CONTROL_ATTACKS, InContainer, LINK_ACTIONS, Laboratory, LinkAction,
    POLICY_ATTACKS, SIGNED_BY_COMPILE, SIGNED_POLICY,
};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

/// What is not tried where Linux has no such kind of device.
const MISSED: [&str; 2] = ["ipvlan_over_the_link", "vlan_over_the_link"];

/// `None` where namespaces cannot be made.
fn with_services(test: &str) -> Option<Laboratory> {
    let started = Laboratory::start(Path::new(REDTEAM), &InContainer::Services);
    unless(&[ErrorKind::PermissionDenied], test, started)
}

#[test]
fn no_policy_takes_over_that_administrators_have_not_signed_for_now() {
    let test = "no_policy_takes_over_that_administrators_have_not_signed_for_now";
    let Some(laboratory) = with_services(test) else { return };
    laboratory.renew_policy().expect("one that two have signed");
    for attack in POLICY_ATTACKS {
        let result = laboratory.attack_by_policy(attack).expect(attack.name);
        assert_eq!(result.violations, 0, "{result:?}");
    }
    laboratory.renew_policy().expect("another one");
    let names: HashSet<_> = POLICY_ATTACKS.iter().map(|attack| attack.name).collect();
    assert_eq!(names.len(), POLICY_ATTACKS.len());
}

#[test]
fn a_control_that_is_taken_over_gets_what_the_policy_grants_it_and_nothing_else() {
    let test = "a_control_that_is_taken_over_gets_what_the_policy_grants_it_and_nothing_else";
    let Some(mut laboratory) = with_services(test) else { return };
    laboratory.renew_policy().expect("one that two have signed");
    for attack in CONTROL_ATTACKS {
        let result = laboratory.attack_by_control(attack).expect(attack.name);
        assert_eq!(result.violations, 0, "{result:?}");
    }
}

#[test]
fn a_compile_that_is_taken_over_hands_in_what_administrators_have_signed_and_nothing_else() {
    let test = "a_compile_that_is_taken_over_hands_in_what_administrators_have_signed_and_nothing_else";
    let Some(mut laboratory) = with_services(test) else { return };
    laboratory.renew_policy().expect("one that two have signed");
    for attack in COMPILE_ATTACKS {
        let result = laboratory.attack_by_compile(attack).expect(attack.name);
        assert_eq!(result.violations, 0, "{result:?}");
    }
    let silent = laboratory.outlast_silent_compile().expect("others go on");
    assert_eq!(silent.violations, 0, "{silent:?}");
    // By the same channel, one that two have signed.
    let version =
        |laboratory: &Laboratory| laboratory.shown().expect("it answers")["policy"]["version"].as_u64();
    let before = version(&laboratory).expect("one is in force");
    let signed = laboratory.attack_by_compile(&SIGNED_BY_COMPILE).expect("it is handed in");
    assert_eq!((signed.violations, version(&laboratory)), (1, Some(before + 1)), "{signed:?}");
}

#[test]
fn whatever_linux_does_with_the_link_in_a_container_no_frame_of_others_comes_or_goes_by_it() {
    let test = "whatever_linux_does_with_the_link_in_a_container_no_frame_of_others_comes_or_goes_by_it";
    let Some(mut laboratory) = with_services(test) else { return };
    let result = laboratory.attack_by_af_xdp(3000).expect("frames leave by AF_XDP");
    assert_eq!(result.violations, 0, "{result:?}");
    assert!(result.frames > 2500, "{result:?}");
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"].as_object().expect("by reason");
    assert!(refused.len() >= 20, "{refused:?}");
    let mut missing = Vec::new();
    for action in LINK_ACTIONS {
        match laboratory.act_on_link(action).expect(action.name) {
            Some(result) => assert_eq!(result.violations, 0, "{result:?}"),
            None => missing.push(action.name),
        }
    }
    // Some a Linux does without.
    missing.retain(|name| !MISSED.contains(name));
    assert!(missing.is_empty(), "not tried: {missing:?}");
    let seen = laboratory.overheard().expect("hosts reach each other");
    assert_eq!(seen.violations, 0, "{seen:?}");
}

#[test]
fn what_a_policy_lets_pass_is_seen_by_whoever_judges() {
    let Some(mut laboratory) = with_services("what_a_policy_lets_pass_is_seen_by_whoever_judges") else {
        return;
    };
    let attack =
        |name: &str| -> &Attack { ATTACKS.iter().find(|attack| attack.name == name).expect("there is one") };
    let action = |name: &str| -> &LinkAction {
        LINK_ACTIONS.iter().find(|action| action.name == name).expect("there is one")
    };
    let fragments = attack("fragments_with_other_ports_at_the_same_place");
    let (promiscuous, beyond) = (action("listener_in_promiscuous_mode"), action("reach_beyond_the_policy"));
    let before = laboratory.attack(fragments, 300).expect("it can be tried");
    assert_eq!((before.violations, before.frames), (0, 300));
    assert_eq!(laboratory.overheard().expect("they do").violations, 0);

    // An attacker with two keys, who is judged as one without.
    assert_eq!(laboratory.attack_by_policy(&SIGNED_POLICY).expect("it can be tried").violations, 1);
    for (attack, least) in [(fragments, 50), (attack("fragment_over_the_ports"), 300)] {
        let result = laboratory.attack(attack, 300).expect("it can be tried");
        assert!(result.violations >= least, "{result:?}");
    }
    for action in [promiscuous, beyond] {
        let result = laboratory.act_on_link(action).expect(action.name).expect("it is tried");
        assert!(result.violations > 0, "{result:?}");
    }
    assert!(laboratory.overheard().expect("they do").violations > 0);
    let names =
        ["control_inserts_more_entries_than_its_right_says", "control_changes_entries_beyond_its_right"];
    for name in names {
        let attack = CONTROL_ATTACKS.iter().find(|attack| attack.name == name).expect("there is one");
        let result = laboratory.attack_by_control(attack).expect(name);
        assert!(result.violations > 0, "{result:?}");
    }
}
