//! Which policy is in force, by clocks that the test sets.

use bundle::sign::{Signer, add_signature, sign};
use bundle::{BundleRefusal, EngineVersion, SignedPolicy, TableRight};
use messages::launch::{Because, Kept, TrustTerms};
use messages::limits::LONGEST_TO_CONFIRM;
use proptest::prelude::*;
use ravelin_core::{ActivationError, Active, InForce, InstallError, Runs, TwoClocks};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const ENGINE: EngineVersion = EngineVersion { major: 1, minor: 0, patch: 0 };
/// A second at which policies are valid.
const VALID: u64 = 1_000;

/// Notes which programs run, and refuses the one that says so.
#[derive(Default)]
struct Notes(RefCell<Vec<String>>);

impl Runs for Notes {
    fn run(&self, text: &str, _: &[TableRight]) -> Result<Active, ActivationError> {
        if text == "refused" {
            return Err(ActivationError::Ended);
        }
        let mut ran = self.0.borrow_mut();
        ran.push(text.to_owned());
        Ok(Active { hash: [0; 32], number: ran.len() as u64, name: text.to_owned() })
    }
}

impl Notes {
    fn last(&self) -> String {
        self.0.borrow().last().cloned().unwrap_or_default()
    }
}

fn signer(number: u8) -> Signer {
    Signer::new(&[number; 32]).expect("a key")
}

fn trust_in(keys: &[u8]) -> InForce {
    let digits = |number| signer(number).public_key().iter().map(|byte| format!("{byte:02x}")).collect();
    let keys = keys.iter().map(|number| (format!("key-{number}"), digits(*number))).collect();
    InForce::new(TrustTerms { gateway: "g".to_owned(), threshold: 2, keys }, ENGINE).expect("a trust")
}

fn policy(version: u64, program: &str) -> SignedPolicy {
    SignedPolicy {
        gateway: "g".to_owned(),
        version,
        not_before: 500,
        expiry: 2_000,
        engine: ENGINE,
        program: program.to_owned(),
        rights: Vec::new(),
    }
}

fn signed(policy: &SignedPolicy) -> Vec<u8> {
    add_signature(&sign(policy, &signer(1)).expect("a policy"), &signer(2)).expect("signed")
}

fn of(version: u64) -> Vec<u8> {
    signed(&policy(version, &format!("program {version}")))
}

/// A moment, so many milliseconds after a first one.
fn after(begin: Instant, milliseconds: u64) -> TwoClocks {
    TwoClocks { unix: VALID, steady: begin + Duration::from_millis(milliseconds) }
}

#[test]
fn the_time_to_confirm_ends_when_it_ends_by_the_clock_that_nobody_sets() {
    let (notes, begin) = (Notes::default(), Instant::now());
    let mut in_force = trust_in(&[1, 2, 3]);
    in_force.accept(of(1), None, after(begin, 0), &notes).expect("it is right");
    let accepted = in_force.accept(of(2), Some(10), after(begin, 0), &notes).expect("it is right");
    assert_eq!(accepted.keep, Some(Kept { newest: 2, policy: None }), "only its version is kept");
    assert_eq!(in_force.until(), Some(begin + Duration::from_secs(10)));
    // Whoever sets the other clock gains and loses no time.
    for unix in [0, VALID, u64::MAX] {
        let now = TwoClocks { unix, ..after(begin, 9_999) };
        assert!(in_force.return_if_due(now, &notes).expect("it is not due").is_none());
        let shown = in_force.shown(now).expect("it runs");
        let unconfirmed = shown.unconfirmed.expect("it is not confirmed");
        assert_eq!((unconfirmed.seconds_left, unconfirmed.before), (1, Some(1)));
    }
    let hash = in_force.shown(after(begin, 0)).expect("it runs").hash;
    let late = in_force.confirm(hash, after(begin, 10_000)).expect_err("it is over");
    assert!(matches!(late, InstallError::NothingToConfirm), "{late}");
    let returned = in_force.return_if_due(after(begin, 10_000), &notes).expect("it takes over");
    let because = returned.expect("it is due").because;
    assert_eq!(because, Because::Unconfirmed { version: 2, before: Some(1) });
    assert_eq!(notes.last(), "program 1");
    let shown = in_force.shown(after(begin, 10_000)).expect("it runs");
    assert_eq!((shown.version, shown.unconfirmed), (1, None));
}

