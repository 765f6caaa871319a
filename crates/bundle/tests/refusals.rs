//! Each reason for which a bundle or a trust is refused, by itself, and what is said then.

mod made;

use bundle::sign::{add_signature, read_unverified, sign};
use bundle::{BundleRefusal, CONTEXT, EngineVersion, Trust, TrustError, TrustedKey};
use ciborium::Value;
use made::{ENGINE, GATEWAY, NOW};

fn payload() -> Vec<u8> {
    made::bytes(&made::value(&made::policy()))
}

fn refusal_of(bundle: &[u8]) -> BundleRefusal {
    made::trust().accept(bundle, NOW, 0, ENGINE).unwrap_err()
}

#[test]
fn a_bundle_counts_from_its_first_second_until_before_its_last() {
    let (policy, bundle) = (made::policy(), made::signed(payload(), &[1, 2]));
    let at = |now| made::trust().accept(&bundle, now, 0, ENGINE).map(|accepted| accepted.policy);
    let (not_before, expiry) = (policy.not_before, policy.expiry);
    for now in [0, not_before - 1] {
        assert_eq!(at(now), Err(BundleRefusal::NotYetValid { not_before, now }));
    }
    for now in [not_before, NOW, expiry - 1] {
        assert_eq!(at(now).as_ref(), Ok(&policy));
    }
    for now in [expiry, u64::MAX] {
        assert_eq!(at(now), Err(BundleRefusal::Expired { expiry, now }));
    }
}

#[test]
fn versions_only_rise() {
    let bundle = made::signed(payload(), &[1, 2]);
    let after =
        |newest| made::trust().accept(&bundle, NOW, newest, ENGINE).map(|accepted| accepted.policy.version);
    assert_eq!(after(0), Ok(300));
    assert_eq!(after(299), Ok(300));
    for newest in [300, 301, u64::MAX] {
        assert_eq!(after(newest), Err(BundleRefusal::OldVersion { found: 300, newest }));
    }
}

#[test]
fn engines_that_are_too_old_are_refused() {
    let bundle = made::signed(payload(), &[1, 2]);
    let needed = made::policy().engine;
    for (own, fits) in [([1, 2, 30], true), ([1, 2, 31], true), ([1, 10, 0], true), ([2, 0, 0], true)]
        .into_iter()
        .chain([([1, 2, 29], false), ([1, 1, 99], false), ([0, 99, 99], false)])
    {
        let own = EngineVersion { major: own[0], minor: own[1], patch: own[2] };
        let judged = made::trust().accept(&bundle, NOW, 0, own);
        assert_eq!(judged.err(), (!fits).then_some(BundleRefusal::OldEngine { needed, own }));
    }
}

#[test]
fn another_gateway_refuses() {
    let trust = Trust::new("gateway-8.example", made::trusted(&[1, 2, 3]), 2).unwrap();
    let refusal = trust.accept(&made::signed(payload(), &[1, 2]), NOW, 0, ENGINE).unwrap_err();
    let (found, own) = (GATEWAY.to_owned(), "gateway-8.example".to_owned());
    assert_eq!(refusal, BundleRefusal::OtherGateway { found, own });
}

#[test]
fn keys_that_signed_are_counted_once_and_must_be_known() {
    let few = BundleRefusal::TooFewSignatures { count: 1, threshold: 2 };
    assert_eq!(refusal_of(&made::signed(payload(), &[1])), few);
    let twice = made::cose_in_order(payload(), &[1, 1], CONTEXT);
    assert_eq!(refusal_of(&twice), BundleRefusal::KeyOrder { signature: 2 });
    let stranger = made::public_key(9);
    let place = made::public_keys(&[1, 2, 9]).iter().position(|key| *key == stranger).unwrap();
    assert_eq!(
        refusal_of(&made::signed(payload(), &[1, 2, 9])),
        BundleRefusal::UnknownKey { signature: place + 1, key: stranger }
    );
    let mut backwards = [1, 2];
    backwards.sort_unstable_by_key(|number| std::cmp::Reverse(made::public_key(*number)));
    let backwards = made::cose_in_order(payload(), &backwards, CONTEXT);
    assert_eq!(refusal_of(&backwards), BundleRefusal::KeyOrder { signature: 2 });
    // A wrong signature is not made good by enough right ones.
    let mut all = made::signed(payload(), &[1, 2, 3]);
    assert!(made::trust().accept(&all, NOW, 0, ENGINE).is_ok());
    *all.last_mut().unwrap() ^= 1;
    assert!(matches!(refusal_of(&all), BundleRefusal::WrongSignature { .. }));
}

