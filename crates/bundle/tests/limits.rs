//! Each limit, with what is just within it and what is beyond it.

mod made;

use bundle::sign::{add_signature, sign};
use bundle::{BundleRefusal, KeyPrefix, SignedPolicy, TableRight, Trust, TrustError, limits};
use made::{ENGINE, GATEWAY, NOW};

/// The refusal for a length or number of `what`.
#[track_caller]
fn too_large<T: std::fmt::Debug>(judged: Result<T, BundleRefusal>, of: &str, limit: u64) {
    match judged {
        Err(BundleRefusal::TooLarge { what, value, most, .. }) => {
            assert_eq!((what, value, most), (of, limit + 1, limit));
        }
        other => panic!("{other:?}"),
    }
}

fn signed(policy: &SignedPolicy) -> Result<Vec<u8>, BundleRefusal> {
    sign(policy, &made::signer(1))
}

fn right(table: String, prefixes: usize) -> TableRight {
    let prefixes = (0..prefixes).map(|at| KeyPrefix::new(128, 128, at as u128).unwrap()).collect();
    TableRight { table, prefixes, most_entries: u32::MAX, changes_per_second: u32::MAX }
}

#[test]
fn bytes_of_a_bundle() {
    let accept = |bytes: &[u8]| made::trust().accept(bytes, NOW, 0, ENGINE).unwrap_err();
    let bytes = vec![0; limits::BUNDLE_BYTES + 1];
    assert_eq!(accept(&bytes), BundleRefusal::TooLong { bytes: limits::BUNDLE_BYTES + 1 });
    assert!(matches!(accept(&bytes[1..]), BundleRefusal::Malformed { at: 0, .. }));
    // A length is refused before anything of that length is looked for.
    let mut claimed = vec![0xd8, 98, 0x84, 0x40, 0xa0, 0x5a];
    claimed.extend((limits::BUNDLE_BYTES as u32 + 1).to_be_bytes());
    too_large::<()>(Err(accept(&claimed)), "the length of the payload", limits::BUNDLE_BYTES as u64);
}

#[test]
fn bytes_of_a_program() {
    let mut policy = made::policy();
    policy.program = "x".repeat(limits::PROGRAM_BYTES);
    let one = signed(&policy).unwrap();
    let trust = Trust::new(GATEWAY, made::trusted(&[1]), 1).unwrap();
    assert_eq!(trust.accept(&one, NOW, 0, ENGINE).unwrap().policy.program.len(), limits::PROGRAM_BYTES);
    policy.program.push('x');
    too_large(signed(&policy), "the length of the program in bytes", limits::PROGRAM_BYTES as u64);
}

#[test]
fn all_limits_fit_into_a_bundle_together() {
    let name = |at: usize| format!("{at:0255}");
    let policy = SignedPolicy {
        gateway: name(0),
        program: "x".repeat(limits::PROGRAM_BYTES),
        rights: (0..limits::RIGHTS).map(|at| right(name(at), limits::PREFIXES)).collect(),
        ..made::policy()
    };
    let mut bundle = signed(&policy).unwrap();
    for number in 2..=limits::KEYS as u8 {
        bundle = add_signature(&bundle, &made::signer(number)).unwrap();
    }
    assert!(bundle.len() <= limits::BUNDLE_BYTES);
}

#[test]
fn bytes_of_a_name() {
    let long = |more: usize| "n".repeat(limits::NAME_BYTES + more);
    let named = |gateway: String| SignedPolicy { gateway, ..made::policy() };
    assert!(signed(&named(long(0))).is_ok());
    too_large(signed(&named(long(1))), "the name of a gateway", limits::NAME_BYTES as u64);
    let about = |table: String| SignedPolicy { rights: vec![right(table, 0)], ..made::policy() };
    assert!(signed(&about(long(0))).is_ok());
    too_large(signed(&about(long(1))), "the name of a table", limits::NAME_BYTES as u64);
    assert!(Trust::new(&long(0), made::trusted(&[1]), 1).is_ok());
    assert!(matches!(Trust::new(&long(1), made::trusted(&[1]), 1), Err(TrustError::Name { .. })));
}