#[test]
fn only_the_policy_that_waits_is_confirmed() {
    let (notes, begin) = (Notes::default(), Instant::now());
    let mut in_force = trust_in(&[1, 2, 3]);
    assert!(matches!(in_force.confirm([0; 32], after(begin, 0)), Err(InstallError::NothingToConfirm)));
    in_force.accept(of(1), Some(10), after(begin, 0), &notes).expect("it is right");
    let hash = in_force.shown(after(begin, 0)).expect("it runs").hash;
    let other = in_force.confirm([0; 32], after(begin, 0)).expect_err("it is another");
    assert!(matches!(other, InstallError::OtherToConfirm(waits) if waits == hash), "{other}");
    let kept = in_force.confirm(hash, after(begin, 9_999)).expect("in time");
    let policy = kept.policy.expect("there is one");
    assert_eq!((kept.newest, policy.version, policy.bundle), (1, 1, of(1)));
    assert_eq!(in_force.until(), None);
    assert!(in_force.return_if_due(after(begin, 1 << 40), &notes).expect("it is not due").is_none());
}

#[test]
fn without_a_confirmed_policy_every_packet_is_dropped_again() {
    let (notes, begin) = (Notes::default(), Instant::now());
    let mut in_force = trust_in(&[1, 2]);
    in_force.accept(of(1), Some(1), after(begin, 0), &notes).expect("it is right");
    let returned = in_force.return_if_due(after(begin, 1_000), &notes).expect("it takes over");
    let because = returned.expect("it is due").because;
    assert_eq!(because, Because::Unconfirmed { version: 1, before: None });
    assert_eq!(notes.last(), ravelin_core::boot::TEXT);
    assert_eq!(in_force.shown(after(begin, 1_000)), None);
}

#[test]
fn a_program_that_does_not_run_leaves_everything_as_it_was() {
    let (notes, begin) = (Notes::default(), Instant::now());
    let mut in_force = trust_in(&[1, 2]);
    in_force.accept(of(1), None, after(begin, 0), &notes).expect("it is right");
    in_force.accept(of(2), Some(10), after(begin, 0), &notes).expect("it is right");
    let before = in_force.shown(after(begin, 0));
    let refused = in_force.accept(signed(&policy(3, "refused")), None, after(begin, 0), &notes);
    assert!(matches!(refused, Err(InstallError::Activation(_))));
    assert_eq!(in_force.shown(after(begin, 0)), before);
    // Nor is its version used up.
    in_force.accept(of(3), None, after(begin, 0), &notes).expect("it is right");
}

#[test]
fn what_was_kept_is_judged_again_but_for_its_time() {
    let (notes, begin) = (Notes::default(), Instant::now());
    let kept = |version, bundle| {
        let policy = Some(messages::launch::KeptPolicy { version, bundle });
        Kept { newest: 7, policy }
    };
    // It expired long ago, and was valid when it was accepted.
    let mut in_force = trust_in(&[1, 2]);
    let expired = signed(&SignedPolicy { expiry: 501, ..policy(5, "program 5") });
    let restored = in_force.restore(kept(5, expired), &notes).expect("it is right").expect("it runs");
    assert_eq!((restored.because, restored.keep), (Because::Kept { version: 5 }, None));
    // The version that was accepted and not confirmed counts.
    let replayed = in_force.accept(of(7), None, after(begin, 0), &notes).expect_err("it is old");
    let old = |error: &InstallError| {
        matches!(error, InstallError::Bundle(BundleRefusal::OldVersion { newest: 7, .. }))
    };
    assert!(old(&replayed), "{replayed}");
    in_force.accept(of(8), None, after(begin, 0), &notes).expect("it is newer");

    let ran = notes.0.borrow().len();
    let other = trust_in(&[1, 2]).restore(kept(6, of(5)), &notes).expect_err("it is not what it was kept as");
    assert!(other.to_string().contains("version 5, and was kept as version 6"), "{other}");
    let mut in_force = trust_in(&[1, 3]);
    let unknown = in_force.restore(kept(5, of(5)), &notes).expect_err("the keys are others now");
    assert!(unknown.to_string().contains("does not know"), "{unknown}");
    let bundle = add_signature(&sign(&policy(7, "program 7"), &signer(1)).expect("a policy"), &signer(3));
    let replayed = in_force.accept(bundle.expect("signed"), None, after(begin, 0), &notes);
    assert!(old(&replayed.expect_err("it is old")), "the newest version holds although nothing took over");
    let foreign = signed(&SignedPolicy { gateway: "h".to_owned(), ..policy(5, "program 5") });
    assert!(trust_in(&[1, 2]).restore(kept(5, foreign), &notes).is_err());
    let newer = EngineVersion { major: 1, minor: 0, patch: 1 };
    let newer = signed(&SignedPolicy { engine: newer, ..policy(5, "program 5") });
    assert!(trust_in(&[1, 2]).restore(kept(5, newer), &notes).is_err());
    assert_eq!(notes.0.borrow().len(), ran, "none of them ran");
}