#[test]
fn signatures_for_another_purpose_are_wrong() {
    for context in [&b""[..], b"ravelin signed policy, format 2", b"ravelin release"] {
        let bundle = made::cose(payload(), &[1, 2], context);
        assert!(matches!(refusal_of(&bundle), BundleRefusal::WrongSignature { .. }));
    }
    assert!(made::trust().accept(&made::cose(payload(), &[1, 2], CONTEXT), NOW, 0, ENGINE).is_ok());
}

#[test]
fn nothing_of_a_payload_is_read_before_its_signatures_are_right() {
    // What is no payload at all is told only to those who signed it.
    let nonsense = b"no map".to_vec();
    let unsigned = made::cose(nonsense.clone(), &[1, 2], b"");
    assert!(matches!(refusal_of(&unsigned), BundleRefusal::WrongSignature { .. }));
    assert!(matches!(refusal_of(&made::signed(nonsense, &[1, 2])), BundleRefusal::Malformed { at: 6, .. }));
}

/// A change of a payload's fields.
type Change = fn(&mut Vec<(Value, Value)>);

#[test]
fn payloads_in_another_form_are_refused_although_they_are_signed() {
    let int = |number: u64| Value::Integer(number.into());
    let changes: [(&str, Change); 12] = [
        ("a field nobody knows", |fields| fields.push((Value::Integer(9.into()), Value::Null))),
        ("a field twice", |fields| fields.insert(2, fields[2].clone())),
        ("a field left out", |fields| drop(fields.remove(3))),
        ("fields out of order", |fields| fields.swap(2, 3)),
        ("another format", |fields| fields[0].1 = Value::Integer(2.into())),
        ("no version", |fields| fields[2].1 = Value::Integer(0.into())),
        ("a negative version", |fields| fields[2].1 = Value::Integer((-1).into())),
        ("a version as text", |fields| fields[2].1 = Value::Text("300".to_owned())),
        ("no time between first and last second", |fields| {
            fields[4] = (fields[4].0.clone(), fields[3].1.clone())
        }),
        ("no name", |fields| fields[1].1 = Value::Text(String::new())),
        ("a name with a space", |fields| fields[1].1 = Value::Text("gateway 7".to_owned())),
        ("a name that commands a terminal", |fields| fields[1].1 = Value::Text("\u{1b}[2J".to_owned())),
    ];
    for (what, change) in changes {
        let Value::Map(mut fields) = made::value(&made::policy()) else { panic!("a map") };
        change(&mut fields);
        let refusal = refusal_of(&made::signed(made::bytes(&Value::Map(fields)), &[1, 2]));
        assert!(matches!(refusal, BundleRefusal::Malformed { .. }), "{what}: {refusal:?}");
    }
    let two = |one: Value, other: Value| Value::Array(vec![one, other]);
    let prefix = |width: u64, length: u64, bytes: &[u8]| {
        Value::Array(vec![int(width), int(length), Value::Bytes(bytes.to_vec())])
    };
    let right = |table: &str, prefixes: Value| {
        let fields = [Value::Text(table.to_owned()), prefixes, int(1), int(1)];
        Value::Map((1..).map(int).zip(fields).collect())
    };
    let of = |prefix: Value| Value::Array(vec![right("t", Value::Array(vec![prefix]))]);
    let none = || Value::Array(Vec::new());
    for (what, rights) in [
        ("a table twice", two(right("t", none()), right("t", none()))),
        ("tables out of order", two(right("u", none()), right("t", none()))),
        ("a prefix twice", Value::Array(vec![right("t", two(prefix(32, 8, &[10]), prefix(32, 8, &[10])))])),
        (
            "prefixes out of order",
            Value::Array(vec![right("t", two(prefix(32, 8, &[10]), prefix(32, 8, &[9])))]),
        ),
        ("a key without bits", of(prefix(0, 0, &[]))),
        ("bits behind the prefix", of(prefix(32, 7, &[11]))),
        ("bits behind the key", of(prefix(7, 7, &[11]))),
        ("too few bytes", of(prefix(32, 9, &[10]))),
        ("a right with rules", Value::Array(vec![Value::Map(vec![(int(5), int(1))])])),
    ] {
        let Value::Map(mut fields) = made::value(&made::policy()) else { panic!("a map") };
        fields[7].1 = rights;
        let refusal = refusal_of(&made::signed(made::bytes(&Value::Map(fields)), &[1, 2]));
        assert!(matches!(refusal, BundleRefusal::Malformed { .. }), "{what}: {refusal:?}");
    }
}