#[test]
fn keys_of_a_gateway_and_signatures_of_a_bundle() {
    let numbers: Vec<u8> = (1..=limits::KEYS as u8 + 1).collect();
    assert!(Trust::new(GATEWAY, made::trusted(&numbers[1..]), 1).is_ok());
    let refused = Trust::new(GATEWAY, made::trusted(&numbers), 1).unwrap_err();
    assert_eq!(refused, TrustError::TooManyKeys { count: limits::KEYS + 1 });
    let payload = made::bytes(&made::value(&made::policy()));
    let full = made::signed(payload.clone(), &numbers[1..]);
    let all = Trust::new(GATEWAY, made::trusted(&numbers[1..]), 1).unwrap();
    assert!(all.accept(&full, NOW, 0, ENGINE).is_ok());
    too_large(add_signature(&full, &made::signer(1)), "the number of signatures", limits::KEYS as u64);
    let judged = all.accept(&made::signed(payload, &numbers), NOW, 0, ENGINE);
    too_large(judged, "the number of signatures", limits::KEYS as u64);
}

#[test]
fn rights_of_a_policy() {
    let many = |count: usize| SignedPolicy {
        rights: (0..count).map(|at| right(format!("t{at:03}"), 0)).collect(),
        ..made::policy()
    };
    assert!(signed(&many(limits::RIGHTS)).is_ok());
    too_large(signed(&many(limits::RIGHTS + 1)), "the number of rights", limits::RIGHTS as u64);
}

#[test]
fn prefixes_of_a_right() {
    let many = |count| SignedPolicy { rights: vec![right("t".to_owned(), count)], ..made::policy() };
    assert!(signed(&many(limits::PREFIXES)).is_ok());
    too_large(signed(&many(limits::PREFIXES + 1)), "the number of prefixes", limits::PREFIXES as u64);
}

#[test]
fn numbers_of_a_right_and_of_a_prefix() {
    use ciborium::Value;
    let int = |number: u64| Value::Integer(number.into());
    let of = |prefix: [u64; 2], bytes: &[u8], entries: u64, changes: u64, patch: u64| {
        let prefix = Value::Array(vec![int(prefix[0]), int(prefix[1]), Value::Bytes(bytes.to_vec())]);
        let fields = [Value::Text("t".to_owned()), Value::Array(vec![prefix]), int(entries), int(changes)];
        let right = Value::Map((1..).map(int).zip(fields).collect());
        let Value::Map(mut fields) = made::value(&made::policy()) else { panic!("a map") };
        fields[7].1 = Value::Array(vec![right]);
        fields[5].1 = Value::Array(vec![int(1), int(1), int(patch)]);
        let bundle = made::signed(made::bytes(&Value::Map(fields)), &[1, 2]);
        made::trust().accept(&bundle, NOW, 0, ENGINE)
    };
    let top = u64::from(u32::MAX);
    assert!(of([128, 128], &[1; 16], top, top, top).is_ok());
    assert!(of([1, 0], &[], 0, 0, 0).is_ok());
    too_large(of([129, 8], &[1], 1, 1, 1), "the width of a key in bits", 128);
    too_large(of([32, 33], &[1; 5], 1, 1, 1), "the length of a prefix in bits", 32);
    too_large(of([32, 8], &[1; 2], 1, 1, 1), "the bytes of a prefix", 1);
    too_large(of([32, 8], &[1], top + 1, 1, 1), "the most entries", top);
    too_large(of([32, 8], &[1], 1, top + 1, 1), "the changes per second", top);
    too_large(of([32, 8], &[1], 1, 1, top + 1), "a number of an engine's version", top);
}