#[test]
fn times_to_confirm_have_limits() {
    let (notes, begin) = (Notes::default(), Instant::now());
    for seconds in [0, LONGEST_TO_CONFIRM + 1, u32::MAX] {
        let refused = trust_in(&[1, 2]).accept(of(1), Some(seconds), after(begin, 0), &notes);
        assert!(matches!(refused, Err(InstallError::TimeToConfirm(named)) if named == seconds));
    }
    for seconds in [1, LONGEST_TO_CONFIRM] {
        trust_in(&[1, 2]).accept(of(1), Some(seconds), after(begin, 0), &notes).expect("it is right");
    }
}

#[test]
fn terms_that_are_no_trust_are_refused() {
    let terms = |threshold, digits: &str| TrustTerms {
        gateway: "g".to_owned(),
        threshold,
        keys: vec![("a".to_owned(), digits.to_owned())],
    };
    let digits: String = signer(1).public_key().iter().map(|byte| format!("{byte:02x}")).collect();
    InForce::new(terms(1, &digits), ENGINE).expect("a trust");
    for terms in [terms(0, &digits), terms(2, &digits), terms(1, &digits[1..]), terms(1, &"0".repeat(64))] {
        assert!(InForce::new(terms, ENGINE).is_err());
    }
}

/// What may happen to a gateway.
#[derive(Clone, Debug)]
enum Deed {
    /// A bundle of this version comes, with a time to confirm or without.
    Accept(u64, Option<u32>),
    /// The policy that runs is confirmed, or another one is said to be.
    Confirm(bool),
    /// So many milliseconds go by.
    Wait(u64),
    /// The core is killed, and another one begins with what was kept.
    Kill,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (1..12u64, prop::option::of(1..4u32)).prop_map(|(version, within)| Deed::Accept(version, within)),
        any::<bool>().prop_map(Deed::Confirm),
        (0..3_000u64).prop_map(Deed::Wait),
        Just(Deed::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Against a model that knows versions alone: which runs, which is confirmed, and which is the newest.
    #[test]
    fn whatever_happens_the_right_policy_runs(deeds in prop::collection::vec(deed(), 1..30)) {
        let (notes, begin) = (Notes::default(), Instant::now());
        let mut in_force = trust_in(&[1, 2]);
        let mut kept = Kept::default();
        let (mut newest, mut confirmed, mut waits, mut time) = (0, None, None::<(u64, u64)>, 0);
        for deed in deeds {
            match deed {
                Deed::Accept(version, within) => {
                    let accepted = in_force.accept(of(version), within, after(begin, time), &notes);
                    prop_assert_eq!(accepted.is_ok(), version > newest);
                    if let Ok(accepted) = accepted {
                        newest = version;
                        waits = within.map(|seconds| (version, time + 1_000 * u64::from(seconds)));
                        confirmed = if within.is_none() { Some(version) } else { confirmed };
                        let more = accepted.keep.expect("its version is kept");
                        kept = Kept { newest: more.newest, policy: more.policy.or(kept.policy) };
                    }
                }
                Deed::Confirm(right) => {
                    let shown = in_force.shown(after(begin, time)).map_or([0; 32], |shown| shown.hash);
                    let hash = if right { shown } else { [1; 32] };
                    let told = in_force.confirm(hash, after(begin, time));
                    let possible = waits.is_some_and(|(_, until)| time < until) && right;
                    prop_assert_eq!(told.is_ok(), possible);
                    if let Ok(more) = told {
                        confirmed = waits.take().map(|(version, _)| version);
                        kept = more;
                    }
                }
                Deed::Wait(milliseconds) => {
                    time += milliseconds;
                    let due = waits.is_some_and(|(_, until)| until <= time);
                    let returned = in_force.return_if_due(after(begin, time), &notes).expect("it takes over");
                    prop_assert_eq!(returned.is_some(), due);
                    waits = waits.filter(|_| !due);
                }
                Deed::Kill => {
                    in_force = trust_in(&[1, 2]);
                    notes.0.borrow_mut().push(String::new());
                    in_force.restore(kept.clone(), &notes).expect("it was accepted before");
                    waits = None;
                }
            }
            let runs = waits.map(|(version, _)| version).or(confirmed);
            let shown = in_force.shown(after(begin, time));
            prop_assert_eq!(shown.as_ref().map(|shown| shown.version), runs);
            prop_assert_eq!(shown.map(|shown| shown.unconfirmed.is_some()), runs.map(|_| waits.is_some()));
            // What is shown is what runs; a core without a policy is at its beginning.
            match runs {
                Some(version) => prop_assert_eq!(notes.last(), format!("program {version}")),
                None => prop_assert!(["", ravelin_core::boot::TEXT].contains(&notes.last().as_str())),
            }
            prop_assert_eq!(kept.newest, newest);
            prop_assert_eq!(kept.policy.as_ref().map(|policy| policy.version), confirmed);
        }
    }
}