#[test]
fn what_is_kept_counts_as_the_version_that_was_accepted_and_has_no_time() {
    let (policy, bundle) = (made::policy(), made::signed(payload(), &[1, 2]));
    let kept = |version, engine| made::trust().accept_kept(&bundle, version, engine);
    assert_eq!(kept(300, ENGINE).unwrap().policy, policy);
    for version in [0, 299, 301] {
        assert_eq!(kept(version, ENGINE), Err(BundleRefusal::OtherVersion { found: 300, kept: version }));
    }
    let own = EngineVersion { patch: 29, ..policy.engine };
    assert_eq!(kept(300, own), Err(BundleRefusal::OldEngine { needed: policy.engine, own }));
    let few = made::trust().accept_kept(&made::signed(payload(), &[1]), 300, ENGINE);
    assert_eq!(few, Err(BundleRefusal::TooFewSignatures { count: 1, threshold: 2 }));
}

#[test]
fn nothing_may_stand_behind_a_payload_or_a_bundle() {
    let (payload, bundle) = (payload(), made::signed(payload(), &[1, 2]));
    let longer = refusal_of(&[&bundle[..], &[0]].concat());
    assert_eq!(longer, BundleRefusal::Malformed { at: bundle.len(), what: "the end" });
    let start = bundle.windows(payload.len()).position(|part| part == payload).unwrap();
    let longer = refusal_of(&made::signed([&payload[..], &[0]].concat(), &[1, 2]));
    assert_eq!(longer, BundleRefusal::Malformed { at: start + payload.len(), what: "the end" });
}

#[test]
fn a_refusal_says_at_which_byte_it_is_and_what_belongs_there() {
    let bundle = made::signed(payload(), &[1, 2]);
    for length in 8..payload().len() {
        assert_eq!(
            refusal_of(&bundle[..length]),
            BundleRefusal::Malformed { at: length, what: "more bytes" }
        );
    }
    let with = |field: usize, value: Value| {
        let mut changed = made::value(&made::policy());
        let Value::Map(fields) = &mut changed else { panic!("it is a map") };
        fields[field].1 = value;
        match refusal_of(&made::signed(made::bytes(&changed), &[1, 2])) {
            BundleRefusal::Malformed { what, .. } => what,
            other => panic!("{other}"),
        }
    };
    assert_eq!(with(1, Value::Null), "a text");
    assert_eq!(with(2, Value::Null), "an unsigned number");
    assert_eq!(with(5, Value::Null), "an array");
    assert_eq!(with(7, Value::Array(vec![Value::Null])), "a map");
    let payload = made::bytes(&made::value(&made::policy()));
    let name = payload.windows(GATEWAY.len()).position(|part| part == GATEWAY.as_bytes()).unwrap();
    let mut no_text = payload.clone();
    no_text[name + 3] = 0xff;
    let bundle = made::signed(no_text.clone(), &[1, 2]);
    let start = bundle.windows(no_text.len()).position(|part| part == no_text).unwrap();
    let refusal = refusal_of(&bundle);
    assert_eq!(refusal, BundleRefusal::Malformed { at: start + name + 3, what: "a text in UTF-8" });
}

#[test]
fn a_key_is_64_hexadecimal_digits() {
    let key = made::public_key(1);
    let digits = bundle::hex(&key);
    assert_eq!(digits.len(), 64);
    for digits in [digits.clone(), digits.to_uppercase()] {
        assert_eq!(bundle::bytes_of_digits(&digits), Some(key));
        assert_eq!(TrustedKey::from_digits("anna", &digits).unwrap().key, key);
    }
    let wrong = [&digits[1..], &digits[2..], &format!("{digits}0"), &format!("{}g", &digits[1..]), ""];
    // A sign is none of them, though numbers are read with one.
    for wrong in wrong.into_iter().chain([format!("+1{}", &digits[2..]).as_str()]) {
        assert_eq!(bundle::bytes_of_digits(wrong), None, "{wrong}");
        assert_eq!(
            TrustedKey::from_digits("anna", wrong).unwrap_err(),
            TrustError::Key { name: "anna".to_owned() }
        );
    }
}

