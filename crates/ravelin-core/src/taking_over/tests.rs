//! What a core may run that takes over, whatever the other one says.

use super::*;
use bundle::sign::{Signer, add_signature, sign};
use bundle::{EngineVersion, SignedPolicy};
use exec::BackendKind;
use messages::frame;
use messages::launch::{KeptPolicy, TrustTerms};
use messages::limits::STATE_AT_ONCE;
use std::thread;

const LOADING: Loading = Loading { back_end: BackendKind::Bytecode, workers: 1, ports: 2, seed: 1 };

fn signers() -> [Signer; 2] {
    [1, 2].map(|number| Signer::new(&[number; 32]).expect("a key"))
}

fn in_force() -> InForce {
    let name =
        |(place, signer): (usize, &Signer)| (format!("key-{place}"), bundle::hex(&signer.public_key()));
    let keys = signers().iter().enumerate().map(name).collect();
    let terms = TrustTerms { gateway: "g".to_owned(), threshold: 2, keys };
    InForce::new(terms, EngineVersion::OWN).expect("a trust")
}

/// A program that does the same as `boot`, under another name.
fn program(name: &str) -> String {
    boot::TEXT.replacen("boot", name, 1)
}

/// The bundle of a policy with this program.
fn bundle(version: u64, text: &str) -> Vec<u8> {
    let policy = SignedPolicy {
        gateway: "g".to_owned(),
        version,
        not_before: 0,
        expiry: u64::MAX,
        engine: EngineVersion::OWN,
        program: text.to_owned(),
        rights: Vec::new(),
    };
    let [first, second] = signers();
    add_signature(&sign(&policy, &first).expect("a policy"), &second).expect("signed")
}

fn kept(bundle: Vec<u8>) -> Kept {
    Kept { newest: 7, policy: Some(KeptPolicy { version: 7, bundle }) }
}

/// The name of what a core chooses that takes over from one which says that it runs this text; with what
/// `compile` gives, if it is to take over with that. `kept` is nothing where no signature is needed.
fn chosen(kept: Option<Kept>, runs: &str, compiled: Option<Vec<u8>>) -> Result<String, CoreError> {
    let newest = kept.as_ref().map_or(0, |kept| kept.newest);
    chosen_from(kept, (runs, newest), compiled)
}

/// The same, where the other core says that it has accepted a version, too.
fn chosen_from(
    kept: Option<Kept>,
    (runs, newest): (&str, u64),
    compiled: Option<Vec<u8>>,
) -> Result<String, CoreError> {
    let (ours, mut theirs) = Channel::pair().expect("a pair");
    let text = runs.to_owned();
    let other = thread::spawn(move || {
        let asked = theirs.receive_alone::<TakeoverQuestion>(16).expect("a question");
        assert_eq!(asked, Some(TakeoverQuestion::Begin));
        theirs.send(&TakeoverAnswer::Program { text, number: 3, newest }, &[]).expect("sent");
    });
    let compile = compiled.map(|bundle| {
        let (reads, mut writes) = Channel::pair().expect("a pair");
        writes.send(&CompileMessage::Bundle(bundle), &[]).expect("sent");
        reads
    });
    let mut trust = kept.as_ref().map(|_| in_force());
    let chosen = choose(LOADING, trust.as_mut(), Origin { kept, beside: Some((ours, compile)) });
    other.join().expect("it ends");
    chosen.map(|(chosen, _)| chosen.expect("a program").taken.active.name)
}

#[test]
fn a_core_that_has_accepted_a_newer_version_does_not_give_way_to_one_that_knows_the_older_one() {
    let one = program("one");
    let from = |newest, compiled| chosen_from(Some(kept(bundle(7, &one))), (&one, newest), compiled);
    assert_eq!(from(7, None).expect("what was kept runs there"), "one");
    let refused = from(8, None).expect_err("the program is the same, and its rights may not be");
    assert!(refused.to_string().contains("another policy runs there"), "{refused}");
    assert_eq!(from(8, Some(bundle(8, &one))).expect("the same version"), "one");
    assert!(from(9, Some(bundle(8, &one))).is_err());
}

#[test]
fn where_policies_are_signed_another_core_is_not_believed_what_it_runs() {
    let (one, other) = (program("one"), program("other"));
    let signed = || kept(bundle(7, &one));
    assert_eq!(chosen(Some(signed()), &one, None).expect("what was kept runs there"), "one");
    assert_eq!(chosen(Some(Kept::default()), boot::TEXT, None).expect("nothing was kept"), "boot");
    for (kept, runs) in [(signed(), &*other), (signed(), boot::TEXT), (Kept::default(), &other)] {
        let refused = chosen(Some(kept), runs, None).expect_err("it is another program").to_string();
        assert!(refused.contains("another policy runs there"), "{refused}");
    }
    // Where none are, the program is the one that runs there.
    assert_eq!(chosen(None, &other, None).expect("it runs there"), "other");
}

#[test]
fn a_kept_policy_that_is_right_no_more_keeps_no_newer_one_away_and_its_version_stays_used() {
    let damaged = || Some(kept(bundle(7, &program("one"))[..40].to_vec()));
    let newer = |version| Some(bundle(version, &program("newer")));
    assert_eq!(chosen(damaged(), boot::TEXT, newer(8)).expect("it is newer"), "newer");
    assert!(chosen(damaged(), boot::TEXT, newer(7)).is_err(), "its version was used");
}

#[test]
fn a_message_with_state_is_as_long_as_the_widest_entries_make_it_and_no_longer() {
    let widest = (vec![1; 512], vec![1; 512], Some(u64::MAX));
    let entries =
        |count: usize| TakeoverAnswer::Entries { worker: 1, table: 1, entries: vec![widest.clone(); count] };
    let fits = frame::written(&entries(STATE_AT_ONCE)).expect("it has a form").len();
    assert!(fits <= LONGEST_STATE_MESSAGE, "{fits}");
    let (mut ours, mut theirs) = Channel::pair().expect("a pair");
    let longer = entries(STATE_AT_ONCE * 2);
    // The other end is gone before all is sent.
    let sends = thread::spawn(move || theirs.send(&longer, &[]).is_err());
    assert!(next(&mut ours, LONGEST_STATE_MESSAGE).is_err());
    drop(ours);
    assert!(sends.join().expect("it ends"));
}