#[test]
fn the_own_engine_has_the_version_of_this_build() {
    assert_eq!(EngineVersion::OWN.to_string(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn what_is_no_policy_is_not_signed() {
    let policy = made::policy();
    let mut backwards = policy.clone();
    backwards.rights.reverse();
    let mut ended = policy.clone();
    ended.expiry = ended.not_before;
    for wrong in [backwards, ended, bundle::SignedPolicy { version: 0, ..policy.clone() }] {
        assert!(matches!(sign(&wrong, &made::signer(1)), Err(BundleRefusal::Malformed { .. })));
    }
    assert!(matches!(read_unverified(b"\xd8\x62"), Err(BundleRefusal::Malformed { at: 0, .. })));
    let nonsense = made::signed(b"no map".to_vec(), &[1]);
    assert!(add_signature(&nonsense, &made::signer(2)).is_err());
}

#[test]
fn a_trust_needs_a_threshold_that_can_be_reached_and_keys_that_differ() {
    let keys = || made::trusted(&[1, 2, 3]);
    for threshold in [0, 4, usize::MAX] {
        let refused = Trust::new(GATEWAY, keys(), threshold).unwrap_err();
        assert_eq!(refused, TrustError::Threshold { threshold, keys: 3 });
    }
    assert_eq!(Trust::new(GATEWAY, vec![], 0).unwrap_err(), TrustError::Threshold { threshold: 0, keys: 0 });
    for threshold in 1..=3 {
        assert!(Trust::new(GATEWAY, keys(), threshold).is_ok());
    }
    let twice = TrustError::Twice { first: "admin-1".to_owned(), second: "x".to_owned() };
    let mut same_key = keys();
    same_key.push(TrustedKey { name: "x".to_owned(), key: made::public_key(1) });
    assert_eq!(Trust::new(GATEWAY, same_key, 2).unwrap_err(), twice);
    let mut same_name = keys();
    same_name[2].name = "admin-1".to_owned();
    assert!(matches!(Trust::new(GATEWAY, same_name, 2), Err(TrustError::Twice { .. })));
    for wrong in ["", "a b", "ä", "\u{7}"] {
        assert!(matches!(Trust::new(wrong, keys(), 2), Err(TrustError::Name { of: "gateway", .. })));
        let mut named = keys();
        named[1].name = wrong.to_owned();
        assert!(matches!(Trust::new(GATEWAY, named, 2), Err(TrustError::Name { of: "key", .. })));
    }
}

#[test]
fn keys_with_which_anybody_signs_are_refused_as_another_implementation_says() {
    let field = |lowest: u8| {
        std::array::from_fn(|at| [lowest, 0xff, 0x7f][usize::from(at > 0) + usize::from(at > 30)])
    };
    let small = |lowest: u8| std::array::from_fn(|at| if at == 0 { lowest } else { 0 });
    // Points of order 8 (RFC 7748's curve in the form of RFC 8032), by y; the rest are their encodings.
    let eight = [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ]
    .map(|digits| std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..][..2], 16).unwrap()));
    let mut weak = 0;
    for y in [
        small(0),
        small(1),
        small(2),
        small(9),
        field(0xeb),
        field(0xec),
        field(0xed),
        field(0xee),
        field(0xef),
    ]
    .into_iter()
    .chain(eight)
    .chain((1..20).map(made::public_key))
    {
        for sign in [0, 0x80] {
            let mut key: [u8; 32] = y;
            key[31] |= sign;
            let refused = Trust::new(GATEWAY, vec![TrustedKey { name: "x".to_owned(), key }], 1);
            let other = ed25519_dalek::VerifyingKey::from_bytes(&key);
            if other.is_ok_and(|key| key.is_weak()) {
                assert_eq!(refused.unwrap_err(), TrustError::WeakKey { name: "x".to_owned() });
                weak += 1;
            } else if sign == 0 && refused.is_err() {
                panic!("not weak: {key:02x?}");
            }
        }
    }
    assert!(weak >= 8);
}

#[test]
fn refusals_say_what_to_do() {
    let all = [
        refusal_of(&[0; 9]),
        refusal_of(&made::signed(payload(), &[1])),
        refusal_of(&made::signed(payload(), &[1, 9])),
        refusal_of(&made::cose(payload(), &[1, 2], b"")),
    ]
    .map(|refusal| refusal.to_string());
    assert_eq!(
        all[0],
        "byte 0 of the bundle: the start of a bundle is expected there: hand in the file as it was signed, \
         or sign it again"
    );
    assert_eq!(
        all[1],
        "the bundle has 1 of the 2 signatures that are needed: let more administrators sign it"
    );
    assert!(
        all[2].contains("by a key that this gateway does not know") && all[2].contains("let administrators")
    );
    assert!(all[3].starts_with("the signature of admin-") && all[3].contains("changed after it was signed"));
}
